//! The store on a local file system: what holds journal, snapshots, blobs and history together.
//!
//! Layout below the state directory: `lock`, `journal/`, `snapshots/`, `blobs/`, `history/`.

use super::blobs::Blobs;
use super::history::{History, HistoryQuery};
use super::journal::Journal;
use super::lock::DirLock;
use super::space::SpaceWatch;
use super::{Shelf, Store, StoreError, codec, journal, snapshot};
use crate::pool::Pool;
use sluice_engine::{Event, Job, State};
use sluice_model::BlobId;
use sluice_model::job::JobKind;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Sizes that a test or an unusual machine may want otherwise.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Free bytes below which users' changes are refused. None: 64 MiB, or 1% of a file system smaller than 6.4 GB.
    pub floor: Option<u64>,
    /// The journal's space is allocated so many bytes at a time.
    pub chunk: u64,
    /// A snapshot is due after so many bytes of journal, or twice the last snapshot's size if that is more.
    pub snapshot_after: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions { floor: None, chunk: 8 << 20, snapshot_after: 64 << 20 }
    }
}

/// What the background thread and readers share with the owner.
struct Shared {
    snapshots: PathBuf,
    journals: PathBuf,
    blobs: Blobs,
    history: History,
    snapshot_running: AtomicBool,
    snapshot_bytes: AtomicU64,
    /// Journal bytes in files before the current one that no snapshot covers.
    uncovered: AtomicU64,
    /// When a snapshot last failed: the next try waits.
    failed: Mutex<Option<Instant>>,
}

/// After a failed snapshot (a full disk, say) the next is tried so much later.
const RETRY: Duration = Duration::from_secs(60);

thread_local! {
    /// One for each thread that decodes: what is freed again for being there already is freed where it was made, which is
    /// cheap, and a copy for each thread costs nothing.
    static POOL: RefCell<Pool> = RefCell::default();
}

/// [`Store`] in files.
pub struct FileStore {
    shared: Arc<Shared>,
    journal: Journal,
    space: SpaceWatch,
    snapshot_after: u64,
    snapshot_thread: Option<JoinHandle<()>>,
    record: Vec<u8>,
    _lock: DirLock,
}

/// The store and the state that it held.
pub struct Opened {
    pub store: FileStore,
    pub state: State,
}

impl FileStore {
    /// Opens a state directory, making it if it is not there: newest valid snapshot, then the journal.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Opened, StoreError> {
        FileStore::open_with(dir, options, State::rebuild_indexes, sluice_engine::fold)
    }

    /// [`FileStore::open`] with another way to make a loaded snapshot whole and to apply an event, for tests that are
    /// about the store alone.
    pub fn open_with(
        dir: &Path,
        options: StoreOptions,
        complete: impl FnOnce(&mut State),
        mut fold: impl FnMut(&mut State, &Event),
    ) -> Result<Opened, StoreError> {
        for sub in ["", "journal", "snapshots", "blobs", "history"] {
            let path = dir.join(sub);
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            made.map_err(|e| StoreError::io("create", &path, e))?;
        }
        let lock = DirLock::take(dir)?;
        journal::sync_dir(dir)?;
        let snapshots = dir.join("snapshots");
        let journals = dir.join("journal");
        remove_temporary(&snapshots)?;
        let (mut state, snapshot_bytes) = load_snapshot(&snapshots)?;
        complete(&mut state);
        let (mut replayed, mut bytes) = (0u64, 0u64);
        let from = state.generation;
        let decode = |payload: &[u8]| {
            let mut events = codec::decode_record(payload)?;
            POOL.with_borrow_mut(|pool| events.iter_mut().for_each(|event| pool.event(event)));
            Ok((events, payload.len()))
        };
        let journal = Journal::open(&journals, from, options.chunk, decode, |first, (events, length)| {
            let count = events.len() as u64;
            for (generation, event) in (first..).zip(&events) {
                if generation > from {
                    fold(&mut state, event);
                    if state.generation != generation {
                        return Err(format!("event {generation} made generation {}", state.generation));
                    }
                    replayed += 1;
                }
            }
            bytes += length as u64;
            Ok(count)
        })?;
        POOL.take();
        let blobs = Blobs::open(&dir.join("blobs"))?;
        tracing::debug!(generation = state.generation, replayed, "store opened");
        give_back_memory();
        let shared = Arc::new(Shared {
            snapshots,
            journals,
            blobs,
            history: History::new(&dir.join("history")),
            snapshot_running: AtomicBool::new(false),
            snapshot_bytes: AtomicU64::new(snapshot_bytes),
            uncovered: AtomicU64::new(bytes.saturating_sub(journal.written())),
            failed: Mutex::new(None),
        });
        let store = FileStore {
            shared,
            journal,
            space: SpaceWatch::new(dir, options.floor),
            snapshot_after: options.snapshot_after,
            snapshot_thread: None,
            record: Vec::new(),
            _lock: lock,
        };
        Ok(Opened { store, state })
    }
}

