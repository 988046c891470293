//! What srun, scancel, sstat and other node daemons ask: proves who calls, then hands to the owner.
//!
//! The streams of a step do not pass the owner: each client is joined to its step's supervisor here, byte for byte and
//! with the reader's pace.

use crate::admitted::Admitted;
use crate::frame::{self, Decoder};
use crate::launch;
use crate::launch::env::Site;
use crate::owner::{Caller, Message, Reply};
use crate::{procs, sock, spool};
use sluice_identity::HostKeys;
use sluice_identity::credential::verify_grant;
use sluice_identity::server::{self, Origin, Peer, Verifier};
use sluice_proto::v1::{
    self, CreateStepReply, CreateStepRequest, Empty, ListStepsReply, ListStepsRequest, SignalStepRequest, StepInput,
    StepKey, StepLaunch, StepOutput, StepPartEndedRequest, StepProcess, SupervisorCommand, Terminate, step_input,
    step_output, supervisor_command,
};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::Stream;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::{Request, Response, Status, Streaming};

pub struct NodeSteps {
    pub site: Site,
    pub keys: Arc<HostKeys>,
    pub verifier: Verifier,
    pub admitted: Admitted,
    pub owner: mpsc::UnboundedSender<Message>,
}

/// How long a user of another host is believed to come before the launch of their job: orders to several nodes travel on
/// links of their own.
const EARLY: Duration = Duration::from_secs(5);

/// How long srun hears of the end later than it is, so that the next step finds the resources free.
const RELEASE: Duration = Duration::from_secs(2);

impl NodeSteps {
    async fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Status> {
        let mut changes = self.admitted.changes();
        let deadline = tokio::time::Instant::now() + EARLY;
        let peer = loop {
            match server::peer(request, &self.verifier) {
                Ok(peer) => break peer,
                Err(status) => match tokio::time::timeout_at(deadline, changes.changed()).await {
                    Ok(Ok(())) => {}
                    _ => return Err(status),
                },
            }
        };
        Ok(match peer {
            Peer::Local { uid, .. } | Peer::User { uid, .. } => Caller::User(uid),
            Peer::Node { host } => Caller::Node(host),
        })
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Message) -> Result<T, Status> {
        let (reply, answer) = oneshot::channel();
        self.owner.send(make(reply)).map_err(|_| Status::unavailable("the node daemon is ending"))?;
        answer.await.map_err(|_| Status::unavailable("the node daemon is ending"))?
    }

    async fn launch(&self, launch: StepLaunch, caller: &Caller, srun: &str) -> Result<(PathBuf, StepKey), Status> {
        let wire = launch.grant.clone().unwrap_or_default();
        let grant = verify_grant(&wire, self.keys.cluster(), sluice_identity::now_ms())
            .map_err(|why| Status::permission_denied(why.to_string()))?;
        if !matches!(caller, Caller::User(uid) if *uid == grant.job.body.uid || *uid == 0) {
            return Err(Status::permission_denied("Access/permission denied"));
        }
        if launch.node != self.site.node {
            return Err(Status::invalid_argument(format!("this is node {}, not {}", self.site.node, launch.node)));
        }
        let spec = launch::step::spec(&self.site, &launch, &grant, srun).map_err(Status::invalid_argument)?;
        let credential = wire.credential.unwrap_or_default();
        let key = StepKey::from(&grant.key);
        let dir = self
            .ask(|reply| Message::StartPart { grant: Box::new(grant), credential, spec: Box::new(spec), reply })
            .await?;
        Ok((dir, key))
    }
}

fn key(key: Option<StepKey>) -> Result<StepKey, Status> {
    key.ok_or_else(|| Status::invalid_argument("no step is named"))
}

/// Where srun is, as the tasks see it (SLURM_SRUN_COMM_HOST).
fn origin<T>(request: &Request<T>) -> String {
    match request.extensions().get::<Origin>() {
        Some(Origin::Tcp { addr: Some(addr) }) => addr.ip().to_string(),
        _ => "127.0.0.1".to_owned(),
    }
}

#[tonic::async_trait]
impl v1::node_steps_server::NodeSteps for NodeSteps {
    type CreateStepStream = UnboundedReceiverStream<Result<CreateStepReply, Status>>;
    type RunStepStream = Pin<Box<dyn Stream<Item = Result<StepOutput, Status>> + Send>>;

