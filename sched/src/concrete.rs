//! Which very cores and devices.
//!
//! Owns the free indices of nodes, worked out from running allocations when a node is first used in a pass. Promises
//! never to give an index twice. Must not decide where a job goes.
//!
//! CPUs are numbered by core and cores by socket: CPU `i` is a thread of core `i / threads_per_core`. A job goes to the
//! socket that it fills best, takes whole cores where it can, and else the lowest free ones.

use crate::input::Input;
use crate::timeline::{CPUS, GRES, MEMORY, entries};
use sluice_model::index_set::IndexSet;
use sluice_model::{GresAlloc, NodeAlloc, NodeSpec};

struct Free {
    cpus: IndexSet,
    /// For each GRES entry of the node.
    gres: Vec<IndexSet>,
}

pub(crate) struct Concrete<'a> {
    input: &'a Input,
    free: Vec<Option<Free>>,
}

impl<'a> Concrete<'a> {
    pub fn new(input: &'a Input) -> Self {
        Concrete { input, free: input.nodes.iter().map(|_| None).collect() }
    }

    /// Takes what the row counts. None when the indices don't suffice, which counts that agree with them rule out.
    /// `holders`: see `Timeline::holders`.
    pub fn pick(&mut self, node: usize, tasks: u32, row: &[i64], holders: &[(u32, u32)]) -> Option<NodeAlloc> {
        let input = self.input;
        let spec = &*input.nodes[node].spec;
        let free = self.free[node].get_or_insert_with(|| free_of(input, spec, holders));
        let cpus = pick_cpus(spec, &free.cpus, count(row[CPUS]))?;
        let mut gres = Vec::new();
        for (entry, wanted) in row[GRES..].iter().enumerate().take(spec.gres.len()).filter(|(_, w)| **w > 0) {
            let indices = free.gres[entry].take(count(*wanted));
            if indices.len() < count(*wanted) {
                return None;
            }
            let have = &spec.gres[entry];
            gres.push((entry, GresAlloc { name: have.name.clone(), kind: have.kind.clone(), indices }));
        }
        free.cpus = free.cpus.difference(&cpus);
        for (entry, taken) in &gres {
            free.gres[*entry] = free.gres[*entry].difference(&taken.indices);
        }
        Some(NodeAlloc {
            node: spec.name.clone(),
            cpus,
            memory_mb: count(row[MEMORY]),
            gres: gres.into_iter().map(|g| g.1).collect(),
            tasks,
        })
    }
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn all_below(n: u64) -> IndexSet {
    match u32::try_from(n) {
        Ok(0) => IndexSet::new(),
        Ok(n) => IndexSet::range(0, n - 1),
        Err(_) => IndexSet::range(0, u32::MAX),
    }
}

fn free_of(input: &Input, spec: &NodeSpec, holders: &[(u32, u32)]) -> Free {
    let mut free = Free { cpus: all_below(u64::from(spec.cpus)), gres: vec![IndexSet::new(); spec.gres.len()] };
    for gres in &spec.gres {
        for (entry, (first, last)) in entries(spec, &gres.name) {
            if let Ok(first) = u32::try_from(first) {
                free.gres[entry] = IndexSet::range(first, u32::try_from(last).unwrap_or(u32::MAX));
            }
        }
    }
    for (r, a) in holders {
        let held = &input.running[*r as usize].allocation.nodes[*a as usize];
        free.cpus = free.cpus.difference(&held.cpus);
        for gres in &held.gres {
            for (entry, have) in spec.gres.iter().enumerate() {
                if have.name == gres.name {
                    free.gres[entry] = free.gres[entry].difference(&gres.indices);
                }
            }
        }
    }
    free
}

fn pick_cpus(spec: &NodeSpec, free: &IndexSet, wanted: u64) -> Option<IndexSet> {
    if free.len() < wanted {
        return None;
    }
    let sockets = spec.sockets.max(1);
    if sockets > 1 && spec.cpus.is_multiple_of(sockets) {
        let size = spec.cpus / sockets;
        let best = (0..sockets)
            .map(|s| free.intersection(&IndexSet::range(s * size, (s + 1) * size - 1)))
            .filter(|s| s.len() >= wanted)
            .min_by_key(|s| s.len());
        if let Some(socket) = best {
            return Some(pick_cores(spec, &socket, wanted));
        }
    }
    Some(pick_cores(spec, free, wanted))
}

/// Whole cores for as many CPUs as make whole cores, then threads of cores already in use, then any.
fn pick_cores(spec: &NodeSpec, free: &IndexSet, wanted: u64) -> IndexSet {
    let threads = spec.threads_per_core.max(1);
    if threads == 1 || free.len() == wanted {
        return free.take(wanted);
    }
    let all: Vec<u32> = free.iter().collect();
    let (whole, split): (Vec<&[u32]>, Vec<&[u32]>) =
        all.chunk_by(|a, b| a / threads == b / threads).partition(|core| core.len() == threads as usize);
    let cores = (wanted / u64::from(threads)).min(whole.len() as u64) as usize;
    let left = wanted as usize - cores * threads as usize;
    let rest = split.iter().chain(&whole[cores..]).flat_map(|core| core.iter()).take(left);
    whole[..cores].iter().flat_map(|core| core.iter()).chain(rest).copied().collect()
}
