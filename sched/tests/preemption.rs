//! Preemption: who has to go for whom, when, and what is planned around that.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::JobId;
use sluice_sched::preemption::{Preemption, weight_among};
use sluice_sched::{Input, audit, plan};

const NODE: &str = "node1 cpus=4; preempt 1>0 2>0,1";

#[test]
fn a_job_takes_the_room_of_a_job_that_its_rank_may_preempt() {
    let plan = scenario(
        NODE,
        "R9 node1:4 60m victim=0/cancel/30/5; J1 -n1 -t10 rank=1",
        "1 takes 9:cancel; 1 waits Resources",
    );
    assert_eq!(plan.reservations[0].start.0, NOW.0 + 30_000);
    assert_eq!(plan.preemptions[0].cost, 4 * 5 * 60_000);
}

#[test]
fn nobody_is_preempted_by_equals_or_by_those_below() {
    scenario(
        NODE,
        "R9 node1:4 60m victim=1/cancel/30/5; J1 -n1 -t10 rank=1; J2 -n1 rank=0; J3 -n1",
        "1 takes; 2 takes; 3 takes; 1 planned 60m node1",
    );
}

#[test]
fn nobody_is_preempted_for_a_job_that_starts_anyway() {
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R9 node1:4 60m victim=0/cancel/30/5; J1 -n4 -t10 rank=1",
        "1 on node2:4; 1 takes",
    );
}

#[test]
fn nobody_is_preempted_for_a_job_that_could_start_as_soon_by_a_natural_end() {
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R8 node1:4 1m; R9 node2:4 60m victim=0/cancel/90/5; J1 -n4 -t10 rank=1",
        "1 takes; 1 planned 1m node1",
    );
}

#[test]
fn nobody_is_preempted_in_vain() {
    scenario(
        NODE,
        "R8 node1:1 60m; R9 node1:3 60m victim=0/cancel/30/5; J1 -n4 -t10 rank=1",
        "1 takes; 1 planned 60m node1",
    );
}

#[test]
fn the_victim_that_loses_least_work_goes() {
    // 4 CPUs for 5 minutes are less than 2 for 11.
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R8 node1:2 60m victim=0/cancel/30/11; R9 node2:4 60m victim=0/cancel/30/5; R7 node1:2 60m; J1 -n2 -t10 rank=1",
        "1 takes 9:cancel",
    );
}

#[test]
fn among_equal_losses_fewer_victims_go_and_then_the_younger() {
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R6 node1:2 60m victim=0/cancel/30/4; R7 node1:2 60m victim=0/cancel/30/4;
         R9 node2:4 60m victim=0/cancel/30/4; J1 -n4 -t10 rank=1",
        "1 takes 9:cancel",
    );
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R8 node1:2 60m victim=0/cancel/30/4; R7 node1:2 60m; R9 node2:1 60m victim=0/cancel/30/8; R6 node2:3 60m;
         J1 -n1 -t10 rank=1",
        "1 takes 8:cancel",
    );
}

#[test]
fn a_gpu_weighs_as_much_as_the_cpus_that_go_with_it() {
    let plan = scenario(
        "node1 cpus=8 gres=gpu:2; preempt 1>0",
        "R9 node1:1+1 60m victim=0/requeue/30/10; R8 node1:1+1 60m; J1 -n1 --gres=gpu:1 -t10 rank=1",
        "1 takes 9:requeue",
    );
    assert_eq!(plan.preemptions[0].cost, 4 * 10 * 60_000);
}

#[test]
fn several_victims_on_several_nodes_make_room_for_a_wide_job() {
    scenario(
        "node[1-4] cpus=4; preempt 1>0",
        "R6 node1:4 60m victim=0/cancel/30/50; R7 node2:4 60m victim=0/cancel/30/5; R8 node3:4 60m victim=0/cancel/30/6;
         R9 node4:4 60m victim=0/cancel/30/7; J1 -N3 -n12 -t10 rank=1",
        "1 takes 7:cancel 8:cancel 9:cancel",
    );
}

#[test]
fn a_node_that_is_free_is_used_beside_those_that_are_taken() {
    scenario(
        "node[1-3] cpus=4; preempt 1>0",
        "R7 node2:4 60m victim=0/cancel/30/5; R8 node3:4 60m victim=0/cancel/30/6; J1 -N2 -n8 -t10 rank=1",
        "1 takes 7:cancel",
    );
}

#[test]
fn what_is_taken_is_not_given_to_others_while_the_grace_runs() {
    // Job 2 would fit on what is free, but not for long enough.
    scenario(
        NODE,
        "R9 node1:2 60m victim=0/cancel/120/5; J1 -n4 -t10 rank=1 prio=5; J2 -n2 -t30 prio=9; J3 -n2 -t1 prio=1",
        "2 starts",
    );
    scenario(
        NODE,
        "R9 node1:2 60m victim=0/cancel/120/5; J1 -n4 -t10 rank=1 prio=9; J2 -n2 -t30 prio=5; J3 -n2 -t1 prio=1",
        "1 takes 9:cancel; 1 planned 2m node1; 2 waits Resources; 3 starts",
    );
}

