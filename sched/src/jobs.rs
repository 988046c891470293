//! The jobs that wait, as the scheduler keeps them.
//!
//! Owns little of each, since there may be hundreds of thousands: what their class does not say. Promises that nothing in
//! here depends on time. Jobs with more to them (arrays, several partitions, deadlines, `--time-min`) keep all of it.

use crate::feasibility::Limits;
use crate::input::{PendingJob, planned_ms};
use crate::order::Key;
use crate::timeline::FOREVER;
use sluice_model::{JobId, Reason, Time, TimeLimit};
use std::collections::BTreeMap;

/// A job in one of its partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub class: u32,
    pub key: Key,
    pub limits: Limits,
    /// It asked for no time.
    pub free: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub expected_ms: Option<i64>,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In one partition, with one limit.
    Plain(Entry),
    /// No partition of it starts it, for this reason (None: all are gone).
    Nowhere(Option<Reason>),
    Special(Box<Special>),
}

#[derive(Clone, Debug)]
pub(crate) struct Special {
    pub entries: Vec<Entry>,
    pub indices: Vec<u32>,
    pub deadline: Option<Time>,
    /// Why those partitions don't start it that are not among the entries: the most hopeful reason.
    pub refused: Option<Reason>,
}

pub(crate) type Jobs = BTreeMap<JobId, Pending>;

/// More to it than its class, its place in the queue and a limit.
pub(crate) fn is_special(job: &PendingJob) -> bool {
    job.partitions.len() != 1 || !job.indices.is_empty() || job.deadline.is_some() || job.time_min.is_some()
}

impl Pending {
    pub fn entries(&self) -> &[Entry] {
        match &self.place {
            Place::Plain(entry) => std::slice::from_ref(entry),
            Place::Nowhere(_) => &[],
            Place::Special(special) => &special.entries,
        }
    }
    pub fn special(&self) -> Option<&Special> {
        match &self.place {
            Place::Special(special) => Some(special),
            _ => None,
        }
    }
    pub fn indices(&self) -> &[u32] {
        self.special().map_or(&[], |s| &s.indices)
    }
    pub fn deadline(&self) -> Option<Time> {
        self.special().and_then(|s| s.deadline)
    }
    pub fn refused(&self) -> Option<Reason> {
        match &self.place {
            Place::Plain(_) => None,
            Place::Nowhere(reason) => *reason,
            Place::Special(special) => special.refused,
        }
    }
    pub fn entry(&self, key: Key) -> Option<&Entry> {
        self.entries().iter().find(|e| e.key == key)
    }
    /// How long it is planned to run with this limit, milliseconds.
    pub fn duration(&self, limit: TimeLimit) -> i64 {
        planned_ms(self.expected_ms, limit).unwrap_or(FOREVER)
    }
    /// The shortest for which it could be started, whatever the time.
    pub fn least(&self, entry: &Entry) -> i64 {
        if self.deadline().is_some() { 0 } else { self.duration(entry.limits.least) }
    }
}
