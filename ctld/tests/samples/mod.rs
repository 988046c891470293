//! One sample or more of every event, with no field left at its default where it can have another value.

#![allow(dead_code, reason = "each test uses its part")]

use sluice_engine::command::{NodeChange, NodeStateChange, PartitionChange};
use sluice_engine::job::{AfterEnd, ArrayRole, Hold, Job, Outcome, PastRun, Phase, Run};
use sluice_engine::node::NodeReason;
use sluice_engine::{Event, node::Node};
use sluice_model::accounting::{
    Account, AdminLevel, AssocId, Association, CountLimit, Enforce, Factor, Limits, PreemptMode, Qos, QosAccess,
    QosFlag, Shares, TresLimit, User, parse_change,
};
use sluice_model::config::{
    AccountingConfig, ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig,
};
use sluice_model::config::{PriorityConfig, PriorityFlags, PriorityKind, UsageReset};
use sluice_model::dependency::{Dependency, DependencyKind, DependencyTarget, DependencyTerm};
use sluice_model::index_set::IndexSet;
use sluice_model::job::{ArraySpec, JobIo, JobKind, OpenMode, PropagatedLimit, SignalRequest};
use sluice_model::node::{GresSpec, NodeFlags, NodeReport, NodeSpec};
use sluice_model::partition::PartitionState;
use sluice_model::request::{
    Constraint, Distribution, Exclusive, GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest,
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

/// How many kinds of event there are.
pub const KINDS: u32 = 37;

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
    }
}

const NOW: Time = Time(1_796_032_784_123);

fn later(ms: i64) -> Time {
    Time(NOW.0 + ms)
}

pub fn events() -> Vec<(&'static str, Event)> {
    let job = JobId(4711);
    let node = NodeName::new("node2");
    vec![
        ("configured", Event::Configured { config: Arc::new(config()) }),
        ("submitted", Event::JobSubmitted { job: Box::new(pending_job()) }),
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
        ("held", Event::JobPriority { job, priority: 0, base_priority: 100, hold: Hold::User }),
        ("held_by_admin", Event::JobPriority { job, priority: 0, base_priority: 100, hold: Hold::Admin }),
        ("priority", Event::JobPriority { job, priority: 77, base_priority: 77, hold: Hold::No }),
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
    ]
}

pub fn account() -> Account {
    Account {
        name: "physics".to_owned(),
        description: "the physics department".to_owned(),
        organization: "science".to_owned(),
        parent: Some("root".to_owned()),
        coordinators: BTreeSet::from(["ada".to_owned()]),
    }
}

pub fn accounting_user() -> User {
    User {
        name: "ada".to_owned(),
        admin_level: AdminLevel::Operator,
        default_account: Some("physics".to_owned()),
        default_wckey: Some("wc".to_owned()),
        wckeys: BTreeSet::from(["wc".to_owned(), "other".to_owned()]),
    }
}

/// Every limit, with different values.
pub fn limits(of: impl Fn(CountLimit) -> bool, tres_of: impl Fn(TresLimit) -> bool) -> Limits {
    let mut limits = Limits::default();
    for limit in CountLimit::ALL.into_iter().filter(|l| of(*l)) {
        limits.set_count(limit, Some(100 + limit.code()));
    }
    for limit in TresLimit::ALL.into_iter().filter(|l| tres_of(*l)) {
        let text = format!("cpu={},mem=4G,gres/gpu:a100=0,license/matlab=2", limit.code());
        limits.change_tres(limit, &parse_change(&text).unwrap());
    }
    limits
}

pub fn association() -> Association {
    Association {
        partition: Some("gpu".to_owned()),
        shares: Shares::Parent,
        priority: Some(3),
        limits: limits(CountLimit::is_of_associations, TresLimit::is_of_associations),
        qos: QosAccess::Inherited {
            added: BTreeSet::from(["high".to_owned()]),
            removed: BTreeSet::from(["normal".to_owned()]),
        },
        default_qos: Some("high".to_owned()),
        comment: "for the summer".to_owned(),
        ..Association::new(AssocId(7), "physics", Some("ada"))
    }
}

pub fn qos() -> Qos {
    Qos {
        description: "first in line".to_owned(),
        priority: 1000,
        flags: QosFlag::ALL.into(),
        grace_secs: 60,
        preempt: BTreeSet::from(["normal".to_owned()]),
        preempt_mode: PreemptMode::Requeue,
        preempt_exempt_secs: Some(30),
        usage_factor: Factor(1_500_000),
        usage_threshold: Some(Factor(250_000)),
        limit_factor: Some(Factor(2_000_000)),
        limits: limits(CountLimit::is_of_qos, TresLimit::is_of_qos),
        ..Qos::new(2, "high")
    }
}

