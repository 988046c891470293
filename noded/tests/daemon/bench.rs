//! A controller that does as the test says, and real node daemons under it.

use prost::Message;
use prost::bytes::Bytes;
use sluice_identity::client::{Authorized, Endpoint, Tokens};
use sluice_identity::server::{self, Listener};
use sluice_identity::{ClusterKeys, Roles, credential};
use sluice_proto::v1::node_steps_client::NodeStepsClient;
use sluice_proto::v1::*;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use step_input::Kind as In;
use step_output::Kind as Out;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

const DEADLINE: Duration = Duration::from_secs(40);
pub const CPUS: u32 = 4;

type Outgoing = mpsc::UnboundedSender<Result<ControllerMessage, Status>>;

struct Shared {
    links: Mutex<HashMap<String, Outgoing>>,
    registers: Mutex<Vec<Register>>,
    reports: Mutex<Vec<(String, Report)>>,
    acknowledge: AtomicBool,
    verifier: server::Verifier,
}

struct Controller(Arc<Shared>);

#[tonic::async_trait]
impl node_link_server::NodeLink for Controller {
    type LinkStream = UnboundedReceiverStream<Result<ControllerMessage, Status>>;
    async fn link(&self, request: Request<Streaming<NodeMessage>>) -> Result<Response<Self::LinkStream>, Status> {
        let peer = server::peer(&request, &self.0.verifier)?;
        let mut incoming = request.into_inner();
        let Some(NodeMessage { kind: Some(node_message::Kind::Register(register)) }) = incoming.message().await? else {
            return Err(Status::invalid_argument("no registration"));
        };
        let node = register.node.clone();
        assert_eq!(peer, server::Peer::Node { host: node.clone() }, "a node proves its name");
        let (out, receiver) = mpsc::unbounded_channel();
        let config = NodeConfig {
            cluster: "test".into(),
            heartbeat_secs: 5,
            kill_wait_secs: 2,
            best_effort: true,
            cpus: CPUS,
            ..NodeConfig::default()
        };
        let welcome = controller_message::Kind::Welcome(Welcome { config: Some(config) });
        out.send(Ok(ControllerMessage { kind: Some(welcome) })).unwrap();
        self.0.registers.lock().unwrap().push(register);
        self.0.links.lock().unwrap().insert(node.clone(), out.clone());
        let shared = self.0.clone();
        tokio::spawn(async move {
            while let Ok(Some(message)) = incoming.message().await {
                if let Some(node_message::Kind::Report(report)) = message.kind {
                    let sequence = report.sequence;
                    shared.reports.lock().unwrap().push((node.clone(), report));
                    if shared.acknowledge.load(Ordering::SeqCst) {
                        let ack = controller_message::Kind::Ack(Ack { sequence });
                        let _ = out.send(Ok(ControllerMessage { kind: Some(ack) }));
                    }
                }
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

pub struct Bench {
    dir: tempfile::TempDir,
    keys: ClusterKeys,
    shared: Arc<Shared>,
    nodes: BTreeMap<String, Child>,
    _stop: watch::Sender<bool>,
}

impl Bench {
    pub async fn start(nodes: usize) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let keys = ClusterKeys::create(&dir.path().join("ctld"), "test").unwrap();
        let shared = Arc::new(Shared {
            links: Mutex::default(),
            registers: Mutex::default(),
            reports: Mutex::default(),
            acknowledge: AtomicBool::new(true),
            verifier: keys.verifier(),
        });
        let socket = sluice_identity::unix::bind(&dir.path().join("ctld.sock"), 0o666).await.unwrap();
        let routes = tonic::service::Routes::new(server::node_link_service(Controller(shared.clone())));
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(server::serve(routes, vec![Listener::Unix(socket)], stopping));
        let mut bench = Bench { dir, keys, shared, nodes: BTreeMap::new(), _stop: stop };
        for n in 1..=nodes {
            let name = format!("node{n}");
            let roles = Roles { login: false, compute: true };
            std::fs::create_dir(bench.path(&name)).unwrap();
            bench.keys.issue_host(&name, roles).unwrap().save(&bench.path(&format!("{name}/identity"))).unwrap();
            bench.start_node(&name).await;
        }
        bench
    }

    pub async fn start_node(&mut self, name: &str) {
        let before = self.shared.registers.lock().unwrap().len();
        // The same address again after a restart: other nodes know it from the job's credential.
        let listen = self.address(name).unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let log = std::fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_sluice-noded"))
            .args(["run", "--declared", "--name", name, "--log", "debug"])
            .arg("--state")
            .arg(self.path(name))
            .arg("--controller")
            .arg(format!("unix:{}", self.path("ctld.sock").display()))
            .args(["--listen", &listen])
            .arg("--socket")
            .arg(self.path(&format!("{name}.sock")))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.nodes.insert(name.to_owned(), child);
        self.until("a registration", || self.shared.registers.lock().unwrap().len() > before).await;
    }

    /// Where a node was reached when it registered last.
    fn address(&self, name: &str) -> Option<String> {
        let registers = self.shared.registers.lock().unwrap();
        let last = registers.iter().rfind(|r| r.node == name)?;
        Some(last.report.as_ref()?.address.clone())
    }

    /// As a power cut would, but for the kernel.
    pub fn kill(&mut self, name: &str) {
        let mut child = self.nodes.remove(name).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }
    pub fn fifo(&self, name: &str) {
        nix::unistd::mkfifo(&self.path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    pub fn write_fifo(&self, name: &str) {
        std::fs::write(self.path(name), "go\n").unwrap();
    }
    pub fn acknowledge(&self, yes: bool) {
        self.shared.acknowledge.store(yes, Ordering::SeqCst);
    }
    pub fn forget_reports(&self) {
        self.shared.reports.lock().unwrap().clear();
    }

    pub fn send(&self, node: &str, kind: controller_message::Kind) {
        let links = self.shared.links.lock().unwrap();
        links[node].send(Ok(ControllerMessage { kind: Some(kind) })).unwrap();
    }

    pub fn reports(&self, node: &str) -> Vec<Report> {
        self.shared.reports.lock().unwrap().iter().filter(|(n, _)| n == node).map(|(_, r)| r.clone()).collect()
    }
    pub fn last_holds(&self, node: &str) -> Vec<(u32, u32)> {
        let registers = self.shared.registers.lock().unwrap();
        let last = registers.iter().rfind(|r| r.node == node).unwrap();
        last.holds.iter().map(|h| (h.job, h.attempt)).collect()
    }

    /// Waits for a report that the closure finds something in.
    pub async fn report<T>(&self, node: &str, find: impl Fn(&report::Kind) -> Option<T>) -> T {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        loop {
            if let Some(found) = self.reports(node).iter().find_map(|r| find(r.kind.as_ref()?)) {
                return found;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "the report did not come; there are {:?}\n{}",
                self.reports(node),
                self.read(&format!("{node}.log"))
            );
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    pub async fn gone(&self, node: &str, job: u32) {
        self.report(node, |k| match k {
            report::Kind::Gone(g) if g.job == job => Some(()),
            _ => None,
        })
        .await;
    }
    pub async fn step_end(&self, node: &str, job: u32, step: u32) -> StepRecord {
        self.report(node, |k| match k {
            report::Kind::Step(s) if s.end.is_some() && s.key.is_some_and(|k| k.job == job && k.step == step) => {
                Some(s.clone())
            }
            _ => None,
        })
        .await
    }

    pub async fn until(&self, what: &str, done: impl Fn() -> bool) {
        self.until_async(what, async || done()).await;
    }
    pub async fn until_async(&self, what: &str, done: impl AsyncFn() -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !done().await {
            let logs: String = self.nodes.keys().map(|n| self.read(&format!("{n}.log"))).collect();
            assert!(tokio::time::Instant::now() < deadline, "no {what} within {DEADLINE:?}\n{logs}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    // ---- steps ----

    pub async fn steps(&self, node: &str) -> NodeStepsClient<Authorized> {
        let endpoint = Endpoint::Unix(self.path(&format!("{node}.sock")));
        Authorized::connect(&endpoint, Tokens::None).await.unwrap().node_steps()
    }

    pub async fn create_step(
        &self,
        node: &str,
        step: StepRequest,
        credential: Option<JobCredential>,
    ) -> Streaming<CreateStepReply> {
        let request = CreateStepRequest { step: Some(step), credential };
        self.steps(node).await.create_step(request).await.unwrap().into_inner()
    }

    /// The grant of a step that need not wait.
    pub async fn grant(
        &self,
        node: &str,
        step: StepRequest,
        credential: Option<JobCredential>,
    ) -> Result<StepGrant, Status> {
        let job = step.job;
        if credential.is_none() && job < 70 {
            self.until("the job's launch", || self.path(&format!("{node}/jobs/{job}.0/launch")).exists()).await;
        }
        let mut answers = self.create_step(node, step, credential).await;
        match answers.message().await?.unwrap().kind {
            Some(create_step_reply::Kind::Granted(grant)) => Ok(grant),
            other => panic!("{other:?}"),
        }
    }

    pub async fn processes(&self, node: &str, job: u32) -> Vec<StepProcess> {
        let request = ListStepsRequest { job: Some(job), step: None };
        self.steps(node).await.list_steps(request).await.unwrap().into_inner().processes
    }

    fn launch_of(&self, node: &str, grant: &StepGrant, script: &str) -> StepLaunch {
        StepLaunch {
            grant: Some(grant.clone()),
            node: node.to_owned(),
            argv: vec!["/bin/sh".into(), "-c".into(), script.to_owned().into()],
            environment: b"PATH=/usr/bin:/bin\0".to_vec().into(),
            work_dir: self.dir.path().as_os_str().as_encoded_bytes().to_vec().into(),
            umask: 0o022,
            stdin_to: Some(step_launch::StdinTo::AllTasks(true)),
            ..StepLaunch::default()
        }
    }

    pub async fn open_step(
        &self,
        node: &str,
        grant: &StepGrant,
        script: &str,
    ) -> (mpsc::UnboundedSender<StepInput>, Streaming<StepOutput>) {
        let launch = self.launch_of(node, grant, script);
        open(self.steps(node).await, vec![In::Launch(launch)]).await
    }

    /// Runs a node's part of a step to its end, all of `input` given to its tasks.
    pub fn run_step(
        &self,
        node: &str,
        grant: &StepGrant,
        script: &str,
        input: &'static [u8],
    ) -> impl Future<Output = Part> + Send + 'static {
        let launch = self.launch_of(node, grant, script);
        let stdin = StdinData { data: Bytes::from_static(input), eof: true, offset: 0 };
        let endpoint = Endpoint::Unix(self.path(&format!("{node}.sock")));
        async move {
            let steps = Authorized::connect(&endpoint, Tokens::None).await.unwrap().node_steps();
            let (inputs, outputs) = open(steps, vec![In::Launch(launch), In::Stdin(stdin)]).await;
            collect(inputs, outputs).await
        }
    }

    pub async fn collect(&self, node: &str, first: Vec<In>) -> Part {
        let (inputs, outputs) = open(self.steps(node).await, first).await;
        collect(inputs, outputs).await
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for child in self.nodes.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // Supervisors of this bench alone: their command line names its folder.
        let dir = self.dir.path().display().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains("supervise") && line.contains(&dir) {
                for pid in sluice_noded::procs::descendants(pid).into_iter().chain([pid]) {
                    // SAFETY: kill(2) touches no memory.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
            }
        }
        for node in (1..=9).map(|n| format!("node{n}")) {
            use std::os::unix::ffi::OsStringExt;
            let group = std::fs::read(self.path(&format!("{node}/cgroup"))).unwrap_or_default();
            let group = PathBuf::from(std::ffi::OsString::from_vec(group));
            // The kernel may need a moment to see that all of it is dead.
            for _ in 0..200 {
                if !group.join("cgroup.procs").exists() {
                    break;
                }
                sluice_noded::cgroup::remove(&group);
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// What a client got of a part.
#[derive(Debug)]
pub struct Part {
    pub output: BTreeMap<u32, Vec<u8>>,
    pub ended: PartEnded,
}

async fn open(
    mut steps: NodeStepsClient<Authorized>,
    first: Vec<In>,
) -> (mpsc::UnboundedSender<StepInput>, Streaming<StepOutput>) {
    let (inputs, receiver) = mpsc::unbounded_channel();
    for kind in first {
        inputs.send(StepInput { kind: Some(kind) }).unwrap();
    }
    let outputs = steps.run_step(UnboundedReceiverStream::new(receiver)).await.unwrap().into_inner();
    (inputs, outputs)
}

pub async fn collect(inputs: mpsc::UnboundedSender<StepInput>, mut outputs: Streaming<StepOutput>) -> Part {
    let mut output: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let collected = async {
        while let Some(message) = outputs.message().await.unwrap() {
            if message.sequence > 0 {
                let _ = inputs.send(StepInput { kind: Some(In::OutputAck(message.sequence)) });
            }
            match message.kind {
                Some(Out::Output(o)) => output.entry(o.task).or_default().extend_from_slice(&o.data),
                Some(Out::Ended(ended)) => return Part { output, ended },
                _ => {}
            }
        }
        panic!("the stream ended before the step")
    };
    tokio::time::timeout(DEADLINE, collected).await.expect("the step's end in time")
}

/// Finds the end of a job's batch script.
pub fn batch(job: u32) -> impl Fn(&report::Kind) -> Option<BatchEnded> {
    move |kind| match kind {
        report::Kind::BatchEnded(b) if b.job == job => Some(b.clone()),
        _ => None,
    }
}

pub fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s[s.rfind(')').unwrap()..].starts_with(") Z"))
}

/// A job as the controller would launch it.
pub struct Job {
    order: LaunchJob,
}

impl Job {
    fn new(bench: &Bench, id: u32, nodes: &[&str], start_time: i64) -> Job {
        let me = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap();
        let alloc = |node: &&str| NodeAlloc {
            node: (*node).to_owned(),
            cpus: Some(IndexSet { ranges: vec![IndexRange { first: 0, last: CPUS - 1, step: 1 }] }),
            memory_mb: 0,
            gres: Vec::new(),
            tasks: 1,
        };
        let address = |node: &&str| bench.address(node).unwrap();
        let body = JobCredentialBody {
            job: id,
            attempt: 0,
            uid: me.uid.as_raw(),
            gid: me.gid.as_raw(),
            user: me.name.clone(),
            group: "g".into(),
            allocation: Some(Allocation { nodes: nodes.iter().map(alloc).collect() }),
            addresses: nodes.iter().map(address).collect(),
            issued_at: sluice_identity::now_ms(),
            cluster: "test".into(),
            partition: "main".into(),
            job_name: "job".into(),
            start_time,
            ..JobCredentialBody::default()
        };
        let credential = credential::sign_job(&bench.keys, &body);
        Job { order: LaunchJob { credential: Some(credential), cluster: "test".into(), ..LaunchJob::default() } }
    }

    pub fn allocation(bench: &Bench, id: u32, nodes: &[&str]) -> Job {
        Job::new(bench, id, nodes, sluice_identity::now_ms())
    }

    /// One that started so many milliseconds ago.
    pub fn started_before(bench: &Bench, id: u32, nodes: &[&str], ms: i64) -> Job {
        Job::new(bench, id, nodes, sluice_identity::now_ms() - ms)
    }

    pub fn batch(bench: &Bench, id: u32, nodes: &[&str], script: &str) -> Job {
        let mut job = Job::allocation(bench, id, nodes);
        let body = JobCredentialBody::decode(&job.credential().body[..]).unwrap();
        let spec = JobSpec {
            name: "job".into(),
            batch: true,
            script_blob: vec![0; 32].into(),
            environment_blob: vec![0; 32].into(),
            args: vec!["arg".into()],
            uid: body.uid,
            gid: body.gid,
            user: body.user.clone(),
            group: body.group.clone(),
            request: Some(ResourceRequest::default()),
            io: Some(JobIo::default()),
            work_dir: bench.dir.path().as_os_str().as_encoded_bytes().to_vec().into(),
            umask: 0o022,
            ..JobSpec::default()
        };
        job.order = LaunchJob {
            run_batch: true,
            spec: Some(spec),
            script: script.to_owned().into(),
            environment: b"PATH=/usr/bin:/bin\0".to_vec().into(),
            ..job.order
        };
        job
    }

    pub fn credential(&self) -> JobCredential {
        self.order.credential.clone().unwrap()
    }
    pub fn launch(&self) -> controller_message::Kind {
        controller_message::Kind::Launch(self.order.clone())
    }
    /// To everything of the job.
    pub fn signal(&self, signal: u32) -> controller_message::Kind {
        let body = JobCredentialBody::decode(&self.credential().body[..]).unwrap();
        let (batch, steps) = (true, true);
        controller_message::Kind::Signal(SignalJob {
            job: body.job,
            attempt: body.attempt,
            step: None,
            signal,
            batch,
            steps,
        })
    }
    pub fn end(&self) -> controller_message::Kind {
        let body = JobCredentialBody::decode(&self.credential().body[..]).unwrap();
        controller_message::Kind::End(EndAttempt { job: body.job, attempt: body.attempt })
    }
}
