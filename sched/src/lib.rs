//! The scheduler: who starts next, where, and when the others will. Pure: `plan` is a function of its input; equal
//! input gives an equal plan; its budget counts work, not time.

pub mod input;
pub mod plan;

pub use input::{Input, NodeView, PartitionView, PendingJob, Policy, RunningJob};
pub use plan::{Plan, PlannedReservation, Start};
