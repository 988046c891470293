//! Who goes first, who may pass, and what those who wait are told.

mod scenario;
use scenario::*;
use sluice_model::{JobId, Reason};
use sluice_sched::{Estimate, estimate};

#[test]
fn priority_then_age_then_id() {
    scenario("node1", "J1 -c4; J2 -c4 prio=200", "2 starts; 1 waits Resources");
    scenario("node1", "J1 -c4 at=5; J2 -c4 at=4", "2 starts; 1 waits Resources");
    scenario("node1", "J1 -c4 at=5; J2 -c4 at=5", "1 starts; 2 waits Resources");
}

#[test]
fn a_higher_tier_goes_before_any_priority() {
    let cluster = "node1; low=node1; high=node1 tier=5";
    scenario(cluster, "J1 -c4 -p low prio=900; J2 -c4 -p high", "2 starts; 1 waits Resources");
}

#[test]
fn only_the_first_blocked_of_a_partition_waits_for_resources() {
    let load = "R9 node1:4 10m; J1 -t10; J2 -t10; J3 -t10";
    scenario("node1", load, "1 waits Resources; 2 waits Priority; 3 waits Priority");
    scenario("node1; a=node1; b=node1", "R9 node1:4 10m; J1 -p a; J2 -p b", "1 waits Resources; 2 waits Resources");
}

#[test]
fn a_short_job_fills_the_gap_before_a_planned_start() {
    scenario(
        "node[1-2]",
        "R9 node1:4 10m; J1 -N2 -c4 -t30; J2 -t10; J3 -t11",
        "1 waits Resources; 1 planned 10m node1 node2; 2 on node2:1; 2 backfilled; 3 waits Priority",
    );
}

#[test]
fn a_long_job_may_pass_on_what_the_planned_one_leaves() {
    scenario(
        "node[1-2]",
        "R9 node1:4 10m; J1 -N2 -n6 -t30; J2 -t60; J3 -t60; J4 -t60",
        "1 planned 10m node1 node2; 2 on node2:1; 3 on node2:1; 4 waits Priority",
    );
}

#[test]
fn without_backfill_nobody_passes_in_the_partition() {
    let cluster = "node[1-3]; a=node[1-2]; b=node3; policy nobackfill";
    scenario(
        cluster,
        "R9 node1:4 10m; J1 -N2 -p a; J2 -p a -t1; J3 -p b",
        "1 waits Resources; 1 unplanned; 2 waits Priority; 3 starts",
    );
}

#[test]
fn without_backfill_nodes_of_a_blocked_partition_are_kept() {
    let cluster = "node[1-3]; a=node[1-2]; b=node[2-3]; policy nobackfill";
    scenario(cluster, "R9 node1:4 10m; J1 -N2 -p a; J2 -N2 -p b; J3 -p b", "2 waits Resources; 3 waits Priority");
    scenario(cluster, "R9 node1:4 10m; J1 -N2 -p a; J3 -p b", "3 on node3:1");
}

#[test]
fn more_planned_starts_protect_more_jobs() {
    let load = "R9 node1:4 node2:1 10m; J1 -N2 -c4 -t10; J2 -N3 -c4 -t10; J3 -t21; J4 -t20";
    scenario("node[1-3]", load, "1 planned 10m node1 node2; 2 unplanned; 3 on node3:1; 4 on node3:1");
    scenario(
        "node[1-3]; policy reservations=2",
        load,
        "1 planned 10m node1 node2; 2 planned 20m node1 node2 node3; 3 waits Priority; 4 on node3:1",
    );
}

#[test]
fn each_partition_has_its_planned_start() {
    scenario(
        "node[1-2]; a=node1; b=node2",
        "R9 node1:1 10m part=a; R8 node2:1 20m part=b; J1 -c4 -p a; J2 -c4 -p b",
        "1 planned 10m node1; 2 planned 20m node2",
    );
}

