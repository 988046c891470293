//! What nodes and clients report about running attempts. A report about another attempt than the current one is stale
//! and changes nothing; repeating a report is harmless.

use super::ending::outcome_of;
use super::{Cx, cancel, may_touch, preempt};
use crate::command::{Caller, LaunchFailure, LaunchFailureKind, Reply};
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{AfterEnd, Job, Outcome, Phase, Run};
use crate::reject::Reject;
use sluice_model::config::AfterExit;
use sluice_model::job::JobKind;
use sluice_model::state::ExitStatus;
use sluice_model::step::{StepRecord, Usage};
use sluice_model::{JobId, JobState, NodeName, OsBytes, Reason, StepId, StepKey};
use std::sync::Arc;

/// The job's current run when it is this attempt and has a part on the node.
fn current<'a>(job: &'a Job, node: &NodeName, attempt: u32) -> Option<&'a Run> {
    let run = match &job.phase {
        Phase::Running(run) | Phase::Completing { run, .. } | Phase::Ended { run: Some(run), .. } => run,
        Phase::Pending | Phase::Ended { run: None, .. } => return None,
    };
    (run.attempt == attempt && run.allocation.on(node).is_some()).then_some(run)
}

fn is_batch_host(job: &Job, run: &Run, node: &NodeName) -> bool {
    matches!(job.spec.kind, JobKind::Batch { .. }) && run.allocation.nodes.first().is_some_and(|n| n.node == *node)
}

pub(super) fn confirmed(cx: &mut Cx, node: &NodeName, id: JobId, attempt: u32) -> Result<Reply, Reject> {
    let Some(job) = cx.job_now(id) else {
        end_stray(cx, node, id, attempt);
        return Ok(Reply::Done);
    };
    let Some(run) = current(&job, node, attempt).filter(|_| matches!(job.phase, Phase::Running(_))) else {
        end_stray(cx, node, id, attempt);
        return Ok(Reply::Done);
    };
    if run.confirmed_on.contains(node) {
        return Ok(Reply::Done);
    }
    cx.emit(Event::AttemptConfirmed { job: id, attempt, node: node.clone() });
    if is_batch_host(&job, run, node) {
        let step = batch_step(&job, run);
        cx.emit(Event::StepChanged { step: Arc::new(step) });
    }
    cx.perform(Effect::Notify { job: id });
    Ok(Reply::Done)
}

/// It holds what is over here: it has to end it (the order to do so may have been lost).
fn end_stray(cx: &mut Cx, node: &NodeName, job: JobId, attempt: u32) {
    cx.perform(Effect::EndAttempt { node: node.clone(), job, attempt });
}

/// A batch script that could not be started, as Slurm marks it (`0:53`): not to be mistaken for the script's own exit.
const NOT_LAUNCHED: ExitStatus = ExitStatus { code: 0, signal: 53 };

/// The record of the batch step as it begins.
fn batch_step(job: &Job, run: &Run) -> StepRecord {
    let first = &run.allocation.nodes[0];
    StepRecord {
        key: StepKey { job: job.id, attempt: run.attempt, step: StepId::Batch },
        name: OsBytes::from("batch"),
        nodes: vec![first.node.clone()],
        tasks: 1,
        cpus: u32::try_from(first.cpus.len()).unwrap_or(u32::MAX),
        memory_mb: first.memory_mb,
        gres: Vec::new(),
        start: run.started,
        end: None,
        state: JobState::Running,
        exit: ExitStatus::SUCCESS,
        usage: Usage::default(),
        spread: Vec::new(),
        submit_line: OsBytes::default(),
        distribution: String::new(),
        srun_host: String::new(),
        srun_pid: 0,
    }
}

pub(super) fn batch_ended(
    cx: &mut Cx,
    node: &NodeName,
    id: JobId,
    attempt: u32,
    exit: ExitStatus,
    usage: Usage,
    failure: Option<&LaunchFailure>,
) -> Result<Reply, Reject> {
    let Some(job) = cx.job_now(id) else { return Ok(Reply::Done) };
    let Some(run) = current(&job, node, attempt).filter(|run| is_batch_host(&job, run, node)) else {
        return Ok(Reply::Done);
    };
    let told = match failure {
        Some(LaunchFailure { kind: LaunchFailureKind::Node, detail }) => {
            launch_failed_by_node(cx, node, &job, detail);
            return Ok(Reply::Done);
        }
        Some(LaunchFailure { kind: LaunchFailureKind::Job, detail }) => Outcome {
            exit: NOT_LAUNCHED,
            detail: Some(detail.clone()),
            ..Outcome::of(JobState::Failed, Reason::JobLaunchFailure)
        },
        None => outcome_of(exit),
    };
    let known = job.steps.get(&StepId::Batch).map(|s| StepRecord::clone(s));
    let step = known.unwrap_or_else(|| batch_step(&job, run));
    let ended_by_us = run.ending.is_some() || !matches!(job.phase, Phase::Running(_));
    let state = match step.end {
        // Said before.
        Some(_) if step.exit == told.exit => step.state,
        _ if failure.is_some() || (ended_by_us && !exit.is_success()) => JobState::Cancelled,
        _ => told.state,
    };
    let end = Some(job.ended().unwrap_or(cx.now));
    let step = StepRecord { end, state, exit: told.exit, usage, ..step };
    if job.steps.get(&StepId::Batch).map(Arc::as_ref) != Some(&step) {
        cx.emit(Event::StepChanged { step: Arc::new(step) });
    }
    if let Phase::Running(run) = &job.phase {
        // However it took the signal, it ends as what was decided.
        let (outcome, then) = match (run.ending.clone(), preempt::decided(run, cx.now)) {
            (Some(decided), _) => (decided, run.then),
            // Told to go, it went before its grace was over.
            (None, Some((preempted, then))) if !exit.is_success() => (Outcome { exit, ..preempted }, then),
            (None, _) if failure.is_none() && job.requeue && cx.after_exit(exit) != AfterExit::Ends => {
                let back = Outcome { state: JobState::Requeued, ..told };
                (back, AfterEnd::Requeue { hold: false })
            }
            (None, _) => (told, AfterEnd::Finish),
        };
        cx.complete(id, outcome, &[], then);
    }
    Ok(Reply::Done)
}

