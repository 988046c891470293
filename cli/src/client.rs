//! The connection to the controller.
//!
//! Owns reaching it (its Unix socket when it runs here, else TLS with a token of the local agent), deadlines, and
//! retries that let a command survive a controller that is being restarted. Promises that a request which may already
//! have been carried out is sent again only when that is harmless.

use crate::client_config::{self, ClientConfig};
use crate::error::CallError;
use sluice_proto::v1;
use sluice_proto::v1::controller_client::ControllerClient;
use std::future::Future;
use std::time::{Duration, Instant};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Messages have limits of our own, larger than tonic's 4 MiB: scripts, environments and long lists.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// How long a command goes on trying to reach its controller (Slurm's MessageTimeout).
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long one answer may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(120);
/// The metadata key that carries the caller's token.
const TOKEN_KEY: &str = "sluice-token-bin";

/// The controller's service as commands call it.
pub type Controller = ControllerClient<InterceptedService<Channel, Credentials>>;

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

/// Puts the caller's token on each request. Without one (Unix socket) the kernel says who calls.
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<tonic::metadata::MetadataValue<tonic::metadata::Binary>>,
}

impl Credentials {
    pub fn new(token: Option<&[u8]>) -> Self {
        Credentials { token: token.map(tonic::metadata::MetadataValue::from_bytes) }
    }
}

impl tonic::service::Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert_bin(TOKEN_KEY, token.clone());
        }
        Ok(request)
    }
}

/// May a request be sent again after its answer was lost?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// Reads, and changes that are harmless when repeated.
    Harmless,
    /// Only while it has certainly not been received.
    Unsent,
}

/// A command's way to the controller. Connects at the first call.
pub struct Client {
    pub config: ClientConfig,
    patience: Duration,
    link: Option<Link>,
}

struct Link {
    channel: Channel,
    credentials: Credentials,
    /// When the token must be renewed; None without a token.
    renew: Option<Instant>,
}

impl Client {
    /// Reads the client configuration; connects later.
    pub fn new() -> Result<Client, CallError> {
        Ok(Client { config: client_config::load()?, patience: patience(), link: None })
    }

    /// For what must get through even if the controller is away for longer (the end of an allocation).
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Calls the controller: `client.call(Retry::Harmless, async |mut c| c.ping(v1::Empty {}).await)`.
    pub async fn call<T>(
        &mut self,
        retry: Retry,
        request: impl AsyncFn(Controller) -> Result<tonic::Response<T>, Status>,
    ) -> Result<T, CallError> {
        let give_up = Instant::now() + self.patience;
        let mut pause = Duration::from_millis(20);
        loop {
            let error = match self.controller().await {
                Err(error @ (CallError::Unreachable { .. } | CallError::NoToken { .. })) => error,
                Err(error) => return Err(error),
                Ok(controller) => match tokio::time::timeout(ANSWER_DEADLINE, request(controller)).await {
                    Ok(Ok(response)) => return Ok(response.into_inner()),
                    Ok(Err(status)) => {
                        let error = CallError::from_status(&status);
                        if !matches!(error, CallError::NoAnswer { .. }) {
                            return Err(error);
                        }
                        self.link = None;
                        if retry == Retry::Unsent && !never_sent(&status) {
                            return Err(error);
                        }
                        error
                    }
                    Err(_) => return Err(CallError::NoAnswer { problem: String::new() }),
                },
            };
            if Instant::now() + pause >= give_up {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// All jobs that the request selects, in the order sent.
    pub async fn list_jobs(&mut self, request: v1::ListJobsRequest) -> Result<v1::JobList, CallError> {
        self.call(Retry::Harmless, async |mut c: Controller| {
            let stream = c.list_jobs(request.clone()).await?.into_inner();
            Ok(tonic::Response::new(gather(stream).await?))
        })
        .await
    }

    /// Live and finished jobs, for accounting.
    pub async fn list_history(&mut self, request: v1::HistoryRequest) -> Result<v1::JobList, CallError> {
        self.call(Retry::Harmless, async |mut c: Controller| {
            let stream = c.list_history(request.clone()).await?.into_inner();
            Ok(tonic::Response::new(gather(stream).await?))
        })
        .await
    }

    /// The service, connected, with a token that is good for a while.
    pub async fn controller(&mut self) -> Result<Controller, CallError> {
        let stale = self.link.as_ref().is_none_or(|l| l.renew.is_some_and(|at| Instant::now() >= at));
        if stale {
            self.link = None;
        }
        let link = match &mut self.link {
            Some(link) => link,
            none => none.insert(connect(&self.config).await?),
        };
        Ok(ControllerClient::with_interceptor(link.channel.clone(), link.credentials.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES))
    }
}

/// `SLUICE_CONNECT_TIMEOUT` (seconds) overrides how long a command tries to reach the controller.
fn patience() -> Duration {
    let asked = std::env::var("SLUICE_CONNECT_TIMEOUT").ok().and_then(|v| v.parse::<u32>().ok());
    asked.map_or(PATIENCE, |secs| Duration::from_secs(u64::from(secs)))
}

/// The connection was refused before the request left.
fn never_sent(status: &Status) -> bool {
    use std::error::Error as _;
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
        all.jobs.extend(part.jobs);
        all.now = part.now;
        all.unknown_id |= part.unknown_id;
    }
    Ok(all)
}

async fn connect(config: &ClientConfig) -> Result<Link, CallError> {
    let unreachable = |problem: String| CallError::Unreachable { problem };
    let Some(socket) = &config.socket else {
        return Err(unreachable("this host has no socket of the controller".to_owned()));
    };
    let channel = connect_unix(socket).await.map_err(|e| unreachable(format!("{}: {e}", socket.display())))?;
    Ok(Link { channel, credentials: Credentials::default(), renew: None })
}

/// A channel over a Unix socket; the socket is open when this returns.
pub async fn connect_unix(path: &std::path::Path) -> std::io::Result<Channel> {
    let first = tokio::net::UnixStream::connect(path).await?;
    let mut first = Some(first);
    let connector = tower::service_fn(move |_: http::Uri| {
        let stream = first.take();
        async move {
            // One stream, one channel: a broken one is replaced by a new channel, never silently reconnected.
            stream
                .map(hyper_util::rt::TokioIo::new)
                .ok_or(std::io::ErrorKind::ConnectionRefused)
                .map_err(std::io::Error::from)
        }
    });
    tonic::transport::Endpoint::from_static("http://sluice.invalid")
        .connect_with_connector(connector)
        .await
        .map_err(std::io::Error::other)
}
