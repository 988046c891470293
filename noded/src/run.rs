//! `sluice-noded run` and `sluice-noded agent`: puts the daemon together and takes it down again.
//!
//! A stop (SIGTERM, SIGINT) ends the daemon alone: jobs go on under their supervisors and are adopted by the next one.

use crate::admitted::Admitted;
use crate::launch::env::Site;
use crate::owner::{Message, Owner, Setup};
use crate::service::NodeSteps;
use crate::{cgroup, hardware, link, notify, spool};
use sluice_identity::agent::AgentService;
use sluice_identity::client::{Endpoint, Tokens};
use sluice_identity::server::{self, Listener};
use sluice_identity::{CONTROLLER, HostKeys};
use sluice_proto::v1::NodeReport;
use std::error::Error;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tonic::service::Routes;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Where the controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controller {
    Unix(PathBuf),
    /// `host:port`
    Tcp(String),
}

impl std::str::FromStr for Controller {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("unix: needs a path".into()),
                path => Ok(Controller::Unix(path.into())),
            };
        }
        match text.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(Controller::Tcp(text.into())),
            _ => Err("unix:PATH or HOST:PORT is needed".into()),
        }
    }
}

pub struct Options {
    pub name: String,
    pub state: PathBuf,
    pub controller: Controller,
    /// The cluster's authority, in place of the one in the host's papers.
    pub ca: Option<PathBuf>,
    pub listen: Option<SocketAddr>,
    pub advertise: Option<String>,
    pub socket: PathBuf,
    pub client_config: Option<PathBuf>,
    pub path_prefix: Option<PathBuf>,
    pub declared: bool,
    /// The cgroup below which jobs get theirs, from the hierarchy's root; None: the daemon's own.
    pub cgroup: Option<PathBuf>,
}

/// The folder of a host's keys and papers in its state folder.
pub const IDENTITY: &str = "identity";

/// Runs the node daemon until it is told to stop.
pub fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let result = runtime.block_on(serve(options));
    // Blocking helpers (waiting for supervisors) would hold the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

fn keys(state: &Path, ca: Option<&Path>) -> Result<Arc<HostKeys>> {
    let dir = state.join(IDENTITY);
    let keys = HostKeys::load(&dir)
        .map_err(|e| format!("this host has no identity in {} (sluice-noded join makes one): {e}", dir.display()))?;
    if let Some(ca) = ca {
        let text = std::fs::read_to_string(ca).map_err(|e| format!("--ca {}: {e}", ca.display()))?;
        if text.trim() != keys.cluster().ca_pem.trim() {
            return Err(format!("--ca {}: this host's papers are of another authority", ca.display()).into());
        }
    }
    Ok(Arc::new(keys))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}

async fn serve(mut options: Options) -> Result<()> {
    options.state = absolute(&options.state)?;
    options.socket = absolute(&options.socket)?;
    std::fs::create_dir_all(&options.state).map_err(|e| format!("--state {}: {e}", options.state.display()))?;
    let keys = keys(&options.state, options.ca.as_deref())?;
    if keys.host() != options.name || !keys.roles().compute {
        return Err(format!(
            "the identity in {} is not that of compute node {}",
            options.state.display(),
            options.name
        )
        .into());
    }
    let tcp = match options.listen {
        Some(address) => {
            let listener =
                tokio::net::TcpListener::bind(address).await.map_err(|e| format!("--listen {address}: {e}"))?;
            Some(listener)
        }
        None => None,
    };
    let found = hardware::find();
    let address = match &tcp {
        Some(listener) => advertised(&options, listener.local_addr()?, &found.hostname),
        None => String::new(),
    };
    // A name of its own: several daemons (of several clusters) may share a host.
    let tree =
        cgroup::find(&format!("{}-{:08x}", options.name, fingerprint(&options.state)), options.cgroup.as_deref());
    cgroup::note(&options.state, tree.as_ref());
    let mut missing = cgroup::missing(tree.as_ref());
    if !nix::unistd::geteuid().is_root() {
        missing.push("root's rights (jobs run as the daemon's own user)".to_owned());
    }
    if !missing.is_empty() {
        tracing::warn!(missing = missing.join(", "), "jobs are not fully isolated on this node");
    }
    let group = tree.as_ref().map(|t| t.root.clone());
    let report = NodeReport {
        boot_id: spool::boot_id(),
        address,
        hostname: found.hostname.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        arch: found.arch.clone(),
        os: found.os.clone(),
        cpus: found.cpus,
        memory_mb: found.memory_mb,
        gres: Vec::new(),
        boot_time: found.boot_time,
        daemon_start_time: sluice_identity::now_ms() / 1000,
        missing_isolation: missing.clone(),
    };
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    let client_config = options.client_config.as_deref().map(absolute).transpose()?;
    let path_prefix = options.path_prefix.as_deref().map(absolute).transpose()?;
    let site = Site {
        cluster: keys.cluster().name.clone(),
        node: options.name.clone(),
        socket: bytes(&options.socket),
        client_config: client_config.as_deref().map(bytes),
        path_prefix: path_prefix.as_deref().map(bytes),
    };
    let admitted = Admitted::default();
    let (to_owner, from_all) = mpsc::unbounded_channel();
    let setup = Setup {
        site: site.clone(),
        state: options.state.clone(),
        keys: keys.clone(),
        tree,
        missing,
        report,
        declared: options.declared,
        runtime: tokio::runtime::Handle::current(),
        admitted: admitted.clone(),
    };
    // The jobs' folders must be reachable for their users, whatever umask the daemon was started with.
    // SAFETY: umask(2) can't fail.
    unsafe { libc::umask(0o022) };
    let for_owner = to_owner.clone();
    let (failed, mut owner_failed) = watch::channel(None::<String>);
    let owner = tokio::task::spawn_blocking(move || Owner::open(setup, for_owner)).await??;
    let thread = std::thread::Builder::new().name("owner".into()).spawn(move || {
        if let Err(error) = owner.run(from_all) {
            failed.send_replace(Some(error.to_string()));
        }
    })?;

    let mut listeners = vec![Listener::Unix(sluice_identity::unix::bind(&options.socket, 0o666).await?)];
    if let Some(tcp) = tcp {
        listeners.push(Listener::Tls(tcp, keys.clone()));
    }
    let judge = admitted.clone();
    let steps = NodeSteps {
        site,
        keys: keys.clone(),
        verifier: keys.verifier().admitting(move |claim| judge.admits(claim)),
        admitted: admitted.clone(),
        owner: to_owner.clone(),
    };
    let agent = AgentService::new(keys.clone(), move |caller| admitted.job_of(caller));
    let routes = Routes::new(server::node_steps_service(steps)).add_service(agent.into_server());
    let (stop, stopping) = watch::channel(false);
    let server = tokio::spawn(server::serve(routes.prepare(), listeners, stopping));

    let endpoint = match &options.controller {
        Controller::Unix(path) => Endpoint::Unix(absolute(path)?),
        Controller::Tcp(address) => Endpoint::tls(address, CONTROLLER, &keys.cluster().ca_pem),
    };
    let tokens = Tokens::Node { keys, audience: CONTROLLER.to_owned() };
    let linked = tokio::spawn(link::run(endpoint, tokens, to_owner.clone()));
    let ticks = tokio::spawn(tick(to_owner.clone()));
    notify::notify("READY=1");
    tracing::info!(node = options.name, "the node daemon runs");

    let outcome: Result<()> = tokio::select! {
        () = terminated() => Ok(()),
        _ = owner_failed.changed() => {
            let why = owner_failed.borrow().clone().unwrap_or_default();
            Err(format!("the state in {} can't be written: {why}", options.state.display()).into())
        }
    };
    notify::notify("STOPPING=1");
    tracing::info!("the node daemon ends; jobs go on");
    linked.abort();
    ticks.abort();
    let _ = to_owner.send(Message::Stop);
    stop.send_replace(true);
    // Open streams to srun would hold the server: they attach again to the next daemon.
    let _ = tokio::time::timeout(Duration::from_secs(1), server).await;
    let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    if let Some(group) = group {
        // Stays while jobs run in it.
        cgroup::remove(&group);
    }
    outcome
}

