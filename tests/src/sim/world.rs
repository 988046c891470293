//! The simulation itself: one queue of things to come in virtual time.

use super::checks::Checks;
use super::clients::Clients;
use super::controller::{Controller, Left, Waiting, replay};
use super::load::{Behaviour, config};
use super::node::{Attempt, Motion, Node, Order, Word};
use super::rng::Rng;
use sluice_engine::command::{PlannedPreemption, PlannedStart};
use sluice_engine::{Command, Effect, State, query};
use sluice_model::job::JobKind;
use sluice_model::node::NodeReport;
use sluice_model::state::ExitStatus;
use sluice_model::step::{StepRecord, Usage};
use sluice_model::{JobId, JobState, NodeName, StepId, StepKey, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Faults and people's whims end here; what is left must come to its end.
const CHAOS_MS: i64 = 600_000;
/// By then at the latest.
const PATIENCE_MS: i64 = 4 * 3_600_000;

/// What one simulation did.
#[derive(Debug, Default)]
pub struct Report {
    pub seed: u64,
    pub commands: u64,
    pub submitted: usize,
    pub scripts: usize,
    pub crashes: u32,
    pub reboots: u32,
    pub broken_links: u32,
    pub virtual_seconds: i64,
    /// Empty when all went well.
    pub violations: Vec<String>,
    /// The last things done before the first violation.
    pub trace: Vec<String>,
}

pub(super) enum Happening {
    ToNode {
        node: usize,
        link: u64,
        order: Order,
    },
    ToController {
        node: usize,
        link: u64,
        report: u64,
        word: Word,
    },
    Script {
        node: usize,
        attempt: Attempt,
        token: u64,
    },
    Cleared {
        node: usize,
        attempt: Attempt,
        boot: u32,
    },
    Connect {
        node: usize,
    },
    Client,
    Flush,
    Schedule,
    Apply {
        starts: Vec<PlannedStart>,
        preemptions: Vec<PlannedPreemption>,
        lapsed: Vec<JobId>,
    },
    Tick,
    Fault,
    /// After a restart: nodes that have not come back are silent.
    CheckLinks,
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) now: Time,
    pub(super) queue: BTreeMap<(Time, u64), Happening>,
    pub(super) serial: u64,
    pub(super) controller: Controller,
    pub(super) nodes: Vec<Node>,
    pub(super) clients: Clients,
    pub(super) checks: Checks,
    pub(super) report: Report,
    pub(super) flush_due: bool,
    pub(super) schedule_due: bool,
    pub(super) tick_at: Option<Time>,
    pub(super) submissions_left: u32,
}

/// Runs one simulation to its end or to its first violation.
pub fn run(seed: u64) -> Report {
    let mut rng = Rng::new(seed);
    let config = config(&mut rng);
    let nodes = config.nodes.iter().map(|n| Node::new(Arc::new(n.clone()))).collect();
    let submissions_left = rng.between(20, 60) as u32;
    let mut world = World {
        rng,
        now: Time::from_secs(1_000_000),
        queue: BTreeMap::new(),
        serial: 0,
        controller: Controller::new(),
        nodes,
        clients: Clients::default(),
        checks: Checks::default(),
        report: Report { seed, ..Report::default() },
        flush_due: false,
        schedule_due: false,
        tick_at: None,
        submissions_left,
    };
    let config = Arc::new(config);
    world.clients.config = Some(Arc::clone(&config));
    world.command(Command::Configure { config }, Waiting::Nobody);
    for node in 0..world.nodes.len() {
        world.later(100, Happening::Connect { node });
    }
    world.later(200, Happening::Client);
    world.later(5_000, Happening::Fault);
    world.run()
}

impl World {
    pub(super) fn later(&mut self, ms: i64, what: Happening) {
        self.serial += 1;
        self.queue.insert((Time(self.now.0 + ms.max(0)), self.serial), what);
    }

