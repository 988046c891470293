//! Who may preempt whom: by QOS or by the tier of partitions, as configured.
//!
//! Owns the answer for pairs of jobs, for the scheduler (`rules`, `victim`, `preemptor`) and for applying its plan (`Judge`):
//! one derivation. Where something else is to decide who may take from whom (shares that are lent, say), it is asked here.

use crate::job::{Job, Phase, Run};
use crate::state::State;
use sluice_model::accounting::{NORMAL_QOS, Qos};
use sluice_model::config::{Mode, PreemptKind, PreemptionConfig};
use sluice_model::job::JobKind;
use sluice_model::{JobId, Time};
use sluice_sched::preemption::{Claim, Preemption, Preemptor, Victim};
use std::sync::Arc;

fn config(state: &State) -> Option<&PreemptionConfig> {
    state.config.as_ref().map(|c| &c.preemption).filter(|c| c.kind != PreemptKind::None)
}

fn qos<'a>(state: &'a State, job: &Job) -> Option<&'a Arc<Qos>> {
    state.accounting.qos.get(job.spec.qos.as_deref().unwrap_or(NORMAL_QOS))
}

/// A QOS stands in the rank of its place among all by name.
fn rank_of(state: &State, job: &Job) -> Option<u32> {
    let name = job.spec.qos.as_deref().unwrap_or(NORMAL_QOS);
    state.accounting.qos.keys().position(|q| q == name).map(|at| at as u32)
}

/// What the scheduler goes by.
pub(super) fn rules(state: &State) -> Preemption {
    match config(state).map(|c| c.kind) {
        None | Some(PreemptKind::None) => Preemption::Off,
        Some(PreemptKind::PartitionPrio) => Preemption::Tiers,
        Some(PreemptKind::Qos) => {
            let all = &state.accounting.qos;
            let listed = |q: &Arc<Qos>| {
                all.keys().enumerate().filter(|(_, name)| q.preempt.contains(*name)).map(|(at, _)| at as u32).collect()
            };
            Preemption::Listed(all.values().map(listed).collect())
        }
    }
}

/// A pending job as one that preempts.
pub(super) fn preemptor(state: &State, job: &Job) -> Option<Preemptor> {
    let config = config(state).filter(|c| c.kind == PreemptKind::Qos)?;
    // One that lost its room to a job of its own QOS waits its turn, so that no two take from each other for ever.
    let lost = || job.past_runs.iter().filter_map(|p| p.run.as_ref()?.preempted.as_ref()).any(|p| p.within);
    let within = config.within || qos(state, job).is_some_and(|q| q.preempt_within);
    Some(Preemptor { rank: rank_of(state, job)?, within: within && !lost() })
}

/// What would become of it; None for a job that can't be preempted.
fn mode(state: &State, config: &PreemptionConfig, job: &Job) -> Option<Mode> {
    let own = match config.kind {
        PreemptKind::None => None,
        PreemptKind::Qos => qos(state, job).and_then(|q| Mode::of_qos(q.preempt_mode)),
        PreemptKind::PartitionPrio => job.partition.as_ref().and_then(|p| state.partitions.get(p)?.preempt_mode),
    };
    match own.unwrap_or(config.mode) {
        Mode::Off => None,
        Mode::Requeue if !job.requeue || !matches!(job.spec.kind, JobKind::Batch { .. }) => Some(Mode::Cancel),
        mode => Some(mode),
    }
}

/// From notice to the beginning of its end, seconds.
pub(crate) fn grace_secs(state: &State, job: &Job) -> u32 {
    match config(state).map(|c| c.kind) {
        Some(PreemptKind::Qos) => qos(state, job).map_or(0, |q| q.grace_secs),
        Some(PreemptKind::PartitionPrio) => {
            job.partition.as_ref().and_then(|p| state.partitions.get(p)).map_or(0, |p| p.grace_secs)
        }
        _ => 0,
    }
}

