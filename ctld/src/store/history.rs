//! The history: finished jobs, in one file for each day (UTC) on which they ended, `YYYY-MM-DD.log`.
//!
//! A record is a frame whose sequence number is the job's id. Its payload begins with 24 bytes that a search can judge
//! without decoding the rest (attempt, array, uid, reserved: `u32` each; end: `i64`, all little-endian); a protobuf
//! HistoryRecord follows. Appending flushes; the same (job, attempt) written again replaces the earlier record, so that a
//! crash between writing the history and purging the live state does no harm. What each day holds is learned when it is
//! first asked for, never at start-up: memory and restart don't grow with the history.

use super::frame::{self, Next};
use super::{StoreError, codec, journal};
use prost::Message;
use sluice_engine::Job;
use sluice_model::{JobId, JobSpec, Time};
use sluice_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes before the protobuf of a record.
const PREFIX: usize = 24;
const DAY_MS: i64 = 86_400_000;

/// Which finished jobs. The fields are what can be judged cheaply; the rest is the caller's to judge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HistoryQuery {
    /// Not ended before this.
    pub ended_since: Option<Time>,
    /// Ended before this.
    pub ended_before: Option<Time>,
    /// These jobs, and the tasks of these arrays.
    pub jobs: Option<BTreeSet<JobId>>,
    pub uids: Option<BTreeSet<u32>>,
    /// Every recorded attempt of a job, not only its last.
    pub all_attempts: bool,
    /// In descending order of id.
    pub newest_first: bool,
}

impl HistoryQuery {
    fn admits(&self, record: &Found) -> bool {
        self.ended_since.is_none_or(|since| record.end >= since)
            && self.ended_before.is_none_or(|before| record.end < before)
            && self.uids.as_ref().is_none_or(|uids| uids.contains(&record.uid))
            && self.jobs.as_ref().is_none_or(|jobs| {
                jobs.contains(&record.job) || record.array.is_some_and(|array| jobs.contains(&array))
            })
    }

    /// The same judgement on a decoded job.
    pub fn admits_job(&self, job: &Job) -> bool {
        let end = job.ended().unwrap_or(Time(0));
        let (job, attempt, array, uid) = (job.id, job.attempt, job.array_id(), job.spec.uid);
        self.admits(&Found { job, attempt, array, uid, end, day: 0, offset: 0, length: 0 })
    }

    /// Whether a day with this summary can hold anything of interest.
    fn may_hold(&self, summary: &Summary) -> bool {
        let ids = self.jobs.as_ref().is_none_or(|jobs| jobs.range(summary.lowest..=summary.highest).next().is_some());
        ids && summary.records > 0
    }
}

/// What one day's file holds, learned by reading it once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Summary {
    records: u64,
    /// Job and array ids.
    lowest: JobId,
    highest: JobId,
}

impl Summary {
    const EMPTY: Summary = Summary { records: 0, lowest: JobId(u32::MAX), highest: JobId(0) };

    fn add(&mut self, job: JobId, array: Option<JobId>) {
        self.records += 1;
        for id in std::iter::once(job).chain(array) {
            self.lowest = self.lowest.min(id);
            self.highest = self.highest.max(id);
        }
    }
}

/// One day's file that this process has looked at.
struct Segment {
    /// End of the last whole record. Readers go no further.
    end: u64,
    summary: Summary,
}

/// A record that a query admits, not yet decoded.
struct Found {
    job: JobId,
    attempt: u32,
    array: Option<JobId>,
    uid: u32,
    end: Time,
    day: i64,
    /// Of the frame.
    offset: u64,
    length: u32,
}

/// All days. Appends and queries only share a lock on the table of segments.
pub struct History {
    dir: PathBuf,
    segments: Mutex<BTreeMap<i64, Segment>>,
    /// One append at a time.
    writing: Mutex<()>,
}

impl History {
    /// Opens nothing yet.
    pub fn new(dir: &Path) -> History {
        History { dir: dir.to_owned(), segments: Mutex::default(), writing: Mutex::default() }
    }

