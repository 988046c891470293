//! Events about jobs.

use crate::event::Event;
use crate::job::{AfterEnd, ArrayRole, Hold, Job, Outcome, PastRun, Phase, Preempted, Run};
use crate::state::State;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, NodeName, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn apply(state: &mut State, event: &Event) {
    match event {
        Event::JobSubmitted { job } => {
            state.last_job_id = state.last_job_id.max(job.id.0);
            state.put(job.id, Some(Job::clone(job)));
        }
        Event::JobEligible { job, at } => state.edit(*job, |j| {
            j.eligible = *at;
            if at.is_none() {
                j.claim = None;
            }
        }),
        Event::DependencyChanged { job, waiting_on, failed } => state.edit(*job, |j| {
            j.waiting_on = waiting_on.clone().map(Box::new);
            j.dependency_failed = *failed;
        }),
        Event::ArrayTasksEnded { array, indices, outcome, at } => tasks_ended(state, *array, indices, outcome, *at),
        Event::ArrayTaskSplit { array, index, job } => {
            split(state, *array, *index, *job);
        }
        Event::ArrayPartSplit { record, indices, job } => split_part(state, *record, indices, *job),
        Event::JobStarted { .. } => started(state, event),
        Event::AttemptConfirmed { job, attempt, node } => edit_run(state, *job, |run| {
            if run.attempt == *attempt {
                run.confirmed |= run.allocation.nodes.first().is_some_and(|n| n.node == *node);
                run.confirmed_on.insert(node.clone());
            }
        }),
        Event::JobEnding { job, outcome, kill_at, then } => edit_run(state, *job, |run| {
            run.ending = Some(outcome.clone());
            run.kill_at = Some(*kill_at);
            run.then = *then;
        }),
        Event::JobKilled { job } => edit_run(state, *job, |run| run.kill_at = None),
        Event::JobWarned { job } => edit_run(state, *job, |run| run.warned = true),
        Event::JobMailed { job, what } => edit_run(state, *job, |run| run.mailed |= what),
        Event::JobPreempted { job, by, mode, within, at, ends } => edit_run(state, *job, |run| {
            let (by, mode, within, at, ends) = (*by, *mode, *within, *at, *ends);
            run.preempted = Some(Box::new(Preempted { by, mode, within, at, ends }));
            if ends.is_none() {
                run.suspended_since = run.suspended_since.or(Some(at));
                run.lends = true;
            }
        }),
        Event::JobClaimed { job, claim } => state.edit(*job, |j| j.claim.clone_from(claim)),
        Event::JobSuspended { job, at } => edit_run(state, *job, |run| run.suspended_since = Some(*at)),
        Event::JobResumed { job, at } => edit_run(state, *job, |run| resume(run, *at)),
        Event::JobCompleting { job, outcome, at, waiting_for, then } => {
            completing(state, *job, outcome, *at, waiting_for, *then);
        }
        Event::NodeReleased { job, node } => state.edit(*job, |j| release(j, node)),
        Event::JobEnded { job, outcome, at } => state.edit(*job, |j| {
            if matches!(j.phase, Phase::Pending) {
                j.phase = Phase::Ended { run: None, outcome: outcome.clone(), ended: *at };
                j.claim = None;
            }
        }),
        Event::JobRequeued { job, attempt, not_before, hold, at } => {
            state.edit(*job, |j| requeued(j, *attempt, *not_before, *hold, *at));
        }
        Event::JobPriority { job, priority, base_priority, hold, given } => state.edit(*job, |j| {
            j.priority = *priority;
            j.base_priority = *base_priority;
            j.priority_given = *given;
            j.hold = *hold;
        }),
        Event::JobUpdated { job, .. } => state.edit(*job, |j| updated(j, event)),
        Event::StepChanged { step } => state.edit(step.key.job, |j| {
            if step.key.attempt == j.attempt {
                j.steps.insert(step.key.step, Arc::clone(step));
            } else if let Some(past) = j.past_runs.iter_mut().find(|p| {
                // What a run's steps did may be reported after it went back to the queue.
                p.run.as_ref().is_some_and(|r| r.attempt == step.key.attempt)
            }) {
                Arc::make_mut(past).steps.insert(step.key.step, Arc::clone(step));
            }
        }),
        // Handled by the caller.
        _ => {}
    }
}

