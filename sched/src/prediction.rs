//! How long a job will probably run, from what its user's earlier jobs did with their limits.
//!
//! Owns the estimate: a weighted power mean over the user's last runs, in which recent runs, runs with a similar time limit
//! and runs of a similar width count most, and in which the limit itself counts a little. In the line of Tsafrir, Etsion
//! and Feitelson (2007: the mean of the last two runs) and Gaussier et al. (SC 2015: learnt from features). Promises never
//! to say more than the limit. It orders the queue and nothing else: planned starts and backfill go by the limit, so that a
//! wrong guess delays nobody beyond what was planned and kills no job.

use std::collections::VecDeque;

/// Runs of a user that are remembered.
pub const REMEMBERED: usize = 30;
/// What a run counts against the one after it: e^(-1/20).
const OLDER: f64 = 0.951_229_424_500_714;
/// Weight of the limit as one more run.
const PRIOR: f64 = 0.3;
/// A run that is so unlike the job says nothing.
const LEAST: f64 = 1e-4;

/// What is remembered of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndedRun {
    pub ran_secs: u32,
    /// The most that fits for none.
    pub limit_secs: u32,
    /// GPUs, or CPUs of a job without GPUs.
    pub width: u32,
}

/// A user's last runs, the newest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Habits {
    runs: VecDeque<EndedRun>,
}

impl Habits {
    /// A run has ended.
    pub fn add(&mut self, run: EndedRun) {
        self.runs.truncate(REMEMBERED - 1);
        self.runs.push_front(run);
    }

    /// The newest first.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &EndedRun> {
        self.runs.iter()
    }

    /// Seconds, from 0 to the limit.
    pub fn predict(&self, limit_secs: u32, width: u32) -> f64 {
        let (limit, width) = (f64::from(limit_secs), f64::from(width));
        let mut weight = PRIOR;
        let mut sum = PRIOR * (limit + 1.0).sqrt();
        let mut age = 1.0;
        for run in &self.runs {
            // The square of the ratio of the limits, the root of that of the widths.
            let w = age * alike(limit, run.limit_secs.into()).powi(2) * alike(width, run.width.into()).sqrt();
            age *= OLDER;
            if w >= LEAST {
                weight += w;
                sum += w * (f64::from(run.ran_secs).clamp(1.0, limit.max(1.0)) + 1.0).sqrt();
            }
        }
        (sum / weight).powi(2).min(limit)
    }
}

/// The smaller amount by the larger: 1 for equal ones.
fn alike(a: f64, b: f64) -> f64 {
    let (a, b) = (a.max(1e-9), b.max(1e-9));
    a.min(b) / a.max(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ran_secs: u32, limit_secs: u32, width: u32) -> EndedRun {
        EndedRun { ran_secs, limit_secs, width }
    }

    #[test]
    fn without_a_past_it_is_the_limit_and_never_more() {
        let mut habits = Habits::default();
        assert_eq!(habits.predict(3600, 4), 3600.0);
        habits.add(run(u32::MAX, u32::MAX, 4));
        for (limit, width) in [(3600, 4), (0, 0), (u32::MAX, u32::MAX)] {
            let said = habits.predict(limit, width);
            assert!((0.0..=f64::from(limit)).contains(&said), "{limit} {width}: {said}");
        }
    }

    #[test]
    fn runs_like_it_count_more_than_others_and_new_ones_more_than_old_ones() {
        let mut habits = Habits::default();
        (0..10).for_each(|_| habits.add(run(3500, 3600, 1)));
        (0..10).for_each(|_| habits.add(run(60, 86_400, 64)));
        assert!(habits.predict(3600, 1) > 3000.0, "{}", habits.predict(3600, 1));
        assert!(habits.predict(86_400, 64) < 1000.0, "{}", habits.predict(86_400, 64));
        let before = habits.predict(3600, 1);
        (0..5).for_each(|_| habits.add(run(30, 3600, 1)));
        assert!(habits.predict(3600, 1) < before / 2.0);
    }

    #[test]
    fn only_the_last_runs_are_remembered() {
        let mut habits = Habits::default();
        (0..100).for_each(|n| habits.add(run(n, 100, 1)));
        assert_eq!(habits.runs().count(), REMEMBERED);
        assert_eq!(habits.runs().next().map(|r| r.ran_secs), Some(99));
    }
}
