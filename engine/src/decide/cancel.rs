//! scancel: ending and signalling jobs.

use super::ending::{SIGKILL, cancelled, end_time};
use super::target::{find, find_records};
use super::{Cx, may_touch};
use crate::command::{Caller, JobTarget, Reply, SignalFlags};
use crate::event::Event;
use crate::job::{AfterEnd, Job, Phase};
use crate::reject::Reject;
use sluice_model::{JobId, StepId};

/// Pending records end at once, running ones get their grace period. What is over already is left alone; that nothing
/// was left to end is a refusal, as in Slurm.
pub(super) fn cancel(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Reply, Reject> {
    let found = find(cx, caller, target)?;
    let mut jobs: Vec<JobId> = Vec::new();
    for (record, indices) in found.parts {
        let part = cx.split_part(record, &indices);
        cx.end_pending(part, cancelled(caller.uid));
        jobs.push(part);
    }
    for job in &found.whole {
        if end_one(cx, caller, job) {
            jobs.push(job.id);
        }
    }
    if jobs.is_empty() {
        return Err(Reject::JobFinished);
    }
    Ok(Reply::Affected { jobs })
}

fn end_one(cx: &mut Cx, caller: &Caller, job: &Job) -> bool {
    let outcome = cancelled(caller.uid);
    match &job.phase {
        Phase::Pending => cx.end_pending(job.id, outcome),
        Phase::Running(run) if run.ending.is_some() && run.then == AfterEnd::Finish => {}
        Phase::Running(_) => cx.start_ending(job.id, outcome, AfterEnd::Finish),
        // On its way back to the queue: it ends instead.
        Phase::Completing { waiting_for, then: AfterEnd::Requeue { .. }, .. } => {
            let (at, waiting_for) = (end_time(job, cx.now), waiting_for.clone());
            cx.emit(Event::JobCompleting { job: job.id, outcome, at, waiting_for, then: AfterEnd::Finish });
        }
        Phase::Completing { .. } | Phase::Ended { .. } => return false,
    }
    true
}

/// A signal for running jobs. SIGKILL for a whole job ends it as cancelled.
pub(super) fn signal(
    cx: &mut Cx,
    caller: &Caller,
    target: &JobTarget,
    step: Option<StepId>,
    signal: u8,
    flags: SignalFlags,
) -> Result<Reply, Reject> {
    let found = find(cx, caller, target)?;
    if !(1..=64).contains(&signal) {
        return Err(Reject::InvalidValue {
            key: "--signal".to_owned(),
            value: signal.to_string(),
            allowed: "a signal number from 1 to 64".to_owned(),
        });
    }
    let mut jobs = Vec::new();
    let mut pending = !found.parts.is_empty();
    for job in &found.whole {
        match &job.phase {
            Phase::Pending => pending = true,
            Phase::Running(run) => {
                let whole = step.is_none() && !flags.batch && !flags.full;
                if signal == SIGKILL && whole {
                    let outcome = run.ending.clone().unwrap_or_else(|| cancelled(caller.uid));
                    cx.emit(Event::JobKilled { job: job.id });
                    cx.complete(job.id, outcome, &[], run.then);
                } else {
                    // scancel's manual page: without --batch and --full a signal goes to the steps, not the shell.
                    let batch = flags.batch || flags.full || step == Some(StepId::Batch);
                    let steps = !flags.batch || flags.full;
                    cx.signal_all(job, step, signal, batch, steps);
                }
                jobs.push(job.id);
            }
            Phase::Completing { .. } | Phase::Ended { .. } => {}
        }
    }
    if !jobs.is_empty() {
        return Ok(Reply::Affected { jobs });
    }
    Err(if pending { Reject::JobPending } else { Reject::JobFinished })
}

/// An allocation's client gives up a job that may not have started.
pub(super) fn withdraw(cx: &mut Cx, caller: &Caller, id: JobId) -> Result<(), Reject> {
    let job = cx.job_now(id).ok_or(Reject::InvalidJobId)?;
    may_touch(cx, caller, &job)?;
    let records = find_records(cx, caller, &JobTarget::Job(id))?;
    for job in records {
        end_one(cx, caller, &job);
    }
    Ok(())
}
