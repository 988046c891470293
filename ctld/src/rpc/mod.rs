//! The controller's gRPC service for commands. Each call proves its caller, turns the request into engine commands or a
//! read of the published snapshot, and back. Nothing is decided here.

mod accounting;
mod admin;
mod control;
mod lists;
mod shares;
mod submit;
mod why;

use crate::context::Context;

pub use admin::apply_config_file;
use prost::Message;
use sluice_engine::Reject;
use sluice_proto::convert::ConvertError;
use sluice_proto::v1;
use std::pin::Pin;
use std::sync::Arc;
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status};

/// The service; one per process.
pub struct ControllerService {
    pub context: Arc<Context>,
}

/// A refusal as a gRPC status: the encoded `Refusal` is in the details.
pub fn status(reject: &Reject) -> Status {
    let code = match reject {
        Reject::AccessDenied { .. } => Code::PermissionDenied,
        Reject::Internal { .. } => Code::Unavailable,
        Reject::StorageFull { .. } => Code::ResourceExhausted,
        _ => Code::FailedPrecondition,
    };
    let retry_after_ms = if let Reject::TooFast { wait_ms, .. } = reject { Some(*wait_ms) } else { None };
    let (number, message, detail) = (reject.code(), reject.message().to_owned(), reject.detail());
    let refusal = v1::Refusal { code: number, message, detail, retry_after_ms };
    Status::with_details(code, reject.message(), refusal.encode_to_vec().into())
}

/// A request that can't be read.
fn unreadable(error: &ConvertError) -> Status {
    Status::invalid_argument(error.to_string())
}

/// Finished jobs can't be read.
fn unreadable_history(error: &crate::store::StoreError) -> Status {
    Status::internal(format!("the history can't be read: {error}"))
}

type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl v1::controller_server::Controller for ControllerService {
    async fn ping(&self, _request: Request<v1::Empty>) -> Result<Response<v1::PingReply>, Status> {
        let state = self.context.published.state();
        Ok(Response::new(v1::PingReply {
            cluster: state.config.as_ref().map(|c| c.cluster_name.clone()).unwrap_or_default(),
            hostname: hostname(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.context.started.0,
            pid: std::process::id(),
        }))
    }

    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        submit::submit(&self.context, request).await
    }

    async fn test_only(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::TestOnlyReply>, Status> {
        submit::test_only(&self.context, request).await
    }

    type WatchJobStream = Streamed<v1::JobRecord>;
    async fn watch_job(&self, request: Request<v1::WatchJobRequest>) -> Result<Response<Self::WatchJobStream>, Status> {
        lists::watch_job(&self.context, request)
    }

    async fn get_job_credential(
        &self,
        request: Request<v1::JobIdRequest>,
    ) -> Result<Response<v1::JobCredentialReply>, Status> {
        submit::job_credential(&self.context, request)
    }

    async fn complete_allocation(
        &self,
        request: Request<v1::CompleteAllocationRequest>,
    ) -> Result<Response<v1::Empty>, Status> {
        submit::complete_allocation(&self.context, request).await
    }

    async fn control(&self, request: Request<v1::ControlRequest>) -> Result<Response<v1::ControlReply>, Status> {
        control::control(&self.context, request).await
    }

    type ListJobsStream = Streamed<v1::JobList>;
    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<Self::ListJobsStream>, Status> {
        lists::list_jobs(&self.context, request)
    }

    async fn list_nodes(&self, request: Request<v1::ListNodesRequest>) -> Result<Response<v1::NodeList>, Status> {
        lists::list_nodes(&self.context, request)
    }

    async fn list_partitions(&self, request: Request<v1::Empty>) -> Result<Response<v1::PartitionList>, Status> {
        lists::list_partitions(&self.context, request)
    }

    async fn list_priorities(&self, request: Request<v1::Empty>) -> Result<Response<v1::PriorityList>, Status> {
        shares::list_priorities(&self.context, request)
    }

    async fn list_shares(&self, request: Request<v1::Empty>) -> Result<Response<v1::ShareList>, Status> {
        shares::list_shares(&self.context, request)
    }

    type ListHistoryStream = Streamed<v1::JobList>;
    async fn list_history(
        &self,
        request: Request<v1::HistoryRequest>,
    ) -> Result<Response<Self::ListHistoryStream>, Status> {
        lists::list_history(&self.context, request)
    }

    async fn get_script(&self, request: Request<v1::JobIdRequest>) -> Result<Response<v1::ScriptReply>, Status> {
        submit::script(&self.context, request)
    }

    async fn get_config(&self, _request: Request<v1::Empty>) -> Result<Response<v1::ConfigReply>, Status> {
        admin::get_config(&self.context)
    }

    async fn reconfigure(&self, request: Request<v1::Empty>) -> Result<Response<v1::ReconfigureReply>, Status> {
        admin::reconfigure(&self.context, request).await
    }

    async fn shutdown(&self, request: Request<v1::Empty>) -> Result<Response<v1::Empty>, Status> {
        admin::shutdown(&self.context, request)
    }

    async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        admin::join(&self.context, request)
    }

    async fn why(&self, request: Request<v1::WhyRequest>) -> Result<Response<v1::WhyReply>, Status> {
        why::why(&self.context, request).await
    }

    async fn why_node(&self, request: Request<v1::WhyNodeRequest>) -> Result<Response<v1::WhyNodeReply>, Status> {
        why::why_node(&self.context, request).await
    }

    async fn make_join_token(
        &self,
        request: Request<v1::MakeJoinTokenRequest>,
    ) -> Result<Response<v1::MakeJoinTokenReply>, Status> {
        admin::make_join_token(&self.context, request)
    }

    async fn accounting(
        &self,
        request: Request<v1::AccountingRequest>,
    ) -> Result<Response<v1::AccountingReport>, Status> {
        accounting::change(&self.context, request).await
    }

    async fn list_accounting(&self, request: Request<v1::Empty>) -> Result<Response<v1::AccountingList>, Status> {
        accounting::list(&self.context, request)
    }
}

/// This host's name, without its domain.
pub fn hostname() -> String {
    let name = nix::unistd::gethostname().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The jobs that a request names.
fn target(target: Option<v1::JobTarget>) -> Result<sluice_engine::command::JobTarget, Status> {
    use sluice_engine::command::JobTarget;
    use sluice_model::JobId;
    let target = target.ok_or_else(|| Status::invalid_argument("no job named"))?;
    Ok(match target.tasks {
        None => JobTarget::Job(JobId(target.job)),
        Some(tasks) => JobTarget::Tasks(JobId(target.job), tasks.try_into().map_err(|e| unreadable(&e))?),
    })
}
