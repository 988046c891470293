use super::world::*;
use crate::command::{Command, JobTarget, Reply, SignalFlags};
use crate::effect::Effect;
use crate::job::Hold;
use crate::query;
use crate::reject::Reject;
use sluice_model::job::{SignalRequest, mail};
use sluice_model::{JobSpec, JobState, Reason, StepId, Time};

#[test]
fn a_job_over_its_limit_gets_term_then_kill() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.pass(599);
    assert_eq!(w.state_of(id), JobState::Running);
    assert_eq!(w.signals(), []);
    w.pass(1);
    assert_eq!(w.signals(), [18, 15]);
    assert_eq!(w.state_of(id), JobState::Completing);
    w.take_effects();
    w.pass(KILL_WAIT - 1);
    assert!(w.end_orders().is_empty());
    w.pass(1);
    assert_eq!(w.end_orders().len(), 1);
    w.clean(id);
    let o = w.outcome(id);
    assert_eq!((o.state, o.reason, o.exit), (JobState::Timeout, Reason::TimeLimit, OK));
}

#[test]
fn a_script_that_leaves_on_term_has_still_timed_out() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.pass(600);
    w.batch_ends(id, OK);
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Timeout);
}

#[test]
fn the_engine_wakes_exactly_for_what_is_due() {
    let mut w = World::new();
    assert_eq!(query::next_wakeup(&w.state), None);
    let start = w.now;
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    assert_eq!(query::next_wakeup(&w.state), Some(Time(start.0 + 600_000)));
    w.pass(600);
    assert_eq!(query::next_wakeup(&w.state), Some(Time(start.0 + 630_000)));
    w.pass(30);
    w.clean(id);
    assert_eq!(query::next_wakeup(&w.state), Some(Time(start.0 + 930_000)));
    w.pass(300);
    assert_eq!(query::next_wakeup(&w.state), None);
    w.ok(Command::Archived { jobs: vec![id] });
    assert_eq!(query::next_wakeup(&w.state), None);
}

#[test]
fn over_time_limit_gives_minutes_of_grace() {
    let mut c = config();
    c.timing.over_time_limit_minutes = 5;
    let mut w = World::with(c);
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.pass(899);
    assert_eq!(w.state_of(id), JobState::Running);
    w.pass(1);
    assert_eq!(w.state_of(id), JobState::Completing);
}

#[test]
fn the_warning_signal_goes_to_the_steps_once_before_the_limit() {
    for batch_shell in [false, true] {
        let mut w = World::new();
        let mut spec = job();
        spec.signal = Some(SignalRequest { signal: 12, before_secs: 90, batch_shell, reservation: false });
        let id = w.submit(spec);
        w.schedule();
        w.confirm(id);
        w.take_effects();
        w.pass(509);
        assert_eq!(w.signals(), []);
        w.pass(1);
        w.pass(1);
        let sent: Vec<_> = w.take_effects();
        let expected = Effect::Signal {
            node: "n1".into(),
            job: id,
            attempt: 0,
            step: None,
            signal: 12,
            batch: batch_shell,
            steps: !batch_shell,
        };
        assert_eq!(sent, [expected]);
    }
}

#[test]
fn cancelling_a_pending_job_ends_it_at_once_and_names_who() {
    let mut w = World::new();
    let id = w.submit(job());
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.state_of(id), JobState::Cancelled);
    assert_eq!(w.outcome(id).by_uid, Some(1500));
    assert_eq!(w.cancel(user(1500), id), Err(Reject::JobFinished));
}

#[test]
fn nobody_cancels_other_peoples_jobs_but_operators() {
    let mut w = World::new();
    let id = w.submit(job());
    assert!(matches!(w.cancel(user(1501), id), Err(Reject::AccessDenied { .. })));
    assert_eq!(w.cancel(user(1501), sluice_model::JobId(99)), Err(Reject::InvalidJobId));
    assert_eq!(w.cancel(operator(), id), Ok(Reply::Affected { jobs: vec![id] }));
    assert_eq!(w.outcome(id).by_uid, Some(900));
}

#[test]
fn cancelling_a_running_job_gives_it_grace() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.signals(), [18, 15]);
    w.pass(10);
    // Again: neither a second round of signals nor a longer life.
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.signals(), [18, 15]);
    w.pass(20);
    w.clean(id);
    assert_eq!((w.state_of(id), w.outcome(id).by_uid), (JobState::Cancelled, Some(1500)));
}