fn edit_run(state: &mut State, id: JobId, change: impl FnOnce(&mut Run)) {
    state.edit(id, |j| {
        if let Phase::Running(run) = &mut j.phase {
            change(run);
        }
    });
}

fn resume(run: &mut Run, at: Time) {
    // One that is being ended can't have its cores back from those that have them.
    run.lends &= run.ending.is_some();
    if let Some(since) = run.suspended_since.take() {
        let ms = u64::try_from(at.0.saturating_sub(since.0)).unwrap_or(0);
        run.suspended_ms = run.suspended_ms.saturating_add(ms);
    }
}

/// Makes a record of its own for one waiting task; its job id, or None when no such task waits in `from`.
fn split(state: &mut State, from: JobId, index: u32, id: JobId) -> Option<JobId> {
    let record = state.jobs.get(&from)?;
    let (array, indices) = (record.array_id()?, record.array.together()?);
    if !indices.contains(index) {
        return None;
    }
    let mut rest = indices.clone();
    rest.remove(index);
    let mut task = Job::clone(record);
    task.array = ArrayRole::Task { array, index };
    state.last_job_id = state.last_job_id.max(id.0);
    // The last task takes the record's own number.
    let id = if rest.is_empty() { from } else { id };
    task.id = id;
    if !rest.is_empty() {
        task.key = None;
        state.edit(from, |j| j.array = j.array.narrowed(rest));
    }
    state.put(id, Some(task));
    Some(id)
}

fn split_part(state: &mut State, from: JobId, indices: &IndexSet, id: JobId) {
    state.last_job_id = state.last_job_id.max(id.0);
    let Some(record) = state.jobs.get(&from) else { return };
    let (Some(array), Some(all)) = (record.array_id(), record.array.together()) else { return };
    let (part, rest) = (all.intersection(indices), all.difference(indices));
    if part.is_empty() || rest.is_empty() {
        return;
    }
    let block = Job { id, key: None, array: ArrayRole::Block { array, indices: part }, ..Job::clone(record) };
    state.edit(from, |j| j.array = j.array.narrowed(rest));
    state.put(id, Some(block));
}

fn tasks_ended(state: &mut State, array: JobId, indices: &IndexSet, outcome: &Outcome, at: Time) {
    let Some(ArrayRole::Pending { indices: waiting, .. }) = state.jobs.get(&array).map(|j| j.array.clone()) else {
        return;
    };
    for index in waiting.intersection(indices).iter() {
        let id = JobId(state.last_job_id + 1);
        let last = matches!(state.jobs.get(&array).map(|j| &j.array), Some(ArrayRole::Pending { indices, .. }) if indices.len() == 1);
        let id = if last { array } else { id };
        if let Some(id) = split(state, array, index, id) {
            state.edit(id, |j| j.phase = Phase::Ended { run: None, outcome: outcome.clone(), ended: at });
        }
    }
}

fn started(state: &mut State, event: &Event) {
    let Event::JobStarted { job, array, attempt, partition, allocation, time_limit, backfilled, priority, at } = event
    else {
        return;
    };
    if let Some((array, index)) = array {
        split(state, *array, *index, *job);
    }
    state.last_job_id = state.last_job_id.max(job.0);
    let run = Run {
        attempt: *attempt,
        allocation: Arc::clone(allocation),
        started: *at,
        confirmed: false,
        confirmed_on: BTreeSet::new(),
        suspended_since: None,
        suspended_ms: 0,
        warned: false,
        kill_at: None,
        ending: None,
        then: AfterEnd::Finish,
        backfilled: *backfilled,
        mailed: 0,
        preempted: None,
        lends: false,
    };
    state.edit(*job, |j| {
        j.attempt = *attempt;
        j.partition = Some(partition.clone());
        j.time_limit = *time_limit;
        j.priority = priority.unwrap_or(j.priority);
        j.phase = Phase::Running(Box::new(run));
        j.claim = None;
    });
    busy(state, allocation.names(), *at);
}

