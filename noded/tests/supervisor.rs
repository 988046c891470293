//! The supervisor with real processes: started on a spool folder, watched through its socket and its last word.

use sluice_noded::{frame, sock, spool};
use sluice_proto::v1::*;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use step_output::Kind;

const DEADLINE: Duration = Duration::from_secs(30);

struct Bench {
    dir: tempfile::TempDir,
}

fn root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn sh(script: &str) -> TaskSpec {
    TaskSpec { argv: vec!["/bin/sh".into(), "-c".into(), script.to_owned().into()], ..Default::default() }
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        // Users must be able to pass through.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Bench { dir }
    }
    fn path(&self) -> &Path {
        self.dir.path()
    }
    fn spool(&self) -> PathBuf {
        self.path().join("spool")
    }
    fn spec(&self, tasks: Vec<TaskSpec>) -> SupervisorSpec {
        SupervisorSpec {
            key: Some(StepKey { job: 7, attempt: 0, step: 0 }),
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            work_dir: self.path().as_os_str().as_encoded_bytes().to_vec().into(),
            umask: 0o022,
            best_effort: true,
            environment: b"PATH=/usr/bin:/bin\0".to_vec().into(),
            tasks,
            ..Default::default()
        }
    }
    fn start(&self, spec: &SupervisorSpec) -> Supervisor {
        let dir = self.spool();
        spool::make_dir(&dir).unwrap();
        spool::write_durable(&dir, spool::SPEC, spec).unwrap();
        self.start_again()
    }
    /// As noded does it: the listening socket is the supervisor's stdin.
    fn start_again(&self) -> Supervisor {
        let listener = sock::bind(&self.spool(), spool::SOCKET).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_sluice-noded"))
            .arg("supervise")
            .arg(self.spool())
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Supervisor { child, dir: self.spool() }
    }
    /// Runs a step to its end and returns its last word.
    fn run(&self, spec: &SupervisorSpec) -> SupervisorExit {
        self.start(spec).last_word()
    }
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

struct Supervisor {
    child: Child,
    dir: PathBuf,
}

impl Supervisor {
    fn connect(&self) -> Wire {
        Wire::new(sock::connect(&self.dir, spool::SOCKET).unwrap())
    }
    fn attach(&self, received: u64) -> Wire {
        let mut wire = self.connect();
        let key = Some(StepKey { job: 7, attempt: 0, step: 0 });
        wire.say(supervisor_command::Kind::Attach(StepAttach { key, received }));
        wire
    }
    /// As noded is connected to it.
    fn watch(&self) -> Wire {
        let mut wire = self.connect();
        let mut watch = Vec::new();
        frame::encode(&SupervisorCommand::default(), &mut watch);
        wire.stream.write_all(&watch).unwrap();
        wire
    }
    fn last_word(mut self) -> SupervisorExit {
        wait_for("the supervisor's end", || self.child.try_wait().unwrap().is_some());
        spool::read(&self.dir, spool::EXIT).unwrap().expect("a last word")
    }
    fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for pid in sluice_noded::procs::descendants(self.pid()) {
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Wire {
    stream: UnixStream,
    decoder: frame::Decoder,
}

impl Wire {
    fn new(stream: UnixStream) -> Wire {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Wire { stream, decoder: frame::Decoder::default() }
    }
    fn say(&mut self, kind: supervisor_command::Kind) {
        let mut bytes = Vec::new();
        frame::encode(&SupervisorCommand { kind: Some(kind) }, &mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }
    fn hear(&mut self) -> Option<StepOutput> {
        loop {
            if let Some(message) = self.decoder.take().unwrap() {
                return Some(message);
            }
            let mut chunk = [0; 65536];
            match self.stream.read(&mut chunk).expect("an answer in time") {
                0 => return None,
                n => self.decoder.push(&chunk[..n]),
            }
        }
    }
    fn ack(&mut self, sequence: u64) {
        self.say(supervisor_command::Kind::OutputAck(sequence));
    }
    /// Listens until the end, acknowledging everything; all bytes of each task's stream, and the frames' numbers.
    fn collect(&mut self) -> Collected {
        let mut all = Collected::default();
        while let Some(message) = self.hear() {
            if message.sequence > 0 {
                all.sequences.push(message.sequence);
                self.ack(message.sequence);
            }
            match message.kind {
                Some(Kind::Output(o)) => {
                    all.output.entry((o.task, o.stream)).or_default().extend_from_slice(&o.data);
                }
                Some(Kind::Exit(e)) => all.exits.push(e),
                Some(Kind::Ended(e)) => {
                    all.ended = Some(e);
                    break;
                }
                _ => {}
            }
        }
        all
    }
}

#[derive(Default)]
struct Collected {
    sequences: Vec<u64>,
    output: std::collections::BTreeMap<(u32, i32), Vec<u8>>,
    exits: Vec<TaskExit>,
    ended: Option<PartEnded>,
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < deadline, "no {what} within {DEADLINE:?}");
        std::thread::yield_now();
        nix::poll::poll(&mut [], 2u8).unwrap();
    }
}

fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s[s.rfind(')').unwrap()..].starts_with(") Z"))
}

