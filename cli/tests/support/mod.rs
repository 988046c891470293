//! Running commands in a cleared environment, and a controller that answers as it is told.

use sluice_proto::v1::{self, controller_server::Controller};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

/// A folder with the commands under their names, and a client file.
pub struct Bench {
    dir: tempfile::TempDir,
}

/// What a command did.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Bench {
    /// The client file names a socket on which nobody listens yet.
    pub fn new() -> Bench {
        let bench = Bench { dir: tempfile::tempdir().expect("a folder") };
        std::fs::create_dir(bench.path("bin")).expect("bin");
        for name in ["sbatch", "srun", "salloc", "scancel", "squeue", "scontrol", "sluice", "sacctmgr"] {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sluice"), bench.path("bin").join(name)).expect("a link");
        }
        let config = format!("cluster = \"bench\"\nsocket = \"{}\"\n", bench.socket().display());
        std::fs::write(bench.path("client.toml"), config).expect("client.toml");
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("ctld.sock")
    }

    pub fn write(&self, name: &str, text: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(name));
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("TZ", "UTC")
            .env("SLUICE_CONF", self.path("client.toml"))
            .env("SLUICE_CONNECT_TIMEOUT", "0")
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, name: &str, words: &[&str]) -> Ran {
        ran(self.command(name).args(words).output().expect("runs"))
    }

    pub fn run_with_input(&self, name: &str, words: &[&str], input: &[u8]) -> Ran {
        let mut command = self.command(name);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("starts");
        // A command that stops reading early says so in its own words.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        ran(child.wait_with_output().expect("ends"))
    }
}

pub fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

type Answer<Q, A> = Box<dyn Fn(Q) -> Result<A, Status> + Send + Sync>;

/// What the controller answers, and what it was asked.
pub struct Fake {
    pub submit: Answer<v1::SubmitRequest, v1::SubmitReply>,
    pub test_only: Answer<v1::SubmitRequest, v1::TestOnlyReply>,
    pub control: Answer<v1::ControlRequest, v1::ControlReply>,
    pub list_jobs: Answer<v1::ListJobsRequest, Vec<v1::JobRecord>>,
    /// The records of a watched job.
    pub watch: Vec<v1::JobRecord>,
    /// The watched job goes on: no end of its records.
    pub watch_goes_on: bool,
    pub submitted: Mutex<Vec<v1::SubmitRequest>>,
    pub controlled: Mutex<Vec<v1::ControlRequest>>,
}

impl Default for Fake {
    fn default() -> Self {
        Fake {
            submit: Box::new(|_| Ok(v1::SubmitReply { job: 7 })),
            test_only: Box::new(|_| Err(Status::unimplemented("test_only"))),
            control: Box::new(|_| Ok(v1::ControlReply { jobs: Vec::new() })),
            list_jobs: Box::new(|_| Ok(Vec::new())),
            watch: Vec::new(),
            watch_goes_on: false,
            submitted: Mutex::default(),
            controlled: Mutex::default(),
        }
    }
}

/// A refusal as the real controller sends it.
pub fn refusal(code: u32, message: &str, detail: &str) -> Status {
    use prost::Message as _;
    let detail = (!detail.is_empty()).then(|| detail.to_owned());
    let body = v1::Refusal { code, message: message.to_owned(), detail, retry_after_ms: None }.encode_to_vec();
    Status::with_details(tonic::Code::FailedPrecondition, message, body.into())
}

/// Serves until dropped.
pub struct Served {
    pub fake: Arc<Fake>,
    _runtime: tokio::runtime::Runtime,
}

pub fn serve(socket: &Path, fake: Fake) -> Served {
    let fake = Arc::new(fake);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    // A new controller takes the place of one that is gone.
    let _ = std::fs::remove_file(socket);
    let listener = {
        let _inside = runtime.enter();
        tokio::net::UnixListener::bind(socket).expect("listens")
    };
    let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
    let service = v1::controller_server::ControllerServer::from_arc(Arc::clone(&fake));
    runtime.spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
    Served { fake, _runtime: runtime }
}

type Streamed<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn streamed<T: Send + 'static>(items: Vec<T>) -> Streamed<T> {
    Box::pin(tokio_stream::iter(items.into_iter().map(Ok)))
}

fn lacking<T>(what: &str) -> Result<Response<T>, Status> {
    Err(Status::unimplemented(what.to_owned()))
}