pub fn config_with_accounting() -> ClusterConfig {
    let enforce = Enforce { associations: true, limits: true, qos: true, safe: true, wckeys: true };
    ClusterConfig { accounting: AccountingConfig { enforce }, ..config() }
}

pub fn indices() -> IndexSet {
    let mut set = IndexSet::range(2, 5);
    set.insert(100);
    set.union(&IndexSet::range_step(200, 212, 4))
}

pub fn dependency() -> Dependency {
    let on = |kind, job, task| DependencyTerm { kind, target: Some(DependencyTarget { job: JobId(job), task }) };
    Dependency {
        any: true,
        terms: vec![
            on(DependencyKind::After { minutes: 5 }, 12, None),
            on(DependencyKind::AfterAny, 13, Some(3)),
            on(DependencyKind::AfterOk, 14, None),
            on(DependencyKind::AfterNotOk, 15, None),
            on(DependencyKind::AfterCorr, 16, None),
            DependencyTerm { kind: DependencyKind::Singleton, target: None },
        ],
    }
}

pub fn request() -> ResourceRequest {
    ResourceRequest {
        nodes: Some(NodeCount { min: 2, max: Some(4) }),
        ntasks: Some(8),
        ntasks_per_node: Some(4),
        cpus_per_task: Some(2),
        min_cpus_per_node: Some(8),
        memory: Some(MemoryRequest::PerCpu(1024)),
        gres: vec![GresRequest {
            name: "gpu".to_owned(),
            kind: Some("a100".to_owned()),
            count: 2,
            scope: GresScope::Task,
        }],
        constraint: Some(Constraint::All(vec![
            Constraint::Feature("intel".to_owned()),
            Constraint::Any(vec![Constraint::Feature("a".to_owned()), Constraint::Feature("b".to_owned())]),
        ])),
        constraint_text: Some("intel&(a|b)".to_owned()),
        node_list: vec![NodeName::new("node1")],
        exclude: vec![NodeName::new("node9")],
        exclusive: Exclusive::User,
        oversubscribe: true,
        overcommit: true,
        contiguous: true,
        tmp_disk_mb: 100,
        distribution: Some(Distribution::Plane(4)),
    }
}

pub fn spec() -> JobSpec {
    JobSpec {
        name: OsBytes::new(b"train\xff"),
        kind: JobKind::Batch { script: BlobId([7; 32]), args: vec![OsBytes::from("-v"), OsBytes::new(b"\0\x01")] },
        uid: 1000,
        gid: 100,
        user: "ada".to_owned().into(),
        group: "users".to_owned().into(),
        account: Some("physics".to_owned()),
        qos: Some("normal".to_owned()),
        wckey: Some("wc".to_owned()),
        partitions: vec!["gpu".to_owned()].into(),
        request: request().into(),
        time_limit: Some(TimeLimit::Minutes(90)),
        time_min: Some(TimeLimit::Minutes(30)),
        begin: Some(NOW),
        deadline: Some(later(1_000_000)),
        dependency: Some(dependency().into()),
        array: Some(ArraySpec { indices: IndexSet::range_step(0, 12, 4), throttle: Some(2), step: 4 }.into()),
        hold: true,
        priority: Some(12),
        nice: -5,
        requeue: Some(false),
        kill_on_invalid_dep: Some(true),
        signal: Some(SignalRequest { signal: 10, before_secs: 60, batch_shell: true, reservation: true }),
        comment: Some(OsBytes::from("a comment")),
        mail_type: 3,
        mail_user: Some("ada@example.org".to_owned()),
        reservation: Some("maint".to_owned()),
        licenses: BTreeMap::from([("matlab".to_owned(), 2)]).into(),
        io: JobIo {
            stdin: Some(OsBytes::from("/dev/null")),
            stdout: Some(OsBytes::from("out-%j")),
            stderr: Some(OsBytes::new(b"err-\xfe")),
            open_mode: Some(OpenMode::Append),
        }
        .into(),
        work_dir: OsBytes::from("/home/ada"),
        environment: BlobId([9; 32]),
        get_user_env: true,
        limits: vec![PropagatedLimit { name: "NOFILE", soft: u64::MAX }].into(),
        umask: 0o22,
        submit_host: "login1".to_owned().into(),
        submit_sid: 321,
        submit_line: OsBytes::from("sbatch train.sh"),
        command: Some(OsBytes::from("/home/ada/train.sh")),
        immediate_secs: Some(30),
        ends_with_step: false,
        stored: BTreeMap::from([("core-spec".to_owned(), "1".to_owned())]).into(),
    }
}

