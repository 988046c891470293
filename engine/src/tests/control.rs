use super::world::*;
use crate::command::{Command, JobTarget, PartitionChange, Reply};
use crate::job::Hold;
use crate::reject::Reject;
use sluice_model::partition::PartitionState;
use sluice_model::{JobState, Reason, TimeLimit};
use std::sync::Arc;

fn hold(w: &mut World, caller: crate::command::Caller, id: sluice_model::JobId, user_hold: bool) {
    w.ok(Command::Hold { caller, target: JobTarget::Job(id), user_hold });
}

#[test]
fn a_held_job_has_priority_zero_and_gets_its_own_back() {
    let mut w = World::new();
    let id = w.submit(job());
    let before = w.job(id).priority;
    hold(&mut w, user(1500), id, false);
    assert_eq!((w.job(id).priority, w.reason(id)), (0, Some(Reason::JobHeldUser)));
    assert!(w.schedule().is_empty());
    w.ok(Command::Release { caller: user(1500), target: JobTarget::Job(id) });
    assert_eq!(w.job(id).priority, before);
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn a_user_can_not_release_an_administrators_hold() {
    let mut w = World::new();
    let id = w.submit(job());
    hold(&mut w, operator(), id, false);
    assert_eq!(w.reason(id), Some(Reason::JobHeldAdmin));
    let release = |caller| Command::Release { caller, target: JobTarget::Job(id) };
    assert!(matches!(w.try_command(release(user(1500))), Err(Reject::AccessDenied { .. })));
    // Holding it again does not turn it into a hold of the user's.
    hold(&mut w, user(1500), id, false);
    assert_eq!(w.job(id).hold, Hold::Admin);
    w.ok(release(operator()));
    // uhold: the user may release it.
    hold(&mut w, operator(), id, true);
    w.ok(release(user(1500)));
}

#[test]
fn an_operators_hold_is_an_administrators_even_on_an_own_job() {
    let mut w = World::new();
    let operator = crate::command::Caller { uid: 1500, ..operator() };
    let id = w.submit(job());
    hold(&mut w, operator.clone(), id, false);
    assert_eq!(w.reason(id), Some(Reason::JobHeldAdmin));
    hold(&mut w, operator.clone(), id, true);
    assert_eq!(w.reason(id), Some(Reason::JobHeldUser));
    let change = crate::command::JobChange { priority: Some(0), ..Default::default() };
    w.ok(Command::UpdateJob { caller: operator, target: JobTarget::Job(id), change: Box::new(change) });
    assert_eq!(w.reason(id), Some(Reason::JobHeldAdmin));
}

#[test]
fn a_hold_on_a_running_job_counts_when_it_is_requeued() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    hold(&mut w, user(1500), id, false);
    assert_eq!(w.state_of(id), JobState::Running);
    assert_eq!(crate::query::hold_reason(w.job(id)), Some(Reason::JobHeldUser), "shown while it runs");
    w.ok(Command::Requeue { caller: user(1500), target: JobTarget::Job(id), hold: false });
    w.batch_ends(id, killed(15));
    w.clean(id);
    assert_eq!(w.reason(id), Some(Reason::JobHeldUser));
}

