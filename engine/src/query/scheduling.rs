//! What the scheduler is shown.

use super::board::Board;
use super::feed::Outlook;
use super::nodes::takes_work;
use super::preemption;
use crate::decide::plan::is_exclusive;
use crate::dependency::singleton_blocked;
use crate::index::{limit_end, wants_singleton};
use crate::job::{ArrayRole, Job, Phase, Run};
use crate::state::State;
use sluice_model::{Allocation, JobId, Time};
use sluice_sched::limits::Charge;
use sluice_sched::{Input, NodeView, PendingJob, Requested, RunningJob};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Tasks of one array shown in one pass, at most: a pass must not be filled by one user's array.
const ARRAY_BURST: u64 = 1000;

/// What the scheduler decides on: eligible jobs in priority order (as many as the policy's queue depth), and all that
/// holds resources. Costs what it returns, however many jobs wait.
pub fn scheduler_input(state: &State, now: Time) -> Input {
    scheduler_input_with(state, now, &Board::new(state, now, None))
}

/// With the priorities and limits of this board.
pub fn scheduler_input_with(state: &State, now: Time, board: &Board) -> Input {
    let depth = state.index.hardware.policy.queue_depth as usize;
    // The index is in the order of computed priorities only where none are computed.
    let mut all = input(state, now, if board.computes() { usize::MAX } else { depth });
    show(state, &board.over(state), &mut all);
    if board.computes() && all.pending.len() > depth {
        let tier = |job: &PendingJob| {
            let of = |p: &u32| all.partitions.get(*p as usize).map(|p| p.priority_tier);
            job.partitions.iter().filter_map(of).max()
        };
        all.pending.sort_by_cached_key(|job| (Reverse(tier(job)), Reverse(job.priority), job.submitted, job.job));
        all.pending.truncate(depth);
    }
    all
}

/// Puts in what the outlook says.
pub(super) fn show(state: &State, outlook: &impl Outlook, all: &mut Input) {
    outlook.policy(&mut all.policy);
    outlook.limits(all);
    for shown in &mut all.pending {
        state.jobs.get(&shown.job).into_iter().for_each(|job| outlook.pending(job, shown));
    }
    for shown in &mut all.running {
        state.jobs.get(&shown.job).into_iter().for_each(|job| outlook.running(job, shown));
    }
}

/// With so many of the jobs that wait.
pub(super) fn input(state: &State, now: Time, depth: usize) -> Input {
    let hardware = &state.index.hardware;
    let nodes = hardware
        .nodes
        .iter()
        .map(|view| {
            let available = state.nodes.get(&view.spec.name).is_some_and(|n| takes_work(n));
            NodeView { spec: Arc::clone(&view.spec), available }
        })
        .collect();
    let mut pending = pending_jobs(state, depth);
    for shown in pending.iter_mut().filter(|p| p.request.request.switches.is_some()) {
        state.jobs.get(&shown.job).into_iter().for_each(|job| give_up_switches(state, job, now, shown));
    }
    let running = state.index.active.iter().filter_map(|id| running_job(state, state.jobs.get(id)?, now)).collect();
    Input {
        generation: state.generation,
        now: Some(now),
        nodes,
        partitions: hardware.partitions.clone(),
        running,
        pending,
        policy: hardware.policy.clone(),
        licenses: hardware.licenses.clone(),
        limits: None,
        preemption: preemption::rules(state),
    }
}

pub(super) fn running_job(state: &State, job: &Job, now: Time) -> Option<RunningJob> {
    let run = job.run()?;
    let ends = match &job.phase {
        Phase::Running(run) => match (run.kill_at, run.suspended_since) {
            (Some(kill), _) => Some(kill),
            (None, Some(_)) if run.lends => lent_until(state, job, run, now),
            // It goes on when it is resumed; until then its end moves away.
            (None, Some(since)) => limit_end(job, &Run { suspended_since: None, ..Run::clone(run) })
                .map(|end| Time(end.0.saturating_add(now.0.saturating_sub(since.0)))),
            (None, None) => match run.preempted.as_ref().and_then(|p| p.ends) {
                // Told to go: at its limit or after its grace and KillWait.
                Some(ends) => {
                    let gone = State::later(ends, state.timing_ms(|t| t.kill_wait_secs));
                    Some(limit_end(job, run).map_or(gone, |end| end.min(gone)))
                }
                None => limit_end(job, run),
            },
        },
        _ => Some(now),
    };
    let mut allocation = Arc::clone(&run.allocation);
    if let Phase::Completing { waiting_for, .. } = &job.phase
        && waiting_for.len() < allocation.nodes.len()
    {
        // Only what is not yet confirmed gone is still held.
        Arc::make_mut(&mut allocation).nodes.retain(|n| waiting_for.contains(&n.node));
    }
    if !state.index.lending.is_empty() && !run.lends {
        return_lent(state, &mut allocation);
    }
    let partition = job.partition.as_ref().and_then(|p| state.partitions.get(p));
    Some(RunningJob {
        job: job.id,
        allocation,
        ends,
        expected_end: None,
        exclusive: is_exclusive(job, partition.map(Arc::as_ref)),
        partition: job.partition.as_ref().and_then(|p| state.index.hardware.partition_position.get(p).copied()),
        licenses: BTreeMap::clone(&job.spec.licenses),
        charge: Charge::default(),
        victim: preemption::victim(state, job, now),
    })
}

