//! Attempts: a job's run on this node, from its launch to the moment when nothing of it is left.

use super::parts::Part;
use super::steps::Manager;
use super::{After, Owner};
use crate::launch;
use crate::store::{Attempt as AttemptKey, Over};
use crate::{cgroup, spool, store};
use sluice_identity::credential::{VerifiedJob, verify_job};
use sluice_identity::now_ms;
use sluice_model::StepId;
use sluice_proto::v1::{
    AttemptConfirmed, AttemptGone, BatchEnded, ExitStatus, JobCredential, LaunchJob, StepKey, SupervisorExit, report,
};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tonic::Status;

/// How long beyond their time to end by themselves an attempt's end waits for the last word of other nodes' parts.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How long a client may come back for the rest of a finished step's output (the supervisor waits as long).
const KEEP_TOLD: Duration = Duration::from_secs(70);

pub struct Attempt {
    pub job: VerifiedJob,
    pub credential: JobCredential,
    pub dir: PathBuf,
    pub parts: BTreeMap<u32, Part>,
    /// On the job's first node.
    pub manager: Option<Manager>,
    /// The controller has said that it is over, then.
    pub ending: Option<Instant>,
    /// Something told its processes to end: what dies of a signal was cancelled.
    pub cancelling: bool,
    /// Steps whose end everybody knows, since when: their folders shrink to a marker after a while.
    pub told: VecDeque<(Instant, u32)>,
}

/// How long after its start a job may be made known by its credential alone, ms. Later a node that does not know it has
/// ended it (and may have forgotten that): nobody may bring it back with papers that they kept.
const EARLY: i64 = 3_600_000;

pub fn batch() -> u32 {
    StepId::Batch.to_wire()
}

impl Owner {
    pub(super) fn launch(&mut self, order: LaunchJob) {
        let Some(credential) = order.credential.clone() else {
            tracing::error!("a launch without a credential was refused");
            return;
        };
        let job = match verify_job(&credential, self.setup.keys.cluster(), now_ms()) {
            Ok(job) => job,
            Err(why) => {
                tracing::error!(target: "audit", %why, "a launch was refused");
                return;
            }
        };
        let key = (job.body.job, job.body.attempt);
        match self.store.over(key) {
            Some(Over::Ended) => return,
            Some(Over::Lost) => {
                self.confirm(key);
                let failure = "the node went down while the job ran".to_owned();
                return self.batch_failed(key, &order, failure, true);
            }
            None => {}
        }
        let known = self.attempts.get(&key);
        if known.is_some_and(|a| a.ending.is_some() || a.parts.contains_key(&batch()) || a.dir.join("batch").exists()) {
            return;
        }
        if known.is_some() && !order.run_batch {
            // Its steps came before it.
            return self.confirm(key);
        }
        if let Err(error) = self.record_attempt(key, &order, job, credential) {
            tracing::error!(job = key.0, %error, "a launch could not be recorded");
            self.confirm(key);
            return self.batch_failed(key, &order, format!("the job could not be recorded on the node: {error}"), true);
        }
        self.confirm(key);
        if order.run_batch {
            self.start_batch(key, &order);
        }
    }

    fn confirm(&mut self, (job, attempt): AttemptKey) {
        self.report(report::Kind::Confirmed(AttemptConfirmed { job, attempt }));
    }

    /// On disk before anything runs.
    pub(super) fn record_attempt(
        &mut self,
        key: AttemptKey,
        order: &LaunchJob,
        job: VerifiedJob,
        credential: JobCredential,
    ) -> std::io::Result<()> {
        let dir = spool::attempt_dir(&self.jobs, key.0, key.1);
        spool::make_dir(&dir)?;
        spool::write_file(&dir, spool::BOOT, spool::boot_id().as_bytes(), false)?;
        spool::write_durable(&dir, spool::LAUNCH, order)?;
        spool::sync_dir(&self.jobs)?;
        self.insert_attempt(key, job, credential, dir);
        Ok(())
    }

    pub(super) fn insert_attempt(
        &mut self,
        key: AttemptKey,
        job: VerifiedJob,
        credential: JobCredential,
        dir: PathBuf,
    ) {
        let first = job.allocation.nodes.first().map(|n| n.node.as_str());
        let manager = (first == Some(self.setup.site.node.as_str())).then(Manager::default);
        let attempt = Attempt {
            job,
            credential,
            dir,
            parts: BTreeMap::new(),
            manager,
            ending: None,
            cancelling: false,
            told: VecDeque::new(),
        };
        match self.attempts.entry(key) {
            std::collections::btree_map::Entry::Occupied(_) => {}
            std::collections::btree_map::Entry::Vacant(slot) => {
                slot.insert(attempt);
            }
        }
        self.admitted_stale = true;
    }

    /// An attempt that a step's credential speaks of, known or made known by it.
    pub(super) fn attempt_of_credential(
        &mut self,
        job: VerifiedJob,
        credential: JobCredential,
    ) -> Result<AttemptKey, Status> {
        let key = (job.body.job, job.body.attempt);
        if self.attempts.contains_key(&key) {
            return Ok(key);
        }
        let newer = self.attempts.range(key..=(key.0, u32::MAX)).next().is_some();
        if self.store.over(key).is_some() || newer || now_ms() - job.body.start_time > EARLY {
            return Err(Status::failed_precondition("Job/step already completing or completed"));
        }
        // The step is faster than the controller's launch.
        let order = LaunchJob { credential: Some(credential.clone()), ..LaunchJob::default() };
        self.record_attempt(key, &order, job, credential)
            .map_err(|e| Status::internal(format!("the job could not be recorded: {e}")))?;
        Ok(key)
    }

