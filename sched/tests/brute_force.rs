//! Plans on one node compared with those of a planner that knows nothing but minutes: it fills in a table of what is used
//! in each, and tries every minute for every job.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::{JobId, TimeLimit};
use sluice_sched::{BackfillOrder, Input, PendingJob, audit, plan};
use std::collections::BTreeMap;

fn pick(options: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(options)
}

/// CPUs, MiB, GPUs, licences.
type Amounts = [u64; 4];
const ALL: Amounts = [8, 800, 2, 2];
/// Minutes: later than anything that the cases can plan.
const END: usize = 4000;

struct Table(Vec<Amounts>);

impl Table {
    fn fits(&self, need: Amounts, from: usize, minutes: usize) -> bool {
        self.0[from..from + minutes].iter().all(|used| (0..4).all(|i| used[i] + need[i] <= ALL[i]))
    }
    fn add(&mut self, need: Amounts, from: usize, minutes: usize) {
        for used in &mut self.0[from..from + minutes] {
            (0..4).for_each(|i| used[i] += need[i]);
        }
    }
}

struct Asked {
    id: JobId,
    need: Amounts,
    minutes: usize,
    partition: usize,
    tier: u32,
    size: u64,
}

fn asked(input: &Input, job: &PendingJob) -> Asked {
    let r = job.resources();
    let cpus = u64::from(r.cpus_per_task.unwrap_or(1));
    let gpus = r.gres.iter().map(|g| g.count).sum();
    let memory = match r.memory {
        Some(sluice_model::request::MemoryRequest::PerNode(mb)) => mb,
        _ => 100 * cpus,
    };
    let licenses = job.request.licenses.values().map(|n| u64::from(*n)).sum();
    let Some(TimeLimit::Minutes(limit)) = job.time_limit else { panic!("a limit") };
    let minutes = job.expected_ms.map_or(limit, |ms| limit.min((ms / 60_000) as u32)) as usize;
    let partition = job.partitions[0] as usize;
    let size = match input.policy.backfill_order {
        BackfillOrder::Queue => 0,
        BackfillOrder::Shortest => minutes as u64,
        BackfillOrder::SmallestArea => minutes as u64 * cpus,
    };
    let tier = input.partitions[partition].priority_tier;
    Asked { id: job.job, need: [cpus, memory, gpus, licenses], minutes, partition, tier, size }
}

/// (jobs that start now, jobs with a planned start and its minute), in the order in which that is decided.
fn by_brute_force(input: &Input) -> (Vec<JobId>, Vec<(JobId, usize)>) {
    let now = input.now.expect("now").0;
    let mut table = Table(vec![[0; 4]; END]);
    for job in &input.running {
        let held = &job.allocation.nodes[0];
        let gpus = held.gres.iter().map(|g| g.indices.len()).sum();
        let licenses = job.licenses.values().map(|n| u64::from(*n)).sum();
        let minutes = (job.ends.expect("an end").0 - now) / 60_000;
        table.add([held.cpus.len(), held.memory_mb, gpus, licenses], 0, minutes as usize);
    }
    let mut queue: Vec<&PendingJob> = input.pending.iter().collect();
    let tier = |j: &PendingJob| input.partitions[j.partitions[0] as usize].priority_tier;
    queue.sort_by_key(|j| (std::cmp::Reverse((tier(j), j.priority)), j.submitted, j.job));
    let policy = &input.policy;
    let mut blocked = [false; 2];
    let mut planned_in: BTreeMap<Option<usize>, u32> = BTreeMap::new();
    let (mut starts, mut planned, mut later) = (Vec::new(), Vec::new(), Vec::new());
    let mut try_one = |job: &Asked, blocked: &mut [bool; 2], planned_in: &mut BTreeMap<Option<usize>, u32>| {
        if table.fits(job.need, 0, job.minutes) {
            table.add(job.need, 0, job.minutes);
            starts.push(job.id);
            return;
        }
        let licenses = !table.fits([0, 0, 0, job.need[3]], 0, job.minutes);
        let count = planned_in.entry((!licenses).then_some(job.partition)).or_default();
        blocked[job.partition] |= !licenses;
        if *count < policy.reservations {
            *count += 1;
            let at = (1..END).find(|at| table.fits(job.need, *at, job.minutes)).expect("a moment");
            table.add(job.need, at, job.minutes);
            planned.push((job.id, at));
        }
    };
    for job in queue {
        let job = asked(input, job);
        let settled =
            blocked[job.partition] && planned_in.get(&Some(job.partition)).copied().unwrap_or(0) >= policy.reservations;
        if settled && policy.backfill_order != BackfillOrder::Queue {
            later.push(job);
        } else {
            try_one(&job, &mut blocked, &mut planned_in);
        }
    }
    later.sort_by_key(|j| (std::cmp::Reverse(j.tier), j.size));
    for job in later {
        try_one(&job, &mut blocked, &mut planned_in);
    }
    (starts, planned)
}

fn job_words() -> impl Strategy<Value = String> {
    let size = pick(&["", "-c2", "-c3", "-c5", "-c8", "-c8 --mem=100"]);
    let more = pick(&["", "", "", "--mem=300", "--mem=600", "--gres=gpu:1", "--gres=gpu:2", "-L x:1", "-L x:2"]);
    let whereto = pick(&["-p p", "-p p", "-p q"]);
    (size, more, whereto, 1u32..60, 1u32..80, 1u32..4).prop_map(|(size, more, whereto, limit, expected, prio)| {
        let expected = if expected < 30 { format!("--expected={expected}") } else { String::new() };
        format!("{size} {more} -t{limit} {expected} {whereto} prio={prio}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn starts_and_planned_starts_are_those_of_brute_force(
        policy in pick(&["", "reservations=0", "reservations=2", "reservations=100", "order=shortest", "order=area"]),
        tier in pick(&["", "tier=2"]),
        running in prop::collection::vec((1u32..4, 0u32..2, 1i64..60), 0..4),
        queue in prop::collection::vec(job_words(), 1..12),
    ) {
        let line = format!("node1 cpus=8 mem=800 gres=gpu:2; p=node1; q=node1 {tier}; policy {policy}; license x=2");
        let mut input = cluster(&line);
        let (mut cpus, mut gpus) = (8, 2);
        for (id, (c, g, minutes)) in (500..).zip(&running) {
            let (c, g) = (*c.min(&cpus), *g.min(&gpus));
            if c > 0 {
                load(&mut input, &format!("R{id} node1:{c}+{g} {minutes}m"));
                cpus -= c;
                gpus -= g;
            }
        }
        for (id, words) in (1..).zip(&queue) {
            load(&mut input, &format!("J{id} {words}"));
        }
        let plan = plan(&input);
        prop_assert_eq!(audit(&input, &plan), vec![], "{:?}", plan);
        let (starts, planned) = by_brute_force(&input);
        let got: Vec<JobId> = plan.starts.iter().map(|s| s.job).collect();
        prop_assert_eq!(got, starts);
        let minute = |t: sluice_model::Time| ((t.0 - input.now.expect("now").0) / 60_000) as usize;
        let got: Vec<(JobId, usize)> = plan.reservations.iter().map(|r| (r.job, minute(r.start))).collect();
        prop_assert_eq!(got, planned);
    }
}
