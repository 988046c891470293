//! After a restart: what runs is adopted, what ended meanwhile is reported, what a reboot has taken is let go.

use super::attempt::batch;
use super::parts::Part;
use super::steps::Running;
use super::{After, Owner};
use crate::part::Event;
use crate::spool;
use crate::store::{Attempt as AttemptKey, Over};
use sluice_identity::credential::verify_job;
use sluice_identity::now_ms;
use sluice_proto::v1::{LaunchJob, StepKey, SupervisorExit, SupervisorSpec};
use std::path::{Path, PathBuf};
use std::time::Instant;

impl Owner {
    pub(super) fn recover(&mut self) {
        let boot = spool::boot_id();
        let entries = match std::fs::read_dir(&self.jobs) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(dir = %self.jobs.display(), %error, "the jobs of this node can't be read");
                return;
            }
        };
        for entry in entries.flatten() {
            let Some(key) = entry.file_name().to_str().and_then(spool::parse_attempt) else { continue };
            let dir = entry.path();
            if self.store.over(key).is_some() {
                self.after.push(After::Remove(dir));
                continue;
            }
            match spool::read::<LaunchJob>(&dir, spool::LAUNCH) {
                // Without the record nothing has run.
                Ok(None) => self.after.push(After::Remove(dir)),
                Ok(Some(order)) => {
                    let then = std::fs::read_to_string(dir.join(spool::BOOT)).unwrap_or_default();
                    if then == boot {
                        self.adopt(key, &order, dir);
                    } else {
                        self.lost_by_reboot(key, dir);
                    }
                }
                Err(error) => tracing::error!(job = key.0, %error, "a job's record can't be read; it is left alone"),
            }
        }
        self.remove_left_groups();
    }

    /// Groups of jobs that are over: a daemon that was killed could not remove them. One in which something runs stays.
    fn remove_left_groups(&self) {
        let Some(tree) = &self.setup.tree else { return };
        for entry in std::fs::read_dir(&tree.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let key = name.to_str().and_then(|n| spool::parse_attempt(n.strip_prefix("job_")?));
            if key.is_some_and(|key| !self.attempts.contains_key(&key)) {
                crate::cgroup::remove(&entry.path());
            }
        }
    }

    fn adopt(&mut self, key: AttemptKey, order: &LaunchJob, dir: PathBuf) {
        let Some(credential) = order.credential.clone() else { return };
        let job = match verify_job(&credential, self.setup.keys.cluster(), now_ms()) {
            Ok(job) => job,
            Err(why) => {
                tracing::error!(job = key.0, %why, "a job's credential is not good any more; it is left alone");
                return;
            }
        };
        self.insert_attempt(key, job, credential, dir.clone());
        let steps = self.store.steps(key);
        if let Some(manager) = self.attempts.get_mut(&key).and_then(|a| a.manager.as_mut()) {
            manager.running = steps.into_iter().map(|(number, kept)| (number, Running::new(kept))).collect();
        }
        let mut has_batch = false;
        for (step, part_dir) in parts(&dir) {
            has_batch |= step == batch();
            if part_dir.join(spool::TOLD).exists() {
                if let Some(attempt) = self.attempts.get_mut(&key) {
                    attempt.told.push_back((Instant::now(), step));
                }
                continue;
            }
            let id = StepKey { job: key.0, attempt: key.1, step };
            self.adopt_part(id, &part_dir);
        }
        if order.run_batch && !has_batch {
            // The daemon ended between the record and the start.
            self.start_batch(key, order);
        }
        tracing::info!(job = key.0, attempt = key.1, "a job was taken up again");
    }

    fn adopt_part(&mut self, key: StepKey, dir: &Path) {
        let ranks = match spool::read::<SupervisorSpec>(dir, spool::SPEC) {
            Ok(Some(spec)) => spec.tasks.iter().map(|t| t.rank).collect(),
            // The folder was made, but nothing was started in it.
            Ok(None) => {
                let _ = std::fs::remove_dir_all(dir);
                return;
            }
            Err(_) => Vec::new(),
        };
        if let Some(attempt) = self.attempts.get_mut(&(key.job, key.attempt)) {
            attempt.parts.insert(key.step, Part::new(ranks));
        }
        match spool::read::<SupervisorExit>(dir, spool::EXIT) {
            Ok(Some(exit)) => {
                crate::part::greet(&self.setup.runtime, dir.to_owned());
                self.part_event(key, Event::Ended(Box::new(exit)));
            }
            _ => self.watch_part(key, None),
        }
    }

    /// The kernel has been started anew: nothing of the attempt lives. What had ended before is still reported truly.
    fn lost_by_reboot(&mut self, key: AttemptKey, dir: PathBuf) {
        tracing::warn!(job = key.0, attempt = key.1, "the node was restarted under a job");
        let record = spool::read::<SupervisorExit>(&dir.join(spool::step_name(batch())), spool::EXIT);
        let over = match record {
            Ok(Some(exit)) => {
                self.batch_ended(key, &exit);
                Over::Ended
            }
            _ => Over::Lost,
        };
        self.put_over(key, over);
        self.after.push(After::Remove(dir));
    }
}

/// The step folders of an attempt.
fn parts(dir: &Path) -> Vec<(u32, PathBuf)> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .filter_map(|e| Some((spool::parse_step(e.file_name().to_str()?)?, e.path())))
        .collect();
    found.sort();
    found
}
