//! Daemons killed at any moment of a busy run: nothing acknowledged is lost, no id is given twice, nothing runs twice,
//! running jobs go on, accounting is complete.
//!
//! Randomised; the seed is printed and `SLUICE_SEED=…` repeats it.

use nix::sys::signal::Signal;
use sluice_tests::cluster::{Cluster, Shape, wait_for};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// xorshift64*: enough to choose moments.
struct Random(u64);

impl Random {
    fn from_environment(test: &str) -> Random {
        let fresh = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            now.as_nanos() as u64 | 1
        };
        let seed = std::env::var("SLUICE_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(fresh);
        println!("{test}: SLUICE_SEED={seed}");
        Random(seed.max(1))
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
    }
}

/// The exit code that a job of this number gives itself.
fn wanted_exit(number: u32) -> u32 {
    if number.is_multiple_of(4) { 3 } else { 0 }
}

/// Notes each run, works for a moment, notes its end, exits with its own code.
fn script(number: u32, tenths: u64) -> String {
    format!(
        "#!/bin/sh\necho \"$SLURM_JOB_ID ${{SLURM_RESTART_COUNT:-0}}\" >> ran/{number}\nsleep 0.{tenths}\necho end >> ran/{number}\nexit {}\n",
        wanted_exit(number)
    )
}

fn busy_cluster() -> Cluster {
    let config = "[timing]\nkill_wait_secs = 2\nheartbeat_secs = 1\n".to_owned();
    let cluster = Cluster::with(Shape { nodes: 3, cpus: 8, memory_mb: 4000, gpus: 0, config });
    std::fs::create_dir(cluster.work().join("ran")).expect("a folder for what ran");
    cluster
}

/// Submits `count` jobs from several threads while `disturb` is called over and over; gives number → id of every
/// submission that was acknowledged.
fn submit_while(
    cluster: &Cluster,
    count: u32,
    random: &mut Random,
    mut disturb: impl FnMut(&mut Random),
) -> BTreeMap<u32, u32> {
    let acknowledged = Mutex::new(BTreeMap::new());
    let next = Mutex::new(0u32);
    let finished = AtomicBool::new(false);
    let seed = random.below(1 << 40);
    std::thread::scope(|scope| {
        let submitters: Vec<_> = (0..4)
            .map(|thread| {
                let (acknowledged, next) = (&acknowledged, &next);
                scope.spawn(move || {
                    let mut random = Random(seed + thread + 1);
                    loop {
                        let number = {
                            let mut next = next.lock().expect("no panic under the lock");
                            if *next >= count {
                                return;
                            }
                            *next += 1;
                            *next
                        };
                        let file = cluster.file(&format!("job{number}.sh"), &script(number, random.below(7)));
                        let mem = "--mem=50".to_owned();
                        let mut sbatch = cluster.command("sbatch");
                        sbatch.args(["--parsable", &mem, "-o", "/dev/null"]).arg(&file);
                        // However often the controller is killed: sbatch goes on until it has its answer.
                        let said = sbatch.env("SLUICE_CONNECT_TIMEOUT", "60").output().expect("sbatch runs");
                        assert!(said.status.success(), "{said:?}");
                        let id = String::from_utf8_lossy(&said.stdout).trim().parse().expect("an id");
                        acknowledged.lock().expect("no panic under the lock").insert(number, id);
                    }
                })
            })
            .collect();
        let watch = scope.spawn(|| {
            for thread in submitters {
                thread.join().expect("a submitting thread");
            }
            finished.store(true, Ordering::Relaxed);
        });
        while !finished.load(Ordering::Relaxed) {
            disturb(random);
        }
        watch.join().expect("the watching thread");
    });
    acknowledged.into_inner().expect("no panic under the lock")
}

