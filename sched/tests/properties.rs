//! Random clusters and loads, written in the scenario language so that a failing case can be read.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::{JobId, Reason, Time};
use sluice_sched::{Input, PendingJob, Plan, PlannedReservation, RunningJob, audit, estimate, feasible, plan};
use std::collections::BTreeMap;
use std::sync::Arc;

fn pick(options: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(options)
}

fn cluster_line() -> impl Strategy<Value = String> {
    let kind = pick(&[
        "cpus=4",
        "cpus=2 mem=300",
        "cpus=8 sockets=2 threads=2 gres=gpu:2 features=a",
        "cpus=4 gres=gpu:a100:1,gpu:v100:2 features=a,b weight=3",
        "cpus=16 mem=1000 features=b weight=2",
        "cpus=3 down",
    ]);
    let partition = pick(&["", "tier=2", "max=40", "nodes=0-3", "nodes=2-9", "exclusive", "maxcpus=2", "state=DRAIN"]);
    let policy =
        pick(&["", "nobackfill", "reservations=3", "reservations=100", "mempercpu=0", "mempernode=50", "depth=4"]);
    (prop::collection::vec((1u32..4, kind), 1..5), partition, partition_pair(), policy).prop_map(
        |(kinds, first, (second, from), policy)| {
            let mut line = String::new();
            let mut next = 1;
            for (count, kind) in kinds {
                line += &format!("node[{next}-{}] {kind}; ", next + count - 1);
                next += count;
            }
            let last = next - 1;
            let from = 1 + from % last;
            format!("{line} p=node[1-{last}] {first}; q=node[{from}-{last}] {second}; policy {policy}; license x=2")
        },
    )
}

fn partition_pair() -> impl Strategy<Value = (&'static str, u32)> {
    (pick(&["", "tier=3", "max=20", "nodes=0-2", "maxcpus=3"]), 0u32..12)
}

fn job_words() -> impl Strategy<Value = String> {
    let size = pick(&[
        "",
        "-c2",
        "-c4",
        "-n2",
        "-n5",
        "-n9",
        "-N2",
        "-N2 -n3",
        "-N1-3",
        "-N2-4 -n6",
        "-N3 --contiguous",
        "-n12 -c2",
        "--ntasks-per-node=2 -N2",
        "--ntasks-per-node=2 -n5",
        "--exclusive",
        "--exclusive -N2 -n5",
        "--overcommit -n9",
        "--mincpus=3 -n2",
        "-w node1",
        "-w node[1-2] -N2",
        "-x node1",
        "-C a",
        "-C a|b -N2",
        "-n4 --cyclic -N2",
    ]);
    let more = pick(&[
        "",
        "",
        "",
        "--mem=0",
        "--mem=250",
        "--mem-per-cpu=120",
        "--gres=gpu:1",
        "--gres=gpu:a100:1",
        "--gpus=3",
        "--gpus-per-task=1",
        "--gpus-per-socket=1",
        "--mem-per-gpu=100 --gres=gpu:1",
        "-L x:1",
        "-L x:2",
    ]);
    let time = pick(&["-t10", "-t20", "-t5", "-t60", "", "-t60 --time-min=5", "-t30 --deadline=35"]);
    let whereto = pick(&["-p p", "-p p", "-p q", "-p p,q", "-p q,p"]);
    let array = pick(&["", "", "", "", "--array=0-2"]);
    (size, more, time, whereto, array, 1u32..4).prop_map(|(size, more, time, whereto, array, prio)| {
        format!("{size} {more} {time} {whereto} {array} prio={prio}")
    })
}

fn jobs() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(job_words(), 1..14)
}

fn add_jobs(input: &mut Input, jobs: &[String], first: u32) {
    for (id, words) in (first..).zip(jobs) {
        load(input, &format!("J{id} {words}"));
    }
}

/// What a plan starts, as running jobs.
fn apply(input: &mut Input, plan: &Plan, next_id: &mut u32) {
    let now = input.now.expect("now");
    for start in &plan.starts {
        let at = input.pending.iter().position(|p| p.job == start.job).expect("pending");
        let job = &mut input.pending[at];
        let partition = input.partitions.iter().position(|p| p.name == start.partition).expect("partition");
        let exclusive = job.exclusive
            || input.partitions[partition].exclusive
            || job.request.request.exclusive != sluice_model::request::Exclusive::No;
        *next_id += 1;
        input.running.push(RunningJob {
            job: JobId(*next_id),
            allocation: Arc::new(start.allocation.clone()),
            ends: start.time_limit.duration().map(|d| now.plus(d)),
            expected_end: None,
            exclusive,
            partition: Some(partition as u32),
            licenses: std::collections::BTreeMap::clone(&job.request.licenses),
            charge: job.charge,
            victim: None,
        });
        match start.index {
            Some(index) => job.indices.retain(|i| *i != index),
            None => _ = input.pending.remove(at),
        }
        if start.index.is_some() && input.pending[at].indices.is_empty() {
            input.pending.remove(at);
        }
    }
}

/// No other job that may start before it without passing it still waits.
fn first_in_line(input: &Input, plan: &Plan, planned: &PlannedReservation) -> bool {
    let tier = |p: &PendingJob| p.partitions.iter().map(|p| input.partitions[*p as usize].priority_tier).max();
    let key = |p: &PendingJob, tier: Option<u32>| (std::cmp::Reverse((tier, p.priority)), p.submitted, p.job);
    let me = input.pending.iter().find(|p| p.job == planned.job).expect("pending");
    let partition = input.partitions.iter().find(|p| p.name == planned.partition).expect("partition");
    let mine = key(me, Some(partition.priority_tier));
    let ahead = |p: &&PendingJob| p.job != me.job && key(p, tier(p)) < mine;
    input.pending.iter().filter(ahead).all(|p| {
        let started = plan.starts.iter().filter(|s| s.job == p.job).count() >= p.indices.len().max(1);
        let reason = plan.reasons.iter().find(|r| r.0 == p.job).map_or(Reason::Priority, |r| r.1);
        started || !matches!(reason, Reason::Priority | Reason::Resources | Reason::Licenses)
    })
}

