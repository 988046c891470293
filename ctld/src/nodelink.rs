//! The controller's end of the node links: one stream per node daemon. A link carries orders out and reports in; it
//! decides nothing. Reports are acknowledged once what they say is durable.

use crate::context::Context;
use crate::owner::{Pending, wall_clock};
use crate::records::Health;
use sluice_engine::command::{LaunchFailure, LaunchFailureKind};
use sluice_engine::{Command, Reject};
use sluice_identity::server::Peer;
use sluice_model::config::ClusterConfig;
use sluice_model::{JobId, NodeName};
use sluice_proto::v1::{self, controller_message, node_message, report};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

type Outgoing = mpsc::UnboundedSender<Result<v1::ControllerMessage, Status>>;

struct Link {
    serial: u64,
    outgoing: Outgoing,
    health: Option<Health>,
    heard: Instant,
}

/// All connected nodes.
#[derive(Default)]
pub struct Links {
    links: Mutex<BTreeMap<NodeName, Link>>,
}

impl Links {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<NodeName, Link>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False when the node isn't connected; what it should have been told follows from the state when it registers.
    pub fn send(&self, node: &NodeName, kind: controller_message::Kind) -> bool {
        let links = self.lock();
        links.get(node).is_some_and(|l| l.outgoing.send(Ok(v1::ControllerMessage { kind: Some(kind) })).is_ok())
    }

    pub fn connected(&self) -> Vec<NodeName> {
        self.lock().keys().cloned().collect()
    }

    pub fn is_connected(&self, node: &NodeName) -> bool {
        self.lock().contains_key(node)
    }

    pub fn health(&self, node: &NodeName) -> Option<Health> {
        self.lock().get(node).and_then(|l| l.health)
    }

    fn insert(&self, node: &NodeName, link: Link) {
        self.lock().insert(node.clone(), link);
    }

    fn heard(&self, node: &NodeName, serial: u64, health: Option<Health>) {
        if let Some(link) = self.lock().get_mut(node)
            && link.serial == serial
        {
            link.heard = Instant::now();
            link.health = health.or(link.health);
        }
    }

    /// True when this very link was the current one.
    fn remove(&self, node: &NodeName, serial: u64) -> bool {
        let mut links = self.lock();
        if links.get(node).is_some_and(|l| l.serial == serial) {
            links.remove(node);
            return true;
        }
        false
    }

    /// Ends all links: the controller stops.
    pub fn close_all(&self) {
        self.lock().clear();
    }

    /// Closes links that were silent for longer than `limit`.
    pub fn close_silent(&self, limit: Duration) -> Vec<NodeName> {
        let mut links = self.lock();
        let silent: Vec<NodeName> =
            links.iter().filter(|(_, l)| l.heard.elapsed() > limit).map(|(name, _)| name.clone()).collect();
        for name in &silent {
            links.remove(name);
        }
        silent
    }
}

/// What a node needs to know of the configuration.
pub fn node_config(config: &ClusterConfig, node: &NodeName) -> Option<v1::NodeConfig> {
    let spec = config.nodes.iter().find(|n| n.name == *node)?;
    Some(v1::NodeConfig {
        cluster: config.cluster_name.clone(),
        heartbeat_secs: config.timing.heartbeat_secs,
        kill_wait_secs: config.timing.kill_wait_secs,
        best_effort: config.security.best_effort,
        cpus: spec.cpus,
        memory_mb: spec.memory_mb,
        gres: spec.gres.iter().map(v1::GresSpec::from).collect(),
        sockets: spec.sockets,
        cores_per_socket: spec.cores_per_socket,
        threads_per_core: spec.threads_per_core,
    })
}

/// The gRPC service.
pub struct NodeLinkService {
    pub context: Arc<Context>,
}

#[tonic::async_trait]
impl v1::node_link_server::NodeLink for NodeLinkService {
    type LinkStream = UnboundedReceiverStream<Result<v1::ControllerMessage, Status>>;

