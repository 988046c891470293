//! What the controller orders.

use super::attempt::batch;
use super::{CONFIG, Owner};
use crate::spool;
use sluice_proto::v1::{NodeConfig, SignalJob, SuspendJob, controller_message::Kind, supervisor_command};

impl Owner {
    pub(super) fn controller(&mut self, kind: Kind) {
        match kind {
            Kind::Welcome(welcome) => self.configure(welcome.config.unwrap_or_default()),
            Kind::Config(config) => self.configure(config),
            Kind::Launch(order) => self.launch(order),
            Kind::Signal(order) => self.signal_job(&order),
            Kind::Suspend(order) => self.suspend(&order),
            Kind::End(order) => self.end_attempt((order.job, order.attempt)),
            Kind::Ack(ack) => {
                if let Err(error) = self.store.acknowledged(ack.sequence) {
                    tracing::error!(%error, "the outbox can't be written");
                }
            }
        }
    }

    /// Kept for a restart without the controller.
    fn configure(&mut self, config: NodeConfig) {
        if self.config != config {
            if let Err(error) = spool::write_durable(&self.setup.state, CONFIG, &config) {
                tracing::warn!(%error, "the configuration is not kept");
            }
            self.setup.site.cluster = config.cluster.clone();
            self.config = config;
        }
    }

    fn signal_job(&mut self, order: &SignalJob) {
        let node = self.setup.site.node.clone();
        let Some(attempt) = self.attempts.get_mut(&(order.job, order.attempt)) else { return };
        let ends = order.signal == libc::SIGTERM as u32 || order.signal == libc::SIGKILL as u32;
        let everything = order.batch && order.steps && order.step.is_none();
        if ends && everything {
            attempt.cancelling = true;
        }
        let limit = attempt.job.body.end_time;
        let why = if everything && limit > 0 && sluice_identity::now_ms() >= limit { " DUE TO TIME LIMIT" } else { "" };
        for (step, part) in &mut attempt.parts {
            let is_batch = *step == batch();
            let meant = match order.step {
                Some(only) => only == *step,
                None => (is_batch && order.batch) || (!is_batch && order.steps),
            };
            if !meant {
                continue;
            }
            if ends && (everything || !is_batch) {
                let what = match is_batch {
                    true => format!("JOB {}", order.job),
                    false => format!("STEP {}.{step}", order.job),
                };
                part.notice(&what, &node, why);
            }
            if order.signal == libc::SIGKILL as u32 {
                part.kill();
            } else if order.signal == libc::SIGTERM as u32 && everything {
                part.terminate();
            } else if is_batch && !everything {
                // The shell alone, not its children (scancel's manual page, --batch).
                part.send(supervisor_command::Kind::SignalLeaders(order.signal));
            } else {
                part.send(supervisor_command::Kind::Signal(order.signal));
            }
        }
    }

    fn suspend(&mut self, order: &SuspendJob) {
        let Some(attempt) = self.attempts.get(&(order.job, order.attempt)) else { return };
        for part in attempt.parts.values() {
            part.send(supervisor_command::Kind::Suspend(!order.resume));
        }
    }
}
