use super::world::*;
use crate::command::{Command, JobTarget};
use crate::reject::Reject;
use sluice_model::state::ExitStatus;
use sluice_model::step::{StepRecord, Usage};
use sluice_model::{JobId, JobState, Reason, StepId, StepKey, Time, TimeLimit};

/// A running step of the job's first attempt.
pub fn step(job: JobId, number: u32) -> StepRecord {
    StepRecord {
        key: StepKey { job, attempt: 0, step: StepId::Numbered(number) },
        name: "step".into(),
        nodes: vec!["n1".into()],
        tasks: 1,
        cpus: 1,
        memory_mb: 0,
        gres: Vec::new(),
        start: Time::from_secs(1_000_000),
        end: None,
        state: JobState::Running,
        exit: ExitStatus::SUCCESS,
        usage: Usage::default(),
        spread: Vec::new(),
        submit_line: "srun true".into(),
        distribution: "Block".to_owned(),
        srun_host: "n1".to_owned(),
        srun_pid: 1,
    }
}

#[test]
fn a_job_waits_for_its_begin_time() {
    let mut w = World::new();
    let mut spec = job();
    spec.begin = Some(Time(w.now.0 + 3_600_000));
    let id = w.submit(spec);
    assert_eq!(w.reason(id), Some(Reason::BeginTime));
    assert!(w.schedule().is_empty());
    assert_eq!(crate::query::next_wakeup(&w.state), w.job(id).not_before);
    w.pass(3600);
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn a_deadline_that_can_not_be_met_is_refused_and_a_missed_one_ends_the_job() {
    let mut w = World::new();
    let mut spec = job();
    spec.deadline = Some(Time(w.now.0 - 1000));
    assert_eq!(w.refused(spec.clone()), Reject::DeadlinePassed);
    spec.deadline = Some(Time(w.now.0 + 300_000));
    assert_eq!(w.refused(spec.clone()), Reject::DeadlinePassed, "ten minutes do not fit into five");
    spec.deadline = Some(Time(w.now.0 + 900_000));
    spec.hold = true;
    let id = w.submit(spec);
    w.pass(300);
    assert_eq!(w.state_of(id), JobState::Pending);
    w.pass(1);
    assert_eq!(w.state_of(id), JobState::Deadline);
}

#[test]
fn an_impatient_job_is_cancelled_when_it_can_not_start() {
    let mut w = World::new();
    let big = w.submit(nodes(2));
    w.submit(cores(4));
    let mut spec = cores(4);
    spec.immediate_secs = Some(5);
    let id = w.submit(spec);
    w.schedule();
    assert_eq!(w.state_of(big), JobState::Running);
    w.pass(5);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn suspended_time_does_not_count_against_the_limit() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.pass(300);
    let target = JobTarget::Job(id);
    assert!(matches!(
        w.try_command(Command::Suspend { caller: user(1500), target: target.clone() }),
        Err(Reject::AccessDenied { .. })
    ));
    w.ok(Command::Suspend { caller: operator(), target: target.clone() });
    assert_eq!(w.state_of(id), JobState::Suspended);
    assert_eq!(
        w.try_command(Command::Suspend { caller: operator(), target: target.clone() }),
        Err(Reject::AlreadySuspended)
    );
    w.pass(10_000);
    assert_eq!(w.state_of(id), JobState::Suspended);
    w.ok(Command::Resume { caller: operator(), target: target.clone() });
    assert_eq!(w.try_command(Command::Resume { caller: operator(), target }), Err(Reject::NotSuspended));
    w.pass(299);
    assert_eq!(w.state_of(id), JobState::Running);
    w.pass(1);
    assert_eq!(w.state_of(id), JobState::Completing);
}

#[test]
fn a_suspended_job_keeps_its_cores() {
    let mut w = World::new();
    let a = w.submit({
        let mut s = nodes(2);
        s.request.cpus_per_task = Some(4);
        s
    });
    w.schedule();
    w.confirm(a);
    w.ok(Command::Suspend { caller: operator(), target: JobTarget::Job(a) });
    w.submit(job());
    assert!(w.schedule().is_empty());
}

#[test]
fn a_job_without_a_limit_gets_the_partitions_default() {
    let mut w = World::new();
    let mut spec = job();
    spec.time_limit = None;
    let id = w.submit(spec);
    assert_eq!(w.job(id).time_limit, TimeLimit::Minutes(60));
    w.schedule();
    w.confirm(id);
    w.pass(3600);
    assert_eq!(w.state_of(id), JobState::Completing);
}