fn busy<'a>(state: &mut State, nodes: impl Iterator<Item = &'a NodeName>, at: Time) {
    for node in nodes {
        state.edit_node(node, |n| n.last_busy = Some(n.last_busy.map_or(at, |t| t.max(at))));
    }
}

fn completing(state: &mut State, id: JobId, outcome: &Outcome, at: Time, waiting_for: &[NodeName], then: AfterEnd) {
    let mut nodes = Vec::new();
    if let Some(job) = state.jobs.get(&id) {
        state.habits.learn(job, outcome, at, then);
    }
    state.edit(id, |j| {
        let mut run = match std::mem::replace(&mut j.phase, Phase::Pending) {
            Phase::Running(run) | Phase::Completing { run, .. } => run,
            other => {
                j.phase = other;
                return;
            }
        };
        resume(&mut run, at);
        run.kill_at = None;
        run.then = then;
        nodes = run.allocation.names().cloned().collect();
        let outcome = outcome.clone();
        j.phase = if waiting_for.is_empty() {
            Phase::Ended { run: Some(run), outcome, ended: at }
        } else {
            Phase::Completing { run, outcome, ended: at, waiting_for: waiting_for.to_vec(), then }
        };
    });
    busy(state, nodes.iter(), at);
}

fn release(job: &mut Job, node: &NodeName) {
    let Phase::Completing { run, outcome, ended, waiting_for, .. } = &mut job.phase else { return };
    waiting_for.retain(|n| n != node);
    if waiting_for.is_empty() {
        job.phase = Phase::Ended { run: Some(run.clone()), outcome: outcome.clone(), ended: *ended };
    }
}

fn requeued(job: &mut Job, attempt: u32, not_before: Option<Time>, hold: Hold, at: Time) {
    let past = match std::mem::replace(&mut job.phase, Phase::Pending) {
        Phase::Pending => None,
        Phase::Running(run) => {
            let outcome = Outcome::of(JobState::Requeued, sluice_model::Reason::None);
            Some(PastRun { run: Some(run), outcome, ended: at, steps: job.steps.clone() })
        }
        Phase::Completing { run, outcome, ended, .. } => {
            Some(PastRun { run: Some(run), outcome, ended, steps: job.steps.clone() })
        }
        Phase::Ended { run, outcome, ended } => Some(PastRun { run, outcome, ended, steps: job.steps.clone() }),
    };
    job.past_runs.extend(past.map(Arc::new));
    job.steps = imbl::OrdMap::new();
    job.attempt = attempt;
    job.not_before = not_before;
    job.hold = hold;
    job.priority = if hold == Hold::No { job.base_priority } else { 0 };
    job.eligible = None;
    job.partition = None;
    if let Some(limit) = job.spec.time_limit {
        job.time_limit = limit;
    }
}

fn updated(job: &mut Job, event: &Event) {
    let Event::JobUpdated {
        spec,
        time_limit,
        partitions,
        not_before,
        requeue,
        comment,
        admin_comment,
        throttle: new_throttle,
        association,
        ..
    } = event
    else {
        return;
    };
    job.spec = Arc::clone(spec);
    job.claim = None;
    job.time_limit = *time_limit;
    job.partitions.clone_from(partitions);
    job.association = *association;
    job.not_before = *not_before;
    job.requeue = *requeue;
    job.comment.clone_from(comment);
    job.admin_comment.clone_from(admin_comment);
    if let ArrayRole::Pending { throttle, .. } = &mut job.array {
        *throttle = *new_throttle;
    }
}
