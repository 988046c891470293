use super::world::*;
use crate::command::{Command, LaunchFailure, LaunchFailureKind};
use crate::effect::Effect;
use crate::job::Hold;
use crate::query;
use sluice_model::step::Usage;
use sluice_model::{JobId, JobState, NodeName, Reason, StepId};

#[test]
fn a_job_is_pending_running_completing_and_completed() {
    let mut w = World::new();
    let id = w.submit(job());
    assert_eq!(w.state_of(id), JobState::Pending);
    assert_eq!(w.schedule(), [id]);
    assert_eq!(w.state_of(id), JobState::Running);
    assert_eq!(w.launches(), [(id, 0)]);
    w.confirm(id);
    assert!(w.job(id).run().unwrap().confirmed);
    w.take_effects();
    w.batch_ends(id, OK);
    assert_eq!(w.state_of(id), JobState::Completing);
    assert_eq!(w.end_orders(), [(NodeName::new("n1"), id, 0)]);
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Completed);
    assert_eq!(w.outcome(id).reason, Reason::None);
    assert!(w.state.nodes["n1"].jobs.is_empty());
    w.assert_replays();
}

#[test]
fn ids_start_at_first_job_id_and_never_repeat() {
    let mut c = config();
    c.limits.first_job_id = 100;
    let mut w = World::with(c);
    assert_eq!(w.submit(job()), JobId(100));
    assert_eq!(w.submit(array("0-2")), JobId(101));
    w.schedule();
    assert_eq!(w.submit(job()), JobId(104));
}

#[test]
fn priorities_go_down_by_one_and_nice_lowers_them() {
    let mut w = World::new();
    let (a, b) = (w.submit(job()), w.submit(job()));
    assert_eq!(w.job(a).priority, 4_294_901_759);
    assert_eq!(w.job(b).priority, 4_294_901_758);
    let mut nice = job();
    nice.nice = 100;
    let c = w.submit(nice);
    assert_eq!(w.job(c).priority, 4_294_901_757 - 100);
}

#[test]
fn resources_of_a_completing_job_stay_taken_until_its_nodes_are_clean() {
    let mut w = World::new();
    let a = w.submit({
        let mut s = nodes(2);
        s.request.exclusive = sluice_model::request::Exclusive::Node;
        s
    });
    w.schedule();
    w.confirm(a);
    w.batch_ends(a, OK);
    let b = w.submit(nodes(2));
    assert!(w.schedule().is_empty());
    w.ok(Command::AttemptGone { node: "n1".into(), job: a, attempt: 0 });
    assert!(w.schedule().is_empty(), "one node is free, the other is not");
    assert_eq!(query::free(&w.state, &"n1".into()).unwrap().cpus.len(), 4);
    w.ok(Command::AttemptGone { node: "n2".into(), job: a, attempt: 0 });
    assert_eq!(w.schedule(), [b]);
}

#[test]
fn a_start_planned_before_the_cores_were_taken_is_dropped() {
    let mut w = World::new();
    w.submit(cores(4));
    let plan = sluice_sched::plan(&query::scheduler_input(&w.state, w.now));
    w.ok(Command::ApplyPlan { starts: plan.starts.clone(), preemptions: Vec::new(), lapsed: Vec::new() });
    let other = w.submit(cores(4));
    let mut stale = plan.starts;
    stale[0].job = other;
    w.ok(Command::ApplyPlan { starts: stale, preemptions: Vec::new(), lapsed: Vec::new() });
    assert_eq!(w.state_of(other), JobState::Pending);
}

#[test]
fn a_start_planned_before_a_hold_a_drain_or_a_closed_partition_is_dropped() {
    for what in 0..3 {
        let mut w = World::new();
        let id = w.submit(cores(4));
        let plan = sluice_sched::plan(&query::scheduler_input(&w.state, w.now));
        match what {
            0 => {
                w.ok(Command::Hold { caller: user(1500), target: crate::command::JobTarget::Job(id), user_hold: false })
            }
            1 => w.ok(Command::UpdateNode {
                caller: operator(),
                nodes: vec!["n1".into()],
                change: crate::command::NodeChange {
                    state: Some(crate::command::NodeStateChange::Drain),
                    reason: Some("test".to_owned()),
                    ..Default::default()
                },
            }),
            _ => w.ok(Command::UpdatePartition {
                caller: operator(),
                name: "main".to_owned(),
                change: Box::new(crate::command::PartitionChange {
                    state: Some(sluice_model::partition::PartitionState::Down),
                    ..Default::default()
                }),
            }),
        };
        w.ok(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed });
        assert_eq!(w.state_of(id), JobState::Pending, "case {what}");
    }
}

#[test]
fn licences_are_not_given_twice() {
    let mut w = World::new();
    let with = || {
        let mut s = job();
        s.licenses.insert("fluent".to_owned(), 1);
        s
    };
    let ids: Vec<JobId> = (0..3).map(|_| w.submit(with())).collect();
    let mut plan = sluice_sched::plan(&query::scheduler_input(&w.state, w.now));
    // A third start that the plan would not have made.
    if plan.starts.len() == 2 {
        let mut third = plan.starts[1].clone();
        third.job = ids[2];
        third.allocation.nodes[0].cpus = sluice_model::index_set::IndexSet::single(3);
        plan.starts.push(third);
    }
    w.ok(Command::ApplyPlan { starts: plan.starts, preemptions: plan.preemptions, lapsed: plan.lapsed });
    assert_eq!(w.state_of(ids[1]), JobState::Running);
    assert_eq!(w.state_of(ids[2]), JobState::Pending);
}

