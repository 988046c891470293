//! The SLURM_* variables of jobs and steps: names and forms as recorded from Slurm 26.05 (sbatch's and srun's manual
//! pages, "output environment variables").
//!
//! Promises that no variable of ours is empty, and that what an outer job left in a submitted environment does not
//! show through.

use sluice_model::request::MemoryRequest;
use sluice_model::{Allocation, NodeAlloc, hostlist, layout};
use sluice_proto::v1::{JobCredentialBody, LaunchJob};
use std::collections::BTreeMap;

/// Variables by name.
#[derive(Default, Debug)]
pub struct Vars(BTreeMap<Vec<u8>, Vec<u8>>);

/// What the daemon itself adds to the environment of everything that runs under it.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub cluster: String,
    pub node: String,
    /// SLUICE_NODE_SOCKET
    pub socket: Vec<u8>,
    /// SLUICE_CONF
    pub client_config: Option<Vec<u8>>,
    /// Put first on PATH.
    pub path_prefix: Option<Vec<u8>>,
}

impl Vars {
    /// An empty value is left out: scripts test these with -n and -z.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.set_bytes(name, value.to_string().as_bytes());
    }
    pub fn set_bytes(&mut self, name: &str, value: &[u8]) {
        if !value.is_empty() && !value.contains(&0) {
            self.0.insert(name.as_bytes().to_vec(), value.to_vec());
        }
    }
    /// `NAME=value NUL` …
    pub fn block(&self) -> Vec<u8> {
        sluice_model::env_block::build(&self.0)
    }
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name.as_bytes()).map(Vec::as_slice)
    }
}

/// A submitted environment without what belongs to the job from which it was submitted.
pub fn cleaned(block: &[u8]) -> Vec<u8> {
    let mut block = block.to_vec();
    sluice_model::env_block::retain(&mut block, |name| !of_a_job(name));
    block
}

/// Variables that we set for jobs and steps, and which a job must not inherit from another one. What users set for
/// Slurm's commands (SLURM_CONF, SLURM_EXPORT_ENV, SLURM_TIME_FORMAT …) stays.
fn of_a_job(name: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 5] = [b"SLURM_JOB", b"SLURM_STEP", b"SLURM_ARRAY_", b"SLURM_HET_", b"PMI_"];
    const NAMES: [&[u8]; 38] = [
        b"SLURMD_NODENAME",
        b"SLURM_CLUSTER_NAME",
        b"SLURM_CPUS_ON_NODE",
        b"SLURM_CPUS_PER_TASK",
        b"SLURM_DISTRIBUTION",
        b"SLURM_GPUS",
        b"SLURM_GPUS_ON_NODE",
        b"SLURM_GPUS_PER_NODE",
        b"SLURM_GPUS_PER_SOCKET",
        b"SLURM_GPUS_PER_TASK",
        b"SLURM_GTIDS",
        b"SLURM_LAUNCH_NODE_IPADDR",
        b"SLURM_LOCALID",
        b"SLURM_MEM_PER_CPU",
        b"SLURM_MEM_PER_GPU",
        b"SLURM_MEM_PER_NODE",
        b"SLURM_NNODES",
        b"SLURM_NODEID",
        b"SLURM_NODELIST",
        b"SLURM_NODE_ALIASES",
        b"SLURM_NPROCS",
        b"SLURM_NTASKS",
        b"SLURM_NTASKS_PER_NODE",
        b"SLURM_OOM_KILL_STEP",
        b"SLURM_OVERCOMMIT",
        b"SLURM_PRIO_PROCESS",
        b"SLURM_PROCID",
        b"SLURM_RESTART_COUNT",
        b"SLURM_SRUN_COMM_HOST",
        b"SLURM_SRUN_COMM_PORT",
        b"SLURM_TASKS_PER_NODE",
        b"SLURM_TASK_PID",
        b"SLURM_TOPOLOGY_ADDR",
        b"SLURM_TOPOLOGY_ADDR_PATTERN",
        b"SLURM_TRES_PER_TASK",
        b"SLUICE_NODE_SOCKET",
        b"CUDA_VISIBLE_DEVICES",
        b"SLURM_SHARDS_ON_NODE",
    ];
    PREFIXES.iter().any(|p| name.starts_with(p)) || NAMES.contains(&name)
}

