//! Preemption: who may take resources from whom, and what that costs.
//!
//! Owns the one question (`Preemption::may`), the cost of a victim, and the words for what is planned. Promises that the
//! relation between ranks is without cycles if its makers keep it so, so that nobody takes back what was taken. The search
//! for victims is `cheapest`; the pass carries it out (`backfill::preempt`), `audit` checks it from the outside.
//!
//! **Cost.** A set of victims costs, first, the work that is lost: for each victim that is ended (cancelled or requeued),
//! the time that it has run, suspensions left out, times the CPUs that it keeps from others (on each node the largest share
//! that it has of CPUs, memory or any kind of device, counted in that node's CPUs). A suspended victim loses nothing. Among
//! sets that lose equally much the one with fewer victims is cheaper, then the one whose victims started later.

pub(crate) mod cheapest;

use crate::input::NodeView;
use sluice_model::config::Mode;
use sluice_model::{Allocation, JobId, NodeAlloc, NodeName, NodeSpec, Time};
use std::collections::BTreeMap;

/// Who may preempt whom. Jobs stand in ranks: by QOS, or by the tier of their partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Preemption {
    #[default]
    Off,
    /// By rank: the ranks that it may preempt, ascending.
    Listed(Vec<Vec<u32>>),
    /// A rank is the tier of the partition; lower ones may be preempted.
    Tiers,
}

/// A pending job as one that preempts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Preemptor {
    /// Left out where the partition says it.
    pub rank: u32,
    /// It may also preempt jobs of its own rank with a lower priority.
    pub within: bool,
}

/// What makes a running job a victim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Victim {
    pub rank: u32,
    pub priority: u32,
    /// Never `Off`.
    pub mode: Mode,
    /// From the decision until its resources are free at the latest, milliseconds.
    pub grace_ms: i64,
    /// Not before.
    pub exempt_until: Time,
    /// Its start, later by what it was suspended.
    pub began: Time,
}

/// What was taken for a pending job: it starts on these nodes as soon as the victims are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Position of the partition.
    pub partition: u32,
    pub nodes: Vec<NodeName>,
    /// Those that still hold resources. None: it starts now or never.
    pub victims: Vec<JobId>,
}

/// These victims, so that this job starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedPreemption {
    pub job: JobId,
    pub index: Option<u32>,
    pub partition: String,
    /// Ascending.
    pub victims: Vec<(JobId, Mode)>,
    /// When it starts at the latest. Now: all victims are suspended, and it is among the plan's starts.
    pub start: Time,
    /// What it is to get, node by node.
    pub needs: Vec<ClaimShare>,
    /// CPU-milliseconds of work lost.
    pub cost: u64,
    /// What it stands in the queue with.
    pub priority: u32,
}

/// Amounts on one node. MiB for memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimShare {
    pub node: NodeName,
    pub cpus: u64,
    pub memory_mb: u64,
    /// By position of the node's GRES entries.
    pub gres: Vec<u64>,
}

impl Preemption {
    /// Whether a job may take resources from another that runs. `tier`: of the partition that the job would run in.
    pub fn may(&self, by: Option<Preemptor>, tier: u32, priority: u32, victim: &Victim, now: Time) -> bool {
        if victim.exempt_until > now {
            return false;
        }
        match self {
            Preemption::Off => false,
            Preemption::Tiers => victim.rank < tier,
            Preemption::Listed(lists) => by.is_some_and(|by| {
                let listed = lists.get(by.rank as usize).is_some_and(|l| l.binary_search(&victim.rank).is_ok());
                listed || (by.within && by.rank == victim.rank && victim.priority < priority)
            }),
        }
    }

    /// Whether a job of this kind could ever preempt anything.
    pub(crate) fn may_any(&self, by: Option<Preemptor>, tier: u32) -> bool {
        match self {
            Preemption::Off => false,
            Preemption::Tiers => tier > 0,
            Preemption::Listed(lists) => {
                by.is_some_and(|by| by.within || lists.get(by.rank as usize).is_some_and(|l| !l.is_empty()))
            }
        }
    }
}

impl Victim {
    /// CPU-milliseconds of work lost when it is ended now.
    pub fn cost(&self, weight: u64, now: Time) -> u64 {
        match self.mode {
            Mode::Off | Mode::Suspend => 0,
            Mode::Cancel | Mode::Requeue => {
                let ran = u64::try_from(now.0.saturating_sub(self.began.0)).unwrap_or(0);
                ran.saturating_mul(weight)
            }
        }
    }
}

/// The CPUs that an allocation keeps from others: see the cost above.
pub fn weight<'a>(allocation: &Allocation, spec: impl Fn(&NodeName) -> Option<&'a NodeSpec>) -> u64 {
    allocation.nodes.iter().map(|part| spec(&part.node).map_or(0, |spec| weight_on(part, spec))).sum()
}

fn weight_on(part: &NodeAlloc, spec: &NodeSpec) -> u64 {
    let cpus = u64::from(spec.cpus);
    let share = |held: u64, all: u64| if all == 0 { 0 } else { held.saturating_mul(cpus).div_ceil(all) };
    let mut most = part.cpus.len().max(share(part.memory_mb, spec.memory_mb));
    for gres in &part.gres {
        let all: u64 = spec.gres.iter().filter(|g| g.name == gres.name).map(|g| g.count).sum();
        most = most.max(share(gres.indices.len(), all));
    }
    most
}

/// As `weight`, among the nodes of an input.
pub fn weight_among(allocation: &Allocation, nodes: &[NodeView]) -> u64 {
    let by_name: BTreeMap<&NodeName, &NodeSpec> = nodes.iter().map(|n| (&n.spec.name, &*n.spec)).collect();
    weight(allocation, |name| by_name.get(name).copied())
}