#[test]
fn cancelling_an_attempt_that_no_node_has_confirmed_ends_it_without_grace() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.cancel(user(1500), id).unwrap();
    assert_eq!(w.end_orders().len(), 1);
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn kill_to_a_whole_job_ends_it_as_cancelled() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    let target = JobTarget::Job(id);
    let flags = SignalFlags::default();
    w.ok(Command::Signal { caller: user(1500), target, step: None, signal: 9, flags });
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn signals_reach_the_steps_or_the_shell_as_asked() {
    let mut w = World::new();
    let id = w.submit(job());
    let send = |w: &mut World, flags, step| {
        w.take_effects();
        let command = Command::Signal { caller: user(1500), target: JobTarget::Job(id), step, signal: 10, flags };
        w.try_command(command).map(|_| match w.take_effects().as_slice() {
            [Effect::Signal { batch, steps, step, .. }] => (*batch, *steps, *step),
            other => panic!("{other:?}"),
        })
    };
    let none = SignalFlags::default();
    assert_eq!(send(&mut w, none, None), Err(Reject::JobPending));
    w.schedule();
    w.confirm(id);
    assert_eq!(send(&mut w, none, None), Ok((false, true, None)));
    assert_eq!(send(&mut w, SignalFlags { batch: true, full: false }, None), Ok((true, false, None)));
    assert_eq!(send(&mut w, SignalFlags { batch: false, full: true }, None), Ok((true, true, None)));
    let step = Some(StepId::Numbered(2));
    assert_eq!(send(&mut w, none, step), Ok((false, true, step)));
}

#[test]
fn a_requeued_job_keeps_its_id_and_waits_for_the_delay() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
    w.batch_ends(id, killed(15));
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Pending);
    assert_eq!(w.job(id).attempt, 1);
    assert_eq!(w.reason(id), Some(Reason::BeginTime));
    assert!(w.schedule().is_empty());
    let past = &w.job(id).past_runs[0];
    assert_eq!((past.outcome.state, past.steps.len()), (JobState::Requeued, 1));
    w.pass(10);
    w.take_effects();
    assert_eq!(w.schedule(), [id]);
    assert_eq!(w.launches(), [(id, 1)]);
    // A late report of the first attempt does not touch the second.
    w.ok(Command::BatchEnded {
        node: "n1".into(),
        job: id,
        attempt: 0,
        exit: OK,
        usage: Default::default(),
        failure: None,
    });
    assert_eq!(w.state_of(id), JobState::Running);
    w.assert_replays();
}

#[test]
fn requeuehold_holds_and_a_job_without_requeue_refuses() {
    let mut w = World::new();
    let id = w.submit(job());
    assert_eq!(
        w.try_command(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false }),
        Err(Reject::JobPending)
    );
    w.schedule();
    w.confirm(id);
    w.ok(Command::Requeue { caller: operator(), target: JobTarget::Job(id), hold: true });
    w.batch_ends(id, killed(15));
    w.clean(id);
    assert_eq!((w.job(id).hold, w.job(id).priority), (Hold::Admin, 0));

    let own = w.submit(job());
    w.schedule();
    w.confirm(own);
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(own), hold: true });
    w.batch_ends(own, killed(15));
    w.clean(own);
    assert_eq!((w.reason(own), w.job(own).priority), (Some(Reason::JobRequeuedHeld), 0));

    let mut spec = job();
    spec.requeue = Some(false);
    let id = w.submit(spec);
    w.schedule();
    let command = Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false };
    assert_eq!(w.try_command(command), Err(Reject::RequeueDisabled));
}

#[test]
fn a_finished_job_can_be_requeued() {
    let mut w = World::new();
    let id = w.submit(job());
    w.run(id, code(1));
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
    assert_eq!((w.state_of(id), w.job(id).attempt), (JobState::Pending, 1));
    w.pass(10);
    w.run(id, OK);
    assert_eq!(w.state_of(id), JobState::Completed);
}

#[test]
fn self_requeueing_jobs_are_never_held_for_it() {
    let mut w = World::new();
    let id = w.submit(job());
    for _ in 0..10 {
        w.pass(10);
        w.schedule();
        w.confirm(id);
        w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
        w.batch_ends(id, killed(15));
        w.clean(id);
    }
    assert_eq!((w.job(id).attempt, w.job(id).hold), (10, Hold::No));
}

