//! Smallest first (`[priority] type = "smallest_first"`): smaller jobs first, within a budget of being overtaken.
//!
//! A job's size is its planned duration times its share of the machine, times a power of how much its account has used
//! of late against its fair share. The smallest goes first (smallest area first: Carastan-Santos et al. 2019; Lelong et
//! al. 2017). A job that others have overtaken too long goes to the front, first come, first served, whatever its size.
//!
//! Owns that order: the size, the running account of overtaking, and the one number that the queue is sorted by. A job
//! earns credit while it waits, at one second a second, and pays `AHEAD` times the share of the machine that jobs ahead
//! of it in order of arrival have meanwhile: what it would have waited for anyway. With a credit of `LENGTH` times the
//! typical time limit of the jobs that run here, and a wait of at least that time limit, it is promoted, for good. There
//! is no absolute time in it, so that it fits a machine of ten-minute jobs and one of week-long ones.
//!
//! Promises that no job starves: with limits of at most L and W machine-seconds of work (by limits) that came before it,
//! a job waits at most max(L, `LENGTH`·L + `AHEAD`·W) + (m + 1)·L and one refresh, m being the jobs before it that still
//! wait when it is promoted. Constants and figures: docs/decisions/0008-default-policy.md. Must not read a clock.

use sluice_model::{JobId, Time};
use std::collections::BTreeMap;

/// What a waiting job pays for the progress of those that came before it.
pub const AHEAD: f64 = 1.25;
/// Credit that promotes, in typical time limits.
pub const LENGTH: f64 = 0.4;
/// Weight of past usage in the size.
pub const FAIRSHARE: f64 = 0.25;
/// Half-life of the typical time limit, milliseconds: a week, as that of usage.
const HALF_LIFE_MS: f64 = 7.0 * 86_400_000.0;

/// Priorities from here on belong to promoted jobs.
const PROMOTED: u32 = 1 << 31;
/// Steps of priority in one unit of the size's logarithm.
const FINE: f64 = (1u32 << 24) as f64;

/// What decides a waiting job's place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    /// Planned duration: the time limit, or what is predicted.
    pub duration_secs: f64,
    /// Share of the partition of the resource of which it takes most, 0 to 1.
    pub share: f64,
    /// Its account's part of all recent usage, divided by its part of all shares: 1 is fair, 0 is nothing used.
    pub used_ratio: f64,
}

impl Size {
    /// Logarithm of the size.
    fn key(&self) -> f64 {
        let duration = if self.duration_secs.is_finite() { self.duration_secs.max(0.0) } else { 1e9 };
        (duration + 1.0).ln() + self.share.clamp(1e-9, 1.0).ln() + FAIRSHARE * self.used_ratio.max(0.0).ln_1p()
    }

    /// Higher for smaller jobs; from 1 up to just below those of promoted jobs.
    pub fn priority(&self) -> u32 {
        // Sizes lie between e^-21 and e^42.
        let steps = ((42.0 - self.key()) * FINE).round();
        steps.clamp(1.0, f64::from(PROMOTED - 1)) as u32
    }
}

/// The place of a promoted job: above all others, earlier arrivals first, to the second.
pub fn promoted_priority(since: Time, epoch: Time) -> u32 {
    let secs = (since.0.saturating_sub(epoch.0) / 1000).clamp(0, i64::from(PROMOTED - 1));
    u32::MAX - u32::try_from(secs).unwrap_or(PROMOTED - 1)
}

/// A job that waits for its turn alone.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waiting {
    pub job: JobId,
    /// When it became eligible.
    pub since: Time,
}

/// A job that has its resources.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Running {
    /// When it had become eligible.
    pub since: Time,
    pub share: f64,
    /// None: without one.
    pub limit_secs: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Account {
    /// Milliseconds.
    credit: f64,
    promoted: bool,
}

/// How long each waiting job has been overtaken. Kept from one refresh of the priorities to the next; lost with the
/// process, and then estimated from how long each job has waited.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ledger {
    at: Option<Time>,
    accounts: BTreeMap<JobId, Account>,
    /// Decayed sums over time: of share × limit (milliseconds), and of share.
    weighted: f64,
    weight: f64,
}

impl Ledger {
    /// Moves to `now`, taking what runs now for what ran since the last time.
    pub fn advance(&mut self, now: Time, running: &[Running], waiting: &[Waiting]) {
        let passed = self.at.map_or(0.0, |at| now.0.saturating_sub(at.0).max(0) as f64);
        self.at = Some(now);
        self.learn_length(passed, running);
        let length = self.length_ms();
        let mut ahead: Vec<(Time, f64)> = running.iter().map(|r| (r.since, r.share)).collect();
        ahead.sort_by_key(|(since, _)| *since);
        let mut queue: Vec<&Waiting> = waiting.iter().collect();
        queue.sort_by_key(|w| (w.since, w.job));
        let old = std::mem::take(&mut self.accounts);
        let (mut next, mut share) = (0, 0.0);
        for one in queue {
            while let Some((_, more)) = ahead.get(next).filter(|(since, _)| *since <= one.since) {
                share += more;
                next += 1;
            }
            let rate = 1.0 - AHEAD * share;
            let waited = now.0.saturating_sub(one.since.0).max(0) as f64;
            let mut account = match old.get(&one.job) {
                Some(account) => Account { credit: account.credit + passed * rate, ..*account },
                // New in the queue, or known from before this process: as if it had always been as it is now.
                None => Account { credit: (waited * rate).max(0.0), promoted: false },
            };
            account.promoted |= length > 0.0 && account.credit >= LENGTH * length && waited >= length;
            self.accounts.insert(one.job, account);
        }
    }

