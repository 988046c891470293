//! The cluster's own copies of the programs, and its commands under Slurm's names.

use super::layout::Layout;
use super::{LocalError, Result, at};
use crate::commands;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const PROGRAMS: [&str; 3] = ["sluice", "sluice-ctld", "sluice-noded"];
/// No daemon needs it; `sluice sim` says so when it is not there.
const SIMULATOR: &str = "sluice-sim";

/// Copies the programs that lie beside this one. Copies, because a checkout may lie where other users can't look.
pub(super) fn install(layout: &Layout) -> Result<()> {
    let me = std::env::current_exe().map_err(|e| LocalError::Said(format!("this program can't find itself: {e}")))?;
    let beside = me.parent().unwrap_or(Path::new("/"));
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|name| !beside.join(name).is_file()).collect();
    if !missing.is_empty() {
        let text = format!(
            "{} not found in {}: build them all with: cargo build --release",
            missing.join(" and "),
            beside.display()
        );
        return Err(LocalError::Said(text));
    }
    let simulator = Some(SIMULATOR).filter(|name| beside.join(name).is_file());
    for name in PROGRAMS.into_iter().chain(simulator) {
        copy(&beside.join(name), &layout.program(name))?;
    }
    let names = commands::COMMANDS.iter().map(|c| c.name).chain(commands::LATER.iter().map(|(name, _)| *name));
    for name in names {
        link(&layout.program(name))?;
    }
    Ok(())
}

/// Replaces the target unless it is the same; a running program goes on with its old file.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let source = std::fs::metadata(from).map_err(at(from))?;
    if let Ok(there) = std::fs::metadata(to) {
        let same_file = (there.dev(), there.ino()) == (source.dev(), source.ino());
        // `copied` gives the copy the source's time.
        let same =
            there.len() == source.len() && there.mtime() == source.mtime() && there.mtime_nsec() == source.mtime_nsec();
        if same_file || same {
            return Ok(());
        }
    }
    let staged = to.with_extension("new");
    let copied = || -> std::io::Result<()> {
        match std::fs::remove_file(&staged) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        std::fs::copy(from, &staged)?;
        std::fs::set_permissions(&staged, std::fs::Permissions::from_mode(0o755))?;
        std::fs::File::options().write(true).open(&staged)?.set_modified(source.modified()?)?;
        std::fs::rename(&staged, to)
    };
    copied().map_err(at(to))
}

/// `bin/sbatch -> sluice`
fn link(path: &Path) -> Result<()> {
    if std::fs::read_link(path).is_ok_and(|target| target == Path::new("sluice")) {
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(at(path)(e)),
        _ => {}
    }
    std::os::unix::fs::symlink("sluice", path).map_err(at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_executable_by_all_and_replaced_when_the_original_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&from, "one").unwrap();
        std::fs::set_permissions(&from, std::fs::Permissions::from_mode(0o700)).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o755);
        let first = std::fs::metadata(&to).unwrap().ino();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().ino(), first, "an unchanged program is left alone");
        std::fs::write(&from, "three").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "three");
    }

    #[test]
    fn a_command_is_a_link_to_the_one_program() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sbatch");
        link(&path).unwrap();
        link(&path).unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("sluice"));
    }
}
