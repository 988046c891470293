//! Facts. What `fold` applies and what the journal keeps. Everything not determined by the state is in them.
//!
//! Persisted as protobuf (proto/disk.proto): variants and fields are only added, never changed in meaning.

use crate::command::{NodeChange, PartitionChange};
use crate::job::{AfterEnd, Claim, Hold, Job, Outcome};
use crate::node::NodeReason;
use crate::usage::{UsageCharge, UsageOwner};
use sluice_model::accounting::{Account, AssocId, Association, Qos, User};
use sluice_model::config::{ClusterConfig, Mode};
use sluice_model::dependency::Dependency;
use sluice_model::index_set::IndexSet;
use sluice_model::node::NodeReport;
use sluice_model::step::StepRecord;
use sluice_model::{Allocation, JobId, JobSpec, NodeName, OsBytes, Shared, Time, TimeLimit};
use std::sync::Arc;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    Configured {
        config: Arc<ClusterConfig>,
    },
    /// The whole record as it enters the queue.
    JobSubmitted {
        job: Box<Job>,
    },
    /// All that was in the way is gone, or (None) is back.
    JobEligible {
        job: JobId,
        at: Option<Time>,
    },
    /// Dependency terms still unmet (None: none), or one that can't be met any more.
    DependencyChanged {
        job: JobId,
        waiting_on: Option<Dependency>,
        failed: bool,
    },
    /// Array tasks leave the pending record without having run (cancelled); each gets a record of its own. Written by
    /// releases before 0.2 only: what ends together stays together now (`ArrayPartSplit`, then `JobEnded`).
    ArrayTasksEnded {
        array: JobId,
        indices: IndexSet,
        outcome: Outcome,
        at: Time,
    },
    /// `index` becomes a pending record of its own under `job` (a fresh id, or the array's own for its last task):
    /// one task was held, changed, or released by `aftercorr` apart from the others.
    ArrayTaskSplit {
        array: JobId,
        index: u32,
        job: JobId,
    },
    /// Some of the tasks for which `record` stands, and not all of them, become a record of their own under the fresh id
    /// `job`, in the state in which they were.
    ArrayPartSplit {
        record: JobId,
        indices: IndexSet,
        job: JobId,
    },
    /// `array`: the task leaves this record (the array's, or a part's) under `job` (a fresh id, or the record's own for
    /// its last task).
    JobStarted {
        job: JobId,
        array: Option<(JobId, u32)>,
        attempt: u32,
        partition: String,
        allocation: Arc<Allocation>,
        time_limit: TimeLimit,
        backfilled: bool,
        /// The priority that it had in the queue, where its record says another.
        priority: Option<u32>,
        at: Time,
    },
    AttemptConfirmed {
        job: JobId,
        attempt: u32,
        node: NodeName,
    },
    /// TERM has been ordered; KILL at `kill_at`. `outcome` is how it will be recorded.
    JobEnding {
        job: JobId,
        outcome: Outcome,
        kill_at: Time,
        then: AfterEnd,
    },
    /// KILL has been ordered.
    JobKilled {
        job: JobId,
    },
    /// `--signal` has been ordered.
    JobWarned {
        job: JobId,
    },
    /// Mails of these types (bits of `sluice_model::job::mail`) about the running attempt have been ordered.
    JobMailed {
        job: JobId,
        what: u32,
    },
    /// It has to make room for `by`: its end begins at `ends`, or (None) it is suspended now and lends its cores.
    JobPreempted {
        job: JobId,
        by: JobId,
        mode: Mode,
        within: bool,
        at: Time,
        ends: Option<Time>,
    },
    /// What a waiting job has been promised of others' room; None: the promise is worth nothing any more.
    JobClaimed {
        job: JobId,
        claim: Option<Arc<Claim>>,
    },
    JobSuspended {
        job: JobId,
        at: Time,
    },
    JobResumed {
        job: JobId,
        at: Time,
    },
    /// It ended; `waiting_for` nodes must confirm. Empty: resources are free at once.
    JobCompleting {
        job: JobId,
        outcome: Outcome,
        at: Time,
        waiting_for: Vec<NodeName>,
        then: AfterEnd,
    },
    /// One node is clean; its resources are free. When it was the last the job is Ended or back in the queue.
    NodeReleased {
        job: JobId,
        node: NodeName,
    },
    /// A pending job ends without having run.
    JobEnded {
        job: JobId,
        outcome: Outcome,
        at: Time,
    },
    /// Back in the queue as `attempt`, not before the given time.
    JobRequeued {
        job: JobId,
        attempt: u32,
        not_before: Option<Time>,
        hold: Hold,
        at: Time,
    },
    /// Hold, release, priority.
    JobPriority {
        job: JobId,
        priority: u32,
        base_priority: u32,
        hold: Hold,
        /// Set by somebody, not computed.
        given: bool,
    },
    /// A run is over: what it is charged, and to whom.
    UsageCharged {
        job: JobId,
        charge: Box<UsageCharge>,
    },
    /// The half-life is about to change: up to now usage fades by this one (milliseconds; None: not at all), but for
    /// these owners.
    UsageRebased {
        at: Time,
        half_life_ms: Option<i64>,
        constant: Vec<UsageOwner>,
    },
    /// What these have used is forgotten; None: what all have.
    UsageCleared {
        owners: Option<Vec<UsageOwner>>,
        at: Time,
    },
    /// `scontrol update`: the spec as it is now, and the values kept outside it.
    JobUpdated {
        job: JobId,
        spec: Arc<JobSpec>,
        time_limit: TimeLimit,
        partitions: Shared<Vec<String>>,
        not_before: Option<Time>,
        requeue: bool,
        comment: Option<OsBytes>,
        admin_comment: Option<String>,
        throttle: Option<u32>,
        association: Option<AssocId>,
    },
    StepChanged {
        step: Arc<StepRecord>,
    },
    /// Finished jobs were handed to the daemon for the history; not asked again at once.
    ArchiveOrdered {
        at: Time,
    },
    /// Forgotten: in the history now.
    JobsPurged {
        jobs: Vec<JobId>,
    },
    /// `stale`: attempts that it still holds though they are over for the controller; it gets no work until they are gone.
    NodeRegistered {
        node: NodeName,
        report: Arc<NodeReport>,
        stale: Vec<(JobId, u32)>,
        at: Time,
    },
    /// One of its stale attempts is gone.
    StaleGone {
        node: NodeName,
        job: JobId,
        attempt: u32,
    },
    NodeUpdated {
        node: NodeName,
        change: NodeChange,
        reason: Option<NodeReason>,
    },
    /// Responding or not; `down` when the time-out has passed.
    NodeHealth {
        node: NodeName,
        not_responding: bool,
        down: bool,
        reason: Option<NodeReason>,
        at: Time,
    },
    PartitionUpdated {
        name: String,
        change: Box<PartitionChange>,
    },
    /// Accounts, users, associations and QOS: the whole record as it is now.
    AccountSet {
        account: Box<Account>,
    },
    AccountRemoved {
        name: String,
    },
    UserSet {
        user: Box<User>,
    },
    UserRemoved {
        name: String,
    },
    AssociationSet {
        association: Box<Association>,
    },
    AssociationRemoved {
        id: AssocId,
    },
    QosSet {
        qos: Box<Qos>,
    },
    QosRemoved {
        name: String,
    },
}
