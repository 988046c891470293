//! What a job asks of the topology: how much of it is free where.

use super::Survey;
use crate::demand::Demand;
use crate::input::Input;
use sluice_model::ResourceRequest;

/// Nodes that must be near each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NearNeed {
    /// Leaf switches, at most.
    pub switches: Option<u32>,
    /// Nodes that must lie in one block together.
    pub segment: Option<u32>,
    pub nodes_needed: u32,
    /// Nodes that could take a share now, by leaf switch or block; most first.
    pub free: Vec<u32>,
}

impl NearNeed {
    /// Nodes that could be used now under the rule.
    pub fn usable(&self) -> u32 {
        match (self.switches, self.segment) {
            (Some(most), _) => self.free.iter().take(most as usize).sum(),
            (None, Some(segment)) => self.free.iter().map(|n| n / segment.max(1) * segment).sum(),
            (None, None) => self.free.iter().sum(),
        }
    }
}

/// None where the topology sets no bound.
pub(super) fn need(input: &Input, request: &ResourceRequest, demand: &Demand, survey: &Survey) -> Option<NearNeed> {
    let topology = input.policy.topology.as_ref()?;
    let switches = request.switches.map(|s| s.count).filter(|_| !topology.blocks);
    let segment = request.segment.filter(|_| topology.blocks && demand.min_nodes > 1);
    if switches.is_none() && segment.is_none() {
        return None;
    }
    let mut leaves: Vec<Option<u32>> = survey.free_nodes.iter().map(|n| topology.leaf(*n)).collect();
    leaves.sort_unstable();
    let mut free: Vec<u32> = leaves.chunk_by(|a, b| a.is_some() && a == b).map(|same| same.len() as u32).collect();
    free.sort_unstable_by(|a, b| b.cmp(a));
    Some(NearNeed { switches, segment, nodes_needed: demand.min_nodes, free })
}
