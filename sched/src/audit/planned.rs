//! Can each planned start be kept, with everything that the plan starts and plans before it?
//!
//! The whole demand is derived anew and compared with what is free on the planned nodes at the planned moment, and for
//! as long as the job may run.

use super::{Facts, Rule, Violation, features};
use crate::input::{PartitionView, PendingJob};
use crate::plan::{Plan, PlannedReservation, Start};
use sluice_model::request::{GresScope, MemoryRequest};
use sluice_model::{NodeSpec, TimeLimit};
use std::collections::BTreeMap;

/// Something that holds a part of a node for a while.
struct Stay {
    node: u32,
    from: i64,
    until: i64,
    cpus: u64,
    memory_mb: u64,
    gres: BTreeMap<(String, Option<String>), u64>,
    whole: bool,
}

pub(super) fn check(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut stays = holders(facts, plan);
    for planned in &plan.reservations {
        let mut bad = |detail: String| found.push(Violation { job: planned.job, rule: Rule::Planned, detail });
        let Some(job) = facts.pending.get(&planned.job) else {
            bad("is not pending".to_owned());
            continue;
        };
        let Some((position, partition)) = facts.partition(&planned.partition) else {
            bad(format!("partition {} does not exist", planned.partition));
            continue;
        };
        if !job.partitions.contains(&position) || planned.start.0 <= facts.now() {
            bad("not in a partition of the job, or not in the future".to_owned());
        }
        keepable(facts, job, partition, planned, &mut stays, &mut bad);
    }
}

fn holders(facts: &Facts<'_>, plan: &Plan) -> Vec<Stay> {
    let mut stays = Vec::new();
    let mut add = |held: &sluice_model::NodeAlloc, until: i64, whole: bool| {
        let Some((node, _)) = facts.nodes.get(&held.node) else { return };
        let mut gres = BTreeMap::new();
        for g in &held.gres {
            *gres.entry((g.name.clone(), g.kind.clone())).or_default() += g.indices.len();
        }
        let (cpus, memory_mb) = (held.cpus.len(), held.memory_mb);
        stays.push(Stay { node: *node, from: i64::MIN, until, cpus, memory_mb, gres, whole });
    };
    for running in &facts.input.running {
        for held in &running.allocation.nodes {
            let end = super::preempted::end(facts, plan, running);
            add(held, end.map_or(i64::MAX, |t| t.0), running.exclusive);
        }
    }
    for start in &plan.starts {
        let lenders = super::preempted::lenders(plan, start.job);
        let lenders: Vec<_> = facts.input.running.iter().filter(|r| lenders.contains(&r.job)).collect();
        let whole = match (facts.pending.get(&start.job), facts.partition(&start.partition)) {
            (Some(job), Some((_, partition))) => facts.whole(job, partition),
            _ => false,
        };
        for held in &start.allocation.nodes {
            let mut held = held.clone();
            // Cores that are lent stay with their owner.
            for theirs in lenders.iter().filter_map(|r| r.allocation.on(&held.node)) {
                held.cpus = held.cpus.difference(&theirs.cpus);
            }
            add(&held, facts.now().saturating_add(stay(facts, start)), whole);
        }
    }
    stays
}

/// How long a started job will stay, milliseconds.
pub(super) fn stay(facts: &Facts<'_>, start: &Start) -> i64 {
    millis(facts.pending.get(&start.job).and_then(|j| j.expected_ms), start.time_limit)
}

/// How long it will stay, as far as is known.
fn millis(expected: Option<i64>, limit: TimeLimit) -> i64 {
    let limit = limit.duration().map_or(i64::MAX, |d| d.as_millis() as i64);
    expected.map_or(limit, |ms| ms.max(1).min(limit))
}

