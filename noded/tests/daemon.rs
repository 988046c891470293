//! The node daemon as a process, under a controller made for the test: launches, ends, restarts, steps over two nodes.

#[path = "daemon/bench.rs"]
mod bench;

use bench::{Bench, Job, batch};
use prost::Message;
use sluice_proto::v1::*;
use step_input::Kind as In;
use step_output::Kind as Out;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_job_is_confirmed_runs_and_is_gone() {
    let bench = Bench::start(1).await;
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho $SLURM_JOB_ID $1 > out\nexit 3\n");
    bench.send("node1", job.launch());
    let ended = bench.report("node1", batch(5)).await;
    assert_eq!(ended.exit, Some(ExitStatus { code: 3, signal: 0 }));
    assert_eq!(ended.failure, None);
    assert_eq!(bench.read("out"), "5 arg\n");
    assert!(bench.reports("node1").iter().any(|r| matches!(&r.kind, Some(report::Kind::Confirmed(c)) if c.job == 5)));
    bench.send("node1", job.end());
    bench.gone("node1", 5).await;
    bench.until("the job's folder to go", || !bench.path("node1/jobs/5.0").exists()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_comes_again_runs_nothing_again() {
    let bench = Bench::start(1).await;
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho ran >> runs\n");
    for _ in 0..3 {
        bench.send("node1", job.launch());
    }
    bench.report("node1", batch(5)).await;
    bench.send("node1", job.launch());
    bench.send("node1", job.end());
    bench.gone("node1", 5).await;
    bench.send("node1", job.launch());
    // Another job after it: by then the last launch has been dealt with.
    let other = Job::batch(&bench, 6, &["node1"], "#!/bin/sh\nexit 0\n");
    bench.send("node1", other.launch());
    bench.report("node1", batch(6)).await;
    assert_eq!(bench.read("runs"), "ran\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_the_cluster_did_not_sign_is_refused() {
    let bench = Bench::start(1).await;
    let mut forged = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho ran >> runs\n").launch();
    let controller_message::Kind::Launch(order) = &mut forged else { panic!() };
    let credential = order.credential.as_mut().unwrap();
    let mut body = JobCredentialBody::decode(&credential.body[..]).unwrap();
    body.uid = 0;
    body.job = 9;
    credential.body = body.encode_to_vec().into();
    bench.send("node1", forged);
    let good = Job::batch(&bench, 6, &["node1"], "#!/bin/sh\nexit 0\n");
    bench.send("node1", good.launch());
    bench.report("node1", batch(6)).await;
    assert_eq!(bench.read("runs"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ends_while_the_daemon_is_dead_is_reported_truly() {
    let mut bench = Bench::start(1).await;
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho up > up\nread x < fifo\nexit 7\n");
    bench.fifo("fifo");
    bench.send("node1", job.launch());
    bench.until("the script", || bench.read("up") == "up\n").await;
    bench.kill("node1");
    bench.write_fifo("fifo");
    bench.until("the last word", || bench.path("node1/jobs/5.0/batch/exit").exists()).await;
    bench.start_node("node1").await;
    let ended = bench.report("node1", batch(5)).await;
    assert_eq!(ended.exit, Some(ExitStatus { code: 7, signal: 0 }));
    assert!(bench.last_holds("node1").contains(&(5, 0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_adopted_and_can_be_ended() {
    let mut bench = Bench::start(1).await;
    let script = "#!/bin/sh\n(trap '' TERM; setsid sleep 1000 & echo $! > pid)\necho up > up\nsleep 1000\n";
    let job = Job::batch(&bench, 5, &["node1"], script);
    bench.send("node1", job.launch());
    bench.until("the script", || bench.read("up") == "up\n").await;
    bench.kill("node1");
    bench.start_node("node1").await;
    bench.send("node1", job.launch());
    bench.send("node1", job.end());
    let ended = bench.report("node1", batch(5)).await;
    assert_eq!(ended.exit, Some(ExitStatus { code: 0, signal: 15 }), "told to end before anything is killed");
    bench.gone("node1", 5).await;
    let daemon: i32 = bench.read("pid").trim().parse().unwrap();
    assert!(!bench::alive(daemon));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_acknowledged_comes_again_in_order() {
    let mut bench = Bench::start(1).await;
    bench.acknowledge(false);
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\nexit 1\n");
    bench.send("node1", job.launch());
    bench.report("node1", batch(5)).await;
    bench.send("node1", job.end());
    bench.gone("node1", 5).await;
    bench.kill("node1");
    bench.forget_reports();
    bench.acknowledge(true);
    bench.start_node("node1").await;
    bench.gone("node1", 5).await;
    let again = bench.reports("node1");
    assert!(again.windows(2).all(|w| w[0].sequence + 1 == w[1].sequence), "{again:?}");
    assert!(matches!(again[0].kind, Some(report::Kind::Confirmed(_))));
    assert!(bench.last_holds("node1").contains(&(5, 0)), "held until its end is acknowledged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_runs_on_two_nodes_and_is_recorded() {
    let bench = Bench::start(2).await;
    let job = Job::allocation(&bench, 5, &["node1", "node2"]);
    for node in ["node1", "node2"] {
        bench.send(node, job.launch());
    }
    let request = StepRequest { job: 5, ntasks: Some(4), name: "show".into(), ..StepRequest::default() };
    let grant = bench.grant("node1", request, None).await.unwrap();
    let show =
        "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID $SLURM_TASKS_PER_NODE $SLURM_NTASKS; cat";
    let mut parts = Vec::new();
    for node in ["node1", "node2"] {
        parts.push(bench.run_step(node, &grant, show, b"input\n").await);
    }
    let mut all = Vec::new();
    for part in &parts {
        assert_eq!(part.ended.worst, Some(ExitStatus::default()));
        all.extend(part.output.iter().map(|(task, text)| (*task, String::from_utf8_lossy(text).into_owned())));
    }
    all.sort();
    let want = |task: u32, line: &str| (task, format!("{line}\ninput\n"));
    assert_eq!(
        all,
        [
            want(0, "0 0 0 0 2(x2) 4"),
            want(1, "1 1 0 0 2(x2) 4"),
            want(2, "2 0 1 0 2(x2) 4"),
            want(3, "3 1 1 0 2(x2) 4")
        ]
    );
    let record = bench.step_end("node1", 5, 0).await;
    assert_eq!((record.state.as_str(), record.tasks, record.nodes.len()), ("COMPLETED", 4, 2));
    assert!(bench.reports("node2").iter().all(|r| !matches!(r.kind, Some(report::Kind::Step(_)))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_waits_for_cpus_and_a_killed_one_makes_room() {
    let bench = Bench::start(1).await;
    let job = Job::allocation(&bench, 5, &["node1"]);
    bench.send("node1", job.launch());
    let whole = || StepRequest { job: 5, ntasks: Some(1), ..StepRequest::default() };
    // The credential goes along, as srun's does: the launch may not have come yet.
    let first = bench.grant("node1", whole(), Some(job.credential())).await.unwrap();
    let running = tokio::spawn(bench.run_step("node1", &first, "sleep 1000", b""));
    let mut waiting = bench.create_step("node1", whole(), None).await;
    let queued = waiting.message().await.unwrap().unwrap();
    assert!(matches!(queued.kind, Some(create_step_reply::Kind::Queued(q)) if q.reason == "Requested nodes are busy"));
    bench.until_async("the step's process", async || bench.processes("node1", 5).await.iter().any(|p| p.pid > 0)).await;
    let key = Some(StepKey { job: 5, attempt: 0, step: 0 });
    bench.steps("node1").await.signal_step(SignalStepRequest { key, signal: 9, time_limit: false }).await.unwrap();
    let ended = running.await.unwrap().ended;
    assert!(ended.cancelled);
    assert_eq!(bench.step_end("node1", 5, 0).await.state, "CANCELLED");
    let granted = waiting.message().await.unwrap().unwrap();
    assert!(matches!(granted.kind, Some(create_step_reply::Kind::Granted(_))));
}

/// Says so when told to end, and takes its time.
const SAVES: &str =
    "trap 'echo saving; read x < fifo; echo saved; exit 3' TERM; echo up > up; while :; do sleep 0.02; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_step_of_a_job_that_ends_may_save_and_is_told_once() {
    let bench = Bench::start(1).await;
    bench.fifo("fifo");
    let job = Job::allocation(&bench, 5, &["node1"]);
    bench.send("node1", job.launch());
    let request = StepRequest { job: 5, ntasks: Some(1), ..StepRequest::default() };
    let grant = bench.grant("node1", request, Some(job.credential())).await.unwrap();
    let (inputs, outputs) = bench.open_step("node1", &grant, SAVES).await;
    bench.until("the trap", || bench.read("up") == "up\n").await;
    bench.send("node1", job.signal(15));
    bench.send("node1", job.end());
    // As an srun that is itself of the job passes it on.
    inputs.send(StepInput { kind: Some(In::Signal(15)) }).unwrap();
    bench.write_fifo("fifo");
    let part = bench::collect(inputs, outputs).await;
    let text = String::from_utf8_lossy(&part.output[&0]).into_owned();
    assert_eq!(text.matches("saving").count(), 1, "{text}");
    assert_eq!(text.matches("saved").count(), 1, "{text}");
    assert_eq!(text.matches("*** STEP 5.0 ON node1 CANCELLED AT ").count(), 1, "{text}");
    let record = bench.step_end("node1", 5, 0).await;
    assert_eq!((record.state.as_str(), record.exit), ("FAILED", Some(ExitStatus { code: 3, signal: 0 })));
    bench.gone("node1", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_beyond_its_own_time_limit_may_save_before_it_is_killed() {
    let bench = Bench::start(1).await;
    bench.fifo("fifo");
    let job = Job::allocation(&bench, 5, &["node1"]);
    bench.send("node1", job.launch());
    let request = StepRequest { job: 5, ntasks: Some(1), time_limit_secs: Some(1), ..StepRequest::default() };
    let grant = bench.grant("node1", request.clone(), Some(job.credential())).await.unwrap();
    let running = tokio::spawn(bench.run_step("node1", &grant, SAVES, b""));
    bench.write_fifo("fifo");
    let part = running.await.unwrap();
    let text = String::from_utf8_lossy(&part.output[&0]).into_owned();
    // The shell's own word on its killed child comes on the other stream, anywhere between.
    for line in ["saving\n", "saved\n", " DUE TO TIME LIMIT ***\n"] {
        assert_eq!(text.matches(line).count(), 1, "{text}");
    }
    assert_eq!(bench.step_end("node1", 5, 0).await.state, "TIMEOUT");

    let grant = bench.grant("node1", request.clone(), None).await.unwrap();
    let part = bench.run_step("node1", &grant, "exec sleep 1000", b"").await;
    assert_eq!(part.ended.worst, Some(ExitStatus { code: 0, signal: 15 }));

    let grant = bench.grant("node1", request, None).await.unwrap();
    let part = bench.run_step("node1", &grant, "trap '' TERM; while :; do sleep 1000; done", b"").await;
    assert_eq!(part.ended.worst, Some(ExitStatus { code: 0, signal: 9 }));
    assert_eq!(bench.step_end("node1", 5, 2).await.state, "TIMEOUT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_steps_own_time_limit_outlives_the_daemon_before_and_after_it_is_over() {
    let mut bench = Bench::start(2).await;
    let job = Job::allocation(&bench, 5, &["node1", "node2"]);
    for node in ["node1", "node2"] {
        bench.send(node, job.launch());
    }
    // On the other node than the step manager's.
    let request =
        StepRequest { job: 5, ntasks: Some(1), relative: Some(1), time_limit_secs: Some(1), ..StepRequest::default() };
    let grant = bench.grant("node1", request.clone(), Some(job.credential())).await.unwrap();
    let running = tokio::spawn(bench.run_step("node2", &grant, "echo up > up; exec sleep 1000", b""));
    bench.until("the step", || bench.read("up") == "up\n").await;
    bench.kill("node1");
    bench.start_node("node1").await;
    let text = String::from_utf8_lossy(&running.await.unwrap().output[&0]).into_owned();
    assert_eq!(text.matches("*** STEP 5.0 ON node2 CANCELLED AT ").count(), 1, "{text}");
    assert_eq!(text.matches(" DUE TO TIME LIMIT ***\n").count(), 1, "{text}");
    assert_eq!(bench.step_end("node1", 5, 0).await.state, "TIMEOUT");

    let stubborn = "trap 'echo told > told' TERM; while :; do sleep 0.02; done";
    let grant = bench.grant("node1", request, None).await.unwrap();
    let running = tokio::spawn(bench.run_step("node2", &grant, stubborn, b""));
    bench.until("the trap", || bench.read("told") == "told\n").await;
    bench.kill("node1");
    bench.start_node("node1").await;
    assert_eq!(running.await.unwrap().ended.worst, Some(ExitStatus { code: 0, signal: 9 }));
    assert_eq!(bench.step_end("node1", 5, 1).await.state, "TIMEOUT");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_seen_the_end_of_its_step_finds_the_resources_free() {
    let bench = Bench::start(1).await;
    let job = Job::allocation(&bench, 5, &["node1"]);
    bench.send("node1", job.launch());
    for _ in 0..20 {
        let whole = StepRequest { job: 5, ntasks: Some(1), ..StepRequest::default() };
        // Panics when it has to wait.
        let grant = bench.grant("node1", whole, Some(job.credential())).await.unwrap();
        bench.run_step("node1", &grant, "exit 0", b"").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_outlives_the_daemon_and_its_client_comes_back() {
    let mut bench = Bench::start(1).await;
    let job = Job::allocation(&bench, 5, &["node1"]);
    bench.send("node1", job.launch());
    let request = StepRequest { job: 5, ntasks: Some(1), ..StepRequest::default() };
    let grant = bench.grant("node1", request, Some(job.credential())).await.unwrap();
    bench.fifo("fifo");
    let (inputs, mut outputs) = bench.open_step("node1", &grant, "echo one; read x < fifo; echo two; exit 4").await;
    let mut received = 0;
    let mut text = Vec::new();
    while text != b"one\n" {
        let message = outputs.message().await.unwrap().unwrap();
        received = received.max(message.sequence);
        if let Some(Out::Output(o)) = message.kind {
            text.extend_from_slice(&o.data);
        }
    }
    bench.kill("node1");
    drop((inputs, outputs));
    bench.write_fifo("fifo");
    bench.start_node("node1").await;
    let attach = StepAttach { key: Some(StepKey { job: 5, attempt: 0, step: 0 }), received };
    let part = bench.collect("node1", vec![In::Attach(attach)]).await;
    assert_eq!(part.output[&0], b"two\n");
    assert_eq!(part.ended.worst, Some(ExitStatus { code: 4, signal: 0 }));
    assert_eq!(bench.step_end("node1", 5, 0).await.state, "FAILED");
    bench.send("node1", job.end());
    bench.gone("node1", 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_beyond_the_jobs_resources_is_refused_in_slurms_words() {
    let bench = Bench::start(1).await;
    let job = Job::allocation(&bench, 5, &["node1"]);
    let request = StepRequest { job: 5, ntasks: Some(99), ..StepRequest::default() };
    let refused = bench.grant("node1", request, Some(job.credential())).await.unwrap_err();
    assert_eq!(refused.message(), "More processors requested than permitted");
    let stranger = StepRequest { job: 77, ntasks: Some(1), ..StepRequest::default() };
    let refused = bench.grant("node1", stranger, None).await.unwrap_err();
    assert_eq!(refused.message(), "Invalid job id specified");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_papers_bring_no_job_back() {
    let bench = Bench::start(1).await;
    let job = Job::started_before(&bench, 5, &["node1"], 2 * 3_600_000);
    let request = || StepRequest { job: 5, ntasks: Some(1), ..StepRequest::default() };
    let refused = bench.grant("node1", request(), Some(job.credential())).await.unwrap_err();
    assert_eq!(refused.message(), "Job/step already completing or completed");

    // Nor do those of a job that has just ended here.
    let job = Job::allocation(&bench, 6, &["node1"]);
    let request = || StepRequest { job: 6, ntasks: Some(1), ..StepRequest::default() };
    bench.grant("node1", request(), Some(job.credential())).await.unwrap();
    bench.send("node1", job.end());
    bench.gone("node1", 6).await;
    let refused = bench.grant("node1", request(), Some(job.credential())).await.unwrap_err();
    assert_eq!(refused.message(), "Job/step already completing or completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_a_reboot_took_is_not_held_and_never_runs_again() {
    let mut bench = Bench::start(1).await;
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho ran >> runs\nread x < fifo\n");
    bench.fifo("fifo");
    bench.send("node1", job.launch());
    bench.until("the script", || bench.read("runs") == "ran\n").await;
    bench.until("the confirmation", || !bench.reports("node1").is_empty()).await;
    bench.kill("node1");
    std::fs::write(bench.path("node1/jobs/5.0/boot"), "another kernel").unwrap();
    bench.forget_reports();
    bench.start_node("node1").await;
    bench.send("node1", job.launch());
    let ended = bench.report("node1", batch(5)).await;
    assert!(ended.node_fault && ended.failure.unwrap().contains("the node went down"));
    assert_eq!(bench.read("runs"), "ran\n");
    // (Here the kernel is the same one after all: the script must not be left behind.)
    bench.write_fifo("fifo");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_had_ended_before_a_reboot_is_reported_truly() {
    let mut bench = Bench::start(1).await;
    let job = Job::batch(&bench, 5, &["node1"], "#!/bin/sh\necho up > up\nread x < fifo\nexit 6\n");
    bench.fifo("fifo");
    bench.send("node1", job.launch());
    bench.until("the script", || bench.read("up") == "up\n").await;
    bench.kill("node1");
    bench.write_fifo("fifo");
    bench.until("the last word", || bench.path("node1/jobs/5.0/batch/exit").exists()).await;
    std::fs::write(bench.path("node1/jobs/5.0/boot"), "another kernel").unwrap();
    bench.start_node("node1").await;
    let ended = bench.report("node1", batch(5)).await;
    assert_eq!((ended.exit, ended.node_fault), (Some(ExitStatus { code: 6, signal: 0 }), false));
    assert!(bench.last_holds("node1").contains(&(5, 0)), "held until its end is acknowledged");
}