/// Ends jobs until something changes; false when nothing ever will.
fn advance(input: &mut Input, early: u32) -> bool {
    let now = input.now.expect("now");
    // Now and then one ends before its limit.
    let early = (!input.running.is_empty() && early.is_multiple_of(3)).then(|| early as usize % input.running.len());
    if let Some(at) = early {
        input.running.remove(at);
        input.now = Some(Time(now.0 + 1000));
        input.running.retain(|r| r.ends.is_none_or(|e| e.0 > now.0 + 1000));
        return true;
    }
    let Some(next) = input.running.iter().filter_map(|r| r.ends).min() else { return false };
    input.now = Some(next);
    input.running.retain(|r| r.ends.is_none_or(|e| e > next));
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_legal_and_a_function_of_its_input(
        line in cluster_line(), before in jobs(), after in jobs(), shuffle in 0u64..1000,
    ) {
        let mut input = cluster(&line);
        add_jobs(&mut input, &before, 1);
        let first = plan(&input);
        prop_assert_eq!(audit(&input, &first), vec![], "{:?}", first);
        // On top of what runs now.
        apply(&mut input, &first, &mut 1000);
        input.now = Some(after_minutes(3));
        add_jobs(&mut input, &after, 100);
        let second = plan(&input);
        prop_assert_eq!(audit(&input, &second), vec![], "{:?}", second);
        let mut other = input.clone();
        let count = other.pending.len().max(1);
        other.pending.rotate_left(shuffle as usize % count);
        other.pending.swap(0, count / 2);
        prop_assert_eq!(plan(&other), second);
    }

    /// Time passes, jobs end (some early), and who was first in line starts when it was promised, or before.
    #[test]
    fn the_first_in_line_starts_no_later_than_it_was_told(
        line in cluster_line(), queue in jobs(), ends in prop::collection::vec(0u32..1000, 60),
    ) {
        let mut input = cluster(&line);
        add_jobs(&mut input, &queue, 1);
        let mut next_id = 1000;
        let mut promised: BTreeMap<JobId, Time> = BTreeMap::new();
        for end in ends {
            let now = input.now.expect("now");
            let plan = plan(&input);
            prop_assert_eq!(audit(&input, &plan), vec![], "{:?}", plan);
            for start in &plan.starts {
                if let Some(at) = promised.remove(&start.job) {
                    prop_assert!(now <= at, "{:?} was promised {:?}, starts {:?}", start.job, at, now);
                }
            }
            if let Some(first) = plan.reservations.first().filter(|r| first_in_line(&input, &plan, r)) {
                let at = promised.entry(first.job).or_insert(first.start);
                prop_assert!(first.start <= *at, "promised {:?}, now {:?} of {:?}", at, first.start, first.job);
                *at = first.start;
            }
            // Promises hold for the first in line only.
            let first = plan.reservations.first().filter(|r| first_in_line(&input, &plan, r)).map(|r| r.job);
            promised.retain(|job, _| Some(*job) == first);
            apply(&mut input, &plan, &mut next_id);
            if !advance(&mut input, end) {
                break;
            }
        }
    }

    /// Backfill changes nothing for those that stand before the first blocked job of all.
    #[test]
    fn jobs_before_the_first_blocked_one_start_the_same_without_backfill(line in cluster_line(), queue in jobs()) {
        let mut input = cluster(&line);
        // Without backfill, who waits for licences holds nobody up.
        let queue: Vec<String> = queue.iter().map(|j| j.replace("-L x:1", "").replace("-L x:2", "")).collect();
        add_jobs(&mut input, &queue, 1);
        let with = plan(&input);
        input.policy.backfill = false;
        let without = plan(&input);
        let ahead: Vec<_> = with.starts.iter().take_while(|s| !s.backfilled).collect();
        let same: Vec<_> = without.starts.iter().take(ahead.len()).collect();
        prop_assert_eq!(ahead, same);
    }

    /// What is accepted at submission runs on the empty cluster, and what is refused waits for good.
    #[test]
    fn what_is_feasible_starts_on_an_empty_cluster(line in cluster_line(), words in job_words()) {
        let mut input = cluster(&line);
        input.nodes.iter_mut().for_each(|n| n.available = true);
        load(&mut input, &format!("J1 {words}"));
        let job = input.pending[0].clone();
        let plan = plan(&input);
        match feasible(input.cluster(), &job.request, &job.partitions) {
            Ok(()) => {
                prop_assert!(plan.starts.iter().any(|s| s.job == job.job), "{:?}", plan);
                let estimate = estimate(&input, &job).expect("it starts");
                prop_assert_eq!(Some(estimate.reservation.start), input.now);
            }
            // Refused as Slurm does, though the alternatives that there are would do.
            Err(sluice_sched::Infeasible::UnknownFeature { .. }) if !plan.starts.is_empty() => {
                prop_assert!(words.contains('|'), "{words}");
            }
            Err(never) => {
                prop_assert!(plan.starts.is_empty(), "{never}: {plan:?}");
                prop_assert_eq!(plan.reasons.len(), 1);
                prop_assert!(estimate(&input, &job).is_none());
            }
        }
    }
}
