//! A workload: jobs that were submitted once, or were made up, with what each needed and asked for.
//!
//! Owns the common form of all traces, what of a file is kept, and the tally of what is not. Promises that every job in
//! a `Trace` makes sense by itself (it runs for some time, asks for something, was submitted at or after the origin) and
//! that the jobs stand in order of their submission, ties in the file's order. Must not know policies or clusters.
//!
//! Times are whole seconds from the trace's origin.

mod skipped;
mod swf;
mod table;
mod text;
mod window;
mod write;

pub use skipped::{Cause, Skipped};
pub use table::known_columns;
pub use text::{TraceError, read};
pub use window::{LimitSteps, Window};
pub use write::write_swf;

/// Seconds; about three thousand years. What lies beyond is a mistake, and would not fit the engine's time.
pub(crate) const LONGEST: i64 = 100_000_000_000;

/// One job. Counts of 0 mean that the trace does not say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceJob {
    /// Line of the file, from 1; for generated jobs their number.
    pub line: u32,
    /// As the file has it; what `--starts` writes.
    pub number: u64,
    pub submit: i64,
    /// Never longer than `requested`.
    pub run: i64,
    pub requested: i64,
    /// Processors of the whole job; at least 1.
    pub cpus: u32,
    /// The larger of requested and allocated processors: what must not exceed the machine.
    pub widest: u32,
    pub nodes: u32,
    /// Of the whole job.
    pub gpus: u32,
    /// MiB of the whole job.
    pub memory_mb: u64,
    /// Position in `Trace::partitions`.
    pub partition: Option<u32>,
    /// Position in `Trace::gpu_types`.
    pub gpu_type: Option<u32>,
    /// Position in `Trace::users`.
    pub user: u32,
    /// Position in `Trace::groups`.
    pub group: u32,
}

/// Jobs in order of submission, and what else the file says.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Of the file, for titles.
    pub name: String,
    pub jobs: Vec<TraceJob>,
    pub users: Vec<String>,
    pub groups: Vec<String>,
    pub gpu_types: Vec<String>,
    pub partitions: Vec<String>,
    /// `MaxProcs`, else `MaxNodes` of a header.
    pub max_procs: Option<u32>,
    /// `UnixStartTime` of a header.
    pub unix_start: Option<i64>,
    /// No column told what users asked for: requested times are the run times.
    pub no_requests: bool,
    pub skipped: Skipped,
}

impl Trace {
    /// Jobs on GPUs are counted in GPUs, others in processors.
    pub fn on_gpus(&self) -> bool {
        self.jobs.iter().any(|j| j.gpus > 0)
    }

    pub(crate) fn sort(&mut self) {
        self.jobs.sort_by_key(|j| j.submit);
    }

    /// Drops what no machine of so many processors could hold (the definitions of the Parallel Workloads Archive's users:
    /// requested or allocated processors beyond the machine's).
    pub fn fit_processors(&mut self, procs: u32) {
        let skipped = &mut self.skipped;
        self.jobs.retain(|job| {
            let fits = job.widest <= procs;
            if !fits {
                skipped.add(Cause::TooLarge { procs }, job.line);
            }
            fits
        });
    }
}

/// Names seen so far, numbered in the order of their first appearance.
#[derive(Default)]
pub(crate) struct Names {
    position: std::collections::BTreeMap<String, u32>,
    list: Vec<String>,
}

impl Names {
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(at) = self.position.get(name) {
            return *at;
        }
        let at = self.list.len() as u32;
        self.position.insert(name.to_owned(), at);
        self.list.push(name.to_owned());
        at
    }
    pub(crate) fn into_list(self) -> Vec<String> {
        self.list
    }
}
