//! From a task's description to a running program: what happens between fork and exec.
//!
//! Owns the order of steps in the child, which is the security of it: own process group, default signals, cgroup, the
//! user's identity with all groups, and only then (with the user's rights) directory, files, program. Promises that
//! a failure comes back as a sentence that names the directory, file or interpreter, and that the program gets
//! descriptors 0 to 2 alone. The supervisor has a single thread, so that the child may allocate and call libc freely.

use super::account::Account;
use crate::cgroup;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sluice_model::state::ExitStatus;
use sluice_proto::v1::{PropagatedLimit, SupervisorSpec};
use std::ffi::{CString, OsStr};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Why a task did not come to run. `code` is the exit code that Slurm gives it (the errno of execve).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub text: String,
    pub code: u32,
    /// The node's fault, not the job's.
    pub node: bool,
}

impl Failure {
    fn job(text: String, error: &std::io::Error) -> Self {
        Failure {
            text: format!("{text}: {}", reason(error)),
            code: error.raw_os_error().unwrap_or(1) as u32,
            node: false,
        }
    }
    fn node(text: String) -> Self {
        Failure { text, code: 1, node: true }
    }
    /// The exit status that the task gets.
    pub fn exit(&self) -> ExitStatus {
        ExitStatus { code: self.code.clamp(1, 255) as u8, signal: 0 }
    }
    /// On its way through the pipe from the child.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.node), self.code.min(255) as u8];
        bytes.extend_from_slice(self.text.as_bytes());
        bytes
    }
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [node, code, text @ ..] = bytes else { return None };
        Some(Failure { text: String::from_utf8_lossy(text).into_owned(), code: u32::from(*code), node: *node != 0 })
    }
}

/// The system's words without "(os error N)".
pub fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(n) => nix::errno::Errno::from_raw(n).desc().to_owned(),
        None => error.to_string(),
    }
}

/// A child's end of a stream.
pub enum End {
    /// A pipe of the supervisor's.
    Pipe(OwnedFd),
    /// A file that the child opens with the user's rights; truncated first when told.
    File {
        path: PathBuf,
        truncate: bool,
    },
    /// The same as stdout (for stderr only).
    Same,
    Null,
}

/// Everything that the child needs, worked out before the fork.
pub struct Plan<'a> {
    pub spec: &'a SupervisorSpec,
    pub account: Option<&'a Account>,
    pub cgroup: Option<&'a Path>,
    /// Program and arguments; the first is a path when it holds a slash, else looked up in PATH.
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub stdin: End,
    pub stdout: End,
    pub stderr: End,
    /// The slave of a pseudo-terminal, which then is all three streams.
    pub tty: Option<OwnedFd>,
    /// The limit of open files that the supervisor was started with, before it raised its own.
    pub open_files: Option<(u64, u64)>,
    /// The batch script, to be run in place of `argv[0]`'s program.
    pub script: Option<&'a Path>,
}

/// A forked child: its pid, and the pipe that tells a [`Failure`] or, by closing, that the program runs.
pub struct Child {
    pub pid: i32,
    pub launched: OwnedFd,
}

/// Forks. The supervisor must have one thread.
pub fn fork(plan: Plan<'_>) -> Result<Child, Failure> {
    let (read, write) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)
        .map_err(|e| Failure::node(format!("no pipe for a task: {}", e.desc())))?;
    // SAFETY: the supervisor has a single thread, so that the child finds every lock free.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::node(format!("no process for a task: {}", nix::errno::Errno::last().desc()))),
        0 => {
            drop(read);
            let failure = run(plan, &write);
            let mut pipe = File::from(write);
            let _ = pipe.write_all(&failure.to_bytes());
            // SAFETY: leaves without running the parent's exit handlers.
            unsafe { libc::_exit(failure.code.clamp(1, 255) as i32) }
        }
        pid => Ok(Child { pid, launched: read }),
    }
}

/// In the child, up to exec; returns only on failure.
fn run(plan: Plan<'_>, report: &OwnedFd) -> Failure {
    match prepare(&plan) {
        Ok(()) => exec(plan, report),
        Err(failure) => failure,
    }
}

fn prepare(plan: &Plan<'_>) -> Result<(), Failure> {
    // SAFETY: plain system calls on the calling process.
    unsafe {
        if plan.tty.is_some() {
            libc::setsid();
        } else {
            libc::setpgid(0, 0);
        }
    }
    default_signals();
    if let Some(path) = plan.cgroup {
        let entered = cgroup::enter(path);
        if let Err(e) = entered
            && !plan.spec.best_effort
        {
            return Err(Failure::node(format!("cgroup {} can't be entered: {}", path.display(), reason(&e))));
        }
    }
    if let Some((soft, hard)) = plan.open_files {
        // Lowering to what it was can't fail.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
    }
    for limit in &plan.spec.limits {
        set_limit(limit)?;
    }
    if let Some(account) = plan.account {
        become_user(account).map_err(|e| Failure::node(format!("can't become user {}: {e}", plan.spec.user)))?;
    }
    // A task must not outlive the supervisor, or nobody would know how it ended.
    // SAFETY: prctl(2) with plain numbers.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: umask(2) can't fail.
    unsafe { libc::umask(plan.spec.umask as libc::mode_t & 0o777) };
    let dir = Path::new(OsStr::from_bytes(&plan.spec.work_dir));
    if !plan.spec.work_dir.is_empty() {
        std::env::set_current_dir(dir).map_err(|e| Failure::job(format!("working directory {}", dir.display()), &e))?;
    }
    streams(plan)
}

