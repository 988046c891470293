//! `squeue`: jobs and steps in the queue.
//!
//! Owns the option table and the flow: settings → request → records → rows. Rows go through one buffer; the detailed
//! records are asked for only when a column, a filter or the sort order needs them.

mod fetch;
mod fields;
mod lines;
mod rows;
mod settings;
mod sort;
mod steps;
mod values;

use crate::getopt::OptionSpec;
use crate::viewing;
use std::ffi::OsString;
use std::process::ExitCode;

const FEDERATION: &str = "clusters are not joined into federations";

static OPTIONS: &[OptionSpec] = &[
    OptionSpec::value("account", "accounts", "jobs of these accounts").short('A'),
    OptionSpec::flag("all", "show jobs in hidden partitions, too").short('a'),
    OptionSpec::flag("array", "one line for each task of an array").short('r'),
    OptionSpec::flag("array-unique", "").alias_of("array"),
    OptionSpec::value("clusters", "clusters", "this cluster by its name, or all").short('M'),
    OptionSpec::value("cluster", "clusters", "").alias_of("clusters"),
    OptionSpec::flag("expand-patterns", "file names are always shown with their patterns expanded"),
    OptionSpec::flag("federation", "show what the federation has: this cluster is in none"),
    OptionSpec::value("format", "format", "columns, as %[[.]width]letter").short('o'),
    OptionSpec::value("Format", "names", "columns, as name[:[.]width]").short('O'),
    OptionSpec::flag("help", "show this text"),
    OptionSpec::flag("hide", "leave out hidden partitions (the default)"),
    OptionSpec::value("iterate", "seconds", "repeat at this interval").short('i'),
    OptionSpec::maybe("jobs", "ids", "these jobs, arrays or tasks").short('j'),
    OptionSpec::maybe("json", "data_parser", "print JSON"),
    OptionSpec::value("licenses", "names", "jobs that ask for one of these licences").short('L'),
    OptionSpec::flag("local", "only this cluster"),
    OptionSpec::flag("long", "more columns").short('l'),
    OptionSpec::flag("me", "only my jobs"),
    OptionSpec::value("name", "names", "jobs of these names").short('n'),
    OptionSpec::flag("noconvert", "memory in the unit it was given in"),
    OptionSpec::value("nodelist", "hosts", "jobs on these nodes").short('w'),
    OptionSpec::value("nodes", "hosts", "").alias_of("nodelist"),
    OptionSpec::flag("noheader", "no header line").short('h'),
    OptionSpec::flag("notme", "only jobs of others"),
    OptionSpec::flag("only-job-state", "only ids and states"),
    OptionSpec::value("partition", "names", "jobs in these partitions").short('p'),
    OptionSpec::flag("priority", "waiting jobs once for each partition, by its priority").short('P'),
    OptionSpec::value("qos", "names", "jobs of these QOS").short('q'),
    OptionSpec::value("reservation", "name", "jobs of this reservation").short('R'),
    OptionSpec::value("running-over", "time", "jobs that have run for longer"),
    OptionSpec::value("running-under", "time", "jobs that have run for less"),
    OptionSpec::flag("sibling", "").refused(FEDERATION),
    OptionSpec::value("sort", "letters", "order, as [+|-]letter[,…]").short('S'),
    OptionSpec::flag("start", "expected start times of waiting jobs"),
    OptionSpec::value("states", "states", "jobs in these states, or all").short('t'),
    OptionSpec::maybe("steps", "ids", "steps instead of jobs").short('s'),
    OptionSpec::flag("usage", "show the options in short"),
    OptionSpec::value("user", "users", "jobs of these users").short('u'),
    OptionSpec::value("users", "users", "").alias_of("user"),
    OptionSpec::flag("verbose", "say what is asked for").short('v'),
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
    let parsed = viewing::parse("squeue", "", OPTIONS, words)?;
    let settings = settings::read(&parsed)?;
    let json = viewing::json_request("squeue", &parsed)?;
    let mut client = viewing::client("squeue")?;
    let headed = viewing::clusters("squeue", settings.clusters.as_deref(), &client.config.cluster.clone())?;
    if parsed.count("verbose") > 0 {
        settings.talk();
    }
    crate::client::block_on(async {
        loop {
            let text = match json {
                Some(style) => fetch::json(&mut client, &settings, words, style).await?,
                None => fetch::table(&mut client, &settings, headed).await?,
            };
            let code = crate::out::print_or_complain("squeue", &text, ExitCode::SUCCESS);
            let Some(pause) = settings.iterate else { return Ok(code) };
            tokio::time::sleep(pause).await;
            crate::out::print_or_complain("squeue", b"\n", code);
        }
    })
}
