//! Starting a cluster, or what is missing of it.

use super::arguments::{ShapeFlags, Up};
use super::cluster_file::{self, Settings, write_atomic};
use super::daemon::{self, Role, Running, Started};
use super::layout::Layout;
use super::{LocalError, Result, at, install, interrupt, link, place, say};
use sluice_model::config::ClusterConfig;
use sluice_proto::v1;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

pub(super) fn main(options: &Up) -> Result<ExitCode> {
    let wait = options.wait.map(Duration::from_secs);
    let up = start(&options.dir, &options.shape, options.config.as_deref(), &options.log, wait)?;
    report(&up)?;
    Ok(ExitCode::SUCCESS)
}

/// A cluster that accepts jobs, with all its nodes.
pub(super) struct Cluster {
    pub(super) layout: Layout,
    pub(super) name: String,
    pub(super) nodes: Vec<v1::NodeRecord>,
}

/// Starts what does not run yet, and waits until jobs are accepted and all nodes are there.
pub(super) fn start(
    dir: &Path,
    shape: &ShapeFlags,
    config: Option<&Path>,
    log: &str,
    wait: Option<Duration>,
) -> Result<Cluster> {
    // Users of the machine read what is made here.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
    let layout = Layout::create(dir)?;
    let _lock = place::lock(&layout)?;
    let (mut settings, config, rewritten) = cluster_file::prepare(&layout, shape, config)?;
    install::install(&layout)?;
    make_identities(&layout, &settings, &config)?;

    let running = daemon::daemons(&layout);
    let names: Vec<String> = config.nodes.iter().map(|n| n.name.to_string()).collect();
    take_ports(&mut settings, &names, |name| running.contains_key(name))?;
    settings.save(&layout)?;
    write_client_file(&layout, &settings)?;
    let surplus: Vec<Running> = running
        .iter()
        .filter(|(name, _)| *name != "ctld" && !names.contains(name))
        .map(|(name, pid)| Running { pid: *pid, role: Role::Daemon(name.clone()) })
        .collect();
    daemon::end(&layout, &surplus, Duration::from_secs(10))?;

    let mut started = Vec::new();
    if !running.contains_key("ctld") {
        started.push(daemon::start(&layout, "ctld", "sluice-ctld", &controller_words(&layout, &settings, log))?);
    } else if rewritten {
        reconfigure(&layout)?;
    }
    for name in names.iter().filter(|name| !running.contains_key(*name)) {
        started.push(daemon::start(&layout, name, "sluice-noded", &node_words(&layout, &settings, name, log))?);
    }
    let wait = wait.unwrap_or(Duration::from_secs(60) + Duration::from_millis(500) * settings.nodes);
    let nodes = match crate::client::block_on(ready(&layout, &names, &mut started, wait)) {
        Ok(nodes) => nodes,
        Err(e) => {
            // Half a cluster is of no use, and whoever reads the error should not have to look for its daemons.
            let half: Vec<Running> = started.iter().map(Started::running).collect();
            daemon::end(&layout, &half, Duration::from_secs(5))?;
            return Err(e);
        }
    };
    Ok(Cluster { layout, name: settings.cluster, nodes })
}

/// The cluster's keys and those of its nodes, where there are none yet.
fn make_identities(layout: &Layout, settings: &Settings, config: &ClusterConfig) -> Result<()> {
    let state = layout.state("ctld");
    if !state.join("keys").exists() {
        let words: [&std::ffi::OsStr; 5] =
            ["init".as_ref(), "--state".as_ref(), state.as_os_str(), "--cluster".as_ref(), settings.cluster.as_ref()];
        run(layout, &words)?;
    }
    let ca = state.join("keys/ca.pem");
    let pem = std::fs::read_to_string(&ca).map_err(at(&ca))?;
    if !std::fs::read_to_string(layout.ca()).is_ok_and(|known| known == pem) {
        write_atomic(&layout.ca(), &pem)?;
    }
    for node in &config.nodes {
        let out = layout.state(node.name.as_str()).join("identity");
        if out.exists() {
            continue;
        }
        let words: [&std::ffi::OsStr; 8] = [
            "issue-host".as_ref(),
            "--state".as_ref(),
            state.as_os_str(),
            "--host".as_ref(),
            node.name.as_str().as_ref(),
            "--compute".as_ref(),
            "--out".as_ref(),
            out.as_os_str(),
        ];
        run(layout, &words)?;
    }
    Ok(())
}

