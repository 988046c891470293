//! From the trace's jobs to submissions: what each asks for, who submits it, and how long it is expected to run.

use crate::policy::Policy;
use crate::trace::{Trace, TraceJob};
use sluice_engine::query::{Outlook, Over};
use sluice_engine::{Job, State};
use sluice_model::config::ClusterConfig;
use sluice_model::job::JobKind;
use sluice_model::request::{GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest};
use sluice_model::{BlobId, JobId, JobSpec, Time, TimeLimit};
use sluice_sched::{Input, PendingJob, RunningJob};
use std::collections::BTreeMap;

/// How long the scheduler is told that jobs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Estimates {
    /// What the users asked for.
    #[default]
    Limit,
    /// What they will run: what perfect estimates would give.
    Exact,
}

impl Estimates {
    pub fn parse(text: &str) -> Result<Estimates, String> {
        match text {
            "limit" => Ok(Estimates::Limit),
            "exact" => Ok(Estimates::Exact),
            _ => Err(format!("unknown estimates '{text}'; known are limit, exact")),
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Estimates::Limit => "limit",
            Estimates::Exact => "exact",
        }
    }
}

/// First user and group id.
const FIRST_ID: u32 = 10_000;

/// Whose shape it is, for the memory of what can run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    cpus: u32,
    nodes: u32,
    gpus: u32,
    gpu_type: Option<u32>,
    minutes: u32,
}

pub(super) struct Jobs {
    /// Milliseconds, by position.
    expected: Vec<i64>,
    /// By position; 0 for none.
    ids: Vec<u32>,
    /// By job id.
    positions: Vec<u32>,
    /// Jobs get this when the configuration has no default for memory: traces don't tell it.
    memory: Option<MemoryRequest>,
    /// Most GPUs of one node, by type; the last for any.
    most_gpus: BTreeMap<Option<String>, u64>,
    judged: BTreeMap<Asked, Result<(), String>>,
}

impl Jobs {
    pub fn new(trace: &Trace, config: &ClusterConfig, estimates: Estimates) -> Jobs {
        let seconds = |job: &TraceJob| match estimates {
            Estimates::Limit => job.requested,
            Estimates::Exact => job.run,
        };
        let has_default = config.scheduling.default_memory_per_cpu_mb.is_some()
            || config.scheduling.default_memory_per_node_mb.is_some()
            || config
                .partitions
                .iter()
                .any(|p| p.default_memory_per_cpu_mb.is_some() || p.default_memory_per_node_mb.is_some());
        let mut most_gpus = BTreeMap::new();
        for node in &config.nodes {
            let mut all = 0;
            for gres in node.gres.iter().filter(|g| g.name == "gpu") {
                all += gres.count;
                let most = most_gpus.entry(gres.kind.clone()).or_insert(0u64);
                *most = gres.count.max(*most);
            }
            let most = most_gpus.entry(None).or_insert(0);
            *most = all.max(*most);
        }
        Jobs {
            expected: trace.jobs.iter().map(|j| seconds(j).saturating_mul(1000)).collect(),
            ids: vec![0; trace.jobs.len()],
            positions: Vec::new(),
            memory: (!has_default).then_some(MemoryRequest::PerNode(1)),
            most_gpus,
            judged: BTreeMap::new(),
        }
    }

    pub fn submitted(&mut self, position: u32, id: JobId) {
        self.ids[position as usize] = id.0;
        let at = id.0 as usize;
        if self.positions.len() <= at {
            self.positions.resize(at + 1, u32::MAX);
        }
        self.positions[at] = position;
    }
    pub fn id(&self, position: u32) -> Option<JobId> {
        self.ids.get(position as usize).filter(|id| **id > 0).map(|id| JobId(*id))
    }
    pub fn position(&self, id: JobId) -> Option<u32> {
        self.positions.get(id.0 as usize).copied().filter(|p| *p != u32::MAX)
    }

