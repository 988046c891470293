//! Preemption in the life of a cluster.

use super::world::*;
use crate::command::{Command, JobTarget};
use crate::effect::Effect;
use crate::job::Phase;
use sluice_model::accounting::{AccountingRequest, ListEdit, PreemptMode, QosChange};
use sluice_model::config::{ClusterConfig, Mode, PreemptKind, PreemptionConfig};
use sluice_model::job::SignalRequest;
use sluice_model::{JobId, JobSpec, JobState, Reason, TimeLimit};

fn with(preemption: PreemptionConfig) -> ClusterConfig {
    ClusterConfig {
        nodes: vec![node("n1", 4)],
        partitions: vec![partition("main", &["n1"], true)],
        preemption,
        ..config()
    }
}

/// One node of four cores; QOS high may preempt normal.
fn cluster(mode: Mode) -> World {
    let mut w = World::with(with(PreemptionConfig { kind: PreemptKind::Qos, mode, ..PreemptionConfig::default() }));
    qos(
        &mut w,
        "high",
        QosChange { preempt: vec![ListEdit::Set(["normal".to_owned()].into())], ..QosChange::default() },
    );
    w
}

fn qos(w: &mut World, name: &str, qos: QosChange) {
    let names = vec![name.to_owned()];
    let request = if w.state.accounting.qos.contains_key(name) {
        AccountingRequest::ModifyQos { names, qos }
    } else {
        AccountingRequest::AddQos { names, qos }
    };
    w.ok(Command::Accounting { caller: operator(), request: Box::new(request) });
}

fn of(name: &str, spec: JobSpec) -> JobSpec {
    JobSpec { qos: Some(name.to_owned()), ..spec }
}

/// A job of all cores of the node that runs.
fn running(w: &mut World, spec: JobSpec) -> JobId {
    let id = w.submit(spec);
    assert_eq!(w.schedule(), [id]);
    w.confirm(id);
    id
}

#[test]
fn a_victim_goes_back_to_the_queue_and_the_job_that_took_its_room_runs_first() {
    let mut w = cluster(Mode::Requeue);
    let low = running(&mut w, of("normal", cores(4)));
    w.pass(60);
    // Submitted before, but it can't take anything.
    let other = w.submit(of("normal", cores(1)));
    let short = JobSpec { time_limit: Some(TimeLimit::Minutes(5)), ..cores(4) };
    let high = w.submit(of("high", short));
    w.take_effects();
    assert!(w.schedule().is_empty());
    assert_eq!(w.state_of(low), JobState::Completing);
    assert_eq!(w.signals(), [18, 15]);
    assert_eq!(w.job(high).claim.as_ref().map(|c| c.victims.clone()), Some(vec![low]));
    w.batch_ends(low, killed(15));
    w.clean(low);
    assert_eq!((w.state_of(low), w.job(low).attempt), (JobState::Pending, 1));
    let past = &w.job(low).past_runs[0];
    assert_eq!(
        (past.outcome.state, past.run.as_ref().unwrap().preempted.as_ref().unwrap().by),
        (JobState::Preempted, high)
    );
    assert_eq!(w.schedule(), [high], "not the one that stood before it in the queue");
    assert!(w.job(high).claim.is_none());
    assert_eq!(w.reason(low), Some(Reason::BeginTime));
    w.run(high, OK);
    w.pass(20);
    assert_eq!(w.schedule(), [low]);
    w.run(low, OK);
    w.run(other, OK);
    assert_eq!(w.outcome(low).state, JobState::Completed);
    w.assert_replays();
}

#[test]
fn a_job_that_can_not_be_requeued_is_cancelled() {
    for (mode, spec) in [(Mode::Requeue, JobSpec { requeue: Some(false), ..cores(4) }), (Mode::Cancel, cores(4))] {
        let mut w = cluster(mode);
        let low = running(&mut w, spec);
        let high = w.submit(of("high", cores(1)));
        w.schedule();
        w.batch_ends(low, killed(15));
        w.clean(low);
        assert_eq!((w.outcome(low).state, w.outcome(low).exit), (JobState::Preempted, killed(15)));
        assert_eq!(w.schedule(), [high]);
        w.assert_replays();
    }
}

