//! What is short, with the numbers, and whose it is.

use super::{Number, Why, first_partition, list_jobs};
use crate::job::Job;
use crate::state::State;
use sluice_model::memory::format_memory_mb;
use sluice_model::{JobId, Reason};
use sluice_sched::explain::{FeatureNeed, NodeUse, Obstacle, Survey, What, survey};
use sluice_sched::{Infeasible, Input, PendingJob, Plan};
use std::collections::BTreeMap;

pub(super) fn explain(state: &State, input: &Input, job: &Job, asked: &PendingJob, plan: &Plan, answer: &mut Why) {
    match answer.reason {
        Reason::Licenses => return licenses(state, input, job, answer),
        Reason::PartitionDown | Reason::PartitionInactive => {
            let text = format!("Its partition {} is closed: it starts no jobs now.", job.partitions.join(","));
            answer.because.push(text.into());
            return;
        }
        Reason::DeadLine => {
            let text = "It cannot end before its deadline any more, whatever it gets: a shorter --time (or --time-min) \
                        may help.";
            answer.because.push(text.to_owned().into());
            return;
        }
        _ => {}
    }
    if let Err(never) = sluice_sched::feasible(input.cluster(), &job.spec, &asked.partitions) {
        answer.because.push(format!("It cannot run as things are: {never}.").into());
        if let Infeasible::Memory { asked_mb, limit_mb } = never {
            let (needs, has) = (asked_mb, limit_mb);
            answer.numbers.push(Number {
                what: "memory of one node".to_owned(),
                needs,
                has,
                limit: Some(has),
                used_by: Vec::new(),
            });
        }
        return;
    }
    let Some(partition) = first_partition(input, asked) else { return };
    let Some(found) = survey(input, asked, partition) else { return };
    let name = &input.partitions[partition as usize].name;
    let enough_nodes = found.free_nodes.len() >= found.nodes_needed as usize;
    let enough_tasks = found.tasks_needed.is_none_or(|t| found.free_tasks >= u64::from(t));
    let features = feature_needs(&found, answer);
    let near = near_needs(&found, answer);
    if enough_nodes && enough_tasks {
        if features || near {
            return;
        }
        passing_would_delay(plan, name, answer);
        return;
    }
    let share = describe(&found);
    answer.because.push(
        format!(
            "It needs {} node(s) of partition {name}{} with {share} on each; {} have that free now, of {} that could run \
             it.",
            found.nodes_needed,
            found.tasks_needed.filter(|_| found.nodes_needed > 1).map_or(String::new(), |t| format!(" for {t} tasks")),
            found.free_nodes.len(),
            found.could_ever(),
        )
        .into(),
    );
    if enough_nodes && let Some(tasks) = found.tasks_needed {
        let text = format!("Its {tasks} tasks do not fit: the free parts of these nodes take {}.", found.free_tasks);
        answer.because.push(text.into());
    }
    shortages(state, input, &found, answer);
    if answer.ahead_count > 0 {
        answer.because.push(format!("{} job(s) of its partition are ahead of it.", answer.ahead_count).into());
    }
}

/// Its rule of switches or segments, where what is free does not satisfy it. False when it does.
fn near_needs(found: &Survey, answer: &mut Why) -> bool {
    let Some(near) = found.near.as_ref().filter(|n| n.usable() < n.nodes_needed) else { return false };
    let (free, needed) = (near.usable(), near.nodes_needed);
    let (text, what) = match (near.switches, near.segment) {
        (Some(most), _) => (
            format!(
                "It wants its {needed} node(s) on {most} leaf switch(es) at most: the best of them have {free} that could \
                 take a share now. After the time given with --switches it takes nodes of any."
            ),
            format!("nodes on {most} leaf switch(es)"),
        ),
        (None, segment) => {
            let segment = segment.unwrap_or(1);
            let text = format!(
                "It wants its {needed} nodes in segments of {segment} within blocks: {free} nodes in whole segments could \
                 take a share now."
            );
            (text, format!("nodes in segments of {segment}"))
        }
    };
    answer.because.push(text.into());
    let (needs, has) = (u64::from(needed), u64::from(free));
    answer.numbers.push(Number { what, needs, has, limit: None, used_by: Vec::new() });
    true
}

