//! From the step's description to forked tasks.
//!
//! Owns the set-up that is done once a step: user look-up, cgroup, script file, login environment, pipes. Promises
//! that a failure here is known before any task runs.

use super::account::{self, Account};
use super::login_env;
use super::spawn::{self, End, Failure, Plan};
use super::task::{Source, Task, set_nonblocking};
use crate::{cgroup, spool};
use nix::fcntl::OFlag;
use nix::pty::{OpenptyResult, Winsize, openpty};
use sluice_proto::v1::{SupervisorSpec, TaskSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, OsStr};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is settled before the first fork.
#[derive(Default)]
pub struct Setup {
    pub account: Option<Account>,
    pub cgroup: Option<PathBuf>,
    /// Environment of all tasks: login environment below, then the submitted one.
    environment: Environment,
    script: Option<PathBuf>,
    open_files: Option<(u64, u64)>,
}

/// User, cgroup, script and environment, in this order.
pub fn prepare(spec: &SupervisorSpec, dir: &Path) -> Result<Setup, Failure> {
    let node = |text: String| Failure { text, code: 1, node: true };
    // A user that this node knows otherwise is no fault of the node's hardware: taking nodes out of service for it would
    // let one user take them all.
    let job = |text: String| Failure { text, code: 1, node: false };
    let account = if spec.switch_user {
        Some(account::lookup(&spec.user, spec.uid, spec.gid).map_err(job)?)
    } else {
        let me = nix::unistd::geteuid().as_raw();
        if spec.uid != me {
            return Err(job(format!(
                "this node daemon runs as uid {me} and can't become user {}({})",
                spec.user, spec.uid
            )));
        }
        None
    };
    let cgroup = spec.cgroup.as_deref().map(|p| PathBuf::from(OsStr::from_bytes(p)));
    let cgroup = match cgroup.as_deref().map(cgroup::make) {
        None => None,
        Some(Ok(())) => cgroup,
        Some(Err(_)) if spec.best_effort => None,
        Some(Err(e)) => {
            return Err(node(format!(
                "cgroup {} can't be made: {}",
                cgroup.unwrap_or_default().display(),
                spawn::reason(&e)
            )));
        }
    };
    let script = match spec.script.is_empty() {
        true => None,
        false => Some(
            write_script(spec, dir, account.as_ref())
                .map_err(|e| node(format!("the script can't be written to this node: {}", spawn::reason(&e))))?,
        ),
    };
    let mut environment = Environment::default();
    if spec.get_user_env {
        let own;
        let who = match &account {
            Some(account) => account,
            None => {
                own = account::lookup(&spec.user, spec.uid, spec.gid).map_err(job)?;
                &own
            }
        };
        let login = login_env::fetch(who, &spec.user, account.is_some()).map_err(|text| Failure {
            text: format!("--get-user-env: {text}"),
            code: 1,
            node: false,
        })?;
        login.iter().for_each(|e| environment.set(e));
    }
    environment.lay_over(&spec.environment);
    environment.prefix_path(&spec.path_prefix);
    Ok(Setup { account, cgroup, environment, script, open_files: spawn::raise_open_files() })
}

/// As the user's own file, which nobody else may read.
fn write_script(spec: &SupervisorSpec, dir: &Path, account: Option<&Account>) -> std::io::Result<PathBuf> {
    let path = dir.join(spool::SCRIPT);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path)?;
    file.write_all(&spec.script)?;
    if let Some(account) = account {
        std::os::unix::fs::fchown(&file, Some(account.uid.as_raw()), Some(account.gid.as_raw()))?;
    }
    Ok(path)
}

