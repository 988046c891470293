//! Snapshots: the whole live state in one file, so that a restart need not replay everything that ever happened.
//!
//! `snapshot-<generation:020>.snap` begins with [`MAGIC`]; then come frames numbered from 1: a header, chunks of nodes,
//! partitions and jobs, and a footer with the counts, which proves that the file is whole. It is written under another
//! name, flushed, and renamed. A specification that several jobs share is kept once and shared again after loading.

use super::codec::{self, ConvertError};
use super::frame::{self, Next};
use super::{StoreError, journal};
use crate::parallel;
use crate::pool::Pool;
use prost::Message;
use prost::bytes::Bytes;
use sluice_engine::accounting::Accounting;
use sluice_engine::{Job, State};
use sluice_model::JobSpec;
use sluice_model::job::JobKind;
use sluice_proto::v1;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use v1::snapshot_chunk::{Footer, Header, Jobs, Kind, Nodes, Partitions};

/// Names the format; the last byte is its version.
const MAGIC: &[u8; 16] = b"sluice-snapshot\x01";
/// Jobs of one chunk: bounds what is in memory twice while writing.
const JOBS: usize = 1000;
/// Flushed every so many bytes, so that the journal's flushes never wait behind a whole snapshot.
const FLUSH_EVERY: u64 = 8 << 20;

/// A snapshot file that is being written.
struct Writer {
    out: BufWriter<File>,
    seq: u64,
    bytes: u64,
    unflushed: u64,
    buffer: Vec<u8>,
}

impl Writer {
    fn chunk(&mut self, kind: Kind) -> io::Result<()> {
        self.buffer.clear();
        v1::SnapshotChunk { kind: Some(kind) }.encode_raw(&mut self.buffer);
        self.seq += 1;
        self.out.write_all(&frame::header(self.seq, &self.buffer))?;
        self.out.write_all(&self.buffer)?;
        let size = (frame::HEADER + self.buffer.len()) as u64;
        self.bytes += size;
        self.unflushed += size;
        if self.unflushed >= FLUSH_EVERY {
            self.out.flush()?;
            self.out.get_ref().sync_data()?;
            self.unflushed = 0;
        }
        Ok(())
    }
}

/// Writes the state durably; returns the file's size in bytes.
pub fn write(dir: &Path, state: &State) -> Result<u64, StoreError> {
    let path = dir.join(format!("snapshot-{:020}.snap", state.generation));
    let temporary = path.with_extension("tmp");
    let written = write_file(&temporary, state).map_err(|e| StoreError::io("write", &temporary, e));
    let bytes = written.inspect_err(|_| {
        // Removed again at the next start if it can't be now.
        let _ = fs::remove_file(&temporary);
    })?;
    fs::rename(&temporary, &path).map_err(|e| StoreError::io("rename", &temporary, e))?;
    journal::sync_dir(dir)?;
    Ok(bytes)
}

fn write_file(path: &Path, state: &State) -> io::Result<u64> {
    // Named one by one, so that a field added to the state does not compile until it is kept or known to follow.
    let State {
        config,
        jobs,
        nodes,
        partitions,
        accounting,
        usage,
        habits,
        last_job_id,
        generation,
        archive_ordered: _,
        index: _,
    } = state;
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let out = BufWriter::with_capacity(1 << 18, file);
    let mut writer = Writer { out, seq: 0, bytes: MAGIC.len() as u64, unflushed: 0, buffer: Vec::new() };
    writer.out.write_all(MAGIC)?;
    writer.chunk(Kind::Header(Header {
        generation: *generation,
        last_job_id: *last_job_id,
        config: config.as_ref().map(|c| codec::config_to_disk(c)),
        written_by: env!("CARGO_PKG_VERSION").to_owned(),
    }))?;
    let all: Vec<_> = nodes.values().collect();
    for part in all.chunks(JOBS) {
        let nodes = part.iter().map(|node| codec::node_to_disk(node)).collect();
        writer.chunk(Kind::Nodes(Nodes { nodes }))?;
    }
    let all: Vec<_> = partitions.values().collect();
    for part in all.chunks(JOBS) {
        let partitions = part.iter().map(|p| codec::partition_to_disk(p)).collect();
        writer.chunk(Kind::Partitions(Partitions { partitions }))?;
    }
    writer.chunk(Kind::Accounting(accounting_to_disk(accounting)))?;
    writer.chunk(Kind::Usage(codec::usage_to_disk(usage)))?;
    writer.chunk(Kind::Habits(codec::habits_to_disk(habits)))?;
    let mut specs: HashMap<*const JobSpec, u32> = HashMap::new();
    let mut chunk = Jobs::default();
    for job in jobs.values() {
        let next = specs.len() as u32;
        let number = *specs.entry(Arc::as_ptr(&job.spec)).or_insert_with(|| {
            chunk.specs.push((&*job.spec).into());
            next
        });
        chunk.jobs.push(codec::job_to_disk(job, number));
        if chunk.jobs.len() == JOBS {
            writer.chunk(Kind::Jobs(std::mem::take(&mut chunk)))?;
        }
    }
    if !chunk.jobs.is_empty() {
        writer.chunk(Kind::Jobs(chunk))?;
    }
    writer.chunk(Kind::Footer(Footer {
        nodes: nodes.len() as u64,
        partitions: partitions.len() as u64,
        jobs: jobs.len() as u64,
        specs: specs.len() as u64,
    }))?;
    writer.out.flush()?;
    writer.out.get_ref().sync_all()?;
    Ok(writer.bytes)
}

