//! Submission, and what an allocation's client needs: credential, completion, script.

use super::{status, unreadable};
use crate::context::Context;
use crate::owner::wall_clock;
use crate::store::blob_id;
use bytes::Bytes;
use sluice_engine::command::{Caller, Reply, Role};
use sluice_engine::job::Phase;
use sluice_engine::{Command, Job, Reject, query};
use sluice_model::job::JobKind;
use sluice_model::{JobId, JobSpec};
use sluice_proto::convert::submit_key;
use sluice_proto::v1;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The request's spec, with the user fields of the proven caller and the blobs named by their hashes.
fn prepare(context: &Context, caller: &Caller, request: v1::SubmitRequest) -> Result<(JobSpec, Vec<Bytes>), Status> {
    let state = context.published.state();
    let limits = state.config.as_ref().map(|c| c.limits.clone());
    let mut spec = request.spec.ok_or_else(|| Status::invalid_argument("no job given"))?;
    let too_large = |size: usize, limit: u64| {
        status(&Reject::ScriptTooLarge { size: u64::try_from(size).unwrap_or(u64::MAX), limit })
    };
    if let Some(limits) = limits {
        if request.script.len() as u64 > limits.max_script_size {
            return Err(too_large(request.script.len(), limits.max_script_size));
        }
        if request.environment.len() as u64 > limits.max_environment_size {
            return Err(too_large(request.environment.len(), limits.max_environment_size));
        }
    }
    if spec.batch {
        if !request.script.starts_with(b"#!") {
            let detail = "the first line must start with #! and an interpreter's path".to_owned();
            return Err(status(&Reject::InvalidScript { detail }));
        }
        if request.script.contains(&0) {
            return Err(status(&Reject::InvalidScript { detail: "the script holds a NUL byte".to_owned() }));
        }
        spec.script_blob = Bytes::copy_from_slice(&blob_id(&request.script).0);
    }
    spec.uid = caller.uid;
    spec.gid = caller.gid;
    spec.user = caller.user.clone();
    spec.group = sluice_identity::users::group_name_of(caller.gid);
    // An allocation has none.
    spec.script_blob = if spec.batch { Bytes::copy_from_slice(&blob_id(&request.script).0) } else { Bytes::new() };
    spec.environment_blob = Bytes::copy_from_slice(&blob_id(&request.environment).0);
    let spec: JobSpec = spec.try_into().map_err(|e| unreadable(&e))?;
    Ok((spec, vec![request.script, request.environment]))
}

pub async fn submit(
    context: &Context,
    request: Request<v1::SubmitRequest>,
) -> Result<Response<v1::SubmitReply>, Status> {
    let caller = context.caller(&request)?;
    let request = request.into_inner();
    let key = Some(&request.key).filter(|k| !k.is_empty()).map(|k| submit_key(k, "key")).transpose();
    let key = key.map_err(|e| unreadable(&e))?;
    context.throttle.turn(&caller, &context.published.state()).await.map_err(|reject| status(&reject))?;
    let (spec, blobs) = prepare(context, &caller, request)?;
    let blobs = if matches!(spec.kind, JobKind::Batch { .. }) { blobs } else { blobs.into_iter().skip(1).collect() };
    let command = Command::Submit { caller, spec: Box::new(spec), key };
    match context.owner.command_with(command, blobs).await {
        Ok(Reply::Submitted { job }) => Ok(Response::new(v1::SubmitReply { job: job.0 })),
        Ok(other) => Err(Status::internal(format!("unexpected answer {other:?}"))),
        Err(reject) => Err(status(&reject)),
    }
}

/// Runs the submission through the engine and the real scheduler on a copy of the state; nothing is kept.
pub async fn test_only(
    context: &Context,
    request: Request<v1::SubmitRequest>,
) -> Result<Response<v1::TestOnlyReply>, Status> {
    let caller = context.caller(&request)?;
    let (spec, _) = prepare(context, &caller, request.into_inner())?;
    let published = Arc::clone(&context.published);
    let estimate = tokio::task::spawn_blocking(move || {
        let state = published.state();
        query::test_submission(&state, wall_clock(), &caller, spec)
    });
    match estimate.await.map_err(|e| Status::internal(e.to_string()))? {
        Ok(estimate) => Ok(Response::new(v1::TestOnlyReply {
            job: estimate.job.0,
            start: estimate.start.0,
            cpus: estimate.cpus,
            nodes: estimate.nodes.iter().map(ToString::to_string).collect(),
            partition: estimate.partition,
        })),
        Err(reject) => Err(status(&reject)),
    }
}

/// The live job, when the caller may see what only its owner may.
fn owned_job<T>(context: &Context, request: &Request<T>, id: u32) -> Result<Arc<Job>, Status> {
    let caller = context.caller(request)?;
    let state = context.published.state();
    let job = state.jobs.get(&JobId(id)).cloned().ok_or_else(|| status(&Reject::InvalidJobId))?;
    if job.spec.uid != caller.uid && caller.role < Role::Operator {
        tracing::warn!(target: "audit", uid = caller.uid, job = id, "access to another user's job was refused");
        return Err(status(&Reject::AccessDenied { what: format!("job {id} belongs to {}", job.spec.user) }));
    }
    Ok(job)
}

pub fn job_credential(
    context: &Context,
    request: Request<v1::JobIdRequest>,
) -> Result<Response<v1::JobCredentialReply>, Status> {
    let id = request.get_ref().job;
    let job = owned_job(context, &request, id)?;
    match &job.phase {
        Phase::Running(_) => {}
        Phase::Pending => return Err(status(&Reject::JobPending)),
        Phase::Completing { .. } | Phase::Ended { .. } => return Err(status(&Reject::JobFinished)),
    }
    let state = context.published.state();
    let credential = crate::perform::credential(context, &state, &job);
    Ok(Response::new(v1::JobCredentialReply { credential }))
}

pub async fn complete_allocation(
    context: &Context,
    request: Request<v1::CompleteAllocationRequest>,
) -> Result<Response<v1::Empty>, Status> {
    let caller = context.caller(&request)?;
    let request = request.into_inner();
    let exit = request.exit.unwrap_or_default().try_into().map_err(|e| unreadable(&e))?;
    let command = Command::CompleteAllocation { caller, job: JobId(request.job), exit };
    context.owner.command(command).await.map_err(|reject| status(&reject))?;
    Ok(Response::new(v1::Empty {}))
}

pub fn script(context: &Context, request: Request<v1::JobIdRequest>) -> Result<Response<v1::ScriptReply>, Status> {
    let id = request.get_ref().job;
    let job = owned_job(context, &request, id)?;
    let JobKind::Batch { script, .. } = &job.spec.kind else {
        return Err(status(&Reject::InvalidScript { detail: format!("job {id} has no batch script") }));
    };
    let script = match context.shelf.blob(script) {
        Ok(Some(script)) => script,
        Ok(None) => return Err(Status::not_found(format!("the script of job {id} is no longer kept"))),
        Err(error) => return Err(Status::internal(format!("script of job {id}: {error}"))),
    };
    Ok(Response::new(v1::ScriptReply { script: script.into() }))
}
