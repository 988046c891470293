use super::*;
use sluice_proto::v1::NodeCount;

fn allocation(nodes: u32, cpus: u32, memory_mb: u64, gpus: u32) -> Allocation {
    let node = |i: u32| NodeAlloc {
        node: format!("n{i}").as_str().into(),
        cpus: IndexSet::range(0, cpus - 1),
        memory_mb,
        gres: match gpus {
            0 => Vec::new(),
            n => {
                vec![sluice_model::GresAlloc { name: "gpu".into(), kind: None, indices: IndexSet::range(0, n - 1) }]
            }
        },
        tasks: 1,
    };
    Allocation { nodes: (0..nodes).map(node).collect() }
}

struct Bench {
    allocation: Allocation,
    body: JobCredentialBody,
    running: Vec<ManagedStep>,
}

impl Bench {
    fn new(allocation: Allocation) -> Bench {
        Bench { allocation, body: JobCredentialBody::default(), running: Vec::new() }
    }
    fn place(&self, request: &StepRequest) -> Placed {
        let running: Vec<&ManagedStep> = self.running.iter().collect();
        place(&Job { body: &self.body, allocation: &self.allocation }, request, &running)
    }
    /// Places and counts it as running.
    fn run(&mut self, request: &StepRequest) -> Vec<StepNode> {
        match self.place(request) {
            Placed::Now { nodes, counted, .. } => {
                self.running.push(ManagedStep { counted, ..ManagedStep::default() });
                nodes
            }
            other => panic!("{other:?}"),
        }
    }
}

fn n(ntasks: u32) -> StepRequest {
    StepRequest { ntasks: Some(ntasks), ..StepRequest::default() }
}
fn exact(ntasks: u32) -> StepRequest {
    StepRequest { exact: true, ..n(ntasks) }
}
fn ranks(nodes: &[StepNode]) -> Vec<(&str, Vec<u32>)> {
    nodes.iter().map(|n| (n.node.as_str(), n.tasks.clone())).collect()
}

#[test]
fn exact_steps_run_side_by_side_until_the_cpus_are_used_up() {
    let mut bench = Bench::new(allocation(1, 4, 4000, 0));
    for i in 0..4 {
        let nodes = bench.run(&exact(1));
        assert_eq!(set(nodes[0].cpus.as_ref()), IndexSet::single(i));
        assert_eq!(nodes[0].memory_mb, 1000);
    }
    assert_eq!(bench.place(&exact(1)), Placed::Busy(BUSY));
    bench.running.remove(2);
    assert_eq!(set(bench.run(&exact(1))[0].cpus.as_ref()), IndexSet::single(2));
}

#[test]
fn a_plain_step_has_all_of_its_nodes_and_others_wait() {
    let mut bench = Bench::new(allocation(2, 4, 4000, 2));
    let nodes = bench.run(&n(1));
    assert_eq!(ranks(&nodes), [("n0", vec![0])]);
    assert_eq!((set(nodes[0].cpus.as_ref()).len(), nodes[0].memory_mb), (4, 4000));
    assert_eq!(ranks(&bench.run(&n(1))), [("n1", vec![0])], "the other node is free");
    assert_eq!(bench.place(&n(1)), Placed::Busy(BUSY));
    assert_eq!(bench.place(&exact(1)), Placed::Busy(BUSY));
    let overlap = StepRequest { overlap: true, ..n(2) };
    assert_eq!(ranks(&bench.run(&overlap)), [("n0", vec![0]), ("n1", vec![1])]);
}

#[test]
fn three_tasks_on_two_nodes_are_two_and_one() {
    let bench = Bench::new(allocation(2, 2, 0, 0));
    let request = StepRequest { nodes: Some(NodeCount { min: 2, max: Some(2) }), ..n(3) };
    let Placed::Now { nodes, .. } = bench.place(&request) else { panic!() };
    assert_eq!(ranks(&nodes), [("n0", vec![0, 1]), ("n1", vec![2])]);
}

#[test]
fn without_numbers_a_step_has_the_jobs_tasks_or_one_on_each_node() {
    let mut bench = Bench::new(allocation(2, 4, 0, 0));
    let Placed::Now { nodes, ntasks, .. } = bench.place(&StepRequest::default()) else { panic!() };
    assert_eq!((nodes.len(), ntasks), (2, 2));
    bench.body.ntasks = 6;
    let Placed::Now { ntasks, .. } = bench.place(&StepRequest::default()) else { panic!() };
    assert_eq!(ntasks, 6);
}

#[test]
fn what_can_never_start_is_refused() {
    let bench = Bench::new(allocation(1, 2, 1000, 1));
    assert_eq!(bench.place(&n(3)), Placed::Never(TOO_MANY.into()));
    assert!(matches!(bench.place(&StepRequest { overcommit: true, ..n(3) }), Placed::Now { .. }));
    let two_nodes = StepRequest { nodes: Some(NodeCount { min: 2, max: None }), ..n(2) };
    assert_eq!(bench.place(&two_nodes), Placed::Never("Only allocated 1 nodes asked for 2".into()));
    let other_one = StepRequest { relative: Some(1), ..n(1) };
    assert_eq!(bench.place(&other_one), Placed::Never(NO_NODE.into()));
    let memory = sluice_proto::v1::MemoryRequest::from(&MemoryRequest::PerNode(2000));
    assert_eq!(bench.place(&StepRequest { memory: Some(memory), ..n(1) }), Placed::Never(NO_MEMORY.into()));
    let stranger = StepRequest { node_list: vec!["n9".into()], ..n(1) };
    assert!(matches!(bench.place(&stranger), Placed::Never(why) if why.contains("n9")));
    let gpus = GresRequest { name: "gpu".into(), count: 2, ..GresRequest::default() };
    assert!(matches!(bench.place(&StepRequest { gres: vec![gpus], ..n(1) }), Placed::Never(_)));
}

#[test]
fn gpus_are_counted_when_asked_for_and_steps_wait_for_them() {
    let mut bench = Bench::new(allocation(1, 4, 0, 2));
    let one =
        StepRequest { gres: vec![GresRequest { name: "gpu".into(), count: 1, ..GresRequest::default() }], ..exact(1) };
    for gpu in 0..2 {
        assert_eq!(set(bench.run(&one)[0].gres[0].indices.as_ref()), IndexSet::single(gpu));
    }
    assert_eq!(bench.place(&one), Placed::Busy(BUSY));
    assert!(matches!(bench.place(&exact(1)), Placed::Now { .. }), "one without GPUs of its own need not wait");
}

#[test]
fn memory_told_is_counted_and_zero_is_shared() {
    let mut bench = Bench::new(allocation(1, 4, 1000, 0));
    let with = |mb| StepRequest { memory: Some((&MemoryRequest::PerNode(mb)).into()), ..exact(1) };
    bench.run(&with(700));
    assert_eq!(bench.place(&with(400)), Placed::Busy(BUSY));
    bench.run(&with(300));
    assert!(matches!(bench.place(&with(0)), Placed::Now { .. }));
}

#[test]
fn named_nodes_are_taken_and_relative_ones_skip_the_first() {
    let bench = Bench::new(allocation(3, 2, 0, 0));
    let named = StepRequest { node_list: vec!["n2".into()], ..n(1) };
    let Placed::Now { nodes, .. } = bench.place(&named) else { panic!() };
    assert_eq!(ranks(&nodes), [("n2", vec![0])]);
    let relative = StepRequest { relative: Some(1), ..n(1) };
    let Placed::Now { nodes, .. } = bench.place(&relative) else { panic!() };
    assert_eq!(ranks(&nodes), [("n1", vec![0])]);
}
