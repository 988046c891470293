//! Measures Sluice on this machine: `cargo build --release && target/release/sluice-bench [NAME…]`.
//!
//! Each measurement starts a cluster of its own in a temporary folder, with the release programs beside this one, and
//! prints one line: name, figure, unit. Figures go to docs/performance.md; nothing here passes or fails.

use sluice_proto::v1;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

type Client = v1::controller_client::ControllerClient<tonic::transport::Channel>;
type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A cluster that is taken down when dropped.
struct Cluster {
    dir: tempfile::TempDir,
    sluice: PathBuf,
}

impl Cluster {
    fn up(nodes: u32, cpus: u32) -> Result<Cluster, Box<dyn std::error::Error>> {
        let sluice = std::env::current_exe()?.with_file_name("sluice");
        let dir = tempfile::tempdir()?;
        let status = Command::new(&sluice)
            .args(["local", "up", "--dir"])
            .arg(dir.path())
            .args(["--nodes", &nodes.to_string(), "--cpus", &cpus.to_string(), "--memory", "64000"])
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            return Err("the cluster did not start".into());
        }
        Ok(Cluster { dir, sluice })
    }

    fn command(&self, name: &str) -> Command {
        Command::new(self.dir.path().join("bin").join(name))
    }

    fn pid(&self) -> Result<u32, Box<dyn std::error::Error>> {
        Ok(std::fs::read_to_string(self.dir.path().join("run/ctld.pid"))?.trim().parse()?)
    }

    async fn client(&self) -> Result<Client, Box<dyn std::error::Error>> {
        let path: PathBuf = self.dir.path().join("run/ctld.sock");
        let channel = sluice_identity::client::connect(&sluice_identity::client::Endpoint::Unix(path)).await?;
        Ok(Client::new(channel).max_decoding_message_size(64 << 20))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let down = Command::new(&self.sluice)
            .args(["local", "down", "--dir"])
            .arg(self.dir.path())
            .stdout(Stdio::null())
            .status();
        if !down.is_ok_and(|s| s.success()) {
            eprintln!("warning: the cluster in {} may still run", self.dir.path().display());
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn percentile(mut times: Vec<Duration>, p: f64) -> Duration {
    times.sort();
    let at = ((times.len() as f64 * p) as usize).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

fn say(name: &str, figure: f64, unit: &str) {
    println!("{name:<58} {figure:>10.2} {unit}");
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1000.0
}

fn job(name: &str, hold: bool) -> v1::SubmitRequest {
    let environment: Vec<u8> = std::env::vars().flat_map(|(k, v)| format!("{k}={v}\0").into_bytes()).collect();
    v1::SubmitRequest {
        spec: Some(v1::JobSpec {
            name: name.to_owned().into(),
            batch: true,
            hold,
            request: Some(v1::ResourceRequest {
                ntasks: Some(1),
                memory: Some(v1::MemoryRequest { kind: Some(v1::memory_request::Kind::PerNode(10)) }),
                ..v1::ResourceRequest::default()
            }),
            time_limit: Some(v1::TimeLimit { kind: Some(v1::time_limit::Kind::Minutes(10)) }),
            work_dir: "/tmp".into(),
            io: Some(v1::JobIo { stdout: Some("/dev/null".into()), ..v1::JobIo::default() }),
            umask: 0o022,
            submit_host: "bench".to_owned(),
            submit_line: "bench".into(),
            ..v1::JobSpec::default()
        }),
        script: "#!/bin/sh\nexit 0\n".into(),
        environment: environment.into(),
        ..Default::default()
    }
}

/// What a real `sbatch` sends from a user's folder: every limit, paths, partition, account, a command line. `n` tells
/// one job from the other where two submissions of a user differ.
fn sbatch_job(n: usize) -> v1::SubmitRequest {
    let mut request = job(&format!("sim-{n:06}"), true);
    request.key = sluice_identity::random::<16>().map(|key| key.to_vec()).unwrap_or_default().into();
    let limits = ["AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"];
    if let Some(spec) = request.spec.as_mut() {
        spec.limits =
            limits.iter().map(|name| v1::PropagatedLimit { name: (*name).to_owned(), soft: u64::MAX }).collect();
        spec.work_dir = "/home/ada/projects/simulation/run-0001".into();
        spec.command = Some("/home/ada/projects/simulation/run.sh".into());
        spec.io =
            Some(v1::JobIo { stdout: Some("/home/ada/projects/simulation/out/%x-%j".into()), ..Default::default() });
        spec.submit_line =
            format!("sbatch -H --job-name=sim-{n:06} -n 4 --time=10 --output=out/%x-%j run.sh --seed {n}").into();
        spec.args = vec!["--seed".into(), n.to_string().into()];
        spec.submit_host = "login1.cluster.example.org".to_owned();
        spec.submit_sid = 4711;
    }
    request
}

/// Submits `count` jobs over one connection with up to 64 in flight.
async fn submit_many(
    client: &Client,
    count: usize,
    request: v1::SubmitRequest,
) -> Result<Duration, Box<dyn std::error::Error>> {
    submit_each(client, count, |_| request.clone()).await
}

/// The same, each job made from its number.
async fn submit_each(
    client: &Client,
    count: usize,
    request: impl Fn(usize) -> v1::SubmitRequest,
) -> Result<Duration, Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let in_flight = Arc::new(Semaphore::new(64));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..count {
        let permit = Arc::clone(&in_flight).acquire_owned().await?;
        let (mut client, request) = (client.clone(), request(n));
        tasks.spawn(async move {
            let done = client.submit(request).await;
            drop(permit);
            done.map(|_| ())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begin.elapsed())
}

/// Runs a command to its end; its output is dropped.
fn run(command: &mut Command) -> Outcome {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

fn held_sbatch(cluster: &Cluster) -> Command {
    let mut command = cluster.command("sbatch");
    command.args(["-H", "--mem=10", "-o", "/dev/null", "--wrap", "true"]).current_dir("/tmp");
    command
}

fn sbatch_one_by_one() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begin = Instant::now();
        run(&mut held_sbatch(&cluster))?;
        times.push(begin.elapsed());
    }
    say("sbatch one by one, median", ms(median(times)), "ms");
    Ok(())
}

fn sbatch_parallel() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let each = 150;
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| (0..each).all(|_| run(&mut held_sbatch(&cluster)).is_ok()))).collect();
        threads.into_iter().all(|t| t.join().unwrap_or(false))
    })
    .then_some(())
    .ok_or("some sbatch failed")?;
    say("8 parallel sbatch", f64::from(8 * each) / begin.elapsed().as_secs_f64(), "a second");
    Ok(())
}

