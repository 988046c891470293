//! The recorded cluster as records: eight nodes, two partitions, jobs 1 to 9, at 2026-11-30T09:59:56Z. Tests only.

use super::clock::{Clock, TimeStyle};
use sluice_model::{Reason, Time};
use sluice_proto::v1;

pub const SUBMIT: i64 = 1_796_032_784_000;
pub const NOW: i64 = SUBMIT + 12_000;

pub fn clock() -> Clock {
    Clock { now: Time(NOW), zone: jiff::tz::TimeZone::UTC, style: TimeStyle::Standard }
}

pub fn minutes(m: u32) -> Option<v1::TimeLimit> {
    Some(v1::TimeLimit { kind: Some(v1::time_limit::Kind::Minutes(m)) })
}
pub fn unlimited() -> Option<v1::TimeLimit> {
    Some(v1::TimeLimit { kind: Some(v1::time_limit::Kind::Unlimited(true)) })
}
fn set(first: u32, last: u32) -> Option<v1::IndexSet> {
    Some(v1::IndexSet { ranges: vec![v1::IndexRange { first, last, step: 1 }] })
}
fn held(node: &str, cpus: u32, memory_mb: u64) -> v1::NodeAlloc {
    v1::NodeAlloc { node: node.into(), cpus: set(0, cpus - 1), memory_mb, gres: Vec::new(), tasks: cpus }
}

fn waiting(id: u32, name: &str, line: &str, priority: u32, reason: Reason) -> v1::JobRecord {
    let memory = v1::MemoryRequest { kind: Some(v1::memory_request::Kind::PerCpu(64)) };
    let spec = v1::JobSpec {
        name: name.as_bytes().to_vec().into(),
        batch: true,
        uid: 1500,
        gid: 1500,
        user: "user1".into(),
        group: "user1".into(),
        request: Some(v1::ResourceRequest { memory: Some(memory), ..Default::default() }),
        work_dir: b"/tmp".to_vec().into(),
        submit_host: "slurm-host".into(),
        submit_line: line.as_bytes().to_vec().into(),
        requeue: Some(true),
        ..Default::default()
    };
    v1::JobRecord {
        id,
        name: spec.name.clone(),
        uid: 1500,
        gid: 1500,
        user: "user1".into(),
        partition: "primary".into(),
        state: "PENDING".into(),
        reason: reason.number(),
        submit: SUBMIT,
        time_limit: unlimited(),
        priority,
        num_nodes: 1,
        num_cpus: 1,
        num_tasks: 1,
        account: "root".into(),
        qos: "normal".into(),
        requeue: true,
        requested_memory_mb: 64,
        last_sched_eval: Some(SUBMIT),
        spec: Some(Box::new(spec)),
        ..Default::default()
    }
}

fn started(mut job: v1::JobRecord, nodes: &str, allocation: Vec<v1::NodeAlloc>) -> v1::JobRecord {
    job.state = "RUNNING".into();
    job.reason = 0;
    job.eligible = Some(SUBMIT);
    job.start = Some(SUBMIT);
    job.elapsed_ms = NOW - SUBMIT;
    job.node_list = nodes.into();
    job.batch_host = allocation[0].node.clone();
    job.backfilled = true;
    if let Some(limit) = super::clock::limit(job.time_limit.as_ref()).and_then(|l| l.duration()) {
        job.end = Some(SUBMIT + limit.as_millis() as i64);
    }
    job.allocation = Some(Box::new(v1::Allocation { nodes: allocation }));
    job
}

fn step(job: u32, number: u32, name: &str, nodes: &[&str], tasks: u32, cpus: u32, memory_mb: u64) -> v1::StepRecord {
    v1::StepRecord {
        key: Some(v1::StepKey { job, attempt: 0, step: number }),
        name: name.as_bytes().to_vec().into(),
        nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
        tasks,
        cpus,
        memory_mb,
        start: SUBMIT,
        state: "RUNNING".into(),
        ..Default::default()
    }
}
pub const BATCH: u32 = 0xffff_fffb;

