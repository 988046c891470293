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
    env::conf(&mut v, site, &submitted);
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

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::env_block;
    use sluice_proto::v1;

    fn launch() -> (Site, LaunchJob, VerifiedJob) {
        let node = v1::NodeAlloc {
            node: "n1".into(),
            cpus: Some(v1::IndexSet { ranges: vec![v1::IndexRange { first: 0, last: 1, step: 1 }] }),
            memory_mb: 50,
            gres: Vec::new(),
            tasks: 2,
        };
        let allocation = v1::Allocation { nodes: vec![node] };
        let body = v1::JobCredentialBody {
            job: 11,
            uid: 1500,
            gid: 1500,
            user: "user1".into(),
            group: "user1".into(),
            account: "root".into(),
            qos: "normal".into(),
            partition: "primary".into(),
            cluster: "test_cluster".into(),
            job_name: "wrap".into(),
            start_time: 1_796_032_798_000,
            ntasks: 2,
            cpus_per_task: 1,
            memory: Some(v1::MemoryRequest { kind: Some(v1::memory_request::Kind::PerNode(50)) }),
            submit_host: "slurm-host".into(),
            ..v1::JobCredentialBody::default()
        };
        let spec = v1::JobSpec {
            name: "wrap".into(),
            batch: true,
            script_blob: vec![0; 32].into(),
            environment_blob: vec![0; 32].into(),
            uid: 1500,
            gid: 1500,
            user: "user1".into(),
            request: Some(v1::ResourceRequest::default()),
            io: Some(v1::JobIo::default()),
            work_dir: "/home/user1".into(),
            ..v1::JobSpec::default()
        };
        let allocation = sluice_model::Allocation::try_from(allocation).unwrap();
        let order = LaunchJob {
            spec: Some(spec),
            environment: b"A=\xff\0SLURM_JOB_ID=1\0SLURM_ARRAY_TASK_ID=4\0".to_vec().into(),
            ..LaunchJob::default()
        };
        let site = Site {
            cluster: "test_cluster".into(),
            node: "n1".into(),
            client_config: Some(b"/etc/sluice/client.toml".to_vec()),
            ..Site::default()
        };
        (site, order, VerifiedJob { body, allocation })
    }

    #[test]
    fn a_batch_job_has_the_recorded_variables_of_slurm_and_none_is_empty() {
        let (site, order, job) = launch();
        let spec = spec(&site, &order, &job).unwrap();
        let block = &spec.tasks[0].environment;
        // As recorded from Slurm 26.05 (`sbatch -n2 -c1 --mem=50`), but for what names Slurm's own files and ids, and
        // SLURM_TASK_PID, which the task gets when it has one.
        for expected in "SLURMD_NODENAME=n1 SLURM_CLUSTER_NAME=test_cluster SLURM_CPUS_ON_NODE=2 SLURM_CPUS_PER_TASK=1 \
            SLURM_CONF=/etc/sluice/client.toml SLURM_GTIDS=0 SLURM_JOBID=11 SLURM_JOB_ACCOUNT=root SLURM_JOB_CPUS_PER_NODE=2 \
            SLURM_JOB_END_TIME=1827568798 SLURM_JOB_EXCLUSIVE=NO SLURM_JOB_GID=1500 SLURM_JOB_ID=11 \
            SLURM_JOB_NAME=wrap SLURM_JOB_NODELIST=n1 SLURM_JOB_NUM_NODES=1 SLURM_JOB_OVERSUBSCRIBE=NO \
            SLURM_JOB_PARTITION=primary SLURM_JOB_QOS=normal SLURM_JOB_START_TIME=1796032798 SLURM_JOB_UID=1500 \
            SLURM_JOB_USER=user1 SLURM_LOCALID=0 SLURM_MEM_PER_NODE=50 SLURM_NNODES=1 SLURM_NODEID=0 \
            SLURM_NODELIST=n1 SLURM_NPROCS=2 SLURM_NTASKS=2 SLURM_OOM_KILL_STEP=0 SLURM_PRIO_PROCESS=0 \
            SLURM_PROCID=0 SLURM_STEPID=-5 SLURM_STEP_ID=-5 SLURM_SUBMIT_DIR=/home/user1 \
            SLURM_SUBMIT_HOST=slurm-host SLURM_TASKS_PER_NODE=2 SLURM_TOPOLOGY_ADDR=n1 \
            SLURM_TOPOLOGY_ADDR_PATTERN=node SLURM_TRES_PER_TASK=cpu=1 TMPDIR=/tmp ENVIRONMENT=BATCH"
            .split_whitespace()
        {
            let (name, value) = expected.split_once('=').unwrap();
            let found = env_block::get(block, name.as_bytes()).map(String::from_utf8_lossy);
            assert_eq!(found.as_deref(), Some(value), "{name}");
        }
        let order = LaunchJob { environment: b"SLURM_CONF=/opt/slurm.conf\0".to_vec().into(), ..order };
        let own = super::spec(&site, &order, &job).unwrap();
        assert_eq!(env_block::get(&own.tasks[0].environment, b"SLURM_CONF"), None, "the user's own stays");
        assert!(env_block::vars(block).all(|(_, value)| !value.is_empty()));
        assert_eq!(&spec.environment[..], b"A=\xff\0", "nothing of the job it was submitted from");
        assert_eq!(spec.tasks[0].stdout_path.as_deref(), Some(&b"slurm-11.out"[..]));
    }

    #[test]
    fn a_restarted_array_task_says_so_and_appends() {
        let (site, mut order, mut job) = launch();
        (job.body.array_job, job.body.array_index) = (Some(10), Some(3));
        order.restart_count = 2;
        order.array_count = Some(4);
        order.array_step = Some(1);
        let spec = spec(&site, &order, &job).unwrap();
        let task = &spec.tasks[0];
        let get = |name: &str| env_block::get(&task.environment, name.as_bytes()).map(<[u8]>::to_vec);
        assert_eq!(get("SLURM_ARRAY_JOB_ID"), Some(b"10".to_vec()));
        assert_eq!(get("SLURM_ARRAY_TASK_ID"), Some(b"3".to_vec()));
        assert_eq!(get("SLURM_ARRAY_TASK_COUNT"), Some(b"4".to_vec()));
        assert_eq!(get("SLURM_RESTART_COUNT"), Some(b"2".to_vec()));
        assert!(task.append);
        assert_eq!(task.stdout_path.as_deref(), Some(&b"slurm-10_3.out"[..]));
    }
}
