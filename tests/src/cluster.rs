//! A real cluster for end-to-end tests: `sluice local` in a temporary folder, stopped when dropped.
//!
//! Owns starting, asking, killing and tearing down. Promises that nothing of a test runs on after it, and that a failed
//! test shows the ends of the daemons' logs. It must not know what is tested. Programs come from the build folder this
//! test was built into: `tests/run` builds them first.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No condition of a test takes so long on any machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// What the cluster is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    pub nodes: u32,
    pub cpus: u32,
    pub memory_mb: u64,
    pub gpus: u32,
    /// Taken as `--config`; sections left out are added.
    pub config: String,
}

impl Default for Shape {
    fn default() -> Self {
        // Ends come soon: the tests of kill_wait say so themselves.
        let config = "[timing]\nkill_wait_secs = 2\nheartbeat_secs = 1\n".to_owned();
        Shape { nodes: 2, cpus: 4, memory_mb: 4000, gpus: 0, config }
    }
}

/// What a command said and how it ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Said {
    /// The exit code; −signal when it was killed.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Said {
        use std::os::unix::process::ExitStatusExt;
        let status = output.status;
        Said {
            code: status.code().unwrap_or_else(|| -status.signal().unwrap_or(0)),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// A running cluster. Its folder is readable by every user of the machine.
pub struct Cluster {
    root: tempfile::TempDir,
    shape: Shape,
}

/// The folder of the programs that belong to this test.
pub fn programs() -> PathBuf {
    let me = std::env::current_exe().expect("a test knows its own program");
    // target/PROFILE/deps/TEST
    let dir = me.ancestors().nth(2).expect("a build folder").to_owned();
    for name in ["sluice", "sluice-ctld", "sluice-noded"] {
        let path = dir.join(name);
        assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    }
    dir
}

/// Waits until `look` gives a value; panics with `what` and the last `seen` when it never does.
pub fn wait_for<T, S: Debug>(what: &str, mut look: impl FnMut() -> Result<T, S>) -> T {
    let deadline = Instant::now() + DEADLINE;
    let mut pause = Duration::from_millis(5);
    loop {
        match look() {
            Ok(value) => return value,
            Err(seen) if Instant::now() >= deadline => {
                panic!("{what}: not within {} s; last seen: {seen:?}", DEADLINE.as_secs())
            }
            Err(_) => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

impl Cluster {
    /// Two nodes of four CPUs.
    pub fn start() -> Cluster {
        Cluster::with(Shape::default())
    }

    pub fn with(shape: Shape) -> Cluster {
        let root = tempfile::Builder::new().prefix("sluice-test-").tempdir().expect("a temporary folder");
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("the mode of a test's folder");
        };
        open(root.path(), 0o755);
        std::fs::create_dir(root.path().join("work")).expect("a folder to work in");
        open(&root.path().join("work"), 0o1777);
        std::fs::write(root.path().join("test.toml"), &shape.config).expect("the test's configuration");
        let cluster = Cluster { root, shape };
        let shape = &cluster.shape;
        let numbers = [
            format!("--nodes={}", shape.nodes),
            format!("--cpus={}", shape.cpus),
            format!("--memory={}", shape.memory_mb),
            format!("--gpus={}", shape.gpus),
            format!("--config={}", cluster.root.path().join("test.toml").display()),
        ];
        let said = cluster.local("up", &numbers);
        assert_eq!(said.code, 0, "sluice local up: {said:?}");
        cluster
    }

    pub fn dir(&self) -> PathBuf {
        self.root.path().join("cluster")
    }
    /// Where commands run, and where jobs write. Anybody may.
    pub fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// `sluice local COMMAND --dir … WORDS`
    pub fn local<W: AsRef<OsStr>>(&self, command: &str, words: &[W]) -> Said {
        let mut c = self.bare(&programs().join("sluice"));
        c.arg("local").arg(command).arg("--dir").arg(self.dir()).args(words);
        Said::of(&c.output().expect("sluice runs"))
    }

    /// Starts what was killed or stopped.
    pub fn up(&self) {
        let said = self.local::<&str>("up", &[]);
        assert_eq!(said.code, 0, "sluice local up: {said:?}");
    }

    /// A program with a small, fixed environment, the cluster's commands first on PATH.
    fn bare(&self, program: &Path) -> Command {
        let mut path = self.dir().join("bin").into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let mut command = Command::new(program);
        command.env_clear().env("PATH", path).env("LANG", "C.UTF-8").env("TZ", "UTC").current_dir(self.work());
        for name in ["HOME", "USER", "LOGNAME", "SLUICE_LOG", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::null());
        command
    }

    /// One of the cluster's commands, to be changed further and run.
    pub fn command(&self, name: &str) -> Command {
        self.bare(&self.dir().join("bin").join(name))
    }

    /// Runs `sbatch --wrap …` and its like: the first word is the command.
    pub fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Said {
        let (name, words) = words.split_first().expect("a command");
        let mut command = self.bare(&self.dir().join("bin").join(name.as_ref()));
        Said::of(&command.args(words).output().expect("a command of the cluster runs"))
    }

    /// As another user; for tests that run as root.
    pub fn run_as<W: AsRef<OsStr>>(&self, uid: u32, gid: u32, words: &[W]) -> Said {
        let (name, words) = words.split_first().expect("a command");
        let mut command = self.bare(&self.dir().join("bin").join(name.as_ref()));
        command.uid(uid).gid(gid).env_remove("HOME").env_remove("USER").env_remove("LOGNAME");
        Said::of(&command.args(words).output().expect("a command of the cluster runs"))
    }

    /// Must succeed; gives what it printed, without the last line end.
    pub fn ok<W: AsRef<OsStr> + Debug>(&self, words: &[W]) -> String {
        let said = self.run(words);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        said.out.trim_end_matches('\n').to_owned()
    }

    /// A shell script with the cluster's commands on PATH.
    pub fn sh(&self, script: &str) -> Said {
        let mut command = self.bare(Path::new("/bin/sh"));
        Said::of(&command.arg("-c").arg(script).output().expect("sh runs"))
    }

    /// `sbatch --parsable WORDS`; gives the job's id.
    pub fn submit<W: AsRef<OsStr> + Debug>(&self, words: &[W]) -> u32 {
        let mut all: Vec<&OsStr> = vec![OsStr::new("sbatch"), OsStr::new("--parsable")];
        all.extend(words.iter().map(AsRef::as_ref));
        let out = self.ok(&all);
        out.parse().unwrap_or_else(|_| panic!("sbatch --parsable said {out:?}"))
    }

    /// A file in the working folder.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::write(&path, text).expect("a file of the test");
        path
    }

    /// What a job wrote; None before it is there.
    pub fn read(&self, name: &str) -> Option<String> {
        std::fs::read(self.work().join(name)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The job's base state as accounting says it (`COMPLETED`); None when it knows nothing.
    pub fn state(&self, job: u32) -> Option<String> {
        let id = job.to_string();
        let out = self.ok(&["sacct", "-X", "-n", "-P", "-D", "--format=State", "-j", &id]);
        let last = out.lines().last()?.to_owned();
        last.split(' ').next().map(str::to_owned)
    }

    pub fn wait_state(&self, job: u32, wanted: &str) {
        wait_for(&format!("job {job} {wanted}"), || match self.state(job) {
            Some(state) if state == wanted => Ok(()),
            other => Err(other),
        });
    }

    /// Waits until the job is over; gives the state.
    pub fn wait_end(&self, job: u32) -> String {
        const LIVE: [&str; 5] = ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED"];
        wait_for(&format!("end of job {job}"), || match self.state(job) {
            Some(state) if !LIVE.contains(&state.as_str()) => Ok(state),
            other => Err(other),
        })
    }

    /// The process of a daemon (`ctld` or a node's name), if it runs.
    pub fn pid(&self, daemon: &str) -> Option<i32> {
        let text = std::fs::read_to_string(self.dir().join(format!("run/{daemon}.pid"))).ok()?;
        let pid = text.trim().parse().ok()?;
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let dir = self.dir().into_os_string().into_encoded_bytes();
        words.windows(dir.len()).any(|w| w == dir).then_some(pid)
    }

    /// Kills a daemon, and waits until it is gone.
    pub fn kill(&self, daemon: &str, signal: Signal) {
        let pid = self.pid(daemon).unwrap_or_else(|| panic!("{daemon} does not run"));
        kill(Pid::from_raw(pid), signal).expect("a signal to our own daemon");
        wait_for(&format!("end of {daemon}"), || match self.pid(daemon) {
            None => Ok(()),
            Some(pid) => Err(pid),
        });
    }

    /// All processes whose command line names the cluster's folder.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let dir = self.root.path().display().to_string();
        let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
        let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&words).replace('\0', " ");
            line.contains(&dir).then_some((pid, line))
        })
        .collect()
    }

    fn show_logs(&self) {
        let Ok(entries) = std::fs::read_dir(self.dir().join("log")) else { return };
        for path in entries.flatten().map(|e| e.path()) {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            let lines: Vec<&str> = text.lines().collect();
            let from = lines.len().saturating_sub(40);
            eprintln!("--- the end of {}\n{}", path.display(), lines[from..].join("\n"));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        if failed {
            self.show_logs();
        }
        let said = self.local::<&str>("down", &[]);
        if said.code != 0 {
            eprintln!("sluice local down: {said:?}");
            assert!(failed, "the cluster could not be stopped");
        }
    }
}
