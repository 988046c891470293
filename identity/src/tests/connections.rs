//! Real sockets on loopback.

use super::*;
use crate::agent::AgentService;
use crate::client::{Authorized, ConnectError, Endpoint, Tokens};
use crate::join::JoinTokens;
use crate::server::{Listener, Peer, Verifier, serve};
use crate::{CONTROLLER, HostKeys, join, unix};
use sluice_proto::v1;
use sluice_proto::v1::node_steps_server::NodeSteps;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::service::Routes;
use tonic::{Code, Request, Response, Status, Streaming};

/// Answers `ListSteps` with who the caller is, as the step's host.
struct WhoAmI(Verifier);

#[tonic::async_trait]
impl NodeSteps for WhoAmI {
    type CreateStepStream = tokio_stream::Empty<Result<v1::CreateStepReply, Status>>;
    type RunStepStream = tokio_stream::Empty<Result<v1::StepOutput, Status>>;
    async fn create_step(&self, _: Request<v1::CreateStepRequest>) -> Result<Response<Self::CreateStepStream>, Status> {
        Err(Status::unimplemented("not in this test"))
    }
    async fn run_step(&self, _: Request<Streaming<v1::StepInput>>) -> Result<Response<Self::RunStepStream>, Status> {
        Err(Status::unimplemented("not in this test"))
    }
    async fn step_part_ended(&self, _: Request<v1::StepPartEndedRequest>) -> Result<Response<v1::Empty>, Status> {
        Err(Status::unimplemented("not in this test"))
    }
    async fn signal_step(&self, _: Request<v1::SignalStepRequest>) -> Result<Response<v1::Empty>, Status> {
        Err(Status::unimplemented("not in this test"))
    }
    async fn list_steps(&self, request: Request<v1::ListStepsRequest>) -> Result<Response<v1::ListStepsReply>, Status> {
        let peer = crate::server::peer(&request, &self.0)?;
        let record = v1::StepRecord { srun_host: format!("{peer:?}"), ..Default::default() };
        Ok(Response::new(v1::ListStepsReply { steps: vec![record], ..Default::default() }))
    }
}

/// A host's server on TLS and a Unix socket; stops when dropped.
struct Running {
    addr: String,
    socket: PathBuf,
    _stop: watch::Sender<bool>,
}

async fn start(f: &Fixture, keys: &Arc<HostKeys>, routes: Routes) -> Running {
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = tcp.local_addr().unwrap().to_string();
    // Longer than the kernel's limit on socket paths.
    let deep = f.dir.path().join("d".repeat(120));
    std::fs::create_dir_all(&deep).unwrap();
    let socket = deep.join(format!("{}.sock", keys.host()));
    let listener = unix::bind(&socket, 0o666).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let listeners = vec![Listener::Unix(listener), Listener::Tls(tcp, Arc::clone(keys))];
    tokio::spawn(async move { serve(routes, listeners, stopped).await.unwrap() });
    Running { addr, socket, _stop: stop }
}

async fn start_steps(f: &Fixture, keys: &Arc<HostKeys>, verifier: Verifier) -> Running {
    let agent = AgentService::new(Arc::clone(keys), |_| Some(7)).into_server();
    let steps = crate::server::node_steps_service(WhoAmI(verifier));
    start(f, keys, Routes::new(steps).add_service(agent)).await
}

async fn who(link: &Authorized) -> Result<String, Status> {
    let reply = link.node_steps().list_steps(v1::ListStepsRequest::default()).await?;
    Ok(reply.into_inner().steps.remove(0).srun_host)
}

fn me() -> (u32, u32) {
    (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw())
}

#[tokio::test]
async fn on_a_unix_socket_the_kernel_says_who_calls() {
    let f = Fixture::new();
    let keys = f.host("node1", COMPUTE);
    let server = start_steps(&f, &keys, keys.verifier()).await;
    let link = Authorized::connect(&Endpoint::Unix(server.socket.clone()), Tokens::None).await.unwrap();
    let (uid, gid) = me();
    let pid = Some(i32::try_from(std::process::id()).unwrap());
    assert_eq!(who(&link).await.unwrap(), format!("{:?}", Peer::Local { uid, gid, pid }));
}

