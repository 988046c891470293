//! A submission whose answer is lost, because the controller died between making it durable and answering, is sent again
//! by the command and is the same job.

use nix::sys::signal::Signal;
use sluice_tests::cluster::{Cluster, Said, wait_for};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Stands between commands and the controller. While shut, requests go through and answers do not.
struct Gate {
    config: PathBuf,
    open: Arc<AtomicBool>,
    held: Arc<Mutex<Vec<UnixStream>>>,
}

/// Copies until either end is closed.
fn copy(mut from: UnixStream, mut to: UnixStream, pass: impl Fn() -> bool) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 || (pass() && to.write_all(&buffer[..n]).is_err()) {
            break;
        }
    }
    for end in [from, to] {
        // The other thread may have been quicker.
        let _ = end.shutdown(Shutdown::Both);
    }
}

impl Gate {
    /// Shut at first. Its threads end with the test's process.
    fn shut(cluster: &Cluster, name: &str) -> Gate {
        let behind = cluster.dir().join("run/ctld.sock");
        let socket = cluster.work().join(format!("{name}.sock"));
        let config = cluster.work().join(format!("{name}.toml"));
        let text = std::fs::read_to_string(cluster.dir().join("etc/client.toml")).expect("the client's configuration");
        let through: Vec<String> = text
            .lines()
            .map(|line| match line.starts_with("socket") {
                true => format!("socket = {:?}", socket.display().to_string()),
                false => line.to_owned(),
            })
            .collect();
        std::fs::write(&config, through.join("\n")).expect("another configuration");
        let listener = UnixListener::bind(&socket).expect("a socket of the test");
        let open = Arc::new(AtomicBool::new(false));
        let held = Arc::new(Mutex::new(Vec::new()));
        let gate = Gate { config, open: Arc::clone(&open), held: Arc::clone(&held) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // Nobody behind: the client finds its connection closed.
                let Ok(server) = UnixStream::connect(&behind) else { continue };
                let twice = |stream: &UnixStream| stream.try_clone().expect("a second handle");
                if !open.load(Ordering::SeqCst) {
                    held.lock().expect("no panic under the lock").push(twice(&client));
                }
                let (to, from) = (twice(&server), twice(&client));
                std::thread::spawn(move || copy(from, to, || true));
                let shut_for_it = !open.load(Ordering::SeqCst);
                std::thread::spawn(move || copy(server, client, || !shut_for_it));
            }
        });
        gate
    }

    /// What was held back is lost; what comes from now on goes through.
    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
        for stream in self.held.lock().expect("no panic under the lock").drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_submission_whose_answer_was_lost_is_sent_again_and_is_the_same_job() {
    let cluster = Cluster::start();
    let known = || -> Vec<String> {
        let out = cluster.ok(&["sacct", "-X", "-n", "-P", "-o", "jobidraw"]);
        out.lines().map(str::to_owned).collect()
    };
    let commands: [&[&str]; 3] =
        [&["sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true"], &["srun", "true"], &["salloc", "true"]];
    for (before, words) in commands.into_iter().enumerate() {
        let gate = Gate::shut(&cluster, words[0]);
        let mut command = cluster.command(words[0]);
        command.args(&words[1..]).env("SLUICE_CONF", &gate.config).env("SLUICE_CONNECT_TIMEOUT", "60");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let job = wait_for("the submission", || match known() {
            jobs if jobs.len() == before + 1 => Ok(jobs.last().cloned().unwrap_or_default()),
            jobs => Err(jobs),
        });
        // It is durable, or nobody could see it; its answer is still on the way.
        cluster.kill("ctld", Signal::SIGKILL);
        gate.open();
        cluster.up();
        let said = said(child.wait_with_output().expect("the command ends"));
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        assert!(said.err.contains("went away before it answered: asking again"), "{words:?}: {said:?}");
        if words[0] == "sbatch" {
            assert_eq!(said.out.trim(), job);
        }
        assert_eq!(known().len(), before + 1, "{words:?} became more than one job");
        assert_eq!(cluster.wait_end(job.parse().expect("a job id")), "COMPLETED", "{words:?}");
    }
}
