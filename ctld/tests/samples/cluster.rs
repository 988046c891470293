//! Nodes, partitions and configuration.

use super::*;

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
        gres: vec![GresSpec::new("gpu", None, 4)],
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
        gres: vec![GresSpec::new("gpu", Some("a100".to_owned()), 4)],
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
        least_loaded: false,
        grace_secs: 10,
        preempt_mode: None,
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
        preempt_mode: None,
    }
}

/// What is said of requeues and of the pace of submissions.
pub fn requeueing() -> ClusterConfig {
    let mut config = config();
    config.limits.submit_rate = 50;
    config.limits.submit_burst = 100;
    config.requeue.exit_codes = IndexSet::from_iter([1, 2, 3, 99]);
    config.requeue.hold_exit_codes = IndexSet::single(98);
    config.requeue.rules[RequeueCause::LaunchFailure as usize] =
        RequeueRule { retries: Some(3), delay_secs: Some(10), longest_delay_secs: Some(600) };
    config
}

/// What placement added.
pub fn joined_config() -> ClusterConfig {
    let node = |name: &str, gres: &str| NodeSpec {
        gres: vec![sluice_model::gres::parse_gres_spec(gres).unwrap()],
        ..node_spec(name)
    };
    ClusterConfig {
        nodes: vec![node("node1", "gpu:a100:2(mem=80G;cores=0-1/2-3;links=0,4/4,0)"), node_spec("node2")],
        partitions: vec![PartitionSpec { least_loaded: true, ..partition() }],
        scheduling: SchedulingConfig {
            least_loaded: true,
            pack_tasks: true,
            max_switch_wait_secs: 60,
            ..SchedulingConfig::default()
        },
        topology: TopologyConfig {
            switches: vec![
                SwitchSpec { name: "s0".to_owned(), nodes: vec![NodeName::new("node1")], switches: Vec::new() },
                SwitchSpec { name: "top".to_owned(), nodes: Vec::new(), switches: vec!["s0".to_owned()] },
            ],
            blocks: vec![BlockSpec { name: "b0".to_owned(), nodes: vec![NodeName::new("node2")] }],
            block_sizes: vec![1, 2],
        },
        ..config()
    }
}

pub fn config() -> ClusterConfig {
    ClusterConfig {
        cluster_name: "tiny".to_owned(),
        nodes: vec![node_spec("node1"), node_spec("node2")],
        partitions: vec![partition()],
        scheduling: SchedulingConfig {
            queue_depth: 500,
            backfill: true,
            default_memory_per_cpu_mb: Some(512),
            default_memory_per_node_mb: Some(1024),
            requeue: true,
            kill_on_invalid_dependency: true,
            enforce_partition_limits: true,
            ..SchedulingConfig::default()
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
            predictions: false,
        },
        limits: LimitsConfig {
            max_jobs: 200_000,
            max_array_size: 4_000_001,
            max_script_size: 4 << 20,
            max_environment_size: 1 << 20,
            max_requeue: 5,
            submit_rate: 0,
            submit_burst: 1000,
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
        requeue: RequeueConfig::default(),
        security: SecurityConfig {
            best_effort: true,
            administrators: vec!["ada".to_owned()],
            operators: vec!["bob".to_owned()],
        },
        mail: MailConfig { program: Some("/usr/bin/mail".to_owned()), domain: Some("example.org".to_owned()) },
        accounting: AccountingConfig::default(),
        topology: Default::default(),
        preemption: PreemptionConfig::default(),
        licenses: BTreeMap::from([("matlab".to_owned(), 4)]),
    }
}

/// As an empty configuration orders the queue.
pub fn config_by_size() -> ClusterConfig {
    ClusterConfig { priority: PriorityConfig::default(), ..config() }
}

pub fn config_with_preemption() -> ClusterConfig {
    let preemption = PreemptionConfig { kind: PreemptKind::Qos, mode: Mode::Cancel, within: true, exempt_secs: 90 };
    let partitions = vec![PartitionSpec { preempt_mode: Some(Mode::Requeue), ..partition() }];
    ClusterConfig { preemption, partitions, ..config() }
}
