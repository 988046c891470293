//! The owner: one thread that holds everything the daemon knows, and decides.
//!
//! Messages come in from the link, the step service and the supervisors' connections. They are taken in batches; what
//! a batch must not forget is committed once, and only then follow replies, reports and new processes. Promises:
//! nothing of an attempt runs before its launch is on disk; an attempt that is over never runs again; every end is in
//! the outbox before its folder goes. Synchronous on purpose: no state is shared, nothing is awaited.

mod attempt;
mod orders;
mod parts;
mod record;
mod recover;
mod steps;

use crate::admitted::{self, Admitted};
use crate::cgroup::Tree;
use crate::launch::env::Site;
use crate::store::{Attempt as AttemptKey, Store};
use crate::{part, spool};
use attempt::Attempt;
use sluice_identity::HostKeys;
use sluice_identity::credential::VerifiedGrant;
use sluice_proto::v1::{
    CreateStepReply, HeldAttempt, JobCredential, NodeConfig, NodeMessage, NodeReport, Register, StepKey,
    StepPartEndedRequest, StepRecord, StepRequest, SupervisorSpec, controller_message, node_message, report,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Who asks, as the step service proved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    User(u32),
    /// Another node's daemon.
    Node(String),
}

impl Caller {
    /// Root, the daemon's own user, or the job's owner.
    fn may_touch(&self, uid: u32) -> bool {
        matches!(self, Caller::User(u) if *u == uid || *u == 0)
    }
}

pub type Reply<T> = oneshot::Sender<Result<T, Status>>;

/// A process of a step here.
#[derive(Clone, Debug)]
pub struct Process {
    pub key: StepKey,
    pub task: u32,
    /// 0: not started yet.
    pub pid: u32,
}

pub enum Message {
    /// A link to the controller is open: what goes into `out` is sent there.
    LinkUp {
        serial: u64,
        out: mpsc::UnboundedSender<NodeMessage>,
    },
    LinkDown {
        serial: u64,
    },
    Controller(Box<controller_message::Kind>),
    Part {
        key: StepKey,
        event: part::Event,
    },
    CreateStep {
        request: Box<StepRequest>,
        credential: Option<JobCredential>,
        caller: Caller,
        reply: mpsc::UnboundedSender<Result<CreateStepReply, Status>>,
    },
    /// Starts this node's part of a granted step (or finds it); answers with its spool folder.
    StartPart {
        grant: Box<VerifiedGrant>,
        credential: JobCredential,
        spec: Box<SupervisorSpec>,
        reply: Reply<PathBuf>,
    },
    FindPart {
        key: StepKey,
        caller: Caller,
        reply: Reply<PathBuf>,
    },
    /// To the step manager: a node's part is over.
    PartEnded {
        request: StepPartEndedRequest,
        caller: Caller,
        reply: Reply<()>,
    },
    /// The step manager knows of the end of this node's part.
    PartTold {
        key: StepKey,
    },
    /// `waiter` is dropped when this node's part is over for the step manager, too.
    WaitTold {
        key: StepKey,
        waiter: oneshot::Sender<()>,
    },
    /// A node says that it has no part of this step.
    PartMissing {
        key: StepKey,
        node: String,
    },
    SignalStep {
        key: StepKey,
        signal: u32,
        time_limit: bool,
        caller: Caller,
        reply: Reply<()>,
    },
    ListSteps {
        job: Option<u32>,
        step: Option<u32>,
        caller: Caller,
        reply: Reply<(Vec<Process>, Vec<StepRecord>)>,
    },
    Tick,
    /// Ends the thread; jobs go on.
    Stop,
}

/// What is put off until the batch is on disk.
enum After {
    Do(Box<dyn FnOnce() + Send>),
    Start(StepKey),
    Send(Box<sluice_proto::v1::Report>),
    Remove(PathBuf),
}

/// What does not change while the daemon runs.
pub struct Setup {
    pub site: Site,
    pub state: PathBuf,
    pub keys: Arc<HostKeys>,
    pub tree: Option<Tree>,
    /// What this host lacks for full isolation.
    pub missing: Vec<String>,
    pub report: NodeReport,
    /// The node stands in for declared hardware.
    pub declared: bool,
    pub runtime: tokio::runtime::Handle,
    pub admitted: Admitted,
}

pub struct Owner {
    setup: Setup,
    jobs: PathBuf,
    store: Store,
    me: mpsc::UnboundedSender<Message>,
    config: NodeConfig,
    attempts: BTreeMap<AttemptKey, Attempt>,
    link: Option<(u64, mpsc::UnboundedSender<NodeMessage>)>,
    after: Vec<After>,
    /// The table of admitted jobs is out of date.
    admitted_stale: bool,
    last_forget: Option<Instant>,
}

/// The name of the file in which the last configuration is kept.
const CONFIG: &str = "config";

impl Owner {
    /// Opens the state and takes up again what was running.
    pub fn open(setup: Setup, me: mpsc::UnboundedSender<Message>) -> std::io::Result<Owner> {
        let jobs = setup.state.join("jobs");
        spool::make_dir(&jobs)?;
        spool::sync_dir(&setup.state)?;
        let store = Store::open(&setup.state.join("store"))?;
        let config = spool::read::<NodeConfig>(&setup.state, CONFIG)?.unwrap_or_default();
        let mut owner = Owner {
            setup,
            jobs,
            store,
            me,
            config,
            attempts: BTreeMap::new(),
            link: None,
            after: Vec::new(),
            admitted_stale: true,
            last_forget: None,
        };
        owner.recover();
        owner.finish_batch()?;
        Ok(owner)
    }

