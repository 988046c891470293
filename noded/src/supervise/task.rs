//! One task while it runs: its process, its pipes, how it ended.

use super::spawn::Failure;
use nix::errno::Errno;
use sluice_model::state::ExitStatus;
use sluice_model::step::Usage;
use std::os::fd::{AsRawFd, OwnedFd};

/// A task's pipe that the supervisor reads.
pub struct Source {
    pub fd: OwnedFd,
    pub stderr: bool,
}

pub struct Task {
    pub rank: u32,
    pub pid: i32,
    /// `None` while it runs.
    pub exit: Option<ExitStatus>,
    /// Of its process and of what that has waited for.
    pub usage: Usage,
    /// The kernel wrote its memory to a file as it died.
    pub core: bool,
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
