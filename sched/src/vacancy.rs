//! Which nodes have something free, fullest first.
//!
//! Owns an index of nodes by what they have free now, planned starts left out. Promises to show every node on which a
//! share could be placed, in the order of `placement`: without devices before others where the job wants none, then by
//! free CPUs, then by position. What it shows may still not fit: the caller asks `placement`.
//!
//! Nodes of one kind lie in buckets of equal free CPUs and devices; each bucket knows a bound on the memory that one of
//! its nodes has free, so that those that can't have enough are passed over as a whole.

use crate::cluster::Cluster;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, btree_map};

/// What any share of a request takes on one node, at the least.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Need {
    pub cpus: u32,
    /// Of all names together.
    pub devices: u32,
    /// MiB.
    pub memory: i64,
    /// Only on empty nodes.
    pub whole: bool,
    /// Devices are not wanted: nodes that have none free come first.
    pub plain: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    pub nodes: BTreeSet<u32>,
    /// No node in it has more free, MiB; lowered when a search finds that out.
    most_memory: Cell<i64>,
}

impl Bucket {
    /// The first that passes. `test` gives what memory the node has free, and whether it passes.
    pub fn first(&self, below: u32, mut test: impl FnMut(u32) -> (i64, bool)) -> Option<u32> {
        let mut most = i64::MIN;
        for node in &self.nodes {
            if *node >= below {
                return None;
            }
            let (memory, passes) = test(*node);
            if passes {
                return Some(*node);
            }
            most = most.max(memory);
        }
        self.most_memory.set(most);
        None
    }
}

type Key = (u32, u32);

#[derive(Clone, Debug, Default)]
struct OfKind {
    /// Nodes without free devices, by free CPUs.
    plain: BTreeMap<Key, Bucket>,
    /// The others, by free CPUs and devices.
    laden: BTreeMap<Key, Bucket>,
}

impl OfKind {
    fn map(&mut self, key: Key) -> &mut BTreeMap<Key, Bucket> {
        if key.1 == 0 { &mut self.plain } else { &mut self.laden }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Vacancy {
    kinds: Vec<OfKind>,
    /// By node: where it lies.
    place: Vec<Option<Key>>,
}

impl Vacancy {
    pub fn new(cluster: &Cluster) -> Vacancy {
        Vacancy { kinds: vec![OfKind::default(); cluster.kinds.all.len()], place: vec![None; cluster.nodes.len()] }
    }

    /// The node has this much free; None: it takes nobody.
    pub fn set(&mut self, node: u32, kind: u32, free: Option<(u32, u32, i64)>) {
        let new = free.filter(|f| f.0 > 0).map(|(cpus, devices, _)| (cpus, devices));
        let old = self.place[node as usize];
        let kind = &mut self.kinds[kind as usize];
        if old != new
            && let Some(key) = old
            && let Some(bucket) = kind.map(key).get_mut(&key)
        {
            bucket.nodes.remove(&node);
            if bucket.nodes.is_empty() {
                kind.map(key).remove(&key);
            }
        }
        if let (Some(key), Some((_, _, memory))) = (new, free) {
            let bucket = kind.map(key).entry(key).or_default();
            if old != new {
                if bucket.nodes.is_empty() {
                    bucket.most_memory.set(i64::MIN);
                }
                bucket.nodes.insert(node);
            }
            bucket.most_memory.set(bucket.most_memory.get().max(memory));
        }
        self.place[node as usize] = new;
    }

    /// Buckets in which a share may fit, of these kinds (of one weight), level by level: (may spoil, free CPUs) ascending.
    pub fn levels<'a>(&'a self, cluster: &'a Cluster, kinds: &'a [u32], need: Need) -> Levels<'a> {
        let mut levels =
            Levels { vacancy: self, cluster, kinds, need, laden: false, ranges: Vec::new(), heap: BinaryHeap::new() };
        levels.open(!need.plain);
        levels
    }
}

pub(crate) struct Levels<'a> {
    vacancy: &'a Vacancy,
    cluster: &'a Cluster,
    kinds: &'a [u32],
    need: Need,
    laden: bool,
    ranges: Vec<btree_map::Range<'a, Key, Bucket>>,
    heap: BinaryHeap<(Reverse<Key>, u32)>,
}

/// A bucket as it stands on the heap is fetched again from its map: cheap beside what is done with it.
impl<'a> Levels<'a> {
    fn open(&mut self, laden: bool) {
        self.laden = laden;
        self.ranges.clear();
        self.heap.clear();
        for kind in self.kinds {
            let of = &self.vacancy.kinds[*kind as usize];
            let cpus = if self.need.whole { self.cluster.example(*kind).cpus } else { self.need.cpus };
            let map = if laden { &of.laden } else { &of.plain };
            self.ranges.push(map.range((cpus, 0)..));
            self.advance(self.ranges.len() - 1);
        }
    }

    fn advance(&mut self, range: usize) {
        if let Some((key, _)) = self.ranges[range].next() {
            self.heap.push((Reverse(*key), range as u32));
        }
    }

    /// Fills `level` with the buckets of the next number of free CPUs. False at the end.
    pub fn next(&mut self, level: &mut Vec<&'a Bucket>) -> bool {
        level.clear();
        loop {
            let Some((Reverse((cpus, _)), _)) = self.heap.peek().copied() else {
                if self.laden {
                    return false;
                }
                self.open(true);
                continue;
            };
            while let Some((Reverse(key), range)) = self.heap.peek().copied().filter(|h| h.0.0.0 == cpus) {
                self.heap.pop();
                let of = &self.vacancy.kinds[self.kinds[range as usize] as usize];
                let map = if self.laden { &of.laden } else { &of.plain };
                if key.1 >= self.need.devices
                    && let Some(bucket) = map.get(&key)
                    && bucket.most_memory.get() >= self.need.memory
                {
                    level.push(bucket);
                }
                self.advance(range as usize);
            }
            if !level.is_empty() {
                return true;
            }
        }
    }
}