    async fn create_step(
        &self,
        request: Request<CreateStepRequest>,
    ) -> Result<Response<Self::CreateStepStream>, Status> {
        let caller = self.caller(&request).await?;
        let request = request.into_inner();
        let step = request.step.ok_or_else(|| Status::invalid_argument("no step is described"))?;
        let (reply, answers) = mpsc::unbounded_channel();
        self.owner
            .send(Message::CreateStep { request: Box::new(step), credential: request.credential, caller, reply })
            .map_err(|_| Status::unavailable("the node daemon is ending"))?;
        Ok(Response::new(UnboundedReceiverStream::new(answers)))
    }

    async fn run_step(&self, request: Request<Streaming<StepInput>>) -> Result<Response<Self::RunStepStream>, Status> {
        let caller = self.caller(&request).await?;
        let srun = origin(&request);
        let mut input = request.into_inner();
        let first = tokio::time::timeout(Duration::from_secs(30), input.message())
            .await
            .map_err(|_| Status::deadline_exceeded("nothing was launched within 30 s"))??;
        let (dir, key, attach) = match first.and_then(|f| f.kind) {
            Some(step_input::Kind::Launch(launch)) => {
                let (dir, key) = self.launch(launch, &caller, &srun).await?;
                (dir, key, v1::StepAttach { key: None, received: 0 })
            }
            Some(step_input::Kind::Attach(attach)) => {
                let key = key(attach.key)?;
                (self.ask(|reply| Message::FindPart { key, caller, reply }).await?, key, attach)
            }
            _ => return Err(Status::invalid_argument("a step begins with a launch or an attach")),
        };
        let stream = connect(&dir).await?;
        // Few messages ahead of a slow srun: the supervisor's own buffer is the one that counts.
        let (out, receiver) = mpsc::channel(8);
        let owner = self.owner.clone();
        let released = async move {
            let (waiter, told) = oneshot::channel();
            if owner.send(Message::WaitTold { key, waiter }).is_ok() {
                // Answered by dropping; a step manager that can't be reached keeps nobody longer.
                let _ = tokio::time::timeout(RELEASE, told).await;
            }
        };
        tokio::spawn(join(stream, attach, input, out, released));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn step_part_ended(&self, request: Request<StepPartEndedRequest>) -> Result<Response<Empty>, Status> {
        let caller = self.caller(&request).await?;
        let request = request.into_inner();
        self.ask(|reply| Message::PartEnded { request, caller, reply }).await?;
        Ok(Response::new(Empty {}))
    }

    async fn signal_step(&self, request: Request<SignalStepRequest>) -> Result<Response<Empty>, Status> {
        let caller = self.caller(&request).await?;
        let SignalStepRequest { key: wire, signal, time_limit } = request.into_inner();
        let key = key(wire)?;
        self.ask(|reply| Message::SignalStep { key, signal, time_limit, caller, reply }).await?;
        Ok(Response::new(Empty {}))
    }

    async fn list_steps(&self, request: Request<ListStepsRequest>) -> Result<Response<ListStepsReply>, Status> {
        let caller = self.caller(&request).await?;
        let ListStepsRequest { job, step } = request.into_inner();
        let (processes, steps) = self.ask(|reply| Message::ListSteps { job, step, caller, reply }).await?;
        let sampled = tokio::task::spawn_blocking(move || processes.into_iter().map(sample).collect())
            .await
            .map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(ListStepsReply { processes: sampled, steps }))
    }
}

/// A task with all that descends from it.
fn sample(process: crate::owner::Process) -> StepProcess {
    let mut usage = v1::Usage::default();
    let pid = process.pid as i32;
    if pid > 0 {
        for pid in std::iter::once(pid).chain(procs::descendants(pid)) {
            let s = procs::sample(pid);
            usage.user_cpu_us += s.user_us;
            usage.system_cpu_us += s.system_us;
            usage.max_rss_bytes = usage.max_rss_bytes.max(s.peak_rss_bytes);
            usage.max_vmsize_bytes = usage.max_vmsize_bytes.max(s.peak_vm_bytes);
            usage.major_faults += s.major_faults;
            usage.read_bytes += s.read_bytes;
            usage.written_bytes += s.written_bytes;
        }
    }
    StepProcess { key: Some(process.key), task: process.task, pid: process.pid, usage: Some(usage) }
}