    /// Why nothing may be started here; None when all is well. Isolation fails closed unless the configuration says
    /// best effort.
    pub(super) fn isolation_lacks(&self) -> Option<String> {
        (!self.config.best_effort && !self.setup.missing.is_empty())
            .then(|| format!("node {} lacks {}", self.setup.site.node, self.setup.missing.join(", ")))
    }

    pub(super) fn start_batch(&mut self, key: AttemptKey, order: &LaunchJob) {
        if let Some(lack) = self.isolation_lacks() {
            return self.batch_failed(key, order, lack, true);
        }
        let Some(attempt) = self.attempts.get(&key) else { return };
        let spec = match launch::batch::spec(&self.setup.site, order, &attempt.job) {
            Ok(spec) => spec,
            Err(why) => return self.batch_failed(key, order, why, true),
        };
        let step = StepKey { job: key.0, attempt: key.1, step: batch() };
        match self.prepare_part(step, spec, true) {
            Ok(()) => self.after.push(After::Start(step)),
            Err(error) => {
                let why = format!("the job could not be recorded on the node: {error}");
                self.batch_failed(key, order, why, true);
            }
        }
    }

    pub(super) fn batch_failed(&mut self, key: AttemptKey, order: &LaunchJob, failure: String, node_fault: bool) {
        if !order.run_batch {
            return;
        }
        tracing::warn!(job = key.0, failure, "the batch script was not started");
        self.report(report::Kind::BatchEnded(BatchEnded {
            job: key.0,
            attempt: key.1,
            exit: Some(ExitStatus { code: 1, signal: 0 }),
            usage: None,
            failure: Some(failure),
            node_fault,
        }));
    }

    pub(super) fn batch_ended(&mut self, key: AttemptKey, exit: &SupervisorExit) {
        self.report(report::Kind::BatchEnded(BatchEnded {
            job: key.0,
            attempt: key.1,
            exit: exit.worst,
            usage: exit.usage,
            failure: exit.failure.clone(),
            node_fault: exit.node_fault,
        }));
    }

    /// The job is to hold nothing here any more: everything of it ends, in the time that SIGTERM gives.
    pub(super) fn end_attempt(&mut self, key: AttemptKey) {
        let Some(attempt) = self.attempts.get_mut(&key) else {
            // Unknown or over: say so (again).
            if self.store.over(key).is_none() {
                self.put_over(key, Over::Ended);
            }
            if !self.store.reported_attempts().contains(&key) {
                self.report(report::Kind::Gone(AttemptGone { job: key.0, attempt: key.1 }));
            }
            return;
        };
        if attempt.ending.is_none() {
            attempt.ending = Some(Instant::now());
            attempt.cancelling = true;
            for (step, part) in &mut attempt.parts {
                if *step != batch() {
                    part.notice(&format!("STEP {}.{step}", key.0), &self.setup.site.node, "");
                }
                part.end(true);
            }
            if let Some(manager) = &mut attempt.manager {
                for waiting in manager.waiting.drain(..) {
                    let _ = waiting
                        .reply
                        .send(Err(Status::failed_precondition("Job/step already completing or completed")));
                }
            }
            self.admitted_stale = true;
        }
        self.settle_ending(key);
    }

    /// Says that the attempt is gone, when it is.
    pub(super) fn settle_ending(&mut self, key: AttemptKey) {
        let Some(attempt) = self.attempts.get(&key) else { return };
        let Some(since) = attempt.ending else { return };
        if attempt.parts.values().any(|p| !p.is_over()) {
            return;
        }
        let me = self.setup.site.node.as_str();
        let open = attempt.manager.iter().flat_map(|m| m.running.values()).any(|step| step.waits_for_others(me));
        let kill_wait = Duration::from_secs(self.config.kill_wait_secs.into());
        if open && since.elapsed() < kill_wait + LAST_WORDS {
            return;
        }
        self.close_steps(key);
        let Some(attempt) = self.attempts.remove(&key) else { return };
        if let Some(group) = self.job_group(key) {
            cgroup::remove(&group);
        }
        self.put_over(key, Over::Ended);
        self.report(report::Kind::Gone(AttemptGone { job: key.0, attempt: key.1 }));
        self.after.push(After::Remove(attempt.dir));
        self.admitted_stale = true;
    }

    pub(super) fn put_over(&mut self, key: store::Attempt, over: Over) {
        if let Err(error) = self.store.put_over(key, over, now_ms()) {
            tracing::error!(%error, "the store can't be written");
        }
    }

    /// The cgroup under which all steps of the attempt have theirs.
    pub(super) fn job_group(&self, key: AttemptKey) -> Option<PathBuf> {
        Some(self.setup.tree.as_ref()?.root.join(format!("job_{}.{}", key.0, key.1)))
    }

    pub(super) fn tick_attempts(&mut self) {
        for attempt in self.attempts.values_mut() {
            while attempt.told.front().is_some_and(|(at, _)| at.elapsed() > KEEP_TOLD) {
                let Some((_, step)) = attempt.told.pop_front() else { break };
                shrink(&attempt.dir.join(spool::step_name(step)));
            }
        }
        let ending: Vec<AttemptKey> =
            self.attempts.iter().filter(|(_, a)| a.ending.is_some()).map(|(key, _)| *key).collect();
        for key in ending {
            self.settle_ending(key);
        }
    }
}

/// Leaves nothing of a finished step's folder but the marker, which keeps the step from ever running again.
fn shrink(dir: &Path) {
    for name in [spool::SPEC, spool::STARTED, spool::SOCKET, spool::EXIT, spool::SCRIPT] {
        // What is not there need not go.
        let _ = std::fs::remove_file(dir.join(name));
    }
}
