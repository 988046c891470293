//! What the scheduler is shown: a compact, immutable view of one generation of the cluster.

use crate::limits::{Charge, Rules};
use crate::preemption::{Claim, Preemption, Preemptor, Victim};
use crate::topology::Topology;
use sluice_model::partition::PartitionState;
use sluice_model::tres_weights::TresWeights;
use sluice_model::{Allocation, JobId, NodeName, NodeSpec, ResourceRequest, Time, TimeLimit};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Input {
    pub generation: u64,
    pub now: Option<Time>,
    /// In configuration order; `NodeView`s are named by their position in here.
    pub nodes: Vec<NodeView>,
    pub partitions: Vec<PartitionView>,
    /// Everything that holds resources: running, suspended and completing jobs.
    pub running: Vec<RunningJob>,
    /// Eligible jobs only (not held, dependencies met, begin time reached, array throttle not reached), any order.
    pub pending: Vec<PendingJob>,
    pub policy: Policy,
    /// Licences of the cluster, total.
    pub licenses: BTreeMap<String, u32>,
    /// Limits of associations and QOS; None: nothing is enforced.
    pub limits: Option<Arc<Rules>>,
    /// Who may preempt whom.
    pub preemption: Preemption,
}

/// The hardware and the rules, without jobs: all that questions at submission need. Two references and a policy, so
/// that it costs nothing to make.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// In configuration order.
    pub nodes: &'a [NodeView],
    pub partitions: &'a [PartitionView],
    pub policy: &'a Policy,
    /// Licences of the cluster, total.
    pub licenses: &'a BTreeMap<String, u32>,
}

impl Input {
    pub fn cluster(&self) -> ClusterView<'_> {
        ClusterView { nodes: &self.nodes, partitions: &self.partitions, policy: &self.policy, licenses: &self.licenses }
    }
}

#[derive(Clone, Debug)]
pub struct NodeView {
    pub spec: Arc<NodeSpec>,
    /// Takes new jobs: registered, responding, neither down nor drained.
    pub available: bool,
}

#[derive(Clone, Debug)]
pub struct PartitionView {
    pub name: String,
    /// Positions in `Input::nodes`.
    pub nodes: Vec<u32>,
    pub state: PartitionState,
    pub priority_tier: u32,
    pub max_time: TimeLimit,
    /// What a job without a limit gets.
    pub default_time: TimeLimit,
    pub min_nodes: u32,
    pub max_nodes: Option<u32>,
    /// Whole nodes only.
    pub exclusive: bool,
    /// Most free CPUs first.
    pub least_loaded: bool,
    pub max_cpus_per_node: Option<u32>,
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
    pub max_memory_per_node_mb: Option<u64>,
    pub billing_weights: TresWeights,
    /// The QOS whose limits hold for all of its jobs, by position in `Rules`.
    pub qos: Option<u32>,
    /// CPUs of its largest node; None: to be looked for.
    pub largest_cpus: Option<u32>,
}

