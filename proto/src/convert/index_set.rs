//! Index sets: ranges with a stride.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use sluice_model::index_set::IndexSet;

impl From<&IndexSet> for v1::IndexSet {
    fn from(set: &IndexSet) -> Self {
        let ranges = set.ranges().map(|(first, last, step)| v1::IndexRange { first, last, step }).collect();
        v1::IndexSet { ranges }
    }
}

impl TryFrom<v1::IndexSet> for IndexSet {
    type Error = ConvertError;
    /// Ranges must be ascending and apart, so that a message costs no more than its own length.
    fn try_from(message: v1::IndexSet) -> Result<Self, ConvertError> {
        scalar::check_len(message.ranges.len(), "ranges", limits::RANGES, "items")?;
        IndexSet::from_ranges(message.ranges.iter().map(|r| (r.first, r.last, r.step)))
            .ok_or_else(|| ConvertError::new("ranges", "are not ascending ranges that lie apart"))
    }
}