#[test]
fn exit_codes_and_signals_come_back_apart() {
    for (script, code, signal) in [("exit 0", 0, 0), ("exit 3", 3, 0), ("kill -SEGV $$", 0, 11)] {
        let bench = Bench::new();
        let exit = bench.run(&bench.spec(vec![sh(script)]));
        assert_eq!(exit.worst, Some(ExitStatus { code, signal }), "{script}");
        assert_eq!(exit.failure, None);
    }
}

#[test]
fn the_worst_of_several_tasks_counts_and_usage_is_summed() {
    let bench = Bench::new();
    let burn = sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 2");
    let exit = bench.run(&bench.spec(vec![burn.clone(), TaskSpec { rank: 1, ..sh("exit 0") }]));
    assert_eq!(exit.worst, Some(ExitStatus { code: 2, signal: 0 }));
    assert_eq!(exit.tasks.len(), 2);
    let usage = exit.usage.unwrap();
    assert!(usage.user_cpu_us + usage.system_cpu_us > 0);
    assert!(usage.max_rss_bytes > 100_000);
}

#[test]
fn nothing_that_daemonised_itself_outlives_the_step() {
    let bench = Bench::new();
    let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > pid; exec sleep 1000' & while ! [ -s pid ]; do :; done";
    let exit = bench.run(&bench.spec(vec![sh(script)]));
    assert_eq!(exit.worst, Some(ExitStatus::default()));
    let pid: i32 = bench.read("pid").trim().parse().unwrap();
    assert!(!alive(pid));
}

#[test]
fn killing_a_step_reaches_what_ignores_term_and_says_cancelled() {
    let bench = Bench::new();
    let supervisor =
        bench.start(&bench.spec(vec![sh("trap '' TERM; (setsid sleep 1000 & echo $! > pid); wait; sleep 1000")]));
    wait_for("daemon", || bench.read("pid").ends_with('\n'));
    let mut wire = supervisor.connect();
    wire.say(supervisor_command::Kind::Signal(15));
    wire.say(supervisor_command::Kind::KillAll(true));
    let exit = supervisor.last_word();
    assert!(exit.cancelled);
    assert_eq!(exit.worst, Some(ExitStatus { code: 0, signal: 9 }));
    let pid: i32 = bench.read("pid").trim().parse().unwrap();
    assert!(!alive(pid));
}

