//! The command that salloc runs.
//!
//! At a terminal it shares salloc's process group, so that Ctrl-C and job control reach it directly and salloc keeps out
//! of the way. Elsewhere it gets a group of its own, so that all of it can be signalled. While it runs, salloc itself
//! ignores most signals (salloc's manual page, "SIGNALS").

use crate::settings::BadValue;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use sluice_proto::v1;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;

pub struct Child {
    process: tokio::process::Child,
    pid: Pid,
    own_group: bool,
}

/// Starts the command, or the user's shell.
pub fn spawn(operands: &[OsString], environment: Vec<(OsString, OsString)>, dir: &OsStr) -> Result<Child, BadValue> {
    let shell = shell();
    let (program, args) = operands.split_first().unwrap_or((&shell, &[]));
    let own_group = !(std::io::stdin().is_terminal() || in_foreground());
    let mut command = std::process::Command::new(program);
    command.args(args).env_clear().envs(environment).current_dir(dir);
    if own_group {
        command.process_group(0);
    }
    let process = tokio::process::Command::from(command).spawn().map_err(|e| {
        let name = program.to_string_lossy();
        if e.kind() == std::io::ErrorKind::NotFound && !std::path::Path::new(dir).is_dir() {
            return BadValue::line(1, format!("chdir({}): {e}", dir.to_string_lossy()));
        }
        BadValue::line(1, format!("_fork_command: Unable to find command \"{name}\""))
    })?;
    let pid = process.id().and_then(|id| i32::try_from(id).ok()).map_or(Pid::from_raw(0), Pid::from_raw);
    Ok(Child { process, pid, own_group })
}

/// Whether keys at the terminal signal our group, even though standard input may come from elsewhere.
fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|tty| nix::unistd::tcgetpgrp(&tty) == Ok(nix::unistd::getpgrp()))
}

/// What a signal to salloc alone leads to while the command runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attended {
    /// salloc stays until the command ends.
    Stay,
    /// The allocation is given back without waiting for the command.
    Leave,
}

/// The user's shell: SHELL, else the password file's, else /bin/sh.
fn shell() -> OsString {
    let of_user = || {
        let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten()?;
        Some(user.shell.into_os_string()).filter(|s| !s.is_empty())
    };
    std::env::var_os("SHELL").filter(|s| !s.is_empty()).or_else(of_user).unwrap_or_else(|| "/bin/sh".into())
}

impl Child {
    /// May be dropped and called again.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.process.wait().await
    }

    fn signal(&self, signal: Signal) {
        if self.pid.as_raw() <= 0 {
            return;
        }
        // A command that is gone needs no signal.
        let _ = if self.own_group { killpg(self.pid, signal) } else { kill(self.pid, signal) };
    }

    /// SIGTERM is passed on, a hangup ends it all, the rest is ignored: keys at the terminal reach the command by
    /// themselves.
    pub fn attend_to(&self, signal: i32) -> Attended {
        match Signal::try_from(signal) {
            Ok(Signal::SIGTERM) => self.signal(Signal::SIGTERM),
            Ok(Signal::SIGHUP) => {
                self.signal(Signal::SIGHUP);
                self.signal(Signal::SIGCONT);
                return Attended::Leave;
            }
            _ => {}
        }
        Attended::Stay
    }

    /// The allocation is gone: `--kill-command`'s signal, else SIGHUP at a terminal and SIGTERM elsewhere.
    pub fn revoke(&self, asked: Option<u8>) {
        let default = if self.own_group { Signal::SIGTERM } else { Signal::SIGHUP };
        let signal = asked.and_then(|n| Signal::try_from(i32::from(n)).ok()).unwrap_or(default);
        self.signal(signal);
        self.signal(Signal::SIGCONT);
    }
}

/// salloc's exit code, and the job's.
pub fn exit_code(status: std::io::Result<ExitStatus>) -> (u8, v1::ExitStatus) {
    let Ok(status) = status else { return (1, v1::ExitStatus { code: 1, signal: 0 }) };
    let byte = |n: i32| u8::try_from(n).unwrap_or(1);
    match (status.code(), status.signal()) {
        (Some(code), _) => (byte(code), v1::ExitStatus { code: u32::from(byte(code)), signal: 0 }),
        (None, Some(signal)) => {
            (byte(signal).saturating_add(128), v1::ExitStatus { code: 0, signal: u32::from(byte(signal)) })
        }
        (None, None) => (1, v1::ExitStatus { code: 1, signal: 0 }),
    }
}
