//! The supervisor's loop: one step, from its first task to its last word.
//!
//! Everything happens in [`Step::progress`], which looks at what is so and does what follows; the poll around it only
//! waits. The order at the end: every task over → everything that they left behind killed and gone → exit record
//! synced → told to noded → remaining output delivered → leave.

mod processes;
mod terminate;
mod wait;

pub use terminate::notice;

use super::connection::Connection;
use super::input::Input;
use super::output::Output;
use super::spawn::Failure;
use super::start::{self, Setup};
use super::task::{self, Moved, Source, Task};
use crate::{cgroup, spool};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sluice_model::state::ExitStatus;
use sluice_proto::v1::{
    PartEnded, Started, StdinRoom, StepOutput, Stream, SupervisorExit, SupervisorSpec, TaskExit, TaskOutput, Terminate,
    Usage, step_output::Kind,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use terminate::Ending;

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
    ending: Ending,
    /// Everything is to be killed, since when and how often it was tried.
    killing: Option<(Instant, u32)>,
    no_children: bool,
    recorded: Option<Instant>,
    record_again: Option<Instant>,
    last_word: bool,
    /// Nobody takes the output, since then.
    detached: Option<Instant>,
    /// A node daemon watches, since then.
    watched: Option<Instant>,
    /// A node daemon knows of the end, since then.
    told: Option<Instant>,
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
            watched: None,
            told: None,
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
            ending: Ending::default(),
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

    /// When a client that stays away is given up. Only the time counts in which a node daemon was there to let it in: a
    /// daemon that is down costs no step.
    fn gives_up(&self) -> Option<Instant> {
        let there = self.told.or(self.watched)?;
        Some(self.detached?.max(there) + self.grace())
    }

    fn abandoned(&self) -> bool {
        self.gives_up().is_some_and(|at| at <= Instant::now())
    }

    // ---- what follows from what is so ----

    fn progress(&mut self) {
        self.report_exits();
        if self.abandoned() && !self.tasks_over() && self.killing.is_none() {
            self.message = Some(format!("no srun was attached for {} s", self.grace().as_secs()));
            self.kill_all();
        }
        self.terminate_in_time();
        let left_alone = self.leftovers_until().is_some_and(|at| at > Instant::now()) && !self.no_children;
        if self.tasks_over() && self.killing.is_none() && !left_alone {
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
            self.terminate(&Terminate { then_kill: true, ..Terminate::default() });
        }
    }

    fn kill_all(&mut self) {
        self.cancelled |= !self.tasks_over();
        self.killing.get_or_insert((Instant::now(), 0));
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
                self.told.get_or_insert_with(Instant::now);
            }
            connection.write();
        }
        let had_client = self.connections.iter().any(Connection::is_client);
        self.connections.retain(|c| !c.closed);
        self.watched = match self.connections.iter().any(|c| c.watches) {
            true => self.watched.or_else(|| Some(Instant::now())),
            false => None,
        };
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
            spread: self.spread(),
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
            || (!clients && (self.cancelled || self.ending.job_over || self.abandoned()))
            || self.told.is_some_and(|at| at.elapsed() >= self.grace());
        let told = self.connections.iter().all(|c| !c.has_pending()) || recorded.elapsed() >= FAREWELL;
        delivered && told
    }
}

fn task_exit(task: &Task, exit: ExitStatus) -> TaskExit {
    TaskExit {
        task: task.rank,
        exit: Some((&exit).into()),
        failure: task.failure.as_ref().map(|f| f.text.clone()),
        core: task.core,
    }
}
