//! The environment that goes with a job or a step.
//!
//! Owns what of the caller's environment is passed on (`--export`, `--export-file`) and the SLURM_* variables that the
//! commands themselves add. Everything is bytes: what is not UTF-8 stays as it is.

use crate::options::Submitter;
use crate::settings::{Export, Settings};
use sluice_model::env_block;
use sluice_model::request::{Distribution, MemoryRequest};
use std::os::unix::ffi::OsStrExt;

/// This process's environment as a block, in its order.
pub fn own() -> Vec<u8> {
    env_block::build(std::env::vars_os().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())))
}

/// Variables of the job in which the command runs. They would be wrong in a new job, whose node sets its own.
const OF_THE_OUTER_JOB: &[&[u8]] = &[
    b"SLURM_ARRAY_",
    b"SLURM_CPUS_",
    b"SLURM_GPUS",
    b"SLURM_GTIDS",
    b"SLURM_JOB",
    b"SLURM_LOCALID",
    b"SLURM_MEM_PER_",
    b"SLURM_NNODES",
    b"SLURM_NODEID",
    b"SLURM_NODELIST",
    b"SLURM_NPROCS",
    b"SLURM_NTASKS",
    b"SLURM_PROCID",
    b"SLURM_RESTART_COUNT",
    b"SLURM_STEP",
    b"SLURM_TASK",
    b"SLURM_THREADS_PER_CORE",
    b"SLURM_TRES_PER_TASK",
    b"SLURM_DISTRIBUTION",
    b"SLURM_OVERCOMMIT",
    b"SLURMD_NODENAME",
    b"SLUICE_NODE_SOCKET",
];

/// Takes out what belongs to the job around us, so that a job submitted from a job starts clean.
pub fn drop_outer_job(block: &mut Vec<u8>) {
    if env_block::get(block, b"SLURM_JOB_ID").is_some() {
        env_block::retain(block, |name| !OF_THE_OUTER_JOB.iter().any(|prefix| name.starts_with(prefix)));
    }
}

/// What `--export` lets through. SLURM_* variables always pass (sbatch's and srun's manual pages). In
/// `ALL,NAME=value` sbatch's value wins over the caller's, while srun's only fills a gap.
pub fn export(block: &[u8], export: &Export, command: Submitter) -> Vec<u8> {
    let slurm =
        |name: &[u8]| name.starts_with(b"SLURM_") || name.starts_with(b"SLURMD_") || name.starts_with(b"SLUICE_");
    let mut out = block.to_vec();
    match export {
        Export::All => {}
        Export::None | Export::Nil => {
            env_block::retain(&mut out, slurm);
        }
        Export::Some { all, names } => {
            if !all {
                env_block::retain(&mut out, |n| {
                    slurm(n) || names.iter().any(|(name, value)| value.is_none() && name == n)
                });
            }
            for (name, value) in names {
                let gap = !all || command != Submitter::Srun || env_block::get(&out, name).is_none();
                if let Some(value) = value.as_ref().filter(|_| gap) {
                    env_block::set(&mut out, name, value);
                }
            }
        }
    }
    out
}

/// `--export-file`: NUL-separated `NAME=value` of a file, or of an open descriptor when it is a number.
pub fn read_export_file(name: &std::ffi::OsStr) -> std::io::Result<Vec<u8>> {
    let text = name.to_string_lossy();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return std::fs::read(format!("/proc/self/fd/{text}"));
    }
    std::fs::read(name)
}

