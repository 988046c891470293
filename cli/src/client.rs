//! The connection to the controller.
//!
//! Owns reaching it (its Unix socket when it runs here, else TLS with a token of the local agent), deadlines, and
//! retries that let a command survive a controller that is being restarted. Promises that a request which may already
//! have been carried out is sent again only when that is harmless.

pub mod answer;

use crate::client_config::{self, ClientConfig};
use crate::error::CallError;
use sluice_identity::client::{Authorized, Endpoint, Tokens};
use sluice_proto::v1;
use sluice_proto::v1::controller_client::ControllerClient;
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tonic::Status;

/// How long a command goes on trying to reach its controller (Slurm's MessageTimeout).
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long it does so in silence.
const NOTICE_AFTER: Duration = Duration::from_secs(2);

/// The controller's service as commands call it.
pub type Controller = ControllerClient<Authorized>;

/// Runs a command's async part on the one thread there is.
pub fn block_on<F: Future>(future: F) -> F::Output {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(e) => {
            crate::errln!("sluice: error: cannot start: {e}");
            std::process::exit(1);
        }
    }
}

/// May a request be sent again after its answer was lost?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Reads: the answer comes out of what is published, or soon is not worth waiting for.
    Read,
    /// Changes that are harmless when repeated.
    Harmless,
    /// Changes that the controller knows again and does once, however often they are sent.
    Keyed,
    /// Only while it has certainly not been received.
    Unsent,
}

/// A command's way to the controller. Connects at the first call.
pub struct Client {
    pub config: ClientConfig,
    patience: Duration,
    link: Option<Authorized>,
}

impl Client {
    /// Reads the client configuration; connects later.
    pub fn new() -> Result<Client, CallError> {
        Ok(Client { config: client_config::load()?, patience: patience(), link: None })
    }

    /// Another user of the same connection.
    pub fn sibling(&self) -> Client {
        Client { config: self.config.clone(), patience: self.patience, link: self.link.clone() }
    }

    /// For what must get through even if the controller is away for longer (the end of an allocation).
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Calls the controller: `client.call(Retry::Read, async |mut c| c.ping(v1::Empty {}).await)`.
    pub async fn call<T>(
        &mut self,
        retry: Retry,
        request: impl AsyncFn(Controller) -> Result<tonic::Response<T>, Status>,
    ) -> Result<T, CallError> {
        self.call_service(retry, async |service: Authorized| request(service.controller()).await).await
    }

    /// As `call`, with the service itself: for messages that the caller reads from the wire.
    pub async fn call_service<T>(
        &mut self,
        retry: Retry,
        request: impl AsyncFn(Authorized) -> Result<tonic::Response<T>, Status>,
    ) -> Result<T, CallError> {
        let mut give_up = Instant::now() + self.patience;
        let mut notice = Notice { at: tokio::time::Instant::now() + NOTICE_AFTER };
        let mut pause = Duration::from_millis(20);
        let mut lost = false;
        loop {
            let error = match notice.during(self.service()).await {
                Err(error @ CallError::Unreachable { .. }) => error,
                Err(error) => return Err(error),
                Ok(service) => match answer::within(retry, request(service)).await {
                    Ok(Ok(response)) => return Ok(response.into_inner()),
                    Ok(Err(status)) => {
                        let error = CallError::from_status(&status);
                        if !matches!(error, CallError::NoAnswer { .. }) {
                            return Err(error);
                        }
                        self.link = None;
                        match retry {
                            Retry::Unsent if !never_sent(&status) => return Err(error),
                            Retry::Keyed if !never_sent(&status) && !lost => {
                                lost = true;
                                // It may have been worked on for long; the patience is for what comes now.
                                give_up = Instant::now() + self.patience;
                                let name = crate::commands::called();
                                crate::errln!(
                                    "{name}: error: slurm controller went away before it answered: asking again"
                                );
                            }
                            _ => {}
                        }
                        error
                    }
                    Err(problem) => return Err(CallError::NoAnswer { problem }),
                },
            };
            if Instant::now() + pause >= give_up {
                return Err(error);
            }
            notice.during(tokio::time::sleep(pause)).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// All jobs that the request selects, in the order sent.
    pub async fn list_jobs(&mut self, request: v1::ListJobsRequest) -> Result<v1::JobList, CallError> {
        self.call(Retry::Read, async |mut c: Controller| {
            let stream = c.list_jobs(request.clone()).await?.into_inner();
            Ok(tonic::Response::new(gather(stream).await?))
        })
        .await
    }

    /// Live and finished jobs, for accounting.
    pub async fn list_history(&mut self, request: v1::HistoryRequest) -> Result<v1::JobList, CallError> {
        self.call(Retry::Read, async |mut c: Controller| {
            let stream = c.list_history(request.clone()).await?.into_inner();
            Ok(tonic::Response::new(gather(stream).await?))
        })
        .await
    }

    /// The service, connected.
    async fn service(&mut self) -> Result<Authorized, CallError> {
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(connect(&self.config).await?),
        };
        Ok(link.clone())
    }
}

/// Says once in the life of a command that its controller is away and that it goes on trying.
struct Notice {
    at: tokio::time::Instant,
}

impl Notice {
    /// `waiting` is time during which the controller is not reached: not that in which it works on its answer.
    async fn during<F: Future>(&mut self, waiting: F) -> F::Output {
        static SAID: AtomicBool = AtomicBool::new(false);
        let mut waiting = std::pin::pin!(waiting);
        if !SAID.load(Ordering::Relaxed) {
            tokio::select! {
                biased;
                done = &mut waiting => return done,
                () = tokio::time::sleep_until(self.at) => {}
            }
            if !SAID.swap(true, Ordering::Relaxed) {
                let name = crate::commands::called();
                crate::errln!("{name}: error: Unable to contact slurm controller: retrying");
            }
        }
        waiting.await
    }
}

/// `SLUICE_CONNECT_TIMEOUT` (seconds) overrides how long a command tries to reach the controller.
fn patience() -> Duration {
    seconds_of("SLUICE_CONNECT_TIMEOUT").unwrap_or(PATIENCE)
}

fn seconds_of(variable: &str) -> Option<Duration> {
    let asked = std::env::var(variable).ok().and_then(|v| v.parse::<u32>().ok());
    asked.map(|secs| Duration::from_secs(u64::from(secs)))
}

/// The connection was refused before the request left.
fn never_sent(status: &Status) -> bool {
    use std::error::Error as _;
    // tonic's words for a channel that could not take the request.
    if status.message().starts_with("Service was not ready") {
        return true;
    }
    let mut source = status.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return matches!(io.kind(), std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound);
        }
        source = error.source();
    }
    false
}