fn accounting_to_disk(accounting: &Accounting) -> v1::snapshot_chunk::Accounting {
    v1::snapshot_chunk::Accounting {
        accounts: accounting.accounts.values().map(|a| (&**a).into()).collect(),
        users: accounting.users.values().map(|u| (&**u).into()).collect(),
        associations: accounting.associations.values().map(|a| (&**a).into()).collect(),
        qos: accounting.qos.values().map(|q| (&**q).into()).collect(),
        last_association: accounting.last_association,
        last_qos: accounting.last_qos,
    }
}

fn accounting_from_disk(kept: v1::snapshot_chunk::Accounting) -> Result<Accounting, ConvertError> {
    let mut accounting = Accounting::empty();
    kept.accounts.into_iter().try_for_each(|a| a.try_into().map(|a| accounting.put_account(a)))?;
    kept.users.into_iter().try_for_each(|u| u.try_into().map(|u| accounting.put_user(u)))?;
    kept.associations.into_iter().try_for_each(|a| a.try_into().map(|a| accounting.put_association(a)))?;
    kept.qos.into_iter().try_for_each(|q| q.try_into().map(|q| accounting.put_qos(q)))?;
    accounting.last_association = accounting.last_association.max(kept.last_association);
    accounting.last_qos = accounting.last_qos.max(kept.last_qos);
    Ok(accounting)
}

/// All snapshots, oldest first.
pub fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    super::file_store::numbered(dir, "snapshot-", ".snap")
}

/// What was read, and the size of its file.
pub struct Loaded {
    pub state: State,
    pub bytes: u64,
}

/// Reads one snapshot. Its indexes are not made yet.
pub fn read(path: &Path) -> Result<Loaded, StoreError> {
    let data = fs::read(path).map_err(|source| StoreError::Io { what: "read", path: path.to_owned(), source })?;
    let data = Bytes::from(data);
    let corrupt =
        |offset: usize, problem: String| StoreError::Corrupt { path: path.to_owned(), offset: offset as u64, problem };
    if data.get(..MAGIC.len()).is_none_or(|m| m != MAGIC) {
        return Err(corrupt(0, "it does not begin as a snapshot of this release does".to_owned()));
    }
    let mut chunks: Vec<(usize, Bytes)> = Vec::new();
    let mut offset = MAGIC.len();
    loop {
        match frame::read(&data, offset) {
            Next::Frame { seq, payload, end } if seq == chunks.len() as u64 + 1 => {
                chunks.push((offset, data.slice_ref(payload)));
                offset = end;
            }
            Next::Frame { seq, .. } => return Err(corrupt(offset, format!("part {seq} is out of order"))),
            Next::End => break,
            Next::Bad(problem) => return Err(corrupt(offset, problem.to_owned())),
        }
    }
    let mut loader = Loader::default();
    // Decoding needs no order; specifications are joined with their jobs afterwards.
    let decode = |(_, payload): &(usize, Bytes)| decode(payload.clone());
    parallel::in_order(&chunks, 1, decode, |n, part| {
        part.and_then(|part| loader.add(part)).map_err(|problem| corrupt(chunks[n].0, problem))
    })?;
    let state = loader.finish().map_err(|problem| corrupt(offset, problem))?;
    Ok(Loaded { state, bytes: data.len() as u64 })
}

/// A decoded chunk. Jobs still lack their specification.
enum Part {
    Header(Box<(Header, Option<sluice_model::config::ClusterConfig>)>),
    Nodes(Vec<sluice_engine::node::Node>),
    Partitions(Vec<sluice_model::PartitionSpec>),
    Jobs(Vec<Arc<JobSpec>>, Vec<(u32, Job)>),
    Accounting(Box<Accounting>),
    Usage(Box<sluice_engine::usage::UsageBook>),
    Habits(Box<sluice_engine::habits::HabitBook>),
    Footer(Footer),
}

