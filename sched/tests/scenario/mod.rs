//! The scenario language: three lines say cluster, load, expectation.
//!
//! Statements are separated by `;`. Time now is `NOW`; the memory default is 100 MiB a CPU unless the cluster line says
//! otherwise. Every scenario is also audited, and planned again with the queue in reverse order: the plan must be equal.
//!
//! Cluster:
//! - `node[1-3] cpus=4 mem=4000 gres=gpu:a100:2 features=a,b weight=2 sockets=2 threads=2 down`
//! - `main=node[1-3] tier=2 max=60 default=10 nodes=1-4 exclusive state=DOWN maxcpus=2`
//! - `policy mempercpu=0 mempernode=100 reservations=2 depth=5 budget=9 nobackfill`
//! - `license matlab=2`
//! - `preempt tiers` or `preempt 1>0 2>0,1`: QOS by rank, and whom they may preempt
//!
//! Load:
//! - `R9 node1:4+2 node2:4 10m whole part=main` job 9 runs with 4 CPUs and 2 GPUs on node1 …, for 10 more minutes
//!   (`forever` for no limit), for association 2 and QOS 1 as user 1000 with `charge=2/1/1000`, which jobs take, too; `victim=0/requeue/30/5` is of rank 0, gone 30 seconds after it is preempted
//!   at the latest, and has run 5 minutes
//! - `J1 -N2 -n3 -c2 -t10 -p main,long prio=5 …` job 1 is pending; options as sbatch has them, `--array=0-3` offers
//!   these indices; `rank=1` (`rank=1+` within its rank, too), `claim=node1/9` claims what job 9 leaves on node1
//!
//! Expectation:
//! - `1 on node1:2 node2:1` job 1 starts there with so many tasks (`1_3` for a task of an array; `1 starts` anywhere)
//! - `1 holds node1 cpus=0-1 gpu=1 mem=200`, `1 backfilled`, `1 in-order`, `1 limit 5`
//! - `2 takes 7:requeue 8:suspend` job 2 preempts these, `2 takes` nobody
//! - `2 waits Resources`, `2 planned 10m node1 node2`, `2 unplanned`

#![allow(dead_code, reason = "each test file uses its part of the language")]

use sluice_model::config::Mode;
use sluice_model::index_set::IndexSet;
use sluice_model::job::JobKind;
use sluice_model::partition::PartitionState;
use sluice_model::request::{Distribution, Exclusive, GresScope, MemoryRequest};
use sluice_model::*;
use sluice_sched::preemption::{Claim, Preemption, Preemptor, Victim};
use sluice_sched::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const NOW: Time = Time(1_800_000_000_000);

pub fn after_minutes(m: i64) -> Time {
    Time(NOW.0 + m * 60_000)
}

pub fn blank_spec() -> JobSpec {
    JobSpec::new("t", JobKind::Allocation, (1, "u"), (1, "g"))
}

fn num<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().unwrap_or_else(|e| panic!("number expected: {text}: {e:?}"))
}

fn statements(line: &str) -> impl Iterator<Item = Vec<&str>> {
    line.split(';').map(|s| s.split_whitespace().collect::<Vec<_>>()).filter(|w| !w.is_empty())
}

pub fn cluster(line: &str) -> Input {
    let mut input = Input { generation: 7, now: Some(NOW), ..Input::default() };
    input.policy.default_memory_per_cpu_mb = Some(100);
    for words in statements(line) {
        match (words[0], words[0].split_once('=')) {
            ("policy", _) => words[1..].iter().for_each(|w| policy(&mut input.policy, w)),
            ("switch" | "block", _) => join(&mut input, &words),
            ("license", _) => {
                for word in &words[1..] {
                    let (name, count) = word.split_once('=').expect("NAME=COUNT");
                    input.licenses.insert(name.to_owned(), num(count));
                }
            }
            ("preempt", _) => input.preemption = preemption(&words[1..]),
            (_, Some((name, nodes))) => partition(&mut input, name, nodes, &words[1..]),
            (names, None) => nodes(&mut input, names, &words[1..]),
        }
    }
    if input.partitions.is_empty() {
        let all = input.nodes.iter().map(|n| n.spec.name.as_str().to_owned()).collect::<Vec<_>>().join(",");
        partition(&mut input, "main", &all, &[]);
    }
    input
}

