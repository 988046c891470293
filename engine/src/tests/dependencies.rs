use super::world::*;
use crate::command::{Command, JobTarget};
use crate::job::ArrayRole;
use crate::reject::Reject;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobSpec, JobState, Reason};

#[test]
fn afterok_waits_for_success() {
    let mut w = World::new();
    let first = w.submit(job());
    let then = w.submit(after("afterok:1"));
    assert_eq!(w.reason(then), Some(Reason::Dependency));
    assert_eq!(w.schedule(), [first]);
    w.batch_ends(first, OK);
    assert!(w.schedule().is_empty(), "not before it is over altogether");
    w.clean(first);
    assert_eq!(w.schedule(), [then]);
    w.assert_replays();
}

#[test]
fn a_dependency_that_can_not_be_met_any_more_says_so_for_good() {
    let mut w = World::new();
    let first = w.submit(job());
    let then = w.submit(after("afterok:1"));
    w.run(first, code(1));
    assert_eq!(w.reason(then), Some(Reason::DependencyNeverSatisfied));
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(first), hold: false });
    w.pass(10);
    w.run(first, OK);
    assert_eq!(w.reason(then), Some(Reason::DependencyNeverSatisfied), "sbatch's manual page: even if it is requeued");
}

#[test]
fn kill_on_invalid_dep_cancels_and_so_on_down_the_chain() {
    let mut w = World::new();
    let first = w.submit(job());
    let with = |text: &str| {
        let mut s = after(text);
        s.kill_on_invalid_dep = Some(true);
        s
    };
    let second = w.submit(with("afterok:1"));
    let third = w.submit(with("afterok:2"));
    let fourth = w.submit(after("afternotok:3"));
    w.cancel(user(1500), first).unwrap();
    assert_eq!(w.state_of(second), JobState::Cancelled);
    assert_eq!(w.outcome(third).reason, Reason::DependencyNeverSatisfied);
    assert_eq!(w.schedule(), [fourth]);
}

#[test]
fn afternotok_and_afterany() {
    let mut w = World::new();
    let first = w.submit(job());
    let notok = w.submit(after("afternotok:1"));
    let any = w.submit(after("afterany:1"));
    w.run(first, OK);
    assert_eq!(w.reason(notok), Some(Reason::DependencyNeverSatisfied));
    assert_eq!(w.schedule(), [any]);
}

#[test]
fn after_counts_from_the_start_plus_minutes() {
    let mut w = World::new();
    let first = w.submit(job());
    let now = w.submit(after("after:1"));
    let later = w.submit(after("after:1+5"));
    assert_eq!(w.schedule(), [first]);
    assert_eq!(w.schedule(), [now]);
    w.pass(299);
    assert!(w.schedule().is_empty());
    w.pass(1);
    assert_eq!(w.schedule(), [later]);
}

#[test]
fn one_of_several_is_enough_with_a_question_mark() {
    let mut w = World::new();
    let (a, b) = (w.submit(job()), w.submit(job()));
    let then = w.submit(after("afterok:1?afterok:2"));
    let both = w.submit(after("afterok:1,afterok:2"));
    w.run(a, code(1));
    assert_eq!(w.reason(then), Some(Reason::Dependency));
    assert_eq!(w.reason(both), Some(Reason::DependencyNeverSatisfied));
    w.run(b, OK);
    assert_eq!(w.schedule(), [then]);
}