/// The script has its chance elsewhere, and there is no step to tell of here.
fn launch_failed_by_node(cx: &mut Cx, node: &NodeName, job: &Job, detail: &str) {
    let Phase::Running(run) = &job.phase else { return };
    if let Some(outcome) = run.ending.clone() {
        return cx.complete(job.id, outcome, &[], run.then);
    }
    cx.drain_node(node, format!("launch failure: {detail}"));
    let outcome = Outcome::of(JobState::NodeFail, Reason::JobLaunchFailure);
    let outcome = Outcome { detail: Some(detail.to_owned()), ..outcome };
    // The script has not begun, so even a job that must not be requeued can be.
    cx.complete(job.id, outcome, &[], AfterEnd::Requeue { hold: false });
}

pub(super) fn gone(cx: &mut Cx, node: &NodeName, id: JobId, attempt: u32) -> Result<Reply, Reject> {
    if cx.node(node).is_some_and(|n| n.stale.contains(&(id, attempt))) {
        cx.emit(Event::StaleGone { node: node.clone(), job: id, attempt });
    }
    let Some(job) = cx.job_now(id) else { return Ok(Reply::Done) };
    let Some(run) = current(&job, node, attempt) else { return Ok(Reply::Done) };
    match &job.phase {
        Phase::Completing { .. } => cx.release_node(id, node),
        // Gone without having been told to: the node lost it.
        Phase::Running(_) if run.confirmed_on.contains(node) => cx.lose_job_on(id, node),
        _ => {}
    }
    Ok(Reply::Done)
}

/// From the step manager, a node of the job's own. Late reports are taken too: what a step did stays true after its job
/// ended.
pub(super) fn step_report(cx: &mut Cx, node: &NodeName, step: &StepRecord) -> Result<Reply, Reject> {
    let Some(job) = cx.job_now(step.key.job) else { return Ok(Reply::Done) };
    let theirs = |run: &Run| run.attempt == step.key.attempt && run.allocation.on(node).is_some();
    let current = step.key.attempt == job.attempt && job.run().is_some_and(theirs);
    let past = job.past_runs.iter().find(|p| p.run.as_deref().is_some_and(theirs));
    let known = if current { job.steps.get(&step.key.step) } else { past.and_then(|p| p.steps.get(&step.key.step)) };
    if (!current && past.is_none()) || known.is_some_and(|k| k.as_ref() == step) {
        return Ok(Reply::Done);
    }
    // A repeated report of the start must not open a step again that has ended.
    if step.end.is_none() && (known.is_some_and(|k| k.end.is_some()) || !matches!(job.phase, Phase::Running(_))) {
        return Ok(Reply::Done);
    }
    cx.emit(Event::StepChanged { step: Arc::new(step.clone()) });
    // An allocation that is being ended has nothing left to wait for once its steps are over.
    let Some(job) = cx.job_now(step.key.job) else { return Ok(Reply::Done) };
    if let Phase::Running(run) = &job.phase
        && matches!(job.spec.kind, JobKind::Allocation)
        && job.steps.values().all(|s| s.end.is_some())
    {
        if let Some(outcome) = run.ending.clone() {
            cx.complete(job.id, outcome, &[], run.then);
        } else if job.spec.ends_with_step && step.end.is_some() {
            // Its srun says the same when it is still there; when it was killed nobody else would.
            let outcome = match step.state {
                JobState::Cancelled => Outcome { exit: step.exit, ..Outcome::of(JobState::Cancelled, Reason::None) },
                _ => outcome_of(step.exit),
            };
            cx.complete(job.id, outcome, &[], AfterEnd::Finish);
        }
    }
    Ok(Reply::Done)
}

pub(super) fn complete_allocation(cx: &mut Cx, caller: &Caller, id: JobId, exit: ExitStatus) -> Result<Reply, Reject> {
    let job = cx.job_now(id).ok_or(Reject::InvalidJobId)?;
    may_touch(cx, caller, &job)?;
    if !matches!(job.spec.kind, JobKind::Allocation) {
        return Err(Reject::Unsupported {
            option: "completing an allocation".to_owned(),
            value: format!("job {id} is a batch job"),
        });
    }
    match &job.phase {
        Phase::Pending => cancel::withdraw(cx, caller, id)?,
        Phase::Running(run) => {
            let outcome = run.ending.clone().unwrap_or_else(|| outcome_of(exit));
            cx.complete(id, outcome, &[], AfterEnd::Finish);
        }
        // Already over: the client may repeat itself.
        Phase::Completing { .. } | Phase::Ended { .. } => {}
    }
    Ok(Reply::Done)
}
