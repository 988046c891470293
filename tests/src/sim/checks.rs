//! What must never happen, noticed where it happens.

use super::node::Attempt;
use sluice_engine::job::{ArrayRole, Outcome, Phase};
use sluice_engine::{Command, Decision, Event, State, audit};
use sluice_model::job::JobKind;
use sluice_model::{JobId, JobState, Reason};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Checks {
    pub violations: Vec<String>,
    /// Scripts started, wherever.
    pub started: BTreeSet<Attempt>,
    /// Exit codes of scripts that ended by themselves.
    pub exits: BTreeMap<Attempt, u8>,
    pub commands: u64,
    /// What was done lately, for the report of a violation.
    pub trace: Vec<String>,
}

impl Checks {
    pub fn violation(&mut self, what: String) {
        self.violations.push(what);
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if self.trace.len() >= 400 {
            self.trace.drain(..200);
        }
        self.trace.push(what());
    }

    /// After a command was decided and folded.
    pub fn step(&mut self, before: &State, after: &State, command: &Command, decision: &Decision) {
        self.commands += 1;
        for problem in audit(after) {
            self.violations.push(format!("{problem} (after {command:?})"));
        }
        if after.last_job_id < before.last_job_id {
            self.violation("job ids went backwards".to_owned());
        }
        for event in &decision.events {
            match event {
                Event::JobStarted { job, .. } => self.check_start(after, *job),
                Event::JobCompleting { job, outcome, .. } => self.check_end(before, *job, outcome),
                Event::JobSubmitted { job } if job.id.0 <= before.last_job_id => {
                    self.violation(format!("job id {} was given twice", job.id));
                }
                _ => {}
            }
        }
        for (id, old) in before.jobs.iter().filter(|_| !decision.events.is_empty()) {
            if after.jobs.contains_key(id) || matches!(old.phase, Phase::Ended { .. }) {
                continue;
            }
            self.violation(format!("job {id} was forgotten before it ended"));
        }
    }

    /// No more tasks of an array hold resources than its limit allows.
    fn check_start(&mut self, state: &State, job: JobId) {
        let Some(array) = state.jobs.get(&job).and_then(|j| j.array_id()) else { return };
        let limit = state.jobs.get(&array).and_then(|j| match &j.array {
            ArrayRole::Pending { throttle, .. } => *throttle,
            _ => j.spec.array.as_ref().and_then(|a| a.throttle),
        });
        let active = |j: &&std::sync::Arc<sluice_engine::Job>| {
            j.array_id() == Some(array) && matches!(j.phase, Phase::Running(_) | Phase::Completing { .. })
        };
        let running = state.jobs.values().filter(active).count();
        if limit.is_some_and(|l| running > l as usize) {
            self.violation(format!("array {array}: {running} tasks run, the limit is {limit:?}"));
        }
    }

    /// A script is recorded as having ended in the way in which it did.
    fn check_end(&mut self, before: &State, id: JobId, outcome: &Outcome) {
        let Some(job) = before.jobs.get(&id).filter(|j| matches!(j.spec.kind, JobKind::Batch { .. })) else { return };
        let told = match (outcome.state, outcome.reason) {
            (JobState::Completed, _) => 0,
            (JobState::Failed, Reason::NonZeroExitCode) => outcome.exit.code,
            _ => return,
        };
        let real = self.exits.get(&(id, job.attempt)).copied();
        if real != Some(told) {
            let attempt = job.attempt;
            self.violation(format!("attempt {attempt} of job {id} is recorded with exit {told}, it was {real:?}"));
        }
    }

    pub fn started(&mut self, attempt: Attempt) {
        if !self.started.insert(attempt) {
            self.violation(format!("the script of {attempt:?} was started twice"));
        }
    }

    pub fn same(&mut self, one: &State, other: &State, what: &str) {
        if one == other {
            return;
        }
        let mut differing: BTreeMap<&str, bool> = BTreeMap::new();
        differing.insert("jobs", one.jobs != other.jobs);
        differing.insert("nodes", one.nodes != other.nodes);
        differing.insert("partitions", one.partitions != other.partitions);
        differing.insert("config", one.config != other.config);
        differing.insert("index", one.index != other.index);
        differing.insert("last_job_id", one.last_job_id != other.last_job_id);
        differing.insert("generation", one.generation != other.generation);
        let parts: Vec<&str> = differing.into_iter().filter(|(_, d)| *d).map(|(p, _)| p).collect();
        self.violation(format!("{what} gives another state: {}", parts.join(", ")));
    }
}
