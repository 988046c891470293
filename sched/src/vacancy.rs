//! Which nodes have something free, in the order in which they are taken.
//!
//! Owns an index of nodes by what they have free now, planned starts left out. Promises to show every node on which a
//! share could be placed, in the order of `placement::Rank`, then by position. What it shows may still not fit: the caller
//! asks `placement`.
//!
//! Nodes of one kind lie in buckets of equal free devices and CPUs; each bucket knows a bound on the memory that one of
//! its nodes has free, so that those that can't have enough are passed over as a whole.

use crate::cluster::Cluster;
use crate::placement::Rank;
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

/// Free devices and CPUs.
type Key = (u32, u32);

/// By free devices, then by free CPUs.
type OfKind = BTreeMap<u32, BTreeMap<u32, Bucket>>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Vacancy {
    kinds: Vec<OfKind>,
    /// By node: where it lies.
    place: Vec<Option<Key>>,
}

impl Vacancy {
    pub fn new(cluster: &Cluster) -> Vacancy {
        Vacancy { kinds: vec![OfKind::new(); cluster.kinds.all.len()], place: vec![None; cluster.nodes.len()] }
    }

    /// The node has this much free (CPUs, devices, MiB); None: it takes nobody.
    pub fn set(&mut self, node: u32, kind: u32, free: Option<(u32, u32, i64)>) {
        let new = free.filter(|f| f.0 > 0).map(|(cpus, devices, _)| (devices, cpus));
        let old = self.place[node as usize];
        let kind = &mut self.kinds[kind as usize];
        if old != new
            && let Some((devices, cpus)) = old
            && let Some(by_cpus) = kind.get_mut(&devices)
            && let Some(bucket) = by_cpus.get_mut(&cpus)
        {
            bucket.nodes.remove(&node);
            if bucket.nodes.is_empty() {
                by_cpus.remove(&cpus);
                if by_cpus.is_empty() {
                    kind.remove(&devices);
                }
            }
        }
        if let (Some((devices, cpus)), Some((_, _, memory))) = (new, free) {
            let bucket = kind.entry(devices).or_default().entry(cpus).or_default();
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

    /// Buckets in which a share may fit, of these kinds (of one weight), level by level: those of equal rank together.
    pub fn levels<'a>(&'a self, cluster: &'a Cluster, kinds: &'a [u32], need: Need, rank: Rank) -> Levels<'a> {
        let mut levels = Levels { need, rank, ranges: Vec::new(), heap: BinaryHeap::new() };
        for kind in kinds {
            let cpus = if need.whole { cluster.example(*kind).cpus } else { need.cpus };
            for (devices, by_cpus) in self.kinds[*kind as usize].range(need.devices..) {
                levels.ranges.push((*devices, by_cpus.range(cpus..)));
                levels.advance(levels.ranges.len() - 1);
            }
        }
        levels
    }
}

pub(crate) struct Levels<'a> {
    need: Need,
    rank: Rank,
    /// Free devices, and the buckets with so many.
    ranges: Vec<(u32, btree_map::Range<'a, u32, Bucket>)>,
    heap: BinaryHeap<Reverse<Waiting<'a>>>,
}

/// The next bucket of a range.
struct Waiting<'a> {
    level: (u32, u32),
    range: usize,
    bucket: &'a Bucket,
}

impl Ord for Waiting<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.level, self.range).cmp(&(other.level, other.range))
    }
}
impl PartialOrd for Waiting<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting<'_> {}

impl<'a> Levels<'a> {
    fn advance(&mut self, range: usize) {
        let (devices, buckets) = &mut self.ranges[range];
        let next = if self.rank.descends() { buckets.next_back() } else { buckets.next() };
        if let Some((cpus, bucket)) = next {
            let level = self.rank.level(*devices, *cpus);
            self.heap.push(Reverse(Waiting { level, range, bucket }));
        }
    }

    /// Fills `level` with the buckets of the next rank. False at the end.
    pub fn next(&mut self, level: &mut Vec<&'a Bucket>) -> bool {
        level.clear();
        while level.is_empty() {
            let Some(Reverse(first)) = self.heap.peek() else { return false };
            let present = first.level;
            while let Some(Reverse(waiting)) = self.heap.peek().filter(|w| w.0.level == present) {
                let (range, bucket) = (waiting.range, waiting.bucket);
                self.heap.pop();
                if bucket.most_memory.get() >= self.need.memory {
                    level.push(bucket);
                }
                self.advance(range);
            }
        }
        true
    }
}