impl Store for FileStore {
    fn append(&mut self, generation: u64, events: &[Event]) -> Result<(), StoreError> {
        let count = events.len() as u64;
        if count == 0 {
            return Ok(());
        }
        let due = self.journal.next() + count - 1;
        if generation != due {
            return Err(StoreError::Misuse(format!(
                "{count} events up to generation {generation} do not follow: {due} is due"
            )));
        }
        self.record.clear();
        codec::encode_record(events, &mut self.record);
        // What can't be read back must not be acknowledged. Worth its time only where mistakes are looked for.
        #[cfg(debug_assertions)]
        match codec::decode_record(&self.record) {
            Ok(back) if back == events => {}
            Ok(back) => return Err(StoreError::Misuse(format!("{events:?} reads back as {back:?}"))),
            Err(problem) => return Err(StoreError::Misuse(format!("{events:?} does not read back: {problem}"))),
        }
        // Room first: a refusal must leave nothing behind.
        self.journal.reserve(self.record.len())?;
        self.shared.blobs.flush()?;
        let done = self.journal.append(&self.record, count);
        self.record.shrink_to(1 << 20);
        done
    }

    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobId, StoreError> {
        self.shared.blobs.put(bytes)
    }

    fn check_space(&self) -> Result<(), StoreError> {
        self.space.check()
    }

    fn should_snapshot(&self) -> bool {
        let limit = self.snapshot_after.max(2 * self.shared.snapshot_bytes.load(Ordering::Relaxed));
        self.shared.uncovered.load(Ordering::Relaxed) + self.journal.written() > limit
            && !self.shared.snapshot_running.load(Ordering::Acquire)
            && self.shared.failed().is_none_or(|at| at.elapsed() >= RETRY)
    }

    fn snapshot(&mut self, state: &State) -> Result<(), StoreError> {
        if state.generation >= self.journal.next() {
            return Err(StoreError::Misuse(format!(
                "a snapshot of generation {} is ahead of the journal, which goes up to {}",
                state.generation,
                self.journal.next() - 1
            )));
        }
        if self.shared.snapshot_running.load(Ordering::Acquire) {
            return Ok(());
        }
        self.finish_snapshot();
        // What is put from here on belongs to jobs that this state may not know.
        let mark = self.shared.blobs.mark();
        let written = self.journal.written();
        self.journal.rotate().inspect_err(|_| *self.shared.failed() = Some(Instant::now()))?;
        let covers = self.shared.uncovered.fetch_add(written, Ordering::Relaxed) + written;
        let (shared, state) = (Arc::clone(&self.shared), state.clone());
        self.shared.snapshot_running.store(true, Ordering::Release);
        let work = move || {
            let begin = Instant::now();
            match shared.write_snapshot(&state, mark, covers) {
                Ok(bytes) => tracing::info!(
                    generation = state.generation,
                    jobs = state.jobs.len(),
                    bytes,
                    journal_bytes = covers,
                    ms = begin.elapsed().as_millis(),
                    "snapshot written"
                ),
                Err(error) => {
                    *shared.failed() = Some(Instant::now());
                    tracing::error!(%error, "no snapshot could be written; the journal is kept");
                }
            }
            shared.snapshot_running.store(false, Ordering::Release);
        };
        match std::thread::Builder::new().name("snapshot".to_owned()).spawn(work) {
            Ok(thread) => {
                self.snapshot_thread = Some(thread);
                Ok(())
            }
            Err(source) => {
                self.shared.snapshot_running.store(false, Ordering::Release);
                *self.shared.failed() = Some(Instant::now());
                let path = self.shared.snapshots.clone();
                Err(StoreError::Io { what: "start a thread to write to", path, source })
            }
        }
    }

