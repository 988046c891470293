//! Asking the job's step manager for a step.
//!
//! Owns what is asked for and the waiting for one's turn. The step manager is the node daemon of the job's first node:
//! inside a job there it is reached over its socket, without asking the controller anything.

use crate::allocation::{self, read_credential};
use crate::client::{Client, NodeSteps, connect_node};
use crate::errln;
use crate::error::{CallError, refusal};
use crate::settings::Settings;
use prost::Message as _;
use sluice_model::hostlist;
use sluice_model::request::{MemoryRequest, NodeCount};
use sluice_proto::v1::{self, create_step_reply};
use std::time::Duration;
use tokio::time::Instant;

/// A node daemon that is being restarted is waited for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A step that may run now.
pub struct Step {
    pub grant: v1::StepGrant,
    pub body: v1::StepGrantBody,
    pub key: v1::StepKey,
    /// The step manager's node and the connection to it, good for its part of the step, too.
    pub manager: (String, NodeSteps),
}

/// What the settings ask for. `own`: the allocation was made for this step alone.
pub fn request(
    settings: &Settings,
    job: u32,
    own: Option<&v1::JobCredentialBody>,
    from_line: &dyn Fn(&str) -> bool,
) -> v1::StepRequest {
    let asked = &settings.job.request;
    let step = &settings.client.step;
    let mut request = v1::StepRequest {
        job,
        name: settings.job.name.as_bytes().to_vec().into(),
        ntasks: asked.ntasks,
        nodes: asked.nodes.map(wire_nodes),
        ntasks_per_node: asked.ntasks_per_node,
        cpus_per_task: asked.cpus_per_task,
        memory: asked.memory.filter(|_| from_line("mem") || from_line("mem-per-cpu")).map(|m| wire_memory(&m)),
        gres: asked.gres.iter().map(v1::GresRequest::from).collect(),
        node_list: asked.node_list.iter().map(|n| n.as_str().to_owned()).collect(),
        exclude: asked.exclude.iter().map(|n| n.as_str().to_owned()).collect(),
        // Naming the CPUs of a task means to have just these (srun's manual page, --exact).
        exact: step.exact || from_line("cpus-per-task"),
        overlap: step.overlap,
        exclusive: step.exclusive,
        overcommit: asked.overcommit,
        distribution: asked.distribution.as_ref().map(v1::Distribution::from),
        immediate_secs: settings.job.immediate_secs,
        submit_line: settings.job.submit_line.as_bytes().to_vec().into(),
        srun_host: settings.job.submit_host.to_string(),
        srun_pid: std::process::id(),
        time_limit_secs: None,
        relative: step.relative,
        whole: false,
    };
    match own {
        Some(credential) => fit_own(&mut request, credential),
        None => {
            let limit =
                settings.job.time_limit.filter(|_| from_line("time")).and_then(sluice_model::TimeLimit::duration);
            request.time_limit_secs = limit.and_then(|d| u32::try_from(d.as_secs()).ok());
            fewer_nodes_than_tasks(&mut request, from_line("nodes"));
        }
    }
    request
}

/// All of the allocation, laid out as it was asked for.
fn fit_own(request: &mut v1::StepRequest, credential: &v1::JobCredentialBody) {
    let nodes = credential.allocation.as_ref().map_or(&[][..], |a| &a.nodes);
    let count = u32::try_from(nodes.len()).unwrap_or(1).max(1);
    request.nodes = Some(v1::NodeCount { min: count, max: Some(count) });
    if request.ntasks.is_none() {
        let laid_out: u32 = nodes.iter().map(|n| n.tasks).sum();
        request.ntasks = Some(laid_out.max(count));
    }
    request.memory = None;
    request.gres.clear();
    request.node_list.clear();
    request.exclude.clear();
    request.exclusive = false;
    request.immediate_secs = None;
}

/// More nodes than tasks can't be used; Slurm takes fewer and says so when the number was asked for.
fn fewer_nodes_than_tasks(request: &mut v1::StepRequest, asked: bool) {
    let (Some(tasks), Some(nodes)) = (request.ntasks, &mut request.nodes) else { return };
    if nodes.min > tasks {
        if asked {
            errln!("srun: Warning: can't run {tasks} processes on {} nodes, setting nnodes to {tasks}", nodes.min);
        }
        *nodes = v1::NodeCount { min: tasks, max: Some(tasks) };
    }
}

