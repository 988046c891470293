use super::world::*;
use crate::command::{Command, JobTarget, NodeChange, NodeStateChange};
use crate::query;
use crate::reject::Reject;
use sluice_model::node::NodeReport;
use sluice_model::{JobState, NodeName, Reason};

fn silence(w: &mut World, name: &str) {
    w.ok(Command::NodeSilent { node: name.into() });
}

#[test]
fn a_silent_node_gets_no_work_and_is_down_after_the_time_out() {
    let mut w = World::new();
    let id = w.submit(cores(4));
    w.schedule();
    w.confirm(id);
    silence(&mut w, "n1");
    assert!(!query::available(&w.state, &"n1".into()));
    w.pass(NODE_TIMEOUT - 1);
    assert_eq!(w.state_of(id), JobState::Running);
    w.pass(1);
    assert!(w.state.nodes["n1"].flags.down);
    assert_eq!((w.state_of(id), w.job(id).attempt), (JobState::Pending, 1));
    assert_eq!(w.job(id).past_runs[0].outcome.state, JobState::NodeFail);
    w.pass(10);
    w.schedule();
    assert_eq!(w.nodes_of(id), [NodeName::new("n2")]);
}

#[test]
fn a_job_that_must_not_be_requeued_fails_with_its_node() {
    let mut w = World::new();
    let mut spec = job();
    spec.requeue = Some(false);
    let id = w.submit(spec);
    w.schedule();
    w.confirm(id);
    silence(&mut w, "n1");
    w.pass(NODE_TIMEOUT);
    assert_eq!((w.state_of(id), w.outcome(id).reason), (JobState::NodeFail, Reason::NodeFail));
}

#[test]
fn the_other_nodes_of_a_lost_job_are_freed_only_when_they_are_clean() {
    let mut w = World::new();
    let id = w.submit(nodes(2));
    w.schedule();
    w.confirm(id);
    silence(&mut w, "n2");
    w.pass(NODE_TIMEOUT);
    assert_eq!(w.end_orders(), [(NodeName::new("n1"), id, 0)]);
    assert!(w.state.nodes["n2"].jobs.is_empty());
    assert!(!w.state.nodes["n1"].jobs.is_empty());
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Pending);
}

#[test]
fn a_node_that_comes_back_in_time_goes_on_as_if_nothing_was() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    silence(&mut w, "n1");
    w.pass(60);
    w.register("n1", "boot1", &[(id.0, 0)]);
    assert_eq!(w.state_of(id), JobState::Running);
    assert!(query::available(&w.state, &"n1".into()));
    w.pass(NODE_TIMEOUT);
    assert_eq!(w.state_of(id), JobState::Running);
}

#[test]
fn a_node_that_comes_back_too_late_ends_what_it_holds_before_it_gets_work() {
    let mut w = World::new();
    let id = w.submit(cores(4));
    w.schedule();
    w.confirm(id);
    silence(&mut w, "n1");
    w.pass(NODE_TIMEOUT);
    w.take_effects();
    w.register("n1", "boot1", &[(id.0, 0)]);
    assert!(!w.state.nodes["n1"].flags.down, "it was down only for its silence");
    assert_eq!(w.end_orders(), [(NodeName::new("n1"), id, 0)]);
    assert!(!query::available(&w.state, &"n1".into()));
    w.ok(Command::AttemptGone { node: "n1".into(), job: id, attempt: 0 });
    assert!(query::available(&w.state, &"n1".into()));
    assert_eq!(w.job(id).attempt, 1, "the job itself was not touched");
}

#[test]
fn a_reboot_loses_what_ran_there_at_once() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.register("n1", "boot2", &[]);
    assert_eq!((w.state_of(id), w.job(id).attempt), (JobState::Pending, 1));
}

#[test]
fn an_attempt_that_may_have_run_before_a_reboot_is_not_launched_again() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.take_effects();
    w.register("n1", "boot2", &[]);
    assert!(w.launches().is_empty());
    assert_eq!(w.job(id).attempt, 1);
}

#[test]
fn a_launch_that_was_lost_is_repeated_when_the_node_registers() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.take_effects();
    silence(&mut w, "n1");
    assert_eq!(query::owed_launches(&w.state, &"n1".into()), [(id, 0)]);
    w.register("n1", "boot1", &[]);
    assert_eq!(w.launches(), [(id, 0)]);
    w.confirm(id);
    w.take_effects();
    w.register("n1", "boot1", &[(id.0, 0)]);
    assert!(w.launches().is_empty());
}

#[test]
fn a_confirmed_attempt_that_the_node_no_longer_holds_is_lost() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.register("n1", "boot1", &[]);
    assert_eq!(w.job(id).attempt, 1);
}