/// `switch s1=node[1-2] s2=node[3-4] top=s1,s2`, `block b1=node[1-2] b2=node[3-4] sizes=2,4`; after the nodes.
fn join(input: &mut Input, words: &[&str]) {
    use sluice_model::config::{BlockSpec, SwitchSpec, TopologyConfig};
    let mut config = TopologyConfig::default();
    for word in &words[1..] {
        let (name, list) = word.split_once('=').expect("NAME=LIST");
        let members = hostlist::expand(list).expect("names");
        let nodes: Vec<NodeName> = members.iter().map(NodeName::new).collect();
        let name = name.to_owned();
        if name == "sizes" {
            config.block_sizes = list.split(',').map(num).collect();
        } else if words[0] == "block" {
            config.blocks.push(BlockSpec { name, nodes });
        } else if config.switches.iter().any(|s| s.name == members[0]) {
            config.switches.push(SwitchSpec { name, nodes: Vec::new(), switches: members });
        } else {
            config.switches.push(SwitchSpec { name, nodes, switches: Vec::new() });
        }
    }
    let position = |name: &NodeName| input.nodes.iter().position(|n| n.spec.name == *name).map(|n| n as u32);
    input.policy.topology = Topology::new(&config, input.nodes.len(), position).map(Arc::new);
}

fn preemption(words: &[&str]) -> Preemption {
    if words == ["tiers"] {
        return Preemption::Tiers;
    }
    let mut lists: Vec<Vec<u32>> = vec![Vec::new(); 10];
    for word in words {
        let (by, whom) = word.split_once('>').expect("RANK>RANKS");
        lists[num::<usize>(by)] = whom.split(',').filter(|w| !w.is_empty()).map(num).collect();
    }
    Preemption::Listed(lists)
}

/// `RANK/MODE/SECONDS/MINUTES`
fn victim(text: &str) -> Victim {
    let [rank, mode, grace, ran] = text.split('/').collect::<Vec<_>>()[..] else { panic!("victim={text}") };
    Victim {
        rank: num(rank),
        priority: 100,
        mode: Mode::parse(mode).expect("mode"),
        grace_ms: num::<i64>(grace) * 1000,
        exempt_until: NOW,
        began: after_minutes(-num::<i64>(ran)),
    }
}

fn policy(policy: &mut Policy, word: &str) {
    match word.split_once('=').unwrap_or((word, "")) {
        ("mempercpu", "0") => policy.default_memory_per_cpu_mb = None,
        ("mempercpu", n) => policy.default_memory_per_cpu_mb = Some(num(n)),
        ("mempernode", n) => {
            policy.default_memory_per_cpu_mb = None;
            policy.default_memory_per_node_mb = Some(num(n));
        }
        ("reservations", n) => policy.reservations = num(n),
        ("depth", n) => policy.queue_depth = num(n),
        ("budget", n) => policy.work_budget = num(n),
        ("nobackfill", _) => policy.backfill = false,
        ("lln", _) => policy.least_loaded = true,
        ("pack", _) => policy.pack_tasks = true,
        ("order", "shortest") => policy.backfill_order = BackfillOrder::Shortest,
        ("order", "area") => policy.backfill_order = BackfillOrder::SmallestArea,
        ("overrun", "steps") => policy.overrun = Overrun::Steps,
        ("overrun", "limit") => policy.overrun = Overrun::Limit,
        _ => panic!("policy: {word}"),
    }
}

