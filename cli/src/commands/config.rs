//! `sluice config check [FILE]`: reads a cluster configuration and says all that is wrong with it.
//!
//! Without a file it is the one beside the client configuration: the bound cluster's, else /etc/sluice/sluice.toml. Needs
//! no running cluster. Every problem is one line `FILE:LINE: KEY: MESSAGE` on stderr.

use crate::{client_config, errln, out};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

const NAME: &str = "sluice config";
const USAGE: &str = "Usage: sluice config check [FILE...]\n";

pub fn main(words: Vec<OsString>) -> ExitCode {
    match words.split_first() {
        Some((verb, [])) if verb == "check" => check_default(),
        Some((verb, files)) if verb == "check" => {
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

/// The first cluster configuration that lies where client configurations are looked for.
fn check_default() -> ExitCode {
    let places: Vec<PathBuf> = client_config::candidates().iter().map(|p| p.with_file_name("sluice.toml")).collect();
    match places.iter().find(|p| p.exists()) {
        Some(file) => ExitCode::from(u8::from(!check(file.as_os_str()))),
        None => {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            errln!("{NAME}: error: no cluster configuration; looked at {}", places.join(", "));
            ExitCode::from(1)
        }
    }
}

fn check(file: &OsStr) -> bool {
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
            let plural = if problems.len() == 1 { "" } else { "s" };
            errln!("{NAME}: error: {name}: {} problem{plural}", problems.len());
            false
        }
    }
}
