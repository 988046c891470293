//! The command line of Sluice: one program under many names.
//!
//! Called as `sbatch`, `squeue` … (a link to this file) it is that command; called as `sluice` its first operand names
//! the command. Layers, from the edge inwards: words → option table (`getopt`) → settings → request → answer → view →
//! printer. Data goes to stdout, talk to stderr; a closed pipe is success. It must stay quick to start: one thread, one
//! connection, nothing done before it is needed.

mod allocation;
mod client;
mod client_config;
mod commands;
mod compat;
mod completion;
mod environ;
mod error;
mod getopt;
mod help;
mod local;
mod options;
mod out;
mod render;
mod settings;
mod signals;
mod submit;
mod text;
mod view;
mod viewing;
mod watch;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let called_as = words.next().unwrap_or_default();
    let name =
        std::path::Path::new(&called_as).file_name().unwrap_or(OsStr::new("sluice")).to_string_lossy().into_owned();
    let words: Vec<OsString> = words.collect();
    if let Some(command) = commands::find(&name) {
        return (command.main)(words);
    }
    commands::later(&name).unwrap_or_else(|| sluice(words))
}

/// `sluice COMMAND …`
fn sluice(mut words: Vec<OsString>) -> ExitCode {
    if words.is_empty() {
        crate::out::talk_bytes(overview().as_bytes());
        return ExitCode::from(255);
    }
    let first = words.remove(0).to_string_lossy().into_owned();
    if let Some(command) = commands::find(&first) {
        return (command.main)(words);
    }
    match first.as_str() {
        "local" => local::main(words),
        "config" => commands::config::main(words),
        "sim" => commands::sim::main(words),
        "why" => commands::why::main(words),
        "completion" => completion::main(words),
        "compat" => out::print_or_complain("sluice", compat::page().as_bytes(), ExitCode::SUCCESS),
        "-h" | "--help" | "help" => out::print_or_complain("sluice", overview().as_bytes(), ExitCode::SUCCESS),
        "-V" | "--version" | "version" => {
            let text = format!("sluice {}\n", env!("CARGO_PKG_VERSION"));
            out::print_or_complain("sluice", text.as_bytes(), ExitCode::SUCCESS)
        }
        other => commands::later(other).unwrap_or_else(|| {
            let others = ["local", "why", "config", "sim", "completion", "help"];
            let meant = help::meant(other, commands::COMMANDS.iter().map(|c| c.name).chain(others));
            errln!("sluice: error: there is no command '{other}'{meant}");
            errln!("Try \"sluice --help\" for more information");
            ExitCode::from(255)
        }),
    }
}

fn overview() -> String {
    let mut text = String::from("Usage: sluice COMMAND [OPTIONS]\n\nSlurm's commands, also under their own names:\n");
    for command in commands::COMMANDS {
        text.push_str(&format!("  {:12}{}\n", command.name, command.about));
    }
    text.push_str("\nOthers:\n");
    for (name, about) in [
        ("local", "run a whole cluster on this machine"),
        ("why", "why a job waits or how it ended, why a node stands idle"),
        ("config", "check a cluster configuration"),
        ("sim", "replay a workload trace under any policy"),
        ("completion", "print completion for bash, zsh or fish"),
        ("--version", "say which Sluice this is"),
    ] {
        text.push_str(&format!("  {name:12}{about}\n"));
    }
    text
}