fn wire_nodes(count: NodeCount) -> v1::NodeCount {
    v1::NodeCount { min: count.min, max: count.max }
}

fn wire_memory(memory: &MemoryRequest) -> v1::MemoryRequest {
    v1::MemoryRequest::from(memory)
}

/// How the step manager is found.
pub enum Manager<'a> {
    /// We run on the job's first node.
    Here,
    Node(&'a v1::JobCredential, &'a v1::JobCredentialBody),
}

/// Whether this process runs in the job, on its first node.
pub fn on_first_node() -> bool {
    let var = |name: &str| std::env::var(name).ok();
    let (Some(here), Some(nodes)) = (var("SLURMD_NODENAME"), var("SLURM_JOB_NODELIST")) else { return false };
    std::env::var_os("SLUICE_NODE_SOCKET").is_some()
        && hostlist::expand(&nodes).is_ok_and(|names| names.first() == Some(&here))
}

/// Gets a step in a running job, finding the manager and the credential as needed.
pub async fn create_in_job(client: &mut Client, request: v1::StepRequest, quiet: bool) -> Result<Step, CallError> {
    let job = request.job;
    if on_first_node() {
        match create(client, &Manager::Here, request.clone(), quiet).await {
            Err(e) if e.refusal_code() == Some(refusal::INVALID_JOB_ID) => {}
            other => return other,
        }
    }
    let credential = allocation::credential(client, job).await?;
    let body = read_credential(&credential)?;
    create(client, &Manager::Node(&credential, &body), request, quiet).await
}

/// Asks one step manager, again while it is out of reach.
pub async fn create(
    client: &mut Client,
    manager: &Manager<'_>,
    request: v1::StepRequest,
    quiet: bool,
) -> Result<Step, CallError> {
    let give_up = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(20);
    loop {
        let error = match ask(client, manager, request.clone(), quiet).await {
            Ok(step) => return Ok(step),
            Err(e @ (CallError::Unreachable { .. } | CallError::NoAnswer { .. })) => e,
            Err(e) => return Err(e),
        };
        if Instant::now() + pause >= give_up {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

async fn ask(client: &Client, manager: &Manager<'_>, request: v1::StepRequest, quiet: bool) -> Result<Step, CallError> {
    let job = request.job;
    let unreadable = |what: &str| CallError::Failed { problem: format!("the step manager's {what} can't be read") };
    let (name, mut node, credential) = match manager {
        Manager::Here => {
            let name = std::env::var("SLURMD_NODENAME").unwrap_or_default();
            let node = connect_node(&client.config, &name, "").await?;
            (name, node, None)
        }
        Manager::Node(credential, body) => {
            let first =
                body.allocation.as_ref().and_then(|a| a.nodes.first()).ok_or_else(|| unreadable("allocation"))?;
            let address = body.addresses.first().ok_or_else(|| unreadable("address"))?;
            let node = connect_node(&client.config, &first.node, address).await?;
            (first.node.clone(), node, Some((*credential).clone()))
        }
    };
    let asked = v1::CreateStepRequest { step: Some(request), credential };
    let mut replies = node.create_step(asked).await.map_err(|s| CallError::from_status(&s))?.into_inner();
    let mut waited = false;
    loop {
        let reply = replies.message().await.map_err(|s| CallError::from_status(&s))?;
        match reply.and_then(|r| r.kind) {
            Some(create_step_reply::Kind::Queued(queued)) => {
                if !waited && !quiet {
                    let reason = match queued.reason.as_str() {
                        "" => "Requested nodes are busy",
                        reason => reason,
                    };
                    errln!("srun: Job {job} step creation temporarily disabled, retrying ({reason})");
                }
                waited = true;
            }
            Some(create_step_reply::Kind::Granted(grant)) => {
                let body = v1::StepGrantBody::decode(grant.body.as_ref()).map_err(|_| unreadable("grant"))?;
                let key = body.key.ok_or_else(|| unreadable("grant"))?;
                if waited && !quiet {
                    errln!("srun: Step created for StepId={job}.{}", key.step);
                }
                return Ok(Step { grant, body, key, manager: (name, node) });
            }
            None => return Err(CallError::NoAnswer { problem: "the step manager closed the stream".to_owned() }),
        }
    }
}
