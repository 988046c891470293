//! What the order by size needs of the state: shares of the machine, usage against fair shares, who runs and who waits.
//!
//! The order itself is `sluice_sched::overtaking`.

use super::{Board, asked, default_limit};
use crate::habits;
use crate::job::Job;
use crate::query::scheduling::requested;
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

    fn size(&self, state: &State, job: &Job, limit: TimeLimit, width: u32, share: f64) -> Size {
        Size {
            duration_secs: match self.predicts() {
                true => state.habits.predict(job.spec.uid, limit, width),
                false => limit.duration().map_or(f64::INFINITY, |d| d.as_secs_f64()),
            },
            share,
            used_ratio: self.used_ratio(job),
        }
    }

    /// How large a waiting job counts in each of its partitions, and the time limit there; nothing under another order.
    /// Looked up for every waiting job: only what has devices costs more than some arithmetic.
    pub fn counted_sizes(&self, state: &State, job: &Job) -> Vec<(Size, TimeLimit)> {
        if self.config.kind != PriorityKind::SmallestFirst {
            return Vec::new();
        }
        let totals = requested(job, state);
        let devices = (!totals.gres.is_empty()).then(|| asked(state, job).0);
        let of = |name: &String| {
            let spec = state.partitions.get(name)?;
            let position = state.index.hardware.partition_position.get(name)?;
            let whole = self.partition_tres.get(*position as usize)?;
            let limit = if job.spec.time_limit.is_some() { job.time_limit } else { default_limit(spec) };
            let (width, share) = match &devices {
                Some(tres) => (habits::width(tres), dominant_share(tres, whole)),
                None => (totals.cpus, plain_share(u64::from(totals.cpus), totals.memory_mb, whole)),
            };
            Some((self.size(state, job, limit, width, share), limit))
        };
        job.partitions.iter().filter_map(of).collect()
    }

    /// The highest of its partitions; None where it has none.
    pub(super) fn waiting_by_size(&self, state: &State, job: &Job) -> Option<u32> {
        let sizes = self.counted_sizes(state, job);
        sizes.iter().map(|(size, _)| self.total(job, self.placed(job, size))).max()
    }

    fn placed(&self, job: &Job, size: &Size) -> u32 {
        if self.overtaken.is_promoted(job.id) {
            overtaking::promoted_priority(job.eligible.unwrap_or(job.submitted), Time(0))
        } else {
            size.priority()
        }
    }

    fn total(&self, job: &Job, placed: u32) -> u32 {
        (i64::from(placed) + i64::from(job.spec.site_factor) - i64::from(job.spec.nice)).clamp(1, i64::from(u32::MAX))
            as u32
    }

    /// The number that the queue goes by, in parts: the size of the job, its account's usage, and promotion.
    pub(super) fn smallest_first(&self, state: &State, job: &Job, facts: &Facts<'_>) -> (Factors, u32) {
        let share = dominant_share(facts.tres, facts.partition_tres);
        let size = self.size(state, job, facts.time_limit, habits::width(facts.tres), share);
        let alone = Size { used_ratio: 0.0, ..size }.priority();
        let plain = size.priority();
        let placed = self.placed(job, &size);
        let total = self.total(job, placed);
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
    let plain = plain_share(taken.cpus, taken.memory_mb, whole);
    let gres = taken.gres.iter().map(|(name, n)| part(*n, whole.gres.get(name).copied().unwrap_or(0)));
    gres.fold(plain, f64::max).min(1.0)
}

/// Of CPUs and memory alone.
fn plain_share(cpus: u64, memory_mb: u64, whole: &Tres) -> f64 {
    part(cpus, whole.cpus).max(part(memory_mb, whole.memory_mb)).min(1.0)
}

fn part(taken: u64, whole: u64) -> f64 {
    if whole > 0 { taken as f64 / whole as f64 } else { 0.0 }
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
