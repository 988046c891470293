//! Unix sockets under any path. The kernel takes 107 bytes of path; longer ones are reached through /proc/self/fd of
//! their directory.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

const LONGEST: usize = 107;

/// A path that fits, and what must stay open while it is used.
fn short(path: &Path) -> io::Result<(PathBuf, Option<File>)> {
    if path.as_os_str().len() <= LONGEST {
        return Ok((path.to_owned(), None));
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let dir = OpenOptions::new().read(true).custom_flags(nix::libc::O_PATH | nix::libc::O_CLOEXEC).open(dir)?;
    let short = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
    Ok((short, Some(dir)))
}

pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let (path, _dir) = short(path)?;
    UnixStream::connect(path).await
}

/// Listens at `path` with this mode. A socket that nobody listens on is replaced; one that answers is
/// `ErrorKind::AddrInUse`.
pub async fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    match connect(path).await {
        Ok(_) => {
            let text = format!("another process listens on {}", path.display());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
        Err(e) => return Err(e),
    }
    let (bound, _dir) = short(path)?;
    let listener = UnixListener::bind(bound)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}
