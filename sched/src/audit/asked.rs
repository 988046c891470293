//! What a started job got, against what it asked for.

use super::{Facts, Rule, Violation, features, placed};
use crate::input::{PartitionView, PendingJob};
use crate::plan::Start;
use sluice_model::partition::PartitionState;
use sluice_model::request::{GresScope, MemoryRequest};
use sluice_model::{NodeAlloc, NodeSpec, TimeLimit};
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>, job: &PendingJob, start: &Start, found: &mut Vec<Violation>) {
    let mut bad = |rule: Rule, detail: String| found.push(Violation { job: job.job, rule, detail });
    let Some((position, partition)) = facts.partition(&start.partition) else {
        return bad(Rule::Partition, format!("{} does not exist", start.partition));
    };
    if !job.partitions.contains(&position) || !matches!(partition.state, PartitionState::Up | PartitionState::Drain) {
        bad(Rule::Partition, format!("{} is {} or not the job's", partition.name, partition.state.as_str()));
    }
    time(facts, job, start, partition, &mut bad);
    nodes(facts, job, start, partition, &mut bad);
    tasks(job, start, &mut bad);
    let whole = facts.whole(job, partition);
    for held in &start.allocation.nodes {
        if let Some((_, node)) = facts.nodes.get(&held.node) {
            on_node(facts, job, held, &node.spec, partition, whole, &mut bad);
        }
    }
    job_gres(job, start, whole, &mut bad);
    placed::check(facts, job, start, &mut bad);
}

fn time(
    facts: &Facts<'_>,
    job: &PendingJob,
    start: &Start,
    partition: &PartitionView,
    bad: &mut impl FnMut(Rule, String),
) {
    let got = start.time_limit;
    let least = job.time_min.or(job.time_limit).unwrap_or(TimeLimit::Minutes(0));
    if got > partition.max_time || job.time_limit.is_some_and(|t| got > t) || got < least.min(partition.max_time) {
        // A deadline may shorten it, but not below what the job will take.
        bad(Rule::TimeLimit, format!("{got:?}, asked {:?}, least {:?}", job.time_limit, job.time_min));
    }
    if let Some(deadline) = job.deadline {
        let end = got.duration().map(|d| facts.now() + d.as_millis() as i64);
        if end.is_none_or(|end| end > deadline.0) {
            bad(Rule::Deadline, format!("ends after {}", deadline.secs()));
        }
    }
}

fn nodes(
    facts: &Facts<'_>,
    job: &PendingJob,
    start: &Start,
    partition: &PartitionView,
    bad: &mut impl FnMut(Rule, String),
) {
    let request = job.resources();
    let (mut places, mut specs) = (Vec::new(), Vec::new());
    for held in &start.allocation.nodes {
        let name = &held.node;
        let Some((at, node)) = facts.nodes.get(name) else {
            bad(Rule::Node, format!("{name} does not exist"));
            continue;
        };
        if places.contains(at) {
            bad(Rule::Node, format!("{name} appears twice"));
        }
        places.push(*at);
        if !node.available || !partition.nodes.contains(at) || request.exclude.contains(name) {
            bad(Rule::Node, format!("{name} is unavailable, foreign or excluded"));
        }
        specs.push(&*node.spec);
        if node.spec.tmp_disk_mb < request.tmp_disk_mb {
            bad(Rule::Node, format!("{name} has too little temporary space"));
        }
    }
    for name in &request.node_list {
        if start.allocation.on(name).is_none() {
            bad(Rule::Node, format!("{name} of the node list is missing"));
        }
    }
    if !features::satisfied(request, &specs) {
        bad(Rule::Node, "the nodes lack the features".to_owned());
    }
    if let Some(batch) = &request.batch
        && specs.iter().any(|s| batch.matches(&s.features))
        && specs.first().is_some_and(|s| !batch.matches(&s.features))
    {
        bad(Rule::Node, "the first node lacks the features of the batch script".to_owned());
    }
    places.sort_unstable();
    if request.contiguous && places.windows(2).any(|w| w[1] != w[0] + 1) {
        bad(Rule::Node, "nodes are no neighbours".to_owned());
    }
    let count = places.len() as u32;
    let least = match (request.nodes, request.ntasks.filter(|n| *n > 0)) {
        (Some(nodes), Some(tasks)) => nodes.min.min(tasks.max(request.node_list.len() as u32)),
        (Some(nodes), None) => nodes.min,
        (None, _) => 1,
    };
    let most = request.nodes.and_then(|n| n.max).unwrap_or(u32::MAX).min(partition.max_nodes.unwrap_or(u32::MAX));
    if count < least.max(1).max(partition.min_nodes) || count > most {
        bad(Rule::NodeCount, format!("{count} nodes, {least} to {most} asked for"));
    }
}

fn tasks(job: &PendingJob, start: &Start, bad: &mut impl FnMut(Rule, String)) {
    let request = job.resources();
    let nodes = &start.allocation.nodes;
    let total: u64 = nodes.iter().map(|n| u64::from(n.tasks)).sum();
    if nodes.iter().any(|n| n.tasks == 0) {
        bad(Rule::Tasks, "a node without a task".to_owned());
    }
    let counted = request.constraint.as_ref().map_or(0, |c| u64::from(c.wanted().least_nodes()));
    let listed = counted.max(request.node_list.len() as u64);
    match (request.ntasks.filter(|n| *n > 0), request.ntasks_per_node.filter(|n| *n > 0)) {
        (Some(asked), _) if total != u64::from(asked) && total != listed => {
            bad(Rule::Tasks, format!("{total} tasks, {asked} asked for"));
        }
        (Some(_), Some(most)) if nodes.iter().any(|n| n.tasks > most) => {
            bad(Rule::Tasks, format!("more than {most} tasks on a node"));
        }
        (None, Some(exact)) if nodes.iter().any(|n| n.tasks != exact) => {
            bad(Rule::Tasks, format!("not {exact} tasks on each node"));
        }
        (None, None) if nodes.iter().any(|n| n.tasks != 1) => {
            bad(Rule::Tasks, "not one task on each node".to_owned());
        }
        _ => {}
    }
}