/// What must hold at the end for every acknowledged submission.
fn judge(cluster: &Cluster, acknowledged: &BTreeMap<u32, u32>) {
    let ids: BTreeSet<u32> = acknowledged.values().copied().collect();
    assert_eq!(ids.len(), acknowledged.len(), "an id was given twice: {acknowledged:?}");
    assert!(acknowledged.len() > 10, "hardly anything was acknowledged: the test shows nothing");
    for (&number, &id) in acknowledged {
        let state = cluster.wait_end(id);
        let exit = wanted_exit(number);
        let wanted = if exit == 0 { "COMPLETED" } else { "FAILED" };
        assert_eq!(state, wanted, "job {id} (number {number})");
        let shown = cluster.ok(&["sacct", "-X", "-n", "-P", "--format=ExitCode", "-j", &id.to_string()]);
        assert_eq!(shown, format!("{exit}:0"), "exit code of job {id}");
        let ran = cluster.read(&format!("ran/{number}")).unwrap_or_default();
        let starts: Vec<&str> = ran.lines().filter(|l| *l != "end").collect();
        assert_eq!(starts, [format!("{id} 0")], "job {id} must run once, as its first attempt: {ran:?}");
        assert_eq!(ran.lines().filter(|l| *l == "end").count(), 1, "job {id} was cut short: {ran:?}");
    }
}

#[test]
fn a_controller_killed_again_and_again_loses_nothing_and_runs_nothing_twice() {
    let mut random = Random::from_environment("kill the controller");
    let cluster = busy_cluster();
    let mut kills = 0;
    let acknowledged = submit_while(&cluster, 60, &mut random, |random| {
        std::thread::sleep(Duration::from_millis(100 + random.below(500)));
        cluster.kill("ctld", Signal::SIGKILL);
        kills += 1;
        std::thread::sleep(Duration::from_millis(random.below(150)));
        cluster.up();
    });
    println!("{kills} kills, {} submissions acknowledged", acknowledged.len());
    assert!(kills > 0, "the controller was never killed");
    judge(&cluster, &acknowledged);
    let all = cluster.ok(&["sacct", "-X", "-n", "-P", "--format=JobIDRaw"]);
    assert_eq!(all.lines().count(), acknowledged.len(), "a submission that was sent again became two jobs: {all}");
}

#[test]
fn a_node_daemon_killed_again_and_again_keeps_its_jobs_and_tells_how_they_ended() {
    let mut random = Random::from_environment("kill node daemons");
    let cluster = busy_cluster();
    let mut kills = 0;
    let acknowledged = submit_while(&cluster, 60, &mut random, |random| {
        std::thread::sleep(Duration::from_millis(100 + random.below(300)));
        let node = format!("node{}", 1 + random.below(3));
        cluster.kill(&node, Signal::SIGKILL);
        kills += 1;
        std::thread::sleep(Duration::from_millis(random.below(300)));
        cluster.up();
    });
    println!("{kills} kills, {} submissions acknowledged", acknowledged.len());
    assert!(kills > 0, "no node daemon was killed");
    assert_eq!(acknowledged.len(), 60, "the controller was up all the time");
    judge(&cluster, &acknowledged);
}

#[test]
fn a_running_job_survives_all_daemons_and_its_end_in_between_is_reported() {
    let cluster = busy_cluster();
    let file = cluster.file(
        "long.sh",
        "#!/bin/sh\necho \"$SLURM_JOB_ID\" >> ran/long\nuntil [ -e go ]; do sleep 0.05; done\necho end >> ran/long\nexit 7\n",
    );
    let id = cluster.submit(&["-o", "/dev/null", &file.display().to_string()]);
    wait_for("the job's start", || match cluster.read("ran/long") {
        Some(text) if text.trim() == id.to_string() => Ok(()),
        other => Err(other),
    });
    for daemon in ["ctld", "node1", "node2", "node3"] {
        cluster.kill(daemon, Signal::SIGKILL);
    }
    // It ends while no daemon is there to see it.
    cluster.file("go", "");
    wait_for("the job's end", || match cluster.read("ran/long") {
        Some(text) if text.ends_with("end\n") => Ok(()),
        other => Err(other),
    });
    cluster.up();
    assert_eq!(cluster.wait_end(id), "FAILED");
    assert_eq!(cluster.ok(&["sacct", "-X", "-n", "-P", "--format=ExitCode", "-j", &id.to_string()]), "7:0");
    assert_eq!(cluster.read("ran/long").unwrap_or_default(), format!("{id}\nend\n"));
}
