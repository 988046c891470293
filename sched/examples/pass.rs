//! How long scheduling passes take: `cargo run --release -p sluice-sched --example pass [SEED]`.
//!
//! Three states: a thousand jobs before a thousand busy nodes; a site of 10,000 nodes, half of them busy, with 100,000 jobs
//! of 200 users; a machine of one number of processors with 17,500 jobs of mostly distinct limits, as traces have them. Of
//! each the whole pass, and passes after one job ended or arrived, with a scheduler that remembers.

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

const NOW: i64 = 1_800_000_000_000;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as u32 % n as u32
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

fn node(name: String, cpus: u32, gpus: u64) -> NodeView {
    let gres = if gpus > 0 { vec![GresSpec::new("gpu", None, gpus)] } else { Vec::new() };
    let spec = NodeSpec {
        name: NodeName::new(name),
        address: None,
        sockets: 1,
        cores_per_socket: cpus,
        threads_per_core: 1,
        cpus,
        memory_mb: 4000 * u64::from(cpus),
        tmp_disk_mb: 0,
        gres,
        features: Vec::new(),
        weight: 1,
    };
    NodeView { spec: Arc::new(spec), available: true }
}

fn partition(name: &str, nodes: std::ops::Range<u32>) -> PartitionView {
    PartitionView { name: name.into(), nodes: nodes.collect(), ..PartitionView::default() }
}

fn gpus(count: u64) -> GresRequest {
    GresRequest { name: "gpu".into(), kind: None, count, scope: GresScope::Node }
}

fn job(id: u32, partition: u32, request: ResourceRequest, minutes: u32, priority: u32) -> PendingJob {
    let spec = JobSpec { request: request.into(), ..JobSpec::new("job", JobKind::Allocation, (1, "u"), (1, "g")) };
    PendingJob {
        job: JobId(id),
        indices: Vec::new(),
        partitions: vec![partition],
        // Each its own allocation, as separate submissions are.
        request: Arc::new(spec),
        time_limit: Some(TimeLimit::Minutes(minutes)),
        time_min: None,
        expected_ms: None,
        priority,
        submitted: Time(NOW - 10_000_000 + i64::from(id)),
        deadline: None,
        exclusive: false,
        charge: Charge::default(),
        preemptor: None,
        claim: None,
    }
}

fn running(id: u32, node: &NodeView, cpus: (u32, u32), gpus: (u32, u32), minutes: u32) -> RunningJob {
    let (first, count) = gpus;
    let indices = IndexSet::range(first, (first + count).saturating_sub(1));
    let gres = if count > 0 { vec![GresAlloc { name: "gpu".into(), kind: None, indices }] } else { Vec::new() };
    let held = NodeAlloc {
        node: node.spec.name.clone(),
        cpus: IndexSet::range(cpus.0, cpus.0 + cpus.1 - 1),
        memory_mb: 1000 * u64::from(cpus.1),
        gres,
        tasks: 1,
    };
    RunningJob {
        job: JobId(id),
        allocation: Arc::new(Allocation { nodes: vec![held] }),
        ends: Some(Time(NOW + 1000 + i64::from(minutes) * 60_000)),
        expected_end: None,
        exclusive: false,
        partition: Some(u32::from(count > 0)),
        licenses: BTreeMap::new(),
        charge: Charge::default(),
        victim: None,
    }
}

fn empty() -> Input {
    let mut input = Input { generation: 1, now: Some(Time(NOW)), ..Input::default() };
    input.policy.default_memory_per_cpu_mb = Some(1000);
    input
}

/// A thousand jobs of five shapes before a thousand busy nodes.
fn queue_before_full_nodes(random: &mut Random) -> Input {
    let mut input = empty();
    input.nodes = (0..1000).map(|n| node(format!("n{n}"), 64, 0)).collect();
    input.partitions.push(partition("main", 0..1000));
    for n in 0..1000 {
        for j in 0..16 {
            let held =
                running(1_000_000 + n * 16 + j, &input.nodes[n as usize], (j * 4, 4), (0, 0), random.below(1440));
            input.running.push(held);
        }
    }
    for id in 1..=1000 {
        let mut request = ResourceRequest::default();
        match random.below(5) {
            0 => {}
            1 => request.cpus_per_task = Some(8),
            2 => request.nodes = Some(NodeCount { min: 16, max: Some(16) }),
            3 => request.ntasks = Some(200),
            _ => request.cpus_per_task = Some(64),
        }
        let (minutes, priority) = (60 + random.below(600), random.below(100));
        input.pending.push(job(id, 0, request, minutes, priority));
    }
    input
}