/// Runs the controller's program to its end.
fn run(layout: &Layout, words: &[&std::ffi::OsStr]) -> Result<()> {
    let program = layout.program("sluice-ctld");
    let out = Command::new(&program).args(words).output().map_err(at(&program))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let what = words.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    Err(LocalError::Said(format!("sluice-ctld {what} failed ({}): {said}", out.status)))
}

/// Each daemon keeps its port while it is free. New ones lie below the range from which the kernel takes ports for
/// outgoing connections, so that none of those takes a stopped daemon's port.
fn take_ports(settings: &mut Settings, nodes: &[String], runs: impl Fn(&str) -> bool) -> Result<()> {
    settings.ports.retain(|name, _| name == "ctld" || nodes.contains(name));
    // Held until all are chosen.
    let mut held = Vec::new();
    let mut taken: BTreeSet<u16> = settings.ports.values().copied().collect();
    // Different clusters begin to look at different places.
    let mut next = 20_000 + (std::process::id() as u16 % 600) * 20;
    for name in std::iter::once("ctld").chain(nodes.iter().map(String::as_str)) {
        if runs(name) {
            continue;
        }
        if let Some(port) = settings.ports.get(name)
            && let Ok(listener) = TcpListener::bind(("127.0.0.1", *port))
        {
            held.push(listener);
            continue;
        }
        let found = (0..12_000).find_map(|_| {
            next = if next >= 32_000 { 20_000 } else { next + 1 };
            let listener = TcpListener::bind(("127.0.0.1", next)).ok().filter(|_| taken.insert(next))?;
            held.push(listener);
            Some(next)
        });
        let port = found.ok_or_else(|| LocalError::Said("no free TCP port between 20000 and 32000".to_owned()))?;
        settings.ports.insert(name.to_owned(), port);
    }
    Ok(())
}

fn address(settings: &Settings, daemon: &str) -> String {
    format!("127.0.0.1:{}", settings.ports.get(daemon).copied().unwrap_or(0))
}

fn write_client_file(layout: &Layout, settings: &Settings) -> Result<()> {
    let mut table = toml::Table::new();
    let mut set = |key: &str, value: String| table.insert(key.to_owned(), toml::Value::String(value));
    set("cluster", settings.cluster.clone());
    set("socket", layout.socket("ctld").display().to_string());
    set("controller", address(settings, "ctld"));
    // The controller's socket is this host's agent too.
    set("agent", layout.socket("ctld").display().to_string());
    set("ca", layout.ca().display().to_string());
    write_atomic(&layout.client_file(), &format!("# Where the commands in ../bin find their cluster.\n{table}"))
}

fn controller_words(layout: &Layout, settings: &Settings, log: &str) -> Vec<OsString> {
    vec![
        "run".into(),
        "--config".into(),
        layout.cluster_file().into(),
        "--state".into(),
        layout.state("ctld").into(),
        "--listen".into(),
        address(settings, "ctld").into(),
        "--socket".into(),
        layout.socket("ctld").into(),
        "--log".into(),
        log.into(),
    ]
}

fn node_words(layout: &Layout, settings: &Settings, name: &str, log: &str) -> Vec<OsString> {
    let mut controller = OsString::from("unix:");
    controller.push(layout.socket("ctld"));
    vec![
        "run".into(),
        "--name".into(),
        name.into(),
        "--state".into(),
        layout.state(name).into(),
        "--controller".into(),
        controller,
        "--listen".into(),
        address(settings, name).into(),
        "--socket".into(),
        layout.socket(name).into(),
        "--client-config".into(),
        layout.client_file().into(),
        "--path-prefix".into(),
        layout.bin().into(),
        "--declared".into(),
        "--log".into(),
        log.into(),
    ]
}

/// A running controller takes the rewritten file, whole or not at all.
fn reconfigure(layout: &Layout) -> Result<()> {
    let reply = crate::client::block_on(async {
        let mut controller = link::connect(layout).await?;
        link::ask(controller.reconfigure(v1::Empty {})).await
    })?;
    if reply.errors.is_empty() {
        return Ok(());
    }
    Err(LocalError::Said(format!("the controller refuses the configuration:\n{}", reply.errors.join("\n"))))
}

