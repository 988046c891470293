//! Carries out effects after their events are durable. Every effect may be repeated without harm, and what could not be
//! delivered (a node that isn't connected) follows again from the state when the node registers.

use crate::context::Context;
use crate::owner::Performed;
use crate::records;
use sluice_engine::job::ArrayRole;
use sluice_engine::{Command, Effect, Job, State};
use sluice_model::job::{JobKind, mail};
use sluice_model::{JobId, NodeName, StepId};
use sluice_proto::v1::{self, controller_message::Kind};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Runs until the owner is gone.
pub async fn run(context: Arc<Context>, mut effects: mpsc::UnboundedReceiver<Performed>) {
    while let Some(Performed { state, effects }) = effects.recv().await {
        for effect in effects {
            perform(&context, &state, effect);
        }
    }
}

fn perform(context: &Arc<Context>, state: &State, effect: Effect) {
    match effect {
        Effect::Launch { job, attempt } => launch(context, state, job, attempt),
        Effect::Signal { node, job, attempt, step, signal, batch, steps } => {
            let order = v1::SignalJob {
                job: job.0,
                attempt,
                step: step.map(StepId::to_wire),
                signal: u32::from(signal),
                batch,
                steps,
            };
            context.links.send(&node, Kind::Signal(order));
        }
        Effect::Suspend { node, job, attempt, resume } => {
            context.links.send(&node, Kind::Suspend(v1::SuspendJob { job: job.0, attempt, resume }));
        }
        Effect::EndAttempt { node, job, attempt } => {
            context.links.send(&node, Kind::End(v1::EndAttempt { job: job.0, attempt }));
        }
        Effect::Notify { job } => {
            // Nobody watching is fine.
            let _ = context.job_changes.send(job);
        }
        Effect::Mail { job, what } => send_mail(state, job, what),
        Effect::Archive { jobs } => archive(Arc::clone(context), state.clone(), jobs),
        Effect::PushConfig => push_config(context, state),
    }
}

fn push_config(context: &Context, state: &State) {
    let Some(config) = &state.config else { return };
    for node in context.links.connected() {
        if let Some(config) = crate::nodelink::node_config(config, &node) {
            context.links.send(&node, Kind::Config(config));
        }
    }
}

/// What a job holds, signed, for its nodes and for srun.
pub fn credential(context: &Context, state: &State, job: &Job) -> Option<v1::JobCredential> {
    let run = job.run()?;
    let spec = &job.spec;
    let address = |node: &NodeName| {
        let node = state.nodes.get(node)?;
        node.spec.address.clone().or_else(|| node.report.as_ref().map(|r| r.address.clone()))
    };
    let (array_job, array_index) = match &job.array {
        ArrayRole::Task { array, index } => (Some(array.0), Some(*index)),
        _ => (None, None),
    };
    let limit = job.time_limit.duration().and_then(|d| i64::try_from(d.as_millis()).ok());
    let body = v1::JobCredentialBody {
        job: job.id.0,
        attempt: run.attempt,
        uid: spec.uid,
        gid: spec.gid,
        user: spec.user.to_string(),
        group: spec.group.to_string(),
        allocation: Some(run.allocation.as_ref().into()),
        addresses: run.allocation.names().map(|n| address(n).unwrap_or_default()).collect(),
        issued_at: run.started.0,
        expires_at: 0,
        cluster: state.config.as_ref().map(|c| c.cluster_name.clone()).unwrap_or_default(),
        partition: job.partition.clone().unwrap_or_default(),
        job_name: bytes::Bytes::copy_from_slice(spec.name.as_bytes()),
        account: spec.account.clone().unwrap_or_default(),
        qos: spec.qos.clone().unwrap_or_else(|| "normal".to_owned()),
        start_time: run.started.0,
        end_time: limit.map_or(0, |l| run.started.0 + l),
        array_job,
        array_index,
        cpus_per_task: spec.request.cpus_per_task.unwrap_or(0),
        memory: spec.request.memory.as_ref().map(v1::MemoryRequest::from),
        ntasks: spec.request.ntasks.unwrap_or(0),
        ntasks_per_node: spec.request.ntasks_per_node.unwrap_or(0),
        work_dir: bytes::Bytes::copy_from_slice(spec.work_dir.as_bytes()),
        submit_host: spec.submit_host.to_string(),
    };
    Some(sluice_identity::credential::sign_job(&context.keys, &body))
}

