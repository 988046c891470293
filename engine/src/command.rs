//! What may be asked of the engine. Every command carries the facts it needs: who, and things only a daemon can know.

use crate::job::Outcome;
use sluice_model::config::ClusterConfig;
use sluice_model::index_set::IndexSet;
use sluice_model::node::NodeReport;
use sluice_model::partition::PartitionState;
use sluice_model::request::NodeCount;
use sluice_model::state::ExitStatus;
use sluice_model::step::{StepRecord, Usage};
use sluice_model::{JobId, JobSpec, NodeName, OsBytes, Reason, StepId, SubmissionKey, TimeLimit};
use std::sync::Arc;

/// Who asks: proven by the daemon, judged here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub user: String,
    /// Group names, for partitions' AllowGroups.
    pub groups: Vec<String>,
    pub role: Role,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    User,
    Operator,
    Administrator,
}

/// Which job, array, or part of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobTarget {
    /// `12`: a job, or a whole array (all its tasks).
    Job(JobId),
    /// `12_3`, `12_[1-4]`
    Tasks(JobId, IndexSet),
}

/// How scancel and scontrol signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SignalFlags {
    /// `--batch`: the batch shell only.
    pub batch: bool,
    /// `--full`: batch shell and all steps.
    pub full: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Reply::Submitted. `spec`'s user fields are already the caller's. With the key of a job of the same user that is
    /// still known: that job's number, and nothing happens.
    Submit {
        caller: Caller,
        spec: Box<JobSpec>,
        key: Option<SubmissionKey>,
    },
    /// End it (scancel without a signal). Pending jobs end at once. Reply::Affected.
    Cancel {
        caller: Caller,
        target: JobTarget,
    },
    /// scancel --signal. Pending jobs are refused. KILL ends as CANCELLED.
    Signal {
        caller: Caller,
        target: JobTarget,
        step: Option<StepId>,
        signal: u8,
        flags: SignalFlags,
    },
    Hold {
        caller: Caller,
        target: JobTarget,
        user_hold: bool,
    },
    Release {
        caller: Caller,
        target: JobTarget,
    },
    Requeue {
        caller: Caller,
        target: JobTarget,
        hold: bool,
    },
    Suspend {
        caller: Caller,
        target: JobTarget,
    },
    Resume {
        caller: Caller,
        target: JobTarget,
    },
    UpdateJob {
        caller: Caller,
        target: JobTarget,
        change: Box<JobChange>,
    },
    UpdateNode {
        caller: Caller,
        nodes: Vec<NodeName>,
        change: NodeChange,
    },
    UpdatePartition {
        caller: Caller,
        name: String,
        change: Box<PartitionChange>,
    },
    /// An allocation's client says that it is finished (srun/salloc end). Exit of the worst task.
    CompleteAllocation {
        caller: Caller,
        job: JobId,
        exit: ExitStatus,
    },

    /// A node daemon (re)connected. `holds` lists the attempts that it knows to be alive.
    NodeRegister {
        node: NodeName,
        report: Box<NodeReport>,
        holds: Vec<(JobId, u32)>,
    },
    /// The link broke or heartbeats stopped; the engine decides by Tick when it is DOWN.
    NodeSilent {
        node: NodeName,
    },
    /// The node holds the attempt (and for a batch host has started the script).
    AttemptConfirmed {
        node: NodeName,
        job: JobId,
        attempt: u32,
    },
    /// The batch script ended, or could not be started (`failure`).
    BatchEnded {
        node: NodeName,
        job: JobId,
        attempt: u32,
        exit: ExitStatus,
        usage: Usage,
        failure: Option<LaunchFailure>,
    },
    /// Everything of the attempt is gone from the node.
    AttemptGone {
        node: NodeName,
        job: JobId,
        attempt: u32,
    },
    /// From the step manager: a step began or ended.
    StepReport {
        node: NodeName,
        step: Box<StepRecord>,
    },

    /// The scheduler's decisions; each start is checked again. Stale ones are dropped, not errors.
    ApplyPlan {
        starts: Vec<PlannedStart>,
        preemptions: Vec<PlannedPreemption>,
        /// Claims that are worth nothing any more.
        lapsed: Vec<JobId>,
    },
    /// `sacctmgr`. Reply::Accounting.
    Accounting {
        caller: Caller,
        request: Box<sluice_model::accounting::AccountingRequest>,
    },
    /// A new configuration, already checked for form. Reply::ConfigApplied says what changed.
    Configure {
        config: Arc<ClusterConfig>,
    },
    /// These finished jobs are safely in the history; forget them.
    Archived {
        jobs: Vec<JobId>,
    },
    /// Time passes: limits, grace periods, begin times, node time-outs, MinJobAge.
    Tick,
    /// All usage is forgotten (PriorityUsageResetPeriod). Reply::Done.
    ResetUsage,
    /// Running jobs of groups that have used up their minutes end (GrpTRESMins, GrpWall). Reply::Affected.
    EndUsedUp,
}

