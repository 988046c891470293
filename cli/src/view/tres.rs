//! TRES strings: what was asked for, what is held, in Slurm's two orders.
//!
//! `squeue`, `scontrol` and JSON list by TRES number (`cpu=2,mem=128M,node=2,billing=2,gres/gpu=1`), `sacct` by name.

use sluice_model::memory::format_memory_mb;
use sluice_proto::v1;
use v1::GresScope;
use v1::memory_request::Kind as Memory;

/// Amounts of a job, a step or a node. `nodes` and `billing` are left out when None.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tres {
    pub cpus: u64,
    pub memory_mb: u64,
    pub nodes: Option<u64>,
    pub billing: Option<u64>,
    /// By GRES name, kinds summed.
    pub gres: Vec<(String, u64)>,
}

/// One entry of Slurm's JSON lists of TRES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TresEntry {
    pub kind: &'static str,
    pub name: String,
    pub id: u32,
    pub count: u64,
}

impl Tres {
    fn add_gres(&mut self, name: &str, count: u64) {
        match self.gres.iter_mut().find(|(n, _)| n == name) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => self.gres.push((name.to_owned(), count)),
        }
    }

    /// Adds what is counted only.
    pub fn add_specs(&mut self, specs: &[v1::GresSpec]) {
        for gres in specs {
            self.add_gres(&gres.name, gres.count);
        }
    }

    /// Adds devices that are held.
    pub fn add_held(&mut self, held: &[v1::GresAlloc]) {
        for gres in held {
            self.add_gres(&gres.name, gres.indices.as_ref().map_or(0, super::job::index_count));
        }
    }

    fn parts(&self) -> Vec<(String, String)> {
        let mut parts = vec![("cpu".to_owned(), self.cpus.to_string())];
        if self.memory_mb > 0 {
            parts.push(("mem".to_owned(), format_memory_mb(self.memory_mb)));
        }
        parts.extend(self.nodes.map(|n| ("node".to_owned(), n.to_string())));
        parts.extend(self.billing.map(|n| ("billing".to_owned(), n.to_string())));
        parts.extend(self.gres.iter().map(|(name, count)| (format!("gres/{name}"), count.to_string())));
        parts
    }

    /// `cpu=2,mem=128M,node=2,billing=2,gres/gpu=1`
    pub fn by_number(&self) -> String {
        join(self.parts())
    }

    /// `billing=2,cpu=2,gres/gpu=1,mem=128M,node=2`
    pub fn by_name(&self) -> String {
        let mut parts = self.parts();
        parts.sort();
        join(parts)
    }

    /// For JSON. GRES have numbers from 1001 on.
    pub fn entries(&self) -> Vec<TresEntry> {
        let plain = |kind, id, count| TresEntry { kind, name: String::new(), id, count };
        let mut entries = vec![plain("cpu", 1, self.cpus)];
        if self.memory_mb > 0 {
            entries.push(plain("mem", 2, self.memory_mb));
        }
        entries.extend(self.nodes.map(|n| plain("node", 4, n)));
        entries.extend(self.billing.map(|n| plain("billing", 5, n)));
        entries.extend((1001..).zip(&self.gres).map(|(id, (name, count))| TresEntry {
            kind: "gres",
            name: name.clone(),
            id,
            count: *count,
        }));
        entries
    }
}

fn join(parts: Vec<(String, String)>) -> String {
    parts.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
}

/// What a job asked for. Needs the detailed record; without a spec the totals of the record stand in.
pub fn requested(job: &v1::JobRecord) -> Tres {
    let request = job.spec.as_ref().and_then(|s| s.request.as_ref());
    let nodes = u64::from(job.num_nodes);
    let waiting = super::job::is_waiting(job);
    let cpus = match request {
        Some(request) if !waiting => asked_cpus(request).unwrap_or(u64::from(job.num_cpus)),
        _ => u64::from(job.num_cpus),
    };
    let mut tres =
        Tres { cpus, memory_mb: job.requested_memory_mb, nodes: Some(nodes), billing: Some(cpus), gres: Vec::new() };
    for gres in request.map(|r| r.gres.as_slice()).unwrap_or_default() {
        let times = match gres.scope() {
            GresScope::Node | GresScope::Socket => nodes.max(1),
            GresScope::Task => u64::from(job.num_tasks.max(1)),
            GresScope::Job => 1,
        };
        tres.add_gres(&gres.name, gres.count.saturating_mul(times));
    }
    tres
}

fn asked_cpus(request: &v1::ResourceRequest) -> Option<u64> {
    let tasks = match (request.ntasks, request.ntasks_per_node) {
        (Some(n), _) => n,
        (None, Some(per_node)) => per_node.saturating_mul(request.nodes.map_or(1, |n| n.min)),
        (None, None) => request.nodes.map_or(1, |n| n.min),
    };
    let cpus = u64::from(tasks) * u64::from(request.cpus_per_task.unwrap_or(1));
    (request.min_cpus_per_node.is_none() && request.exclusive == 0).then_some(cpus)
}

