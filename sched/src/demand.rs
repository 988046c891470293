//! What a request takes: from options to numbers.
//!
//! Owns the meaning of `-N -n -c --ntasks-per-node --mincpus --overcommit --exclusive --mem… --gpus… --gres` for the
//! allocation of resources (sbatch's manual page; details as seen on Slurm 22.05 and 26.05). Promises that the answer
//! depends on the request, the partition and the policy alone. Must not know which resources are free.
//!
//! - Tasks: `-n`, else `--ntasks-per-node` on each node, else one a node. With `-n`, `--ntasks-per-node` is a maximum,
//!   and no node is taken without at least one task: `-N5 -n3` means three nodes.
//! - CPUs of a node: tasks × `-c`, at least `--mincpus`; with `--overcommit` as if there were one task; all of them for
//!   whole-node jobs.
//! - Memory: as asked; else the partition's default, else the cluster's, else all of the node's.

use crate::input::{ClusterView, NodeView, PartitionView, Policy};
use crate::vacancy::Need;
use sluice_model::node::{GresSpec, NodeSpec};
use sluice_model::request::{Distribution, Exclusive, GresRequest, GresScope, MemoryRequest};
use sluice_model::{JobSpec, ResourceRequest};

/// Memory on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryDemand {
    /// MiB.
    Node(u64),
    /// MiB for each allocated CPU.
    Cpu(u64),
    /// MiB for each allocated GPU.
    Gpu(u64),
    /// All of the node's, as far as the partition allows.
    All,
}

/// How many tasks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tasks {
    /// In all, `at_most` on one node.
    Total { count: u32, at_most: Option<u32> },
    /// On each node.
    PerNode(u32),
}

/// A request in numbers, for one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    pub min_nodes: u32,
    /// None: as few as will do.
    pub max_nodes: Option<u32>,
    /// Never more than this: `max_nodes` and the partition's limit.
    pub most_nodes: u32,
    pub tasks: Tasks,
    pub cpus_per_task: u32,
    pub min_cpus: u32,
    pub overcommit: bool,
    /// All CPUs and GRES of each node, nobody else on it.
    pub whole: bool,
    pub memory: MemoryDemand,
    /// Per node, task and socket.
    pub gres: Vec<GresRequest>,
    /// `--gpus` and the like: for the whole job, spread over its nodes with at least one on each.
    pub job_gres: Vec<GresRequest>,
    pub tmp_disk_mb: u64,
    pub contiguous: bool,
    /// Tasks go round the nodes, so many at a time, instead of filling the first.
    pub round: Option<u32>,
    /// As many nodes as can be used.
    pub spread: bool,
    /// Of a range of nodes, few.
    pub fewest_nodes: bool,
    /// MiB that each GPU has, at least.
    pub gpu_memory_mb: u64,
    /// At least so many sockets, cores of each, threads of each.
    pub hardware: [u32; 3],
    pub per_socket: Option<u32>,
    pub per_core: Option<u32>,
    /// Only cores near the devices.
    pub binds: bool,
    /// Cores wherever they are.
    pub unbound: bool,
    pub max_cpus_per_node: Option<u32>,
    pub max_memory_per_node_mb: Option<u64>,
}

