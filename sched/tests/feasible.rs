//! What is accepted at submission, and in which words the rest is refused. Checked against Slurm's answers.

mod scenario;
use scenario::{cluster, pending};
use sluice_model::{Reason, TimeLimit};
use sluice_sched::{Infeasible, Requested, feasible, requested_totals};

const CLUSTER: &str = "node1 features=a; node[2-4] gres=gpu:fake:2 features=b; main=node[1-4] max=120; gpu=node[2-4]; \
                       small=node[1-2] nodes=0-1; license x=2";

fn ask(options: &str) -> Result<(), Infeasible> {
    let mut input = cluster(CLUSTER);
    // Load and lost nodes don't matter.
    input.nodes.iter_mut().for_each(|n| n.available = false);
    let job = pending(&input, 1, &options.split_whitespace().collect::<Vec<_>>());
    feasible(input.cluster(), &job.request, &job.partitions)
}

#[track_caller]
fn refused(options: &str, words: &str) {
    let problem = ask(options).expect_err(options);
    assert!(!problem.pends(), "{options}: {problem:?}");
    assert!(problem.to_string().contains(words), "{options}: {problem}");
}

#[track_caller]
fn accepted(options: &str) {
    assert_eq!(ask(options), Ok(()), "{options}");
}

#[test]
fn what_fits_on_empty_nodes_is_accepted() {
    for options in [
        "",
        "-N4",
        "-n16",
        "-c4",
        "--mem=4000",
        "--mem=0",
        "-N4 --exclusive",
        "--gpus=6",
        "--gpus-per-task=1 -n6",
        "-N3 --gres=gpu:2",
        "-C a|b -N4",
        "-w node[1-4]",
        "-p small,main -N2",
        "-L x:2",
        "--overcommit -n1000 -N1",
        "-t2:00:00",
    ] {
        accepted(options);
    }
}

#[test]
fn too_many_nodes_and_too_much_time_may_wait() {
    let problem = ask("-N99999").expect_err("five nodes of four");
    assert_eq!(problem, Infeasible::NodeLimit { asked: 99999, limit: 4 });
    assert!(problem.pends());
    assert_eq!(problem.reason(), Reason::PartitionNodeLimit);
    assert_eq!(ask("-N2 -p small"), Err(Infeasible::NodeLimit { asked: 2, limit: 1 }));
    let late = ask("-t3:00:00").expect_err("three hours of two");
    assert_eq!(late, Infeasible::TimeLimit { asked: TimeLimit::Minutes(180), limit: TimeLimit::Minutes(120) });
    assert!(late.pends());
    accepted("-t3:00:00 --time-min=60");
    accepted("-t3:00:00 -p main,gpu");
}

#[test]
fn absurd_numbers_are_refused() {
    refused("-N1024000000", "CPUs asked for");
    refused("-n17", "17 CPUs asked for, there are 16");
    refused("-n4294967295 -c4294967295", "CPUs");
    assert!(matches!(ask("-n100"), Err(Infeasible::MoreProcessors { asked: 100, total: 16 })));
}

#[test]
fn what_no_node_has_is_refused() {
    refused("-c5", "5 CPUs on one node");
    refused("--ntasks-per-node=5", "5 CPUs on one node");
    refused("--mincpus=5", "5 CPUs on one node");
    refused("-n5 -N1", "together");
    refused("-c3 -n2 -N1", "together");
    refused("--mem=5000", "5000 MiB asked for, 4000 MiB is the most");
    refused("--mem-per-cpu=5000", "5000 MiB asked for");
    refused("-n4 -N1 --mem-per-cpu=1500", "together");
    refused("-N1 --exclusive --mem-per-cpu=2000", "8000 MiB asked for");
    refused("--gres=gpu:3", "no node of partition main");
    refused("--gres=gpu:other:1", "no node of partition main");
    refused("--gpus=7", "together");
    refused("--gpus-per-task=1 -n7", "together");
    refused("-N4 --gres=gpu:1", "together");
    refused("-C a -N2", "together");
    refused("-C a&b", "no node of partition main");
    refused("-C a -p gpu", "no node of partition gpu");
    refused("-p gpu -w node1", "node node1 of the node list");
    refused("-x node[1-4]", "no node of partition main");
    refused("-L x:3", "licences x");
}

#[test]
fn unknown_names_are_named() {
    assert_eq!(ask("-w node1,node9"), Err(Infeasible::UnknownNode { name: "node9".into() }));
    assert_eq!(ask("-x node9"), Err(Infeasible::UnknownNode { name: "node9".into() }));
    assert_eq!(ask("-C nope"), Err(Infeasible::UnknownFeature { name: "nope".into() }));
    assert_eq!(ask("-C a|nope"), Err(Infeasible::UnknownFeature { name: "nope".into() }));
    assert_eq!(ask("--prefer=nope"), Err(Infeasible::UnknownPreference { name: "nope".into() }));
    assert_eq!(ask("-C a --batch=b"), Err(Infeasible::ForeignBatchFeature { name: "b".into() }));
    assert_eq!(ask("--gres=foo:1"), Err(Infeasible::UnknownGres { name: "foo".into() }));
    assert_eq!(ask("-L y:1"), Err(Infeasible::Licenses { name: "y".into(), asked: 1, total: 0 }));
}

#[test]
fn one_partition_of_several_is_enough_and_waiting_is_better_than_refusal() {
    accepted("-p gpu,main -C a");
    let problem = ask("-p gpu,small -N2 -C a|b -w node1").expect_err("neither");
    assert!(problem.pends(), "{problem:?}");
    let input = cluster(CLUSTER);
    let job = pending(&input, 1, &[]);
    assert!(feasible(input.cluster(), &job.request, &[]).is_err());
    assert!(feasible(input.cluster(), &job.request, &[99]).is_err());
}

fn totals(options: &str) -> Requested {
    let input = cluster(CLUSTER);
    let job = pending(&input, 1, &options.split_whitespace().collect::<Vec<_>>());
    requested_totals(input.cluster(), &job.request, Some(0))
}

#[test]
fn totals_of_a_pending_job_are_estimated_as_slurm_does() {
    let plain = totals("");
    assert_eq!((plain.nodes, plain.tasks, plain.cpus, plain.memory_mb), (1, 1, 1, 100));
    assert_eq!(plain.memory_per_cpu_mb, Some(100));
    let many = totals("-n100");
    assert_eq!((many.nodes, many.cpus), (25, 100));
    let wide = totals("-N2-4 --ntasks-per-node=2 --mem=50");
    assert_eq!((wide.nodes, wide.max_nodes, wide.tasks, wide.cpus, wide.memory_mb), (2, Some(4), 4, 4, 100));
    assert_eq!(wide.memory_per_cpu_mb, None);
    let gpus = totals("-n3 --gpus-per-task=2 --gres=gpu:fake:1");
    assert_eq!(gpus.gres, [("gpu".into(), None, 6), ("gpu".into(), Some("fake".into()), 1)]);
    let over = totals("--overcommit -n8 -c2 -N2");
    assert_eq!((over.nodes, over.tasks, over.cpus), (2, 8, 4));
    let all = totals("-N2 --mem=0");
    assert_eq!(all.memory_mb, 8000);
    assert_eq!(totals("-N2 -n3").cpus, 3);
    assert_eq!(totals("-N4 --exclusive").cpus, 4);
    // A partition that is gone: the cluster's defaults hold.
    let input = cluster(CLUSTER);
    assert_eq!(requested_totals(input.cluster(), &pending(&input, 1, &["-n3"]).request, None).nodes, 1);
}
