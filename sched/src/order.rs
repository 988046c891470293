//! The queue: which job is looked at first.
//!
//! Owns the order: partition tier (higher first), priority (higher first), submit time, job id; a job with several
//! partitions stands in the queue once for each. Promises a total order, so that the order of arrival of news does not
//! matter; and that to find the next job shorter than a bound costs far less than to look at all.

use crate::input::{PartitionView, PendingJob};
use sluice_model::JobId;
use sluice_model::partition::PartitionState;

/// A job in one of its partitions. Ordered as the queue is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Key {
    /// Tier and priority, both inverted: smaller is earlier.
    rank: u64,
    submitted: i64,
    /// Job id, then place in the job's list of partitions.
    id: u64,
}

impl Key {
    pub fn new(view: &PartitionView, job: &PendingJob, slot: usize) -> Key {
        Key {
            rank: (u64::from(!view.priority_tier) << 32) | u64::from(!job.priority),
            submitted: job.submitted.0,
            id: (u64::from(job.job.0) << 32) | slot as u64,
        }
    }
    /// Smaller is earlier.
    pub fn tier(self) -> u32 {
        (self.rank >> 32) as u32
    }
    pub fn priority(self) -> u32 {
        !(self.rank as u32)
    }
    pub fn job(self) -> JobId {
        JobId((self.id >> 32) as u32)
    }
    pub fn slot(self) -> u32 {
        self.id as u32
    }
}

/// DRAIN takes no new jobs, but starts those queued.
pub(crate) fn starts_jobs(state: PartitionState) -> bool {
    matches!(state, PartitionState::Up | PartitionState::Drain)
}

const CHUNK: usize = 128;

/// Keys in order, each with the shortest time (ms) for which its job could be started. Chunks of a sorted list: small in
/// memory, quick to walk.
#[derive(Clone, Debug)]
pub(crate) struct Queue<K> {
    chunks: Vec<Chunk<K>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Chunk<K> {
    /// The shortest of all.
    least: i64,
    items: Vec<(K, i64)>,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        Queue { chunks: Vec::new(), len: 0 }
    }
}

impl<K: Ord + Copy> Chunk<K> {
    fn of(items: Vec<(K, i64)>) -> Chunk<K> {
        let least = items.iter().map(|i| i.1).min().unwrap_or(i64::MAX);
        Chunk { least, items }
    }
}

impl<K: Ord + Copy> Queue<K> {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The chunk in which the key lies or would lie.
    fn chunk_of(&self, key: &K) -> usize {
        self.chunks.partition_point(|c| c.items.last().is_some_and(|l| l.0 < *key)).min(self.chunks.len().max(1) - 1)
    }

    /// Keys are put in once.
    pub fn insert(&mut self, key: K, least: i64) {
        self.len += 1;
        let at = self.chunk_of(&key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Chunk::of(vec![(key, least)]));
            return;
        };
        let place = chunk.items.partition_point(|i| i.0 < key);
        chunk.items.insert(place, (key, least));
        chunk.least = chunk.least.min(least);
        if chunk.items.len() > CHUNK {
            // At the end new ones come one after the other: leave that chunk full.
            let cut = if place + 1 == chunk.items.len() { CHUNK - 1 } else { CHUNK / 2 };
            let tail = Chunk::of(chunk.items.split_off(cut));
            let head = std::mem::take(&mut chunk.items);
            *chunk = Chunk::of(head);
            self.chunks.insert(at + 1, tail);
        }
    }

    pub fn remove(&mut self, key: &K) -> bool {
        let at = self.chunk_of(key);
        let Some(chunk) = self.chunks.get_mut(at) else { return false };
        let Ok(place) = chunk.items.binary_search_by(|i| i.0.cmp(key)) else { return false };
        let (_, least) = chunk.items.remove(place);
        self.len -= 1;
        if chunk.items.is_empty() {
            self.chunks.remove(at);
        } else if least == chunk.least {
            chunk.least = chunk.items.iter().map(|i| i.1).min().unwrap_or(i64::MAX);
        }
        true
    }

    pub fn first(&self) -> Option<K> {
        self.chunks.first()?.items.first().map(|i| i.0)
    }

    /// The first after `after` (or at it, if `inclusive`) whose shortest time lies below `below` (any without).
    pub fn next(&self, after: K, inclusive: bool, below: Option<i64>) -> Option<K> {
        let first = self.chunk_of(&after);
        let passes = |least: i64| below.is_none_or(|b| least < b);
        self.chunks.get(first..)?.iter().filter(|c| passes(c.least)).find_map(|c| {
            let from = c.items.partition_point(|i| i.0 < after || (!inclusive && i.0 == after));
            c.items[from..].iter().find(|i| passes(i.1)).map(|i| i.0)
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, i64)> + '_ {
        self.chunks.iter().flat_map(|c| c.items.iter().copied())
    }
}
