//! This node's parts of steps: their folders, their supervisors, their ends.

use super::attempt::batch;
use super::{After, Caller, Message, Owner, Process, name};
use crate::part::{self, Commands, Event};
use crate::{cgroup, spool};
use prost::Message as _;
use sluice_identity::client::{Authorized, Endpoint, Tokens};
use sluice_identity::credential::VerifiedGrant;
use sluice_model::StepId;
use sluice_proto::v1::{
    ExitStatus, JobCredential, StepKey, StepPartEndedRequest, StepRecord, SupervisorExit, SupervisorSpec, Terminate,
    supervisor_command,
};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tonic::Status;

/// How often a supervisor that is gone without a last word is started again, to say so.
const RESTARTS: u32 = 3;

pub struct Part {
    commands: Option<Commands>,
    pids: Vec<u32>,
    ranks: Vec<u32>,
    restarts: u32,
    over: bool,
    /// Its end has been announced in its output.
    noticed: bool,
    /// Dropped with the part: by then the step manager knows of its end.
    waiters: Vec<oneshot::Sender<()>>,
}

impl Part {
    pub fn new(ranks: Vec<u32>) -> Part {
        Part { commands: None, pids: Vec::new(), ranks, restarts: 0, over: false, noticed: false, waiters: Vec::new() }
    }
    pub fn is_over(&self) -> bool {
        self.over
    }
    pub fn send(&self, command: supervisor_command::Kind) {
        if let Some(commands) = &self.commands {
            // Its supervisor has ended meanwhile.
            let _ = commands.send(command);
        }
    }
    /// Says in the output why it ends, as Slurm does: once, and of a step only where its first task is.
    pub fn notice(&mut self, what: &str, node: &str, why: &str) {
        if self.over || std::mem::replace(&mut self.noticed, true) || !self.ranks.contains(&0) {
            return;
        }
        self.send(supervisor_command::Kind::Notify(crate::supervise::notice(what, node, why).into()));
    }
    /// SIGTERM unless it has had one, and SIGKILL when its time is over.
    pub fn end(&self, job_over: bool) {
        self.send(supervisor_command::Kind::Terminate(Terminate { again: false, then_kill: true, job_over }));
    }
    /// The order of the controller to end what can end by itself.
    pub fn terminate(&self) {
        self.send(supervisor_command::Kind::Terminate(Terminate { again: true, ..Terminate::default() }));
    }
    /// `waiter` is dropped when the step manager knows of the end.
    pub fn wait_told(&mut self, waiter: oneshot::Sender<()>) {
        self.waiters.push(waiter);
    }
    pub fn kill(&self) {
        self.send(supervisor_command::Kind::KillAll(true));
    }
}

fn internal(what: &str, error: &std::io::Error) -> Status {
    Status::internal(format!("{what}: {error}"))
}

impl Owner {
    fn part(&mut self, key: &StepKey) -> Option<&mut Part> {
        self.attempts.get_mut(&(key.job, key.attempt))?.parts.get_mut(&key.step)
    }

    fn part_dir(&self, key: &StepKey) -> PathBuf {
        spool::attempt_dir(&self.jobs, key.job, key.attempt).join(spool::step_name(key.step))
    }

    /// Makes the folder of a part with everything that its supervisor needs.
    pub(super) fn prepare_part(
        &mut self,
        key: StepKey,
        mut spec: SupervisorSpec,
        durable: bool,
    ) -> std::io::Result<()> {
        let dir = self.part_dir(&key);
        spool::make_dir(&dir)?;
        spec.switch_user = nix::unistd::geteuid().is_root();
        spec.best_effort = self.config.best_effort;
        spec.kill_wait_secs = self.config.kill_wait_secs;
        if let Some(job) = self.job_group((key.job, key.attempt)) {
            match cgroup::make(&job) {
                Ok(()) => cgroup::enable(&job),
                Err(_) if spec.best_effort => {}
                Err(error) => return Err(error),
            }
            let step = job.join(format!("step_{}", spool::step_name(key.step)));
            spec.cgroup = Some(step.as_os_str().as_bytes().to_vec().into());
        }
        let ranks = spec.tasks.iter().map(|t| t.rank).collect();
        spool::write_file(&dir, spool::SPEC, &spec.encode_to_vec(), durable)?;
        if let Some(attempt) = self.attempts.get_mut(&(key.job, key.attempt)) {
            attempt.parts.insert(key.step, Part::new(ranks));
        }
        Ok(())
    }

    /// Starts the supervisor of a prepared part.
    pub(super) fn spawn_part(&mut self, key: StepKey) {
        let dir = self.part_dir(&key);
        match part::start(&dir) {
            Ok(child) => self.watch_part(key, Some(child)),
            Err(error) => {
                tracing::error!(step = name(&key), %error, "no supervisor could be started");
                self.part_event(key, Event::Lost);
            }
        }
    }

