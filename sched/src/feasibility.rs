//! Could this job ever run? The question at submission.
//!
//! Owns the judgement of a request against the configured hardware, empty, with nothing down or drained. Promises to be
//! the same code as a scheduling pass uses, so that what is accepted here can be placed there. Must not look at load.
//!
//! As seen on Slurm 26.05 with EnforcePartLimits=NO: more nodes or time than the partition gives is accepted and waits
//! with a reason (`pends`), all else is refused.

use crate::input::{ClusterView, PartitionView};
use crate::shape::judge;
use sluice_model::request::Constraint;
use sluice_model::{JobSpec, Reason, ResourceRequest, TimeLimit};
use std::fmt;

/// Above this a node count is refused like any other absurd number (Slurm: `-N1000000k`).
const ABSURD_NODES: u32 = 10_000_000;

/// Why no partition of the job could ever run it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Infeasible {
    UnknownNode {
        name: String,
    },
    UnknownFeature {
        name: String,
    },
    /// In `--prefer`.
    UnknownPreference {
        name: String,
    },
    /// In `--batch`, but not in `--constraint`.
    ForeignBatchFeature {
        name: String,
    },
    UnknownGres {
        name: String,
    },
    /// More nodes than the partition gives a job or has (or fewer tasks than its least number of nodes).
    NodeLimit {
        asked: u32,
        limit: u32,
    },
    TimeLimit {
        asked: TimeLimit,
        limit: TimeLimit,
    },
    /// MiB on one node.
    Memory {
        asked_mb: u64,
        limit_mb: u64,
    },
    /// "More processors requested than permitted": more CPUs than the partition's nodes have together.
    MoreProcessors {
        asked: u64,
        total: u64,
    },
    Licenses {
        name: String,
        asked: u32,
        total: u32,
    },
    /// "Requested node configuration is not available"; says what is missing.
    Configuration {
        detail: String,
    },
}

impl Infeasible {
    /// Accepted all the same, unless the configuration says `enforce_partition_limits`: it waits with `reason`.
    pub fn pends(&self) -> bool {
        matches!(self, Infeasible::NodeLimit { .. } | Infeasible::TimeLimit { .. })
    }
    /// Why such a job waits when it is in the queue (after a change of the configuration, for the refused ones).
    pub fn reason(&self) -> Reason {
        match self {
            Infeasible::NodeLimit { .. } => Reason::PartitionNodeLimit,
            Infeasible::TimeLimit { .. } => Reason::PartitionTimeLimit,
            Infeasible::Licenses { .. } => Reason::Licenses,
            _ => Reason::BadConstraints,
        }
    }
}

impl fmt::Display for Infeasible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |t: &TimeLimit| sluice_model::time::format_time_limit(*t);
        match self {
            Infeasible::UnknownNode { name } => write!(f, "no node is called {name}"),
            Infeasible::UnknownFeature { name } => write!(f, "no node has the feature {name}"),
            Infeasible::UnknownPreference { name } => write!(f, "no node has the feature {name}, which --prefer names"),
            Infeasible::ForeignBatchFeature { name } => {
                write!(f, "--batch names the feature {name}, which --constraint does not")
            }
            Infeasible::UnknownGres { name } => write!(f, "no node has {name}"),
            Infeasible::NodeLimit { asked, limit } => write!(f, "{asked} nodes asked for, limit {limit}"),
            Infeasible::TimeLimit { asked, limit } => write!(f, "time limit {}, limit {}", time(asked), time(limit)),
            Infeasible::Memory { asked_mb, limit_mb } => {
                write!(f, "{asked_mb} MiB asked for, {limit_mb} MiB is the most a node can give")
            }
            Infeasible::MoreProcessors { asked, total } => write!(f, "{asked} CPUs asked for, there are {total}"),
            Infeasible::Licenses { name, asked, total } => {
                write!(f, "{asked} licences {name} asked for, there are {total}")
            }
            Infeasible::Configuration { detail } => f.write_str(detail),
        }
    }
}

