//! Is every preemption allowed, needed, and enough?
//!
//! Derived from the input alone. Allowed: each victim runs, is one, and its rank may be preempted by the job's. Enough: what the
//! victims give back and what is free covers what the job is to get. Needed: with any one of the victims left alone it would not.

use super::{Facts, Rule, Violation};
use crate::input::RunningJob;
use crate::plan::{Plan, PlannedReservation, Start};
use crate::preemption::{ClaimShare, PlannedPreemption};
use sluice_model::config::Mode;
use sluice_model::{Allocation, JobId, Time};
use std::collections::BTreeSet;

/// Jobs that lend their cores to the given one.
pub(super) fn lenders(plan: &Plan, to: JobId) -> BTreeSet<JobId> {
    let suspended = |v: &&(JobId, Mode)| v.1 == Mode::Suspend;
    let of_it = plan.preemptions.iter().filter(|p| p.job == to);
    of_it.flat_map(|p| p.victims.iter().filter(suspended)).map(|v| v.0).collect()
}

/// When a running job is expected to end, with what the plan does to it; None = never.
pub(super) fn end(facts: &Facts<'_>, plan: &Plan, job: &RunningJob) -> Option<Time> {
    let own = job.planned_end(Time(facts.now()), facts.input.policy.overrun);
    let ended = plan.preemptions.iter().flat_map(|p| &p.victims).any(|v| v.0 == job.job && v.1 != Mode::Suspend);
    match &job.victim {
        Some(victim) if ended => Some(Time(facts.now().saturating_add(victim.grace_ms.max(1000)))),
        // It stands still as long as those run that have its cores.
        _ => plan.starts.iter().filter(|s| lenders(plan, s.job).contains(&job.job)).fold(own, |end, start| {
            Some(Time(end?.0.max(facts.now()).saturating_add(super::planned::stay(facts, start))))
        }),
    }
}

pub(super) fn check(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    let mut done = BTreeSet::new();
    for preemption in &plan.preemptions {
        let mut bad = |detail: String| found.push(Violation { job: preemption.job, rule: Rule::Preemption, detail });
        if preemption.victims.is_empty() {
            bad("preempts nobody".to_owned());
        }
        if !done.insert((preemption.job, preemption.index)) {
            bad("preempts twice".to_owned());
        }
        for (id, _) in &preemption.victims {
            if !seen.insert(*id) {
                bad(format!("job {id} is preempted twice"));
            }
        }
        allowed(facts, preemption, &mut bad);
        let started = plan.starts.iter().any(|s| s.job == preemption.job && s.index == preemption.index);
        let all_stopped = preemption.victims.iter().all(|v| v.1 == Mode::Suspend);
        if started != all_stopped {
            bad("starts before its victims are gone, or not though they are stopped".to_owned());
        }
        // What else is on these nodes: starts of the plan came before, or fit around.
        let others = preemption.victims.iter().map(|v| v.0);
        let others: BTreeSet<JobId> = others.collect();
        if !fits(facts, plan, preemption, &others) {
            bad("its victims do not give it enough".to_owned());
        }
        // Several nodes might serve as well; on those named here each victim must count, unless what is free there is kept
        // for others.
        let kept = |r: &PlannedReservation| {
            r.job != preemption.job && preemption.needs.iter().any(|need| r.nodes.contains(&need.node))
        };
        let free_is_kept = plan.reservations.iter().any(kept);
        for (id, _) in preemption.victims.iter().filter(|_| !free_is_kept) {
            let mut fewer = others.clone();
            fewer.remove(id);
            if fits(facts, plan, preemption, &fewer) {
                bad(format!("job {id} need not go"));
            }
        }
    }
}

fn allowed(facts: &Facts<'_>, preemption: &PlannedPreemption, bad: &mut impl FnMut(String)) {
    let Some(job) = facts.pending.get(&preemption.job) else {
        bad("is not pending".to_owned());
        return;
    };
    let Some((_, partition)) = facts.partition(&preemption.partition) else {
        bad("is in no partition".to_owned());
        return;
    };
    for (id, mode) in &preemption.victims {
        let Some(victim) = facts.input.running.iter().find(|r| r.job == *id).and_then(|r| r.victim.as_ref()) else {
            bad(format!("job {id} is no victim"));
            continue;
        };
        let now = Time(facts.now());
        let rules = &facts.input.preemption;
        if *mode != victim.mode || *mode == Mode::Off {
            bad(format!("job {id} may not be preempted in this way"));
        }
        if !rules.may(job.preemptor, partition.priority_tier, job.priority, victim, now) {
            bad(format!("job {id} is not for it to take from"));
        }
    }
}