async fn one_client() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let client = cluster.client().await?;
    submit_many(&client, 2000, job("warm", true)).await?;
    let count = 40_000;
    let spent = submit_many(&client, count, job("held", true)).await?;
    say("one client, 64 in flight, durable", count as f64 / spent.as_secs_f64(), "a second");
    Ok(())
}

async fn no_op_jobs() -> Outcome {
    let cluster = Cluster::up(2, 8)?;
    let client = cluster.client().await?;
    let count = 2000;
    let begin = Instant::now();
    submit_many(&client, count, job("noop", false)).await?;
    loop {
        let mut client = client.clone();
        let states = vec!["COMPLETED".to_owned()];
        let mut list = client.list_jobs(v1::ListJobsRequest { states, ..Default::default() }).await?.into_inner();
        let mut done = 0;
        while let Some(chunk) = list.message().await? {
            done += chunk.jobs.len();
        }
        if done >= count {
            break;
        }
        if begin.elapsed() > Duration::from_secs(180) {
            return Err(format!("only {done} of {count} jobs completed in 180 s").into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    say("no-op jobs, submission to record", count as f64 / begin.elapsed().as_secs_f64(), "a second");
    Ok(())
}

fn srun_alone() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let mut times = Vec::new();
    for _ in 0..60 {
        let begin = Instant::now();
        run(cluster.command("srun").args(["--mem=10", "true"]).current_dir("/tmp"))?;
        times.push(begin.elapsed());
    }
    say("srun true alone, median", ms(median(times)), "ms");
    Ok(())
}

/// Resident memory of a process, KiB.
fn rss_kib(pid: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}

/// Growth of the controller's resident memory over 100,000 submissions, divided by them.
async fn memory() -> Outcome {
    for (title, request) in [
        ("a small specification", (|_| job("pending", true)) as fn(usize) -> v1::SubmitRequest),
        ("as sbatch sends it", sbatch_job),
    ] {
        let cluster = Cluster::up(1, 4)?;
        let client = cluster.client().await?;
        submit_each(&client, 100, request).await?;
        let before = rss_kib(cluster.pid()?)?;
        let count = 100_000;
        submit_each(&client, count, request).await?;
        tokio::time::sleep(Duration::from_secs(3)).await;
        let bytes = (rss_kib(cluster.pid()?)? - before) as f64 * 1024.0 / count as f64;
        say(&format!("controller memory for a pending job, {title}"), bytes, "bytes");
    }
    Ok(())
}

async fn hundred_thousand() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let client = cluster.client().await?;
    submit_many(&client, 100_000, job("pending", true)).await?;

    let mut times = Vec::new();
    for _ in 0..7 {
        let begin = Instant::now();
        run(&mut cluster.command("squeue"))?;
        times.push(begin.elapsed());
    }
    say("squeue of 100,000 pending jobs, median", ms(median(times)), "ms");

    let mut array = job("array", true);
    if let Some(spec) = array.spec.as_mut() {
        let ranges = vec![v1::IndexRange { first: 0, last: 999_999, step: 1 }];
        spec.array = Some(v1::ArraySpec { indices: Some(v1::IndexSet { ranges }), throttle: None, step: 1 });
    }
    let begin = Instant::now();
    client.clone().submit(array).await?;
    say("1,000,000-task array accepted in", ms(begin.elapsed()), "ms");

    let pid = i32::try_from(cluster.pid()?)?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)?;
    let begin = Instant::now();
    let restart = Command::new(&cluster.sluice)
        .args(["local", "up", "--dir"])
        .arg(cluster.dir.path())
        .stdout(Stdio::null())
        .spawn()?;
    let mut up = None;
    while begin.elapsed() < Duration::from_secs(60) {
        if let Ok(mut client) = cluster.client().await
            && client.ping(v1::Empty {}).await.is_ok()
        {
            up = Some(begin.elapsed());
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut restart = restart;
    restart.wait()?;
    say("up again after kill -9 with 100,000 jobs", ms(up.ok_or("not up within 60 s")?), "ms");
    Ok(())
}

/// Half of a huge array cancelled, and what then lists it.
async fn part_of_an_array() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let mut client = cluster.client().await?;
    let mut array = job("array", true);
    if let Some(spec) = array.spec.as_mut() {
        let ranges = vec![v1::IndexRange { first: 0, last: 999_999, step: 1 }];
        spec.array = Some(v1::ArraySpec { indices: Some(v1::IndexSet { ranges }), throttle: None, step: 1 });
    }
    let job = client.submit(array).await?.into_inner().job;
    // Every second task: nothing that a single range could say.
    let ranges = vec![v1::IndexRange { first: 0, last: 999_998, step: 2 }];
    let target = Some(v1::JobTarget { job, tasks: Some(v1::IndexSet { ranges }) });
    let cancel = v1::control_request::Action::Cancel(v1::CancelAction { target });
    let begin = Instant::now();
    client.control(v1::ControlRequest { action: Some(cancel) }).await?;
    say("500,000 tasks of an array cancelled in", ms(begin.elapsed()), "ms");
    for (title, words) in [
        ("squeue -r -t all of 1,000,000 tasks", &["squeue", "-h", "-r", "-t", "all"][..]),
        ("sacct -X --array of 1,000,000 tasks", &["sacct", "-n", "-X", "--array"]),
        ("sacct -X of the same", &["sacct", "-n", "-X"]),
    ] {
        let begin = Instant::now();
        run(cluster.command(words[0]).args(&words[1..]))?;
        say(title, ms(begin.elapsed()), "ms");
    }
    Ok(())
}

async fn queries_under_load() -> Outcome {
    let cluster = Cluster::up(1, 4)?;
    let client = cluster.client().await?;
    // A queue that keeps the scheduler busy: eligible jobs that can't start, behind one that fills the node.
    let mut big = job("fill", false);
    if let Some(spec) = big.spec.as_mut() {
        spec.request = Some(v1::ResourceRequest { ntasks: Some(4), ..v1::ResourceRequest::default() });
    }
    big.script = "#!/bin/sh\nexec sleep 600\n".into();
    client.clone().submit(big).await?;
    submit_many(&client, 20_000, job("waits", false)).await?;
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let load = {
        let (client, stop) = (client.clone(), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut every = tokio::time::interval(Duration::from_millis(2));
            let mut sent = 0u32;
            let mut tasks = tokio::task::JoinSet::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                every.tick().await;
                let mut client = client.clone();
                tasks.spawn(async move { client.submit(job("load", false)).await.is_ok() });
                sent += 1;
            }
            let mut good = 0u32;
            while let Some(done) = tasks.join_next().await {
                good += u32::from(done.unwrap_or(false));
            }
            (sent, good)
        })
    };
    let reader = cluster.client().await?;
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        let one = Instant::now();
        let jobs = vec![v1::JobTarget { job: 100, tasks: None }];
        let mut list = reader.clone().list_jobs(v1::ListJobsRequest { jobs, ..Default::default() }).await?.into_inner();
        while list.message().await?.is_some() {}
        times.push(one.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut processes = Vec::new();
    for _ in 0..30 {
        let one = Instant::now();
        run(cluster.command("squeue").args(["-j", "100"]))?;
        processes.push(one.elapsed());
    }
    let spent = begin.elapsed();
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let (sent, good) = load.await?;
    if sent != good {
        return Err(format!("{} of {sent} submissions failed", sent - good).into());
    }
    say("  submissions during the queries", f64::from(sent) / spent.as_secs_f64(), "a second");
    say("one-job query under load, 99th percentile", ms(percentile(times.clone(), 0.99)), "ms");
    say("one-job query under load, median", ms(median(times)), "ms");
    say("whole squeue -j process under load, median", ms(median(processes)), "ms");
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);
    if !Path::new("/proc/self/status").exists() {
        return Err("needs /proc".into());
    }
    if chosen("sbatch") {
        sbatch_one_by_one()?;
    }
    if chosen("parallel") {
        sbatch_parallel()?;
    }
    if chosen("client") {
        one_client().await?;
    }
    if chosen("noop") {
        no_op_jobs().await?;
    }
    if chosen("srun") {
        srun_alone()?;
    }
    if chosen("memory") {
        memory().await?;
    }
    if chosen("queue") {
        hundred_thousand().await?;
    }
    if chosen("array") {
        part_of_an_array().await?;
    }
    if chosen("load") {
        queries_under_load().await?;
    }
    Ok(())
}
