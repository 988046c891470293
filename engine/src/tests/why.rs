//! What `sluice why` says, in scenarios on two nodes of four cores.

use super::world::*;
use crate::command::Command;
use crate::query::{Why, why, why_node};
use sluice_model::request::MemoryRequest;
use sluice_model::{JobId, JobSpec, Reason, Time, TimeLimit};

fn limited(spec: JobSpec, minutes: u32) -> JobSpec {
    JobSpec { time_limit: Some(TimeLimit::Minutes(minutes)), ..spec }
}

fn ask(w: &World, id: JobId) -> Why {
    why(&w.state, w.now, &w.board, id, None).expect("the job is known")
}

fn text(why: &Why) -> String {
    why.because.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Both nodes full for an hour, by jobs 1 and 2.
fn full() -> World {
    let mut w = World::new();
    for _ in 0..2 {
        w.submit(limited(cores(4), 60));
    }
    assert_eq!(w.schedule().len(), 2);
    w
}

#[test]
fn a_job_that_lacks_cores_is_told_how_many_whose_they_are_and_when_it_starts() {
    let mut w = full();
    let id = w.submit(limited(cores(2), 30));
    let answer = ask(&w, id);
    assert_eq!(answer.reason, Reason::Resources);
    assert!(text(&answer).contains("2 CPU(s)"), "{}", text(&answer));
    let cpus = answer.numbers.iter().find(|n| n.what.starts_with("CPUs")).expect("CPUs are short");
    assert_eq!((cpus.needs, cpus.has, cpus.limit), (2, 0, Some(4)));
    assert_eq!(cpus.used_by.len(), 1);
    let planned = answer.planned.expect("a start can be foreseen");
    assert_eq!(planned.start, Time(w.now.0 + 3_600_000));
    assert!(planned.certainty.contains("kept for it"));
}

#[test]
fn a_shorter_limit_that_fits_before_the_planned_start_of_another_is_found() {
    let mut w = World::new();
    w.submit(limited(cores(4), 60));
    w.submit(limited(cores(2), 60));
    w.schedule();
    // Wants both nodes: planned in an hour. Two cores of the second are free until then.
    w.submit(limited(nodes_of_four(), 60));
    let late = w.submit(limited(cores(2), 120));
    assert!(w.schedule().is_empty());
    let answer = ask(&w, late);
    assert_eq!(answer.ahead_count, 1);
    assert!(text(&answer).contains("kept for job 3"), "{}", text(&answer));
    let best = answer.sooner.first().expect("a shorter limit helps");
    assert_eq!((best.options.as_str(), best.start), ("--time=1:00:00", w.now), "{:?}", answer.sooner);
}

fn nodes_of_four() -> JobSpec {
    let mut spec = nodes(2);
    spec.request.cpus_per_task = Some(4);
    spec
}

#[test]
fn less_memory_is_named_with_the_amount_that_is_free() {
    let mut w = World::new();
    for _ in 0..2 {
        let mut spec = limited(cores(1), 60);
        spec.request.memory = Some(MemoryRequest::PerNode(3000));
        w.submit(spec);
    }
    w.schedule();
    let mut spec = limited(cores(1), 60);
    spec.request.memory = Some(MemoryRequest::PerNode(2000));
    let id = w.submit(spec);
    let answer = ask(&w, id);
    let memory = answer.numbers.iter().find(|n| n.what.starts_with("memory")).expect("memory is short");
    assert_eq!((memory.needs, memory.has, memory.limit), (2000, 1000, Some(4000)));
    let fix = answer.sooner.iter().find(|s| s.options.starts_with("--mem=")).expect("less memory helps");
    assert_eq!((fix.options.as_str(), fix.start), ("--mem=1000M", w.now));
}

#[test]
fn holds_dependencies_and_throttles_are_explained_by_their_rule() {
    let mut w = World::new();
    let first = w.submit(job());
    let held = w.submit(JobSpec { hold: true, ..job() });
    let dependent = w.submit(after(&format!("afterok:{first}")));
    let array = w.submit(throttled("0-3", 1));
    w.schedule();
    assert!(text(&ask(&w, held)).contains("scontrol release"), "{}", text(&ask(&w, held)));
    let said = text(&ask(&w, dependent));
    assert!(said.contains(&format!("job {first} has to end well; it is RUNNING")), "{said}");
    let answer = ask(&w, array);
    assert_eq!(answer.reason, Reason::JobArrayTaskLimit);
    assert!(text(&answer).contains("1 task(s) at a time"), "{}", text(&answer));
    assert_eq!(answer.numbers[0].used_by.len(), 1);
}

#[test]
fn a_job_that_failed_says_with_what_and_one_that_runs_says_where() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    assert!(text(&ask(&w, id)).contains("it runs on n"), "{}", text(&ask(&w, id)));
    w.run(id, code(3));
    let answer = ask(&w, id);
    assert_eq!(answer.reason, Reason::NonZeroExitCode);
    assert!(text(&answer).contains("exit code 3"), "{}", text(&answer));
    assert_eq!(why(&w.state, w.now, &w.board, JobId(99), None), None);
}

#[test]
fn an_idle_node_says_why_each_waiting_job_leaves_it_alone() {
    let mut w = World::new();
    w.submit(limited(cores(4), 60));
    w.schedule();
    let wide = w.submit(limited(nodes_of_four(), 60));
    let mut elsewhere = limited(cores(1), 60);
    elsewhere.request.exclude = vec!["n2".into()];
    let excluded = w.submit(elsewhere);
    w.schedule();
    let answer = why_node(&w.state, w.now, &w.board, &"n2".into()).expect("it is known");
    assert_eq!((answer.free_cpus, answer.cpus, answer.waiting), (4, 4, 2));
    let cause = |id| &answer.causes.iter().find(|c| c.jobs.contains(&id)).expect("every job has a cause").cause;
    assert!(cause(wide).contains("planned for later"), "{}", cause(wide));
    assert!(cause(excluded).contains("exclude"), "{}", cause(excluded));
    w.ok(Command::UpdateNode {
        caller: operator(),
        nodes: vec!["n2".into()],
        change: crate::command::NodeChange {
            state: Some(crate::command::NodeStateChange::Drain),
            reason: Some("fan".to_owned()),
            ..crate::command::NodeChange::default()
        },
    });
    let answer = why_node(&w.state, w.now, &w.board, &"n2".into()).expect("it is known");
    let said: Vec<&str> = answer.condition.iter().map(|s| s.text.as_str()).collect();
    assert!(said.iter().any(|s| s.contains("drained")) && said.iter().any(|s| s.contains("fan")), "{said:?}");
    assert_eq!(why_node(&w.state, w.now, &w.board, &"n9".into()), None);
}