/// Lets each node take as many tasks as it can over the whole stay; together they must take all.
fn keepable(
    facts: &Facts<'_>,
    job: &PendingJob,
    partition: &PartitionView,
    planned: &PlannedReservation,
    stays: &mut Vec<Stay>,
    bad: &mut impl FnMut(String),
) {
    let request = job.resources();
    let limit = job.time_limit.unwrap_or(partition.default_time).min(partition.max_time);
    let (from, until) = (planned.start.0, planned.start.0.saturating_add(millis(job.expected_ms, limit)));
    let whole = facts.whole(job, partition);
    let count = planned.nodes.len() as u32;
    if request.node_list.iter().any(|n| !planned.nodes.contains(n)) {
        bad("a node of the node list is missing".to_owned());
    }
    let total = request.ntasks.filter(|n| *n > 0);
    let each = request.ntasks_per_node.filter(|n| *n > 0);
    let mut room = 0u64;
    let (mut mine, mut specs) = (Vec::new(), Vec::new());
    for name in &planned.nodes {
        let Some((at, node)) = facts.nodes.get(name) else {
            bad(format!("{name} does not exist"));
            continue;
        };
        if !node.available || !partition.nodes.contains(at) || request.exclude.contains(name) {
            bad(format!("{name} is unavailable, foreign or excluded"));
        }
        specs.push(&*node.spec);
        let here: Vec<&Stay> = stays.iter().filter(|s| s.node == *at && s.from < until && s.until > from).collect();
        let least = if total.is_some() { 1 } else { each.unwrap_or(1) };
        let most = total.map_or(least, |t| each.unwrap_or(t).min(t));
        let fits = |tasks: u32| {
            let mut moments = vec![from];
            moments.extend(here.iter().map(|s| s.from).filter(|t| *t > from));
            moments.iter().all(|t| {
                let now: Vec<&&Stay> = here.iter().filter(|s| s.from <= *t && s.until > *t).collect();
                fits_at(facts, job, partition, &node.spec, tasks, whole, &now)
            })
        };
        if !fits(least) {
            bad(format!("does not fit on {name} at {}", from / 1000));
            continue;
        }
        // How many it takes, by trying: planned jobs are few.
        let mut tasks = least;
        while tasks < most && fits(tasks + 1) {
            tasks += 1;
        }
        room += u64::from(tasks);
        mine.push((*at, tasks));
    }
    if !features::satisfied(request, &specs) {
        bad("the nodes lack the features".to_owned());
    }
    if total.is_some_and(|t| room < u64::from(t)) {
        bad(format!("only {room} tasks fit on {count} nodes"));
    }
    // Later planned starts must respect this one: on each node at least one task's worth.
    for (node, tasks) in mine {
        let spec = &facts.input.nodes[node as usize].spec;
        let least = if total.is_some() { 1 } else { tasks };
        let (cpus, memory_mb) = needs(facts, job, partition, spec, least, whole);
        stays.push(Stay { node, from, until, cpus, memory_mb, gres: BTreeMap::new(), whole });
    }
}

fn needs(
    facts: &Facts<'_>,
    job: &PendingJob,
    partition: &PartitionView,
    spec: &NodeSpec,
    tasks: u32,
    whole: bool,
) -> (u64, u64) {
    let request = job.resources();
    let counted = if request.overcommit { 1 } else { u64::from(tasks) };
    let mut cpus = counted * u64::from(request.cpus_per_task.unwrap_or(1).max(1));
    cpus = cpus.max(u64::from(request.min_cpus_per_node.unwrap_or(1)));
    if whole {
        cpus = cpus.max(u64::from(spec.cpus.min(partition.max_cpus_per_node.unwrap_or(u32::MAX))));
    }
    let policy = &facts.input.policy;
    let memory = match request.memory {
        Some(MemoryRequest::PerNode(mb)) if mb > 0 => mb,
        Some(MemoryRequest::PerCpu(mb)) if mb > 0 => mb * cpus,
        // At least one GPU's worth; the share of each node is the planner's choice.
        Some(MemoryRequest::PerGpu(mb)) if mb > 0 => 0,
        Some(_) => spec.memory_mb.min(partition.max_memory_per_node_mb.unwrap_or(u64::MAX)),
        None => {
            let by_cpu = |mb: Option<u64>| mb.map(|mb| if mb == 0 { spec.memory_mb } else { mb * cpus });
            let by_node = |mb: Option<u64>| mb.map(|mb| if mb == 0 { spec.memory_mb } else { mb });
            by_cpu(partition.default_memory_per_cpu_mb)
                .or(by_node(partition.default_memory_per_node_mb))
                .or(by_cpu(policy.default_memory_per_cpu_mb))
                .or(by_node(policy.default_memory_per_node_mb))
                .unwrap_or(spec.memory_mb.min(partition.max_memory_per_node_mb.unwrap_or(u64::MAX)))
        }
    };
    (cpus, memory)
}

fn fits_at(
    facts: &Facts<'_>,
    job: &PendingJob,
    partition: &PartitionView,
    spec: &NodeSpec,
    tasks: u32,
    whole: bool,
    here: &[&&Stay],
) -> bool {
    let (cpus, memory) = needs(facts, job, partition, spec, tasks, whole);
    let used_cpus: u64 = here.iter().map(|s| s.cpus).sum();
    let used_memory: u64 = here.iter().map(|s| s.memory_mb).sum();
    if (whole && !here.is_empty()) || here.iter().any(|s| s.whole) {
        return false;
    }
    if used_cpus + cpus > u64::from(spec.cpus) || used_memory + memory > spec.memory_mb {
        return false;
    }
    job.resources().gres.iter().filter(|g| g.count > 0).all(|g| {
        let want = match g.scope {
            GresScope::Node => g.count,
            GresScope::Task => g.count * u64::from(tasks),
            GresScope::Socket | GresScope::Job => 1,
        };
        let fits = |name: &str, kind: Option<&str>| name == g.name && (g.kind.is_none() || g.kind.as_deref() == kind);
        let have: u64 = spec.gres.iter().filter(|h| fits(&h.name, h.kind.as_deref())).map(|h| h.count).sum();
        let used: u64 = here
            .iter()
            .flat_map(|s| &s.gres)
            .filter(|((name, kind), _)| fits(name, kind.as_deref()))
            .map(|(_, n)| n)
            .sum();
        used + want <= have
    })
}