/// What an ordinary job sets: everything optional is absent.
pub fn plain_spec() -> JobSpec {
    JobSpec {
        work_dir: OsBytes::from("/"),
        umask: 0,
        submit_host: "login1".to_owned().into(),
        submit_line: OsBytes::from("salloc"),
        ..JobSpec::new("wrap", JobKind::Allocation, (0, "root"), (0, "root"))
    }
}

pub fn pending_job() -> Job {
    Job {
        id: JobId(1),
        spec: Arc::new(plain_spec()),
        association: None,
        array: ArrayRole::None,
        key: None,
        submitted: NOW,
        eligible: None,
        priority: 0,
        base_priority: 0,
        hold: Hold::No,
        attempt: 0,
        partitions: vec!["main".to_owned()].into(),
        partition: None,
        time_limit: TimeLimit::Unlimited,
        requeue: false,
        not_before: None,
        waiting_on: None,
        dependency_failed: false,
        comment: None,
        admin_comment: None,
        system_comment: None,
        phase: Phase::Pending,
        steps: imbl::OrdMap::new(),
        past_runs: Vec::new(),
    }
}

pub fn array_job() -> Job {
    Job {
        id: JobId(4711),
        spec: Arc::new(spec()),
        association: None,
        array: ArrayRole::Pending { indices: indices(), throttle: Some(2) },
        key: None,
        submitted: NOW,
        eligible: Some(later(1)),
        priority: 12,
        base_priority: 13,
        hold: Hold::Requeued(Reason::JobHoldMaxRequeue),
        attempt: 2,
        partitions: vec!["gpu".to_owned(), "main".to_owned()].into(),
        partition: Some("gpu".to_owned()),
        time_limit: TimeLimit::Minutes(90),
        requeue: true,
        not_before: Some(later(2)),
        waiting_on: Some(dependency().into()),
        dependency_failed: true,
        comment: Some(OsBytes::new(b"\x80 comment")),
        admin_comment: Some("admin".to_owned()),
        system_comment: Some("system".to_owned()),
        phase: Phase::Pending,
        steps: imbl::OrdMap::new(),
        past_runs: vec![Arc::new(PastRun {
            run: Some(run().into()),
            outcome: outcome(),
            ended: later(3),
            steps: steps(),
        })],
    }
}

/// Some tasks of an array that were cancelled together.
pub fn block() -> Job {
    Job {
        array: ArrayRole::Block { array: JobId(4711), indices: indices() },
        phase: Phase::Ended { run: None, outcome: outcome(), ended: later(5) },
        ..pending_job()
    }
}

pub fn running_task() -> Job {
    Job {
        id: JobId(4713),
        array: ArrayRole::Task { array: JobId(4711), index: 0 },
        phase: Phase::Running(run().into()),
        steps: steps(),
        hold: Hold::User,
        ..array_job()
    }
}

pub fn completing_job() -> Job {
    Job {
        phase: Phase::Completing {
            run: run().into(),
            outcome: outcome(),
            ended: later(4),
            waiting_for: vec![NodeName::new("node1")],
            then: AfterEnd::Requeue { hold: false },
        },
        hold: Hold::Admin,
        ..running_task()
    }
}

pub fn ended_job() -> Job {
    Job { phase: Phase::Ended { run: Some(run().into()), outcome: outcome(), ended: later(5) }, ..running_task() }
}

pub fn run() -> Run {
    Run {
        attempt: 2,
        allocation: Arc::new(allocation()),
        started: NOW,
        confirmed: true,
        confirmed_on: BTreeSet::from([NodeName::new("node1"), NodeName::new("node2")]),
        suspended_since: Some(later(6)),
        suspended_ms: 77,
        warned: true,
        kill_at: Some(later(7)),
        ending: Some(outcome()),
        then: AfterEnd::Requeue { hold: true },
        backfilled: true,
        mailed: 9,
    }
}

