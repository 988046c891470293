//! How steps end: exit statuses, usage, signals, time to end, and what else is running.

use crate::bench::*;
use sluice_proto::v1::*;

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
    // 1: CPU time, which the first task had more of.
    let cpu = exit.spread.iter().find(|s| s.measure == 1).unwrap();
    let (most, least) = (cpu.largest.unwrap(), cpu.smallest.unwrap());
    assert_eq!((cpu.tasks, most.task, least.task), (2, 0, 1), "{cpu:?}");
    assert_eq!(cpu.total, most.amount + least.amount);
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
