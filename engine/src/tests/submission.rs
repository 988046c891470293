use super::world::*;
use crate::command::{Command, JobTarget, Reply};
use crate::query;
use crate::reject::Reject;
use sluice_model::index_set::IndexSet;
use sluice_model::request::{GresRequest, GresScope, MemoryRequest, NodeCount};
use sluice_model::{JobId, JobSpec, Reason, SubmissionKey, Time, TimeLimit};

#[test]
fn unknown_partitions_and_users_not_allowed_are_refused_by_name() {
    let mut c = config();
    let mut closed = partition("closed", &["n1"], false);
    closed.allow_groups = vec!["staff".to_owned()];
    let mut named = partition("named", &["n1"], false);
    named.allow_users = vec!["alice".to_owned()];
    let mut accounts = partition("accounts", &["n1"], false);
    accounts.allow_accounts = vec!["physics".to_owned()];
    let mut qos = partition("qos", &["n1"], false);
    qos.allow_qos = vec!["high".to_owned()];
    let mut root = partition("root", &["n1"], false);
    root.root_only = true;
    c.partitions.extend([closed, named, accounts, qos, root]);
    let mut w = World::with(c);
    let on = |p: &str| JobSpec { partitions: vec![p.to_owned()].into(), ..job() };
    assert_eq!(w.refused(on("nope")), Reject::InvalidPartition { name: "nope".to_owned() });
    assert!(matches!(w.refused(on("closed")), Reject::AccessDenied { .. }));
    assert!(matches!(w.refused(on("named")), Reject::AccessDenied { .. }));
    assert!(matches!(w.refused(on("root")), Reject::AccessDenied { .. }));
    assert!(matches!(w.refused(on("accounts")), Reject::InvalidAccount { .. }));
    assert_eq!(w.refused(on("qos")), Reject::InvalidQos { name: "normal".to_owned() });
    w.submit(JobSpec { account: Some("physics".to_owned()), ..on("accounts") });
}

#[test]
fn without_a_default_partition_one_must_be_named() {
    let mut c = config();
    c.partitions[0].default = false;
    assert_eq!(World::with(c).refused(job()), Reject::NoDefaultPartition);
}

#[test]
fn what_no_node_could_ever_run_is_refused() {
    let mut w = World::new();
    assert_eq!(w.refused(cores(5)).code(), Reject::NodeConfigUnavailable { detail: String::new() }.code());
    let mut much = job();
    much.request.memory = Some(MemoryRequest::PerNode(1_000_000));
    assert!(matches!(w.refused(much), Reject::MemoryTooLarge { .. } | Reject::NodeConfigUnavailable { .. }));
    let mut gpu = job();
    gpu.request.gres = vec![GresRequest { name: "gpu".to_owned(), kind: None, count: 1, scope: GresScope::Node }];
    assert!(matches!(w.refused(gpu), Reject::InvalidGres { .. } | Reject::NodeConfigUnavailable { .. }));
    let mut where_ = job();
    where_.request.node_list = vec!["n77".into()];
    assert_eq!(w.refused(where_), Reject::InvalidNodeName { name: "n77".to_owned() });
}

#[test]
fn more_nodes_or_time_than_the_partition_gives_waits_unless_limits_are_enforced() {
    let many = || {
        let mut s = job();
        s.request.nodes = Some(NodeCount { min: 12, max: Some(12) });
        s.request.ntasks = Some(12);
        s
    };
    let long = || JobSpec { time_limit: Some(TimeLimit::Minutes(100_000)), ..job() };
    let mut w = World::new();
    let id = w.submit(long());
    assert_eq!(w.reason(id), Some(Reason::PartitionTimeLimit));
    w.submit(many());
    assert!(w.schedule().is_empty());

    let mut c = config();
    c.scheduling.enforce_partition_limits = true;
    let mut w = World::with(c);
    assert!(matches!(w.refused(long()), Reject::TimeLimitTooLong { .. }));
    assert!(matches!(w.refused(many()), Reject::NodeCountOutOfRange { .. }));
}

