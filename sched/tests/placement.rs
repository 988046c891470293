//! What requests get, and where: options of sbatch against allocations.

mod scenario;
use scenario::scenario;

#[test]
fn tasks_fill_the_first_node_and_leave_one_for_each_other() {
    scenario("node[1-3]", "J1 -N2 -n3", "1 on node1:2 node2:1; 1 holds node1 cpus=0-1 mem=200");
    scenario("node[1-3]", "J1 -N2 -n4", "1 on node1:3 node2:1");
    scenario("node[1-3]", "J1 -N2 -n6", "1 on node1:4 node2:2");
    scenario("node[1-3]", "J1 -n6", "1 on node1:4 node2:2");
    scenario("node[1-3]", "J1 -N2 -n8 -c1", "1 on node1:4 node2:4");
}

#[test]
fn a_job_that_says_nothing_gets_one_cpu_on_one_node() {
    scenario("node[1-3]", "J1", "1 on node1:1; 1 holds node1 cpus=0 mem=100");
}

#[test]
fn a_range_of_nodes_gives_as_many_as_are_useful() {
    scenario("node[1-4]", "J1 -N1-3", "1 on node1:1 node2:1 node3:1");
    scenario("node[1-4]", "J1 -N1-3 -n2", "1 on node1:1 node2:1");
    scenario("node[1-4]", "R9 node1:4 node2:4 node3:4 10m; J1 -N1-3", "1 on node4:1");
    scenario("node[1-4]; main=node[1-4] nodes=1-2", "J1 -N1-3", "1 on node1:1 node2:1");
}

#[test]
fn more_nodes_than_tasks_are_not_taken() {
    scenario("node[1-4]", "J1 -N4 -n2", "1 on node1:1 node2:1");
}

#[test]
fn tasks_per_node_are_exact_alone_and_a_maximum_with_ntasks() {
    scenario("node[1-4]", "J1 --ntasks-per-node=2 -N2", "1 on node1:2 node2:2");
    scenario("node[1-4]", "J1 --ntasks-per-node=2 -n3", "1 on node1:2 node2:1");
}

#[test]
fn cpus_per_task_and_mincpus_count_on_each_node() {
    scenario("node[1-4]", "J1 -N2 -n2 -c2", "1 on node1:1 node2:1; 1 holds node2 cpus=0-1");
    scenario("node[1-4]", "J1 -n3 -c3", "1 on node1:1 node2:1 node3:1");
    scenario("node[1-4]", "J1 --mincpus=3 -n2 -N2", "1 holds node1 cpus=0-2; 1 holds node2 cpus=0-2");
}

#[test]
fn overcommit_takes_the_cpus_of_one_task_on_each_node() {
    scenario("node[1-4]", "J1 --overcommit -n8", "1 on node1:8; 1 holds node1 cpus=0");
    scenario("node[1-4]", "J1 --overcommit -n8 -N2 -c2", "1 on node1:4 node2:4; 1 holds node1 cpus=0-1");
}

#[test]
fn an_exclusive_job_gets_all_cpus_and_devices_but_only_its_memory() {
    scenario(
        "node[1-2] gres=gpu:2",
        "R9 node1:1 10m; J1 --exclusive --mem=50",
        "1 holds node2 cpus=0-3 gpu=0-1 mem=50",
    );
    scenario("node[1-3]", "J1 -N3 --exclusive -n4", "1 on node1:2 node2:1 node3:1; 1 holds node3 cpus=0-3 mem=400");
    scenario("node1; main=node1 exclusive", "J1; J2", "1 holds node1 cpus=0-3; 2 waits Resources");
}

#[test]
fn nobody_joins_a_whole_node_job() {
    scenario("node[1-2]", "R9 node1:1 10m whole; J1 -N2", "1 waits Resources; 1 planned 10m node1 node2");
}