/// The address that others are told: a name that they can reach when the daemon listens everywhere.
fn advertised(options: &Options, bound: SocketAddr, hostname: &str) -> String {
    match &options.advertise {
        Some(host) if host.contains(':') && !host.contains('[') => format!("[{host}]:{}", bound.port()),
        Some(host) => format!("{host}:{}", bound.port()),
        None if bound.ip().is_unspecified() => format!("{hostname}:{}", bound.port()),
        None => bound.to_string(),
    }
}

/// Tells the state folders of one host's daemons apart (FNV-1a).
fn fingerprint(path: &Path) -> u32 {
    path.as_os_str().as_bytes().iter().fold(0x811c_9dc5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

async fn tick(owner: mpsc::UnboundedSender<Message>) {
    let mut interval = tokio::time::interval(Duration::from_secs(1));
    loop {
        interval.tick().await;
        if owner.send(Message::Tick).is_err() {
            return;
        }
    }
}

async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// A login host's agent: vouches for its users, and runs nothing.
pub fn agent(state: &Path, socket: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let keys = keys(state, None)?;
        if !keys.roles().login {
            return Err(format!("host {} has no login role: its agent would vouch for nobody", keys.host()).into());
        }
        let listeners = vec![Listener::Unix(sluice_identity::unix::bind(socket, 0o666).await?)];
        let routes = Routes::new(AgentService::new(keys, |_| None).into_server());
        let (stop, stopping) = watch::channel(false);
        let server = tokio::spawn(server::serve(routes.prepare(), listeners, stopping));
        notify::notify("READY=1");
        let watchdog = async {
            let Some(every) = notify::watchdog_interval() else { return std::future::pending::<()>().await };
            loop {
                tokio::time::sleep(every).await;
                notify::notify("WATCHDOG=1");
            }
        };
        tokio::select! {
            () = terminated() => {}
            () = watchdog => {}
        }
        notify::notify("STOPPING=1");
        stop.send_replace(true);
        let _ = tokio::time::timeout(Duration::from_secs(1), server).await;
        Ok(())
    })
}

/// Asks the controller for this host's papers with a one-time token.
pub fn join(controller: &str, token: &str, host: &str, state: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let dir = state.join(IDENTITY);
    if dir.exists() {
        return Err(format!("{} is there already: this host has joined a cluster", dir.display()).into());
    }
    std::fs::create_dir_all(state).map_err(|e| format!("--state {}: {e}", state.display()))?;
    let keys = runtime.block_on(sluice_identity::join::join(controller, token, host))?;
    keys.save(&dir)?;
    println!("joined cluster {} as host {}", keys.cluster().name, keys.host());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_controller_is_a_socket_or_an_address() {
        assert_eq!("unix:/run/c.sock".parse(), Ok(Controller::Unix("/run/c.sock".into())));
        assert_eq!("[::1]:7000".parse(), Ok(Controller::Tcp("[::1]:7000".into())));
        assert!("host".parse::<Controller>().is_err());
        assert!("host:x".parse::<Controller>().is_err());
        assert!("unix:".parse::<Controller>().is_err());
    }

    #[test]
    fn state_folders_are_told_apart() {
        assert_ne!(fingerprint(Path::new("/a/node1")), fingerprint(Path::new("/b/node1")));
    }
}
