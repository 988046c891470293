//! scontrol hold, release, requeue, suspend, resume.

use super::target::{find, find_records};
use super::{Cx, operators_only, preempt, settle};
use crate::command::{Caller, JobTarget, Reply, Role};
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{AfterEnd, Hold, Job, Outcome, Phase};
use crate::reject::Reject;
use sluice_model::job::JobKind;
use sluice_model::{JobId, JobState, Reason};

/// The priority of a held job is 0. A hold by an operator is an administrator's even on a job of their own, unless
/// `uhold` was asked for. A running job runs on, but is held once it is back in the queue.
pub(super) fn hold(cx: &mut Cx, caller: &Caller, target: &JobTarget, user_hold: bool) -> Result<Reply, Reject> {
    let records = find_records(cx, caller, target)?;
    let mut jobs = Vec::new();
    for job in records.iter().filter(|j| !matches!(j.phase, Phase::Ended { .. })) {
        let by_admin = caller.role >= Role::Operator && !user_hold;
        let hold = match (by_admin, job.hold) {
            (true, _) => Hold::Admin,
            // A user's hold does not lift an administrator's.
            (false, Hold::Admin) if caller.role < Role::Operator => Hold::Admin,
            (false, _) => Hold::User,
        };
        cx.emit(Event::JobPriority {
            job: job.id,
            priority: 0,
            base_priority: job.base_priority,
            hold,
            given: job.priority_given,
        });
        settle::refresh_eligible(cx, job.id);
        jobs.push(job.id);
    }
    affected(jobs)
}

pub(super) fn release(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Reply, Reject> {
    let records = find_records(cx, caller, target)?;
    let mut jobs = Vec::new();
    for job in records.iter().filter(|j| !matches!(j.phase, Phase::Ended { .. })) {
        if job.hold == Hold::Admin && caller.role < Role::Operator {
            return Err(Reject::AccessDenied { what: format!("job {} was held by an administrator", job.id) });
        }
        if job.hold != Hold::No {
            let base = job.base_priority;
            cx.emit(Event::JobPriority {
                job: job.id,
                priority: base,
                base_priority: base,
                hold: Hold::No,
                given: job.priority_given,
            });
            settle::refresh_eligible(cx, job.id);
        }
        jobs.push(job.id);
    }
    affected(jobs)
}

fn affected(jobs: Vec<JobId>) -> Result<Reply, Reject> {
    if jobs.is_empty() { Err(Reject::JobFinished) } else { Ok(Reply::Affected { jobs }) }
}

/// Running, suspended and finished batch jobs go back to the queue (scontrol's manual page). A suspended one is held.
pub(super) fn requeue(cx: &mut Cx, caller: &Caller, target: &JobTarget, hold: bool) -> Result<Reply, Reject> {
    let found = find(cx, caller, target)?;
    let mut jobs = Vec::new();
    let mut refusal = if !found.parts.is_empty() { Reject::JobPending } else { Reject::JobFinished };
    let mut records = found.whole;
    for (record, indices) in found.over {
        let part = cx.split_part(record, &indices);
        records.extend(cx.job_now(part));
    }
    for job in &records {
        match requeue_one(cx, caller, job, hold) {
            Ok(()) => jobs.push(job.id),
            Err(reject) => refusal = reject,
        }
    }
    if jobs.is_empty() { Err(refusal) } else { Ok(Reply::Affected { jobs }) }
}

/// How a job is held that was requeued for that. One's own may be released by oneself.
pub(super) fn requeue_hold(by: Option<u32>, job: &Job) -> Hold {
    match by {
        Some(uid) if uid != job.spec.uid => Hold::Admin,
        _ => Hold::Requeued(Reason::JobRequeuedHeld),
    }
}

fn requeue_one(cx: &mut Cx, caller: &Caller, job: &Job, hold: bool) -> Result<(), Reject> {
    if !matches!(job.spec.kind, JobKind::Batch { .. }) || !job.requeue {
        return Err(Reject::RequeueDisabled);
    }
    let outcome = Outcome { by_uid: Some(caller.uid), ..Outcome::of(JobState::Requeued, Reason::None) };
    let held = hold.then(|| requeue_hold(Some(caller.uid), job));
    match &job.phase {
        // Held already if that is asked for, else nothing to do.
        Phase::Pending => return Err(Reject::JobPending),
        Phase::Running(run) => {
            let hold = hold || run.suspended_since.is_some();
            cx.start_ending(job.id, outcome, AfterEnd::Requeue { hold });
        }
        Phase::Completing { waiting_for, outcome, ended, .. } => {
            let (at, waiting_for) = (*ended, waiting_for.clone());
            let outcome = Outcome { by_uid: Some(caller.uid), ..outcome.clone() };
            cx.emit(Event::JobCompleting { job: job.id, outcome, at, waiting_for, then: AfterEnd::Requeue { hold } });
        }
        Phase::Ended { .. } => cx.back_to_queue(job, held),
    }
    Ok(())
}

/// Stops all processes of running jobs. Their resources stay theirs: unlike Slurm, which gives away the cores of a
/// suspended job and lets a resume share them.
pub(super) fn suspend(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Reply, Reject> {
    operators_only(caller, "suspending jobs")?;
    let found = find(cx, caller, target)?;
    let mut jobs = Vec::new();
    let mut refusal = if !found.parts.is_empty() { Reject::JobPending } else { Reject::JobFinished };
    for job in &found.whole {
        match &job.phase {
            Phase::Running(run) if run.ending.is_some() => refusal = Reject::JobFinished,
            Phase::Running(run) if run.suspended_since.is_some() => refusal = Reject::AlreadySuspended,
            Phase::Running(run) => {
                cx.emit(Event::JobSuspended { job: job.id, at: cx.now });
                for node in run.allocation.names() {
                    let node = node.clone();
                    cx.perform(Effect::Suspend { node, job: job.id, attempt: run.attempt, resume: false });
                }
                cx.perform(Effect::Notify { job: job.id });
                jobs.push(job.id);
            }
            Phase::Pending => refusal = Reject::JobPending,
            Phase::Completing { .. } | Phase::Ended { .. } => {}
        }
    }
    if jobs.is_empty() { Err(refusal) } else { Ok(Reply::Affected { jobs }) }
}

pub(super) fn resume(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Reply, Reject> {
    operators_only(caller, "resuming jobs")?;
    let found = find(cx, caller, target)?;
    let mut jobs = Vec::new();
    let mut refusal = if !found.parts.is_empty() { Reject::JobPending } else { Reject::JobFinished };
    for job in &found.whole {
        match &job.phase {
            // Others have its cores: it goes on when they have ended.
            Phase::Running(_) if preempt::borrower(cx, job).is_some() => refusal = Reject::RequeueDisabled,
            Phase::Running(run) if run.suspended_since.is_some() => {
                cx.emit(Event::JobResumed { job: job.id, at: cx.now });
                for node in run.allocation.names() {
                    let node = node.clone();
                    cx.perform(Effect::Suspend { node, job: job.id, attempt: run.attempt, resume: true });
                }
                cx.perform(Effect::Notify { job: job.id });
                jobs.push(job.id);
            }
            Phase::Running(_) => refusal = Reject::NotSuspended,
            Phase::Pending => refusal = Reject::JobPending,
            Phase::Completing { .. } | Phase::Ended { .. } => {}
        }
    }
    if jobs.is_empty() { Err(refusal) } else { Ok(Reply::Affected { jobs }) }
}
