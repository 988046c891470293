//! When would this job start? For `sbatch --test-only` and `squeue --start`.
//!
//! Owns nothing but the question: it is a scheduling pass in which the job asked about is sure to get a planned start.
//! Promises an answer from the same code as the plan itself, with the queue before it taken into account as far as the
//! policy plans it. Must not be taken for a promise to the user: jobs end early and others come.

use crate::input::{Input, PendingJob};
use crate::plan::PlannedReservation;
use crate::scheduler::Scheduler;
use sluice_model::Time;

/// An estimated start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Estimate {
    pub reservation: PlannedReservation,
    /// CPUs that it would get.
    pub cpus: u32,
}

/// For a job in the queue, or one that could be put there (then with an id of its own that no other has). None when it
/// can't run as things are, or waits for jobs without a time limit.
pub fn estimate(input: &Input, job: &PendingJob) -> Option<Estimate> {
    let mut scheduler = Scheduler::default();
    scheduler.rebuild(input);
    // One that is in the queue is taken as it stands there.
    if input.pending.iter().all(|p| p.job != job.job) {
        scheduler.put_pending(job.clone());
    }
    let done = scheduler.pass(input.generation, input.now.unwrap_or(Time(0)), Some(job.job));
    if let Some(start) = done.plan.starts.iter().find(|s| s.job == job.job) {
        let reservation = PlannedReservation {
            job: job.job,
            start: input.now.unwrap_or(Time(0)),
            partition: start.partition.clone(),
            nodes: start.allocation.names().cloned().collect(),
        };
        return Some(Estimate { reservation, cpus: start.allocation.cpus() });
    }
    let reservation = done.plan.reservations.into_iter().find(|r| r.job == job.job)?;
    Some(Estimate { reservation, cpus: done.guest_cpus })
}
