//! What nodes have, hold and are owed.

use crate::job::{Phase, Run};
use crate::node::Node;
use crate::state::State;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, NodeName};
use std::collections::BTreeMap;

/// What nobody holds on a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Free {
    pub cpus: IndexSet,
    pub memory_mb: u64,
    /// Devices by GRES name; all kinds of a name share their numbers.
    pub gres: BTreeMap<String, IndexSet>,
}

/// Takes new work: registered, responding, neither down nor drained, and rid of stale attempts.
pub fn available(state: &State, node: &NodeName) -> bool {
    state.nodes.get(node).is_some_and(|n| takes_work(n))
}

pub(super) fn takes_work(node: &Node) -> bool {
    let f = node.flags;
    !f.down && !f.drain && !f.fail && !f.unknown && !f.not_responding && node.stale.is_empty()
}

/// None for an unknown node.
pub fn free(state: &State, node: &NodeName) -> Option<Free> {
    let node = state.nodes.get(node)?;
    let spec = &node.spec;
    let all = |n: u64| {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        if n == 0 { IndexSet::new() } else { IndexSet::range(0, n - 1) }
    };
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for g in &spec.gres {
        *counts.entry(g.name.clone()).or_default() += g.count;
    }
    let mut free = Free {
        cpus: all(u64::from(spec.cpus)),
        memory_mb: spec.memory_mb,
        gres: counts.into_iter().map(|(name, n)| (name, all(n))).collect(),
    };
    for job in node.jobs.iter().filter_map(|id| state.jobs.get(id)) {
        let Some(held) = job.run().and_then(|r| r.allocation.on(&spec.name)) else { continue };
        free.cpus = free.cpus.difference(&held.cpus);
        free.memory_mb = free.memory_mb.saturating_sub(held.memory_mb);
        for g in &held.gres {
            if let Some(left) = free.gres.get_mut(&g.name) {
                *left = left.difference(&g.indices);
            }
        }
    }
    Some(free)
}

/// Running attempts that the node has not confirmed: `Launch` is due again when it registers.
pub fn owed_launches(state: &State, node: &NodeName) -> Vec<(JobId, u32)> {
    runs_on(state, node, |phase| match phase {
        Phase::Running(run) if !run.confirmed_on.contains(node) => Some(run),
        _ => None,
    })
}

/// Attempts that have, or should have, something on the node: running, or ended and not yet confirmed gone.
pub fn expected_attempts(state: &State, node: &NodeName) -> Vec<(JobId, u32)> {
    runs_on(state, node, |phase| match phase {
        Phase::Running(run) | Phase::Completing { run, .. } => Some(run),
        Phase::Pending | Phase::Ended { .. } => None,
    })
}

fn runs_on<'a>(state: &'a State, node: &NodeName, pick: impl Fn(&'a Phase) -> Option<&'a Run>) -> Vec<(JobId, u32)> {
    let jobs = state.nodes.get(node).into_iter().flat_map(|n| &n.jobs);
    jobs.filter_map(|id| state.jobs.get(id)).filter_map(|j| pick(&j.phase).map(|run| (j.id, run.attempt))).collect()
}

/// What is shown first of a node's state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeBase {
    Unknown,
    Down,
    Idle,
    Mixed,
    Allocated,
}

/// A node's state in parts, as sinfo and scontrol put them together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeCondition {
    pub base: NodeBase,
    pub drain: bool,
    pub fail: bool,
    pub completing: bool,
    pub not_responding: bool,
}

impl NodeCondition {
    /// One word, as sinfo's default view has it, without `*`: `idle`, `mixed`, `drained`, `draining`, `down` …
    pub fn word(self) -> &'static str {
        let busy = matches!(self.base, NodeBase::Mixed | NodeBase::Allocated) || self.completing;
        match self.base {
            NodeBase::Down => "down",
            NodeBase::Unknown => "unknown",
            _ if self.drain && busy => "draining",
            _ if self.drain => "drained",
            _ if self.fail && busy => "failing",
            _ if self.fail => "fail",
            _ if self.completing => "completing",
            NodeBase::Idle => "idle",
            NodeBase::Mixed => "mixed",
            NodeBase::Allocated => "allocated",
        }
    }
}

pub fn node_state(state: &State, node: &Node) -> NodeCondition {
    let jobs = || node.jobs.iter().filter_map(|id| state.jobs.get(id));
    let used: u64 = jobs().filter_map(|j| j.run()?.allocation.on(&node.spec.name)).map(|a| a.cpus.len()).sum();
    let f = node.flags;
    let base = if f.down {
        NodeBase::Down
    } else if f.unknown {
        NodeBase::Unknown
    } else if node.jobs.is_empty() {
        NodeBase::Idle
    } else if used >= u64::from(node.spec.cpus) {
        NodeBase::Allocated
    } else {
        NodeBase::Mixed
    };
    let completing = jobs().any(|j| j.state() == JobState::Completing) || !node.stale.is_empty();
    NodeCondition { base, drain: f.drain, fail: f.fail, completing, not_responding: f.not_responding }
}
