//! What goes wrong: links, nodes, the controller itself. And what must then come right again.

use super::controller::Waiting;
use super::load::NODE_TIMEOUT_SECS;
use super::world::{Happening, World};
use sluice_engine::{Command, query};
use sluice_model::{NodeName, Time};
use std::collections::BTreeSet;

impl World {
    pub(super) fn fault(&mut self) {
        if !self.chaos() {
            return;
        }
        let node = self.rng.below(self.nodes.len() as u64) as usize;
        match self.rng.below(10) {
            0..=2 => self.crash(),
            3..=5 => {
                let away = self.rng.between(0, 10_000);
                self.cut(node, away);
            }
            6 => {
                let away = i64::from(NODE_TIMEOUT_SECS) * 1000 + self.rng.between(-60_000, 60_000);
                self.cut(node, away);
            }
            7..=8 => {
                self.report.reboots += 1;
                self.checks.note(|| format!("node {node} reboots"));
                let away = self.rng.between(1_000, 60_000);
                self.cut(node, away);
                self.nodes[node].reboot();
            }
            _ => {}
        }
        let after = self.rng.between(1_000, 40_000);
        self.later(after, Happening::Fault);
    }

    /// The link breaks with whatever is under way on it.
    fn cut(&mut self, node: usize, away: i64) {
        if self.nodes[node].link.take().is_none() {
            return;
        }
        self.report.broken_links += 1;
        self.nodes[node].away_until = Time(self.now.0 + away);
        self.later(away + 1, Happening::Connect { node });
        let name = self.nodes[node].name.clone();
        self.command(Command::NodeSilent { node: name }, Waiting::Nobody);
    }

    /// The controller dies and is up again; nodes come back one by one.
    fn crash(&mut self) {
        self.report.crashes += 1;
        let unsure = self.controller.journal.len() - self.controller.durable;
        let extra = self.rng.below(unsure as u64 + 1) as usize;
        self.checks.note(|| format!("the controller dies; of {unsure} decisions under way {extra} survive"));
        self.controller.crash(extra, &mut self.checks);
        for node in 0..self.nodes.len() {
            if self.nodes[node].link.take().is_some() {
                let after = self.rng.between(10, 20_000);
                self.later(after, Happening::Connect { node });
            }
        }
        self.tick_at = None;
        self.plan_tick();
        self.later(15_000, Happening::CheckLinks);
    }

    /// A node that is connected confirms what it was given to run, sooner or later.
    pub(super) fn check_launches(&mut self) {
        let mut late = Vec::new();
        for node in self.nodes.iter().filter(|n| n.link.is_some() && n.linked + 60_000 < self.now.0) {
            for (job, attempt) in query::owed_launches(&self.controller.state, &node.name) {
                let started = self.controller.state.jobs.get(&job).and_then(|j| j.run()).map(|r| r.started);
                if started.is_some_and(|t| t.0 + 60_000 < self.now.0) {
                    late.push(format!("{} never confirmed attempt {attempt} of job {job}", node.name));
                }
            }
        }
        self.checks.violations.extend(late);
    }

    pub(super) fn check_links(&mut self) {
        let absent: BTreeSet<NodeName> =
            self.nodes.iter().filter(|n| n.link.is_none()).map(|n| n.name.clone()).collect();
        for node in absent {
            if self.controller.state.nodes.get(&node).is_some_and(|n| !n.flags.unknown) {
                self.command(Command::NodeSilent { node }, Waiting::Nobody);
            }
        }
    }
}