/// Counts and alternatives of its features that are not met now. False when there are none.
fn feature_needs(found: &Survey, answer: &mut Why) -> bool {
    let (alternatives, counts): (Vec<_>, Vec<_>) = found.features.iter().partition(|f| f.alternative);
    let short = |f: &&&FeatureNeed| f.free < f.needs;
    let unmet = !alternatives.is_empty() && alternatives.iter().all(|f| short(&f));
    let told: Vec<&FeatureNeed> =
        counts.iter().filter(short).chain(alternatives.iter().filter(|_| unmet)).copied().collect();
    if unmet {
        let needs = found.nodes_needed;
        answer
            .because
            .push(format!("Its {needs} node(s) must all have the same one of its alternative features.").into());
    }
    for need in &told {
        let FeatureNeed { wanted, needs, free, could, .. } = need;
        let text =
            format!("{needs} node(s) must have {wanted}: {free} could take a share now, of {could} that have it.");
        answer.because.push(text.into());
        answer.numbers.push(Number {
            what: format!("nodes with {wanted}"),
            needs: u64::from(*needs),
            has: u64::from(*free),
            limit: Some(u64::from(*could)),
            used_by: Vec::new(),
        });
    }
    !told.is_empty()
}

/// It would fit now; what is free is kept for somebody who comes first.
fn passing_would_delay(plan: &Plan, partition: &str, answer: &mut Why) {
    let holders: Vec<&sluice_sched::PlannedReservation> =
        plan.reservations.iter().filter(|r| r.partition == partition && r.job != answer.job).collect();
    match holders.first() {
        Some(first) => {
            let text = format!(
                "What it needs is free now, but is kept for job {} (planned for {{time}}), which comes first and which it \
                 would delay: its time limit reaches beyond that start.",
                first.job
            );
            answer.because.push(super::Sentence { text, time: Some(first.start) });
        }
        None => answer.because.push("It waits for its turn: jobs of a higher priority come first.".to_owned().into()),
    }
}

fn describe(found: &Survey) -> String {
    let share = &found.share;
    let mut parts = vec![format!("{} CPU(s)", share.cpus), format!("{} of memory", format_memory_mb(share.memory_mb))];
    parts.extend(share.gres.iter().map(|(name, kind, count)| match kind {
        Some(kind) => format!("{count} {name}:{kind}"),
        None => format!("{count} {name}"),
    }));
    match &parts[..] {
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
        [] => String::new(),
    }
}

/// What the other nodes lack, by kind, and the node that comes closest.
fn shortages(state: &State, input: &Input, found: &Survey, answer: &mut Why) {
    /// How many nodes lack it, and of one of them the numbers.
    type Lack = (usize, Option<(u32, What, u64, u64)>);
    let mut kinds: BTreeMap<String, Lack> = BTreeMap::new();
    for (node, obstacle) in &found.obstacles {
        let (kind, detail) = match obstacle {
            Obstacle::Busy { what, needs, free } => {
                (format!("have too little free: {}", name_of(what)), Some((*node, what.clone(), *needs, *free)))
            }
            Obstacle::HeldWhole { .. } => ("are held whole by another job".to_owned(), None),
            Obstacle::InUse { .. } => ("are in use, and it wants whole nodes".to_owned(), None),
            Obstacle::Unavailable => ("are down, drained or not responding".to_owned(), None),
            Obstacle::TooSmall { what, .. } => (format!("are too small: {}", name_of(what)), None),
            Obstacle::Features { wanted } => (format!("lack the features {wanted}"), None),
            Obstacle::Excluded => ("are excluded by the job itself".to_owned(), None),
            Obstacle::NotInPartition => continue,
        };
        let entry = kinds.entry(kind).or_insert((0, None));
        entry.0 += 1;
        if let Some(new) = detail
            && entry.1.as_ref().is_none_or(|old| new.3 > old.3)
        {
            entry.1 = Some(new);
        }
    }
    for (kind, (count, closest)) in kinds {
        answer.because.push(format!("{count} node(s) {kind}.").into());
        let Some((node, what, needs, free)) = closest else { continue };
        scattered(input, found, &what, needs, answer);
        let used = NodeUse::of(input, node);
        let amount = |n: u64| match what {
            What::Memory | What::TmpDisk | What::GpuMemory => format_memory_mb(n),
            _ => n.to_string(),
        };
        let text = format!(
            "The closest of these is {} with {} free and {} needed; the rest is used by {}.",
            input.nodes[node as usize].spec.name,
            amount(free),
            amount(needs),
            owners(state, &used.jobs)
        );
        answer.because.push(text.into());
        answer.numbers.push(Number {
            what: format!("{} of {}", name_of(&what), input.nodes[node as usize].spec.name),
            needs,
            has: free,
            limit: whole(input, node, &what),
            used_by: used.jobs,
        });
    }
}

