//! Refusals: a closed set with stable codes, each worded as Slurm's clients expect.

/// Why a command was refused. The number is persisted nowhere but sent on the wire: never renumber.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reject {
    InvalidJobId,
    InvalidArraySpec {
        value: String,
        detail: String,
    },
    InvalidPartition {
        name: String,
    },
    NoDefaultPartition,
    PartitionUnavailable {
        name: String,
        state: &'static str,
    },
    InvalidAccount {
        name: String,
    },
    InvalidQos {
        name: String,
    },
    InvalidNodeName {
        name: String,
    },
    InvalidFeature {
        name: String,
    },
    /// `--prefer`
    InvalidPreference {
        name: String,
    },
    /// `--batch`
    InvalidBatchFeature {
        name: String,
    },
    InvalidGres {
        name: String,
    },
    NodeConfigUnavailable {
        detail: String,
    },
    MoreProcessorsThanPermitted,
    MemoryTooLarge {
        asked_mb: u64,
        limit_mb: u64,
    },
    TimeLimitTooLong {
        asked: String,
        limit: String,
    },
    InvalidTimeLimit {
        value: String,
    },
    NodeCountOutOfRange {
        asked: u32,
        limit: u32,
    },
    DeadlinePassed,
    DependencyProblem {
        detail: String,
    },
    AccessDenied {
        what: String,
    },
    JobFinished,
    JobPending,
    JobNotPending,
    JobNotRunning,
    AlreadySuspended,
    NotSuspended,
    RequeueDisabled,
    TooManyJobs {
        limit: u32,
    },
    ScriptTooLarge {
        size: u64,
        limit: u64,
    },
    InvalidScript {
        detail: String,
    },
    InvalidNodeState {
        value: String,
    },
    InvalidValue {
        key: String,
        value: String,
        allowed: String,
    },
    Unsupported {
        option: String,
        value: String,
    },
    NodeBusy,
    StorageFull {
        detail: String,
    },
    Internal {
        detail: String,
    },
    /// The user's submissions come faster than the configuration allows: this one has its turn later.
    TooFast {
        /// A second.
        rate: u32,
        wait_ms: u32,
    },
    /// A request of sacctmgr's that can't be carried out; the detail is the whole answer.
    Accounting {
        detail: String,
    },
    AccountingPolicy {
        detail: String,
    },
    InvalidWckey {
        name: String,
    },
}

impl Reject {
    /// Stable code for the wire.
    pub fn code(&self) -> u32 {
        match self {
            Reject::InvalidJobId => 1,
            Reject::InvalidArraySpec { .. } => 2,
            Reject::InvalidPartition { .. } => 3,
            Reject::NoDefaultPartition => 4,
            Reject::PartitionUnavailable { .. } => 5,
            Reject::InvalidAccount { .. } => 6,
            Reject::InvalidQos { .. } => 7,
            Reject::InvalidNodeName { .. } => 8,
            Reject::InvalidFeature { .. } => 9,
            Reject::InvalidGres { .. } => 10,
            Reject::NodeConfigUnavailable { .. } => 11,
            Reject::MoreProcessorsThanPermitted => 12,
            Reject::MemoryTooLarge { .. } => 13,
            Reject::TimeLimitTooLong { .. } => 14,
            Reject::InvalidTimeLimit { .. } => 15,
            Reject::NodeCountOutOfRange { .. } => 16,
            Reject::DeadlinePassed => 17,
            Reject::DependencyProblem { .. } => 18,
            Reject::AccessDenied { .. } => 19,
            Reject::JobFinished => 20,
            Reject::JobPending => 21,
            Reject::JobNotPending => 22,
            Reject::JobNotRunning => 23,
            Reject::AlreadySuspended => 24,
            Reject::NotSuspended => 25,
            Reject::RequeueDisabled => 26,
            Reject::TooManyJobs { .. } => 27,
            Reject::ScriptTooLarge { .. } => 28,
            Reject::InvalidScript { .. } => 29,
            Reject::InvalidNodeState { .. } => 30,
            Reject::InvalidValue { .. } => 31,
            Reject::Unsupported { .. } => 32,
            Reject::NodeBusy => 33,
            Reject::StorageFull { .. } => 34,
            Reject::Internal { .. } => 35,
            Reject::Accounting { .. } => 40,
            Reject::AccountingPolicy { .. } => 41,
            Reject::InvalidWckey { .. } => 42,
            Reject::InvalidPreference { .. } => 60,
            Reject::InvalidBatchFeature { .. } => 61,
            Reject::TooFast { .. } => 43,
        }
    }

