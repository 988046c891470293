//! Compute nodes: what is declared, what was found, and their states.

use crate::index_set::IndexSet;

/// Devices of one kind on a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GresSpec {
    pub name: String,
    pub kind: Option<String>,
    pub count: u64,
    /// MiB that each device has; 0: unknown.
    pub memory_mb: u64,
    /// CPUs near the devices: as many sets as there are equal groups of neighbouring devices. Empty: unknown.
    pub cores: Vec<IndexSet>,
    /// How well each device is linked with each other one (links between the two). Empty: unknown.
    pub links: Vec<Vec<u32>>,
}

impl GresSpec {
    pub fn new(name: impl Into<String>, kind: Option<String>, count: u64) -> GresSpec {
        GresSpec { name: name.into(), kind, count, ..GresSpec::default() }
    }

    /// CPUs near a device, by its place in this entry.
    pub fn cores_of(&self, device: u64) -> Option<&IndexSet> {
        let groups = self.cores.len() as u64;
        if groups == 0 || self.count == 0 {
            return None;
        }
        let each = self.count.div_ceil(groups).max(1);
        self.cores.get(usize::try_from(device / each).ok()?)
    }

    /// Between two devices, by their places in this entry.
    pub fn links_between(&self, a: u64, b: u64) -> u32 {
        let row = usize::try_from(a).ok().and_then(|a| self.links.get(a));
        row.and_then(|row| row.get(usize::try_from(b).ok()?)).copied().unwrap_or(0)
    }
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