#[test]
fn memory_limits_what_a_node_takes() {
    scenario("node[1-4]", "J1 --mem-per-cpu=1500 -n4", "1 on node1:2 node2:2; 1 holds node1 mem=3000");
    scenario("node[1-2]", "R9 node1:2 10m; J1 --mem=3900", "1 on node2:1");
    scenario("node[1-2]", "R9 node1:1 10m; J1 --mem=0", "1 on node2:1; 1 holds node2 mem=4000");
    scenario("node[1-2]; policy mempercpu=0", "J1", "1 holds node1 mem=4000");
    scenario("node[1-2]; policy mempernode=70", "J1 -c3", "1 holds node1 mem=70");
    scenario("node[1-2]; main=node[1-2] mempercpu=30", "J1 -c3", "1 holds node1 mem=90");
    scenario("node[1-2]; main=node[1-2] maxmem=600", "J1 --mem=0", "1 holds node1 mem=600");
    scenario("node[1-2]; main=node[1-2] maxmem=600", "J1 --mem=601", "1 waits BadConstraints");
}

#[test]
fn memory_by_gpu_follows_the_gpus() {
    scenario("node[1-2] gres=gpu:2", "J1 --mem-per-gpu=1500 --gres=gpu:2", "1 holds node1 gpu=0-1 mem=3000");
    scenario(
        "node[1-2] gres=gpu:2",
        "R9 node1:2+0 10m; J1 --mem-per-gpu=1950 --gpus=3",
        "1 holds node1 gpu=0 mem=1950; 1 holds node2 gpu=0-1 mem=3900",
    );
}

#[test]
fn devices_are_numbered_across_kinds_and_typed_requests_match_only_theirs() {
    let cluster = "node1 gres=gpu:a100:2,gpu:v100:2";
    scenario(cluster, "J1 --gres=gpu:v100:1", "1 holds node1 gpu=2");
    scenario(cluster, "J1 --gres=gpu:3", "1 holds node1 a100=0-1 v100=2");
    scenario(cluster, "J1 --gres=gpu:1,gpu:a100:2", "1 holds node1 a100=0-1 v100=2");
    scenario(cluster, "R9 node1:1+1 10m; J1 --gres=gpu:a100:1", "1 holds node1 a100=1");
    scenario(cluster, "J1 --gres=gpu:a100:3", "1 waits BadConstraints");
}

#[test]
fn gpus_of_a_job_are_spread_greedily_with_one_on_each_node() {
    let cluster = "node1; node[2-4] gres=gpu:2";
    scenario(cluster, "J1 --gpus=3", "1 on node2:1 node3:1; 1 holds node2 gpu=0-1; 1 holds node3 gpu=0");
    scenario(cluster, "J1 --gpus=4 -N3", "1 holds node2 gpu=0-1; 1 holds node3 gpu=0; 1 holds node4 gpu=0");
    scenario(cluster, "J1 --gpus-per-task=1 -n3", "1 on node2:2 node3:1; 1 holds node3 gpu=0");
    scenario(cluster, "J1 --gpus=2", "1 on node2:1; 1 holds node2 gpu=0-1");
}

#[test]
fn gpus_by_socket_follow_the_sockets_used() {
    let cluster = "node1 cpus=8 sockets=2 gres=gpu:4";
    scenario(cluster, "J1 --gpus-per-socket=2 -c4", "1 holds node1 gpu=0-1");
    scenario(cluster, "J1 --gpus-per-socket=2 -c5", "1 holds node1 gpu=0-3");
}

#[test]
fn jobs_are_packed_onto_nodes_in_use_and_leave_gpu_nodes_alone() {
    scenario("node[1-3]", "R9 node2:2 10m; J1", "1 on node2:1");
    scenario("node[1-3]", "R9 node2:2 10m; R8 node3:3 10m; J1 -c2", "1 on node2:1");
    scenario("node1 gres=gpu:2; node2", "J1", "1 on node2:1");
    scenario("node1 gres=gpu:2; node2", "J1 -N2", "1 on node1:1 node2:1");
}

