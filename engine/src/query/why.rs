//! `sluice why`: what holds a job back, who is ahead, when and where it is planned, and what would let it start sooner.
//!
//! Owns the facts of the answer; the command line puts times into the reader's zone and lays the text out. Promises that
//! every number comes from the state at `now` and that every "would start sooner" was tried through the real scheduler.
//! Must not guess: where nothing can be foreseen it says so.
//!
//! `rules` explains what is not about resources, `order` who goes first where the smaller does, `resources` what is, `sooner` tries changes, `node` turns the question
//! round: why does this node stand idle while jobs wait?

mod node;
mod order;
mod preemption;
mod resources;
mod rules;
mod sooner;

pub use node::{NodeWaiter, NodeWhy, why_node};

use super::board::Board;
use super::feed::Outlook;
use super::limits;
use super::scheduling::{pending_job, scheduler_input_with};
use super::wait_reason;
use crate::job::{Job, Phase};
use crate::state::State;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, NodeName, Reason, Time};
use sluice_sched::{Input, PendingJob};
use std::cmp::Reverse;

/// Said of a job that stands for others: the first few of them.
const SHOWN: usize = 5;

/// A sentence; `{time}` in it stands for the time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sentence {
    pub text: String,
    pub time: Option<Time>,
}

impl From<String> for Sentence {
    fn from(text: String) -> Sentence {
        Sentence { text, time: None }
    }
}

/// One quantity that decides. MiB for memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Number {
    pub what: String,
    pub needs: u64,
    /// What there is for it now.
    pub has: u64,
    /// The most there could be.
    pub limit: Option<u64>,
    pub used_by: Vec<JobId>,
}

/// A job that is looked at before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AheadJob {
    pub job: JobId,
    pub user: String,
    pub partition: String,
    pub priority: u32,
}

/// The start that the scheduler sees for it now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedWhy {
    pub start: Time,
    pub partition: String,
    pub nodes: Vec<NodeName>,
    /// How sure that is, as a sentence.
    pub certainty: String,
}

/// A change and what it would bring.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sooner {
    /// In words.
    pub change: String,
    /// As options of sbatch.
    pub options: String,
    pub start: Time,
}

/// The answer for one job (for an array: for its next task).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    pub job: JobId,
    pub state: JobState,
    pub reason: Reason,
    /// The rule or resource that decides, most important first.
    pub because: Vec<Sentence>,
    pub numbers: Vec<Number>,
    /// How many waiting jobs are looked at before it, and the first of them.
    pub ahead_count: u64,
    pub ahead: Vec<AheadJob>,
    pub planned: Option<PlannedWhy>,
    pub sooner: Vec<Sooner>,
}

/// None when no live job has this id, or is this task of an array. `board`: the priorities and limits in force.
pub fn why(state: &State, now: Time, board: &Board, id: JobId, index: Option<u32>) -> Option<Why> {
    let job = find(state, id, index)?;
    match &job.phase {
        Phase::Pending => {
            let mut answer = empty(job);
            waiting(state, now, board, job, &mut answer);
            preemption::before(job, &mut answer);
            Some(answer)
        }
        _ => {
            let mut answer = why_started(job);
            preemption::now(state, job, &mut answer);
            Some(answer)
        }
    }
}

/// Of a job that runs or is over, perhaps long ago: from its record alone.
pub fn why_started(job: &Job) -> Why {
    let mut answer = empty(job);
    match &job.phase {
        Phase::Pending => {}
        Phase::Running(_) => rules::running(job, &mut answer),
        Phase::Completing { outcome, .. } | Phase::Ended { outcome, .. } => rules::ended(job, outcome, &mut answer),
    }
    answer
}

fn empty(job: &Job) -> Why {
    Why {
        job: job.id,
        state: job.state(),
        reason: Reason::None,
        because: Vec::new(),
        numbers: Vec::new(),
        ahead_count: 0,
        ahead: Vec::new(),
        planned: None,
        sooner: Vec::new(),
    }
}

fn find(state: &State, id: JobId, index: Option<u32>) -> Option<&Job> {
    let Some(index) = index else { return state.jobs.get(&id).map(|j| &**j) };
    if let Some(task) = state.index.arrays.get(&id).and_then(|a| a.tasks.get(&index)) {
        return state.jobs.get(task).map(|j| &**j);
    }
    let blocks = state.index.arrays.get(&id).into_iter().flat_map(|a| a.blocks.iter().copied());
    let records = std::iter::once(id).chain(blocks).filter_map(|id| state.jobs.get(&id));
    records.map(|j| &**j).find(|j| j.array.together().is_some_and(|indices| indices.contains(index)))
}