#[test]
fn exit_codes_and_signals_name_the_failure() {
    for (exit, state, reason) in [
        (code(3), JobState::Failed, Reason::NonZeroExitCode),
        (killed(9), JobState::Failed, Reason::RaisedSignal),
        (killed(125), JobState::OutOfMemory, Reason::OutOfMemory),
        (OK, JobState::Completed, Reason::None),
    ] {
        let mut w = World::new();
        let id = w.submit(job());
        w.run(id, exit);
        let o = w.outcome(id);
        assert_eq!((o.state, o.reason, o.exit), (state, reason, exit));
        let batch = &w.job(id).steps[&StepId::Batch];
        assert_eq!((batch.state, batch.exit, batch.end.is_some()), (state, exit, true));
    }
}

#[test]
fn a_repeated_report_changes_nothing() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    w.confirm(id);
    let before = w.state.generation;
    w.confirm(id);
    assert_eq!(w.state.generation, before);
    w.batch_ends(id, code(1));
    let before = w.state.generation;
    w.batch_ends(id, code(1));
    assert_eq!(w.state.generation, before);
    w.clean(id);
    let before = w.state.generation;
    w.ok(Command::AttemptGone { node: "n1".into(), job: id, attempt: 0 });
    w.batch_ends(id, OK);
    assert_eq!(w.state.generation, before + 1, "the batch step's record alone");
    assert_eq!(w.outcome(id).exit, code(1));
}

#[test]
fn a_launch_that_fails_by_the_job_ends_it_and_says_why() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    let failure = LaunchFailure { kind: LaunchFailureKind::Job, detail: "no directory /nowhere".to_owned() };
    w.ok(Command::BatchEnded {
        node: "n1".into(),
        job: id,
        attempt: 0,
        exit: code(1),
        usage: Usage::default(),
        failure: Some(failure),
    });
    w.clean(id);
    let outcome = w.outcome(id);
    assert_eq!((outcome.state, outcome.reason), (JobState::Failed, Reason::JobLaunchFailure));
    assert_eq!(outcome.detail.as_deref(), Some("no directory /nowhere"));
    assert_eq!(outcome.exit.to_string(), "0:53", "not to be mistaken for the script's own exit");
    let batch = &w.job(id).steps[&StepId::Batch];
    assert_eq!((batch.state, batch.exit), (JobState::Cancelled, outcome.exit));
    assert!(batch.end.is_some());
}

#[test]
fn a_launch_that_fails_by_the_node_drains_it_and_requeues_the_job() {
    let mut w = World::new();
    let id = w.submit(job());
    w.schedule();
    let failure = LaunchFailure { kind: LaunchFailureKind::Node, detail: "disk full".to_owned() };
    w.ok(Command::BatchEnded {
        node: "n1".into(),
        job: id,
        attempt: 0,
        exit: code(1),
        usage: Usage::default(),
        failure: Some(failure),
    });
    w.clean(id);
    assert_eq!(w.state_of(id), JobState::Pending);
    assert_eq!(w.job(id).attempt, 1);
    assert!(w.state.nodes["n1"].flags.drain);
    assert!(w.state.nodes["n1"].reason.as_ref().unwrap().text.contains("disk full"));
    w.pass(11);
    w.schedule();
    assert_eq!(w.nodes_of(id), [NodeName::new("n2")]);
}

#[test]
fn failing_launches_hold_the_job_in_the_end() {
    let mut w = World::new();
    let id = w.submit(job());
    for attempt in 0..3 {
        // Longer than any wait between them.
        w.pass(60);
        w.schedule();
        let node = w.nodes_of(id)[0].clone();
        let failure = LaunchFailure { kind: LaunchFailureKind::Node, detail: "disk full".to_owned() };
        let usage = Usage::default();
        w.ok(Command::BatchEnded {
            node: node.clone(),
            job: id,
            attempt,
            exit: code(1),
            usage,
            failure: Some(failure),
        });
        w.clean(id);
        w.ok(Command::UpdateNode {
            caller: operator(),
            nodes: vec![node],
            change: crate::command::NodeChange {
                state: Some(crate::command::NodeStateChange::Resume),
                ..Default::default()
            },
        });
    }
    assert_eq!(w.job(id).hold, Hold::Requeued(Reason::JobHoldMaxRequeue));
    assert_eq!(w.reason(id), Some(Reason::JobHoldMaxRequeue));
}

#[test]
fn finished_jobs_go_to_the_history_after_their_age_and_only_once() {
    let mut w = World::new();
    let id = w.submit(job());
    w.run(id, OK);
    w.pass(299);
    assert!(!w.effects.iter().any(|e| matches!(e, Effect::Archive { .. })));
    w.take_effects();
    w.pass(2);
    w.pass(1);
    let orders: Vec<_> = w.take_effects().into_iter().filter(|e| matches!(e, Effect::Archive { .. })).collect();
    assert_eq!(orders, [Effect::Archive { jobs: vec![id] }]);
    w.pass(20);
    assert!(w.effects.contains(&Effect::Archive { jobs: vec![id] }), "an order without an answer is repeated");
    w.ok(Command::Archived { jobs: vec![id] });
    assert!(w.state.jobs.is_empty());
    assert_eq!(w.submit(job()), JobId(2));
}

#[test]
fn a_plan_starts_jobs_in_priority_order() {
    let mut w = World::new();
    let ids: Vec<JobId> = (0..4).map(|_| w.submit(cores(4))).collect();
    assert_eq!(w.schedule(), ids[..2]);
    w.ok(Command::UpdateJob {
        caller: operator(),
        target: crate::command::JobTarget::Job(ids[3]),
        change: Box::new(crate::command::JobChange { priority: Some(4_294_910_000), ..Default::default() }),
    });
    w.batch_ends(ids[0], OK);
    w.clean(ids[0]);
    assert_eq!(w.schedule(), [ids[3]]);
}