fn nodes(input: &mut Input, names: &str, words: &[&str]) {
    let mut spec = NodeSpec {
        name: NodeName::from(""),
        address: None,
        sockets: 1,
        cores_per_socket: 4,
        threads_per_core: 1,
        cpus: 4,
        memory_mb: 4000,
        tmp_disk_mb: 0,
        gres: Vec::new(),
        features: Vec::new(),
        weight: 1,
    };
    let mut available = true;
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("cpus", n) => spec.cpus = num(n),
            ("mem", n) => spec.memory_mb = num(n),
            ("sockets", n) => spec.sockets = num(n),
            ("threads", n) => spec.threads_per_core = num(n),
            ("weight", n) => spec.weight = num(n),
            ("tmp", n) => spec.tmp_disk_mb = num(n),
            ("cores", n) => spec.cores_per_socket = num(n),
            ("features", list) => spec.features = list.split(',').map(str::to_owned).collect(),
            // What is known of devices, with `!` for `;`.
            ("gres", one) if one.contains('(') => {
                spec.gres = vec![gres::parse_gres_spec(&one.replace('!', ";")).expect("gres")];
            }
            ("gres", list) => {
                spec.gres = list.split(',').map(|g| gres::parse_gres_spec(g).expect("gres")).collect();
            }
            ("down", _) => available = false,
            _ => panic!("node: {word}"),
        }
    }
    for name in hostlist::expand(names).expect("node names") {
        let spec = NodeSpec { name: NodeName::new(name), ..spec.clone() };
        input.nodes.push(NodeView { spec: Arc::new(spec), available });
    }
}

pub fn node_at(input: &Input, name: &str) -> u32 {
    let at = input.nodes.iter().position(|n| n.spec.name.as_str() == name);
    at.unwrap_or_else(|| panic!("no node {name}")) as u32
}

fn partition(input: &mut Input, name: &str, nodes: &str, words: &[&str]) {
    let members = hostlist::expand(nodes).expect("node names").iter().map(|n| node_at(input, n)).collect();
    let mut view = PartitionView { name: name.to_owned(), nodes: members, ..PartitionView::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("tier", n) => view.priority_tier = num(n),
            ("max", t) => view.max_time = time::parse_time_limit(t).expect("time"),
            ("default", t) => view.default_time = time::parse_time_limit(t).expect("time"),
            ("nodes", n) => {
                let (min, max) = n.split_once('-').expect("MIN-MAX");
                (view.min_nodes, view.max_nodes) = (num(min), Some(num(max)));
            }
            ("exclusive", _) => view.exclusive = true,
            ("lln", _) => view.least_loaded = true,
            ("maxcpus", n) => view.max_cpus_per_node = Some(num(n)),
            ("maxmem", n) => view.max_memory_per_node_mb = Some(num(n)),
            ("mempercpu", n) => view.default_memory_per_cpu_mb = Some(num(n)),
            ("state", "DOWN") => view.state = PartitionState::Down,
            ("state", "DRAIN") => view.state = PartitionState::Drain,
            ("state", "INACTIVE") => view.state = PartitionState::Inactive,
            _ => panic!("partition: {word}"),
        }
    }
    input.partitions.push(view);
}

pub fn load(input: &mut Input, line: &str) {
    for words in statements(line) {
        let (kind, id) = words[0].split_at(1);
        match kind {
            "R" => running(input, num(id), &words[1..]),
            "J" => {
                let job = pending(input, num(id), &words[1..]);
                input.pending.push(job);
            }
            _ => panic!("R or J expected: {}", words[0]),
        }
    }
}

fn running(input: &mut Input, id: u32, words: &[&str]) {
    let mut nodes = Vec::new();
    let (mut ends, mut exclusive, mut partition) = (Some(NOW), false, Some(0));
    let (mut licenses, mut expected_end) = (BTreeMap::new(), None);
    let (mut charge, mut victim) = (limits::Charge::default(), None);
    for word in words {
        if let Some(text) = word.strip_prefix("charge=") {
            charge = self::charge(text);
        } else if let Some(text) = word.strip_prefix("victim=") {
            victim = Some(self::victim(text));
        } else if let Some(list) = word.strip_prefix("lic=") {
            licenses = sluice_model::licenses::parse(list).expect("licences");
        } else if let Some((name, amounts)) = word.split_once(':') {
            let (cpus, gpus) = amounts.split_once('+').unwrap_or((amounts, "0"));
            nodes.push(hold_next(input, &nodes, name, num(cpus), num(gpus)));
        } else if let Some(name) = word.strip_prefix("part=") {
            partition = input.partitions.iter().position(|p| p.name == name).map(|p| p as u32);
        } else if *word == "whole" {
            exclusive = true;
        } else if let Some(minutes) = word.strip_prefix("expected=") {
            expected_end = Some(after_minutes(num(minutes)));
        } else if *word == "forever" {
            ends = None;
        } else {
            ends = Some(after_minutes(num(word.strip_suffix('m').expect("minutes"))));
        }
    }
    let allocation = Arc::new(Allocation { nodes });
    input.running.push(RunningJob {
        job: JobId(id),
        allocation,
        ends,
        expected_end,
        exclusive,
        partition,
        licenses,
        charge,
        victim,
    });
}