#[test]
fn a_claim_comes_first_until_it_starts() {
    scenario(
        NODE,
        "R9 node1:2 1m; J1 -n4 -t10 rank=1 prio=1 claim=node1/9; J2 -n2 -t30 prio=9; J3 -n2 -t1 prio=5",
        "1 planned 1m node1; 1 waits Resources; 2 waits Resources; 3 starts",
    );
    scenario(NODE, "J1 -n4 -t10 rank=1 prio=1 claim=node1/; J2 -n2 -t30 prio=9", "1 on node1:4; 2 waits Resources");
}

#[test]
fn a_claim_that_is_worth_nothing_lapses() {
    let plan = scenario(
        NODE,
        "R9 node1:2 60m; J1 -n4 -t10 rank=1 prio=1 claim=node1/; J2 -n2 -t30 prio=9",
        "2 starts; 1 planned 60m node1",
    );
    assert_eq!(plan.lapsed, [sluice_model::JobId(1)]);
}

#[test]
fn jobs_in_partitions_of_a_higher_tier_preempt_those_of_lower_ones() {
    let tiers = "node1 cpus=4; low=node1 tier=1; high=node1 tier=5; preempt tiers";
    scenario(
        tiers,
        "R9 node1:4 60m part=low victim=1/requeue/30/5; J1 -n1 -t10 -p high; J2 -n1 -t10 -p low",
        "1 takes 9:requeue; 2 takes",
    );
    scenario(tiers, "R9 node1:4 60m part=high victim=5/requeue/30/5; J1 -n1 -p high", "1 takes");
}

#[test]
fn a_job_that_fits_in_another_of_its_partitions_preempts_nobody() {
    let two = "node[1-2] cpus=4; p=node1; q=node2; preempt 1>0";
    scenario(two, "R9 node1:4 60m victim=0/requeue/30/5; J1 -n1 -t10 -p p,q rank=1", "1 takes; 1 on node2:1");
    scenario(
        two,
        "R9 node1:4 60m victim=0/requeue/30/5; R8 node2:4 60m part=q; J1 -n1 -t10 -p q,p rank=1",
        "1 takes 9:requeue; 1 waits Resources",
    );
}

#[test]
fn within_a_rank_only_lower_priorities_are_preempted() {
    scenario(NODE, "R9 node1:4 60m victim=1/cancel/30/5; J1 -n1 -t10 rank=1+ prio=101", "1 takes 9:cancel");
    scenario(NODE, "R9 node1:4 60m victim=1/cancel/30/5; J1 -n1 -t10 rank=1+ prio=100", "1 takes");
}

#[test]
fn a_suspended_victim_lends_its_cores_at_once_and_keeps_its_memory() {
    scenario(
        NODE,
        "R9 node1:4 60m victim=0/suspend/0/5; J1 -n2 -t10 rank=1 prio=9; J2 -n1 -t10 prio=5",
        "1 on node1:2; 1 holds node1 cpus=0-1; 1 takes 9:suspend; 2 waits Resources",
    );
    // 400 MiB are held, 3600 are left.
    scenario(
        NODE,
        "R9 node1:4 60m victim=0/suspend/0/5; J1 -n2 --mem=3700 -t10 rank=1",
        "1 takes; 1 planned 60m node1",
    );
}

#[test]
fn a_suspended_victim_does_not_give_its_devices() {
    scenario(
        "node1 cpus=4 gres=gpu:1; preempt 1>0",
        "R9 node1:1+1 60m victim=0/suspend/0/5; J1 -n1 --gres=gpu:1 -t10 rank=1",
        "1 takes; 1 planned 60m node1",
    );
}

#[test]
fn to_suspend_costs_nothing() {
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R8 node1:4 60m victim=0/suspend/0/500; R9 node2:4 60m victim=0/cancel/0/1; J1 -n4 -t10 rank=1",
        "1 takes 8:suspend; 1 on node1:4",
    );
}

#[test]
fn two_jobs_can_take_from_one_that_is_suspended_only_what_it_has() {
    scenario(
        NODE,
        "R9 node1:4 60m victim=0/suspend/0/5; J1 -n3 -t10 rank=1 prio=9; J2 -n3 -t10 rank=1 prio=5",
        "1 on node1:3; 1 takes 9:suspend; 2 takes",
    );
}

#[test]
fn one_that_still_has_its_exempt_time_is_left_alone() {
    let mut input = cluster(NODE);
    load(&mut input, "R9 node1:4 60m victim=0/cancel/30/5; J1 -n1 -t10 rank=1");
    input.running[0].victim.as_mut().expect("victim").exempt_until = after_minutes(1);
    assert!(plan_and_audit(&input).preemptions.is_empty());
    input.now = Some(after_minutes(1));
    assert_eq!(plan_and_audit(&input).preemptions.len(), 1);
}

