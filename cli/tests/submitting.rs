//! sbatch, srun, salloc and scancel as their users see them: words in, output and exit code out. No cluster runs; where
//! a controller is needed, one answers from a script.

mod support;

use sluice_proto::v1;
use std::process::Stdio;
use support::{Bench, Fake, os, ran, refusal, serve, variable};

#[test]
fn every_command_tells_its_version_without_a_cluster() {
    let bench = Bench::new();
    for name in ["sbatch", "srun", "salloc", "scancel"] {
        for word in ["-V", "--version", "--vers"] {
            let ran = bench.run(name, &[word]);
            assert_eq!((ran.stdout.as_str(), ran.code), ("slurm 26.05.0\n", Some(0)), "{name} {word}");
        }
    }
    assert!(bench.run("sluice", &["--version"]).stdout.starts_with("sluice "));
}

#[test]
fn mistakes_in_the_words_end_with_255_and_the_c_librarys_message() {
    let bench = Bench::new();
    let ran = bench.run("sbatch", &["--foo"]);
    assert_eq!(ran.stderr, "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n");
    assert_eq!(ran.code, Some(255));
    assert_eq!(bench.run("srun", &["--hold=3", "x"]).code, Some(255));
    let ran = bench.run("scancel", &["-Z"]);
    assert_eq!(ran.stderr.lines().next(), Some("scancel: invalid option -- 'Z'"));
}

#[test]
fn scripts_that_are_none_are_refused_in_slurms_words() {
    let bench = Bench::new();
    for (text, first) in [
        (&b"#!/bin/sh\r\necho\r\n"[..], "sbatch: error: Batch script contains DOS line breaks (\\r\\n)"),
        (b"#!/bin/sh\necho \0\n", "sbatch: error: The Slurm controller does not allow scripts that"),
        (b"", "sbatch: error: Batch script is empty!"),
        (b"echo hi\n", "sbatch: error: This does not look like a batch script.  The first"),
    ] {
        let file = bench.write("job.sh", text);
        for ran in [bench.run("sbatch", &[&file]), bench.run_with_input("sbatch", &[], text)] {
            assert_eq!((ran.stderr.lines().next(), ran.code), (Some(first), Some(1)));
        }
    }
    let ran = bench.run("sbatch", &["/nonexistent"]);
    assert_eq!(ran.stderr, "sbatch: error: Unable to open file /nonexistent\n");
    let ran = bench.run("sbatch", &["--wrap", "true", "x.sh"]);
    assert_eq!(ran.stderr, "sbatch: error: Script arguments not permitted with --wrap option\n");
    let file = bench.write("stray.sh", b"#!/bin/sh\n#SBATCH -n 2 stray\n");
    let ran = bench.run("sbatch", &[&file]);
    assert_eq!(ran.stderr, "sbatch: error: Invalid directive found in batch script: stray\n");
    assert_eq!(ran.code, Some(255));
}

#[test]
fn a_controller_that_is_away_is_told_in_slurms_words() {
    let bench = Bench::new();
    for (name, words, context) in [
        ("sbatch", &["--wrap", "true"][..], "Batch job submission failed: "),
        ("srun", &["true"], "Unable to allocate resources: "),
        ("salloc", &["true"], "Job submit/allocate failed: "),
    ] {
        let ran = bench.run(name, words);
        let line = format!("{name}: error: {context}Unable to contact slurm controller (connect failure)");
        assert_eq!(ran.stderr.lines().last(), Some(line.as_str()));
        assert_eq!(ran.code, Some(1));
    }
    let mut command = bench.command("sbatch");
    let ran = ran(command.env("SLURM_EXIT_ERROR", "42").args(["--wrap", "true"]).output().unwrap());
    assert_eq!(ran.code, Some(42), "SLURM_EXIT_ERROR replaces the exit code");
}