/// Waits for the controller and all nodes; a daemon that ends meanwhile ends the waiting.
async fn ready(
    layout: &Layout,
    names: &[String],
    started: &mut [Started],
    wait: Duration,
) -> Result<Vec<v1::NodeRecord>> {
    let deadline = Instant::now() + wait;
    let mut missing: Vec<String> = names.to_vec();
    let mut controller = None;
    loop {
        interrupt::check()?;
        for daemon in started.iter_mut() {
            daemon.check(layout)?;
        }
        if controller.is_none() {
            controller = link::connect(layout).await.ok();
        }
        let answer = match &mut controller {
            Some(controller) => Some(link::nodes(controller).await),
            None => None,
        };
        match answer {
            Some(Ok(nodes)) => {
                let there = |n: &&v1::NodeRecord| !n.unknown && !n.not_responding && n.report.is_some();
                let up: BTreeSet<&str> = nodes.iter().filter(there).map(|n| n.name.as_str()).collect();
                missing = names.iter().filter(|n| !up.contains(n.as_str())).cloned().collect();
                if missing.is_empty() {
                    return Ok(nodes);
                }
            }
            Some(Err(_)) => controller = None,
            None => {}
        }
        if Instant::now() >= deadline {
            return Err(late(layout, controller.is_some(), &missing, started, wait));
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

/// The complaint of one who is late, with its log.
fn late(layout: &Layout, answers: bool, missing: &[String], started: &[Started], wait: Duration) -> LocalError {
    let secs = wait.as_secs();
    let (culprit, text) = match (answers, missing.first()) {
        (false, _) | (true, None) => ("ctld", format!("the controller does not answer after {secs} s")),
        (true, Some(first)) => {
            (first.as_str(), format!("{} of the nodes did not register within {secs} s, {first} first", missing.len()))
        }
    };
    match started.iter().find(|d| d.name == culprit) {
        Some(daemon) => daemon.complaint(layout, &text),
        None => LocalError::Said(format!("{text}; see {}", layout.log(culprit).display())),
    }
}

/// What is missing of isolation on the nodes, each once.
pub(super) fn missing_isolation(nodes: &[v1::NodeRecord]) -> Vec<String> {
    let all = nodes.iter().filter_map(|n| n.report.as_ref()).flat_map(|r| r.missing_isolation.iter().cloned());
    let mut seen = BTreeSet::new();
    let mut out: Vec<String> = all.filter(|text| seen.insert(text.clone())).collect();
    if !nix::unistd::geteuid().is_root() {
        out.push("not started by root: only you can submit, and jobs run as you".to_owned());
    }
    out
}

fn report(up: &Cluster) -> Result<()> {
    let dir = up.layout.dir().display();
    say(&format!("Cluster {} is up: {} nodes, state and logs in {dir}", up.name, up.nodes.len()))?;
    for text in missing_isolation(&up.nodes) {
        say(&format!("  missing: {text}"))?;
    }
    if let Some(closed) = closed_parent(up.layout.dir()) {
        say(&format!("  note: other users can't enter {}, so they can't use this cluster", closed.display()))?;
    }
    let sluice = super::called_as();
    say(&format!("Use it:   eval \"$({sluice} local env --dir {dir})\""))?;
    say(&format!("Stop it:  {sluice} local down --dir {dir}"))
}

/// As root: the first folder on the way that other users can't pass.
fn closed_parent(dir: &Path) -> Option<&Path> {
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let closed = |p: &&Path| std::fs::metadata(p).is_ok_and(|m| m.permissions().mode() & 0o001 == 0);
    dir.ancestors().collect::<Vec<_>>().into_iter().rev().find(closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(n: usize) -> Vec<String> {
        (1..=n).map(|i| format!("node{i}")).collect()
    }

    #[test]
    fn daemons_keep_their_ports_and_new_ones_get_others() {
        let mut settings = Settings::default();
        take_ports(&mut settings, &names(3), |_| false).unwrap();
        let first = settings.ports.clone();
        assert_eq!(first.values().collect::<BTreeSet<_>>().len(), 4);
        take_ports(&mut settings, &names(4), |_| false).unwrap();
        assert!(first.iter().all(|(name, port)| settings.ports[name] == *port));
        assert_eq!(settings.ports.len(), 5);
    }

    #[test]
    fn a_port_that_someone_else_took_is_given_up() {
        let mut settings = Settings::default();
        take_ports(&mut settings, &names(1), |_| false).unwrap();
        let taken = settings.ports["node1"];
        let _other = TcpListener::bind(("127.0.0.1", taken)).unwrap();
        take_ports(&mut settings, &names(1), |_| false).unwrap();
        assert_ne!(settings.ports["node1"], taken);
    }

    #[test]
    fn a_running_daemons_port_is_its_own() {
        let mut settings = Settings::default();
        take_ports(&mut settings, &names(1), |_| false).unwrap();
        let port = settings.ports["node1"];
        let _itself = TcpListener::bind(("127.0.0.1", port)).unwrap();
        take_ports(&mut settings, &names(1), |name| name == "node1").unwrap();
        assert_eq!(settings.ports["node1"], port);
    }
}
