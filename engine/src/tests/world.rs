//! A cluster in memory for scenario tests: every command is decided, folded and audited, and the journal replayed.

use crate::command::{Caller, Command, JobTarget, Reply, Role};
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{Job, Outcome, Phase};
use crate::{Reject, State, audit, decide, fold, query};
use sluice_model::accounting::TresKind;
use sluice_model::config::{
    ClusterConfig, LimitsConfig, MailConfig, PriorityConfig, PriorityKind, SchedulingConfig, SecurityConfig,
    TimingConfig,
};
use sluice_model::job::{ArraySpec, JobKind};
use sluice_model::node::NodeReport;
use sluice_model::request::{MemoryRequest, NodeCount, ResourceRequest};
use sluice_model::state::ExitStatus;
use sluice_model::step::Usage;
use sluice_model::{BlobId, JobId, JobSpec, JobState, NodeName, NodeSpec, PartitionSpec, Reason, Time, TimeLimit};
use std::sync::Arc;

pub const KILL_WAIT: i64 = 30;
pub const NODE_TIMEOUT: i64 = 300;

pub struct World {
    pub state: State,
    pub now: Time,
    pub journal: Vec<Event>,
    /// Effects since they were last taken.
    pub effects: Vec<Effect>,
    /// Fed with every change: must plan as one that sees all for the first time.
    feed: query::Feed,
    pub board: query::Board,
}

pub fn node(name: &str, cpus: u32) -> NodeSpec {
    NodeSpec {
        name: NodeName::new(name),
        address: None,
        sockets: 1,
        cores_per_socket: cpus,
        threads_per_core: 1,
        cpus,
        memory_mb: 1000 * u64::from(cpus),
        tmp_disk_mb: 0,
        gres: Vec::new(),
        features: Vec::new(),
        weight: 1,
    }
}

pub fn partition(name: &str, nodes: &[&str], default: bool) -> PartitionSpec {
    PartitionSpec {
        name: name.to_owned(),
        nodes: nodes.iter().map(NodeName::new).collect(),
        default,
        max_time: TimeLimit::Minutes(24 * 60),
        default_time: Some(TimeLimit::Minutes(60)),
        min_nodes: 0,
        max_nodes: None,
        priority_tier: 1,
        priority_job_factor: 1,
        state: sluice_model::partition::PartitionState::Up,
        allow_users: Vec::new(),
        allow_groups: Vec::new(),
        allow_accounts: Vec::new(),
        allow_qos: Vec::new(),
        root_only: false,
        hidden: false,
        exclusive: false,
        least_loaded: false,
        default_memory_per_cpu_mb: Some(100),
        default_memory_per_node_mb: None,
        max_memory_per_node_mb: None,
        max_cpus_per_node: None,
        grace_secs: 0,
        preempt_mode: None,
        billing_weights: sluice_model::tres_weights::TresWeights::default(),
        qos: None,
    }
}