fn array_task(id: u32, index: u32, node: &str) -> v1::JobRecord {
    let line = "sbatch --array=0-5%2 -t 10 -J arr --wrap sleep 200";
    let mut job = waiting(id, "arr", line, 11078, Reason::None);
    job.time_limit = minutes(10);
    job.array_job = Some(3);
    job.array_throttle = Some(2);
    job = started(job, node, vec![held(node, 1, 64)]);
    job.array_index = Some(index);
    job.steps = vec![step(id, BATCH, "batch", &[node], 1, 1, 64)];
    job
}

fn ended(mut step: v1::StepRecord, state: &str, code: u32) -> v1::StepRecord {
    step.end = Some(SUBMIT);
    step.state = state.into();
    step.exit = Some(v1::ExitStatus { code, signal: 0 });
    step
}

fn done() -> v1::JobRecord {
    let line = "sbatch -n2 -N1 --mem=100 -t 5 -J done --comment=first --wrap srun -n2 hostname; srun -n1 false; exit 3";
    let mut job = waiting(1, "done", line, 11093, Reason::None);
    job.time_limit = minutes(5);
    job.num_cpus = 2;
    job.num_tasks = 2;
    job.requested_memory_mb = 100;
    job.comment = Some(b"first".to_vec().into());
    if let Some(request) = job.spec.as_mut().and_then(|s| s.request.as_mut()) {
        request.nodes = Some(v1::NodeCount { min: 1, max: Some(1) });
        request.ntasks = Some(2);
        request.memory = Some(v1::MemoryRequest { kind: Some(v1::memory_request::Kind::PerNode(100)) });
    }
    job = started(job, "node0", vec![held("node0", 2, 100)]);
    job.elapsed_ms = 0;
    job.end = Some(SUBMIT);
    job.state = "FAILED".into();
    job.reason = Reason::NonZeroExitCode.number();
    job.outcome = Some(Box::new(v1::Outcome {
        state: "FAILED".into(),
        reason: Reason::NonZeroExitCode.number(),
        exit: Some(v1::ExitStatus { code: 3, signal: 0 }),
        derived_exit: Some(v1::ExitStatus { code: 1, signal: 0 }),
        ..Default::default()
    }));
    let mut first = ended(step(1, 0, "hostname", &["node0"], 2, 2, 100), "COMPLETED", 0);
    first.submit_line = b"srun -n2 hostname".to_vec().into();
    first.distribution = "Block".into();
    let mut second = ended(step(1, 1, "false", &["node0"], 1, 2, 100), "FAILED", 1);
    second.submit_line = b"srun -n1 false".to_vec().into();
    second.distribution = "Cyclic".into();
    job.steps = vec![ended(step(1, BATCH, "batch", &["node0"], 1, 2, 100), "FAILED", 3), first, second];
    for (step, (user, system)) in job.steps.iter_mut().zip([(7991, 25_630), (2240, 2160), (2488, 0)]) {
        step.usage = Some(v1::Usage { user_cpu_us: user, system_cpu_us: system, ..Default::default() });
    }
    job.usage = Some(Box::new(v1::Usage { user_cpu_us: 12_719, system_cpu_us: 27_790, ..Default::default() }));
    job
}

fn running() -> v1::JobRecord {
    let mut job = waiting(2, "running", "sbatch -N2 -t 10 -J running --wrap srun sleep 300", 11156, Reason::None);
    job.time_limit = minutes(10);
    job.num_nodes = 2;
    job.num_cpus = 2;
    job.num_tasks = 2;
    job.requested_memory_mb = 128;
    if let Some(request) = job.spec.as_mut().and_then(|s| s.request.as_mut()) {
        request.nodes = Some(v1::NodeCount { min: 2, max: Some(2) });
    }
    job = started(job, "node[0-1]", vec![held("node0", 1, 64), held("node1", 1, 64)]);
    let mut srun = step(2, 0, "sleep", &["node0", "node1"], 2, 2, 128);
    srun.distribution = "Cyclic".into();
    srun.srun_host = "slurm-host".into();
    srun.srun_pid = 357;
    job.steps = vec![step(2, BATCH, "batch", &["node0"], 1, 1, 64), srun];
    job
}