#[test]
fn a_command_without_a_configuration_says_where_it_looked() {
    let bench = Bench::new();
    let mut command = bench.command("sbatch");
    let ran = ran(command.env("SLUICE_CONF", "/nonexistent/client.toml").args(["--wrap", "true"]).output().unwrap());
    assert!(ran.stderr.contains("/nonexistent/client.toml"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn sbatch_prints_the_jobs_number_in_both_forms() {
    let bench = Bench::new();
    let _served = serve(&bench.socket(), Fake::default());
    assert_eq!(bench.run("sbatch", &["--wrap", "true"]).stdout, "Submitted batch job 7\n");
    assert_eq!(bench.run("sbatch", &["--parsable", "--wrap", "true"]).stdout, "7\n");
    assert_eq!(bench.run("sbatch", &["--parsable", "-M", "bench", "--wrap", "true"]).stdout, "7;bench\n");
    assert_eq!(bench.run("sbatch", &["-Q", "--wrap", "true"]).stdout, "");
    assert_eq!(bench.run_with_input("sbatch", &[], b"#!/bin/sh\n").stdout, "Submitted batch job 7\n");
}

#[test]
fn what_is_submitted_is_what_was_said() {
    let bench = Bench::new();
    let served = serve(&bench.socket(), Fake::default());
    let script = b"#!/bin/sh\n#SBATCH -J \"a b\" -n3\n#SBATCH --mem=1G\necho\n";
    let file = bench.write("job.sh", script);
    let long = "x".repeat(100_000);
    let mut command = bench.command("sbatch");
    command.args(["-n", "4", "-o", "out.%j", &file, "--foo", &long]).arg(os(b"\xff\xfe"));
    command.env("SBATCH_ACCOUNT", "env").env("ODD", os(b"a\xffb")).env("SLURM_JOB_ID", "3").env("SLURM_NTASKS", "9");
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.stdout, "Submitted batch job 7\n", "{}", ran.stderr);
    let seen = served.fake.submitted.lock().unwrap();
    let request = &seen[0];
    let spec = request.spec.as_ref().unwrap();
    assert_eq!(request.script.as_ref(), script);
    assert_eq!(spec.name.as_ref(), b"a b");
    assert_eq!(spec.account.as_deref(), Some("env"));
    assert_eq!(spec.request.as_ref().unwrap().ntasks, Some(4));
    assert_eq!(spec.args.len(), 3, "options after the script are the script's");
    assert_eq!(
        (spec.args[0].as_ref(), spec.args[1].len(), spec.args[2].as_ref()),
        (&b"--foo"[..], 100_000, &b"\xff\xfe"[..])
    );
    assert_eq!(spec.work_dir.as_ref(), bench.path("").canonicalize().unwrap().as_os_str().as_encoded_bytes());
    assert!(spec.limits.iter().any(|l| l.name == "NOFILE"));
    let environment = &request.environment;
    assert_eq!(variable(environment, "ODD"), Some(b"a\xffb".to_vec()), "bytes that are not UTF-8 pass");
    assert_eq!(variable(environment, "SLURM_JOB_ID"), None, "the outer job does not show through");
    assert_eq!(variable(environment, "SLURM_NTASKS"), None);
    assert!(variable(environment, "SLURM_SUBMIT_DIR").is_some());
}

#[test]
fn a_refusal_is_printed_with_its_detail_before_the_line_that_scripts_match() {
    let bench = Bench::new();
    let submit = Box::new(|_| Err(refusal(3, "Invalid partition name specified", "invalid partition specified: nope")));
    let _served = serve(&bench.socket(), Fake { submit, ..Fake::default() });
    let ran = bench.run("sbatch", &["-p", "nope", "--wrap", "true"]);
    assert_eq!(
        ran.stderr,
        "sbatch: error: invalid partition specified: nope\n\
         sbatch: error: Batch job submission failed: Invalid partition name specified\n"
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[test]
fn a_submission_survives_a_controller_that_comes_back() {
    let bench = Bench::new();
    let mut command = bench.command("sbatch");
    command.env("SLUICE_CONNECT_TIMEOUT", "60").args(["--wrap", "true"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It has found nobody by now, or finds this one at once: either way it must get through.
    let _served = serve(&bench.socket(), Fake::default());
    assert_eq!(ran(child.wait_with_output().unwrap()).stdout, "Submitted batch job 7\n");
}

#[test]
fn test_only_tells_when_and_where() {
    let bench = Bench::new();
    let reply = v1::TestOnlyReply {
        job: 12,
        start: 1_796_032_784_000,
        cpus: 2,
        nodes: vec!["node1".into(), "node2".into()],
        partition: "main".into(),
    };
    let test_only = Box::new(move |_| Ok(reply.clone()));
    let _served = serve(&bench.socket(), Fake { test_only, ..Fake::default() });
    let ran = bench.run("sbatch", &["--test-only", "--wrap", "true"]);
    assert_eq!(
        ran.stderr,
        "sbatch: Job 12 to start at 2026-11-30T09:59:44 using 2 processors on nodes node[1-2] in partition main\n"
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn wait_exits_as_the_job_did() {
    for (state, code, signal, expected) in
        [("COMPLETED", 0, 0, 0), ("FAILED", 3, 0, 3), ("FAILED", 0, 9, 1), ("CANCELLED", 0, 0, 1)]
    {
        let bench = Bench::new();
        let record = |state: &str| v1::JobRecord { id: 7, state: state.to_owned(), ..Default::default() };
        let exit = Some(v1::ExitStatus { code, signal });
        let ended =
            v1::JobRecord { outcome: Some(Box::new(v1::Outcome { exit, ..Default::default() })), ..record(state) };
        let watch = vec![record("PENDING"), record("RUNNING"), ended];
        let _served = serve(&bench.socket(), Fake { watch, ..Fake::default() });
        assert_eq!(bench.run("sbatch", &["--wait", "--wrap", "true"]).code, Some(expected), "{state} {code}:{signal}");
    }
}

#[test]
fn wait_says_why_a_script_could_not_be_started() {
    let bench = Bench::new();
    let detail = "cannot open the output file /nowhere/out: No such file or directory".to_owned();
    let outcome = v1::Outcome {
        exit: Some(v1::ExitStatus { code: 0, signal: 53 }),
        reason: sluice_model::Reason::JobLaunchFailure.number(),
        detail: Some(detail.clone()),
        ..Default::default()
    };
    let record = |outcome| v1::JobRecord { id: 7, state: "FAILED".to_owned(), outcome, ..Default::default() };
    let ended = record(Some(Box::new(outcome)));
    // The record comes once more when the watch is renewed: said once.
    let watch = vec![ended.clone(), ended];
    let _served = serve(&bench.socket(), Fake { watch, ..Fake::default() });
    let ran = bench.run("sbatch", &["--wait", "--wrap", "true"]);
    assert_eq!(ran.stderr, format!("sbatch: error: Job 7 could not be started: {detail}\n"));
    assert_eq!(ran.code, Some(1));
}

/// salloc with a command that has said that it runs.
fn running_allocation(bench: &Bench) -> std::process::Child {
    let mut command = bench.command("salloc");
    let script = "trap 'exit 8' TERM; trap 'exit 9' INT QUIT USR1; touch started; \
                  while [ ! -e go ]; do sleep 0.05; done; exit 4";
    let child = command.args(["-n1", "sh", "-c", script]).stderr(Stdio::null()).spawn().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !bench.path("started").exists() {
        assert!(std::time::Instant::now() < deadline, "the command was not started");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

#[test]
fn salloc_ignores_signals_to_itself_while_its_command_runs_but_for_term_and_hup() {
    use nix::sys::signal::{Signal, kill};
    for (signals, expected) in
        [(&[Signal::SIGINT, Signal::SIGQUIT, Signal::SIGUSR1][..], 4), (&[Signal::SIGTERM], 8), (&[Signal::SIGHUP], 1)]
    {
        let bench = Bench::new();
        let watch = vec![v1::JobRecord { id: 7, state: "RUNNING".to_owned(), ..Default::default() }];
        let _served = serve(&bench.socket(), Fake { watch, watch_goes_on: true, ..Fake::default() });
        let mut child = running_allocation(&bench);
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        signals.iter().for_each(|s| kill(pid, *s).unwrap());
        if expected == 4 {
            bench.write("go", b"");
        }
        assert_eq!(child.wait().unwrap().code(), Some(expected), "{signals:?}");
    }
}

#[test]
fn a_command_that_waits_for_its_controller_says_so_once() {
    let bench = Bench::new();
    let mut command = bench.command("squeue");
    let ran = ran(command.env("SLUICE_CONNECT_TIMEOUT", "3").output().unwrap());
    let line = "squeue: error: Unable to contact slurm controller: retrying\n";
    assert!(ran.stderr.starts_with(line), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("retrying").count(), 1, "{}", ran.stderr);
    assert_eq!(ran.code, Some(1));
    assert!(!bench.run("squeue", &[]).stderr.contains("retrying"), "one that gives up at once does not retry");
}

#[test]
fn a_controller_that_takes_requests_and_answers_nothing_is_told_and_given_up() {
    let bench = Bench::new();
    // As a stopped process does: the kernel accepts for it.
    let _stopped = std::os::unix::net::UnixListener::bind(bench.socket()).unwrap();
    for (name, words, unknown) in
        [("squeue", &[][..], ""), ("sbatch", &["--wrap", "true"], "; whether it does what was asked is not known")]
    {
        let ran = ran(bench.command(name).env("SLUICE_ANSWER_TIMEOUT", "1").args(words).output().unwrap());
        let waits = format!("{name}: error: slurm controller does not answer: waiting until ");
        let gives_up = format!("{name}: error: no answer from the controller within 1 s{unknown}\n");
        assert!(ran.stderr.starts_with(&waits), "{}", ran.stderr);
        assert!(ran.stderr.contains(&gives_up), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("Socket timed out on send/recv operation\n"), "{}", ran.stderr);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)));
    }
}

#[test]
fn names_that_are_not_utf8_go_to_the_controller_and_come_back_byte_for_byte() {
    let bench = Bench::new();
    let name = b"a\xff\xc3b";
    let job = v1::JobRecord { id: 7, name: name.to_vec().into(), state: "PENDING".to_owned(), ..Default::default() };
    let list_jobs = Box::new(move |_| Ok(vec![job.clone()]));
    let served = serve(&bench.socket(), Fake { list_jobs, ..Fake::default() });
    let sent = bench.command("sbatch").arg("-J").arg(os(name)).args(["--wrap", "true"]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    let submitted = served.fake.submitted.lock().unwrap();
    assert_eq!(&submitted[0].spec.as_ref().unwrap().name[..], name);
    let shown = bench.command("squeue").args(["-ah", "-o", "%.6j|"]).output().unwrap();
    assert_eq!(shown.stdout, b"  a\xff\xc3b|\n");
    let json = bench.command("squeue").arg("--json").output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["jobs"][0]["name"], "a\u{fffd}\u{fffd}b");
    let refused = bench.command("sbatch").arg("--wckey").arg(os(name)).args(["--wrap", "true"]).output().unwrap();
    let detail = b"sbatch: error: invalid --wckey 'a\xff\xc3b': text in UTF-8";
    assert!(refused.stderr.starts_with(detail), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn scancel_of_a_step_that_is_not_there_is_an_error() {
    let bench = Bench::new();
    let step =
        |step, end| v1::StepRecord { key: Some(v1::StepKey { job: 7, attempt: 0, step }), end, ..Default::default() };
    let steps = vec![step(0, None), step(1, Some(1))];
    let job = v1::JobRecord { id: 7, state: "RUNNING".to_owned(), steps, ..Default::default() };
    let list_jobs = Box::new(move |_| Ok(vec![job.clone()]));
    let served = serve(&bench.socket(), Fake { list_jobs, ..Fake::default() });
    let unknown = bench.run("scancel", &["7.9"]);
    assert_eq!(unknown.stderr, "scancel: error: Kill job error on job step id 7.9: Invalid job id specified\n");
    let over = bench.run("scancel", &["7.1"]);
    let why = "Job/step already completing or completed";
    assert_eq!(over.stderr, format!("scancel: error: Kill job error on job step id 7.1: {why}\n"));
    assert_eq!((unknown.code, over.code), (Some(1), Some(1)));
    assert!(served.fake.controlled.lock().unwrap().is_empty(), "nothing was signalled");
    assert_eq!(bench.run("scancel", &["7.0"]).code, Some(0));
    assert_eq!(served.fake.controlled.lock().unwrap().len(), 1);
}

#[test]
fn scontrol_refuses_json_where_it_only_has_text() {
    let bench = Bench::new();
    for words in [&["show", "config"][..], &["show", "step"], &["show", "lic"], &["show", "hostnames", "n[1-2]"]] {
        let ran = bench.run("scontrol", &[&["--json"], words].concat());
        assert!(ran.stderr.starts_with("scontrol: error: --json is not supported for show "), "{}", ran.stderr);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)), "{words:?}");
    }
    let ran = bench.run("scontrol", &["completing", "--json"]);
    assert!(ran.stderr.contains("not supported for completing"), "{}", ran.stderr);
    let ran = bench.run("scontrol", &["show", "res", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((json["reservations"].as_array().map(Vec::len), ran.code), (Some(0), Some(0)));
}

#[test]
fn an_allocation_that_is_cancelled_while_it_waits_is_told_of() {
    let bench = Bench::new();
    let record = |state: &str| v1::JobRecord { id: 7, state: state.to_owned(), ..Default::default() };
    let watch = vec![record("PENDING"), record("CANCELLED")];
    let _served = serve(&bench.socket(), Fake { watch, ..Fake::default() });
    let ran = bench.run("srun", &["true"]);
    assert!(ran.stderr.contains("srun: Job allocation 7 has been revoked\n"), "{}", ran.stderr);
    assert!(
        ran.stderr.ends_with("srun: error: Unable to allocate resources: Job/step already completing or completed\n")
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn scancel_is_silent_about_what_has_ended_unless_asked() {
    let bench = Bench::new();
    let control = Box::new(|_| Err(refusal(1, "Invalid job id specified", "")));
    let _served = serve(&bench.socket(), Fake { control, ..Fake::default() });
    let silent = bench.run("scancel", &["99999"]);
    assert_eq!((silent.stderr.as_str(), silent.code), ("", Some(0)));
    let verbose = bench.run("scancel", &["-v", "99999"]);
    assert_eq!(
        verbose.stderr,
        "scancel: Terminating job 99999\n\
         scancel: error: Kill job error on job id 99999: Invalid job id specified\n"
    );
    assert_eq!(verbose.code, Some(0));
    let signal = bench.run("scancel", &["99999", "--signal", "USR1"]);
    assert_eq!(signal.stderr, "scancel: error: Kill job error on job id 99999: Invalid job id specified\n");
    assert_eq!(signal.code, Some(1));
    assert_eq!(bench.run("scancel", &["abc"]).stderr, "scancel: error: Invalid job id abc\n");
}

#[test]
fn scancel_asks_before_each_job_and_takes_no_for_an_answer() {
    let bench = Bench::new();
    let job = |id, name: &str| v1::JobRecord {
        id,
        name: name.as_bytes().to_vec().into(),
        partition: "debug".into(),
        state: "RUNNING".into(),
        ..Default::default()
    };
    let jobs = vec![job(5, "aa"), job(6, "bb")];
    let served = serve(&bench.socket(), Fake { list_jobs: Box::new(move |_| Ok(jobs.clone())), ..Fake::default() });
    let ran = bench.run_with_input("scancel", &["-i", "--user", "root"], b"n\ny\n");
    assert_eq!(
        ran.stdout,
        "Cancel job_id=5 name=aa partition=debug [y/n]? Cancel job_id=6 name=bb partition=debug [y/n]? "
    );
    let controlled = served.fake.controlled.lock().unwrap();
    let cancelled: Vec<u32> = controlled
        .iter()
        .filter_map(|c| match &c.action {
            Some(v1::control_request::Action::Cancel(cancel)) => cancel.target.as_ref().map(|t| t.job),
            _ => None,
        })
        .collect();
    assert_eq!(cancelled, [6]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::new();
    let mut child = bench.command("sluice").arg("compat").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn commands_of_later_releases_say_so_by_name() {
    let bench = Bench::new();
    let ran = bench.run("sluice", &["sreport", "cluster"]);
    assert!(ran.stderr.starts_with("sreport: error: sreport is not available"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_configuration_is_checked_without_a_cluster() {
    let bench = Bench::new();
    let good = "cluster_name = \"c\"\n[[node]]\nname = \"n1\"\ncpus = 2\nmemory_mb = 1000\n\
                [[partition]]\nname = \"main\"\nnodes = \"n1\"\n";
    let file = bench.write("good.toml", good.as_bytes());
    let ran = bench.run("sluice", &["config", "check", &file]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let file = bench.write("bad.toml", format!("{good}colour = \"red\"\n").as_bytes());
    let ran = bench.run("sluice", &["config", "check", &file]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("bad.toml:9:") && ran.stderr.contains("colour"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("bad.toml: 1 problem\n"), "{}", ran.stderr);
    // Without a file: the one beside the client file.
    let ran = bench.run("sluice", &["config", "check"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no cluster configuration; looked at /"), "{}", ran.stderr);
    let file = bench.write("sluice.toml", good.as_bytes());
    let ran = bench.run("sluice", &["config", "check"]);
    assert_eq!((ran.stdout, ran.code), (format!("{file}: cluster c, 1 nodes, 1 partitions: good\n"), Some(0)));
}

#[test]
fn completion_scripts_are_shell() {
    let bench = Bench::new();
    let script = bench.run("sluice", &["completion", "bash"]).stdout;
    let file = bench.write("completion.bash", script.as_bytes());
    let checked = std::process::Command::new("bash").args(["-n", &file]).status().unwrap();
    assert!(checked.success());
    assert!(script.contains("--cpus-per-task="));
}
