//! What the scheduler is shown: a compact, immutable view of one generation of the cluster.

use crate::limits::{Charge, Rules};
use sluice_model::partition::PartitionState;
use sluice_model::tres_weights::TresWeights;
use sluice_model::{Allocation, JobId, NodeName, NodeSpec, ResourceRequest, Time, TimeLimit};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Input {
    pub generation: u64,
    pub now: Option<Time>,
    /// In configuration order; `NodeView`s are named by their position in here.
    pub nodes: Vec<NodeView>,
    pub partitions: Vec<PartitionView>,
    /// Everything that holds resources: running, suspended and completing jobs.
    pub running: Vec<RunningJob>,
    /// Eligible jobs only (not held, dependencies met, begin time reached, array throttle not reached), any order.
    pub pending: Vec<PendingJob>,
    pub policy: Policy,
    /// Licences of the cluster, total.
    pub licenses: BTreeMap<String, u32>,
    /// Limits of associations and QOS; None: nothing is enforced.
    pub limits: Option<Arc<Rules>>,
}

/// The hardware and the rules, without jobs: all that questions at submission need. Two references and a policy, so
/// that it costs nothing to make.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// In configuration order.
    pub nodes: &'a [NodeView],
    pub partitions: &'a [PartitionView],
    pub policy: &'a Policy,
    /// Licences of the cluster, total.
    pub licenses: &'a BTreeMap<String, u32>,
}

impl Input {
    pub fn cluster(&self) -> ClusterView<'_> {
        ClusterView { nodes: &self.nodes, partitions: &self.partitions, policy: &self.policy, licenses: &self.licenses }
    }
}

#[derive(Clone, Debug)]
pub struct NodeView {
    pub spec: Arc<NodeSpec>,
    /// Takes new jobs: registered, responding, neither down nor drained.
    pub available: bool,
}

#[derive(Clone, Debug)]
pub struct PartitionView {
    pub name: String,
    /// Positions in `Input::nodes`.
    pub nodes: Vec<u32>,
    pub state: PartitionState,
    pub priority_tier: u32,
    pub max_time: TimeLimit,
    /// What a job without a limit gets.
    pub default_time: TimeLimit,
    pub min_nodes: u32,
    pub max_nodes: Option<u32>,
    /// Whole nodes only.
    pub exclusive: bool,
    pub max_cpus_per_node: Option<u32>,
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
    pub max_memory_per_node_mb: Option<u64>,
    pub billing_weights: TresWeights,
    /// The QOS whose limits hold for all of its jobs, by position in `Rules`.
    pub qos: Option<u32>,
}

/// No nodes, no limits.
impl Default for PartitionView {
    fn default() -> Self {
        PartitionView {
            name: String::new(),
            nodes: Vec::new(),
            state: PartitionState::Up,
            priority_tier: 1,
            max_time: TimeLimit::Unlimited,
            default_time: TimeLimit::Unlimited,
            min_nodes: 0,
            max_nodes: None,
            exclusive: false,
            max_cpus_per_node: None,
            default_memory_per_cpu_mb: None,
            default_memory_per_node_mb: None,
            max_memory_per_node_mb: None,
            billing_weights: TresWeights::default(),
            qos: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct RunningJob {
    pub job: JobId,
    pub allocation: Arc<Allocation>,
    /// Latest end by its time limit; None = unlimited. Completing jobs: now.
    pub ends: Option<Time>,
    /// Nobody else on its nodes.
    pub exclusive: bool,
    /// The partition it runs in, by position in `Input::partitions` (for MaxCPUsPerNode); None when that one is gone.
    pub partition: Option<u32>,
    pub licenses: BTreeMap<String, u32>,
    /// Whose limits it counts for.
    pub charge: Charge,
}

#[derive(Clone, Debug)]
pub struct PendingJob {
    pub job: JobId,
    /// For arrays: the next indices to start, at most as many as the throttle and the policy's array burst allow.
    /// Empty for a job that is no array.
    pub indices: Vec<u32>,
    /// Positions in `Input::partitions`, in the job's order.
    pub partitions: Vec<u32>,
    pub request: Arc<sluice_model::JobSpec>,
    pub time_limit: Option<TimeLimit>,
    pub time_min: Option<TimeLimit>,
    pub priority: u32,
    pub submitted: Time,
    pub deadline: Option<Time>,
    pub exclusive: bool,
    /// Whose limits it counts for.
    pub charge: Charge,
}

impl PendingJob {
    pub fn resources(&self) -> &ResourceRequest {
        &self.request.request
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Pending jobs for which a placement is sought in one pass, at most. A job of a shape that is already known not
    /// to fit in this pass costs next to nothing and does not count.
    pub queue_depth: u32,
    pub backfill: bool,
    /// Jobs of each partition that get a planned start which later ones may not delay (1 = EASY; as many as there are
    /// jobs = conservative backfill).
    pub reservations: u32,
    /// Placement attempts in one pass, at most (searching a planned start counts by the events it looks at).
    pub work_budget: u64,
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            queue_depth: 10_000,
            backfill: true,
            reservations: 1,
            work_budget: 200_000,
            default_memory_per_cpu_mb: None,
            default_memory_per_node_mb: None,
        }
    }
}

/// Names of nodes by position, for messages.
pub fn node_name(input: &Input, position: u32) -> &NodeName {
    &input.nodes[position as usize].spec.name
}
