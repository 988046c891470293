//! Preemption carried out: victims are warned, ended, sent back to the queue or stopped, and get their cores back.
//!
//! Each preemption is judged again by `query::preemption`, since the plan was made from an older state; if any of its
//! victims is none any more, nothing happens and the next pass decides anew. Promises that no victim goes for a job that
//! may not start.
//!
//! With a grace time a victim gets its notice at once: its own `--signal` (the checkpoint signal) if it asked for one that
//! was not sent yet, else SIGCONT and SIGTERM to its steps. When the time is over it ends like a cancelled job: SIGCONT,
//! SIGTERM, and SIGKILL after KillWait (GraceTime in slurm.conf's manual page).

use super::Cx;
use super::ending::{SIGCONT, SIGTERM};
use super::plan::is_due;
use crate::command::PlannedPreemption;
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{AfterEnd, Claim, Job, Outcome, Phase, Preempted, Run};
use crate::query::preemption::{Judge, grace_secs, lost};
use crate::state::State;
use sluice_model::config::Mode;
use sluice_model::index_set::IndexSet;
use sluice_model::state::ExitStatus;
use sluice_model::{JobId, JobState, Reason, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whoever claims room in vain waits like any other from now on.
pub(super) fn lapse(cx: &mut Cx, lapsed: &[JobId]) {
    for id in lapsed {
        if cx.job_now(*id).is_some_and(|j| j.claim.is_some()) {
            cx.emit(Event::JobClaimed { job: *id, claim: None });
        }
    }
}

/// The victims that would lend their cores; None when the preemption is not allowed (any more).
pub(super) fn lenders(cx: &Cx, preemption: &PlannedPreemption) -> Option<BTreeSet<JobId>> {
    if !allowed(cx, preemption) {
        return None;
    }
    let suspended = preemption.victims.iter().filter(|v| v.1 == Mode::Suspend);
    Some(suspended.map(|v| v.0).collect())
}

fn allowed(cx: &Cx, preemption: &PlannedPreemption) -> bool {
    let Some(job) = cx.jobs.get(&preemption.job) else { return false };
    let Some(judge) = Judge::new(cx) else { return false };
    let may = |(id, mode): &(JobId, Mode)| {
        let victim = cx.jobs.get(id);
        victim.is_some_and(|v| judge.may(job, &preemption.partition, preemption.priority, v, cx.now) == Some(*mode))
    };
    is_due(cx, job, preemption.index)
        && job.partitions.contains(&preemption.partition)
        && preemption.victims.iter().all(may)
}

/// Same QOS: the victim is not to take back.
fn is_within(cx: &Cx, by: JobId, victim: &Job) -> bool {
    cx.jobs.get(&by).is_some_and(|j| j.spec.qos == victim.spec.qos)
}

/// Stops the victims of a preemption: their cores are the job's.
pub(super) fn suspend_for(cx: &mut Cx, preemption: &PlannedPreemption, by: JobId) {
    for (id, _) in &preemption.victims {
        let Some(victim) = cx.job_now(*id) else { continue };
        let Phase::Running(run) = &victim.phase else { continue };
        let within = is_within(cx, preemption.job, &victim);
        cx.emit(Event::JobPreempted { job: *id, by, mode: Mode::Suspend, within, at: cx.now, ends: None });
        for node in run.allocation.names() {
            cx.perform(Effect::Suspend { node: node.clone(), job: *id, attempt: run.attempt, resume: false });
        }
        cx.perform(Effect::Notify { job: *id });
    }
}

/// Ends the victims of a preemption; what they leave is promised to the job.
pub(super) fn preempt(cx: &mut Cx, preemption: &PlannedPreemption) {
    if preemption.victims.is_empty() || !allowed(cx, preemption) {
        return;
    }
    // One task of an array leaves it: the claim is its own.
    let by = match preemption.index {
        Some(index) => cx.split_part(preemption.job, &IndexSet::range(index, index)),
        None => preemption.job,
    };
    let claim = Claim {
        partition: preemption.partition.clone(),
        nodes: preemption.needs.iter().map(|n| n.node.clone()).collect(),
        victims: preemption.victims.iter().map(|v| v.0).collect(),
        at: cx.now,
    };
    cx.emit(Event::JobClaimed { job: by, claim: Some(Arc::new(claim)) });
    cx.perform(Effect::Notify { job: by });
    for (id, mode) in preemption.victims.iter().filter(|v| v.1 != Mode::Suspend) {
        give_notice(cx, *id, by, *mode);
    }
}

fn give_notice(cx: &mut Cx, id: JobId, by: JobId, mode: Mode) {
    let Some(victim) = cx.job_now(id) else { return };
    let Phase::Running(run) = &victim.phase else { return };
    let grace = i64::from(grace_secs(cx, &victim)) * 1000;
    let within = is_within(cx, by, &victim);
    let (at, ends) = (cx.now, State::later(cx.now, grace));
    cx.emit(Event::JobPreempted { job: id, by, mode, within, at, ends: Some(ends) });
    match victim.spec.signal.filter(|_| !run.warned) {
        Some(signal) => {
            cx.emit(Event::JobWarned { job: id });
            cx.signal_all(&victim, None, signal.signal, signal.batch_shell, !signal.batch_shell);
        }
        None if grace > 0 => {
            for signal in [SIGCONT, SIGTERM] {
                cx.signal_all(&victim, None, signal, false, true);
            }
        }
        None => {}
    }
    if grace == 0 {
        end(cx, id);
    }
    cx.perform(Effect::Notify { job: id });
}

/// The grace time of a victim is over.
pub(super) fn end(cx: &mut Cx, id: JobId) {
    let Some(job) = cx.job_now(id) else { return };
    let Some((outcome, then)) = job.run().and_then(|run| decided(run, cx.now)) else { return };
    cx.start_ending(id, outcome, then);
}

/// How a victim ends, and what becomes of it; None for whom nobody has to end.
pub(super) fn decided(run: &Run, now: Time) -> Option<(Outcome, AfterEnd)> {
    let Preempted { by, mode, ends: Some(_), .. } = run.preempted.as_deref()? else { return None };
    let (cpu_secs, gpu_secs) = lost(run, now);
    let gpus = if gpu_secs > 0 { format!(" and {gpu_secs} GPU-seconds") } else { String::new() };
    let outcome = Outcome {
        exit: ExitStatus { code: 0, signal: SIGTERM },
        detail: Some(format!("preempted by job {by}: {cpu_secs} CPU-seconds{gpus} of work lost")),
        ..Outcome::of(JobState::Preempted, Reason::None)
    };
    let then = if *mode == Mode::Requeue { AfterEnd::Requeue { hold: false } } else { AfterEnd::Finish };
    Some((outcome, then))
}

/// Whoever stood still for others goes on when nobody has its cores any more.
pub(super) fn give_back_cores(cx: &mut Cx) {
    if cx.index.lending.is_empty() {
        return;
    }
    let lending: Vec<JobId> = cx.index.lending.iter().copied().collect();
    for id in lending {
        let Some(job) = cx.job_now(id) else { continue };
        let Phase::Running(run) = &job.phase else { continue };
        if run.ending.is_some() || borrower(cx, &job).is_some() {
            continue;
        }
        cx.emit(Event::JobResumed { job: id, at: cx.now });
        for node in run.allocation.names() {
            cx.perform(Effect::Suspend { node: node.clone(), job: id, attempt: run.attempt, resume: true });
        }
        cx.perform(Effect::Notify { job: id });
    }
}

/// Somebody who has cores of a job that is suspended for others.
pub(super) fn borrower(state: &State, job: &Job) -> Option<JobId> {
    let run = job.run().filter(|r| r.lends)?;
    run.allocation.nodes.iter().find_map(|part| {
        let node = state.nodes.get(&part.node)?;
        node.jobs.iter().copied().filter(|id| *id != job.id).find(|id| {
            let held = state.jobs.get(id).and_then(|j| j.run()).and_then(|r| r.allocation.on(&part.node));
            held.is_some_and(|held| !held.cpus.is_disjoint(&part.cpus))
        })
    })
}