    fn run(mut self) -> Report {
        let start = self.now;
        while let Some(((time, _), happening)) = self.queue.pop_first() {
            self.now = self.now.max(time);
            self.happen(happening);
            if !self.checks.violations.is_empty() {
                break;
            }
            let quiet = self.now.0 > start.0 + CHAOS_MS && self.clients.unfinished(&self.controller.state).is_empty();
            if quiet || self.now.0 > start.0 + PATIENCE_MS {
                break;
            }
        }
        if self.checks.violations.is_empty() {
            let whole = replay(State::default(), &self.controller.journal);
            self.checks.same(&whole, &self.controller.state, "replaying the journal at the end");
            self.checks.violations.extend(self.clients.unfinished(&self.controller.state));
        }
        self.report.commands = self.checks.commands;
        self.report.submitted = self.clients.submitted.len();
        self.report.scripts = self.checks.started.len();
        self.report.virtual_seconds = (self.now.0 - start.0) / 1000;
        self.report.violations = std::mem::take(&mut self.checks.violations);
        self.report.trace = std::mem::take(&mut self.checks.trace);
        self.report
    }

    pub(super) fn chaos(&self) -> bool {
        self.now.0 < Time::from_secs(1_000_000).0 + CHAOS_MS
    }

    pub(super) fn command(&mut self, command: Command, waiting: Waiting) {
        let now = self.now;
        self.checks.note(|| format!("{} {command:?}", now.0 - 1_000_000_000));
        self.controller.command(self.now, command, waiting, &mut self.checks);
        if !self.flush_due {
            self.flush_due = true;
            let after = self.rng.between(1, 20);
            self.later(after, Happening::Flush);
        }
        self.plan_tick();
    }

    /// Ticks come when the engine wants them, and once a minute.
    pub(super) fn plan_tick(&mut self) {
        let wanted = query::next_wakeup(&self.controller.state).unwrap_or(Time(i64::MAX));
        let at = wanted.min(Time(self.now.0 + 60_000)).max(self.now);
        if self.tick_at.is_none_or(|t| at < t) {
            self.tick_at = Some(at);
            self.later(at.0 - self.now.0, Happening::Tick);
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Flush => self.flush(),
            Happening::ToNode { node, link, order } => {
                if self.nodes[node].link == Some(link) {
                    self.obey(node, order);
                }
            }
            Happening::ToController { node, link, report, word } => self.hear(node, link, report, word),
            Happening::Script { node, attempt, token } => {
                if let Some(exit) = self.nodes[node].script_ends(attempt, token) {
                    self.checks.exits.insert(attempt, exit);
                }
                self.send_outbox(node, false);
            }
            Happening::Cleared { node, attempt, boot } => {
                if self.nodes[node].boot == boot {
                    self.nodes[node].cleared(attempt);
                    self.send_outbox(node, false);
                }
            }
            Happening::Connect { node } => self.connect(node),
            Happening::Client => self.client(),
            Happening::Schedule => self.schedule(),
            Happening::Apply { starts, preemptions, lapsed } => {
                self.command(Command::ApplyPlan { starts, preemptions, lapsed }, Waiting::Nobody);
            }
            Happening::Tick => {
                if self.tick_at.is_some_and(|t| t <= self.now) {
                    self.tick_at = None;
                    self.command(Command::Tick, Waiting::Nobody);
                    self.check_launches();
                    let wanted = query::next_wakeup(&self.controller.state);
                    if wanted.is_some_and(|t| t <= self.now) {
                        let state = &self.controller.state;
                        let job = state.index.timers.get_min().and_then(|(_, id)| state.jobs.get(id));
                        let what =
                            format!("a tick left undone what was due at {wanted:?}; the first timer is of {job:?}");
                        self.checks.violation(what);
                    }
                }
            }
            Happening::Fault => self.fault(),
            Happening::CheckLinks => self.check_links(),
        }
    }

    fn flush(&mut self) {
        self.flush_due = false;
        let (left, effects) = self.controller.flush();
        for Left { waiting, outcome, command } in left {
            match waiting {
                Waiting::Nobody => {}
                Waiting::Client => self.clients.told(&command, &outcome),
                Waiting::Report { node, link, report } => self.send(node, link, Order::Ack { report }),
            }
        }
        for effect in effects {
            self.perform(effect);
        }
        if self.rng.percent(2) {
            self.controller.take_snapshot();
        }
        if !self.schedule_due {
            self.schedule_due = true;
            let after = self.rng.between(2, 100);
            self.later(after, Happening::Schedule);
        }
    }