/// `ASSOCIATION/QOS/UID`, positions, `-` for none.
fn charge(text: &str) -> limits::Charge {
    let [association, qos, uid] = text.split('/').collect::<Vec<_>>()[..] else { panic!("charge={text}") };
    let position = |t: &str| (t != "-").then(|| num(t));
    limits::Charge { association: position(association), qos: position(qos), uid: num(uid), fairshare: 500_000 }
}

/// The lowest indices that no running job holds.
fn hold_next(input: &Input, mine: &[NodeAlloc], name: &str, cpus: u64, gpus: u64) -> NodeAlloc {
    let node = NodeName::from(name);
    let held: Vec<&NodeAlloc> =
        input.running.iter().flat_map(|r| &r.allocation.nodes).chain(mine).filter(|n| n.node == node).collect();
    let spec = &input.nodes[node_at(input, name) as usize].spec;
    let mut free = IndexSet::range(0, spec.cpus.max(1) - 1);
    held.iter().for_each(|h| free = free.difference(&h.cpus));
    let mut alloc =
        NodeAlloc { node, cpus: free.take(cpus), memory_mb: 100 * cpus, gres: Vec::new(), tasks: cpus as u32 };
    let (mut first, mut left) = (0, gpus);
    for g in spec.gres.iter().filter(|g| g.name == "gpu") {
        let mut free = IndexSet::range(first, first + g.count as u32 - 1);
        held.iter().flat_map(|h| &h.gres).for_each(|h| free = free.difference(&h.indices));
        let indices = free.take(left);
        left -= indices.len();
        first += g.count as u32;
        if !indices.is_empty() {
            alloc.gres.push(GresAlloc { name: "gpu".into(), kind: g.kind.clone(), indices });
        }
    }
    assert!(alloc.cpus.len() == cpus && left == 0, "{name} has not so much free");
    alloc
}

