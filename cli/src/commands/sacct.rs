//! `sacct`: jobs and steps, running and finished, with what they asked for and used.
//!
//! Owns the option table and the flow: settings → request → records → rows. The controller answers from its live state
//! and its history alike; there is no other source.

mod fetch;
mod fields;
mod json;
mod json_steps;
mod select;
mod settings;
mod steps;
mod units;
mod usage;
mod values;
mod window;

#[cfg(test)]
mod tests;

pub(super) use window::{ended, started};

use crate::getopt::OptionSpec;
use crate::view::clock::Clock;
use crate::viewing;
use std::ffi::OsString;
use std::process::ExitCode;

const COMPLETION: &str = "there is no job completion log apart from the accounting";

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::value("accounts", "accounts", "jobs of these accounts").short('A'),
    OptionSpec::flag("allclusters", "jobs of all clusters: there is this one").short('L'),
    OptionSpec::flag("allocations", "jobs only, without their steps").short('X'),
    OptionSpec::flag("allusers", "jobs of all users").short('a'),
    OptionSpec::flag("array", "one line for each waiting task of an array"),
    OptionSpec::value("associations", "ids", "").short('x').refused("associations come with a later release"),
    OptionSpec::flag("batch-script", "print the batch scripts of the jobs named by --jobs").short('B'),
    OptionSpec::flag("brief", "job id, state and exit code").short('b'),
    OptionSpec::value("clusters", "clusters", "this cluster by its name, or all").short('M'),
    OptionSpec::flag("completion", "").short('c').refused(COMPLETION),
    OptionSpec::value("constraints", "features", "jobs that asked for all of these features").short('C'),
    OptionSpec::value("delimiter", "characters", "between the values of --parsable and --parsable2"),
    OptionSpec::flag("duplicates", "every run of a job that went back to the queue").short('D'),
    OptionSpec::value("endtime", "time", "jobs that were there before this time").short('E'),
    OptionSpec::flag("env-vars", "").refused("the environment of a job is not shown, it may hold secrets"),
    OptionSpec::flag("expand-patterns", "file names with their patterns expanded"),
    OptionSpec::flag("federation", "jobs of the federation: this cluster is in none"),
    OptionSpec::value("file", "file", "").short('f').refused(COMPLETION),
    OptionSpec::value("flags", "flags", "jobs with these flags: SchedMain, SchedBackfill").short('F'),
    OptionSpec::value("format", "fields", "columns, as name[%[-]width],…").short('o'),
    OptionSpec::value("group", "groups", "jobs of these groups").short('g'),
    OptionSpec::value("gid", "groups", "").alias_of("group"),
    OptionSpec::flag("help", "show this text").short('h'),
    OptionSpec::flag("helpformat", "list the fields of --format").short('e'),
    OptionSpec::value("jobs", "ids", "these jobs, arrays, tasks or steps").short('j'),
    OptionSpec::maybe("json", "data_parser", "print JSON"),
    OptionSpec::flag("local", "only this cluster"),
    OptionSpec::flag("long", "many columns").short('l'),
    OptionSpec::value("name", "names", "jobs of these names"),
    OptionSpec::value("ncpus", "min[-max]", "jobs that ran on so many CPUs").short('I'),
    OptionSpec::value("nnodes", "min[-max]", "jobs that ran on so many nodes").short('i'),
    OptionSpec::flag("noconvert", "amounts in the unit that they are stored in"),
    OptionSpec::value("nodelist", "hosts", "jobs that ran on any of these nodes").short('N'),
    OptionSpec::flag("noheader", "no header lines").short('n'),
    OptionSpec::flag("parsable", "values between delimiters, with one at the end").short('p'),
    OptionSpec::flag("parsable2", "values between delimiters, with none at the end").short('P'),
    OptionSpec::value("partition", "names", "jobs in these partitions").short('r'),
    OptionSpec::value("qos", "names", "jobs of these QOS").short('q'),
    OptionSpec::value("reason", "reasons", "jobs that wait for one of these reasons").short('R'),
    OptionSpec::value("starttime", "time", "jobs that were there after this time").short('S'),
    OptionSpec::value("state", "states", "jobs that were in one of these states in the time window").short('s'),
    OptionSpec::value("timelimit-max", "time", "with --timelimit-min: the end of the range").short('K'),
    OptionSpec::value("timelimit-min", "time", "jobs with this time limit").short('k'),
    OptionSpec::flag("truncate", "cut start and end to the time window").short('T'),
    OptionSpec::value("units", "K|M|G|T|P", "amounts in this unit"),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::flag("use-local-uid", "numbers of users as this host has them"),
    OptionSpec::value("user", "users", "jobs of these users").short('u'),
    OptionSpec::value("uid", "users", "").alias_of("user"),
    OptionSpec::flag("verbose", "say which time window is used").short('v'),
    OptionSpec::flag("version", "say which Slurm this behaves like").short('V'),
    OptionSpec::maybe("whole-hetjob", "yes|no", "").refused("there are no heterogeneous jobs"),
    OptionSpec::value("wckeys", "keys", "jobs of these workload characterization keys").short('W'),
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
    let parsed = viewing::parse("sacct", "", OPTIONS, words)?;
    if parsed.has("helpformat") {
        return Ok(crate::out::print_or_complain("sacct", fields::help_text().as_bytes(), ExitCode::SUCCESS));
    }
    let clock = Clock::from_environment(sluice_identity::now_ms());
    let settings = settings::read(&parsed, &clock)?;
    let json = viewing::json_request("sacct", &parsed)?;
    let mut client = viewing::client("sacct")?;
    viewing::clusters("sacct", settings.clusters.as_deref(), &client.config.cluster.clone())?;
    if parsed.has("verbose") {
        crate::errln!("sacct: {}", settings.window.describe(&clock));
    }
    let text = crate::client::block_on(async {
        match json {
            _ if settings.batch_script => fetch::scripts(&mut client, &settings).await,
            Some(style) => fetch::json(&mut client, &settings, words, style).await,
            None => fetch::table(&mut client, &settings).await,
        }
    })?;
    Ok(crate::out::print_or_complain("sacct", &text, ExitCode::SUCCESS))
}
