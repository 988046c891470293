use super::world::*;
use crate::command::{Caller, Command, JobChange, JobTarget};
use crate::job::ArrayRole;
use crate::reject::Reject;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, Reason, TimeLimit};

fn update(w: &mut World, caller: Caller, id: JobId, change: JobChange) -> Result<(), Reject> {
    w.try_command(Command::UpdateJob { caller, target: JobTarget::Job(id), change: Box::new(change) }).map(|_| ())
}

#[test]
fn a_user_lowers_a_running_limit_and_an_operator_raises_it() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    let limit = |m| JobChange { time_limit: Some(TimeLimit::Minutes(m)), ..JobChange::default() };
    assert!(matches!(update(&mut w, user(1500), id, limit(20)), Err(Reject::AccessDenied { .. })));
    update(&mut w, operator(), id, limit(20)).unwrap();
    w.pass(601);
    assert_eq!(w.state_of(id), JobState::Running);
    update(&mut w, user(1500), id, limit(11)).unwrap();
    w.pass(59);
    assert_eq!(w.state_of(id), JobState::Completing);
}

#[test]
fn only_operators_give_a_site_factor_and_it_moves_the_job_in_the_queue() {
    use crate::query::{Board, scheduler_input_with};
    use sluice_model::JobSpec;
    use sluice_model::config::{ClusterConfig, PriorityConfig, PriorityKind};
    for kind in [PriorityKind::Multifactor, PriorityKind::SmallestFirst] {
        let priority = PriorityConfig { kind, weight_age: 1000, ..PriorityConfig::default() };
        let mut w = World::with(ClusterConfig { priority, ..config() });
        let (first, second) = (w.submit(job()), w.submit(job()));
        let factor = |n| JobChange { site_factor: Some(n), ..JobChange::default() };
        assert!(matches!(update(&mut w, user(1500), second, factor(50)), Err(Reject::AccessDenied { .. })));
        assert!(matches!(w.refused(JobSpec { site_factor: 1, ..job() }), Reject::AccessDenied { .. }));
        update(&mut w, operator(), second, factor(50)).unwrap();
        let board = Board::new(&w.state, w.now, None);
        let pending = scheduler_input_with(&w.state, w.now, &board).pending;
        let priority = |id| pending.iter().find(|p| p.job == id).map(|p| i64::from(p.priority));
        // 1 is the least that a job has which is not held.
        let alone = if kind == PriorityKind::Multifactor { Some(0) } else { priority(first) };
        assert_eq!(priority(second), alone.map(|p| p + 50));
        assert_eq!(board.parts(&w.state, w.job(second))[0].weighted.site, 50);
        w.assert_replays();
    }
}

#[test]
fn a_limit_below_the_time_used_ends_the_job() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    w.pass(300);
    update(&mut w, user(1500), id, JobChange { time_limit: Some(TimeLimit::Minutes(1)), ..JobChange::default() })
        .unwrap();
    w.pass(0);
    assert_eq!(w.state_of(id), JobState::Completing);
}

#[test]
fn users_raise_nice_but_not_priority() {
    let mut w = World::new();
    let id = w.submit(job());
    let before = w.job(id).priority;
    update(&mut w, user(1500), id, JobChange { nice: Some(50), ..JobChange::default() }).unwrap();
    assert_eq!(w.job(id).priority, before - 50);
    assert!(matches!(
        update(&mut w, user(1500), id, JobChange { nice: Some(0), ..JobChange::default() }),
        Err(Reject::AccessDenied { .. })
    ));
    assert!(matches!(
        update(&mut w, user(1500), id, JobChange { priority: Some(before), ..JobChange::default() }),
        Err(Reject::AccessDenied { .. })
    ));
    update(&mut w, operator(), id, JobChange { nice: Some(-50), ..JobChange::default() }).unwrap();
    assert_eq!(w.job(id).priority, before + 50);
    assert_eq!(w.job(id).spec.nice, -50);
}