    /// Could this cluster, under this policy, ever run it? Each kind of request is judged once.
    pub fn feasible(&mut self, state: &State, trace: &Trace, job: &TraceJob) -> Result<(), String> {
        let asked = Asked {
            cpus: job.cpus,
            nodes: job.nodes,
            gpus: job.gpus,
            gpu_type: job.gpu_type,
            minutes: minutes(job.requested),
        };
        if let Some(judged) = self.judged.get(&asked) {
            return judged.clone();
        }
        let spec = self.spec(trace, job);
        let hardware = &state.index.hardware;
        let partitions: Vec<String> = state.partitions.values().filter(|p| p.default).map(|p| p.name.clone()).collect();
        let judged = sluice_sched::feasible(hardware.cluster(), &spec, &hardware.positions(&partitions))
            .map_err(|infeasible| infeasible.to_string());
        self.judged.insert(asked, judged.clone());
        judged
    }

    pub fn spec(&self, trace: &Trace, job: &TraceJob) -> JobSpec {
        let name = |list: &[String], at: u32, kind: &str| match list.get(at as usize).map(String::as_str) {
            None | Some("") => kind.to_owned(),
            Some(name) => format!("{kind}-{name}"),
        };
        let user = name(&trace.users, job.user, "user");
        let group = name(&trace.groups, job.group, "group");
        let kind = JobKind::Batch { script: BlobId([0; 32]), args: Vec::new() };
        let (uid, gid) = (FIRST_ID + job.user, FIRST_ID + job.group);
        JobSpec {
            request: self.request(trace, job).into(),
            time_limit: Some(TimeLimit::Minutes(minutes(job.requested))),
            ..JobSpec::new("trace", kind, (uid, &user), (gid, &group))
        }
    }

    fn request(&self, trace: &Trace, job: &TraceJob) -> ResourceRequest {
        let mut request = ResourceRequest { memory: self.memory, ..ResourceRequest::default() };
        let exactly = |n: u32| Some(NodeCount { min: n, max: Some(n) });
        if job.gpus == 0 {
            request.ntasks = Some(job.cpus);
            request.nodes = (job.nodes > 0).then_some(exactly(job.nodes)).flatten();
            return request;
        }
        // A gang: as few nodes as hold it, an equal share on each where that is possible.
        let kind = job.gpu_type.and_then(|t| trace.gpu_types.get(t as usize)).cloned();
        let most = self.most_gpus.get(&kind).copied().unwrap_or(0).max(1);
        let least = u64::from(job.gpus).div_ceil(most);
        let nodes = job.nodes.max(u32::try_from(least).unwrap_or(u32::MAX));
        let (count, scope) =
            if job.gpus % nodes == 0 { (job.gpus / nodes, GresScope::Node) } else { (job.gpus, GresScope::Job) };
        request.nodes = exactly(nodes);
        request.ntasks = Some(nodes);
        request.cpus_per_task = Some(job.cpus.div_ceil(nodes));
        request.gres = vec![GresRequest { name: "gpu".to_owned(), kind, count: u64::from(count), scope }];
        request
    }
}

/// Durations as the trace has them, to the second (limits are whole minutes), and the priorities of the board.
pub(super) struct Foresight<'a> {
    pub jobs: &'a Jobs,
    pub policy: &'a Policy,
    pub board: Over<'a>,
}

impl Outlook for Foresight<'_> {
    fn policy(&self, policy: &mut sluice_sched::Policy) {
        self.policy.adjust(policy);
    }
    fn limits(&self, shown: &mut Input) {
        self.board.limits(shown);
    }
    fn pending(&self, job: &Job, shown: &mut PendingJob) {
        self.board.pending(job, shown);
        shown.expected_ms = self.jobs.position(job.id).map(|at| self.jobs.expected[at as usize]);
    }
    fn running(&self, job: &Job, shown: &mut RunningJob) {
        self.board.running(job, shown);
        let expected = self.jobs.position(job.id).map(|at| self.jobs.expected[at as usize]);
        let started = job.run().map(|run| run.started);
        shown.expected_end = started.zip(expected).map(|(start, ms)| Time(start.0.saturating_add(ms)));
    }
}

/// Rounded up, at least one.
fn minutes(seconds: i64) -> u32 {
    u32::try_from(seconds.saturating_add(59) / 60).unwrap_or(u32::MAX).max(1)
}
