//! Unix sockets in folders whose path is longer than a socket address (108 bytes, unix(7)): reached through the
//! folder's descriptor.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

fn through(dir: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(dir)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", handle.as_raw_fd()));
    Ok((handle, path))
}

/// Listens at `dir/name`; whatever lay there before goes.
pub fn bind(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let (_handle, path) = through(dir, name)?;
    match fs::remove_file(&path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    UnixListener::bind(&path)
}

/// Connects to `dir/name`.
pub fn connect(dir: &Path, name: &str) -> io::Result<UnixStream> {
    let (_handle, path) = through(dir, name)?;
    UnixStream::connect(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_deeper_than_a_socket_address_can_hold_a_socket() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("d".repeat(100)).join("e".repeat(100));
        fs::create_dir_all(&deep).unwrap();
        let _listener = bind(&deep, "sock").unwrap();
        connect(&deep, "sock").unwrap();
        drop(_listener);
        assert_eq!(connect(&deep, "sock").unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        bind(&deep, "sock").unwrap();
    }
}
