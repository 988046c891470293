//! Ending a step in Slurm's way: SIGTERM once, time to save what is to be saved, SIGKILL.
//!
//! The end of a job reaches a step on several ways: the node is told by the controller, and srun, itself a member of the
//! batch step, passes on what it was sent. Promises that the tasks see one SIGTERM of these, and that the time from
//! SIGTERM to SIGKILL is the cluster's KillWait whoever asked.

use super::Step;
use crate::{procs, spool};
use sluice_proto::v1::Terminate;
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Ending {
    /// When SIGTERM was sent, and whether by an order that does not come again through srun.
    termed: Option<(Instant, bool)>,
    /// To be sent as soon as all tasks run their programs: before that it would be lost.
    wanted: Option<bool>,
    /// SIGKILL follows.
    then_kill: bool,
    /// No client comes back.
    pub job_over: bool,
    /// The output says that the step was ended.
    pub noticed: bool,
}

impl Step {
    fn kill_wait(&self) -> Duration {
        Duration::from_secs(self.spec.kill_wait_secs.into())
    }

    pub(super) fn terminate(&mut self, order: &Terminate) {
        self.ending.job_over |= order.job_over;
        self.ending.then_kill |= order.then_kill;
        let news = match self.ending.termed {
            None => self.ending.wanted.is_none(),
            Some((at, own)) => order.again && (own || at.elapsed() > self.kill_wait()),
        };
        if news {
            self.ending.wanted = Some(order.again);
            if self.spec.client {
                self.notice();
            }
        }
    }

    pub(super) fn terminate_in_time(&mut self) {
        if self.is_launched()
            && let Some(own) = self.ending.wanted.take()
        {
            for signal in [libc::SIGCONT, libc::SIGTERM] {
                procs::signal_descendants(std::process::id() as i32, signal);
            }
            self.ending.termed = Some((Instant::now(), own));
        }
        if self.kill_at().is_some_and(|at| at <= Instant::now()) && self.killing.is_none() {
            self.kill_all();
        }
    }

    pub(super) fn kill_at(&self) -> Option<Instant> {
        let (at, _) = self.ending.termed.filter(|_| self.ending.then_kill)?;
        Some(at + self.kill_wait())
    }

    /// What a batch script that was told to end leaves behind (an `srun` that waits for its step) has time until then.
    pub(super) fn leftovers_until(&self) -> Option<Instant> {
        let (at, _) = self.ending.termed.filter(|_| !self.spec.client)?;
        Some(at + self.kill_wait())
    }

    /// Says on the first task's stderr that the step is ended from outside, as Slurm does.
    fn notice(&mut self) {
        let Some(key) = self.spec.key.filter(|_| self.spec.tasks.first().is_some_and(|t| t.rank == 0)) else { return };
        let what = format!("STEP {}.{}", key.job, spool::step_name(key.step));
        self.notify(notice(&what, &self.spec.node, "").as_bytes());
    }
}

/// `slurmstepd: error: *** STEP 5.0 ON node1 CANCELLED AT 2026-11-30T12:00:00 DUE TO TIME LIMIT ***`
pub fn notice(what: &str, node: &str, why: &str) -> String {
    let now = sluice_model::Time(super::super::now_ms());
    let at = sluice_model::time::format_time(now, &jiff::tz::TimeZone::system());
    format!("slurmstepd: error: *** {what} ON {node} CANCELLED AT {at}{why} ***\n")
}