/// One start as planned.
pub use sluice_sched::Start as PlannedStart;
pub use sluice_sched::preemption::PlannedPreemption;

/// Why a batch script could not be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaunchFailure {
    pub kind: LaunchFailureKind,
    /// Names the path, user or interpreter.
    pub detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchFailureKind {
    /// The job's own fault: directory, output file, interpreter. Ends it as FAILED.
    Job,
    /// The node's fault: drains the node and requeues the job.
    Node,
}

/// `scontrol update job`: only what is Some changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobChange {
    pub name: Option<OsBytes>,
    pub time_limit: Option<TimeLimit>,
    pub time_min: Option<TimeLimit>,
    pub priority: Option<u32>,
    pub nice: Option<i32>,
    pub site_factor: Option<i32>,
    pub partitions: Option<Vec<String>>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub wckey: Option<String>,
    pub comment: Option<OsBytes>,
    pub admin_comment: Option<String>,
    pub begin: Option<sluice_model::Time>,
    pub deadline: Option<sluice_model::Time>,
    /// Inner None clears it.
    pub dependency: Option<Option<sluice_model::dependency::Dependency>>,
    pub requeue: Option<bool>,
    pub array_throttle: Option<Option<u32>>,
    pub constraint: Option<(sluice_model::request::Constraint, String)>,
    pub nodes: Option<NodeCount>,
    pub ntasks: Option<u32>,
    pub cpus_per_task: Option<u32>,
    pub memory: Option<sluice_model::request::MemoryRequest>,
    pub gres: Option<Vec<sluice_model::request::GresRequest>>,
    pub node_list: Option<Vec<NodeName>>,
    pub exclude: Option<Vec<NodeName>>,
    pub exclusive: Option<sluice_model::request::Exclusive>,
    pub mail_type: Option<u32>,
    pub mail_user: Option<String>,
    pub work_dir: Option<OsBytes>,
    pub stdout: Option<OsBytes>,
    pub stderr: Option<OsBytes>,
    pub stdin: Option<OsBytes>,
    pub reservation: Option<String>,
    pub licenses: Option<std::collections::BTreeMap<String, u32>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeChange {
    pub state: Option<NodeStateChange>,
    pub reason: Option<String>,
    pub weight: Option<u32>,
    pub features: Option<Vec<String>>,
    pub comment: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeStateChange {
    Drain,
    /// DRAIN off, DOWN off.
    Resume,
    Down,
    Undrain,
    Fail,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartitionChange {
    pub state: Option<PartitionState>,
    pub max_time: Option<TimeLimit>,
    pub default_time: Option<Option<TimeLimit>>,
    pub min_nodes: Option<u32>,
    pub max_nodes: Option<Option<u32>>,
    pub priority_tier: Option<u32>,
    pub priority_job_factor: Option<u32>,
    pub default: Option<bool>,
    pub hidden: Option<bool>,
    pub root_only: Option<bool>,
    pub allow_groups: Option<Vec<String>>,
    pub allow_accounts: Option<Vec<String>>,
    pub allow_qos: Option<Vec<String>>,
    pub nodes: Option<Vec<NodeName>>,
    pub grace_secs: Option<u32>,
    pub preempt_mode: Option<sluice_model::config::Mode>,
}

/// What the caller is told once the events are durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Done,
    Submitted {
        job: JobId,
    },
    /// Jobs that the command touched.
    Affected {
        jobs: Vec<JobId>,
    },
    /// One line for each thing that changed.
    ConfigApplied {
        changes: Vec<String>,
    },
    /// What was added, changed or removed.
    Accounting {
        report: Box<sluice_model::accounting::AccountingReport>,
    },
}

/// Shorthand used by decide modules.
impl Outcome {
    pub fn of(state: sluice_model::JobState, reason: Reason) -> Outcome {
        Outcome {
            state,
            reason,
            exit: ExitStatus::SUCCESS,
            derived_exit: ExitStatus::SUCCESS,
            by_uid: None,
            detail: None,
        }
    }
}
