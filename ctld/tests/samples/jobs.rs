//! Jobs in every phase, and what belongs to them.

use super::*;

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
        ..ResourceRequest::default()
    }
}

/// What came after the first release.
pub fn placed_request() -> ResourceRequest {
    let feature = |name: &str| Constraint::Feature(name.to_owned());
    let count = |name: &str, nodes: u32| Constraint::Count(Box::new(feature(name)), nodes);
    ResourceRequest {
        constraint: Some(Constraint::All(vec![
            feature("ib"),
            Constraint::Bracket(Box::new(Constraint::All(vec![count("rack1", 2), count("rack2", 4)]))),
        ])),
        prefer: Some(Constraint::Bracket(Box::new(Constraint::Any(vec![feature("rack1"), feature("rack2")])))),
        batch: Some(feature("rack1")),
        pack: Some(false),
        spread: true,
        fewest_nodes: true,
        gpu_memory_mb: 40_960,
        switches: Some(SwitchRequest { count: 2, max_wait_secs: Some(60) }),
        segment: Some(4),
        sockets_per_node: Some(2),
        cores_per_socket: Some(8),
        threads_per_core: Some(1),
        ntasks_per_socket: Some(4),
        ntasks_per_core: Some(1),
        enforce_binding: true,
        disable_binding: false,
        ..ResourceRequest::default()
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
        site_factor: 0,
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
/// A job that waits, with all that placement knows.
pub fn placed_job() -> Job {
    let mut job = pending_job();
    let mut spec = JobSpec::clone(&job.spec);
    spec.request = placed_request().into();
    job.spec = Arc::new(spec);
    job
}

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
        priority_given: false,
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
        claim: None,
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
        priority_given: true,
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
        claim: None,
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
        preempted: None,
        lends: false,
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
        gres: vec![GresSpec::new("gpu", Some("a100".to_owned()), 2)],
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

pub fn claim() -> Claim {
    let nodes = vec![NodeName::new("node1"), NodeName::new("node2")];
    Claim { partition: "main".to_owned(), nodes, victims: vec![JobId(5), JobId(6)], at: later(1) }
}

pub fn claiming_job() -> Job {
    Job { claim: Some(Arc::new(claim())), ..pending_job() }
}

pub fn lending_job() -> Job {
    let preempted = Preempted { by: JobId(9), mode: Mode::Suspend, within: false, at: later(2), ends: None };
    let run = Run { preempted: Some(Box::new(preempted)), lends: true, ending: None, kill_at: None, ..run() };
    Job { phase: Phase::Running(Box::new(run)), ..running_task() }
}
