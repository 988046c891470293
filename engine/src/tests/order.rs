//! Smallest first in the life of a cluster: smaller first, heavy users later, nobody overtaken for ever.

use super::world::*;
use crate::command::{Command, JobTarget, Reply};
use crate::query::{Board, scheduler_input_with, why};
use sluice_model::config::{ClusterConfig, PriorityConfig, PriorityKind};
use sluice_model::request::NodeCount;
use sluice_model::{JobId, JobSpec, TimeLimit};
use std::cmp::Reverse;
use std::collections::VecDeque;

fn cluster() -> World {
    predicting(false)
}

fn predicting(predictions: bool) -> World {
    let priority = PriorityConfig { kind: PriorityKind::SmallestFirst, predictions, ..PriorityConfig::default() };
    World::with(ClusterConfig { priority, ..config() })
}

fn sized(uid: u32, cores_: u32, minutes: u32) -> JobSpec {
    JobSpec { uid, user: format!("user{uid}").into(), time_limit: Some(TimeLimit::Minutes(minutes)), ..cores(cores_) }
}

fn order(w: &World, board: &Board) -> Vec<JobId> {
    let mut jobs = scheduler_input_with(&w.state, w.now, board).pending;
    jobs.sort_by_key(|p| (Reverse(p.priority), p.submitted, p.job));
    jobs.iter().map(|p| p.job).collect()
}

#[test]
fn the_smaller_job_goes_first_whether_shorter_or_narrower() {
    let mut w = cluster();
    let large = w.submit(sized(1, 4, 600));
    let long = w.submit(sized(1, 1, 600));
    let short = w.submit(sized(1, 1, 10));
    let again = w.submit(sized(1, 1, 10));
    let board = Board::new(&w.state, w.now, None);
    assert_eq!(order(&w, &board), [short, again, long, large], "equals keep the order of arrival");
    let parts = &board.parts(&w.state, w.job(long))[0];
    let sum = parts.weighted.age + parts.weighted.fairshare + parts.weighted.job_size;
    assert_eq!(sum, f64::from(parts.total), "sprio's parts add up");
    for job in [large, long, short, again].map(|id| w.job(id)) {
        assert_eq!(board.priority(&w.state, job), board.parts(&w.state, job)[0].total, "sprio shows what counts");
    }
}

#[test]
fn who_used_much_of_late_comes_after_others_with_jobs_of_the_same_size() {
    let mut w = cluster();
    let used = w.submit(sized(1, 4, 60));
    w.schedule();
    w.pass(1800);
    w.run(used, OK);
    let heavy = w.submit(sized(1, 1, 10));
    let light = w.submit(sized(2, 1, 10));
    let board = Board::new(&w.state, w.now, None);
    assert_eq!(order(&w, &board), [light, heavy]);
    assert!(board.parts(&w.state, w.job(heavy))[0].weighted.fairshare < 0.0);
}

/// A pass with the board that the cluster keeps.
fn pass(w: &mut World) -> Vec<JobId> {
    let plan = sluice_sched::plan(&scheduler_input_with(&w.state, w.now, &w.board));
    match w.ok(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed }) {
        Reply::Affected { jobs } => jobs,
        other => panic!("{other:?}"),
    }
}

#[test]
fn under_an_endless_stream_of_small_jobs_a_job_as_wide_as_the_machine_starts() {
    let mut w = cluster();
    for _ in 0..8 {
        w.submit(sized(1, 1, 10));
    }
    let mut ends: VecDeque<(i64, JobId)> = pass(&mut w).into_iter().zip(1..).map(|(job, m)| (m, job)).collect();
    assert_eq!(ends.len(), 8, "the machine is full");
    let mut spec = sized(2, 4, 60);
    spec.request.nodes = Some(NodeCount { min: 2, max: Some(2) });
    spec.request.ntasks = Some(2);
    let wide = w.submit(spec);
    // Every minute two of the small jobs arrive and those that have had their ten minutes end.
    let started = (1..200).find(|minute| {
        w.submit(sized(3, 1, 10));
        w.submit(sized(3, 1, 10));
        w.pass(60);
        while let Some((_, job)) = ends.front().filter(|(end, _)| end <= minute).copied() {
            w.run(job, OK);
            ends.pop_front();
        }
        ends.extend(pass(&mut w).into_iter().map(|job| (minute + 10, job)));
        !w.nodes_of(wide).is_empty()
    });
    // Ten minutes are typical here: promoted at the first refresh (five minutes) after as long a wait, and what runs
    // then ends ten minutes later at the latest.
    let minute = started.expect("it starts");
    assert!((10..=26).contains(&minute), "{minute}");
}

