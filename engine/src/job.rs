//! A live job: from submission until it is purged from memory (MinJobAge after its end).

use sluice_model::config::Mode;
use sluice_model::dependency::Dependency;
use sluice_model::index_set::IndexSet;
use sluice_model::state::ExitStatus;
use sluice_model::step::StepRecord;
use sluice_model::{
    Allocation, JobId, JobSpec, JobState, NodeName, Reason, Shared, StepId, SubmissionKey, Time, TimeLimit,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which array a job belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrayRole {
    /// Not an array.
    None,
    /// The record that stands for all tasks not yet started or ended (`3_[2-5%2]`).
    Pending {
        /// Still waiting.
        indices: IndexSet,
        throttle: Option<u32>,
    },
    /// Some of the tasks, set apart from the others under a job id of their own: cancelled, held or changed together, or
    /// released together by `aftercorr`. Like `Pending` it never runs; a task that starts leaves it.
    Block { array: JobId, indices: IndexSet },
    /// One task that has been split off (`3_1`), with its own job id (JobIDRaw).
    Task { array: JobId, index: u32 },
}

impl ArrayRole {
    /// The tasks for which the record stands together; None for one task, and for what is no array.
    pub fn together(&self) -> Option<&IndexSet> {
        match self {
            ArrayRole::Pending { indices, .. } | ArrayRole::Block { indices, .. } => Some(indices),
            ArrayRole::None | ArrayRole::Task { .. } => None,
        }
    }

    /// The same role for other tasks.
    pub(crate) fn narrowed(&self, rest: IndexSet) -> ArrayRole {
        match self {
            ArrayRole::Pending { throttle, .. } => ArrayRole::Pending { indices: rest, throttle: *throttle },
            ArrayRole::Block { array, .. } => ArrayRole::Block { array: *array, indices: rest },
            ArrayRole::None | ArrayRole::Task { .. } => self.clone(),
        }
    }
}

/// A job as the controller knows it. Shared (`Arc`) between snapshots; changed by `fold` only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub id: JobId,
    /// What was asked for; replaced whole by `scontrol update`.
    pub spec: Arc<JobSpec>,
    pub array: ArrayRole,
    /// By which its submission is known again. The record that carries the submission's own number has it.
    pub key: Option<SubmissionKey>,
    pub submitted: Time,
    /// When it may start: begin time reached, dependencies satisfied, not held. None until then.
    pub eligible: Option<Time>,
    /// 0 means held.
    pub priority: u32,
    /// The priority it gets back when released.
    pub base_priority: u32,
    /// Somebody set it: it is not computed from factors.
    pub priority_given: bool,
    pub hold: Hold,
    /// Restarts so far; also the attempt's number.
    pub attempt: u32,
    /// What it is charged to; None when there was none (and none was asked for: AccountingStorageEnforce).
    pub association: Option<sluice_model::accounting::AssocId>,
    /// Resolved names of partitions it may use, default applied.
    pub partitions: Shared<Vec<String>>,
    /// The one it runs or ran in.
    pub partition: Option<String>,
    /// Limit in force (default or max of the partition applied at start; changed by update).
    pub time_limit: TimeLimit,
    pub requeue: bool,
    /// Not before this time: `--begin` or the back-off after a requeue.
    pub not_before: Option<Time>,
    /// Dependency terms still unmet, for display and for decisions. None when all are satisfied.
    pub waiting_on: Option<Box<Dependency>>,
    /// Some term can never be satisfied.
    pub dependency_failed: bool,
    pub comment: Option<sluice_model::OsBytes>,
    pub admin_comment: Option<String>,
    pub system_comment: Option<String>,
    pub phase: Phase,
    /// Steps of the current (or last) attempt.
    pub steps: imbl::OrdMap<StepId, Arc<StepRecord>>,
    /// What was taken from others for it, while it waits for them to be gone.
    pub claim: Option<Arc<Claim>>,
    /// Earlier runs of a requeued job, oldest first: what `sacct -D` shows.
    pub past_runs: Vec<Arc<PastRun>>,
}

/// Why a job is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hold {
    #[default]
    No,
    User,
    Admin,
    /// Requeued too often, or its launch failed.
    Requeued(Reason),
    /// Its exit code is one of `requeue.hold_exit_codes`.
    SpecialExit,
}

/// Where a job is in its life; each variant carries exactly what exists then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    Pending,
    Running(Box<Run>),
    /// Ended; some nodes have not yet confirmed that all of it is gone. Their resources stay allocated.
    Completing {
        run: Box<Run>,
        outcome: Outcome,
        ended: Time,
        waiting_for: Vec<NodeName>,
        then: AfterEnd,
    },
    /// Over. `run` is None when it never started.
    Ended {
        run: Option<Box<Run>>,
        outcome: Outcome,
        ended: Time,
    },
}

