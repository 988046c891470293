//! Which very cores and devices.
//!
//! Owns the free indices of a node. Promises never to give an index that is held. Must not decide where a job goes.
//!
//! CPUs are numbered by core and cores by socket: CPU `i` is a thread of core `i / threads_per_core`. A job goes to the
//! socket that it fills best, takes whole cores where it can, and else the lowest free ones.

use crate::timeline::{CPUS, GRES, MEMORY, entries};
use sluice_model::index_set::IndexSet;
use sluice_model::{GresAlloc, NodeAlloc, NodeSpec};

/// What of a node nobody holds.
#[derive(Clone, Debug)]
pub(crate) struct Free {
    cpus: IndexSet,
    /// For each GRES entry of the node.
    gres: Vec<IndexSet>,
}

impl Free {
    pub fn all(spec: &NodeSpec) -> Free {
        let mut free = Free { cpus: all_below(u64::from(spec.cpus)), gres: vec![IndexSet::new(); spec.gres.len()] };
        for gres in &spec.gres {
            for (entry, (first, last)) in entries(spec, &gres.name) {
                if let Ok(first) = u32::try_from(first) {
                    free.gres[entry] = IndexSet::range(first, u32::try_from(last).unwrap_or(u32::MAX));
                }
            }
        }
        free
    }

    /// It is held from now on.
    pub fn take(&mut self, spec: &NodeSpec, held: &NodeAlloc) {
        self.cpus = self.cpus.difference(&held.cpus);
        for gres in &held.gres {
            for (entry, have) in spec.gres.iter().enumerate() {
                if have.name == gres.name {
                    self.gres[entry] = self.gres[entry].difference(&gres.indices);
                }
            }
        }
    }

    /// It is held no more; `held_cpus` were in use with it, by count. False when that can't be told from here: another
    /// may hold some of it too (two nodes became one, say), or it lies outside of the node; the caller works it out anew.
    pub fn give_back(&mut self, spec: &NodeSpec, held: &NodeAlloc, held_cpus: i64) -> bool {
        let counts = i64::try_from(self.cpus.len()).is_ok_and(|free| free + held_cpus == i64::from(spec.cpus));
        if !counts || !held.gres.is_empty() {
            return false;
        }
        self.cpus = self.cpus.union(&held.cpus);
        true
    }

    /// Indices for what the row counts. None when they don't suffice, which counts that agree with them rule out.
    pub fn pick(&self, spec: &NodeSpec, tasks: u32, row: &[i64]) -> Option<NodeAlloc> {
        let cpus = pick_cpus(spec, &self.cpus, count(row[CPUS]))?;
        let mut gres = Vec::new();
        for (entry, wanted) in row[GRES..].iter().enumerate().take(spec.gres.len()).filter(|(_, w)| **w > 0) {
            let indices = self.gres[entry].take(count(*wanted));
            if indices.len() < count(*wanted) {
                return None;
            }
            let have = &spec.gres[entry];
            gres.push(GresAlloc { name: have.name.clone(), kind: have.kind.clone(), indices });
        }
        Some(NodeAlloc { node: spec.name.clone(), cpus, memory_mb: count(row[MEMORY]), gres, tasks })
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
