//! What the node daemon must not forget: reports that the controller has not acknowledged, steps that it manages, and
//! attempts that are over.
//!
//! sled with one flush for everything that a batch of messages changed. Promises that what [`Store::commit`] returned
//! for is on disk: sled's own flush only starts write-back on Linux (it calls sync_file_range), which does not survive
//! a power cut, so that its `db` file is synced here afterwards. Rates are low on a node; the values are small.

use prost::Message;
use sluice_proto::v1::{ManagedStep, Report, report};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// An attempt: job and attempt number.
pub type Attempt = (u32, u32);

/// Why an attempt must not run (again) here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The controller ended it.
    Ended,
    /// The node went down under it.
    Lost,
}

pub struct Store {
    db: sled::Db,
    outbox: sled::Tree,
    steps: sled::Tree,
    /// Next step number of each attempt.
    numbers: sled::Tree,
    over: sled::Tree,
    file: PathBuf,
    next: u64,
    dirty: bool,
}

fn failed(e: sled::Error) -> io::Error {
    match e {
        sled::Error::Io(e) => e,
        other => io::Error::other(other.to_string()),
    }
}

fn attempt_key((job, attempt): Attempt) -> [u8; 8] {
    ((u64::from(job) << 32) | u64::from(attempt)).to_be_bytes()
}

fn attempt_of(key: &[u8]) -> Option<Attempt> {
    let n = u64::from_be_bytes(key.get(..8)?.try_into().ok()?);
    Some(((n >> 32) as u32, n as u32))
}

fn step_key(attempt: Attempt, step: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&attempt_key(attempt));
    key[8..].copy_from_slice(&step.to_be_bytes());
    key
}

impl Store {
    pub fn open(dir: &Path) -> io::Result<Store> {
        let db = sled::Config::new()
            .path(dir)
            .mode(sled::Mode::LowSpace)
            .cache_capacity(4 << 20)
            .flush_every_ms(None)
            .open()
            .map_err(failed)?;
        // The folder and the files in it must outlive a power cut, too.
        crate::spool::sync_dir(dir)?;
        if let Some(parent) = dir.parent() {
            crate::spool::sync_dir(parent)?;
        }
        let tree = |name: &str| db.open_tree(name).map_err(failed);
        let (outbox, steps, numbers, over) = (tree("outbox")?, tree("steps")?, tree("numbers")?, tree("over")?);
        let next = match outbox.last().map_err(failed)? {
            Some((key, _)) => u64::from_be_bytes(key.as_ref().try_into().unwrap_or_default()) + 1,
            None => 1,
        };
        let mut store = Store { db, outbox, steps, numbers, over, file: dir.join("db"), next, dirty: true };
        store.commit()?;
        Ok(store)
    }

    /// Puts a report at the end of the outbox and returns it with its number.
    pub fn report(&mut self, kind: report::Kind) -> io::Result<Report> {
        let report = Report { sequence: self.next, kind: Some(kind) };
        self.outbox.insert(self.next.to_be_bytes(), report.encode_to_vec()).map_err(failed)?;
        self.next += 1;
        self.dirty = true;
        Ok(report)
    }

    /// The controller has everything up to and with `sequence`. Forgetting needs no flush: a report that comes again is
    /// harmless.
    pub fn acknowledged(&mut self, sequence: u64) -> io::Result<()> {
        for entry in self.outbox.range(..=sequence.to_be_bytes()) {
            let (key, _) = entry.map_err(failed)?;
            self.outbox.remove(key).map_err(failed)?;
        }
        Ok(())
    }

    /// Reports that are not acknowledged, in order.
    pub fn unacknowledged(&self) -> Vec<Report> {
        self.outbox.iter().values().flatten().filter_map(|v| Report::decode(v.as_ref()).ok()).collect()
    }

    /// Attempts of which something waits in the outbox: the node still holds them in the controller's eyes.
    pub fn reported_attempts(&self) -> BTreeSet<Attempt> {
        let attempt = |report: Report| match report.kind? {
            report::Kind::Confirmed(c) => Some((c.job, c.attempt)),
            report::Kind::BatchEnded(b) => Some((b.job, b.attempt)),
            report::Kind::Gone(g) => Some((g.job, g.attempt)),
            report::Kind::Step(_) => None,
        };
        self.unacknowledged().into_iter().filter_map(attempt).collect()
    }

    pub fn put_step(&mut self, attempt: Attempt, step: u32, managed: &ManagedStep) -> io::Result<()> {
        self.steps.insert(step_key(attempt, step), managed.encode_to_vec()).map_err(failed)?;
        self.dirty = true;
        Ok(())
    }