/// Variables by name, bytes kept as they are.
#[derive(Default, Clone)]
struct Environment {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Environment {
    /// `NAME=value`; anything else is left out.
    fn set(&mut self, entry: &[u8]) {
        if let Some(at) = entry.iter().position(|b| *b == b'=').filter(|at| *at > 0) {
            self.values.insert(entry[..at].to_vec(), entry[at + 1..].to_vec());
        }
    }
    /// A block of `NAME=value NUL`.
    fn lay_over(&mut self, block: &[u8]) {
        block.split(|b| *b == 0).for_each(|e| self.set(e));
    }
    /// Puts a folder first on PATH, once.
    fn prefix_path(&mut self, folder: &[u8]) {
        if folder.is_empty() {
            return;
        }
        let path = self.values.entry(b"PATH".to_vec()).or_insert_with(|| b"/usr/local/bin:/usr/bin:/bin".to_vec());
        if path.split(|b| *b == b':').next() != Some(folder) {
            *path = [folder, b":", path].concat();
        }
    }
    fn to_c(&self) -> Vec<CString> {
        self.values.iter().filter_map(|(n, v)| CString::new([n, &b"="[..], v].concat()).ok()).collect()
    }
}

/// Forks every task. Files that several tasks share are truncated by the first alone, which the others wait for.
pub fn fork_all(spec: &SupervisorSpec, setup: &Setup) -> Vec<Task> {
    let shared = has_shared_files(&spec.tasks);
    let mut opened = BTreeSet::new();
    let mut tasks = Vec::with_capacity(spec.tasks.len());
    for (index, task) in spec.tasks.iter().enumerate() {
        let mut made = fork_one(spec, setup, task, spec.pty && index == 0, &mut opened);
        if shared && let Some(pipe) = made.launching.take() {
            let _ = std::fs::File::from(pipe).read_to_end(&mut made.launch_text);
            made.failure = Failure::from_bytes(&made.launch_text);
        }
        tasks.push(made);
    }
    tasks
}

fn has_shared_files(tasks: &[TaskSpec]) -> bool {
    let mut seen = BTreeSet::new();
    tasks
        .iter()
        .flat_map(|t| {
            let error = t.stderr_path.as_ref().filter(|e| Some(*e) != t.stdout_path.as_ref());
            [t.stdout_path.as_ref(), error].into_iter().flatten()
        })
        .any(|path| !seen.insert(path))
}

fn fork_one(spec: &SupervisorSpec, setup: &Setup, task: &TaskSpec, tty: bool, opened: &mut BTreeSet<Vec<u8>>) -> Task {
    let mut made = Task {
        rank: task.rank,
        pid: 0,
        exit: None,
        usage: Default::default(),
        core: false,
        launching: None,
        launch_text: Vec::new(),
        failure: None,
        sources: Vec::new(),
        stdin: None,
        position: 0,
        tty,
        reported: false,
    };
    match try_fork(spec, setup, task, &mut made, opened) {
        Ok(()) => {}
        Err(failure) => {
            made.exit = Some(failure.exit());
            made.failure = Some(failure);
            made.sources.clear();
            made.stdin = None;
        }
    }
    made
}

fn try_fork(
    spec: &SupervisorSpec,
    setup: &Setup,
    task: &TaskSpec,
    made: &mut Task,
    opened: &mut BTreeSet<Vec<u8>>,
) -> Result<(), Failure> {
    let mut environment = setup.environment.clone();
    environment.lay_over(&task.environment);
    let argv: Vec<CString> = task
        .argv
        .iter()
        .map(|a| CString::new(&a[..]))
        .collect::<Result<_, _>>()
        .map_err(|_| Failure { text: "an argument of the program holds a NUL byte".into(), code: 22, node: false })?;
    let mut file = |path: &[u8]| End::File {
        path: PathBuf::from(OsStr::from_bytes(path)),
        truncate: opened.insert(path.to_vec()) && !task.append,
    };
    let (mut stdin, mut stdout, mut stderr, mut slave) = (End::Null, End::Null, End::Null, None);
    if made.tty {
        let (master, end) = pty(spec)?;
        let again = master.try_clone().map_err(|e| Failure { text: e.to_string(), code: 1, node: true })?;
        made.sources.push(Source { fd: master, stderr: false });
        made.stdin = Some(again);
        slave = Some(end);
    } else {
        match &task.stdin_path {
            Some(path) => stdin = file(path),
            None if spec.client && task.stdin_from_client => {
                let (read, write) = pipe()?;
                stdin = End::Pipe(read);
                made.stdin = Some(write);
            }
            None => {}
        }
        match &task.stdout_path {
            Some(path) => stdout = file(path),
            None if spec.client => {
                let (read, write) = pipe()?;
                stdout = End::Pipe(write);
                made.sources.push(Source { fd: read, stderr: false });
            }
            None => {}
        }
        match &task.stderr_path {
            Some(path) if Some(path) == task.stdout_path.as_ref() => stderr = End::Same,
            Some(path) => stderr = file(path),
            None if task.stdout_path.is_some() => stderr = End::Same,
            None if spec.client => {
                let (read, write) = pipe()?;
                stderr = End::Pipe(write);
                made.sources.push(Source { fd: read, stderr: true });
            }
            None => {}
        }
    }
    for source in &made.sources {
        set_nonblocking(&source.fd);
    }
    if let Some(fd) = &made.stdin {
        set_nonblocking(fd);
    }
    let child = spawn::fork(Plan {
        spec,
        account: setup.account.as_ref(),
        cgroup: setup.cgroup.as_deref(),
        argv,
        env: environment.to_c(),
        stdin,
        stdout,
        stderr,
        tty: slave,
        open_files: setup.open_files,
        script: setup.script.as_deref(),
    })?;
    made.pid = child.pid;
    made.launching = Some(child.launched);
    Ok(())
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|e| Failure {
        text: format!("no pipe for a task: {}", e.desc()),
        code: 1,
        node: true,
    })
}

