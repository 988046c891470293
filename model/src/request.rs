//! What a job asks for. Parsed once at the command line's edge; never re-parsed downstream.

use crate::ids::NodeName;

/// How many nodes: `--nodes=min[-max]`. `max: None` means "no more than needed" (Slurm: max = min when given alone is
/// expressed as `max: Some(min)`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NodeCount {
    pub min: u32,
    pub max: Option<u32>,
}

/// Memory in MiB. Zero means all of the node's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryRequest {
    PerNode(u64),
    PerCpu(u64),
    PerGpu(u64),
}

/// What a GRES count is per.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GresScope {
    /// `--gres`, `--gpus-per-node`
    Node,
    /// `--gpus`
    Job,
    /// `--gpus-per-task`, `--tres-per-task`
    Task,
    /// `--gpus-per-socket`
    Socket,
}

/// `gpu:a100:2` and what it is per.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GresRequest {
    pub name: String,
    pub kind: Option<String>,
    pub count: u64,
    pub scope: GresScope,
}

/// A `--constraint` expression. Counts and brackets stand only where `constraint::check` allows them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Constraint {
    Feature(String),
    All(Vec<Constraint>),
    Any(Vec<Constraint>),
    /// `a*2`: at least so many nodes.
    Count(Box<Constraint>, u32),
    /// `[a|b]`, `[a*2&b*4]`
    Bracket(Box<Constraint>),
}

/// `--exclusive`
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Exclusive {
    #[default]
    No,
    /// Whole nodes.
    Node,
    /// Nodes shared only with jobs of the same user (stored; the scheduler issue acts on it as on `Node`).
    User,
}

/// `--distribution`, first level (nodes).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Distribution {
    Block,
    Cyclic,
    Plane(u32),
    Arbitrary,
}

/// All that placement needs to know.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ResourceRequest {
    pub nodes: Option<NodeCount>,
    pub ntasks: Option<u32>,
    pub ntasks_per_node: Option<u32>,
    pub cpus_per_task: Option<u32>,
    /// `--mincpus`: at least so many CPUs on each node.
    pub min_cpus_per_node: Option<u32>,
    pub memory: Option<MemoryRequest>,
    pub gres: Vec<GresRequest>,
    pub constraint: Option<Constraint>,
    /// As the user wrote it, for display.
    pub constraint_text: Option<String>,
    /// `--prefer`: tried before `constraint`, in its place.
    pub prefer: Option<Constraint>,
    /// `--batch`: the batch script runs on the first node that has these.
    pub batch: Option<Constraint>,
    /// `--nodelist`: each of them must be part of the allocation.
    pub node_list: Vec<NodeName>,
    pub exclude: Vec<NodeName>,
    pub exclusive: Exclusive,
    pub oversubscribe: bool,
    pub overcommit: bool,
    pub contiguous: bool,
    /// `--tmp`, MiB.
    pub tmp_disk_mb: u64,
    pub distribution: Option<Distribution>,
    /// `--distribution=…,Pack` (true) or `,NoPack`; None: as the cluster has it.
    pub pack: Option<bool>,
    /// `--spread-job`: over as many nodes as can be used.
    pub spread: bool,
    /// `--use-min-nodes`: of a range of nodes, few.
    pub fewest_nodes: bool,
    /// `--gpu-mem`: MiB that each GPU has, at least; 0 = any.
    pub gpu_memory_mb: u64,
    pub switches: Option<SwitchRequest>,
    /// `--segment`: nodes that belong together in one block.
    pub segment: Option<u32>,
    /// `-B`, `--sockets-per-node` and the like: what the nodes must have, at least.
    pub sockets_per_node: Option<u32>,
    pub cores_per_socket: Option<u32>,
    pub threads_per_core: Option<u32>,
    /// At most so many.
    pub ntasks_per_socket: Option<u32>,
    pub ntasks_per_core: Option<u32>,
    /// `--gres-flags=enforce-binding`: only cores near the devices.
    pub enforce_binding: bool,
    /// `--gres-flags=disable-binding`: cores wherever they are.
    pub disable_binding: bool,
}

/// `--switches=count[@max-time]`
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SwitchRequest {
    /// Leaf switches, at most.
    pub count: u32,
    /// Wait so long for that, then take what there is; None: as long as the cluster says.
    pub max_wait_secs: Option<u32>,
}
