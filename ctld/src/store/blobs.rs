//! Blobs: scripts and environments by their SHA-256, in append-only segment files `blobs-<n:010>.log`.
//!
//! An entry is `u32` length, `u32` CRC-32 of hash and length, 32 bytes SHA-256, the bytes. Opening reads these headers
//! and skips the bodies; a body is checked against its hash when it is read, and before a put is answered by an entry
//! that an earlier process wrote. The same bytes are kept once. What no live job names is dropped when a snapshot is
//! taken ([`Blobs::compact`]), segment by segment.

use super::{StoreError, blob_id, journal};
use sluice_model::BlobId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const HEADER: usize = 40;
/// A segment that has grown beyond this is followed by a new one.
const SEGMENT: u64 = 64 << 20;
/// Space is allocated so much at a time.
const CHUNK: u64 = 4 << 20;

#[derive(Clone, Copy)]
struct Entry {
    segment: u32,
    /// Of the body.
    offset: u64,
    length: u32,
    /// Value of `clock` when it was last put.
    touched: u64,
    /// The body is known to be whole: written by this process, or read and checked.
    checked: bool,
}

struct Segment {
    file: Arc<File>,
    path: PathBuf,
    /// End of the last entry.
    end: u64,
    allocated: u64,
    /// Written since the last flush.
    dirty: bool,
}

struct Inner {
    index: HashMap<BlobId, Entry>,
    segments: BTreeMap<u32, Segment>,
    /// Counts puts: tells what was put after a state was cloned.
    clock: u64,
}

/// All blobs. Shared between the owner, readers and the snapshot thread; no lock is held while a file is flushed.
pub struct Blobs {
    dir: PathBuf,
    inner: Mutex<Inner>,
}

