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
