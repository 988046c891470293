//! `sluice sim`: the trace simulator, a program of its own beside this one.
//!
//! The simulator holds the engine and the scheduler, which the command line does not know; so this only finds it and
//! becomes it.

use crate::errln;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PROGRAM: &str = "sluice-sim";

pub fn main(words: Vec<OsString>) -> ExitCode {
    match beside() {
        Ok(program) => {
            // Only a failure comes back.
            let error = Command::new(&program).args(words).exec();
            errln!("sluice sim: error: {}: {error}", program.display());
        }
        Err(message) => errln!("sluice sim: error: {message}"),
    }
    ExitCode::FAILURE
}

/// The program in this one's folder, links resolved.
fn beside() -> Result<PathBuf, String> {
    let me = std::env::current_exe().map_err(|e| format!("this program can't find itself: {e}"))?;
    let folder = me.parent().unwrap_or(Path::new("/"));
    let program = folder.join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    Err(format!("{PROGRAM} not found in {}: it is built and installed beside sluice", folder.display()))
}
