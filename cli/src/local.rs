//! `sluice local`: a whole cluster on this machine, for trying out, for tests and for developing job scripts.
//!
//! Owns one folder per cluster: programs, configuration, state, sockets, logs. Promises that several clusters run side
//! by side, that `up` goes on where a cluster stopped, and that `down` ends what `up` started and nothing else: it
//! signals only processes whose command line names the folder. It must not be needed by real clusters; daemons and
//! commands know nothing of it.

mod arguments;
mod cluster_file;
mod daemon;
mod demo;
mod down;
mod install;
mod interrupt;
mod layout;
mod link;
mod place;
mod status;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;

/// What went wrong, for people: said once, at the edge.
#[derive(Debug)]
pub struct LocalError(String);

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for LocalError {
    fn from(text: String) -> Self {
        LocalError(text)
    }
}

type Result<T> = std::result::Result<T, LocalError>;

/// Names the file in an I/O error.
fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LocalError {
    let path = path.to_owned();
    move |e| LocalError(format!("{}: {e}", path.display()))
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let command = match arguments::parse(&words) {
        Ok(command) => command,
        Err(e) => {
            crate::errln!("sluice local: error: {e}");
            return ExitCode::from(2);
        }
    };
    let done = match command {
        arguments::Command::Up(options) => up::main(&options),
        arguments::Command::Down(place) => down::main(&place),
        arguments::Command::Status(place) => status::main(&place),
        arguments::Command::Env(place) => place::print_env(&place),
        arguments::Command::Demo(options) => demo::main(&options),
        arguments::Command::Help(text) => say(text.trim_end()).map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(e) => {
            crate::errln!("sluice local: error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Data for stdout; a reader who went away ends the program as a success.
fn say(text: &str) -> Result<()> {
    crate::out::print(format!("{text}\n").as_bytes())
        .map_err(|e| LocalError(format!("write to standard output failed: {e}")))
}
