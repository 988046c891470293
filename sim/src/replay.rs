//! The loop over virtual time.
//!
//! Owns the clock, the jobs that run, and what nodes and users would say to a controller: submissions, ends, confirmations.
//! All else is the engine's and the scheduler's. Within one second: completions, then arrivals, then one scheduling pass,
//! ties in the trace's order. Finished jobs are forgotten at once, so that memory follows live jobs.

mod engine;
mod jobs;

pub use jobs::Estimates;

use crate::cluster::PLAIN;
use crate::policy::Policy;
use crate::trace::{Cause, Skipped, Trace};
use engine::Engine;
use jobs::Jobs;
use sluice_engine::command::{Caller, Reply, Role};
use sluice_engine::{Command, Effect, Phase};
use sluice_model::config::ClusterConfig;
use sluice_model::state::ExitStatus;
use sluice_model::step::Usage;
use sluice_model::{JobId, Time};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Virtual time of second 0 when the trace does not say.
const ORIGIN_SECS: i64 = 1_000_000_000;
const SIGTERM: u8 = 15;
const SIGKILL: u8 = 9;

/// What planning took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub passes: u64,
    /// Showing the scheduler the state, and the plans themselves.
    pub planning: Duration,
    pub slowest_pass: Duration,
    /// Placement attempts.
    pub work: u64,
    /// Commands of all kinds to the engine, and the time that they took.
    pub commands: u64,
    pub engine: Duration,
    /// The replay as a whole.
    pub wall: Duration,
}

/// What became of the trace's jobs, by their positions.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// First start, in seconds from the trace's origin; None for a job that could never run here.
    pub starts: Vec<Option<i64>>,
    /// Last end.
    pub ends: Vec<i64>,
    /// Started while a job before it waited for the same nodes.
    pub backfilled: Vec<bool>,
    /// Waiting jobs at a pass, at most.
    pub longest_queue: usize,
    /// Runs that were broken off for another job and begun again.
    pub restarts: u64,
    pub cost: Cost,
    /// Jobs that were refused: neither started nor counted.
    pub refused: Skipped,
}

#[derive(Debug)]
pub enum ReplayError {
    /// The configuration was refused.
    Config(String),
    /// Nothing runs, nothing is to come, and jobs wait all the same.
    Stuck { waiting: usize, example: String },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Config(what) => write!(f, "the configuration is refused: {what}"),
            ReplayError::Stuck { waiting, example } => {
                write!(
                    f,
                    "{waiting} jobs would wait for ever under this policy, though nothing runs; the first: {example}"
                )
            }
        }
    }
}

impl std::error::Error for ReplayError {}

/// Replays the trace on the cluster under the policy.
pub fn replay(
    trace: &Trace,
    config: ClusterConfig,
    policy: &Policy,
    estimates: Estimates,
) -> Result<Replay, ReplayError> {
    let begin = Instant::now();
    let mut world = World::new(trace, config, policy, estimates)?;
    world.run()?;
    let mut done = world.done;
    done.cost.commands = world.engine.commands;
    done.cost.engine = world.engine.spent;
    done.cost.wall = begin.elapsed();
    Ok(done)
}

/// A job between its submission and its end.
struct Live {
    /// None while it waits or is suspended.
    ends: Option<i64>,
    /// Seconds of the run still to go as of its last start or resumption.
    left: i64,
}

struct World<'a> {
    trace: &'a Trace,
    policy: &'a Policy,
    jobs: Jobs,
    engine: Engine,
    /// Unix time of second 0.
    origin: i64,
    /// (second, position). An entry is stale when its job ends at another time by now.
    ends: BinaryHeap<Reverse<(i64, u32)>>,
    live: Vec<Option<Live>>,
    waiting: usize,
    /// Since the last pass.
    changed: bool,
    done: Replay,
}

