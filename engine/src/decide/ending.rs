//! How jobs end: the grace period, the clean-up on nodes, and what follows (end or back to the queue).

use super::control::requeue_hold;
use super::{Cx, settle};
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{AfterEnd, Hold, Job, Outcome, Phase};
use crate::query;
use sluice_model::config::{AfterExit, RequeueCause};
use sluice_model::job::JobKind;
use sluice_model::state::ExitStatus;
use sluice_model::step::StepRecord;
use sluice_model::{JobId, JobState, NodeName, Reason, StepId, Time};
use std::sync::Arc;

pub(super) const SIGTERM: u8 = 15;
pub(super) const SIGKILL: u8 = 9;
pub(super) const SIGCONT: u8 = 18;

/// What came out of a batch script or an allocation that ended by itself.
pub(super) fn outcome_of(exit: ExitStatus) -> Outcome {
    let (state, reason) = match exit {
        ExitStatus::SUCCESS => (JobState::Completed, Reason::None),
        // How Slurm reports a task that the kernel's out-of-memory killer took: signal 125.
        ExitStatus { signal: 125, .. } => (JobState::OutOfMemory, Reason::OutOfMemory),
        ExitStatus { signal: 0, .. } => (JobState::Failed, Reason::NonZeroExitCode),
        _ => (JobState::Failed, Reason::RaisedSignal),
    };
    Outcome { exit, ..Outcome::of(state, reason) }
}

/// How long a requeued job waits, and how often in a row it may come to that.
struct Rule {
    delay_secs: u32,
    retries: Option<u32>,
}

/// Why the cluster put a job back; None when somebody asked for it (also the job itself).
fn cause_of(outcome: &Outcome) -> Option<RequeueCause> {
    match (outcome.state, outcome.reason) {
        (_, Reason::JobLaunchFailure) => Some(RequeueCause::LaunchFailure),
        (JobState::NodeFail, _) => Some(RequeueCause::NodeFailure),
        (JobState::Requeued, Reason::NonZeroExitCode) => Some(RequeueCause::ExitCode),
        (JobState::Preempted, _) => Some(RequeueCause::Preemption),
        _ => None,
    }
}

/// How often the cause put the job back since somebody last did. Other causes between do not make it a first time, or two
/// that take turns would go on for ever.
fn earlier_in_a_row(job: &Job, cause: RequeueCause) -> u32 {
    let causes = job.past_runs.iter().rev().map_while(|p| cause_of(&p.outcome));
    u32::try_from(causes.filter(|c| *c == cause).count()).unwrap_or(u32::MAX)
}

/// The worst exit of its numbered steps.
fn derived_exit(job: &Job) -> ExitStatus {
    job.steps
        .values()
        .filter(|s| matches!(s.key.step, StepId::Numbered(_)) && s.end.is_some())
        .fold(ExitStatus::SUCCESS, |worst, s| worst.worse(s.exit))
}

fn has_live_steps(job: &Job) -> bool {
    job.steps.values().any(|s| s.end.is_none())
}

