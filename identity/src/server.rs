//! Serving: who is at the other end, and listening on Unix sockets and TLS at once.

use crate::error::Refused;
use crate::host::{Cluster, HostKeys};
use crate::{TOKEN_KEY, token};
use sluice_proto::v1;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::Routes;
use tonic::transport::ServerTlsConfig;
use tonic::transport::server::{Connected, Server};
use tonic::{Request, Status};

/// Who calls, proven.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// On this host, by the kernel's word. `gid` is the effective one.
    Local { uid: u32, gid: u32, pid: Option<i32> },
    /// A user, by the word of `host`. `job` admits them when it is a compute host.
    User { uid: u32, gid: u32, host: String, job: Option<u32> },
    /// The daemon of a compute host, speaking for the node of this name.
    Node { host: String },
}

impl Peer {
    /// The user's uid; None when a node speaks for itself.
    pub fn uid(&self) -> Option<u32> {
        match self {
            Peer::Local { uid, .. } | Peer::User { uid, .. } => Some(*uid),
            Peer::Node { .. } => None,
        }
    }
}

/// A compute host's claim that a user, with this effective group, has this job there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim<'a> {
    pub host: &'a str,
    pub uid: u32,
    pub gid: u32,
    pub job: u32,
}

type Admits = Arc<dyn Fn(&Claim) -> bool + Send + Sync>;

/// Judges tokens shown to one host of one cluster.
#[derive(Clone)]
pub struct Verifier {
    cluster: String,
    key: [u8; 32],
    audience: String,
    admits: Option<Admits>,
}

impl Verifier {
    /// `audience` is the name of the host that will use it.
    pub fn new(cluster: &Cluster, audience: &str) -> Verifier {
        Verifier { cluster: cluster.name.clone(), key: cluster.key, audience: audience.to_owned(), admits: None }
    }

    /// `admits` answers whether that user has that job on that host, and may call with that group. Without it, compute
    /// hosts vouch for nobody. It runs on the path of every such request: it must not block.
    pub fn admitting(mut self, admits: impl Fn(&Claim) -> bool + Send + Sync + 'static) -> Verifier {
        self.admits = Some(Arc::new(admits));
        self
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }
    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.key
    }
    pub(crate) fn audience(&self) -> &str {
        &self.audience
    }
    pub(crate) fn admits(&self, claim: &Claim) -> bool {
        self.admits.as_ref().is_some_and(|admits| admits(claim))
    }
}

/// How the request came: set for each connection by `serve`.
#[derive(Clone, Debug)]
pub enum Origin {
    Unix { uid: u32, gid: u32, pid: Option<i32> },
    Tcp { addr: Option<SocketAddr> },
}

/// Who makes the request. A token counts on every kind of connection, so that a node proves its name on the local
/// socket too; without one, a Unix socket's peer is who the kernel says.
pub fn peer<T>(request: &Request<T>, verifier: &Verifier) -> Result<Peer, Status> {
    let origin = request.extensions().get::<Origin>();
    if let Some(value) = request.metadata().get_bin(TOKEN_KEY) {
        let refused = |why: Refused| {
            tracing::warn!(target: "audit", ?origin, %why, "a token was refused");
            Status::unauthenticated(why.to_string())
        };
        let bytes = value.to_bytes().map_err(|_| refused(Refused::Unreadable { what: "token" }))?;
        return token::verify(&bytes, verifier, crate::now_ms()).map_err(refused);
    }
    match origin {
        Some(&Origin::Unix { uid, gid, pid }) => Ok(Peer::Local { uid, gid, pid }),
        _ => Err(Status::unauthenticated("no token: call over the local socket or through this host's agent")),
    }
}

/// A connection with its origin.
pub struct Conn<S> {
    stream: S,
    origin: Origin,
}