/// All jobs of the recorded cluster, in no particular order.
pub fn jobs() -> Vec<v1::JobRecord> {
    let line = "sbatch --array=0-5%2 -t 10 -J arr --wrap sleep 200";
    let mut array = waiting(3, "arr", line, 11078, Reason::JobArrayTaskLimit);
    array.time_limit = minutes(10);
    array.array_job = Some(3);
    array.array_pending = set(2, 5);
    array.array_throttle = Some(2);
    let mut later =
        waiting(5, "later", "sbatch --begin=now+1hour -J later --gres=gpu:1 --wrap true", 11078, Reason::BeginTime);
    later.eligible = Some(SUBMIT + 3_600_000);
    later.start = Some(SUBMIT + 3_600_000);
    if let Some(request) = later.spec.as_mut().and_then(|s| s.request.as_mut()) {
        request.gres = vec![v1::GresRequest { name: "gpu".into(), count: 1, ..Default::default() }];
    }
    let mut big = waiting(7, "big", "sbatch -N12 -J big --wrap true", 11468, Reason::PartitionNodeLimit);
    big.num_nodes = 12;
    big.num_cpus = 12;
    big.num_tasks = 12;
    big.requested_memory_mb = 12 * 64;
    big.eligible = Some(SUBMIT);
    big.time_limit = minutes(1440);
    vec![
        done(),
        array_task(9, 1, "node1"),
        running(),
        array,
        waiting(4, "held", "sbatch -H -J held --wrap true", 0, Reason::JobHeldUser),
        later,
        waiting(6, "dep", "sbatch -d afterok:1 -J dep --wrap true", 11077, Reason::DependencyNeverSatisfied),
        big,
        array_task(8, 0, "node0"),
    ]
}

/// By job number: 3 is what waits of the array.
pub fn job(id: u32) -> v1::JobRecord {
    jobs().into_iter().find(|j| j.id == id).expect("the fixture has jobs 1 to 9")
}

pub fn nodes() -> Vec<v1::NodeRecord> {
    (0..8).map(node).collect()
}

pub fn node(n: u32) -> v1::NodeRecord {
    let busy = n < 2;
    v1::NodeRecord {
        name: format!("node{n}"),
        sockets: 1,
        cores_per_socket: 4,
        threads_per_core: 1,
        cpus: 4,
        memory_mb: 2048,
        gres: vec![v1::GresSpec { name: "gpu".into(), kind: None, count: 2, ..Default::default() }],
        features: vec!["f1".into(), "f2".into()],
        weight: 1,
        report: Some(v1::NodeReport {
            address: format!("slurm-host:{}", 6820 + n),
            hostname: "slurm-host".into(),
            version: "26.05.3".into(),
            arch: "x86_64".into(),
            os: "Linux 6.18.44-fc-v782 #1 SMP PREEMPT_DYNAMIC @0".into(),
            cpus: 4,
            memory_mb: 2048,
            boot_time: 1_796_023_594,
            daemon_start_time: 1_796_032_780,
            ..Default::default()
        }),
        alloc_cpus: if busy { 2 } else { 0 },
        alloc_memory_mb: if busy { 128 } else { 0 },
        partitions: if n < 4 { vec!["primary".into(), "second".into()] } else { vec!["primary".into()] },
        last_busy: Some(1_796_032_780_000),
        cpu_load_hundredths: Some(167),
        free_memory_mb: Some(21_710),
        ..Default::default()
    }
}

pub fn partitions() -> Vec<v1::PartitionRecord> {
    let one = |name: &str, last: u32, default: bool, max_time| v1::PartitionRecord {
        name: name.into(),
        nodes: (0..=last).map(|n| format!("node{n}")).collect(),
        default,
        max_time,
        priority_tier: 1,
        priority_job_factor: 1,
        state: "UP".into(),
        total_cpus: 4 * (last + 1),
        total_memory_mb: 2048 * u64::from(last + 1),
        total_gres: vec![v1::GresSpec {
            name: "gpu".into(),
            kind: None,
            count: 2 * u64::from(last + 1),
            ..Default::default()
        }],
        ..Default::default()
    };
    vec![one("primary", 7, true, unlimited()), one("second", 3, false, minutes(1440))]
}