#[test]
fn an_unknown_job_keeps_nobody_waiting() {
    let mut w = World::new();
    let id = w.submit(after("afterok:77"));
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn an_array_is_over_when_all_tasks_are_and_ok_when_all_are() {
    let mut w = World::new();
    let first = w.submit(array("0-1"));
    let ok = w.submit(after("afterok:1"));
    let any = w.submit(after("afterany:1"));
    let one = w.submit(after("afterok:1_1"));
    let tasks = w.schedule();
    assert_eq!(tasks.len(), 2);
    let failing = w.state.index.arrays[&first].tasks[&0];
    let fine = w.state.index.arrays[&first].tasks[&1];
    w.run(failing, code(1));
    assert_eq!(w.reason(ok), Some(Reason::DependencyNeverSatisfied));
    assert_eq!(w.reason(any), Some(Reason::Dependency));
    assert_eq!(w.reason(one), Some(Reason::Dependency));
    w.run(fine, OK);
    assert_eq!(w.schedule(), [any, one]);
}

#[test]
fn aftercorr_releases_task_by_task() {
    let mut w = World::new();
    let first = w.submit(throttled("0-2", 1));
    let second = w.submit({
        let mut s = array("0-2");
        s.dependency = after("aftercorr:1").dependency;
        s
    });
    for (index, exit) in [(0, OK), (1, code(1))] {
        w.schedule();
        let task = w.state.index.arrays[&first].tasks[&index];
        w.run(task, exit);
    }
    w.schedule();
    let tasks = w.state.index.arrays[&second].tasks.clone();
    assert_eq!(w.state_of(tasks[&0]), JobState::Running);
    assert_eq!(w.reason(tasks[&1]), Some(Reason::DependencyNeverSatisfied));
    assert_eq!(w.reason(second), Some(Reason::Dependency));
    let last = w.state.index.arrays[&first].tasks[&2];
    w.run(last, OK);
    w.schedule();
    assert_eq!(w.state_of(second), JobState::Running, "the last task has the array's number");
}

#[test]
fn singleton_runs_one_job_of_a_name_at_a_time_in_order() {
    let mut w = World::new();
    let single = || after("singleton");
    let a = w.submit(single());
    let b = w.submit(single());
    let c = w.submit(single());
    let mut other = single();
    other.name = "another".into();
    let d = w.submit(other);
    assert_eq!(w.schedule(), [a, d]);
    w.run(a, OK);
    assert_eq!(w.schedule(), [b]);
    w.cancel(user(1500), b).unwrap();
    w.clean(b);
    assert_eq!(w.schedule(), [c]);
}

#[test]
fn a_singleton_loses_its_turn_to_a_job_of_its_name_that_starts() {
    let mut w = World::new();
    let mut held = after("singleton");
    held.hold = true;
    let single = w.submit(held);
    let plain = w.submit(job());
    assert_eq!(w.schedule(), [plain]);
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Job(single) });
    assert!(w.schedule().is_empty());
    assert_eq!(w.reason(single), Some(Reason::Dependency));
    w.run(plain, OK);
    assert_eq!(w.schedule(), [single]);
}

#[test]
fn a_changed_dependency_takes_effect_and_a_circle_is_refused() {
    let mut w = World::new();
    let a = w.submit({
        let mut s = job();
        s.hold = true;
        s
    });
    let b = w.submit(after("afterok:1"));
    let change = |text: Option<&str>| {
        Box::new(crate::command::JobChange {
            dependency: Some(text.map(|t| sluice_model::dependency::parse(t).unwrap())),
            ..Default::default()
        })
    };
    let command =
        Command::UpdateJob { caller: user(1500), target: JobTarget::Job(a), change: change(Some("afterok:2")) };
    assert!(matches!(w.try_command(command), Err(Reject::DependencyProblem { .. })));
    w.ok(Command::UpdateJob { caller: user(1500), target: JobTarget::Job(b), change: change(None) });
    assert_eq!(w.schedule(), [b]);
    let _: JobId = a;
}

#[test]
fn what_waits_for_tasks_that_are_cancelled_together_learns_it_at_once() {
    let mut w = World::new();
    let first = w.submit(JobSpec { hold: true, ..array("0-5") });
    let corr = w.submit(JobSpec { dependency: after("aftercorr:1").dependency, ..array("0-7") });
    let any = w.submit(after("afterany:1_1"));
    let ok = w.submit(after("afterok:1_2"));
    let other = w.submit(after("afterok:1_4"));
    let all = w.submit(after("afterany:1"));
    let some = JobTarget::Tasks(first, IndexSet::range(0, 2));
    w.ok(Command::Cancel { caller: user(1500), target: some });
    let lost = *w.state.index.arrays[&corr].blocks.get_min().unwrap();
    assert_eq!(w.job(lost).array, ArrayRole::Block { array: corr, indices: IndexSet::range(0, 2) });
    for job in [lost, ok] {
        assert_eq!(w.reason(job), Some(Reason::DependencyNeverSatisfied), "{job}");
    }
    for job in [corr, other, all] {
        assert_eq!(w.reason(job), Some(Reason::Dependency), "{job}");
    }
    assert_eq!(w.schedule(), [any]);
    w.run(any, OK);
    // The others run and end well: each lets its counterpart go, and the last of them also what has none.
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Job(first) });
    let mut ran = IndexSet::new();
    for _ in 0..20 {
        for job in w.schedule() {
            if let ArrayRole::Task { array, index } = w.job(job).array
                && array == corr
            {
                ran.insert(index);
            }
            w.run(job, OK);
        }
    }
    assert_eq!(ran, IndexSet::range(3, 7));
    for job in [other, all] {
        assert_eq!(w.state_of(job), JobState::Completed, "{job}");
    }
    w.assert_replays();
}