/// From `Bytes`, of which byte fields are parts instead of copies.
fn decode(payload: Bytes) -> Result<Part, String> {
    let chunk = v1::SnapshotChunk::decode(payload).map_err(|e| format!("not a part of a snapshot: {e}"))?;
    let Some(kind) = chunk.kind else { return Err("a part of a newer release".to_owned()) };
    convert(kind).map_err(|e| e.to_string())
}

fn convert(kind: Kind) -> Result<Part, ConvertError> {
    Ok(match kind {
        Kind::Header(mut header) => {
            let config = header.config.take().map(codec::config_from_disk).transpose()?;
            Part::Header(Box::new((header, config)))
        }
        Kind::Nodes(nodes) => {
            Part::Nodes(nodes.nodes.into_iter().map(codec::node_from_disk).collect::<Result<_, _>>()?)
        }
        Kind::Partitions(partitions) => Part::Partitions(
            partitions.partitions.into_iter().map(codec::partition_from_disk).collect::<Result<_, _>>()?,
        ),
        Kind::Jobs(chunk) => {
            // Equal parts are one within a chunk, which can be done for many chunks at once.
            let mut pool = Pool::default();
            let mut specs = Vec::with_capacity(chunk.specs.len());
            for spec in chunk.specs {
                let mut spec = JobSpec::try_from(spec)?;
                pool.spec(&mut spec);
                specs.push(Arc::new(spec));
            }
            let mut jobs = Vec::with_capacity(chunk.jobs.len());
            // Until it gets its own, which may be in an earlier chunk.
            let placeholder = Arc::new(JobSpec::new("", JobKind::Allocation, (0, ""), (0, "")));
            for job in chunk.jobs {
                let number = job.spec;
                let mut job = codec::job_from_disk(job, Arc::clone(&placeholder))?;
                pool.job(&mut job);
                jobs.push((number, job));
            }
            Part::Jobs(specs, jobs)
        }
        Kind::Accounting(kept) => Part::Accounting(Box::new(accounting_from_disk(kept)?)),
        Kind::Usage(usage) => Part::Usage(Box::new(codec::usage_from_disk(usage)?)),
        Kind::Habits(habits) => Part::Habits(Box::new(codec::habits_from_disk(habits)?)),
        Kind::Footer(footer) => Part::Footer(footer),
    })
}

#[derive(Default)]
struct Loader {
    state: State,
    specs: Vec<Arc<JobSpec>>,
    jobs: Vec<(sluice_model::JobId, Arc<Job>)>,
    header: bool,
    footer: Option<Footer>,
}

impl Loader {
    fn add(&mut self, part: Part) -> Result<(), String> {
        if self.footer.is_some() || self.header == matches!(part, Part::Header(_)) {
            return Err("a part is out of place".to_owned());
        }
        match part {
            Part::Header(parts) => {
                let (header, config) = *parts;
                self.header = true;
                self.state.generation = header.generation;
                self.state.last_job_id = header.last_job_id;
                self.state.config = config.map(Arc::new);
            }
            Part::Nodes(nodes) => {
                for node in nodes {
                    self.state.nodes.insert(node.spec.name.clone(), Arc::new(node));
                }
            }
            Part::Partitions(partitions) => {
                for partition in partitions {
                    self.state.partitions.insert(partition.name.clone(), Arc::new(partition));
                }
            }
            Part::Jobs(specs, jobs) => {
                self.specs.extend(specs);
                for (spec, mut job) in jobs {
                    let spec = self.specs.get(spec as usize);
                    job.spec = Arc::clone(spec.ok_or_else(|| format!("job {} names no specification", job.id))?);
                    self.jobs.push((job.id, Arc::new(job)));
                }
            }
            Part::Accounting(accounting) => self.state.accounting = *accounting,
            Part::Usage(usage) => self.state.usage = *usage,
            Part::Habits(habits) => self.state.habits = *habits,
            Part::Footer(footer) => self.footer = Some(footer),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<State, String> {
        self.state.jobs = self.jobs.into_iter().collect();
        let found = Footer {
            nodes: self.state.nodes.len() as u64,
            partitions: self.state.partitions.len() as u64,
            jobs: self.state.jobs.len() as u64,
            specs: self.specs.len() as u64,
        };
        match self.footer {
            Some(footer) if footer == found => Ok(self.state),
            Some(_) => Err("parts are missing".to_owned()),
            None => Err("it ends before its last part".to_owned()),
        }
    }
}