#[test]
fn a_signal_to_the_leaders_leaves_their_children_alone() {
    let bench = Bench::new();
    let script = "trap 'echo leader >> got' USR1; sh -c 'trap \"echo child >> got\" USR1; echo up > up; while ! [ -e done ]; do read x < fifo; done' & \
                  wait; wait; echo over >> got";
    nix::unistd::mkfifo(&bench.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let supervisor = bench.start(&bench.spec(vec![sh(script)]));
    wait_for("child", || bench.read("up") == "up\n");
    supervisor.connect().say(supervisor_command::Kind::SignalLeaders(libc::SIGUSR1 as u32));
    wait_for("the leader's trap", || bench.read("got").contains("leader"));
    std::fs::write(bench.path().join("done"), "").unwrap();
    std::fs::write(bench.path().join("fifo"), "x\n").unwrap();
    supervisor.last_word();
    assert_eq!(bench.read("got"), "leader\nover\n");
}

#[test]
fn a_missing_directory_a_bad_file_and_a_missing_interpreter_are_named() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("exit 0")]);
    spec.work_dir = "/no/such/dir".into();
    let exit = bench.run(&spec);
    assert_eq!(exit.failure.as_deref(), Some("working directory /no/such/dir: No such file or directory"));
    assert!(!exit.node_fault);

    let bench = Bench::new();
    let spec = bench.spec(vec![TaskSpec { stdout_path: Some("no/out".into()), ..sh("exit 0") }]);
    assert_eq!(bench.run(&spec).failure.as_deref(), Some("output file no/out: No such file or directory"));

    let bench = Bench::new();
    let spec = bench.spec(vec![TaskSpec { stdin_path: Some("none".into()), ..sh("exit 0") }]);
    assert_eq!(bench.run(&spec).failure.as_deref(), Some("input file none: No such file or directory"));

    let bench = Bench::new();
    let mut spec = bench.spec(vec![TaskSpec { argv: vec!["job".into()], ..Default::default() }]);
    spec.script = "#!/no/such/shell -x\necho\n".into();
    let exit = bench.run(&spec);
    assert_eq!(
        exit.failure.as_deref(),
        Some("interpreter /no/such/shell of the batch script: No such file or directory")
    );
    assert_eq!(exit.worst, Some(ExitStatus { code: 2, signal: 0 }));

    let bench = Bench::new();
    let exit = bench.run(&bench.spec(vec![TaskSpec { argv: vec!["no-such-program".into()], ..Default::default() }]));
    assert_eq!(exit.failure.as_deref(), Some("execve(): no-such-program: No such file or directory"));
}

#[test]
fn a_user_gets_their_identity_files_and_nothing_else() {
    if !root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let script = "#!/bin/sh\nid -u; id -g; umask; ls /proc/self/fd | wc -l; ps -o tty= -p $$ 2>/dev/null; grep SigIgn /proc/self/status; cat\n";
    let mut spec =
        bench.spec(vec![TaskSpec { argv: vec!["job".into()], stdout_path: Some("out".into()), ..Default::default() }]);
    spec.script = script.into();
    spec.switch_user = true;
    (spec.uid, spec.gid, spec.user, spec.umask) = (65534, 65534, "nobody".into(), 0o077);
    let exit = bench.run(&spec);
    assert_eq!((exit.failure, exit.worst), (None, Some(ExitStatus::default())));
    let out = bench.read("out");
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    // `ls` itself opens the folder as its fourth.
    assert_eq!(lines[..4], ["65534", "65534", "0077", "4"], "{out}");
    assert!(out.contains("SigIgn:\t0000000000000000"), "{out}");
    let file = std::fs::metadata(bench.path().join("out")).unwrap();
    assert_eq!((file.uid(), file.mode() & 0o777), (65534, 0o600));
    let script = std::fs::metadata(bench.spool().join(spool::SCRIPT)).unwrap();
    assert_eq!((script.uid(), script.mode() & 0o777), (65534, 0o700));
}

#[test]
fn files_are_opened_with_the_users_rights() {
    if !root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let bench = Bench::new();
    std::fs::write(bench.path().join("out"), "root's\n").unwrap();
    let mut spec = bench.spec(vec![TaskSpec { stdout_path: Some("out".into()), ..sh("echo mine") }]);
    spec.switch_user = true;
    (spec.uid, spec.gid, spec.user) = (65534, 65534, "nobody".into());
    assert_eq!(bench.run(&spec).failure.as_deref(), Some("output file out: Permission denied"));
    assert_eq!(bench.read("out"), "root's\n");

    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("exit 0")]);
    spec.switch_user = true;
    (spec.uid, spec.gid, spec.user) = (1, 65534, "nobody".into());
    let exit = bench.run(&spec);
    assert!(!exit.node_fault && exit.failure.unwrap().contains("has uid 65534 on this node"));
}

