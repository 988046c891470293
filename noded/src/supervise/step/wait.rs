//! Waiting: the poll set, and what each ready descriptor and each command leads to.

use super::{FAREWELL, Owner, SAMPLE_EVERY, Step};
use crate::procs;
use crate::supervise::connection::Connection;
use crate::supervise::spawn::{self, Failure};
use crate::supervise::start;
use crate::supervise::task::{self, Moved};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sluice_proto::v1::{Stream, TaskOutput, step_output::Kind, supervisor_command};
use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

impl Step {
    pub(super) fn wait(&mut self) {
        let mut owners = vec![Owner::Signals, Owner::Listener];
        let mut fds = vec![
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.listener.as_fd(), PollFlags::POLLIN),
        ];
        let mut add = |owner: Owner, fd: BorrowedFd<'_>, flags: PollFlags| {
            owners.push(owner);
            // SAFETY: every descriptor lives in `self`, which is not touched before the poll has returned.
            fds.push(PollFd::new(unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }, flags));
        };
        for (i, connection) in self.connections.iter().enumerate() {
            let write = if connection.has_pending() { PollFlags::POLLOUT } else { PollFlags::empty() };
            add(Owner::Connection(i), connection.stream.as_fd(), PollFlags::POLLIN | write);
        }
        let room = self.output.has_room();
        for (i, task) in self.tasks.iter().enumerate() {
            if let Some(fd) = &task.launching {
                add(Owner::Launching(i), fd.as_fd(), PollFlags::POLLIN);
            }
            for (at, source) in task.sources.iter().enumerate().filter(|_| room) {
                add(Owner::Output(i, at), source.fd.as_fd(), PollFlags::POLLIN);
            }
            if let Some(fd) = task.stdin.as_ref().filter(|_| !self.input.from(task.position).is_empty()) {
                add(Owner::Stdin, fd.as_fd(), PollFlags::POLLOUT);
            }
        }
        let timeout = self.timeout();
        match poll(&mut fds, timeout) {
            Ok(0) | Err(_) => {}
            Ok(_) => {
                let ready: Vec<(Owner, PollFlags)> = owners
                    .into_iter()
                    .zip(&fds)
                    .filter_map(|(o, fd)| fd.revents().filter(|r| !r.is_empty()).map(|r| (o, r)))
                    .collect();
                self.handle(ready);
            }
        }
        if Instant::now() >= self.next_sample && !self.tasks_over() {
            self.sample();
            self.next_sample = Instant::now() + SAMPLE_EVERY;
        }
    }

    fn timeout(&self) -> PollTimeout {
        let mut left: Option<Duration> = None;
        let mut at_most = |d: Duration| left = Some(left.map_or(d, |l| l.min(d)));
        if let (Some((_, round)), false) = (&self.killing, self.no_children) {
            at_most(Duration::from_millis(u64::from((*round).clamp(1, 50)) * 2));
        }
        let until = |at: Instant| at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        if self.killing.is_none() {
            let leftovers = self.leftovers_until().filter(|_| self.tasks_over());
            self.kill_at().into_iter().chain(leftovers).for_each(|at| at_most(until(at)));
        }
        if let Some(at) = self.gives_up() {
            at_most(until(at));
        }
        if let Some(told) = self.told {
            at_most(until(told + self.grace()));
        }
        if let (Some(again), None) = (self.record_again, self.recorded) {
            at_most(until(again));
        }
        if let Some(recorded) = self.recorded {
            // Only what is still to be said is waited for.
            if self.connections.iter().any(|c| c.has_pending()) {
                at_most(until(recorded + FAREWELL));
            }
        } else if !self.tasks_over() {
            at_most(until(self.next_sample));
        }
        match left {
            None => PollTimeout::NONE,
            Some(d) => PollTimeout::try_from(d).unwrap_or(PollTimeout::MAX),
        }
    }

    fn handle(&mut self, ready: Vec<(Owner, PollFlags)>) {
        // Ended sources are removed after the round, so that indices stay true within it.
        let mut ended = Vec::new();
        let mut commands = Vec::new();
        for (owner, _) in ready {
            match owner {
                Owner::Signals => while let Ok(Some(_)) = self.signals.read_signal() {},
                Owner::Listener => {
                    while let Ok((stream, _)) = self.listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            self.connections.push(Connection::new(stream));
                        }
                    }
                }
                Owner::Connection(i) => {
                    if let Some(connection) = self.connections.get_mut(i) {
                        commands.extend(connection.read().into_iter().map(|c| (i, c)));
                    }
                }
                Owner::Launching(i) => self.read_launch(i),
                Owner::Output(i, at) => {
                    if matches!(self.take(i, at), Moved::End) {
                        ended.push((i, at));
                    }
                }
                Owner::Stdin => {}
            }
        }
        for (i, at) in ended.into_iter().rev() {
            self.end_source(i, at);
        }
        for (i, command) in commands {
            self.command(i, command.kind);
        }
    }

    fn read_launch(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        let Some(fd) = &task.launching else { return };
        let mut chunk = [0; 4096];
        match task::read(fd, &mut chunk) {
            Moved::Bytes(n) => task.launch_text.extend_from_slice(&chunk[..n]),
            Moved::Later => {}
            Moved::End => {
                task.failure = Failure::from_bytes(&task.launch_text);
                task.launching = None;
            }
        }
    }

    fn command(&mut self, index: usize, command: Option<supervisor_command::Kind>) {
        use supervisor_command::Kind as C;
        match command {
            // An empty command asks to be told of the beginning and the end.
            None => self.connections[index].watches = true,
            Some(C::Attach(attach)) => {
                // A client that comes back may be faster than the end of its old connection.
                for other in self.connections.iter_mut().filter(|c| c.is_client()) {
                    other.closed = true;
                    other.sent = None;
                }
                self.connections[index].sent = Some(attach.received);
                self.output.ack(attach.received);
                self.detached = None;
            }
            Some(C::OutputAck(sequence)) if self.connections[index].is_client() => self.output.ack(sequence),
            Some(C::Stdin(data)) if self.connections[index].is_client() => {
                if !self.input.accept(data.offset, &data.data, data.eof) {
                    self.connections[index].closed = true;
                }
            }
            Some(C::OutputAck(_) | C::Stdin(_)) => {}
            Some(C::Signal(signal)) => {
                if signal == libc::SIGKILL as u32 {
                    self.killing.get_or_insert((Instant::now(), 0));
                } else {
                    procs::signal_descendants(std::process::id() as i32, signal as i32);
                }
            }
            Some(C::SignalLeaders(signal)) => {
                for task in self.tasks.iter().filter(|t| t.exit.is_none()) {
                    // SAFETY: the child has not been waited for, so that its number is still its own.
                    unsafe { libc::kill(task.pid, signal as i32) };
                }
            }
            Some(C::Terminate(order)) => self.terminate(&order),
            Some(C::KillAll(_)) => self.kill_all(),
            Some(C::Suspend(suspend)) => {
                let signal = if suspend { libc::SIGSTOP } else { libc::SIGCONT };
                // Twice: what was forked while the first round went by is found by the second.
                for _ in 0..2 {
                    procs::signal_descendants(std::process::id() as i32, signal);
                }
            }
            Some(C::Window(size)) => {
                let size = start::winsize(size.rows, size.cols);
                for task in self.tasks.iter().filter(|t| t.tty) {
                    if let Some(source) = task.sources.first() {
                        // SAFETY: TIOCSWINSZ reads the struct, which outlives the call.
                        unsafe { libc::ioctl(source.fd.as_raw_fd(), libc::TIOCSWINSZ, &size) };
                    }
                }
            }
            Some(C::Notify(line)) => self.notify(&line),
        }
    }

    /// Says a line on the first task's stderr: to the client, or into the file with the user's rights.
    pub(super) fn notify(&mut self, line: &[u8]) {
        if std::mem::replace(&mut self.ending.noticed, true) {
            return;
        }
        let Some(task) = self.spec.tasks.first() else { return };
        if self.spec.client && task.stderr_path.is_none() && task.stdout_path.is_none() {
            if !self.last_word {
                self.output.push(Kind::Output(TaskOutput {
                    task: task.rank,
                    stream: Stream::Stderr.into(),
                    data: line.to_vec().into(),
                    eof: false,
                }));
            }
            return;
        }
        let Some(path) = task.stderr_path.as_ref().or(task.stdout_path.as_ref()) else { return };
        // SAFETY: a single thread; the child leaves by _exit.
        if unsafe { libc::fork() } == 0 {
            let user = self.setup.account.as_ref().map_or(Ok(()), spawn::become_user);
            let at = Path::new(OsStr::from_bytes(&self.spec.work_dir)).join(OsStr::from_bytes(path));
            if user.is_ok()
                && let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(at)
            {
                let _ = file.write_all(line);
            }
            // SAFETY: as above.
            unsafe { libc::_exit(0) };
        }
    }
}
