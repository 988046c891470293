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

/// What went wrong.
#[derive(PartialEq, Eq, Debug)]
pub enum LocalError {
    /// For people: said once, at the edge.
    Said(String),
    /// Nobody reads our output any more. No failure, but whoever must tidy up does it first.
    ReaderGone,
}

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LocalError::Said(text) => f.write_str(text),
            LocalError::ReaderGone => f.write_str("nobody reads the output"),
        }
    }
}

impl From<String> for LocalError {
    fn from(text: String) -> Self {
        LocalError::Said(text)
    }
}

type Result<T> = std::result::Result<T, LocalError>;

/// Names the file in an I/O error.
fn at(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LocalError {
    let path = path.to_owned();
    move |e| LocalError::Said(format!("{}: {e}", path.display()))
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
        Err(LocalError::ReaderGone) => ExitCode::SUCCESS,
        Err(e) => {
            crate::errln!("sluice local: error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// How this program was called: what is suggested must be found by the caller's shell, too.
fn called_as() -> String {
    let word = std::env::args_os().next().map(|w| w.to_string_lossy().into_owned());
    word.filter(|w| w.contains('/')).unwrap_or_else(|| "sluice".to_owned())
}

/// Data for stdout.
fn say(text: &str) -> Result<()> {
    use std::io::Write;
    // Not `out::print`, which ends the process when the reader is gone: a demo must stop its cluster first.
    let mut out = std::io::stdout().lock();
    match out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Err(LocalError::ReaderGone),
        Err(e) => Err(LocalError::Said(format!("write to standard output failed: {e}"))),
    }
}
