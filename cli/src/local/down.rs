//! Stopping a cluster: jobs first, then daemons, then whatever is left of the jobs.

use super::arguments::Place;
use super::daemon::{self, Role, Running};
use super::layout::Layout;
use super::{LocalError, Result, link, place, say};
use sluice_proto::v1;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// SIGTERM, then SIGKILL after this.
const GRACE: Duration = Duration::from_secs(5);
/// After this nothing more is expected of jobs; what is left is killed from here.
const GIVE_UP: Duration = Duration::from_secs(20);

pub(super) fn main(place: &Place) -> Result<ExitCode> {
    let layout = Layout::existing(&place.dir)?;
    let stopped = stop(&layout)?;
    match stopped {
        0 => say(&format!("Nothing of the cluster in {} was running", layout.dir().display()))?,
        n => say(&format!("Stopped {n} daemons of the cluster in {}", layout.dir().display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends everything that belongs to the cluster; says how many daemons ran.
pub(super) fn stop(layout: &Layout) -> Result<usize> {
    let _lock = place::lock(layout)?;
    let daemons = daemon::daemons(layout);
    if daemons.contains_key("ctld")
        && let Err(e) = crate::client::block_on(cancel_all(layout))
    {
        crate::errln!("sluice local: jobs could not be cancelled in good order: {e}");
    }
    // Nodes first: the controller hears their last reports.
    let (controller, nodes): (Vec<Running>, Vec<Running>) = daemons
        .iter()
        .map(|(name, pid)| Running { pid: *pid, role: Role::Daemon(name.clone()) })
        .partition(|r| r.role == Role::Daemon("ctld".to_owned()));
    daemon::end(layout, &nodes, Duration::from_secs(10))?;
    daemon::end(layout, &controller, Duration::from_secs(15))?;
    daemon::kill_steps(layout)?;
    tidy(layout);
    Ok(daemons.len())
}

/// Takes away what daemons leave that were killed: sockets, pid files, empty cgroups. All are dead by now, and what
/// can't be removed does no harm.
fn tidy(layout: &Layout) {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path());
    let dead = |path: &PathBuf| path.extension().is_some_and(|e| e == "sock" || e == "pid");
    for path in entries(&layout.run()).filter(dead) {
        let _ = std::fs::remove_file(path);
    }
    // A node daemon writes down which group it has made for its jobs.
    for note in entries(layout.dir()).map(|node| node.join("cgroup")) {
        if let Ok(group) = std::fs::read(&note) {
            let group = PathBuf::from(OsString::from_vec(group));
            if group.join("cgroup.procs").exists() {
                remove_groups(&group);
            }
        }
    }
}

/// The kernel removes only groups in which nothing runs.
fn remove_groups(group: &Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_groups(&entry.path());
        }
    }
    let _ = std::fs::remove_dir(group);
}

/// Cancels all jobs and waits until their processes are gone.
async fn cancel_all(layout: &Layout) -> Result<()> {
    let mut controller = link::connect(layout).await?;
    let begin = Instant::now();
    let mut killed = false;
    let mut asked = std::collections::BTreeSet::new();
    loop {
        let jobs = link::live_jobs(&mut controller).await?;
        if jobs.is_empty() {
            return Ok(());
        }
        if begin.elapsed() > GIVE_UP {
            return Err(LocalError::Said(format!("{} jobs did not end within {} s", jobs.len(), GIVE_UP.as_secs())));
        }
        // Pending ones first, so that none starts in a place just freed.
        let (pending, rest): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|j| j.state == "PENDING");
        let fresh = pending.iter().chain(&rest).filter(|j| asked.insert((j.id, j.state == "PENDING")));
        let actions: Vec<_> = fresh.map(|j| cancel(j.id)).collect();
        send(&controller, actions).await;
        if begin.elapsed() > GRACE && !killed {
            killed = true;
            let running = rest.iter().filter(|j| j.state != "COMPLETING");
            send(&controller, running.map(|j| kill(j.id)).collect()).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn target(job: u32) -> Option<v1::JobTarget> {
    Some(v1::JobTarget { job, tasks: None })
}

fn cancel(job: u32) -> v1::control_request::Action {
    v1::control_request::Action::Cancel(v1::CancelAction { target: target(job) })
}

fn kill(job: u32) -> v1::control_request::Action {
    let signal = u32::try_from(nix::libc::SIGKILL).unwrap_or(9);
    let action = v1::SignalAction { target: target(job), signal, full: true, ..Default::default() };
    v1::control_request::Action::Signal(action)
}

/// Many at once; a refusal means that the job ended meanwhile, and the next look will tell.
async fn send(controller: &link::Controller, actions: Vec<v1::control_request::Action>) {
    for some in actions.chunks(64) {
        let mut under_way = tokio::task::JoinSet::new();
        for action in some {
            let mut controller = controller.clone();
            let request = v1::ControlRequest { action: Some(action.clone()) };
            under_way.spawn(async move { link::ask(controller.control(request)).await });
        }
        while under_way.join_next().await.is_some() {}
    }
}
