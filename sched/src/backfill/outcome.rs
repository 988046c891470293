//! What a pass decided, told; and everything put back as it was before.

use super::attempt::before_deadline;
use super::{Done, Pass};
use crate::classes::Standing;
use crate::jobs::{Entry, Pending};
use crate::plan::PlannedReservation;
use crate::reasons::rank;
use crate::timeline::{CPUS, NEVER};
use sluice_model::{JobId, Reason, Time};

impl Pass<'_> {
    pub(super) fn finish(mut self) -> Done {
        let mut guest_cpus = 0;
        for job in &self.planned_order {
            let Some(planned) = self.planned.get(job) else { continue };
            if self.guest == Some(*job) {
                guest_cpus = planned.placed.rows.iter().map(|r| r[CPUS] as u32).sum();
            }
            if planned.start < NEVER {
                self.plan.reservations.push(PlannedReservation {
                    job: *job,
                    start: Time(planned.start),
                    partition: self.cluster.partitions[planned.partition as usize].name.clone(),
                    nodes: planned.placed.shares.iter().map(|s| self.cluster.spec(s.node).name.clone()).collect(),
                });
            }
        }
        self.plan.reasons = self.reasons();
        self.put_back();
        Done { plan: self.plan, guest_cpus }
    }

    /// Of jobs that wait for something else than their turn, by job id.
    fn reasons(&self) -> Vec<(JobId, Reason)> {
        let of_class = |class: &u32| self.classes.get(*class).queue.iter().map(|(key, _)| key.job());
        let mut jobs: Vec<JobId> = self.seen.keys().map(|k| k.0).collect();
        jobs.extend(self.apart);
        jobs.extend(self.classes.barred.iter().chain(&self.unlicensed).chain(&self.held).flat_map(of_class));
        jobs.sort_unstable();
        jobs.dedup();
        let reason = |id: JobId| {
            let job = self.jobs.get(&id).filter(|_| !self.started.contains(&id))?;
            Some((id, self.reason(id, job)?))
        };
        jobs.into_iter().filter_map(reason).filter(|(_, reason)| *reason != Reason::Priority).collect()
    }

    /// The most hopeful of all its partitions.
    fn reason(&self, id: JobId, job: &Pending) -> Option<Reason> {
        let entries = job.entries().iter().map(|entry| self.reason_here(id, job, entry));
        entries.chain(job.refused()).min_by_key(|reason| rank(*reason))
    }

    fn reason_here(&self, id: JobId, job: &Pending, entry: &Entry) -> Reason {
        if let Some(seen) = self.seen.get(&(id, entry.key.slot())) {
            return *seen;
        }
        if let Err(late) = before_deadline(self.timeline.now, job, entry.limits) {
            return late;
        }
        let class = self.classes.get(entry.class);
        if let Standing::Barred(reason) = class.standing {
            return reason;
        }
        if self.held.contains(&entry.class)
            && let Some(reason) = class.run.limited
        {
            return reason;
        }
        match class.run.failed {
            Some((bound, Reason::Licenses))
                if self.unlicensed.contains(&entry.class)
                    && self.timeline.now.saturating_add(job.least(entry)) >= bound =>
            {
                Reason::Licenses
            }
            _ => Reason::Priority,
        }
    }

    fn put_back(&mut self) {
        self.timeline.clear_plans();
        let filled = std::mem::take(&mut self.filled);
        for class in filled {
            let Some(lack) = self.classes.run(class).full.take() else { continue };
            // Those that want licences are looked at each time, for their reason's sake.
            let of = self.classes.get(class);
            if of.shape.licenses.is_none() && !of.shape.is_intricate() && of.standing == Standing::Open {
                self.classes.set(class, Standing::Full(lack));
            }
        }
        for run in std::mem::take(&mut self.runs).into_iter().rev() {
            self.timeline.remove_run(self.cluster, run);
        }
        self.spare();
    }
}
