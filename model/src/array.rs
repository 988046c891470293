//! `--array=0-15:4%3`: which indices, and how many may run at once.

use crate::error::{ParseError, digits};
use crate::index_set::IndexSet;
use crate::job::ArraySpec;
use std::fmt;

/// Indices must be below `max_array_size`. A limit of 0 means none, as in `scontrol update ArrayTaskThrottle=0`.
pub fn parse_array(text: &str, max_array_size: u32) -> Result<ArraySpec, ParseError> {
    let named = |e: ParseError| ParseError { what: "array".into(), value: ParseError::new("", text, "").value, ..e };
    let (list, limit) = match text.split_once('%') {
        Some((list, n)) => {
            let n = digits(n, u64::from(u32::MAX))
                .ok_or_else(|| ParseError::new("array", text, "after % comes how many tasks may run at once"))?;
            (list, Some(n as u32).filter(|n| *n > 0))
        }
        None => (text, None),
    };
    // Some clients write the brackets of squeue's form.
    let list = list.strip_prefix('[').and_then(|l| l.strip_suffix(']')).unwrap_or(list);
    let (indices, step) = IndexSet::parse(list, max_array_size).map_err(named)?;
    Ok(ArraySpec { indices, throttle: limit, step })
}

/// `0-15:4%3`, as `parse_array` reads it.
impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.indices)?;
        self.throttle.map_or(Ok(()), |n| write!(f, "%{n}"))
    }
}
