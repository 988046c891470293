//! Which devices of those that are free.
//!
//! Owns the comparison of sets of devices: most links between them (NVLink, as the node's `links=` says), then near the
//! fewest groups of cores, then enough free cores near them, then most links among those that stay free, then the lowest
//! numbers. Promises the best set as long as there are few; of more than `MOST_SETS` it adds the best device one by one.

use sluice_model::index_set::IndexSet;
use sluice_model::node::GresSpec;

const MOST_SETS: u64 = 15_000;

/// One GRES entry of a node.
pub(super) struct Around<'a> {
    pub spec: &'a GresSpec,
    /// The number of its first device.
    pub first: u64,
    /// CPUs that are free.
    pub cpus: &'a IndexSet,
    /// CPUs that the job wants on this node.
    pub wanted: u64,
    /// Enough of them must be near the devices.
    pub strict: bool,
}

/// Higher is better.
type Quality = (u64, i64, u64, u64);

impl Around<'_> {
    /// None when so many are not free (or, if `strict`, none with cores enough).
    pub fn choose(&self, free: &IndexSet, count: u64) -> Option<IndexSet> {
        if free.len() < count {
            return None;
        }
        let indifferent = self.spec.links.is_empty() && self.spec.cores.is_empty();
        if indifferent || count == 0 || free.len() == count && !self.strict {
            return Some(free.take(count));
        }
        let all: Vec<u64> = free.iter().map(|d| u64::from(d).saturating_sub(self.first)).collect();
        let wanted = usize::try_from(count).ok()?;
        let best =
            if sets(all.len() as u64, count) <= MOST_SETS { self.best(&all, wanted) } else { self.grown(&all, wanted) };
        let numbers = best?.into_iter().filter_map(|d| u32::try_from(d + self.first).ok());
        Some(numbers.collect())
    }

    fn best(&self, all: &[u64], wanted: usize) -> Option<Vec<u64>> {
        let mut best: Option<(Quality, Vec<u64>)> = None;
        let mut places: Vec<usize> = (0..wanted).collect();
        loop {
            let set: Vec<u64> = places.iter().map(|p| all[*p]).collect();
            if let Some(quality) = self.quality(&set, all)
                && best.as_ref().is_none_or(|(b, _)| quality > *b)
            {
                best = Some((quality, set));
            }
            // The next set in the order of their numbers.
            let Some(at) = (0..wanted).rev().find(|at| places[*at] < all.len() - wanted + at) else { break };
            places[at] += 1;
            (at + 1..wanted).for_each(|later| places[later] = places[later - 1] + 1);
        }
        best.map(|(_, set)| set)
    }

    /// Begins with each device in turn and adds the one that makes the best set.
    fn grown(&self, all: &[u64], wanted: usize) -> Option<Vec<u64>> {
        let grow = |first: u64| {
            let mut set = vec![first];
            while set.len() < wanted {
                let with = |d: u64| set.iter().copied().chain([d]).collect::<Vec<u64>>();
                let open = all.iter().copied().filter(|d| !set.contains(d));
                let next = open.rev().max_by_key(|d| self.rate(&with(*d), &[]))?;
                set.push(next);
            }
            set.sort_unstable();
            Some((self.quality(&set, all)?, set))
        };
        all.iter().rev().filter_map(|first| grow(*first)).max_by_key(|(quality, _)| *quality).map(|(_, set)| set)
    }

    fn quality(&self, set: &[u64], all: &[u64]) -> Option<Quality> {
        let quality = self.rate(set, all);
        (!self.strict || self.spec.cores.is_empty() || quality.2 >= self.wanted).then_some(quality)
    }

    fn rate(&self, set: &[u64], all: &[u64]) -> Quality {
        let mut groups: Vec<&IndexSet> = set.iter().filter_map(|d| self.spec.cores_of(*d)).collect();
        groups.sort_unstable_by_key(|g| std::ptr::from_ref(*g));
        groups.dedup_by_key(|g| std::ptr::from_ref(*g));
        let near = groups.iter().fold(IndexSet::new(), |near, g| near.union(g));
        let cpus = self.cpus.intersection(&near).len().min(self.wanted);
        let rest: Vec<u64> = all.iter().copied().filter(|d| !set.contains(d)).collect();
        (self.links(set), -(groups.len() as i64), cpus, self.links(&rest))
    }

    fn links(&self, set: &[u64]) -> u64 {
        let pairs = set.iter().enumerate().flat_map(|(i, a)| set[..i].iter().map(move |b| (*a, *b)));
        pairs.map(|(a, b)| u64::from(self.spec.links_between(a, b))).sum()
    }
}

/// How many sets of so many there are; saturates.
fn sets(of: u64, many: u64) -> u64 {
    let many = many.min(of - many.min(of));
    (1..=many).try_fold(1u64, |n, i| n.checked_mul(of - many + i).map(|n| n / i)).unwrap_or(u64::MAX)
}
