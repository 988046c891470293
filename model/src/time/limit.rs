//! `--time` and its relatives: the forms of sbatch's manual page.

use super::TimeLimit;
use crate::error::{ParseError, digits};

const ALLOWED: &str = "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, \
                       days-hours:minutes:seconds or UNLIMITED";
/// The longest finite limit, in minutes: about 4,000 years, and its seconds still fit every type in use.
const MAX_MINUTES: u64 = 1 << 31;

/// Seconds are rounded up to whole minutes. Zero means no limit, as sbatch's manual page says.
pub fn parse_time_limit(text: &str) -> Result<TimeLimit, ParseError> {
    if text == "-1" || text.eq_ignore_ascii_case("UNLIMITED") || text.eq_ignore_ascii_case("INFINITE") {
        return Ok(TimeLimit::Unlimited);
    }
    let seconds = seconds(text).ok_or_else(|| ParseError::new("time limit", text, ALLOWED))?;
    match seconds.div_ceil(60) {
        0 => Ok(TimeLimit::Unlimited),
        m if m <= MAX_MINUTES => Ok(TimeLimit::Minutes(m as u32)),
        _ => Err(ParseError::new("time limit", text, format!("at most {MAX_MINUTES} minutes, or UNLIMITED"))),
    }
}

/// A length of time in seconds, exactly, in the forms of `parse_time_limit` except UNLIMITED.
pub fn parse_seconds(text: &str) -> Result<u64, ParseError> {
    seconds(text).ok_or_else(|| ParseError::new("time", text, ALLOWED.trim_end_matches(" or UNLIMITED")))
}

fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once('-') {
        Some((d, rest)) => (Some(number(d)?), rest),
        None => (None, text),
    };
    let parts = clock.split(':').map(number).collect::<Option<Vec<u64>>>()?;
    let (h, m, s) = match (days.is_some(), &parts[..]) {
        (false, [m]) => (0, *m, 0),
        (false, [m, s]) => (0, *m, *s),
        (true, [h]) => (*h, 0, 0),
        (true, [h, m]) => (*h, *m, 0),
        (_, [h, m, s]) => (*h, *m, *s),
        _ => return None,
    };
    Some(days.unwrap_or(0) * 86_400 + h * 3600 + m * 60 + s)
}

/// Small enough that no sum here overflows.
fn number(text: &str) -> Option<u64> {
    digits(text, 1 << 40)
}

/// squeue's form: `1-00:00:00`, `2:00:00`, `10:00`, `UNLIMITED`.
pub fn format_time_limit(limit: TimeLimit) -> String {
    limit.duration().map_or_else(|| "UNLIMITED".into(), super::format_elapsed)
}

/// scontrol's and sacct's form: `1-00:00:00`, `00:10:00`, `UNLIMITED`.
pub fn format_time_limit_long(limit: TimeLimit) -> String {
    limit.duration().map_or_else(|| "UNLIMITED".into(), super::format_elapsed_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_manual_page_is_read() {
        for (text, minutes) in [
            ("30", 30),
            ("0:120", 2),
            ("0:30", 1),
            ("10:00", 10),
            ("00:05:00", 5),
            ("0:3:0", 3),
            ("1:00:01", 61),
            ("1-0", 1440),
            ("1-2:3", 1563),
            ("1-0:0:0", 1440),
            ("7-12:30:59", 10_831),
        ] {
            assert_eq!(parse_time_limit(text).unwrap(), TimeLimit::Minutes(minutes), "{text}");
        }
        for text in ["UNLIMITED", "infinite", "-1", "0", "0-0"] {
            assert_eq!(parse_time_limit(text).unwrap(), TimeLimit::Unlimited, "{text}");
        }
    }

    #[test]
    fn broken_negative_and_huge_limits_are_refused() {
        let long = "9".repeat(100_000);
        for bad in [
            "",
            "xx",
            "-5",
            "1-",
            "1:",
            ":1",
            "1:2:3:4",
            "1-2:3:4:5",
            "1e9",
            "1.5",
            " 5",
            "1--1",
            "99999999999",
            "99999999999-0",
            &long,
        ] {
            assert!(parse_time_limit(bad).is_err(), "{bad:.20}");
        }
    }

    #[test]
    fn limits_print_in_both_forms_and_read_back() {
        for (minutes, short, long) in
            [(10, "10:00", "00:10:00"), (60, "1:00:00", "01:00:00"), (1440, "1-00:00:00", "1-00:00:00")]
        {
            let limit = TimeLimit::Minutes(minutes);
            assert_eq!((format_time_limit(limit).as_str(), format_time_limit_long(limit).as_str()), (short, long));
            assert_eq!(parse_time_limit(short).unwrap(), limit);
        }
        assert_eq!(format_time_limit(TimeLimit::Unlimited), "UNLIMITED");
    }
}
