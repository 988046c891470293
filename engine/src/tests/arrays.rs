use super::world::*;
use crate::command::{Command, JobChange, JobTarget, Reply};
use crate::effect::Effect;
use crate::job::{ArrayRole, Hold};
use crate::query;
use crate::reject::Reject;
use sluice_model::config::ClusterConfig;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, Reason};

fn waiting(w: &World, id: JobId) -> String {
    match &w.job(id).array {
        ArrayRole::Pending { indices, .. } => indices.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn tasks_get_numbers_of_their_own_and_the_last_takes_the_arrays() {
    let mut w = World::new();
    let id = w.submit(array("0-2"));
    assert_eq!(w.schedule(), [JobId(2), JobId(3), id]);
    for (job, index) in [(2, 0), (3, 1), (1, 2)] {
        assert_eq!(w.job(JobId(job)).array, ArrayRole::Task { array: id, index });
    }
    assert_eq!(query::array_members(&w.state, id), [id, JobId(2), JobId(3)]);
    w.assert_replays();
}

#[test]
fn no_more_tasks_run_than_the_limit_allows() {
    let mut w = World::new();
    let id = w.submit(throttled("0-5", 2));
    assert_eq!(w.schedule().len(), 2);
    assert_eq!(w.reason(id), Some(Reason::JobArrayTaskLimit));
    assert!(w.schedule().is_empty());
    w.batch_ends(JobId(2), OK);
    assert!(w.schedule().is_empty(), "a completing task counts");
    w.clean(JobId(2));
    assert_eq!(w.schedule().len(), 1);
    assert_eq!(waiting(&w, id), "3-5");
}

#[test]
fn an_array_of_a_thousand_tasks_is_one_record() {
    let mut w = World::new();
    let id = w.submit(array("0-999"));
    assert_eq!(w.state.jobs.len(), 1);
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.state.jobs.len(), 1);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn tasks_that_are_cancelled_together_are_one_record_and_the_rest_goes_on() {
    let mut w = World::new();
    let id = w.submit(array("0-5"));
    let cancel = |text: &str| {
        let (tasks, _) = IndexSet::parse(text, 1001).unwrap();
        Command::Cancel { caller: user(1500), target: JobTarget::Tasks(id, tasks) }
    };
    assert_eq!(w.ok(cancel("1,2")), Reply::Affected { jobs: vec![JobId(2)] });
    assert_eq!(w.job(JobId(2)).array, ArrayRole::Block { array: id, indices: IndexSet::range(1, 2) });
    assert_eq!((w.state_of(JobId(2)), w.state_of(id)), (JobState::Cancelled, JobState::Pending));
    assert_eq!(waiting(&w, id), "0,3-5");
    // A single one is a task's record, as if it had been started.
    assert_eq!(w.ok(cancel("4")), Reply::Affected { jobs: vec![JobId(3)] });
    assert_eq!(w.job(JobId(3)).array, ArrayRole::Task { array: id, index: 4 });
    assert_eq!(w.try_command(cancel("1-2")), Err(Reject::JobFinished), "all of them are over");
    assert_eq!(w.try_command(cancel("2,4")), Err(Reject::JobFinished));
    // Of those that are named only some are left.
    assert_eq!(w.ok(cancel("2-3")), Reply::Affected { jobs: vec![JobId(4)] });
    // All the rest is the array's own record.
    w.ok(cancel("0-9"));
    assert_eq!(w.state.jobs.len(), 4);
    assert_eq!(waiting(&w, id), "0,5");
    assert_eq!(w.state_of(id), JobState::Cancelled);
    w.assert_replays();
}

#[test]
fn half_of_a_huge_array_is_cancelled_held_or_changed_with_a_handful_of_events() {
    let mut w = World::new();
    let mut config = ClusterConfig::clone(w.state.config.as_ref().unwrap());
    config.limits.max_array_size = 1_000_001;
    w.ok(Command::Configure { config: config.into() });
    let mut spec = array("0-1");
    spec.array.as_mut().unwrap().indices = IndexSet::range(0, 999_999);
    let id = w.submit(spec);
    let half = |from: u32| JobTarget::Tasks(id, IndexSet::range_step(from, 999_999, 2));
    let change = JobChange { comment: Some("odd".into()), ..JobChange::default() };
    for command in [
        Command::Cancel { caller: user(1500), target: half(0) },
        Command::Hold {
            caller: user(1500),
            target: JobTarget::Tasks(id, IndexSet::range(1, 500_000)),
            user_hold: false,
        },
        Command::UpdateJob { caller: user(1500), target: half(3), change: Box::new(change) },
        Command::Release { caller: user(1500), target: half(1) },
    ] {
        let before = w.journal.len();
        w.ok(command);
        assert!(w.journal.len() - before <= 12, "{:?}", &w.journal[before..]);
    }
    assert!(w.state.jobs.len() <= 6);
    w.assert_replays();
}

#[test]
fn tasks_held_together_start_one_by_one_once_they_are_released() {
    let mut w = World::new();
    let id = w.submit(throttled("0-5", 2));
    let three = JobTarget::Tasks(id, IndexSet::range(0, 2));
    w.ok(Command::Hold { caller: user(1500), target: three.clone(), user_hold: false });
    let block = JobId(2);
    assert_eq!((w.reason(block), w.reason(id)), (Some(Reason::JobHeldUser), None));
    let started: Vec<_> = w.schedule().into_iter().map(|t| w.job(t).array.clone()).collect();
    assert_eq!(started, [3, 4].map(|index| ArrayRole::Task { array: id, index }));
    w.ok(Command::Cancel { caller: user(1500), target: JobTarget::Tasks(id, IndexSet::range(3, 5)) });
    w.pass(KILL_WAIT);
    for job in [JobId(3), JobId(4)] {
        w.clean(job);
    }
    w.ok(Command::Release { caller: user(1500), target: three });
    assert_eq!(w.schedule().len(), 2, "the array's limit holds for its parts, too");
    let last = w.state.index.arrays[&id].blocks.iter().next().copied();
    assert_eq!(last, Some(block));
    for task in [0, 1] {
        let job = w.state.index.arrays[&id].tasks[&task];
        w.batch_ends(job, OK);
        w.clean(job);
    }
    assert_eq!(w.schedule(), [block], "the last of a part takes its number");
    assert_eq!(w.job(block).array, ArrayRole::Task { array: id, index: 2 });
    w.assert_replays();
}

#[test]
fn a_part_of_what_was_cancelled_can_come_back() {
    let mut w = World::new();
    let id = w.submit(array("0-9"));
    w.cancel(user(1500), id).unwrap();
    let some = JobTarget::Tasks(id, IndexSet::range(2, 3));
    w.ok(Command::Requeue { caller: user(1500), target: some, hold: false });
    assert_eq!((w.state_of(id), w.state_of(JobId(2))), (JobState::Cancelled, JobState::Pending));
    w.pass(10);
    let started = w.schedule();
    assert_eq!(started.len(), 2);
    w.assert_replays();
}

#[test]
fn parts_that_ended_go_to_the_history_when_the_array_is_over_and_are_forgotten() {
    let mut w = World::new();
    let id = w.submit(throttled("0-9", 1));
    w.ok(Command::Cancel { caller: user(1500), target: JobTarget::Tasks(id, IndexSet::range(5, 9)) });
    w.pass(301);
    let orders = |w: &mut World| {
        let effects = w.take_effects().into_iter();
        effects.filter_map(|e| if let Effect::Archive { jobs } = e { Some(jobs) } else { None }).flatten().collect()
    };
    let none: Vec<JobId> = orders(&mut w);
    assert_eq!(none, [], "kept until the array can be judged");
    w.cancel(user(1500), id).unwrap();
    w.pass(301);
    let all: Vec<JobId> = orders(&mut w);
    assert_eq!(all, [JobId(2), id]);
    w.ok(Command::Archived { jobs: all });
    assert!(w.state.index.arrays.is_empty() && w.state.jobs.is_empty());
}

#[test]
fn cancelling_an_array_ends_running_and_waiting_tasks() {
    let mut w = World::new();
    let id = w.submit(throttled("0-5", 1));
    let task = w.schedule()[0];
    w.confirm(task);
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.state_of(id), JobState::Cancelled);
    assert_eq!(w.state_of(task), JobState::Completing);
}

#[test]
fn a_held_task_leaves_its_siblings_alone() {
    let mut w = World::new();
    let id = w.submit(array("0-3"));
    let one = IndexSet::single(2);
    w.ok(Command::Hold { caller: user(1500), target: JobTarget::Tasks(id, one.clone()), user_hold: false });
    assert_eq!(w.schedule().len(), 3);
    let held = w.state.index.arrays[&id].tasks[&2];
    assert_eq!((w.job(held).hold, w.state_of(held)), (Hold::User, JobState::Pending));
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Tasks(id, one) });
    assert_eq!(w.schedule(), [held]);
}