#[test]
fn a_closed_partition_accepts_and_waits_and_a_draining_one_refuses() {
    let mut w = World::new();
    let set = |w: &mut World, state| {
        let change = Box::new(PartitionChange { state: Some(state), ..PartitionChange::default() });
        w.ok(Command::UpdatePartition { caller: operator(), name: "main".to_owned(), change });
    };
    set(&mut w, PartitionState::Down);
    let id = w.submit(job());
    assert_eq!(w.reason(id), Some(Reason::PartitionDown));
    assert!(w.schedule().is_empty());
    set(&mut w, PartitionState::Drain);
    assert_eq!(w.refused(job()), Reject::PartitionUnavailable { name: "main".to_owned(), state: "DRAIN" });
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn a_configuration_that_takes_a_busy_node_or_a_used_partition_is_refused_whole() {
    let mut w = World::new();
    w.submit(job());
    let mut smaller = config();
    smaller.partitions[0].name = "other".to_owned();
    let refusal = w.try_command(Command::Configure { config: Arc::new(smaller) }).unwrap_err();
    assert!(refusal.detail().unwrap().contains("main is missing"), "{refusal:?}");
    w.schedule();
    let mut smaller = config();
    smaller.nodes.remove(0);
    smaller.partitions[0].nodes.remove(0);
    let refusal = w.try_command(Command::Configure { config: Arc::new(smaller.clone()) }).unwrap_err();
    assert!(refusal.detail().unwrap().contains("job 1"), "{refusal:?}");
    assert_eq!(w.state.nodes.len(), 2);
    w.run(sluice_model::JobId(1), OK);
    let reply = w.ok(Command::Configure { config: Arc::new(smaller) });
    let Reply::ConfigApplied { changes } = reply else { panic!("{reply:?}") };
    assert_eq!(changes, ["node n1 removed", "partition main changed"]);
    w.assert_replays();
}

#[test]
fn hardware_in_use_can_not_be_declared_away() {
    let mut w = World::new();
    w.submit(cores(3));
    w.schedule();
    let smaller = |cpus: u32, memory: u64| {
        let mut c = config();
        c.nodes[0].cpus = cpus;
        c.nodes[0].memory_mb = memory;
        Command::Configure { config: Arc::new(c) }
    };
    assert!(matches!(w.try_command(smaller(2, 4000)), Err(Reject::InvalidValue { .. })));
    assert!(matches!(w.try_command(smaller(4, 99)), Err(Reject::InvalidValue { .. })));
    w.ok(smaller(3, 100));
}

#[test]
fn the_same_configuration_again_changes_nothing() {
    let mut w = World::new();
    let change = Box::new(PartitionChange { state: Some(PartitionState::Down), ..PartitionChange::default() });
    w.ok(Command::UpdatePartition { caller: operator(), name: "main".to_owned(), change });
    let before = w.state.generation;
    w.ok(Command::Configure { config: Arc::new(config()) });
    assert_eq!(w.state.generation, before);
    // Another change leaves alone what an administrator set and the file does not touch.
    let mut c = config();
    c.timing.kill_wait_secs = 5;
    w.ok(Command::Configure { config: Arc::new(c.clone()) });
    assert_eq!(w.state.partitions["main"].state, PartitionState::Down);
    c.partitions[0].max_time = TimeLimit::Unlimited;
    w.ok(Command::Configure { config: Arc::new(c) });
    assert_eq!(w.state.partitions["main"].state, PartitionState::Up);
}

#[test]
fn jobs_of_a_higher_tier_go_first() {
    let mut c = config();
    let mut high = partition("high", &["n1", "n2"], false);
    high.priority_tier = 5;
    c.partitions.push(high);
    let mut w = World::with(c);
    w.submit(cores(4));
    w.submit(cores(4));
    let mut spec = cores(4);
    spec.partitions = vec!["high".to_owned()].into();
    let third = w.submit(spec);
    assert_eq!(w.schedule()[0], third);
}

#[test]
fn a_short_queue_depth_still_shows_the_scheduler_the_higher_tier_first() {
    let mut c = config();
    c.scheduling.queue_depth = 2;
    let mut high = partition("high", &["n1", "n2"], false);
    high.priority_tier = 5;
    c.partitions.push(high);
    let mut w = World::with(c);
    let with_priority = |w: &mut World, partition: &str, priority: u32| {
        let mut spec = cores(4);
        spec.partitions = vec![partition.to_owned()].into();
        let id = w.submit(spec);
        let change = crate::command::JobChange { priority: Some(priority), ..Default::default() };
        w.ok(Command::UpdateJob { caller: operator(), target: JobTarget::Job(id), change: Box::new(change) });
        id
    };
    let low: Vec<_> = (0..4).map(|n| with_priority(&mut w, "main", 9000 + n)).collect();
    let first = with_priority(&mut w, "high", 1);
    let shown =
        |w: &World| crate::query::scheduler_input(&w.state, w.now).pending.iter().map(|p| p.job).collect::<Vec<_>>();
    assert_eq!(shown(&w), [first, low[3]], "the tier comes before the priority");
    // Changed while they wait.
    let change = Box::new(PartitionChange { priority_tier: Some(0), ..Default::default() });
    w.ok(Command::UpdatePartition { caller: operator(), name: "high".to_owned(), change });
    assert_eq!(shown(&w), [low[3], low[2]]);
}
