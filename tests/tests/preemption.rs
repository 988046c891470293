//! Preemption of real processes: cancelled, requeued, given notice, stopped and resumed.

use sluice_tests::cluster::{Cluster, Shape, wait_for};

/// One node of four CPUs; QOS high may take from three others, each of which is preempted in its own way.
fn cluster() -> Cluster {
    let config = format!("{}[preemption]\ntype = \"qos\"\nmode = \"requeue\"\n", Shape::default().config);
    let cluster = Cluster::with(Shape { nodes: 1, config, ..Shape::default() });
    cluster.ok(&["sacctmgr", "-i", "add", "qos", "low"]);
    cluster.ok(&["sacctmgr", "-i", "add", "qos", "cheap", "preemptmode=cancel", "gracetime=30"]);
    cluster.ok(&["sacctmgr", "-i", "add", "qos", "idle", "preemptmode=suspend"]);
    cluster.ok(&["sacctmgr", "-i", "add", "qos", "high", "preempt=low,cheap,idle"]);
    cluster
}

/// A job of all four CPUs that has begun to write.
fn begun(cluster: &Cluster, qos: &str, script: &str, more: &[&str]) -> u32 {
    let file = cluster.file(&format!("{qos}.sh"), &format!("#!/bin/sh\n{script}\n"));
    let qos = format!("--qos={qos}");
    let file = file.to_string_lossy().into_owned();
    let mut words = vec!["-c4", "-t60", "--mem=100", &qos, "--output=out-%j"];
    words.extend(more);
    words.push(&file);
    let job = cluster.submit(&words);
    wait_for("the script writes", || match cluster.read(&format!("out-{job}")) {
        Some(text) if text.contains("begin") => Ok(()),
        other => Err(other),
    });
    job
}

#[test]
fn a_requeued_victim_runs_again_after_the_job_that_took_its_room() {
    let cluster = cluster();
    let low =
        begun(&cluster, "low", "echo begin $SLURM_RESTART_COUNT; test -n \"$SLURM_RESTART_COUNT\" || sleep 600", &[]);
    let high = cluster.submit(&["-c4", "-t5", "--mem=100", "--qos=high", "--output=/dev/null", "--wrap=true"]);
    assert_eq!(cluster.wait_end(high), "COMPLETED");
    assert_eq!(cluster.wait_end(low), "COMPLETED");
    let id = low.to_string();
    assert_eq!(cluster.ok(&["sacct", "-DXnP", "-j", &id, "--format=state,exitcode"]), "PREEMPTED|0:15\nCOMPLETED|0:0");
    assert!(cluster.ok(&["scontrol", "show", "job", &id]).contains("Restarts=1"));
    let why = cluster.ok(&["sluice", "why", &id]);
    assert!(why.contains(&format!("preempted once, by job {high}")), "{why}");
}

#[test]
fn a_victim_with_grace_gets_its_checkpoint_signal_and_may_finish() {
    let cluster = cluster();
    let script = "trap 'echo saved; exit 3' USR1; echo begin; while :; do sleep 0.1; done";
    let cheap = begun(&cluster, "cheap", script, &["--signal=B:USR1@1"]);
    let high = cluster.submit(&["-c4", "-t5", "--mem=100", "--qos=high", "--output=/dev/null", "--wrap=true"]);
    // Long before the grace is over.
    assert_eq!(cluster.wait_end(high), "COMPLETED");
    assert_eq!(cluster.wait_end(cheap), "PREEMPTED");
    assert_eq!(cluster.read(&format!("out-{cheap}")).as_deref(), Some("begin\nsaved\n"));
}

#[test]
fn a_suspended_victim_stands_still_and_goes_on() {
    let cluster = cluster();
    let idle = begun(&cluster, "idle", "echo begin; while ! test -e go-on; do sleep 0.1; done; echo end", &[]);
    let file = cluster.file("high.sh", "#!/bin/sh\nwhile ! test -e done; do sleep 0.1; done\n");
    let file = file.to_string_lossy().into_owned();
    let high = cluster.submit(&["-c2", "-t5", "--mem=100", "--qos=high", "--output=/dev/null", &file]);
    cluster.wait_state(high, "RUNNING");
    cluster.wait_state(idle, "SUSPENDED");
    let id = idle.to_string();
    assert_eq!(cluster.ok(&["squeue", "-h", "-j", &id, "-o", "%t"]), "S");
    let why = cluster.ok(&["sluice", "why", &id]);
    assert!(why.contains(&format!("so that job {high} of")), "{why}");
    assert_ne!(cluster.run(&["scontrol", "resume", &id]).code, 0);
    cluster.file("go-on", "");
    cluster.file("done", "");
    assert_eq!(cluster.wait_end(high), "COMPLETED");
    assert_eq!(cluster.wait_end(idle), "COMPLETED");
    assert_eq!(cluster.read(&format!("out-{idle}")).as_deref(), Some("begin\nend\n"));
}
