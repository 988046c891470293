//! Limits of associations and QOS in a pass.
//!
//! Owns the questions to the tally: before a place is sought (by what the job asks for) and before it starts (by what it
//! would get). Promises that a job in the way of which a limit stands gets that limit's reason and no planned start, so
//! that others pass it.

use super::Pass;
use crate::demand::requested_totals;
use crate::feasibility::Limits;
use crate::input::{Input, PartitionView, PendingJob, RunningJob};
use crate::limits::{Ask, LimitHit, Tally};
use sluice_model::tres::Tres;
use sluice_model::{Allocation, JobSpec, NodeAlloc, Reason, TimeLimit};
use std::collections::BTreeMap;

/// The tally of a pass, with what each shape asks for.
pub(super) struct Limited {
    tally: Tally,
    /// By shape.
    asks: BTreeMap<usize, Tres>,
}

impl Limited {
    /// None when nothing is limited.
    pub(super) fn new(input: &Input) -> Option<Limited> {
        Some(Limited { tally: tally(input)?, asks: BTreeMap::new() })
    }
}

/// What runs, counted; None when nothing is limited.
pub(crate) fn tally(input: &Input) -> Option<Tally> {
    let rules = input.limits.as_ref().filter(|r| !r.is_empty())?;
    let mut tally = Tally::new(rules);
    for job in &input.running {
        let partition = job.partition.and_then(|p| input.partitions.get(p as usize));
        let ask = of_running(input, job, partition, rules.max_tres);
        tally.add(&job.charge, partition.and_then(|p| p.qos), &ask);
    }
    Some(tally)
}

fn of_running(input: &Input, job: &RunningJob, partition: Option<&PartitionView>, max_tres: bool) -> Ask {
    let licenses = job.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
    let now = input.now.map_or(0, |t| t.0);
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
pub(crate) fn asked(input: &Input, spec: &JobSpec, partition: u32, max_tres: bool) -> Tres {
    let totals = requested_totals(input.cluster(), spec, Some(partition));
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
    let weights = input.partitions.get(partition as usize).map(|p| p.billing_weights.clone()).unwrap_or_default();
    tres.billing = weights.billing(&tres, max_tres) as u64;
    tres
}

/// All limits that hold a pending job back, in each of its partitions, besides what runs now. For explanations.
pub(crate) fn hits(input: &Input, job: &PendingJob) -> Vec<LimitHit> {
    let Some(mut tally) = tally(input) else { return Vec::new() };
    let mut found: Vec<LimitHit> = Vec::new();
    for p in &job.partitions {
        let Some(view) = input.partitions.get(*p as usize) else { continue };
        let Ok(limits) = crate::feasibility::check_time(job.time_limit, job.time_min, view) else { continue };
        let tres = asked(input, &job.request, *p, tally.rules().max_tres);
        let want = shortened(tally.rules().longest(&job.charge, view.qos), job, limits.want);
        let ask = Ask { tres, nodes: Vec::new(), minutes: Ask::minutes_of(want) };
        for hit in tally.all_hits(&job.charge, view.qos, &ask) {
            if !found.contains(&hit) {
                found.push(hit);
            }
        }
    }
    found
}

/// A job that asked for no time gets no more than its MaxWall.
fn shortened(longest: Option<u32>, job: &PendingJob, want: TimeLimit) -> TimeLimit {
    match longest {
        Some(m) if job.time_limit.is_none() && m > 0 => want.min(TimeLimit::Minutes(m)),
        _ => want,
    }
}

impl Pass<'_> {
    /// Whether limits let such a job start, by what it asks for; gives the time limits that it may have.
    pub(super) fn limits_before(
        &mut self,
        job: &PendingJob,
        partition: u32,
        known: usize,
        limits: Limits,
    ) -> Result<Limits, Reason> {
        let input = self.input;
        let qos = input.partitions[partition as usize].qos;
        let Some(limited) = self.limited.as_mut() else { return Ok(limits) };
        if !limited.tally.concerns(&job.charge, qos) {
            return Ok(limits);
        }
        let rules = limited.tally.rules();
        let want = shortened(rules.longest(&job.charge, qos), job, limits.want);
        let limits = Limits { want, least: limits.least.min(want) };
        let max_tres = rules.max_tres;
        let tres = limited.asks.entry(known).or_insert_with(|| asked(input, &job.request, partition, max_tres)).clone();
        let ask = Ask { tres, nodes: Vec::new(), minutes: Ask::minutes_of(limits.want) };
        limited.tally.check(&job.charge, qos, &ask).map_err(|hit| hit.reason)?;
        Ok(limits)
    }

    /// Whether limits let the job start with this allocation; if so it counts from now on.
    pub(super) fn limits_at(
        &mut self,
        job: &PendingJob,
        partition: u32,
        nodes: &[NodeAlloc],
        limit: TimeLimit,
    ) -> Result<(), Reason> {
        let view = &self.input.partitions[partition as usize];
        let Some(limited) = self.limited.as_mut() else { return Ok(()) };
        if !limited.tally.concerns(&job.charge, view.qos) {
            return Ok(());
        }
        let licenses = job.request.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
        let allocation = Allocation { nodes: nodes.to_vec() };
        let ask = Ask {
            tres: of_allocation(&allocation, licenses, Some(view), limited.tally.rules().max_tres),
            nodes: nodes.iter().map(|n| Tres::of_allocation(&Allocation { nodes: vec![n.clone()] })).collect(),
            minutes: Ask::minutes_of(limit),
        };
        limited.tally.check(&job.charge, view.qos, &ask).map_err(|hit| hit.reason)?;
        limited.tally.add(&job.charge, view.qos, &ask);
        Ok(())
    }

    /// A job that must not hold a planned start against others, or that no end of another would let start.
    pub(super) fn plans_nothing(&self, job: &PendingJob, cause: Reason) -> bool {
        let reserves_nothing =
            self.limited.as_ref().is_some_and(|l| l.tally.rules().reserves_nothing(&job.charge, job.priority));
        cause.is_limit() || reserves_nothing
    }
}