    /// Takes the next step number of an attempt: never given twice.
    pub fn take_number(&mut self, attempt: Attempt) -> io::Result<u32> {
        let key = attempt_key(attempt);
        let known = self.numbers.get(key).map_err(failed)?;
        let number = known.and_then(|v| Some(u32::from_be_bytes(v.as_ref().try_into().ok()?))).unwrap_or(0);
        self.numbers.insert(key, &(number + 1).to_be_bytes()).map_err(failed)?;
        self.dirty = true;
        Ok(number)
    }

    pub fn remove_step(&mut self, attempt: Attempt, step: u32) -> io::Result<()> {
        self.steps.remove(step_key(attempt, step)).map_err(failed)?;
        self.dirty = true;
        Ok(())
    }

    /// Steps of an attempt that had not ended when the daemon did.
    pub fn steps(&self, attempt: Attempt) -> Vec<(u32, ManagedStep)> {
        self.steps
            .scan_prefix(attempt_key(attempt))
            .flatten()
            .filter_map(|(key, value)| {
                let step = u32::from_be_bytes(key.get(8..12)?.try_into().ok()?);
                Some((step, ManagedStep::decode(value.as_ref()).ok()?))
            })
            .collect()
    }

    /// Remembers that an attempt is over, and forgets its steps. `now`: ms since the epoch.
    pub fn put_over(&mut self, attempt: Attempt, over: Over, now: i64) -> io::Result<()> {
        let mut value = vec![u8::from(over == Over::Lost)];
        value.extend_from_slice(&now.to_be_bytes());
        self.over.insert(attempt_key(attempt), value).map_err(failed)?;
        self.numbers.remove(attempt_key(attempt)).map_err(failed)?;
        for (step, _) in self.steps(attempt) {
            self.steps.remove(step_key(attempt, step)).map_err(failed)?;
        }
        self.dirty = true;
        Ok(())
    }

    pub fn over(&self, attempt: Attempt) -> Option<Over> {
        let value = self.over.get(attempt_key(attempt)).ok()??;
        Some(if value.first() == Some(&1) { Over::Lost } else { Over::Ended })
    }

    /// Forgets attempts that were over before `before` (ms since the epoch).
    pub fn forget_before(&mut self, before: i64) -> io::Result<()> {
        for entry in self.over.iter() {
            let (key, value) = entry.map_err(failed)?;
            let at = value.get(1..9).and_then(|b| Some(i64::from_be_bytes(b.try_into().ok()?))).unwrap_or(0);
            if at < before && attempt_of(&key).is_some() {
                self.over.remove(key).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Returns when every change so far is on disk.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.dirty {
            self.db.flush().map_err(failed)?;
            File::open(&self.file)?.sync_data()?;
            self.dirty = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_proto::v1::{AttemptConfirmed, AttemptGone};

    fn confirmed(job: u32) -> report::Kind {
        report::Kind::Confirmed(AttemptConfirmed { job, attempt: 0 })
    }

    #[test]
    fn reports_come_back_in_order_after_a_restart_until_acknowledged() {
        let dir = tempfile::tempdir().unwrap();
        {
            let mut store = Store::open(dir.path()).unwrap();
            for job in 1..=300 {
                assert_eq!(store.report(confirmed(job)).unwrap().sequence, u64::from(job));
            }
            store.commit().unwrap();
            store.acknowledged(298).unwrap();
        }
        let mut store = Store::open(dir.path()).unwrap();
        let left: Vec<u64> = store.unacknowledged().iter().map(|r| r.sequence).collect();
        assert_eq!(left, [299, 300]);
        assert_eq!(store.reported_attempts().into_iter().collect::<Vec<_>>(), [(299, 0), (300, 0)]);
        let gone = report::Kind::Gone(AttemptGone { job: 300, attempt: 1 });
        assert_eq!(store.report(gone).unwrap().sequence, 301);
    }

    #[test]
    fn step_numbers_are_given_once_even_across_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        assert_eq!((store.take_number((7, 0)).unwrap(), store.take_number((7, 0)).unwrap()), (0, 1));
        store.put_step((7, 0), 1, &ManagedStep::default()).unwrap();
        store.commit().unwrap();
        drop(store);
        let mut store = Store::open(dir.path()).unwrap();
        assert_eq!(store.take_number((7, 0)).unwrap(), 2);
        assert_eq!(store.take_number((7, 1)).unwrap(), 0);
        assert_eq!(store.steps((7, 0)).len(), 1);
        store.put_over((7, 0), Over::Lost, 10).unwrap();
        assert!(store.steps((7, 0)).is_empty());
        assert_eq!(store.over((7, 0)), Some(Over::Lost));
        store.forget_before(11).unwrap();
        assert_eq!(store.over((7, 0)), None);
    }
}
