//! The controller's memory on disk: an append-only journal of events, snapshots of the live state, content-addressed
//! blobs (scripts, environments) and the history of finished jobs.
//!
//! Owns every file below the state directory. Promises: when [`Store::append`] has returned, its events and every blob
//! put before it survive a kill or a power cut at any instant; opening replays exactly what was appended, or fails with
//! the file and offset that is damaged. A record that was being written when the machine died is dropped, never half
//! applied. Must not decide anything about jobs, and must not be asked to keep secrets: files are 0600 in a 0700 folder.
//!
//! Why not sled for this: `docs/decisions/0001-journal.md`.

mod blobs;
pub mod codec;
mod file_store;
mod frame;
mod history;
mod journal;
mod lock;
mod memory;
mod snapshot;
mod space;

pub use file_store::{FileStore, Opened, StoreOptions};
pub use history::HistoryQuery;
pub use memory::MemoryStore;

use sluice_engine::{Event, Job, State};
use sluice_model::BlobId;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the owner of the state needs. One owner; readers use the [`Shelf`].
pub trait Store: Send {
    /// Makes a batch of events durable, and before them every blob put so far, with one flush each. `generation` is the
    /// state's generation once all of them are folded (each event counts one).
    ///
    /// A refusal ([`StoreError::is_refusal`]) means that nothing of the batch was written: go back to the state before
    /// it. Any other error is fatal: what was appended may or may not be on the disk; end the process, a restart
    /// replays what is.
    fn append(&mut self, generation: u64, events: &[Event]) -> Result<(), StoreError>;

    /// Keeps a script or environment; bytes already kept cost nothing. Readable at once, durable with the next append.
    fn put_blob(&mut self, bytes: &[u8]) -> Result<BlobId, StoreError>;

    /// Refuses ([`StoreError::Full`]) while free space is below the floor. Ask before deciding a user's change; reports
    /// from nodes go on until the reserve itself is used up.
    fn check_space(&self) -> Result<(), StoreError>;

    /// The journal has grown enough since the last snapshot, and none is being written.
    fn should_snapshot(&self) -> bool;

    /// Begins to write a snapshot of this state, whose events must all have been appended. Returns at once; the work is
    /// done on a thread, which then removes what the snapshot made superfluous. A failure there is logged and harms
    /// nothing: the journal goes on.
    fn snapshot(&mut self, state: &State) -> Result<(), StoreError>;

    /// Waits for a snapshot that is being written.
    fn finish_snapshot(&mut self);

    /// For readers and for the history; cheap to clone, used from any thread.
    fn shelf(&self) -> Arc<dyn Shelf>;
}

/// Blobs to read, and the history of finished jobs. Never blocks the owner.
pub trait Shelf: Send + Sync {
    /// None when it was never put, or no live job names it any more.
    fn blob(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Makes finished jobs durable in the history; the same (job, attempt) again replaces the earlier record. Those
    /// that have not ended are refused with [`StoreError::Misuse`].
    fn archive(&self, jobs: &[Arc<Job>]) -> Result<(), StoreError>;

    /// Gives each finished job that the query admits, in order of id, to `each`, until it breaks.
    fn history(&self, query: &HistoryQuery, each: &mut dyn FnMut(Job) -> ControlFlow<()>) -> Result<(), StoreError>;
}

/// The content address of a blob: its SHA-256.
pub fn blob_id(bytes: &[u8]) -> BlobId {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    let mut id = [0u8; 32];
    id.copy_from_slice(digest.as_ref());
    BlobId(id)
}

/// What can go wrong, with the place where it did.
#[derive(Debug)]
pub enum StoreError {
    /// No room. Nothing was changed; reads go on.
    Full { path: PathBuf, detail: String },
    /// The store can't vouch for what it was given to keep: a write or flush failed.
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// Something that was flushed reads back wrong.
    Corrupt { path: PathBuf, offset: u64, problem: String },
    /// Another process uses the state directory.
    Locked { path: PathBuf, pid: Option<u32> },
    /// The caller broke a rule of this interface.
    Misuse(String),
}

impl StoreError {
    /// Nothing happened, and the same may succeed later.
    pub fn is_refusal(&self) -> bool {
        matches!(self, StoreError::Full { .. })
    }

    /// Classifies a failed write: out of room or worse.
    fn io(what: &'static str, path: &Path, source: io::Error) -> StoreError {
        match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => {
                StoreError::Full { path: path.to_owned(), detail: format!("can't {what}: {source}") }
            }
            _ => StoreError::Io { what, path: path.to_owned(), source },
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full { path, detail } => write!(f, "no room below {}: {detail}", path.display()),
            StoreError::Io { what, path, source } => write!(f, "can't {what} {}: {source}", path.display()),
            StoreError::Corrupt { path, offset, problem } => {
                write!(f, "{} is damaged at offset {offset}: {problem}", path.display())
            }
            StoreError::Locked { path, pid: Some(pid) } => {
                write!(f, "the state directory {} is in use by process {pid}", path.display())
            }
            StoreError::Locked { path, pid: None } => {
                write!(f, "the state directory {} is in use by another process", path.display())
            }
            StoreError::Misuse(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