    /// The plan is made from what is published now and applied some time later.
    fn schedule(&mut self) {
        self.schedule_due = false;
        let input = query::scheduler_input(&self.controller.published, self.now);
        if input.pending.is_empty() {
            return;
        }
        let plan = sluice_sched::plan(&input);
        for violation in sluice_sched::audit(&input, &plan) {
            self.checks.violation(format!("the plan: {violation:?}"));
        }
        if !plan.starts.is_empty() || !plan.preemptions.is_empty() || !plan.lapsed.is_empty() {
            let after = self.rng.between(1, 200);
            let (starts, preemptions, lapsed) = (plan.starts, plan.preemptions, plan.lapsed);
            self.later(after, Happening::Apply { starts, preemptions, lapsed });
        }
    }

    fn position(&self, name: &NodeName) -> Option<usize> {
        self.nodes.iter().position(|n| n.name == *name)
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Launch { job, attempt } => self.launch(job, attempt),
            Effect::EndAttempt { node, job, attempt } => {
                self.order(&node, Order::End { attempt: (job, attempt) });
            }
            Effect::Signal { node, job, attempt, signal, batch, .. } if batch => {
                self.order(&node, Order::Signal { attempt: (job, attempt), signal });
            }
            Effect::Suspend { node, job, attempt, resume } => {
                self.order(&node, Order::Suspend { attempt: (job, attempt), resume });
            }
            Effect::Archive { jobs } => {
                for id in &jobs {
                    if let Some(job) = self.controller.published.jobs.get(id) {
                        self.clients.history.insert(*id, job.state());
                    }
                }
                // The history may be slow, or the controller may die before the jobs are forgotten.
                if self.rng.percent(90) {
                    self.command(Command::Archived { jobs }, Waiting::Nobody);
                }
            }
            Effect::Signal { .. } | Effect::Notify { .. } | Effect::Mail { .. } | Effect::PushConfig => {}
        }
    }

    fn launch(&mut self, id: JobId, attempt: u32) {
        let Some(job) = self.controller.published.jobs.get(&id).cloned() else { return };
        let Some(run) = job.run().filter(|r| r.attempt == attempt) else { return };
        let behaviour = matches!(job.spec.kind, JobKind::Batch { .. }).then(|| Behaviour::of(&job.spec));
        for (i, part) in run.allocation.nodes.iter().enumerate() {
            let script = behaviour.filter(|_| i == 0);
            self.order(&part.node, Order::Launch { attempt: (id, attempt), part: part.clone(), script });
        }
    }

    fn order(&mut self, node: &NodeName, order: Order) {
        if let Some(node) = self.position(node)
            && let Some(link) = self.nodes[node].link
        {
            self.send(node, link, order);
        }
    }

    fn delay(&mut self) -> i64 {
        match self.rng.below(100) {
            0..=1 => self.rng.between(5_000, 40_000),
            2..=5 => self.rng.between(100, 5_000),
            _ => self.rng.between(1, 30),
        }
    }

    fn send(&mut self, node: usize, link: u64, order: Order) {
        let times = if self.rng.percent(5) { 2 } else { 1 };
        for _ in 0..times {
            let after = self.delay();
            self.later(after, Happening::ToNode { node, link, order: order.clone() });
        }
    }

    fn obey(&mut self, node: usize, order: Order) {
        let now = self.now;
        let name = self.nodes[node].name.clone();
        self.checks.note(|| format!("{} {name} obeys {order:?}", now.0 - 1_000_000_000));
        let motions = match order {
            Order::Ack { report } => {
                self.nodes[node].outbox.remove(&report);
                Vec::new()
            }
            Order::Launch { attempt, part, script } => {
                let node_fault = self.chaos() && self.rng.percent(2);
                let motions = self.nodes[node].launch(now, attempt, part, script, node_fault);
                if let Some(behaviour) = script.filter(|b| b.step && motions.contains(&Motion::Started(attempt))) {
                    self.report_step(node, attempt, behaviour);
                }
                motions
            }
            Order::End { attempt } => {
                let after = self.rng.between(5, 2_000);
                self.nodes[node].end(attempt, after)
            }
            Order::Signal { attempt, signal } => self.nodes[node].signal(now, attempt, signal),
            Order::Suspend { attempt, resume } => self.nodes[node].suspend(now, attempt, resume),
        };
        for motion in motions {
            match motion {
                Motion::Ends { attempt, at, token } => {
                    self.later(at.0 - now.0, Happening::Script { node, attempt, token });
                }
                Motion::Clears { attempt, after } => {
                    let boot = self.nodes[node].boot;
                    self.later(after, Happening::Cleared { node, attempt, boot });
                }
                Motion::Started(attempt) => self.checks.started(attempt),
                Motion::Broken(what) => self.checks.violation(what),
            }
        }
        self.send_outbox(node, false);
    }

    /// A short step at the start of the script; sometimes its end is never reported.
    fn report_step(&mut self, node: usize, attempt: Attempt, behaviour: Behaviour) {
        let mut step = StepRecord {
            key: StepKey { job: attempt.0, attempt: attempt.1, step: StepId::Numbered(0) },
            name: "step".into(),
            nodes: vec![self.nodes[node].name.clone()],
            tasks: 1,
            cpus: 1,
            memory_mb: 0,
            gres: Vec::new(),
            start: self.now,
            end: None,
            state: JobState::Running,
            exit: ExitStatus::SUCCESS,
            usage: Usage::default(),
            spread: Vec::new(),
            submit_line: "srun true".into(),
            distribution: "Block".to_owned(),
            srun_host: "n1".to_owned(),
            srun_pid: 1,
        };
        self.nodes[node].say(Word::Step(Box::new(step.clone())));
        if self.rng.percent(70) {
            step.end = Some(self.now);
            step.exit = ExitStatus { code: behaviour.exit, signal: 0 };
            step.state = if behaviour.exit == 0 { JobState::Completed } else { JobState::Failed };
            self.nodes[node].say(Word::Step(Box::new(step)));
        }
    }

    /// What is new goes out over the link; after a reconnection everything that was not acknowledged.
    fn send_outbox(&mut self, node: usize, again: bool) {
        let Some(link) = self.nodes[node].link else { return };
        let waiting: Vec<(u64, Word)> = self.nodes[node].outbox.iter().map(|(id, word)| (*id, word.clone())).collect();
        // Some of them have been sent already: the controller has to live with repetitions, late ones too.
        let newest = waiting.len().saturating_sub(if again { usize::MAX } else { 3 });
        for (report, word) in waiting.into_iter().skip(newest) {
            let after = self.delay();
            self.later(after, Happening::ToController { node, link, report, word });
        }
    }

    fn hear(&mut self, node: usize, link: u64, report: u64, word: Word) {
        if self.nodes[node].link != Some(link) {
            return;
        }
        let name = self.nodes[node].name.clone();
        let command = match word {
            Word::Confirmed((job, attempt)) => Command::AttemptConfirmed { node: name, job, attempt },
            Word::Ended { attempt: (job, attempt), exit, failure } => {
                Command::BatchEnded { node: name, job, attempt, exit, usage: Usage::default(), failure }
            }
            Word::Gone((job, attempt)) => Command::AttemptGone { node: name, job, attempt },
            Word::Step(step) => Command::StepReport { node: name, step },
        };
        self.command(command, Waiting::Report { node, link, report });
    }

    fn connect(&mut self, node: usize) {
        if self.nodes[node].link.is_some() {
            return;
        }
        if self.nodes[node].away_until > self.now {
            let after = self.nodes[node].away_until.0 - self.now.0;
            self.later(after, Happening::Connect { node });
            return;
        }
        self.serial += 1;
        let n = &mut self.nodes[node];
        n.link = Some(self.serial);
        n.linked = self.now.0;
        let report = NodeReport {
            boot_id: format!("{}-{}", n.name, n.boot),
            cpus: n.spec.cpus,
            memory_mb: n.spec.memory_mb,
            gres: n.spec.gres.clone(),
            ..NodeReport::default()
        };
        let command = Command::NodeRegister { node: n.name.clone(), report: Box::new(report), holds: n.holds() };
        self.command(command, Waiting::Nobody);
        self.send_outbox(node, true);
    }

    fn client(&mut self) {
        let seen = self.controller.published.clone();
        if self.chaos() {
            if let Some(command) = self.clients.act(&mut self.rng, self.now, &seen, self.submissions_left > 0) {
                if matches!(command, Command::Submit { .. }) {
                    self.submissions_left -= 1;
                }
                self.command(command, Waiting::Client);
            }
        } else {
            for command in self.clients.tidy(&seen, self.now) {
                self.command(command, Waiting::Client);
            }
        }
        for command in Clients::finish_allocations(&seen, self.now) {
            self.command(command, Waiting::Client);
        }
        let after = self.rng.between(10, if self.chaos() { 8_000 } else { 20_000 });
        self.later(after, Happening::Client);
    }
}
