//! The engine as the replay holds it: commands are decided, folded and answered at once, as if
//! each were durable; and the scheduler that is told of what they change.

use super::jobs::Jobs;
use crate::policy::Policy;
use sluice_engine::command::Reply;
use sluice_engine::query::{Board, Feed, Outlook, Over};
use sluice_engine::{Command, Effect, Job, Reject, State, advance, query};
use sluice_model::config::ClusterConfig;
use sluice_model::node::NodeReport;
use sluice_model::{JobId, NodeName, Reason, Time};
use sluice_sched::{Input, PendingJob, Plan, Policy as Rules, RunningJob};
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
    feed: Feed,
    /// Priorities and limits, for policies that are a configuration's.
    board: Board,
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
            feed: Feed::new(),
            board: Board::default(),
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
        let outcome = advance(&mut self.state, self.now, command).map(|decision| {
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

    /// One scheduling pass, fed with what changed since the last.
    pub fn plan(&mut self, policy: &Policy, jobs: &Jobs) -> Plan {
        if policy.is_configured() && self.wants_board() {
            self.board = Board::new(&self.state, self.now, Some(&self.board));
            self.feed.start_anew();
        }
        let known = Known { policy, jobs, board: self.board.over(&self.state) };
        self.feed.plan(&self.state, self.now, &known)
    }

    /// Priorities are refreshed as the controller does. Where they follow from the arrival alone, and nothing is limited,
    /// the first board stays true.
    fn wants_board(&self) -> bool {
        let lasts = self.board.at.is_some() && !self.board.computes() && self.board.rules.is_none();
        !lasts && self.board.is_stale(&self.state, self.now)
    }

    /// What depends on time alone may have changed: the next pass looks at everything.
    pub fn look_at_all(&mut self) {
        self.feed.start_anew();
    }

    /// Why this job waits, as squeue would say.
    pub fn reason(&self, policy: &Policy, jobs: &Jobs, job: &Job) -> Reason {
        if let Some(reason) = query::wait_reason(job, &self.state, self.now) {
            return reason;
        }
        let known = Known { policy, jobs, board: self.board.over(&self.state) };
        let plan = Feed::new().plan(&self.state, self.now, &known);
        plan.reasons.iter().find(|(id, _)| *id == job.id).map_or(Reason::Priority, |(_, reason)| *reason)
    }
}

/// What the scheduler is told besides the state: the policy's rules, and expectations to the second where limits are whole
/// minutes.
struct Known<'a> {
    policy: &'a Policy,
    jobs: &'a Jobs,
    board: Over<'a>,
}

impl Outlook for Known<'_> {
    fn predicts(&self) -> bool {
        self.policy.is_configured() && self.board.predicts()
    }
    fn policy(&self, rules: &mut Rules) {
        self.policy.adjust(rules);
    }
    fn limits(&self, shown: &mut Input) {
        if self.policy.is_configured() {
            self.board.limits(shown);
        }
    }
    fn pending(&self, job: &Job, shown: &mut PendingJob) {
        if self.policy.is_configured() {
            self.board.pending(job, shown);
        }
        shown.expected_ms = self.jobs.expected_ms(job.id);
    }
    fn running(&self, job: &Job, shown: &mut RunningJob) {
        if self.policy.is_configured() {
            self.board.running(job, shown);
        }
        if let (Some(run), Some(ms)) = (job.run(), self.jobs.expected_ms(job.id)) {
            let suspended = i64::try_from(run.suspended_ms).unwrap_or(0);
            shown.expected_end = Some(Time(run.started.0.saturating_add(ms).saturating_add(suspended)));
        }
    }
}