/// What makes a running job a victim; None for one that is none (any more).
pub(super) fn victim(state: &State, job: &Job, now: Time) -> Option<Victim> {
    let config = config(state)?;
    let Phase::Running(run) = &job.phase else { return None };
    if run.ending.is_some() || run.lends || run.preempted.as_ref().is_some_and(|p| p.ends.is_some()) {
        return None;
    }
    let mode = mode(state, config, job)?;
    if mode == Mode::Suspend && run.suspended_since.is_some() {
        return None;
    }
    let rank = match config.kind {
        PreemptKind::None => return None,
        PreemptKind::Qos => rank_of(state, job)?,
        PreemptKind::PartitionPrio => job.partition.as_ref().and_then(|p| state.partitions.get(p))?.priority_tier,
    };
    let stood = i64::try_from(run.suspended_ms).unwrap_or(i64::MAX);
    let stood = stood.saturating_add(run.suspended_since.map_or(0, |t| now.0.saturating_sub(t.0)));
    let (exempt_until, grace_ms) = if mode == Mode::Suspend {
        (run.started, 0)
    } else {
        let kill_wait = state.timing_ms(|t| t.kill_wait_secs);
        (eligible_at(state, job)?, i64::from(grace_secs(state, job)).saturating_mul(1000).saturating_add(kill_wait))
    };
    let began = State::later(run.started, stood);
    Some(Victim { rank, priority: job.priority, mode, grace_ms, exempt_until, began })
}

/// When a running job may be preempted at the earliest (PreemptEligibleTime); None for one that never may.
pub fn eligible_at(state: &State, job: &Job) -> Option<Time> {
    let config = config(state)?;
    let run = job.run()?;
    let mode = mode(state, config, job)?;
    let own = qos(state, job).and_then(|q| q.preempt_exempt_secs);
    let exempt = if mode == Mode::Suspend { 0 } else { own.unwrap_or(config.exempt_secs) };
    Some(State::later(run.started, i64::from(exempt) * 1000))
}

/// What a run that is ended then has worked in vain: CPU-seconds and GPU-seconds, suspensions left out.
pub(crate) fn lost(run: &Run, ended: Time) -> (u64, u64) {
    let stood = run.suspended_ms.saturating_add(run.suspended_since.map_or(0, |t| span(t, ended)));
    let ms = span(run.started, ended).saturating_sub(stood);
    let gpus = run.allocation.nodes.iter().flat_map(|n| &n.gres).filter(|g| g.name == "gpu");
    let gpus: u64 = gpus.map(|g| g.indices.len()).sum();
    (ms.saturating_mul(u64::from(run.allocation.cpus())) / 1000, ms.saturating_mul(gpus) / 1000)
}

fn span(from: Time, to: Time) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// A claim as the scheduler is shown it.
pub(super) fn claim(state: &State, job: &Job) -> Option<Arc<Claim>> {
    let claim = job.claim.as_ref()?;
    let partition = *state.index.hardware.partition_position.get(&claim.partition)?;
    let leaving = |id: &JobId| match state.jobs.get(id).map(|j| &j.phase) {
        Some(Phase::Running(run)) => run.preempted.as_ref().is_some_and(|p| p.by == job.id && p.ends.is_some()),
        Some(Phase::Completing { .. }) => true,
        _ => false,
    };
    let victims = claim.victims.iter().copied().filter(leaving).collect();
    Some(Arc::new(Claim { partition, nodes: claim.nodes.clone(), victims }))
}

/// Judges pairs, for applying a plan.
pub(crate) struct Judge<'a> {
    state: &'a State,
    rules: Preemption,
}

impl<'a> Judge<'a> {
    /// None when nobody may preempt.
    pub(crate) fn new(state: &'a State) -> Option<Judge<'a>> {
        config(state).map(|_| Judge { state, rules: rules(state) })
    }

    /// What would be done with the victim; None when the job may not take its room.
    pub(crate) fn may(&self, job: &Job, partition: &str, priority: u32, victim: &Job, now: Time) -> Option<Mode> {
        let tier = self.state.partitions.get(partition)?.priority_tier;
        let facts = self::victim(self.state, victim, now)?;
        self.rules.may(preemptor(self.state, job), tier, priority, &facts, now).then_some(facts.mode)
    }
}
