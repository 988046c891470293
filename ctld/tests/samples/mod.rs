//! One sample or more of every event, with no field left at its default where it can have another value.

#![allow(dead_code, reason = "each test uses its part")]

use sluice_engine::command::{NodeChange, NodeStateChange, PartitionChange};
use sluice_engine::job::{AfterEnd, ArrayRole, Claim, Hold, Job, Outcome, PastRun, Phase, Preempted, Run};
use sluice_engine::node::NodeReason;
use sluice_engine::usage::{UsageCharge, UsageOwner};
use sluice_engine::{Event, node::Node};
use sluice_model::accounting::{
    Account, AdminLevel, AssocId, Association, CountLimit, Enforce, Factor, Limits, PreemptMode, Qos, QosAccess,
    QosFlag, Shares, TresKind, TresLimit, User, parse_change,
};
use sluice_model::config::{
    AccountingConfig, BlockSpec, ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, SwitchSpec,
    TimingConfig, TopologyConfig,
};
use sluice_model::config::{
    Mode, PreemptKind, PreemptionConfig, PriorityConfig, PriorityFlags, PriorityKind, RequeueCause, RequeueConfig,
    RequeueRule, UsageReset,
};
use sluice_model::dependency::{Dependency, DependencyKind, DependencyTarget, DependencyTerm};
use sluice_model::index_set::IndexSet;
use sluice_model::job::{ArraySpec, JobIo, JobKind, OpenMode, PropagatedLimit, SignalRequest};
use sluice_model::node::{GresSpec, NodeFlags, NodeReport, NodeSpec};
use sluice_model::partition::PartitionState;
use sluice_model::request::{
    Constraint, Distribution, Exclusive, GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest,
    SwitchRequest,
};
use sluice_model::state::ExitStatus;
use sluice_model::step::{Spread, StepRecord, Usage};
use sluice_model::tres_weights::TresWeights;
use sluice_model::{
    Allocation, BlobId, GresAlloc, JobId, JobSpec, JobState, NodeAlloc, NodeName, OsBytes, PartitionSpec, Reason,
    StepId, StepKey, SubmissionKey, Time, TimeLimit,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod accounting;
mod cluster;
mod jobs;
pub use accounting::*;
pub use cluster::*;
pub use jobs::*;

/// How many kinds of event there are.
pub const KINDS: u32 = 42;

/// A number for each kind: a new one does not compile until it has its number here, and a sample.
pub fn kind(event: &Event) -> u32 {
    match event {
        Event::Configured { .. } => 0,
        Event::JobSubmitted { .. } => 1,
        Event::JobEligible { .. } => 2,
        Event::DependencyChanged { .. } => 3,
        Event::ArrayTasksEnded { .. } => 4,
        Event::ArrayTaskSplit { .. } => 5,
        Event::JobStarted { .. } => 6,
        Event::AttemptConfirmed { .. } => 7,
        Event::JobEnding { .. } => 8,
        Event::JobKilled { .. } => 9,
        Event::JobWarned { .. } => 10,
        Event::JobMailed { .. } => 11,
        Event::JobSuspended { .. } => 12,
        Event::JobResumed { .. } => 13,
        Event::JobCompleting { .. } => 14,
        Event::NodeReleased { .. } => 15,
        Event::JobEnded { .. } => 16,
        Event::JobRequeued { .. } => 17,
        Event::JobPriority { .. } => 18,
        Event::JobUpdated { .. } => 19,
        Event::StepChanged { .. } => 20,
        Event::ArchiveOrdered { .. } => 21,
        Event::JobsPurged { .. } => 22,
        Event::NodeRegistered { .. } => 23,
        Event::StaleGone { .. } => 24,
        Event::NodeUpdated { .. } => 25,
        Event::NodeHealth { .. } => 26,
        Event::PartitionUpdated { .. } => 27,
        Event::AccountSet { .. } => 28,
        Event::AccountRemoved { .. } => 29,
        Event::UserSet { .. } => 30,
        Event::UserRemoved { .. } => 31,
        Event::AssociationSet { .. } => 32,
        Event::AssociationRemoved { .. } => 33,
        Event::QosSet { .. } => 34,
        Event::QosRemoved { .. } => 35,
        Event::ArrayPartSplit { .. } => 36,
        Event::UsageCharged { .. } => 37,
        Event::UsageRebased { .. } => 38,
        Event::UsageCleared { .. } => 39,
        Event::JobPreempted { .. } => 40,
        Event::JobClaimed { .. } => 41,
    }
}

const NOW: Time = Time(1_796_032_784_123);

fn usage_charge() -> UsageCharge {
    UsageCharge {
        owners: vec![
            (UsageOwner::Association(AssocId(7)), Some(604_800_000)),
            (UsageOwner::Association(AssocId(1)), Some(604_800_000)),
            (UsageOwner::Qos(2), None),
        ],
        rates: vec![(TresKind::Cpu, 4_000_000), (TresKind::gres("gpu", Some("a100")), 500_000)],
        wall_rate: 1_000_000,
        from: NOW,
        to: later(90_500),
    }
}

fn later(ms: i64) -> Time {
    Time(NOW.0 + ms)
}

pub fn events() -> Vec<(&'static str, Event)> {
    let job = JobId(4711);
    let node = NodeName::new("node2");
    vec![
        ("configured", Event::Configured { config: Arc::new(config()) }),
        ("configured_requeue", Event::Configured { config: Arc::new(requeueing()) }),
        ("configured_joined", Event::Configured { config: Arc::new(joined_config()) }),
        ("submitted", Event::JobSubmitted { job: Box::new(pending_job()) }),
        ("submitted_placed", Event::JobSubmitted { job: Box::new(placed_job()) }),
        ("submitted_array", Event::JobSubmitted { job: Box::new(array_job()) }),
        ("submitted_task_running", Event::JobSubmitted { job: Box::new(running_task()) }),
        ("submitted_completing", Event::JobSubmitted { job: Box::new(completing_job()) }),
        ("submitted_ended", Event::JobSubmitted { job: Box::new(ended_job()) }),
        ("eligible", Event::JobEligible { job, at: Some(NOW) }),
        ("not_eligible", Event::JobEligible { job, at: None }),
        ("dependency", Event::DependencyChanged { job, waiting_on: Some(dependency()), failed: true }),
        ("no_dependency", Event::DependencyChanged { job, waiting_on: None, failed: false }),
        ("array_tasks_ended", Event::ArrayTasksEnded { array: job, indices: indices(), outcome: outcome(), at: NOW }),
        ("array_part_split", Event::ArrayPartSplit { record: job, indices: indices(), job: JobId(4721) }),
        (
            "submitted_keyed",
            Event::JobSubmitted { job: Box::new(Job { key: Some(SubmissionKey([5; 16])), ..pending_job() }) },
        ),
        ("submitted_block", Event::JobSubmitted { job: Box::new(block()) }),
        ("array_task_split", Event::ArrayTaskSplit { array: job, index: 7, job: JobId(4720) }),
        (
            "started",
            Event::JobStarted {
                job: JobId(4713),
                array: Some((job, 3)),
                attempt: 2,
                partition: "gpu".to_owned(),
                allocation: Arc::new(allocation()),
                time_limit: TimeLimit::Minutes(90),
                backfilled: true,
                priority: Some(12_345),
                at: NOW,
            },
        ),
        (
            "started_plain",
            Event::JobStarted {
                job,
                array: None,
                attempt: 0,
                partition: "main".to_owned(),
                allocation: Arc::new(allocation()),
                time_limit: TimeLimit::Unlimited,
                backfilled: false,
                priority: None,
                at: NOW,
            },
        ),
        ("usage_charged", Event::UsageCharged { job, charge: Box::new(usage_charge()) }),
        (
            "usage_rebased",
            Event::UsageRebased { at: NOW, half_life_ms: Some(604_800_000), constant: vec![UsageOwner::Qos(3)] },
        ),
        ("usage_cleared", Event::UsageCleared { owners: None, at: NOW }),
        (
            "usage_cleared_of_some",
            Event::UsageCleared {
                owners: Some(vec![UsageOwner::Association(AssocId(5)), UsageOwner::User("ada".to_owned())]),
                at: NOW,
            },
        ),
        ("confirmed", Event::AttemptConfirmed { job, attempt: 2, node: node.clone() }),
        (
            "ending",
            Event::JobEnding {
                job,
                outcome: outcome(),
                kill_at: later(30_000),
                then: AfterEnd::Requeue { hold: true },
            },
        ),
        ("killed", Event::JobKilled { job }),
        ("warned", Event::JobWarned { job }),
        ("mailed", Event::JobMailed { job, what: 5 }),
        ("suspended", Event::JobSuspended { job, at: NOW }),
        ("resumed", Event::JobResumed { job, at: NOW }),
        (
            "completing",
            Event::JobCompleting {
                job,
                outcome: outcome(),
                at: NOW,
                waiting_for: vec![node.clone(), NodeName::new("node1")],
                then: AfterEnd::Finish,
            },
        ),
        ("released", Event::NodeReleased { job, node: node.clone() }),
        ("ended", Event::JobEnded { job, outcome: outcome(), at: NOW }),
        (
            "requeued",
            Event::JobRequeued {
                job,
                attempt: 3,
                not_before: Some(later(120_000)),
                hold: Hold::Requeued(Reason::JobLaunchFailure),
                at: NOW,
            },
        ),
        ("held", Event::JobPriority { job, priority: 0, base_priority: 100, hold: Hold::User, given: false }),
        (
            "held_special_exit",
            Event::JobPriority { job, priority: 0, base_priority: 7, hold: Hold::SpecialExit, given: false },
        ),
        ("held_by_admin", Event::JobPriority { job, priority: 0, base_priority: 100, hold: Hold::Admin, given: false }),
        ("priority", Event::JobPriority { job, priority: 77, base_priority: 77, hold: Hold::No, given: true }),
        (
            "updated",
            Event::JobUpdated {
                job,
                spec: Arc::new(spec()),
                time_limit: TimeLimit::Minutes(5),
                partitions: vec!["gpu".to_owned(), "main".to_owned()].into(),
                not_before: Some(NOW),
                requeue: true,
                comment: Some(OsBytes::new(b"caf\xe9")),
                admin_comment: Some("looked at".to_owned()),
                throttle: Some(4),
                association: None,
            },
        ),
        (
            "updated_association",
            Event::JobUpdated {
                job,
                spec: Arc::new(spec()),
                time_limit: TimeLimit::Unlimited,
                partitions: vec!["main".to_owned()].into(),
                not_before: None,
                requeue: false,
                comment: None,
                admin_comment: None,
                throttle: None,
                association: Some(AssocId(7)),
            },
        ),
        (
            "submitted_association",
            Event::JobSubmitted { job: Box::new(Job { association: Some(AssocId(7)), ..pending_job() }) },
        ),
        ("configured_by_size", Event::Configured { config: Arc::new(config_by_size()) }),
        ("configured_accounting", Event::Configured { config: Arc::new(config_with_accounting()) }),
        ("account_set", Event::AccountSet { account: Box::new(account()) }),
        ("account_removed", Event::AccountRemoved { name: "physics".to_owned() }),
        ("user_set", Event::UserSet { user: Box::new(accounting_user()) }),
        ("user_removed", Event::UserRemoved { name: "ada".to_owned() }),
        ("association_set", Event::AssociationSet { association: Box::new(association()) }),
        ("association_plain", Event::AssociationSet { association: Box::new(Association::root()) }),
        ("association_removed", Event::AssociationRemoved { id: AssocId(7) }),
        ("qos_set", Event::QosSet { qos: Box::new(qos()) }),
        ("qos_removed", Event::QosRemoved { name: "high".to_owned() }),
        ("step", Event::StepChanged { step: Arc::new(step(StepId::Numbered(3))) }),
        ("step_running", Event::StepChanged { step: Arc::new(running_step()) }),
        ("step_spread", Event::StepChanged { step: Arc::new(spread_step()) }),
        ("archive_ordered", Event::ArchiveOrdered { at: NOW }),
        ("purged", Event::JobsPurged { jobs: vec![job, JobId(u32::MAX)] }),
        (
            "registered",
            Event::NodeRegistered { node: node.clone(), report: Arc::new(report()), stale: vec![(job, 1)], at: NOW },
        ),
        ("stale_gone", Event::StaleGone { node: node.clone(), job, attempt: 1 }),
        ("node_updated", Event::NodeUpdated { node: node.clone(), change: node_change(), reason: Some(node_reason()) }),
        (
            "node_health",
            Event::NodeHealth {
                node: node.clone(),
                not_responding: true,
                down: true,
                reason: Some(node_reason()),
                at: NOW,
            },
        ),
        ("partition_updated", Event::PartitionUpdated { name: "gpu".to_owned(), change: Box::new(partition_change()) }),
        (
            "partition_unlimited",
            Event::PartitionUpdated {
                name: "gpu".to_owned(),
                change: Box::new(PartitionChange {
                    default_time: Some(None),
                    max_nodes: Some(None),
                    ..PartitionChange::default()
                }),
            },
        ),
        (
            "preempted",
            Event::JobPreempted {
                job,
                by: JobId(4799),
                mode: Mode::Requeue,
                within: true,
                at: NOW,
                ends: Some(later(60_000)),
            },
        ),
        ("claimed", Event::JobClaimed { job, claim: Some(Arc::new(claim())) }),
        ("unclaimed", Event::JobClaimed { job, claim: None }),
        ("submitted_claiming", Event::JobSubmitted { job: Box::new(claiming_job()) }),
        ("submitted_lending", Event::JobSubmitted { job: Box::new(lending_job()) }),
        ("configured_preemption", Event::Configured { config: Arc::new(config_with_preemption()) }),
        (
            "partition_preempt_mode",
            Event::PartitionUpdated {
                name: "main".to_owned(),
                change: Box::new(PartitionChange { preempt_mode: Some(Mode::Suspend), ..partition_change() }),
            },
        ),
        ("qos_within", Event::QosSet { qos: Box::new(Qos { preempt_within: true, ..qos() }) }),
    ]
}
