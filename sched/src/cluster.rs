//! The hardware and the rules, prepared for planning: which nodes are alike, and where a name lies.
//!
//! Owns the kinds of nodes: two nodes are of one kind when they have the same hardware, features and weight and belong to
//! the same partitions, so that what holds of one when it is empty holds of all. Made once for a configuration. Must not
//! know what is in use.

use crate::hash::Mix;
use crate::input::{ClusterView, Input, NodeView, PartitionView, Policy};
use crate::limits::Rules;
use crate::preemption::Preemption;
use sluice_model::{NodeName, NodeSpec};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    pub nodes: Vec<NodeView>,
    pub partitions: Vec<PartitionView>,
    pub policy: Policy,
    pub licenses: BTreeMap<String, u32>,
    pub limits: Option<Arc<Rules>>,
    pub preemption: Preemption,
    pub kinds: Kinds,
    positions: BTreeMap<NodeName, u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Kinds {
    /// By node.
    pub of: Vec<u32>,
    pub all: Vec<Kind>,
}

#[derive(Clone, Debug)]
pub(crate) struct Kind {
    /// Ascending, at least one.
    pub nodes: Vec<u32>,
    /// Partitions that they belong to, ascending.
    pub partitions: Vec<u32>,
}

impl Cluster {
    pub fn new(input: &Input) -> Cluster {
        let mut positions = BTreeMap::new();
        for (at, node) in input.nodes.iter().enumerate() {
            positions.entry(node.spec.name.clone()).or_insert(at as u32);
        }
        Cluster {
            nodes: input.nodes.clone(),
            partitions: input.partitions.clone(),
            policy: input.policy.clone(),
            licenses: input.licenses.clone(),
            limits: input.limits.clone(),
            preemption: input.preemption.clone(),
            kinds: kinds(&input.nodes, &input.partitions),
            positions,
        }
    }

    pub fn view(&self) -> ClusterView<'_> {
        ClusterView { nodes: &self.nodes, partitions: &self.partitions, policy: &self.policy, licenses: &self.licenses }
    }
    pub fn position(&self, name: &NodeName) -> Option<u32> {
        self.positions.get(name).copied()
    }
    pub fn spec(&self, node: u32) -> &NodeSpec {
        &self.nodes[node as usize].spec
    }
    /// The partitions with this node.
    pub fn partitions_of(&self, node: u32) -> &[u32] {
        &self.kinds.all[self.kinds.of[node as usize] as usize].partitions
    }
    /// A node that stands for its kind.
    pub fn example(&self, kind: u32) -> &NodeSpec {
        self.spec(self.kinds.all[kind as usize].nodes[0])
    }
}

fn kinds(nodes: &[NodeView], partitions: &[PartitionView]) -> Kinds {
    let mut member: Vec<Vec<u32>> = vec![Vec::new(); nodes.len()];
    for (p, partition) in partitions.iter().enumerate() {
        for node in &partition.nodes {
            if let Some(of) = member.get_mut(*node as usize)
                && of.last() != Some(&(p as u32))
            {
                of.push(p as u32);
            }
        }
    }
    let mut kinds = Kinds::default();
    let mut by_hash: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        let spec = &*node.spec;
        let mut hasher = Mix::default();
        (spec.cpus, spec.memory_mb, spec.weight, spec.features.len(), spec.gres.len()).hash(&mut hasher);
        member[at].hash(&mut hasher);
        let same = |k: &&u32| {
            let kind = &kinds.all[**k as usize];
            kind.partitions == member[at] && alike(&nodes[kind.nodes[0] as usize].spec, spec)
        };
        let bucket = by_hash.entry(hasher.finish()).or_default();
        let kind = match bucket.iter().find(same) {
            Some(kind) => *kind,
            None => {
                let kind = kinds.all.len() as u32;
                bucket.push(kind);
                kinds.all.push(Kind { nodes: Vec::new(), partitions: std::mem::take(&mut member[at]) });
                kind
            }
        };
        kinds.all[kind as usize].nodes.push(at as u32);
        kinds.of.push(kind);
    }
    kinds
}

/// But for what tells one from the other.
fn alike(a: &NodeSpec, b: &NodeSpec) -> bool {
    a.sockets == b.sockets
        && a.cores_per_socket == b.cores_per_socket
        && a.threads_per_core == b.threads_per_core
        && a.cpus == b.cpus
        && a.memory_mb == b.memory_mb
        && a.tmp_disk_mb == b.tmp_disk_mb
        && a.gres == b.gres
        && a.features == b.features
        && a.weight == b.weight
}