/// Reads options as sbatch has them; those with a value of their own take the next word.
pub fn pending(input: &Input, id: u32, words: &[&str]) -> PendingJob {
    let mut spec = blank_spec();
    let mut job = PendingJob {
        job: JobId(id),
        indices: Vec::new(),
        partitions: vec![0],
        request: Arc::new(spec.clone()),
        time_limit: None,
        time_min: None,
        expected_ms: None,
        priority: 100,
        submitted: Time(NOW.0 - 1_000_000 + i64::from(id)),
        deadline: None,
        exclusive: false,
        charge: limits::Charge::default(),
        preemptor: None,
        claim: None,
    };
    let names =
        |list: &str| -> Vec<NodeName> { hostlist::expand(list).expect("nodes").iter().map(NodeName::new).collect() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut pair = word.split_once('=');
        if !word.starts_with("--") && word.starts_with('-') {
            pair = Some(if word.len() > 2 { word.split_at(2) } else { (word, words.next().expect("value")) });
        }
        let (option, value) = pair.unwrap_or((word, ""));
        let r = &mut spec.request;
        match option {
            "-N" => r.nodes = Some(node_count::parse(value).expect("nodes")),
            "-n" => r.ntasks = Some(num(value)),
            "-c" => r.cpus_per_task = Some(num(value)),
            "-t" => job.time_limit = Some(time::parse_time_limit(value).expect("time")),
            "-w" => r.node_list = names(value),
            "-x" => r.exclude = names(value),
            "-C" => r.constraint = Some(constraint::parse(value).expect("constraint")),
            "--prefer" => r.prefer = Some(constraint::parse(value).expect("constraint")),
            "--batch" => r.batch = Some(constraint::parse_plain(value).expect("constraint")),
            "-L" => spec.licenses = licenses::parse(value).expect("licences").into(),
            "-p" => {
                let position = |name: &str| input.partitions.iter().position(|p| p.name == name).expect(name) as u32;
                job.partitions = value.split(',').map(position).collect();
            }
            "--ntasks-per-node" => r.ntasks_per_node = Some(num(value)),
            "--mincpus" => r.min_cpus_per_node = Some(num(value)),
            "--mem" => r.memory = Some(MemoryRequest::PerNode(num(value))),
            "--mem-per-cpu" => r.memory = Some(MemoryRequest::PerCpu(num(value))),
            "--mem-per-gpu" => r.memory = Some(MemoryRequest::PerGpu(num(value))),
            "--gres" => r.gres.extend(gres::parse_gres(value, GresScope::Node).expect("gres")),
            "--gpus" => r.gres.extend(gres::parse_gpus(value, GresScope::Job).expect("gpus")),
            "--gpus-per-task" => r.gres.extend(gres::parse_gpus(value, GresScope::Task).expect("gpus")),
            "--gpus-per-socket" => r.gres.extend(gres::parse_gpus(value, GresScope::Socket).expect("gpus")),
            "--exclusive" => r.exclusive = Exclusive::Node,
            "--contiguous" => r.contiguous = true,
            "--cyclic" => r.distribution = Some(Distribution::Cyclic),
            "--plane" => r.distribution = Some(Distribution::Plane(num(value))),
            "--pack" => r.pack = Some(true),
            "--nopack" => r.pack = Some(false),
            "--spread-job" => r.spread = true,
            "--use-min-nodes" => r.fewest_nodes = true,
            "--gpu-mem" => r.gpu_memory_mb = memory::parse_memory_mb(value).expect("memory"),
            "--switches" => {
                r.switches = Some(sluice_model::request::SwitchRequest { count: num(value), max_wait_secs: None });
            }
            "--segment" => r.segment = Some(num(value)),
            "--sockets-per-node" => r.sockets_per_node = Some(num(value)),
            "--cores-per-socket" => r.cores_per_socket = Some(num(value)),
            "--threads-per-core" => r.threads_per_core = Some(num(value)),
            "--ntasks-per-socket" => r.ntasks_per_socket = Some(num(value)),
            "--ntasks-per-core" => r.ntasks_per_core = Some(num(value)),
            "--enforce-binding" => r.enforce_binding = true,
            "--disable-binding" => r.disable_binding = true,
            "--overcommit" => r.overcommit = true,
            "--tmp" => r.tmp_disk_mb = num(value),
            "--time-min" => job.time_min = Some(time::parse_time_limit(value).expect("time")),
            "--expected" => job.expected_ms = Some(num::<i64>(value) * 60_000),
            "--deadline" => job.deadline = Some(after_minutes(num(value))),
            "--array" => job.indices = array::parse_array(value, 1000).expect("array").indices.iter().collect(),
            "prio" => job.priority = num(value),
            "charge" => job.charge = charge(value),
            "rank" => {
                let rank = value.trim_end_matches('+');
                job.preemptor = Some(Preemptor { rank: num(rank), within: rank != value });
            }
            "claim" => {
                let (nodes, victims) = value.split_once('/').expect("NODES/JOBS");
                let victims = victims.split(',').filter(|v| !v.is_empty()).map(|v| JobId(num(v))).collect();
                job.claim = Some(Arc::new(Claim { partition: 0, nodes: names(nodes), victims }));
            }
            "at" => job.submitted = Time(num(value)),
            _ => panic!("job: {word}"),
        }
    }
    spec.time_limit = job.time_limit;
    spec.time_min = job.time_min;
    job.request = Arc::new(spec);
    job
}