fn launch(context: &Arc<Context>, state: &State, id: JobId, attempt: u32) {
    let Some(job) = state.jobs.get(&id) else { return };
    let Some(run) = job.run().filter(|run| run.attempt == attempt) else { return };
    let Some(credential) = credential(context, state, job) else { return };
    let array = job.spec.array.as_ref().filter(|_| matches!(job.array, ArrayRole::Task { .. }));
    let indices = array.map(|a| &a.indices);
    let order = v1::LaunchJob {
        credential: Some(credential),
        restart_count: attempt,
        array_count: indices.map(|i| u32::try_from(i.len()).unwrap_or(u32::MAX)),
        array_min: indices.and_then(|i| i.first()),
        array_max: indices.and_then(|i| i.last()),
        array_step: array.map(|a| a.step),
        cluster: state.config.as_ref().map(|c| c.cluster_name.clone()).unwrap_or_default(),
        ..v1::LaunchJob::default()
    };
    let mut nodes = run.allocation.names();
    let first = nodes.next();
    for node in nodes {
        context.links.send(node, Kind::Launch(order.clone()));
    }
    let Some(first) = first.cloned() else { return };
    match &job.spec.kind {
        JobKind::Allocation => {
            context.links.send(&first, Kind::Launch(order));
        }
        JobKind::Batch { script, .. } => {
            let read = |blob| match context.shelf.blob(blob) {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => Err(format!("blob {blob:?} is not there")),
                Err(error) => Err(error.to_string()),
            };
            match (read(script), read(&job.spec.environment)) {
                (Ok(script), Ok(environment)) => {
                    let order = v1::LaunchJob {
                        run_batch: true,
                        spec: Some(job.spec.as_ref().into()),
                        script: script.into(),
                        environment: environment.into(),
                        ..order
                    };
                    context.links.send(&first, Kind::Launch(order));
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::error!(job = id.0, %error, "the script or environment can't be read back");
                    let failure = sluice_engine::command::LaunchFailure {
                        kind: sluice_engine::command::LaunchFailureKind::Job,
                        detail: format!("the controller can't read the job's script: {error}"),
                    };
                    fail_launch(Arc::clone(context), first, id, attempt, failure);
                }
            }
        }
    }
}

fn fail_launch(
    context: Arc<Context>,
    node: NodeName,
    job: JobId,
    attempt: u32,
    failure: sluice_engine::command::LaunchFailure,
) {
    tokio::spawn(async move {
        let command = Command::BatchEnded {
            node,
            job,
            attempt,
            exit: sluice_model::state::ExitStatus { code: 1, signal: 0 },
            usage: sluice_model::step::Usage::default(),
            failure: Some(failure),
        };
        if let Err(reject) = context.owner.command(command).await {
            tracing::warn!(job = job.0, "a launch failure could not be recorded: {}", reject.message());
        }
    });
}

/// History first, then forget: a crash in between writes the records again, and reading keeps the last of each.
fn archive(context: Arc<Context>, state: State, jobs: Vec<JobId>) {
    tokio::spawn(async move {
        let shelf = Arc::clone(&context.shelf);
        let records: Vec<Arc<Job>> = jobs.iter().filter_map(|id| state.jobs.get(id).cloned()).collect();
        let written = tokio::task::spawn_blocking(move || shelf.archive(&records)).await;
        match written {
            Ok(Ok(())) => {
                if let Err(reject) = context.owner.command(Command::Archived { jobs }).await {
                    tracing::warn!("archived jobs stay in memory for now: {}", reject.message());
                }
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "finished jobs could not be written to the history; they stay live")
            }
            Err(error) => tracing::error!(%error, "writing to the history failed; finished jobs stay live"),
        }
    });
}

/// Mail by the configured program, as MailProg: `PROGRAM -s SUBJECT USER`.
fn send_mail(state: &State, id: JobId, what: u32) {
    let (Some(config), Some(job)) = (&state.config, state.jobs.get(&id)) else { return };
    let Some(program) = config.mail.program.clone() else { return };
    let user = job.spec.mail_user.clone().unwrap_or_else(|| job.spec.user.to_string());
    let to = match &config.mail.domain {
        Some(domain) if !user.contains('@') => format!("{user}@{domain}"),
        _ => user,
    };
    let event = match what {
        mail::BEGIN => "Began",
        mail::END => "Ended",
        mail::FAIL => "Failed",
        mail::REQUEUE => "Requeued",
        mail::INVALID_DEPEND => "Invalid dependency",
        mail::TIME_LIMIT => "Reached time limit",
        mail::TIME_LIMIT_90 => "Reached 90% of time limit",
        mail::TIME_LIMIT_80 => "Reached 80% of time limit",
        mail::TIME_LIMIT_50 => "Reached 50% of time limit",
        _ => "Changed",
    };
    let record = records::job(
        job,
        state,
        &crate::view::Remarks::default(),
        crate::owner::wall_clock(),
        records::Detail::default(),
    );
    let cluster = &config.cluster_name;
    let elapsed = sluice_model::time::format_elapsed_long(Duration::from_millis(record.elapsed_ms.max(0) as u64));
    let subject = format!(
        "Slurm Job_id={id} Name={} {event}, Run time {elapsed}, {} (cluster {cluster})",
        job.spec.name, record.state
    );
    tokio::spawn(async move {
        let child = tokio::process::Command::new(&program)
            .args(["-s", &subject, &to])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status();
        match tokio::time::timeout(Duration::from_secs(60), child).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => tracing::warn!(job = id.0, %status, program, "the mail program failed"),
            Ok(Err(error)) => tracing::warn!(job = id.0, %error, program, "the mail program can't be run"),
            Err(_) => tracing::warn!(job = id.0, program, "the mail program took longer than 60 s and was ended"),
        }
    });
}