async fn gather(mut stream: tonic::Streaming<v1::JobList>) -> Result<v1::JobList, Status> {
    let mut all = v1::JobList::default();
    while let Some(part) = stream.message().await? {
        answer::heard();
        all.jobs.extend(part.jobs);
        all.now = part.now;
        all.unknown_id |= part.unknown_id;
    }
    Ok(all)
}

/// The controller's socket when it is on this host and answers, else TLS.
async fn connect(config: &ClientConfig) -> Result<Authorized, CallError> {
    let mut problem = String::new();
    if let Some(socket) = &config.socket {
        match Authorized::connect(&Endpoint::Unix(socket.clone()), Tokens::None).await {
            Ok(link) => return Ok(link),
            Err(e) => problem = e.to_string(),
        }
    }
    let (Some(addr), Some(agent)) = (&config.controller, agent(config)) else {
        return Err(CallError::Unreachable { problem });
    };
    let endpoint = Endpoint::tls(addr, sluice_identity::CONTROLLER, &ca_pem(config)?);
    let tokens = Tokens::Agent { socket: agent, audience: sluice_identity::CONTROLLER.to_owned() };
    Authorized::connect(&endpoint, tokens).await.map_err(|e| match problem.is_empty() {
        true => CallError::Unreachable { problem: e.to_string() },
        false => CallError::Unreachable { problem: format!("{problem}; {e}") },
    })
}

/// Who vouches for us: the host's agent, or inside a job the node daemon.
fn agent(config: &ClientConfig) -> Option<PathBuf> {
    let configured = config.agent.clone().filter(|path| path.exists());
    configured.or_else(|| std::env::var_os("SLUICE_NODE_SOCKET").map(PathBuf::from)).or_else(|| config.agent.clone())
}

fn ca_pem(config: &ClientConfig) -> Result<String, CallError> {
    let missing = |problem: String| CallError::BadConfig { path: config.path.clone(), problem };
    let path = config.ca.as_ref().ok_or_else(|| missing("`ca` is needed for TLS".to_owned()))?;
    std::fs::read_to_string(path).map_err(|e| missing(format!("ca = {}: {e}", path.display())))
}

/// A node daemon as srun and scancel call it.
pub type NodeSteps = sluice_proto::v1::node_steps_client::NodeStepsClient<Authorized>;

/// Connects to the daemon of a node: over its socket when this process runs in a job there, else over TLS.
pub async fn connect_node(config: &ClientConfig, node: &str, address: &str) -> Result<NodeSteps, CallError> {
    let here = std::env::var_os("SLURMD_NODENAME").is_some_and(|name| name == node);
    if let Some(socket) = std::env::var_os("SLUICE_NODE_SOCKET").filter(|_| here) {
        let endpoint = Endpoint::Unix(PathBuf::from(socket));
        if let Ok(link) = Authorized::connect(&endpoint, Tokens::None).await {
            return Ok(link.node_steps());
        }
    }
    let problem = |e: String| CallError::Unreachable { problem: format!("node {node}: {e}") };
    let socket = agent(config).ok_or_else(|| problem("no agent on this host".to_owned()))?;
    let endpoint = Endpoint::tls(address, node, &ca_pem(config)?);
    let tokens = Tokens::Agent { socket, audience: node.to_owned() };
    Ok(Authorized::connect(&endpoint, tokens).await.map_err(|e| problem(e.to_string()))?.node_steps())
}