#[test]
fn output_is_truncated_once_or_appended_to() {
    let bench = Bench::new();
    std::fs::write(bench.path().join("out"), "old\n").unwrap();
    let task = |rank: u32| TaskSpec { rank, stdout_path: Some("out".into()), ..sh("echo new; echo bad >&2") };
    bench.run(&bench.spec(vec![task(0), task(1)]));
    let mut lines: Vec<String> = bench.read("out").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["bad", "bad", "new", "new"]);

    let bench = Bench::new();
    std::fs::write(bench.path().join("out"), "old\n").unwrap();
    bench.run(&bench.spec(vec![TaskSpec { append: true, ..task(0) }]));
    assert_eq!(bench.read("out"), "old\nnew\nbad\n");
}

#[test]
fn limits_are_lowered_and_never_raised_above_the_nodes() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![TaskSpec { stdout_path: Some("out".into()), ..sh("ulimit -Sn; ulimit -Sc") }]);
    spec.limits = vec![
        PropagatedLimit { name: "NOFILE".into(), soft: 64 },
        PropagatedLimit { name: "CORE".into(), soft: 0 },
        PropagatedLimit { name: "STACK".into(), soft: u64::MAX },
    ];
    let exit = bench.run(&spec);
    assert_eq!(exit.failure, None);
    assert_eq!(bench.read("out"), "64\n0\n");
}

#[test]
fn ten_megabytes_reach_a_slow_client_unharmed_and_in_order() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("head -c 10485760 /dev/zero | tr '\\0' '\\377'; printf end; printf bad >&2")]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let all = supervisor.attach(0).collect();
    let out = &all.output[&(0, 0)];
    assert_eq!(out.len(), 10_485_760 + 3);
    assert!(out.ends_with(b"\xffend") && out[..10_485_760].iter().all(|b| *b == 0xff));
    assert_eq!(all.output[&(0, 1)], b"bad");
    assert!(all.sequences.windows(2).all(|w| w[1] == w[0] + 1) && all.sequences[0] == 1);
    assert_eq!(all.exits.len(), 1);
    assert_eq!(supervisor.last_word().worst, Some(ExitStatus::default()));
}

#[test]
fn a_broken_connection_loses_and_doubles_nothing() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done")]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let mut text = Vec::new();
    let mut received = 0;
    let mut rounds = 0;
    'all: loop {
        let mut wire = supervisor.attach(received);
        rounds += 1;
        let until = received + 5 * rounds;
        while let Some(message) = wire.hear() {
            if message.sequence > 0 {
                assert_eq!(message.sequence, received + 1);
                received = message.sequence;
            }
            match message.kind {
                Some(Kind::Output(o)) => text.extend_from_slice(&o.data),
                Some(Kind::Ended(_)) => {
                    wire.ack(received);
                    break 'all;
                }
                _ => {}
            }
            // Some of it acknowledged, some only received, then gone.
            if received == until - 2 {
                wire.ack(received);
            }
            if received >= until {
                break;
            }
        }
    }
    let want: String = (1..=3000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(String::from_utf8(text).unwrap(), want);
    supervisor.last_word();
}

