//! Features: counts, alternatives, preferences, the batch script's host. The cases of counts and brackets are those that
//! Slurm 22.05 was asked, with its answers.

mod scenario;
use proptest::prelude::*;
use scenario::*;
use sluice_model::NodeName;

const RACKS: &str = "node[1-2] features=a,x; node3 features=a,b; node[4-5] features=b,y";

#[track_caller]
fn on(job: &str, nodes: &str) {
    scenario(RACKS, &format!("J1 {job}"), &format!("1 on {nodes}"));
}

#[track_caller]
fn never(job: &str) {
    scenario(RACKS, &format!("J1 {job}"), "1 waits BadConstraints");
}

#[test]
fn counts_ask_for_at_least_so_many_nodes_with_the_feature() {
    on("-N2 -C a*1", "node1:1 node2:1");
    on("-N3 -C b*1", "node1:1 node2:1 node3:1");
    on("-C a*2", "node1:1 node2:1");
    on("-n1 -C a*2", "node1:1 node2:1");
    on("-n3 -C a*2", "node1:2 node2:1");
    on("-N3 -C a&x*2", "node1:1 node2:1 node3:1");
    on("-N3 -C y*2", "node1:1 node4:1 node5:1");
    never("-N4 -C a*4");
}

#[test]
fn nodes_of_several_counts_are_told_apart() {
    on("-N2 -C [a*1&b*1]", "node1:1 node3:1");
    on("-C [a*1&b*2]", "node1:1 node3:1 node4:1");
    on("-n6 -C [a*1&b*2]", "node1:4 node3:1 node4:1");
    on("-N5 -C [a*3&b*2]", "node1:1 node2:1 node3:1 node4:1 node5:1");
    on("-N2 -C [(x|y)*1&b*1]", "node1:1 node3:1");
    on("-N3 -C [b*1&(a&b)*1&y*1] -x node1", "node3:1 node4:1 node5:1");
    on("-w node3 -C [a*1&b*1]", "node1:1 node3:1");
    never("-N2 -C [a*1&b*2]");
    never("-N5 -C [a*3&b*3]");
}

#[test]
fn of_alternatives_all_nodes_have_the_same_one() {
    on("-N3 -C [x|y|b]", "node3:1 node4:1 node5:1");
    on("-N2 -C [y|x]", "node4:1 node5:1");
    on("-n10 -C [x|b]", "node3:4 node4:4 node5:2");
    on("-N1 -C x&[a|b]", "node1:1");
    scenario(RACKS, "R9 node1:1 10m; J1 -N2 --exclusive -C [x|(a&b)]", "1 planned 10m node1 node2");
    never("-N4 -C [x|b]");
}

#[test]
fn what_is_preferred_is_tried_first_in_place_of_the_constraint() {
    on("-N2 --prefer=b -C a", "node3:1 node4:1");
    on("-N2 --prefer=y", "node4:1 node5:1");
    on("-N3 --prefer=y -C a", "node1:1 node2:1 node3:1");
    on("-N2 --prefer=b*1", "node1:1 node3:1");
    scenario(RACKS, "R9 node4:4 10m; J1 -N2 --prefer=y -C x", "1 on node1:1 node2:1");
    scenario(RACKS, "R9 node4:4 10m; J1 -N1 --prefer=y -C x", "1 on node5:1");
}

#[test]
fn the_batch_script_runs_on_the_first_node_with_its_features() {
    let plan = scenario(RACKS, "J1 -N5 -C a|b|y --batch=y; J2 -N2 -C a|y --batch=y -x node[4-5]", "1 starts; 2 starts");
    let first = |at: usize| plan.starts[at].allocation.nodes[0].node.clone();
    assert_eq!((first(0), first(1)), (NodeName::from("node4"), NodeName::from("node1")));
}

/// Every way to give each count its own nodes.
fn can_be_met(nodes: &[&[&str]], counts: &[(&str, usize)]) -> bool {
    let Some((feature, _)) = counts.iter().find(|c| c.1 > 0) else { return true };
    (0..nodes.len()).filter(|n| nodes[*n].contains(feature)).any(|n| {
        let mut rest = nodes.to_vec();
        rest.remove(n);
        let mut fewer = counts.to_vec();
        fewer.iter_mut().find(|c| c.1 > 0).expect("found before").1 -= 1;
        can_be_met(&rest, &fewer)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_are_met_exactly_when_some_assignment_of_nodes_meets_them(
        nodes in prop::collection::vec(prop::sample::subsequence(vec!["a", "b", "c"], 0..=3), 1..6),
        counts in [0usize..3, 0usize..3, 1usize..3],
    ) {
        let lines = nodes.iter().enumerate().map(|(i, f)| match f.is_empty() {
            true => format!("node{i}"),
            false => format!("node{i} features={}", f.join(",")),
        });
        let mut input = cluster(&lines.collect::<Vec<_>>().join(";"));
        let asked: Vec<(&str, usize)> = ["a", "b", "c"].into_iter().zip(counts).filter(|c| c.1 > 0).collect();
        let text = asked.iter().map(|(f, n)| format!("{f}*{n}")).collect::<Vec<_>>().join("&");
        load(&mut input, &format!("J1 -C [{text}]"));
        let plan = plan_and_audit(&input);
        let nodes: Vec<&[&str]> = nodes.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(!plan.starts.is_empty(), can_be_met(&nodes, &asked), "{}", text);
    }
}