impl<S> Connected for Conn<S> {
    type ConnectInfo = Origin;
    fn connect_info(&self) -> Origin {
        self.origin.clone()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Conn<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Conn<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// After a failed accept (no file descriptors left, most likely) the next try comes so much later.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections as long as somebody takes them. Never ends over an error: a daemon that is out of file descriptors
/// for a moment must serve again afterwards.
fn incoming<S, F>(mut accept: impl FnMut() -> F + Send + 'static) -> ReceiverStream<io::Result<Conn<S>>>
where
    S: Send + 'static,
    F: Future<Output = io::Result<Conn<S>>> + Send,
{
    let (taken, stream) = mpsc::channel(16);
    tokio::spawn(async move {
        loop {
            let accepted = tokio::select! {
                accepted = accept() => accepted,
                () = taken.closed() => return,
            };
            match accepted {
                Ok(connection) => {
                    if taken.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    });
    ReceiverStream::new(stream)
}

/// A local connection with the caller's credentials.
async fn accept_unix(listener: &UnixListener) -> io::Result<Conn<UnixStream>> {
    let (stream, _) = listener.accept().await?;
    let cred = stream.peer_cred()?;
    let origin = Origin::Unix { uid: cred.uid(), gid: cred.gid(), pid: cred.pid() };
    Ok(Conn { stream, origin })
}

async fn accept_tcp(listener: &TcpListener) -> io::Result<Conn<TcpStream>> {
    let (stream, addr) = listener.accept().await?;
    stream.set_nodelay(true)?;
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::KeepAlive, &true)?;
    Ok(Conn { stream, origin: Origin::Tcp { addr: Some(addr) } })
}

/// Where to listen.
pub enum Listener {
    /// See `unix::bind`.
    Unix(UnixListener),
    /// TLS with the host's certificate.
    Tls(TcpListener, Arc<HostKeys>),
}

/// Open streams get so long to end after shutdown was asked for.
const GRACE: Duration = Duration::from_secs(3);

/// Serves the services on all listeners until `shutdown` turns true (or its sender is gone). Message limits are the
/// services' own: build them with `controller_service` and its like.
pub async fn serve(
    routes: Routes,
    listeners: Vec<Listener>,
    shutdown: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error> {
    let mut servers = tokio::task::JoinSet::new();
    for listener in listeners {
        servers.spawn(serve_one(routes.clone(), listener, shutdown.clone()));
    }
    while let Some(ended) = servers.join_next().await {
        // A panic in a server's accept loop; dropping the set ends the others.
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;
    }
    Ok(())
}

async fn serve_one(
    routes: Routes,
    listener: Listener,
    shutdown: watch::Receiver<bool>,
) -> Result<(), tonic::transport::Error> {
    let wait = |mut shutdown: watch::Receiver<bool>| async move {
        // An error means that the sender is gone: the daemon is ending.
        let _ = shutdown.wait_for(|stop| *stop).await;
    };
    let server = Server::builder()
        .max_concurrent_streams(4096)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .http2_keepalive_timeout(Some(Duration::from_secs(20)));
    let stop = wait(shutdown.clone());
    let serving = async {
        match listener {
            Listener::Unix(listener) => {
                let listener = Arc::new(listener);
                let connections = incoming(move || {
                    let listener = Arc::clone(&listener);
                    async move { accept_unix(&listener).await }
                });
                let mut server = server;
                server.add_routes(routes).serve_with_incoming_shutdown(connections, stop).await
            }
            Listener::Tls(listener, keys) => {
                let tls = ServerTlsConfig::new().identity(keys.tls_identity()).timeout(Duration::from_secs(10));
                let listener = Arc::new(listener);
                let connections = incoming(move || {
                    let listener = Arc::clone(&listener);
                    async move { accept_tcp(&listener).await }
                });
                let mut server = server.tls_config(tls)?;
                server.add_routes(routes).serve_with_incoming_shutdown(connections, stop).await
            }
        }
    };
    tokio::select! {
        ended = serving => ended,
        () = async { wait(shutdown).await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

/// The controller's service with our message limits.
pub fn controller_service<S: v1::controller_server::Controller>(
    service: S,
) -> v1::controller_server::ControllerServer<S> {
    v1::controller_server::ControllerServer::new(service)
        .max_decoding_message_size(crate::MAX_MESSAGE)
        .max_encoding_message_size(crate::MAX_MESSAGE)
}

/// The node link with our message limits.
pub fn node_link_service<S: v1::node_link_server::NodeLink>(service: S) -> v1::node_link_server::NodeLinkServer<S> {
    v1::node_link_server::NodeLinkServer::new(service)
        .max_decoding_message_size(crate::MAX_MESSAGE)
        .max_encoding_message_size(crate::MAX_MESSAGE)
}

/// The step service with our message limits.
pub fn node_steps_service<S: v1::node_steps_server::NodeSteps>(
    service: S,
) -> v1::node_steps_server::NodeStepsServer<S> {
    v1::node_steps_server::NodeStepsServer::new(service)
        .max_decoding_message_size(crate::MAX_MESSAGE)
        .max_encoding_message_size(crate::MAX_MESSAGE)
}
