//! `sluice local`: a whole cluster on this machine.

use std::ffi::OsString;
use std::process::ExitCode;

pub fn main(_args: Vec<OsString>) -> ExitCode {
    crate::errln!("sluice local: error: not available in this build");
    ExitCode::from(1)
}
