//! The audit finds what is wrong with a spoilt plan: each rule, by one change to a good one.

mod scenario;
use scenario::*;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, NodeName, Reason, TimeLimit};
use sluice_sched::audit::Rule;
use sluice_sched::{Input, Plan, audit, plan};

/// Plans this load on a fixed cluster, spoils the plan, and wants to see the rule among the findings about job 1.
#[track_caller]
fn finds(load_line: &str, spoil: impl FnOnce(&mut Plan), rule: Rule) {
    finds_after(load_line, |_| {}, spoil, rule);
}

#[track_caller]
fn finds_after(load_line: &str, change: impl FnOnce(&mut Input), spoil: impl FnOnce(&mut Plan), rule: Rule) {
    let mut input = cluster(
        "node[1-3] gres=gpu:2 features=a; node4 cpus=8; main=node[1-3] nodes=0-2 max=60; few=node[1-3] maxcpus=2; license x=1",
    );
    load(&mut input, load_line);
    let mut plan = plan(&input);
    assert_eq!(audit(&input, &plan), [], "the plan is good before it is spoilt");
    change(&mut input);
    spoil(&mut plan);
    let found = audit(&input, &plan);
    assert!(found.iter().any(|v| v.rule == rule), "{rule:?} expected, found {found:?}");
}

fn alloc(plan: &mut Plan) -> &mut sluice_model::NodeAlloc {
    &mut plan.starts[0].allocation.nodes[0]
}

#[test]
fn what_is_used_twice() {
    finds("R9 node1:2 9m; J1", |p| alloc(p).cpus = IndexSet::single(1), Rule::UsedTwice);
    finds("R9 node1:2+1 9m; J1 --gres=gpu:1", |p| alloc(p).gres[0].indices = IndexSet::single(0), Rule::UsedTwice);
    finds("R9 node1:2 9m; J1 --mem=3800", |p| alloc(p).memory_mb = 3801, Rule::UsedTwice);
    finds_after("R9 node1:2 9m; J1", |i| i.running[0].exclusive = true, |_| {}, Rule::UsedTwice);
    finds("J1; J2", |p| p.starts[1].allocation = p.starts[0].allocation.clone(), Rule::UsedTwice);
    finds_after("J1 -L x:1", |i| i.licenses.clear(), |_| {}, Rule::Licenses);
}

#[test]
fn what_does_not_exist() {
    finds("J1", |p| alloc(p).cpus = IndexSet::single(4), Rule::Cpus);
    finds("J1 --gres=gpu:1", |p| alloc(p).gres[0].indices = IndexSet::single(2), Rule::Gres);
    finds("J1", |p| alloc(p).node = NodeName::from("nowhere"), Rule::Node);
    finds("J1", |p| p.starts[0].partition = "none".into(), Rule::Partition);
}

#[test]
fn nodes_that_are_not_allowed() {
    finds("J1", |p| alloc(p).node = NodeName::from("node4"), Rule::Node);
    finds("J1 -x node1", |p| alloc(p).node = NodeName::from("node1"), Rule::Node);
    finds("J1 -w node2", |p| alloc(p).node = NodeName::from("node1"), Rule::Node);
    finds_after("J1", |i| i.nodes.iter_mut().for_each(|n| n.available = false), |_| {}, Rule::Node);
    finds_after(
        "J1 -C a",
        |i| i.nodes.iter_mut().for_each(|n| std::sync::Arc::make_mut(&mut n.spec).features.clear()),
        |_| {},
        Rule::Node,
    );
    finds("J1 -N2 --contiguous", |p| p.starts[0].allocation.nodes[1].node = NodeName::from("node3"), Rule::Node);
    finds("J1 -N2", |p| _ = p.starts[0].allocation.nodes.pop(), Rule::NodeCount);
    finds_after("J1 -N2", |i| i.partitions[0].max_nodes = Some(1), |_| {}, Rule::NodeCount);
}

#[test]
fn amounts_that_were_not_asked_for() {
    finds("J1 -c2", |p| alloc(p).cpus = IndexSet::single(0), Rule::Cpus);
    finds("J1 --exclusive", |p| alloc(p).cpus = IndexSet::single(0), Rule::Cpus);
    finds("J1 -n2", |p| alloc(p).tasks = 1, Rule::Tasks);
    finds("J1 --mem=50", |p| alloc(p).memory_mb = 60, Rule::Memory);
    finds("J1 --gres=gpu:2", |p| alloc(p).gres[0].indices = IndexSet::single(0), Rule::Gres);
    finds("J1 --gpus=2", |p| alloc(p).gres.clear(), Rule::Gres);
    finds_after("J1 -c2 -p few", |i| i.partitions[1].max_cpus_per_node = Some(1), |_| {}, Rule::PartitionCpus);
}

#[test]
fn times_that_are_too_long() {
    finds("J1 -t10", |p| p.starts[0].time_limit = TimeLimit::Minutes(11), Rule::TimeLimit);
    finds("J1 -t10", |p| p.starts[0].time_limit = TimeLimit::Minutes(9), Rule::TimeLimit);
    finds("J1 -t10 --deadline=12", |p| p.starts[0].time_limit = TimeLimit::Minutes(13), Rule::Deadline);
}

#[test]
fn jobs_that_can_not_start() {
    finds("J1", |p| p.starts[0].job = JobId(5), Rule::NotPending);
    finds("J1", |p| p.starts.push(p.starts[0].clone()), Rule::NotPending);
    finds("J1 --array=0-1", |p| p.starts[1].index = Some(7), Rule::NotPending);
    finds("J1", |p| p.reasons.push((JobId(1), Reason::Resources)), Rule::Reason);
    finds_after(
        "J1",
        |i| i.partitions[0].state = sluice_model::partition::PartitionState::Down,
        |_| {},
        Rule::Partition,
    );
}

#[test]
fn planned_starts_that_can_not_be_kept() {
    let load = "R9 node1:4 10m; R8 node2:1 20m; J1 -N2 -c4 -t30 -w node[1-2]; J2 -t20";
    finds(load, |p| p.reservations[0].start = after_minutes(19), Rule::Planned);
    finds(load, |p| p.reservations[0].start = NOW, Rule::Planned);
    finds(load, |p| p.starts[0].time_limit = TimeLimit::Minutes(21), Rule::Planned);
    finds(load, |p| p.reservations[0].nodes[1] = NodeName::from("node3"), Rule::Planned);
}