    pub(super) fn watch_part(&mut self, key: StepKey, child: Option<std::process::Child>) {
        let me = self.me.clone();
        let tell = move |event| {
            // The daemon is ending; the next one asks again.
            let _ = me.send(Message::Part { key, event });
        };
        let commands = part::watch(&self.setup.runtime, self.part_dir(&key), child, tell);
        let ending = self.attempts.get(&(key.job, key.attempt)).is_some_and(|a| a.ending.is_some());
        if let Some(part) = self.part(&key) {
            part.commands = Some(commands);
            if ending {
                part.end(true);
            }
        }
    }

    pub(super) fn part_event(&mut self, key: StepKey, event: Event) {
        match event {
            Event::Started(pids) => {
                if let Some(part) = self.part(&key) {
                    part.pids = pids;
                }
            }
            Event::Ended(exit) => self.part_over(key, *exit),
            Event::Lost => {
                let Some(part) = self.part(&key) else { return };
                part.commands = None;
                part.restarts += 1;
                if part.restarts <= RESTARTS {
                    // A supervisor started on this folder again runs nothing twice: it records what is known.
                    self.after.push(After::Start(key));
                    return;
                }
                let exit = SupervisorExit {
                    key: Some(key),
                    worst: Some(ExitStatus { code: 1, signal: 0 }),
                    end: sluice_identity::now_ms(),
                    failure: Some(format!("no supervisor of step {} could be started on this node", name(&key))),
                    node_fault: true,
                    ..SupervisorExit::default()
                };
                self.part_over(key, exit);
            }
        }
    }

    fn part_over(&mut self, key: StepKey, exit: SupervisorExit) {
        let attempt_key = (key.job, key.attempt);
        let Some(part) = self.part(&key) else { return };
        if std::mem::replace(&mut part.over, true) {
            return;
        }
        part.commands = None;
        if key.step == batch() {
            self.batch_ended(attempt_key, &exit);
        } else {
            self.tell_manager(key, &exit);
        }
        self.settle_ending(attempt_key);
    }

    /// The step manager hears of the end of this part: here at once, elsewhere until it answers.
    fn tell_manager(&mut self, key: StepKey, exit: &SupervisorExit) {
        let Some(attempt) = self.attempts.get(&(key.job, key.attempt)) else { return };
        let request = StepPartEndedRequest {
            key: Some(key),
            node: self.setup.site.node.clone(),
            worst: exit.worst,
            usage: exit.usage,
            cancelled: exit.cancelled,
            end: exit.end,
            spread: exit.spread.clone(),
        };
        if attempt.manager.is_some() {
            self.part_ended(request);
            return self.part_told(key);
        }
        let first = attempt.job.allocation.nodes.first().map(|n| n.node.to_string()).unwrap_or_default();
        let address = attempt.job.body.addresses.first().cloned().unwrap_or_default();
        let peer = self.peer(&first, &address);
        let me = self.me.clone();
        self.setup.runtime.spawn(async move {
            // Beyond this the job is over and its end has been settled without this word.
            for attempt in 0..120u32 {
                match peer.part_ended(request.clone()).await {
                    Ok(()) => break,
                    Err(status) => tracing::debug!(%status, "the step manager does not answer"),
                }
                tokio::time::sleep(Duration::from_millis(u64::from((attempt + 1).min(40)) * 50)).await;
            }
            let _ = me.send(Message::PartTold { key });
        });
    }

    pub(super) fn peer(&self, node: &str, address: &str) -> Peer {
        Peer {
            endpoint: Endpoint::tls(address, node, &self.setup.keys.cluster().ca_pem),
            tokens: Tokens::Node { keys: self.setup.keys.clone(), audience: node.to_owned() },
        }
    }

