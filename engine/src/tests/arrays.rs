use super::world::*;
use crate::command::{Command, JobTarget, Reply};
use crate::effect::Effect;
use crate::job::{ArrayRole, Hold};
use crate::query;
use crate::reject::Reject;
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
fn cancelled_tasks_get_records_and_the_rest_goes_on() {
    let mut w = World::new();
    let id = w.submit(array("0-5"));
    let some: IndexSet = [1, 2].into_iter().collect();
    let reply = w.ok(Command::Cancel { caller: user(1500), target: JobTarget::Tasks(id, some) });
    assert_eq!(reply, Reply::Affected { jobs: vec![JobId(2), JobId(3)] });
    assert_eq!(w.job(JobId(2)).array, ArrayRole::Task { array: id, index: 1 });
    assert_eq!((w.state_of(JobId(2)), w.state_of(id)), (JobState::Cancelled, JobState::Pending));
    assert_eq!(waiting(&w, id), "0,3-5");
    // All the rest: one record.
    let rest: IndexSet = IndexSet::range(0, 9);
    w.ok(Command::Cancel { caller: user(1500), target: JobTarget::Tasks(id, rest) });
    assert_eq!(w.state.jobs.len(), 3);
    assert_eq!(waiting(&w, id), "0,3-5");
    assert_eq!(w.state_of(id), JobState::Cancelled);
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
