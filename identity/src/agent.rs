//! The local agent: tells other hosts who calls here, as the kernel sees it.

use crate::client::{self, ConnectError, Endpoint};
use crate::host::HostKeys;
use crate::server::Origin;
use crate::token::{self, SignedToken, Statement};
use crate::{CONTROLLER, now_ms};
use sluice_proto::v1;
use std::path::Path;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// A process that asks for a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    pub pid: Option<i32>,
}

type JobOf = Arc<dyn Fn(Caller) -> Option<u32> + Send + Sync>;

/// The agent's service, for a Unix socket. A request that came any other way is refused.
#[derive(Clone)]
pub struct AgentService {
    keys: Arc<HostKeys>,
    job_of: JobOf,
}

impl AgentService {
    /// `job_of` names a running job here that admits the caller. It is asked on hosts without the login role.
    pub fn new(keys: Arc<HostKeys>, job_of: impl Fn(Caller) -> Option<u32> + Send + Sync + 'static) -> AgentService {
        AgentService { keys, job_of: Arc::new(job_of) }
    }

    pub fn into_server(self) -> v1::agent_server::AgentServer<AgentService> {
        v1::agent_server::AgentServer::new(self)
    }
}

#[tonic::async_trait]
impl v1::agent_server::Agent for AgentService {
    async fn get_token(&self, request: Request<v1::GetTokenRequest>) -> Result<Response<v1::GetTokenReply>, Status> {
        let Some(&Origin::Unix { uid, gid, pid }) = request.extensions().get::<Origin>() else {
            return Err(Status::permission_denied("the agent answers on its local socket only"));
        };
        let roles = self.keys.roles();
        let job = if roles.login { None } else { (self.job_of)(Caller { uid, gid, pid }) };
        if !roles.login && (uid == 0 || job.is_none()) {
            return Err(Status::permission_denied(format!(
                "host {} vouches only for users with a job running here",
                self.keys.host()
            )));
        }
        let audience = match request.get_ref().audience.as_str() {
            "" => CONTROLLER,
            audience => audience,
        };
        let signed = token::sign(&self.keys, Statement::User { uid, gid, job }, audience, now_ms())
            .map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(v1::GetTokenReply { token: signed.token, expires_at: signed.expires_at }))
    }
}

/// Asks the agent at this socket for a token to show to `audience` (a host's name, or `CONTROLLER`).
pub async fn fetch_token(socket: &Path, audience: &str) -> Result<SignedToken, ConnectError> {
    let channel = client::connect(&Endpoint::Unix(socket.to_owned())).await?;
    let mut agent = v1::agent_client::AgentClient::new(channel);
    let request = v1::GetTokenRequest { audience: audience.to_owned() };
    let reply = agent.get_token(request).await?.into_inner();
    Ok(SignedToken { token: reply.token, expires_at: reply.expires_at })
}
