//! The store against kill -9, damaged tails and a full disk.
//!
//! A child process (this program again) appends what a seed dictates, tells what was acknowledged, and is killed at a
//! random moment; what a reopened store holds is then compared with a model made from the same seed. Killing a process
//! does not lose what the kernel has: for power cuts see tests/vm.

#[path = "../../ctld/tests/samples/mod.rs"]
mod samples;

use sluice_ctld::store::{FileStore, HistoryQuery, Opened, Store, StoreError, StoreOptions, blob_id};
use sluice_engine::job::{Job, Phase};
use sluice_engine::{Event, State};
use sluice_model::job::JobKind;
use sluice_model::{JobId, OsBytes};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// splitmix64 (Steele, Lea, Flood, 2014): small, seedable, good enough to choose moments and sizes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// Of `SLUICE_SEED`, or of the clock; printed, so that a failure can be had again.
fn seed(test: &str) -> u64 {
    let given = std::env::var("SLUICE_SEED").ok().and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos().into())
    });
    println!("{test}: SLUICE_SEED={seed}");
    seed
}

/// What is appended is a function of the seed and the generation alone, so that the model needs no word from the child.
struct Script {
    seed: u64,
}

impl Script {
    fn at(&self, generation: u64) -> Random {
        Random(self.seed ^ generation.wrapping_mul(0xff51_afd7_ed55_8ccd))
    }

    /// How many events the batch has that begins with this one.
    fn batch(&self, generation: u64) -> u64 {
        1 + self.at(generation).below(8)
    }

    fn script(&self, generation: u64) -> Vec<u8> {
        let mut random = self.at(generation);
        let length = random.below(3000);
        // One in four is a script seen before.
        let text =
            if random.below(4) == 0 { "#!/bin/sh\ntrue\n".to_owned() } else { format!("#!/bin/sh\n# {generation}\n") };
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len() + length as usize, b'#');
        bytes
    }

    /// The event that leads to `generation`, and the jobs that must be in the history before it is appended.
    fn event(&self, state: &State, generation: u64) -> (Event, Vec<Arc<Job>>) {
        let mut random = self.at(generation);
        if state.jobs.len() > 40 && random.below(2) == 0 {
            let mut finished = Vec::new();
            for (id, job) in state.jobs.iter().take(1 + random.below(20) as usize) {
                let Phase::Ended { run, outcome, ended } = samples::ended_job().phase else { unreachable!() };
                let phase = Phase::Ended { run, outcome, ended };
                finished.push(Arc::new(Job { id: *id, phase, ..Job::clone(job) }));
            }
            let jobs = finished.iter().map(|job| job.id).collect();
            return (Event::JobsPurged { jobs }, finished);
        }
        let mut spec = samples::spec();
        spec.kind = JobKind::Batch { script: blob_id(&self.script(generation)), args: Vec::new() };
        spec.comment = Some(OsBytes::new(vec![b'x'; random.below(2000) as usize]));
        let job = Job { id: JobId(generation as u32), spec: Arc::new(spec), ..samples::pending_job() };
        (Event::JobSubmitted { job: Box::new(job) }, Vec::new())
    }

    /// Goes on from `state` to exactly `generation`; every state on the way ends at a batch's end.
    fn advance(&self, state: &mut State, generation: u64) {
        while state.generation < generation {
            for _ in 0..self.batch(state.generation + 1) {
                let (event, _) = self.event(state, state.generation + 1);
                fold(state, &event);
            }
        }
        assert_eq!(state.generation, generation, "a batch was applied in part");
    }
}

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
    let options = StoreOptions { floor: None, chunk: 256 << 10, snapshot_after: 200 << 10 };
    FileStore::open_with(dir, options, |_| {}, fold)
}

fn child(test: &str, vars: &[(&str, &str)], wrapper: &[&str]) -> Command {
    let exe = std::env::current_exe().expect("this program's path");
    let mut command = match wrapper {
        [] => Command::new(exe),
        [program, args @ ..] => {
            let mut command = Command::new(program);
            command.args(args).arg(exe);
            command
        }
    };
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).envs(vars.iter().copied());
    command
}