impl Blobs {
    /// Reads the headers of all segments. A torn tail of the last one is cut off.
    pub fn open(dir: &Path) -> Result<Blobs, StoreError> {
        let mut inner = Inner { index: HashMap::new(), segments: BTreeMap::new(), clock: 1 };
        let files = super::file_store::numbered(dir, "blobs-", ".log")?;
        for (n, (number, path)) in files.iter().enumerate() {
            let number = u32::try_from(*number).map_err(|_| corrupt(path, 0, "its number is too large"))?;
            let segment = scan(path, number, n + 1 == files.len(), &mut inner.index)?;
            inner.segments.insert(number, segment);
        }
        Ok(Blobs { dir: dir.to_owned(), inner: Mutex::new(inner) })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here panics between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the bytes; durable after the next [`Blobs::flush`].
    pub fn put(&self, bytes: &[u8]) -> Result<BlobId, StoreError> {
        let id = blob_id(bytes);
        let mut inner = self.lock();
        if inner.touch(&id)? {
            return Ok(id);
        }
        inner.write(&self.dir, &id, bytes)?;
        Ok(id)
    }

    /// Flushes every segment that was written to.
    pub fn flush(&self) -> Result<(), StoreError> {
        let dirty: Vec<(u32, Arc<File>, PathBuf, u64)> = {
            let inner = self.lock();
            let dirty = inner.segments.iter().filter(|(_, s)| s.dirty);
            dirty.map(|(n, s)| (*n, s.file.clone(), s.path.clone(), s.end)).collect()
        };
        for (number, file, path, end) in dirty {
            file.sync_data().map_err(|source| StoreError::Io { what: "flush", path, source })?;
            if let Some(segment) = self.lock().segments.get_mut(&number) {
                segment.dirty = segment.end != end;
            }
        }
        Ok(())
    }

    pub fn get(&self, id: &BlobId) -> Result<Option<Vec<u8>>, StoreError> {
        let (entry, file, path) = {
            let inner = self.lock();
            let Some(entry) = inner.index.get(id).copied() else { return Ok(None) };
            let segment = &inner.segments[&entry.segment];
            (entry, segment.file.clone(), segment.path.clone())
        };
        let body = read_body(&file, &path, &entry)?;
        if blob_id(&body) != *id {
            return Err(corrupt(&path, entry.offset, "a script or environment is not what was stored"));
        }
        Ok(Some(body))
    }

    /// A mark in time: what is put from now on survives [`Blobs::compact`] with this mark.
    pub fn mark(&self) -> u64 {
        let mut inner = self.lock();
        inner.clock += 1;
        inner.clock
    }

    /// Drops segments of which less than half is still `live` or was put since `mark`, after moving that part.
    pub fn compact(&self, live: &HashSet<BlobId>, mark: u64) -> Result<(), StoreError> {
        let keep = |id: &BlobId, entry: &Entry| entry.touched >= mark || live.contains(id);
        let candidates: Vec<u32> = {
            let mut inner = self.lock();
            let mut kept: BTreeMap<u32, u64> = BTreeMap::new();
            for (id, entry) in inner.index.iter().filter(|(id, entry)| keep(id, entry)) {
                let _ = id;
                *kept.entry(entry.segment).or_default() += HEADER as u64 + u64::from(entry.length);
            }
            let worth = |number: &u32, segment: &Segment| {
                2 * kept.get(number).copied().unwrap_or(0) < segment.end && segment.end > 0
            };
            let chosen: Vec<u32> = inner.segments.iter().filter(|(n, s)| worth(n, s)).map(|(n, _)| *n).collect();
            // Live entries move to a segment that stays.
            if inner.segments.last_key_value().is_some_and(|(last, _)| chosen.contains(last)) {
                inner.start_segment(&self.dir)?;
            }
            chosen
        };
        for number in candidates {
            self.empty_segment(number, &keep)?;
        }
        Ok(())
    }

    fn empty_segment(&self, number: u32, keep: &dyn Fn(&BlobId, &Entry) -> bool) -> Result<(), StoreError> {
        loop {
            let mut inner = self.lock();
            let in_segment = inner.index.iter().filter(|(_, e)| e.segment == number);
            let moving: Vec<(BlobId, Entry)> =
                in_segment.filter(|(id, e)| keep(id, e)).map(|(id, e)| (*id, *e)).collect();
            if moving.is_empty() {
                inner.index.retain(|_, entry| entry.segment != number);
                let removed = inner.segments.remove(&number);
                drop(inner);
                if let Some(segment) = removed {
                    fs::remove_file(&segment.path).map_err(|e| StoreError::io("remove", &segment.path, e))?;
                }
                return Ok(());
            }
            let Some(segment) = inner.segments.get(&number) else { return Ok(()) };
            let (file, path) = (segment.file.clone(), segment.path.clone());
            drop(inner);
            for (id, entry) in moving {
                let body = read_body(&file, &path, &entry)?;
                if blob_id(&body) != id {
                    return Err(corrupt(&path, entry.offset, "a script or environment is not what was stored"));
                }
                let mut inner = self.lock();
                // It may have been put anew meanwhile.
                let here = inner.index.get(&id).copied().filter(|e| e.segment == number);
                if let Some(here) = here {
                    inner.write(&self.dir, &id, &body)?;
                    if let Some(moved) = inner.index.get_mut(&id) {
                        moved.touched = here.touched;
                    }
                }
            }
            // Durable in the new place before it goes from the old one.
            self.flush()?;
        }
    }

    /// Bytes of all segments; for tests and figures.
    #[cfg(test)]
    fn size(&self) -> u64 {
        self.lock().segments.values().map(|s| s.end).sum()
    }
}

impl Inner {
    /// Marks a blob as used now. False when there is none, or the one there turns out to be damaged.
    fn touch(&mut self, id: &BlobId) -> Result<bool, StoreError> {
        let clock = self.clock;
        let Some(entry) = self.index.get_mut(id) else { return Ok(false) };
        if !entry.checked {
            let segment = &self.segments[&entry.segment];
            let body = read_body(&segment.file, &segment.path, entry);
            if !body.is_ok_and(|b| blob_id(&b) == *id) {
                return Ok(false);
            }
            entry.checked = true;
        }
        entry.touched = clock;
        Ok(true)
    }