/// Every signal as the system starts a program with, and none blocked: a shell whose SIGINT is ignored can't undo that.
fn default_signals() {
    // SAFETY: sets dispositions and mask of this process, the set lives on the stack.
    unsafe {
        // By system call: libc refuses to touch 32 and 33, which a parent may have ignored all the same. Handler 0 is
        // SIG_DFL; the kernel's struct is no larger than four words on any Linux.
        let default = [0usize; 4];
        for signal in 1..=64 {
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), std::ptr::null::<usize>(), 8usize);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Groups first, user last: the other way round there would be no right left to do it.
pub fn become_user(account: &Account) -> Result<(), nix::Error> {
    nix::unistd::setgroups(&account.groups)?;
    nix::unistd::setresgid(account.gid, account.gid, account.gid)?;
    nix::unistd::setresuid(account.uid, account.uid, account.uid)
}

/// Slurm's names of limits (`sbatch --propagate`).
fn resource(name: &str) -> Option<Resource> {
    Some(match name {
        "AS" => Resource::RLIMIT_AS,
        "CORE" => Resource::RLIMIT_CORE,
        "CPU" => Resource::RLIMIT_CPU,
        "DATA" => Resource::RLIMIT_DATA,
        "FSIZE" => Resource::RLIMIT_FSIZE,
        "MEMLOCK" => Resource::RLIMIT_MEMLOCK,
        "NOFILE" => Resource::RLIMIT_NOFILE,
        "NPROC" => Resource::RLIMIT_NPROC,
        "RSS" => Resource::RLIMIT_RSS,
        "STACK" => Resource::RLIMIT_STACK,
        _ => return None,
    })
}

/// Sets the soft limit, no higher than this node's hard limit allows.
fn set_limit(limit: &PropagatedLimit) -> Result<(), Failure> {
    let Some(resource) = resource(&limit.name) else {
        return Err(Failure::node(format!("limit {} is not known on this node", limit.name)));
    };
    let (_, hard) =
        getrlimit(resource).map_err(|e| Failure::node(format!("limit {} can't be read: {}", limit.name, e.desc())))?;
    setrlimit(resource, limit.soft.min(hard), hard)
        .map_err(|e| Failure::node(format!("limit {} can't be set to {}: {}", limit.name, limit.soft, e.desc())))
}

/// Lets this process hold the pipes of as many tasks as the hard limit allows; gives back what the limit was.
pub fn raise_open_files() -> Option<(u64, u64)> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some((soft, hard))
}

/// Puts descriptors 0 to 2 in place and marks all others to be closed by exec.
fn streams(plan: &Plan<'_>) -> Result<(), Failure> {
    if let Some(tty) = &plan.tty {
        // SAFETY: makes the slave, which is open, the controlling terminal of the new session.
        unsafe { libc::ioctl(tty.as_raw_fd(), libc::TIOCSCTTY, 0) };
        for target in 0..3 {
            put(tty.as_raw_fd(), target)?;
        }
    } else {
        let null = || open(Path::new("/dev/null"), OpenOptions::new().read(true).write(true), "/dev/null");
        let mut held: Vec<File> = Vec::new();
        let mut hold = |file: File| {
            held.push(file);
            held[held.len() - 1].as_raw_fd()
        };
        let stdin = match &plan.stdin {
            End::Pipe(fd) => fd.as_raw_fd(),
            End::File { path, .. } => hold(open(path, OpenOptions::new().read(true), "input file")?),
            End::Same | End::Null => hold(null()?),
        };
        let stdout = match &plan.stdout {
            End::Pipe(fd) => fd.as_raw_fd(),
            End::File { path, truncate } => hold(open_output(path, *truncate, "output file")?),
            End::Same | End::Null => hold(null()?),
        };
        let stderr = match &plan.stderr {
            End::Pipe(fd) => fd.as_raw_fd(),
            End::File { path, truncate } => hold(open_output(path, *truncate, "error file")?),
            End::Same => stdout,
            End::Null => hold(null()?),
        };
        for (fd, target) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            put(fd, target)?;
        }
    }
    // SAFETY: marks descriptors, touches no memory.
    let marked = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if marked != 0 {
        for fd in 3..1024 {
            // SAFETY: as above, for kernels before 5.11; a number that is not open is no error.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
    Ok(())
}

fn put(fd: RawFd, target: RawFd) -> Result<(), Failure> {
    // SAFETY: both are numbers of this process; what was at `target` is /dev/null of the supervisor.
    match unsafe { libc::dup2(fd, target) } {
        -1 => Err(Failure::node(format!("descriptor {target}: {}", nix::errno::Errno::last().desc()))),
        _ => Ok(()),
    }
}

fn open(path: &Path, options: &OpenOptions, what: &str) -> Result<File, Failure> {
    options.open(path).map_err(|e| Failure::job(format!("{what} {}", path.display()), &e))
}

/// Always in append mode: several tasks and the supervisor's own notices share files.
fn open_output(path: &Path, truncate: bool, what: &str) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o666);
    if truncate {
        options.custom_flags(libc::O_TRUNC);
    }
    open(path, &options, what)
}

