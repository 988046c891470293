//! The batch script's step, from the controller's order.

use super::env::{self, Site};
use prost::bytes::Bytes;
use sluice_identity::credential::VerifiedJob;
use sluice_model::filename::{self, FilenameContext};
use sluice_model::job::JobKind;
use sluice_model::job::OpenMode;
use sluice_model::request::GresScope;
use sluice_model::{JobSpec, NodeName, StepId};
use sluice_proto::v1::{LaunchJob, StepKey, SupervisorSpec, TaskSpec};

/// What the supervisor of the batch step is told. The error is a sentence about the order.
pub fn spec(site: &Site, launch: &LaunchJob, job: &VerifiedJob) -> Result<SupervisorSpec, String> {
    let body = &job.body;
    let wire = launch.spec.clone().ok_or("a batch launch without the job's description")?;
    let propagated = wire.limits.clone();
    let spec = JobSpec::try_from(wire).map_err(|e| format!("the job's description can't be read: {e}"))?;
    let JobKind::Batch { args, .. } = &spec.kind else { return Err("a batch launch of an allocation".into()) };
    let here = job.allocation.on(&NodeName::new(&site.node)).ok_or("the job holds nothing on this node")?;

    let mut v = env::job(site, body, &job.allocation);
    env::request(&mut v, body);
    env::array_and_restarts(&mut v, launch);
    v.set("SLURM_TASKS_PER_NODE", env::job_tasks(&job.allocation));
    v.set("SLURM_CPUS_ON_NODE", here.cpus.len());
    v.set("SLURM_GTIDS", 0);
    v.set("SLURM_LOCALID", 0);
    v.set("SLURM_NODEID", 0);
    v.set("SLURM_PROCID", 0);
    // As Slurm prints the batch step's number.
    v.set("SLURM_STEP_ID", -5);
    v.set("SLURM_STEPID", -5);
    let exclusive = if spec.request.exclusive == sluice_model::request::Exclusive::No { "NO" } else { "YES" };
    v.set("SLURM_JOB_EXCLUSIVE", exclusive);
    v.set("SLURM_JOB_OVERSUBSCRIBE", if spec.request.oversubscribe { "YES" } else { "NO" });
    if spec.request.overcommit {
        v.set("SLURM_OVERCOMMIT", 1);
    }
    if let Some(reservation) = &spec.reservation {
        v.set("SLURM_JOB_RESERVATION", reservation);
    }
    gpu_request(&mut v, &spec);
    let gpus = env::gpu_indices(here);
    env::gpus(&mut v, &gpus, &gpus);
    if !gpus.is_empty() {
        v.set("SLURM_JOB_GPUS", gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","));
    }

    let submitted = env::cleaned(&launch.environment);
    let has = |name: &[u8]| sluice_model::env_block::get(&submitted, name).is_some();
    if !has(b"SLURM_SUBMIT_DIR") {
        v.set_bytes("SLURM_SUBMIT_DIR", spec.work_dir.as_bytes());
    }
    v.set("ENVIRONMENT", "BATCH");
    v.set("HOSTNAME", &site.node);
    if !has(b"TMPDIR") {
        v.set("TMPDIR", "/tmp");
    }
    for name in ["USER", "LOGNAME"] {
        if !has(name.as_bytes()) && !spec.get_user_env {
            v.set(name, &body.user);
        }
    }

    let array = body.array_job.zip(body.array_index);
    let context = FilenameContext {
        job_id: body.job,
        array,
        node: &site.node,
        user: &body.user,
        job_name: &body.job_name,
        ..FilenameContext::default()
    };
    let expand = |pattern: &[u8]| -> Bytes {
        match filename::is_none(pattern) {
            true => Bytes::from_static(b"/dev/null"),
            false => filename::expand(pattern, &context).into(),
        }
    };
    let default: &[u8] = if array.is_some() { b"slurm-%A_%a.out" } else { b"slurm-%j.out" };
    let mut argv: Vec<Bytes> = vec![Bytes::copy_from_slice(program(&spec))];
    argv.extend(args.iter().map(|a| Bytes::copy_from_slice(a.as_bytes())));
    let task = TaskSpec {
        rank: 0,
        argv,
        environment: v.block().into(),
        stdin_path: spec.io.stdin.as_ref().map(|p| expand(p.as_bytes())),
        stdout_path: Some(expand(spec.io.stdout.as_ref().map_or(default, |p| p.as_bytes()))),
        stderr_path: spec.io.stderr.as_ref().map(|p| expand(p.as_bytes())),
        // A requeued job goes on in its file (sbatch's manual page, --open-mode).
        append: match spec.io.open_mode {
            Some(mode) => mode == OpenMode::Append,
            None => launch.restart_count > 0,
        },
        stdin_from_client: false,
    };
    Ok(SupervisorSpec {
        key: Some(StepKey { job: body.job, attempt: body.attempt, step: StepId::Batch.to_wire() }),
        uid: body.uid,
        gid: body.gid,
        user: body.user.clone(),
        node: site.node.clone(),
        tasks: vec![task],
        work_dir: Bytes::copy_from_slice(spec.work_dir.as_bytes()),
        umask: spec.umask,
        limits: propagated,
        script: launch.script.clone(),
        environment: submitted.into(),
        get_user_env: spec.get_user_env,
        path_prefix: site.path_prefix.clone().unwrap_or_default().into(),
        ..SupervisorSpec::default()
    })
}

/// What `$0` would be; the kernel replaces it by the script's path, but it must not be empty.
fn program(spec: &JobSpec) -> &[u8] {
    spec.command.as_ref().map_or(b"slurm_script", |c| c.as_bytes())
}

fn gpu_request(v: &mut env::Vars, spec: &JobSpec) {
    for gres in spec.request.gres.iter().filter(|g| g.name == "gpu") {
        let text = match &gres.kind {
            Some(kind) => format!("{kind}:{}", gres.count),
            None => gres.count.to_string(),
        };
        match gres.scope {
            GresScope::Job => v.set("SLURM_GPUS", text),
            GresScope::Task => v.set("SLURM_GPUS_PER_TASK", text),
            GresScope::Socket => v.set("SLURM_GPUS_PER_SOCKET", text),
            GresScope::Node => v.set("SLURM_GPUS_PER_NODE", text),
        }
    }
}
