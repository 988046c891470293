//! The step manager: on the job's first node, it says which steps run where inside the allocation.
//!
//! Promises that a step's number is given once, that a grant is on disk before srun has it, and that the controller
//! hears of each step's end (of its beginning within a second, unless it has ended by then).

use super::{After, Caller, Owner, name, record};
use crate::placing::{self, Placed};
use crate::store::Attempt as AttemptKey;
use sluice_identity::credential::{sign_grant, verify_job};
use sluice_identity::now_ms;
use sluice_proto::v1::{
    self, CreateStepReply, JobCredential, ManagedStep, Queued, StepGrantBody, StepKey, StepNode, StepPartEndedRequest,
    StepRequest, create_step_reply, report,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tonic::Status;

/// After its time limit and KillWait a step is killed again so often, until its nodes say that it is over.
const KILL_AGAIN: Duration = Duration::from_secs(10);

/// What is added to the message about a step's end.
const TIME_LIMIT: &str = " DUE TO TIME LIMIT";

/// A grant whose node has not been heard of for so long is looked into: srun may have died before it launched.
const LOOK_AFTER: Duration = Duration::from_secs(30);

type StepReply = mpsc::UnboundedSender<Result<CreateStepReply, Status>>;

pub struct Waiting {
    pub request: StepRequest,
    pub reply: StepReply,
    /// `--immediate`: given up then.
    until: Option<Instant>,
}

/// A running step.
pub struct Running {
    pub kept: ManagedStep,
    /// The controller has not heard of it yet.
    unreported: bool,
    looked: Instant,
    /// When its own time limit is over; after that, when what is left of it is killed.
    due: Option<Instant>,
    /// Told by this daemon that its time is over.
    told: bool,
}

#[derive(Default)]
pub struct Manager {
    pub running: BTreeMap<u32, Running>,
    pub waiting: Vec<Waiting>,
}

impl Running {
    /// A step just granted, or one that a former daemon left: everything it needs to know of it is in `kept`.
    pub fn new(kept: ManagedStep) -> Running {
        let limit = i64::from(kept.time_limit_secs) * 1000;
        let start = kept.grant.as_ref().map_or(0, |g| g.start);
        // Told again if its time was over under a former daemon: a step heeds that order once.
        let due = (limit > 0).then(|| Instant::now() + until(start + limit));
        // Whether its beginning was reported is not known: once more is harmless.
        Running { kept, unreported: true, looked: Instant::now(), due, told: false }
    }

    /// Another node than `me` has not said yet how its part ended.
    pub fn waits_for_others(&self, me: &str) -> bool {
        let said = |node: &str| self.kept.ended.iter().any(|e| e.node == node);
        self.kept.grant.iter().flat_map(|g| &g.nodes).any(|n| n.node != me && !said(&n.node))
    }
}

/// How long it is until a point of the wall clock (ms); zero when it has passed.
fn until(at: i64) -> Duration {
    Duration::from_millis(u64::try_from(at - now_ms()).unwrap_or(0))
}

fn busy(text: &str) -> Status {
    Status::failed_precondition(text.to_owned())
}

impl Owner {
    pub(super) fn create_step(
        &mut self,
        request: StepRequest,
        credential: Option<JobCredential>,
        caller: Caller,
        reply: StepReply,
    ) {
        let key = match self.managed_attempt(&request, credential, &caller) {
            Ok(key) => key,
            Err(status) => {
                let _ = reply.send(Err(status));
                return;
            }
        };
        let until = request.immediate_secs.map(|s| Instant::now() + Duration::from_secs(u64::from(s)));
        let waiting = Waiting { request, reply, until };
        if let Some(waiting) = self.try_grant(key, waiting, true)
            && let Some(manager) = self.manager(key)
        {
            manager.waiting.push(waiting);
        }
    }

    fn manager(&mut self, key: AttemptKey) -> Option<&mut Manager> {
        self.attempts.get_mut(&key)?.manager.as_mut()
    }

    /// The attempt that the caller may make steps in, known here or made known by the credential.
    fn managed_attempt(
        &mut self,
        request: &StepRequest,
        credential: Option<JobCredential>,
        caller: &Caller,
    ) -> Result<AttemptKey, Status> {
        let known = self.attempts.range((request.job, 0)..=(request.job, u32::MAX)).next_back().map(|(key, _)| *key);
        let key = match (known, credential.filter(|c| !c.body.is_empty())) {
            (Some(key), None) => key,
            (None, None) => return Err(Status::not_found("Invalid job id specified")),
            (known, Some(credential)) => {
                let job = verify_job(&credential, self.setup.keys.cluster(), now_ms())
                    .map_err(|why| Status::permission_denied(why.to_string()))?;
                let key = (job.body.job, job.body.attempt);
                if job.body.job != request.job {
                    return Err(Status::invalid_argument("the credential is of another job"));
                }
                if known.is_some_and(|k| k.1 > key.1) {
                    return Err(busy("Job/step already completing or completed"));
                }
                if !caller.may_touch(job.body.uid) {
                    return Err(Status::permission_denied("Access/permission denied"));
                }
                self.attempt_of_credential(job, credential)?;
                key
            }
        };
        let attempt = self.attempts.get(&key).ok_or_else(|| Status::not_found("Invalid job id specified"))?;
        if !caller.may_touch(attempt.job.body.uid) {
            return Err(Status::permission_denied("Access/permission denied"));
        }
        if attempt.ending.is_some() {
            return Err(busy("Job/step already completing or completed"));
        }
        if attempt.manager.is_none() {
            return Err(Status::failed_precondition(format!(
                "node {} is not the first of job {}",
                self.setup.site.node, key.0
            )));
        }
        Ok(key)
    }

    /// Grants the step, refuses it, or gives it back to wait.
    fn try_grant(&mut self, key: AttemptKey, waiting: Waiting, first: bool) -> Option<Waiting> {
        if waiting.reply.is_closed() {
            return None;
        }
        let attempt = self.attempts.get(&key)?;
        let running: Vec<&ManagedStep> =
            attempt.manager.iter().flat_map(|m| m.running.values()).map(|r| &r.kept).collect();
        let job = placing::Job { body: &attempt.job.body, allocation: &attempt.job.allocation };
        match placing::place(&job, &waiting.request, &running) {
            Placed::Never(why) => {
                let _ = waiting.reply.send(Err(busy(&why)));
                None
            }
            Placed::Busy(why) => {
                if waiting.until.is_some_and(|until| until <= Instant::now()) {
                    let _ = waiting.reply.send(Err(busy(why)));
                    return None;
                }
                if first {
                    let queued = create_step_reply::Kind::Queued(Queued { reason: why.to_owned() });
                    let _ = waiting.reply.send(Ok(CreateStepReply { kind: Some(queued) }));
                }
                Some(waiting)
            }
            Placed::Now { nodes, counted, ntasks } => {
                self.grant(key, &waiting, nodes, counted, ntasks);
                None
            }
        }
    }

    fn grant(&mut self, key: AttemptKey, waiting: &Waiting, nodes: Vec<StepNode>, counted: Vec<StepNode>, ntasks: u32) {
        let number = match self.store.take_number(key) {
            Ok(number) => number,
            Err(error) => {
                let _ = waiting.reply.send(Err(Status::internal(error.to_string())));
                return;
            }
        };
        let request = &waiting.request;
        let step = StepKey { job: key.0, attempt: key.1, step: number };
        let gpus_per_task =
            request.gres.iter().filter(|g| g.name == "gpu" && g.scope == 2).map(|g| g.count).sum::<u64>();
        let distribution = match &request.distribution {
            Some(v1::Distribution { kind: Some(v1::distribution::Kind::Cyclic(true)) }) => "Cyclic",
            Some(v1::Distribution { kind: Some(v1::distribution::Kind::Plane(_)) }) => "Plane",
            Some(v1::Distribution { kind: Some(v1::distribution::Kind::Arbitrary(true)) }) => "Arbitrary",
            _ => "Block",
        };
        let body = StepGrantBody {
            key: Some(step),
            ntasks,
            cpus_per_task: request.cpus_per_task.unwrap_or(0),
            name: request.name.clone(),
            distribution: distribution.to_owned(),
            start: now_ms(),
            overcommit: request.overcommit,
            gpus_per_task: u32::try_from(gpus_per_task).unwrap_or(0),
            kill_wait_secs: Some(self.config.kill_wait_secs),
            nodes,
        };
        let record = record::begun(&body, request);
        let kept = ManagedStep {
            grant: Some(body.clone()),
            record: Some(record),
            counted,
            time_limit_secs: request.time_limit_secs.unwrap_or(0),
            ..ManagedStep::default()
        };
        if let Err(error) = self.store.put_step(key, number, &kept) {
            let _ = waiting.reply.send(Err(Status::internal(error.to_string())));
            return;
        }
        let Some(attempt) = self.attempts.get_mut(&key) else { return };
        let grant = sign_grant(&self.setup.keys, &body, attempt.credential.clone());
        if let Some(manager) = &mut attempt.manager {
            manager.running.insert(number, Running::new(kept));
        }
        let reply = waiting.reply.clone();
        self.after.push(After::Do(Box::new(move || {
            let granted = create_step_reply::Kind::Granted(grant);
            // An srun that is gone by now: the step is looked into later.
            let _ = reply.send(Ok(CreateStepReply { kind: Some(granted) }));
        })));
    }

    /// From another node's daemon (or this one's own).
    pub(super) fn part_ended_from(&mut self, request: StepPartEndedRequest, caller: &Caller) -> Result<(), Status> {
        match caller {
            Caller::Node(host) if *host == request.node => {
                self.part_ended(request);
                Ok(())
            }
            _ => Err(Status::permission_denied("a node can only speak for itself")),
        }
    }

    pub(super) fn part_ended(&mut self, request: StepPartEndedRequest) {
        let Some(step) = request.key else { return };
        let key = (step.job, step.attempt);
        let Some(running) = self.manager(key).and_then(|m| m.running.get_mut(&step.step)) else { return };
        let grant = running.kept.grant.clone().unwrap_or_default();
        let is_part = grant.nodes.iter().any(|n| n.node == request.node);
        if !is_part || running.kept.ended.iter().any(|e| e.node == request.node) {
            return;
        }
        running.kept.ended.push(request);
        let nodes: BTreeSet<&str> = grant.nodes.iter().map(|n| n.node.as_str()).collect();
        if running.kept.ended.len() < nodes.len() {
            let kept = running.kept.clone();
            if let Err(error) = self.store.put_step(key, step.step, &kept) {
                tracing::error!(%error, "the store can't be written");
            }
            return;
        }
        self.step_over(key, step.step);
        self.retry_waiting(key);
        self.settle_ending(key);
    }

    /// All parts are over, or no more is expected: the last record goes out.
    fn step_over(&mut self, key: AttemptKey, number: u32) {
        let Some(attempt) = self.attempts.get_mut(&key) else { return };
        let cancelling = attempt.cancelling;
        let Some(running) = attempt.manager.as_mut().and_then(|m| m.running.remove(&number)) else { return };
        let record = record::finished(&running.kept, cancelling);
        if let Err(error) = self.store.remove_step(key, number) {
            tracing::error!(%error, "the store can't be written");
        }
        self.report(report::Kind::Step(record));
    }

    /// The attempt is over: steps whose other parts have not reported end with what is known.
    pub(super) fn close_steps(&mut self, key: AttemptKey) {
        let open: Vec<u32> = self.manager(key).map(|m| m.running.keys().copied().collect()).unwrap_or_default();
        for number in open {
            self.step_over(key, number);
        }
    }

    fn retry_waiting(&mut self, key: AttemptKey) {
        let Some(manager) = self.manager(key) else { return };
        // In the order in which they came; a later one that fits may pass one that does not.
        for waiting in std::mem::take(&mut manager.waiting) {
            if let Some(waiting) = self.try_grant(key, waiting, false)
                && let Some(manager) = self.manager(key)
            {
                manager.waiting.push(waiting);
            }
        }
    }

    pub(super) fn part_missing(&mut self, key: StepKey, node: String) {
        tracing::info!(step = name(&key), node, "a granted step was never launched there");
        self.part_ended(StepPartEndedRequest {
            key: Some(key),
            node,
            worst: Some(v1::ExitStatus::default()),
            usage: None,
            cancelled: true,
            end: now_ms(),
            spread: Vec::new(),
        });
    }

    /// `time_limit`: the step manager says that the step's own time is over.
    pub(super) fn signal_step(
        &mut self,
        key: StepKey,
        signal: u32,
        time_limit: bool,
        caller: &Caller,
    ) -> Result<(), Status> {
        let attempt_key = match key.attempt {
            // Commands that know the job alone mean its current attempt.
            0 => self.attempts.range((key.job, 0)..=(key.job, u32::MAX)).next_back().map(|(k, _)| *k),
            n => Some((key.job, n)),
        };
        let attempt_key = attempt_key.ok_or_else(|| Status::not_found("Invalid job id specified"))?;
        let attempt = self.attempts.get(&attempt_key).ok_or_else(|| Status::not_found("Invalid job id specified"))?;
        let first = attempt.job.allocation.nodes.first().map(|n| n.node.to_string());
        let from_manager = matches!(caller, Caller::Node(host) if Some(host) == first.as_ref());
        if !from_manager && !caller.may_touch(attempt.job.body.uid) {
            return Err(Status::permission_denied("Access/permission denied"));
        }
        if signal == 0 || signal > 64 {
            return Err(Status::invalid_argument(format!("signal {signal}: 1 to 64 are allowed")));
        }
        if !attempt.parts.contains_key(&key.step)
            && !attempt.manager.as_ref().is_some_and(|m| m.running.contains_key(&key.step))
        {
            return Err(Status::not_found("Invalid job id specified"));
        }
        let why = if time_limit && from_manager { TIME_LIMIT } else { "" };
        self.signal_everywhere(StepKey { attempt: attempt_key.1, ..key }, signal, why);
        Ok(())
    }

    /// This node's part, and from the manager the other nodes' ones.
    fn signal_everywhere(&mut self, key: StepKey, signal: u32, why: &str) {
        let node = self.setup.site.node.clone();
        let Some(attempt) = self.attempts.get_mut(&(key.job, key.attempt)) else { return };
        if let Some(part) = attempt.parts.get_mut(&key.step) {
            if signal == libc::SIGKILL as u32 || signal == libc::SIGTERM as u32 {
                part.notice(&format!("STEP {}", name(&key)), &node, why);
            }
            if !why.is_empty() && signal == libc::SIGTERM as u32 {
                part.end(false);
            } else if signal == libc::SIGKILL as u32 {
                part.kill();
            } else {
                part.send(v1::supervisor_command::Kind::Signal(signal));
            }
        }
        let Some(running) = attempt.manager.as_ref().and_then(|m| m.running.get(&key.step)) else { return };
        let grant = running.kept.grant.clone().unwrap_or_default();
        for node in grant.nodes.iter().filter(|n| n.node != self.setup.site.node) {
            let peer = self.peer(&node.node, &node.address);
            let name = node.node.clone();
            let time_limit = !why.is_empty();
            self.setup.runtime.spawn(async move {
                if let Err(status) = peer.signal(key, signal, time_limit).await {
                    tracing::warn!(node = name, %status, "a step's part could not be signalled");
                }
            });
        }
    }

    pub(super) fn tick_steps(&mut self) {
        let now = Instant::now();
        let mut records = Vec::new();
        let mut look = Vec::new();
        let (mut late, mut kill) = (Vec::new(), Vec::new());
        let kill_wait = i64::from(self.config.kill_wait_secs) * 1000;
        let mut retry = Vec::new();
        let me = self.setup.site.node.clone();
        for (key, attempt) in &mut self.attempts {
            let parts: BTreeSet<u32> = attempt.parts.keys().copied().collect();
            let Some(manager) = &mut attempt.manager else { continue };
            if manager.waiting.iter().any(|w| w.reply.is_closed() || w.until.is_some_and(|u| u <= now)) {
                retry.push(*key);
            }
            for (number, running) in &mut manager.running {
                let step = StepKey { job: key.0, attempt: key.1, step: *number };
                if std::mem::take(&mut running.unreported) {
                    records.extend(running.kept.record.clone());
                }
                if running.due.is_some_and(|due| due <= now) {
                    if std::mem::replace(&mut running.told, true) {
                        running.due = Some(now + KILL_AGAIN);
                        kill.push(step);
                    } else {
                        if running.kept.timed_out_at == 0 {
                            running.kept.timed_out_at = now_ms();
                        }
                        running.due = Some(now + until(running.kept.timed_out_at + kill_wait));
                        late.push((step, running.kept.clone()));
                    }
                }
                if now.duration_since(running.looked) > LOOK_AFTER {
                    running.looked = now;
                    let ended: BTreeSet<&str> = running.kept.ended.iter().map(|e| e.node.as_str()).collect();
                    let nodes = running.kept.grant.iter().flat_map(|g| &g.nodes);
                    for node in nodes.filter(|n| !ended.contains(n.node.as_str())) {
                        if node.node != me || !parts.contains(number) {
                            look.push((step, node.node.clone(), node.address.clone()));
                        }
                    }
                }
            }
        }
        for record in records {
            self.report(report::Kind::Step(record));
        }
        for (step, kept) in late {
            tracing::info!(step = name(&step), "a step's time limit is over");
            if let Err(error) = self.store.put_step((step.job, step.attempt), step.step, &kept) {
                tracing::error!(%error, "the store can't be written");
            }
            self.signal_everywhere(step, libc::SIGTERM as u32, TIME_LIMIT);
        }
        for step in kill {
            self.signal_everywhere(step, libc::SIGKILL as u32, TIME_LIMIT);
        }
        for key in retry {
            self.retry_waiting(key);
        }
        for (step, node, address) in look {
            if node == me {
                self.part_missing(step, node);
                continue;
            }
            let (peer, sender) = (self.peer(&node, &address), self.me.clone());
            self.setup.runtime.spawn(async move {
                if matches!(peer.has_part(step).await, Ok(false)) {
                    let _ = sender.send(super::Message::PartMissing { key: step, node });
                }
            });
        }
    }
}
