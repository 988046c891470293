//! The folder as others use it: locked by one command at a time, first on a shell's PATH.

use super::arguments::Place;
use super::layout::Layout;
use super::{LocalError, Result, at, say};
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

/// Held while the cluster is started or stopped.
pub(super) fn lock(layout: &Layout) -> Result<Flock<File>> {
    // The folder itself: a file made for this would have to be left behind.
    let path = layout.run();
    let file = File::open(&path).map_err(at(&path))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| {
        if errno == nix::errno::Errno::EWOULDBLOCK {
            return LocalError::Said(format!("another sluice local is at work in {}", layout.dir().display()));
        }
        LocalError::Said(format!("{}: {errno}", path.display()))
    })
}

/// For `eval`.
pub(super) fn print_env(place: &Place) -> Result<ExitCode> {
    let layout = Layout::existing(&place.dir)?;
    // Inside a job of another cluster these would lead the commands there.
    say("unset SLUICE_CONF SLUICE_NODE_SOCKET")?;
    say(&format!("export PATH={}:\"$PATH\"", quoted(&layout.bin())))?;
    Ok(ExitCode::SUCCESS)
}

/// For a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_quotes_and_blanks_survives_the_shell() {
        let path = Path::new("/tmp/it's a $HOME/bin");
        let out =
            std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(path))).output().unwrap();
        assert_eq!(out.stdout, path.to_str().unwrap().as_bytes());
    }
}
