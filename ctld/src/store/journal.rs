//! The journal: append-only files of frames, one frame for each batch of events.
//!
//! Files are named after the generation of their first event, `journal-<generation:020>.log`, and begin with
//! [`MAGIC`]. A frame's sequence number is the generation of its first event. Space is allocated ahead with zeros, so
//! that a full disk is noticed before a byte is written and a flush need not change the file's size. One frame at a time
//! is unflushed, so only the last frame of the last file can be cut short by a crash; anything else that reads back
//! wrong is damage and is reported, never skipped.

use super::StoreError;
use super::frame::{self, Next};
use crate::parallel;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names the format; the last byte is its version.
const MAGIC: &[u8; 16] = b"sluice-journal\0\x01";

/// Where the next frame goes.
pub struct Journal {
    dir: PathBuf,
    file: File,
    path: PathBuf,
    /// End of the last flushed frame.
    offset: u64,
    /// Bytes of the file that surely have blocks.
    allocated: u64,
    /// Allocated at once.
    chunk: u64,
    /// Sequence number of the next frame: the generation of the next event.
    next: u64,
    /// Payload bytes in this file.
    written: u64,
    buffer: Vec<u8>,
    /// A flush failed: what is on the disk is unknown.
    broken: bool,
}

impl Journal {
    /// Replays every event after generation `after`: `decode` is given payloads in any order, on several threads,
    /// `apply(first generation, decoded)` what came of them, in order, and returns how many events it was. Opens the last
    /// file for appending, its torn tail cut off.
    pub fn open<T: Send>(
        dir: &Path,
        after: u64,
        chunk: u64,
        decode: impl Fn(&[u8]) -> Result<T, String> + Sync,
        mut apply: impl FnMut(u64, T) -> Result<u64, String>,
    ) -> Result<Journal, StoreError> {
        let mut files = list(dir)?;
        drop_unfinished(dir, &mut files)?;
        let mut next = after + 1;
        let mut last = None;
        for (n, (first, path)) in files.iter().enumerate() {
            if files.get(n + 1).is_some_and(|(following, _)| *following <= after + 1) {
                continue;
            }
            let newest = n + 1 == files.len();
            if *first > next {
                let problem = format!("it begins with event {first}, but events from {next} on are missing before it");
                return Err(StoreError::Corrupt { path: path.clone(), offset: 0, problem });
            }
            let (end, following) = replay_file(path, *first, after, newest, &decode, &mut apply)?;
            next = next.max(following);
            if newest {
                last = Some((path.clone(), end, following));
            }
        }
        match last {
            // A snapshot can be ahead of the files when the newest were lost with nothing in them.
            Some((path, end, following)) if following >= next => Journal::resume(dir, path, end, next, chunk),
            _ => Journal::create(dir, next, chunk),
        }
    }

    fn resume(dir: &Path, path: PathBuf, end: u64, next: u64, chunk: u64) -> Result<Journal, StoreError> {
        let file =
            OpenOptions::new().read(true).write(true).open(&path).map_err(|e| StoreError::io("open", &path, e))?;
        // Cuts off what a crash left half written, so that it can't be taken for a frame later.
        file.set_len(end).map_err(|e| StoreError::io("truncate", &path, e))?;
        file.sync_all().map_err(|source| StoreError::Io { what: "flush", path: path.clone(), source })?;
        let written = end - MAGIC.len() as u64;
        Ok(Journal {
            dir: dir.to_owned(),
            file,
            path,
            offset: end,
            allocated: end,
            chunk,
            next,
            written,
            buffer: Vec::new(),
            broken: false,
        })
    }