#[tonic::async_trait]
impl Controller for Fake {
    async fn submit(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::SubmitReply>, Status> {
        let request = request.into_inner();
        self.submitted.lock().expect("not poisoned").push(request.clone());
        (self.submit)(request).map(Response::new)
    }
    async fn test_only(&self, request: Request<v1::SubmitRequest>) -> Result<Response<v1::TestOnlyReply>, Status> {
        (self.test_only)(request.into_inner()).map(Response::new)
    }
    type WatchJobStream = Streamed<v1::JobRecord>;
    async fn watch_job(&self, _: Request<v1::WatchJobRequest>) -> Result<Response<Self::WatchJobStream>, Status> {
        if self.watch_goes_on {
            let open = tokio_stream::StreamExt::chain(streamed(self.watch.clone()), tokio_stream::pending());
            return Ok(Response::new(Box::pin(open)));
        }
        Ok(Response::new(streamed(self.watch.clone())))
    }
    async fn control(&self, request: Request<v1::ControlRequest>) -> Result<Response<v1::ControlReply>, Status> {
        let request = request.into_inner();
        self.controlled.lock().expect("not poisoned").push(request.clone());
        (self.control)(request).map(Response::new)
    }
    type ListJobsStream = Streamed<v1::JobList>;
    async fn list_jobs(&self, request: Request<v1::ListJobsRequest>) -> Result<Response<Self::ListJobsStream>, Status> {
        let jobs = (self.list_jobs)(request.into_inner())?;
        Ok(Response::new(streamed(vec![v1::JobList { jobs, ..Default::default() }])))
    }
    async fn ping(&self, _: Request<v1::Empty>) -> Result<Response<v1::PingReply>, Status> {
        lacking("ping")
    }
    async fn get_job_credential(
        &self,
        _: Request<v1::JobIdRequest>,
    ) -> Result<Response<v1::JobCredentialReply>, Status> {
        lacking("get_job_credential")
    }
    async fn complete_allocation(
        &self,
        _: Request<v1::CompleteAllocationRequest>,
    ) -> Result<Response<v1::Empty>, Status> {
        Ok(Response::new(v1::Empty {}))
    }
    async fn list_nodes(&self, _: Request<v1::ListNodesRequest>) -> Result<Response<v1::NodeList>, Status> {
        Ok(Response::new(v1::NodeList::default()))
    }
    async fn list_partitions(&self, _: Request<v1::Empty>) -> Result<Response<v1::PartitionList>, Status> {
        Ok(Response::new(v1::PartitionList::default()))
    }
    async fn list_priorities(&self, _: Request<v1::Empty>) -> Result<Response<v1::PriorityList>, Status> {
        lacking("list_priorities")
    }
    async fn list_shares(&self, _: Request<v1::Empty>) -> Result<Response<v1::ShareList>, Status> {
        lacking("list_shares")
    }
    type ListHistoryStream = Streamed<v1::JobList>;
    async fn list_history(&self, _: Request<v1::HistoryRequest>) -> Result<Response<Self::ListHistoryStream>, Status> {
        lacking("list_history")
    }
    async fn get_script(&self, _: Request<v1::JobIdRequest>) -> Result<Response<v1::ScriptReply>, Status> {
        lacking("get_script")
    }
    async fn get_config(&self, _: Request<v1::Empty>) -> Result<Response<v1::ConfigReply>, Status> {
        lacking("get_config")
    }
    async fn reconfigure(&self, _: Request<v1::Empty>) -> Result<Response<v1::ReconfigureReply>, Status> {
        lacking("reconfigure")
    }
    async fn shutdown(&self, _: Request<v1::Empty>) -> Result<Response<v1::Empty>, Status> {
        lacking("shutdown")
    }
    async fn join(&self, _: Request<v1::JoinRequest>) -> Result<Response<v1::JoinReply>, Status> {
        lacking("join")
    }
    async fn accounting(&self, _: Request<v1::AccountingRequest>) -> Result<Response<v1::AccountingReport>, Status> {
        lacking("accounting")
    }
    async fn list_accounting(&self, _: Request<v1::Empty>) -> Result<Response<v1::AccountingList>, Status> {
        lacking("list_accounting")
    }
    async fn why(&self, _: Request<v1::WhyRequest>) -> Result<Response<v1::WhyReply>, Status> {
        lacking("why")
    }
    async fn why_node(&self, _: Request<v1::WhyNodeRequest>) -> Result<Response<v1::WhyNodeReply>, Status> {
        lacking("why_node")
    }
    async fn make_join_token(
        &self,
        _: Request<v1::MakeJoinTokenRequest>,
    ) -> Result<Response<v1::MakeJoinTokenReply>, Status> {
        lacking("make_join_token")
    }
}

/// `NAME=value` of an environment block.
pub fn variable(block: &[u8], name: &str) -> Option<Vec<u8>> {
    sluice_model::env_block::get(block, name.as_bytes()).map(<[u8]>::to_vec)
}

pub fn os(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}
