//! The file store as its users see it.

mod samples;

use sluice_ctld::store::{FileStore, HistoryQuery, Opened, Shelf, Store, StoreError, StoreOptions};
use sluice_engine::job::{ArrayRole, Job, Phase};
use sluice_engine::{Event, State};
use sluice_model::{JobId, JobSpec, Time};
use sluice_sched::prediction::EndedRun;
use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The least that a fold must do: these tests are about the store, not about the engine.
fn fold(state: &mut State, event: &Event) {
    state.generation += 1;
    match event {
        Event::JobSubmitted { job } => {
            state.last_job_id = state.last_job_id.max(job.id.0);
            state.jobs.insert(job.id, Arc::new(Job::clone(job)));
        }
        Event::JobsPurged { jobs } => {
            for job in jobs {
                state.jobs.remove(job);
            }
        }
        _ => {}
    }
}

fn open(dir: &Path) -> Result<Opened, StoreError> {
    let options = StoreOptions { floor: Some(0), chunk: 64 << 10, snapshot_after: 64 << 20 };
    FileStore::open_with(dir, options, |_| {}, fold)
}

fn submitted(id: u32) -> Event {
    Event::JobSubmitted { job: Box::new(Job { id: JobId(id), ..samples::pending_job() }) }
}

/// Folds and appends.
fn commit(opened: &mut Opened, events: &[Event]) {
    for event in events {
        fold(&mut opened.state, event);
    }
    opened.store.append(opened.state.generation, events).unwrap();
}

fn journals(dir: &Path) -> Vec<PathBuf> {
    list(&dir.join("journal"))
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

fn assert_same(left: &State, right: &State) {
    assert_eq!(left.generation, right.generation);
    assert_eq!(left.last_job_id, right.last_job_id);
    assert_eq!(left.config, right.config);
    assert_eq!(left.jobs, right.jobs);
    assert_eq!(left.nodes, right.nodes);
    assert_eq!(left.partitions, right.partitions);
    assert_eq!(left.accounting, right.accounting);
    assert_eq!(left.usage, right.usage);
    assert_eq!(left.habits, right.habits);
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    for n in 1..=20 {
        commit(&mut opened, &[submitted(2 * n), submitted(2 * n + 1)]);
    }
    commit(&mut opened, &[Event::JobsPurged { jobs: vec![JobId(4)] }]);
    let state = opened.state.clone();
    drop(opened);
    let mut again = open(dir.path()).unwrap();
    assert_same(&again.state, &state);
    commit(&mut again, &[submitted(100)]);
    let state = again.state.clone();
    drop(again);
    assert_same(&open(dir.path()).unwrap().state, &state);
}

#[test]
fn a_snapshot_replaces_the_journal_before_it_and_the_one_before_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    let mut id = 0;
    for _ in 0..4 {
        for _ in 0..50 {
            id += 1;
            commit(&mut opened, &[submitted(id)]);
        }
        opened.store.snapshot(&opened.state).unwrap();
        opened.store.finish_snapshot();
    }
    id += 1;
    commit(&mut opened, &[submitted(id)]);
    let state = opened.state.clone();
    drop(opened);
    assert_eq!(list(&dir.path().join("snapshots")).len(), 2);
    assert_eq!(journals(dir.path()).len(), 2);
    assert_same(&open(dir.path()).unwrap().state, &state);
    // The newest snapshot turns out to be unreadable: the one before and the journal give the same.
    let newest = list(&dir.path().join("snapshots")).pop().unwrap();
    let mut bytes = fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&newest, bytes).unwrap();
    assert_same(&open(dir.path()).unwrap().state, &state);
}

#[test]
fn a_snapshot_keeps_every_kind_of_record_and_shares_what_was_shared() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    let spec: Arc<JobSpec> = Arc::new(samples::spec());
    let state = &mut opened.state;
    state.config = Some(Arc::new(samples::config()));
    state.partitions.insert("gpu".to_owned(), Arc::new(samples::partition()));
    state.accounting.put_account(samples::account());
    state.accounting.put_user(samples::accounting_user());
    state.accounting.put_association(samples::association());
    state.accounting.put_qos(samples::qos());
    // Given and taken away again: the numbers are not given a second time.
    (state.accounting.last_association, state.accounting.last_qos) = (20, 30);
    for n in 0..50 {
        let known = state.habits.users.entry(n % 7).or_default();
        let known = Arc::make_mut(known);
        known.habits.add(EndedRun { ran_secs: n, limit_secs: 100 + n, width: 1 + n });
        known.last = Some(Time(n.into()));
    }
    for name in ["node1", "node2"] {
        state.nodes.insert(name.into(), Arc::new(samples::node(name)));
    }
    let kinds = [
        samples::pending_job(),
        samples::array_job(),
        samples::running_task(),
        samples::completing_job(),
        samples::ended_job(),
    ];
    for n in 0..2500u32 {
        let job = Job { id: JobId(n + 1), ..kinds[n as usize % kinds.len()].clone() };
        let job = if job.array == ArrayRole::None { job } else { Job { spec: Arc::clone(&spec), ..job } };
        state.jobs.insert(job.id, Arc::new(job));
    }
    commit(&mut opened, &[submitted(9999)]);
    opened.store.snapshot(&opened.state).unwrap();
    opened.store.finish_snapshot();
    let state = opened.state.clone();
    drop(opened);
    let again = open(dir.path()).unwrap().state;
    assert_same(&again, &state);
    let (a, b) = (&again.jobs[&JobId(2)].spec, &again.jobs[&JobId(2497)].spec);
    assert!(Arc::ptr_eq(a, b), "tasks of an array share their specification");
}

