//! The cluster's whole live state: persistent maps, so that a snapshot is a few pointer copies.

use crate::job::Job;
use crate::node::Node;
use sluice_model::config::ClusterConfig;
use sluice_model::{JobId, NodeName, PartitionSpec};
use std::sync::Arc;

/// Cloning is O(1); readers keep a clone while the owner goes on.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub config: Option<Arc<ClusterConfig>>,
    pub jobs: imbl::OrdMap<JobId, Arc<Job>>,
    pub nodes: imbl::OrdMap<NodeName, Arc<Node>>,
    pub partitions: imbl::OrdMap<String, Arc<PartitionSpec>>,
    /// The highest job id ever given.
    pub last_job_id: u32,
    /// Changes with every event; a plan names the one it was made from.
    pub generation: u64,
}
