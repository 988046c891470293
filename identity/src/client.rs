//! Connecting: to a Unix socket on this host, or over TLS to a named host, with a token on every request where one is
//! needed.

use crate::error::{IdentityError, Refused};
use crate::host::HostKeys;
use crate::join::JoinToken;
use crate::token::{self, SignedToken, Statement};
use crate::{CONTROLLER, MAX_MESSAGE, TOKEN_KEY, agent, authority, now_ms, unix};
use hyper_util::rt::TokioIo;
use prost::bytes::Bytes;
use sluice_proto::v1;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tower::Service;

/// Where to connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    Unix(PathBuf),
    /// `addr` is `host:port`; `server_name` is the name in the certificate (`crate::server_name`).
    Tls {
        addr: String,
        server_name: String,
        ca_pem: String,
    },
}

impl Endpoint {
    /// TLS to the host of this name; `CONTROLLER` for the controller.
    pub fn tls(addr: &str, host: &str, ca_pem: &str) -> Endpoint {
        Endpoint::Tls { addr: addr.to_owned(), server_name: authority::server_name(host), ca_pem: ca_pem.to_owned() }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Unix(path) => path.display().fmt(f),
            Endpoint::Tls { addr, .. } => f.write_str(addr),
        }
    }
}

/// Why no connection came about.
#[derive(Debug)]
pub enum ConnectError {
    /// Nobody there, or someone else: whose certificate is not the cluster's.
    Unreachable {
        endpoint: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An answer that says no.
    Answer(Status),
    Identity(IdentityError),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Unreachable { endpoint, source } => {
                write!(f, "can't connect to {endpoint}: ")?;
                // tonic's own text is "transport error"; the cause is at the end of the chain.
                let mut cause: &dyn std::error::Error = source.as_ref();
                while let Some(deeper) = cause.source() {
                    cause = deeper;
                }
                write!(f, "{cause}")
            }
            ConnectError::Answer(status) => f.write_str(status.message()),
            ConnectError::Identity(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<Status> for ConnectError {
    fn from(status: Status) -> Self {
        ConnectError::Answer(status)
    }
}
impl From<IdentityError> for ConnectError {
    fn from(error: IdentityError) -> Self {
        ConnectError::Identity(error)
    }
}
impl From<Refused> for ConnectError {
    fn from(why: Refused) -> Self {
        ConnectError::Identity(why.into())
    }
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects now; requests have no deadline of their own. A channel whose connection broke connects again with the next
/// request.
pub async fn connect(endpoint: &Endpoint) -> Result<Channel, ConnectError> {
    match endpoint {
        Endpoint::Unix(path) => connect_unix(path).await,
        Endpoint::Tls { addr, server_name, ca_pem } => {
            let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca_pem));
            connect_tls(addr, server_name, tls).await
        }
    }
}

/// Connects to a controller of which only the join token tells the key.
pub(crate) async fn connect_to_join(addr: &str, token: &JoinToken) -> Result<Channel, ConnectError> {
    let anchor = authority::trust_anchor(&token.cluster, &token.authority_key);
    let tls = ClientTlsConfig::new().trust_anchor(anchor);
    connect_tls(addr, &authority::server_name(CONTROLLER), tls).await
}

fn settings(endpoint: tonic::transport::Endpoint) -> tonic::transport::Endpoint {
    endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Some(Duration::from_secs(30)))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(20))
        .keep_alive_while_idle(true)
}

async fn connect_unix(path: &Path) -> Result<Channel, ConnectError> {
    let path = path.to_owned();
    let shown = path.display().to_string();
    // The address is never looked up; the connector knows the path.
    let endpoint = settings(tonic::transport::Endpoint::from_static("http://localhost"));
    let connector = tower::service_fn(move |_: http::Uri| {
        let path = path.clone();
        async move { unix::connect(&path).await.map(TokioIo::new) }
    });
    let connected = endpoint.connect_with_connector(connector).await;
    connected.map_err(|e| ConnectError::Unreachable { endpoint: shown, source: e.into() })
}