impl Cx<'_> {
    /// A pending job is over without having run.
    pub(super) fn end_pending(&mut self, id: JobId, outcome: Outcome) {
        let Some(job) = self.job_now(id).filter(|j| matches!(j.phase, Phase::Pending)) else { return };
        self.emit(Event::JobEnded { job: id, outcome: outcome.clone(), at: self.now });
        self.ended(&job, &outcome);
    }

    /// Begins the end of a running job: SIGTERM now, SIGKILL after KillWait. An allocation without live steps and an
    /// attempt that no node has confirmed have nothing to be graceful with.
    pub(super) fn start_ending(&mut self, id: JobId, outcome: Outcome, then: AfterEnd) {
        let Some(job) = self.job_now(id) else { return };
        let Phase::Running(run) = &job.phase else { return };
        let idle = matches!(job.spec.kind, JobKind::Allocation) && !has_live_steps(&job);
        let grace = self.timing_ms(|t| t.kill_wait_secs);
        if idle || run.confirmed_on.is_empty() || grace == 0 {
            self.complete(id, outcome, &[], then);
            return;
        }
        // Once begun, an end keeps its hour; only how it is recorded and what follows can change.
        let kill_at = run.kill_at.unwrap_or(crate::state::State::later(self.now, grace));
        let first = run.ending.is_none();
        self.emit(Event::JobEnding { job: id, outcome, kill_at, then });
        if first {
            if run.suspended_since.is_some() {
                self.emit(Event::JobResumed { job: id, at: self.now });
                for node in run.allocation.names() {
                    self.perform(Effect::Suspend { node: node.clone(), job: id, attempt: run.attempt, resume: true });
                }
            }
            for signal in [SIGCONT, SIGTERM] {
                self.signal_all(&job, None, signal, true, true);
            }
        }
        self.perform(Effect::Notify { job: id });
    }

    /// A signal to the job's processes on each of its nodes.
    pub(super) fn signal_all(&mut self, job: &Job, step: Option<StepId>, signal: u8, batch: bool, steps: bool) {
        let Some(run) = job.run() else { return };
        for node in run.allocation.names() {
            let (job, attempt) = (job.id, run.attempt);
            self.perform(Effect::Signal { node: node.clone(), job, attempt, step, signal, batch, steps });
        }
    }

    /// The run is over; all its nodes but the `lost` ones have to confirm that nothing is left of it.
    pub(super) fn complete(&mut self, id: JobId, outcome: Outcome, lost: &[NodeName], then: AfterEnd) {
        let Some(job) = self.job_now(id) else { return };
        let Phase::Running(run) = &job.phase else { return };
        let outcome = Outcome { derived_exit: derived_exit(&job), ..outcome };
        let waiting_for: Vec<NodeName> =
            run.allocation.names().filter(|n| !lost.contains(n) && self.nodes.contains_key(*n)).cloned().collect();
        self.close_steps(&job, &outcome);
        for node in &waiting_for {
            self.perform(Effect::EndAttempt { node: node.clone(), job: id, attempt: run.attempt });
        }
        let charge = Box::new(query::charge(self, &job, run, self.now));
        self.emit(Event::UsageCharged { job: id, charge });
        self.emit(Event::JobCompleting { job: id, outcome, at: self.now, waiting_for, then });
        self.after_run(id, then);
        self.perform(Effect::Notify { job: id });
    }

    /// One node is clean.
    pub(super) fn release_node(&mut self, id: JobId, node: &NodeName) {
        let Some(job) = self.job_now(id) else { return };
        let Phase::Completing { waiting_for, then, .. } = &job.phase else { return };
        if waiting_for.contains(node) {
            self.emit(Event::NodeReleased { job: id, node: node.clone() });
            self.after_run(id, *then);
        }
    }

    /// When the last node is clean the job is over or goes back to the queue.
    fn after_run(&mut self, id: JobId, then: AfterEnd) {
        let Some(job) = self.job_now(id) else { return };
        let Phase::Ended { outcome, .. } = &job.phase else { return };
        match then {
            AfterEnd::Finish => self.ended(&job, outcome),
            AfterEnd::Requeue { hold } => {
                self.back_to_queue(&job, hold.then(|| requeue_hold(outcome.by_uid, &job)));
            }
        }
    }

    /// A job has ended for good.
    fn ended(&mut self, job: &Job, outcome: &Outcome) {
        self.mail_end(job, outcome);
        self.perform(Effect::Notify { job: job.id });
        self.moved.push(job.id);
    }

    /// Back to the queue as the next attempt, after the configured delay.
    pub(super) fn back_to_queue(&mut self, job: &Job, held: Option<Hold>) {
        let cause = job.outcome().and_then(cause_of);
        let in_a_row = cause.map_or(0, |cause| 1 + earlier_in_a_row(job, cause));
        let Rule { delay_secs, retries } = self.requeue_rule(cause, in_a_row);
        let not_before = Some(crate::state::State::later(self.now, i64::from(delay_secs) * 1000)).max(job.spec.begin);
        let exit = job.outcome().filter(|_| cause == Some(RequeueCause::ExitCode)).map(|o| o.exit);
        let hold = match held {
            Some(hold) => hold,
            // Held while it ran: held now.
            None if job.hold != Hold::No => job.hold,
            None if exit.is_some_and(|exit| self.after_exit(exit) == AfterExit::RequeuedHeld) => Hold::SpecialExit,
            None if retries.is_some_and(|most| in_a_row > most) => Hold::Requeued(Reason::JobHoldMaxRequeue),
            None => Hold::No,
        };
        self.emit(Event::JobRequeued { job: job.id, attempt: job.attempt + 1, not_before, hold, at: self.now });
        self.mail_requeue(job);
        self.perform(Effect::Notify { job: job.id });
        settle::reconsider(self, job.id);
        self.moved.push(job.id);
    }

    /// What holds for the cause's `nth` time in a row, or for a requeue that somebody asked for.
    fn requeue_rule(&self, cause: Option<RequeueCause>, nth: u32) -> Rule {
        let Some(c) = self.config.as_ref() else { return Rule { delay_secs: 0, retries: None } };
        match cause {
            Some(cause) => Rule {
                delay_secs: c.requeue.delay_secs(cause, nth, &c.timing),
                retries: c.requeue.retries(cause, &c.limits),
            },
            None => Rule { delay_secs: c.timing.requeue_delay_secs, retries: None },
        }
    }

    /// What the configuration says of an exit code.
    pub(super) fn after_exit(&self, exit: ExitStatus) -> AfterExit {
        self.config.as_ref().map_or(AfterExit::Ends, |c| c.requeue.after_exit(exit))
    }

    /// Steps that nobody will report on any more end with their job.
    fn close_steps(&mut self, job: &Job, outcome: &Outcome) {
        for step in job.steps.values().filter(|s| s.end.is_none()) {
            let state = match outcome.state {
                JobState::NodeFail | JobState::Timeout | JobState::OutOfMemory => outcome.state,
                _ => JobState::Cancelled,
            };
            let closed = StepRecord { end: Some(self.now), state, ..StepRecord::clone(step) };
            self.emit(Event::StepChanged { step: Arc::new(closed) });
        }
    }
}

/// How a job ended that somebody cancelled.
pub(super) fn cancelled(by_uid: u32) -> Outcome {
    Outcome { by_uid: Some(by_uid), ..Outcome::of(JobState::Cancelled, Reason::None) }
}

/// When a record ended, for keeping it while its outcome is replaced.
pub(super) fn end_time(job: &Job, now: Time) -> Time {
    job.ended().unwrap_or(now)
}
