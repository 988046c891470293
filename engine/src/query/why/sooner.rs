//! Changes to a request, each tried through the real scheduler.
//!
//! Owns the list of what a user could give up: time, memory, CPUs, nodes, the kind of GPU, features, whole nodes, the
//! choice of partition. Promises to name only what really starts sooner in a pass over the same queue.

use super::{Sooner, first_partition};
use sluice_model::memory::format_memory_mb;
use sluice_model::request::{Exclusive, GresScope, MemoryRequest};
use sluice_model::time::format_time_limit;
use sluice_model::{JobSpec, Time, TimeLimit};
use sluice_sched::explain::{NodeUse, Obstacle, What, survey};
use sluice_sched::{Input, PendingJob};
use std::sync::Arc;

/// Less than this is not worth a change.
const WORTH_MS: i64 = 60_000;

struct Change {
    words: String,
    options: String,
    job: PendingJob,
}

/// The best first. `planned`: when it would start unchanged; None when nobody can say. `others`: the first start planned
/// for another job.
pub(super) fn try_changes(input: &Input, job: &PendingJob, planned: Option<Time>, others: Option<Time>) -> Vec<Sooner> {
    let mut found = Vec::new();
    for change in changes(input, job, others) {
        let mut tried = input.clone();
        let Some(slot) = tried.pending.iter_mut().find(|p| p.job == job.job) else { continue };
        *slot = change.job;
        let asked = slot.clone();
        let Some(estimate) = sluice_sched::estimate(&tried, &asked) else { continue };
        let start = estimate.reservation.start;
        if planned.is_none_or(|planned| start.0.saturating_add(WORTH_MS) <= planned.0) {
            found.push(Sooner { change: change.words, options: change.options, start });
        }
    }
    found.sort_by_key(|s| s.start);
    found
}

fn with(job: &PendingJob, change: impl FnOnce(&mut JobSpec)) -> PendingJob {
    let mut spec = JobSpec::clone(&job.request);
    change(&mut spec);
    PendingJob { request: Arc::new(spec), ..job.clone() }
}

fn changes(input: &Input, job: &PendingJob, others: Option<Time>) -> Vec<Change> {
    let mut all = Vec::new();
    shorter(input, job, others, &mut all);
    smaller(input, job, &mut all);
    fewer_nodes(job, &mut all);
    other_devices(input, job, &mut all);
    other_rules(job, &mut all);
    other_partitions(input, job, &mut all);
    all
}

/// Short enough to end before the next planned start of another, and halves of what was asked for.
fn shorter(input: &Input, job: &PendingJob, others: Option<Time>, all: &mut Vec<Change>) {
    let limit = first_partition(input, job).map(|p| &input.partitions[p as usize]);
    let asked = job.time_limit.or(limit.map(|p| p.default_time)).unwrap_or(TimeLimit::Unlimited);
    let mut tries: Vec<u32> = match asked {
        TimeLimit::Minutes(m) => [m / 2, m / 4, m / 10].into(),
        TimeLimit::Unlimited => vec![24 * 60, 4 * 60, 60],
    };
    if let (Some(others), Some(now)) = (others, input.now) {
        // Backfill: what ends before the planned start of those ahead may pass them.
        tries.push(u32::try_from((others.0 - now.0) / 60_000).unwrap_or(0));
    }
    tries.retain(|m| *m > 0 && TimeLimit::Minutes(*m) < asked);
    tries.sort_unstable();
    tries.dedup();
    for minutes in tries.into_iter().rev() {
        let limit = TimeLimit::Minutes(minutes);
        let job = PendingJob { time_limit: Some(limit), time_min: None, ..with(job, |s| s.time_limit = Some(limit)) };
        let text = format_time_limit(limit);
        all.push(Change { words: format!("a time limit of {text}"), options: format!("--time={text}"), job });
    }
}

/// As much memory or as many CPUs as the node that comes closest has free, and half of it.
fn smaller(input: &Input, job: &PendingJob, all: &mut Vec<Change>) {
    let Some(found) = first_partition(input, job).and_then(|p| survey(input, job, p)) else { return };
    let mut memory: Vec<u64> = vec![found.share.memory_mb / 2];
    let mut cpus: Vec<u32> = Vec::new();
    for (node, obstacle) in &found.obstacles {
        let Obstacle::Busy { what, free, .. } = obstacle else { continue };
        match what {
            What::Memory => memory.push(*free),
            What::Cpus => {
                cpus.push(u32::try_from(*free).unwrap_or(u32::MAX));
                // Fewer CPUs alone may still be too much memory.
                let spec = &input.nodes[*node as usize].spec;
                memory.push(spec.memory_mb.saturating_sub(NodeUse::of(input, *node).memory_mb));
            }
            _ => {}
        }
    }
    let asked = found.share.memory_mb;
    if let Some(best) = memory.iter().copied().filter(|mb| *mb > 0 && *mb < asked).max() {
        let half = memory[0];
        for mb in if half > 0 && half < best { vec![best, half] } else { vec![best] } {
            let job = with(job, |s| s.request.memory = Some(MemoryRequest::PerNode(mb)));
            let text = format_memory_mb(mb);
            all.push(Change { words: format!("{text} of memory on a node"), options: format!("--mem={text}"), job });
        }
    }
    let per_task = job.resources().cpus_per_task.unwrap_or(1);
    let best = cpus.into_iter().max().unwrap_or(0).min(per_task.saturating_sub(1)).max(per_task / 2);
    if best > 0 && best < per_task {
        let job = with(job, |s| s.request.cpus_per_task = Some(best));
        all.push(Change { words: format!("{best} CPU(s) a task"), options: format!("--cpus-per-task={best}"), job });
    }
}

