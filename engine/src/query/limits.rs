//! Limits of associations and QOS held against starts and submissions: what runs now is counted from the state.

use super::board::Board;
use super::usage::run_tres;
use crate::command::PlannedStart;
use crate::job::{Job, Phase};
use crate::state::State;
use sluice_model::accounting::{NORMAL_QOS, QosFlag};
use sluice_model::tres::Tres;
use sluice_model::{Allocation, JobId, Time};
use sluice_sched::limits::{Ask, Charge, LimitHit, QosRule, Rules, Tally, Used};
use std::sync::Arc;

/// The sums of a moment, for applying a plan.
pub(crate) struct Counted {
    board: Board,
    tally: Tally,
}

impl Counted {
    /// None when limits are not enforced or none is set.
    pub(crate) fn new(state: &State, now: Time) -> Option<Counted> {
        if !state.config.as_ref().is_some_and(|c| c.accounting.enforce.limits) {
            return None;
        }
        let board = Board::new(state, now, None);
        let tally = tally(state, now, &board)?;
        Some(Counted { board, tally })
    }

    /// Whether the start breaks no limit; if so it counts from now on.
    pub(crate) fn admits(&mut self, state: &State, job: &Job, start: &PlannedStart) -> bool {
        let charge = self.board.charge(job);
        let qos = partition_qos(state, &self.board, Some(&start.partition));
        let mut tres = Tres::of_allocation(&start.allocation);
        tres.licenses = job.spec.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
        if let Some(p) = state.partitions.get(&start.partition) {
            tres.billing = p.billing_weights.billing_of(&start.allocation, &tres, self.tally.rules().max_tres) as u64;
        }
        let one = |n: &sluice_model::NodeAlloc| Tres::of_allocation(&Allocation { nodes: vec![n.clone()] });
        let nodes = start.allocation.nodes.iter().map(one).collect();
        let ask = Ask { tres, nodes, minutes: Ask::minutes_of(start.time_limit) };
        let admitted = self.tally.check(&charge, qos, &ask).is_ok();
        if admitted {
            self.tally.add(&charge, qos, &ask);
        }
        admitted
    }
}

/// What running jobs count for now; None when no limit is set.
fn tally(state: &State, now: Time, board: &Board) -> Option<Tally> {
    let rules = board.rules.as_ref().filter(|r| !r.is_empty())?;
    let mut tally = Tally::new(rules);
    for job in state.index.active.iter().filter_map(|id| state.jobs.get(id)) {
        let (Some(run), Phase::Running(_)) = (job.run(), &job.phase) else { continue };
        let ends = job.time_limit.duration().map(|d| run.started.plus(d));
        let minutes = ends.map(|end| (end.since(now).as_secs()).div_ceil(60));
        let ask = Ask { tres: run_tres(state, job, run), nodes: Vec::new(), minutes };
        tally.add(&board.charge(job), partition_qos(state, board, job.partition.as_deref()), &ask);
    }
    Some(tally)
}

/// Running jobs whose groups have used up their minutes, each with that limit. `board`: the usage up to now.
pub fn used_up(state: &State, board: &Board) -> Vec<(JobId, LimitHit)> {
    let Some(rules) = board.rules.as_ref().filter(|r| !r.is_empty()) else { return Vec::new() };
    let mut tally = Tally::new(rules);
    let over = |job: &Arc<Job>| {
        let Phase::Running(run) = &job.phase else { return None };
        if run.ending.is_some() {
            return None;
        }
        let qos = partition_qos(state, board, job.partition.as_deref());
        tally.used_up(&board.charge(job), qos, &run_tres(state, job, run)).map(|hit| (job.id, hit))
    };
    state.index.active.iter().filter_map(|id| state.jobs.get(id)).filter_map(over).collect()
}

/// The limit that a waiting job would break in its first partition if it started now, by what it asks for.
pub(super) fn hit(state: &State, now: Time, board: &Board, job: &Job) -> Option<LimitHit> {
    let mut tally = tally(state, now, board)?;
    let (tres, ..) = super::board::asked(state, job);
    let ask = Ask { tres, nodes: Vec::new(), minutes: Ask::minutes_of(job.time_limit) };
    let partition = job.partitions.first().map(String::as_str);
    tally.check(&board.charge(job), partition_qos(state, board, partition), &ask).err()
}

fn partition_qos(state: &State, board: &Board, partition: Option<&str>) -> Option<u32> {
    board.qos_position(state.partitions.get(partition?)?.qos.as_deref()?)
}

/// The limit of its QOS (or its partition's) that no such job could ever keep, where the QOS says DenyOnLimit: then it is
/// refused at submission instead of waiting for ever.
pub(crate) fn denied(state: &State, job: &Job) -> Option<LimitHit> {
    if !state.config.as_ref().is_some_and(|c| c.accounting.enforce.limits) {
        return None;
    }
    let qos = &state.accounting.qos;
    let own = job.spec.qos.as_deref().unwrap_or(NORMAL_QOS);
    let of_partitions = job.partitions.iter().map(|p| state.partitions.get(p).and_then(|p| p.qos.as_deref()));
    let denies = |name: Option<&str>| name.and_then(|n| qos.get(n)).is_some_and(|q| q.has(QosFlag::DenyOnLimit));
    let mut found = None;
    for partition in of_partitions {
        let names: Vec<&str> = [partition, Some(own)].into_iter().flatten().filter(|n| denies(Some(n))).collect();
        // Those that deny, alone: nothing else runs.
        let rules: Vec<QosRule<'_>> = names.iter().filter_map(|n| qos.get(*n)).map(|q| rule(q)).collect();
        let rules = Arc::new(Rules::new(&[], &rules, false));
        let position = |name: Option<&str>| names.iter().position(|n| Some(*n) == name).map(|at| at as u32);
        let charge = Charge { association: None, qos: position(Some(own)), uid: job.spec.uid, fairshare: 1_000_000 };
        let (tres, ..) = super::board::asked(state, job);
        let ask = Ask { tres, nodes: Vec::new(), minutes: job.spec.time_limit.map_or(Some(0), Ask::minutes_of) };
        match Tally::new(&rules).check(&charge, position(partition), &ask) {
            // One partition that would take it is enough.
            Ok(()) => return None,
            Err(hit) => found = found.or(Some(hit)),
        }
    }
    found
}

fn rule(q: &sluice_model::accounting::Qos) -> QosRule<'_> {
    QosRule {
        name: &q.name,
        limits: &q.limits,
        flags: &q.flags,
        usage_factor: q.usage_factor,
        usage_threshold: None,
        limit_factor: q.limit_factor,
        used: Used::default(),
    }
}
