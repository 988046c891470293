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
