//! What the simulated users submit, and how their scripts behave.

use super::rng::Rng;
use sluice_engine::command::{Caller, Role};
use sluice_model::config::{ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig};
use sluice_model::dependency::{Dependency, DependencyKind, DependencyTarget, DependencyTerm};
use sluice_model::index_set::IndexSet;
use sluice_model::job::{ArraySpec, JobKind, SignalRequest};
use sluice_model::node::GresSpec;
use sluice_model::request::{Exclusive, GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest};
use sluice_model::{BlobId, JobId, JobSpec, NodeName, NodeSpec, PartitionSpec, Shared, Time, TimeLimit};

/// How a script behaves; carried to the node in the job's name, so that it is a function of the submission alone.
#[derive(Clone, Copy, Debug)]
pub struct Behaviour {
    /// Milliseconds.
    pub runs_for: i64,
    pub exit: u8,
    /// Goes on through SIGTERM.
    pub stubborn: bool,
    /// Its directory does not exist.
    pub fails_to_launch: bool,
    pub step: bool,
}

impl Behaviour {
    fn random(rng: &mut Rng) -> Behaviour {
        Behaviour {
            runs_for: if rng.percent(10) { rng.between(100_000, 400_000) } else { rng.between(10, 40_000) },
            exit: if rng.percent(20) { 1 } else { 0 },
            stubborn: rng.percent(30),
            fails_to_launch: rng.percent(3),
            step: rng.percent(30),
        }
    }
    fn name(&self) -> String {
        let flag = |b: bool| u8::from(b);
        let (stubborn, fails, step) = (flag(self.stubborn), flag(self.fails_to_launch), flag(self.step));
        format!("{}:{}:{stubborn}:{fails}:{step}", self.runs_for, self.exit)
    }
    /// From the job's name; a singleton's name is shared and short.
    pub fn of(spec: &JobSpec) -> Behaviour {
        let text = spec.name.to_string_lossy();
        let mut parts = text.split(':').map(|p| p.parse::<i64>().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        Behaviour {
            runs_for: next().max(10),
            exit: next() as u8,
            stubborn: next() == 1,
            fails_to_launch: next() == 1,
            step: next() == 1,
        }
    }
}

pub const USERS: [u32; 3] = [1500, 1501, 1502];
pub const NODE_TIMEOUT_SECS: u32 = 120;

pub fn user(uid: u32) -> Caller {
    Caller { uid, gid: uid, user: format!("user{uid}"), groups: Vec::new(), role: Role::User }
}
pub fn operator() -> Caller {
    Caller { role: Role::Operator, ..user(900) }
}

pub fn config(rng: &mut Rng) -> ClusterConfig {
    let count = rng.between(2, 5);
    let nodes: Vec<NodeSpec> = (1..=count)
        .map(|n| {
            let cpus = rng.between(1, 4) as u32;
            let gpus = rng.below(3);
            NodeSpec {
                name: NodeName::new(format!("n{n}")),
                address: None,
                sockets: 1,
                cores_per_socket: cpus,
                threads_per_core: 1,
                cpus,
                memory_mb: 1000,
                tmp_disk_mb: 0,
                gres: if gpus > 0 { vec![GresSpec::new("gpu", None, gpus)] } else { Vec::new() },
                features: if n % 2 == 0 { vec!["even".to_owned()] } else { Vec::new() },
                weight: 1,
            }
        })
        .collect();
    let names: Vec<NodeName> = nodes.iter().map(|n| n.name.clone()).collect();
    let half = names[..names.len().div_ceil(2)].to_vec();
    ClusterConfig {
        cluster_name: "sim".to_owned(),
        partitions: vec![
            partition("main", names, true, 1, TimeLimit::Unlimited),
            partition("short", half, false, 10, TimeLimit::Minutes(2)),
        ],
        nodes,
        scheduling: SchedulingConfig { requeue: true, ..SchedulingConfig::default() },
        priority: sluice_model::config::PriorityConfig::default(),
        limits: LimitsConfig { max_requeue: 3, max_array_size: 1001, max_jobs: 10_000, ..LimitsConfig::default() },
        timing: TimingConfig {
            kill_wait_secs: 5,
            min_job_age_secs: 30,
            node_timeout_secs: NODE_TIMEOUT_SECS,
            requeue_delay_secs: 2,
            ..TimingConfig::default()
        },
        security: SecurityConfig::default(),
        requeue: sluice_model::config::RequeueConfig::default(),
        mail: MailConfig::default(),
        accounting: sluice_model::config::AccountingConfig::default(),
        topology: Default::default(),
        preemption: sluice_model::config::PreemptionConfig::default(),
        licenses: [("fluent".to_owned(), 2)].into(),
    }
}

fn partition(name: &str, nodes: Vec<NodeName>, default: bool, tier: u32, max_time: TimeLimit) -> PartitionSpec {
    PartitionSpec {
        name: name.to_owned(),
        nodes,
        default,
        max_time,
        default_time: Some(TimeLimit::Minutes(2)),
        min_nodes: 0,
        max_nodes: None,
        priority_tier: tier,
        priority_job_factor: 1,
        state: sluice_model::partition::PartitionState::Up,
        allow_users: Vec::new(),
        allow_groups: Vec::new(),
        allow_accounts: Vec::new(),
        allow_qos: Vec::new(),
        root_only: false,
        hidden: false,
        exclusive: false,
        default_memory_per_cpu_mb: Some(100),
        default_memory_per_node_mb: None,
        max_memory_per_node_mb: None,
        max_cpus_per_node: None,
        least_loaded: false,
        grace_secs: 0,
        preempt_mode: None,
        billing_weights: sluice_model::tres_weights::TresWeights::default(),
        qos: None,
    }
}

/// A random submission. `known` are ids that earlier ones were given.
pub fn submission(rng: &mut Rng, now: Time, known: &[JobId]) -> JobSpec {
    let uid = *rng.pick(&USERS).unwrap_or(&1500);
    let behaviour = Behaviour::random(rng);
    let batch = rng.percent(85);
    let array = (batch && rng.percent(20)).then(|| {
        let last = rng.between(0, 7) as u32;
        let throttle = rng.percent(50).then(|| rng.between(1, 3) as u32);
        ArraySpec { indices: IndexSet::range(0, last), throttle, step: 1 }
    });
    let dependency = (rng.percent(25)).then(|| dependency(rng, known)).flatten();
    let singleton = matches!(&dependency, Some(d) if d.terms.iter().any(|t| t.target.is_none()));
    let name = if singleton { "2000".to_owned() } else { behaviour.name() };
    let kind = if batch { JobKind::Batch { script: BlobId([1; 32]), args: Vec::new() } } else { JobKind::Allocation };
    let user = format!("user{uid}");
    let mut spec = JobSpec {
        partitions: match rng.below(4) {
            0 => vec!["short".to_owned()].into(),
            1 => vec!["short".to_owned(), "main".to_owned()].into(),
            _ => Shared::default(),
        },
        request: request(rng).into(),
        time_limit: rng.percent(70).then(|| TimeLimit::Minutes(rng.between(1, 5) as u32)),
        begin: rng.percent(10).then(|| Time(now.0 + rng.between(0, 60_000))),
        deadline: rng.percent(5).then(|| Time(now.0 + rng.between(300_000, 600_000))),
        dependency: dependency.map(Box::new),
        array: array.map(Box::new),
        hold: rng.percent(5),
        nice: rng.between(0, 50) as i32,
        requeue: rng.percent(20).then_some(false),
        kill_on_invalid_dep: Some(rng.percent(70)),
        signal: rng.percent(10).then(|| SignalRequest {
            signal: 12,
            before_secs: 20,
            batch_shell: rng.percent(50),
            reservation: false,
        }),
        mail_type: if rng.percent(20) { 0x3ff } else { 0 },
        licenses: rng.percent(10).then(|| ("fluent".to_owned(), 1)).into_iter().collect(),
        work_dir: "/tmp".into(),
        environment: BlobId([2; 32]),
        immediate_secs: rng.percent(3).then(|| rng.between(0, 30) as u32),
        ..JobSpec::new(name, kind, (uid, &user), (uid, &user))
    };
    if !batch {
        spec.requeue = None;
    }
    spec
}

fn request(rng: &mut Rng) -> ResourceRequest {
    let mut request = ResourceRequest { ntasks: Some(1), ..ResourceRequest::default() };
    match rng.below(5) {
        0 => {
            let n = rng.between(1, 2) as u32;
            request.nodes = Some(NodeCount { min: n, max: Some(n) });
            request.ntasks = Some(n);
        }
        1 => request.ntasks = Some(rng.between(1, 3) as u32),
        2 => request.cpus_per_task = Some(rng.between(1, 2) as u32),
        _ => {}
    }
    if rng.percent(30) {
        request.memory = Some(MemoryRequest::PerNode(rng.between(50, 700) as u64));
    }
    if rng.percent(15) {
        request.gres = vec![GresRequest { name: "gpu".to_owned(), kind: None, count: 1, scope: GresScope::Node }];
    }
    if rng.percent(5) {
        request.exclusive = Exclusive::Node;
    }
    request
}

fn dependency(rng: &mut Rng, known: &[JobId]) -> Option<Dependency> {
    let kinds = [
        DependencyKind::AfterOk,
        DependencyKind::AfterAny,
        DependencyKind::AfterNotOk,
        DependencyKind::AfterCorr,
        DependencyKind::After { minutes: 0 },
        DependencyKind::After { minutes: 1 },
        DependencyKind::Singleton,
    ];
    let recent = &known[known.len().saturating_sub(10)..];
    let mut terms = Vec::new();
    for _ in 0..rng.between(1, 2) {
        let kind = *rng.pick(&kinds)?;
        let target = match kind {
            DependencyKind::Singleton => None,
            _ => Some(DependencyTarget { job: *rng.pick(recent)?, task: rng.percent(10).then_some(1) }),
        };
        terms.push(DependencyTerm { kind, target });
    }
    Some(Dependency { any: terms.len() > 1 && rng.percent(30), terms })
}
