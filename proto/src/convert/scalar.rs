//! Single values: names, byte strings, times, ids, states. Each checks its limit and names the field.

use super::error::{ConvertError, Within};
use super::limits;
use crate::v1;
use prost::bytes::Bytes;
use sluice_model::state::ExitStatus;
use sluice_model::{BlobId, JobId, JobState, NodeName, OsBytes, SubmissionKey, Time, TimeLimit};

type Result<T> = std::result::Result<T, ConvertError>;

/// The wire form of a byte string.
pub fn to_bytes(value: &OsBytes) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// At most `max` bytes of any content.
pub fn os_bytes(value: Bytes, field: &str, max: usize) -> Result<OsBytes> {
    check_len(value.len(), field, max, "bytes")?;
    Ok(OsBytes::new(value))
}

/// At most `max` bytes of text.
pub fn text(value: String, field: &str, max: usize) -> Result<String> {
    check_len(value.len(), field, max, "bytes")?;
    Ok(value)
}

/// A name, an account, a partition …
pub(super) fn word(value: String, field: &str) -> Result<String> {
    text(value, field, limits::WORD)
}

/// A word that must not be empty.
pub(super) fn name(value: String, field: &str) -> Result<String> {
    if value.is_empty() {
        return Err(ConvertError::new(field, "is empty"));
    }
    word(value, field)
}

pub(super) fn check_len(len: usize, field: &str, max: usize, unit: &str) -> Result<()> {
    if len > max {
        return Err(ConvertError::new(field, format!("has {len} {unit}; at most {max} are allowed")));
    }
    Ok(())
}

/// MiB, or how many of something.
pub(super) fn quantity(value: u64, field: &str) -> Result<u64> {
    if value > limits::QUANTITY {
        return Err(ConvertError::new(field, format!("is {value}; at most {} is allowed", limits::QUANTITY)));
    }
    Ok(value)
}

/// A node's name: letters, digits, `.`, `_` and `-`, so that it can stand in paths, host lists and certificates.
pub fn node_name(value: &str, field: &str) -> Result<NodeName> {
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if value.is_empty() || value.len() > limits::NODE_NAME || value.starts_with('.') || !value.bytes().all(fine) {
        let shown: String = value.chars().take(80).collect();
        return Err(ConvertError::new(field, format!("{shown:?} is not a node name")));
    }
    Ok(NodeName::new(value))
}

pub fn node_names(values: Vec<String>, field: &str) -> Result<Vec<NodeName>> {
    check_len(values.len(), field, limits::NODES, "names")?;
    values.iter().map(|v| node_name(v, field)).collect()
}

/// Sixteen bytes.
pub fn submit_key(value: &[u8], field: &str) -> Result<SubmissionKey> {
    let key = value.try_into().map_err(|_| ConvertError::new(field, format!("has {} bytes, not 16", value.len())));
    key.map(SubmissionKey)
}

/// Never 0.
pub fn job_id(value: u32, field: &str) -> Result<JobId> {
    match value {
        0 => Err(ConvertError::new(field, "is 0, which is no job id")),
        n => Ok(JobId(n)),
    }
}

/// Milliseconds from 1970 to the end of the year 9999.
pub fn time(value: i64, field: &str) -> Result<Time> {
    if !(0..=limits::LAST_TIME).contains(&value) {
        return Err(ConvertError::new(field, format!("is {value}; not between 1970 and 9999")));
    }
    Ok(Time(value))
}

/// A state's long name, exactly.
pub fn job_state(value: &str, field: &str) -> Result<JobState> {
    JobState::ALL.into_iter().find(|s| s.long() == value).ok_or_else(|| {
        let shown: String = value.chars().take(40).collect();
        ConvertError::new(field, format!("{shown:?} is not a job state"))
    })
}

pub(super) fn blob_id(value: &[u8], field: &str) -> Result<BlobId> {
    let digest: [u8; 32] =
        value.try_into().map_err(|_| ConvertError::new(field, format!("has {} bytes, not 32", value.len())))?;
    Ok(BlobId(digest))
}

/// Converts the message in an optional field; absent stays absent.
pub(super) fn optional<M, T>(value: Option<M>, field: &str) -> Result<Option<T>>
where
    T: TryFrom<M, Error = ConvertError>,
{
    value.map(T::try_from).transpose().within(field)
}

/// Converts the message in a field that must be set.
pub(super) fn required<M, T>(value: Option<M>, field: &str) -> Result<T>
where
    T: TryFrom<M, Error = ConvertError>,
{
    value.ok_or_else(|| ConvertError::missing(field)).and_then(|m| T::try_from(m).within(field))
}

/// Converts a list of at most `max` messages.
pub(super) fn list<M, T>(values: Vec<M>, field: &str, max: usize) -> Result<Vec<T>>
where
    T: TryFrom<M, Error = ConvertError>,
{
    check_len(values.len(), field, max, "items")?;
    values.into_iter().enumerate().map(|(i, m)| T::try_from(m).within(&format!("{field}[{i}]"))).collect()
}

impl From<&TimeLimit> for v1::TimeLimit {
    fn from(limit: &TimeLimit) -> Self {
        use v1::time_limit::Kind;
        let kind = match *limit {
            TimeLimit::Minutes(m) => Kind::Minutes(m),
            TimeLimit::Unlimited => Kind::Unlimited(true),
        };
        v1::TimeLimit { kind: Some(kind) }
    }
}

impl TryFrom<v1::TimeLimit> for TimeLimit {
    type Error = ConvertError;
    fn try_from(message: v1::TimeLimit) -> Result<Self> {
        use v1::time_limit::Kind;
        match message.kind {
            Some(Kind::Minutes(m)) => Ok(TimeLimit::Minutes(m)),
            Some(Kind::Unlimited(true)) => Ok(TimeLimit::Unlimited),
            Some(Kind::Unlimited(false)) | None => Err(ConvertError::new("", "holds no time limit")),
        }
    }
}

impl From<&ExitStatus> for v1::ExitStatus {
    fn from(exit: &ExitStatus) -> Self {
        v1::ExitStatus { code: u32::from(exit.code), signal: u32::from(exit.signal) }
    }
}

impl TryFrom<v1::ExitStatus> for ExitStatus {
    type Error = ConvertError;
    fn try_from(message: v1::ExitStatus) -> Result<Self> {
        let part = |value: u32, field: &str| {
            u8::try_from(value).map_err(|_| ConvertError::new(field, format!("is {value}, not between 0 and 255")))
        };
        Ok(ExitStatus { code: part(message.code, "code")?, signal: part(message.signal, "signal")? })
    }
}
