//! `sluice config check FILE`: reads a cluster configuration and says all that is wrong with it.
//!
//! Needs no running cluster. Every problem is one line `FILE:LINE: KEY: MESSAGE` on stderr.

use crate::{errln, out};
use std::ffi::OsString;
use std::process::ExitCode;

const NAME: &str = "sluice config";
const USAGE: &str = "Usage: sluice config check FILE...\n";

pub fn main(words: Vec<OsString>) -> ExitCode {
    match words.split_first() {
        Some((verb, files)) if verb == "check" && !files.is_empty() => {
            let bad = files.iter().filter(|file| !check(file)).count();
            ExitCode::from(u8::from(bad > 0))
        }
        Some((verb, _)) if verb == "--help" || verb == "-h" => {
            out::print_or_complain(NAME, USAGE.as_bytes(), ExitCode::SUCCESS)
        }
        _ => {
            out::talk_bytes(USAGE.as_bytes());
            ExitCode::from(255)
        }
    }
}

fn check(file: &OsString) -> bool {
    let name = file.to_string_lossy();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) => {
            errln!("{NAME}: error: {name}: {e}");
            return false;
        }
    };
    match sluice_model::config::parse(&text, &name) {
        Ok(config) => {
            let line = format!(
                "{name}: cluster {}, {} nodes, {} partitions: good\n",
                config.cluster_name,
                config.nodes.len(),
                config.partitions.len()
            );
            out::print_or_complain(NAME, line.as_bytes(), ExitCode::SUCCESS) == ExitCode::SUCCESS
        }
        Err(problems) => {
            problems.iter().for_each(|problem| errln!("{problem}"));
            errln!("{NAME}: error: {name}: {} problems", problems.len());
            false
        }
    }
}
