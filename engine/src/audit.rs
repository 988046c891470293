//! Judges a whole state from the outside: is anything held twice, does every index agree with the jobs, does anything
//! over still hold something. Independent of `decide` and `fold`; tests run it after every step.

use crate::index::ArrayEntry;
use crate::job::{ArrayRole, Job, Phase};
use crate::query;
use crate::state::State;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, NodeName};
use std::collections::{BTreeMap, BTreeSet};

/// One sentence for each violation; empty when all is well.
pub fn audit(state: &State) -> Vec<String> {
    let mut problems = Vec::new();
    for (id, job) in &state.jobs {
        check_job(state, *id, job, &mut problems);
    }
    check_nodes(state, &mut problems);
    check_indices(state, &mut problems);
    check_licenses(state, &mut problems);
    check_indexes(state, &mut problems);
    state.accounting.audit(&mut problems);
    problems
}

fn check_job(state: &State, id: JobId, job: &Job, problems: &mut Vec<String>) {
    let mut say = |what: String| problems.push(format!("job {id}: {what}"));
    if job.id != id {
        say(format!("its record says {}", job.id));
    }
    if id.0 == 0 || id.0 > state.last_job_id {
        say(format!("its number is outside 1 to {}", state.last_job_id));
    }
    if job.array.together().is_some_and(IndexSet::is_empty) {
        say("it stands for no task of its array".to_owned());
    }
    if matches!(job.array, ArrayRole::Block { array, .. } if array == id) {
        say("a part of an array has the array's number".to_owned());
    }
    if let Some(run) = job.run() {
        if run.allocation.nodes.is_empty() {
            say("it runs nowhere".to_owned());
        }
        if job.attempt != run.attempt {
            say(format!("attempt {} runs, the record says {}", run.attempt, job.attempt));
        }
        if job.array.together().is_some() {
            say("the record of waiting tasks has a run".to_owned());
        }
    }
    match &job.phase {
        Phase::Pending => {
            if job.claim.is_some() && job.eligible.is_none() {
                say("claims room that it may not use".to_owned());
            }
            if job.priority == 0 && job.hold == crate::job::Hold::No {
                say("priority 0 without a hold".to_owned());
            }
            if job.hold != crate::job::Hold::No && job.eligible.is_some() {
                say("held and eligible".to_owned());
            }
        }
        Phase::Running(run) => {
            if run.lends && run.suspended_since.is_none() && run.ending.is_none() {
                say("lends its cores and runs".to_owned());
            }
            if run.kill_at.is_some() != run.ending.is_some() {
                say("its end has begun without an hour for it, or the reverse".to_owned());
            }
            let foreign = run.confirmed_on.iter().any(|n| run.allocation.on(n).is_none());
            if foreign {
                say("confirmed by a node outside its allocation".to_owned());
            }
        }
        Phase::Completing { run, waiting_for, .. } => {
            if waiting_for.is_empty() {
                say("completing, waiting for nobody".to_owned());
            }
            if waiting_for.iter().any(|n| run.allocation.on(n).is_none()) {
                say("waits for a node outside its allocation".to_owned());
            }
        }
        Phase::Ended { .. } => {
            if job.steps.values().any(|s| s.end.is_none()) {
                say("over with a running step".to_owned());
            }
        }
    }
    if job.claim.is_some() && !matches!(job.phase, Phase::Pending) {
        say("claims room, and does not wait".to_owned());
    }
    if job.past_runs.iter().filter_map(|p| p.run.as_ref()).any(|r| r.attempt >= job.attempt) {
        say("an earlier run has the number of this one".to_owned());
    }
}

/// What a job holds, by node, derived from its phase alone.
fn held_nodes(job: &Job) -> Vec<NodeName> {
    match &job.phase {
        Phase::Running(run) => run.allocation.names().cloned().collect(),
        Phase::Completing { waiting_for, .. } => waiting_for.clone(),
        Phase::Pending | Phase::Ended { .. } => Vec::new(),
    }
}

