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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_steps_and_limits_are_read_and_printed() {
        for (text, same, n) in [
            ("0-15", "0-15", 16),
            ("0,6,16-32", "0,6,16-32", 19),
            ("0-15:4", "0-12:4", 4),
            ("0-15%4", "0-15%4", 16),
            ("[1-4,7]%2", "1-4,7%2", 5),
            ("3,3,3", "3", 1),
            ("5%0", "5", 1),
        ] {
            let a = parse_array(text, 1001).unwrap();
            assert_eq!((a.to_string().as_str(), a.indices.len()), (same, n), "{text}");
        }
        assert_eq!(parse_array("0-15:4", 1001).unwrap().step, 4);
        assert_eq!(parse_array("0-15", 1001).unwrap().step, 1);
    }

    #[test]
    fn the_largest_array_is_read_at_once() {
        let a = parse_array("0-4000000", 4_000_001).unwrap();
        assert_eq!(a.indices.ranges().count(), 1);
        assert!(parse_array("0-4000001", 4_000_001).unwrap_err().allowed.contains("below 4000001"));
    }

    #[test]
    fn overflows_and_nonsense_are_refused_and_name_the_value() {
        let long = "1;".repeat(50_000);
        for bad in [
            "",
            "-1",
            "1e9",
            "0-99999999999",
            "0-99999999999999999999999",
            "5-1",
            "1-",
            "1-5:",
            "1-5:0",
            "a",
            "1%",
            "1%-2",
            "%5",
            ",",
            "1%99999999999",
            "0-3:99999999999",
            "1;2",
            &long,
            &"0-4000000:2,".repeat(9),
        ] {
            let e = parse_array(bad, 4_000_001).expect_err(bad);
            assert_eq!(e.what, "array");
            assert!(e.value.is_empty() == bad.is_empty());
        }
    }
}
