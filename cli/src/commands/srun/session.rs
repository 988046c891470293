//! A step while it runs, seen from srun.
//!
//! Owns the loop that carries output from the nodes to where it goes, stdin to the nodes, signals to the tasks, and
//! decides when the step is over. Everything slow (reading, writing, connecting) happens elsewhere; this loop never
//! waits for any one of them.

mod ending;

use super::exits::Exits;
use super::interrupt::Interrupts;
use super::lines::Lines;
use super::node::{self, Heard, Part};
use super::stdin::{self, Stdin};
use super::terminal::RawTerminal;
use super::writer::{Sink, Writer, Written};
use crate::signals::Signals;
use sluice_model::IndexSet;
use sluice_model::state::ExitStatus;
use sluice_proto::v1::{self, step_input, step_output};
use std::future::Future;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Ends of tasks that come close together are told in one line.
const TELL_TOGETHER: Duration = Duration::from_millis(15);

/// Where a stream's bytes go; None: nowhere.
pub struct Outlet {
    pub sink: Option<usize>,
    pub lines: Lines,
    /// Only this task's.
    pub only: Option<u32>,
}

/// Everything about the step that the loop needs.
pub struct Session {
    pub parts: Vec<Part>,
    /// Tasks of each part.
    pub tasks: Vec<Vec<u32>>,
    /// `15.0`
    pub step: String,
    pub sinks: Vec<Sink>,
    pub stdout: Outlet,
    pub stderr: Outlet,
    pub stdin: Option<stdin::Source>,
    /// Which parts have tasks that read it.
    pub stdin_readers: Vec<bool>,
    pub kill_on_bad_exit: bool,
    /// From SIGTERM to SIGKILL: the cluster's KillWait.
    pub kill_wait: Duration,
    pub wait_secs: Option<u32>,
    pub interrupts: Interrupts,
    pub pty: bool,
    pub quiet: bool,
    pub verbose: u32,
}

/// How it ended.
pub struct Ended {
    /// What srun exits with.
    pub code: u8,
    /// The worst task's end.
    pub worst: ExitStatus,
}

/// Runs the step to its end. `job_over` completes when the allocation has ended by itself.
pub async fn run(session: Session, signals: &mut Signals, job_over: impl Future<Output = ()>) -> Ended {
    let mut state = State::new(session);
    let mut job_over = std::pin::pin!(job_over);
    let mut job_is_over = false;
    let _terminal = state.session.pty.then(RawTerminal::enter);
    while !state.is_over() {
        let deadline = state.deadline();
        tokio::select! {
            Some((node, heard)) = state.heard.recv() => state.hear(node, heard),
            Some(written) = state.written.recv() => state.acknowledge(written),
            chunk = next_chunk(&mut state.input), if state.stdin.wants_more() => {
                state.stdin.take(&chunk.unwrap_or_default());
                state.pump_stdin();
            }
            signal = signals.next() => state.signal(signal),
            () = sleep_until(deadline) => state.tick(),
            () = &mut job_over, if !job_is_over => {
                job_is_over = true;
                state.job_ended();
            }
        }
    }
    state.finish().await
}

async fn next_chunk(input: &mut Option<mpsc::Receiver<Vec<u8>>>) -> Option<Vec<u8>> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

struct NodeState {
    inputs: mpsc::UnboundedSender<step_input::Kind>,
    task: tokio::task::JoinHandle<()>,
    started: bool,
    /// Nothing more comes from it.
    over: bool,
    /// Sequence numbers: the last one heard and the last one written.
    last: u64,
    written: u64,
}

struct State {
    session: Session,
    nodes: Vec<NodeState>,
    names: Vec<String>,
    heard: mpsc::UnboundedReceiver<(usize, Heard)>,
    written: mpsc::UnboundedReceiver<Written>,
    writer: Writer,
    stdin: Stdin,
    input: Option<mpsc::Receiver<Vec<u8>>>,
    exits: Exits,
    tell_at: Option<Instant>,
    first_end: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
    terminating: bool,
    job_is_over: bool,
    /// Lines of our own that are not written yet.
    talk: usize,
    /// Tasks whose stderr already holds why they could not be started.
    explained: IndexSet,
    /// A problem of ours; exit with at least 1.
    trouble: bool,
}

