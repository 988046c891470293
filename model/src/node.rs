//! Compute nodes: what is declared, what was found, and their states.

/// Devices of one kind on a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GresSpec {
    pub name: String,
    pub kind: Option<String>,
    pub count: u64,
}

/// A node as the configuration declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeSpec {
    pub name: crate::ids::NodeName,
    /// Where the node daemon listens for srun and its peers, `host:port`; None: as the node reports.
    pub address: Option<String>,
    pub sockets: u32,
    pub cores_per_socket: u32,
    pub threads_per_core: u32,
    /// sockets × cores × threads unless declared otherwise.
    pub cpus: u32,
    pub memory_mb: u64,
    pub tmp_disk_mb: u64,
    pub gres: Vec<GresSpec>,
    pub features: Vec<String>,
    pub weight: u32,
}

/// What an administrator or a failure says about a node; DOWN and DRAIN survive restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeFlags {
    pub down: bool,
    pub drain: bool,
    pub fail: bool,
    /// Never registered since the controller's first start.
    pub unknown: bool,
    /// Missed its heartbeats (`*`).
    pub not_responding: bool,
}

/// What a node daemon reports when it registers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeReport {
    pub boot_id: String,
    /// `host:port` of its step service.
    pub address: String,
    pub hostname: String,
    pub version: String,
    pub arch: String,
    pub os: String,
    pub cpus: u32,
    pub memory_mb: u64,
    pub gres: Vec<GresSpec>,
    /// Unix seconds.
    pub boot_time: i64,
    pub daemon_start_time: i64,
    /// Isolation that is missing here, one short sentence each.
    pub missing_isolation: Vec<String>,
}
