//! `squeue`.

use crate::getopt::OptionSpec;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn options() -> &'static [OptionSpec] {
    &[]
}

pub fn main(_args: Vec<OsString>) -> ExitCode {
    crate::errln!("squeue: error: squeue is not available in this build");
    ExitCode::from(1)
}