/// Appends until it is killed. Does nothing when run as a test.
#[test]
fn child_appends() {
    let (Ok(dir), Ok(seed)) = (std::env::var("SLUICE_CRASH_DIR"), std::env::var("SLUICE_CRASH_SEED")) else { return };
    let script = Script { seed: seed.parse().expect("a number") };
    let Opened { mut store, mut state } = open(Path::new(&dir)).expect("the store opens after a kill");
    let shelf = store.shelf();
    loop {
        let mut events = Vec::new();
        for _ in 0..script.batch(state.generation + 1) {
            let generation = state.generation + 1;
            let (event, finished) = script.event(&state, generation);
            if finished.is_empty() {
                store.put_blob(&script.script(generation)).expect("a blob is taken");
            } else {
                shelf.archive(&finished).expect("the history takes finished jobs");
            }
            fold(&mut state, &event);
            events.push(event);
        }
        store.append(state.generation, &events).expect("a batch is taken");
        let mut out = std::io::stdout().lock();
        writeln!(out, "ack {}", state.generation).and_then(|()| out.flush()).expect("the parent listens");
        if store.should_snapshot() {
            store.snapshot(&state).expect("a snapshot begins");
        }
    }
}

/// Compares a reopened store with the model and returns the generation reached.
fn check(script: &Script, dir: &Path, model: &mut State, acknowledged: u64) {
    let opened = open(dir).expect("the store opens after a kill");
    let (before, found) = (model.clone(), &opened.state);
    assert!(found.generation >= acknowledged, "{acknowledged} was acknowledged, {} is there", found.generation);
    script.advance(model, found.generation);
    assert_eq!(found.jobs, model.jobs);
    assert_eq!(found.last_job_id, model.last_job_id);
    let shelf = opened.store.shelf();
    for job in found.jobs.values() {
        let JobKind::Batch { script: id, .. } = &job.spec.kind else { continue };
        let bytes =
            shelf.blob(id).expect("a readable blob").unwrap_or_else(|| panic!("job {} lost its script", job.id));
        assert!(bytes == script.script(u64::from(job.id.0)), "job {} has another script", job.id);
    }
    let mut archived = BTreeSet::new();
    let mut note = |job: Job| {
        archived.insert(job.id);
        ControlFlow::Continue(())
    };
    shelf.history(&HistoryQuery::default(), &mut note).expect("a readable history");
    for job in before.jobs.keys().filter(|id| !found.jobs.contains_key(*id)) {
        assert!(archived.contains(job), "job {job} was purged and is not in the history");
    }
}

