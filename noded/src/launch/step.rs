//! A node's part of a step, from the step manager's grant and srun's launch.

use super::env::{self, Site};
use prost::bytes::Bytes;
use sluice_identity::credential::VerifiedGrant;
use sluice_model::filename::{self, FilenameContext};
use sluice_model::{hostlist, layout};
use sluice_proto::v1::{StepLaunch, StepNode, SupervisorSpec, TaskSpec, step_launch::StdinTo};
use std::collections::BTreeMap;

/// What the supervisor of this node's part is told. `srun` is the address that the request came from.
pub fn spec(site: &Site, launch: &StepLaunch, grant: &VerifiedGrant, srun: &str) -> Result<SupervisorSpec, String> {
    let body = &grant.body;
    let job = &grant.job.body;
    let here = body.nodes.iter().find(|n| n.node == site.node).ok_or("the step has no part on this node")?;
    let node_index = body.nodes.iter().position(|n| n.node == site.node).unwrap_or(0) as u32;
    let mut programs: BTreeMap<u32, &Vec<Bytes>> = BTreeMap::new();
    for program in &launch.programs {
        programs.insert(program.task, &program.argv);
    }
    let common = step_env(site, grant, here, node_index, srun, launch)?;
    let submitted = &launch.environment;
    let mut tasks = Vec::with_capacity(here.tasks.len());
    let gpus = step_gpus(here)?;
    for (local, rank) in here.tasks.iter().enumerate() {
        let argv = match programs.get(rank) {
            Some(argv) => (*argv).clone(),
            None if launch.programs.is_empty() => launch.argv.clone(),
            None => return Err(format!("no program for task {rank}")),
        };
        if argv.is_empty() {
            return Err(format!("no program for task {rank}"));
        }
        let context = FilenameContext {
            job_id: job.job,
            array: job.array_job.zip(job.array_index),
            step: Some(grant.key.step),
            task: *rank,
            node_index,
            node: &site.node,
            user: &job.user,
            job_name: &job.job_name,
        };
        let expand = |pattern: &Bytes| -> Bytes {
            match filename::is_none(pattern) {
                true => Bytes::from_static(b"/dev/null"),
                false => filename::expand(pattern, &context).into(),
            }
        };
        let mut v = env::Vars::default();
        v.set("SLURM_PROCID", rank);
        v.set("SLURM_LOCALID", local);
        env::gpus(&mut v, &gpus, visible(&gpus, body.gpus_per_task, local));
        let stdin_from_client = launch.stdin_path.is_none()
            && match launch.stdin_to {
                Some(StdinTo::NoTask(true)) => false,
                Some(StdinTo::OneTask(task)) => task == *rank,
                _ => true,
            };
        tasks.push(TaskSpec {
            rank: *rank,
            argv,
            environment: v.block().into(),
            stdin_path: launch.stdin_path.as_ref().map(&expand),
            stdout_path: launch.stdout_path.as_ref().map(&expand),
            stderr_path: launch.stderr_path.as_ref().map(&expand),
            append: launch.append,
            stdin_from_client,
        });
    }
    let mut environment = submitted.to_vec();
    if environment.last().is_some_and(|b| *b != 0) {
        environment.push(0);
    }
    environment.extend_from_slice(&common);
    Ok(SupervisorSpec {
        key: body.key,
        uid: job.uid,
        gid: job.gid,
        user: job.user.clone(),
        node: site.node.clone(),
        tasks,
        work_dir: launch.work_dir.clone(),
        umask: launch.umask,
        limits: launch.limits.clone(),
        client: true,
        kill_on_bad_exit: launch.kill_on_bad_exit,
        pty: launch.pty && here.tasks.contains(&0),
        pty_rows: launch.pty_rows,
        pty_cols: launch.pty_cols,
        environment: environment.into(),
        path_prefix: site.path_prefix.clone().unwrap_or_default().into(),
        ..SupervisorSpec::default()
    })
}

fn step_gpus(here: &StepNode) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for gres in here.gres.iter().filter(|g| g.name == "gpu") {
        let set =
            sluice_model::IndexSet::try_from(gres.indices.clone().unwrap_or_default()).map_err(|e| e.to_string())?;
        all.extend(set.iter());
    }
    all.sort_unstable();
    Ok(all)
}

/// With `--gpus-per-task` each task sees its own; else every task sees all.
fn visible(gpus: &[u32], per_task: u32, local: usize) -> &[u32] {
    let per_task = per_task as usize;
    if per_task == 0 {
        return gpus;
    }
    gpus.get(local * per_task..(local + 1) * per_task).unwrap_or(gpus)
}

fn step_env(
    site: &Site,
    grant: &VerifiedGrant,
    here: &StepNode,
    node_index: u32,
    srun: &str,
    launch: &StepLaunch,
) -> Result<Vec<u8>, String> {
    let (body, job) = (&grant.body, &grant.job.body);
    let mut v = env::job(site, job, &grant.job.allocation);
    let names: Vec<&str> = body.nodes.iter().map(|n| n.node.as_str()).collect();
    let counts: Vec<u32> = body.nodes.iter().map(|n| n.tasks.len() as u32).collect();
    let step = grant.key.step;
    v.set("SLURM_STEP_ID", step);
    v.set("SLURM_STEPID", step);
    v.set("SLURM_STEP_NODELIST", hostlist::fold(&names));
    v.set("SLURM_STEP_NUM_NODES", names.len());
    v.set("SLURM_STEP_NUM_TASKS", body.ntasks);
    v.set("SLURM_STEP_TASKS_PER_NODE", layout::compress(&counts));
    v.set("SLURM_TASKS_PER_NODE", layout::compress(&counts));
    v.set("SLURM_NTASKS", body.ntasks);
    v.set("SLURM_NPROCS", body.ntasks);
    if body.cpus_per_task > 0 {
        v.set("SLURM_CPUS_PER_TASK", body.cpus_per_task);
    }
    v.set("SLURM_NODEID", node_index);
    v.set("SLURM_GTIDS", here.tasks.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    let cpus = sluice_model::IndexSet::try_from(here.cpus.clone().unwrap_or_default()).map_err(|e| e.to_string())?;
    v.set("SLURM_CPUS_ON_NODE", cpus.len());
    v.set("SLURM_LAUNCH_NODE_IPADDR", srun);
    v.set("SLURM_SRUN_COMM_HOST", srun);
    v.set("SLURM_UMASK", format!("{:04o}", launch.umask));
    if body.overcommit {
        v.set("SLURM_OVERCOMMIT", 1);
    }
    let gpus = step_gpus(here)?;
    if !gpus.is_empty() {
        v.set("SLURM_STEP_GPUS", gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    }
    let has = |name: &[u8]| sluice_model::env_block::get(&launch.environment, name).is_some();
    if !has(b"SLURM_SUBMIT_DIR") {
        v.set_bytes("SLURM_SUBMIT_DIR", &job.work_dir);
    }
    env::conf(&mut v, site, &launch.environment);
    // The job's own name is in the accounting; in the environment srun's word on it wins (a deleted one becomes the
    // program's name, which srun sets).
    if let Some(name) = sluice_model::env_block::get(&launch.environment, b"SLURM_JOB_NAME") {
        v.set_bytes("SLURM_JOB_NAME", name);
    }
    Ok(v.block())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_sees_its_own_gpus_when_asked_per_task() {
        assert_eq!(visible(&[0, 1, 4, 5], 2, 1), [4, 5]);
        assert_eq!(visible(&[0, 1], 0, 1), [0, 1]);
        assert_eq!(visible(&[0], 1, 3), [0]);
    }
}
