//! What running jobs hold on a node, counted from the input.

use crate::demand::Demand;
use crate::input::{Input, RunningJob};
use crate::timeline::entries;
use sluice_model::request::GresRequest;
use sluice_model::{JobId, NodeAlloc, NodeSpec};

/// Sums over the jobs on one node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeUse {
    pub cpus: u64,
    /// MiB.
    pub memory_mb: u64,
    /// Devices in use for each GRES entry of the node.
    pub gres: Vec<u64>,
    /// The jobs, in the input's order.
    pub jobs: Vec<JobId>,
    /// The one that has the node to itself.
    pub whole: Option<JobId>,
}

impl NodeUse {
    /// Nothing is in use.
    pub(super) fn none(spec: &NodeSpec) -> NodeUse {
        NodeUse { gres: vec![0; spec.gres.len()], ..NodeUse::default() }
    }

    /// Of every node, by position.
    pub fn of_all(input: &Input) -> Vec<NodeUse> {
        let mut all: Vec<NodeUse> = input.nodes.iter().map(|n| NodeUse::none(&n.spec)).collect();
        let mut by_name: Vec<(&str, usize)> = input.nodes.iter().map(|n| n.spec.name.as_str()).zip(0..).collect();
        by_name.sort_unstable();
        for job in &input.running {
            for held in &job.allocation.nodes {
                if let Ok(at) = by_name.binary_search_by_key(&held.node.as_str(), |n| n.0) {
                    let node = by_name[at].1;
                    all[node].add(&input.nodes[node].spec, job, held);
                }
            }
        }
        all
    }

    /// Of one node.
    pub fn of(input: &Input, node: u32) -> NodeUse {
        let spec = &input.nodes[node as usize].spec;
        let mut used = NodeUse::none(spec);
        for job in &input.running {
            if let Some(held) = job.allocation.on(&spec.name) {
                used.add(spec, job, held);
            }
        }
        used
    }

    fn add(&mut self, spec: &NodeSpec, job: &RunningJob, held: &NodeAlloc) {
        self.cpus += held.cpus.len();
        self.memory_mb = self.memory_mb.saturating_add(held.memory_mb);
        for gres in &held.gres {
            for (entry, (first, last)) in entries(spec, &gres.name) {
                let inside = |i: &u32| (first..=last).contains(&u64::from(*i));
                self.gres[entry] += gres.indices.iter().filter(inside).count() as u64;
            }
        }
        self.jobs.push(job.job);
        if job.exclusive {
            self.whole = Some(job.job);
        }
    }

    /// Devices that serve a request and that nobody holds.
    pub(super) fn free_for(&self, spec: &NodeSpec, demand: &Demand, request: &GresRequest) -> u64 {
        let entries = spec.gres.iter().zip(&self.gres).filter(|(have, _)| demand.admits(request, have));
        entries.map(|(have, used)| have.count.saturating_sub(*used)).sum()
    }

    /// Devices of a name (and kind) that nobody holds.
    pub fn free_gres(&self, spec: &NodeSpec, name: &str, kind: Option<&str>) -> u64 {
        let fits = |have: &sluice_model::node::GresSpec| {
            have.name == name && kind.is_none_or(|kind| have.kind.as_deref() == Some(kind))
        };
        spec.gres
            .iter()
            .zip(&self.gres)
            .filter(|(have, _)| fits(have))
            .map(|(h, used)| h.count.saturating_sub(*used))
            .sum()
    }
}
