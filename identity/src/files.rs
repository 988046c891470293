//! Key files: private, whole or absent, durable.

use crate::error::IdentityError;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, IdentityError>;

/// Makes the directory `dir` (mode 0700) with these files (mode 0600), all at once: after a power cut it is there whole
/// or not at all. Refuses a directory that holds anything.
pub(crate) fn create_dir_with(dir: &Path, files: &[(&str, &[u8])]) -> Result<()> {
    if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(IdentityError::Exists { path: dir.to_owned() });
    }
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(|e| IdentityError::io("making", parent, e))?;
    let mut name = dir.file_name().unwrap_or_default().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    let staged = parent.join(name);
    // What an earlier, interrupted try of a process of the same number left.
    match fs::remove_dir_all(&staged) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(IdentityError::io("clearing", &staged, e)),
    }
    DirBuilder::new().mode(0o700).create(&staged).map_err(|e| IdentityError::io("making", &staged, e))?;
    for (name, content) in files {
        write_new(&staged.join(name), content)?;
    }
    sync_dir(&staged)?;
    fs::rename(&staged, dir).map_err(|e| IdentityError::io("naming", dir, e))?;
    sync_dir(parent)
}

/// Writes a file (mode 0600) that is there whole or not at all.
pub(crate) fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    let mut staged = path.as_os_str().to_owned();
    staged.push(format!(".new-{}", std::process::id()));
    let staged = PathBuf::from(staged);
    match fs::remove_file(&staged) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(IdentityError::io("clearing", &staged, e)),
    }
    write_new(&staged, content)?;
    fs::rename(&staged, path).map_err(|e| IdentityError::io("naming", path, e))?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))
}

fn write_new(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| IdentityError::io("creating", path, e))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(|e| IdentityError::io("writing", path, e))
}

pub(crate) fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| IdentityError::io("flushing", dir, e))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| IdentityError::io("reading", path, e))
}

pub(crate) fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|_| IdentityError::broken(path, "is not text"))
}

/// Reads a secret; refuses one that group or others could read too.
pub(crate) fn read_secret(path: &Path) -> Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(path).map_err(|e| IdentityError::io("reading", path, e))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(IdentityError::broken(path, format!("has mode {mode:04o}; a secret must be 0600")));
    }
    read_text(path)
}
