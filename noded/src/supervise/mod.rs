//! The step supervisor: `sluice-noded supervise SPOOLDIR`, one process per step and node, which outlives noded.
//!
//! It starts the step's tasks as the user, holds their streams, and finds out how they ended; its last word is the
//! exit record in its folder. Promises: the tasks of a folder are started at most once, whoever starts a supervisor
//! there again; nothing that a task forked is alive when the record is written; the record is on disk before anybody is
//! told. It is a poll loop in a single thread, small and fast, and must not know of jobs, allocations or the
//! controller.

mod account;
mod connection;
mod input;
mod login_env;
mod output;
mod spawn;
mod start;
mod step;
mod task;

pub use step::notice;

use crate::spool;
use sluice_proto::v1::{ExitStatus, StepKey, SupervisorExit, SupervisorSpec};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// Runs the step described in `dir` to its end. An error means that nothing could be recorded.
pub fn run(dir: &Path) -> Result<(), String> {
    detach();
    let listener = listener(dir)?;
    let say = |e: std::io::Error| format!("{}: {e}", dir.display());
    let spec: SupervisorSpec =
        spool::read(dir, spool::SPEC).map_err(say)?.ok_or_else(|| format!("{}: no step here", dir.display()))?;
    if dir.join(spool::EXIT).exists() {
        return Ok(());
    }
    let marker = dir.join(spool::STARTED);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&marker) {
        Ok(file) => {
            // Held for as long as this process lives: shows another supervisor that this one does.
            lock(&file);
            step::Step::begin(spec, dir, listener).run();
            Ok(())
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let file = OpenOptions::new().read(true).open(&marker).map_err(say)?;
            if !lock(&file) {
                return Ok(());
            }
            // Started once, and its supervisor is gone without a last word: never again.
            lost(&spec, dir)
        }
        Err(e) => Err(say(e)),
    }
}

/// Records that the step ended in an unknown way.
fn lost(spec: &SupervisorSpec, dir: &Path) -> Result<(), String> {
    if let Some(path) = spec.cgroup.as_deref() {
        let path = Path::new(std::os::unix::ffi::OsStrExt::from_bytes(path) as &std::ffi::OsStr);
        let _ = crate::cgroup::kill(path);
        crate::cgroup::remove(path);
    }
    let record = SupervisorExit {
        key: spec.key,
        worst: Some(ExitStatus { code: 0, signal: libc::SIGKILL as u32 }),
        end: now_ms(),
        failure: Some(format!("the supervisor of step {} was lost", name(spec.key.as_ref()))),
        node_fault: true,
        ..Default::default()
    };
    spool::write_durable(dir, spool::EXIT, &record).map_err(|e| format!("{}: {e}", dir.display()))
}

fn name(key: Option<&StepKey>) -> String {
    key.map(|k| format!("{}.{}", k.job, spool::step_name(k.step))).unwrap_or_default()
}

fn lock(file: &std::fs::File) -> bool {
    // SAFETY: flock(2) on an open descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// A session of its own (no terminal, no signals of noded's group), and everything that the tasks leave behind becomes
/// a child of this process.
fn detach() {
    // SAFETY: system calls on the calling process with plain numbers.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        for signal in [libc::SIGPIPE, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
}

/// The socket that noded has made and passed as stdin (it can connect at once, without waiting for this process), or a
/// new one.
fn listener(dir: &Path) -> Result<UnixListener, String> {
    let passed =
        nix::sys::socket::getsockopt(&std::io::stdin(), nix::sys::socket::sockopt::AcceptConn).unwrap_or(false);
    let listener = if passed {
        // SAFETY: descriptor 0 is open and a listening socket; it moves to a number of its own, /dev/null takes its place.
        unsafe {
            use std::os::fd::FromRawFd;
            let fd = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
            libc::dup2(null, 0);
            libc::close(null);
            UnixListener::from_raw_fd(fd)
        }
    } else {
        crate::sock::bind(dir, spool::SOCKET).map_err(|e| format!("{}: {e}", dir.join(spool::SOCKET).display()))?
    };
    listener.set_nonblocking(true).map_err(|e| e.to_string())?;
    Ok(listener)
}

/// Milliseconds since the epoch.
fn now_ms() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map(|d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
        .unwrap_or(0)
}
