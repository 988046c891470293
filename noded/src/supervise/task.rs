//! One task while it runs: its process, its pipes, how it ended.

use super::spawn::Failure;
use nix::errno::Errno;
use std::os::fd::{AsRawFd, OwnedFd};

/// How a process ended, as Slurm's `code:signal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: u32,
    pub signal: u32,
}

impl Exit {
    /// From the status that wait(2) gives.
    pub fn from_wait(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Exit { code: 0, signal: libc::WTERMSIG(status) as u32 }
        } else {
            Exit { code: libc::WEXITSTATUS(status) as u32, signal: 0 }
        }
    }
    pub fn is_success(self) -> bool {
        self == Exit::default()
    }
    /// The worse of two, in the order of wait statuses: an exit code outranks a signal.
    pub fn worse(self, other: Exit) -> Exit {
        let rank = |e: Exit| (e.code, e.signal);
        if rank(other) > rank(self) { other } else { self }
    }
    pub fn to_wire(self) -> sluice_proto::v1::ExitStatus {
        sluice_proto::v1::ExitStatus { code: self.code, signal: self.signal }
    }
}

/// A task's pipe that the supervisor reads.
pub struct Source {
    pub fd: OwnedFd,
    pub stderr: bool,
}

pub struct Task {
    pub rank: u32,
    pub pid: i32,
    /// `None` while it runs.
    pub exit: Option<Exit>,
    /// Open until the program runs or the child has said why not.
    pub launching: Option<OwnedFd>,
    pub launch_text: Vec<u8>,
    pub failure: Option<Failure>,
    pub sources: Vec<Source>,
    /// The pipe to its stdin, and how far in the client's stream it is.
    pub stdin: Option<OwnedFd>,
    pub position: u64,
    /// The master of its pseudo-terminal is its stdin and stdout.
    pub tty: bool,
    pub reported: bool,
}

/// One read or write that does not wait.
pub enum Moved {
    Bytes(usize),
    End,
    Later,
}

pub fn read(fd: &OwnedFd, into: &mut [u8]) -> Moved {
    match nix::unistd::read(fd, into) {
        Ok(0) => Moved::End,
        Ok(n) => Moved::Bytes(n),
        Err(Errno::EAGAIN | Errno::EINTR) => Moved::Later,
        // A terminal whose last user is gone says EIO.
        Err(_) => Moved::End,
    }
}

pub fn write(fd: &OwnedFd, from: &[u8]) -> Moved {
    match nix::unistd::write(fd, from) {
        Ok(n) => Moved::Bytes(n),
        Err(Errno::EAGAIN | Errno::EINTR) => Moved::Later,
        Err(_) => Moved::End,
    }
}

pub fn set_nonblocking(fd: &OwnedFd) {
    // SAFETY: flags of an open descriptor.
    unsafe {
        let flags = libc::fcntl(fd.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_outranks_a_signal_and_both_outrank_success() {
        let ok = Exit::default();
        let killed = Exit { code: 0, signal: 9 };
        let failed = Exit { code: 1, signal: 0 };
        assert_eq!(ok.worse(killed), killed);
        assert_eq!(killed.worse(failed), failed);
        assert_eq!(failed.worse(ok), failed);
    }
}
