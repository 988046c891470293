//! `sbatch --test-only`: the submission's own checks and the real scheduler, on a copy of the state.

use super::board::Board;
use super::feed::Outlook;
use super::scheduling::{pending_job, scheduler_input_with};
use crate::command::Caller;
use crate::decide::submit::new_job;
use crate::job::ArrayRole;
use crate::reject::Reject;
use crate::state::State;
use sluice_model::{JobId, JobSpec, NodeName, Time};

/// When and where a job would start if it were submitted now. Nothing is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Estimate {
    /// The id that it would get.
    pub job: JobId,
    pub start: Time,
    pub partition: String,
    pub nodes: Vec<NodeName>,
    pub cpus: u32,
}

/// Refuses what `Submit` would refuse, and what can't start as things are.
pub fn test_submission(state: &State, now: Time, caller: &Caller, spec: JobSpec) -> Result<Estimate, Reject> {
    let mut job = new_job(state, now, caller, &spec)?;
    let indices = match &job.array {
        ArrayRole::Pending { indices, .. } => indices.first().into_iter().collect(),
        _ => Vec::new(),
    };
    job.priority = job.base_priority;
    let board = Board::new(state, now, None);
    let input = scheduler_input_with(state, now, &board);
    let mut pending = pending_job(state, &job, indices);
    board.over(state).pending(&job, &mut pending);
    let estimate = sluice_sched::estimate(&input, &pending);
    let estimate = estimate.ok_or_else(|| Reject::NodeConfigUnavailable {
        detail: "no start can be foreseen: nodes are down or drained, or busy with jobs without a time limit"
            .to_owned(),
    })?;
    let planned = estimate.reservation;
    Ok(Estimate {
        job: job.id,
        start: planned.start.max(spec.begin.unwrap_or(now)),
        partition: planned.partition,
        nodes: planned.nodes,
        cpus: estimate.cpus,
    })
}