/// Cores that belong to jobs suspended for others count as theirs: they have them back as soon as nobody uses them.
fn return_lent(state: &State, allocation: &mut Arc<Allocation>) {
    for lender in state.index.lending.iter().filter_map(|id| state.jobs.get(id)?.run()) {
        for theirs in &lender.allocation.nodes {
            let borrowed = allocation.on(&theirs.node).is_some_and(|own| !own.cpus.is_disjoint(&theirs.cpus));
            if borrowed {
                let nodes = &mut Arc::make_mut(allocation).nodes;
                let own = nodes.iter_mut().filter(|own| own.node == theirs.node);
                own.for_each(|own| own.cpus = own.cpus.difference(&theirs.cpus));
            }
        }
    }
}

/// A job that is suspended for others goes on when the last of them ends.
fn lent_until(state: &State, job: &Job, run: &Run, now: Time) -> Option<Time> {
    let since = run.suspended_since?;
    let end = limit_end(job, &Run { suspended_since: None, ..Run::clone(run) })?;
    let left = end.0.saturating_sub(since.0).max(0);
    let mut back = now;
    for part in &run.allocation.nodes {
        for id in state.nodes.get(&part.node).into_iter().flat_map(|n| &n.jobs).filter(|id| **id != job.id) {
            let Some(other) = state.jobs.get(id) else { continue };
            let Some(theirs) = other.run().filter(|r| !r.lends) else { continue };
            if theirs.allocation.on(&part.node).is_some_and(|p| !p.cpus.is_disjoint(&part.cpus)) {
                back = back.max(match &other.phase {
                    Phase::Running(run) => run.kill_at.or_else(|| limit_end(other, run))?,
                    _ => now,
                });
            }
        }
    }
    Some(State::later(back, left))
}

fn pending_jobs(state: &State, depth: usize) -> Vec<PendingJob> {
    let mut pending = Vec::new();
    let mut room = Room::default();
    for key in &state.index.eligible {
        if pending.len() >= depth {
            break;
        }
        pending.extend(state.jobs.get(&key.job).and_then(|job| room.show(state, job)));
    }
    pending
}

/// When the job has waited for its switches as long as it may; None when it does not ask for any.
pub(super) fn switches_until(state: &State, job: &Job) -> Option<Time> {
    let asked = job.spec.request.switches?;
    let cluster = state.config.as_ref().map_or(300, |c| c.scheduling.max_switch_wait_secs);
    let wait = asked.max_wait_secs.map_or(cluster, |secs| secs.min(cluster));
    let since = job.eligible.unwrap_or(job.submitted);
    Some(Time(since.0.saturating_add(i64::from(wait) * 1000)))
}

/// From then on it takes nodes on any switches.
pub(super) fn give_up_switches(state: &State, job: &Job, now: Time, shown: &mut PendingJob) {
    if switches_until(state, job).is_some_and(|until| until <= now) {
        Arc::make_mut(&mut shown.request).request.switches = None;
    }
}

/// How many more tasks of each array the scheduler may be shown.
#[derive(Default)]
pub(super) struct Room(BTreeMap<JobId, u64>);

impl Room {
    /// An eligible job as the scheduler is shown it; None when it is not its turn. To be asked in queue order.
    pub(super) fn show(&mut self, state: &State, job: &Job) -> Option<PendingJob> {
        if wants_singleton(job) && singleton_blocked(state, job) {
            return None;
        }
        let mut indices = Vec::new();
        if let Some(array) = job.array_id() {
            let left = self.0.entry(array).or_insert_with(|| array_room(state, job).unwrap_or(ARRAY_BURST));
            match job.array.together() {
                Some(waiting) => {
                    // Of an array that must run one at a time only one task can start.
                    let most = if wants_singleton(job) { 1 } else { ARRAY_BURST };
                    indices.extend(waiting.take((*left).min(most)).iter());
                    *left -= indices.len() as u64;
                    if indices.is_empty() {
                        return None;
                    }
                }
                None if *left == 0 => return None,
                None => *left -= 1,
            }
        }
        Some(pending_job(state, job, indices))
    }
}

pub(crate) fn pending_job(state: &State, job: &Job, indices: Vec<u32>) -> PendingJob {
    PendingJob {
        job: job.id,
        indices,
        partitions: state.index.hardware.positions(&job.partitions),
        request: Arc::clone(&job.spec),
        time_limit: job.spec.time_limit,
        time_min: job.spec.time_min,
        expected_ms: None,
        priority: job.priority,
        submitted: job.submitted,
        deadline: job.spec.deadline,
        exclusive: is_exclusive(job, None),
        charge: Charge::default(),
        preemptor: preemption::preemptor(state, job),
        claim: preemption::claim(state, job),
    }
}

/// How many more tasks of the job's array may start under its `%limit`; None without one.
pub fn array_room(state: &State, job: &Job) -> Option<u64> {
    let array = job.array_id()?;
    let throttle = match state.jobs.get(&array).map(|j| &j.array) {
        Some(ArrayRole::Pending { throttle, .. }) => *throttle,
        _ => job.spec.array.as_ref().and_then(|a| a.throttle),
    }?;
    let active = state.index.arrays.get(&array).map_or(0, |a| a.active);
    Some(u64::from(throttle.saturating_sub(active)))
}

/// What the job asks for in all.
pub fn requested(job: &Job, state: &State) -> Requested {
    let partition = job.partition.as_ref().or(job.partitions.first());
    let position = partition.and_then(|p| state.index.hardware.partition_position.get(p).copied());
    sluice_sched::requested_totals(state.index.hardware.cluster(), &job.spec, position)
}
