//! Points in time and durations as Slurm's commands print them.
//!
//! Owns the meaning of `SLURM_TIME_FORMAT`. The current time comes from the controller's answer, the zone from the
//! caller; nothing here reads a clock.
//!
//! Source: squeue(1), "ENVIRONMENT VARIABLES".

use jiff::tz::TimeZone;
use sluice_model::Time;
use sluice_model::time;
use sluice_proto::v1;
use std::time::Duration;

/// `SLURM_TIME_FORMAT`
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum TimeStyle {
    /// `2026-11-30T09:59:44`
    #[default]
    Standard,
    /// `09:59:44`, `Tomorr 10:00`, `Tue 10:00`, `25 Apr 10:00`, `6 Jun 2012`
    Relative,
    /// strftime(3)
    Pattern(String),
}

impl TimeStyle {
    pub fn parse(value: Option<&str>) -> TimeStyle {
        match value {
            None | Some("" | "standard") => TimeStyle::Standard,
            Some("relative") => TimeStyle::Relative,
            Some(pattern) => TimeStyle::Pattern(pattern.to_owned()),
        }
    }
}

/// How this invocation prints times.
#[derive(Clone, Debug)]
pub struct Clock {
    pub now: Time,
    pub zone: TimeZone,
    pub style: TimeStyle,
}

impl Clock {
    /// Style and zone of the environment.
    pub fn from_environment(now_ms: i64) -> Clock {
        let style = TimeStyle::parse(std::env::var("SLURM_TIME_FORMAT").ok().as_deref());
        Clock { now: Time(now_ms), zone: TimeZone::system(), style }
    }

    /// Milliseconds since the epoch, in the asked style.
    pub fn time(&self, ms: i64) -> String {
        match &self.style {
            TimeStyle::Standard => self.standard(ms),
            TimeStyle::Relative => self.relative(ms).unwrap_or_else(|| self.standard(ms)),
            TimeStyle::Pattern(pattern) => time::format_time_with(Time(ms), &self.zone, pattern),
        }
    }

    pub fn time_or(&self, ms: Option<i64>, otherwise: &str) -> String {
        ms.map_or_else(|| otherwise.to_owned(), |ms| self.time(ms))
    }

    /// `2026-11-30T09:59:44`, whatever the style.
    pub fn standard(&self, ms: i64) -> String {
        time::format_time(Time(ms), &self.zone)
    }

    /// `Mon Nov 30 09:59:56 2026`, the line above long tables.
    pub fn heading(&self) -> String {
        time::format_time_with(self.now, &self.zone, "%a %b %e %H:%M:%S %Y")
    }

    fn relative(&self, ms: i64) -> Option<String> {
        let zoned = |ms| Some(jiff::Timestamp::from_millisecond(ms).ok()?.to_zoned(self.zone.clone()));
        let then = zoned(ms)?;
        let now = zoned(self.now.0)?;
        let days = (then.date() - now.date()).get_days();
        let pattern = match days {
            0 => "%H:%M:%S",
            1 => "Tomorr %H:%M",
            -1 => "Ystday %H:%M",
            2..=7 => "%a %H:%M",
            _ if then.year() == now.year() => "%-d %b %H:%M",
            _ => "%-d %b %Y",
        };
        Some(then.strftime(pattern).to_string())
    }
}

/// The wire's time limit as the model's. None when the message is empty.
pub fn limit(limit: Option<&v1::TimeLimit>) -> Option<sluice_model::TimeLimit> {
    match limit?.kind? {
        v1::time_limit::Kind::Minutes(minutes) => Some(sluice_model::TimeLimit::Minutes(minutes)),
        v1::time_limit::Kind::Unlimited(_) => Some(sluice_model::TimeLimit::Unlimited),
    }
}

/// `1-00:00:00`, `10:00`, `UNLIMITED`
pub fn limit_short(wire: Option<&v1::TimeLimit>, otherwise: &str) -> String {
    limit(wire).map_or_else(|| otherwise.to_owned(), time::format_time_limit)
}

/// `1-00:00:00`, `00:10:00`, `UNLIMITED`
pub fn limit_long(wire: Option<&v1::TimeLimit>, otherwise: &str) -> String {
    limit(wire).map_or_else(|| otherwise.to_owned(), time::format_time_limit_long)
}

/// `0:12`, `1-02:03:04`
pub fn elapsed(ms: i64) -> String {
    time::format_elapsed(duration(ms))
}

/// `00:00:12`
pub fn elapsed_long(ms: i64) -> String {
    time::format_elapsed_long(duration(ms))
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(style: &str) -> Clock {
        // 2026-11-30T09:59:56Z
        Clock { now: Time(1_796_032_796_000), zone: TimeZone::UTC, style: TimeStyle::parse(Some(style)) }
    }
    const HOUR: i64 = 3_600_000;

    #[test]
    fn each_style_prints_its_form() {
        let at = 1_796_032_784_000;
        assert_eq!(clock("standard").time(at), "2026-11-30T09:59:44");
        assert_eq!(clock("%a %T").time(at), "Mon 09:59:44");
        assert_eq!(clock("").heading(), "Mon Nov 30 09:59:56 2026");
    }

    #[test]
    fn relative_times_say_the_day_only_as_far_as_needed() {
        let clock = clock("relative");
        let now = clock.now.0;
        assert_eq!(clock.time(now), "09:59:56");
        assert_eq!(clock.time(now + 24 * HOUR), "Tomorr 09:59");
        assert_eq!(clock.time(now - 24 * HOUR), "Ystday 09:59");
        assert_eq!(clock.time(now + 3 * 24 * HOUR), "Thu 09:59");
        assert_eq!(clock.time(now - 10 * 24 * HOUR), "20 Nov 09:59");
        assert_eq!(clock.time(0), "1 Jan 1970");
    }
}
