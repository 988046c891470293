//! The scheduler: who starts next, where, and when the others will.
//!
//! Owns the decision alone. Pure: `plan` is a function of its input; equal input gives an equal plan; its budget counts
//! work, not time. Promises that nothing is allocated twice (`audit` re-derives it from the outside), that a planned
//! start is not delayed by anything that starts later in the same pass, and that every job that waits has a reason.
//! Must not read a clock, draw a random number, or change anything.
//!
//! The order of things: `Scheduler` keeps what outlives a pass, `plan` fills one and asks it once. `cluster` knows which nodes
//! are alike, `classes` which jobs; `order` sorts each class's queue, `shape` finds the nodes that could ever run a request
//! and `demand` what it takes there, `timeline` knows what is free when and `vacancy` where, `placement` chooses among
//! that, `concrete` picks the very cores and devices, `backfill` walks the queue with all of these.

mod backfill;
mod classes;
mod cluster;
mod concrete;
mod hash;
mod jobs;
mod order;
mod placement;
mod shape;
mod timeline;
mod topology;
mod vacancy;

pub mod audit;
pub mod demand;
pub mod estimate;
pub mod explain;
pub mod fairshare;
pub mod feasibility;
pub mod input;
pub mod limits;
pub mod overtaking;
pub mod plan;
pub mod prediction;
pub mod preemption;
pub mod priority;
pub mod reasons;
pub mod scheduler;

pub use audit::{Violation, audit};
pub use demand::{Requested, requested_totals};
pub use estimate::{Estimate, estimate};
pub use feasibility::{Infeasible, feasible};
pub use input::{BackfillOrder, ClusterView, Input, NodeView, Overrun, PartitionView, PendingJob, Policy, RunningJob};
pub use plan::{Plan, PlannedReservation, Start};
pub use scheduler::Scheduler;
pub use topology::Topology;

/// One scheduling pass. Never fails: a job that makes no sense waits with a reason.
pub fn plan(input: &Input) -> Plan {
    let mut scheduler = Scheduler::default();
    scheduler.rebuild(input);
    scheduler.plan(input.generation, input.now.unwrap_or(sluice_model::Time(0)))
}