#[test]
fn a_victim_that_does_not_react_is_killed_after_its_grace_and_kill_wait() {
    let mut w = cluster(Mode::Cancel);
    qos(&mut w, "normal", QosChange { grace_secs: Some(100), ..QosChange::default() });
    let low = running(&mut w, cores(4));
    w.take_effects();
    let high = w.submit(of("high", cores(4)));
    w.schedule();
    assert_eq!(w.state_of(low), JobState::Running, "it has its grace");
    assert_eq!(w.signals(), [18, 15], "and was told");
    let steps_only = w.effects.iter().all(|e| !matches!(e, Effect::Signal { batch: true, .. }));
    assert!(steps_only);
    w.take_effects();
    w.pass(99);
    assert!(w.schedule().is_empty() && w.signals().is_empty());
    w.pass(1);
    assert_eq!((w.state_of(low), w.signals()), (JobState::Completing, vec![18, 15]));
    w.pass(KILL_WAIT);
    w.clean(low);
    assert_eq!(w.outcome(low).state, JobState::Preempted);
    assert_eq!(w.schedule(), [high]);
    w.assert_replays();
}

#[test]
fn the_checkpoint_signal_is_the_notice_of_those_who_asked_for_one() {
    let mut w = cluster(Mode::Requeue);
    qos(&mut w, "normal", QosChange { grace_secs: Some(100), ..QosChange::default() });
    let signal = Some(SignalRequest { signal: 10, before_secs: 5, batch_shell: true, reservation: false });
    let low = running(&mut w, JobSpec { signal, ..cores(4) });
    w.take_effects();
    w.submit(of("high", cores(4)));
    w.schedule();
    assert_eq!(w.signals(), [10]);
    assert!(w.effects.iter().any(|e| matches!(e, Effect::Signal { batch: true, steps: false, .. })));
    // It wrote its checkpoint and went, with an exit code that says so.
    w.batch_ends(low, code(3));
    w.clean(low);
    assert_eq!(w.state_of(low), JobState::Pending, "it starts again from its checkpoint");
    w.assert_replays();
}

#[test]
fn a_victim_that_completes_within_its_grace_has_completed() {
    let mut w = cluster(Mode::Requeue);
    qos(&mut w, "normal", QosChange { grace_secs: Some(100), ..QosChange::default() });
    let low = running(&mut w, cores(4));
    let high = w.submit(of("high", cores(4)));
    w.schedule();
    w.batch_ends(low, OK);
    w.clean(low);
    assert_eq!(w.outcome(low).state, JobState::Completed);
    assert_eq!(w.schedule(), [high]);
}

#[test]
fn a_suspended_victim_lends_its_cores_and_goes_on_afterwards() {
    let mut w = cluster(Mode::Suspend);
    let low = running(&mut w, cores(4));
    w.pass(60);
    let high = w.submit(of("high", cores(2)));
    w.take_effects();
    assert_eq!(w.schedule(), [high], "at once");
    assert_eq!(w.state_of(low), JobState::Suspended);
    assert!(w.effects.iter().any(|e| matches!(e, Effect::Suspend { resume: false, job, .. } if *job == low)));
    w.confirm(high);
    // What the suspended one has besides is not for others.
    let small = w.submit(cores(1));
    assert!(w.schedule().is_empty());
    let resume = Command::Resume { caller: operator(), target: JobTarget::Job(low) };
    assert!(w.try_command(resume).is_err(), "not while others have its cores");
    w.pass(300);
    w.take_effects();
    w.batch_ends(high, OK);
    w.clean(high);
    assert_eq!(w.state_of(low), JobState::Running);
    assert!(w.effects.iter().any(|e| matches!(e, Effect::Suspend { resume: true, job, .. } if *job == low)));
    let Phase::Running(run) = &w.job(low).phase else { panic!() };
    assert_eq!(run.suspended_ms, 300_000);
    w.batch_ends(low, OK);
    w.clean(low);
    assert_eq!(w.schedule(), [small]);
    w.assert_replays();
}

#[test]
fn a_suspended_victim_can_be_cancelled_while_others_have_its_cores() {
    let mut w = cluster(Mode::Suspend);
    let low = running(&mut w, cores(4));
    let high = w.submit(of("high", cores(2)));
    w.schedule();
    w.confirm(high);
    w.cancel(operator(), low).unwrap();
    w.batch_ends(low, killed(15));
    w.clean(low);
    assert_eq!(w.outcome(low).state, JobState::Cancelled);
    let next = w.submit(cores(2));
    assert_eq!(w.schedule(), [next], "but not the cores that the other one uses");
    w.run(high, OK);
    w.assert_replays();
}

#[test]
fn partitions_of_a_higher_tier_preempt_as_each_partition_of_a_lower_one_says() {
    let mut low = partition("low", &["n1"], true);
    let high = sluice_model::PartitionSpec { priority_tier: 5, ..partition("high", &["n1"], false) };
    let preemption =
        PreemptionConfig { kind: PreemptKind::PartitionPrio, mode: Mode::Requeue, ..PreemptionConfig::default() };
    for (own, expected) in [(None, JobState::Completing), (Some(Mode::Off), JobState::Running)] {
        low.preempt_mode = own;
        let partitions = vec![low.clone(), high.clone()];
        let mut w = World::with(ClusterConfig { partitions, ..with(preemption.clone()) });
        let first = running(&mut w, cores(4));
        w.submit(JobSpec { partitions: vec!["high".to_owned()].into(), ..cores(4) });
        w.schedule();
        assert_eq!(w.state_of(first), expected);
    }
}

