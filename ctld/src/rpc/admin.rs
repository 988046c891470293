//! Configuration, shutdown and joining of hosts.

use super::{hostname, status};
use crate::config_file;
use crate::context::Context;
use crate::owner::wall_clock;
use sluice_engine::command::{Caller, Reply, Role};
use sluice_engine::{Command, Reject};
use sluice_proto::v1;
use tonic::{Request, Response, Status};

fn administrator<T>(context: &Context, request: &Request<T>, what: &str) -> Result<Caller, Status> {
    let caller = context.caller(request)?;
    if caller.role < Role::Administrator {
        tracing::warn!(target: "audit", uid = caller.uid, user = caller.user, what, "refused: not an administrator");
        return Err(status(&Reject::AccessDenied { what: format!("{what} is for administrators") }));
    }
    tracing::info!(target: "audit", uid = caller.uid, user = caller.user, what, "administrative act");
    Ok(caller)
}

pub fn get_config(context: &Context) -> Result<Response<v1::ConfigReply>, Status> {
    let state = context.published.state();
    let Some(config) = &state.config else { return Err(Status::unavailable("no configuration yet")) };
    let entries = config_file::slurm_view(
        config,
        &config_file::Facts {
            hostname: hostname(),
            config_path: context.config_path.display().to_string(),
            next_job_id: state.last_job_id + 1,
            boot_time: context.started,
            user: sluice_identity::users::name_of(nix::unistd::geteuid().as_raw()),
            uid: nix::unistd::geteuid().as_raw(),
            state_dir: context.state_dir.display().to_string(),
        },
    );
    let entries = entries.into_iter().map(|(key, value)| v1::ConfigEntry { key: key.to_owned(), value }).collect();
    let toml = sluice_model::config::to_toml(config);
    Ok(Response::new(v1::ConfigReply { entries, now: wall_clock().0, toml }))
}

pub async fn reconfigure(
    context: &Context,
    request: Request<v1::Empty>,
) -> Result<Response<v1::ReconfigureReply>, Status> {
    administrator(context, &request, "reconfigure")?;
    match apply_config_file(context).await {
        Ok(changes) => Ok(Response::new(v1::ReconfigureReply { changes, errors: Vec::new() })),
        Err(errors) => Ok(Response::new(v1::ReconfigureReply { changes: Vec::new(), errors })),
    }
}

/// Reads, checks and applies the configuration file, whole or not at all. Also what SIGHUP does.
pub async fn apply_config_file(context: &Context) -> Result<Vec<String>, Vec<String>> {
    let _one_at_a_time = context.reconfiguring.lock().await;
    let config = config_file::read(&context.config_path)?;
    let command = Command::Configure { config: std::sync::Arc::new(config) };
    match context.owner.command(command).await {
        Ok(Reply::ConfigApplied { changes }) => {
            for change in &changes {
                tracing::info!(change, "configuration changed");
            }
            Ok(changes)
        }
        Ok(_) => Ok(Vec::new()),
        Err(reject) => Err(vec![match reject.detail() {
            Some(detail) => format!("{}: {detail}", reject.message()),
            None => reject.message().to_owned(),
        }]),
    }
}

pub fn shutdown(context: &Context, request: Request<v1::Empty>) -> Result<Response<v1::Empty>, Status> {
    administrator(context, &request, "shutdown")?;
    context.shutdown.send_replace(true);
    Ok(Response::new(v1::Empty {}))
}

pub fn join(context: &Context, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
    sluice_identity::join::admit(&context.keys, &context.join_tokens, request.get_ref()).map(Response::new)
}

/// How long a join token is good when nothing else is said.
const JOIN_TOKEN_SECS: u32 = 3600;

pub fn make_join_token(
    context: &Context,
    request: Request<v1::MakeJoinTokenRequest>,
) -> Result<Response<v1::MakeJoinTokenReply>, Status> {
    administrator(context, &request, "make a join token")?;
    let request = request.into_inner();
    if !request.login && !request.compute {
        return Err(Status::invalid_argument("a join token is for --login, --compute, or both"));
    }
    let roles = sluice_identity::Roles { login: request.login, compute: request.compute };
    let valid = if request.valid_secs == 0 { JOIN_TOKEN_SECS } else { request.valid_secs };
    let valid = std::time::Duration::from_secs(u64::from(valid));
    let token = context
        .join_tokens
        .make(&context.keys, roles, request.host.as_deref(), valid)
        .map_err(|error| Status::invalid_argument(error.to_string()))?;
    Ok(Response::new(v1::MakeJoinTokenReply { token }))
}
