//! A supervisor on a spool folder of its own, and connections to it.

use sluice_noded::{frame, sock, spool};
use sluice_proto::v1::*;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use step_output::Kind;

pub const DEADLINE: Duration = Duration::from_secs(30);

pub struct Bench {
    pub dir: tempfile::TempDir,
}

pub fn root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub fn sh(script: &str) -> TaskSpec {
    TaskSpec { argv: vec!["/bin/sh".into(), "-c".into(), script.to_owned().into()], ..Default::default() }
}

impl Bench {
    pub fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        // Users must be able to pass through.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Bench { dir }
    }
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
    pub fn spool(&self) -> PathBuf {
        self.path().join("spool")
    }
    pub fn spec(&self, tasks: Vec<TaskSpec>) -> SupervisorSpec {
        SupervisorSpec {
            key: Some(StepKey { job: 7, attempt: 0, step: 0 }),
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
            work_dir: self.path().as_os_str().as_encoded_bytes().to_vec().into(),
            umask: 0o022,
            best_effort: true,
            environment: b"PATH=/usr/bin:/bin\0".to_vec().into(),
            tasks,
            ..Default::default()
        }
    }
    pub fn start(&self, spec: &SupervisorSpec) -> Supervisor {
        let dir = self.spool();
        spool::make_dir(&dir).unwrap();
        spool::write_durable(&dir, spool::SPEC, spec).unwrap();
        self.start_again()
    }
    /// As noded does it: the listening socket is the supervisor's stdin.
    pub fn start_again(&self) -> Supervisor {
        let listener = sock::bind(&self.spool(), spool::SOCKET).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_sluice-noded"))
            .arg("supervise")
            .arg(self.spool())
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Supervisor { child, dir: self.spool() }
    }
    /// Runs a step to its end and returns its last word.
    pub fn run(&self, spec: &SupervisorSpec) -> SupervisorExit {
        self.start(spec).last_word()
    }
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

pub struct Supervisor {
    pub child: Child,
    pub dir: PathBuf,
}

impl Supervisor {
    pub fn connect(&self) -> Wire {
        Wire::new(sock::connect(&self.dir, spool::SOCKET).unwrap())
    }
    pub fn attach(&self, received: u64) -> Wire {
        let mut wire = self.connect();
        let key = Some(StepKey { job: 7, attempt: 0, step: 0 });
        wire.say(supervisor_command::Kind::Attach(StepAttach { key, received }));
        wire
    }
    /// As noded is connected to it.
    pub fn watch(&self) -> Wire {
        let mut wire = self.connect();
        let mut watch = Vec::new();
        frame::encode(&SupervisorCommand::default(), &mut watch);
        wire.stream.write_all(&watch).unwrap();
        wire
    }
    pub fn last_word(mut self) -> SupervisorExit {
        wait_for("the supervisor's end", || self.child.try_wait().unwrap().is_some());
        spool::read(&self.dir, spool::EXIT).unwrap().expect("a last word")
    }
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for pid in sluice_noded::procs::descendants(self.pid()) {
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Wire {
    pub stream: UnixStream,
    pub decoder: frame::Decoder,
}

impl Wire {
    pub fn new(stream: UnixStream) -> Wire {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Wire { stream, decoder: frame::Decoder::default() }
    }
    pub fn say(&mut self, kind: supervisor_command::Kind) {
        let mut bytes = Vec::new();
        frame::encode(&SupervisorCommand { kind: Some(kind) }, &mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }
    pub fn hear(&mut self) -> Option<StepOutput> {
        loop {
            if let Some(message) = self.decoder.take().unwrap() {
                return Some(message);
            }
            let mut chunk = [0; 65536];
            match self.stream.read(&mut chunk).expect("an answer in time") {
                0 => return None,
                n => self.decoder.push(&chunk[..n]),
            }
        }
    }
    pub fn ack(&mut self, sequence: u64) {
        self.say(supervisor_command::Kind::OutputAck(sequence));
    }
    /// Listens until the end, acknowledging everything; all bytes of each task's stream, and the frames' numbers.
    pub fn collect(&mut self) -> Collected {
        let mut all = Collected::default();
        while let Some(message) = self.hear() {
            if message.sequence > 0 {
                all.sequences.push(message.sequence);
                self.ack(message.sequence);
            }
            match message.kind {
                Some(Kind::Output(o)) => {
                    all.output.entry((o.task, o.stream)).or_default().extend_from_slice(&o.data);
                }
                Some(Kind::Exit(e)) => all.exits.push(e),
                Some(Kind::Ended(e)) => {
                    all.ended = Some(e);
                    break;
                }
                _ => {}
            }
        }
        all
    }
}

#[derive(Default)]
pub struct Collected {
    pub sequences: Vec<u64>,
    pub output: std::collections::BTreeMap<(u32, i32), Vec<u8>>,
    pub exits: Vec<TaskExit>,
    pub ended: Option<PartEnded>,
}

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !done() {
        assert!(Instant::now() < deadline, "no {what} within {DEADLINE:?}");
        std::thread::yield_now();
        nix::poll::poll(&mut [], 2u8).unwrap();
    }
}

pub fn alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s[s.rfind(')').unwrap()..].starts_with(") Z"))
}