impl<'a> World<'a> {
    fn new(
        trace: &'a Trace,
        config: ClusterConfig,
        policy: &'a Policy,
        estimates: Estimates,
    ) -> Result<World<'a>, ReplayError> {
        let origin = trace.unix_start.filter(|t| *t > 0).unwrap_or(ORIGIN_SECS);
        let start = trace.jobs.first().map_or(0, |j| j.submit);
        let plain = config.cluster_name == PLAIN;
        let jobs = Jobs::new(trace, &config, plain, estimates);
        let engine = Engine::new(Arc::new(config), Time::from_secs(origin + start)).map_err(ReplayError::Config)?;
        let count = trace.jobs.len();
        Ok(World {
            trace,
            policy,
            jobs,
            engine,
            origin,
            ends: BinaryHeap::new(),
            live: (0..count).map(|_| None).collect(),
            waiting: 0,
            changed: false,
            done: Replay {
                starts: vec![None; count],
                ends: vec![0; count],
                backfilled: vec![false; count],
                ..Replay::default()
            },
        })
    }

    fn run(&mut self) -> Result<(), ReplayError> {
        let trace = &self.trace.jobs;
        let mut next = 0;
        loop {
            let arrival = trace.get(next).map(|j| j.submit);
            let end = self.ends.peek().map(|Reverse((at, _))| *at);
            let wakeup = self.engine.next_wakeup().map(|t| self.second(t).max(self.now()));
            let idle = arrival.is_none() && end.is_none();
            if idle && self.waiting == 0 {
                return Ok(());
            }
            let Some(now) = [arrival, end, wakeup].into_iter().flatten().min() else { return Err(self.stuck()) };
            self.engine.now = self.engine.now.max(Time::from_secs(self.origin + now));
            self.complete(now);
            // What ended in time needs no tick.
            if self.engine.next_wakeup().is_some_and(|t| self.second(t) <= now) {
                self.tick();
            }
            while trace.get(next).is_some_and(|j| j.submit <= now) {
                self.arrive(next as u32);
                next += 1;
            }
            let started = self.pass();
            if idle && !started && self.engine.next_wakeup().is_none_or(|t| self.second(t) <= now) {
                return Err(self.stuck());
            }
        }
    }

    fn now(&self) -> i64 {
        self.second(self.engine.now)
    }

    /// A moment within a second is seen at the next whole one.
    fn second(&self, time: Time) -> i64 {
        time.0.saturating_add(999).div_euclid(1000).saturating_sub(self.origin)
    }

    /// Everything that ends at this second, in the trace's order.
    fn complete(&mut self, now: i64) {
        let mut gone = Vec::new();
        while let Some(Reverse((at, job))) = self.ends.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.ends.pop();
            if self.live[job as usize].as_ref().is_none_or(|l| l.ends != Some(at)) {
                continue;
            }
            let Some(id) = self.jobs.id(job) else { continue };
            self.end_run(id, ExitStatus::SUCCESS);
            self.over(job, now);
            gone.push(id);
        }
        self.engine.forget(gone);
    }

    fn over(&mut self, job: u32, now: i64) {
        self.done.ends[job as usize] = now;
        self.live[job as usize] = None;
        self.changed = true;
    }

    /// The script ends and every node is clean.
    fn end_run(&mut self, id: JobId, exit: ExitStatus) {
        let Some((attempt, nodes)) = self.engine.run_of(id) else { return };
        let Some(first) = nodes.first().cloned() else { return };
        let usage = Usage::default();
        self.engine.tell(&Command::BatchEnded { node: first, job: id, attempt, exit, usage, failure: None });
        for node in nodes {
            self.engine.tell(&Command::AttemptGone { node, job: id, attempt });
        }
    }

    fn arrive(&mut self, at: u32) {
        let job = &self.trace.jobs[at as usize];
        let mut spec = match self.jobs.submission(self.engine.state(), self.trace, job) {
            Ok(spec) => spec,
            Err(why) => {
                self.done.refused.add(Cause::Impossible { why }, job.line);
                return;
            }
        };
        spec.priority = self.policy.priority(job);
        let role = if spec.priority.is_some() { Role::Operator } else { Role::User };
        let caller = Caller { uid: spec.uid, gid: spec.gid, user: spec.user.to_string(), groups: Vec::new(), role };
        match self.engine.command(&Command::Submit { caller, spec: Box::new(spec), key: None }) {
            Ok(Reply::Submitted { job: id }) => {
                self.jobs.submitted(at, id);
                self.live[at as usize] = Some(Live { ends: None, left: job.run });
                self.waiting += 1;
                self.changed = true;
            }
            Ok(_) => {}
            Err(reject) => {
                let why = engine::said(&reject);
                self.done.refused.add(Cause::Impossible { why }, job.line);
            }
        }
    }

    /// Time-outs of the engine's own: limits, reservations, refreshed priorities.
    fn tick(&mut self) {
        self.engine.tell(&Command::Tick);
        self.engine.look_at_all();
        self.perform();
        self.changed = true;
    }

    /// One scheduling pass; true when something started.
    fn pass(&mut self) -> bool {
        if self.waiting == 0 || !self.changed {
            return false;
        }
        self.changed = false;
        self.done.longest_queue = self.done.longest_queue.max(self.waiting);
        let begin = Instant::now();
        let plan = self.engine.plan(self.policy, &self.jobs);
        let spent = begin.elapsed();
        let cost = &mut self.done.cost;
        cost.passes += 1;
        cost.planning += spent;
        cost.slowest_pass = cost.slowest_pass.max(spent);
        cost.work += plan.work;
        if plan.starts.is_empty() {
            return false;
        }
        let backfilled: BTreeSet<JobId> = plan.starts.iter().filter(|s| s.backfilled).map(|s| s.job).collect();
        let starts = plan.starts;
        // Nobody preempts in a trace.
        let apply = Command::ApplyPlan { starts, preemptions: Vec::new(), lapsed: Vec::new() };
        let Ok(Reply::Affected { jobs }) = self.engine.command(&apply) else { return false };
        let now = self.now();
        for id in &jobs {
            let Some(job) = self.jobs.position(*id) else { continue };
            let at = job as usize;
            let Some(live) = &mut self.live[at] else { continue };
            let end = now.saturating_add(live.left);
            live.ends = Some(end);
            self.ends.push(Reverse((end, job)));
            self.waiting -= 1;
            if self.done.starts[at].is_none() {
                self.done.starts[at] = Some(now);
                self.done.backfilled[at] = backfilled.contains(id);
            }
        }
        self.perform();
        !jobs.is_empty()
    }

    /// What the engine asks of nodes besides launching: obeyed at once.
    fn perform(&mut self) {
        loop {
            let effects = self.engine.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Signal { job, attempt, signal: SIGTERM | SIGKILL, batch: true, .. } => {
                        self.killed(job, attempt);
                    }
                    Effect::Suspend { job, attempt, resume, .. } => self.suspend(job, attempt, resume),
                    _ => {}
                }
            }
        }
    }

    /// A run is broken off: for another job's sake, or at its limit.
    fn killed(&mut self, id: JobId, attempt: u32) {
        let Some(job) = self.jobs.position(id) else { return };
        if self.engine.run_of(id).is_none_or(|(current, _)| current != attempt) || self.live[job as usize].is_none() {
            return;
        }
        self.end_run(id, ExitStatus { code: 0, signal: SIGTERM });
        self.changed = true;
        let pending = self.engine.state().job(id).is_some_and(|j| matches!(j.phase, Phase::Pending));
        if pending {
            let left = self.trace.jobs[job as usize].run;
            self.live[job as usize] = Some(Live { ends: None, left });
            self.waiting += 1;
            self.done.restarts += 1;
        } else {
            let now = self.now();
            self.over(job, now);
            self.engine.forget(vec![id]);
        }
    }

    fn suspend(&mut self, id: JobId, attempt: u32, resume: bool) {
        let now = self.now();
        let Some(job) = self.jobs.position(id) else { return };
        if self.engine.run_of(id).is_none_or(|(current, _)| current != attempt) {
            return;
        }
        let Some(live) = &mut self.live[job as usize] else { return };
        match (live.ends, resume) {
            (Some(ends), false) => *live = Live { ends: None, left: ends - now },
            (None, true) => {
                let ends = now.saturating_add(live.left);
                live.ends = Some(ends);
                self.ends.push(Reverse((ends, job)));
            }
            // Each node of the job is told.
            _ => {}
        }
        self.changed = true;
    }

    fn stuck(&self) -> ReplayError {
        let pending = self.engine.state().jobs.values().find(|j| matches!(j.phase, Phase::Pending));
        let example = pending.map_or_else(String::new, |job| {
            let reason = self.engine.reason(self.policy, &self.jobs, job);
            let line = self.jobs.position(job.id).map_or(0, |p| self.trace.jobs[p as usize].line);
            format!("the job of line {line}: {reason}")
        });
        ReplayError::Stuck { waiting: self.waiting, example }
    }
}