#[test]
fn a_snapshot_must_not_be_ahead_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    commit(&mut opened, &[submitted(1)]);
    fold(&mut opened.state, &submitted(2));
    assert!(matches!(opened.store.snapshot(&opened.state), Err(StoreError::Misuse(_))));
    assert!(matches!(opened.store.append(opened.state.generation + 1, &[submitted(2)]), Err(StoreError::Misuse(_))));
}

#[test]
fn a_snapshot_becomes_due_as_the_journal_grows() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { floor: Some(0), chunk: 64 << 10, snapshot_after: 10_000 };
    let mut opened = FileStore::open_with(dir.path(), options.clone(), |_| {}, fold).unwrap();
    let mut id = 0;
    while !opened.store.should_snapshot() {
        id += 1;
        assert!(id < 1000, "never due");
        commit(&mut opened, &[submitted(id)]);
    }
    drop(opened);
    let mut opened = FileStore::open_with(dir.path(), options, |_| {}, fold).unwrap();
    assert!(opened.store.should_snapshot(), "still due after a restart");
    opened.store.snapshot(&opened.state).unwrap();
    opened.store.finish_snapshot();
    assert!(!opened.store.should_snapshot());
}

#[test]
fn a_damaged_record_in_the_middle_stops_the_start_and_names_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    for id in 1..=10 {
        commit(&mut opened, &[submitted(id)]);
    }
    drop(opened);
    let file = journals(dir.path()).pop().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[300] ^= 0x10;
    fs::write(&file, &bytes).unwrap();
    let Err(StoreError::Corrupt { path, offset, .. }) = open(dir.path()) else { panic!("damage went unnoticed") };
    assert_eq!(path, file);
    assert!(offset > 0 && offset <= 300, "{offset}");
}

#[test]
fn a_missing_journal_file_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    for id in 1..=3 {
        commit(&mut opened, &[submitted(id)]);
        opened.store.snapshot(&opened.state).unwrap();
        opened.store.finish_snapshot();
    }
    commit(&mut opened, &[submitted(4)]);
    drop(opened);
    for snapshot in list(&dir.path().join("snapshots")) {
        fs::remove_file(snapshot).unwrap();
    }
    let error = open(dir.path()).err().expect("a state without its first events was accepted");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn an_empty_journal_file_left_by_a_crash_is_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    commit(&mut opened, &[submitted(1)]);
    let state = opened.state.clone();
    drop(opened);
    for content in [&b""[..], &[0; 4096], b"sluice-jour", b"sluice-journal\0\x01\0\0\0\0"] {
        fs::write(dir.path().join("journal/journal-00000000000000000002.log"), content).unwrap();
        assert_same(&open(dir.path()).unwrap().state, &state);
    }
    let mut again = open(dir.path()).unwrap();
    commit(&mut again, &[submitted(2)]);
    let state = again.state.clone();
    drop(again);
    assert_same(&open(dir.path()).unwrap().state, &state);
}

#[test]
fn blobs_live_as_long_as_a_job_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut opened = open(dir.path()).unwrap();
    let script = opened.store.put_blob(b"#!/bin/sh\nhostname\n").unwrap();
    let environment = opened.store.put_blob(b"A=1\0").unwrap();
    let mut filler = Vec::new();
    for n in 0..100 {
        filler.push(opened.store.put_blob(format!("no job names me: {n}").as_bytes()).unwrap());
    }
    let mut spec = samples::spec();
    spec.kind = sluice_model::job::JobKind::Batch { script, args: Vec::new() };
    spec.environment = environment;
    let job = Job { spec: Arc::new(spec), ..samples::pending_job() };
    commit(&mut opened, &[Event::JobSubmitted { job: Box::new(job) }]);
    opened.store.snapshot(&opened.state).unwrap();
    let under_way = opened.store.put_blob(b"put while the snapshot is written").unwrap();
    opened.store.finish_snapshot();
    let shelf = opened.store.shelf();
    drop(opened);
    let reopened = open(dir.path()).unwrap();
    for shelf in [shelf, reopened.store.shelf()] {
        assert_eq!(shelf.blob(&script).unwrap().unwrap(), b"#!/bin/sh\nhostname\n");
        assert_eq!(shelf.blob(&environment).unwrap().unwrap(), b"A=1\0");
        assert!(shelf.blob(&under_way).unwrap().is_some());
        assert!(filler.iter().all(|id| shelf.blob(id).unwrap().is_none()));
    }
}