#[test]
fn nothing_acknowledged_is_lost_by_kill_9_at_any_moment() {
    let seed = seed("kill -9");
    let mut random = Random(seed);
    let script = Script { seed };
    let dir = tempfile::tempdir().unwrap();
    let mut model = State::default();
    let begin = Instant::now();
    let mut rounds = 0;
    while begin.elapsed() < Duration::from_secs(12) || rounds < 10 {
        let vars = [("SLUICE_CRASH_DIR", dir.path().to_str().unwrap()), ("SLUICE_CRASH_SEED", &seed.to_string())];
        let mut child = child("child_appends", &vars, &[]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Killed after some acknowledgements and a moment more, so that any instruction may be the last.
        let (until, moment) = (random.below(60), Duration::from_micros(random.below(4000)));
        let mut acknowledged = model.generation;
        let mut seen = 0;
        for line in lines.map_while(Result::ok) {
            let Some(generation) = line.strip_prefix("ack ") else { continue };
            acknowledged = generation.parse().unwrap();
            seen += 1;
            if seen == until + 1 {
                spin(moment);
                child.kill().unwrap();
            }
        }
        let status = child.wait().unwrap();
        assert!(seen > 0, "the child ended before it wrote anything: {status}");
        check(&script, dir.path(), &mut model, acknowledged);
        rounds += 1;
    }
    println!("{rounds} kills, {} events, {} live jobs", model.generation, model.jobs.len());
}

/// Waits for less than the scheduler's grain.
fn spin(moment: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < moment {
        std::hint::spin_loop();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_damaged_tail_costs_the_last_batch_at_most_and_other_damage_is_reported() {
    let seed = seed("damaged tail");
    let mut random = Random(seed);
    let script = Script { seed };
    let original = tempfile::tempdir().unwrap();
    let options = StoreOptions { floor: None, chunk: 64 << 10, snapshot_after: u64::MAX };
    let Opened { mut store, mut state } = FileStore::open_with(original.path(), options, |_| {}, fold).unwrap();
    let mut ends = vec![0];
    while ends.len() < 60 {
        let (mut events, next) = (Vec::new(), state.generation + 1);
        for _ in 0..script.batch(next) {
            let (event, _) = script.event(&state, state.generation + 1);
            fold(&mut state, &event);
            events.push(event);
        }
        store.append(state.generation, &events).unwrap();
        ends.push(state.generation);
    }
    drop(store);
    let (mut cut, mut reported) = (0, 0);
    for _ in 0..150 {
        let dir = tempfile::tempdir().unwrap();
        copy(original.path(), dir.path());
        let journal: PathBuf =
            fs::read_dir(dir.path().join("journal")).unwrap().map(|e| e.unwrap().path()).max().unwrap();
        let file = fs::OpenOptions::new().read(true).write(true).open(&journal).unwrap();
        let size = file.metadata().unwrap().len();
        let at = random.below(size);
        let truncated = random.below(2) == 0;
        if truncated {
            file.set_len(at).unwrap();
        } else {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << random.below(8))], at).unwrap();
        }
        let what = if truncated { "cut off" } else { "a bit flipped" };
        match open(dir.path()) {
            Ok(opened) => {
                cut += 1;
                let reached = opened.state.generation;
                assert!(ends.contains(&reached), "{what} at {at}: ended within a batch, at {reached}");
                let least = if truncated { 0 } else { ends[ends.len() - 2] };
                assert!(reached >= least, "{what} at {at}: damage went unnoticed, only {reached} is there");
                let mut model = State::default();
                script.advance(&mut model, reached);
                assert_eq!(opened.state.jobs, model.jobs, "{what} at {at}");
                // What was dropped does not come back after further writes.
                let mut opened = opened;
                let (event, _) = script.event(&opened.state, reached + 1);
                fold(&mut opened.state, &event);
                opened.store.append(reached + 1, &[event]).unwrap();
                let after = opened.state.clone();
                drop(opened);
                assert_eq!(open(dir.path()).unwrap().state.jobs, after.jobs, "{what} at {at}");
            }
            Err(StoreError::Corrupt { path, offset, .. }) if !truncated => {
                reported += 1;
                assert!(path == journal && offset <= at, "{what} at {at}: {} {offset} was named", path.display());
            }
            Err(error) => panic!("{what} at {at}: {error}"),
        }
    }
    assert!(cut > 0 && reported > 0, "{cut} opened, {reported} reported");
}