fn waiting(state: &State, now: Time, board: &Board, job: &Job, answer: &mut Why) {
    if let Some(reason) = wait_reason(job, state, now) {
        answer.reason = reason;
        rules::explain(state, now, job, reason, answer);
        return;
    }
    let next = job.array.together().and_then(|indices| indices.first()).into_iter().collect();
    let mut asked = pending_job(state, job, next);
    board.over(state).pending(job, &mut asked);
    let mut input = scheduler_input_with(state, now, board);
    // It may stand too far back in the queue to be in the pass, and of an array only the next task is asked about.
    input.pending.retain(|p| p.job != job.id);
    input.pending.push(asked.clone());
    let plan = sluice_sched::plan(&input);
    if plan.starts.iter().any(|s| s.job == job.id) {
        answer.reason = Reason::None;
        answer.because.push("Nothing holds it back: it starts with the next scheduling pass.".to_owned().into());
        return;
    }
    let said = plan.reasons.iter().find(|(id, _)| *id == job.id).map(|(_, reason)| *reason);
    answer.reason = said.unwrap_or(Reason::Priority);
    preemption::waiting(state, job, &plan, answer);
    ahead(state, &input, &asked, answer);
    match limits::hit(state, now, board, job) {
        Some(hit) if hit.reason == answer.reason => rules::limit(&hit, answer),
        _ => resources::explain(state, &input, job, &asked, &plan, answer),
    }
    order::explain(state, board, job, answer);
    let reserved = plan.reservations.iter().any(|r| r.job == job.id);
    let estimate = sluice_sched::estimate(&input, &asked);
    match &estimate {
        Some(estimate) => {
            let planned = &estimate.reservation;
            answer.planned = Some(PlannedWhy {
                start: planned.start,
                partition: planned.partition.clone(),
                nodes: planned.nodes.clone(),
                certainty: certainty(reserved, answer.ahead_count),
            });
        }
        None => answer.because.push(
            "No start can be foreseen: it waits for jobs without a time limit, or for nodes that are not in service."
                .to_owned()
                .into(),
        ),
    }
    let others = plan.reservations.iter().filter(|r| r.job != job.id).map(|r| r.start).min();
    answer.sooner = sooner::try_changes(&input, &asked, estimate.map(|e| e.reservation.start), others);
}

fn certainty(reserved: bool, ahead: u64) -> String {
    if reserved {
        "This start is kept for it: no job that comes later in the queue may delay it. It comes sooner when running jobs \
         end before their time limits."
            .to_owned()
    } else if ahead == 0 {
        "Estimated from the time limits of running jobs; it comes sooner when they end early.".to_owned()
    } else {
        format!(
            "An estimate, not kept for it: {ahead} job(s) ahead of it, and others that come with a higher priority, may \
             move it either way."
        )
    }
}

/// Jobs that the queue's order puts before this one and that want some partition of its.
fn ahead(state: &State, input: &Input, asked: &PendingJob, answer: &mut Why) {
    let tier = |job: &PendingJob| {
        job.partitions.iter().filter_map(|p| input.partitions.get(*p as usize)).map(|p| p.priority_tier).max()
    };
    let place = |job: &PendingJob| (Reverse(tier(job)), Reverse(job.priority), job.submitted, job.job);
    let shares = |other: &PendingJob| other.partitions.iter().any(|p| asked.partitions.contains(p));
    let own = place(asked);
    let mut before: Vec<_> = input.pending.iter().filter(|p| place(p) < own && shares(p)).collect();
    before.sort_by_key(|p| place(p));
    for other in before {
        let Some(job) = state.jobs.get(&other.job) else { continue };
        answer.ahead_count += job.array.together().map_or(1, IndexSet::len);
        if answer.ahead.len() < SHOWN {
            answer.ahead.push(AheadJob {
                job: job.id,
                user: job.spec.user.to_string(),
                partition: job.partitions.join(","),
                priority: other.priority,
            });
        }
    }
}

/// `12`, `12 and 15`, `12, 15, 17 and 3 more`.
fn list_jobs(jobs: &[JobId]) -> String {
    let shown: Vec<String> = jobs.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = jobs.len().saturating_sub(SHOWN);
    match (&shown[..], more) {
        ([], _) => "none".to_owned(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (all, more) => format!("{} and {more} more", all.join(", ")),
    }
}

/// The first partition of the job that takes part in the pass.
fn first_partition(input: &Input, job: &PendingJob) -> Option<u32> {
    job.partitions.iter().copied().find(|p| (*p as usize) < input.partitions.len())
}
