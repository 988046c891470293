//! The engine as the replay holds it: commands are decided, folded and answered at once, as if each were durable.

use super::jobs::{Foresight, Jobs};
use crate::policy::Policy;
use sluice_engine::command::Reply;
use sluice_engine::{Command, Effect, Job, Reject, State, decide, fold, query};
use sluice_model::config::ClusterConfig;
use sluice_model::node::NodeReport;
use sluice_model::{JobId, NodeName, Reason, Time};
use sluice_sched::Plan;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A refusal in one line.
pub(super) fn said(reject: &Reject) -> String {
    match reject.detail() {
        Some(detail) => format!("{}: {detail}", reject.message()),
        None => reject.message().to_owned(),
    }
}

pub(super) struct Engine {
    state: State,
    pub now: Time,
    /// The scheduler, with what it knows.
    feed: query::Feed,
    /// Priorities and limits, made anew in the configuration's period.
    board: query::Board,
    /// For nodes, besides launches.
    effects: Vec<Effect>,
    pub commands: u64,
    pub spent: Duration,
}

impl Engine {
    /// Configured, with all its nodes registered.
    pub fn new(config: Arc<ClusterConfig>, now: Time) -> Result<Engine, String> {
        let mut engine = Engine {
            state: State::default(),
            now,
            feed: query::Feed::new(),
            board: query::Board::default(),
            effects: Vec::new(),
            commands: 0,
            spent: Duration::ZERO,
        };
        let said = |reject: Reject| said(&reject);
        engine.command(&Command::Configure { config: Arc::clone(&config) }).map_err(said)?;
        for node in &config.nodes {
            let report = NodeReport {
                boot_id: "simulated".to_owned(),
                cpus: node.cpus,
                memory_mb: node.memory_mb,
                gres: node.gres.clone(),
                ..NodeReport::default()
            };
            let (node, report) = (node.name.clone(), Box::new(report));
            engine.command(&Command::NodeRegister { node, report, holds: Vec::new() }).map_err(said)?;
        }
        engine.effects.clear();
        (engine.commands, engine.spent) = (0, Duration::ZERO);
        Ok(engine)
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn command(&mut self, command: &Command) -> Result<Reply, Reject> {
        let begin = Instant::now();
        self.commands += 1;
        let decision = decide(&self.state, self.now, command);
        let outcome = decision.map(|decision| {
            for event in &decision.events {
                fold(&mut self.state, event);
            }
            let wanted = |e: &Effect| matches!(e, Effect::Signal { .. } | Effect::Suspend { .. });
            self.effects.extend(decision.effects.into_iter().filter(wanted));
            decision.reply
        });
        self.spent += begin.elapsed();
        outcome
    }

    /// A command that nodes or time bring: nobody waits for its answer, and what no longer holds is refused.
    pub fn tell(&mut self, command: &Command) {
        let _ = self.command(command);
    }

    /// As if they were safely in the history.
    pub fn forget(&mut self, jobs: Vec<JobId>) {
        if !jobs.is_empty() {
            self.tell(&Command::Archived { jobs });
        }
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub fn next_wakeup(&self) -> Option<Time> {
        query::next_wakeup(&self.state)
    }

    /// Attempt and nodes of a job that runs.
    pub fn run_of(&self, id: JobId) -> Option<(u32, Vec<NodeName>)> {
        let job = self.state.job(id)?;
        let run = job.run()?;
        Some((run.attempt, run.allocation.names().cloned().collect()))
    }

    pub fn plan(&mut self, policy: &Policy, jobs: &Jobs) -> Plan {
        if self.board.is_stale(&self.state, self.now) {
            self.board = query::Board::new(&self.state, self.now, Some(&self.board));
            self.feed.start_anew();
        }
        self.feed.plan(&self.state, self.now, &Foresight { policy, jobs, board: self.board.over(&self.state) })
    }

    /// Why this job waits, as squeue would say.
    pub fn reason(&mut self, policy: &Policy, jobs: &Jobs, job: &Job) -> Reason {
        if let Some(reason) = query::wait_reason(job, &self.state, self.now) {
            return reason;
        }
        let plan = self.plan(policy, jobs);
        plan.reasons.iter().find(|(id, _)| *id == job.id).map_or(Reason::Priority, |(_, reason)| *reason)
    }
}