async fn connect_tls(addr: &str, server_name: &str, tls: ClientTlsConfig) -> Result<Channel, ConnectError> {
    let unreachable =
        |e: tonic::transport::Error| ConnectError::Unreachable { endpoint: addr.to_owned(), source: e.into() };
    let tls = tls.domain_name(server_name).timeout(CONNECT_TIMEOUT);
    let endpoint = tonic::transport::Endpoint::from_shared(format!("https://{addr}")).map_err(unreachable)?;
    settings(endpoint).tls_config(tls).map_err(unreachable)?.connect().await.map_err(unreachable)
}

/// Where tokens come from.
#[derive(Clone)]
pub enum Tokens {
    /// The kernel proves the caller (Unix sockets).
    None,
    /// This host's agent vouches for the calling user.
    Agent { socket: PathBuf, audience: String },
    /// This host's daemon speaks for its node.
    Node { keys: Arc<HostKeys>, audience: String },
}

/// A token is renewed when it has less than this left, ms.
const RENEW_BEFORE: i64 = 20_000;

/// A channel that shows a token with every request. Cheap to clone; clones share the token.
#[derive(Clone)]
pub struct Authorized {
    channel: Channel,
    tokens: Tokens,
    cached: Arc<Mutex<Option<SignedToken>>>,
}

impl Authorized {
    pub fn new(channel: Channel, tokens: Tokens) -> Authorized {
        Authorized { channel, tokens, cached: Arc::default() }
    }

    /// Connects and shows these tokens.
    pub async fn connect(endpoint: &Endpoint, tokens: Tokens) -> Result<Authorized, ConnectError> {
        Ok(Authorized::new(connect(endpoint).await?, tokens))
    }

    pub fn controller(&self) -> v1::controller_client::ControllerClient<Authorized> {
        v1::controller_client::ControllerClient::new(self.clone())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE)
    }

    pub fn node_link(&self) -> v1::node_link_client::NodeLinkClient<Authorized> {
        v1::node_link_client::NodeLinkClient::new(self.clone())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE)
    }

    pub fn node_steps(&self) -> v1::node_steps_client::NodeStepsClient<Authorized> {
        v1::node_steps_client::NodeStepsClient::new(self.clone())
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE)
    }

    async fn token(&self) -> Result<Option<Bytes>, Status> {
        let now = now_ms();
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(token) = cached.filter(|t| t.expires_at - RENEW_BEFORE > now) {
            return Ok(Some(token.token));
        }
        let fresh = match &self.tokens {
            Tokens::None => return Ok(None),
            Tokens::Agent { socket, audience } => agent::fetch_token(socket, audience)
                .await
                .map_err(|e| Status::unauthenticated(format!("this host's agent does not vouch for you: {e}")))?,
            Tokens::Node { keys, audience } => {
                token::sign(keys, Statement::Node, audience, now).map_err(|e| Status::unauthenticated(e.to_string()))?
            }
        };
        let bytes = fresh.token.clone();
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(fresh);
        Ok(Some(bytes))
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<http::Request<Body>> for Authorized {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.channel.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        // The channel that was polled ready must be the one that is called.
        let clone = self.channel.clone();
        let mut channel = std::mem::replace(&mut self.channel, clone);
        if matches!(self.tokens, Tokens::None) {
            return Box::pin(async move { channel.call(request).await.map_err(Into::into) });
        }
        let this = self.clone();
        Box::pin(async move {
            if let Some(token) = this.token().await? {
                let mut metadata = MetadataMap::new();
                metadata.insert_bin(TOKEN_KEY, BinaryMetadataValue::from_bytes(&token));
                request.headers_mut().extend(metadata.into_headers());
            }
            channel.call(request).await.map_err(Into::into)
        })
    }
}
