//! Talking to the cluster's controller over its socket.

use super::layout::Layout;
use super::{LocalError, Result};
use sluice_identity::client::{Authorized, Endpoint, Tokens};
use sluice_proto::v1;
use sluice_proto::v1::controller_client::ControllerClient;
use std::time::Duration;

pub(super) type Controller = ControllerClient<Authorized>;

/// No answer of a controller on this machine takes so long.
const DEADLINE: Duration = Duration::from_secs(30);

pub(super) async fn connect(layout: &Layout) -> Result<Controller> {
    let endpoint = Endpoint::Unix(layout.socket("ctld"));
    let link = Authorized::connect(&endpoint, Tokens::None).await.map_err(|e| LocalError::Said(e.to_string()))?;
    Ok(link.controller())
}

/// One request with a deadline.
pub(super) async fn ask<T>(
    answer: impl Future<Output = std::result::Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(LocalError::Said(status.message().to_owned())),
        Err(_) => Err(LocalError::Said(format!("the controller did not answer within {} s", DEADLINE.as_secs()))),
    }
}

pub(super) async fn nodes(controller: &mut Controller) -> Result<Vec<v1::NodeRecord>> {
    Ok(ask(controller.list_nodes(v1::ListNodesRequest::default())).await?.nodes)
}

/// Jobs that are not over.
pub(super) async fn live_jobs(controller: &mut Controller) -> Result<Vec<v1::JobRecord>> {
    let mut stream = ask(controller.list_jobs(v1::ListJobsRequest::default())).await?;
    let mut jobs = Vec::new();
    while let Some(part) = stream.message().await.map_err(|s| LocalError::Said(s.message().to_owned()))? {
        jobs.extend(part.jobs);
    }
    Ok(jobs)
}
