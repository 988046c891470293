//! Why a job waits, in one word.
//!
//! Owns the choice of the reason shown when a job has several partitions, each with its own. Promises that every job
//! that was looked at has one; Priority is the reason of those that nobody looked at, and is left out of the plan.

use sluice_model::Reason;

/// The most hopeful comes first: what will pass by itself, then what an administrator must end, then what never will.
pub(crate) fn rank(reason: Reason) -> u8 {
    match reason {
        Reason::Resources => 0,
        Reason::Licenses => 1,
        Reason::Priority => 2,
        Reason::NodeDown => 3,
        Reason::ReqNodeNotAvail => 4,
        Reason::PartitionDown => 5,
        Reason::PartitionInactive => 6,
        Reason::DeadLine => 7,
        Reason::PartitionTimeLimit => 8,
        Reason::PartitionNodeLimit => 9,
        _ => 10,
    }
}

/// The reason so far of each pending job, by its position.
pub(crate) struct Reasons {
    of: Vec<Option<Reason>>,
}

impl Reasons {
    pub fn new(jobs: usize) -> Reasons {
        Reasons { of: vec![None; jobs] }
    }
    pub fn add(&mut self, job: u32, reason: Reason) {
        let slot = &mut self.of[job as usize];
        if slot.is_none_or(|have| rank(reason) < rank(have)) {
            *slot = Some(reason);
        }
    }
    pub fn clear(&mut self, job: u32) {
        self.of[job as usize] = None;
    }
    /// (position, reason) of those that wait for something else than their turn.
    pub fn notable(&self) -> impl Iterator<Item = (usize, Reason)> + '_ {
        self.of.iter().enumerate().filter_map(|(at, r)| r.filter(|r| *r != Reason::Priority).map(|r| (at, r)))
    }
}