    /// Until `Stop`. An error is a failure to write the state: what is on disk is still true, the process must end.
    pub fn run(mut self, mut messages: mpsc::UnboundedReceiver<Message>) -> std::io::Result<()> {
        while let Some(first) = messages.blocking_recv() {
            let mut next = Some(first);
            let mut taken = 0;
            while let Some(message) = next {
                if matches!(message, Message::Stop) {
                    return self.finish_batch();
                }
                self.handle(message);
                taken += 1;
                next = if taken < 256 { messages.try_recv().ok() } else { None };
            }
            self.finish_batch()?;
        }
        Ok(())
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::LinkUp { serial, out } => self.link_up(serial, out),
            Message::LinkDown { serial } => {
                if self.link.as_ref().is_some_and(|(s, _)| *s == serial) {
                    self.link = None;
                }
            }
            Message::Controller(kind) => self.controller(*kind),
            Message::Part { key, event } => self.part_event(key, event),
            Message::CreateStep { request, credential, caller, reply } => {
                self.create_step(*request, credential, caller, reply);
            }
            Message::StartPart { grant, credential, spec, reply } => {
                let result = self.start_part(*grant, credential, *spec);
                self.answer(reply, result);
            }
            Message::FindPart { key, caller, reply } => {
                let result = self.find_part(key, &caller);
                self.answer(reply, result);
            }
            Message::PartEnded { request, caller, reply } => {
                let result = self.part_ended_from(request, &caller);
                self.answer(reply, result);
            }
            Message::PartTold { key } => self.part_told(key),
            Message::WaitTold { key, waiter } => self.wait_told(&key, waiter),
            Message::PartMissing { key, node } => self.part_missing(key, node),
            Message::SignalStep { key, signal, time_limit, caller, reply } => {
                let result = self.signal_step(key, signal, time_limit, &caller);
                self.answer(reply, result);
            }
            Message::ListSteps { job, step, caller, reply } => {
                let result = self.list_steps(job, step, &caller);
                self.answer(reply, Ok(result));
            }
            Message::Tick => self.tick(),
            Message::Stop => {}
        }
    }

    /// Sends an answer once everything before it is on disk.
    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, result: Result<T, Status>) {
        self.after.push(After::Do(Box::new(move || {
            // Who asked may be gone.
            let _ = reply.send(result);
        })));
    }

    /// Puts a report in the outbox, and on its way once it is on disk there.
    fn report(&mut self, kind: report::Kind) {
        match self.store.report(kind) {
            Ok(report) => self.after.push(After::Send(Box::new(report))),
            // The commit of this batch will fail in the same way and end the process.
            Err(error) => tracing::error!(%error, "the outbox can't be written"),
        }
    }

    /// Commits, then performs what was put off.
    fn finish_batch(&mut self) -> std::io::Result<()> {
        self.store.commit()?;
        if std::mem::take(&mut self.admitted_stale) {
            self.publish_admitted();
        }
        // Starting may put off more (a failure's report): until nothing is left.
        while !self.after.is_empty() {
            for after in std::mem::take(&mut self.after) {
                match after {
                    After::Do(act) => act(),
                    After::Start(key) => self.spawn_part(key),
                    After::Send(report) => {
                        if let Some((_, out)) = &self.link {
                            let message = NodeMessage { kind: Some(node_message::Kind::Report(*report)) };
                            // A link that has just ended: the next one begins with the outbox.
                            let _ = out.send(message);
                        }
                    }
                    After::Remove(dir) => {
                        self.setup.runtime.spawn_blocking(move || {
                            if let Err(error) = std::fs::remove_dir_all(&dir)
                                && error.kind() != std::io::ErrorKind::NotFound
                            {
                                tracing::warn!(dir = %dir.display(), %error, "a finished job's folder stays");
                            }
                        });
                    }
                }
            }
            self.store.commit()?;
        }
        Ok(())
    }

    fn link_up(&mut self, serial: u64, out: mpsc::UnboundedSender<NodeMessage>) {
        let mut holds = self.store.reported_attempts();
        holds.extend(self.attempts.keys());
        let register = Register {
            node: self.setup.site.node.clone(),
            report: Some(self.setup.report.clone()),
            holds: holds.into_iter().map(|(job, attempt)| HeldAttempt { job, attempt }).collect(),
            declared: self.setup.declared,
        };
        // A closed channel means that the link is down again; it says so itself.
        let _ = out.send(NodeMessage { kind: Some(node_message::Kind::Register(register)) });
        for report in self.store.unacknowledged() {
            let _ = out.send(NodeMessage { kind: Some(node_message::Kind::Report(report)) });
        }
        // What this very batch has put off is in the outbox and was sent just now.
        self.after.retain(|a| !matches!(a, After::Send(_)));
        self.link = Some((serial, out));
    }

    fn publish_admitted(&self) {
        let mut table = BTreeMap::new();
        for ((job, _), attempt) in self.attempts.iter().filter(|(_, a)| a.ending.is_none()) {
            let hosts = attempt.job.allocation.names().map(|n| n.to_string()).collect();
            table.insert(*job, admitted::Job { uid: attempt.job.body.uid, gid: attempt.job.body.gid, hosts });
        }
        self.setup.admitted.replace(table);
    }

    fn tick(&mut self) {
        crate::notify::notify("WATCHDOG=1");
        self.tick_steps();
        self.tick_attempts();
        if self.last_forget.is_none_or(|at| at.elapsed().as_secs() > 3600) {
            self.last_forget = Some(Instant::now());
            let day = 86_400_000;
            if let Err(error) = self.store.forget_before(sluice_identity::now_ms() - day) {
                tracing::warn!(%error, "old attempts are not forgotten");
            }
        }
    }
}

fn name(key: &StepKey) -> String {
    format!("{}.{}", key.job, spool::step_name(key.step))
}
