//! The cluster's processes: finding, starting and ending them.
//!
//! A process belongs to the cluster when it runs one of the daemons' programs and its command line names the cluster's
//! folder; only such a one is ever signalled. Pid files are written for people and scripts; they are not believed.

use super::layout::Layout;
use super::{LocalError, Result, at};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a process of the cluster does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Role {
    /// `ctld` or a node's name.
    Daemon(String),
    /// Holds a step; outlives its node daemon.
    Supervisor,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Running {
    pub(super) pid: i32,
    pub(super) role: Role,
}

/// A process's words; None when it is gone, a zombie, or not ours to look at.
fn words(pid: i32) -> Option<Vec<OsString>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|b| !b.is_empty())?;
    let bytes = bytes.strip_suffix(&[0]).unwrap_or(&bytes);
    Some(bytes.split(|b| *b == 0).map(|w| OsString::from_vec(w.to_vec())).collect())
}

/// Which part of the cluster in `dir` these words start, if any.
fn role(words: &[OsString], dir: &Path) -> Option<Role> {
    let program = Path::new(words.first()?).file_name()?;
    let within = |word: &OsStr| Path::new(word).starts_with(dir);
    if program != "sluice-ctld" && program != "sluice-noded" {
        return None;
    }
    if words.get(1)? == "supervise" {
        return words[2..].iter().any(|w| within(w)).then_some(Role::Supervisor);
    }
    let state = words.iter().position(|w| w == "--state").and_then(|i| words.get(i + 1))?;
    let name = Path::new(state).strip_prefix(dir).ok()?.to_str()?;
    (words.get(1)? == "run").then(|| Role::Daemon(name.to_owned()))
}

/// All processes of the cluster.
pub(super) fn all(layout: &Layout) -> Vec<Running> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some(Running { pid, role: role(&words(pid)?, layout.dir())? })).collect()
}

/// Daemons by name.
pub(super) fn daemons(layout: &Layout) -> BTreeMap<String, i32> {
    let named = |r: Running| match r.role {
        Role::Daemon(name) => Some((name, r.pid)),
        Role::Supervisor => None,
    };
    all(layout).into_iter().filter_map(named).collect()
}

/// From the caller's environment, daemons get only this: what a job sees must not depend on who started the cluster.
fn kept(name: &OsStr) -> bool {
    const KEPT: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"];
    let bound = ["SLUICE_CONF", "SLUICE_NODE_SOCKET"].iter().any(|n| name == *n);
    KEPT.iter().any(|n| name == *n) || (name.as_bytes().starts_with(b"SLUICE_") && !bound) || name == "RUST_BACKTRACE"
}

/// A daemon that was just started.
pub(super) struct Started {
    pub(super) name: String,
    child: Child,
    /// Where its own lines begin in its log.
    log_from: u64,
}

/// Starts a daemon in a session of its own, its talk going to its log.
pub(super) fn start(layout: &Layout, name: &str, program: &str, words: &[OsString]) -> Result<Started> {
    let log_path = layout.log(name);
    let log = std::fs::File::options().create(true).append(true).open(&log_path).map_err(at(&log_path))?;
    let log_from = log.metadata().map_err(at(&log_path))?.len();
    let mut command = Command::new(layout.program(program));
    command
        .args(words)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| kept(name)))
        .current_dir(layout.dir())
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(at(&log_path))?)
        .stderr(log);
    // SAFETY: setsid is async-signal-safe and touches nothing of ours.
    unsafe {
        command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(std::io::Error::from));
    }
    let child = command.spawn().map_err(at(&layout.program(program)))?;
    let pid_file = layout.pid_file(name);
    std::fs::write(&pid_file, format!("{}\n", child.id())).map_err(at(&pid_file))?;
    Ok(Started { name: name.to_owned(), child, log_from })
}

impl Started {
    pub(super) fn running(&self) -> Running {
        // Process ids are positive and fit.
        let pid = i32::try_from(self.child.id()).unwrap_or(0);
        Running { pid, role: Role::Daemon(self.name.clone()) }
    }

    /// An error when it has ended already.
    pub(super) fn check(&mut self, layout: &Layout) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let text = format!("{} of {} ended before all was ready ({status})", self.program(), self.name);
                Err(self.complaint(layout, &text))
            }
            Err(e) => Err(LocalError::Said(format!("{}: {e}", self.name))),
        }
    }

    fn program(&self) -> &'static str {
        if self.name == "ctld" { "sluice-ctld" } else { "sluice-noded" }
    }

    /// The complaint, with the last lines of what the daemon said since it was started.
    pub(super) fn complaint(&self, layout: &Layout, text: &str) -> LocalError {
        let path = layout.log(&self.name);
        let said = std::fs::read(&path).unwrap_or_default();
        let from = usize::try_from(self.log_from).unwrap_or(usize::MAX).min(said.len());
        let said = String::from_utf8_lossy(&said[from..]).into_owned();
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(15)..];
        if last.is_empty() {
            return LocalError::Said(format!("{text}; it wrote nothing to {}", path.display()));
        }
        LocalError::Said(format!("{text}; {} ends with:\n  {}", path.display(), last.join("\n  ")))
    }
}