fn check_nodes(state: &State, problems: &mut Vec<String>) {
    let mut holders: BTreeMap<NodeName, BTreeSet<JobId>> = BTreeMap::new();
    for job in state.jobs.values() {
        for node in held_nodes(job) {
            holders.entry(node).or_default().insert(job.id);
        }
    }
    for name in holders.keys().filter(|n| !state.nodes.contains_key(*n)) {
        problems.push(format!("jobs hold resources on {name}, which does not exist"));
    }
    for (name, node) in &state.nodes {
        let jobs = holders.remove(name).unwrap_or_default();
        if jobs != node.jobs {
            problems.push(format!("node {name}: its jobs are {jobs:?}, it says {:?}", node.jobs));
        }
        let (mut cpus, mut lent) = (IndexSet::new(), IndexSet::new());
        let mut memory = 0u64;
        let mut devices: BTreeMap<&str, IndexSet> = BTreeMap::new();
        for job in jobs.iter().filter_map(|id| state.jobs.get(id)) {
            let Some(part) = job.run().and_then(|r| r.allocation.on(name)) else { continue };
            // Whoever lends cores may find them in use; but not by another who lends.
            if job.run().is_some_and(|r| r.lends) {
                if !lent.is_disjoint(&part.cpus) {
                    problems.push(format!("node {name}: cores of job {} are lent twice", job.id));
                }
                lent = lent.union(&part.cpus);
            } else if !cpus.is_disjoint(&part.cpus) {
                problems.push(format!("node {name}: cores of job {} are given twice", job.id));
            }
            if !job.run().is_some_and(|r| r.lends) {
                cpus = cpus.union(&part.cpus);
            }
            memory += part.memory_mb;
            for g in &part.gres {
                let held = devices.entry(&g.name).or_default();
                if !held.is_disjoint(&g.indices) {
                    problems.push(format!("node {name}: {} of job {} are given twice", g.name, job.id));
                }
                *held = held.union(&g.indices);
            }
            let partition = job.partition.as_ref().and_then(|p| state.partitions.get(p));
            // A partition may have become exclusive under running jobs; a job's own wish can't change then.
            let lends = |id: &JobId| state.index.lending.contains(id);
            if partition.is_some()
                && !lends(&job.id)
                && jobs.iter().filter(|id| !lends(id)).count() > 1
                && job.spec.request.exclusive != sluice_model::request::Exclusive::No
            {
                problems.push(format!("node {name}: exclusive job {} is not alone", job.id));
            }
        }
        let cpus = cpus.union(&lent);
        if cpus.last().is_some_and(|c| c >= node.spec.cpus) {
            problems.push(format!("node {name}: cores beyond its {} are given", node.spec.cpus));
        }
        if memory > node.spec.memory_mb {
            problems.push(format!("node {name}: {memory} MiB of {} are given", node.spec.memory_mb));
        }
        for (gres, held) in devices {
            let total: u64 = node.spec.gres.iter().filter(|g| g.name == gres).map(|g| g.count).sum();
            if held.last().is_some_and(|d| u64::from(d) >= total) {
                problems.push(format!("node {name}: {gres} beyond its {total} are given"));
            }
        }
        let expected: BTreeSet<_> = query::expected_attempts(state, name).into_iter().collect();
        if node.stale.iter().any(|s| expected.contains(s)) {
            problems.push(format!("node {name}: an attempt counts as stale and as running"));
        }
    }
}

/// No task of an array exists twice.
fn check_indices(state: &State, problems: &mut Vec<String>) {
    let mut seen: BTreeSet<(JobId, u32)> = BTreeSet::new();
    for job in state.jobs.values() {
        if let ArrayRole::Task { array, index } = job.array
            && !seen.insert((array, index))
        {
            problems.push(format!("array {array}: task {index} has two records"));
        }
    }
    let mut together: BTreeMap<JobId, IndexSet> = BTreeMap::new();
    for job in state.jobs.values() {
        let (Some(array), Some(indices)) = (job.array_id(), job.array.together()) else { continue };
        if let Some((_, index)) = seen.range((array, 0)..=(array, u32::MAX)).find(|(_, i)| indices.contains(*i)) {
            problems.push(format!("array {array}: task {index} has a record and still waits"));
        }
        let others = together.entry(array).or_default();
        if !others.is_disjoint(indices) {
            problems.push(format!("array {array}: {} are in two records", others.intersection(indices)));
        }
        *others = others.union(indices);
    }
}

fn check_licenses(state: &State, problems: &mut Vec<String>) {
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for job in state.jobs.values().filter(|j| !held_nodes(j).is_empty()) {
        for (name, count) in &job.spec.licenses {
            *used.entry(name).or_default() += u64::from(*count);
        }
    }
    let total = |name: &str| state.config.as_ref().and_then(|c| c.licenses.get(name)).copied().unwrap_or(0);
    for (name, count) in used.into_iter().filter(|(name, count)| *count > u64::from(total(name))) {
        problems.push(format!("licence {name}: {count} of {} are given", total(name)));
    }
}

/// The indexes are what they would be if they were made anew.
fn check_indexes(state: &State, problems: &mut Vec<String>) {
    let mut fresh = state.clone();
    fresh.rebuild_indexes();
    let (live, anew) = (&state.index, &fresh.index);
    let mut differ = |what: &str, same: bool| {
        if !same {
            problems.push(format!("index {what} does not agree with the jobs"));
        }
    };
    differ("eligible", live.eligible == anew.eligible);
    differ("active", live.active == anew.active);
    differ("lending", live.lending == anew.lending);
    differ("names", live.names == anew.names);
    differ("keys", live.keys == anew.keys);
    differ("dependents", live.dependents == anew.dependents);
    differ("timers", live.timers == anew.timers && live.timer_at == anew.timer_at);
    differ("submitted", live.submitted == anew.submitted);
    differ("ended", live.ended == anew.ended);
    differ("silent", live.silent == anew.silent);
    differ("hardware", live.hardware == anew.hardware);
    differ("nodes", state.nodes == fresh.nodes);
    let arrays = |m: &imbl::OrdMap<JobId, ArrayEntry>| m.iter().map(|(k, v)| (*k, v.clone())).collect::<Vec<_>>();
    differ("arrays", arrays(&live.arrays) == arrays(&anew.arrays));
}
