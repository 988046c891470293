//! The nodes and partitions as the scheduler wants to see them. Made when one of them changes, not for each question,
//! so that a submission can be checked for feasibility in microseconds. Whether a node takes work now is not in here:
//! it changes too often; `query::scheduler_input` fills it in.

use crate::state::State;
use sluice_model::NodeName;
use sluice_model::config::PriorityKind;
use sluice_sched::{BackfillOrder, ClusterView, NodeView, PartitionView, Policy, Topology};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Nodes in the configuration's order, partitions by their position in it.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    pub nodes: Vec<NodeView>,
    pub partitions: Vec<PartitionView>,
    pub policy: Policy,
    pub licenses: BTreeMap<String, u32>,
    pub node_position: BTreeMap<NodeName, u32>,
    pub partition_position: BTreeMap<String, u32>,
}

impl Hardware {
    pub fn cluster(&self) -> ClusterView<'_> {
        ClusterView { nodes: &self.nodes, partitions: &self.partitions, policy: &self.policy, licenses: &self.licenses }
    }
    /// Positions of the partitions that exist, in the order given.
    pub fn positions(&self, partitions: &[String]) -> Vec<u32> {
        partitions.iter().filter_map(|p| self.partition_position.get(p).copied()).collect()
    }
}

/// Two views are the same when they show the same nodes and partitions.
impl PartialEq for Hardware {
    fn eq(&self, other: &Self) -> bool {
        let part = |p: &PartitionView| (p.name.clone(), p.nodes.clone(), p.state, p.priority_tier, p.max_time);
        self.nodes.iter().map(|n| &n.spec).eq(other.nodes.iter().map(|n| &n.spec))
            && self.partitions.iter().map(part).eq(other.partitions.iter().map(part))
            && self.policy == other.policy
            && self.licenses == other.licenses
    }
}
impl Eq for Hardware {}

/// Smallest first backfills the shortest first; the others keep the queue's order, as Slurm does.
fn backfill_order(kind: PriorityKind) -> BackfillOrder {
    match kind {
        PriorityKind::SmallestFirst => BackfillOrder::Shortest,
        PriorityKind::Fifo | PriorityKind::Multifactor => BackfillOrder::Queue,
    }
}

impl State {
    /// Makes `hardware` anew from the configuration, nodes and partitions.
    pub(crate) fn refresh_hardware(&mut self) {
        let Some(config) = self.config.clone() else {
            self.index.hardware = Arc::default();
            return;
        };
        let mut hardware = Hardware {
            policy: Policy {
                queue_depth: config.scheduling.queue_depth,
                backfill: config.scheduling.backfill,
                backfill_order: backfill_order(config.priority.kind),
                default_memory_per_cpu_mb: config.scheduling.default_memory_per_cpu_mb,
                default_memory_per_node_mb: config.scheduling.default_memory_per_node_mb,
                least_loaded: config.scheduling.least_loaded,
                pack_tasks: config.scheduling.pack_tasks,
                ..Policy::default()
            },
            licenses: config.licenses.clone(),
            ..Hardware::default()
        };
        for spec in &config.nodes {
            if let Some(node) = self.nodes.get(&spec.name) {
                hardware.node_position.insert(spec.name.clone(), hardware.nodes.len() as u32);
                hardware.nodes.push(NodeView { spec: Arc::clone(&node.spec), available: true });
            }
        }
        let position = |name: &NodeName| hardware.node_position.get(name).copied();
        hardware.policy.topology = Topology::new(&config.topology, hardware.nodes.len(), position).map(Arc::new);
        for spec in &config.partitions {
            let Some(p) = self.partitions.get(&spec.name) else { continue };
            hardware.partition_position.insert(p.name.clone(), hardware.partitions.len() as u32);
            let members: Vec<u32> = p.nodes.iter().filter_map(|n| hardware.node_position.get(n).copied()).collect();
            hardware.partitions.push(PartitionView {
                name: p.name.clone(),
                largest_cpus: members.iter().map(|n| hardware.nodes[*n as usize].spec.cpus).max(),
                nodes: members,
                state: p.state,
                priority_tier: p.priority_tier,
                max_time: p.max_time,
                default_time: p.default_time.unwrap_or(p.max_time),
                min_nodes: p.min_nodes,
                max_nodes: p.max_nodes,
                exclusive: p.exclusive,
                least_loaded: p.least_loaded,
                max_cpus_per_node: p.max_cpus_per_node,
                default_memory_per_cpu_mb: p.default_memory_per_cpu_mb,
                default_memory_per_node_mb: p.default_memory_per_node_mb,
                max_memory_per_node_mb: p.max_memory_per_node_mb,
                billing_weights: p.billing_weights.clone(),
                qos: None,
            });
        }
        self.index.hardware = Arc::new(hardware);
    }
}
