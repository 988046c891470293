//! From the trace's jobs to submissions: what each asks for, who submits it, and how long it is expected to run.

use crate::trace::{Trace, TraceJob};
use sluice_engine::State;
use sluice_model::config::{ClusterConfig, PriorityKind};
use sluice_model::job::JobKind;
use sluice_model::request::{GresRequest, GresScope, MemoryRequest, NodeCount, ResourceRequest};
use sluice_model::shared::Shared;
use sluice_model::{BlobId, JobId, JobSpec, OsBytes, TimeLimit};
use std::collections::BTreeMap;

/// How long the scheduler is told that jobs run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Estimates {
    /// What the users asked for; the order goes by predictions where the configuration says so.
    #[default]
    Configured,
    /// What the users asked for, without predictions.
    Limit,
    /// What the users asked for; the order goes by what users' earlier runs make probable.
    Predicted,
    /// What they will run: what perfect estimates would give.
    Exact,
}

impl Estimates {
    pub fn parse(text: &str) -> Result<Estimates, String> {
        match text {
            "configured" => Ok(Estimates::Configured),
            "limit" => Ok(Estimates::Limit),
            "predicted" => Ok(Estimates::Predicted),
            "exact" => Ok(Estimates::Exact),
            _ => Err(format!("unknown estimates '{text}'; known are configured, limit, predicted, exact")),
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Estimates::Configured => "configured",
            Estimates::Limit => "limit",
            Estimates::Predicted => "predicted",
            Estimates::Exact => "exact",
        }
    }
    /// Switches predictions on or off. False where they are asked for and the order knows none.
    pub fn configure(self, config: &mut ClusterConfig) -> bool {
        match self {
            Estimates::Configured | Estimates::Exact => {}
            Estimates::Limit => config.priority.predictions = false,
            Estimates::Predicted => config.priority.predictions = true,
        }
        self != Estimates::Predicted || config.priority.kind == PriorityKind::SmallestFirst
    }
}

/// First user and group id.
const FIRST_ID: u32 = 10_000;

/// What tells one kind of request from another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    cpus: u32,
    nodes: u32,
    gpus: u32,
    gpu_type: Option<u32>,
    memory_mb: u64,
    partition: Option<u32>,
    minutes: u32,
}

struct Kind {
    request: Shared<ResourceRequest>,
    partitions: Shared<Vec<String>>,
    verdict: Result<(), String>,
}

pub(super) struct Jobs {
    /// Milliseconds, by position.
    expected: Vec<i64>,
    /// By position; 0 for none.
    ids: Vec<u32>,
    /// By job id.
    positions: Vec<u32>,
    /// A machine of plain processors: memory and partitions play no part.
    plain: bool,
    /// Jobs get this when the configuration has no default for memory: traces don't tell it.
    memory: Option<MemoryRequest>,
    /// Most GPUs of one node, by type; the last for any.
    most_gpus: BTreeMap<Option<String>, u64>,
    kinds: BTreeMap<Asked, Kind>,
    name: OsBytes,
    users: Vec<Shared<String>>,
    groups: Vec<Shared<String>>,
}

