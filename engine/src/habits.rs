//! What users' last runs did with their time limits, as the cluster remembers it: what run times are predicted from.
//!
//! Owns the memory: the last few runs of each user, by uid. A run counts when it came to an end of its own, at its limit or
//! by a scancel; one that was broken off for other reasons, or goes back to the queue, says nothing about its job. Follows
//! from `JobCompleting` alone, so that the journal needs no event of its own. Promises to stay within bounds: of too many
//! users those are forgotten whose last run is longest ago.

use crate::job::{AfterEnd, Job, Outcome, Phase};
use imbl::OrdMap;
use sluice_model::tres::Tres;
use sluice_model::{JobState, Time, TimeLimit};
use sluice_sched::prediction::{EndedRun, Habits};
use std::sync::Arc;

/// Users remembered, at most. A user takes about 400 bytes.
const USERS: usize = 10_000;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserHabits {
    pub habits: Habits,
    /// End of the last run.
    pub last: Option<Time>,
}

/// By uid. Cloning is O(1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HabitBook {
    pub users: OrdMap<u32, Arc<UserHabits>>,
}

impl HabitBook {
    /// A job's run is over. To be told before its record changes.
    pub(crate) fn learn(&mut self, job: &Job, outcome: &Outcome, at: Time, then: AfterEnd) {
        let Phase::Running(run) = &job.phase else { return };
        let telling = matches!(
            outcome.state,
            JobState::Completed | JobState::Failed | JobState::Timeout | JobState::OutOfMemory | JobState::Cancelled
        );
        if !telling || then != AfterEnd::Finish {
            return;
        }
        let idle = run.suspended_since.map_or(0, |since| at.0.saturating_sub(since.0).max(0));
        let suspended = i64::try_from(run.suspended_ms).unwrap_or(i64::MAX).saturating_add(idle);
        let ran_ms = at.0.saturating_sub(run.started.0).saturating_sub(suspended).max(0);
        self.add(
            job.spec.uid,
            EndedRun {
                ran_secs: u32::try_from(ran_ms / 1000).unwrap_or(u32::MAX),
                limit_secs: limit_secs(job.time_limit),
                width: width(&Tres::of_allocation(&run.allocation)),
            },
            at,
        );
    }

    fn add(&mut self, uid: u32, run: EndedRun, at: Time) {
        let known = Arc::make_mut(self.users.entry(uid).or_default());
        known.habits.add(run);
        known.last = known.last.max(Some(at));
        if self.users.len() > USERS {
            self.forget();
        }
    }

    /// A tenth of the users at once, so that it is not done for each new one.
    fn forget(&mut self) {
        let mut ages: Vec<(Option<Time>, u32)> = self.users.iter().map(|(uid, known)| (known.last, *uid)).collect();
        ages.sort_unstable();
        for (_, uid) in &ages[..USERS / 10] {
            self.users.remove(uid);
        }
    }

    /// Seconds that a job of this user with this limit and `width` will probably run; its limit when nothing is known of
    /// the user. Never more than the limit.
    pub fn predict(&self, uid: u32, limit: TimeLimit, width: u32) -> f64 {
        match self.users.get(&uid) {
            Some(known) => known.habits.predict(limit_secs(limit), width),
            None => limit.duration().map_or(f64::INFINITY, |d| d.as_secs_f64()),
        }
    }
}

fn limit_secs(limit: TimeLimit) -> u32 {
    limit.duration().map_or(u32::MAX, |d| u32::try_from(d.as_secs()).unwrap_or(u32::MAX))
}

/// GPUs, or CPUs of what has none.
pub(crate) fn width(tres: &Tres) -> u32 {
    let gpus = tres.gres.get(&("gpu".to_owned(), None)).copied().filter(|n| *n > 0);
    u32::try_from(gpus.unwrap_or(tres.cpus)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_users_those_are_forgotten_whose_last_run_is_longest_ago() {
        let mut book = HabitBook::default();
        let run = EndedRun { ran_secs: 1, limit_secs: 60, width: 1 };
        for n in 0..3 * USERS as u32 {
            book.add(n, run, Time(n.into()));
            book.add(7, run, Time(n.into()));
        }
        assert!(book.users.len() <= USERS, "{}", book.users.len());
        assert!(book.users.contains_key(&7) && book.users.contains_key(&(3 * USERS as u32 - 1)));
        assert!(!book.users.contains_key(&8));
    }
}
