//! Ordered sets of small numbers: cores, GPUs, array indices. Printed as `0-3,7`, with steps as `0-12:4`.
//!
//! Kept as sorted, disjoint, inclusive ranges with a stride, so that a million-task array is one range.

/// A set of `u32`. Cheap to clone when it has few ranges.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct IndexSet {
    ranges: Vec<(u32, u32)>,
}

impl IndexSet {
    pub fn new() -> Self {
        IndexSet::default()
    }
    /// How many indices.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(a, b)| u64::from(b - a) + 1).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}
