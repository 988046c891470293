//! srun and where its output goes, with a node daemon made for the test. No cluster runs.

use prost::Message;
use sluice_proto::v1::node_steps_server::{NodeSteps, NodeStepsServer};
use sluice_proto::v1::{self, create_step_reply, step_input, step_output};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// A node on which one task writes until it is told to end.
#[derive(Default)]
struct Endless {
    /// Only SIGKILL ends it.
    stubborn: bool,
    signals: Arc<Mutex<Vec<u32>>>,
}

type Outputs<T> = UnboundedReceiverStream<Result<T, Status>>;

#[tonic::async_trait]
impl NodeSteps for Endless {
    type CreateStepStream = Outputs<v1::CreateStepReply>;
    type RunStepStream = Outputs<v1::StepOutput>;
    async fn create_step(&self, _: Request<v1::CreateStepRequest>) -> Result<Response<Self::CreateStepStream>, Status> {
        let node = v1::StepNode { node: "n1".into(), tasks: vec![0], ..Default::default() };
        let key = Some(v1::StepKey { job: 5, attempt: 0, step: 0 });
        let kill_wait_secs = Some(1);
        let body = v1::StepGrantBody { key, nodes: vec![node], ntasks: 1, kill_wait_secs, ..Default::default() };
        let grant = v1::StepGrant { body: body.encode_to_vec().into(), ..Default::default() };
        let (replies, stream) = tokio::sync::mpsc::unbounded_channel();
        let granted = create_step_reply::Kind::Granted(grant);
        let _ = replies.send(Ok(v1::CreateStepReply { kind: Some(granted) }));
        Ok(Response::new(UnboundedReceiverStream::new(stream)))
    }
    async fn run_step(
        &self,
        request: Request<Streaming<v1::StepInput>>,
    ) -> Result<Response<Self::RunStepStream>, Status> {
        let mut input = request.into_inner();
        let signals = Arc::clone(&self.signals);
        let last = if self.stubborn { libc::SIGKILL } else { libc::SIGTERM } as u32;
        let (out, stream) = tokio::sync::mpsc::unbounded_channel();
        let mut sequence = 0;
        let mut say = move |kind| {
            sequence += u64::from(!matches!(kind, step_output::Kind::Started(_)));
            let number = if matches!(kind, step_output::Kind::Started(_)) { 0 } else { sequence };
            let _ = out.send(Ok(v1::StepOutput { sequence: number, kind: Some(kind) }));
        };
        let yes = || {
            let data = "y\n".repeat(1000).into();
            step_output::Kind::Output(v1::TaskOutput { task: 0, data, ..Default::default() })
        };
        tokio::spawn(async move {
            say(step_output::Kind::Started(v1::Started::default()));
            say(yes());
            while let Ok(Some(message)) = input.message().await {
                match message.kind {
                    // What was written makes room for more.
                    Some(step_input::Kind::OutputAck(_)) => say(yes()),
                    Some(step_input::Kind::Signal(signal)) => {
                        signals.lock().expect("not poisoned").push(signal);
                        if signal == last {
                            break;
                        }
                    }
                    _ => {}
                }
            }
            let exit = Some(v1::ExitStatus { code: 0, signal: last });
            say(step_output::Kind::Exit(v1::TaskExit { task: 0, exit, ..Default::default() }));
            say(step_output::Kind::Ended(v1::PartEnded { worst: exit, ..Default::default() }));
        });
        Ok(Response::new(UnboundedReceiverStream::new(stream)))
    }
    async fn step_part_ended(&self, _: Request<v1::StepPartEndedRequest>) -> Result<Response<v1::Empty>, Status> {
        Err(Status::unimplemented("step_part_ended"))
    }
    async fn signal_step(&self, _: Request<v1::SignalStepRequest>) -> Result<Response<v1::Empty>, Status> {
        Err(Status::unimplemented("signal_step"))
    }
    async fn list_steps(&self, _: Request<v1::ListStepsRequest>) -> Result<Response<v1::ListStepsReply>, Status> {
        Err(Status::unimplemented("list_steps"))
    }
}

#[test]
fn a_step_whose_output_nobody_reads_any_more_is_ended() {
    let (code, stderr, signals) = closed_pipe(Endless::default());
    assert_eq!(code, Some(128 + 15), "{stderr}");
    assert!(stderr.contains("srun: error: n1: task 0: Terminated"), "{stderr}");
    assert_eq!(signals, [libc::SIGCONT as u32, libc::SIGTERM as u32]);
}

#[test]
fn what_does_not_end_in_the_clusters_kill_wait_is_killed() {
    let (code, stderr, signals) = closed_pipe(Endless { stubborn: true, ..Endless::default() });
    assert_eq!(code, Some(128 + 9), "{stderr}");
    assert!(stderr.contains("srun: Job step aborted: Waiting up to 3 seconds for job step to finish."), "{stderr}");
    assert_eq!(signals, [libc::SIGCONT as u32, libc::SIGTERM as u32, libc::SIGKILL as u32]);
}

/// Runs srun with such a node, and closes its output after the first line. Its exit code, its stderr, and the signals
/// that the node was sent.
fn closed_pipe(node: Endless) -> (Option<i32>, String, Vec<u32>) {
    let dir = tempfile::tempdir().expect("a folder");
    let socket = dir.path().join("node.sock");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let listener = {
        let _inside = runtime.enter();
        tokio::net::UnixListener::bind(&socket).expect("listens")
    };
    let signals = Arc::clone(&node.signals);
    let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
    runtime.spawn(
        tonic::transport::Server::builder().add_service(NodeStepsServer::new(node)).serve_with_incoming(incoming),
    );
    let client = format!("cluster = \"bench\"\nsocket = \"{}\"\n", dir.path().join("none.sock").display());
    std::fs::write(dir.path().join("client.toml"), client).expect("client.toml");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), dir.path().join("srun")).expect("a link");
    let mut srun = Command::new(dir.path().join("srun"))
        .args(["-n1", "yes"])
        .env_clear()
        .envs([("PATH", "/usr/bin:/bin"), ("SLURM_JOB_ID", "5"), ("SLURMD_NODENAME", "n1")])
        .envs([("SLURM_JOB_NODELIST", "n1")])
        .env("SLUICE_NODE_SOCKET", &socket)
        .env("SLUICE_CONF", dir.path().join("client.toml"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut first = [0; 2];
    // Closed after its first line, as `head -1` does.
    srun.stdout.take().expect("a pipe").read_exact(&mut first).expect("a line");
    assert_eq!(&first, b"y\n");
    let ended = srun.wait_with_output().expect("ends");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    let signals = signals.lock().expect("not poisoned").clone();
    (ended.status.code(), stderr, signals)
}