impl Demand {
    /// `exclusive`: whole nodes whatever the request says.
    pub fn new(request: &ResourceRequest, partition: &PartitionView, policy: &Policy, exclusive: bool) -> Demand {
        // The counts of features ask for nodes, too.
        let counted = request.constraint.as_ref().map_or(0, |c| c.wanted().least_nodes());
        let listed = distinct(&request.node_list).max(counted);
        let per_node = request.ntasks_per_node.filter(|n| *n > 0);
        let asked = request.nodes;
        let mut min = asked.map_or(1, |n| n.min.max(1)).max(listed);
        let mut max = asked.and_then(|n| n.max);
        let tasks = match request.ntasks.filter(|n| *n > 0) {
            Some(count) => {
                let count = count.max(listed);
                if let Some(per_node) = per_node {
                    min = min.max(count.div_ceil(per_node));
                }
                // Never a node without a task.
                min = min.min(count);
                max = max.map(|m| m.min(count));
                Tasks::Total { count, at_most: per_node }
            }
            None => Tasks::PerNode(per_node.unwrap_or(1)),
        };
        // A partition's minimum raises the job's, where the job allows it.
        min = min.max(partition.min_nodes.min(max.unwrap_or(u32::MAX)));
        let most_nodes = max.unwrap_or(u32::MAX).min(partition.max_nodes.unwrap_or(u32::MAX));
        let (job_gres, gres): (Vec<_>, Vec<_>) =
            request.gres.iter().filter(|g| g.count > 0).cloned().partition(|g| g.scope == GresScope::Job);
        Demand {
            min_nodes: min,
            max_nodes: max,
            most_nodes,
            tasks,
            cpus_per_task: request.cpus_per_task.unwrap_or(1).max(1),
            min_cpus: request.min_cpus_per_node.unwrap_or(1).max(1),
            overcommit: request.overcommit,
            whole: exclusive || partition.exclusive || request.exclusive != Exclusive::No,
            memory: memory(request, partition, policy),
            gres,
            job_gres,
            tmp_disk_mb: request.tmp_disk_mb,
            contiguous: request.contiguous,
            round: round(request, policy, exclusive || partition.exclusive || request.exclusive != Exclusive::No),
            spread: request.spread,
            fewest_nodes: request.fewest_nodes,
            gpu_memory_mb: request.gpu_memory_mb,
            hardware: [request.sockets_per_node, request.cores_per_socket, request.threads_per_core]
                .map(|n| n.unwrap_or(0)),
            per_socket: request.ntasks_per_socket,
            per_core: request.ntasks_per_core,
            unbound: request.disable_binding,
            binds: request.enforce_binding && !request.gres.is_empty(),
            max_cpus_per_node: partition.max_cpus_per_node,
            max_memory_per_node_mb: partition.max_memory_per_node_mb,
        }
    }

    /// Sockets, cores and threads as asked for, at least.
    pub fn suits(&self, spec: &NodeSpec) -> bool {
        let has = [spec.sockets, spec.cores_per_socket, spec.threads_per_core];
        self.hardware.iter().zip(has).all(|(asked, has)| *asked <= has)
    }

    /// Tasks that may be on this node for the sake of its sockets and cores.
    pub fn most_tasks(&self, spec: &NodeSpec) -> u32 {
        let by_socket = self.per_socket.map_or(u32::MAX, |n| n.saturating_mul(spec.sockets));
        let cores = spec.sockets.saturating_mul(spec.cores_per_socket);
        let by_core = self.per_core.map_or(u32::MAX, |n| n.saturating_mul(cores));
        by_socket.min(by_core)
    }

    /// Devices of this kind serve the request, by what is known of them.
    pub fn admits(&self, request: &GresRequest, have: &GresSpec) -> bool {
        have.name == request.name
            && request.kind.as_ref().is_none_or(|k| have.kind.as_ref() == Some(k))
            && (request.name != "gpu" || have.memory_mb >= self.gpu_memory_mb)
    }

    /// CPUs that so many tasks need on this node. Saturates; the caller compares with what there is.
    pub fn needed_cpus(&self, tasks: u32) -> u32 {
        let tasks = if self.overcommit { tasks.min(1) } else { tasks };
        tasks.saturating_mul(self.cpus_per_task).max(self.min_cpus)
    }

    /// CPUs that so many tasks get on this node.
    pub fn given_cpus(&self, spec: &NodeSpec, tasks: u32) -> u32 {
        if self.whole {
            spec.cpus.min(self.max_cpus_per_node.unwrap_or(u32::MAX)).max(self.needed_cpus(tasks))
        } else {
            self.needed_cpus(tasks)
        }
    }

    /// MiB on this node for so many CPUs and GPUs.
    pub fn memory_mb(&self, spec: &NodeSpec, cpus: u32, gpus: u64) -> u64 {
        match self.memory {
            MemoryDemand::Node(mb) => mb,
            MemoryDemand::Cpu(mb) => mb.saturating_mul(u64::from(cpus)),
            MemoryDemand::Gpu(mb) => mb.saturating_mul(gpus),
            MemoryDemand::All => spec.memory_mb.min(self.max_memory_per_node_mb.unwrap_or(u64::MAX)),
        }
    }

    /// How many of one GRES so many tasks need on this node, without the job-wide ones.
    pub fn gres_count(&self, request: &GresRequest, spec: &NodeSpec, tasks: u32) -> u64 {
        match request.scope {
            GresScope::Node => request.count,
            GresScope::Task => request.count.saturating_mul(u64::from(tasks)),
            GresScope::Socket => request.count.saturating_mul(u64::from(self.sockets(spec, tasks))),
            GresScope::Job => 0,
        }
    }

