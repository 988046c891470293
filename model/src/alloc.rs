//! Concrete resources given to a job: which cores, how much memory, which GPUs, on which node.

use crate::ids::NodeName;
use crate::index_set::IndexSet;

/// Devices of one GRES on one node. For GRES without devices the set holds the first `count` indices.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GresAlloc {
    pub name: String,
    pub kind: Option<String>,
    pub indices: IndexSet,
}

/// What the job holds on one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeAlloc {
    pub node: NodeName,
    /// Indices of the node's CPUs (0 … cpus−1).
    pub cpus: IndexSet,
    pub memory_mb: u64,
    pub gres: Vec<GresAlloc>,
    /// Tasks that the job's layout puts here (SLURM_TASKS_PER_NODE).
    pub tasks: u32,
}

/// Nodes in the order of SLURM_JOB_NODELIST; the first is the batch host. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allocation {
    pub nodes: Vec<NodeAlloc>,
}

impl Allocation {
    pub fn cpus(&self) -> u32 {
        self.nodes.iter().map(|n| n.cpus.len() as u32).sum()
    }
    pub fn memory_mb(&self) -> u64 {
        self.nodes.iter().map(|n| n.memory_mb).sum()
    }
    pub fn tasks(&self) -> u32 {
        self.nodes.iter().map(|n| n.tasks).sum()
    }
    pub fn on(&self, node: &NodeName) -> Option<&NodeAlloc> {
        self.nodes.iter().find(|n| n.node == *node)
    }
    pub fn names(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.iter().map(|n| &n.node)
    }
}
