//! How the quantities of a node are laid out in a row of numbers.

use crate::cluster::Cluster;
use sluice_model::{NodeAlloc, NodeSpec};
use std::collections::BTreeMap;

/// Slots of a node's row.
pub(crate) const CPUS: usize = 0;
pub(crate) const MEMORY: usize = 1;
/// Jobs on the node; free is 0 when it is empty and negative otherwise.
pub(crate) const JOBS: usize = 2;
/// Jobs that have the node to themselves; likewise.
pub(crate) const WHOLE: usize = 3;
pub(crate) const GRES: usize = 4;

/// Where each quantity lies in a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    pub stride: usize,
    /// Real nodes; also the row of licences.
    pub nodes: usize,
    /// Slot of the CPUs used by a partition with MaxCPUsPerNode, by partition.
    pub limited: Vec<Option<usize>>,
    pub licenses: BTreeMap<String, usize>,
}

pub(super) fn amount(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Layout {
    pub fn new(cluster: &Cluster) -> Layout {
        let gres = cluster.nodes.iter().map(|n| n.spec.gres.len()).max().unwrap_or(0);
        let mut stride = GRES + gres;
        let limited = cluster
            .partitions
            .iter()
            .map(|p| {
                p.max_cpus_per_node.map(|_| {
                    stride += 1;
                    stride - 1
                })
            })
            .collect();
        let licenses: BTreeMap<String, usize> = cluster.licenses.keys().cloned().zip(0..).collect();
        Layout { stride: stride.max(licenses.len()), nodes: cluster.nodes.len(), limited, licenses }
    }

    /// A row for each node and one for the licences.
    pub fn capacity(&self, cluster: &Cluster) -> Vec<i64> {
        let (stride, nodes) = (self.stride, self.nodes);
        let mut capacity = vec![0; (nodes + 1) * stride];
        for (node, row) in cluster.nodes.iter().zip(capacity.chunks_exact_mut(stride)) {
            row[CPUS] = i64::from(node.spec.cpus);
            row[MEMORY] = amount(node.spec.memory_mb);
            for (slot, gres) in row[GRES..].iter_mut().zip(&node.spec.gres) {
                *slot = amount(gres.count);
            }
            for (partition, slot) in cluster.partitions.iter().zip(&self.limited) {
                if let (Some(slot), Some(max)) = (slot, partition.max_cpus_per_node) {
                    row[*slot] = i64::from(max);
                }
            }
        }
        for (name, slot) in &self.licenses {
            capacity[nodes * stride + slot] = i64::from(cluster.licenses.get(name).copied().unwrap_or(0));
        }
        capacity
    }

    /// What a part of an allocation counts.
    pub fn held(&self, spec: &NodeSpec, held: &NodeAlloc, exclusive: bool, partition: Option<u32>, row: &mut [i64]) {
        row.fill(0);
        row[CPUS] = amount(held.cpus.len());
        row[MEMORY] = amount(held.memory_mb);
        row[JOBS] = 1;
        row[WHOLE] = i64::from(exclusive);
        for gres in &held.gres {
            for (slot, (first, last)) in entries(spec, &gres.name) {
                row[GRES + slot] += amount(members_between(&gres.indices, first, last));
            }
        }
        if let Some(slot) = partition.and_then(|p| *self.limited.get(p as usize)?) {
            row[slot] = row[CPUS];
        }
    }

    /// A row for the licence node.
    pub fn license_row(&self, licenses: &BTreeMap<String, u32>) -> Vec<i64> {
        let mut row = vec![0; self.stride];
        for (name, count) in licenses {
            if let Some(slot) = self.licenses.get(name) {
                row[*slot] = i64::from(*count);
            }
        }
        row
    }
}

/// Rows that come and go.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    stride: usize,
    data: Vec<i64>,
    spare: Vec<u32>,
}

impl Rows {
    pub fn new(stride: usize) -> Rows {
        Rows { stride, data: Vec::new(), spare: Vec::new() }
    }
    pub fn get(&self, at: u32) -> &[i64] {
        &self.data[at as usize * self.stride..][..self.stride]
    }
    pub fn get_mut(&mut self, at: u32) -> &mut [i64] {
        &mut self.data[at as usize * self.stride..][..self.stride]
    }
    pub fn store(&mut self, row: &[i64]) -> u32 {
        if let Some(at) = self.spare.pop() {
            self.data[at as usize * self.stride..][..self.stride].copy_from_slice(row);
            return at;
        }
        let at = self.data.len() / self.stride;
        self.data.extend_from_slice(row);
        at as u32
    }
    pub fn release(&mut self, at: u32) {
        self.spare.push(at);
    }
}

/// `free` becomes the least of itself and what `used` leaves.
pub(super) fn lower(free: &mut [i64], capacity: &[i64], used: &[i64]) {
    for ((f, c), u) in free.iter_mut().zip(capacity).zip(used) {
        *f = (*f).min(c - u);
    }
}

/// GRES entries of one name on a node: their position and the device numbers (first, last) they stand for. Devices are
/// numbered across the entries of a name in the order of the configuration (`gpu:a100:2,gpu:v100:2`: 0-1 and 2-3).
pub(crate) fn entries<'a>(spec: &'a NodeSpec, name: &'a str) -> impl Iterator<Item = (usize, (u64, u64))> + 'a {
    let mut next = 0u64;
    spec.gres.iter().enumerate().filter(move |(_, g)| g.name == name && g.count > 0).map(move |(i, g)| {
        let first = next;
        next = next.saturating_add(g.count);
        (i, (first, next - 1))
    })
}

fn members_between(set: &sluice_model::index_set::IndexSet, first: u64, last: u64) -> u64 {
    set.ranges()
        .map(|(a, b, step)| {
            let (a, b, step) = (u64::from(a), u64::from(b), u64::from(step.max(1)));
            let a = if a >= first { a } else { a + (first - a).div_ceil(step) * step };
            let b = b.min(last);
            if a > b { 0 } else { (b - a) / step + 1 }
        })
        .sum()
}