#[test]
fn lighter_nodes_come_first() {
    scenario("node1 weight=5; node2", "J1; J2 -c4", "1 on node2:1; 2 on node1:1");
    scenario("node[1-2]; node3 cpus=8 weight=9", "J1 -n6 -N1", "1 on node3:6");
    scenario("node[1-2]; node3 cpus=8 weight=9", "J1 -n6", "1 on node1:4 node2:2");
}

#[test]
fn named_nodes_are_all_in_and_excluded_ones_out() {
    scenario("node[1-4]", "J1 -w node[3-4]", "1 on node3:1 node4:1");
    scenario("node[1-4]", "J1 -w node3 -N2", "1 on node1:1 node3:1");
    scenario("node[1-4]", "J1 -x node[1-2] -N2", "1 on node3:1 node4:1");
    scenario("node[1-4]", "R9 node3:4 5m; J1 -w node3", "1 waits Resources; 1 planned 5m node3");
}

#[test]
fn features_choose_nodes() {
    let cluster = "node1 features=a; node2 features=a,b; node3 features=c";
    scenario(cluster, "J1 -C a&b", "1 on node2:1");
    scenario(cluster, "J1 -C b|c -N2", "1 on node2:1 node3:1");
    scenario(cluster, "J1 -C a -N3", "1 waits BadConstraints");
    scenario("node1 tmp=10; node2 tmp=100", "J1 --tmp=50", "1 on node2:1");
}

#[test]
fn contiguous_nodes_are_neighbours() {
    scenario("node[1-5]", "R9 node2:4 10m; J1 -N3 --contiguous", "1 on node3:1 node4:1 node5:1");
    scenario("node[1-5]", "R9 node3:4 10m; J1 -N3 --contiguous", "1 waits Resources; 1 planned 10m node1 node2 node3");
    scenario("node[1-5]", "R9 node2:4 10m; J1 -N2 -w node4 --contiguous", "1 on node3:1 node4:1");
}

#[test]
fn cores_of_one_socket_and_whole_cores_are_preferred() {
    let cluster = "node1 cpus=8 sockets=2";
    scenario(cluster, "R9 node1:2 10m; J1 -c3", "1 holds node1 cpus=4-6");
    scenario(cluster, "R9 node1:2 10m; J1 -c2", "1 holds node1 cpus=2-3");
    scenario("node1 cpus=8 threads=2", "R9 node1:1 10m; J1 -c2; J2", "1 holds node1 cpus=2-3; 2 holds node1 cpus=1");
}

#[test]
fn cyclic_distribution_goes_round_the_nodes() {
    scenario("node[1-3]", "J1 -N3 -n5 --cyclic", "1 on node1:2 node2:2 node3:1");
}

#[test]
fn a_partition_may_use_only_so_many_cpus_of_a_node() {
    let cluster = "node[1-2]; few=node[1-2] maxcpus=2; all=node[1-2]";
    scenario(cluster, "R9 node1:1 10m part=few; J1 -c2 -p few", "1 on node2:1");
    scenario(cluster, "R9 node1:1 10m part=all; J1 -c2 -p few", "1 on node1:1");
    scenario(cluster, "J1 -c3 -p few; J2 -n4 -p few", "1 waits BadConstraints; 2 on node1:2 node2:2");
}

#[test]
fn licences_are_counted() {
    let cluster = "node[1-2]; license matlab=2";
    scenario(
        cluster,
        "R9 node1:1 10m lic=matlab:1; J1 -L matlab:2; J2 -L matlab:1",
        "1 waits Licenses; 2 waits Licenses",
    );
    scenario(cluster, "R9 node1:1 10m lic=matlab:1; J1 -L matlab:2; J2 -L matlab:1 -t5; J3", "2 starts; 3 starts");
    scenario(cluster, "J1 -L matlab:3", "1 waits Licenses; 1 unplanned");
}
