//! What all jobs hold together, running ones and those the plan starts.

use super::{Facts, Rule, Violation};
use crate::plan::Plan;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, NodeAlloc, NodeName, NodeSpec};
use std::collections::{BTreeMap, BTreeSet};

/// One job's part of a node.
struct Holder<'a> {
    job: JobId,
    held: &'a NodeAlloc,
    whole: bool,
    partition: Option<u32>,
    /// Decided by this plan; what was there before is not this plan's fault.
    fresh: bool,
    /// Who is suspended for it.
    lenders: BTreeSet<JobId>,
}

fn shared_devices(one: &Holder<'_>, other: &Holder<'_>, node: &NodeName, bad: &mut impl FnMut(Rule, String)) {
    for gres in &one.held.gres {
        let shared = |g: &sluice_model::GresAlloc| g.name == gres.name && !g.indices.is_disjoint(&gres.indices);
        if other.held.gres.iter().any(shared) {
            bad(Rule::UsedTwice, format!("{} of {node} with job {}", gres.name, other.job));
        }
    }
}

pub(super) fn check(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut by_node: BTreeMap<u32, Vec<Holder<'_>>> = BTreeMap::new();
    for running in &facts.input.running {
        for held in &running.allocation.nodes {
            if let Some((at, _)) = facts.nodes.get(&held.node) {
                by_node.entry(*at).or_default().push(Holder {
                    job: running.job,
                    held,
                    whole: running.exclusive,
                    partition: running.partition,
                    fresh: false,
                    lenders: BTreeSet::new(),
                });
            }
        }
    }
    for start in &plan.starts {
        let partition = facts.partition(&start.partition);
        let whole = match (facts.pending.get(&start.job), partition) {
            (Some(job), Some((_, partition))) => facts.whole(job, partition),
            _ => false,
        };
        for held in &start.allocation.nodes {
            if let Some((at, _)) = facts.nodes.get(&held.node) {
                by_node.entry(*at).or_default().push(Holder {
                    job: start.job,
                    held,
                    whole,
                    partition: partition.map(|p| p.0),
                    fresh: true,
                    lenders: super::preempted::lenders(plan, start.job),
                });
            }
        }
    }
    for (at, holders) in &by_node {
        let spec = &facts.input.nodes[*at as usize].spec;
        node(facts, spec, holders, found);
    }
    licenses(facts, plan, found);
}

fn node(facts: &Facts<'_>, spec: &NodeSpec, holders: &[Holder<'_>], found: &mut Vec<Violation>) {
    let name = &spec.name;
    for (i, one) in holders.iter().enumerate().filter(|(_, h)| h.fresh) {
        let mut bad = |rule, detail: String| found.push(Violation { job: one.job, rule, detail });
        let all = if spec.cpus == 0 { IndexSet::new() } else { IndexSet::range(0, spec.cpus - 1) };
        if !one.held.cpus.is_subset(&all) {
            bad(Rule::Cpus, format!("{} on {name}, which has {}", one.held.cpus, spec.cpus));
        }
        for gres in &one.held.gres {
            let have = devices(spec, &gres.name, gres.kind.as_deref());
            if !gres.indices.is_subset(&have) {
                bad(Rule::Gres, format!("{} {} on {name}, which has {have}", gres.name, gres.indices));
            }
        }
        for (j, other) in holders.iter().enumerate() {
            if i == j || (other.fresh && j < i) {
                continue;
            }
            // A job that is suspended for it shares all but memory and devices.
            if one.lenders.contains(&other.job) || other.lenders.contains(&one.job) {
                shared_devices(one, other, name, &mut bad);
                continue;
            }
            if !one.held.cpus.is_disjoint(&other.held.cpus) {
                bad(Rule::UsedTwice, format!("CPUs of {name} with job {}", other.job));
            }
            if one.whole || other.whole {
                bad(Rule::UsedTwice, format!("{name} is whole for one of it and job {}", other.job));
            }
            shared_devices(one, other, name, &mut bad);
        }
        let memory: u64 = holders.iter().map(|h| h.held.memory_mb).sum();
        if one.held.memory_mb > 0 && memory > spec.memory_mb {
            bad(Rule::UsedTwice, format!("{memory} MiB of {name}, which has {}", spec.memory_mb));
        }
        let view = one.partition.and_then(|p| facts.input.partitions.get(p as usize));
        if let Some(max) = view.and_then(|p| p.max_cpus_per_node) {
            let used: u64 = holders
                .iter()
                .filter(|h| h.partition == one.partition && !one.lenders.contains(&h.job))
                .map(|h| h.held.cpus.len())
                .sum();
            if used > u64::from(max) {
                bad(Rule::PartitionCpus, format!("{used} CPUs of {name}, limit {max}"));
            }
        }
    }
}

/// Numbers of the devices of a name and kind: counted through the entries of that name, in order.
fn devices(spec: &NodeSpec, name: &str, kind: Option<&str>) -> IndexSet {
    let mut next = 0u32;
    let mut all = IndexSet::new();
    for g in spec.gres.iter().filter(|g| g.name == name && g.count > 0) {
        let count = u32::try_from(g.count).unwrap_or(u32::MAX);
        let last = next.saturating_add(count - 1);
        if g.kind.as_deref() == kind {
            all = all.union(&IndexSet::range(next, last));
        }
        next = last.saturating_add(1);
    }
    all
}

fn licenses(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for running in &facts.input.running {
        for (name, count) in &running.licenses {
            *used.entry(name).or_default() += u64::from(*count);
        }
    }
    for start in &plan.starts {
        let Some(job) = facts.pending.get(&start.job) else { continue };
        for (name, count) in &job.request.licenses {
            let now = used.entry(name).or_default();
            *now += u64::from(*count);
            let total = facts.input.licenses.get(name).copied().unwrap_or(0);
            if *count > 0 && *now > u64::from(total) {
                let detail = format!("{now} of {total} licences {name}");
                found.push(Violation { job: start.job, rule: Rule::Licenses, detail });
            }
        }
    }
}