fn exec(plan: Plan<'_>, report: &OwnedFd) -> Failure {
    let mut env = plan.env;
    if let Ok(pid) = CString::new(format!("SLURM_TASK_PID={}", std::process::id())) {
        env.push(pid);
    }
    let program = match plan.script {
        Some(path) => path.to_owned(),
        None => match plan.argv.first() {
            Some(program) => PathBuf::from(OsStr::from_bytes(program.as_bytes())),
            None => return Failure::node("no program to run".into()),
        },
    };
    let candidates = candidates(&program, &env);
    // SAFETY: keeps the report pipe open until exec; it was marked above with the others.
    unsafe { libc::fcntl(report.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    let mut error = nix::Error::ENOENT;
    for candidate in &candidates {
        let Ok(path) = CString::new(candidate.as_os_str().as_bytes()) else { continue };
        let Err(e) = nix::unistd::execve(&path, &plan.argv, &env);
        // As execvp(3): a directory that may not be searched does not hide a later one that has the program.
        if e != nix::Error::ENOENT && e != nix::Error::ENOTDIR {
            error = e;
        }
    }
    let failure = explain(&program, &candidates, error, plan.script.is_some());
    if !plan.spec.client {
        // The user looks into the job's own error file first. Slurm's program name, for scripts that look for it. (An
        // attached srun says it itself.)
        let _ = writeln!(std::io::stderr(), "slurmstepd: error: {}", failure.text);
    }
    failure
}

/// Where a program may lie: itself when it has a slash, else in each folder of the task's PATH.
fn candidates(program: &Path, env: &[CString]) -> Vec<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let path = env.iter().rev().find_map(|e| e.as_bytes().strip_prefix(b"PATH=")).unwrap_or(b"/usr/bin:/bin");
    path.split(|b| *b == b':')
        .map(|dir| if dir.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(dir)) }.join(program))
        .collect()
}

/// execve's error, with what it does not say: a script that exists but whose interpreter does not is ENOENT, too.
fn explain(program: &Path, candidates: &[PathBuf], error: nix::Error, script: bool) -> Failure {
    let code = error as u32;
    let interpreter = candidates.iter().find_map(|c| interpreter(c));
    let text = match interpreter {
        Some(name) if matches!(error, nix::Error::ENOENT | nix::Error::EACCES | nix::Error::ENOTDIR) => {
            let shown = name.escape_ascii();
            let what = if script { "the batch script".to_owned() } else { program.display().to_string() };
            let hint = if name.ends_with(b"\r") { " (the script has DOS line ends)" } else { "" };
            format!("interpreter {shown} of {what}: {}{hint}", error.desc())
        }
        _ if script => format!("the batch script can't be run: {}", error.desc()),
        _ => format!("execve(): {}: {}", program.display(), error.desc()),
    };
    Failure { text, code, node: false }
}

/// The program that a script's first line names.
fn interpreter(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut head = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let start = line.iter().position(|b| *b != b' ' && *b != b'\t')?;
    let name = line[start..].split(|b| *b == b' ' || *b == b'\t').next()?;
    Some(name.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named_with_its_dos_line_end() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("s");
        std::fs::write(&script, "#! /no/such/shell\r\necho\n").unwrap();
        let failure = explain(&script, std::slice::from_ref(&script), nix::Error::ENOENT, true);
        assert!(failure.text.contains(r"interpreter /no/such/shell\r of the batch script"), "{}", failure.text);
        assert!(failure.text.contains("DOS line ends"));
        assert_eq!(failure.code, 2);
    }

    #[test]
    fn programs_are_looked_for_in_the_tasks_own_path() {
        let env = [CString::new("PATH=/a::/b").unwrap()];
        assert_eq!(
            candidates(Path::new("x"), &env),
            [PathBuf::from("/a/x"), PathBuf::from("./x"), PathBuf::from("/b/x")]
        );
        assert_eq!(candidates(Path::new("./x"), &env), [PathBuf::from("./x")]);
    }

    #[test]
    fn failures_pass_the_pipe_unchanged() {
        let failure = Failure { text: "x: é".into(), code: 13, node: true };
        assert_eq!(Failure::from_bytes(&failure.to_bytes()), Some(failure));
        assert_eq!(Failure::from_bytes(b""), None);
    }
}
