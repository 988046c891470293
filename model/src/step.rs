//! Steps and what they used.

use crate::ids::{NodeName, StepKey};
use crate::state::{ExitStatus, JobState};
use crate::text::OsBytes;
use crate::time::Time;

/// Resources used, from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub user_cpu_us: u64,
    pub system_cpu_us: u64,
    /// Largest resident set of any one task or process, bytes.
    pub max_rss_bytes: u64,
    pub max_vmsize_bytes: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Usage {
    /// Sums times and I/O, keeps the largest memory.
    pub fn merge(self, o: Usage) -> Usage {
        Usage {
            user_cpu_us: self.user_cpu_us.saturating_add(o.user_cpu_us),
            system_cpu_us: self.system_cpu_us.saturating_add(o.system_cpu_us),
            max_rss_bytes: self.max_rss_bytes.max(o.max_rss_bytes),
            max_vmsize_bytes: self.max_vmsize_bytes.max(o.max_vmsize_bytes),
            major_faults: self.major_faults.saturating_add(o.major_faults),
            read_bytes: self.read_bytes.saturating_add(o.read_bytes),
            written_bytes: self.written_bytes.saturating_add(o.written_bytes),
        }
    }
}

/// A step as the controller knows it: from the step manager's reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    pub key: StepKey,
    pub name: OsBytes,
    pub nodes: Vec<NodeName>,
    pub tasks: u32,
    pub cpus: u32,
    pub memory_mb: u64,
    /// `gres/gpu=2` …, empty when none.
    pub gres: Vec<crate::node::GresSpec>,
    pub start: Time,
    /// None while it runs.
    pub end: Option<Time>,
    pub state: JobState,
    pub exit: ExitStatus,
    pub usage: Usage,
    pub submit_line: OsBytes,
    /// `Block`, `Cyclic` …
    pub distribution: String,
    pub srun_host: String,
    pub srun_pid: u32,
}
