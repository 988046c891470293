//! Points in time as users write them (`--begin`, `--deadline`, `sacct -S`): the forms of sbatch's and sacct's manual
//! pages.

use super::Time;
use crate::error::{ParseError, digits};
use jiff::ToSpan;
use jiff::civil::{self, Date, DateTime};
use jiff::tz::TimeZone;

const ALLOWED: &str = "now[{+|-}count[seconds|minutes|hours|days|weeks]], HH:MM[:SS][AM|PM], today, tomorrow, midnight, \
                       noon, fika, teatime, MMDD[YY], MM/DD[/YY], MM.DD[.YY], YYYY-MM-DD[THH:MM[:SS]] or utsSECONDS";

/// Which way a time of day or a date without a year is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lean {
    Future,
    Past,
}

/// For times to come: a time of day that is past means tomorrow, a date without a year that is past means next year.
pub fn parse_when(text: &str, now: Time, tz: &TimeZone) -> Result<Time, ParseError> {
    parse(text, now, tz, Lean::Future)
}

/// For times gone by (sacct): a time of day is today's, a date without a year is this year's.
pub fn parse_when_past(text: &str, now: Time, tz: &TimeZone) -> Result<Time, ParseError> {
    parse(text, now, tz, Lean::Past)
}

fn parse(text: &str, now: Time, tz: &TimeZone, lean: Lean) -> Result<Time, ParseError> {
    let fail = || ParseError::new("time", text, ALLOWED);
    if text.len() > 64 || !text.is_ascii() {
        return Err(fail());
    }
    let lower = text.trim().to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("now") {
        return offset_secs(rest).map(|s| Time::from_secs(now.secs().saturating_add(s))).ok_or_else(fail);
    }
    if let Some(secs) = lower.strip_prefix("uts") {
        // Year 9999 ends at 253402207200: what no calendar can print is refused.
        return digits(secs, 253_402_207_199).map(|s| Time::from_secs(s as i64)).ok_or_else(fail);
    }
    let here = jiff::Timestamp::from_second(now.secs()).map_err(|_| fail())?.to_zoned(tz.clone()).datetime();
    let when = civil_time(&lower, here, lean).ok_or_else(fail)?;
    let zoned = when.to_zoned(tz.clone()).map_err(|_| fail())?;
    Ok(Time::from_secs(zoned.timestamp().as_second()))
}

/// `+1hour`, `-30`, empty: seconds.
fn offset_secs(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", r) => (1, r.trim_start()),
        ("-", r) => (-1, r.trim_start()),
        _ => return None,
    };
    let unit_at = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let count = digits(&rest[..unit_at], 1 << 36)? as i64;
    let unit = rest[unit_at..].trim_start();
    // Units may be cut short: `h`, `hour`, `hours`.
    let scale = [("seconds", 1), ("minutes", 60), ("hours", 3600), ("days", 86_400), ("weeks", 604_800)]
        .into_iter()
        .find(|(name, _)| name.starts_with(unit))?
        .1;
    Some(sign * count.checked_mul(scale).filter(|s| *s < 1 << 38)?)
}

fn civil_time(text: &str, here: DateTime, lean: Lean) -> Option<DateTime> {
    if let Some(time) = clock(text) {
        let today = here.date().to_datetime(time);
        let past = today <= here;
        return if past && lean == Lean::Future { today.checked_add(1.day()).ok() } else { Some(today) };
    }
    match text {
        "today" => return Some(here.date().to_datetime(civil::Time::midnight())),
        "tomorrow" => return here.date().tomorrow().ok().map(|d| d.to_datetime(civil::Time::midnight())),
        _ => {}
    }
    // A date, then perhaps `T`, `-` or a blank and a time of day.
    for (at, _) in text.match_indices(['t', '-', ' ']) {
        if let (Some((date, dated)), Some(time)) = (date(&text[..at], here), clock(text[at + 1..].trim_start())) {
            return lean_year(date.to_datetime(time), dated, here, lean);
        }
    }
    let (date, dated) = date(text, here)?;
    lean_year(date.to_datetime(civil::Time::midnight()), dated, here, lean)
}

fn lean_year(when: DateTime, dated: bool, here: DateTime, lean: Lean) -> Option<DateTime> {
    if !dated && lean == Lean::Future && when < here { when.checked_add(1.year()).ok() } else { Some(when) }
}

/// A time of day: `16:00`, `4:30PM`, `noon`.
fn clock(text: &str) -> Option<civil::Time> {
    match text {
        "midnight" => return civil::Time::new(0, 0, 0, 0).ok(),
        "noon" => return civil::Time::new(12, 0, 0, 0).ok(),
        "fika" => return civil::Time::new(15, 0, 0, 0).ok(),
        "teatime" => return civil::Time::new(16, 0, 0, 0).ok(),
        "elevenses" => return civil::Time::new(11, 0, 0, 0).ok(),
        _ => {}
    }
    let (digits_part, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(t), _) => (t.trim_end(), Some(0)),
        (_, Some(t)) => (t.trim_end(), Some(12)),
        _ => (text, None),
    };
    let parts = digits_part.split(':').map(|p| digits(p, 99).map(|n| n as i8)).collect::<Option<Vec<i8>>>()?;
    let (h, m, s) = match &parts[..] {
        [h, m] => (*h, *m, 0),
        [h, m, s] => (*h, *m, *s),
        _ => return None,
    };
    let h = match half {
        None => h,
        Some(_) if !(1..=12).contains(&h) => return None,
        Some(add) => h % 12 + add,
    };
    civil::Time::new(h, m, s, 0).ok()
}