/// What every process of the job sees, batch or step.
pub fn job(site: &Site, body: &JobCredentialBody, allocation: &Allocation) -> Vars {
    let mut v = Vars::default();
    let names: Vec<&str> = allocation.names().map(|n| n.as_str()).collect();
    let nodes = hostlist::fold(&names);
    v.set("SLURM_CLUSTER_NAME", &body.cluster);
    v.set("SLURMD_NODENAME", &site.node);
    v.set("SLURM_JOB_ID", body.job);
    v.set("SLURM_JOBID", body.job);
    v.set_bytes("SLURM_JOB_NAME", &body.job_name);
    v.set("SLURM_JOB_ACCOUNT", &body.account);
    v.set("SLURM_JOB_PARTITION", &body.partition);
    v.set("SLURM_JOB_QOS", &body.qos);
    v.set("SLURM_JOB_UID", body.uid);
    v.set("SLURM_JOB_GID", body.gid);
    v.set("SLURM_JOB_USER", &body.user);
    v.set("SLURM_JOB_GROUP", &body.group);
    v.set("SLURM_JOB_START_TIME", body.start_time / 1000);
    // Without a limit Slurm counts a year, its "infinite".
    let end = if body.end_time > 0 { body.end_time / 1000 } else { body.start_time / 1000 + 365 * 86400 };
    v.set("SLURM_JOB_END_TIME", end);
    v.set("SLURM_JOB_NODELIST", &nodes);
    v.set("SLURM_NODELIST", &nodes);
    v.set("SLURM_JOB_NUM_NODES", names.len());
    v.set("SLURM_NNODES", names.len());
    let cpus: Vec<u32> = allocation.nodes.iter().map(|n| n.cpus.len() as u32).collect();
    v.set("SLURM_JOB_CPUS_PER_NODE", layout::compress(&cpus));
    v.set("SLURM_OOM_KILL_STEP", 0);
    v.set("SLURM_PRIO_PROCESS", 0);
    v.set("SLURM_TOPOLOGY_ADDR", &site.node);
    v.set("SLURM_TOPOLOGY_ADDR_PATTERN", "node");
    v.set("SLURM_SUBMIT_HOST", &body.submit_host);
    if let (Some(array), Some(index)) = (body.array_job, body.array_index) {
        v.set("SLURM_ARRAY_JOB_ID", array);
        v.set("SLURM_ARRAY_TASK_ID", index);
    }
    v.set_bytes("SLUICE_NODE_SOCKET", &site.socket);
    if let Some(file) = &site.client_config {
        v.set_bytes("SLUICE_CONF", file);
    }
    v
}

/// SLURM_CONF: where the cluster's commands find their configuration, unless the user has said where Slurm's do.
pub fn conf(v: &mut Vars, site: &Site, submitted: &[u8]) {
    if sluice_model::env_block::get(submitted, b"SLURM_CONF").is_none()
        && let Some(file) = &site.client_config
    {
        v.set_bytes("SLURM_CONF", file);
    }
}

/// What was asked for, where sbatch's options say so.
pub fn request(v: &mut Vars, body: &JobCredentialBody) {
    if body.ntasks > 0 {
        v.set("SLURM_NTASKS", body.ntasks);
        v.set("SLURM_NPROCS", body.ntasks);
    }
    if body.ntasks_per_node > 0 {
        v.set("SLURM_NTASKS_PER_NODE", body.ntasks_per_node);
    }
    if body.cpus_per_task > 0 {
        v.set("SLURM_CPUS_PER_TASK", body.cpus_per_task);
        v.set("SLURM_TRES_PER_TASK", format!("cpu={}", body.cpus_per_task));
    }
    match body.memory.and_then(|m| MemoryRequest::try_from(m).ok()) {
        Some(MemoryRequest::PerNode(mb)) if mb > 0 => v.set("SLURM_MEM_PER_NODE", mb),
        Some(MemoryRequest::PerCpu(mb)) if mb > 0 => v.set("SLURM_MEM_PER_CPU", mb),
        Some(MemoryRequest::PerGpu(mb)) if mb > 0 => v.set("SLURM_MEM_PER_GPU", mb),
        _ => {}
    }
}

/// SLURM_TASKS_PER_NODE of a job: its layout's counts, at least one on each node (as Slurm prints without `-n`).
pub fn job_tasks(allocation: &Allocation) -> String {
    let counts: Vec<u32> = allocation.nodes.iter().map(|n| n.tasks.max(1)).collect();
    layout::compress(&counts)
}

/// Array variables that need the whole array's shape, and the count of restarts.
pub fn array_and_restarts(v: &mut Vars, launch: &LaunchJob) {
    let mut number = |name: &str, value: Option<u32>| {
        if let Some(n) = value {
            v.set(name, n);
        }
    };
    number("SLURM_ARRAY_TASK_COUNT", launch.array_count);
    number("SLURM_ARRAY_TASK_MIN", launch.array_min);
    number("SLURM_ARRAY_TASK_MAX", launch.array_max);
    number("SLURM_ARRAY_TASK_STEP", launch.array_step);
    number("SLURM_RESTART_COUNT", Some(launch.restart_count).filter(|n| *n > 0));
}

/// Device variables. The devices are not fenced in yet, so that the numbers are the node's own.
pub fn gpus(v: &mut Vars, indices: &[u32], visible: &[u32]) {
    if indices.is_empty() {
        return;
    }
    let list = |items: &[u32]| items.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    v.set("SLURM_GPUS_ON_NODE", indices.len());
    for name in ["CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES"] {
        v.set(name, list(visible));
    }
}

/// A node's GPU numbers in an allocation, all kinds together.
pub fn gpu_indices(node: &NodeAlloc) -> Vec<u32> {
    let mut all: Vec<u32> = node.gres.iter().filter(|g| g.name == "gpu").flat_map(|g| g.indices.iter()).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_outer_job_shows_through_and_the_users_own_settings_stay() {
        let outer =
            b"SLURM_JOB_ID=1\0SLURM_NTASKS=9\0SLURM_CONF=/x\0SLURM_EXPORT_ENV=ALL\0SLURM_ARRAY_TASK_ID=3\0A=\xff\0";
        assert_eq!(cleaned(outer), b"SLURM_CONF=/x\0SLURM_EXPORT_ENV=ALL\0A=\xff\0");
    }

    #[test]
    fn empty_values_are_left_out() {
        let mut v = Vars::default();
        v.set("SLURM_JOB_ACCOUNT", "");
        v.set("SLURM_LOCALID", 0);
        assert_eq!(v.block(), b"SLURM_LOCALID=0\0");
    }
}
