//! One process for each state directory.

use super::StoreError;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Held until dropped; the kernel lets go of it when the process dies.
pub struct DirLock {
    _file: Flock<File>,
}

impl DirLock {
    /// Takes flock(2) on `dir/lock`, or says who has it.
    pub fn take(dir: &Path) -> Result<DirLock, StoreError> {
        let path = dir.join("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|e| StoreError::io("open", &path, e))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(mut file) => {
                // The number is for people only; on a full disk the lock holds without it.
                if file.set_len(0).is_ok() {
                    let _ = writeln!(file, "{}", std::process::id());
                }
                Ok(DirLock { _file: file })
            }
            Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                Err(StoreError::Locked { path: dir.to_owned(), pid })
            }
            Err((_, e)) => Err(StoreError::Io { what: "lock", path, source: e.into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_who_has_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::take(dir.path()).unwrap();
        let Err(error) = DirLock::take(dir.path()) else { panic!("locked twice") };
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(held);
        DirLock::take(dir.path()).unwrap();
    }
}