    /// Sockets that the CPUs of so many tasks fill.
    fn sockets(&self, spec: &NodeSpec, tasks: u32) -> u32 {
        let sockets = spec.sockets.max(1);
        let per_socket = (spec.cpus / sockets).max(1);
        self.given_cpus(spec, tasks).div_ceil(per_socket).min(sockets)
    }

    /// What so many tasks take on any node, at the least.
    pub(crate) fn need(&self, tasks: u32) -> Need {
        let cpus = self.needed_cpus(tasks);
        let count = |g: &GresRequest| match g.scope {
            GresScope::Node | GresScope::Socket => g.count,
            GresScope::Task => g.count.saturating_mul(u64::from(tasks)),
            GresScope::Job => 1,
        };
        let devices = self.gres.iter().chain(&self.job_gres).fold(0u64, |sum, g| sum.saturating_add(count(g)));
        let memory = match self.memory {
            MemoryDemand::Node(mb) => mb,
            MemoryDemand::Cpu(mb) => mb.saturating_mul(u64::from(cpus)),
            MemoryDemand::Gpu(_) | MemoryDemand::All => 0,
        };
        Need {
            cpus,
            devices: u32::try_from(devices).unwrap_or(u32::MAX),
            memory: i64::try_from(memory).unwrap_or(i64::MAX),
            whole: self.whole,
        }
    }

    /// CPUs that it will have in all, by the partition's first node where that matters. For comparing jobs.
    pub fn expected_cpus(&self, partition: &PartitionView, nodes: &[NodeView]) -> i64 {
        let spec = partition.nodes.first().and_then(|n| nodes.get(*n as usize)).map(|n| &*n.spec);
        match (self.whole, spec) {
            (true, Some(spec)) => {
                let tasks_on_one = (spec.cpus / self.cpus_per_task).max(1);
                let by_tasks = self.least_tasks().div_ceil(tasks_on_one);
                i64::from(self.min_nodes.max(by_tasks)) * i64::from(spec.cpus)
            }
            _ if self.overcommit => i64::from(self.min_nodes) * i64::from(self.needed_cpus(1)),
            _ => {
                let by_tasks = i64::from(self.least_tasks()) * i64::from(self.cpus_per_task);
                by_tasks.max(i64::from(self.min_nodes) * i64::from(self.min_cpus))
            }
        }
    }

    /// How many nodes to take where more can be had than are needed.
    pub fn wide_nodes(&self) -> Option<u32> {
        match (self.spread, self.fewest_nodes) {
            (true, _) => Some(self.max_nodes.unwrap_or(u32::MAX)),
            (false, true) => None,
            (false, false) => self.max_nodes,
        }
    }

    /// Tasks that can't be fewer, whatever the nodes.
    pub fn least_tasks(&self) -> u32 {
        match self.tasks {
            Tasks::Total { count, .. } => count,
            Tasks::PerNode(n) => n.saturating_mul(self.min_nodes),
        }
    }
}

/// How tasks are dealt out over the nodes: None fills them one after the other.
fn round(request: &ResourceRequest, policy: &Policy, whole: bool) -> Option<u32> {
    match request.distribution {
        Some(Distribution::Cyclic) => Some(1),
        Some(Distribution::Plane(size)) => Some(size.max(1)),
        _ if request.spread => Some(1),
        // Where CPUs do not follow from tasks, nothing speaks for the first node.
        _ if (whole || request.overcommit) && !request.pack.unwrap_or(policy.pack_tasks) => Some(1),
        _ => None,
    }
}

fn distinct<T: Ord>(list: &[T]) -> u32 {
    match list {
        [] => 0,
        [_] => 1,
        _ => {
            let mut all: Vec<&T> = list.iter().collect();
            all.sort_unstable();
            all.dedup();
            u32::try_from(all.len()).unwrap_or(u32::MAX)
        }
    }
}

