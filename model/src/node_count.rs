//! `--nodes=min[-max]`.

use crate::error::{ParseError, digits};
use crate::request::NodeCount;
use std::fmt;

const ALLOWED: &str = "min or min-max, at least 1 (k and m multiply by 1,024 and 1,048,576)";

/// `2` (min and max), `2-4`, `1k`.
pub fn parse(text: &str) -> Result<NodeCount, ParseError> {
    let fail = |allowed: &str| ParseError::new("node count", text, allowed);
    if text.contains(',') || text.contains(':') {
        return Err(fail("lists and steps of node counts are not supported; give min or min-max"));
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (min, max) = (number(low), number(high));
    let (Some(min), Some(max)) = (min, max) else { return Err(fail(ALLOWED)) };
    if max < min {
        return Err(fail("the maximum is smaller than the minimum"));
    }
    Ok(NodeCount { min, max: Some(max) })
}

fn number(text: &str) -> Option<u32> {
    let (number, scale) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let n = digits(number, u64::from(u32::MAX))?.checked_mul(scale)?;
    u32::try_from(n).ok().filter(|n| *n > 0)
}

/// `2`, `2-4`.
impl fmt::Display for NodeCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max != self.min => write!(f, "{}-{max}", self.min),
            _ => write!(f, "{}", self.min),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_both_ends_and_suffixes_multiply() {
        for (text, min, max) in
            [("2", 2, 2), ("2-4", 2, 4), ("1k", 1024, 1024), ("1-2K", 1, 2048), ("1m", 1 << 20, 1 << 20)]
        {
            assert_eq!(parse(text).unwrap(), NodeCount { min, max: Some(max) }, "{text}");
        }
        assert_eq!(parse("2-4").unwrap().to_string(), "2-4");
        assert_eq!(parse("2").unwrap().to_string(), "2");
    }

    #[test]
    fn lists_zeros_and_overflows_are_refused() {
        for bad in [
            "",
            "0",
            "0-2",
            "4-2",
            "-1",
            "2-",
            "-",
            "1,3",
            "2-8:2",
            "1000000k0",
            "5000m",
            "9999999999",
            "1e9",
            "k",
            "1kk",
            "ä",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("1,3").unwrap_err().allowed.contains("not supported"));
    }
}
