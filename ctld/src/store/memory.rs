//! A store in memory, for tests of what stands on it.

use super::history::HistoryQuery;
use super::{Shelf, Store, StoreError, blob_id};
use sluice_engine::{Event, Job, State};
use sluice_model::{BlobId, JobId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Contents {
    events: Vec<Event>,
    blobs: BTreeMap<BlobId, Vec<u8>>,
    history: BTreeMap<(JobId, u32), Arc<Job>>,
    snapshots: u64,
}

/// Keeps everything, flushes nothing. Clones share their contents, as a restarted controller shares its disk.
#[derive(Clone, Default)]
pub struct MemoryStore {
    contents: Arc<Mutex<Contents>>,
    full: Arc<AtomicBool>,
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// While set, everything that needs room is refused.
    pub fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::SeqCst);
    }

    /// All events appended so far.
    pub fn events(&self) -> Vec<Event> {
        self.contents().events.clone()
    }

    /// Snapshots asked for so far.
    pub fn snapshots(&self) -> u64 {
        self.contents().snapshots
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_if_full(&self) -> Result<(), StoreError> {
        if self.full.load(Ordering::SeqCst) {
            return Err(StoreError::Full { path: PathBuf::from("memory"), detail: "declared full".to_owned() });
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn append(&mut self, generation: u64, events: &[Event]) -> Result<(), StoreError> {
        self.refuse_if_full()?;
        let mut contents = self.contents();
        let due = (contents.events.len() + events.len()) as u64;
        if generation != due {
            return Err(StoreError::Misuse(format!("events up to generation {generation} where {due} is due")));
        }
        contents.events.extend_from_slice(events);
        Ok(())
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobId, StoreError> {
        self.refuse_if_full()?;
        let id = blob_id(bytes);
        self.contents().blobs.insert(id, bytes.to_vec());
        Ok(id)
    }

    fn check_space(&self) -> Result<(), StoreError> {
        self.refuse_if_full()
    }

    fn should_snapshot(&self) -> bool {
        false
    }

    fn snapshot(&mut self, _state: &State) -> Result<(), StoreError> {
        self.contents().snapshots += 1;
        Ok(())
    }

    fn finish_snapshot(&mut self) {}

    fn shelf(&self) -> Arc<dyn Shelf> {
        Arc::new(self.clone())
    }
}

impl Shelf for MemoryStore {
    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.contents().blobs.get(id).cloned())
    }

    fn archive(&self, jobs: &[Arc<Job>]) -> Result<(), StoreError> {
        self.refuse_if_full()?;
        for job in jobs {
            if job.ended().is_none() {
                return Err(StoreError::Misuse(format!("job {} has not ended and can't go to the history", job.id)));
            }
            self.contents().history.insert((job.id, job.attempt), Arc::clone(job));
        }
        Ok(())
    }

    fn history(&self, query: &HistoryQuery, each: &mut dyn FnMut(Job) -> ControlFlow<()>) -> Result<(), StoreError> {
        let mut jobs: Vec<Arc<Job>> = self.contents().history.values().cloned().collect();
        jobs.retain(|job| query.admits_job(job));
        if !query.all_attempts {
            let mut last: BTreeMap<JobId, Arc<Job>> = BTreeMap::new();
            for job in jobs {
                last.insert(job.id, job);
            }
            jobs = last.into_values().collect();
        }
        if query.newest_first {
            jobs.reverse();
        }
        for job in jobs {
            if each(Job::clone(&job)).is_break() {
                break;
            }
        }
        Ok(())
    }
}