impl State {
    fn new(mut session: Session) -> State {
        let (heard_by, heard) = mpsc::unbounded_channel();
        let (done, written) = mpsc::unbounded_channel();
        let names: Vec<String> = session.parts.iter().map(|p| p.node.clone()).collect();
        let nodes = std::mem::take(&mut session.parts)
            .into_iter()
            .map(|part| {
                let (inputs, receiver) = mpsc::unbounded_channel();
                let task = tokio::spawn(node::run(part, receiver, heard_by.clone()));
                NodeState { inputs, task, started: false, over: false, last: 0, written: 0 }
            })
            .collect();
        let writer = Writer::new(std::mem::take(&mut session.sinks), done);
        let stdin = Stdin::new(&session.stdin_readers);
        State {
            nodes,
            names,
            heard,
            written,
            writer,
            stdin,
            input: None,
            exits: Exits::default(),
            tell_at: None,
            first_end: None,
            kill_at: None,
            give_up_at: None,
            terminating: false,
            job_is_over: false,
            talk: 0,
            explained: IndexSet::new(),
            trouble: false,
            session,
        }
    }

    /// Nothing more comes and all of it is written.
    fn is_over(&self) -> bool {
        self.talk == 0 && self.nodes.iter().all(|n| n.over && n.written >= n.last)
    }

    fn say(&mut self, text: &str) {
        if !self.session.quiet {
            self.talk_in_order(format!("srun: {text}"));
        }
    }

    fn hear(&mut self, node: usize, heard: Heard) {
        match heard {
            Heard::Output(output) => self.output(node, output),
            Heard::Detached => self.stdin.detached(node),
            Heard::Lost(problem) => {
                crate::errln!("srun: error: Node failure on {}: {problem}", self.names[node]);
                self.part_over(node);
                self.trouble = true;
                self.terminate(false);
            }
            Heard::Refused(error) => {
                if let Some(detail) = error.detail() {
                    crate::errln!("srun: error: {}: {detail}", self.names[node]);
                }
                crate::errln!(
                    "srun: error: Task launch for StepId={} failed on node {}: {error}",
                    self.session.step,
                    self.names[node]
                );
                self.part_over(node);
                self.trouble = true;
                self.terminate(false);
            }
        }
    }

    fn part_over(&mut self, node: usize) {
        self.nodes[node].over = true;
        // What it never sent needs no waiting for.
        self.nodes[node].last = self.nodes[node].written.max(self.nodes[node].last);
        self.stdin.ended(node);
        self.pump_stdin();
    }

    fn output(&mut self, node: usize, output: v1::StepOutput) {
        let done = (output.sequence > 0).then_some(Written::Output { node, sequence: output.sequence });
        self.nodes[node].last = self.nodes[node].last.max(output.sequence);
        match output.kind {
            Some(step_output::Kind::Started(started)) => {
                self.nodes[node].started = true;
                self.stdin.started(node, started.stdin_offset);
                self.begin_reading();
                self.pump_stdin();
                self.acknowledge_nothing(done);
            }
            Some(step_output::Kind::StdinRoom(room)) => {
                self.stdin.room(node, room.offset);
                self.pump_stdin();
                self.acknowledge_nothing(done);
            }
            Some(step_output::Kind::Output(output)) => self.task_output(output, done),
            Some(step_output::Kind::Exit(exit)) => {
                self.task_exit(node, exit);
                self.acknowledge_nothing(done);
            }
            Some(step_output::Kind::Ended(ended)) => {
                self.part_ended(node, ended);
                self.acknowledge_nothing(done);
            }
            None => self.acknowledge_nothing(done),
        }
    }

    /// In order with what is still to be written.
    fn acknowledge_nothing(&mut self, done: Option<Written>) {
        if done.is_some() {
            self.writer.write(0, Vec::new(), done);
        }
    }

    fn task_output(&mut self, output: v1::TaskOutput, done: Option<Written>) {
        let is_stderr = output.stream() == v1::Stream::Stderr;
        if is_stderr && output.data.starts_with(b"slurmstepd: error: ") {
            self.explained.insert(output.task);
        }
        let outlet = if is_stderr { &mut self.session.stderr } else { &mut self.session.stdout };
        let wanted = outlet.only.is_none_or(|only| only == output.task);
        let data = match outlet.sink {
            Some(_) if wanted => outlet.lines.push(output.task, &output.data, output.eof),
            _ => Vec::new(),
        };
        self.writer.write(outlet.sink.unwrap_or(0), data, done);
    }

