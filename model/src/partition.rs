//! Partitions: groups of nodes with limits, defaults and a priority tier.

use crate::ids::NodeName;
use crate::time::TimeLimit;
use crate::tres_weights::TresWeights;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PartitionState {
    #[default]
    Up,
    /// Accepts jobs, starts none.
    Down,
    /// Accepts none, starts those queued.
    Drain,
    /// Neither.
    Inactive,
}

impl PartitionState {
    pub fn as_str(self) -> &'static str {
        match self {
            PartitionState::Up => "UP",
            PartitionState::Down => "DOWN",
            PartitionState::Drain => "DRAIN",
            PartitionState::Inactive => "INACTIVE",
        }
    }

    /// `UP`, `DOWN`, `DRAIN`, `INACTIVE`, in any case.
    pub fn parse(text: &str) -> Option<PartitionState> {
        let all = [PartitionState::Up, PartitionState::Down, PartitionState::Drain, PartitionState::Inactive];
        all.into_iter().find(|s| s.as_str().eq_ignore_ascii_case(text))
    }
}

/// A partition as declared, with later `scontrol update` changes applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionSpec {
    pub name: String,
    pub nodes: Vec<NodeName>,
    pub default: bool,
    pub max_time: TimeLimit,
    /// None: max_time.
    pub default_time: Option<TimeLimit>,
    pub min_nodes: u32,
    pub max_nodes: Option<u32>,
    pub priority_tier: u32,
    pub priority_job_factor: u32,
    pub state: PartitionState,
    /// Empty = all.
    pub allow_users: Vec<String>,
    /// Unix groups. Empty = all.
    pub allow_groups: Vec<String>,
    pub allow_accounts: Vec<String>,
    pub allow_qos: Vec<String>,
    pub root_only: bool,
    pub hidden: bool,
    /// Whole nodes only.
    pub exclusive: bool,
    /// The nodes with most free CPUs first, instead of the fullest that suffice (LLN).
    pub least_loaded: bool,
    /// MiB; None: the cluster's default.
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
    pub max_memory_per_node_mb: Option<u64>,
    pub max_cpus_per_node: Option<u32>,
    /// A preempted job's time between warning and end.
    pub grace_secs: u32,
    /// What is done with its jobs when they are preempted; None: the cluster's mode.
    pub preempt_mode: Option<crate::config::Mode>,
    /// What its jobs are billed (TRESBillingWeights); none: one for each CPU.
    pub billing_weights: TresWeights,
    /// The QOS whose limits hold for all of its jobs (QOS=).
    pub qos: Option<String>,
}