#[test]
fn stdin_reaches_every_reading_task_once() {
    let bench = Bench::new();
    let task = |rank: u32| TaskSpec { rank, stdin_from_client: rank != 2, ..sh("cat") };
    let mut spec = bench.spec(vec![task(0), task(1), task(2)]);
    spec.client = true;
    let supervisor = bench.start(&spec);
    let data: Vec<u8> = (0..600_000u32).flat_map(|i| i.to_be_bytes()).collect();
    let mut wire = supervisor.attach(0);
    let (mut sent, mut room, mut eof) = (0usize, 0u64, false);
    let mut outputs: std::collections::BTreeMap<u32, Vec<u8>> = Default::default();
    loop {
        while sent < data.len() && (sent as u64) < room {
            let end = data.len().min(sent + 50_000).min(room as usize);
            // Each piece repeats a bit of the one before it, as after a reconnect.
            let from = sent.saturating_sub(100);
            let piece = StdinData { data: data[from..end].to_vec().into(), eof: false, offset: from as u64 };
            wire.say(supervisor_command::Kind::Stdin(piece));
            sent = end;
        }
        if sent == data.len() && !eof {
            eof = true;
            let end = StdinData { data: Default::default(), eof: true, offset: sent as u64 };
            wire.say(supervisor_command::Kind::Stdin(end));
        }
        let message = wire.hear().unwrap();
        if message.sequence > 0 {
            wire.ack(message.sequence);
        }
        match message.kind {
            Some(Kind::StdinRoom(r)) => room = r.offset,
            Some(Kind::Output(o)) => outputs.entry(o.task).or_default().extend_from_slice(&o.data),
            Some(Kind::Ended(e)) => {
                assert_eq!(e.worst, Some(ExitStatus::default()));
                break;
            }
            _ => {}
        }
    }
    assert!(outputs[&0] == data && outputs[&1] == data);
    assert!(outputs[&2].is_empty());
    supervisor.last_word();
}

#[test]
fn a_step_whose_client_stays_away_is_cancelled() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("sleep 1000")]);
    spec.client = true;
    spec.client_grace_secs = 1;
    let supervisor = bench.start(&spec);
    let _watcher = supervisor.watch();
    let mut wire = supervisor.attach(0);
    assert!(matches!(wire.hear().unwrap().kind, Some(Kind::Started(s)) if s.pids.len() == 1));
    drop(wire);
    assert!(supervisor.last_word().cancelled);
}

#[test]
fn a_step_is_not_given_up_while_no_daemon_could_let_its_client_in() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("while ! [ -e go ]; do read x < fifo; done; echo late; exit 3")]);
    nix::unistd::mkfifo(&bench.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    spec.client = true;
    spec.client_grace_secs = 1;
    let supervisor = bench.start(&spec);
    let begun = Instant::now();
    wait_for("more than the grace", || begun.elapsed() > Duration::from_millis(1500));
    std::fs::write(bench.path().join("go"), "").unwrap();
    std::fs::write(bench.path().join("fifo"), "x\n").unwrap();
    wait_for("the record", || bench.spool().join(spool::EXIT).exists());
    let begun = Instant::now();
    wait_for("more than the grace", || begun.elapsed() > Duration::from_millis(1500));
    let all = supervisor.attach(0).collect();
    assert_eq!(all.output[&(0, 0)], b"late\n");
    let exit = supervisor.last_word();
    assert_eq!((exit.cancelled, exit.worst), (false, Some(ExitStatus { code: 3, signal: 0 })));
}

#[test]
fn one_bad_exit_ends_the_others_when_asked() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("exit 5"), TaskSpec { rank: 1, ..sh("sleep 1000") }]);
    spec.kill_on_bad_exit = true;
    spec.kill_wait_secs = 30;
    spec.client = true;
    let supervisor = bench.start(&spec);
    let all = supervisor.attach(0).collect();
    assert_eq!(all.ended.unwrap().worst, Some(ExitStatus { code: 0, signal: 15 }));
    let said = String::from_utf8_lossy(&all.output[&(0, 1)]).into_owned();
    assert!(said.starts_with("slurmstepd: error: *** STEP 7.0 ON ") && said.contains(" CANCELLED AT "), "{said}");
    let exit = supervisor.last_word();
    assert_eq!(exit.tasks[1].exit, Some(ExitStatus { code: 0, signal: 15 }));
}

const END: Terminate = Terminate { again: false, then_kill: true, job_over: false };