    /// The words that scripts match, as Slurm's `slurm_strerror` gives them.
    pub fn message(&self) -> &'static str {
        match self {
            Reject::InvalidJobId => "Invalid job id specified",
            Reject::InvalidArraySpec { .. } => "Invalid job array specification",
            Reject::InvalidPartition { .. } => "Invalid partition name specified",
            Reject::NoDefaultPartition => "No partition specified or system default partition",
            Reject::PartitionUnavailable { .. } => "Required partition not available (inactive or drain)",
            Reject::InvalidAccount { .. } => "Invalid account or account/partition combination specified",
            Reject::InvalidQos { .. } => "Invalid qos specification",
            Reject::InvalidNodeName { .. } => "Invalid node name specified",
            Reject::InvalidFeature { .. } => "Invalid feature specification",
            Reject::InvalidPreference { .. } => "Invalid preferred feature specification",
            Reject::InvalidBatchFeature { .. } => "Job --batch option is invalid or not a subset of --constraints",
            Reject::InvalidGres { .. } => "Invalid generic resource (gres) specification",
            Reject::NodeConfigUnavailable { .. } => "Requested node configuration is not available",
            Reject::MoreProcessorsThanPermitted => "More processors requested than permitted",
            Reject::MemoryTooLarge { .. } => "Memory specification can not be satisfied",
            Reject::TimeLimitTooLong { .. } => "Requested time limit is invalid (missing or exceeds some limit)",
            Reject::InvalidTimeLimit { .. } => "Requested time limit is invalid (missing or exceeds some limit)",
            Reject::NodeCountOutOfRange { .. } => "Node count specification invalid",
            Reject::DeadlinePassed => "Requested deadline is in the past or can not be met",
            Reject::DependencyProblem { .. } => "Job dependency problem",
            Reject::AccessDenied { .. } => "Access/permission denied",
            Reject::JobFinished => "Job/step already completing or completed",
            Reject::JobPending => "Job is pending execution",
            Reject::JobNotPending => "Job is no longer pending execution",
            Reject::JobNotRunning => "Requested operation is presently disabled",
            Reject::AlreadySuspended => "Job is already suspended",
            Reject::NotSuspended => "Job is not suspended",
            Reject::RequeueDisabled => "Requested operation is presently disabled",
            Reject::TooManyJobs { .. } => "Slurm temporarily unable to accept job, sleeping and retrying",
            Reject::ScriptTooLarge { .. } => "Pathname of a file, directory or other parameter too long",
            Reject::InvalidScript { .. } => "Invalid batch script",
            Reject::InvalidNodeState { .. } => "Invalid node state specified",
            Reject::InvalidValue { .. } => "Invalid value",
            Reject::Unsupported { .. } => "Requested operation not supported on this system",
            Reject::NodeBusy => "Requested nodes are busy",
            Reject::StorageFull { .. } => "No space left on the controller's state device",
            Reject::Internal { .. } => "Unspecified error",
            Reject::Accounting { .. } => "The accounting request can't be carried out",
            Reject::AccountingPolicy { .. } => {
                "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
            }
            Reject::InvalidWckey { .. } => "Invalid wckey specification",
            Reject::TooFast { .. } => "Too many submissions in a short time",
        }
    }

    /// Names the option, the value and what is allowed, for the line after the message. None when the message says it.
    pub fn detail(&self) -> Option<String> {
        Some(match self {
            Reject::InvalidArraySpec { value, detail } => format!("--array={value}: {detail}"),
            Reject::InvalidPartition { name } => format!("invalid partition specified: {name}"),
            Reject::PartitionUnavailable { name, state } => format!("partition {name} is {state}"),
            Reject::InvalidAccount { name } => format!("--account={name}"),
            Reject::InvalidQos { name } => format!("--qos={name}"),
            Reject::InvalidNodeName { name } => format!("no node is called {name}"),
            Reject::InvalidFeature { name } | Reject::InvalidPreference { name } => {
                format!("no node has the feature {name}")
            }
            Reject::InvalidBatchFeature { name } => format!("--constraint does not name the feature {name}"),
            Reject::InvalidGres { name } => format!("no node has {name}"),
            Reject::NodeConfigUnavailable { detail } => detail.clone(),
            Reject::MemoryTooLarge { asked_mb, limit_mb } => {
                format!("{asked_mb} MiB asked for, {limit_mb} MiB is the most a node can give")
            }
            Reject::TimeLimitTooLong { asked, limit } => format!("--time={asked}: the partition's limit is {limit}"),
            Reject::InvalidTimeLimit { value } => format!("--time={value}"),
            Reject::NodeCountOutOfRange { asked, limit } => format!("{asked} nodes asked for, limit {limit}"),
            Reject::DependencyProblem { detail } => detail.clone(),
            Reject::AccessDenied { what } => what.clone(),
            Reject::TooManyJobs { limit } => format!("the limit is {limit} jobs"),
            Reject::ScriptTooLarge { size, limit } => format!("script of {size} bytes, limit {limit}"),
            Reject::InvalidScript { detail } => detail.clone(),
            Reject::InvalidNodeState { value } => format!("state {value}"),
            Reject::InvalidValue { key, value, allowed } => format!("{key}={value}: allowed is {allowed}"),
            Reject::Unsupported { option, value } => format!("{option}={value}"),
            Reject::TooFast { rate, .. } => {
                format!("this cluster takes {rate} a second from each user (limits.submit_rate)")
            }
            Reject::InvalidWckey { name } => format!("--wckey={name}"),
            Reject::StorageFull { detail }
            | Reject::Internal { detail }
            | Reject::Accounting { detail }
            | Reject::AccountingPolicy { detail } => detail.clone(),
            _ => return None,
        })
    }
}
