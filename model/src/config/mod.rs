//! The cluster's configuration, typed. Parsed from TOML in one go, with all problems reported at once.
//!
//! Keys of the file are the names of the fields here; `etc/sluice.toml` shows every one. Unknown keys are problems.
//! `to_toml` prints what `parse` reads, and `diff` says what changes between two configurations.

mod defaults;
mod diff;
mod fields;
mod parse;
mod preemption;
mod print;
mod priority;
mod problem;
mod reader;
mod requeue;
mod sections;
mod topology;

pub use diff::diff;
pub use parse::parse;
pub use preemption::{Mode, PreemptKind, PreemptionConfig};
pub use print::to_toml;
pub use priority::{PriorityConfig, PriorityFlags, PriorityKind, UsageReset};
pub use problem::ConfigProblem;
pub use requeue::{AfterExit, RequeueCause, RequeueConfig, RequeueRule};
pub use topology::{BlockSpec, SwitchSpec, TopologyConfig};

#[cfg(test)]
mod tests;

use crate::node::NodeSpec;
use crate::partition::PartitionSpec;

/// Everything the controller and the nodes are told. Paths are strings of this host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterConfig {
    pub cluster_name: String,
    /// In the file's order.
    pub nodes: Vec<NodeSpec>,
    pub partitions: Vec<PartitionSpec>,
    pub scheduling: SchedulingConfig,
    pub priority: PriorityConfig,
    pub limits: LimitsConfig,
    pub timing: TimingConfig,
    pub requeue: RequeueConfig,
    pub security: SecurityConfig,
    pub mail: MailConfig,
    pub accounting: AccountingConfig,
    pub topology: TopologyConfig,
    pub preemption: PreemptionConfig,
    /// Licences of the cluster: name → count.
    pub licenses: std::collections::BTreeMap<String, u32>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchedulingConfig {
    /// Jobs looked at in one pass, at most.
    pub queue_depth: u32,
    pub backfill: bool,
    /// MiB for each CPU when the job says nothing; None: all of the node's memory.
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
    /// Requeue after node failure unless the job says otherwise (JobRequeue).
    pub requeue: bool,
    pub kill_on_invalid_dependency: bool,
    /// EnforcePartLimits: refuse at submission what no partition of the job could ever run.
    pub enforce_partition_limits: bool,
    /// As the partition's key, for all of them (CR_LLN).
    pub least_loaded: bool,
    /// Tasks fill the first of the job's nodes where its CPUs do not follow from its tasks, instead of going round
    /// (CR_Pack_Nodes).
    pub pack_tasks: bool,
    /// How long a job waits for the leaf switches of `--switches` unless it says (max_switch_wait).
    pub max_switch_wait_secs: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitsConfig {
    /// Live jobs (MaxJobCount).
    pub max_jobs: u32,
    /// Largest array index + 1 (MaxArraySize).
    pub max_array_size: u32,
    /// Bytes.
    pub max_script_size: u64,
    pub max_environment_size: u64,
    /// MaxBatchRequeue, for each cause of `[requeue]` that says nothing itself.
    pub max_requeue: u32,
    /// Submissions a second and user; more wait their turn. 0 for any number.
    pub submit_rate: u32,
    /// So many of a user's submissions go through at once before the rate holds.
    pub submit_burst: u32,
    pub first_job_id: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimingConfig {
    /// SIGTERM to SIGKILL (KillWait).
    pub kill_wait_secs: u32,
    /// How long a finished job stays in squeue (MinJobAge).
    pub min_job_age_secs: u32,
    /// Without a heartbeat for so long a node is DOWN (SlurmdTimeout).
    pub node_timeout_secs: u32,
    pub heartbeat_secs: u32,
    /// OverTimeLimit, minutes.
    pub over_time_limit_minutes: u32,
    /// A requeued job waits so long, at first.
    pub requeue_delay_secs: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecurityConfig {
    /// Go on where isolation can't be applied.
    pub best_effort: bool,
    /// Users besides root and the controller's own user who may administer.
    pub administrators: Vec<String>,
    pub operators: Vec<String>,
}

/// Nothing is enforced by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountingConfig {
    /// AccountingStorageEnforce.
    pub enforce: crate::accounting::Enforce,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailConfig {
    /// MailProg; None sends no mail.
    pub program: Option<String>,
    pub domain: Option<String>,
}