/// One of the requests that a user of the site makes.
fn request(random: &mut Random, gpu: bool) -> ResourceRequest {
    let mut request = ResourceRequest::default();
    if gpu {
        let count = random.of(&[1, 1, 1, 2, 4, 8]);
        request.gres.push(gpus(count));
        request.cpus_per_task = Some(count as u32 * random.of(&[2, 4, 6, 8]));
        if count == 8 {
            let nodes = random.of(&[1, 2, 4, 16]);
            request.nodes = Some(NodeCount { min: nodes, max: Some(nodes) });
            request.ntasks_per_node = Some(1);
        }
        return request;
    }
    match random.below(10) {
        0..=5 => request.cpus_per_task = Some(1 + random.below(32)),
        6..=7 => request.ntasks = Some(8 << random.below(6)),
        _ => {
            let nodes = 2 << random.below(5);
            request.nodes = Some(NodeCount { min: nodes, max: Some(nodes) });
            request.ntasks_per_node = Some(random.of(&[16, 32, 64]));
        }
    }
    if random.below(4) == 0 {
        request.memory = Some(sluice_model::request::MemoryRequest::PerCpu(500 * (1 + u64::from(random.below(8)))));
    }
    request
}

/// 9,000 nodes of 64 CPUs and 1,000 with 8 GPUs besides, half of all busy; jobs of 200 users, each with five requests.
fn site(random: &mut Random, pending: u32) -> Input {
    let mut input = empty();
    input.nodes = (0..10_000).map(|n| node(format!("n{n}"), 64, if n < 9000 { 0 } else { 8 })).collect();
    input.partitions = vec![partition("cpu", 0..9000), partition("gpu", 9000..10_000)];
    let mut id = 10_000_000;
    for n in 0..10_000 {
        let parts = random.of(&[0, 0, 1, 2, 3, 4, 4, 4]);
        for part in 0..parts {
            let devices = if n < 9000 { (0, 0) } else { (part * 2, 2) };
            id += 1;
            let minutes = random.below(2880);
            input.running.push(running(id, &input.nodes[n as usize], (part * 16, 16), devices, minutes));
        }
    }
    let one = |random: &mut Random| {
        let gpu = random.below(5) == 0;
        (gpu, request(random, gpu))
    };
    let users: Vec<Vec<(bool, ResourceRequest)>> = (0..200).map(|_| (0..5).map(|_| one(random)).collect()).collect();
    for id in 1..=pending {
        let user = random.below(200);
        input.pending.push(of_user(random, &users[user as usize], user, id));
    }
    input
}

fn of_user(random: &mut Random, user: &[(bool, ResourceRequest)], priority: u32, id: u32) -> PendingJob {
    let (gpu, request) = &user[random.below(5) as usize];
    let minutes = random.of(&[30, 60, 120, 240, 480, 1440, 2880]) + random.below(30);
    job(id, u32::from(*gpu), request.clone(), minutes, 1000 + priority * 10 + random.below(10))
}

/// 240 processors as one node, jobs of mostly distinct limits.
fn trace(random: &mut Random, pending: u32) -> Input {
    let mut input = empty();
    input.nodes.push(node("machine".into(), 240, 0));
    input.partitions.push(partition("main", 0..1));
    for part in 0..60 {
        input.running.push(running(1_000_000 + part, &input.nodes[0], (part * 4, 4), (0, 0), random.below(1000)));
    }
    for id in 1..=pending {
        let request = ResourceRequest { ntasks: Some(1 + random.below(64)), ..ResourceRequest::default() };
        let minutes = 1 + random.below(6000);
        input.pending.push(job(id, 0, request, minutes, 1000));
    }
    input
}

/// A scheduler and what it was told, so that starts can be carried out.
struct World {
    scheduler: Scheduler,
    running: Vec<RunningJob>,
    requests: BTreeMap<JobId, PendingJob>,
    now: i64,
    next: u32,
    started: usize,
}