/// What a job holds or held; None when it never started.
pub fn allocated(job: &v1::JobRecord) -> Option<Tres> {
    let allocation = job.allocation.as_ref().filter(|a| !a.nodes.is_empty())?;
    let cpus = allocation.nodes.iter().map(cpu_count).sum();
    let mut tres = Tres {
        cpus,
        memory_mb: allocation.nodes.iter().map(|n| n.memory_mb).sum(),
        nodes: Some(allocation.nodes.len() as u64),
        billing: Some(cpus),
        gres: Vec::new(),
    };
    for node in &allocation.nodes {
        tres.add_held(&node.gres);
    }
    Some(tres)
}

/// What a step was given.
pub fn step(step: &v1::StepRecord) -> Tres {
    let mut tres = Tres {
        cpus: u64::from(step.cpus),
        memory_mb: step.memory_mb,
        nodes: Some(step.nodes.len() as u64),
        ..Tres::default()
    };
    tres.add_specs(&step.gres);
    tres
}

pub fn cpu_count(node: &v1::NodeAlloc) -> u64 {
    node.cpus.as_ref().map_or(0, super::job::index_count)
}

/// `gres/gpu:1`, `gres/gpu:a100:2,gres/shard:4`: what is asked for at one scope. None when nothing is.
pub fn per_scope(job: &v1::JobRecord, scope: GresScope) -> Option<String> {
    let request = job.spec.as_ref()?.request.as_ref()?;
    let items: Vec<String> = request
        .gres
        .iter()
        .filter(|g| g.scope() == scope)
        .map(|g| match &g.kind {
            Some(kind) => format!("gres/{}:{kind}:{}", g.name, g.count),
            None => format!("gres/{}:{}", g.name, g.count),
        })
        .collect();
    (!items.is_empty()).then(|| items.join(","))
}

/// Is a job's minimum memory per CPU, per node or per GPU, and how much (MiB)?
pub fn memory(job: &v1::JobRecord) -> Memory {
    let asked = job.spec.as_ref().and_then(|s| s.request.as_ref()).and_then(|r| r.memory).and_then(|m| m.kind);
    asked.unwrap_or_else(|| Memory::PerNode(job.requested_memory_mb / u64::from(job.num_nodes.max(1))))
}

/// `100M` for `%m`; whole of the node is `0`.
pub fn memory_text(job: &v1::JobRecord) -> String {
    let (Memory::PerCpu(mb) | Memory::PerNode(mb) | Memory::PerGpu(mb)) = memory(job);
    format_memory_mb(mb)
}

/// `gpu:2,gpu:a100:4`, empty when there are none.
pub fn gres_specs(specs: &[v1::GresSpec]) -> String {
    let one = |g: &v1::GresSpec| match &g.kind {
        Some(kind) => format!("{}:{kind}:{}", g.name, g.count),
        None => format!("{}:{}", g.name, g.count),
    };
    specs.iter().map(one).collect::<Vec<_>>().join(",")
}

/// `gpu:a100:1(IDX:0)`: devices held on a node.
pub fn gres_alloc_detail(gres: &[v1::GresAlloc]) -> String {
    gres.iter().map(gres_alloc_one).collect::<Vec<_>>().join(",")
}

fn gres_alloc_one(gres: &v1::GresAlloc) -> String {
    let set = gres.indices.as_ref().map(super::job::index_set).unwrap_or_default();
    let kind = gres.kind.as_ref().map(|k| format!("{k}:")).unwrap_or_default();
    let indices = if set.is_empty() { "N/A".to_owned() } else { set.to_string() };
    format!("{}:{kind}{}(IDX:{indices})", gres.name, set.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    #[test]
    fn both_orders_list_the_same_amounts() {
        let job = fixture::job(2);
        assert_eq!(requested(&job).by_number(), "cpu=2,mem=128M,node=2,billing=2");
        assert_eq!(allocated(&job).unwrap().by_name(), "billing=2,cpu=2,mem=128M,node=2");
    }

    #[test]
    fn gres_are_counted_over_nodes_and_named_by_scope() {
        let job = fixture::job(5);
        assert_eq!(requested(&job).by_number(), "cpu=1,mem=64M,node=1,billing=1,gres/gpu=1");
        assert_eq!(per_scope(&job, GresScope::Node).as_deref(), Some("gres/gpu:1"));
        assert_eq!(per_scope(&job, GresScope::Job), None);
        assert_eq!(allocated(&job), None);
    }

    #[test]
    fn device_indices_are_shown_with_their_kind() {
        let set = v1::IndexSet { ranges: vec![v1::IndexRange { first: 0, last: 1, step: 1 }] };
        let held = v1::GresAlloc { name: "gpu".into(), kind: Some("a100".into()), indices: Some(set) };
        assert_eq!(gres_alloc_detail(&[held]), "gpu:a100:2(IDX:0-1)");
    }
}