#[test]
fn absurd_values_are_refused() {
    let mut w = World::new();
    let zero = JobSpec { time_limit: Some(TimeLimit::Minutes(0)), ..job() };
    assert!(matches!(w.refused(zero), Reject::InvalidTimeLimit { .. }));
    let reserved = JobSpec { reservation: Some("maintenance".to_owned()), ..job() };
    assert!(matches!(w.refused(reserved), Reject::InvalidValue { .. }));
    let min = JobSpec { time_min: Some(TimeLimit::Minutes(20)), ..job() };
    assert!(matches!(w.refused(min), Reject::InvalidValue { .. }));
}

#[test]
fn only_operators_choose_priorities_and_lower_nice() {
    let mut w = World::new();
    let wish = JobSpec { priority: Some(7), ..job() };
    assert!(matches!(w.refused(wish.clone()), Reject::AccessDenied { .. }));
    assert!(matches!(w.refused(JobSpec { nice: -1, ..job() }), Reject::AccessDenied { .. }));
    w.ok(Command::Submit { caller: operator(), spec: Box::new(wish), key: None });
    assert_eq!(w.job(sluice_model::JobId(1)).priority, 7);
    let id = w.submit(JobSpec { priority: Some(0), ..job() });
    assert_eq!(w.reason(id), Some(Reason::JobHeldUser), "priority 0 is a hold");
}

#[test]
fn the_cluster_takes_no_more_jobs_than_its_limit() {
    let mut c = config();
    c.limits.max_jobs = 2;
    let mut w = World::with(c);
    w.submit(job());
    w.submit(job());
    assert_eq!(w.refused(job()), Reject::TooManyJobs { limit: 2 });
}

#[test]
fn a_test_submission_foretells_and_keeps_nothing() {
    let mut w = World::new();
    for _ in 0..2 {
        w.submit(cores(4));
    }
    w.schedule();
    let before = w.state.clone();
    let estimate = query::test_submission(&w.state, w.now, &user(1500), cores(4)).unwrap();
    assert_eq!(estimate.start, Time(w.now.0 + 600_000));
    assert_eq!((estimate.job.0, estimate.cpus, estimate.partition.as_str()), (3, 4, "main"));
    assert!(w.state == before);
    assert!(query::test_submission(&w.state, w.now, &user(1500), cores(5)).is_err());
}

#[test]
fn a_submission_that_is_sent_again_gets_the_number_that_it_has() {
    let mut w = World::new();
    let keyed = |uid: u32, key: u8, spec: JobSpec| Command::Submit {
        caller: user(uid),
        spec: Box::new(JobSpec { uid, ..spec }),
        key: Some(SubmissionKey([key; 16])),
    };
    let send = |w: &mut World, command: Command| match w.ok(command) {
        Reply::Submitted { job } => job,
        other => panic!("{other:?}"),
    };
    let first = send(&mut w, keyed(1500, 1, job()));
    let events = w.journal.len();
    assert_eq!(send(&mut w, keyed(1500, 1, job())), first);
    assert_eq!(w.journal.len(), events, "nothing happened");
    // Another key, and the same key of another user, are other submissions.
    assert_eq!(send(&mut w, keyed(1500, 2, job())), JobId(first.0 + 1));
    assert_eq!(send(&mut w, keyed(1501, 1, job())), JobId(first.0 + 2));
    // An array's own number stands for it, whatever becomes of its tasks.
    let array = send(&mut w, keyed(1500, 3, array("0-2")));
    w.ok(Command::Cancel { caller: user(1500), target: JobTarget::Tasks(array, IndexSet::range(0, 1)) });
    assert_eq!(send(&mut w, keyed(1500, 3, job())), array);
    w.schedule();
    assert_eq!(send(&mut w, keyed(1500, 3, job())), array);
    w.assert_replays();
    // It is known for as long as its record is.
    w.cancel(user(1500), first).unwrap();
    w.clean(first);
    w.pass(301);
    assert_eq!(send(&mut w, keyed(1500, 1, job())), first);
    w.ok(Command::Archived { jobs: vec![first] });
    assert_ne!(send(&mut w, keyed(1500, 1, job())), first);
}
