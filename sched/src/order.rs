//! The queue: which job is looked at first.
//!
//! Owns the order: partition tier (higher first), priority (higher first), submit time, job id; a job with several
//! partitions stands in the queue once for each. Promises a total order, so that the input's order does not matter.

use crate::input::{Input, PendingJob};
use sluice_model::partition::PartitionState;

/// A job in one of its partitions. Ordered as the queue is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    /// Tier and priority, both inverted: smaller is earlier.
    rank: u64,
    submitted: i64,
    /// Job id, then place in the job's list of partitions.
    id: u64,
    /// Position in the pending list.
    pub job: u32,
    pub partition: u32,
}

impl Entry {
    /// Smaller is earlier.
    pub fn tier(&self) -> u32 {
        (self.rank >> 32) as u32
    }
}

/// `jobs` in queue order, for partitions that start jobs.
pub(crate) fn queue(input: &Input, jobs: &[&PendingJob]) -> Vec<Entry> {
    let mut queue = Vec::with_capacity(jobs.len());
    for (at, job) in jobs.iter().enumerate() {
        for (slot, p) in job.partitions.iter().enumerate() {
            let Some(view) = input.partitions.get(*p as usize) else { continue };
            if starts_jobs(view.state) {
                queue.push(Entry {
                    rank: (u64::from(!view.priority_tier) << 32) | u64::from(!job.priority),
                    submitted: job.submitted.0,
                    id: (u64::from(job.job.0) << 32) | slot as u64,
                    job: at as u32,
                    partition: *p,
                });
            }
        }
    }
    queue.sort_unstable();
    queue
}

/// DRAIN takes no new jobs, but starts those queued.
pub(crate) fn starts_jobs(state: PartitionState) -> bool {
    matches!(state, PartitionState::Up | PartitionState::Drain)
}