impl World {
    fn pass(&mut self) -> (f64, Plan) {
        let begin = Instant::now();
        let plan = self.scheduler.plan(1, Time(self.now));
        let ms = begin.elapsed().as_secs_f64() * 1000.0;
        self.started += plan.starts.len();
        for start in &plan.starts {
            let job = self.requests.remove(&start.job).expect("pending");
            self.scheduler.remove_pending(start.job);
            let running = RunningJob {
                job: start.job,
                allocation: Arc::new(start.allocation.clone()),
                ends: start.time_limit.duration().map(|d| Time(self.now).plus(d)),
                expected_end: None,
                exclusive: false,
                partition: Some(job.partitions[0]),
                licenses: BTreeMap::new(),
                charge: Charge::default(),
                victim: None,
            };
            self.scheduler.put_running(running.clone());
            self.running.push(running);
        }
        (ms, plan)
    }

    /// One job ends; a pass.
    fn end(&mut self, random: &mut Random) -> f64 {
        let at = random.below(self.running.len() as u64) as usize;
        let job = self.running.swap_remove(at).job;
        let begin = Instant::now();
        self.scheduler.remove_running(job);
        begin.elapsed().as_secs_f64() * 1000.0 + self.pass().0
    }

    /// A job like one that waits arrives; a pass.
    fn arrive(&mut self, random: &mut Random) -> f64 {
        let Some(like) = self.requests.values().nth(random.below(self.requests.len() as u64) as usize) else {
            return 0.0;
        };
        let job = PendingJob { job: JobId(self.next), submitted: Time(self.now), ..like.clone() };
        self.next += 1;
        self.requests.insert(job.job, job.clone());
        let begin = Instant::now();
        self.scheduler.put_pending(job);
        begin.elapsed().as_secs_f64() * 1000.0 + self.pass().0
    }
}

fn told(title: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{:9.3} ms  {title}: median of {}; 99th percentile {:.3}, slowest {:.3}",
        at(50),
        times.len(),
        at(99),
        at(100)
    );
}

fn measure(title: &str, input: &Input, random: &mut Random, events: usize) {
    println!("{title}: {} pending, {} running, {} nodes", input.pending.len(), input.running.len(), input.nodes.len());
    let begin = Instant::now();
    let mut scheduler = Scheduler::default();
    scheduler.rebuild(input);
    println!("{:9.3} ms  told everything", begin.elapsed().as_secs_f64() * 1000.0);
    let mut world = World {
        scheduler,
        running: input.running.clone(),
        requests: input.pending.iter().map(|p| (p.job, p.clone())).collect(),
        now: NOW,
        next: 5_000_000,
        started: 0,
    };
    let (ms, plan) = world.pass();
    let (starts, planned, work) = (plan.starts.len(), plan.reservations.len(), plan.work);
    println!("{ms:9.3} ms  the whole pass: {starts} starts, {planned} planned, {work} attempts");
    let (ms, plan) = world.pass();
    println!("{ms:9.3} ms  the pass after it: {} starts", plan.starts.len());
    world.started = 0;
    let mut times = Vec::new();
    for _ in 0..events {
        world.now += 1000;
        times.push(world.end(random));
    }
    told("a job ended", times);
    let mut times = Vec::new();
    for _ in 0..events {
        world.now += 1000;
        times.push(world.arrive(random));
    }
    told("a job arrived", times);
    println!("               {} starts in these passes", world.started);
}

fn main() {
    let seed = std::env::args().nth(1).map_or(1, |a| a.parse::<u64>().expect("a number"));
    println!("seed {seed}");
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let input = queue_before_full_nodes(&mut random);
    measure("A queue before full nodes", &input, &mut random, 300);
    let input = site(&mut random, 100_000);
    measure("A site", &input, &mut random, 500);
    let input = trace(&mut random, 17_500);
    measure("A trace", &input, &mut random, 2000);
    let mut input = trace(&mut random, 500);
    input.policy.reservations = u32::MAX;
    measure("A trace, conservative", &input, &mut random, 50);
    let input = site(&mut random, 0);
    for (title, request) in [
        ("plain", ResourceRequest::default()),
        ("16 nodes", ResourceRequest { nodes: Some(NodeCount { min: 16, max: None }), ..ResourceRequest::default() }),
        ("200 tasks", ResourceRequest { ntasks: Some(200), ..ResourceRequest::default() }),
        ("1 GPU", ResourceRequest { gres: vec![gpus(1)], ..ResourceRequest::default() }),
    ] {
        let job = job(1, 1, request, 60, 1);
        let begin = Instant::now();
        let accepted = (0..1000).filter(|_| feasible(input.cluster(), &job.request, &[1]).is_ok()).count();
        println!("{:9.2} µs  feasible, {title}: {accepted} of 1000", begin.elapsed().as_secs_f64() * 1e6 / 1000.0);
    }
}