#[test]
fn the_end_of_a_completing_attempt_is_ordered_again() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.batch_ends(id, OK);
    w.take_effects();
    w.register("n1", "boot1", &[]);
    assert_eq!(w.end_orders(), [(NodeName::new("n1"), id, 0)]);
    assert_eq!(w.state_of(id), JobState::Completing);
    silence(&mut w, "n1");
    w.pass(NODE_TIMEOUT);
    assert_eq!(w.state_of(id), JobState::Completed, "nobody waits for a dead node");
}

#[test]
fn less_hardware_than_declared_drains_the_node() {
    let mut w = World::new();
    let report = NodeReport { boot_id: "boot1".to_owned(), cpus: 4, memory_mb: 3999, ..NodeReport::default() };
    w.ok(Command::NodeRegister { node: "n1".into(), report: Box::new(report), holds: vec![] });
    assert!(w.state.nodes["n1"].flags.drain);
    assert_eq!(w.state.nodes["n1"].reason.as_ref().unwrap().text, "Low RealMemory");
}

#[test]
fn an_administrator_drains_and_resumes() {
    let mut w = World::new();
    let update = |w: &mut World, caller, state, reason: Option<&str>| {
        let change = NodeChange { state: Some(state), reason: reason.map(str::to_owned), ..NodeChange::default() };
        w.try_command(Command::UpdateNode { caller, nodes: vec!["n1".into()], change })
    };
    assert!(matches!(update(&mut w, user(1500), NodeStateChange::Drain, Some("x")), Err(Reject::AccessDenied { .. })));
    assert!(matches!(update(&mut w, operator(), NodeStateChange::Drain, None), Err(Reject::InvalidValue { .. })));
    let id = w.submit(cores(4));
    w.schedule();
    update(&mut w, operator(), NodeStateChange::Drain, Some("fan")).unwrap();
    assert_eq!(query::node_state(&w.state, &w.state.nodes["n1"]).word(), "draining");
    w.run(id, OK);
    assert_eq!(query::node_state(&w.state, &w.state.nodes["n1"]).word(), "drained");
    w.register("n1", "boot1", &[]);
    assert!(w.state.nodes["n1"].flags.drain, "a drain stays");
    update(&mut w, operator(), NodeStateChange::Resume, None).unwrap();
    assert_eq!(query::node_state(&w.state, &w.state.nodes["n1"]).word(), "idle");
    assert_eq!(w.state.nodes["n1"].reason, None);
}

#[test]
fn a_node_set_down_ends_its_jobs_but_gives_nothing_away_before_they_are_gone() {
    let mut w = World::new();
    let id = w.submit(cores(4));
    w.schedule();
    w.confirm(id);
    let change =
        NodeChange { state: Some(NodeStateChange::Down), reason: Some("fire".to_owned()), ..NodeChange::default() };
    w.ok(Command::UpdateNode { caller: operator(), nodes: vec!["n1".into()], change });
    assert_eq!(w.state_of(id), JobState::Completing);
    silence(&mut w, "n1");
    w.pass(NODE_TIMEOUT);
    assert_eq!(w.state_of(id), JobState::Pending);
    w.register("n1", "boot1", &[]);
    assert!(w.state.nodes["n1"].flags.down, "an administrator's DOWN stays");
    assert_eq!(w.state.nodes["n1"].reason.as_ref().unwrap().text, "fire");
}

#[test]
fn a_running_job_that_is_being_cancelled_when_its_node_dies_ends_as_cancelled() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.cancel(user(1500), id).unwrap();
    w.register("n1", "boot2", &[]);
    assert_eq!(w.state_of(id), JobState::Cancelled);
}

#[test]
fn a_report_of_something_unknown_is_answered_with_an_order_to_end_it() {
    let mut w = World::new();
    w.ok(Command::AttemptConfirmed { node: "n1".into(), job: sluice_model::JobId(9), attempt: 3 });
    assert_eq!(w.end_orders(), [(NodeName::new("n1"), sluice_model::JobId(9), 3)]);
    let unknown = Command::NodeSilent { node: "n9".into() };
    assert_eq!(w.try_command(unknown), Err(Reject::InvalidNodeName { name: "n9".to_owned() }));
}

#[test]
fn a_suspended_job_is_stopped_again_after_its_node_came_back() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.ok(Command::Suspend { caller: operator(), target: JobTarget::Job(id) });
    w.take_effects();
    w.register("n1", "boot1", &[(id.0, 0)]);
    assert!(w.effects.iter().any(|e| matches!(e, crate::Effect::Suspend { resume: false, .. })));
}