impl Jobs {
    pub fn new(trace: &Trace, config: &ClusterConfig, plain: bool, estimates: Estimates) -> Jobs {
        let seconds = |job: &TraceJob| match estimates {
            Estimates::Configured | Estimates::Limit | Estimates::Predicted => job.requested,
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
            plain,
            memory: (!has_default).then_some(MemoryRequest::PerNode(1)),
            most_gpus,
            kinds: BTreeMap::new(),
            name: "trace".into(),
            users: named(&trace.users, "user"),
            groups: named(&trace.groups, "group"),
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

    /// The submission; or why this cluster, under this policy, could never run it. Each kind of request is made and judged
    /// once.
    pub fn submission(&mut self, state: &State, trace: &Trace, job: &TraceJob) -> Result<JobSpec, String> {
        let asked = Asked {
            cpus: job.cpus,
            nodes: job.nodes,
            gpus: job.gpus,
            gpu_type: job.gpu_type,
            memory_mb: job.memory_mb,
            partition: job.partition,
            minutes: minutes(job.requested),
        };
        if !self.kinds.contains_key(&asked) {
            let partition = job.partition.filter(|_| !self.plain).and_then(|p| trace.partitions.get(p as usize));
            let mut kind = Kind {
                request: self.request(trace, job).into(),
                partitions: partition.cloned().into_iter().collect(),
                verdict: Ok(()),
            };
            kind.verdict = feasible(state, &self.spec(&kind, job));
            self.kinds.insert(asked.clone(), kind);
        }
        let kind = &self.kinds[&asked];
        kind.verdict.clone()?;
        Ok(self.spec(kind, job))
    }

    fn spec(&self, kind: &Kind, job: &TraceJob) -> JobSpec {
        let script = JobKind::Batch { script: BlobId([0; 32]), args: Default::default() };
        let (uid, gid) = (FIRST_ID + job.user, FIRST_ID + job.group);
        let name = |list: &[Shared<String>], at: u32| list.get(at as usize).cloned().unwrap_or_default();
        JobSpec {
            name: self.name.clone(),
            user: name(&self.users, job.user),
            group: name(&self.groups, job.group),
            request: kind.request.clone(),
            partitions: kind.partitions.clone(),
            time_limit: Some(TimeLimit::Minutes(minutes(job.requested))),
            ..JobSpec::new("", script, (uid, ""), (gid, ""))
        }
    }

    fn request(&self, trace: &Trace, job: &TraceJob) -> ResourceRequest {
        let mut request = ResourceRequest { memory: self.memory, ..ResourceRequest::default() };
        if job.memory_mb > 0 && !self.plain {
            request.memory = Some(MemoryRequest::PerCpu(job.memory_mb.div_ceil(u64::from(job.cpus.max(1)))));
        }
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
        let (count, scope) = if job.gpus.is_multiple_of(nodes) {
            (job.gpus / nodes, GresScope::Node)
        } else {
            (job.gpus, GresScope::Job)
        };
        request.nodes = exactly(nodes);
        if job.memory_mb > 0 && !self.plain {
            request.memory = Some(MemoryRequest::PerNode(job.memory_mb.div_ceil(u64::from(nodes))));
        }
        request.ntasks = Some(nodes);
        request.cpus_per_task = Some(job.cpus.div_ceil(nodes));
        request.gres = vec![GresRequest { name: "gpu".to_owned(), kind, count: u64::from(count), scope }];
        request
    }

    /// How long it is expected to run, to the second: limits are whole minutes.
    pub fn expected_ms(&self, id: JobId) -> Option<i64> {
        self.position(id).map(|at| self.expected[at as usize])
    }
}

fn feasible(state: &State, spec: &JobSpec) -> Result<(), String> {
    let default = || state.partitions.values().filter(|p| p.default).map(|p| p.name.clone()).collect();
    let partitions: Vec<String> = if spec.partitions.is_empty() { default() } else { spec.partitions.to_vec() };
    if let Some(unknown) = partitions.iter().find(|p| !state.partitions.contains_key(*p)) {
        return Err(format!("the cluster has no partition {unknown}"));
    }
    let hardware = &state.index.hardware;
    sluice_sched::feasible(hardware.cluster(), spec, &hardware.positions(&partitions))
        .map_err(|never| never.to_string())
}

/// `user-7`; just the kind where the trace has no name.
fn named(list: &[String], kind: &str) -> Vec<Shared<String>> {
    let name = |n: &String| if n.is_empty() { kind.to_owned() } else { format!("{kind}-{n}") };
    list.iter().map(|n| Shared::new(name(n))).collect()
}

/// Rounded up, at least one.
fn minutes(seconds: i64) -> u32 {
    u32::try_from(seconds.saturating_add(59) / 60).unwrap_or(u32::MAX).max(1)
}
