//! Where a step's tasks run inside its job's allocation: the step manager's decision, as a pure function.
//!
//! Follows srun's manual page: without `--exact` a step has all CPUs of the job on its nodes (and, unless told, all
//! memory and GPUs) and other such steps wait; with `--exact` (which `-c` implies) it has what it asked for and steps run
//! side by side; `--overlap` counts nothing and waits for nothing. Promises that what it counts never exceeds the
//! allocation, and that a step that could never start is refused instead of queued.

use sluice_model::request::{Distribution, GresScope, MemoryRequest};
use sluice_model::{Allocation, IndexSet, NodeAlloc, layout};
use sluice_proto::v1::{GresAlloc, GresRequest, JobCredentialBody, ManagedStep, StepNode, StepRequest};

/// What came of a request.
#[derive(Debug, PartialEq)]
pub enum Placed {
    /// Nodes of the step, and what of them others may not use meanwhile.
    Now {
        nodes: Vec<StepNode>,
        counted: Vec<StepNode>,
        ntasks: u32,
    },
    /// Slurm's words for what it waits for.
    Busy(&'static str),
    Never(String),
}

const BUSY: &str = "Requested nodes are busy";
const TOO_MANY: &str = "More processors requested than permitted";
const NO_NODE: &str = "Requested node configuration is not available";
const NO_MEMORY: &str = "Memory required by task is not available";

/// The job as steps see it.
pub struct Job<'a> {
    pub body: &'a JobCredentialBody,
    pub allocation: &'a Allocation,
}

/// What is free on one node of the job.
struct Free<'a> {
    held: &'a NodeAlloc,
    index: usize,
    cpus: IndexSet,
    /// None: the job's memory is not counted.
    memory_mb: Option<u64>,
    gres: Vec<(String, Option<String>, IndexSet)>,
    untouched: bool,
}

fn set(wire: Option<&sluice_proto::v1::IndexSet>) -> IndexSet {
    // What is read here was written by this daemon from a good set.
    wire.cloned().and_then(|w| IndexSet::try_from(w).ok()).unwrap_or_default()
}

fn free<'a>(job: &Job<'a>, running: &[&ManagedStep]) -> Vec<Free<'a>> {
    let one = |(index, held): (usize, &'a NodeAlloc)| {
        let mut free = Free {
            held,
            index,
            cpus: held.cpus.clone(),
            memory_mb: (held.memory_mb > 0).then_some(held.memory_mb),
            gres: held.gres.iter().map(|g| (g.name.clone(), g.kind.clone(), g.indices.clone())).collect(),
            untouched: true,
        };
        for used in running.iter().flat_map(|s| &s.counted).filter(|n| n.node == held.node.as_str()) {
            free.cpus = free.cpus.difference(&set(used.cpus.as_ref()));
            free.memory_mb = free.memory_mb.map(|m| m.saturating_sub(used.memory_mb));
            for gres in &used.gres {
                for (name, kind, indices) in &mut free.gres {
                    if *name == gres.name && *kind == gres.kind {
                        *indices = indices.difference(&set(gres.indices.as_ref()));
                    }
                }
            }
            free.untouched = false;
        }
        free
    };
    job.allocation.nodes.iter().enumerate().map(one).collect()
}

/// A request with its defaults worked out.
struct Wanted<'a> {
    request: &'a StepRequest,
    ntasks: u32,
    cpus_per_task: u32,
    exact: bool,
    memory: Option<MemoryRequest>,
    distribution: Distribution,
    /// None: all of the job's.
    gres: Option<Vec<&'a GresRequest>>,
}

/// Finds room among what `running` steps leave.
pub fn place(job: &Job<'_>, request: &StepRequest, running: &[&ManagedStep]) -> Placed {
    let wanted = match wanted(job, request) {
        Ok(wanted) => wanted,
        Err(why) => return Placed::Never(why),
    };
    let running: &[&ManagedStep] = if request.overlap { &[] } else { running };
    match attempt(job, &wanted, &free(job, running)) {
        Err(why) => Placed::Never(why),
        Ok(Some(placed)) => placed,
        // Could it start if nothing else ran? Otherwise waiting is in vain.
        Ok(None) => match attempt(job, &wanted, &free(job, &[])) {
            Err(why) => Placed::Never(why),
            Ok(None) => Placed::Never(TOO_MANY.to_owned()),
            Ok(Some(_)) => Placed::Busy(BUSY),
        },
    }
}

