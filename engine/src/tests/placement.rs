//! Switches that are waited for, features, and what `sluice why` says of them.

use super::world::*;
use crate::query::why;
use sluice_model::config::{ClusterConfig, SwitchSpec, TopologyConfig};
use sluice_model::request::{GresRequest, GresScope, NodeCount, ResourceRequest, SwitchRequest};
use sluice_model::{JobId, JobSpec, NodeName, NodeSpec, Reason, constraint, gres};

fn asked(change: impl FnOnce(&mut ResourceRequest)) -> JobSpec {
    let mut spec = job();
    change(&mut spec.request);
    spec
}

fn says(w: &World, id: JobId) -> String {
    let why = why(&w.state, w.now, &w.board, id, None).expect("the job is known");
    why.because.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Each of the two nodes on a switch of its own.
fn apart() -> ClusterConfig {
    let switch = |name: &str, node: &str| SwitchSpec {
        name: name.to_owned(),
        nodes: vec![NodeName::new(node)],
        switches: Vec::new(),
    };
    let config = config();
    let (a, b) = (config.nodes[0].name.as_str(), config.nodes[1].name.as_str());
    let switches = vec![switch("s1", a), switch("s2", b)];
    ClusterConfig { topology: TopologyConfig { switches, ..TopologyConfig::default() }, ..config.clone() }
}

fn on_two_nodes(switches: SwitchRequest) -> JobSpec {
    asked(|r| {
        r.nodes = Some(NodeCount { min: 2, max: Some(2) });
        r.ntasks = None;
        r.switches = Some(switches);
    })
}

#[test]
fn a_job_waits_for_its_switches_as_long_as_it_says_and_then_takes_what_there_is() {
    let mut w = World::with(apart());
    let id = w.submit(on_two_nodes(SwitchRequest { count: 1, max_wait_secs: Some(60) }));
    assert!(w.schedule().is_empty());
    let why = why(&w.state, w.now, &w.board, id, None).expect("the job is known");
    assert_eq!(why.reason, Reason::Resources);
    let text = says(&w, id);
    assert!(text.contains("1 leaf switch(es) at most") && text.contains("have 1"), "{text}");
    w.pass(59);
    assert!(w.schedule().is_empty());
    w.pass(1);
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn nobody_waits_for_switches_longer_than_the_cluster_allows() {
    let mut w = World::with(apart());
    let id = w.submit(on_two_nodes(SwitchRequest { count: 1, max_wait_secs: Some(100_000) }));
    let two = w.submit(on_two_nodes(SwitchRequest { count: 2, max_wait_secs: None }));
    assert_eq!(w.schedule(), [two]);
    w.pass(300);
    assert_eq!(w.schedule(), [id]);
}

#[test]
fn features_that_no_node_has_are_refused_with_slurms_messages() {
    let mut w = World::new();
    let preferred = asked(|r| r.prefer = Some(constraint::parse("nope").unwrap()));
    assert_eq!(w.refused(preferred).message(), "Invalid preferred feature specification");
    let batch = asked(|r| r.batch = Some(constraint::parse("nope").unwrap()));
    assert_eq!(w.refused(batch).message(), "Job --batch option is invalid or not a subset of --constraints");
}

#[test]
fn counts_that_lack_nodes_are_told_with_how_many_there_are() {
    let mut config = config();
    config.nodes[0].features = vec!["fast".to_owned()];
    let mut w = World::with(config);
    let wide = |features: &str| {
        asked(|r| {
            r.nodes = Some(NodeCount { min: 1, max: Some(2) });
            r.constraint = Some(constraint::parse(features).unwrap());
        })
    };
    assert_eq!(w.refused(wide("fast*2")).message(), "Requested node configuration is not available");
    w.submit(cores(4));
    let first = w.schedule();
    assert_eq!(w.nodes_of(first[0])[0], w.state.config.clone().unwrap().nodes[0].name);
    let id = w.submit(wide("fast*1"));
    assert!(w.schedule().is_empty());
    let text = says(&w, id);
    assert!(text.contains("1 node(s) must have fast: 0 could take a share now, of 1"), "{text}");
}

#[test]
fn memory_of_gpus_is_told_and_less_of_it_is_tried() {
    let mut config = config();
    for (node, text) in config.nodes.iter_mut().zip(["gpu:a100:1(mem=40G)", "gpu:a100:1(mem=80G)"]) {
        *node = NodeSpec { gres: vec![gres::parse_gres_spec(text).unwrap()], ..node.clone() };
    }
    let mut w = World::with(config);
    let gpu = |mb: u64| {
        asked(|r| {
            r.gres = vec![GresRequest { name: "gpu".into(), kind: None, count: 1, scope: GresScope::Node }];
            r.gpu_memory_mb = mb;
        })
    };
    assert_eq!(w.refused(gpu(100_000)).message(), "Requested node configuration is not available");
    w.submit(gpu(80_000));
    let id = w.submit(gpu(80_000));
    assert_eq!(w.schedule().len(), 1);
    let text = says(&w, id);
    assert!(text.contains("1 node(s) are too small: memory of each GPU"), "{text}");
    let why = why(&w.state, w.now, &w.board, id, None).expect("the job is known");
    assert_eq!(why.sooner.first().map(|s| s.options.as_str()), Some("--gpu-mem=40G"), "{:?}", why.sooner);
}
