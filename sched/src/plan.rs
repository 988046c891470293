//! What the scheduler decides.

use sluice_model::{Allocation, JobId, NodeName, Reason, Time, TimeLimit};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The generation of the input.
    pub generation: u64,
    /// In the order in which they were decided.
    pub starts: Vec<Start>,
    pub reservations: Vec<PlannedReservation>,
    /// One for each pending job that is not (wholly) started.
    pub reasons: Vec<(JobId, Reason)>,
    /// Placement attempts made.
    pub work: u64,
}

/// Start this job, or this task of an array, now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    pub job: JobId,
    pub index: Option<u32>,
    pub partition: String,
    pub allocation: Allocation,
    pub backfilled: bool,
    /// The limit it gets: asked for, the partition's default or maximum, or shortened down to `--time-min`.
    pub time_limit: TimeLimit,
}

/// A job that can't start now has this start planned; no later job may delay it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedReservation {
    pub job: JobId,
    pub start: Time,
    pub partition: String,
    pub nodes: Vec<NodeName>,
}
