//! The supervisor's loop: one step, from its first task to its last word.
//!
//! Everything happens in [`Step::progress`], which looks at what is so and does what follows; the poll around it only
//! waits. The order at the end: every task over → everything that they left behind killed and gone → exit record
//! synced → told to noded → remaining output delivered → leave.

use super::connection::Connection;
use super::input::Input;
use super::output::Output;
use super::spawn::{self, Failure};
use super::start::{self, Setup};
use super::task::{self, Moved, Source, Task};
use crate::{cgroup, procs, spool};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sluice_model::state::ExitStatus;
use sluice_proto::v1::{
    PartEnded, Started, StdinRoom, StepOutput, Stream, SupervisorExit, SupervisorSpec, TaskExit, TaskOutput, Usage,
    step_output::Kind, supervisor_command,
};
use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often memory and I/O of living processes are looked at.
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
/// How long the last word waits for a noded that does not read.
const FAREWELL: Duration = Duration::from_secs(5);

pub struct Step {
    spec: SupervisorSpec,
    dir: PathBuf,
    listener: UnixListener,
    signals: SignalFd,
    setup: Setup,
    tasks: Vec<Task>,
    connections: Vec<Connection>,
    output: Output,
    input: Input,
    room_told: u64,
    usage: Usage,
    /// Nothing was started.
    failure: Option<Failure>,
    cancelled: bool,
    message: Option<String>,
    /// Everything is to be killed, since when and how often it was tried.
    killing: Option<(Instant, u32)>,
    no_children: bool,
    recorded: Option<Instant>,
    record_again: Option<Instant>,
    last_word: bool,
    /// Nobody takes the output, since then.
    detached: Option<Instant>,
    next_sample: Instant,
}

/// What a descriptor in the poll set belongs to.
#[derive(Clone, Copy)]
enum Owner {
    Signals,
    Listener,
    Connection(usize),
    Launching(usize),
    Output(usize, usize),
    Stdin,
}