#[test]
fn what_a_running_job_can_not_take_is_refused_whole() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    let change = JobChange { comment: Some("new".into()), ntasks: Some(2), ..JobChange::default() };
    assert_eq!(update(&mut w, user(1500), id, change), Err(Reject::JobNotPending));
    assert_eq!(w.job(id).comment, None);
    update(&mut w, user(1500), id, JobChange { comment: Some("new".into()), ..JobChange::default() }).unwrap();
    assert_eq!(w.job(id).comment, Some("new".into()));
}

#[test]
fn a_pending_job_can_be_moved_and_resized_within_what_exists() {
    let mut c = config();
    c.partitions.push(partition("small", &["n2"], false));
    let mut w = World::with(c);
    let id = w.submit(job());
    let to = |p: &str| JobChange { partitions: Some(vec![p.to_owned()]), ..JobChange::default() };
    assert_eq!(update(&mut w, user(1500), id, to("nope")), Err(Reject::InvalidPartition { name: "nope".to_owned() }));
    update(&mut w, user(1500), id, to("small")).unwrap();
    assert!(update(&mut w, user(1500), id, JobChange { cpus_per_task: Some(9), ..JobChange::default() }).is_err());
    update(&mut w, user(1500), id, JobChange { cpus_per_task: Some(3), ..JobChange::default() }).unwrap();
    w.schedule();
    assert_eq!(w.nodes_of(id), ["n2".into()]);
    assert_eq!(w.job(id).run().unwrap().allocation.cpus(), 3);
}

#[test]
fn a_later_begin_time_makes_an_eligible_job_wait() {
    let mut w = World::new();
    let id = w.submit(job());
    let begin = sluice_model::Time(w.now.0 + 60_000);
    update(&mut w, user(1500), id, JobChange { begin: Some(begin), ..JobChange::default() }).unwrap();
    assert_eq!(w.reason(id), Some(Reason::BeginTime));
    assert!(w.schedule().is_empty());
    w.pass(60);
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn a_change_of_some_tasks_splits_them_off() {
    let mut w = World::new();
    let id = w.submit(array("0-3"));
    let change = Box::new(JobChange { nice: Some(10), ..JobChange::default() });
    let target = JobTarget::Tasks(id, IndexSet::single(3));
    w.ok(Command::UpdateJob { caller: user(1500), target, change });
    let split = w.state.index.arrays[&id].tasks[&3];
    assert_eq!(w.job(split).spec.nice, 10);
    assert!(matches!(&w.job(id).array, ArrayRole::Pending { indices, .. } if indices.len() == 3));
}

#[test]
fn the_arrays_limit_can_be_changed() {
    let mut w = World::new();
    let id = w.submit(throttled("0-5", 1));
    assert_eq!(w.schedule().len(), 1);
    update(&mut w, user(1500), id, JobChange { array_throttle: Some(Some(3)), ..JobChange::default() }).unwrap();
    assert_eq!(w.schedule().len(), 2);
    update(&mut w, user(1500), id, JobChange { array_throttle: Some(None), ..JobChange::default() }).unwrap();
    assert_eq!(w.schedule().len(), 3);
}

#[test]
fn of_an_array_only_what_still_waits_takes_a_change_for_waiting_jobs() {
    let mut w = World::new();
    let id = w.submit(throttled("0-3", 1));
    let running = w.schedule()[0];
    let begin = sluice_model::Time(w.now.0 + 60_000);
    update(&mut w, user(1500), id, JobChange { begin: Some(begin), ..JobChange::default() }).unwrap();
    assert_eq!((w.job(id).not_before, w.job(running).not_before), (Some(begin), None));
}

#[test]
fn nobody_changes_other_peoples_jobs() {
    let mut w = World::new();
    let id = w.submit(job());
    let change = JobChange { comment: Some("mine".into()), ..JobChange::default() };
    assert!(matches!(update(&mut w, user(1501), id, change), Err(Reject::AccessDenied { .. })));
}