    fn finish_snapshot(&mut self) {
        if let Some(thread) = self.snapshot_thread.take() {
            // It catches its own errors; a panic was printed.
            let _ = thread.join();
            self.shared.snapshot_running.store(false, Ordering::Release);
        }
    }

    fn shelf(&self) -> Arc<dyn Shelf> {
        Arc::clone(&self.shared) as Arc<dyn Shelf>
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        // The lock goes with the store: nothing may write below the directory afterwards.
        self.finish_snapshot();
    }
}

impl Shared {
    fn failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_snapshot(&self, state: &State, mark: u64, covers: u64) -> Result<u64, StoreError> {
        let bytes = snapshot::write(&self.snapshots, state)?;
        self.snapshot_bytes.store(bytes, Ordering::Relaxed);
        self.uncovered.fetch_sub(covers, Ordering::Relaxed);
        // The one before stays, with the journal since then: a snapshot that proves unreadable costs nothing.
        let mut kept = snapshot::list(&self.snapshots)?;
        kept.retain(|(generation, _)| *generation <= state.generation);
        let older = kept.len().saturating_sub(2);
        for (_, path) in &kept[..older] {
            fs::remove_file(path).map_err(|e| StoreError::io("remove", path, e))?;
        }
        journal::sync_dir(&self.snapshots)?;
        let oldest = kept.get(older).map_or(0, |(generation, _)| *generation);
        // With no snapshot before this one the whole journal is its stand-in.
        if kept.len() >= 2 {
            journal::remove_until(&self.journals, oldest)?;
        }
        let mut live = HashSet::new();
        for job in state.jobs.values() {
            if let JobKind::Batch { script, .. } = &job.spec.kind {
                live.insert(*script);
            }
            live.insert(job.spec.environment);
        }
        self.blobs.compact(&live, mark)?;
        Ok(bytes)
    }
}

impl Shelf for Shared {
    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        self.blobs.get(id)
    }

    fn archive(&self, jobs: &[Arc<Job>]) -> Result<(), StoreError> {
        self.history.append(jobs)
    }

    fn history(&self, query: &HistoryQuery, each: &mut dyn FnMut(Job) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.history.query(query, each)
    }
}

/// Files of a folder named PREFIX, number, SUFFIX; in order of the number.
pub fn numbered(dir: &Path, prefix: &str, suffix: &str) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let io = |source| StoreError::Io { what: "list", path: dir.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok());
        files.extend(number.map(|number| (number, entry.path())));
    }
    files.sort_unstable();
    Ok(files)
}

/// Reading everything back needs several times the memory of what is read: hands the free part to the kernel again.
fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called at any time; it touches free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// What a crash left of a snapshot that was being written.
fn remove_temporary(dir: &Path) -> Result<(), StoreError> {
    for (_, path) in numbered(dir, "snapshot-", ".tmp")? {
        fs::remove_file(&path).map_err(|e| StoreError::io("remove", &path, e))?;
    }
    Ok(())
}

/// The newest snapshot that is whole, else an empty state; and its size.
fn load_snapshot(dir: &Path) -> Result<(State, u64), StoreError> {
    let mut damaged = None;
    for (_, path) in snapshot::list(dir)?.into_iter().rev() {
        match snapshot::read(&path) {
            Ok(loaded) => return Ok((loaded.state, loaded.bytes)),
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(%error, "a snapshot is unreadable; trying the one before");
                damaged = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // Without any snapshot the journal must begin at the first event, which replay checks; damage comes to light there.
    if damaged.is_some() {
        tracing::error!("no snapshot is readable; replaying the whole journal");
    }
    Ok((State::default(), 0))
}
