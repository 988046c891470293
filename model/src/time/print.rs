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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_in_squeue_and_in_sacct() {
        for (secs, short, long) in [
            (0, "0:00", "00:00:00"),
            (12, "0:12", "00:00:12"),
            (3661, "1:01:01", "01:01:01"),
            (93_784, "1-02:03:04", "1-02:03:04"),
        ] {
            let d = Duration::from_secs(secs);
            assert_eq!((format_elapsed(d).as_str(), format_elapsed_long(d).as_str()), (short, long));
        }
    }

    #[test]
    fn times_print_in_the_zone_given_and_never_panic() {
        let tz = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let t = Time::from_secs(1_796_029_184);
        assert_eq!(format_time(t, &TimeZone::UTC), "2026-11-30T08:59:44");
        assert_eq!(format_time(t, &tz), "2026-11-30T09:59:44");
        assert_eq!(format_time_with(t, &tz, "%H:%M %d.%m.%y"), "09:59 30.11.26");
        assert_eq!(format_time_with(t, &tz, "%!"), "2026-11-30T09:59:44");
        assert_eq!(format_time(Time(i64::MAX), &tz), "Unknown");
        assert_eq!(format_time(Time(i64::MIN), &tz), "Unknown");
    }
}