/// Whether any of these partitions (positions; unknown ones are passed over) could run it, ever. The error is that of
/// the first partition in which it may at least wait (`pends`), else of the first.
pub fn feasible(cluster: ClusterView<'_>, spec: &JobSpec, partitions: &[u32]) -> Result<(), Infeasible> {
    known_names(cluster, spec)?;
    let mut worst: Option<Infeasible> = None;
    for p in partitions {
        let Some(view) = cluster.partitions.get(*p as usize) else { continue };
        let judged = judge(cluster, &spec.request, &spec.licenses, *p);
        let problem = match (judged, check_time(spec.time_limit, spec.time_min, view)) {
            (Err(never), _) if !never.pends() => never,
            (_, Err(late)) => late,
            (Err(never), _) => never,
            (Ok(()), Ok(_)) => return Ok(()),
        };
        if worst.as_ref().is_none_or(|w| !w.pends() && problem.pends()) {
            worst = Some(problem);
        }
    }
    match worst {
        Some(problem) => Err(problem),
        None => Err(Infeasible::Configuration { detail: "no partition to run in".to_owned() }),
    }
}

fn known_names(cluster: ClusterView<'_>, spec: &JobSpec) -> Result<(), Infeasible> {
    let request = &spec.request;
    if let Some(nodes) = request.nodes.filter(|n| n.min > ABSURD_NODES) {
        let total = cluster.nodes.iter().map(|n| u64::from(n.spec.cpus)).sum();
        return Err(Infeasible::MoreProcessors { asked: u64::from(nodes.min), total });
    }
    if !request.exclude.is_empty() {
        let known: std::collections::BTreeSet<&str> = cluster.nodes.iter().map(|n| n.spec.name.as_str()).collect();
        if let Some(unknown) = request.exclude.iter().find(|n| !known.contains(n.as_str())) {
            return Err(Infeasible::UnknownNode { name: unknown.as_str().to_owned() });
        }
    }
    known_features(cluster, request)
}

fn known_features(cluster: ClusterView<'_>, request: &ResourceRequest) -> Result<(), Infeasible> {
    let named = |c: &Option<Constraint>| -> Vec<String> {
        c.iter().flat_map(Constraint::features).map(str::to_owned).collect()
    };
    let unknown = |names: Vec<String>| {
        names.into_iter().find(|f| cluster.nodes.iter().all(|n| n.spec.features.iter().all(|have| have != f)))
    };
    let constraint = named(&request.constraint);
    if let Some(name) = named(&request.batch).into_iter().find(|f| !constraint.contains(f)) {
        return Err(Infeasible::ForeignBatchFeature { name });
    }
    if let Some(name) = unknown(constraint) {
        return Err(Infeasible::UnknownFeature { name });
    }
    match unknown(named(&request.prefer)) {
        Some(name) => Err(Infeasible::UnknownPreference { name }),
        None => Ok(()),
    }
}

/// The limit a job gets in a partition and the least it will take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub want: TimeLimit,
    pub least: TimeLimit,
}

pub(crate) fn check_time(
    asked: Option<TimeLimit>,
    time_min: Option<TimeLimit>,
    partition: &PartitionView,
) -> Result<Limits, Infeasible> {
    let limit = partition.max_time;
    let want = match (asked, time_min) {
        (None, _) => partition.default_time.min(limit),
        (Some(t), _) if t <= limit => t,
        (Some(_), Some(least)) if least <= limit => limit,
        (Some(asked), _) => return Err(Infeasible::TimeLimit { asked, limit }),
    };
    match time_min {
        Some(least) if least > limit => Err(Infeasible::TimeLimit { asked: least, limit }),
        Some(least) => Ok(Limits { want, least: least.min(want) }),
        None => Ok(Limits { want, least: want }),
    }
}