/// What becomes of a job once its nodes are clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterEnd {
    Finish,
    /// Back to the queue, held or not.
    Requeue {
        hold: bool,
    },
}

/// One run (attempt) of a job on an allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    pub attempt: u32,
    pub allocation: Arc<Allocation>,
    pub started: Time,
    /// Nodes that said that they hold this attempt (for batch: the first node has launched the script).
    pub confirmed: bool,
    /// The nodes that confirmed it so far. A node in here that no longer holds the attempt has lost it.
    pub confirmed_on: BTreeSet<NodeName>,
    /// Some while SIGSTOPped by `scontrol suspend`.
    pub suspended_since: Option<Time>,
    /// Total so far, milliseconds, without the current suspension.
    pub suspended_ms: u64,
    /// `--signal` has been sent.
    pub warned: bool,
    /// The end has begun (time limit, cancel): TERM sent; KILL follows at this time.
    pub kill_at: Option<Time>,
    /// How it will end, once it does (TIMEOUT, CANCELLED …), set together with `kill_at`.
    pub ending: Option<Outcome>,
    /// What becomes of it then (a requeue asked for while it ran).
    pub then: AfterEnd,
    /// Backfilled or started in order (`Scheduler=`).
    pub backfilled: bool,
    /// By whom, the last time.
    pub preempted: Option<Box<Preempted>>,
    /// It is suspended so that others can have its cores; or was, and is being ended meanwhile.
    pub lends: bool,
    /// Bits of `sluice_model::job::mail` already sent for this run (TIME_LIMIT_50 …).
    pub mailed: u32,
}

/// Why a run has to go, or had to stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preempted {
    /// The job that takes its room.
    pub by: JobId,
    /// What is done with it.
    pub mode: Mode,
    /// By a job of its own QOS: such a victim does not take back.
    pub within: bool,
    pub at: Time,
    /// The end of its grace time, when its end begins. None: it is only suspended.
    pub ends: Option<Time>,
}

/// Room on nodes for a job that waits until these others are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    pub partition: String,
    pub nodes: Vec<NodeName>,
    pub victims: Vec<JobId>,
    pub at: Time,
}

/// A run of a job that went back to the queue afterwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PastRun {
    /// None when it was requeued after an end without a start.
    pub run: Option<Box<Run>>,
    pub outcome: Outcome,
    pub ended: Time,
    pub steps: imbl::OrdMap<StepId, Arc<StepRecord>>,
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub state: JobState,
    pub reason: Reason,
    pub exit: ExitStatus,
    /// Worst exit of its steps.
    pub derived_exit: ExitStatus,
    /// Who cancelled it.
    pub by_uid: Option<u32>,
    /// In words for `scontrol show job`, sacct and `sluice why`: which directory, which file, which interpreter.
    pub detail: Option<String>,
}

impl Job {
    /// The state shown to users.
    pub fn state(&self) -> JobState {
        match &self.phase {
            Phase::Pending if self.hold == Hold::SpecialExit => JobState::SpecialExit,
            Phase::Pending => JobState::Pending,
            // Once its end has begun Slurm shows it as CG, though its processes have their grace period.
            Phase::Running(run) if run.ending.is_some() => JobState::Completing,
            Phase::Running(run) if run.suspended_since.is_some() => JobState::Suspended,
            Phase::Running(_) => JobState::Running,
            Phase::Completing { .. } => JobState::Completing,
            Phase::Ended { outcome, .. } => outcome.state,
        }
    }
    pub fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Pending => None,
            Phase::Running(run) | Phase::Completing { run, .. } => Some(run),
            Phase::Ended { run, .. } => run.as_deref(),
        }
    }
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Completing { outcome, .. } | Phase::Ended { outcome, .. } => Some(outcome),
            _ => None,
        }
    }
    pub fn ended(&self) -> Option<Time> {
        match &self.phase {
            Phase::Completing { ended, .. } | Phase::Ended { ended, .. } => Some(*ended),
            _ => None,
        }
    }
    /// The array's id for a task or an array record.
    pub fn array_id(&self) -> Option<JobId> {
        match &self.array {
            ArrayRole::None => None,
            ArrayRole::Pending { .. } => Some(self.id),
            ArrayRole::Task { array, .. } | ArrayRole::Block { array, .. } => Some(*array),
        }
    }
}
