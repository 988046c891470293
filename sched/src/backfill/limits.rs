//! Limits of associations and QOS in a pass.
//!
//! Owns the questions to the tally: before a place is sought (by what the job asks for) and before it starts (by what it
//! would get). Promises that a job in the way of which a limit stands gets that limit's reason and no planned start, so
//! that others pass it.

use super::Pass;
use crate::classes::Class;
use crate::demand::requested_totals;
use crate::feasibility::Limits;
use crate::input::{ClusterView, Input, PartitionView, PendingJob, RunningJob};
use crate::limits::{Ask, Charge, LimitHit, Rules, Tally};
use crate::order::Key;
use sluice_model::tres::Tres;
use sluice_model::{Allocation, JobSpec, NodeAlloc, Reason, TimeLimit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tally of a pass, with what each class asks for.
pub(super) struct Limited {
    tally: Tally,
    asks: BTreeMap<u32, Tres>,
}

impl Limited {
    /// None when nothing is limited.
    pub(super) fn new<'j>(
        rules: Option<&Arc<Rules>>,
        partitions: &[PartitionView],
        running: impl Iterator<Item = &'j RunningJob>,
        now: i64,
    ) -> Option<Limited> {
        Some(Limited { tally: tally(rules?, partitions, running, now)?, asks: BTreeMap::new() })
    }
}

/// What runs, counted; None when nothing is limited.
fn tally<'j>(
    rules: &Arc<Rules>,
    partitions: &[PartitionView],
    running: impl Iterator<Item = &'j RunningJob>,
    now: i64,
) -> Option<Tally> {
    if rules.is_empty() {
        return None;
    }
    let mut tally = Tally::new(rules);
    for job in running {
        let partition = job.partition.and_then(|p| partitions.get(p as usize));
        let ask = of_running(job, partition, now, rules.max_tres);
        tally.add(&job.charge, partition.and_then(|p| p.qos), &ask);
    }
    Some(tally)
}

fn of_running(job: &RunningJob, partition: Option<&PartitionView>, now: i64, max_tres: bool) -> Ask {
    let licenses = job.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
    let left = job.ends.map(|end| u64::try_from(end.0.saturating_sub(now)).unwrap_or(0).div_ceil(60_000));
    Ask { tres: of_allocation(&job.allocation, licenses, partition, max_tres), nodes: Vec::new(), minutes: left }
}

fn of_allocation(
    allocation: &Allocation,
    licenses: BTreeMap<String, u64>,
    partition: Option<&PartitionView>,
    max_tres: bool,
) -> Tres {
    let mut tres = Tres { licenses, ..Tres::of_allocation(allocation) };
    if let Some(weights) = partition.map(|p| &p.billing_weights) {
        tres.billing = weights.billing_of(allocation, &tres, max_tres) as u64;
    }
    tres
}

/// What a job asks for in a partition, by the same estimate that is shown to users.
fn asked(cluster: ClusterView<'_>, spec: &JobSpec, partition: u32, max_tres: bool) -> Tres {
    let totals = requested_totals(cluster, spec, Some(partition));
    let mut tres = Tres {
        cpus: u64::from(totals.cpus),
        memory_mb: totals.memory_mb,
        nodes: u64::from(totals.nodes),
        licenses: spec.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect(),
        ..Tres::default()
    };
    for (name, kind, count) in &totals.gres {
        tres.add_gres(name, kind.as_deref(), *count);
    }
    let weights = cluster.partitions.get(partition as usize).map(|p| p.billing_weights.clone()).unwrap_or_default();
    tres.billing = weights.billing(&tres, max_tres) as u64;
    tres
}

/// All limits that hold a pending job back, in each of its partitions, besides what runs now. For explanations.
pub(crate) fn hits(input: &Input, job: &PendingJob) -> Vec<LimitHit> {
    let now = input.now.map_or(0, |t| t.0);
    let tally = input.limits.as_ref().and_then(|rules| tally(rules, &input.partitions, input.running.iter(), now));
    let Some(mut tally) = tally else { return Vec::new() };
    let mut found: Vec<LimitHit> = Vec::new();
    for p in &job.partitions {
        let Some(view) = input.partitions.get(*p as usize) else { continue };
        let Ok(limits) = crate::feasibility::check_time(job.time_limit, job.time_min, view) else { continue };
        let tres = asked(input.cluster(), &job.request, *p, tally.rules().max_tres);
        let want = shortened(tally.rules().longest(&job.charge, view.qos), job.time_limit.is_none(), limits.want);
        let ask = Ask { tres, nodes: Vec::new(), minutes: Ask::minutes_of(want) };
        for hit in tally.all_hits(&job.charge, view.qos, &ask) {
            if !found.contains(&hit) {
                found.push(hit);
            }
        }
    }
    found
}

/// A job that asked for no time (`free`) gets no more than its MaxWall.
fn shortened(longest: Option<u32>, free: bool, want: TimeLimit) -> TimeLimit {
    match longest {
        Some(m) if free && m > 0 => want.min(TimeLimit::Minutes(m)),
        _ => want,
    }
}

impl Pass<'_> {
    /// Whether limits let such a job start, by what it asks for; gives the time limits that it may have. `free`: it asked
    /// for no time.
    pub(super) fn limits_before(&mut self, class: u32, free: bool, limits: Limits) -> Result<Limits, LimitHit> {
        let Some(limited) = self.limited.as_mut() else { return Ok(limits) };
        let Class { shape, example, charge, .. } = self.classes.get(class);
        let cluster = self.cluster.view();
        let qos = cluster.partitions[shape.partition as usize].qos;
        if !limited.tally.concerns(charge, qos) {
            return Ok(limits);
        }
        let rules = limited.tally.rules();
        let want = shortened(rules.longest(charge, qos), free, limits.want);
        let limits = Limits { want, least: limits.least.min(want) };
        let max_tres = rules.max_tres;
        let tres =
            limited.asks.entry(class).or_insert_with(|| asked(cluster, example, shape.partition, max_tres)).clone();
        let ask = Ask { tres, nodes: Vec::new(), minutes: Ask::minutes_of(limits.want) };
        limited.tally.check(charge, qos, &ask)?;
        Ok(limits)
    }

    /// Whether limits let the job start with this allocation; if so it counts from now on.
    pub(super) fn limits_at(&mut self, class: u32, nodes: &[NodeAlloc], limit: TimeLimit) -> Result<(), Reason> {
        let Some(limited) = self.limited.as_mut() else { return Ok(()) };
        let Class { shape, example, charge, .. } = self.classes.get(class);
        let view = &self.cluster.partitions[shape.partition as usize];
        if !limited.tally.concerns(charge, view.qos) {
            return Ok(());
        }
        let licenses = example.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
        let allocation = Allocation { nodes: nodes.to_vec() };
        let ask = Ask {
            tres: of_allocation(&allocation, licenses, Some(view), limited.tally.rules().max_tres),
            nodes: nodes.iter().map(|n| Tres::of_allocation(&Allocation { nodes: vec![n.clone()] })).collect(),
            minutes: Ask::minutes_of(limit),
        };
        limited.tally.check(charge, view.qos, &ask).map_err(|hit| hit.reason)?;
        limited.tally.add(charge, view.qos, &ask);
        Ok(())
    }

    /// A job that must not hold a planned start against others, or that no end of another would let start.
    pub(super) fn plans_nothing(&self, charge: &Charge, key: Key, cause: Reason) -> bool {
        let reserves_nothing =
            self.limited.as_ref().is_some_and(|l| l.tally.rules().reserves_nothing(charge, key.priority()));
        cause.is_limit() || reserves_nothing
    }
}