fn pty(spec: &SupervisorSpec) -> Result<(OwnedFd, OwnedFd), Failure> {
    let size = winsize(spec.pty_rows, spec.pty_cols);
    let OpenptyResult { master, slave } = openpty(Some(&size), None).map_err(|e| Failure {
        text: format!("no pseudo-terminal: {}", e.desc()),
        code: 1,
        node: true,
    })?;
    for fd in [&master, &slave] {
        let _ = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC));
    }
    if spec.switch_user {
        let _ = nix::unistd::fchown(&slave, Some(spec.uid.into()), None);
    }
    Ok((master, slave))
}

pub fn winsize(rows: u32, cols: u32) -> Winsize {
    let cell = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    Winsize { ws_row: cell(rows), ws_col: cell(cols), ws_xpixel: 0, ws_ypixel: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_environment_wins_and_bytes_are_kept() {
        let mut environment = Environment::default();
        environment.lay_over(b"A=1\0B=\xff\0=bad\0bad\0");
        environment.lay_over(b"A=2\0");
        let c: Vec<Vec<u8>> = environment.to_c().into_iter().map(CString::into_bytes).collect();
        assert_eq!(c, [b"A=2".to_vec(), b"B=\xff".to_vec()]);
    }

    #[test]
    fn the_prefix_comes_first_on_path_once() {
        let mut environment = Environment::default();
        environment.lay_over(b"PATH=/bin\0");
        for _ in 0..2 {
            environment.prefix_path(b"/c/bin");
            assert_eq!(environment.values[&b"PATH"[..]], b"/c/bin:/bin");
        }
        let mut none = Environment::default();
        none.prefix_path(b"/c/bin");
        assert_eq!(none.values[&b"PATH"[..]], b"/c/bin:/usr/local/bin:/usr/bin:/bin");
    }

    #[test]
    fn tasks_with_files_of_their_own_share_none() {
        let task = |out: &'static str| TaskSpec { stdout_path: Some(out.into()), ..Default::default() };
        assert!(!has_shared_files(&[task("a"), task("b")]));
        assert!(has_shared_files(&[task("a"), task("a")]));
    }
}
