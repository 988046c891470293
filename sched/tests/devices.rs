//! GPUs: whole nodes stay whole, memory of each, links, and the cores near them; sockets and cores.

mod scenario;
use scenario::*;

#[test]
fn jobs_with_few_gpus_go_where_few_are_left() {
    let cluster = "node[1-3] cpus=64 mem=64000 gres=gpu:8";
    scenario(
        cluster,
        "R9 node2:1+5 10m; J1 --gres=gpu:2; J2 --gres=gpu:8; J3 --gres=gpu:1",
        "1 on node2:1; 2 on node1:1; 3 on node2:1",
    );
    // The fuller node by CPUs has all of its GPUs: it is left alone.
    scenario(cluster, "R9 node1:40 10m; R8 node2:1+4 10m; J1 --gres=gpu:2", "1 on node2:1");
    scenario(cluster, "R8 node3:1+7 10m; J1 --gpus=2", "1 on node1:1");
}

#[test]
fn jobs_without_gpus_go_where_fewest_lose_their_cpus() {
    let cluster = "node[1-2] cpus=8 gres=gpu:4";
    scenario(cluster, "R9 node1:4 10m; R8 node2:2+3 10m; J1 -c4", "1 on node2:1");
    scenario("node[1-2] cpus=8 gres=gpu:4; node3 cpus=8", "R9 node1:4 10m; J1 -c4", "1 on node3:1");
}

const SIZES: &str = "node1 gres=gpu:a100:2(mem=40G); node2 gres=gpu:a100:2(mem=80G); node3 gres=gpu:2";

#[test]
fn gpus_with_enough_memory_are_given() {
    scenario(SIZES, "J1 --gres=gpu:1 --gpu-mem=40G", "1 on node1:1");
    scenario(SIZES, "J1 --gres=gpu:a100:1 --gpu-mem=41G", "1 on node2:1");
    scenario(SIZES, "J1 --gres=gpu:1", "1 on node1:1");
    scenario(SIZES, "J1 --gpus=4 --gpu-mem=40G", "1 holds node1 a100=0-1; 1 holds node2 a100=0-1");
    scenario(SIZES, "R9 node2:1+2 10m; J1 --gpus=1 --gpu-mem=80G", "1 waits Resources; 1 planned 10m node2");
    scenario(SIZES, "J1 --gres=gpu:1 --gpu-mem=81G", "1 waits BadConstraints");
    scenario(SIZES, "J1 --gpu-mem=81G", "1 starts");
}

const PAIRS: &str = "node1 cpus=8 sockets=2 cores=4 gres=gpu:4(links=0,1,4,1/1,0,1,4/4,1,0,1/1,4,1,0)";

#[test]
fn gpus_that_are_linked_best_go_together() {
    scenario(PAIRS, "J1 --gres=gpu:2", "1 holds node1 gpu=0,2");
    scenario(PAIRS, "J1 --gres=gpu:2; J2 --gres=gpu:2", "1 holds node1 gpu=0,2; 2 holds node1 gpu=1,3");
    // A single one is taken where no pair is broken.
    scenario(PAIRS, "R9 node1:1+1 10m; J1 --gres=gpu:1", "1 holds node1 gpu=2");
    scenario(PAIRS, "R9 node1:1+1 10m; J1 --gres=gpu:2", "1 holds node1 gpu=1,3");
    scenario(PAIRS, "J1 --gres=gpu:3", "1 holds node1 gpu=0-2");
}

const SOCKETS: &str = "node1 cpus=8 sockets=2 cores=4 gres=gpu:4(cores=0-3/4-7)";

#[test]
fn cores_are_taken_near_the_gpus() {
    scenario(SOCKETS, "R9 node1:2 10m; J1 -c2 --gres=gpu:2", "1 holds node1 cpus=2-3 gpu=0-1");
    scenario(SOCKETS, "R9 node1:3 10m; J1 -c2 --gres=gpu:2", "1 holds node1 cpus=4-5 gpu=2-3");
    scenario(SOCKETS, "R9 node1:3 10m; J1 -c4 --gres=gpu:4", "1 holds node1 cpus=4-7 gpu=0-3");
    scenario(SOCKETS, "R9 node1:3+2 10m; J1 -c5 --gres=gpu:2", "1 holds node1 cpus=3-7 gpu=2-3");
}

#[test]
fn enforced_binding_waits_for_cores_near_the_gpus() {
    let busy = "R9 node1:5+2 10m";
    scenario(SOCKETS, &format!("{busy}; J1 -c3 --gres=gpu:1"), "1 holds node1 cpus=5-7 gpu=2");
    scenario(SOCKETS, "R9 node1:6+2 10m; J1 -c2 --gres=gpu:1 --enforce-binding", "1 holds node1 cpus=6-7 gpu=2");
    let far = "node1 cpus=8 sockets=2 cores=4 gres=gpu:2(cores=0-3)";
    scenario(far, "R9 node1:2 10m; J1 -c3 --gres=gpu:1", "1 holds node1 cpus=2-4 gpu=0");
    scenario(far, "R9 node1:2 10m; J1 -c3 --gres=gpu:1 --enforce-binding", "1 waits Resources");
    scenario(far, "R9 node1:2 10m; J1 -c3 --gres=gpu:1 --disable-binding", "1 holds node1 cpus=4-6 gpu=0");
    let two = "node[1-2] cpus=8 sockets=2 cores=4 gres=gpu:2(cores=0-3)";
    scenario(two, "R9 node1:2 10m; J1 -c3 --gres=gpu:1 --enforce-binding", "1 holds node2 cpus=0-2 gpu=0");
}

#[test]
fn nodes_have_the_sockets_cores_and_threads_asked_for() {
    let cluster =
        "node1 cpus=4 sockets=1 cores=4; node2 cpus=8 sockets=2 cores=4; node3 cpus=8 sockets=1 cores=4 threads=2";
    scenario(cluster, "J1 --sockets-per-node=2", "1 on node2:1");
    scenario(cluster, "J1 --threads-per-core=2", "1 on node3:1");
    scenario(cluster, "J1 --cores-per-socket=4", "1 on node1:1");
    scenario(cluster, "J1 --cores-per-socket=5", "1 waits BadConstraints");
}

#[test]
fn tasks_for_each_socket_and_core_are_a_maximum() {
    let cluster = "node[1-3] cpus=8 sockets=2 cores=4";
    scenario(cluster, "J1 -n3 --ntasks-per-socket=1", "1 on node1:2 node2:1; 1 holds node1 cpus=0,4");
    scenario(cluster, "J1 -n4 --ntasks-per-socket=2 -c2", "1 on node1:4; 1 holds node1 cpus=0-7");
    scenario("node[1-3] cpus=8 cores=4 threads=2", "J1 -n6 --ntasks-per-core=1", "1 on node1:4 node2:2");
    scenario(cluster, "J1 --ntasks-per-node=3 --ntasks-per-socket=1", "1 waits BadConstraints");
}

#[test]
fn a_job_takes_few_sockets() {
    let cluster = "node1 cpus=12 sockets=3 cores=4";
    scenario(cluster, "R9 node1:2 10m; J1 -c5", "1 holds node1 cpus=2,4-7");
    scenario(cluster, "R9 node1:2 10m; J1 -c4", "1 holds node1 cpus=4-7");
    scenario(cluster, "R9 node1:2 10m; J1 -c2", "1 holds node1 cpus=2-3");
}
