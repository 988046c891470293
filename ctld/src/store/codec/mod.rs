//! Between engine values and what lies on disk (proto/disk.proto).
//!
//! Owns both directions for every event, job, node, partition and configuration; shared messages come from
//! `sluice_proto::convert`. Values are taken apart field by field, without `..`, so that a field added to an engine type
//! does not compile until it is kept. Promises that decoding gives back an equal value, and that a record of an older
//! release decodes: a field that is not there is read as what was true before the field existed.

mod change;
mod config;
mod event;
mod habits;
mod job;
mod node;
mod usage;

pub use event::{decode_record, encode_record};
pub use job::{job_from_disk, job_to_disk};
pub use node::{node_from_disk, node_to_disk, partition_from_disk, partition_to_disk};

pub use habits::{habits_from_disk, habits_to_disk};
pub use usage::{usage_from_disk, usage_to_disk};

pub(super) use config::{config_from_disk, config_to_disk};
pub use sluice_proto::convert::ConvertError;

use sluice_model::index_set::IndexSet;
use sluice_model::{NodeName, Time};
use sluice_proto::v1;

type Result<T> = std::result::Result<T, ConvertError>;

fn missing(field: &str) -> ConvertError {
    ConvertError::missing(field)
}

/// The message of a field that every record has.
fn required<M>(value: Option<M>, field: &str) -> Result<M> {
    value.ok_or_else(|| missing(field))
}

/// Converts a shared message that every record has.
fn convert<M, T>(value: Option<M>, field: &str) -> Result<T>
where
    T: TryFrom<M, Error = ConvertError>,
{
    required(value, field).and_then(|m| T::try_from(m).map_err(|e| e.within(field)))
}

fn convert_optional<M, T>(value: Option<M>, field: &str) -> Result<Option<T>>
where
    T: TryFrom<M, Error = ConvertError>,
{
    value.map(T::try_from).transpose().map_err(|e| e.within(field))
}

fn convert_list<M, T>(values: Vec<M>, field: &str) -> Result<Vec<T>>
where
    T: TryFrom<M, Error = ConvertError>,
{
    values.into_iter().map(T::try_from).collect::<Result<_>>().map_err(|e| e.within(field))
}

/// Index sets on disk have no limit on their ranges: an array may be full of holes.
fn index_set_from_disk(value: Option<v1::IndexSet>, field: &str) -> Result<IndexSet> {
    let ranges = required(value, field)?.ranges;
    IndexSet::from_ranges(ranges.into_iter().map(|r| (r.first, r.last, r.step)))
        .ok_or_else(|| ConvertError::new(field, "is not a list of ascending ranges that lie apart"))
}

fn names_to_disk<'a>(names: impl IntoIterator<Item = &'a NodeName>) -> Vec<String> {
    names.into_iter().map(|n| n.as_str().to_owned()).collect()
}

fn names_from_disk<C: FromIterator<NodeName>>(names: Vec<String>) -> C {
    names.into_iter().map(NodeName::new).collect()
}

fn time_to_disk(time: Option<Time>) -> Option<i64> {
    time.map(|t| t.0)
}