    fn segments(&self) -> MutexGuard<'_, BTreeMap<i64, Segment>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, day: i64) -> PathBuf {
        let (year, month, date) = civil(day);
        self.dir.join(format!("{year:04}-{month:02}-{date:02}.log"))
    }

    /// Writes finished jobs, one flush for each day among them.
    pub fn append(&self, jobs: &[Arc<Job>]) -> Result<(), StoreError> {
        let mut days: BTreeMap<i64, Vec<&Job>> = BTreeMap::new();
        for job in jobs {
            let Some(ended) = job.ended() else {
                return Err(StoreError::Misuse(format!("job {} has not ended and can't go to the history", job.id)));
            };
            days.entry(ended.0.div_euclid(DAY_MS)).or_default().push(job);
        }
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        for (day, jobs) in days {
            self.append_day(day, &jobs)?;
        }
        Ok(())
    }

    fn append_day(&self, day: i64, jobs: &[&Job]) -> Result<(), StoreError> {
        let path = self.path(day);
        let fresh = !path.exists();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| StoreError::io("open", &path, e))?;
        if fresh {
            journal::sync_dir(&self.dir)?;
        }
        let (end, mut summary) = self.segment(day, &path)?;
        let mut bytes = Vec::new();
        for job in jobs {
            frame::put(&mut bytes, u64::from(job.id.0), &encode(job));
            summary.add(job.id, job.array_id());
        }
        let written = file.write_all_at(&bytes, end).and_then(|()| file.set_len(end + bytes.len() as u64));
        if let Err(e) = written {
            // What was written in part lies beyond `end` and is written over next time.
            let _ = file.set_len(end);
            return Err(StoreError::io("write", &path, e));
        }
        file.sync_data().map_err(|source| StoreError::Io { what: "flush", path: path.clone(), source })?;
        self.segments().insert(day, Segment { end: end + bytes.len() as u64, summary });
        Ok(())
    }

    /// End and summary of a day, read from its file the first time.
    fn segment(&self, day: i64, path: &Path) -> Result<(u64, Summary), StoreError> {
        if let Some(segment) = self.segments().get(&day) {
            return Ok((segment.end, segment.summary));
        }
        let mut summary = Summary::EMPTY;
        let end = scan(path, day, u64::MAX, &mut |found| summary.add(found.job, found.array))?;
        // An append may have been quicker.
        let mut segments = self.segments();
        let segment = segments.entry(day).or_insert(Segment { end, summary });
        Ok((segment.end, segment.summary))
    }

    /// Days with a file, oldest first.
    fn days(&self) -> Result<Vec<i64>, StoreError> {
        let io = |source| StoreError::Io { what: "list", path: self.dir.clone(), source };
        let mut days = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            days.extend(name.to_str().and_then(parse_day));
        }
        days.sort_unstable();
        Ok(days)
    }

    /// Gives each job that the query admits to `each`, in order of id and attempt.
    pub fn query(&self, query: &HistoryQuery, each: &mut dyn FnMut(Job) -> ControlFlow<()>) -> Result<(), StoreError> {
        let first = query.ended_since.map_or(i64::MIN, |t| t.0.div_euclid(DAY_MS));
        let last = query.ended_before.map_or(i64::MAX, |t| t.0.saturating_sub(1).div_euclid(DAY_MS));
        let mut found: BTreeMap<(JobId, u32), Found> = BTreeMap::new();
        for day in self.days()?.into_iter().filter(|day| (first..=last).contains(day)) {
            let path = self.path(day);
            let (end, summary) = self.segment(day, &path)?;
            if query.may_hold(&summary) {
                scan(&path, day, end, &mut |record| {
                    // What was written again replaces what was there.
                    let key = (record.job, if query.all_attempts { record.attempt } else { 0 });
                    let newer = found.get(&key).is_none_or(|known| record.attempt >= known.attempt);
                    if newer && query.admits(&record) {
                        found.insert(key, record);
                    }
                })?;
            }
        }
        let mut open: Option<(i64, File, PathBuf)> = None;
        let mut give = |record: &Found| -> Result<ControlFlow<()>, StoreError> {
            if open.as_ref().is_none_or(|(day, ..)| *day != record.day) {
                let path = self.path(record.day);
                let file =
                    File::open(&path).map_err(|source| StoreError::Io { what: "open", path: path.clone(), source })?;
                open = Some((record.day, file, path));
            }
            match &open {
                Some((_, file, path)) => Ok(each(read_record(file, path, record)?)),
                None => Ok(ControlFlow::Continue(())),
            }
        };
        if query.newest_first {
            for record in found.values().rev() {
                if give(record)?.is_break() {
                    break;
                }
            }
        } else {
            for record in found.values() {
                if give(record)?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn encode(job: &Job) -> Vec<u8> {
    let record = v1::HistoryRecord { job: Some(codec::job_to_disk(job, 0)), spec: Some((&*job.spec).into()) };
    let mut payload = Vec::with_capacity(PREFIX + record.encoded_len());
    payload.extend_from_slice(&job.attempt.to_le_bytes());
    payload.extend_from_slice(&job.array_id().map_or(0, |array| array.0).to_le_bytes());
    payload.extend_from_slice(&job.spec.uid.to_le_bytes());
    payload.extend_from_slice(&[0; 4]);
    payload.extend_from_slice(&job.ended().map_or(0, |t| t.0).to_le_bytes());
    record.encode_raw(&mut payload);
    payload
}

fn read_record(file: &File, path: &Path, found: &Found) -> Result<Job, StoreError> {
    let mut bytes = vec![0; frame::HEADER + found.length as usize];
    file.read_exact_at(&mut bytes, found.offset).map_err(|source| StoreError::Io {
        what: "read",
        path: path.to_owned(),
        source,
    })?;
    let corrupt = |problem: String| StoreError::Corrupt { path: path.to_owned(), offset: found.offset, problem };
    let Next::Frame { payload, .. } = frame::read(&bytes, 0) else {
        return Err(corrupt("the checksum of a finished job's record is wrong".to_owned()));
    };
    let decoded = v1::HistoryRecord::decode(&payload[PREFIX..]).map_err(|e| corrupt(e.to_string()))?;
    let (Some(job), Some(spec)) = (decoded.job, decoded.spec) else {
        return Err(corrupt("a finished job's record is not whole".to_owned()));
    };
    let spec = JobSpec::try_from(spec).map_err(|e| corrupt(e.to_string()))?;
    codec::job_from_disk(job, Arc::new(spec)).map_err(|e| corrupt(e.to_string()))
}

/// Reads headers and prefixes up to `limit`; returns the end of the last whole record. The last record's checksum is
/// proven, since a crash may have cut it short; the others' are when they are decoded.
fn scan(path: &Path, day: i64, limit: u64, each: &mut dyn FnMut(Found)) -> Result<u64, StoreError> {
    let io = |source| StoreError::Io { what: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let size = file.metadata().map_err(io)?.len().min(limit);
    let mut reader = BufReader::with_capacity(1 << 18, &file);
    let mut offset = 0;
    let mut pending: Option<Found> = None;
    let mut header = [0; frame::HEADER + PREFIX];
    while offset + header.len() as u64 <= size {
        reader.read_exact(&mut header).map_err(io)?;
        let word = |n: usize| u32::from_le_bytes([header[n], header[n + 1], header[n + 2], header[n + 3]]);
        let length = word(0);
        let end = offset + frame::HEADER as u64 + u64::from(length);
        if (length as usize) < PREFIX || end > size {
            break;
        }
        if let Some(whole) = pending.take() {
            each(whole);
        }
        let (low, high) = (u64::from(word(frame::HEADER + 16)), u64::from(word(frame::HEADER + 20)));
        let array = word(frame::HEADER + 4);
        pending = Some(Found {
            job: JobId(word(8)),
            attempt: word(frame::HEADER),
            array: (array != 0).then_some(JobId(array)),
            uid: word(frame::HEADER + 8),
            end: Time((low | high << 32).cast_signed()),
            day,
            offset,
            length,
        });
        offset = end;
        reader.seek_relative(i64::from(length) - PREFIX as i64).map_err(io)?;
    }
    if let Some(last) = pending {
        match read_record(&file, path, &last) {
            Ok(_) => each(last),
            Err(StoreError::Corrupt { .. }) => offset = last.offset,
            Err(error) => return Err(error),
        }
    }
    if offset < size {
        tracing::warn!(file = %path.display(), offset, "a record cut short by a crash was never confirmed; it is written again");
    }
    Ok(offset)
}

/// Year, month and day of a day number since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// The way back from a file's name.
fn parse_day(name: &str) -> Option<i64> {
    let mut parts = name.strip_suffix(".log")?.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, date) = (parts.next()??, parts.next()??, parts.next()??);
    let y = if month <= 2 { year - 1 } else { year };
    let (era, yoe) = (y.div_euclid(400), y.rem_euclid(400));
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + date - 1;
    let day = era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468;
    (civil(day) == (year, month, date)).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_file_names_are_each_others_inverse() {
        for (day, name) in
            [(0, "1970-01-01.log"), (20_787, "2026-11-30.log"), (-1, "1969-12-31.log"), (11_016, "2000-02-29.log")]
        {
            assert_eq!(parse_day(name), Some(day));
            let (y, m, d) = civil(day);
            assert_eq!(format!("{y:04}-{m:02}-{d:02}.log"), name);
        }
        for bad in ["2026-02-30.log", "lock", "2026-11.log", "2026-11-30.log.tmp"] {
            assert_eq!(parse_day(bad), None, "{bad}");
        }
    }
}