/// A date and whether its year was given.
fn date(text: &str, here: DateTime) -> Option<(Date, bool)> {
    let make = |y: u64, m: u64, d: u64| Date::new(y as i16, m as i8, d as i8).ok();
    let two = |t: &str| (t.len() <= 2).then(|| digits(t, 99)).flatten();
    for sep in ['/', '.'] {
        let parts: Vec<&str> = text.split(sep).collect();
        match parts[..] {
            [m, d] => return Some((make(here.year() as u64, two(m)?, two(d)?)?, false)),
            [m, d, y] => return Some((make(year(y)?, two(m)?, two(d)?)?, true)),
            _ => {}
        }
    }
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [y, m, d] if y.len() == 4 => Some((make(digits(y, 9999)?, two(m)?, two(d)?)?, true)),
        [all] if all.is_ascii() && all.len() == 4 => {
            Some((make(here.year() as u64, two(&all[..2])?, two(&all[2..])?)?, false))
        }
        [all] if all.is_ascii() && all.len() == 6 => {
            Some((make(2000 + two(&all[4..])?, two(&all[..2])?, two(&all[2..4])?)?, true))
        }
        _ => None,
    }
}

/// `26` and `2026`.
fn year(text: &str) -> Option<u64> {
    match text.len() {
        2 => digits(text, 99).map(|y| 2000 + y),
        4 => digits(text, 9999),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::format_time;
    use super::*;

    /// 2026-11-30T09:59:44 in a zone with summer time.
    fn here() -> (Time, TimeZone) {
        (Time::from_secs(1_796_029_184), TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap())
    }

    fn when(text: &str) -> String {
        let (now, tz) = here();
        format_time(parse_when(text, now, &tz).unwrap_or_else(|e| panic!("{e}")), &tz)
    }

    #[test]
    fn times_to_come_are_read_in_every_form_of_the_manual_page() {
        for (text, expected) in [
            ("now", "2026-11-30T09:59:44"),
            ("now+1hour", "2026-11-30T10:59:44"),
            ("now+60", "2026-11-30T10:00:44"),
            ("now + 2 days", "2026-12-02T09:59:44"),
            ("now-1week", "2026-11-23T09:59:44"),
            ("16:00", "2026-11-30T16:00:00"),
            ("09:00", "2026-12-01T09:00:00"),
            ("4:30PM", "2026-11-30T16:30:00"),
            ("12:00am", "2026-12-01T00:00:00"),
            ("12:15pm", "2026-11-30T12:15:00"),
            ("midnight", "2026-12-01T00:00:00"),
            ("noon", "2026-11-30T12:00:00"),
            ("fika", "2026-11-30T15:00:00"),
            ("teatime", "2026-11-30T16:00:00"),
            ("today", "2026-11-30T00:00:00"),
            ("tomorrow", "2026-12-01T00:00:00"),
            ("1224", "2026-12-24T00:00:00"),
            ("0301", "2027-03-01T00:00:00"),
            ("12/24", "2026-12-24T00:00:00"),
            ("122427", "2027-12-24T00:00:00"),
            ("12/24/27", "2027-12-24T00:00:00"),
            ("12.24.27-10:30", "2027-12-24T10:30:00"),
            ("1130-10:30", "2026-11-30T10:30:00"),
            ("2010-01-20T12:34:00", "2010-01-20T12:34:00"),
            ("2030-07-20", "2030-07-20T00:00:00"),
            ("2030-07-20T12:34", "2030-07-20T12:34:00"),
            ("1970-01-01-01:00:01", "1970-01-01T01:00:01"),
            ("uts1796029184", "2026-11-30T09:59:44"),
        ] {
            assert_eq!(when(text), expected, "{text}");
        }
    }

    #[test]
    fn times_gone_by_stay_today_and_this_year() {
        let (now, tz) = here();
        let past = |t| format_time(parse_when_past(t, now, &tz).unwrap(), &tz);
        assert_eq!(past("09:00"), "2026-11-30T09:00:00");
        assert_eq!(past("0301"), "2026-03-01T00:00:00");
        assert_eq!(past("midnight"), "2026-11-30T00:00:00");
    }

    #[test]
    fn nonsense_is_refused() {
        let (now, tz) = here();
        let long = "1".repeat(100_000);
        for bad in [
            "",
            "xx",
            "25:00",
            "10:61",
            "13:00PM",
            "0:30PM",
            "1332",
            "02/30",
            "2026-13-01",
            "2026-02-30",
            "now+",
            "now+1fortnight",
            "now*2",
            "now+99999999999999",
            "-1",
            "1e9",
            "uts",
            "uts-5",
            "uts99999999999999",
            "2026-01-01T",
            "T10:00",
            "ünow",
            "99999-01-01",
            &long,
        ] {
            assert!(parse_when(bad, now, &tz).is_err(), "{bad:.30}");
        }
        assert!(parse_when("16:00", Time(i64::MAX), &tz).is_err());
    }
}
