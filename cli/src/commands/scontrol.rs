//! `scontrol`: shows and changes jobs, nodes, partitions and the configuration.
//!
//! Owns the option table. Words without options are one command; none at all open the prompt. What Slurm has and this
//! cluster lacks is refused by name.

mod admin;
mod control;
mod hosts;
pub mod prompt;
mod record;
mod session;
mod show;
mod show_job;
mod show_others;
mod show_topology;
mod update;
mod update_job;
mod update_node;
mod update_partition;

use crate::getopt::OptionSpec;
use crate::viewing;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::flag("all", "show hidden partitions, too").short('a'),
    OptionSpec::value("clusters", "clusters", "this cluster by its name, or all").short('M'),
    OptionSpec::value("cluster", "clusters", "").alias_of("clusters"),
    OptionSpec::flag("details", "show more of jobs: cores, devices, exit codes").short('d'),
    OptionSpec::flag("federation", "show what the federation has: this cluster is in none"),
    OptionSpec::flag("future", "show nodes in FUTURE state: there are none").short('F'),
    OptionSpec::flag("help", "show this text").short('h'),
    OptionSpec::flag("hide", "leave out hidden partitions (the default)"),
    OptionSpec::maybe("json", "data_parser", "print JSON"),
    OptionSpec::flag("local", "only this cluster"),
    OptionSpec::flag("oneliner", "one line for each record").short('o'),
    OptionSpec::flag("quiet", "say only what is wrong").short('Q'),
    OptionSpec::flag("sibling", "").refused("clusters are not joined into federations"),
    OptionSpec::value("uid", "uid", "").short('u').refused("changes are made as the caller, whose identity is proven"),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::flag("verbose", "show when records were last changed").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
    OptionSpec::maybe("yaml", "data_parser", "").refused("YAML is not printed; use --json"),
];

pub fn options() -> &'static [OptionSpec] {
    OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    match run(&words) {
        Ok(code) | Err(code) => code,
    }
}

fn run(words: &[OsString]) -> Result<ExitCode, ExitCode> {
    let parsed = match viewing::parse("scontrol", "[COMMAND]", OPTIONS, words) {
        // The commands belong to the help.
        Err(code) if words.iter().any(|w| w == "--help" || w == "-h") => {
            return Ok(crate::out::print_or_complain("scontrol", session::HELP.as_bytes(), code));
        }
        other => other?,
    };
    let flag = |key: &str, variable: &str| parsed.has(key) || std::env::var_os(variable).is_some();
    let mut session = session::Session {
        all: flag("all", "SCONTROL_ALL") && !parsed.has("hide"),
        details: parsed.has("details"),
        one_line: parsed.has("oneliner"),
        quiet: parsed.has("quiet"),
        verbose: parsed.has("verbose"),
        json: viewing::json_request("scontrol", &parsed)?,
        words: words.to_vec(),
        client: None,
        finished: false,
    };
    let asked = parsed.last("clusters").map(|g| g.text()).or_else(|| viewing::env("SLURM_CLUSTERS"));
    if asked.is_some() {
        let ours = viewing::client("scontrol")?.config.cluster;
        viewing::clusters("scontrol", asked.as_deref(), &ours)?;
    }
    let command: Vec<String> = parsed.operands.iter().map(|w| crate::text::hold(w.as_bytes()).into_owned()).collect();
    crate::client::block_on(async {
        if command.is_empty() {
            Ok(prompt::run(&mut session).await)
        } else {
            let done = session.perform(&command).await;
            Ok(ExitCode::from(u8::from(!done)))
        }
    })
}