fn fewer_nodes(job: &PendingJob, all: &mut Vec<Change>) {
    let Some(nodes) = job.resources().nodes.filter(|n| n.min > 1) else { return };
    let mut tries = vec![nodes.min - 1, nodes.min / 2, 1];
    tries.dedup();
    for fewer in tries.into_iter().filter(|n| *n > 0) {
        let job = with(job, |s| {
            if let Some(nodes) = &mut s.request.nodes {
                nodes.min = fewer;
                nodes.max = nodes.max.map(|m| m.max(fewer));
            }
        });
        let most = nodes.max.unwrap_or(nodes.min).max(nodes.min);
        let options = format!("--nodes={fewer}-{most}");
        all.push(Change { words: format!("from {fewer} node(s) up"), options, job });
    }
}

/// GPUs with less memory each, as there are, or of another kind, or of any.
fn other_devices(input: &Input, job: &PendingJob, all: &mut Vec<Change>) {
    let asked = job.resources().gpu_memory_mb;
    let gpus = input.nodes.iter().flat_map(|n| &n.spec.gres).filter(|g| g.name == "gpu");
    let mut less: Vec<u64> = gpus.map(|g| g.memory_mb).filter(|mb| *mb > 0 && *mb < asked).collect();
    less.sort_unstable();
    less.dedup();
    if let Some(mb) = less.last().copied() {
        let changed = with(job, |s| s.request.gpu_memory_mb = mb);
        let text = format_memory_mb(mb);
        let words = format!("GPUs with {text} of memory each");
        all.push(Change { words, options: format!("--gpu-mem={text}"), job: changed });
    }
    for (at, wanted) in job.resources().gres.iter().enumerate() {
        let Some(kind) = &wanted.kind else { continue };
        let mut kinds: Vec<Option<String>> = vec![None];
        let others = input.nodes.iter().flat_map(|n| &n.spec.gres).filter(|g| g.name == wanted.name);
        kinds.extend(others.filter(|g| g.kind.as_ref().is_some_and(|k| k != kind)).map(|g| g.kind.clone()));
        kinds.sort();
        kinds.dedup();
        let option = match wanted.scope {
            GresScope::Node => "--gres",
            GresScope::Job => "--gpus",
            GresScope::Task => "--gpus-per-task",
            GresScope::Socket => "--gpus-per-socket",
        };
        for other in kinds {
            let name = if wanted.scope == GresScope::Node { format!("{}:", wanted.name) } else { String::new() };
            let (words, value) = match &other {
                None => (format!("any kind of {}", wanted.name), format!("{name}{}", wanted.count)),
                Some(k) => (format!("{}:{k} instead of {kind}", wanted.name), format!("{name}{k}:{}", wanted.count)),
            };
            let job = with(job, |s| s.request.gres[at].kind = other);
            all.push(Change { words, options: format!("{option}={value}"), job });
        }
    }
}

fn other_rules(job: &PendingJob, all: &mut Vec<Change>) {
    let request = job.resources();
    if request.constraint.is_some() {
        let changed = with(job, |s| {
            s.request.constraint = None;
            s.request.constraint_text = None;
        });
        all.push(Change {
            words: "any node features".to_owned(),
            options: "without --constraint".to_owned(),
            job: changed,
        });
    }
    if request.switches.is_some() {
        let changed = with(job, |s| s.request.switches = None);
        all.push(Change { words: "any switches".to_owned(), options: "without --switches".to_owned(), job: changed });
    }
    if request.segment.is_some() {
        let changed = with(job, |s| s.request.segment = None);
        all.push(Change { words: "no segments".to_owned(), options: "without --segment".to_owned(), job: changed });
    }
    if request.enforce_binding {
        let changed = with(job, |s| s.request.enforce_binding = false);
        let options = "without --gres-flags=enforce-binding".to_owned();
        all.push(Change { words: "cores away from its GPUs".to_owned(), options, job: changed });
    }
    if request.exclusive != Exclusive::No {
        let changed = PendingJob { exclusive: false, ..with(job, |s| s.request.exclusive = Exclusive::No) };
        all.push(Change { words: "shared nodes".to_owned(), options: "without --exclusive".to_owned(), job: changed });
    }
    if !request.node_list.is_empty() {
        let changed = with(job, |s| s.request.node_list.clear());
        all.push(Change { words: "any nodes".to_owned(), options: "without --nodelist".to_owned(), job: changed });
    }
}

fn other_partitions(input: &Input, job: &PendingJob, all: &mut Vec<Change>) {
    for (at, view) in (0u32..).zip(&input.partitions) {
        if !job.partitions.contains(&at) {
            let job = PendingJob { partitions: vec![at], ..job.clone() };
            let name = &view.name;
            all.push(Change { words: format!("partition {name}"), options: format!("--partition={name}"), job });
        }
    }
}
