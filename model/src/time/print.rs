//! Printing durations and points in time as Slurm's commands do.

use super::Time;
use jiff::tz::TimeZone;
use std::time::Duration;

fn split(d: Duration) -> (u64, u64, u64, u64) {
    let s = d.as_secs();
    (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60)
}

/// squeue's form: `0:12`, `59:59`, `1:00:00`, `1-02:03:04`. Parts of a second are dropped.
pub fn format_elapsed(d: Duration) -> String {
    match split(d) {
        (0, 0, m, s) => format!("{m}:{s:02}"),
        (0, h, m, s) => format!("{h}:{m:02}:{s:02}"),
        (d, h, m, s) => format!("{d}-{h:02}:{m:02}:{s:02}"),
    }
}

/// sacct's and scontrol's form: `00:00:12`, `1-02:03:04`.
pub fn format_elapsed_long(d: Duration) -> String {
    match split(d) {
        (0, h, m, s) => format!("{h:02}:{m:02}:{s:02}"),
        (d, h, m, s) => format!("{d}-{h:02}:{m:02}:{s:02}"),
    }
}

/// `2026-11-30T09:59:44` in the given zone; `Unknown` for a time no calendar holds.
pub fn format_time(t: Time, tz: &TimeZone) -> String {
    format_time_with(t, tz, "%Y-%m-%dT%H:%M:%S")
}

/// Like `format_time` with a strftime(3) format (SLURM_TIME_FORMAT). A format with conversions that are not known
/// gives the standard form.
pub fn format_time_with(t: Time, tz: &TimeZone, strftime: &str) -> String {
    let Ok(stamp) = jiff::Timestamp::from_second(t.secs()) else { return "Unknown".into() };
    let zoned = stamp.to_zoned(tz.clone());
    jiff::fmt::strtime::format(strftime, &zoned)
        .unwrap_or_else(|_| zoned.datetime().strftime("%Y-%m-%dT%H:%M:%S").to_string())
}