#[test]
fn a_job_is_left_alone_until_its_exempt_time_is_over() {
    let mut w = cluster(Mode::Cancel);
    qos(&mut w, "normal", QosChange { preempt_exempt_secs: Some(Some(120)), ..QosChange::default() });
    let low = running(&mut w, cores(4));
    w.submit(of("high", cores(4)));
    w.pass(119);
    w.schedule();
    assert_eq!(w.state_of(low), JobState::Running);
    w.pass(1);
    w.schedule();
    assert_eq!(w.state_of(low), JobState::Completing);
}

#[test]
fn a_qos_may_say_that_its_jobs_are_not_preempted() {
    let mut w = cluster(Mode::Cancel);
    qos(&mut w, "normal", QosChange { preempt_mode: Some(PreemptMode::Off), ..QosChange::default() });
    let low = running(&mut w, cores(4));
    w.submit(of("high", cores(4)));
    w.schedule();
    assert_eq!(w.state_of(low), JobState::Running);
}

#[test]
fn tasks_of_an_array_wait_and_take_from_nobody() {
    let mut w = cluster(Mode::Requeue);
    let low = [running(&mut w, cores(2)), running(&mut w, cores(2))];
    let tasks = w.submit(of("high", array("0-5")));
    assert_eq!(w.schedule(), []);
    assert!(low.iter().all(|id| w.state_of(*id) == JobState::Running));
    assert_eq!(w.job(tasks).claim, None);
    // A job of the same QOS takes it.
    w.submit(of("high", cores(2)));
    w.schedule();
    let gone = low.iter().filter(|id| w.state_of(**id) == JobState::Completing).count();
    assert_eq!(gone, 1);
    w.assert_replays();
}

#[test]
fn a_claim_ends_with_the_eligibility_of_its_job() {
    let mut w = cluster(Mode::Cancel);
    qos(&mut w, "normal", QosChange { grace_secs: Some(100), ..QosChange::default() });
    let low = running(&mut w, cores(4));
    let high = w.submit(of("high", cores(4)));
    w.schedule();
    assert!(w.job(high).claim.is_some());
    w.ok(Command::Hold { caller: operator(), target: JobTarget::Job(high), user_hold: false });
    assert!(w.job(high).claim.is_none());
    w.batch_ends(low, killed(15));
    w.clean(low);
    w.assert_replays();
}

#[test]
fn within_a_qos_the_loser_does_not_take_back() {
    let mut w = cluster(Mode::Requeue);
    qos(&mut w, "normal", QosChange { preempt_within: Some(true), ..QosChange::default() });
    let prio = |p| JobSpec { priority: Some(p), uid: 0, user: "root".to_owned().into(), ..cores(4) };
    let submit = |w: &mut World, p| {
        let spec = prio(p);
        let caller = crate::command::Caller { uid: 0, user: "root".to_owned(), ..operator() };
        match w.ok(Command::Submit { caller, spec: Box::new(spec), key: None }) {
            crate::command::Reply::Submitted { job } => job,
            other => panic!("{other:?}"),
        }
    };
    let first = submit(&mut w, 10);
    w.schedule();
    w.confirm(first);
    let second = submit(&mut w, 20);
    w.schedule();
    assert_eq!(w.state_of(first), JobState::Completing);
    w.batch_ends(first, killed(15));
    w.clean(first);
    assert_eq!(w.schedule(), [second]);
    w.confirm(second);
    w.ok(Command::UpdateJob {
        caller: operator(),
        target: JobTarget::Job(first),
        change: Box::new(crate::command::JobChange { priority: Some(30), ..Default::default() }),
    });
    w.pass(20);
    w.schedule();
    assert_eq!(w.state_of(second), JobState::Running);
}

#[test]
fn qos_can_not_preempt_each_other_in_a_circle() {
    let mut w = cluster(Mode::Cancel);
    let change = QosChange { preempt: vec![ListEdit::Set(["high".to_owned()].into())], ..QosChange::default() };
    let request = AccountingRequest::ModifyQos { names: vec!["normal".to_owned()], qos: change };
    let refused = w.try_command(Command::Accounting { caller: operator(), request: Box::new(request) });
    assert!(refused.unwrap_err().detail().is_some_and(|d| d.contains("loop")));
}