fn on_node(
    facts: &Facts<'_>,
    job: &PendingJob,
    held: &NodeAlloc,
    spec: &NodeSpec,
    partition: &PartitionView,
    whole: bool,
    bad: &mut impl FnMut(Rule, String),
) {
    let request = job.resources();
    let cpus = held.cpus.len();
    let counted = if request.overcommit { 1 } else { u64::from(held.tasks) };
    let exact = counted * u64::from(request.cpus_per_task.unwrap_or(1).max(1));
    let exact = exact.max(u64::from(request.min_cpus_per_node.unwrap_or(0))).max(1);
    let all = u64::from(spec.cpus.min(partition.max_cpus_per_node.unwrap_or(u32::MAX)));
    if (whole && cpus != all) || (!whole && cpus != exact) || cpus < exact {
        bad(Rule::Cpus, format!("{cpus} on {}, {exact} of {all} asked for", spec.name));
    }
    let gpus: u64 = held.gres.iter().filter(|g| g.name == "gpu").map(|g| g.indices.len()).sum();
    let asked = request.memory.or_else(|| {
        let policy = &facts.input.policy;
        partition
            .default_memory_per_cpu_mb
            .map(MemoryRequest::PerCpu)
            .or(partition.default_memory_per_node_mb.map(MemoryRequest::PerNode))
            .or(policy.default_memory_per_cpu_mb.map(MemoryRequest::PerCpu))
            .or(policy.default_memory_per_node_mb.map(MemoryRequest::PerNode))
    });
    let cap = partition.max_memory_per_node_mb.unwrap_or(u64::MAX);
    let memory = match asked {
        None | Some(MemoryRequest::PerNode(0) | MemoryRequest::PerCpu(0) | MemoryRequest::PerGpu(0)) => {
            Some(spec.memory_mb.min(cap))
        }
        Some(MemoryRequest::PerNode(mb)) => Some(mb),
        Some(MemoryRequest::PerCpu(mb)) => Some(mb * cpus),
        // Of a whole node all GPUs are given, but memory goes by those asked for.
        Some(MemoryRequest::PerGpu(_)) if whole => None,
        Some(MemoryRequest::PerGpu(mb)) => Some(mb * gpus),
    };
    if memory.is_some_and(|mb| mb != held.memory_mb) || held.memory_mb > cap {
        bad(Rule::Memory, format!("{} MiB on {}, {memory:?} asked for", held.memory_mb, spec.name));
    }
    let given: Vec<(&str, Option<&str>, u64)> =
        held.gres.iter().map(|g| (&*g.name, g.kind.as_deref(), g.indices.len())).collect();
    let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
    for g in request.gres.iter().filter(|g| g.count > 0) {
        let count = match g.scope {
            GresScope::Node => g.count,
            GresScope::Task => g.count * u64::from(held.tasks),
            GresScope::Socket | GresScope::Job => g.count.min(1),
        };
        *wanted.entry(&g.name).or_default() += count;
        let of_kind: u64 = given
            .iter()
            .filter(|(name, kind, _)| *name == g.name && (g.kind.is_none() || g.kind.as_deref() == *kind))
            .map(|g| g.2)
            .sum();
        if of_kind < count {
            bad(Rule::Gres, format!("{of_kind} {} on {}, {count} asked for", g.name, spec.name));
        }
    }
    let loose = request.gres.iter().any(|g| matches!(g.scope, GresScope::Socket | GresScope::Job));
    for (name, _, _) in &given {
        let have: u64 = given.iter().filter(|g| g.0 == *name).map(|g| g.2).sum();
        let want = wanted.get(name).copied().unwrap_or(0);
        if !whole && (have < want || (have > want && !loose)) {
            bad(Rule::Gres, format!("{have} {name} on {}, {want} asked for", spec.name));
        }
    }
    if whole {
        for g in &spec.gres {
            let have: u64 = given.iter().filter(|h| h.0 == g.name && h.1 == g.kind.as_deref()).map(|h| h.2).sum();
            if have < g.count {
                bad(Rule::Gres, format!("not all {} of {}", g.name, spec.name));
            }
        }
    }
}

/// Job-wide GRES sum up, unless other requests or whole nodes add to them.
fn job_gres(job: &PendingJob, start: &Start, whole: bool, bad: &mut impl FnMut(Rule, String)) {
    for g in job.resources().gres.iter().filter(|g| g.scope == GresScope::Job && g.count > 0) {
        let got: u64 = start
            .allocation
            .nodes
            .iter()
            .flat_map(|n| &n.gres)
            .filter(|h| h.name == g.name && (g.kind.is_none() || h.kind == g.kind))
            .map(|h| h.indices.len())
            .sum();
        let alone = job.resources().gres.iter().filter(|o| o.name == g.name).count() == 1 && !whole;
        if got < g.count || (alone && got != g.count) {
            bad(Rule::Gres, format!("{got} {} in all, {} asked for", g.name, g.count));
        }
    }
}