#[test]
fn a_job_that_no_limit_lets_start_preempts_nobody() {
    scenario(
        "node1 cpus=4; main=node1 max=5; preempt 1>0",
        "R9 node1:4 60m victim=0/cancel/30/5; J1 -n1 -t10 rank=1",
        "1 takes; 1 waits PartitionTimeLimit",
    );
}

#[test]
fn licences_are_taken_too() {
    scenario(
        "node[1-2] cpus=4; license x=1; preempt 1>0",
        "R9 node1:1 60m lic=x:1 victim=0/cancel/30/5; R8 node2:1 60m victim=0/cancel/30/1; J1 -n1 -L x:1 -t10 rank=1",
        "1 takes 9:cancel; 2 takes",
    );
}

#[test]
fn jobs_of_a_full_class_are_looked_at_for_what_they_could_take() {
    // The first of two alike finds a victim, the second none.
    scenario(
        "node[1-2] cpus=4; preempt 1>0",
        "R8 node1:4 60m; R9 node2:4 60m victim=0/cancel/30/5; J1 -n4 -t10 rank=1; J2 -n4 -t10 rank=1; J3 -n4 -t10 prio=200",
        "3 planned 60m node1; 1 takes 9:cancel; 2 takes",
    );
}

/// Who has to go, by trying all sets of victims on a cluster without them.
fn by_force(input: &Input) -> Option<Vec<JobId>> {
    let now = input.now.expect("now");
    let mut victims: Vec<_> = input.running.iter().filter(|r| r.victim.is_some()).collect();
    victims.sort_by_key(|r| std::cmp::Reverse((r.victim.as_ref().map(|v| v.began), r.job)));
    let mut best: Option<(u64, usize, Vec<usize>)> = None;
    for bits in 0u32..1 << victims.len() {
        let set: Vec<usize> = (0..victims.len()).filter(|i| bits & (1 << i) != 0).collect();
        let mut without = Input { preemption: Preemption::Off, ..input.clone() };
        without.running.retain(|r| !set.iter().any(|i| victims[*i].job == r.job));
        if plan(&without).starts.is_empty() {
            continue;
        }
        let loss = |i: &usize| {
            let victim = victims[*i].victim.as_ref().expect("victim");
            victim.cost(weight_among(&victims[*i].allocation, &input.nodes), now)
        };
        let found = (set.iter().map(loss).sum(), set.len(), set);
        best = Some(best.map_or(found.clone(), |b| b.min(found)));
    }
    let mut jobs: Vec<JobId> = best?.2.into_iter().map(|i| victims[i].job).collect();
    jobs.sort_unstable();
    Some(jobs)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cheaper_set_of_victims_would_do(
        kind in prop::sample::select(vec!["cpus=4", "cpus=8 gres=gpu:2", "cpus=6 mem=900"]),
        running in prop::collection::vec((1usize..4, 1u32..5, 0u32..2, 0u32..6, any::<bool>()), 0..8),
        words in prop::sample::select(vec![
            "-n1", "-n2", "-n4", "-n1 -c4", "-N2 -n2", "-N2 -n4", "-N3 -n3", "-N2 -n6", "-n9", "--exclusive",
            "-n1 --mem=600", "-N2 -n2 --exclusive", "-w node2 -n2", "-n2 -c3",
        ]),
    ) {
        let mut input = cluster(&format!("node[1-3] {kind}; preempt 1>0"));
        for (at, (node, cpus, gpus, ran, is_victim)) in running.iter().enumerate() {
            let victim = if *is_victim { format!("victim=0/cancel/30/{ran}") } else { String::new() };
            let gpus = if kind.contains("gpu") { *gpus } else { 0 };
            let used: u64 = input.running.iter().flat_map(|r| &r.allocation.nodes)
                .filter(|n| n.node.as_str() == format!("node{node}")).map(|n| n.cpus.len()).sum();
            let held: u64 = input.running.iter().flat_map(|r| &r.allocation.nodes)
                .filter(|n| n.node.as_str() == format!("node{node}")).flat_map(|n| &n.gres).map(|g| g.indices.len()).sum();
            let have = input.nodes[0].spec.cpus;
            if used + u64::from(*cpus) <= u64::from(have) && held + u64::from(gpus) <= 2 {
                load(&mut input, &format!("R{} node{node}:{cpus}+{gpus} 60m {victim}", 50 + at));
            }
        }
        load(&mut input, &format!("J1 {words} -t10 rank=1"));
        let planned = plan(&input);
        prop_assert_eq!(audit(&input, &planned), vec![], "{:?}", planned);
        let mut taken: Vec<JobId> =
            planned.preemptions.iter().flat_map(|p| &p.victims).map(|v| v.0).collect();
        taken.sort_unstable();
        match by_force(&input) {
            None => prop_assert!(planned.preemptions.is_empty() && planned.starts.is_empty()),
            Some(none) if none.is_empty() => prop_assert_eq!(planned.starts.len(), 1),
            Some(cheapest) => prop_assert_eq!(taken, cheapest, "{:?}", planned),
        }
    }
}
