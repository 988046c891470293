//! Which of several nodes that would do: packed, spread, few, tasks dealt out.

mod scenario;
use scenario::*;

#[test]
fn the_fullest_node_that_suffices_is_taken_unless_the_least_loaded_is_wanted() {
    let load = "R9 node2:2 10m; R8 node3:1 10m; J1 -c2";
    scenario("node[1-3]", load, "1 on node2:1");
    scenario("node[1-3]; policy lln", load, "1 on node1:1");
    scenario("node[1-3]; main=node[1-3] lln", load, "1 on node1:1");
    let two = "R9 node2:2 10m; R8 node3:1 10m; J1; J2; J3 -n5";
    scenario("node[1-3]; policy lln", two, "1 on node1:1; 2 on node1:1; 3 on node1:2 node3:3");
    scenario("node[1-2] cpus=8; node3 cpus=4; policy lln", "J1; J2; J3", "1 on node1:1; 2 on node2:1; 3 on node1:1");
}

#[test]
fn partitions_may_differ_in_it() {
    let cluster = "node[1-3]; p=node[1-3]; q=node[1-3] lln";
    scenario(cluster, "R9 node2:2 10m; J1 -p p; J2 -p q", "1 on node2:1; 2 on node1:1");
}

#[test]
fn a_job_that_is_to_be_spread_takes_as_many_nodes_as_it_can_use() {
    scenario("node[1-4]", "J1 -n4 --spread-job", "1 on node1:1 node2:1 node3:1 node4:1");
    scenario("node[1-4]", "J1 -n6 --spread-job", "1 on node1:2 node2:2 node3:1 node4:1");
    scenario("node[1-4]", "J1 -n4 -N1-2 --spread-job", "1 on node1:2 node2:2");
    scenario("node[1-3]; node4 cpus=8", "R9 node1:4 10m; J1 -n3 --spread-job", "1 on node2:1 node3:1 node4:1");
    scenario("node[1-2]", "R9 node1:4 10m; J1 -n2 --spread-job", "1 on node2:2");
    scenario("node[1-3]", "J1 --spread-job", "1 on node1:1");
}

#[test]
fn of_a_range_few_nodes_are_taken_where_that_is_wanted() {
    scenario("node[1-4]", "J1 -N1-3 -n3", "1 on node1:1 node2:1 node3:1");
    scenario("node[1-4]", "J1 -N1-3 -n3 --use-min-nodes", "1 on node1:3");
    scenario("node[1-4]", "J1 -N2-4 -n8 --use-min-nodes", "1 on node1:4 node2:4");
}

#[test]
fn tasks_of_whole_nodes_go_round_unless_they_are_to_be_packed() {
    let whole = "-N3 --exclusive -n5";
    scenario("node[1-3]", &format!("J1 {whole}"), "1 on node1:2 node2:2 node3:1");
    scenario("node[1-3]", &format!("J1 {whole} --pack"), "1 on node1:3 node2:1 node3:1");
    scenario("node[1-3]; policy pack", &format!("J1 {whole}"), "1 on node1:3 node2:1 node3:1");
    scenario("node[1-3]; policy pack", &format!("J1 {whole} --nopack"), "1 on node1:2 node2:2 node3:1");
    scenario("node[1-3]; policy pack", &format!("J1 {whole} --cyclic"), "1 on node1:2 node2:2 node3:1");
}

#[test]
fn planes_are_dealt_out_whole() {
    scenario("node[1-2] cpus=8", "J1 -N2 -n10 --plane=4", "1 on node1:6 node2:4");
    scenario("node[1-2] cpus=8", "J1 -N2 -n7 --plane=4", "1 on node1:4 node2:3");
    scenario("node[1-3] cpus=8", "J1 -N3 -n3 --plane=4", "1 on node1:1 node2:1 node3:1");
    scenario("node1 cpus=8; node2 cpus=2", "J1 -N2 -n9 --plane=3", "1 on node1:7 node2:2");
}