/// Fills the disk under a store. Does nothing when run as a test; the parent chooses how the disk is made small.
#[test]
fn child_fills_the_disk() {
    let (Ok(dir), Ok(kind)) = (std::env::var("SLUICE_FULL_DIR"), std::env::var("SLUICE_FULL_KIND")) else { return };
    let dir = PathBuf::from(dir);
    let tmpfs = kind == "tmpfs";
    if tmpfs {
        use nix::mount::{MsFlags, mount};
        const NONE: Option<&str> = None;
        mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE).expect("private mounts");
        mount(Some("sluice"), &dir, Some("tmpfs"), MsFlags::empty(), Some("size=16m")).expect("a small tmpfs");
    } else {
        // Files may not grow beyond this: as on a full disk, writes fail, with EFBIG.
        // SAFETY: SIG_IGN runs no code.
        unsafe { nix::sys::signal::signal(nix::sys::signal::SIGXFSZ, nix::sys::signal::SigHandler::SigIgn) }.unwrap();
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_FSIZE, 2 << 20, 2 << 20).unwrap();
    }
    println!("MADE SMALL");
    let path = dir.join("store");
    let Opened { mut store, mut state } = open(&path).unwrap();
    let shelf = store.shelf();
    let script = store.put_blob(b"#!/bin/sh\n").unwrap();
    let finished = Arc::new(samples::ended_job());
    shelf.archive(std::slice::from_ref(&finished)).unwrap();
    let (mut refused_early, mut rounds) = (false, 0);
    let full = loop {
        rounds += 1;
        assert!(rounds < 100_000, "the disk never filled");
        refused_early |= store.check_space().is_err();
        let mut next = state.clone();
        let (mut spec, id) = (samples::spec(), JobId(state.last_job_id + 1));
        spec.kind = JobKind::Batch { script, args: Vec::new() };
        spec.comment = Some(OsBytes::new(vec![b'x'; 20_000]));
        let event = Event::JobSubmitted { job: Box::new(Job { id, spec: Arc::new(spec), ..samples::pending_job() }) };
        fold(&mut next, &event);
        match store.append(next.generation, &[event]) {
            Ok(()) => state = next,
            Err(error) => break error,
        }
    };
    assert!(full.is_refusal(), "{full}");
    assert_eq!(refused_early, tmpfs, "users' changes are refused before the reserve is used up");
    assert!(state.generation > 10);
    // Refused again and again, and reads go on.
    let big = vec![7u8; 8 << 20];
    assert!(store.put_blob(&big).unwrap_err().is_refusal());
    assert_eq!(shelf.blob(&script).unwrap().unwrap(), b"#!/bin/sh\n");
    let mut found = 0;
    let mut count = |job: Job| {
        assert_eq!(job, *finished);
        found += 1;
        ControlFlow::Continue(())
    };
    shelf.history(&HistoryQuery::default(), &mut count).unwrap();
    assert_eq!(found, 1);
    let snapshot = store.snapshot(&state);
    assert!(snapshot.as_ref().err().is_none_or(StoreError::is_refusal), "{snapshot:?}");
    store.finish_snapshot();
    let stuffing: Vec<Arc<Job>> =
        (0..2000).map(|n| Arc::new(Job { id: JobId(n + 10_000), ..Job::clone(&finished) })).collect();
    assert!(shelf.archive(&stuffing).unwrap_err().is_refusal());
    // A restart on the full disk loses nothing.
    drop((store, shelf));
    let Opened { mut store, state: again } = open(&path).unwrap();
    assert_eq!((again.generation, &again.jobs), (state.generation, &state.jobs));
    if !tmpfs {
        println!("ALL GOOD");
        return;
    }
    // Room again: work goes on.
    use nix::mount::{MsFlags, mount};
    mount(Some("sluice"), &dir, Some("tmpfs"), MsFlags::MS_REMOUNT, Some("size=64m")).unwrap();
    store.check_space().unwrap();
    let event =
        Event::JobSubmitted { job: Box::new(Job { id: JobId(state.last_job_id + 1), ..samples::pending_job() }) };
    fold(&mut state, &event);
    store.append(state.generation, &[event]).unwrap();
    store.snapshot(&state).unwrap();
    store.finish_snapshot();
    store.shelf().archive(&stuffing).unwrap();
    drop(store);
    assert_eq!(open(&path).unwrap().state.jobs, state.jobs);
    println!("ALL GOOD");
}

#[test]
fn a_full_disk_refuses_changes_loses_nothing_and_goes_on_reading() {
    let namespace: &[&str] = if nix::unistd::geteuid().is_root() {
        &["unshare", "--mount", "--"]
    } else {
        &["unshare", "--user", "--map-root-user", "--mount", "--"]
    };
    for (kind, wrapper) in [("tmpfs", namespace), ("limit", &[])] {
        let dir = tempfile::tempdir().unwrap();
        let vars = [("SLUICE_FULL_DIR", dir.path().to_str().unwrap()), ("SLUICE_FULL_KIND", kind)];
        let Ok(output) = child("child_fills_the_disk", &vars, wrapper).output() else {
            println!("{kind}: skipped: {} is not installed", wrapper[0]);
            continue;
        };
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !out.contains("MADE SMALL") {
            println!("{kind}: skipped: no small file system can be mounted here: {out}{err}");
            continue;
        }
        assert!(output.status.success() && out.contains("ALL GOOD"), "{kind}: {out}{err}");
    }
}