#[test]
fn a_completing_job_is_gone_soon_but_not_yet() {
    let plan = scenario("node1", "R9 node1:4 0m; J1 -c4", "1 waits Resources");
    assert!(plan.reservations[0].start > NOW && plan.reservations[0].start < after_minutes(1));
}

#[test]
fn nobody_can_say_when_a_job_without_limit_ends_but_the_next_in_line_is_protected() {
    scenario(
        "node[1-2]",
        "R9 node1:4 forever; J1 -N2 -c4; J2; J3 -t500",
        "1 waits Resources; 1 unplanned; 2 waits Priority; 3 on node2:1",
    );
}

#[test]
fn time_min_shortens_a_job_to_fit_before_a_planned_start() {
    let load = "R9 node1:4 10m; J1 -N2 -c4 -t30; J2 -t60 --time-min=5";
    scenario("node[1-2]", load, "2 on node2:1; 2 limit 10; 2 backfilled");
    scenario("node[1-2]", "R9 node1:4 10m; J1 -N2 -c4 -t30; J2 -t60 --time-min=11", "2 waits Priority");
    scenario("node[1-2]", "J2 -t60 --time-min=5", "2 limit 60; 2 in-order");
    scenario("node[1-2]; main=node[1-2] max=20", "J2 -t60 --time-min=5", "2 limit 20");
}

#[test]
fn a_job_without_limit_gets_the_partitions_default_and_at_most_its_maximum() {
    scenario("node1; main=node1 default=7 max=20", "J1", "1 limit 7");
    scenario("node1; main=node1 max=20", "J1", "1 limit 20");
    scenario("node1", "J1", "1 limit UNLIMITED");
    scenario("node1; main=node1 max=20", "J1 -t21", "1 waits PartitionTimeLimit");
}

#[test]
fn a_job_that_would_miss_its_deadline_is_not_started() {
    scenario("node1", "J1 -t30 --deadline=29", "1 waits DeadLine");
    scenario("node1", "J1 -t30 --deadline=30", "1 limit 30");
    scenario("node1", "J1 -t30 --time-min=10 --deadline=20", "1 limit 20");
}

#[test]
fn a_blocked_job_whose_deadline_would_pass_holds_nobody_up() {
    scenario("node1", "R9 node1:1 10m; J1 -c4 -t5 --deadline=12; J2 -t60", "1 waits Resources; 1 unplanned; 2 starts");
}

#[test]
fn states_of_partitions_and_nodes_are_named() {
    let cluster = "node[1-2]; node3 down; up=node[1-3]; down=node1 state=DOWN; off=node1 state=INACTIVE; full=node[1-3] state=DRAIN";
    scenario(
        cluster,
        "J1 -p down; J2 -p off; J3 -p full",
        "1 waits PartitionDown; 2 waits PartitionInactive; 3 starts",
    );
    scenario(cluster, "J1 -p down,up", "1 starts");
    scenario(
        cluster,
        "J1 -w node3; J2 -N3; J3 -N4",
        "1 waits ReqNodeNotAvail; 2 waits NodeDown; 3 waits PartitionNodeLimit",
    );
    scenario(cluster, "J1 -w node3 prio=900; J2 -N2 -c4", "2 on node1:1 node2:1; 2 in-order");
}

#[test]
fn partition_limits_on_nodes_make_a_job_wait() {
    scenario("node[1-4]; main=node[1-4] nodes=1-2", "J1 -N3; J2", "1 waits PartitionNodeLimit; 2 starts");
    scenario("node[1-4]; main=node[1-4] nodes=2-4", "J1 -N1-3", "1 on node1:1 node2:1 node3:1");
    scenario("node[1-4]; main=node[1-4] nodes=2-4", "J1 -N1", "1 waits PartitionNodeLimit");
    scenario("node[1-4]; main=node[1-4] nodes=2-4", "J1", "1 on node1:1 node2:1");
}

