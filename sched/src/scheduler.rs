//! The scheduler with a memory: fed with what changes, it plans as `plan` does.
//!
//! Owns what it was told of the cluster. Promises that `plan` gives exactly what `crate::plan` gives for an `Input` with
//! the same content, whatever changes led there. Must not look at a clock: the time comes with each question.

use crate::input::{Input, NodeView, PartitionView, PendingJob, Policy, RunningJob};
use crate::limits::Rules;
use crate::plan::Plan;
use sluice_model::{JobId, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Starts empty: `rebuild` tells it of a cluster, the other methods of changes.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    nodes: Vec<NodeView>,
    partitions: Vec<PartitionView>,
    policy: Policy,
    licenses: BTreeMap<String, u32>,
    limits: Option<Arc<Rules>>,
    running: BTreeMap<JobId, RunningJob>,
    pending: BTreeMap<JobId, PendingJob>,
}

impl Scheduler {
    /// Forgets all and takes over the input.
    pub fn rebuild(&mut self, input: &Input) {
        self.nodes.clone_from(&input.nodes);
        self.partitions.clone_from(&input.partitions);
        self.policy = input.policy.clone();
        self.licenses.clone_from(&input.licenses);
        self.limits.clone_from(&input.limits);
        self.running = input.running.iter().map(|r| (r.job, r.clone())).collect();
        self.pending = input.pending.iter().map(|p| (p.job, p.clone())).collect();
    }

    /// The limits of associations and QOS, with what was used; None: nothing is enforced.
    pub fn set_limits(&mut self, limits: Option<Arc<Rules>>) {
        self.limits = limits;
    }

    /// A node (by position) takes new jobs, or no longer does.
    pub fn set_available(&mut self, node: u32, available: bool) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.available = available;
        }
    }

    /// A job holds resources, or holds others than before, or until another time.
    pub fn put_running(&mut self, job: RunningJob) {
        self.running.insert(job.job, job);
    }

    /// It holds nothing any more. Unknown ones are passed over.
    pub fn remove_running(&mut self, job: JobId) {
        self.running.remove(&job);
    }

    /// An eligible job, new or changed. It may hold resources at the same time only as tasks of an array do, under ids of
    /// their own.
    pub fn put_pending(&mut self, job: PendingJob) {
        self.pending.insert(job.job, job);
    }

    /// It is not eligible any more. Unknown ones are passed over.
    pub fn remove_pending(&mut self, job: JobId) {
        self.pending.remove(&job);
    }

    /// Jobs that wait.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// One scheduling pass. Changes nothing that a later pass could see: what it starts counts when it is told so.
    pub fn plan(&mut self, generation: u64, now: Time) -> Plan {
        crate::plan(&Input {
            generation,
            now: Some(now),
            nodes: self.nodes.clone(),
            partitions: self.partitions.clone(),
            running: self.running.values().cloned().collect(),
            pending: self.pending.values().cloned().collect(),
            policy: self.policy.clone(),
            licenses: self.licenses.clone(),
            limits: self.limits.clone(),
        })
    }
}
