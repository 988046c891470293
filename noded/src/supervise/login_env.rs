//! `--get-user-env`: what the user's login shell puts into the environment (sbatch(1): as `su - USER -c env`).
//!
//! Promises to give up after [`TIMEOUT`]: a start-up file that waits for a terminal must not hold a job for ever.

use super::account::Account;
use super::spawn;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TIMEOUT: Duration = Duration::from_secs(10);
const MARK: &[u8] = b"\0sluice-login-environment\0";

/// Runs the login shell as the user and returns its environment as `NAME=value` strings.
pub fn fetch(account: &Account, user: &str, switch: bool) -> Result<Vec<Vec<u8>>, String> {
    let name = account.shell.file_name().unwrap_or(std::ffi::OsStr::new("sh")).to_owned();
    let mut login = std::ffi::OsString::from("-");
    login.push(&name);
    let mut command = Command::new(&account.shell);
    command
        .arg0(login)
        .arg("-c")
        .arg(r"printf '\0sluice-login-environment\0'; exec env -0")
        .env_clear()
        .env("HOME", &account.home)
        .env("SHELL", &account.shell)
        .env("USER", user)
        .env("LOGNAME", user)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    if account.home.is_dir() {
        command.current_dir(&account.home);
    } else {
        command.current_dir("/");
    }
    let (uid, gid, groups) = (account.uid, account.gid, account.groups.clone());
    // SAFETY: the supervisor has a single thread, so that the child may call anything.
    unsafe {
        command.pre_exec(move || {
            if switch {
                let account =
                    Account { uid, gid, groups: groups.clone(), home: Default::default(), shell: Default::default() };
                spawn::become_user(&account)?;
            }
            Ok(())
        });
    }
    let mut child = command.spawn().map_err(|e| format!("login shell {}: {e}", account.shell.display()))?;
    let result = child.stdout.take().ok_or_else(|| "no pipe from the login shell".to_owned()).and_then(read_all);
    let pid = child.id() as i32;
    // SAFETY: the process group was made for this child, which has not been waited for.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
    let _ = child.wait();
    parse(&result?).ok_or_else(|| format!("login shell {} printed no environment", account.shell.display()))
}

fn read_all(mut pipe: std::process::ChildStdout) -> Result<Vec<u8>, String> {
    use std::os::fd::AsFd;
    let deadline = Instant::now() + TIMEOUT;
    let mut all = Vec::new();
    let mut chunk = [0; 16384];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || all.len() > (8 << 20) {
            return Err(format!("the login shell did not end within {} s", TIMEOUT.as_secs()));
        }
        let mut fds = [nix::poll::PollFd::new(pipe.as_fd(), nix::poll::PollFlags::POLLIN)];
        match nix::poll::poll(&mut fds, left.as_millis() as u16) {
            Ok(0) | Err(nix::Error::EINTR) => continue,
            Err(e) => return Err(format!("login shell: {}", e.desc())),
            Ok(_) => match pipe.read(&mut chunk) {
                Ok(0) => return Ok(all),
                Ok(n) => all.extend_from_slice(&chunk[..n]),
                Err(e) => return Err(format!("login shell: {e}")),
            },
        }
    }
}

/// What follows the mark: start-up files may print anything before it.
fn parse(output: &[u8]) -> Option<Vec<Vec<u8>>> {
    let start = output.windows(MARK.len()).rposition(|w| w == MARK)? + MARK.len();
    let skip: [&[u8]; 4] = [b"_=", b"SHLVL=", b"PWD=", b"OLDPWD="];
    Some(
        output[start..]
            .split(|b| *b == 0)
            .filter(|e| e.contains(&b'=') && !skip.iter().any(|s| e.starts_with(s)))
            .map(<[u8]>::to_vec)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chatter_of_start_up_files_is_no_environment() {
        let mut output = b"Welcome! A=1\n".to_vec();
        output.extend_from_slice(MARK);
        output.extend_from_slice(b"HOME=/h\0F=two\nlines\0PWD=/x\0");
        assert_eq!(parse(&output).unwrap(), [b"HOME=/h".to_vec(), b"F=two\nlines".to_vec()]);
        assert_eq!(parse(b"no mark"), None);
    }
}