/// What the command adds to the job's environment from its own options (manual pages, "OUTPUT ENVIRONMENT VARIABLES").
pub fn output_variables(settings: &Settings) -> Vec<(&'static str, String)> {
    let request = &settings.job.request;
    let mut vars: Vec<(&'static str, String)> = Vec::new();
    let mut add = |name, value: Option<String>| vars.extend(value.map(|v| (name, v)));
    add("SLURM_NTASKS_PER_NODE", request.ntasks_per_node.map(|n| n.to_string()));
    add("SLURM_CPUS_PER_TASK", request.cpus_per_task.map(|n| n.to_string()));
    match request.memory {
        Some(MemoryRequest::PerNode(mb)) => add("SLURM_MEM_PER_NODE", Some(mb.to_string())),
        Some(MemoryRequest::PerCpu(mb)) => add("SLURM_MEM_PER_CPU", Some(mb.to_string())),
        Some(MemoryRequest::PerGpu(mb)) => add("SLURM_MEM_PER_GPU", Some(mb.to_string())),
        None => {}
    }
    match request.distribution {
        Some(Distribution::Block) => add("SLURM_DISTRIBUTION", Some("block".into())),
        Some(Distribution::Cyclic) => add("SLURM_DISTRIBUTION", Some("cyclic".into())),
        Some(Distribution::Arbitrary) => add("SLURM_DISTRIBUTION", Some("arbitrary".into())),
        Some(Distribution::Plane(n)) => {
            add("SLURM_DISTRIBUTION", Some("plane".into()));
            add("SLURM_DIST_PLANESIZE", Some(n.to_string()));
        }
        None => {}
    }
    add("SLURM_OVERCOMMIT", request.overcommit.then(|| "1".into()));
    for (key, name) in [
        ("gpus", "SLURM_GPUS"),
        ("gpus-per-node", "SLURM_GPUS_PER_NODE"),
        ("gpus-per-socket", "SLURM_GPUS_PER_SOCKET"),
        ("gpus-per-task", "SLURM_GPUS_PER_TASK"),
        ("cpus-per-gpu", "SLURM_CPUS_PER_GPU"),
        ("gpu-bind", "SLURM_GPU_BIND"),
        ("gpu-freq", "SLURM_GPU_FREQ"),
        ("ntasks-per-core", "SLURM_NTASKS_PER_CORE"),
        ("ntasks-per-gpu", "SLURM_NTASKS_PER_GPU"),
        ("ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET"),
        ("threads-per-core", "SLURM_THREADS_PER_CORE"),
        ("tres-per-task", "SLURM_TRES_PER_TASK"),
        ("profile", "SLURM_PROFILE"),
        ("network", "SLURM_NETWORK"),
        ("hint", "SLURM_HINT"),
    ] {
        add(name, settings.shown_value(key));
    }
    if settings.command == Submitter::Sbatch {
        add("SLURM_JOB_DEPENDENCY", settings.shown_value("dependency"));
        add("SLURM_OPEN_MODE", settings.shown_value("open-mode"));
    }
    add("SLURM_EXPORT_ENV", settings.client.export_text.clone());
    vars
}

/// Sets what each submitting command tells the job about where it came from.
pub fn add_submission(block: &mut Vec<u8>, cwd: &[u8], host: &str) {
    env_block::set(block, b"SLURM_SUBMIT_DIR", cwd);
    env_block::set(block, b"SLURM_SUBMIT_HOST", host.as_bytes());
    env_block::set(block, b"SLURM_PRIO_PROCESS", b"0");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(vars: &[(&str, &str)]) -> Vec<u8> {
        env_block::build(vars.iter().copied())
    }

    #[test]
    fn export_keeps_slurm_variables_whatever_else_it_names() {
        let env = block(&[("PATH", "/bin"), ("SLURM_X", "1"), ("A", "a"), ("B", "b")]);
        let some = |all, names: &[(&str, Option<&str>)]| Export::Some {
            all,
            names: names.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.map(|v| v.as_bytes().to_vec()))).collect(),
        };
        let export = |env: &[u8], what: &Export| export(env, what, Submitter::Sbatch);
        assert_eq!(export(&env, &Export::All), env);
        assert_eq!(export(&env, &Export::Nil), block(&[("SLURM_X", "1")]));
        assert_eq!(
            export(&env, &some(false, &[("A", None), ("C", Some("c"))])),
            block(&[("SLURM_X", "1"), ("A", "a"), ("C", "c")])
        );
        assert_eq!(
            export(&env, &some(true, &[("A", Some("z"))])),
            block(&[("PATH", "/bin"), ("SLURM_X", "1"), ("A", "z"), ("B", "b")])
        );
        assert_eq!(super::export(&env, &some(true, &[("A", Some("z"))]), Submitter::Srun), env);
    }

    #[test]
    fn a_job_submitted_from_a_job_does_not_inherit_its_identity() {
        let mut env =
            block(&[("SLURM_JOB_ID", "7"), ("SLURM_ARRAY_TASK_ID", "3"), ("SLURM_CONF", "x"), ("HOME", "/h")]);
        drop_outer_job(&mut env);
        assert_eq!(env, block(&[("SLURM_CONF", "x"), ("HOME", "/h")]));
    }

    #[test]
    fn variables_that_are_not_utf8_pass_unchanged() {
        let env = env_block::build([(&b"A"[..], &b"\xff\xfe"[..])]);
        assert_eq!(export(&env, &Export::All, Submitter::Sbatch), env);
    }
}