    /// Appends an entry to the last segment.
    fn write(&mut self, dir: &Path, id: &BlobId, bytes: &[u8]) -> Result<(), StoreError> {
        let length = u32::try_from(bytes.len())
            .map_err(|_| StoreError::Misuse(format!("a blob of {} bytes is too long", bytes.len())))?;
        if self.segments.last_key_value().is_none_or(|(_, s)| s.end >= SEGMENT) {
            self.start_segment(dir)?;
        }
        let Some(mut last) = self.segments.last_entry() else {
            return Err(StoreError::Misuse("no blob segment".to_owned()));
        };
        let number = *last.key();
        let segment = last.get_mut();
        let size = (HEADER + bytes.len()) as u64;
        if segment.end + size > segment.allocated {
            let least = segment.end + size - segment.allocated;
            let more = least.next_multiple_of(CHUNK);
            let done = journal::allocate(&segment.file, segment.allocated, more)
                .map(|()| more)
                .or_else(|_| journal::allocate(&segment.file, segment.allocated, least).map(|()| least));
            segment.allocated += done.map_err(|e| StoreError::io("allocate space for", &segment.path, e))?;
        }
        let mut entry = Vec::with_capacity(HEADER + bytes.len());
        entry.extend_from_slice(&length.to_le_bytes());
        entry.extend_from_slice(&header_checksum(length, &id.0).to_le_bytes());
        entry.extend_from_slice(&id.0);
        entry.extend_from_slice(bytes);
        segment.file.write_all_at(&entry, segment.end).map_err(|e| StoreError::io("write", &segment.path, e))?;
        let offset = segment.end + HEADER as u64;
        segment.end += size;
        segment.dirty = true;
        self.index.insert(*id, Entry { segment: number, offset, length, touched: self.clock, checked: true });
        Ok(())
    }

    fn start_segment(&mut self, dir: &Path) -> Result<(), StoreError> {
        let number = self.segments.last_key_value().map_or(1, |(n, _)| n + 1);
        let path = dir.join(format!("blobs-{number:010}.log"));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| StoreError::io("create", &path, e))?;
        journal::sync_dir(dir)?;
        self.segments.insert(number, Segment { file: Arc::new(file), path, end: 0, allocated: 0, dirty: false });
        Ok(())
    }
}

fn header_checksum(length: u32, hash: &[u8; 32]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(hash);
    hasher.finalize()
}

fn corrupt(path: &Path, offset: u64, problem: &str) -> StoreError {
    StoreError::Corrupt { path: path.to_owned(), offset, problem: problem.to_owned() }
}

