//! Ordered sets of small numbers: cores, GPUs, array indices. Printed as `0-3,7`, with steps as `0-12:4`.
//!
//! Kept as runs (first, last, step), so that a million-task array is one run and taking its first index is O(1). The
//! form is canonical (a function of the members alone), so derived equality and hashing are those of sets: from the
//! left, neighbours one apart make a run, and so do three or more members at equal distance.
//! Set operations cost O(runs), plus the members of stretches where runs with different steps interleave.

mod build;
mod text;

use build::Builder;
pub use text::Plain;

/// Members `first, first+step, …, last`; a single member has step 1. `last` is always a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Run {
    first: u32,
    last: u32,
    step: u32,
}

impl Run {
    fn single(n: u32) -> Run {
        Run { first: n, last: n, step: 1 }
    }
    fn len(self) -> u64 {
        u64::from((self.last - self.first) / self.step) + 1
    }
    /// The members from the second on.
    fn rest(self) -> Option<Run> {
        (self.first < self.last).then(|| Run { first: self.first + self.step, ..self }.tidy())
    }
    /// Split into the members below `at` and the others. `at` lies above the first.
    fn split(self, at: u32) -> (Run, Option<Run>) {
        if at > self.last {
            return (self, None);
        }
        let below = (at - 1 - self.first) / self.step;
        let last = self.first + below * self.step;
        (Run { last, ..self }.tidy(), Some(Run { first: last + self.step, ..self }.tidy()))
    }
    fn tidy(self) -> Run {
        if self.first == self.last { Run::single(self.first) } else { self }
    }
}

/// A set of `u32`. Cheap to clone when it has few runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IndexSet {
    runs: Vec<Run>,
}

impl IndexSet {
    pub fn new() -> Self {
        IndexSet::default()
    }
    pub fn single(n: u32) -> Self {
        IndexSet { runs: vec![Run::single(n)] }
    }
    /// `first` to `last`, both included; empty when `last < first`.
    pub fn range(first: u32, last: u32) -> Self {
        IndexSet::range_step(first, last, 1)
    }
    /// `first, first+step, …` up to `last`; empty when `last < first`. A step of 0 counts as 1.
    pub fn range_step(first: u32, last: u32, step: u32) -> Self {
        if last < first {
            return IndexSet::new();
        }
        let step = step.max(1);
        let mut b = Builder::default();
        b.push_run(Run { first, last: last - (last - first) % step, step }.tidy());
        b.finish()
    }
    /// The inverse of `ranges()`: runs in ascending order that do not overlap. None for anything else (a last that is
    /// not reached, a zero step, disorder), so that what comes over the wire costs no more than its own length.
    pub fn from_ranges(ranges: impl IntoIterator<Item = (u32, u32, u32)>) -> Option<Self> {
        let mut b = Builder::default();
        let mut end: Option<u32> = None;
        for (first, last, step) in ranges {
            let step = step.max(u32::from(first == last));
            if last < first || step == 0 || (last - first) % step != 0 || end.is_some_and(|e| e >= first) {
                return None;
            }
            b.push_run(Run { first, last, step }.tidy());
            end = Some(last);
        }
        Some(b.finish())
    }

    /// How many members.
    pub fn len(&self) -> u64 {
        self.runs.iter().map(|r| r.len()).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    pub fn first(&self) -> Option<u32> {
        self.runs.first().map(|r| r.first)
    }
    pub fn last(&self) -> Option<u32> {
        self.runs.last().map(|r| r.last)
    }
    pub fn contains(&self, n: u32) -> bool {
        let at = self.runs.partition_point(|r| r.first <= n);
        at.checked_sub(1).is_some_and(|i| {
            let r = self.runs[i];
            n <= r.last && (n - r.first).is_multiple_of(r.step)
        })
    }

    /// True when it was not there before. O(1) above the last member.
    pub fn insert(&mut self, n: u32) -> bool {
        if self.last().is_none_or(|l| n > l) {
            let mut b = Builder::resume(std::mem::take(&mut self.runs));
            b.push(n);
            *self = b.finish();
            return true;
        }
        if self.contains(n) {
            return false;
        }
        *self = self.union(&IndexSet::single(n));
        true
    }
    /// True when it was there. O(1) for the first member of a long run at the front.
    pub fn remove(&mut self, n: u32) -> bool {
        if let Some(r) = self.runs.first_mut()
            && r.first == n
            && r.len() > 3
        {
            r.first += r.step;
            return true;
        }
        if !self.contains(n) {
            return false;
        }
        *self = self.difference(&IndexSet::single(n));
        true
    }
    /// Takes the smallest member out.
    pub fn pop_first(&mut self) -> Option<u32> {
        let n = self.first()?;
        self.remove(n);
        Some(n)
    }
    /// The `n` smallest members (all of them when there are fewer).
    pub fn take(&self, n: u64) -> IndexSet {
        let mut b = Builder::default();
        let mut left = n;
        for r in &self.runs {
            if left == 0 {
                break;
            }
            let k = left.min(r.len());
            // k − 1 < the run's length, which fits u32 arithmetic below `last`.
            b.push_run(Run { last: r.first + (k - 1) as u32 * r.step, ..*r }.tidy());
            left -= k;
        }
        b.finish()
    }

    pub fn union(&self, other: &IndexSet) -> IndexSet {
        build::combine(&self.runs, &other.runs, |a, b| a || b)
    }
    pub fn intersection(&self, other: &IndexSet) -> IndexSet {
        build::combine(&self.runs, &other.runs, |a, b| a && b)
    }
    /// Members of `self` that `other` lacks.
    pub fn difference(&self, other: &IndexSet) -> IndexSet {
        build::combine(&self.runs, &other.runs, |a, b| a && !b)
    }
    pub fn is_subset(&self, other: &IndexSet) -> bool {
        self.difference(other).is_empty()
    }
    pub fn is_disjoint(&self, other: &IndexSet) -> bool {
        self.intersection(other).is_empty()
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.runs.iter().flat_map(|r| (0..r.len()).map(move |i| r.first + i as u32 * r.step))
    }
    /// The runs as (first, last, step), ascending; a single member is (n, n, 1).
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.runs.iter().map(|r| (r.first, r.last, r.step))
    }
}

impl FromIterator<u32> for IndexSet {
    fn from_iter<I: IntoIterator<Item = u32>>(iter: I) -> Self {
        let mut all: Vec<u32> = iter.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        let mut b = Builder::default();
        all.into_iter().for_each(|n| b.push(n));
        b.finish()
    }
}

impl Extend<u32> for IndexSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, iter: I) {
        *self = self.union(&iter.into_iter().collect());
    }
}

#[cfg(test)]
mod tests;
