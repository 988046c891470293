//! Points in time and time limits: types, parsers and printers.
//!
//! Pure: "now" and the time zone are always arguments.

mod limit;
mod print;
mod when;

pub use limit::{format_time_limit, format_time_limit_long, parse_seconds, parse_time_limit};
pub use print::{format_elapsed, format_elapsed_long, format_time, format_time_with};
pub use when::{parse_when, parse_when_past};

use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z. Always a fact carried by a command or event, never read here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Time(pub i64);

impl Time {
    pub const fn from_secs(secs: i64) -> Self {
        Time(secs.saturating_mul(1000))
    }
    /// Whole seconds since the epoch, rounded down (Slurm's resolution).
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(1000)
    }
    /// Zero when `earlier` is later.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
    pub fn plus(self, d: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(d.as_millis()).unwrap_or(i64::MAX)))
    }
}

/// A job's or partition's time limit. Slurm's resolution is one minute; seconds are rounded up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimeLimit {
    Minutes(u32),
    Unlimited,
}

impl TimeLimit {
    /// None when unlimited.
    pub fn duration(self) -> Option<Duration> {
        match self {
            TimeLimit::Minutes(m) => Some(Duration::from_secs(u64::from(m) * 60)),
            TimeLimit::Unlimited => None,
        }
    }
}
