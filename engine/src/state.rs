//! The cluster's whole live state: persistent maps, so that a snapshot is a few pointer copies.
//!
//! What is stored is `config`, `jobs`, `nodes`, `partitions`, `accounting`, `usage`, `habits` and the
//! counters. `index` follows from those: `fold` keeps
//! it in step, `rebuild_indexes` makes it anew after a snapshot was loaded. Nothing but `fold` and the loader of
//! snapshots may change any of it.

use crate::accounting::Accounting;
use crate::habits::HabitBook;
use crate::index::Indexes;
use crate::job::Job;
use crate::node::Node;
use crate::usage::UsageBook;
use sluice_model::config::ClusterConfig;
use sluice_model::{JobId, NodeName, PartitionSpec, Time};
use std::sync::Arc;

/// Cloning is O(1); readers keep a clone while the owner goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    pub config: Option<Arc<ClusterConfig>>,
    pub jobs: imbl::OrdMap<JobId, Arc<Job>>,
    pub nodes: imbl::OrdMap<NodeName, Arc<Node>>,
    pub partitions: imbl::OrdMap<String, Arc<PartitionSpec>>,
    pub accounting: Accounting,
    pub usage: UsageBook,
    /// What run times are predicted from.
    pub habits: HabitBook,
    /// The highest job id ever given.
    pub last_job_id: u32,
    /// Changes with every event; a plan names the one it was made from.
    pub generation: u64,
    /// When finished jobs were last handed over for the history, until they are purged. Need not be in a snapshot.
    pub archive_ordered: Option<Time>,
    /// Not stored: `rebuild_indexes` after loading.
    pub index: Indexes,
}

impl State {
    pub fn job(&self, id: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&id)
    }
    pub fn node(&self, name: &NodeName) -> Option<&Arc<Node>> {
        self.nodes.get(name)
    }
    /// Seconds of the configuration as milliseconds; 0 without a configuration.
    pub(crate) fn timing_ms(&self, secs: impl Fn(&sluice_model::config::TimingConfig) -> u32) -> i64 {
        self.config.as_ref().map_or(0, |c| i64::from(secs(&c.timing)) * 1000)
    }
    /// `time` plus so many milliseconds, never wrapping.
    pub(crate) fn later(time: Time, ms: i64) -> Time {
        Time(time.0.saturating_add(ms))
    }
}
