//! The running controller: opens the store, replays it, starts the owner, the timers and the services, and ends them in
//! the reverse order.

use crate::context::Context;
use crate::nodelink::{self, Links, NodeLinkService};
use crate::owner::{self, Owner, OwnerFigures, wall_clock};
use crate::pool::Pool;
use crate::rpc::ControllerService;
use crate::scheduling::{self, SchedulingFigures};
use crate::store::{FileStore, Opened, Store, StoreError, StoreOptions};
use crate::throttle::Throttle;
use crate::view::Published;
use crate::{config_file, notify, perform};
use sluice_engine::{Command, Phase};
use sluice_identity::join::JoinTokens;
use sluice_identity::server::{self, Claim, Listener};
use sluice_identity::{ClusterKeys, Roles};
use sluice_model::JobId;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, mpsc, watch};

/// How long nodes that were up before a restart are waited for before scheduling begins.
const GATE: Duration = Duration::from_secs(5);

/// Where everything is.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub config: PathBuf,
    pub state: PathBuf,
    /// TLS, for other hosts. None: only this host.
    pub listen: Option<std::net::SocketAddr>,
    /// For this host.
    pub socket: PathBuf,
    /// Writes the port that was taken (with port 0) here.
    pub address_file: Option<PathBuf>,
}

/// Runs until SIGTERM, SIGINT or an administrator's shutdown.
pub fn run(options: RunOptions) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(serve(options));
    runtime.shutdown_timeout(Duration::from_secs(2));
    done
}

async fn serve(options: RunOptions) -> Result<(), Box<dyn Error>> {
    let begin = std::time::Instant::now();
    let keys = Arc::new(ClusterKeys::load(&crate::keys::dir(&options.state))?);
    let Opened { store, state } = open_store(&options.state.join("store")).await?;
    tracing::info!(
        jobs = state.jobs.len(),
        nodes = state.nodes.len(),
        generation = state.generation,
        ms = begin.elapsed().as_millis(),
        "state replayed"
    );
    let first_start = state.config.is_none();
    let config = match config_file::read(&options.config) {
        Ok(config) => Some(config),
        Err(problems) => {
            for problem in &problems {
                tracing::error!("{problem}");
            }
            if first_start {
                return Err(format!("{} problems in {}", problems.len(), options.config.display()).into());
            }
            tracing::error!("the configuration file is not used; going on with the configuration that was in force");
            None
        }
    };

    let published = Arc::new(Published::new(state.clone()));
    let shelf = store.shelf();
    let (effects, performed) = mpsc::unbounded_channel();
    let (changed, changes) = watch::channel(state.generation);
    let owner_figures = Arc::new(OwnerFigures::default());
    let awaited = state
        .nodes
        .iter()
        .filter(|(_, n)| !n.flags.unknown && !n.flags.not_responding && !n.flags.down)
        .map(|(name, _)| name.clone())
        .collect();
    let (owner, owner_thread) = owner::spawn(Owner {
        store: Box::new(store),
        state,
        published: Arc::clone(&published),
        effects,
        changed,
        figures: Arc::clone(&owner_figures),
        pool: Pool::default(),
    })?;

    if let Some(config) = config {
        let applied = owner.command(Command::Configure { config: Arc::new(config) }).await;
        match applied {
            Ok(sluice_engine::command::Reply::ConfigApplied { changes }) if !first_start => {
                for change in changes {
                    tracing::info!(change, "configuration changed");
                }
            }
            Ok(_) => {}
            Err(reject) => {
                let detail = reject.detail().unwrap_or_default();
                let text = format!("{} is refused: {}: {detail}", options.config.display(), reject.message());
                if first_start {
                    return Err(text.into());
                }
                tracing::error!("{text}; going on with the configuration that was in force");
            }
        }
    }

    let state = published.state();
    let cluster = state.config.as_ref().map(|c| c.cluster_name.clone()).unwrap_or_default();
    if cluster != keys.cluster().name {
        let (keys, state) = (&keys.cluster().name, options.state.display());
        return Err(format!("cluster_name is {cluster:?}, but the keys in {state} are those of {keys:?}").into());
    }
    let (job_changes, _) = broadcast::channel(16 * 1024);
    let (gate, gate_opened) = watch::channel(false);
    let (shutdown, mut shutdown_asked) = watch::channel(false);
    let scheduling_figures = Arc::new(SchedulingFigures::default());
    let context = Arc::new(Context {
        published: Arc::clone(&published),
        owner: owner.clone(),
        links: Links::default(),
        shelf,
        verifier: {
            let published = Arc::clone(&published);
            Arc::new(keys.verifier().admitting(move |claim| has_job_there(&published.state(), claim)))
        },
        join_tokens: JoinTokens::open(&crate::keys::join_dir(&options.state))?,
        keys: Arc::clone(&keys),
        job_changes,
        config_path: options.config.clone(),
        state_dir: options.state.clone(),
        reconfiguring: tokio::sync::Mutex::new(()),
        started: wall_clock(),
        owner_figures,
        scheduling_figures: Arc::clone(&scheduling_figures),
        gate,
        awaited,
        shutdown,
        serial: AtomicU64::new(1),
        throttle: Throttle::default(),
    });

    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(perform::run(Arc::clone(&context), performed));
    tasks.spawn(scheduling::run(
        Arc::clone(&published),
        owner.clone(),
        changes.clone(),
        gate_opened,
        scheduling_figures,
    ));
    tasks.spawn(scheduling::tick(published, owner.clone(), changes));
    tasks.spawn(nodelink::watch_silence(Arc::clone(&context)));
    tasks.spawn(open_gate(Arc::clone(&context)));
    tasks.spawn(watchdog(owner.clone()));

    let agent = keys.issue_host(&agent_host(), Roles { login: true, compute: false })?;
    let routes =
        tonic::service::Routes::new(server::controller_service(ControllerService { context: Arc::clone(&context) }))
            .add_service(server::node_link_service(NodeLinkService { context: Arc::clone(&context) }))
            // This host's users need tokens for the nodes they run steps on.
            .add_service(sluice_identity::agent::AgentService::new(Arc::new(agent), |_| None).into_server());
    let mut listeners = vec![Listener::Unix(sluice_identity::unix::bind(&options.socket, 0o666).await?)];
    if let Some(address) = options.listen {
        let listener = tokio::net::TcpListener::bind(address).await.map_err(|e| format!("{address}: {e}"))?;
        let local = listener.local_addr()?;
        if let Some(path) = &options.address_file {
            std::fs::write(path, format!("{local}\n")).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        tracing::info!(%local, "listening for other hosts");
        listeners.push(Listener::Tls(listener, Arc::new(keys.issue_controller()?)));
    }
    let (stop, stopping) = watch::channel(false);
    let services = tokio::spawn(server::serve(routes, listeners, stopping));
    tracing::info!(
        cluster,
        socket = %options.socket.display(),
        ms = begin.elapsed().as_millis(),
        "sluice-ctld is ready"
    );
    notify::notify("READY=1");

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = shutdown_asked.wait_for(|asked| *asked) => break,
            _ = hangup.recv() => {
                notify::notify("RELOADING=1");
                if let Err(problems) = crate::rpc::apply_config_file(&context).await {
                    for problem in problems {
                        tracing::error!("{problem}");
                    }
                    tracing::error!("the configuration in force stays as it was");
                }
                notify::notify("READY=1");
            }
        }
    }
    notify::notify("STOPPING=1");
    tracing::info!("stopping; running jobs go on");
    context.shutdown.send_replace(true);
    context.links.close_all();
    stop.send_replace(true);
    match services.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "a listener ended with an error"),
        Err(error) => tracing::error!(%error, "the services ended badly"),
    }
    tasks.shutdown().await;
    drop(context);
    drop(owner);
    // The owner ends when the last handle is gone; what it acknowledged is durable already.
    let waited = tokio::task::spawn_blocking(move || owner_thread.join());
    if tokio::time::timeout(Duration::from_secs(5), waited).await.is_err() {
        tracing::warn!("some requests were still being answered; ending all the same");
    }
    // A stale socket is replaced at the next start; removing it is only tidy.
    let _ = std::fs::remove_file(&options.socket);
    Ok(())
}