    async fn link(&self, request: Request<Streaming<v1::NodeMessage>>) -> Result<Response<Self::LinkStream>, Status> {
        let peer = self.context.peer(&request)?;
        let mut incoming = request.into_inner();
        let first = tokio::time::timeout(Duration::from_secs(10), incoming.message())
            .await
            .map_err(|_| Status::deadline_exceeded("no registration within 10 seconds"))??;
        let Some(v1::NodeMessage { kind: Some(node_message::Kind::Register(register)) }) = first else {
            return Err(Status::invalid_argument("the first message of a node link must be a registration"));
        };
        self.admit(&peer, &register.node)?;
        let node = NodeName::new(&register.node);
        let state = self.context.published.state();
        let config = state.config.as_ref().ok_or_else(|| Status::unavailable("no configuration yet"))?;
        let Some(config) = node_config(config, &node) else {
            return Err(Status::not_found(format!("no node is called {node} in the configuration")));
        };
        let mut report = register.report.clone().unwrap_or_default();
        if register.declared {
            // A node that stands in for the hardware it is declared to have.
            report.cpus = config.cpus;
            report.memory_mb = config.memory_mb;
            report.gres = config.gres.clone();
        }
        let report = v1::NodeReport::try_into(report)
            .map_err(|error: sluice_proto::convert::ConvertError| Status::invalid_argument(error.to_string()))?;

        let (outgoing, receiver) = mpsc::unbounded_channel();
        let serial = self.context.next_serial();
        let welcome = v1::Welcome { config: Some(config) };
        let welcome = v1::ControllerMessage { kind: Some(controller_message::Kind::Welcome(welcome)) };
        // The receiver is still here.
        let _ = outgoing.send(Ok(welcome));
        // First the link, then the registration: its effects (launches owed) go over this link.
        let link = Link { serial, outgoing: outgoing.clone(), health: None, heard: Instant::now() };
        self.context.links.insert(&node, link);
        let holds = register.holds.iter().map(|h| (JobId(h.job), h.attempt)).collect();
        let command = Command::NodeRegister { node: node.clone(), report: Box::new(report), holds };
        if let Err(reject) = self.context.owner.command(command).await {
            self.context.links.remove(&node, serial);
            return Err(crate::rpc::status(&reject));
        }
        tracing::info!(%node, address = register.report.as_ref().map_or("", |r| r.address.as_str()), "node registered");
        self.context.node_came();
        tokio::spawn(serve(Arc::clone(&self.context), node, serial, incoming, outgoing));
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

impl NodeLinkService {
    /// A node can only speak for itself; on this host only the controller's own user or root can be its daemon.
    fn admit(&self, peer: &Peer, node: &str) -> Result<(), Status> {
        let ok = match peer {
            Peer::Local { uid, .. } => *uid == 0 || *uid == nix::unistd::geteuid().as_raw(),
            Peer::Node { host } => host == node,
            Peer::User { .. } => false,
        };
        if ok {
            return Ok(());
        }
        tracing::warn!(target: "audit", ?peer, node, "a node link was refused");
        Err(Status::permission_denied(format!("{peer:?} may not speak for node {node}")))
    }
}

async fn serve(
    context: Arc<Context>,
    node: NodeName,
    serial: u64,
    mut incoming: Streaming<v1::NodeMessage>,
    outgoing: Outgoing,
) {
    // Reports go to the owner in order, without waiting for each to be durable: a batch of them shares one flush. They
    // are acknowledged in order by a task of their own; it ends at the first one that must be sent again.
    let (taken, mut waiting) = mpsc::unbounded_channel::<(u64, Option<Pending>)>();
    let acknowledge = async {
        while let Some((sequence, pending)) = waiting.recv().await {
            if let Some(pending) = pending
                && !settled(pending.outcome().await)
            {
                break;
            }
            let ack = controller_message::Kind::Ack(v1::Ack { sequence });
            if outgoing.send(Ok(v1::ControllerMessage { kind: Some(ack) })).is_err() {
                break;
            }
        }
    };
    let receive = async {
        loop {
            let message = match incoming.message().await {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(status) => {
                    tracing::debug!(%node, %status, "node link ended");
                    break;
                }
            };
            match message.kind {
                Some(node_message::Kind::Heartbeat(h)) => {
                    let health =
                        Health { cpu_load_hundredths: h.cpu_load_hundredths, free_memory_mb: h.free_memory_mb };
                    context.links.heard(&node, serial, Some(health));
                    // Word of an older link's end may have come after this one's registration. A node that speaks
                    // responds: it registers again.
                    let state = context.published.state();
                    if state.nodes.get(&node).is_some_and(|n| n.flags.not_responding) {
                        tracing::info!(%node, "the node responds after all; it is asked to register again");
                        break;
                    }
                }
                Some(node_message::Kind::Report(report)) => {
                    context.links.heard(&node, serial, None);
                    let sequence = report.sequence;
                    let pending = match command(&node, report) {
                        Some(command) => match context.owner.enqueue(command, Vec::new()).await {
                            Ok(pending) => Some(pending),
                            Err(_) => break,
                        },
                        None => None,
                    };
                    if taken.send((sequence, pending)).is_err() {
                        break;
                    }
                }
                Some(node_message::Kind::Register(_)) | None => {
                    tracing::warn!(%node, "unexpected message on a node link");
                    break;
                }
            }
        }
    };
    tokio::select! {
        () = receive => {}
        () = acknowledge => {}
        // The node connects again when the next controller is there; nothing is said about its health.
        () = context.stopping() => return,
    }
    if context.links.remove(&node, serial) {
        tracing::info!(%node, "node link lost");
        if let Err(reject) = context.owner.command(Command::NodeSilent { node: node.clone() }).await {
            tracing::warn!(%node, "could not note the silence of the node: {}", reject.message());
        }
    }
}

/// False when the report must be sent again: it is not durable. Closing the link makes the node do that.
fn settled(outcome: Result<sluice_engine::command::Reply, Reject>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Reject::StorageFull { .. } | Reject::Internal { .. }) => false,
        Err(reject) => {
            // A report on something that is over: nothing will change by sending it again.
            tracing::debug!("a node's report was not needed: {}", reject.message());
            true
        }
    }
}

