//! Questions to the state: what the scheduler must see, why a job waits, what is free, what nodes are owed. Reads only.

mod board;
mod estimate;
mod feed;
mod limits;
mod nodes;
pub(crate) mod preemption;
mod scheduling;
mod usage;
mod waiting;
mod why;

pub use board::{Board, Over, PriorityParts, Share, is_ranked};
pub use estimate::{Estimate, test_submission};
pub use feed::{AsIs, Feed, Outlook};
pub use limits::used_up;
pub(crate) use limits::{Counted, denied};
pub use nodes::{Free, NodeBase, NodeCondition, available, expected_attempts, free, node_state, owed_launches};
pub use preemption::eligible_at as preempt_eligible_at;
pub use scheduling::{array_room, requested, scheduler_input, scheduler_input_with};
#[cfg(test)]
pub(crate) use usage::billing_at;
pub(crate) use usage::{charge, constant_owners};
pub use usage::{counted, half_life, run_tres, usage_at};
pub use waiting::{hold_reason, wait_reason};
pub use why::{AheadJob, NodeWaiter, NodeWhy, Number, PlannedWhy, Sentence, Sooner, Why, why, why_node, why_started};

use crate::job::ArrayRole;
use crate::state::State;
use sluice_model::{JobId, SubmissionKey, Time};

/// When `Tick` has something to do next. It may lie in the past only between a command and the `Tick` it calls for.
pub fn next_wakeup(state: &State) -> Option<Time> {
    let jobs = state.index.timers.get_min().map(|(t, _)| *t);
    let patience = state.timing_ms(|t| t.node_timeout_secs);
    let silent = state.index.silent.iter().filter_map(|n| state.nodes.get(n)?.silent_since);
    let nodes = silent.min().map(|t| State::later(t, patience));
    // While an order for the history is out, its answer or its repetition comes with some other tick.
    let age = state.timing_ms(|t| t.min_job_age_secs);
    let ended = state.index.ended.get_min().filter(|_| state.archive_ordered.is_none());
    let history = ended.map(|(t, _)| State::later(*t, age));
    [jobs, nodes, history].into_iter().flatten().min()
}

/// The job that an earlier submission with this key made.
pub fn known_submission(state: &State, uid: u32, key: SubmissionKey) -> Option<JobId> {
    state.index.keys.get(&(uid, key)).copied()
}

/// All records of an array, that of its waiting tasks included; empty for anything else.
pub fn array_members(state: &State, array: JobId) -> Vec<JobId> {
    let Some(entry) = state.index.arrays.get(&array) else { return Vec::new() };
    let record = state.jobs.get(&array).filter(|j| matches!(j.array, ArrayRole::Pending { .. })).map(|j| j.id);
    let mut members: Vec<JobId> = record.into_iter().chain(entry.parts()).collect();
    members.sort_unstable();
    members
}
