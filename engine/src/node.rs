//! A node as the controller knows it.

use sluice_model::node::{NodeFlags, NodeReport};
use sluice_model::{JobId, NodeSpec, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Declared hardware, state, what its daemon reported, and the jobs that hold resources on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub spec: Arc<NodeSpec>,
    pub flags: NodeFlags,
    /// Why it is down or drained, who said so and when.
    pub reason: Option<NodeReason>,
    pub report: Option<Arc<NodeReport>>,
    /// Jobs with resources here (running, or completing and not yet confirmed gone). Free resources follow from
    /// these jobs' allocations; nothing is counted twice.
    pub jobs: BTreeSet<JobId>,
    /// Attempts that are over for the controller but that the node still held when it came back after a failure.
    /// Their cores may be in use, so it gets no new work until it has confirmed that they are gone.
    pub stale: BTreeSet<(JobId, u32)>,
    /// Since when it has been silent; None while it responds.
    pub silent_since: Option<Time>,
    pub last_busy: Option<Time>,
    /// Last registration.
    pub registered: Option<Time>,
    pub comment: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeReason {
    pub text: String,
    pub uid: u32,
    pub at: Time,
}
