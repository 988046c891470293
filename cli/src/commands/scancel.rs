//! `scancel`.

use crate::getopt::OptionSpec;
use std::ffi::OsString;
use std::process::ExitCode;

pub fn options() -> &'static [OptionSpec] {
    &[]
}

pub fn main(_args: Vec<OsString>) -> ExitCode {
    crate::errln!("scancel: error: scancel is not available in this build");
    ExitCode::from(1)
}