#[test]
fn the_end_of_a_job_that_comes_on_several_ways_is_one_signal() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("trap 'echo term >> got' TERM; trap 'echo usr1 >> got; : > stop' USR1; \
         echo up > up; until [ -e stop ]; do sleep 0.01; done")]);
    spec.kill_wait_secs = 60;
    let supervisor = bench.start(&spec);
    wait_for("the traps", || bench.read("up") == "up\n");
    let mut wire = supervisor.connect();
    wire.say(supervisor_command::Kind::Terminate(Terminate { again: true, ..Terminate::default() }));
    wait_for("the signal", || bench.read("got").contains("term"));
    wire.say(supervisor_command::Kind::Terminate(END));
    wire.say(supervisor_command::Kind::Signal(libc::SIGUSR1 as u32));
    let exit = supervisor.last_word();
    assert_eq!(bench.read("got"), "term\nusr1\n");
    assert!(!exit.cancelled);
}

#[test]
fn what_does_not_end_in_the_time_given_is_killed() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("trap '' TERM; echo up > up; while :; do sleep 1000; done")]);
    spec.kill_wait_secs = 1;
    let supervisor = bench.start(&spec);
    wait_for("the trap", || bench.read("up") == "up\n");
    supervisor.connect().say(supervisor_command::Kind::Terminate(END));
    let exit = supervisor.last_word();
    assert_eq!((exit.cancelled, exit.worst), (true, Some(ExitStatus { code: 0, signal: 9 })));
}

#[test]
fn what_a_batch_script_that_died_of_its_end_leaves_behind_has_time_to_end() {
    let bench = Bench::new();
    nix::unistd::mkfifo(&bench.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = "sh -c 'trap \"read x < fifo; echo saved > saved; exit\" TERM; echo up > up; \
         while :; do sleep 0.01; done' & wait";
    let mut spec = bench.spec(vec![sh(script)]);
    spec.kill_wait_secs = 60;
    let supervisor = bench.start(&spec);
    wait_for("the trap", || bench.read("up") == "up\n");
    supervisor.connect().say(supervisor_command::Kind::Terminate(Terminate { again: true, ..Terminate::default() }));
    std::fs::write(bench.path().join("fifo"), "go\n").unwrap();
    let exit = supervisor.last_word();
    assert_eq!(exit.worst, Some(ExitStatus { code: 0, signal: 15 }));
    assert_eq!(bench.read("saved"), "saved\n");

    // But not longer than it is given.
    let bench = Bench::new();
    let script = "sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1000; done' & wait";
    let mut spec = bench.spec(vec![sh(script)]);
    spec.kill_wait_secs = 1;
    let supervisor = bench.start(&spec);
    wait_for("the other process", || bench.read("pid").ends_with('\n'));
    supervisor.connect().say(supervisor_command::Kind::Terminate(Terminate { again: true, ..Terminate::default() }));
    supervisor.last_word();
    assert!(!alive(bench.read("pid").trim().parse().unwrap()));
}

#[test]
fn a_watcher_hears_the_beginning_and_the_end() {
    let bench = Bench::new();
    let supervisor = bench.start(&bench.spec(vec![sh("exit 4")]));
    let mut wire = supervisor.watch();
    assert!(matches!(wire.hear().unwrap().kind, Some(Kind::Started(_))));
    let ended = wire.hear().unwrap();
    assert!(matches!(ended.kind, Some(Kind::Ended(e)) if e.worst == Some(ExitStatus { code: 4, signal: 0 })));
    assert!(
        spool::read::<SupervisorExit>(&supervisor.dir, spool::EXIT).unwrap().is_some(),
        "recorded before it was told"
    );
    supervisor.last_word();
}

#[test]
fn a_folder_is_never_run_twice() {
    let bench = Bench::new();
    bench.run(&bench.spec(vec![sh("echo ran >> runs")]));
    bench.start_again().last_word();
    assert_eq!(bench.read("runs"), "ran\n");

    // Its supervisor was killed in the middle: the tasks die with it, and a new one only says so.
    let bench = Bench::new();
    let mut first = bench.start(&bench.spec(vec![sh("echo $$ >> runs; exec sleep 1000")]));
    wait_for("task", || bench.read("runs").ends_with('\n'));
    let pid: i32 = bench.read("runs").trim().parse().unwrap();
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    wait_for("the orphan's end", || !alive(pid));
    let exit = bench.start_again().last_word();
    assert!(exit.node_fault && exit.failure.unwrap().contains("lost"));
    assert_eq!(bench.read("runs").lines().count(), 1);
}

#[test]
fn suspended_tasks_stand_still_until_resumed() {
    let bench = Bench::new();
    let supervisor = bench.start(&bench.spec(vec![sh("echo $$ > pid; while ! [ -e go ]; do :; done")]));
    wait_for("task", || bench.read("pid").ends_with('\n'));
    let pid: i32 = bench.read("pid").trim().parse().unwrap();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default().contains(") T");
    let mut wire = supervisor.connect();
    wire.say(supervisor_command::Kind::Suspend(true));
    wait_for("the stop", state);
    std::fs::write(bench.path().join("go"), "").unwrap();
    wire.say(supervisor_command::Kind::Suspend(false));
    assert_eq!(supervisor.last_word().worst, Some(ExitStatus::default()));
}

#[test]
fn a_notice_lands_in_the_error_file() {
    let bench = Bench::new();
    let task = TaskSpec {
        stdout_path: Some("out".into()),
        stderr_path: Some("err".into()),
        ..sh("echo up > up; while ! grep -q CANCELLED err; do :; done")
    };
    let supervisor = bench.start(&bench.spec(vec![task]));
    wait_for("task", || bench.read("up") == "up\n");
    supervisor.connect().say(supervisor_command::Kind::Notify("JOB 7 CANCELLED\n".into()));
    supervisor.last_word();
    assert_eq!(bench.read("err"), "JOB 7 CANCELLED\n");
}

#[test]
fn a_terminal_is_a_terminal() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![sh("test -t 0 && test -t 1 && stty size; cat > /dev/null")]);
    (spec.client, spec.pty, spec.pty_rows, spec.pty_cols) = (true, true, 33, 77);
    spec.tasks[0].stdin_from_client = true;
    let supervisor = bench.start(&spec);
    let mut wire = supervisor.attach(0);
    wire.say(supervisor_command::Kind::Stdin(StdinData { data: Default::default(), eof: true, offset: 0 }));
    let all = wire.collect();
    assert!(String::from_utf8_lossy(&all.output[&(0, 0)]).contains("33 77"));
    assert_eq!(all.ended.unwrap().worst, Some(ExitStatus::default()));
    supervisor.last_word();
}

