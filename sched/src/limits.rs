//! Limits of associations and QOS: what may run at once, for how long, by whom.
//!
//! Owns their meaning for a job that could start (Slurm's documentation of resource limits; sacctmgr's manual page).
//! Promises that a job which passes `Tally::check` and is then added breaks none of them, and that a hit says which limit
//! of whom with the numbers: limit, in use, asked. Must not place jobs, and knows nothing of submit limits (the engine's).
//!
//! Rules are compiled once into lines, one for each limit that is set, so that a job looks only at lines that concern it
//! and what nobody limits is not counted. Where several say the same limit for the same resource, the first of these
//! holds: the partition's QOS, the job's QOS (before the partition's with OverPartQOS), the association, the accounts
//! above it; group limits of several accounts hold together. What a line counts, it counts for every job under it, also
//! for one that another line exempts.

mod hit;
mod reason;
mod rules;
mod tally;

pub use hit::{LimitHit, LimitName};
pub use rules::{AssociationRule, Charge, QosRule, Rules, Used};
pub use tally::{Ask, Tally};

use crate::input::{Input, PendingJob};

/// All limits that hold a pending job back beside what runs now, each once. Empty when none does.
pub fn hits(input: &Input, job: &PendingJob) -> Vec<LimitHit> {
    crate::backfill::limits::hits(input, job)
}
