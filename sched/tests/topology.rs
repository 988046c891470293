//! Trees of switches and blocks: the lowest that has room, limits on switches, segments.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_sched::audit;

const TREE: &str = "node[1-8]; switch s1=node[1-2] s2=node[3-5] s3=node[6-8] t1=s1,s2 t2=s3 top=t1,t2";

#[test]
fn a_job_goes_to_the_smallest_switch_that_has_room() {
    scenario(TREE, "J1 -N2", "1 on node1:1 node2:1");
    scenario(TREE, "J1 -N3", "1 on node3:1 node4:1 node5:1");
    scenario(TREE, "R9 node4:4 10m; J1 -N3", "1 on node6:1 node7:1 node8:1");
    scenario(TREE, "R9 node6:4 10m; J1 -N2", "1 on node1:1 node2:1");
    // Of what is free, the switch where fewest nodes stay behind.
    scenario(TREE, "R9 node1:4 10m; R8 node6:4 10m; J1 -N2", "1 on node7:1 node8:1");
    // The lowest switch above them, on few leaves.
    scenario(TREE, "J1 -N4", "1 on node1:1 node2:1 node3:1 node4:1");
    scenario(TREE, "J1 -N7", "1 on node1:1 node2:1 node3:1 node4:1 node5:1 node6:1 node7:1");
    scenario(TREE, "J1 -n10", "1 on node3:4 node4:4 node5:2");
    scenario(TREE, "J1 -n4", "1 on node1:4");
    scenario(TREE, "J1 -N2 -w node6", "1 on node6:1 node7:1");
    scenario(TREE, "J1 -N2 -w node1,node6", "1 on node1:1 node6:1");
}

#[test]
fn no_more_leaf_switches_are_taken_than_asked_for() {
    scenario(
        TREE,
        "R9 node4:4 10m; R8 node7:4 20m; J1 -N3 --switches=1",
        "1 waits Resources; 1 planned 10m node3 node4 node5",
    );
    scenario(TREE, "R9 node4:4 10m; R8 node7:4 20m; J1 -N3", "1 starts");
    scenario(TREE, "R9 node4:4 10m; R8 node7:4 20m; J1 -N4 --switches=2", "1 on node1:1 node2:1 node3:1 node5:1");
    scenario(TREE, "J1 -N6 --switches=2", "1 on node3:1 node4:1 node5:1 node6:1 node7:1 node8:1");
    scenario(TREE, "J1 -n16 --switches=2 --cyclic -N5", "1 starts");
    // More than can ever be is waited for, not refused: in time it takes what there is.
    scenario(TREE, "J1 -N4 --switches=1", "1 waits Resources; 1 unplanned");
}

#[test]
fn nodes_on_no_switch_are_taken_last() {
    let cluster = "node[1-4]; switch s1=node[2-3]";
    scenario(cluster, "J1 -N2", "1 on node2:1 node3:1");
    scenario(cluster, "J1 -N3", "1 starts");
    scenario(cluster, "J1 -N3 --switches=1", "1 waits Resources");
}

#[test]
fn spread_jobs_and_neighbours_do_not_ask_the_switches() {
    scenario(TREE, "J1 -n3 --spread-job", "1 on node1:1 node2:1 node3:1");
    scenario(TREE, "J1 -N3 --contiguous", "1 on node1:1 node2:1 node3:1");
}

const BLOCKS: &str = "node[1-12]; block b1=node[1-4] b2=node[5-8] b3=node[9-12] sizes=4,8";

#[test]
fn blocks_are_filled_one_by_one() {
    scenario(BLOCKS, "J1 -N4", "1 on node1:1 node2:1 node3:1 node4:1");
    scenario(BLOCKS, "R9 node1:4 10m; R8 node9:4 10m; R7 node10:4 10m; J1 -N2", "1 on node11:1 node12:1");
    scenario(BLOCKS, "R9 node1:4 10m; J1 -N8", "1 starts");
    scenario(BLOCKS, "R9 node6:4 10m; J1 -N5", "1 on node1:1 node2:1 node3:1 node4:1 node5:1");
}

#[test]
fn segments_lie_whole_in_a_block() {
    let busy = "R9 node1:4 10m; R8 node5:4 10m; R7 node9:4 10m";
    scenario(BLOCKS, &format!("{busy}; J1 -N6 --segment=2"), "1 starts");
    scenario(BLOCKS, &format!("{busy}; J1 -N6 --segment=3"), "1 on node2:1 node3:1 node4:1 node6:1 node7:1 node8:1");
    scenario(
        BLOCKS,
        &format!("{busy}; J1 -N4 --segment=4"),
        "1 waits Resources; 1 planned 10m node1 node2 node3 node4",
    );
    scenario(BLOCKS, "J1 -N5 --segment=2", "1 waits BadConstraints");
    scenario(BLOCKS, "J1 -N10 --segment=5", "1 waits BadConstraints");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// By trying all sets of switches: what is on so few switches starts, and starts on no more.
    #[test]
    fn a_limit_on_switches_is_met_exactly_when_it_can_be(
        busy in prop::collection::vec(any::<bool>(), 9),
        of in prop::collection::vec(0usize..4, 9),
        nodes in 1usize..6,
        most in 1usize..4,
    ) {
        let leaf = |s: usize| (0..9).filter(|n| of[*n] == s).map(|n| format!("node{}", n + 1)).collect::<Vec<_>>();
        let leaves: Vec<String> =
            (0..4).filter(|s| !leaf(*s).is_empty()).map(|s| format!("s{s}={}", leaf(s).join(","))).collect();
        let mut input = cluster(&format!("node[1-9]; switch {}", leaves.join(" ")));
        for (n, _) in busy.iter().enumerate().filter(|(_, b)| **b) {
            load(&mut input, &format!("R{} node{}:4 10m", 100 + n, n + 1));
        }
        load(&mut input, &format!("J1 -N{nodes} --switches={most}"));
        let plan = sluice_sched::plan(&input);
        prop_assert_eq!(audit(&input, &plan), vec![]);
        let free = |set: u32| (0..9).filter(|n| !busy[*n] && set & (1 << of[*n]) != 0).count();
        let can = (0u32..16).any(|set| set.count_ones() as usize <= most && free(set) >= nodes);
        prop_assert_eq!(!plan.starts.is_empty(), can);
    }
}