#[test]
fn tasks_of_an_array_start_one_by_one() {
    scenario(
        "node1",
        "J1 --array=3-8 -t10; J2 -t10",
        "1_3 holds node1 cpus=0; 1_6 holds node1 cpus=3; 1 waits Resources; 1 planned 10m node1; 2 waits Priority",
    );
    let plan = scenario("node1", "J1 --array=0-2", "1_0 starts; 1_2 starts");
    assert!(plan.reasons.is_empty());
}

#[test]
fn an_array_in_two_partitions_goes_on_in_the_second_where_it_stopped_in_the_first() {
    let plan = scenario(
        "node1 cpus=2; node2 cpus=2; a=node1; b=node2",
        "J1 --array=0-3 -p a,b -t10; J2 -p a -t10",
        "1_0 on node1:1; 1_1 on node1:1; 1_2 on node2:1; 1_3 on node2:1; 2 waits Resources",
    );
    assert_eq!(plan.starts.len(), 4);
    assert!(plan.reservations.iter().all(|r| r.job == JobId(2)));
}

#[test]
fn a_job_of_several_partitions_starts_where_it_can() {
    scenario("node[1-2]; a=node1; b=node2", "R9 node1:4 10m part=a; J1 -p a,b", "1 on node2:1");
    scenario("node[1-2]; a=node1 state=DOWN; b=node2", "R9 node2:4 10m part=b; J1 -p a,b", "1 waits Resources");
}

#[test]
fn a_jobs_own_planned_start_is_not_in_its_way_in_another_partition() {
    // Planned on node2 and node3 in a; node1 and node2 are free now in b.
    scenario(
        "node[1-3]; a=node[2-3]; b=node[1-2] exclusive",
        "R9 node3:4 10m part=a; J1 -N2 -c2 -t10 -p a,b",
        "1 on node1:1 node2:1; 1 in-order; 1 unplanned",
    );
    scenario(
        "node[1-3]; a=node[2-3]; b=node[1-2]; policy nobackfill",
        "R9 node3:4 10m part=a; J1 -N2 -c2 -t10 -p a,b",
        "1 on node1:1 node2:1",
    );
}

#[test]
fn of_several_partitions_the_earliest_planned_start_is_kept() {
    let cluster = "node[1-2]; a=node1; b=node2";
    scenario(cluster, "R9 node1:4 20m part=a; R8 node2:4 10m part=b; J1 -p a,b", "1 planned 10m node2");
    scenario(cluster, "R9 node1:4 10m part=a; R8 node2:4 20m part=b; J1 -p a,b", "1 planned 10m node1");
}

#[test]
fn the_rest_of_a_long_queue_waits_for_priority() {
    let load = "J1 -c3; J2 -c2; J3 -c1";
    scenario("node1; policy depth=2", load, "1 starts; 2 waits Resources; 3 waits Priority");
    let plan = scenario("node1; policy budget=1", load, "1 starts; 2 waits Priority; 3 waits Priority");
    assert_eq!(plan.work, 1);
}

#[test]
fn a_thousand_jobs_of_one_shape_cost_one_attempt_once_it_does_not_fit() {
    let mut input = cluster("node[1-2]");
    load(&mut input, "R9 node1:4 node2:4 10m");
    for id in 1..=1000 {
        load(&mut input, &format!("J{id} -t10"));
    }
    let plan = plan_and_audit(&input);
    assert!(plan.work < 10, "{}", plan.work);
    assert_eq!(plan.reasons, [(JobId(1), Reason::Resources)]);
}