fn memory(request: &ResourceRequest, partition: &PartitionView, policy: &Policy) -> MemoryDemand {
    let default = |cpu: Option<u64>, node: Option<u64>| {
        cpu.map(MemoryRequest::PerCpu).or_else(|| node.map(MemoryRequest::PerNode))
    };
    let asked = request
        .memory
        .or_else(|| default(partition.default_memory_per_cpu_mb, partition.default_memory_per_node_mb))
        .or_else(|| default(policy.default_memory_per_cpu_mb, policy.default_memory_per_node_mb));
    match asked {
        None | Some(MemoryRequest::PerNode(0) | MemoryRequest::PerCpu(0) | MemoryRequest::PerGpu(0)) => {
            MemoryDemand::All
        }
        Some(MemoryRequest::PerNode(mb)) => MemoryDemand::Node(mb),
        Some(MemoryRequest::PerCpu(mb)) => MemoryDemand::Cpu(mb),
        Some(MemoryRequest::PerGpu(mb)) => MemoryDemand::Gpu(mb),
    }
}

/// What a pending job asks for in all: NumNodes, NumCPUs, NumTasks and ReqTRES of `scontrol show job`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requested {
    /// An estimate from the tasks and the size of the partition's nodes when `-N` does not say.
    pub nodes: u32,
    /// None unless a range of nodes was asked for.
    pub max_nodes: Option<u32>,
    pub tasks: u32,
    pub cpus: u32,
    pub memory_mb: u64,
    /// MiB for each CPU when that is how memory is asked for or given by default.
    pub memory_per_cpu_mb: Option<u64>,
    /// (name, kind, count), in the request's order.
    pub gres: Vec<(String, Option<String>, u64)>,
}

/// `partition`: by position, the job's first one; None when it is gone (the cluster's defaults hold then).
pub fn requested_totals(cluster: ClusterView<'_>, spec: &JobSpec, partition: Option<u32>) -> Requested {
    let none = PartitionView::default();
    let partition = partition.and_then(|p| cluster.partitions.get(p as usize)).unwrap_or(&none);
    let demand = Demand::new(&spec.request, partition, cluster.policy, false);
    let members = || partition.nodes.iter().filter_map(|n| cluster.nodes.get(*n as usize)).map(|n| &*n.spec);
    // Asked of each of very many jobs: their partition's nodes must not be gone through each time.
    let largest = partition.largest_cpus.or_else(|| members().map(|n| n.cpus).max()).unwrap_or(u32::MAX).max(1);
    let nodes = match demand.tasks {
        Tasks::Total { count, .. } if !demand.overcommit => {
            let per_node = (largest / demand.cpus_per_task).max(1);
            demand.min_nodes.max(count.div_ceil(per_node))
        }
        _ => demand.min_nodes,
    };
    let nodes = demand.max_nodes.map_or(nodes, |max| nodes.min(max.max(demand.min_nodes)));
    let tasks = match demand.tasks {
        Tasks::Total { count, .. } => count,
        Tasks::PerNode(n) => n.saturating_mul(nodes),
    };
    let counted = if demand.overcommit { nodes } else { tasks };
    let cpus = counted.saturating_mul(demand.cpus_per_task).max(demand.min_cpus.saturating_mul(nodes));
    let gres: Vec<_> = spec
        .request
        .gres
        .iter()
        .filter(|g| g.count > 0)
        .map(|g| {
            let times = match g.scope {
                GresScope::Job => 1,
                GresScope::Node | GresScope::Socket => nodes,
                GresScope::Task => tasks,
            };
            (g.name.clone(), g.kind.clone(), g.count.saturating_mul(u64::from(times)))
        })
        .collect();
    let memory_mb = match demand.memory {
        MemoryDemand::Node(mb) => mb.saturating_mul(u64::from(nodes)),
        MemoryDemand::Cpu(mb) => mb.saturating_mul(u64::from(cpus)),
        MemoryDemand::Gpu(mb) => {
            mb.saturating_mul(gres.iter().filter(|g| g.0 == "gpu").fold(0, |sum, g| g.2.saturating_add(sum)))
        }
        MemoryDemand::All => members().next().map_or(0, |n| demand.memory_mb(n, 0, 0)).saturating_mul(u64::from(nodes)),
    };
    Requested {
        nodes,
        max_nodes: spec.request.nodes.and_then(|n| n.max.filter(|max| *max > n.min)),
        tasks,
        cpus,
        memory_mb,
        memory_per_cpu_mb: match demand.memory {
            MemoryDemand::Cpu(mb) => Some(mb),
            _ => None,
        },
        gres,
    }
}
