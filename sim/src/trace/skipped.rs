//! What of a trace was left out, and why: a count and the first lines for each cause, never silence.

use super::LONGEST;
use std::collections::BTreeMap;
use std::fmt;

/// Lines named for each cause.
const NAMED: usize = 5;

/// Why a job is left out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Fewer fields than the form has.
    MissingFields {
        expected: usize,
    },
    /// A field that is no number where one must be.
    NoNumber {
        field: String,
    },
    /// A field without a value that the job can't do without.
    NoValue {
        field: String,
    },
    /// A time that can't be meant.
    OutOfRange {
        field: String,
    },
    NegativeSubmit,
    NoRunTime,
    NoRequestedTime,
    NoProcessors,
    TooLarge {
        procs: u32,
    },
    /// The cluster or the policy could never run it.
    Impossible {
        why: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::MissingFields { expected } => write!(f, "fewer than {expected} fields"),
            Cause::NoNumber { field } => write!(f, "{field} is not a number"),
            Cause::NoValue { field } => write!(f, "no {field}"),
            Cause::OutOfRange { field } => write!(f, "{field} beyond {LONGEST} seconds"),
            Cause::NegativeSubmit => write!(f, "negative submit time"),
            Cause::NoRunTime => write!(f, "run time not above zero"),
            Cause::NoRequestedTime => write!(f, "requested time not above zero"),
            Cause::NoProcessors => write!(f, "neither requested nor allocated processors"),
            Cause::TooLarge { procs } => write!(f, "more processors than the machine's {procs}"),
            Cause::Impossible { why } => write!(f, "can never run here: {why}"),
        }
    }
}

/// Counts by cause.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    by_cause: BTreeMap<Cause, (u64, Vec<u32>)>,
}

impl Skipped {
    pub fn add(&mut self, cause: Cause, line: u32) {
        let (count, lines) = self.by_cause.entry(cause).or_default();
        *count += 1;
        if lines.len() < NAMED {
            lines.push(line);
        }
    }

    pub fn total(&self) -> u64 {
        self.by_cause.values().map(|(count, _)| count).sum()
    }

    /// (cause, count, first lines)
    pub fn causes(&self) -> impl Iterator<Item = (&Cause, u64, &[u32])> {
        self.by_cause.iter().map(|(cause, (count, lines))| (cause, *count, lines.as_slice()))
    }

    /// One line for each cause: `3 skipped: negative submit time (lines 4, 9, 12)`.
    pub fn lines(&self) -> Vec<String> {
        self.causes()
            .map(|(cause, count, lines)| {
                let named: Vec<String> = lines.iter().map(u32::to_string).collect();
                let more = if count > lines.len() as u64 { " …" } else { "" };
                let word = if count == 1 { "line" } else { "lines" };
                format!("{count} skipped: {cause} ({word} {}{more})", named.join(", "))
            })
            .collect()
    }
}