fn wanted<'a>(job: &Job<'_>, request: &'a StepRequest) -> Result<Wanted<'a>, String> {
    let nodes = request.nodes.as_ref().map(|n| n.min.max(1));
    let all = job.allocation.nodes.len() as u32;
    if let Some(asked) = nodes.filter(|n| *n > all) {
        return Err(format!("Only allocated {all} nodes asked for {asked}"));
    }
    let asked = (request.node_list.len() as u32).max(1);
    let ntasks = match (request.ntasks, request.ntasks_per_node) {
        (Some(n), _) => n,
        (None, Some(per_node)) => {
            per_node.saturating_mul(nodes.unwrap_or(if request.node_list.is_empty() { all } else { asked }))
        }
        (None, None) => match nodes {
            Some(nodes) => nodes,
            None if !request.node_list.is_empty() => asked,
            None => job.body.ntasks.max(all),
        },
    };
    if ntasks == 0 {
        return Err("Invalid number of tasks: 0".to_owned());
    }
    if ntasks > 1 << 20 {
        return Err(TOO_MANY.to_owned());
    }
    let memory = match request.memory.map(MemoryRequest::try_from) {
        None => None,
        Some(Ok(memory)) => Some(memory),
        Some(Err(e)) => return Err(format!("Invalid memory: {e}")),
    };
    let distribution = match request.distribution.map(Distribution::try_from) {
        None => Distribution::Block,
        Some(Ok(d)) => d,
        Some(Err(e)) => return Err(format!("Invalid distribution: {e}")),
    };
    let gres = match request.gres.as_slice() {
        [] => None,
        list => Some(list.iter().filter(|g| g.name != "none").collect()),
    };
    let exact = !request.whole && (request.exact || request.exclusive || request.cpus_per_task.is_some());
    Ok(Wanted {
        request,
        ntasks,
        cpus_per_task: request.cpus_per_task.unwrap_or(1).max(1),
        exact,
        memory,
        distribution,
        gres,
    })
}