pub fn config() -> ClusterConfig {
    ClusterConfig {
        cluster_name: "test".to_owned(),
        nodes: vec![node("n1", 4), node("n2", 4)],
        partitions: vec![partition("main", &["n1", "n2"], true)],
        scheduling: SchedulingConfig { requeue: true, enforce_partition_limits: false, ..SchedulingConfig::default() },
        // First come, first served: scenarios say who comes first by submitting them so.
        priority: PriorityConfig { kind: PriorityKind::Fifo, ..PriorityConfig::default() },
        limits: LimitsConfig { max_requeue: 2, max_array_size: 1001, ..LimitsConfig::default() },
        timing: TimingConfig {
            kill_wait_secs: KILL_WAIT as u32,
            node_timeout_secs: NODE_TIMEOUT as u32,
            min_job_age_secs: 300,
            requeue_delay_secs: 10,
            over_time_limit_minutes: 0,
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

pub fn user(uid: u32) -> Caller {
    Caller { uid, gid: uid, user: format!("user{uid}"), groups: vec!["users".to_owned()], role: Role::User }
}

pub fn operator() -> Caller {
    Caller { role: Role::Operator, ..user(900) }
}

/// A batch job of one task and one core by user 1500, ten minutes long.
pub fn job() -> JobSpec {
    let kind = JobKind::Batch { script: BlobId([1; 32]), args: Vec::new() };
    JobSpec {
        request: ResourceRequest {
            ntasks: Some(1),
            memory: Some(MemoryRequest::PerNode(100)),
            ..ResourceRequest::default()
        }
        .into(),
        time_limit: Some(TimeLimit::Minutes(10)),
        work_dir: "/tmp".into(),
        environment: BlobId([2; 32]),
        ..JobSpec::new("job", kind, (1500, "user1500"), (1500, "user1500"))
    }
}

pub fn cores(n: u32) -> JobSpec {
    let mut spec = job();
    spec.request.cpus_per_task = Some(n);
    spec
}

pub fn nodes(n: u32) -> JobSpec {
    let mut spec = job();
    spec.request.nodes = Some(NodeCount { min: n, max: Some(n) });
    spec.request.ntasks = Some(n);
    spec
}

pub fn array(text: &str) -> JobSpec {
    JobSpec { array: Some(sluice_model::array::parse_array(text, 1001).unwrap().into()), ..job() }
}

pub fn throttled(text: &str, limit: u32) -> JobSpec {
    let plain = array(text).array.unwrap();
    JobSpec { array: Some(ArraySpec { throttle: Some(limit), ..*plain }.into()), ..job() }
}

pub fn after(text: &str) -> JobSpec {
    JobSpec { dependency: Some(sluice_model::dependency::parse(text).unwrap().into()), ..job() }
}

pub fn allocation() -> JobSpec {
    JobSpec { kind: JobKind::Allocation, ..job() }
}

impl World {
    /// Two nodes of four cores, registered.
    pub fn new() -> World {
        World::with(config())
    }

    pub fn with(config: ClusterConfig) -> World {
        let mut w = World {
            state: State::default(),
            now: Time::from_secs(1_000_000),
            journal: Vec::new(),
            effects: Vec::new(),
            feed: query::Feed::new(),
            board: query::Board::default(),
        };
        let names: Vec<NodeName> = config.nodes.iter().map(|n| n.name.clone()).collect();
        w.ok(Command::Configure { config: Arc::new(config) });
        for name in names {
            w.register(name.as_str(), "boot1", &[]);
        }
        w.effects.clear();
        w
    }

    pub fn try_command(&mut self, command: Command) -> Result<Reply, Reject> {
        let decision = decide(&self.state, self.now, &command)?;
        for event in &decision.events {
            fold(&mut self.state, event);
        }
        self.journal.extend(decision.events);
        self.effects.extend(decision.effects);
        let problems = audit(&self.state);
        assert!(problems.is_empty(), "after {command:?}:\n{}", problems.join("\n"));
        let all = query::usage_at(&self.state, self.now);
        let billing = all.iter().map(|(owner, spent)| (owner.clone(), spent.of(&TresKind::Billing))).collect();
        assert_eq!(query::billing_at(&self.state, self.now), billing, "what fair shares go by is what was used");
        if self.board.is_stale(&self.state, self.now) {
            self.board = query::Board::new(&self.state, self.now, Some(&self.board));
            self.feed.start_anew();
        }
        let fed = self.feed.plan(&self.state, self.now, &self.board.over(&self.state));
        let fresh = sluice_sched::plan(&query::scheduler_input_with(&self.state, self.now, &self.board));
        assert!(fed == fresh, "after {command:?} the feed plans\n{fed:#?}\nbut it should be\n{fresh:#?}");
        Ok(decision.reply)
    }

    #[track_caller]
    pub fn ok(&mut self, command: Command) -> Reply {
        match self.try_command(command.clone()) {
            Ok(reply) => reply,
            Err(reject) => panic!("{command:?} was refused: {reject:?}"),
        }
    }

    /// The journal gives the same state again.
    pub fn assert_replays(&self) {
        let mut again = State::default();
        for event in &self.journal {
            fold(&mut again, event);
        }
        assert!(again == self.state, "replaying the journal gives another state");
    }

    #[track_caller]
    pub fn submit(&mut self, spec: JobSpec) -> JobId {
        let caller = user(spec.uid);
        match self.ok(Command::Submit { caller, spec: Box::new(spec), key: None }) {
            Reply::Submitted { job } => job,
            other => panic!("{other:?}"),
        }
    }

    pub fn refused(&mut self, spec: JobSpec) -> Reject {
        let caller = user(spec.uid);
        self.try_command(Command::Submit { caller, spec: Box::new(spec), key: None }).expect_err("it was accepted")
    }

    /// One scheduling pass; the jobs started.
    pub fn schedule(&mut self) -> Vec<JobId> {
        let input = query::scheduler_input(&self.state, self.now);
        let plan = sluice_sched::plan(&input);
        match self.ok(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed }) {
            Reply::Affected { jobs } => jobs,
            other => panic!("{other:?}"),
        }
    }

    pub fn pass(&mut self, secs: i64) {
        self.now = Time(self.now.0 + secs * 1000);
        self.ok(Command::Tick);
    }

    pub fn register(&mut self, name: &str, boot: &str, holds: &[(u32, u32)]) {
        let spec = self.state.nodes[name].spec.clone();
        let report = NodeReport {
            boot_id: boot.to_owned(),
            cpus: spec.cpus,
            memory_mb: spec.memory_mb,
            gres: spec.gres.clone(),
            ..NodeReport::default()
        };
        let holds = holds.iter().map(|(job, attempt)| (JobId(*job), *attempt)).collect();
        self.ok(Command::NodeRegister { node: NodeName::new(name), report: Box::new(report), holds });
    }

    pub fn job(&self, id: JobId) -> &Job {
        self.state.jobs.get(&id).unwrap_or_else(|| panic!("no job {id}"))
    }
    pub fn state_of(&self, id: JobId) -> JobState {
        self.job(id).state()
    }
    pub fn outcome(&self, id: JobId) -> &Outcome {
        self.job(id).outcome().unwrap_or_else(|| panic!("job {id} has no outcome"))
    }
    pub fn reason(&self, id: JobId) -> Option<Reason> {
        query::wait_reason(self.job(id), &self.state, self.now)
    }

    pub fn nodes_of(&self, id: JobId) -> Vec<NodeName> {
        self.job(id).run().map(|r| r.allocation.names().cloned().collect()).unwrap_or_default()
    }

    /// All its nodes confirm the job's attempt.
    pub fn confirm(&mut self, id: JobId) {
        let attempt = self.job(id).attempt;
        for node in self.nodes_of(id) {
            self.ok(Command::AttemptConfirmed { node, job: id, attempt });
        }
    }

    pub fn batch_ends(&mut self, id: JobId, exit: ExitStatus) {
        let (node, attempt) = (self.nodes_of(id)[0].clone(), self.job(id).attempt);
        self.ok(Command::BatchEnded { node, job: id, attempt, exit, usage: Usage::default(), failure: None });
    }

    /// Nodes that still have to say so report that the job is gone.
    pub fn clean(&mut self, id: JobId) {
        let Phase::Completing { run, waiting_for, .. } = self.job(id).phase.clone() else { return };
        for node in waiting_for {
            self.ok(Command::AttemptGone { node, job: id, attempt: run.attempt });
        }
    }

    /// Starts whatever can start and runs this job to its end.
    pub fn run(&mut self, id: JobId, exit: ExitStatus) {
        if matches!(self.job(id).phase, Phase::Pending) {
            self.schedule();
        }
        self.confirm(id);
        self.batch_ends(id, exit);
        self.clean(id);
    }

    pub fn cancel(&mut self, caller: Caller, id: JobId) -> Result<Reply, Reject> {
        self.try_command(Command::Cancel { caller, target: JobTarget::Job(id) })
    }

    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Signals ordered since the effects were last taken.
    pub fn signals(&self) -> Vec<u8> {
        self.effects
            .iter()
            .filter_map(|e| match e {
                Effect::Signal { signal, .. } => Some(*signal),
                _ => None,
            })
            .collect()
    }

    pub fn launches(&self) -> Vec<(JobId, u32)> {
        self.effects
            .iter()
            .filter_map(|e| match e {
                Effect::Launch { job, attempt } => Some((*job, *attempt)),
                _ => None,
            })
            .collect()
    }

    pub fn end_orders(&self) -> Vec<(NodeName, JobId, u32)> {
        self.effects
            .iter()
            .filter_map(|e| match e {
                Effect::EndAttempt { node, job, attempt } => Some((node.clone(), *job, *attempt)),
                _ => None,
            })
            .collect()
    }
}

pub const OK: ExitStatus = ExitStatus::SUCCESS;
pub fn code(code: u8) -> ExitStatus {
    ExitStatus { code, signal: 0 }
}
pub fn killed(signal: u8) -> ExitStatus {
    ExitStatus { code: 0, signal }
}
