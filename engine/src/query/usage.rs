//! Usage up to now, running jobs included, and what a run is charged.

use crate::job::{Job, Phase, Run};
use crate::state::State;
use crate::usage::{Spent, UsageCharge, UsageOwner};
use sluice_model::Time;
use sluice_model::accounting::{Factor, NORMAL_QOS, Qos, QosFlag, TresKind};
use sluice_model::config::PriorityFlags;
use sluice_model::tres::Tres;
use sluice_sched::fairshare::decay::{Decayed, HalfLife};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By which usage fades; None: it does not.
pub fn half_life(state: &State) -> HalfLife {
    let secs = state.config.as_ref().map_or(0, |c| c.priority.decay_half_life_secs);
    (secs > 0).then(|| i64::from(secs) * 1000)
}

pub(crate) fn qos_of<'a>(state: &'a State, job: &Job) -> Option<&'a Arc<Qos>> {
    state.accounting.qos.get(job.spec.qos.as_deref().unwrap_or(NORMAL_QOS))
}

/// What the run's allocation counts as, billing and licences included.
pub fn run_tres(state: &State, job: &Job, run: &Run) -> Tres {
    let mut tres = Tres::of_allocation(&run.allocation);
    tres.licenses = job.spec.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
    let weights = job.partition.as_ref().and_then(|p| state.partitions.get(p)).map(|p| &p.billing_weights);
    if let Some(weights) = weights.filter(|w| !w.is_empty()) {
        let max = state.config.as_ref().is_some_and(|c| c.priority.flags.has(PriorityFlags::MAX_TRES));
        tres.billing = weights.billing_of(&run.allocation, &tres, max) as u64;
    }
    tres
}

/// Each resource of these with its count, zeros left out.
pub fn counted(tres: &Tres) -> Vec<(TresKind, u64)> {
    let plain = [TresKind::Cpu, TresKind::Mem, TresKind::Node, TresKind::Billing];
    let gres = tres.gres.keys().map(|(name, kind)| TresKind::Gres(name.clone(), kind.clone()));
    let licenses = tres.licenses.keys().map(|name| TresKind::License(name.clone()));
    let all = plain.into_iter().chain(gres).chain(licenses);
    all.map(|kind| (kind.of(tres), kind)).filter(|(n, _)| *n > 0).map(|(n, kind)| (kind, n)).collect()
}

/// What a run up to `to` is charged.
pub(crate) fn charge(state: &State, job: &Job, run: &Run, to: Time) -> UsageCharge {
    let qos = qos_of(state, job);
    let factor = qos.map_or(Factor::ONE, |q| q.usage_factor);
    let half_life = half_life(state);
    let mut owners: Vec<(UsageOwner, HalfLife)> = match job.association {
        Some(id) if state.accounting.association(id).is_some() => {
            let chain = state.accounting.chain(id);
            chain.into_iter().map(|a| (UsageOwner::Association(a.id), half_life)).collect()
        }
        _ => vec![(UsageOwner::User(job.spec.user.to_string()), half_life)],
    };
    if let Some(qos) = qos {
        let fades = if qos.has(QosFlag::NoDecay) { None } else { half_life };
        owners.push((UsageOwner::Qos(qos.id), fades));
    }
    // As if it had been suspended before it began: how old the parts of a run are matters little beside its length.
    let suspended = run.suspended_since.map_or(0, |since| to.0.saturating_sub(since.0).max(0));
    let idle = i64::try_from(run.suspended_ms).unwrap_or(i64::MAX).saturating_add(suspended);
    let from = Time(run.started.0.saturating_add(idle).min(to.0));
    let rates = counted(&run_tres(state, job, run)).into_iter().map(|(k, n)| (k, n.saturating_mul(factor.0))).collect();
    UsageCharge { owners, rates, wall_rate: factor.0, from, to }
}

/// What each has used up to `now`, running jobs' part included.
pub fn usage_at(state: &State, now: Time) -> BTreeMap<UsageOwner, Spent> {
    let half_life = half_life(state);
    let constant = constant_owners(state);
    let fades = |owner: &UsageOwner| if constant.contains(owner) { None } else { half_life };
    let book = &state.usage;
    let mut all: BTreeMap<UsageOwner, Spent> =
        book.spent.keys().map(|o| (o.clone(), book.seen_at(o, now, fades(o)))).collect();
    for job in state.index.active.iter().filter_map(|id| state.jobs.get(id)) {
        let Phase::Running(run) = &job.phase else { continue };
        let charge = charge(state, job, run, now);
        for (owner, half_life) in &charge.owners {
            all.entry(owner.clone()).or_default().add(&charge, *half_life);
        }
    }
    all
}

/// Of the same, the billing alone: what fair shares go by.
pub(crate) fn billing_at(state: &State, now: Time) -> BTreeMap<UsageOwner, f64> {
    let half_life = half_life(state);
    let constant = constant_owners(state);
    let fades = |owner: &UsageOwner| if constant.contains(owner) { None } else { half_life };
    let seen = |owner: &UsageOwner, spent: &Spent| match spent.at.filter(|at| *at < now) {
        Some(at) => Decayed { value: spent.of(&TresKind::Billing), at }.seen_at(now, fades(owner)),
        None => spent.of(&TresKind::Billing),
    };
    let mut all: BTreeMap<UsageOwner, f64> =
        state.usage.spent.iter().map(|(owner, spent)| (owner.clone(), seen(owner, spent))).collect();
    for job in state.index.active.iter().filter_map(|id| state.jobs.get(id)) {
        let Phase::Running(run) = &job.phase else { continue };
        let charge = charge(state, job, run, now);
        let rate = charge.rates.iter().find(|(kind, _)| *kind == TresKind::Billing).map_or(0, |(_, n)| *n);
        for (owner, half_life) in charge.owners {
            let at = state.usage.spent.get(&owner).and_then(|spent| spent.at).map_or(now, |at| at.max(now));
            let value = all.entry(owner).or_default();
            let held = Decayed { value: *value, at };
            *value = held.with_run(rate as f64 / 1e6, charge.from, charge.to, half_life).value;
        }
    }
    all
}

/// QOS whose usage does not fade.
pub(crate) fn constant_owners(state: &State) -> Vec<UsageOwner> {
    let constant = state.accounting.qos.values().filter(|q| q.has(QosFlag::NoDecay));
    constant.map(|q| UsageOwner::Qos(q.id)).collect()
}
