//! Where things lie in the node daemon's state folder.
//!
//! ```text
//! STATE/jobs/JOB.ATTEMPT/launch        the LaunchJob message, durable before anything of the attempt runs
//!                       /boot          the boot id of the kernel under which it was launched
//!                       /STEP/spec     SupervisorSpec
//!                            /script   of a batch step
//!                            /started  made by the supervisor before the first fork, locked while it lives
//!                            /sock     the supervisor's socket
//!                            /exit     SupervisorExit, synced: its last word
//!                            /told     the step manager knows of the end
//! ```
//! Owns names and durable writes. Promises that a file written by [`write_durable`] is there whole or not at all after
//! a power cut. Must not decide what is started or reported.

use prost::Message;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub const SPEC: &str = "spec";
pub const STARTED: &str = "started";
pub const SOCKET: &str = "sock";
pub const EXIT: &str = "exit";
pub const SCRIPT: &str = "script";
pub const LAUNCH: &str = "launch";
pub const BOOT: &str = "boot";
/// The step manager knows how this part ended.
pub const TOLD: &str = "told";

/// Makes a folder that users can pass through but not list (jobs run their script from inside it).
pub fn make_dir(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o711).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Waits until the names in `dir` are on disk.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Writes `dir/name` (mode 0600) so that it is whole or absent after a crash of the process. With `durable`, also
/// after a power cut: the contents and the name are on disk when this returns.
pub fn write_file(dir: &Path, name: &str, bytes: &[u8], durable: bool) -> io::Result<()> {
    let temporary = dir.join(format!(".{name}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    if durable {
        file.sync_data()?;
    }
    fs::rename(&temporary, dir.join(name))?;
    if durable {
        sync_dir(dir)?;
    }
    Ok(())
}

/// [`write_file`] of a message, durable.
pub fn write_durable(dir: &Path, name: &str, message: &impl Message) -> io::Result<()> {
    write_file(dir, name, &message.encode_to_vec(), true)
}

/// Reads a message back; `None` when there is no such file.
pub fn read<M: Message + Default>(dir: &Path, name: &str) -> io::Result<Option<M>> {
    match fs::read(dir.join(name)) {
        Ok(bytes) => M::decode(&bytes[..])
            .map(Some)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {e}", dir.join(name).display()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// The folder of one attempt under `jobs`.
pub fn attempt_dir(jobs: &Path, job: u32, attempt: u32) -> PathBuf {
    jobs.join(format!("{job}.{attempt}"))
}

/// `JOB.ATTEMPT` back from a folder's name.
pub fn parse_attempt(name: &str) -> Option<(u32, u32)> {
    let (job, attempt) = name.split_once('.')?;
    Some((job.parse().ok()?, attempt.parse().ok()?))
}

/// The folder name of a step: `batch` or its number.
pub fn step_name(step: u32) -> String {
    sluice_model::StepId::from_wire(step).to_string()
}

/// The step of a folder's name, in its wire form.
pub fn parse_step(name: &str) -> Option<u32> {
    match name {
        "batch" => Some(sluice_model::StepId::Batch.to_wire()),
        "extern" => Some(sluice_model::StepId::Extern.to_wire()),
        "interactive" => Some(sluice_model::StepId::Interactive.to_wire()),
        number => number.parse().ok(),
    }
}

/// Identifies this run of the kernel; attempts launched under another one are over, whatever their folder says.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|s| s.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attempts_and_steps_read_back() {
        assert_eq!(parse_attempt("12.3"), Some((12, 3)));
        assert_eq!(parse_attempt("12"), None);
        for step in [0, 7, sluice_model::StepId::Batch.to_wire()] {
            assert_eq!(parse_step(&step_name(step)), Some(step));
        }
        assert_eq!(parse_step("launch"), None);
    }

    #[test]
    fn a_missing_record_is_none_and_a_broken_one_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read::<sluice_proto::v1::StepKey>(dir.path(), SPEC).unwrap().is_none());
        fs::write(dir.path().join(SPEC), [0xff; 9]).unwrap();
        assert!(read::<sluice_proto::v1::StepKey>(dir.path(), SPEC).is_err());
    }
}