/// So many runs of one user, one after the other, each for so many minutes of an hour's limit.
fn runs(w: &mut World, uid: u32, count: u32, cores: u32, minutes: i64) {
    for _ in 0..count {
        let job = w.submit(sized(uid, cores, 60));
        pass(w);
        w.pass(minutes * 60);
        w.run(job, OK);
    }
}

#[test]
fn a_user_whose_runs_end_long_before_their_limits_goes_first_though_not_by_limits_alone() {
    for (predictions, expected) in [(true, true), (false, false)] {
        let mut w = predicting(predictions);
        runs(&mut w, 2, 10, 1, 50);
        // Uses more of the machine all in all, and so comes later by usage.
        runs(&mut w, 1, 40, 4, 4);
        w.board = Board::default();
        let (long, short) = (w.submit(sized(2, 1, 60)), w.submit(sized(1, 1, 60)));
        assert_eq!(order(&w, &w.board)[0] == short, expected, "predictions {predictions}");
        let said = why(&w.state, w.now, &w.board, long, None);
        assert!(said.is_some_and(|w| w.because.iter().all(|s| !s.text.contains("probable"))), "it could start");
        w.assert_replays();
    }
}

#[test]
fn the_end_of_a_run_changes_the_place_of_its_users_waiting_jobs_at_once() {
    let mut w = predicting(true);
    let running = w.submit(sized(1, 4, 600));
    w.submit(sized(3, 4, 600));
    assert_eq!(pass(&mut w).len(), 2, "the machine is full");
    let other = w.submit(sized(2, 1, 300));
    let first = w.submit(sized(1, 1, 600));
    let second = w.submit(sized(1, 2, 600));
    assert_eq!(order(&w, &w.board), [other, first, second]);
    let board = w.board.at;
    w.pass(30);
    // The test's cluster compares what the fed scheduler plans with a plan from nothing.
    w.run(running, OK);
    assert_eq!(w.board.at, board, "no refresh has come between");
    assert_eq!(order(&w, &w.board), [first, second, other]);
    w.submit(sized(4, 4, 1));
    pass(&mut w);
    let said = why(&w.state, w.now, &w.board, second, None).expect("it waits");
    let text: Vec<&str> = said.because.iter().map(|s| s.text.as_str()).collect();
    assert!(text.iter().any(|t| t.contains("which its user's last runs make probable (limit 10:00:00)")), "{text:?}");
}

#[test]
fn only_runs_that_came_to_an_end_of_their_own_tell_of_a_user() {
    let mut w = predicting(true);
    let known = |w: &World| w.state.habits.users.get(&1).map_or(0, |known| known.habits.runs().count());
    let lost = w.submit(sized(1, 1, 60));
    w.schedule();
    w.pass(600);
    let caller = operator();
    w.ok(Command::Requeue { caller, target: JobTarget::Job(lost), hold: false });
    w.clean(lost);
    assert_eq!(known(&w), 0, "it goes on later");
    w.pass(600);
    w.schedule();
    w.pass(120);
    w.batch_ends(lost, code(3));
    assert_eq!(known(&w), 1, "it counts before its nodes are clean");
    w.clean(lost);
    let cancelled = w.submit(sized(1, 1, 60));
    w.cancel(user(1), cancelled).unwrap();
    assert_eq!(known(&w), 1, "it has not run");
    let run = *w.state.habits.users[&1].habits.runs().next().unwrap();
    assert_eq!((run.ran_secs, run.limit_secs, run.width), (120, 3600, 1));
    w.assert_replays();
}
