//! Writing to stdout and stderr.
//!
//! Owns the rule that a reader who goes away ends the command as a success, and that talk on stderr never makes it
//! fail. Standard `println!`/`eprintln!` panic there and are not used in this crate. Bytes of users that are held as text
//! (`text`) come out as they were.

use crate::text;
use std::io::{self, Write};
use std::process::ExitCode;

/// Writes text to stdout and flushes. A closed pipe ends the process with success, as nobody wants the rest.
pub fn print(text: &[u8]) -> io::Result<()> {
    print_raw(&text::release(text))
}

/// The same for bytes that are no text of ours (a job's script).
pub fn print_raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        other => other,
    }
}

/// `print`, with what else can go wrong (a full disk) said on stderr.
pub fn print_or_complain(program: &str, text: &[u8], success: ExitCode) -> ExitCode {
    complain(program, print(text), success)
}

pub fn complain(program: &str, printed: io::Result<()>, success: ExitCode) -> ExitCode {
    match printed {
        Ok(()) => success,
        Err(e) => {
            talk(&format!("{program}: error: write to standard output failed: {e}"));
            ExitCode::from(1)
        }
    }
}

/// One line to stderr, in one write, so that lines of several processes do not mix.
pub fn talk(line: &str) {
    talk_bytes(format!("{line}\n").as_bytes());
}

pub fn talk_bytes(bytes: &[u8]) {
    // A reader of our talk who went away is no reason to stop working.
    let _ = io::stderr().lock().write_all(&text::release(bytes));
}

/// `errln!("sbatch: error: {x}")`: a line to stderr that cannot fail.
#[macro_export]
macro_rules! errln {
    ($($arg:tt)*) => { $crate::out::talk(&format!($($arg)*)) };
}