#[test]
fn an_estimate_is_the_plan_for_a_job_that_is_not_there_yet() {
    let mut input = cluster("node[1-2]");
    load(&mut input, "R9 node1:4 10m; R8 node2:4 20m; J1 -N2 -c4 -t30");
    let ask = |input: &sluice_sched::Input, words: &[&str]| -> Option<Estimate> {
        estimate(input, &pending(input, 77, words))
    };
    let start = |e: &Option<Estimate>| e.as_ref().map(|e| e.reservation.start);
    // Before the planned start of job 1, since it is short; after it, since it is not.
    assert_eq!(start(&ask(&input, &["-t10"])), Some(after_minutes(10)));
    let long = ask(&input, &["-t11", "-N2", "-n3"]);
    assert_eq!(start(&long), Some(after_minutes(50)));
    assert_eq!(long.expect("estimate").cpus, 3);
    assert_eq!(start(&ask(&input, &["-N3"])), None);
    // One in the queue is estimated where it stands, even if others come first.
    load(&mut input, "J2 -N2 -c4 -t10; J3 -N2 -c4 -t10");
    let third = input.pending[2].clone();
    assert_eq!(start(&estimate(&input, &third)), Some(after_minutes(50)));
    input.running.clear();
    input.pending.clear();
    assert_eq!(start(&ask(&input, &[])), Some(NOW));
}

#[test]
fn an_estimate_does_not_depend_on_depth_or_budget() {
    let mut input = cluster("node1; policy depth=1 budget=1");
    load(&mut input, "R9 node1:4 10m; J1 -c4 -t30; J2 -c4 -t10");
    let second = input.pending[1].clone();
    assert!(estimate(&input, &second).is_some());
}

#[test]
fn plans_go_by_expected_durations_and_limits_by_what_was_asked_for() {
    // Job 1 will start after 10 minutes, not 60; job 2 will be gone by then, job 3 will not.
    scenario(
        "node[1-2]",
        "R9 node1:4 60m expected=10; J1 -N2 -c4 -t90; J2 -t60 --expected=10; J3 -t60 --expected=11",
        "1 planned 10m node1 node2; 2 on node2:1; 2 limit 60; 3 waits Priority",
    );
    // Beyond the limit it is the limit.
    scenario("node1", "R9 node1:4 10m expected=30; J1 -c4", "1 planned 10m node1");
}

#[test]
fn a_job_past_its_expected_end_is_corrected_by_the_policy() {
    let load = "R9 node1:4 60m expected=-2; J1 -c4";
    let soon = scenario("node1", load, "1 waits Resources").reservations[0].start;
    assert!(soon > NOW && soon < after_minutes(1));
    scenario("node1; policy overrun=steps", load, "1 planned 3m node1");
    scenario("node1; policy overrun=limit", load, "1 planned 60m node1");
    scenario("node1; policy overrun=steps", "R9 node1:4 2m expected=-1; J1 -c4", "1 planned 2m node1");
}

#[test]
fn who_passes_is_chosen_by_the_backfill_order() {
    // One CPU is free for 10 minutes; job 1 is planned then.
    let load = "R9 node1:3 10m; J1 -c4 -t30; J2 -t10; J3 -t5; J4 -t7";
    scenario("node1", load, "2 starts; 3 waits Priority");
    scenario("node1; policy order=shortest", load, "3 starts; 2 waits Priority; 4 waits Priority; 1 planned 10m node1");
    let load = "R9 node1:2 10m; J1 -c4 -t30; J2 -t10; J3 -t7 -c2; J4 -t9";
    scenario("node1; policy order=shortest", load, "3 starts; 2 waits Priority; 4 waits Priority");
    scenario("node1; policy order=area", load, "2 starts; 4 starts; 3 waits Priority");
    // Those before the first planned start keep their order, and so do tiers.
    scenario("node1; policy order=shortest", "J1 -c3 -t30; J2 -t10; J3 -t5", "1 starts; 2 starts; 3 waits Resources");
    scenario(
        "node1; a=node1; b=node1 tier=5; policy order=shortest",
        "R9 node1:3 10m; J1 -p b -c4 -t30; J4 -p a -c4 -t60 prio=200; J2 -p b -t10; J3 -p a -t5",
        "2 starts; 3 waits Priority",
    );
}
