//! Is this plan legal? An independent check, for tests and for whoever doubts a plan.
//!
//! Owns a second derivation of the rules, straight from requests and allocations: it shares no code with placement, the
//! time line or the demand arithmetic. Promises to find every double allocation, every broken constraint or limit, and
//! every planned start that the starts of the same plan would delay. Must not mend anything.
//!
//! `asked` checks what each started job got against what it asked for, `held` what all of them hold together, `planned`
//! the planned starts, `preempted` who has to go.

mod asked;
mod features;
mod held;
mod limits;
mod placed;
mod planned;
mod preempted;

use crate::input::{Input, NodeView, PartitionView, PendingJob};
use crate::plan::{Plan, Start};
use sluice_model::{JobId, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Violation {
    pub job: JobId,
    pub rule: Rule,
    /// Node, amounts, names.
    pub detail: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rule {
    /// Started without being pending, twice, or for an array index that was not offered.
    NotPending,
    Partition,
    /// An unknown, unavailable, foreign, excluded, missing or repeated node, or one without the features.
    Node,
    NodeCount,
    Tasks,
    Cpus,
    Memory,
    Gres,
    /// Too many switches, broken segments, sockets and cores that are not as asked for.
    Place,
    TimeLimit,
    Deadline,
    /// A CPU, device, MiB, licence or whole node used twice.
    UsedTwice,
    /// More CPUs of a node in use by a partition than it may.
    PartitionCpus,
    Licenses,
    /// More than an association or QOS may have.
    Limits,
    /// A preemption that is not allowed, not needed, or not enough.
    Preemption,
    /// A planned start that can't be kept.
    Planned,
    /// A reason for a job that is wholly started or not pending.
    Reason,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}: {:?}: {}", self.job, self.rule, self.detail)
    }
}

/// Look-ups shared by the checks.
struct Facts<'a> {
    input: &'a Input,
    nodes: BTreeMap<&'a NodeName, (u32, &'a NodeView)>,
    pending: BTreeMap<JobId, &'a PendingJob>,
}

impl<'a> Facts<'a> {
    fn partition(&self, name: &str) -> Option<(u32, &'a PartitionView)> {
        self.input.partitions.iter().enumerate().find(|(_, p)| p.name == name).map(|(i, p)| (i as u32, p))
    }
    fn now(&self) -> i64 {
        self.input.now.map_or(0, |t| t.0)
    }
    fn whole(&self, job: &PendingJob, partition: &PartitionView) -> bool {
        job.exclusive || partition.exclusive || job.request.request.exclusive != sluice_model::request::Exclusive::No
    }
}

/// Everything wrong with the plan; empty for a good one.
pub fn audit(input: &Input, plan: &Plan) -> Vec<Violation> {
    let facts = Facts {
        input,
        nodes: input.nodes.iter().enumerate().map(|(i, n)| (&n.spec.name, (i as u32, n))).collect(),
        pending: input.pending.iter().map(|p| (p.job, p)).collect(),
    };
    let mut found = Vec::new();
    pending(&facts, plan, &mut found);
    for start in &plan.starts {
        if let Some(job) = facts.pending.get(&start.job) {
            asked::check(&facts, job, start, &mut found);
        }
    }
    held::check(&facts, plan, &mut found);
    limits::check(&facts, plan, &mut found);
    planned::check(&facts, plan, &mut found);
    preempted::check(&facts, plan, &mut found);
    found
}

fn pending(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    let mut bad = |start: &Start, detail: &str| {
        found.push(Violation { job: start.job, rule: Rule::NotPending, detail: detail.to_owned() });
    };
    for start in &plan.starts {
        if !seen.insert((start.job, start.index)) {
            bad(start, "started twice");
        }
        match (facts.pending.get(&start.job), start.index) {
            (None, _) => bad(start, "is not pending"),
            (Some(job), None) if !job.indices.is_empty() => bad(start, "an array was started as a job"),
            (Some(job), Some(index)) if !job.indices.contains(&index) => bad(start, "index was not offered"),
            _ => {}
        }
    }
    for (job, reason) in &plan.reasons {
        let whole = facts.pending.get(job).map_or(0, |p| p.indices.len().max(1));
        let started = plan.starts.iter().filter(|s| s.job == *job).count();
        if started >= whole {
            found.push(Violation { job: *job, rule: Rule::Reason, detail: format!("{reason} for nothing that waits") });
        }
    }
}