    fn create(dir: &Path, next: u64, chunk: u64) -> Result<Journal, StoreError> {
        let path = dir.join(file_name(next));
        let made = (|| {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)
                .map_err(|e| StoreError::io("create", &path, e))?;
            allocate(&file, 0, chunk).map_err(|e| StoreError::io("allocate space for", &path, e))?;
            file.write_all_at(MAGIC, 0).map_err(|e| StoreError::io("write", &path, e))?;
            file.sync_all().map_err(|e| StoreError::io("flush", &path, e))?;
            sync_dir(dir)?;
            Ok(file)
        })();
        let file = made.inspect_err(|_| {
            // An empty file of that name would be dropped at the next start anyway.
            let _ = fs::remove_file(&path);
        })?;
        let offset = MAGIC.len() as u64;
        Ok(Journal {
            dir: dir.to_owned(),
            file,
            path,
            offset,
            allocated: chunk,
            chunk,
            next,
            written: 0,
            buffer: Vec::new(),
            broken: false,
        })
    }

    /// The generation of the next event.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Payload bytes since the file was begun.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Makes sure that a frame with so long a payload fits, before anything is changed.
    pub fn reserve(&mut self, payload: usize) -> Result<(), StoreError> {
        if self.broken {
            return Err(self.broken_error());
        }
        // One more header's worth of zeros ends the file for readers.
        let end = self.offset + (2 * frame::HEADER + payload) as u64;
        if end > self.allocated {
            let more = (end - self.allocated).next_multiple_of(self.chunk);
            // On a nearly full disk a whole chunk may not fit where the frame still does.
            let done = allocate(&self.file, self.allocated, more).map(|()| more).or_else(|_| {
                let least = end - self.allocated;
                allocate(&self.file, self.allocated, least).map(|()| least)
            });
            self.allocated += done.map_err(|e| StoreError::io("allocate space for", &self.path, e))?;
        }
        Ok(())
    }

    /// Writes one frame that holds `count` events and flushes it. A refusal leaves everything as it was.
    pub fn append(&mut self, payload: &[u8], count: u64) -> Result<(), StoreError> {
        if payload.len() > frame::MAX_PAYLOAD {
            return Err(StoreError::Misuse(format!("a batch of {} bytes is too long for the journal", payload.len())));
        }
        self.reserve(payload.len())?;
        self.buffer.clear();
        frame::put(&mut self.buffer, self.next, payload);
        if let Err(e) = self.file.write_all_at(&self.buffer, self.offset) {
            let error = StoreError::io("write", &self.path, e);
            // Refused only if what was written in part is surely overwritten by zeros or by the next frame.
            self.broken = !error.is_refusal();
            self.buffer.shrink_to(1 << 20);
            return Err(error);
        }
        if let Err(source) = self.file.sync_data() {
            self.broken = true;
            return Err(StoreError::Io { what: "flush", path: self.path.clone(), source });
        }
        self.offset += self.buffer.len() as u64;
        self.written += payload.len() as u64;
        self.next += count;
        self.buffer.shrink_to(1 << 20);
        Ok(())
    }

    /// Goes on in a new file. A refusal leaves the old one in use.
    pub fn rotate(&mut self) -> Result<(), StoreError> {
        if self.broken {
            return Err(self.broken_error());
        }
        if self.written == 0 {
            return Ok(());
        }
        let fresh = Journal::create(&self.dir, self.next, self.chunk)?;
        let old = std::mem::replace(self, fresh);
        // Gives back what was allocated ahead; readers stop at the zeros all the same.
        let _ = old.file.set_len(old.offset);
        Ok(())
    }

    fn broken_error(&self) -> StoreError {
        let source = std::io::Error::other("an earlier write or flush failed");
        StoreError::Io { what: "append to", path: self.path.clone(), source }
    }
}

/// Removes the files whose every event is in a snapshot of generation `upto`.
pub fn remove_until(dir: &Path, upto: u64) -> Result<(), StoreError> {
    let files = list(dir)?;
    for pair in files.windows(2) {
        if pair[1].0 <= upto + 1 {
            fs::remove_file(&pair[0].1).map_err(|e| StoreError::io("remove", &pair[0].1, e))?;
        }
    }
    sync_dir(dir)
}

/// fsync of a folder: makes names in it durable.
pub fn sync_dir(dir: &Path) -> Result<(), StoreError> {
    let result = File::open(dir).and_then(|d| d.sync_all());
    result.map_err(|source| StoreError::Io { what: "flush the folder", path: dir.to_owned(), source })
}