fn read_body(file: &File, path: &Path, entry: &Entry) -> Result<Vec<u8>, StoreError> {
    let mut body = vec![0; entry.length as usize];
    file.read_exact_at(&mut body, entry.offset).map_err(|source| StoreError::Io {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    Ok(body)
}

/// Reads the headers of one segment into the index.
fn scan(path: &Path, number: u32, newest: bool, index: &mut HashMap<BlobId, Entry>) -> Result<Segment, StoreError> {
    let io = |source| StoreError::Io { what: "read", path: path.to_owned(), source };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| StoreError::io("open", path, e))?;
    let size = file.metadata().map_err(io)?.len();
    let mut at = 0u64;
    // End of the last entry.
    let mut end = 0u64;
    let mut header = [0u8; HEADER];
    while at + HEADER as u64 <= size {
        file.read_exact_at(&mut header, at).map_err(io)?;
        if let Some((id, length)) = parse_header(&header)
            && at + HEADER as u64 + u64::from(length) <= size
        {
            let entry = Entry { segment: number, offset: at + HEADER as u64, length, touched: 0, checked: false };
            index.insert(id, entry);
            at += HEADER as u64 + u64::from(length);
            end = at;
            continue;
        }
        // The end; or entries that a crash cut short, which may have lost the first of them and kept a later one.
        let mut rest = vec![0; (size - at) as usize];
        file.read_exact_at(&mut rest, at).map_err(io)?;
        let Some(last) = rest.iter().rposition(|b| *b != 0) else { break };
        tracing::warn!(file = %path.display(), offset = at, "an entry cut short by a crash or damaged is skipped");
        rest.truncate(last + 1 + HEADER);
        match rest.windows(HEADER).position(|w| w.iter().any(|b| *b != 0) && parse_header(w).is_some()) {
            Some(skip) if skip > 0 => at += skip as u64,
            _ => break,
        }
    }
    if newest {
        file.set_len(end).map_err(|e| StoreError::io("truncate", path, e))?;
        file.sync_all().map_err(io)?;
    }
    let allocated = if newest { end } else { size };
    Ok(Segment { file: Arc::new(file), path: path.to_owned(), end, allocated, dirty: false })
}

fn parse_header(header: &[u8]) -> Option<(BlobId, u32)> {
    let word = |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
    let mut hash = [0u8; 32];
    hash.copy_from_slice(&header[8..HEADER]);
    (header_checksum(word(0), &hash) == word(4)).then(|| (BlobId(hash), word(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopen(dir: &Path) -> Blobs {
        Blobs::open(dir).unwrap()
    }

    #[test]
    fn blobs_read_back_after_reopening_and_are_kept_once() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = reopen(dir.path());
        let a = blobs.put(b"#!/bin/sh\n").unwrap();
        let empty = blobs.put(b"").unwrap();
        let size = blobs.size();
        assert_eq!(blobs.put(b"#!/bin/sh\n").unwrap(), a);
        assert_eq!(blobs.size(), size);
        blobs.flush().unwrap();
        drop(blobs);
        let blobs = reopen(dir.path());
        assert_eq!(blobs.get(&a).unwrap().as_deref(), Some(&b"#!/bin/sh\n"[..]));
        assert_eq!(blobs.get(&empty).unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(blobs.get(&blob_id(b"other")).unwrap(), None);
        assert_eq!(blobs.put(b"#!/bin/sh\n").unwrap(), a);
        assert_eq!(blobs.size(), size);
    }

    #[test]
    fn a_body_that_a_crash_lost_is_written_again_by_the_next_put() {
        let dir = tempfile::tempdir().unwrap();
        let id = reopen(dir.path()).put(b"some environment").unwrap();
        let path = dir.path().join("blobs-0000000001.log");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; 16], HEADER as u64).unwrap();
        let blobs = reopen(dir.path());
        assert!(matches!(blobs.get(&id), Err(StoreError::Corrupt { .. })));
        blobs.put(b"some environment").unwrap();
        assert_eq!(blobs.get(&id).unwrap().unwrap(), b"some environment");
    }

    #[test]
    fn a_torn_tail_is_cut_off_and_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = reopen(dir.path());
        let a = blobs.put(b"first").unwrap();
        let b = blobs.put(b"second").unwrap();
        drop(blobs);
        let path = dir.path().join("blobs-0000000001.log");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len((2 * HEADER + 5 + 3) as u64).unwrap();
        let blobs = reopen(dir.path());
        assert_eq!(blobs.get(&b).unwrap(), None);
        blobs.put(b"second").unwrap();
        drop(blobs);
        let blobs = reopen(dir.path());
        assert_eq!(blobs.get(&a).unwrap().unwrap(), b"first");
        assert_eq!(blobs.get(&b).unwrap().unwrap(), b"second");
    }

    #[test]
    fn compaction_keeps_what_is_live_or_was_put_since_the_mark() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = reopen(dir.path());
        let dead: Vec<BlobId> = (0..50).map(|n| blobs.put(format!("dead {n}").as_bytes()).unwrap()).collect();
        let live = blobs.put(b"live").unwrap();
        let again = blobs.put(b"put again by a submission under way").unwrap();
        blobs.flush().unwrap();
        let mark = blobs.mark();
        blobs.put(b"put again by a submission under way").unwrap();
        let fresh = blobs.put(b"fresh").unwrap();
        blobs.compact(&HashSet::from([live]), mark).unwrap();
        drop(blobs);
        let blobs = reopen(dir.path());
        for id in [live, again, fresh] {
            assert!(blobs.get(&id).unwrap().is_some());
        }
        for id in dead {
            assert_eq!(blobs.get(&id).unwrap(), None);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