#[test]
fn cancelling_a_job_on_its_way_back_to_the_queue_ends_it() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
    w.cancel(user(1500), id).unwrap();
    w.batch_ends(id, killed(15));
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Cancelled);

    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
    w.batch_ends(id, killed(15));
    w.cancel(user(1500), id).unwrap();
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn an_allocation_ends_with_its_client_and_its_exit_status() {
    let mut w = World::new();
    let id = w.submit(allocation());
    w.schedule();
    w.confirm(id);
    assert!(w.job(id).steps.is_empty(), "an allocation has no batch step");
    w.ok(Command::CompleteAllocation { caller: user(1500), job: id, exit: code(4) });
    w.clean(id);
    assert_eq!((w.state_of(id), w.outcome(id).exit), (JobState::Failed, code(4)));
    w.ok(Command::CompleteAllocation { caller: user(1500), job: id, exit: code(4) });

    let waiting = w.submit(allocation());
    w.ok(Command::CompleteAllocation { caller: user(1500), job: waiting, exit: code(0) });
    assert_eq!(w.state_of(waiting), JobState::Cancelled);
}

#[test]
fn an_allocation_for_one_step_ends_with_it_even_when_its_client_is_gone() {
    let mut w = World::new();
    let alone = w.submit(JobSpec { ends_with_step: true, ..allocation() });
    let kept = w.submit(allocation());
    w.schedule();
    for id in [alone, kept] {
        w.confirm(id);
        let mut step = super::time::step(id, 0);
        w.ok(Command::StepReport { node: "n1".into(), step: Box::new(step.clone()) });
        (step.end, step.state, step.exit) = (Some(w.now), JobState::Cancelled, killed(9));
        w.ok(Command::StepReport { node: "n1".into(), step: Box::new(step) });
    }
    w.clean(alone);
    assert_eq!((w.state_of(alone), w.outcome(alone).exit), (JobState::Cancelled, killed(9)));
    assert_eq!(w.state_of(kept), JobState::Running, "salloc's goes on: more steps may come");
}

#[test]
fn an_idle_allocation_is_revoked_at_once_and_a_busy_one_when_its_steps_are_over() {
    let mut w = World::new();
    let idle = w.submit(allocation());
    let busy = w.submit(allocation());
    w.schedule();
    w.confirm(idle);
    w.confirm(busy);
    w.cancel(user(1500), idle).unwrap();
    assert_eq!(w.end_orders().len(), 1);
    let mut step = super::time::step(busy, 0);
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(step.clone()) });
    w.cancel(user(1500), busy).unwrap();
    assert_eq!(w.end_orders().len(), 1, "it has its grace");
    step.end = Some(w.now);
    step.state = JobState::Cancelled;
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(step) });
    assert_eq!(w.end_orders().len(), 2);
}

#[test]
fn steps_left_running_are_closed_and_the_worst_step_is_remembered() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    let mut failed = super::time::step(id, 0);
    (failed.end, failed.state, failed.exit) = (Some(w.now), JobState::Failed, code(7));
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(failed) });
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(super::time::step(id, 1)) });
    w.batch_ends(id, OK);
    let open = &w.job(id).steps[&StepId::Numbered(1)];
    assert_eq!((open.state, open.end), (JobState::Cancelled, Some(w.now)));
    w.clean(id);
    assert_eq!(w.outcome(id).derived_exit, code(7));
    assert_eq!(w.state_of(id), JobState::Completed);
    // Only the job's own nodes speak for its steps.
    let before = w.state.generation;
    let mut forged = super::time::step(id, 0);
    forged.end = Some(w.now);
    w.ok(Command::StepReport { node: "n2".into(), step: Box::new(forged) });
    assert_eq!(w.state.generation, before);
    // What the step really did may be reported late; a late start opens nothing again.
    let mut late = super::time::step(id, 1);
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(late.clone()) });
    (late.end, late.state) = (Some(w.now), JobState::Completed);
    w.ok(Command::StepReport { node: "n1".into(), step: Box::new(late) });
    assert_eq!(w.job(id).steps[&StepId::Numbered(1)].state, JobState::Completed);
}

#[test]
fn mails_go_out_for_what_was_asked() {
    let mut w = World::new();
    let mut spec = job();
    spec.mail_type = mail::BEGIN | mail::END | mail::FAIL | mail::TIME_LIMIT_50;
    let id = w.submit(spec);
    w.schedule();
    w.confirm(id);
    w.pass(299);
    w.pass(1);
    w.pass(1);
    w.batch_ends(id, code(1));
    w.clean(id);
    let mails: Vec<u32> = w
        .take_effects()
        .into_iter()
        .filter_map(|e| match e {
            Effect::Mail { what, .. } => Some(what),
            _ => None,
        })
        .collect();
    assert_eq!(mails, [mail::BEGIN, mail::TIME_LIMIT_50, mail::FAIL]);
}
