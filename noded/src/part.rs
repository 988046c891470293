//! The daemon's connection to one supervisor: commands out, the beginning and the end of the step in.
//!
//! Owns starting a supervisor process and talking to it. Promises one `Ended` with the supervisor's last word, or one
//! `Lost` when the process is gone without it. Output does not pass here: each client has a connection of its own.

use crate::frame::{self, Decoder};
use crate::{sock, spool};
use sluice_proto::v1::{StepOutput, SupervisorCommand, SupervisorExit, step_output, supervisor_command};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// What happened to a step's part here.
#[derive(Debug)]
pub enum Event {
    /// Process ids of its tasks, in the order of its specification.
    Started(Vec<u32>),
    Ended(Box<SupervisorExit>),
    /// The supervisor is gone and has left no last word.
    Lost,
}

/// Commands to the supervisor; dropped when the part is over.
pub type Commands = mpsc::UnboundedSender<supervisor_command::Kind>;

/// Starts a supervisor on `dir`, with a listening socket of its own, so that a connection is possible at once. The
/// process is not a child to wait for: it outlives the daemon. The caller's reaper collects it when it ends first.
pub fn start(dir: &Path) -> io::Result<std::process::Child> {
    let listener = sock::bind(dir, spool::SOCKET)?;
    // The very program that runs, even when its file has been replaced meanwhile.
    let shown = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sluice-noded"));
    Command::new("/proc/self/exe")
        .arg0(shown)
        .arg("supervise")
        .arg(dir)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Connects to the supervisor of `dir` and tells `tell` what happens, until the end. `child`: the process when this
/// daemon started it.
pub fn watch(
    runtime: &tokio::runtime::Handle,
    dir: PathBuf,
    child: Option<std::process::Child>,
    tell: impl Fn(Event) + Send + Sync + 'static,
) -> Commands {
    let (commands, receiver) = mpsc::unbounded_channel();
    runtime.spawn(async move {
        let word = match connect(&dir) {
            Ok(stream) => talk(stream, receiver, &tell).await,
            Err(e) => Err(e),
        };
        if let Err(error) = word {
            // Nobody listens: it has ended, or never came up.
            tracing::debug!(dir = %dir.display(), %error, "no word from the supervisor");
        }
        // The record is the truth; what was said on the wire only announces it.
        match spool::read::<SupervisorExit>(&dir, spool::EXIT) {
            Ok(Some(exit)) => tell(Event::Ended(Box::new(exit))),
            Ok(None) => tell(Event::Lost),
            Err(error) => {
                tracing::error!(dir = %dir.display(), %error, "the last word of a step can't be read");
                tell(Event::Lost);
            }
        }
        if let Some(mut child) = child {
            // It may stay a while for its client.
            let _ = tokio::task::spawn_blocking(move || child.wait()).await;
        }
    });
    commands
}

/// Lets a supervisor that waits for its client know that a daemon is there again and has heard of the end.
pub fn greet(runtime: &tokio::runtime::Handle, dir: PathBuf) {
    runtime.spawn(async move {
        if let Ok(stream) = connect(&dir) {
            let (_nothing, receiver) = mpsc::unbounded_channel();
            // However it ends, there is nothing more to hear.
            let _ = talk(stream, receiver, &|_| {}).await;
        }
    });
}

fn connect(dir: &Path) -> io::Result<UnixStream> {
    let stream = sock::connect(dir, spool::SOCKET)?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Until the supervisor says that the step is over, or goes.
async fn talk(
    mut stream: UnixStream,
    mut commands: mpsc::UnboundedReceiver<supervisor_command::Kind>,
    tell: &(impl Fn(Event) + Send + Sync),
) -> io::Result<()> {
    let bad = |e: frame::BadFrame| io::Error::new(io::ErrorKind::InvalidData, e);
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; 8192];
    let mut out = Vec::new();
    // An empty command: tell me of the beginning and the end.
    frame::encode(&SupervisorCommand::default(), &mut out);
    loop {
        if !out.is_empty() {
            stream.write_all(&out).await?;
            out.clear();
        }
        tokio::select! {
            // A closed channel only means that there is nothing more to say; the end is still to be heard.
            Some(kind) = commands.recv() => frame::encode(&SupervisorCommand { kind: Some(kind) }, &mut out),
            read = stream.read(&mut chunk) => {
                match read? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => decoder.push(&chunk[..n]),
                }
                while let Some(message) = decoder.take::<StepOutput>().map_err(bad)? {
                    match message.kind {
                        Some(step_output::Kind::Started(started)) => tell(Event::Started(started.pids)),
                        Some(step_output::Kind::Ended(_)) => return Ok(()),
                        _ => {}
                    }
                }
            }
        }
    }
}