pub fn allocation() -> Allocation {
    let node = |name: &str, first: u32| NodeAlloc {
        node: NodeName::new(name),
        cpus: IndexSet::range(first, first + 3),
        memory_mb: 4096,
        gres: vec![GresAlloc { name: "gpu".to_owned(), kind: Some("a100".to_owned()), indices: IndexSet::single(1) }],
        tasks: 4,
    };
    Allocation { nodes: vec![node("node1", 0), node("node2", 4)] }
}

pub fn outcome() -> Outcome {
    Outcome {
        state: JobState::Cancelled,
        reason: Reason::NonZeroExitCode,
        exit: ExitStatus { code: 3, signal: 15 },
        derived_exit: ExitStatus { code: 255, signal: 9 },
        by_uid: Some(0),
        detail: Some("/home/ada: no such directory".to_owned()),
    }
}

pub fn step(id: StepId) -> StepRecord {
    StepRecord {
        key: StepKey { job: JobId(4713), attempt: 2, step: id },
        name: OsBytes::from("solve"),
        nodes: vec![NodeName::new("node1"), NodeName::new("node2")],
        tasks: 8,
        cpus: 8,
        memory_mb: 512,
        gres: vec![GresSpec { name: "gpu".to_owned(), kind: Some("a100".to_owned()), count: 2 }],
        start: NOW,
        end: Some(later(8)),
        state: JobState::OutOfMemory,
        exit: ExitStatus { code: 1, signal: 9 },
        usage: Usage {
            user_cpu_us: 1,
            system_cpu_us: 2,
            max_rss_bytes: 3,
            max_vmsize_bytes: 4,
            major_faults: 5,
            read_bytes: 6,
            written_bytes: 7,
        },
        spread: Vec::new(),
        submit_line: OsBytes::from("srun solve"),
        distribution: "Block".to_owned(),
        srun_host: "node1".to_owned(),
        srun_pid: 99,
    }
}

pub fn running_step() -> StepRecord {
    StepRecord {
        end: None,
        state: JobState::Running,
        exit: ExitStatus::SUCCESS,
        usage: Usage::default(),
        ..step(StepId::Batch)
    }
}

/// Whose tasks were compared.
pub fn spread_step() -> StepRecord {
    let step = step(StepId::Numbered(4));
    let mut spread = Spread::of_task(6, &step.usage);
    Spread::join(
        &mut spread,
        Spread::of_task(7, &Usage { user_cpu_us: 9, ..step.usage }).into_iter().map(|s| s.on_node(1)),
    );
    StepRecord { spread, ..step }
}

pub fn steps() -> imbl::OrdMap<StepId, Arc<StepRecord>> {
    [StepId::Batch, StepId::Extern, StepId::Numbered(0)].into_iter().map(|id| (id, Arc::new(step(id)))).collect()
}

pub fn report() -> NodeReport {
    NodeReport {
        boot_id: "b7f3".to_owned(),
        address: "127.0.0.1:7000".to_owned(),
        hostname: "node2.example".to_owned(),
        version: "0.1.0".to_owned(),
        arch: "x86_64".to_owned(),
        os: "Linux 6.1".to_owned(),
        cpus: 8,
        memory_mb: 16_000,
        gres: vec![GresSpec { name: "gpu".to_owned(), kind: None, count: 4 }],
        boot_time: 1_796_000_000,
        daemon_start_time: 1_796_000_100,
        missing_isolation: vec!["no cgroup".to_owned()],
    }
}

pub fn node_reason() -> NodeReason {
    NodeReason { text: "fan is broken".to_owned(), uid: 1000, at: NOW }
}

pub fn node_spec(name: &str) -> NodeSpec {
    NodeSpec {
        name: NodeName::new(name),
        address: Some("10.0.0.2:7000".to_owned()),
        sockets: 2,
        cores_per_socket: 4,
        threads_per_core: 1,
        cpus: 8,
        memory_mb: 16_000,
        tmp_disk_mb: 1000,
        gres: vec![GresSpec { name: "gpu".to_owned(), kind: Some("a100".to_owned()), count: 4 }],
        features: vec!["intel".to_owned()],
        weight: 5,
    }
}

pub fn node(name: &str) -> Node {
    Node {
        spec: Arc::new(node_spec(name)),
        flags: NodeFlags { down: true, drain: true, fail: true, unknown: true, not_responding: true },
        reason: Some(node_reason()),
        report: Some(Arc::new(report())),
        jobs: BTreeSet::from([JobId(4713)]),
        stale: BTreeSet::from([(JobId(3), 1)]),
        silent_since: Some(later(9)),
        last_busy: Some(later(10)),
        registered: Some(later(11)),
        comment: Some("rack 4".to_owned()),
    }
}