#[tokio::test]
async fn over_tls_the_agents_token_says_who_calls() {
    let f = Fixture::new();
    let (login, node) = (f.host("login", LOGIN), f.host("node1", COMPUTE));
    let agent = start_steps(&f, &login, login.verifier()).await;
    let server = start_steps(&f, &node, node.verifier()).await;
    let endpoint = Endpoint::tls(&server.addr, "node1", &f.keys.cluster().ca_pem);
    let tokens = |audience: &str| Tokens::Agent { socket: agent.socket.clone(), audience: audience.into() };
    let link = Authorized::connect(&endpoint, tokens("node1")).await.unwrap();
    let (uid, gid) = me();
    let expected = Peer::User { uid, gid, host: "login".into(), job: None };
    assert_eq!(who(&link).await.unwrap(), format!("{expected:?}"));

    let for_another = Authorized::connect(&endpoint, tokens("node2")).await.unwrap();
    assert_eq!(who(&for_another).await.unwrap_err().code(), Code::Unauthenticated);
    let without = Authorized::connect(&endpoint, Tokens::None).await.unwrap();
    assert_eq!(who(&without).await.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn the_agent_answers_on_its_local_socket_only() {
    let f = Fixture::new();
    let login = f.host("login", LOGIN);
    let server = start_steps(&f, &login, login.verifier()).await;
    let endpoint = Endpoint::tls(&server.addr, "login", &f.keys.cluster().ca_pem);
    let channel = crate::client::connect(&endpoint).await.unwrap();
    let mut agent = v1::agent_client::AgentClient::new(channel);
    let refused = agent.get_token(v1::GetTokenRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn a_node_proves_its_own_name_on_any_connection() {
    let f = Fixture::new();
    let controller = Arc::new(f.keys.issue_controller().unwrap());
    let server = start_steps(&f, &controller, f.keys.verifier()).await;
    let node = Tokens::Node { keys: f.host("node1", COMPUTE), audience: CONTROLLER.into() };
    let expected = format!("{:?}", Peer::Node { host: "node1".into() });
    for endpoint in
        [Endpoint::Unix(server.socket.clone()), Endpoint::tls(&server.addr, CONTROLLER, &f.keys.cluster().ca_pem)]
    {
        let link = Authorized::connect(&endpoint, node.clone()).await.unwrap();
        assert_eq!(who(&link).await.unwrap(), expected, "{endpoint}");
    }
}

#[tokio::test]
async fn a_server_of_another_cluster_or_of_another_name_is_not_believed() {
    let (f, other) = (Fixture::new(), Fixture::new());
    let keys = f.host("node1", COMPUTE);
    let server = start_steps(&f, &keys, keys.verifier()).await;
    for (host, ca) in [("node1", &other.keys.cluster().ca_pem), ("node2", &f.keys.cluster().ca_pem)] {
        let refused = crate::client::connect(&Endpoint::tls(&server.addr, host, ca)).await;
        let Err(ConnectError::Unreachable { .. }) = refused else { panic!("{host} was believed: {refused:?}") };
    }
}

#[tokio::test]
async fn a_dead_socket_is_replaced_and_a_living_one_is_not() {
    let f = Fixture::new();
    let path = f.dir.path().join("s");
    let first = unix::bind(&path, 0o600).await.unwrap();
    let second = unix::bind(&path, 0o600).await;
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    drop(first);
    assert!(unix::bind(&path, 0o600).await.is_ok());
}

#[tokio::test]
async fn nobody_listening_is_said_with_the_place() {
    let missing = Endpoint::Unix("/nonexistent/ctld.sock".into());
    let error = crate::client::connect(&missing).await.unwrap_err().to_string();
    assert_eq!(error, "can't connect to /nonexistent/ctld.sock: No such file or directory (os error 2)");
}

#[tokio::test]
async fn serving_ends_when_it_is_told_to() {
    let f = Fixture::new();
    let keys = f.host("node1", COMPUTE);
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let steps = crate::server::node_steps_service(WhoAmI(keys.verifier()));
    let server = tokio::spawn(serve(Routes::new(steps), vec![Listener::Tls(tcp, keys)], stopped));
    stop.send_replace(true);
    tokio::time::timeout(Duration::from_secs(30), server).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn connections_that_say_nothing_do_not_keep_others_out() {
    let f = Fixture::new();
    let keys = f.host("node1", COMPUTE);
    let server = start_steps(&f, &keys, keys.verifier()).await;
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(tokio::net::TcpStream::connect(&server.addr).await.unwrap());
    }
    let endpoint = Endpoint::tls(&server.addr, "node1", &f.keys.cluster().ca_pem);
    let node = Tokens::Node { keys: f.host("node2", COMPUTE), audience: "node1".into() };
    let link = Authorized::connect(&endpoint, node).await.unwrap();
    assert!(who(&link).await.is_ok());
}

mod joining_over_the_wire {
    use super::*;
    use v1::controller_server::Controller;

    struct Joins {
        keys: Arc<ClusterKeys>,
        tokens: JoinTokens,
    }

    macro_rules! absent {
        ($($name:ident: $request:ident -> $reply:ty;)*) => {
            #[tonic::async_trait]
            impl Controller for Joins {
                type WatchJobStream = tokio_stream::Empty<Result<v1::JobRecord, Status>>;
                type ListJobsStream = tokio_stream::Empty<Result<v1::JobList, Status>>;
                type ListHistoryStream = tokio_stream::Empty<Result<v1::JobList, Status>>;
                async fn join(&self, request: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
                    join::admit(&self.keys, &self.tokens, request.get_ref()).map(Response::new)
                }
                $(async fn $name(&self, _: Request<v1::$request>) -> Result<Response<$reply>, Status> {
                    Err(Status::unimplemented("not in this test"))
                })*
            }
        };
    }
    absent! {
        ping: Empty -> v1::PingReply;
        accounting: AccountingRequest -> v1::AccountingReport;
        list_accounting: Empty -> v1::AccountingList;
        list_priorities: Empty -> v1::PriorityList;
        list_shares: Empty -> v1::ShareList;
        why: WhyRequest -> v1::WhyReply;
        why_node: WhyNodeRequest -> v1::WhyNodeReply;
        submit: SubmitRequest -> v1::SubmitReply;
        test_only: SubmitRequest -> v1::TestOnlyReply;
        watch_job: WatchJobRequest -> Self::WatchJobStream;
        get_job_credential: JobIdRequest -> v1::JobCredentialReply;
        complete_allocation: CompleteAllocationRequest -> v1::Empty;
        control: ControlRequest -> v1::ControlReply;
        list_jobs: ListJobsRequest -> Self::ListJobsStream;
        list_nodes: ListNodesRequest -> v1::NodeList;
        list_partitions: Empty -> v1::PartitionList;
        list_history: HistoryRequest -> Self::ListHistoryStream;
        get_script: JobIdRequest -> v1::ScriptReply;
        get_config: Empty -> v1::ConfigReply;
        reconfigure: Empty -> v1::ReconfigureReply;
        shutdown: Empty -> v1::Empty;
        make_join_token: MakeJoinTokenRequest -> v1::MakeJoinTokenReply;
    }

    async fn controller(f: &Fixture) -> (Running, JoinTokens) {
        let open = || JoinTokens::open(&f.dir.path().join("join")).unwrap();
        let keys = Arc::new(f.keys.issue_controller().unwrap());
        let service = crate::server::controller_service(Joins { keys: Arc::clone(&f.keys), tokens: open() });
        (start(f, &keys, Routes::new(service)).await, open())
    }

    #[tokio::test]
    async fn a_host_joins_with_nothing_but_its_token_and_only_once() {
        let f = Fixture::new();
        let (server, tokens) = controller(&f).await;
        let token = tokens.make(&f.keys, COMPUTE, Some("node9"), Duration::from_secs(60)).unwrap();
        let keys = join::join(&server.addr, &token, "node9").await.unwrap();
        assert_eq!((keys.host(), keys.roles(), keys.cluster()), ("node9", COMPUTE, f.keys.cluster()));
        let again = join::join(&server.addr, &token, "node9").await;
        let Err(ConnectError::Answer(status)) = again else { panic!("joined twice: {again:?}") };
        assert_eq!(status.code(), Code::PermissionDenied);
    }

    #[tokio::test]
    async fn a_joining_host_does_not_believe_a_false_controller() {
        let (f, impostor) = (Fixture::new(), Fixture::new());
        let (server, _) = controller(&impostor).await;
        let (_true_server, tokens) = controller(&f).await;
        let token = tokens.make(&f.keys, COMPUTE, None, Duration::from_secs(60)).unwrap();
        let refused = join::join(&server.addr, &token, "node9").await;
        assert!(matches!(refused, Err(ConnectError::Unreachable { .. })), "{refused:?}");
    }
}
