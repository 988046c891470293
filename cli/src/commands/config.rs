//! `sluice config check FILE`: reads a cluster configuration and says all that is wrong with it.

use std::ffi::OsString;
use std::process::ExitCode;

pub fn main(args: Vec<OsString>) -> ExitCode {
    let _ = args;
    crate::errln!("usage: sluice config check FILE");
    ExitCode::from(255)
}