impl Step {
    /// Sets up and forks all tasks. Never fails: what goes wrong becomes the step's result.
    pub fn begin(spec: SupervisorSpec, dir: &Path, listener: UnixListener) -> Step {
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let signals = mask
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC));
        let signals = match signals {
            Ok(signals) => signals,
            // Without it no end would be noticed; noded finds the marker without a last word.
            Err(e) => panic!("signalfd: {e}"),
        };
        let (setup, tasks, failure) = match start::prepare(&spec, dir) {
            Ok(setup) => {
                let tasks = start::fork_all(&spec, &setup);
                (setup, tasks, None)
            }
            Err(failure) => (Setup::default(), Vec::new(), Some(failure)),
        };
        let now = Instant::now();
        Step {
            detached: spec.client.then_some(now),
            spec,
            dir: dir.to_owned(),
            listener,
            signals,
            setup,
            tasks,
            connections: Vec::new(),
            output: Output::new(),
            input: Input::default(),
            room_told: 0,
            usage: Usage::default(),
            failure,
            cancelled: false,
            message: None,
            killing: None,
            no_children: false,
            recorded: None,
            record_again: None,
            last_word: false,
            next_sample: now + Duration::from_secs(1),
        }
    }

    pub fn run(mut self) {
        loop {
            self.reap();
            self.progress();
            if self.is_finished() {
                return;
            }
            self.wait();
        }
    }

    fn is_launched(&self) -> bool {
        self.tasks.iter().all(|t| t.launching.is_none())
    }

    fn tasks_over(&self) -> bool {
        self.tasks.iter().all(|t| t.exit.is_some() && t.launching.is_none())
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(match self.spec.client_grace_secs {
            0 => 60,
            secs => u64::from(secs),
        })
    }

    fn abandoned(&self) -> bool {
        self.detached.is_some_and(|since| since.elapsed() >= self.grace())
    }

    // ---- what follows from what is so ----

    fn progress(&mut self) {
        self.report_exits();
        if self.abandoned() && !self.tasks_over() && self.killing.is_none() {
            self.message = Some(format!("no srun was attached for {} s", self.grace().as_secs()));
            self.kill_all();
        }
        if self.tasks_over() && self.killing.is_none() {
            self.killing = Some((Instant::now(), 0));
        }
        if self.killing.is_some() && !self.no_children {
            self.kill_what_lives();
            self.reap();
        }
        self.pump_stdin();
        let gone = self.no_children && self.tasks_over();
        for index in 0..self.tasks.len() {
            self.drain(index, gone);
        }
        if gone && self.recorded.is_none() && self.record_again.is_none_or(|at| Instant::now() >= at) {
            self.record();
        }
        if gone && !self.last_word && self.tasks.iter().all(|t| t.sources.is_empty()) {
            self.report_exits();
            self.last_word = true;
            if self.spec.client {
                self.output.push(Kind::Ended(self.part_ended()));
            }
        }
        self.serve_connections();
    }

    /// Task ends that nobody has heard of yet, and what a bad one means for the others.
    fn report_exits(&mut self) {
        let mut bad = false;
        for task in self.tasks.iter_mut().filter(|t| !t.reported && t.launching.is_none()) {
            let Some(exit) = task.exit else { continue };
            task.reported = true;
            bad |= !exit.is_success();
            if self.spec.client {
                self.output.push(Kind::Exit(task_exit(task, exit)));
            }
        }
        if bad && self.spec.kill_on_bad_exit && self.killing.is_none() && !self.tasks_over() {
            self.killing = Some((Instant::now(), 0));
        }
    }

    fn kill_all(&mut self) {
        self.cancelled |= !self.tasks_over();
        self.killing.get_or_insert((Instant::now(), 0));
    }

    /// One round of killing; rounds repeat until wait(2) knows no child, which for a subreaper means that nothing is
    /// left.
    fn kill_what_lives(&mut self) {
        let by_kernel = self.setup.cgroup.as_deref().is_some_and(|path| cgroup::kill(path).is_ok());
        // Also what is not in the group: a task on its way there, or a login shell's left-over.
        let round = self.killing.as_ref().map_or(0, |(_, round)| *round);
        if !by_kernel || round > 0 {
            procs::signal_descendants(std::process::id() as i32, libc::SIGKILL);
        }
        if let Some((_, round)) = &mut self.killing {
            *round = round.saturating_add(1);
        }
    }

    /// Takes what the tasks have written, as long as there is room. When everything is dead, an empty pipe is over even
    /// if a stranger still holds its other end.
    fn drain(&mut self, index: usize, gone: bool) {
        if !gone {
            return;
        }
        while !self.tasks[index].sources.is_empty() && self.output.has_room() {
            if !matches!(self.take(index, 0), Moved::Bytes(_)) {
                self.end_source(index, 0);
            }
        }
    }

    /// One read from a source into the output.
    fn take(&mut self, index: usize, at: usize) -> Moved {
        let mut chunk = [0; 65536];
        let task = &self.tasks[index];
        let Some(Source { fd, stderr }) = task.sources.get(at) else { return Moved::Later };
        let moved = task::read(fd, &mut chunk);
        if let Moved::Bytes(n) = moved {
            let stream = if *stderr { Stream::Stderr } else { Stream::Stdout };
            let output =
                TaskOutput { task: task.rank, stream: stream.into(), data: chunk[..n].to_vec().into(), eof: false };
            self.output.push(Kind::Output(output));
        }
        moved
    }

    fn end_source(&mut self, index: usize, at: usize) {
        let task = &mut self.tasks[index];
        let source = task.sources.remove(at);
        let stream = if source.stderr { Stream::Stderr } else { Stream::Stdout };
        self.output.push(Kind::Output(TaskOutput {
            task: task.rank,
            stream: stream.into(),
            data: Default::default(),
            eof: true,
        }));
    }

    /// Gives each task what it has not had of the client's stdin.
    fn pump_stdin(&mut self) {
        for task in &mut self.tasks {
            if task.exit.is_some() && !task.tty {
                task.stdin = None;
            }
            while let Some(fd) = &task.stdin {
                let data = self.input.from(task.position);
                if data.is_empty() {
                    if self.input.at_eof(task.position) {
                        if task.tty {
                            // A terminal has no end; its users type one.
                            let _ = task::write(fd, &[4]);
                        }
                        task.stdin = None;
                    }
                    break;
                }
                match task::write(fd, data) {
                    Moved::Bytes(n) => task.position += n as u64,
                    Moved::Later => break,
                    Moved::End => task.stdin = None,
                }
            }
        }
        self.input.trim(self.tasks.iter().filter(|t| t.stdin.is_some()).map(|t| t.position).min());
    }

    fn serve_connections(&mut self) {
        let room = self.input.room();
        let started = (self.is_launched() || self.recorded.is_some()).then(|| StepOutput {
            sequence: 0,
            kind: Some(Kind::Started(Started {
                pids: self.tasks.iter().map(|t| t.pid as u32).collect(),
                stdin_offset: self.input.end(),
            })),
        });
        let ended = self.recorded.map(|_| StepOutput { sequence: 0, kind: Some(Kind::Ended(self.part_ended())) });
        for connection in &mut self.connections {
            let waits_for_greeting = !connection.greeted && (connection.watches || connection.is_client());
            if let (true, Some(started)) = (waits_for_greeting, &started) {
                connection.send(started);
                connection.greeted = true;
                if connection.is_client() {
                    self.room_told = 0;
                }
            }
            if connection.is_client() && connection.greeted {
                if room != self.room_told {
                    self.room_told = room;
                    connection
                        .send(&StepOutput { sequence: 0, kind: Some(Kind::StdinRoom(StdinRoom { offset: room })) });
                }
                connection.fill(&self.output);
            } else if let (Some(ended), true, false) = (&ended, connection.greeted, connection.told_end) {
                connection.send(ended);
                connection.told_end = true;
            }
            connection.write();
        }
        let had_client = self.connections.iter().any(Connection::is_client);
        self.connections.retain(|c| !c.closed);
        if had_client && !self.connections.iter().any(Connection::is_client) {
            self.detached = Some(Instant::now());
        }
    }

    fn part_ended(&self) -> PartEnded {
        let message = self.failure.as_ref().map(|f| f.text.clone()).or_else(|| self.message.clone());
        PartEnded { usage: Some(self.usage), worst: Some((&self.worst()).into()), cancelled: self.cancelled, message }
    }

    fn worst(&self) -> ExitStatus {
        match &self.failure {
            Some(failure) => failure.exit(),
            None => self.tasks.iter().filter_map(|t| t.exit).fold(ExitStatus::default(), ExitStatus::worse),
        }
    }

    /// Writes the last word. From here on a restarted noded knows how the step ended without this process.
    fn record(&mut self) {
        if let Some(path) = self.setup.cgroup.take() {
            if let Some(peak) = cgroup::memory_peak(&path) {
                self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(peak);
            }
            cgroup::remove(&path);
        }
        let failure = self.failure.as_ref().or_else(|| {
            let all = !self.tasks.is_empty() && self.tasks.iter().all(|t| t.failure.is_some());
            self.tasks.first().filter(|_| all).and_then(|t| t.failure.as_ref())
        });
        let record = SupervisorExit {
            key: self.spec.key,
            worst: Some((&self.worst()).into()),
            usage: Some(self.usage),
            tasks: self.tasks.iter().filter_map(|t| t.exit.map(|e| task_exit(t, e))).collect(),
            end: super::now_ms(),
            cancelled: self.cancelled,
            failure: failure.map(|f| f.text.clone()),
            node_fault: failure.is_some_and(|f| f.node),
        };
        match spool::write_durable(&self.dir, spool::EXIT, &record) {
            Ok(()) => {}
            // The folder was removed: the attempt is over and nobody asks any more.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            // A full disk: the truth about the step is worth waiting for.
            Err(_) => {
                self.record_again = Some(Instant::now() + Duration::from_secs(1));
                return;
            }
        }
        self.recorded = Some(Instant::now());
    }

    fn is_finished(&self) -> bool {
        let Some(recorded) = self.recorded else { return false };
        let clients = self.connections.iter().any(Connection::is_client);
        let delivered = !self.spec.client
            || (self.last_word && self.output.is_empty())
            || (!clients && (self.cancelled || self.abandoned()))
            || recorded.elapsed() >= self.grace();
        let told = self.connections.iter().all(|c| !c.has_pending()) || recorded.elapsed() >= FAREWELL;
        delivered && told
    }

    // ---- waiting ----

    fn wait(&mut self) {
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
        if let Some(since) = self.detached {
            at_most(self.grace().saturating_sub(since.elapsed()).max(Duration::from_millis(1)));
        }
        if let (Some(again), None) = (self.record_again, self.recorded) {
            at_most(again.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        }
        if let Some(recorded) = self.recorded {
            let until = if self.spec.client { self.grace() } else { FAREWELL };
            at_most(until.saturating_sub(recorded.elapsed()).max(Duration::from_millis(1)));
        } else if !self.tasks_over() {
            at_most(self.next_sample.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
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
    fn notify(&mut self, line: &[u8]) {
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

    // ---- processes ----

    /// Takes the status and the usage of everything that has ended.
    fn reap(&mut self) {
        loop {
            // SAFETY: waitid(2) fills the struct on the stack; the child stays a zombie until wait4 below.
            let (result, pid) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                (libc::waitid(libc::P_ALL, 0, &mut info, flags), info.si_pid())
            };
            if result != 0 {
                self.no_children = nix::errno::Errno::last() == nix::errno::Errno::ECHILD;
                return;
            }
            if pid == 0 {
                self.no_children = false;
                return;
            }
            let (read, written) = procs::io(pid);
            // SAFETY: wait4(2) fills both values on the stack.
            let (status, usage) = unsafe {
                let mut status = 0;
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::wait4(pid, &mut status, 0, &mut usage);
                (status, usage)
            };
            let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
            self.usage.user_cpu_us += us(usage.ru_utime);
            self.usage.system_cpu_us += us(usage.ru_stime);
            self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(usage.ru_maxrss as u64 * 1024);
            self.usage.major_faults += usage.ru_majflt as u64;
            self.usage.read_bytes += read;
            self.usage.written_bytes += written;
            if let Some(task) = self.tasks.iter_mut().find(|t| t.pid == pid && t.exit.is_none()) {
                task.exit = Some(ExitStatus::from_wait(status));
            }
        }
    }

    /// Peaks that the kernel does not hand over at the end.
    fn sample(&mut self) {
        for pid in procs::descendants(std::process::id() as i32) {
            let sample = procs::sample(pid);
            self.usage.max_vmsize_bytes = self.usage.max_vmsize_bytes.max(sample.peak_vm_bytes);
            self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(sample.peak_rss_bytes);
        }
    }
}

fn task_exit(task: &Task, exit: ExitStatus) -> TaskExit {
    TaskExit { task: task.rank, exit: Some((&exit).into()), failure: task.failure.as_ref().map(|f| f.text.clone()) }
}