/// What a report says to the engine. None: nothing that could be used.
fn command(node: &NodeName, report: v1::Report) -> Option<Command> {
    let node = node.clone();
    Some(match report.kind? {
        report::Kind::Confirmed(c) => Command::AttemptConfirmed { node, job: JobId(c.job), attempt: c.attempt },
        report::Kind::BatchEnded(b) => {
            let kind = if b.node_fault { LaunchFailureKind::Node } else { LaunchFailureKind::Job };
            Command::BatchEnded {
                node,
                job: JobId(b.job),
                attempt: b.attempt,
                exit: b.exit.map(|e| e.try_into().unwrap_or_default()).unwrap_or_default(),
                usage: b.usage.map(|u| u.try_into().unwrap_or_default()).unwrap_or_default(),
                failure: b.failure.map(|detail| LaunchFailure { kind, detail }),
            }
        }
        report::Kind::Gone(g) => Command::AttemptGone { node, job: JobId(g.job), attempt: g.attempt },
        report::Kind::Step(step) => match step.try_into() {
            Ok(step) => Command::StepReport { node, step: Box::new(step) },
            Err(error) => {
                tracing::warn!(%node, %error, "an unreadable step record was dropped");
                return None;
            }
        },
    })
}

/// Watches for nodes that fell silent without closing their link, and for nodes that did not come back after a start.
pub async fn watch_silence(context: Arc<Context>) {
    let started = wall_clock();
    let mut checked_start = false;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let state = context.published.state();
        let Some(config) = state.config.as_ref() else { continue };
        let heartbeat = Duration::from_secs(u64::from(config.timing.heartbeat_secs.max(1)));
        let mut silent = context.links.close_silent(heartbeat * 3 + Duration::from_secs(5));
        if !checked_start && wall_clock().since(started) > heartbeat + Duration::from_secs(5) {
            checked_start = true;
            silent.extend(
                state
                    .nodes
                    .iter()
                    .filter(|(name, n)| {
                        !n.flags.unknown && !n.flags.not_responding && !context.links.is_connected(name)
                    })
                    .map(|(name, _)| name.clone()),
            );
        }
        for node in silent.into_iter().filter(|node| !context.links.is_connected(node)) {
            tracing::warn!(%node, "node does not respond");
            if context.owner.command(Command::NodeSilent { node }).await.is_err() {
                tracing::warn!("could not note the silence of a node");
            }
        }
    }
}