/// `None`: not now.
fn attempt(job: &Job<'_>, wanted: &Wanted<'_>, free: &[Free<'_>]) -> Result<Option<Placed>, String> {
    let chosen = match choose(wanted, free)? {
        Some(chosen) => chosen,
        None => return Ok(None),
    };
    let rooms: Vec<u32> = chosen.iter().map(|n| room(wanted, n)).collect();
    let tasks = layout::tasks_per_node(wanted.ntasks, &rooms, wanted.distribution, wanted.request.overcommit);
    let Some(tasks) = tasks else { return Ok(None) };
    let mut nodes = Vec::new();
    let mut counted = Vec::new();
    let mut job_gres: Vec<u64> = wanted.gres.iter().flatten().map(|g| g.count).collect();
    for (node, ranks) in chosen.iter().zip(tasks) {
        if ranks.is_empty() {
            continue;
        }
        let count = ranks.len() as u32;
        let cpus = cpus(wanted, node, count);
        let Some((memory, counted_memory)) = memory(wanted, node, &cpus)? else { return Ok(None) };
        let Some((gres, gres_counts)) = gres(wanted, node, count, &mut job_gres) else { return Ok(None) };
        let base = StepNode {
            node: node.held.node.to_string(),
            address: job.body.addresses.get(node.index).cloned().unwrap_or_default(),
            tasks: ranks,
            cpus: Some((&cpus).into()),
            memory_mb: memory,
            gres,
        };
        counted.push(StepNode {
            tasks: Vec::new(),
            address: String::new(),
            memory_mb: counted_memory,
            gres: if gres_counts { base.gres.clone() } else { Vec::new() },
            ..base.clone()
        });
        nodes.push(base);
    }
    if wanted.gres.is_some()
        && wanted.request.gres.iter().zip(&job_gres).any(|(g, left)| scope(g) == GresScope::Job && *left > 0)
    {
        return Ok(None);
    }
    if wanted.request.overlap {
        counted.clear();
    }
    Ok(Some(Placed::Now { nodes, counted, ntasks: wanted.ntasks }))
}

fn scope(gres: &GresRequest) -> GresScope {
    match gres.scope {
        1 => GresScope::Job,
        2 => GresScope::Task,
        3 => GresScope::Socket,
        _ => GresScope::Node,
    }
}

/// The step's nodes, in the job's order. `None`: not enough of them have room now.
fn choose<'f, 'a>(wanted: &Wanted<'_>, free: &'f [Free<'a>]) -> Result<Option<Vec<&'f Free<'a>>>, String> {
    let request = wanted.request;
    let named = |n: &Free<'_>, list: &[String]| list.iter().any(|l| l == n.held.node.as_str());
    if let Some(stranger) = request.node_list.iter().find(|l| !free.iter().any(|n| n.held.node.as_str() == l.as_str()))
    {
        return Err(format!("{NO_NODE}: node {stranger} is not the job's"));
    }
    let candidates: Vec<&Free<'_>> =
        free.iter().skip(request.relative.unwrap_or(0) as usize).filter(|n| !named(n, &request.exclude)).collect();
    let (min, max) = match &request.nodes {
        // More nodes than tasks: srun warns and takes as many as there are tasks.
        Some(count) => {
            let min = count.min.max(1);
            let max = count.max.map_or(min, |m| m.max(min));
            (min.min(wanted.ntasks), max.min(wanted.ntasks))
        }
        None if !request.node_list.is_empty() => {
            let n = (request.node_list.len() as u32).min(wanted.ntasks);
            (n, n)
        }
        None => (1, wanted.ntasks),
    };
    if candidates.len() < min as usize {
        return Err(NO_NODE.to_owned());
    }
    let with_room: Vec<&Free<'_>> =
        candidates.into_iter().filter(|n| room(wanted, n) > 0 || request.overcommit && has_any(wanted, n)).collect();
    let mut chosen: Vec<&Free<'_>> = with_room.iter().copied().filter(|n| named(n, &request.node_list)).collect();
    if chosen.len() < request.node_list.len().min(max as usize) {
        return Ok(None);
    }
    chosen.truncate(max as usize);
    for node in with_room {
        if chosen.len() >= max as usize {
            break;
        }
        if !named(node, &request.node_list) {
            chosen.push(node);
        }
    }
    chosen.sort_by_key(|n| n.index);
    Ok((chosen.len() >= min as usize).then_some(chosen))
}

/// Whether an overcommitting step may use the node at all now.
fn has_any(wanted: &Wanted<'_>, node: &Free<'_>) -> bool {
    if wanted.exact { !node.cpus.is_empty() } else { node.untouched }
}

/// How many tasks the node can take.
fn room(wanted: &Wanted<'_>, node: &Free<'_>) -> u32 {
    let cpus = match (wanted.exact, node.untouched) {
        (true, _) => node.cpus.len(),
        (false, true) => node.held.cpus.len(),
        (false, false) => 0,
    };
    let mut room = u32::try_from(cpus).unwrap_or(u32::MAX) / wanted.cpus_per_task;
    if wanted.request.overcommit && cpus > 0 {
        room = room.max(1);
    }
    if let Some(limit) = wanted.request.ntasks_per_node {
        room = room.min(limit);
    }
    for gres in wanted.gres.iter().flatten().filter(|g| g.count > 0) {
        let have = available(node, gres).len();
        match scope(gres) {
            GresScope::Task => room = room.min(u32::try_from(have / gres.count).unwrap_or(u32::MAX)),
            GresScope::Node | GresScope::Socket if have < gres.count => room = 0,
            _ => {}
        }
    }
    room
}

fn available(node: &Free<'_>, gres: &GresRequest) -> IndexSet {
    node.gres
        .iter()
        .filter(|(name, kind, _)| *name == gres.name && (gres.kind.is_none() || *kind == gres.kind))
        .fold(IndexSet::new(), |all, (_, _, indices)| all.union(indices))
}

fn cpus(wanted: &Wanted<'_>, node: &Free<'_>, tasks: u32) -> IndexSet {
    if !wanted.exact {
        return node.held.cpus.clone();
    }
    let count = u64::from(tasks) * u64::from(wanted.cpus_per_task);
    node.cpus.take(count.min(node.cpus.len()))
}

/// Memory of the step on the node, and how much of it is counted. `Ok(None)`: not free now.
fn memory(wanted: &Wanted<'_>, node: &Free<'_>, cpus: &IndexSet) -> Result<Option<(u64, u64)>, String> {
    let held = node.held.memory_mb;
    let (memory, counted) = match wanted.memory {
        None if wanted.exact => {
            let share = held * cpus.len() / node.held.cpus.len().max(1);
            (share, share)
        }
        None => (held, held),
        // Zero: all of the job's, shared with other steps.
        Some(MemoryRequest::PerNode(0)) => (held, 0),
        Some(MemoryRequest::PerNode(mb)) => (mb, mb),
        Some(MemoryRequest::PerCpu(mb)) => {
            let all = mb.saturating_mul(cpus.len());
            (all, all)
        }
        // The job's share of memory per GPU was settled with the job's own request.
        Some(MemoryRequest::PerGpu(_)) => (held, 0),
    };
    match node.memory_mb {
        None => Ok(Some((memory, 0))),
        Some(_) if memory > held => Err(NO_MEMORY.to_owned()),
        Some(free) => Ok((counted <= free).then_some((memory, counted))),
    }
}

/// GRES of the step on the node, and whether they are counted. `left` is what requests for the whole step still lack.
fn gres(wanted: &Wanted<'_>, node: &Free<'_>, tasks: u32, left: &mut [u64]) -> Option<(Vec<GresAlloc>, bool)> {
    let Some(requests) = &wanted.gres else {
        let all = node
            .held
            .gres
            .iter()
            .map(|g| GresAlloc { name: g.name.clone(), kind: g.kind.clone(), indices: Some((&g.indices).into()) })
            .collect();
        return Some((all, !wanted.exact));
    };
    let mut got = Vec::new();
    for (request, left) in requests.iter().zip(left) {
        let mut count = match scope(request) {
            GresScope::Task => request.count * u64::from(tasks),
            GresScope::Node | GresScope::Socket => request.count,
            GresScope::Job => (*left).min(available(node, request).len()),
        };
        if scope(request) == GresScope::Job {
            *left -= count;
        }
        let kinds =
            node.gres.iter().filter(|(n, k, _)| *n == request.name && (request.kind.is_none() || *k == request.kind));
        for (name, kind, indices) in kinds {
            let take = indices.take(count.min(indices.len()));
            if !take.is_empty() {
                count -= take.len();
                got.push(GresAlloc { name: name.clone(), kind: kind.clone(), indices: Some((&take).into()) });
            }
        }
        if count > 0 {
            return None;
        }
    }
    Some((got, true))
}

#[cfg(test)]
mod tests;