/// What is to be had on the nodes without these jobs covers the shares, licences included.
fn fits(facts: &Facts<'_>, plan: &Plan, preemption: &PlannedPreemption, gone: &BTreeSet<JobId>) -> bool {
    let stopped = |id: JobId| preemption.victims.iter().any(|v| v.0 == id && v.1 == Mode::Suspend);
    let Some(job) = facts.pending.get(&preemption.job) else { return true };
    let Some((at, partition)) = facts.partition(&preemption.partition) else { return true };
    let whole = facts.whole(job, partition);
    // What other starts hold of their own: cores that they borrow are counted with their owners.
    let mut owned: Vec<(&Start, Allocation)> = Vec::new();
    for start in plan.starts.iter().filter(|s| (s.job, s.index) != (preemption.job, preemption.index)) {
        let lenders = lenders(plan, start.job);
        let mut own = start.allocation.clone();
        for part in &mut own.nodes {
            let of = facts.input.running.iter().filter(|r| lenders.contains(&r.job));
            for theirs in of.filter_map(|r| r.allocation.on(&part.node)) {
                part.cpus = part.cpus.difference(&theirs.cpus);
            }
        }
        owned.push((start, own));
    }
    let covers = |share: &ClaimShare| {
        let Some((_, node)) = facts.nodes.get(&share.node) else { return false };
        let spec = &node.spec;
        let (mut cpus, mut memory) = (u64::from(spec.cpus), spec.memory_mb);
        let mut limited = partition.max_cpus_per_node.map(u64::from);
        let mut gres: Vec<u64> = spec.gres.iter().map(|g| g.count).collect();
        let mut alone = true;
        let running = facts.input.running.iter().map(|r| {
            let end = r.planned_end(Time(facts.now()), facts.input.policy.overrun).map(|t| t.0.max(facts.now() + 1000));
            (r.job, &*r.allocation, r.exclusive, r.partition, end.map(Time))
        });
        let starts = owned.iter().map(|(s, own)| {
            let theirs = facts.partition(&s.partition);
            let whole = match (facts.pending.get(&s.job), theirs) {
                (Some(job), Some((_, partition))) => facts.whole(job, partition),
                _ => false,
            };
            let end = facts.now().saturating_add(super::planned::stay(facts, s));
            (s.job, own, whole, theirs.map(|t| t.0), Some(Time(end)))
        });
        for (id, allocation, exclusive, theirs, end) in running.chain(starts) {
            let Some(held) = allocation.on(&share.node) else { continue };
            if end.is_some_and(|t| t <= preemption.start) {
                continue;
            }
            let (is_gone, is_stopped) = (gone.contains(&id), stopped(id));
            if is_gone && !is_stopped {
                continue;
            }
            memory = memory.saturating_sub(held.memory_mb);
            for (left, entry) in gres.iter_mut().zip(&spec.gres) {
                let of = held.gres.iter().filter(|g| g.name == entry.name && g.kind == entry.kind);
                *left = left.saturating_sub(of.map(|g| g.indices.len()).sum());
            }
            if !is_gone {
                cpus = cpus.saturating_sub(held.cpus.len());
                alone &= !exclusive && !whole;
                if theirs == Some(at) {
                    limited = limited.map(|l| l.saturating_sub(held.cpus.len()));
                }
            }
        }
        alone
            && share.cpus <= cpus
            && limited.is_none_or(|l| share.cpus <= l)
            && share.memory_mb <= memory
            && share.gres.iter().zip(&gres).all(|(want, have)| want <= have)
    };
    let licensed = job.request.licenses.iter().all(|(name, count)| {
        let running = facts.input.running.iter().filter(|r| !gone.contains(&r.job) || stopped(r.job));
        let used: u32 = running.filter_map(|r| r.licenses.get(name)).sum();
        let starts = plan.starts.iter().filter(|s| (s.job, s.index) != (preemption.job, preemption.index));
        let starting: u32 = starts.filter_map(|s| facts.pending.get(&s.job)?.request.licenses.get(name)).sum();
        used + starting + count <= facts.input.licenses.get(name).copied().unwrap_or(0)
    });
    licensed && preemption.needs.iter().all(covers)
}
