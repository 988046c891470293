//! Amounts of memory and disk, in MiB (`--mem=287M`, `204MB`, `1g`, bare MiB).

use crate::error::{ParseError, digits};

const ALLOWED: &str = "a whole number with K, M, G, T or P (MiB when none is given)";

/// MiB; KiB are rounded up. At most 2^53 MiB, so that every sum over a cluster fits.
pub fn parse_memory_mb(text: &str) -> Result<u64, ParseError> {
    mib(text).ok_or_else(|| ParseError::new("memory", text, ALLOWED))
}

fn mib(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = digits(&text[..unit_at], u64::MAX)?;
    let unit = text[unit_at..].to_ascii_uppercase();
    let shift = match unit.strip_suffix("IB").or_else(|| unit.strip_suffix('B')).unwrap_or(&unit) {
        "K" => return Some(number.div_ceil(1024)).filter(|n| *n <= 1 << 53),
        // A lone "B" would be bytes, which no option of Slurm takes.
        "" if unit.is_empty() => 0,
        "M" => 0,
        "G" => 10,
        "T" => 20,
        "P" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift).filter(|n| *n <= 1 << 53)
}

/// The largest unit that is exact: `64M`, `1536M`, `2G`, `1T`; `0` is `0`. The form of scontrol and of TRES texts.
pub fn format_memory_mb(mb: u64) -> String {
    if mb == 0 {
        return "0".into();
    }
    let (mut n, mut units) = (mb, "MGTP".chars());
    let mut unit = units.next();
    while n % 1024 == 0
        && let Some(next) = units.next()
    {
        n /= 1024;
        unit = Some(next);
    }
    format!("{n}{}", unit.unwrap_or('P'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_the_manual_pages_is_read() {
        for (text, mb) in [
            ("287M", 287),
            ("204MB", 204),
            ("1g", 1024),
            ("200K", 1),
            ("1025k", 2),
            ("64", 64),
            ("2T", 2 << 20),
            ("1P", 1 << 30),
            ("0", 0),
            ("4GiB", 4096),
        ] {
            assert_eq!(parse_memory_mb(text).unwrap(), mb, "{text}");
        }
    }

    #[test]
    fn negative_broken_and_huge_amounts_are_refused() {
        let long = "9".repeat(100_000);
        for bad in
            ["-1", "1e9", "1.5G", "abc", "", "G", "5B", "5iB", "1 G", "99999999999999999999", "9999999999P", &long]
        {
            assert!(parse_memory_mb(bad).is_err(), "{bad:.20}");
        }
    }

    #[test]
    fn amounts_print_in_the_largest_exact_unit() {
        for (mb, text) in
            [(0, "0"), (64, "64M"), (128, "128M"), (2048, "2G"), (1536, "1536M"), (1 << 20, "1T"), (1 << 40, "1024P")]
        {
            assert_eq!(format_memory_mb(mb), text);
        }
    }
}