/// Plans, audits, plans again in another order, then compares with the expectation.
#[track_caller]
pub fn scenario(cluster_line: &str, load_line: &str, expectation: &str) -> Plan {
    let mut input = cluster(cluster_line);
    load(&mut input, load_line);
    let plan = plan_and_audit(&input);
    for words in statements(expectation) {
        expect(&input, &plan, &words);
    }
    plan
}

#[track_caller]
pub fn plan_and_audit(input: &Input) -> Plan {
    let plan = sluice_sched::plan(input);
    let wrong = audit(input, &plan);
    assert!(wrong.is_empty(), "{}\n{plan:#?}", wrong.iter().map(|v| format!("{v}\n")).collect::<String>());
    let mut other = input.clone();
    other.pending.reverse();
    assert_eq!(sluice_sched::plan(&other), plan, "the order of the input must not matter");
    plan
}

#[track_caller]
fn expect(input: &Input, plan: &Plan, words: &[&str]) {
    let (id, index) = words[0].split_once('_').map_or((words[0], None), |(id, i)| (id, Some(num::<u32>(i))));
    let job = JobId(num(id));
    let start = plan.starts.iter().find(|s| s.job == job && s.index == index);
    let started = || start.unwrap_or_else(|| panic!("{} does not start: {plan:#?}", words[0]));
    let planned = plan.reservations.iter().find(|r| r.job == job);
    match words[1] {
        "starts" => _ = started(),
        "on" => {
            let nodes = &started().allocation.nodes;
            let got: Vec<String> = nodes.iter().map(|n| format!("{}:{}", n.node, n.tasks)).collect();
            assert_eq!(got.join(" "), words[2..].join(" "), "{}", words[0]);
        }
        "holds" => {
            let node = NodeName::from(words[2]);
            let held = started().allocation.on(&node).unwrap_or_else(|| panic!("not on {node}"));
            for word in &words[3..] {
                let (what, value) = word.split_once('=').expect("WHAT=VALUE");
                let got = match what {
                    "cpus" => held.cpus.to_string(),
                    "mem" => held.memory_mb.to_string(),
                    _ => {
                        let of = |g: &&GresAlloc| g.name == what || g.kind.as_deref() == Some(what);
                        held.gres.iter().filter(of).map(|g| g.indices.to_string()).collect::<Vec<_>>().join("+")
                    }
                };
                assert_eq!(got, value, "{what} of {} on {node}", words[0]);
            }
        }
        "backfilled" => assert!(started().backfilled, "{} started in order", words[0]),
        "in-order" => assert!(!started().backfilled, "{} was backfilled", words[0]),
        "limit" => assert_eq!(started().time_limit, time::parse_time_limit(words[2]).expect("time"), "{}", words[0]),
        "takes" => {
            let victims = plan.preemptions.iter().filter(|p| p.job == job).flat_map(|p| &p.victims);
            let got: Vec<String> = victims.map(|(id, mode)| format!("{id}:{}", mode.as_str())).collect();
            assert_eq!(got.join(" "), words[2..].join(" "), "{plan:#?}");
        }
        "waits" => {
            let whole = input.pending.iter().find(|p| p.job == job).expect("pending").indices.len().max(1);
            let count = plan.starts.iter().filter(|s| s.job == job).count();
            assert!(count < whole, "{} starts: {plan:#?}", words[0]);
            let reason = plan.reasons.iter().find(|r| r.0 == job).map_or(Reason::Priority, |r| r.1);
            assert_eq!(reason.as_str(), words[2], "{}", words[0]);
        }
        "planned" => {
            let planned = planned.unwrap_or_else(|| panic!("{} has no planned start: {plan:#?}", words[0]));
            assert_eq!(planned.start, after_minutes(num(words[2].strip_suffix('m').expect("minutes"))), "{}", words[0]);
            let nodes: Vec<&str> = planned.nodes.iter().map(|n| n.as_str()).collect();
            assert_eq!(nodes.join(" "), words[3..].join(" "), "{}", words[0]);
        }
        "unplanned" => assert!(planned.is_none(), "{} is planned: {planned:?}", words[0]),
        other => panic!("unknown expectation {other}"),
    }
}