    fn learn_length(&mut self, passed: f64, running: &[Running]) {
        let keep = (-passed / HALF_LIFE_MS).exp2();
        // A machine that has just been seen for the first time is judged by what runs on it.
        let fresh = if self.weight == 0.0 { 1.0 } else { passed };
        let (mut weighted, mut weight) = (0.0, 0.0);
        for job in running {
            // A job without a limit says nothing about lengths.
            let Some(limit) = job.limit_secs else { continue };
            weighted += job.share * limit * 1000.0;
            weight += job.share;
        }
        self.weighted = self.weighted * keep + weighted * fresh;
        self.weight = self.weight * keep + weight * fresh;
    }

    /// Typical time limit of what runs, milliseconds; 0 while nothing is known.
    pub fn length_ms(&self) -> f64 {
        if self.weight > 0.0 { self.weighted / self.weight } else { 0.0 }
    }

    pub fn is_promoted(&self, job: JobId) -> bool {
        self.accounts.get(&job).is_some_and(|a| a.promoted)
    }

    /// Milliseconds that the job has been overtaken, and how many promote it.
    pub fn credit(&self, job: JobId) -> Option<(f64, f64)> {
        self.accounts.get(&job).map(|a| (a.credit, LENGTH * self.length_ms()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn size(duration_secs: f64, share: f64, used_ratio: f64) -> u32 {
        Size { duration_secs, share, used_ratio }.priority()
    }

    fn waiting(job: u32, since: i64) -> Waiting {
        Waiting { job: JobId(job), since: Time(since) }
    }

    fn running(since: i64, share: f64, limit_secs: f64) -> Running {
        Running { since: Time(since), share, limit_secs: Some(limit_secs) }
    }

    #[test]
    fn smaller_shorter_and_less_used_comes_first_and_promoted_before_all() {
        assert!(size(60.0, 0.5, 0.0) > size(61.0, 0.5, 0.0));
        assert!(size(60.0, 0.25, 0.0) > size(60.0, 0.5, 0.0));
        assert!(size(60.0, 0.5, 0.5) > size(60.0, 0.5, 1.0));
        // Sixteen times the usage weighs about as much as twice the size.
        assert!(size(60.0, 0.5, 15.0) > size(60.0, 1.0, 0.0) - (1 << 21));
        let extremes = [size(0.0, 0.0, 0.0), size(f64::INFINITY, 1.0, 1e12)];
        assert!(extremes.iter().all(|p| (1..PROMOTED).contains(p)), "{extremes:?}");
        let (early, late) = (promoted_priority(Time(5000), Time(0)), promoted_priority(Time(6000), Time(0)));
        assert!(early > late && late > extremes[0]);
    }

    fn promoted_at(earlier: f64, later: f64) -> Option<i64> {
        let mut ledger = Ledger::default();
        let queue = [waiting(1, 10)];
        // The machine is full of hour-long jobs.
        let machine = [running(0, earlier, 3600.0), running(20, later, 3600.0)];
        (0..10_000).find(|minute| {
            ledger.advance(Time(minute * 60_000 + 10), &machine, &queue);
            ledger.is_promoted(JobId(1))
        })
    }

    #[test]
    fn a_job_is_promoted_after_the_typical_length_when_only_later_ones_had_the_machine() {
        assert!(matches!(promoted_at(0.0, 1.0), Some(60 | 61)));
    }

    #[test]
    fn what_earlier_jobs_get_meanwhile_postpones_the_promotion() {
        // A credit of 24 minutes at 1 - 1.25 × 0.64 a minute.
        assert!(matches!(promoted_at(0.64, 0.36), Some(120 | 121)));
    }

    #[test]
    fn work_that_came_before_costs_no_credit_so_a_plain_queue_promotes_nobody() {
        let mut ledger = Ledger::default();
        let queue = [waiting(2, 10)];
        let earlier = [running(0, 1.0, 3600.0)];
        ledger.advance(Time(10), &earlier, &queue);
        for hour in 1..100 {
            ledger.advance(Time(hour * HOUR), &earlier, &queue);
        }
        assert!(!ledger.is_promoted(JobId(2)));
        assert!(ledger.credit(JobId(2)).is_some_and(|(credit, _)| credit < 0.0));
    }

    #[test]
    fn a_job_known_only_by_its_wait_is_credited_as_if_nothing_had_changed_meanwhile() {
        let mut ledger = Ledger::default();
        ledger.advance(Time(2 * HOUR), &[running(HOUR, 0.5, 3600.0)], &[waiting(1, 0), waiting(2, HOUR + HOUR / 2)]);
        assert!(ledger.is_promoted(JobId(1)) && !ledger.is_promoted(JobId(2)));
    }

    #[test]
    fn however_often_the_account_is_lost_a_job_is_promoted_while_little_that_came_before_it_runs() {
        for (earlier, expected) in [(0.0, Some(60)), (0.39, Some(60)), (0.9, None)] {
            let machine = [running(0, earlier, 3600.0), running(20, 1.0 - earlier, 3600.0)];
            let promoted = (0..600).find(|minute| {
                let mut anew = Ledger::default();
                anew.advance(Time(minute * 60_000 + 10), &machine, &[waiting(1, 10)]);
                anew.is_promoted(JobId(1))
            });
            assert_eq!(promoted, expected, "{earlier}");
        }
    }

    #[test]
    fn credit_of_a_job_that_left_the_queue_is_forgotten() {
        let mut ledger = Ledger::default();
        ledger.advance(Time(HOUR), &[], &[waiting(1, HOUR)]);
        ledger.advance(Time(2 * HOUR), &[], &[]);
        assert_eq!(ledger.credit(JobId(1)), None);
    }
}