/// A controller that was killed a moment ago may still be dying, with its lock: it gets a while to be gone.
async fn open_store(dir: &std::path::Path) -> Result<Opened, StoreError> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begin = std::time::Instant::now();
    let mut said = false;
    loop {
        match FileStore::open(dir, StoreOptions::default()) {
            Err(error @ StoreError::Locked { .. }) if begin.elapsed() < PATIENCE => {
                if !said {
                    tracing::warn!(%error, "waiting for it to end");
                    said = true;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            opened => return opened,
        }
    }
}

/// The name under which this host's agent signs: no node's daemon can be mistaken for it, as it has no compute role.
fn agent_host() -> String {
    let name = crate::rpc::hostname();
    if name.is_empty() || name == sluice_identity::CONTROLLER { "controller-host".to_owned() } else { name }
}

/// Whether a compute host may vouch for this user: only with a job of theirs there.
fn has_job_there(state: &sluice_engine::State, claim: &Claim) -> bool {
    state.jobs.get(&JobId(claim.job)).is_some_and(|job| {
        matches!(job.phase, Phase::Running(_) | Phase::Completing { .. })
            && job.spec.uid == claim.uid
            && (job.spec.gid == claim.gid || sluice_identity::users::is_member(claim.uid, claim.gid))
            && job.run().is_some_and(|run| run.allocation.names().any(|n| n.as_str() == claim.host))
    })
}

async fn open_gate(context: Arc<Context>) {
    if !context.awaited.is_empty() {
        tokio::time::sleep(GATE).await;
    }
    context.gate.send_replace(true);
}

/// A sign of life only if the owner answers, so that systemd restarts a controller that hangs.
async fn watchdog(owner: owner::OwnerHandle) {
    let Some(interval) = notify::watchdog_interval() else { return };
    loop {
        if owner.command(Command::Tick).await.is_ok() {
            notify::notify("WATCHDOG=1");
        }
        tokio::time::sleep(interval).await;
    }
}
