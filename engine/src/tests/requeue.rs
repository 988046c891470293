//! Jobs that the cluster puts back into the queue: after which failures, how long they wait, when they are held.

use super::world::*;
use crate::command::{Command, JobTarget};
use crate::job::Hold;
use sluice_model::config::{RequeueCause, RequeueRule};
use sluice_model::{IndexSet, JobSpec, JobState, Reason};

/// A world whose configuration says something of requeues.
fn with_requeue(change: impl Fn(&mut sluice_model::config::ClusterConfig)) -> World {
    let mut c = config();
    change(&mut c);
    World::with(c)
}

#[test]
fn an_exit_code_that_the_cluster_names_puts_the_job_back_with_growing_waits_until_it_is_held() {
    let mut w = with_requeue(|c| c.requeue.exit_codes = IndexSet::range(3, 5));
    let id = w.submit(job());
    for (attempt, wait) in [(1, 10), (2, 20)] {
        w.run(id, code(3));
        let job = w.job(id);
        assert_eq!((w.state_of(id), job.attempt, job.hold), (JobState::Pending, attempt, Hold::No));
        assert_eq!(w.reason(id), Some(Reason::BeginTime));
        let last = &job.past_runs.last().unwrap().outcome;
        assert_eq!((last.state, last.exit), (JobState::Requeued, code(3)));
        w.pass(wait - 1);
        assert_eq!(w.schedule(), []);
        w.pass(1);
    }
    w.run(id, code(4));
    assert_eq!(w.reason(id), Some(Reason::JobHoldMaxRequeue));
    // What a person lets go begins anew, and another code ends it.
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Job(id) });
    w.pass(100);
    w.run(id, code(1));
    assert_eq!(w.state_of(id), JobState::Failed);
    w.assert_replays();
}

#[test]
fn an_exit_code_to_look_at_holds_the_job_in_a_state_of_its_own() {
    let mut w = with_requeue(|c| c.requeue.hold_exit_codes = IndexSet::single(7));
    let id = w.submit(job());
    w.run(id, code(7));
    assert_eq!((w.state_of(id), w.reason(id)), (JobState::SpecialExit, Some(Reason::JobRequeuedHeld)));
    w.pass(100);
    assert_eq!(w.schedule(), []);
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Job(id) });
    assert_eq!(w.state_of(id), JobState::Pending);
    w.run(id, OK);
    assert_eq!(w.state_of(id), JobState::Completed);
    // One that must never be requeued is not, and a job that was cancelled stays so whatever its script exits with.
    let never = w.submit(JobSpec { requeue: Some(false), ..job() });
    w.run(never, code(7));
    assert_eq!(w.state_of(never), JobState::Failed);
    let cancelled = w.submit(job());
    w.schedule();
    w.confirm(cancelled);
    w.cancel(user(1500), cancelled).unwrap();
    w.batch_ends(cancelled, code(7));
    w.clean(cancelled);
    assert_eq!(w.state_of(cancelled), JobState::Cancelled);
    w.assert_replays();
}

#[test]
fn each_cause_of_failure_has_its_own_count() {
    let mut w = with_requeue(|c| {
        c.requeue.exit_codes = IndexSet::single(3);
        let rule = RequeueRule { retries: Some(1), delay_secs: Some(5), longest_delay_secs: None };
        c.requeue.rules[RequeueCause::ExitCode as usize] = rule;
    });
    let id = w.submit(job());
    w.run(id, code(3));
    w.pass(5);
    w.schedule();
    w.confirm(id);
    w.ok(Command::NodeSilent { node: "n1".into() });
    w.pass(NODE_TIMEOUT);
    assert_eq!((w.job(id).attempt, w.job(id).hold), (2, Hold::No), "its first lost node");
    w.pass(10);
    w.run(id, code(3));
    assert_eq!(w.reason(id), Some(Reason::JobHoldMaxRequeue), "the second such exit, though a lost node came between");
}