    pub(super) fn part_told(&mut self, key: StepKey) {
        let dir = self.part_dir(&key);
        if let Some(attempt) = self.attempts.get_mut(&(key.job, key.attempt)) {
            attempt.parts.remove(&key.step);
            attempt.told.push_back((Instant::now(), key.step));
        }
        // The folder stays: its client may come back for the rest of the output, and the step must not run again.
        if let Err(error) = spool::write_file(&dir, spool::TOLD, b"", false)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!(%error, step = name(&key), "not marked as told");
        }
    }

    /// Answers (by dropping) when this node's part is over and its resources are given back, or was never here.
    pub(super) fn wait_told(&mut self, key: &StepKey, waiter: oneshot::Sender<()>) {
        if let Some(part) = self.part(key) {
            part.wait_told(waiter);
        }
    }

    pub(super) fn start_part(
        &mut self,
        grant: VerifiedGrant,
        credential: JobCredential,
        spec: SupervisorSpec,
    ) -> Result<PathBuf, Status> {
        let key = StepKey::from(&grant.key);
        let attempt_key = (key.job, key.attempt);
        if !matches!(grant.key.step, StepId::Numbered(_)) {
            return Err(Status::invalid_argument("only numbered steps are started by srun"));
        }
        if let Some(lack) = self.isolation_lacks() {
            return Err(Status::failed_precondition(lack));
        }
        self.attempt_of_credential(grant.job, credential)?;
        let dir = self.part_dir(&key);
        match self.attempts.get(&attempt_key) {
            Some(attempt) if attempt.ending.is_some() => {
                return Err(Status::failed_precondition("Job/step already completing or completed"));
            }
            Some(attempt) if attempt.parts.contains_key(&key.step) || dir.exists() => return Ok(dir),
            _ => {}
        }
        self.prepare_part(key, spec, false).map_err(|e| internal("the step could not be recorded", &e))?;
        self.spawn_part(key);
        Ok(dir)
    }

    pub(super) fn find_part(&mut self, key: StepKey, caller: &Caller) -> Result<PathBuf, Status> {
        let attempt = self
            .attempts
            .get(&(key.job, key.attempt))
            .ok_or_else(|| Status::not_found(format!("step {} is not on this node", name(&key))))?;
        if !caller.may_touch(attempt.job.body.uid) {
            return Err(Status::permission_denied("Access/permission denied"));
        }
        let dir = self.part_dir(&key);
        if !dir.exists() {
            return Err(Status::not_found(format!("step {} is not on this node", name(&key))));
        }
        Ok(dir)
    }

    pub(super) fn list_steps(
        &self,
        job: Option<u32>,
        step: Option<u32>,
        caller: &Caller,
    ) -> (Vec<Process>, Vec<StepRecord>) {
        let (mut processes, mut records) = (Vec::new(), Vec::new());
        for ((id, number), attempt) in &self.attempts {
            let visible = caller.may_touch(attempt.job.body.uid) || matches!(caller, Caller::Node(_));
            if job.is_some_and(|j| j != *id) || !visible {
                continue;
            }
            // To the step manager a part that is over is still one: its end is on its way.
            let shown = |p: &Part| !p.over || matches!(caller, Caller::Node(_));
            for (part_step, part) in
                attempt.parts.iter().filter(|(s, p)| step.is_none_or(|only| only == **s) && shown(p))
            {
                let key = StepKey { job: *id, attempt: *number, step: *part_step };
                for (i, task) in part.ranks.iter().enumerate() {
                    processes.push(Process { key, task: *task, pid: part.pids.get(i).copied().unwrap_or(0) });
                }
            }
            if let Some(manager) = &attempt.manager {
                let steps = manager.running.iter().filter(|(s, _)| step.is_none_or(|only| only == **s));
                records.extend(steps.filter_map(|(_, m)| m.kept.record.clone()));
            }
        }
        (processes, records)
    }
}

/// Another node's step service.
#[derive(Clone)]
pub struct Peer {
    endpoint: Endpoint,
    tokens: Tokens,
}

impl Peer {
    async fn connect(&self) -> Result<Authorized, Status> {
        let connected = Authorized::connect(&self.endpoint, self.tokens.clone());
        match tokio::time::timeout(Duration::from_secs(5), connected).await {
            Ok(Ok(authorized)) => Ok(authorized),
            Ok(Err(error)) => Err(Status::unavailable(error.to_string())),
            Err(_) => Err(Status::deadline_exceeded(format!("{} does not answer", self.endpoint))),
        }
    }

    async fn part_ended(&self, request: StepPartEndedRequest) -> Result<(), Status> {
        let mut client = self.connect().await?.node_steps();
        with_deadline(client.step_part_ended(request)).await.map(|_| ())
    }

    pub async fn signal(&self, key: StepKey, signal: u32, time_limit: bool) -> Result<(), Status> {
        let mut client = self.connect().await?.node_steps();
        let request = sluice_proto::v1::SignalStepRequest { key: Some(key), signal, time_limit };
        with_deadline(client.signal_step(request)).await.map(|_| ())
    }

    /// Whether the node has a part of the step.
    pub async fn has_part(&self, key: StepKey) -> Result<bool, Status> {
        let mut client = self.connect().await?.node_steps();
        let request = sluice_proto::v1::ListStepsRequest { job: Some(key.job), step: Some(key.step) };
        let reply = with_deadline(client.list_steps(request)).await?.into_inner();
        Ok(reply.processes.iter().any(|p| p.key == Some(key)))
    }
}

async fn with_deadline<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    tokio::time::timeout(Duration::from_secs(10), call)
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer within 10 s")))
}
