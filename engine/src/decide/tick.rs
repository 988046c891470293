//! What time brings: begin times, dependencies with a delay, limits and grace periods, silent nodes, and finished jobs
//! for the history. Looks only at what is due.

use super::node::NOT_RESPONDING;
use super::settle::{reconsider, refresh_eligible};
use super::{Cx, preempt};
use crate::command::Reply;
use crate::effect::Effect;
use crate::event::Event;
use crate::index::{MAIL_SHARES, latest_start, limit_end, share_end};
use crate::job::{AfterEnd, Job, Outcome, Phase, Run};
use crate::node::NodeReason;
use crate::query;
use crate::reject::Reject;
use crate::state::State;
use sluice_model::{JobId, JobState, Reason, Time};

/// Finished jobs in one order to the daemon.
const ARCHIVE_CHUNK: usize = 1000;
/// An order that was not answered is repeated after so long.
const ARCHIVE_PATIENCE_MS: i64 = 10_000;

pub(super) fn tick(cx: &mut Cx) -> Result<Reply, Reject> {
    let now = cx.now;
    // First, since what a lost node gives back to the queue may be late there already.
    silent_nodes(cx);
    let due: Vec<JobId> = cx.index.timers.range(..=(now, JobId(u32::MAX))).map(|(_, id)| *id).collect();
    for id in due {
        let Some(job) = cx.job_now(id) else { continue };
        match &job.phase {
            Phase::Pending => pending_due(cx, &job),
            Phase::Running(run) if run.ending.is_some() => {
                if run.kill_at.is_some_and(|t| t <= now) {
                    kill(cx, &job, run);
                }
            }
            Phase::Running(run) => running_due(cx, &job, run),
            Phase::Completing { .. } | Phase::Ended { .. } => {}
        }
    }
    archive(cx);
    Ok(Reply::Done)
}

fn pending_due(cx: &mut Cx, job: &Job) {
    let now = cx.now;
    if latest_start(&job.spec).is_some_and(|t| t < now) {
        cx.end_pending(job.id, Outcome::of(JobState::Deadline, Reason::DeadLine));
        return;
    }
    let immediate = job.spec.immediate_secs.filter(|_| job.attempt == 0);
    if immediate.is_some_and(|s| State::later(job.submitted, i64::from(s) * 1000) <= now) {
        cx.end_pending(job.id, Outcome::of(JobState::Cancelled, Reason::Immediate));
        return;
    }
    reconsider(cx, job.id);
    refresh_eligible(cx, job.id);
}

fn running_due(cx: &mut Cx, job: &Job, run: &Run) {
    let now = cx.now;
    let end = limit_end(job, run);
    if job.spec.deadline.is_some_and(|t| t <= now) {
        cx.start_ending(job.id, Outcome::of(JobState::Deadline, Reason::DeadLine), AfterEnd::Finish);
        return;
    }
    if run.preempted.as_ref().and_then(|p| p.ends).is_some_and(|t| t <= now) {
        preempt::end(cx, job.id);
        return;
    }
    let over = cx.timing_ms(|t| t.over_time_limit_minutes.saturating_mul(60));
    if end.is_some_and(|t| State::later(t, over) <= now) {
        cx.mail_time_limit(job);
        cx.start_ending(job.id, Outcome::of(JobState::Timeout, Reason::TimeLimit), AfterEnd::Finish);
        return;
    }
    if let (Some(end), Some(signal), false) = (end, job.spec.signal, run.warned)
        && State::later(end, -i64::from(signal.before_secs) * 1000) <= now
    {
        cx.emit(Event::JobWarned { job: job.id });
        // sbatch's manual page: the steps, unless `B:` names the batch shell.
        cx.signal_all(job, None, signal.signal, signal.batch_shell, !signal.batch_shell);
    }
    let due = |(bit, share): &(u32, i64)| {
        job.spec.mail_type & !run.mailed & bit != 0 && share_end(job, run, *share).is_some_and(|t| t <= now)
    };
    let what = MAIL_SHARES.iter().filter(|s| due(s)).fold(0, |sum, (bit, _)| sum | bit);
    if what != 0 {
        cx.emit(Event::JobMailed { job: job.id, what });
        // The latest of them says it all.
        let latest = 1 << (31 - what.leading_zeros());
        let latest = MAIL_SHARES.iter().rev().find(|(bit, _)| what & bit != 0).map_or(latest, |(bit, _)| *bit);
        cx.perform(Effect::Mail { job: job.id, what: latest });
    }
}

/// Ends what runs on minutes that its group no longer has.
pub(super) fn end_used_up(cx: &mut Cx) -> Reply {
    let board = query::Board::new(cx, cx.now, None);
    let found = query::used_up(cx, &board);
    let jobs = found.iter().map(|(job, _)| *job).collect();
    for (job, hit) in found {
        let outcome = Outcome { detail: Some(hit.to_string()), ..Outcome::of(JobState::Timeout, hit.reason) };
        cx.start_ending(job, outcome, AfterEnd::Finish);
    }
    Reply::Affected { jobs }
}

/// The grace period is over.
fn kill(cx: &mut Cx, job: &Job, run: &Run) {
    let outcome = run.ending.clone().unwrap_or_else(|| Outcome::of(JobState::Cancelled, Reason::None));
    cx.emit(Event::JobKilled { job: job.id });
    cx.complete(job.id, outcome, &[], run.then);
}

fn silent_nodes(cx: &mut Cx) {
    let patience = cx.timing_ms(|t| t.node_timeout_secs);
    let names: Vec<_> = cx.index.silent.iter().cloned().collect();
    for name in names {
        let due = cx.node(&name).and_then(|n| n.silent_since).is_some_and(|t| State::later(t, patience) <= cx.now);
        if due {
            let at = cx.now;
            if cx.node(&name).is_some_and(|n| !n.flags.down) {
                let reason = Some(NodeReason { text: NOT_RESPONDING.to_owned(), uid: 0, at });
                cx.emit(Event::NodeHealth { node: name.clone(), not_responding: true, down: true, reason, at });
            }
            cx.lose_node(&name);
        }
    }
}

fn archive(cx: &mut Cx) {
    if cx.archive_ordered.is_some_and(|t| State::later(t, ARCHIVE_PATIENCE_MS) > cx.now) {
        return;
    }
    let age = cx.timing_ms(|t| t.min_job_age_secs);
    let until = (Time(cx.now.0.saturating_sub(age)), JobId(u32::MAX));
    let jobs: Vec<JobId> = cx.index.ended.range(..=until).map(|(_, id)| *id).take(ARCHIVE_CHUNK).collect();
    if !jobs.is_empty() {
        cx.emit(Event::ArchiveOrdered { at: cx.now });
        cx.perform(Effect::Archive { jobs });
    }
}

/// They are in the history. Only what is over may be forgotten.
pub(super) fn archived(cx: &mut Cx, jobs: &[JobId]) -> Result<Reply, Reject> {
    let gone: Vec<JobId> = jobs
        .iter()
        .copied()
        .filter(|id| cx.jobs.get(id).is_some_and(|j| matches!(j.phase, Phase::Ended { .. })))
        .collect();
    if !gone.is_empty() {
        let arrays: Vec<Option<JobId>> = gone.iter().map(|id| cx.jobs.get(id).and_then(|j| j.array_id())).collect();
        cx.emit(Event::JobsPurged { jobs: gone.clone() });
        cx.moved.extend(gone);
        cx.moved.extend(arrays.into_iter().flatten());
    }
    Ok(Reply::Done)
}