async fn connect(dir: &Path) -> Result<UnixStream, Status> {
    let gone = |e: std::io::Error| Status::not_found(format!("the step is over on this node: {e}"));
    let stream = sock::connect(dir, spool::SOCKET).map_err(gone)?;
    stream.set_nonblocking(true).map_err(gone)?;
    UnixStream::from_std(stream).map_err(gone)
}

/// Joins a client to a supervisor until either is done. `released` completes when the step's resources are free.
async fn join(
    stream: UnixStream,
    attach: v1::StepAttach,
    input: Streaming<StepInput>,
    out: mpsc::Sender<Result<StepOutput, Status>>,
    released: impl Future<Output = ()>,
) {
    let (read, mut write) = stream.into_split();
    let mut hello = Vec::new();
    let command = SupervisorCommand { kind: Some(supervisor_command::Kind::Attach(attach)) };
    frame::encode(&command, &mut hello);
    if write.write_all(&hello).await.is_err() {
        let _ = out.send(Err(Status::unavailable("the step's supervisor is gone"))).await;
        return;
    }
    let mut last = 0;
    let mut ended = false;
    {
        let to_client = pass_output(read, &out, released, &mut last, &mut ended);
        let from_client = pass_input(input, &mut write);
        tokio::select! {
            () = to_client => {}
            () = from_client => {}
            // Nobody reads any more.
            () = out.closed() => {}
        }
    }
    if ended {
        // The client had the last word and left without saying so: the supervisor need not wait for it.
        let mut bytes = Vec::new();
        frame::encode(&SupervisorCommand { kind: Some(supervisor_command::Kind::OutputAck(last)) }, &mut bytes);
        let _ = write.write_all(&bytes).await;
    }
}

async fn pass_output(
    mut read: OwnedReadHalf,
    out: &mpsc::Sender<Result<StepOutput, Status>>,
    released: impl Future<Output = ()>,
    last: &mut u64,
    ended: &mut bool,
) {
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; 128 << 10];
    let mut released = Some(released);
    loop {
        match read.read(&mut chunk).await {
            Ok(n) if n > 0 => decoder.push(&chunk[..n]),
            _ => break,
        }
        loop {
            match decoder.take::<StepOutput>() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    *last = message.sequence.max(*last);
                    let is_end = matches!(message.kind, Some(step_output::Kind::Ended(_)));
                    if let Some(released) = released.take_if(|_| is_end) {
                        released.await;
                    }
                    if out.send(Ok(message)).await.is_err() {
                        return;
                    }
                    *ended |= is_end;
                }
                Err(error) => {
                    let _ = out.send(Err(Status::internal(error.to_string()))).await;
                    return;
                }
            }
        }
    }
    if !*ended {
        let _ = out.send(Err(Status::unavailable("the step's supervisor is gone"))).await;
    }
}

/// Until the client's side breaks. One that only has nothing more to say still listens.
async fn pass_input(mut input: Streaming<StepInput>, write: &mut OwnedWriteHalf) {
    let mut bytes = Vec::new();
    loop {
        let message = match input.message().await {
            Ok(Some(message)) => message,
            Ok(None) => return std::future::pending().await,
            Err(_) => return,
        };
        let kind = match message.kind {
            Some(step_input::Kind::Stdin(data)) => supervisor_command::Kind::Stdin(data),
            Some(step_input::Kind::Signal(signal)) if signal == libc::SIGKILL as u32 => {
                supervisor_command::Kind::KillAll(true)
            }
            // srun passes SIGTERM on when the step is to end, and because it was sent one itself.
            Some(step_input::Kind::Signal(signal)) if signal == libc::SIGTERM as u32 => {
                supervisor_command::Kind::Terminate(Terminate { then_kill: true, ..Terminate::default() })
            }
            Some(step_input::Kind::Signal(signal)) if (1..=64).contains(&signal) => {
                supervisor_command::Kind::Signal(signal)
            }
            Some(step_input::Kind::OutputAck(sequence)) => supervisor_command::Kind::OutputAck(sequence),
            Some(step_input::Kind::Window(size)) => supervisor_command::Kind::Window(size),
            Some(step_input::Kind::Launch(_) | step_input::Kind::Attach(_) | step_input::Kind::Signal(_)) | None => {
                continue;
            }
        };
        bytes.clear();
        frame::encode(&SupervisorCommand { kind: Some(kind) }, &mut bytes);
        if write.write_all(&bytes).await.is_err() {
            // Its other half says why.
            return std::future::pending().await;
        }
    }
}
