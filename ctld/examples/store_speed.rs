//! Figures of the store: `cargo run --release -p sluice-ctld --example store_speed [DIR]`.
//!
//! Appends, snapshot and restart with 100,000 jobs, the history. On the file system of DIR (a temporary folder by
//! default); what it prints belongs into docs/performance.md.

#[path = "../tests/samples/mod.rs"]
mod samples;

use sluice_ctld::store::{FileStore, HistoryQuery, Opened, Store, StoreOptions};
use sluice_engine::job::Job;
use sluice_engine::{Event, fold};
use sluice_model::{JobId, JobSpec, OsBytes};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

fn job(id: u32) -> Job {
    let spec = JobSpec {
        name: OsBytes::from(format!("job{id}")),
        partitions: vec!["main".to_owned()].into(),
        io: sluice_model::job::JobIo { stdout: Some(OsBytes::from("/home/ada/work/out-%j")), ..Default::default() }
            .into(),
        work_dir: OsBytes::from("/home/ada/projects/simulation/run-0001"),
        submit_line: OsBytes::from(format!(
            "sbatch --job-name=job{id} -n 4 --time=10 --output=out-%j run.sh --seed {id}"
        )),
        command: Some(OsBytes::from("/home/ada/projects/simulation/run.sh")),
        comment: Some(OsBytes::new(vec![b'c'; 180])),
        ..samples::plain_spec()
    };
    Job { id: JobId(id), spec: Arc::new(spec), ..samples::pending_job() }
}

fn submitted(id: u32) -> Event {
    Event::JobSubmitted { job: Box::new(job(id)) }
}

/// VmRSS in KiB (proc(5)).
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Processor time of this process so far: unlike the wall clock it means something on a busy machine.
fn cpu() -> std::time::Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(std::time::Duration::ZERO, Into::into)
}

/// Wall-clock and processor time since it was made.
struct Watch(Instant, std::time::Duration);

impl Watch {
    fn new() -> Watch {
        Watch(Instant::now(), cpu())
    }
}

impl std::fmt::Display for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3?} ({:.3?} of processor time)", self.0.elapsed(), cpu() - self.1)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args().nth(1).map_or_else(|| temporary.path().to_owned(), Into::into).join("store");
    let options = StoreOptions { floor: Some(0), ..StoreOptions::default() };
    // On a folder that an earlier run has filled: the start alone, in a fresh process.
    if dir.exists() {
        let watch = Watch::new();
        let opened = FileStore::open(&dir, options)?;
        println!("start: {watch}, {} jobs, {} KiB", opened.state.jobs.len(), memory());
        return Ok(());
    }
    let Opened { mut store, mut state } = FileStore::open(&dir, options.clone())?;
    let mut record = Vec::new();
    sluice_ctld::store::codec::encode_record(&[submitted(1)], &mut record);
    println!("one submission is {} bytes", record.len());

    let batches: Vec<Vec<Event>> =
        (0..100_000 / 64).map(|b| (0..64).map(|n| submitted(b * 64 + n + 1)).collect()).collect();
    let (mut spent, watch) = (std::time::Duration::ZERO, Watch::new());
    let rss = memory();
    for batch in &batches {
        for event in batch {
            fold(&mut state, event);
        }
        let begin = Instant::now();
        store.append(state.generation, batch)?;
        spent += begin.elapsed();
    }
    let records = batches.len() * 64;
    println!("batches of 64: {:.0} records a second; folds included {watch}", records as f64 / spent.as_secs_f64());
    drop(batches);
    println!("memory with {} jobs: {} KiB more", state.jobs.len(), memory().saturating_sub(rss));

    let mut latencies = Vec::new();
    for n in 0..500 {
        let event = submitted(100_000 + n);
        fold(&mut state, &event);
        let begin = Instant::now();
        store.append(state.generation, &[event])?;
        latencies.push(begin.elapsed());
    }
    latencies.sort();
    println!("one event: median {:?}, 99% {:?}", latencies[250], latencies[495]);

    let watch = Watch::new();
    store.snapshot(&state)?;
    let returned = watch.0.elapsed();
    store.finish_snapshot();
    println!("snapshot of {} jobs: owner held for {returned:?}, written in {watch}", state.jobs.len());
    drop(store);

    let snapshot = dir.join("snapshots");
    let aside = dir.join("aside");
    std::fs::rename(&snapshot, &aside)?;
    let watch = Watch::new();
    let opened = FileStore::open(&dir, options.clone())?;
    println!("start from the journal alone: {watch} for {} events", opened.state.generation);
    drop(opened);
    std::fs::remove_dir_all(&snapshot)?;
    std::fs::rename(&aside, &snapshot)?;
    let rss = memory();
    let watch = Watch::new();
    let opened = FileStore::open(&dir, options)?;
    println!(
        "start from the snapshot: {watch}, {} jobs, {} KiB more",
        opened.state.jobs.len(),
        memory().saturating_sub(rss)
    );
    assert_eq!(opened.state.jobs, state.jobs);

    let shelf = opened.store.shelf();
    let finished: Vec<Arc<Job>> =
        (0..100_000).map(|n| Arc::new(Job { id: JobId(n + 1), ..samples::ended_job() })).collect();
    let watch = Watch::new();
    for part in finished.chunks(100) {
        shelf.archive(part)?;
    }
    println!("history: 100,000 jobs in batches of 100: {watch}");
    for (what, query) in [
        ("all", HistoryQuery::default()),
        ("one job", HistoryQuery { jobs: Some([JobId(77_777)].into()), ..HistoryQuery::default() }),
    ] {
        let (watch, mut count) = (Watch::new(), 0);
        shelf.history(&query, &mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        println!("history of 100,000 jobs, {what}: {count} in {watch}");
    }
    Ok(())
}
