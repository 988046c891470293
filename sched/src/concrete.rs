//! Which very cores and devices.
//!
//! Owns the free indices of a node. Promises never to give an index that is held. Must not decide where a job goes.
//!
//! CPUs are numbered by core and cores by socket: CPU `i` is a thread of core `i / threads_per_core`. A job goes to the
//! socket that it fills best, else to few of them, takes whole cores where it can, and else the lowest free ones. Where more
//! is known of devices, `devices` chooses those that are linked best and near few cores, and the job's CPUs are those near
//! its devices as far as they are free.

mod devices;

use crate::demand::Demand;
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

    /// Indices for what the row counts. None when they don't suffice, which counts that agree with them rule out, but for
    /// `--gres-flags=enforce-binding`: then enough cores near enough devices must be free.
    pub fn pick(&self, spec: &NodeSpec, demand: &Demand, tasks: u32, row: &[i64]) -> Option<NodeAlloc> {
        let wanted = count(row[CPUS]);
        let mut gres = Vec::new();
        let mut near = IndexSet::new();
        for (entry, devices) in row[GRES..].iter().enumerate().take(spec.gres.len()).filter(|(_, w)| **w > 0) {
            let have = &spec.gres[entry];
            let first = entries(spec, &have.name).find(|(at, _)| *at == entry).map_or(0, |(_, (first, _))| first);
            let around = devices::Around { spec: have, first, cpus: &self.cpus, wanted, strict: demand.binds };
            let indices = around.choose(&self.gres[entry], count(*devices))?;
            for device in indices.iter() {
                if let Some(cores) = have.cores_of(u64::from(device).saturating_sub(first)) {
                    near = near.union(cores);
                }
            }
            gres.push(GresAlloc { name: have.name.clone(), kind: have.kind.clone(), indices });
        }
        let cpus = self.pick_near(spec, demand, tasks, wanted, &near)?;
        Some(NodeAlloc { node: spec.name.clone(), cpus, memory_mb: count(row[MEMORY]), gres, tasks })
    }

    fn pick_near(
        &self,
        spec: &NodeSpec,
        demand: &Demand,
        tasks: u32,
        wanted: u64,
        near: &IndexSet,
    ) -> Option<IndexSet> {
        let by_socket = demand.per_socket.map(|n| u64::from(n) * (wanted / u64::from(tasks.max(1))).max(1));
        let pick = |free: &IndexSet, wanted: u64| {
            let spread = by_socket.and_then(|most| pick_by_socket(spec, free, wanted, most));
            spread.or_else(|| pick_cpus(spec, free, wanted))
        };
        if near.is_empty() || demand.unbound {
            return pick(&self.cpus, wanted);
        }
        let here = self.cpus.intersection(near);
        match here.len() >= wanted {
            true => pick(&here, wanted),
            false if demand.binds => None,
            // All of those, and the rest wherever it is.
            false => Some(here.union(&pick(&self.cpus.difference(&here), wanted - here.len())?)),
        }
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
    let mut sockets = by_socket(spec, free);
    if sockets.len() < 2 {
        return Some(pick_cores(spec, free, wanted));
    }
    // The one that it fills best; else the freest, and so on with the rest.
    let mut taken = IndexSet::new();
    let mut left = wanted;
    while left > 0 {
        sockets.sort_by_key(|s| s.len());
        let most = sockets.last().map_or(0, IndexSet::len).min(left);
        let at = sockets.iter().position(|s| s.len() >= most).unwrap_or(0);
        let socket = sockets.remove(at);
        let some = left.min(socket.len());
        taken = taken.union(&pick_cores(spec, &socket, some));
        left -= some;
    }
    Some(taken)
}

/// What is free on each socket; nothing where CPUs can't be told apart by socket.
fn by_socket(spec: &NodeSpec, free: &IndexSet) -> Vec<IndexSet> {
    let sockets = spec.sockets.max(1);
    if sockets < 2 || !spec.cpus.is_multiple_of(sockets) {
        return Vec::new();
    }
    let size = spec.cpus / sockets;
    (0..sockets).map(|s| free.intersection(&IndexSet::range(s * size, (s + 1) * size - 1))).collect()
}

/// At most so many CPUs of each socket, on few sockets. None when they don't suffice.
fn pick_by_socket(spec: &NodeSpec, free: &IndexSet, wanted: u64, most: u64) -> Option<IndexSet> {
    let mut sockets = by_socket(spec, free);
    sockets.sort_by_key(|s| std::cmp::Reverse(s.len()));
    let mut taken = IndexSet::new();
    for socket in sockets {
        let some = (wanted - taken.len()).min(most).min(socket.len());
        taken = taken.union(&pick_cores(spec, &socket, some));
    }
    (taken.len() == wanted).then_some(taken)
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