#[test]
fn the_login_environment_lies_below_the_submitted_one() {
    let me = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
    let bench = Bench::new();
    let mut spec =
        bench.spec(vec![TaskSpec { stdout_path: Some("out".into()), ..sh("echo $HOME; echo $USER; echo $MINE") }]);
    spec.user = me.name.clone();
    spec.get_user_env = true;
    spec.environment = b"USER=other\0MINE=1\0PATH=/usr/bin:/bin\0".to_vec().into();
    let exit = bench.run(&spec);
    assert_eq!(exit.failure, None);
    assert_eq!(bench.read("out"), format!("{}\nother\n1\n", me.dir.display()));
}

#[test]
fn hundreds_of_tasks_fit_and_keep_the_limit_they_were_given() {
    let bench = Bench::new();
    let tasks = (0..300).map(|rank| TaskSpec { rank, stdin_from_client: true, ..sh("cat; ulimit -Sn") }).collect();
    let mut spec = bench.spec(tasks);
    spec.client = true;
    let before = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    let supervisor = bench.start(&spec);
    let mut wire = supervisor.attach(0);
    wire.say(supervisor_command::Kind::Stdin(StdinData { data: "in\n".into(), eof: true, offset: 0 }));
    let all = wire.collect();
    assert_eq!(all.exits.len(), 300);
    let want = format!("in\n{}\n", before.0);
    assert!((0..300).all(|rank| all.output[&(rank, 0)] == want.as_bytes()), "{:?}", all.output[&(299, 0)]);
    supervisor.last_word();
}