fn finished(id: u32, ended: i64) -> Arc<Job> {
    let job = samples::ended_job();
    let Phase::Ended { run, outcome, .. } = job.phase.clone() else { unreachable!() };
    Arc::new(Job { id: JobId(id), phase: Phase::Ended { run, outcome, ended: Time(ended) }, ..job })
}

fn found(shelf: &dyn Shelf, query: &HistoryQuery) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut each = |job: Job| {
        ids.push(job.id.0);
        ControlFlow::Continue(())
    };
    shelf.history(query, &mut each).unwrap();
    ids
}

#[test]
fn finished_jobs_are_found_by_time_id_array_and_user() {
    const DAY: i64 = 86_400_000;
    let dir = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let opened = open(dir.path()).unwrap();
        let shelf = opened.store.shelf();
        if round == 0 {
            // Ended on three days, out of order.
            let jobs: Vec<Arc<Job>> =
                [5u32, 1, 9, 3].iter().map(|id| finished(*id, i64::from(*id) * DAY / 3)).collect();
            shelf.archive(&jobs[..2]).unwrap();
            shelf.archive(&jobs[2..]).unwrap();
            // Again, as after a crash between archiving and purging.
            shelf.archive(&jobs[..1]).unwrap();
        }
        assert_eq!(list(&dir.path().join("history")).len(), 3);
        let all = HistoryQuery::default();
        assert_eq!(found(&*shelf, &all), [1, 3, 5, 9]);
        assert_eq!(found(&*shelf, &HistoryQuery { newest_first: true, ..all.clone() }), [9, 5, 3, 1]);
        let window =
            HistoryQuery { ended_since: Some(Time(DAY)), ended_before: Some(Time(5 * DAY / 3)), ..all.clone() };
        assert_eq!(found(&*shelf, &window), [3]);
        let by_id = |ids: &[u32]| HistoryQuery { jobs: Some(ids.iter().map(|i| JobId(*i)).collect()), ..all.clone() };
        assert_eq!(found(&*shelf, &by_id(&[9, 2])), [9]);
        assert_eq!(found(&*shelf, &by_id(&[4711])), [1, 3, 5, 9], "tasks are found by their array");
        let by_uid = |uid| HistoryQuery { uids: Some(BTreeSet::from([uid])), ..all.clone() };
        assert_eq!(found(&*shelf, &by_uid(1000)), [1, 3, 5, 9]);
        assert_eq!(found(&*shelf, &by_uid(1001)), [] as [u32; 0]);
    }
}

#[test]
fn a_finished_job_reads_back_whole_and_the_last_attempt_counts() {
    let dir = tempfile::tempdir().unwrap();
    let shelf = open(dir.path()).unwrap().store.shelf();
    let first = finished(7, 1_000);
    let second = Arc::new(Job { attempt: 3, ..Job::clone(&finished(7, 200_000_000_000)) });
    shelf.archive(&[Arc::clone(&first), Arc::clone(&second)]).unwrap();
    let mut jobs = Vec::new();
    let mut collect = |job: Job| {
        jobs.push(job);
        ControlFlow::Continue(())
    };
    shelf.history(&HistoryQuery { all_attempts: true, ..HistoryQuery::default() }, &mut collect).unwrap();
    shelf.history(&HistoryQuery::default(), &mut collect).unwrap();
    assert_eq!(jobs, [Job::clone(&first), Job::clone(&second), Job::clone(&second)]);
    let running = Arc::new(samples::running_task());
    assert!(matches!(shelf.archive(&[running]), Err(StoreError::Misuse(_))));
}

#[test]
fn a_history_record_cut_short_is_dropped_and_written_over() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().store.shelf().archive(&[finished(1, 10), finished(2, 10)]).unwrap();
    let file = dir.path().join("history/1970-01-01.log");
    let whole = fs::read(&file).unwrap();
    for cut in [1, 40, 400] {
        fs::write(&file, &whole[..whole.len() - cut]).unwrap();
        let shelf = open(dir.path()).unwrap().store.shelf();
        assert_eq!(found(&*shelf, &HistoryQuery::default()), [1]);
        shelf.archive(&[finished(2, 10)]).unwrap();
        assert_eq!(found(&*shelf, &HistoryQuery::default()), [1, 2]);
    }
}

#[test]
fn a_second_store_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = open(dir.path()).unwrap();
    let error = open(dir.path()).err().expect("two owners of one directory");
    assert!(matches!(error, StoreError::Locked { pid: Some(pid), .. } if pid == std::process::id()), "{error}");
    drop(opened);
    open(dir.path()).unwrap();
}

#[test]
fn below_the_floor_changes_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let options = StoreOptions { floor: Some(u64::MAX), ..StoreOptions::default() };
    let store = FileStore::open_with(dir.path(), options, |_| {}, fold).unwrap().store;
    let error = store.check_space().unwrap_err();
    assert!(error.is_refusal() && error.to_string().contains("reserve"), "{error}");
}
