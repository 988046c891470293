//! The time window and the states asked for: which jobs were there, or were in such a state, between two points in time.
//!
//! Whole seconds, as Slurm counts them. Sources: sacct(1), "DEFAULT TIME WINDOW", `--state`; edges as Slurm was seen to
//! treat them.

use crate::view::clock::Clock;
use crate::view::job as facts;
use sluice_model::JobState;
use sluice_proto::v1;

/// One end of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// The controller's time at the answer.
    Now,
    /// Seconds since the epoch.
    At(i64),
}

impl Edge {
    fn secs(self, now: i64) -> i64 {
        match self {
            Edge::Now => now,
            Edge::At(secs) => secs,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    pub start: Edge,
    pub end: Edge,
}

/// The edges that are not given, by what else is (sacct(1), "DEFAULT TIME WINDOW"). `midnight` is the start of today.
pub fn defaults(start: Option<Edge>, end: Option<Edge>, jobs: bool, states: bool, midnight: i64) -> Window {
    Window {
        start: start.unwrap_or(match (jobs, states) {
            (true, _) => Edge::At(0),
            (false, true) => Edge::Now,
            (false, false) => Edge::At(midnight),
        }),
        end: end.or(start.filter(|_| states)).unwrap_or(Edge::Now),
    }
}

impl Window {
    /// Slurm's message when the window ends before it starts.
    pub fn check(&self, clock: &Clock) -> Result<(), String> {
        let (start, end) = self.bounds(clock.now.0);
        if start <= end {
            return Ok(());
        }
        let (start, end) = (clock.standard(start * 1000), clock.standard(end * 1000));
        Err(format!("Start time ({start}) requested is after end time ({end})."))
    }

    /// For `--verbose`.
    pub fn describe(&self, clock: &Clock) -> String {
        let at = |edge: Edge| match edge.secs(clock.now.secs()) {
            0 => "Epoch 0".to_owned(),
            secs => Clock { now: sluice_model::Time::from_secs(secs), ..clock.clone() }.heading(),
        };
        format!("Jobs Eligible in the time window from {} to {}", at(self.start), at(self.end))
    }

    /// The window in milliseconds for the request. Wider than asked where clocks may differ; `admits` judges again.
    pub fn request(&self, own_now_ms: i64) -> (Option<i64>, Option<i64>) {
        const SKEW_MS: i64 = 600_000;
        let start = match self.start {
            Edge::Now => Some(own_now_ms - SKEW_MS),
            Edge::At(secs) => (secs > 0).then_some(secs * 1000),
        };
        let end = match self.end {
            Edge::Now => None,
            Edge::At(secs) => Some(secs * 1000 + 999),
        };
        (start, end)
    }

    /// Seconds of both edges when the time is known.
    pub fn bounds(&self, now_ms: i64) -> (i64, i64) {
        let now = now_ms.div_euclid(1000);
        (self.start.secs(now), self.end.secs(now))
    }
}

fn secs(ms: i64) -> i64 {
    ms.div_euclid(1000)
}

/// How it ended or in which state it is. A job whose processes are being ended, and that has no outcome yet, runs: Slurm's
/// accounting knows no state in between.
pub fn state(job: &v1::JobRecord) -> &str {
    match facts::final_state(job) {
        ending if ending == JobState::Completing.long() => JobState::Running.long(),
        state => state,
    }
}

/// When the job was over; None while it is not.
pub fn ended(job: &v1::JobRecord) -> Option<i64> {
    job.end.filter(|_| JobState::parse(state(job)).is_some_and(JobState::is_finished))
}

/// When it started to run; None for a job that waits or never ran.
pub fn started(job: &v1::JobRecord) -> Option<i64> {
    job.start.filter(|_| !facts::is_waiting(job))
}

/// Does the job belong into the window? Jobs that are not eligible (held, waiting for another) count only when they are
/// asked for by their id.
pub fn admits(job: &v1::JobRecord, (start, end): (i64, i64), states: &[JobState], by_id: bool) -> bool {
    let eligible = job.eligible.or(started(job)).map(secs);
    if !states.is_empty() {
        return states.iter().any(|s| was(job, *s, eligible, (start, end)));
    }
    let over = ended(job).map(secs);
    let came = match (eligible, over) {
        _ if by_id => true,
        (Some(eligible), _) => eligible <= end,
        // Cancelled before it was ever eligible.
        (None, Some(_)) => secs(job.submit) <= end,
        (None, None) => false,
    };
    came && over.is_none_or(|o| o >= start)
}

/// Was the job in this state at some time of the window?
fn was(job: &v1::JobRecord, wanted: JobState, eligible: Option<i64>, (start, end): (i64, i64)) -> bool {
    let (ran, over) = (started(job).map(secs), ended(job).map(secs));
    match wanted {
        JobState::Pending => {
            eligible.is_some_and(|e| e <= end)
                && match ran {
                    Some(ran) => ran >= start,
                    None => over.is_none_or(|o| o >= start),
                }
        }
        JobState::Running => {
            ran.is_some_and(|r| r < end || (r == end && start == end)) && over.is_none_or(|o| o >= start)
        }
        JobState::Suspended => facts::state(job) == wanted && job.suspended_since.is_none_or(|s| secs(s) <= end),
        JobState::Completing | JobState::SpecialExit => facts::state(job) == wanted,
        over_in => JobState::parse(state(job)) == Some(over_in) && over.is_some_and(|o| (start..=end).contains(&o)),
    }
}

/// The states by which the controller can leave jobs out already: only when each is one that a job ends in.
pub fn request_states(states: &[JobState]) -> Vec<String> {
    if states.iter().all(|s| s.is_finished()) {
        states.iter().map(|s| s.long().to_owned()).collect()
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture::{self, NOW, SUBMIT};

    const NOW_S: i64 = NOW / 1000;
    const SUBMIT_S: i64 = SUBMIT / 1000;
    fn which(bounds: (i64, i64), states: &[JobState], by_id: bool) -> Vec<u32> {
        let mut ids: Vec<u32> =
            fixture::jobs().iter().filter(|j| admits(j, bounds, states, by_id)).map(|j| j.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn the_default_window_depends_on_jobs_and_states() {
        let window = |start, end| Window { start, end };
        assert_eq!(defaults(None, None, false, false, 77), window(Edge::At(77), Edge::Now));
        assert_eq!(defaults(None, None, true, false, 77), window(Edge::At(0), Edge::Now));
        assert_eq!(defaults(None, None, false, true, 77), window(Edge::Now, Edge::Now));
        assert_eq!(defaults(Some(Edge::At(5)), None, false, true, 77), window(Edge::At(5), Edge::At(5)));
        assert_eq!(defaults(Some(Edge::At(5)), None, true, true, 77), window(Edge::At(5), Edge::At(5)));
        assert_eq!(defaults(None, None, true, true, 77), window(Edge::At(0), Edge::Now));
        assert_eq!(defaults(Some(Edge::At(5)), None, false, false, 77), window(Edge::At(5), Edge::Now));
    }

    #[test]
    fn a_reversed_window_is_named() {
        let window = Window { start: Edge::At(NOW_S + 60), end: Edge::Now };
        let expected = "Start time (2026-11-30T10:00:56) requested is after end time (2026-11-30T09:59:56).";
        assert_eq!(window.check(&fixture::clock()).unwrap_err(), expected);
        assert!(Window { start: Edge::Now, end: Edge::Now }.check(&fixture::clock()).is_ok());
    }

    #[test]
    fn without_ids_only_eligible_jobs_are_listed() {
        assert_eq!(which((0, NOW_S), &[], false), [1, 2, 7, 8, 9]);
        assert_eq!(which((0, NOW_S), &[], true), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(which((SUBMIT_S + 1, NOW_S), &[], false), [2, 7, 8, 9], "what ended before is left out");
        assert!(which((0, SUBMIT_S - 1), &[], false).is_empty());
    }

    #[test]
    fn states_select_by_the_state_during_the_window() {
        use JobState::{Completed, Failed, Pending, Running};
        assert_eq!(which((NOW_S, NOW_S), &[Running], false), [2, 8, 9]);
        assert_eq!(which((NOW_S, NOW_S), &[Pending], false), [7]);
        assert_eq!(which((SUBMIT_S, SUBMIT_S), &[Failed, Completed], false), [1]);
        assert!(which((SUBMIT_S + 1, NOW_S), &[Failed], false).is_empty());
        // Job 1 waited and ran at that second too.
        assert_eq!(which((SUBMIT_S, SUBMIT_S), &[Running], false), [1, 2, 8, 9]);
        assert_eq!(which((SUBMIT_S, NOW_S), &[Pending], false), [1, 2, 7, 8, 9]);
    }

    #[test]
    fn a_job_that_is_being_ended_runs_until_its_outcome_is_known() {
        let mut job = fixture::job(2);
        job.state = "COMPLETING".into();
        assert_eq!((state(&job), ended(&job)), ("RUNNING", None), "the end by its limit is none");
        job.completing_state = "CANCELLED".into();
        job.end = Some(NOW);
        assert_eq!((state(&job), ended(&job)), ("CANCELLED", Some(NOW)));
    }

    #[test]
    fn the_controller_filters_only_by_states_that_jobs_end_in() {
        assert_eq!(request_states(&[JobState::Failed]), ["FAILED"]);
        assert!(request_states(&[JobState::Failed, JobState::Running]).is_empty());
        assert!(request_states(&[]).is_empty());
    }

    #[test]
    fn the_request_leaves_room_for_clocks_that_differ() {
        assert_eq!(defaults(None, None, true, false, 0).request(NOW), (None, None));
        let (start, end) = Window { start: Edge::Now, end: Edge::At(NOW_S) }.request(NOW);
        assert!(start.unwrap() < NOW && end.unwrap() >= NOW);
    }
}