#[test]
fn a_requeued_task_still_counts_against_the_limit() {
    let mut w = World::new();
    let id = w.submit(throttled("0-3", 1));
    let task = w.schedule()[0];
    w.confirm(task);
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Tasks(id, IndexSet::single(0)), hold: false });
    w.batch_ends(task, killed(15));
    w.clean(task);
    w.pass(10);
    assert_eq!(w.schedule().len(), 1);
    assert!(w.schedule().is_empty());
}

#[test]
fn specifications_that_overflow_are_refused() {
    let mut w = World::new();
    let mut spec = array("0-5");
    spec.array.as_mut().unwrap().indices = IndexSet::range(0, 5000);
    assert!(matches!(w.refused(spec.clone()), Reject::InvalidArraySpec { .. }));
    spec.array.as_mut().unwrap().indices = IndexSet::new();
    assert!(matches!(w.refused(spec), Reject::InvalidArraySpec { .. }));
}

#[test]
fn a_failed_task_is_kept_until_its_array_is_over() {
    let mut w = World::new();
    let id = w.submit(throttled("0-2", 1));
    for exit in [code(1), OK] {
        let task = w.schedule()[0];
        w.confirm(task);
        w.batch_ends(task, exit);
        w.clean(task);
    }
    w.take_effects();
    w.pass(301);
    let archived = |w: &mut World| {
        let orders = w.take_effects().into_iter().filter_map(|e| match e {
            Effect::Archive { jobs } => Some(jobs),
            _ => None,
        });
        orders.flatten().collect::<Vec<_>>()
    };
    assert_eq!(archived(&mut w), [JobId(3)], "the task that went well");
    w.ok(Command::Archived { jobs: vec![JobId(3)] });
    w.cancel(user(1500), id).unwrap();
    w.pass(301);
    assert_eq!(archived(&mut w), [JobId(2), id]);
    w.ok(Command::Archived { jobs: vec![JobId(2), id] });
    assert!(w.state.index.arrays.is_empty());
}

#[test]
fn an_array_is_mailed_about_as_a_whole() {
    let mut w = World::new();
    let mut spec = array("0-2");
    spec.mail_type = sluice_model::job::mail::BEGIN | sluice_model::job::mail::END;
    w.submit(spec);
    for task in w.schedule() {
        w.batch_ends(task, OK);
        w.clean(task);
    }
    let mails = w.take_effects().into_iter().filter(|e| matches!(e, Effect::Mail { .. })).count();
    assert_eq!(mails, 2);
}
