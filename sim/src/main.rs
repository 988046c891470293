//! `sluice-sim`: see `sluice_sim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sluice_sim::run::main(std::env::args_os())
}