/// Signals a process if it still is the one we mean.
fn signal(layout: &Layout, running: &Running, signal: Signal) -> bool {
    let still = words(running.pid).and_then(|w| role(&w, layout.dir())).as_ref() == Some(&running.role);
    still && kill(Pid::from_raw(running.pid), signal).is_ok()
}

/// Asks the processes to end, insists after `patience`, and waits until they are gone.
pub(super) fn end(layout: &Layout, processes: &[Running], patience: Duration) -> Result<()> {
    for process in processes {
        signal(layout, process, Signal::SIGTERM);
    }
    if gone(layout, processes, patience) {
        return Ok(());
    }
    for process in processes {
        signal(layout, process, Signal::SIGKILL);
    }
    if gone(layout, processes, Duration::from_secs(10)) {
        return Ok(());
    }
    Err(LocalError::Said("some processes could not be ended; are they another user's?".to_owned()))
}

fn gone(layout: &Layout, processes: &[Running], patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        let left =
            processes.iter().any(|p| words(p.pid).and_then(|w| role(&w, layout.dir())).as_ref() == Some(&p.role));
        if !left {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills step supervisors whose cluster can't end them any more, with all that descends from them.
pub(super) fn kill_steps(layout: &Layout) -> Result<()> {
    let supervisors: Vec<Running> = all(layout).into_iter().filter(|r| r.role == Role::Supervisor).collect();
    if supervisors.is_empty() {
        return Ok(());
    }
    // A supervisor is the reaper of its step: even what daemonised itself is below it. Stopped first, it starts nothing
    // more and its children don't move away while they are looked up.
    for supervisor in &supervisors {
        signal(layout, supervisor, Signal::SIGSTOP);
    }
    loop {
        let below = descendants(&supervisors.iter().map(|s| s.pid).collect());
        let killed = below.iter().filter(|pid| kill(Pid::from_raw(**pid), Signal::SIGKILL).is_ok()).count();
        if killed == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    end(layout, &supervisors, Duration::ZERO)
}

/// Living processes below these.
fn descendants(roots: &BTreeSet<i32>) -> BTreeSet<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeSet::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let parents: BTreeMap<i32, i32> = pids.filter_map(|pid| Some((pid, parent_of_living(pid)?))).collect();
    let mut found = BTreeSet::new();
    loop {
        let known = |pid: &i32| roots.contains(pid) || found.contains(pid);
        let more: Vec<i32> = parents.iter().filter(|(pid, ppid)| known(ppid) && !known(pid)).map(|(p, _)| *p).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The parent of a process that is no zombie (proc(5), /proc/PID/stat: the name in parentheses, state, ppid).
fn parent_of_living(pid: i32) -> Option<i32> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let mut rest = stat.rsplit_once(')')?.1.split_whitespace();
    let state = rest.next()?;
    (state != "Z" && state != "X").then(|| rest.next()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role_of(line: &str) -> Option<Role> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        role(&words, Path::new("/tmp/c1"))
    }

    #[test]
    fn only_daemons_of_this_very_folder_are_ours() {
        let daemon = |name: &str| Some(Role::Daemon(name.to_owned()));
        assert_eq!(role_of("/tmp/c1/bin/sluice-ctld run --config x --state /tmp/c1/ctld"), daemon("ctld"));
        assert_eq!(role_of("/tmp/c1/bin/sluice-noded run --name n --state /tmp/c1/node1"), daemon("node1"));
        assert_eq!(role_of("/tmp/c1/bin/sluice-noded supervise /tmp/c1/node1/spool/4"), Some(Role::Supervisor));
        for other in [
            "/tmp/c1/bin/sluice-ctld run --state /tmp/c11/ctld",
            "/tmp/c1/bin/sluice-noded supervise /tmp/c2/node1/spool/4",
            "/tmp/c1/bin/sluice-ctld init --state /tmp/c1/ctld",
            "vi /tmp/c1/etc/sluice.toml --state /tmp/c1/ctld",
            "/tmp/c1/bin/sluice-ctld run",
            "sluice-ctld",
        ] {
            assert_eq!(role_of(other), None, "{other}");
        }
    }

    #[test]
    fn this_process_is_nobodys_daemon_and_has_a_parent() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(words(me).and_then(|w| role(&w, Path::new("/"))), None);
        assert_eq!(parent_of_living(me), Some(nix::unistd::getppid().as_raw()));
        assert!(descendants(&[nix::unistd::getppid().as_raw()].into()).contains(&me));
    }

    #[test]
    fn daemons_do_not_inherit_the_job_they_were_started_in() {
        for name in ["SLURM_JOB_ID", "SLUICE_CONF", "SLUICE_NODE_SOCKET", "LD_PRELOAD", "SBATCH_ACCOUNT"] {
            assert!(!kept(OsStr::new(name)), "{name}");
        }
        assert!(kept(OsStr::new("PATH")) && kept(OsStr::new("SLUICE_LOG")));
    }
}