/// Enough devices are free, but not on one node.
fn scattered(input: &Input, found: &Survey, what: &What, needs: u64, answer: &mut Why) {
    let What::Gres { name, kind } = what else { return };
    let nodes = found.free_nodes.iter().chain(found.obstacles.iter().filter(|(_, o)| o.passes()).map(|(n, _)| n));
    let free = |n: &u32| NodeUse::of(input, *n).free_gres(&input.nodes[*n as usize].spec, name, kind.as_deref());
    let each: Vec<u64> = nodes.map(free).filter(|n| *n > 0).collect();
    let (total, most) = (each.iter().sum::<u64>(), each.iter().copied().max().unwrap_or(0));
    if total >= needs && most < needs {
        let text = format!(
            "{total} {} are free in all, but scattered over {} nodes, at most {most} on one.",
            name_of(what),
            each.len()
        );
        answer.because.push(text.into());
    }
}

fn whole(input: &Input, node: u32, what: &What) -> Option<u64> {
    let spec = &input.nodes[node as usize].spec;
    Some(match what {
        What::Cpus => u64::from(spec.cpus),
        What::Memory => spec.memory_mb,
        What::TmpDisk => spec.tmp_disk_mb,
        What::GpuMemory => spec.gres.iter().filter(|g| g.name == "gpu").map(|g| g.memory_mb).max().unwrap_or(0),
        What::Sockets => u64::from(spec.sockets),
        What::CoresPerSocket => u64::from(spec.cores_per_socket),
        What::ThreadsPerCore => u64::from(spec.threads_per_core),
        What::Gres { name, kind } => spec
            .gres
            .iter()
            .filter(|g| g.name == *name && kind.as_ref().is_none_or(|k| g.kind.as_ref() == Some(k)))
            .map(|g| g.count)
            .sum(),
    })
}

fn owners(state: &State, jobs: &[JobId]) -> String {
    let mut users: Vec<&str> = jobs.iter().filter_map(|id| state.jobs.get(id)).map(|j| j.spec.user.as_str()).collect();
    users.sort_unstable();
    users.dedup();
    match jobs.len() {
        0 => "nobody".to_owned(),
        1 => format!("job {} ({})", list_jobs(jobs), users.join(", ")),
        _ => format!("jobs {} ({})", list_jobs(jobs), users.join(", ")),
    }
}

pub(super) fn name_of(what: &What) -> String {
    match what {
        What::Cpus => "CPUs".to_owned(),
        What::Memory => "memory".to_owned(),
        What::TmpDisk => "temporary disk".to_owned(),
        What::GpuMemory => "memory of each GPU".to_owned(),
        What::Sockets => "sockets".to_owned(),
        What::CoresPerSocket => "cores of a socket".to_owned(),
        What::ThreadsPerCore => "threads of a core".to_owned(),
        What::Gres { name, kind: Some(kind) } => format!("{name}:{kind}"),
        What::Gres { name, kind: None } => name.clone(),
    }
}

fn licenses(state: &State, input: &Input, job: &Job, answer: &mut Why) {
    for (name, needs) in &job.spec.licenses {
        let total = input.licenses.get(name).copied().unwrap_or(0);
        let holders: Vec<&sluice_sched::RunningJob> =
            input.running.iter().filter(|r| r.licenses.contains_key(name)).collect();
        let used: u32 = holders.iter().filter_map(|r| r.licenses.get(name)).fold(0, |sum, n| sum.saturating_add(*n));
        let used_by: Vec<JobId> = holders.iter().map(|r| r.job).collect();
        let free = total.saturating_sub(used);
        let text = format!(
            "It needs {needs} licence(s) of {name}; {free} of {total} are free, the others are held by {}.",
            owners(state, &used_by)
        );
        answer.because.push(text.into());
        answer.numbers.push(Number {
            what: format!("licence {name}"),
            needs: u64::from(*needs),
            has: u64::from(free),
            limit: Some(u64::from(total)),
            used_by,
        });
    }
}
