//! How tasks are started: as whom, where, with which files, limits and environment; and when they are not.

use crate::bench::*;
use sluice_noded::spool;
use sluice_proto::v1::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

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
