//! What the scheduler decides.

use crate::preemption::PlannedPreemption;
use sluice_model::{Allocation, JobId, NodeName, Reason, Time, TimeLimit};

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// The generation of the input.
    pub generation: u64,
    /// In the order in which they were decided.
    pub starts: Vec<Start>,
    /// Planned starts of blocked jobs, in the order in which they were decided. A job that waits for jobs without a time
    /// limit has none: nobody can say when.
    pub reservations: Vec<PlannedReservation>,
    /// Why jobs wait, by job id. A pending job that is neither wholly started nor listed here waits for Priority: there
    /// may be a hundred thousand of those.
    pub reasons: Vec<(JobId, Reason)>,
    /// Running jobs to be ended or suspended, and for whom.
    pub preemptions: Vec<PlannedPreemption>,
    /// Jobs for which others were ended and which can't start for all that: they wait like any other from now on.
    pub lapsed: Vec<JobId>,
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
    /// What it stood in the queue with.
    pub priority: u32,
}

/// A job that can't start now has this start planned; no later job may delay it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedReservation {
    pub job: JobId,
    pub start: Time,
    pub partition: String,
    pub nodes: Vec<NodeName>,
}
