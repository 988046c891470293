//! `sluice sim`: the trace simulator, a program of its own beside this one.
//!
//! The simulator holds the engine and the scheduler, which the command line does not know; so this only finds it and
//! becomes it. With `--from-history` it first asks the controller for the jobs that ran and for the cluster's configuration,
//! and hands both over as files in memory.

mod history;

use crate::errln;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const PROGRAM: &str = "sluice-sim";
const NAME: &str = "sluice sim";

pub fn main(words: Vec<OsString>) -> ExitCode {
    let words = match history::asked_for(words) {
        Ok(words) => words,
        Err(code) => return code,
    };
    match beside() {
        Ok(program) => {
            // Only a failure comes back.
            let error = Command::new(&program).args(words).exec();
            errln!("{NAME}: error: {}: {error}", program.display());
        }
        Err(message) => errln!("{NAME}: error: {message}"),
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
