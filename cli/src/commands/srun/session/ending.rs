//! How a running step is ended from here: Ctrl-C and other signals, `--wait`, SIGTERM with the cluster's KillWait, and
//! giving up on nodes that say nothing more.

use super::State;
use crate::commands::srun::interrupt::Action;
use crate::commands::srun::terminal;
use sluice_model::IndexSet;
use sluice_proto::v1::{self, step_input};
use std::time::Duration;
use tokio::time::Instant;

/// From SIGKILL to giving up.
const GIVE_UP: Duration = Duration::from_secs(2);

impl State {
    pub(super) fn signal(&mut self, signal: i32) {
        if signal == nix::libc::SIGWINCH {
            if let Some((rows, cols)) = terminal::size().filter(|_| self.session.pty) {
                self.send_all(&step_input::Kind::Window(v1::WindowSize { rows, cols }));
            }
            return;
        }
        match self.session.interrupts.signal(signal, Instant::now().into_std()) {
            Action::Forward(signal) => self.send_all(&step_input::Kind::Signal(signal.unsigned_abs())),
            Action::Report => {
                self.say("interrupt (one more within 1 sec to abort)");
                self.report();
            }
            Action::Interrupt => {
                let text = format!("sending Ctrl-C to StepId={}", self.session.step);
                self.say(&text);
                self.send_all(&step_input::Kind::Signal(nix::libc::SIGINT.unsigned_abs()));
            }
            Action::Terminate => {
                self.say("forcing job termination");
                self.terminate(true);
            }
            Action::Ignore => {}
        }
    }

    /// `StepId=36.0 tasks 0,2-3: running`
    fn report(&mut self) {
        let all: IndexSet = self.session.tasks.iter().flatten().copied().collect();
        let ended_well = self.exits.ended.difference(&self.exits.failed);
        for (tasks, what) in [
            (all.difference(&self.exits.ended), "running"),
            (ended_well, "exited"),
            (self.exits.failed.clone(), "exited abnormally"),
        ] {
            if !tasks.is_empty() {
                let plural = if tasks.len() == 1 { "task" } else { "tasks" };
                let text = format!("StepId={} {plural} {}: {what}", self.session.step, tasks.plain());
                self.say(&text);
            }
        }
    }

    /// SIGCONT and SIGTERM now, SIGKILL later; the second time SIGKILL at once.
    pub(super) fn terminate(&mut self, asked: bool) {
        if self.nodes.iter().all(|n| n.over) {
            return;
        }
        let now = Instant::now();
        if self.terminating {
            if asked {
                self.kill_at = Some(now);
                self.give_up_at = Some(now + Duration::from_secs(5));
            }
            return;
        }
        self.terminating = true;
        let kill_at = now + self.session.kill_wait;
        let secs = (self.session.kill_wait + GIVE_UP).as_secs();
        let text = format!("Job step aborted: Waiting up to {secs} seconds for job step to finish.");
        self.say(&text);
        for signal in [nix::libc::SIGCONT, nix::libc::SIGTERM] {
            self.send_all(&step_input::Kind::Signal(signal.unsigned_abs()));
        }
        self.kill_at = Some(kill_at);
        self.give_up_at = Some(kill_at + GIVE_UP);
    }

    /// The allocation has ended, so nothing of the step lives on any node that is there; wait a little for last words.
    pub(super) fn job_ended(&mut self) {
        self.job_is_over = true;
        self.terminating = true;
        self.give_up_at.get_or_insert_with(|| Instant::now() + Duration::from_secs(10));
    }

    /// `--wait`: this long after the first task ended.
    fn wait_at(&self) -> Option<Instant> {
        let secs = self.session.wait_secs.filter(|s| *s > 0 && !self.terminating)?;
        Some(self.first_end? + Duration::from_secs(u64::from(secs)))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.tell_at, self.wait_at(), self.kill_at, self.give_up_at].into_iter().flatten().min()
    }

    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.tell_at) {
            self.tell_exits();
        }
        if due(self.wait_at()) {
            let secs = self.session.wait_secs.unwrap_or(0);
            let text = format!("First task exited {secs}s ago");
            self.say(&text);
            self.report();
            let text = format!("Terminating StepId={}", self.session.step);
            self.say(&text);
            self.terminate(false);
        }
        if due(self.kill_at) {
            self.kill_at = None;
            self.send_all(&step_input::Kind::Signal(nix::libc::SIGKILL.unsigned_abs()));
        }
        if due(self.give_up_at) {
            self.give_up_at = None;
            self.talk = 0;
            for node in 0..self.nodes.len() {
                if !self.nodes[node].over {
                    let name = &self.names[node];
                    match self.job_is_over {
                        true => crate::errln!("srun: error: Node failure on {name}"),
                        false => crate::errln!("srun: error: Timed out waiting for job step to complete on {name}"),
                    }
                    self.trouble = true;
                    self.nodes[node].over = true;
                }
                self.nodes[node].written = self.nodes[node].last;
            }
        }
    }
}