/// No nodes, no limits.
impl Default for PartitionView {
    fn default() -> Self {
        PartitionView {
            name: String::new(),
            nodes: Vec::new(),
            state: PartitionState::Up,
            priority_tier: 1,
            max_time: TimeLimit::Unlimited,
            default_time: TimeLimit::Unlimited,
            min_nodes: 0,
            max_nodes: None,
            exclusive: false,
            least_loaded: false,
            max_cpus_per_node: None,
            default_memory_per_cpu_mb: None,
            default_memory_per_node_mb: None,
            max_memory_per_node_mb: None,
            billing_weights: TresWeights::default(),
            qos: None,
            largest_cpus: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct RunningJob {
    pub job: JobId,
    pub allocation: Arc<Allocation>,
    /// Latest end by its time limit; None = unlimited. Completing jobs: now.
    pub ends: Option<Time>,
    /// When it is expected to end, where that is known better than by its limit (a prediction, a trace's own seconds).
    /// Plans go by it; nothing is killed by it. What lies beyond `ends` counts as `ends`; what has passed is corrected
    /// by `Policy::overrun`.
    pub expected_end: Option<Time>,
    /// Nobody else on its nodes.
    pub exclusive: bool,
    /// The partition it runs in, by position in `Input::partitions` (for MaxCPUsPerNode); None when that one is gone.
    pub partition: Option<u32>,
    pub licenses: BTreeMap<String, u32>,
    /// Whose limits it counts for.
    pub charge: Charge,
    /// None: it is not to be preempted (any more).
    pub victim: Option<Victim>,
}

#[derive(Clone, Debug)]
pub struct PendingJob {
    pub job: JobId,
    /// For arrays: the next indices to start, at most as many as the throttle and the policy's array burst allow.
    /// Empty for a job that is no array.
    pub indices: Vec<u32>,
    /// Positions in `Input::partitions`, in the job's order.
    pub partitions: Vec<u32>,
    pub request: Arc<sluice_model::JobSpec>,
    pub time_limit: Option<TimeLimit>,
    pub time_min: Option<TimeLimit>,
    /// How long it is expected to run, milliseconds, where that is known better than by its limit. Backfill, planned
    /// starts and order go by it; the limit stays what it is started with and what kills. Longer than the limit counts as
    /// the limit, less than 1 as 1.
    pub expected_ms: Option<i64>,
    pub priority: u32,
    pub submitted: Time,
    pub deadline: Option<Time>,
    pub exclusive: bool,
    /// Whose limits it counts for.
    pub charge: Charge,
    /// Where QOS say who may preempt whom.
    pub preemptor: Option<Preemptor>,
    /// What was taken from others for it.
    pub claim: Option<Arc<Claim>>,
}

impl PendingJob {
    pub fn resources(&self) -> &ResourceRequest {
        &self.request.request
    }

    /// How long it is planned to run if it is started with this limit, milliseconds; None = for ever.
    pub fn planned_ms(&self, limit: TimeLimit) -> Option<i64> {
        planned_ms(self.expected_ms, limit)
    }
}

pub(crate) fn planned_ms(expected_ms: Option<i64>, limit: TimeLimit) -> Option<i64> {
    let limit = match limit {
        TimeLimit::Minutes(m) => Some(i64::from(m) * 60_000),
        TimeLimit::Unlimited => None,
    };
    let expected = expected_ms.map(|ms| ms.max(1));
    match (expected, limit) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

impl RunningJob {
    /// When plans take it to end; None = never. May lie in the past: then it will be gone soon.
    pub fn planned_end(&self, now: Time, overrun: Overrun) -> Option<Time> {
        let expected = match self.expected_end {
            Some(t) if t <= now => overrun.corrected(t, now),
            expected => expected,
        };
        match (expected, self.ends) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// What to make of a running job that is still there when it was expected to have ended. Never beyond its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overrun {
    /// It will be gone within a second.
    #[default]
    Soon,
    /// Step by step: 1, 5, 15, 30 minutes, 1, 2, 5, 10, 20, 50, 100 hours after the expected end, the first of these that
    /// lies ahead (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated predictions", 2007).
    Steps,
    /// At its limit.
    Limit,
}

impl Overrun {
    /// Minutes.
    const STEPS: [i64; 11] = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000];

    fn corrected(self, expected: Time, now: Time) -> Option<Time> {
        match self {
            Overrun::Soon => Some(now),
            Overrun::Steps => {
                let later = |minutes: &i64| Time(expected.0.saturating_add(minutes * 60_000));
                Self::STEPS.iter().map(later).find(|t| *t > now)
            }
            Overrun::Limit => None,
        }
    }
}

/// In which order jobs are tried that may pass those with a planned start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackfillOrder {
    /// As they stand in the queue.
    #[default]
    Queue,
    /// The shortest planned duration first (the tier of the partition before all), then as in the queue.
    Shortest,
    /// The smallest product of CPUs and planned duration first, likewise.
    SmallestArea,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// Pending jobs for which a placement is sought in one pass, at most. A job of a shape that is already known not
    /// to fit in this pass costs next to nothing and does not count.
    pub queue_depth: u32,
    pub backfill: bool,
    /// Jobs of each partition that get a planned start which later ones may not delay (1 = EASY; as many as there are
    /// jobs = conservative backfill).
    pub reservations: u32,
    /// Holds from the moment on at which all planned starts of a partition are given out.
    pub backfill_order: BackfillOrder,
    pub overrun: Overrun,
    /// Placement attempts in one pass, at most (searching a planned start counts by the events it looks at).
    pub work_budget: u64,
    pub default_memory_per_cpu_mb: Option<u64>,
    pub default_memory_per_node_mb: Option<u64>,
    /// As the partitions' key, for all of them.
    pub least_loaded: bool,
    /// Tasks fill the first nodes where CPUs do not follow from tasks, instead of going round.
    pub pack_tasks: bool,
    /// How nodes are joined; None: all are equally far from each other.
    pub topology: Option<Arc<Topology>>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            queue_depth: 10_000,
            backfill: true,
            reservations: 1,
            backfill_order: BackfillOrder::Queue,
            overrun: Overrun::Soon,
            work_budget: 200_000,
            default_memory_per_cpu_mb: None,
            default_memory_per_node_mb: None,
            least_loaded: false,
            pack_tasks: false,
            topology: None,
        }
    }
}

/// Names of nodes by position, for messages.
pub fn node_name(input: &Input, position: u32) -> &NodeName {
    &input.nodes[position as usize].spec.name
}