    fn task_exit(&mut self, node: usize, exit: v1::TaskExit) {
        let status = status(exit.exit);
        if let Some(failure) = exit.failure.as_ref().filter(|_| !self.explained.contains(exit.task)) {
            self.talk_in_order(format!("slurmstepd-{}: error: {failure}", self.names[node]));
        }
        self.exits.add(node, exit.task, status, exit.core);
        self.first_end.get_or_insert_with(Instant::now);
        if self.session.verbose > 0 && status.is_success() {
            let text = format!("{}: task {}: Completed", self.names[node], exit.task);
            self.say(&text);
        }
        if self.exits.has_untold() {
            self.tell_at.get_or_insert_with(|| Instant::now() + TELL_TOGETHER);
        }
        if !status.is_success() && self.session.kill_on_bad_exit && !self.terminating {
            self.tell_exits();
            if !self.all_ended() {
                let text = format!("Terminating StepId={}", self.session.step);
                self.say(&text);
                self.terminate(false);
            }
        }
    }

    fn all_ended(&self) -> bool {
        self.exits.ended.len() >= self.session.tasks.iter().map(|t| t.len() as u64).sum()
    }

    fn part_ended(&mut self, node: usize, ended: v1::PartEnded) {
        self.nodes[node].over = true;
        self.stdin.ended(node);
        self.pump_stdin();
        let told_by_tasks = self.session.tasks[node].iter().any(|t| self.exits.ended.contains(*t));
        if let Some(message) = ended.message.filter(|_| !told_by_tasks || ended.cancelled) {
            self.talk_in_order(format!("slurmstepd-{}: error: {message}", self.names[node]));
        }
        self.exits.add_part(status(ended.worst));
        if self.nodes.iter().all(|n| n.over) {
            self.tell_exits();
        }
    }

    /// To srun's own stderr, after what tasks have written before.
    fn talk_in_order(&mut self, mut line: String) {
        line.push('\n');
        self.talk += 1;
        self.writer.write(super::launch::STDERR, line.into_bytes(), Some(Written::Talk));
    }

    fn tell_exits(&mut self) {
        self.tell_at = None;
        for line in self.exits.tell(&self.names) {
            self.talk_in_order(format!("srun: {line}"));
        }
    }

    fn acknowledge(&mut self, first: Written) {
        let mut latest = vec![0; self.nodes.len()];
        let mut next = Some(first);
        let mut broken = false;
        while let Some(written) = next {
            match written {
                Written::Output { node, sequence } => latest[node] = latest[node].max(sequence),
                Written::Broken => broken = true,
                Written::Talk => self.talk = self.talk.saturating_sub(1),
            }
            next = self.written.try_recv().ok();
        }
        for (node, sequence) in latest.into_iter().enumerate().filter(|(_, s)| *s > 0) {
            self.nodes[node].written = self.nodes[node].written.max(sequence);
            self.send(node, step_input::Kind::OutputAck(sequence));
        }
        if broken {
            // As a program of its own would, the step ends when nobody wants its output (`srun yes | head`).
            self.terminate(false);
        }
    }

    /// A node whose task is gone has nothing to be told.
    fn send(&self, node: usize, kind: step_input::Kind) {
        let _ = self.nodes[node].inputs.send(kind);
    }

    fn send_all(&self, kind: &step_input::Kind) {
        (0..self.nodes.len()).filter(|n| !self.nodes[*n].over).for_each(|n| self.send(n, kind.clone()));
    }

    /// Reads stdin once every task that reads it is there.
    fn begin_reading(&mut self) {
        if self.nodes.iter().all(|n| n.started || n.over)
            && let Some(source) = self.session.stdin.take()
        {
            self.input = Some(stdin::start(source));
        }
    }

    fn pump_stdin(&mut self) {
        let nodes = &self.nodes;
        self.stdin.pump(|node, data| {
            let _ = nodes[node].inputs.send(step_input::Kind::Stdin(data));
        });
    }

    /// Lets the last acknowledgements go out, and says the last words.
    async fn finish(mut self) -> Ended {
        // All parts are over and so all exits told, unless we gave up.
        for line in self.exits.tell(&self.names) {
            crate::errln!("srun: {line}");
        }
        let tasks: Vec<_> = self.nodes.drain(..).map(|n| (n.inputs, n.task)).collect();
        let gone = async {
            for (_inputs, task) in tasks {
                // A task that panicked has said so.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), gone).await;
        if self.exits.killed() && !self.session.quiet {
            crate::errln!("srun: Force Terminated StepId={}", self.session.step);
        }
        let code = self.exits.code();
        let worst = self.exits.worst();
        match self.trouble && code == 0 {
            true => Ended { code: 1, worst: ExitStatus { code: 1, signal: 0 } },
            false => Ended { code, worst },
        }
    }
}

fn status(exit: Option<v1::ExitStatus>) -> ExitStatus {
    let exit = exit.unwrap_or_default();
    let byte = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
    ExitStatus { code: byte(exit.code), signal: byte(exit.signal) }
}