pub fn partition() -> PartitionSpec {
    PartitionSpec {
        name: "gpu".to_owned(),
        nodes: vec![NodeName::new("node1"), NodeName::new("node2")],
        default: true,
        max_time: TimeLimit::Minutes(1440),
        default_time: Some(TimeLimit::Minutes(30)),
        min_nodes: 1,
        max_nodes: Some(2),
        priority_tier: 3,
        priority_job_factor: 4,
        state: PartitionState::Drain,
        allow_users: vec!["ada".to_owned()],
        allow_groups: vec!["users".to_owned()],
        allow_accounts: vec!["physics".to_owned()],
        allow_qos: vec!["normal".to_owned()],
        root_only: true,
        hidden: true,
        exclusive: true,
        default_memory_per_cpu_mb: Some(100),
        default_memory_per_node_mb: Some(200),
        max_memory_per_node_mb: Some(300),
        max_cpus_per_node: Some(6),
        grace_secs: 10,
        billing_weights: TresWeights::parse("cpu=1,mem=0.25G,gres/gpu:a100=-2").unwrap(),
        qos: Some("limits".to_owned()),
    }
}

pub fn node_change() -> NodeChange {
    NodeChange {
        state: Some(NodeStateChange::Undrain),
        reason: Some("repaired".to_owned()),
        weight: Some(9),
        features: Some(vec!["intel".to_owned(), "new".to_owned()]),
        comment: Some("rack 5".to_owned()),
    }
}

pub fn partition_change() -> PartitionChange {
    PartitionChange {
        state: Some(PartitionState::Inactive),
        max_time: Some(TimeLimit::Unlimited),
        default_time: Some(Some(TimeLimit::Minutes(10))),
        min_nodes: Some(2),
        max_nodes: Some(Some(3)),
        priority_tier: Some(4),
        priority_job_factor: Some(5),
        default: Some(false),
        hidden: Some(true),
        root_only: Some(false),
        allow_groups: Some(Vec::new()),
        allow_accounts: Some(vec!["physics".to_owned()]),
        allow_qos: Some(vec!["high".to_owned()]),
        nodes: Some(vec![NodeName::new("node3")]),
        grace_secs: Some(60),
    }
}

pub fn config() -> ClusterConfig {
    ClusterConfig {
        cluster_name: "tiny".to_owned(),
        nodes: vec![node_spec("node1"), node_spec("node2")],
        partitions: vec![partition()].into(),
        scheduling: SchedulingConfig {
            queue_depth: 500,
            backfill: true,
            default_memory_per_cpu_mb: Some(512),
            default_memory_per_node_mb: Some(1024),
            requeue: true,
            kill_on_invalid_dependency: true,
            enforce_partition_limits: true,
        },
        priority: PriorityConfig {
            kind: PriorityKind::Multifactor,
            weight_age: 1,
            weight_assoc: 2,
            weight_fairshare: 3,
            weight_job_size: 4,
            weight_partition: 5,
            weight_qos: 6,
            weight_tres: TresWeights::parse("cpu=1000").unwrap(),
            max_age_secs: 7,
            favor_small: true,
            decay_half_life_secs: 8,
            usage_reset: UsageReset::Weekly,
            calc_period_secs: 9,
            dampening_factor: 10,
            flags: PriorityFlags::NO_NORMAL_ALL.with(PriorityFlags::MAX_TRES),
        },
        limits: LimitsConfig {
            max_jobs: 200_000,
            max_array_size: 4_000_001,
            max_script_size: 4 << 20,
            max_environment_size: 1 << 20,
            max_requeue: 5,
            first_job_id: 10,
        },
        timing: TimingConfig {
            kill_wait_secs: 30,
            min_job_age_secs: 300,
            node_timeout_secs: 300,
            heartbeat_secs: 10,
            over_time_limit_minutes: 1,
            requeue_delay_secs: 120,
        },
        security: SecurityConfig {
            best_effort: true,
            administrators: vec!["ada".to_owned()],
            operators: vec!["bob".to_owned()],
        },
        mail: MailConfig { program: Some("/usr/bin/mail".to_owned()), domain: Some("example.org".to_owned()) },
        accounting: AccountingConfig::default(),
        licenses: BTreeMap::from([("matlab".to_owned(), 4)]),
    }
}
