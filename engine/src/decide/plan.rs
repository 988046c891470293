//! Applying the scheduler's plan. It was made from an older state, so each start is checked again from the outside; what
//! no longer holds is dropped without a word: the next pass sees it.

use super::{Cx, preempt, settle};
use crate::command::{PlannedPreemption, PlannedStart, Reply};
use crate::dependency::singleton_blocked;
use crate::effect::Effect;
use crate::event::Event;
use crate::index::wants_singleton;
use crate::job::{Hold, Job, Phase};
use crate::query;
use crate::reject::Reject;
use crate::state::State;
use sluice_model::partition::PartitionState;
use sluice_model::request::Exclusive;
use sluice_model::{Allocation, JobId, NodeAlloc, PartitionSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn apply_plan(
    cx: &mut Cx,
    starts: &[PlannedStart],
    preemptions: &[PlannedPreemption],
    lapsed: &[JobId],
) -> Result<Reply, Reject> {
    let mut jobs = Vec::new();
    preempt::lapse(cx, lapsed);
    let mut licenses = None;
    let mut limits = if starts.is_empty() { None } else { query::Counted::new(cx, cx.now) };
    for start in starts {
        let over = preemptions.iter().find(|p| (p.job, p.index) == (start.job, start.index));
        let lenders = match over {
            Some(preemption) => match preempt::lenders(cx, preemption) {
                Some(lenders) => lenders,
                None => continue,
            },
            None => BTreeSet::new(),
        };
        if !may_apply(cx, start, &mut licenses, &lenders) {
            continue;
        }
        if let (Some(limits), Some(job)) = (&mut limits, cx.job_now(start.job))
            && !limits.admits(cx, &job, start)
        {
            continue;
        }
        if let Some(preemption) = over {
            let id = start.index.map_or(start.job, |_| cx.id_for_task(start.job));
            preempt::suspend_for(cx, preemption, id);
        }
        let job = begin(cx, start);
        if let (Some(used), Some(job)) = (&mut licenses, cx.job_now(job)) {
            add_licenses(used, &job);
        }
        jobs.push(job);
    }
    let started = |p: &PlannedPreemption| starts.iter().any(|s| (p.job, p.index) == (s.job, s.index));
    for preemption in preemptions.iter().filter(|p| !started(p)) {
        preempt::preempt(cx, preemption);
    }
    Ok(Reply::Affected { jobs })
}

fn begin(cx: &mut Cx, start: &PlannedStart) -> JobId {
    let id = match start.index {
        Some(_) => cx.id_for_task(start.job),
        None => start.job,
    };
    let attempt = cx.jobs.get(&start.job).map_or(0, |j| j.attempt);
    let known = cx.jobs.get(&start.job).map_or(0, |j| j.priority);
    cx.emit(Event::JobStarted {
        job: id,
        array: start.index.map(|i| (start.job, i)),
        attempt,
        partition: start.partition.clone(),
        allocation: Arc::new(start.allocation.clone()),
        time_limit: start.time_limit,
        backfilled: start.backfilled,
        priority: (start.priority != known).then_some(start.priority),
        at: cx.now,
    });
    if let Some(job) = cx.job_now(id) {
        cx.mail_begin(&job);
        // Its siblings, or others of its name, may have lost their turn.
        if start.job != id && wants_singleton(&job) {
            settle::reconsider(cx, start.job);
        }
    }
    cx.perform(Effect::Launch { job: id, attempt });
    cx.perform(Effect::Notify { job: id });
    cx.moved.push(id);
    id
}

/// It is its turn, as far as others do not matter.
pub(super) fn is_due(cx: &Cx, job: &Job, index: Option<u32>) -> bool {
    let eligible = matches!(job.phase, Phase::Pending)
        && job.hold == Hold::No
        && job.priority > 0
        && job.eligible.is_some()
        && settle::may_start(job, cx.now);
    let index_fits = match (job.array.together(), index) {
        (Some(indices), Some(index)) => indices.contains(index),
        (Some(_), None) => false,
        (None, index) => index.is_none(),
    };
    let blocked = wants_singleton(job) && singleton_blocked(cx, job);
    eligible && index_fits && !blocked && query::array_room(cx, job) != Some(0)
}

fn may_apply(
    cx: &Cx,
    start: &PlannedStart,
    licenses: &mut Option<BTreeMap<String, u32>>,
    lenders: &BTreeSet<JobId>,
) -> bool {
    let Some(job) = cx.jobs.get(&start.job) else { return false };
    if !is_due(cx, job, start.index) {
        return false;
    }
    let Some(partition) = cx.partitions.get(&start.partition) else { return false };
    job.partitions.contains(&start.partition)
        && matches!(partition.state, PartitionState::Up | PartitionState::Drain)
        && start.time_limit <= partition.max_time
        && allocation_fits(cx, job, partition, &start.allocation, lenders)
        && licenses_fit(cx, job, licenses)
}

/// Nobody else may share its nodes.
pub(crate) fn is_exclusive(job: &Job, partition: Option<&PartitionSpec>) -> bool {
    job.spec.request.exclusive != Exclusive::No || partition.is_some_and(|p| p.exclusive)
}

fn allocation_fits(
    state: &State,
    job: &Job,
    partition: &PartitionSpec,
    allocation: &Allocation,
    lenders: &BTreeSet<JobId>,
) -> bool {
    let exclusive = is_exclusive(job, Some(partition));
    let mut names: Vec<_> = allocation.names().collect();
    names.sort();
    names.dedup();
    !allocation.nodes.is_empty()
        && names.len() == allocation.nodes.len()
        && allocation.nodes.iter().all(|part| {
            partition.nodes.contains(&part.node)
                && query::available(state, &part.node)
                && part_fits(state, part, exclusive, lenders)
        })
}

/// The part lies within the node's hardware and touches nothing that another job holds, but for the cores of those that
/// are suspended for it.
fn part_fits(state: &State, part: &NodeAlloc, exclusive: bool, lenders: &BTreeSet<JobId>) -> bool {
    let Some(node) = state.nodes.get(&part.node) else { return false };
    let inside = !part.cpus.is_empty()
        && part.cpus.last().is_some_and(|c| c < node.spec.cpus)
        && part.memory_mb <= node.spec.memory_mb
        && part.gres.iter().all(|g| {
            let count: u64 = node
                .spec
                .gres
                .iter()
                .filter(|s| s.name == g.name && (g.kind.is_none() || s.kind == g.kind))
                .map(|s| s.count)
                .sum();
            g.indices.len() <= count
        });
    if !inside || (exclusive && node.jobs.iter().any(|j| !lenders.contains(j))) {
        return false;
    }
    let mut memory = part.memory_mb;
    for other in &node.jobs {
        let Some(other) = state.jobs.get(other) else { continue };
        let theirs = other.partition.as_ref().and_then(|p| state.partitions.get(p));
        let lends = lenders.contains(&other.id);
        if !lends && is_exclusive(other, theirs.map(Arc::as_ref)) {
            return false;
        }
        let Some(held) = other.run().and_then(|r| r.allocation.on(&part.node)) else { continue };
        memory = memory.saturating_add(held.memory_mb);
        let shares_devices = part.gres.iter().any(|g| {
            // Devices of one name share their numbers, whatever their kind.
            held.gres.iter().any(|h| h.name == g.name && !h.indices.is_disjoint(&g.indices))
        });
        if (!lends && !part.cpus.is_disjoint(&held.cpus)) || shares_devices {
            return false;
        }
    }
    memory <= node.spec.memory_mb
}

fn add_licenses(used: &mut BTreeMap<String, u32>, job: &Job) {
    for (name, count) in &job.spec.licenses {
        let n = used.entry(name.clone()).or_default();
        *n = n.saturating_add(*count);
    }
}

fn licenses_fit(state: &State, job: &Job, used: &mut Option<BTreeMap<String, u32>>) -> bool {
    if job.spec.licenses.is_empty() {
        return true;
    }
    let used = used.get_or_insert_with(|| {
        let mut sum = BTreeMap::new();
        for active in state.index.active.iter().filter_map(|id| state.jobs.get(id)) {
            add_licenses(&mut sum, active);
        }
        sum
    });
    let total = |name: &String| state.config.as_ref().and_then(|c| c.licenses.get(name)).copied().unwrap_or(0);
    job.spec.licenses.iter().all(|(name, n)| used.get(name).copied().unwrap_or(0).saturating_add(*n) <= total(name))
}
