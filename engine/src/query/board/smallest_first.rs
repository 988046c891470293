//! What the order by size needs of the state: shares of the machine, usage against fair shares, who runs and who waits.
//!
//! The order itself is `sluice_sched::overtaking`.

use super::{Board, asked, default_limit};
use crate::job::Job;
use crate::query::usage::run_tres;
use crate::state::State;
use sluice_model::config::PriorityKind;
use sluice_model::tres::Tres;
use sluice_model::{Time, TimeLimit};
use sluice_sched::fairshare::{Algorithm, Member, Standing};
use sluice_sched::overtaking::{self, Running, Size, Waiting};
use sluice_sched::priority::{Factors, Facts};
use std::sync::Arc;

impl Board {
    /// What the job's account used of late against its fair share: 1 is fair, 0 is nothing.
    fn used_ratio(&self, job: &Job) -> f64 {
        let at = job.association.and_then(|id| self.positions.get(&id));
        let ratio = match at {
            Some(at) => self.used_ratios.get(*at as usize),
            None => self.users_ratios.get(&*job.spec.user),
        };
        ratio.copied().unwrap_or(0.0)
    }

    /// Moves the account of overtaking on to `now`.
    pub(super) fn count_overtaking(&mut self, state: &State, now: Time) {
        let running = self.running(state);
        self.overtaken.advance(now, &running, &waiting(state));
    }

    /// What holds resources.
    fn running(&self, state: &State) -> Vec<Running> {
        let of = |job: &Arc<Job>| {
            let run = job.run()?;
            let position = job.partition.as_ref().and_then(|p| state.index.hardware.partition_position.get(p))?;
            let whole = self.partition_tres.get(*position as usize)?;
            Some(Running {
                since: job.eligible.unwrap_or(job.submitted),
                share: dominant_share(&run_tres(state, job, run), whole),
                limit_secs: job.time_limit.duration().map(|d| d.as_secs_f64()),
            })
        };
        state.index.active.iter().filter_map(|id| state.jobs.get(id)).filter_map(of).collect()
    }

    /// Whether priorities depend on what users' earlier runs did.
    pub fn predicts(&self) -> bool {
        self.config.kind == PriorityKind::SmallestFirst && self.config.predictions
    }

    fn size(&self, state: &State, job: &Job, limit: TimeLimit, asked: &Tres, whole: &Tres) -> Size {
        Size {
            duration_secs: match self.predicts() {
                true => state.habits.predict(job.spec.uid, limit, asked),
                false => limit.duration().map_or(f64::INFINITY, |d| d.as_secs_f64()),
            },
            share: dominant_share(asked, whole),
            used_ratio: self.used_ratio(job),
        }
    }

    /// How large a waiting job counts in its first partition, and the time limit there; None under another order.
    pub fn counted_size(&self, state: &State, job: &Job) -> Option<(Size, TimeLimit)> {
        if self.config.kind != PriorityKind::SmallestFirst {
            return None;
        }
        let name = job.partitions.first()?;
        let spec = state.partitions.get(name)?;
        let position = state.index.hardware.partition_position.get(name)?;
        let whole = self.partition_tres.get(*position as usize)?;
        let limit = if job.spec.time_limit.is_some() { job.time_limit } else { default_limit(spec) };
        Some((self.size(state, job, limit, &asked(state, job).0, whole), limit))
    }

    /// The number that the queue goes by, in parts: the size of the job, its account's usage, and promotion.
    pub(super) fn smallest_first(&self, state: &State, job: &Job, facts: &Facts<'_>) -> (Factors, u32) {
        let size = self.size(state, job, facts.time_limit, facts.tres, facts.partition_tres);
        let alone = Size { used_ratio: 0.0, ..size }.priority();
        let plain = size.priority();
        let placed = if self.overtaken.is_promoted(job.id) {
            overtaking::promoted_priority(job.eligible.unwrap_or(job.submitted), Time(0))
        } else {
            plain
        };
        let total =
            (i64::from(placed) + i64::from(facts.site) - i64::from(facts.nice)).clamp(1, i64::from(u32::MAX)) as u32;
        let parts = Factors {
            age: f64::from(placed) - f64::from(plain),
            fairshare: f64::from(plain) - f64::from(alone),
            job_size: f64::from(alone),
            site: facts.site,
            nice: facts.nice,
            ..Factors::default()
        };
        (parts, total)
    }
}

/// Jobs that wait for nothing but their turn.
fn waiting(state: &State) -> Vec<Waiting> {
    let jobs = state.index.eligible.iter().filter_map(|key| state.jobs.get(&key.job));
    jobs.map(|job| Waiting { job: job.id, since: job.eligible.unwrap_or(job.submitted) }).collect()
}

/// The greatest of the parts that it takes of what there is, 0 to 1.
fn dominant_share(taken: &Tres, whole: &Tres) -> f64 {
    let part = |taken: u64, whole: u64| if whole > 0 { taken as f64 / whole as f64 } else { 0.0 };
    let plain = part(taken.cpus, whole.cpus).max(part(taken.memory_mb, whole.memory_mb));
    let gres = taken.gres.iter().map(|(name, n)| part(*n, whole.gres.get(name).copied().unwrap_or(0)));
    gres.fold(plain, f64::max).min(1.0)
}

/// By position: part of all usage, divided by part of all shares.
pub(super) fn used_ratios(members: &[Member], standings: &[Standing], algorithm: Algorithm) -> Vec<f64> {
    let shares = |mut at: usize| {
        if algorithm != Algorithm::FairTree {
            return standings[at].norm_shares;
        }
        // Of the siblings', all the way up.
        let mut product = 1.0;
        for _ in 0..members.len() {
            let Some(parent) = members[at].parent else { break };
            product *= standings[at].norm_shares;
            at = parent as usize;
        }
        product
    };
    let ratio = |(at, s): (usize, &Standing)| {
        let shares = shares(at);
        if s.norm_usage > 0.0 && shares > 0.0 { s.norm_usage / shares } else { 0.0 }
    };
    standings.iter().enumerate().map(ratio).collect()
}