/// Gives the file blocks of zeros for a range, with its size.
pub fn allocate(file: &File, offset: u64, length: u64) -> std::io::Result<()> {
    let (start, size) = (to_off(offset)?, to_off(length)?);
    match nix::fcntl::fallocate(file, nix::fcntl::FallocateFlags::empty(), start, size) {
        Ok(()) => Ok(()),
        // Not every file system can: write the zeros.
        Err(nix::errno::Errno::EOPNOTSUPP | nix::errno::Errno::ENOSYS) => {
            let zeros = vec![0u8; 1 << 16];
            let mut at = offset;
            while at < offset + length {
                let n = (offset + length - at).min(zeros.len() as u64);
                file.write_all_at(&zeros[..n as usize], at)?;
                at += n;
            }
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

fn to_off(n: u64) -> std::io::Result<libc::off_t> {
    libc::off_t::try_from(n).map_err(|_| std::io::Error::from_raw_os_error(libc::EFBIG))
}

fn file_name(first: u64) -> String {
    format!("journal-{first:020}.log")
}

/// The journal's files in order.
fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    super::file_store::numbered(dir, "journal-", ".log")
}

/// A crash between the creation of a file and its first frame leaves it empty, whole or in part; also one whose creation
/// was refused for lack of room. Such files at the end hold nothing: away with them.
fn drop_unfinished(dir: &Path, files: &mut Vec<(u64, PathBuf)>) -> Result<(), StoreError> {
    let mut dropped = false;
    while let Some((_, path)) = files.last() {
        let data = read_file(path)?;
        let begun = data.get(..MAGIC.len()).is_some_and(|m| m == MAGIC);
        let content = if begun { &data[MAGIC.len()..] } else { &data[..] };
        // Without a magic number no frame was ever flushed into it, whatever it holds.
        if begun && content.iter().any(|b| *b != 0) {
            break;
        }
        if !begun && data.iter().any(|b| *b != 0) && !MAGIC.starts_with(trim_zeros(&data)) {
            return Err(not_ours(path));
        }
        fs::remove_file(path).map_err(|e| StoreError::io("remove", path, e))?;
        dropped = true;
        files.pop();
    }
    if dropped { sync_dir(dir) } else { Ok(()) }
}

fn trim_zeros(data: &[u8]) -> &[u8] {
    &data[..data.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1)]
}

fn not_ours(path: &Path) -> StoreError {
    let problem = "it does not begin as a journal of this release does".to_owned();
    StoreError::Corrupt { path: path.to_owned(), offset: 0, problem }
}

fn read_file(path: &Path) -> Result<Vec<u8>, StoreError> {
    fs::read(path).map_err(|source| StoreError::Io { what: "read", path: path.to_owned(), source })
}

/// Frames decoded together: enough that handing over costs nothing beside it.
const UNIT: usize = 64;

/// Replays one file; returns the offset after its last good frame and the generation after its last event.
fn replay_file<T: Send>(
    path: &Path,
    first: u64,
    after: u64,
    newest: bool,
    decode: &(impl Fn(&[u8]) -> Result<T, String> + Sync),
    apply: &mut impl FnMut(u64, T) -> Result<u64, String>,
) -> Result<(u64, u64), StoreError> {
    let data = read_file(path)?;
    if data.get(..MAGIC.len()).is_none_or(|m| m != MAGIC) {
        return Err(not_ours(path));
    }
    let corrupt =
        |offset: usize, problem: String| StoreError::Corrupt { path: path.to_owned(), offset: offset as u64, problem };
    let mut frames: Vec<(usize, u64, &[u8])> = Vec::new();
    let mut offset = MAGIC.len();
    let bad = loop {
        match frame::read(&data, offset) {
            Next::Frame { seq, payload, end } => {
                frames.push((offset, seq, payload));
                offset = end;
            }
            Next::End => break None,
            Next::Bad(problem) => break Some(problem),
        }
    };
    // Frames that a later one shows to be wholly in the snapshot need not be decoded.
    let covered = frames.partition_point(|(_, seq, _)| *seq <= after + 1).saturating_sub(1);
    let mut next = first;
    for pair in frames[..frames.len().min(covered + 1)].windows(2) {
        let ((offset, seq, _), (_, following, _)) = (pair[0], pair[1]);
        if seq != next || following <= seq {
            return Err(corrupt(offset, format!("event {seq} is out of order")));
        }
        next = following;
    }
    let frames = &frames[covered..];
    parallel::in_order(
        frames,
        UNIT,
        |(.., payload)| decode(payload),
        |n, decoded| {
            let (offset, seq, _) = frames[n];
            if seq != next {
                return Err(corrupt(offset, format!("event {seq} where {next} is due")));
            }
            next += decoded.and_then(|decoded| apply(seq, decoded)).map_err(|problem| corrupt(offset, problem))?;
            Ok(())
        },
    )?;
    match bad {
        None => {}
        Some(problem) if newest => {
            if let Some(later) = frame::find_later(&data, offset, next) {
                let problem = format!("{problem}, and a record that was flushed after it follows at {later}");
                return Err(corrupt(offset, problem));
            }
            tracing::warn!(file = %path.display(), offset, "a record cut short by a crash was never acknowledged; dropped");
        }
        Some(problem) => return Err(corrupt(offset, problem.to_owned())),
    }
    Ok((offset as u64, next))
}
