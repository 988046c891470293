//! How long one scheduling pass takes: `cargo run --release -p sluice-sched --example pass [PENDING] [NODES]`
//! (100,000 pending jobs of a few shapes, 1,000 nodes of 64 CPUs, by default).

use sluice_model::index_set::IndexSet;
use sluice_model::job::JobKind;
use sluice_model::node::GresSpec;
use sluice_model::request::{GresRequest, GresScope, NodeCount};
use sluice_model::*;
use sluice_sched::limits::Charge;
use sluice_sched::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const NOW: Time = Time(1_800_000_000_000);

fn spec(shape: u32) -> JobSpec {
    let mut request = ResourceRequest::default();
    match shape {
        0 => {}
        1 => request.cpus_per_task = Some(8),
        2 => request.nodes = Some(NodeCount { min: 16, max: Some(16) }),
        3 => request.ntasks = Some(200),
        _ => {
            let gpu = GresRequest { name: "gpu".into(), kind: None, count: 1, scope: GresScope::Node };
            request.gres.push(gpu);
        }
    }
    let time_limit = Some(TimeLimit::Minutes(60));
    JobSpec { request, time_limit, ..JobSpec::new("job", JobKind::Allocation, (1, "u"), (1, "g")) }
}

fn input(pending: u32, nodes: u32, busy: u32, shapes: u32) -> Input {
    let mut input = Input { generation: 1, now: Some(NOW), ..Input::default() };
    input.policy.default_memory_per_cpu_mb = Some(1000);
    for n in 0..nodes {
        let gpus = if n % 4 == 0 { 4 } else { 0 };
        let spec = NodeSpec {
            name: NodeName::new(format!("node{n:04}")),
            address: None,
            sockets: 2,
            cores_per_socket: 32,
            threads_per_core: 1,
            cpus: 64,
            memory_mb: 256_000,
            tmp_disk_mb: 0,
            gres: vec![GresSpec { name: "gpu".into(), kind: None, count: gpus }],
            features: Vec::new(),
            weight: 1,
        };
        input.nodes.push(NodeView { spec: Arc::new(spec), available: true });
    }
    let all = (0..nodes).collect();
    input.partitions.push(PartitionView { name: "main".into(), nodes: all, ..PartitionView::default() });
    // `busy` of the 64 CPUs of each node are held by jobs of 4 CPUs.
    for n in 0..nodes {
        for j in 0..busy / 4 {
            let held = NodeAlloc {
                node: input.nodes[n as usize].spec.name.clone(),
                cpus: IndexSet::range(j * 4, j * 4 + 3),
                memory_mb: 4000,
                gres: Vec::new(),
                tasks: 1,
            };
            input.running.push(RunningJob {
                job: JobId(1_000_000 + n * 64 + j),
                allocation: Arc::new(Allocation { nodes: vec![held] }),
                ends: Some(Time(NOW.0 + i64::from((n * 7919 + j * 104_729) % 86_400) * 1000)),
                expected_end: None,
                exclusive: false,
                partition: Some(0),
                licenses: BTreeMap::new(),
                charge: Charge::default(),
            });
        }
    }
    for id in 1..=pending {
        input.pending.push(PendingJob {
            job: JobId(id),
            indices: Vec::new(),
            partitions: vec![0],
            // Each its own allocation, as separate submissions are.
            request: Arc::new(spec(id * 31 % shapes)),
            time_limit: Some(TimeLimit::Minutes(60 + id % 50)),
            time_min: None,
            expected_ms: None,
            priority: 1000 + id % 7,
            submitted: Time(NOW.0 - i64::from(pending - id)),
            deadline: None,
            exclusive: false,
            charge: Charge::default(),
        });
    }
    input
}

fn main() {
    let mut args = std::env::args().skip(1).map(|a| a.parse::<u32>().expect("a number"));
    let (pending, nodes) = (args.next().unwrap_or(100_000), args.next().unwrap_or(1000));
    println!("{pending} pending jobs, {nodes} nodes; best of 5 passes");
    for (title, busy, shapes, reservations) in [
        ("all full, 5 shapes, EASY", 64, 5, 1),
        ("all full, 1 shape, EASY", 64, 1, 1),
        ("all full, 5 shapes, 50 planned", 64, 5, 50),
        ("half full, 5 shapes, EASY", 32, 5, 1),
        ("empty, 5 shapes, EASY", 0, 5, 1),
    ] {
        let mut input = input(pending, nodes, busy, shapes);
        input.policy.reservations = reservations;
        let mut best = f64::MAX;
        let mut done = Plan::default();
        for _ in 0..5 {
            let begin = Instant::now();
            done = plan(&input);
            best = best.min(begin.elapsed().as_secs_f64() * 1000.0);
        }
        let (starts, planned, work) = (done.starts.len(), done.reservations.len(), done.work);
        println!("{best:9.2} ms  {title}: {starts} starts, {planned} planned, {work} attempts");
    }
    let input = input(0, nodes, 0, 5);
    for (shape, title) in ["plain", "8 CPUs", "16 nodes", "200 tasks", "1 GPU"].into_iter().enumerate() {
        let job = spec(shape as u32);
        let begin = Instant::now();
        let asked = 1000;
        let accepted = (0..asked).filter(|_| feasible(input.cluster(), &job, &[0]).is_ok()).count();
        println!("{:9.2} µs  feasible, {title}: {accepted} of {asked}", begin.elapsed().as_secs_f64() * 1e6 / 1000.0);
    }
}
