//! The words of `sluice local`.

use super::{LocalError, Result};
use crate::getopt::{self, Operands, OptionSpec, Parsed};
use crate::help;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(PartialEq, Eq, Debug)]
pub(super) enum Command {
    Up(Up),
    Down(Place),
    Status(Place),
    Env(Place),
    Demo(Demo),
    /// Print this text.
    Help(String),
}

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The cluster's folder.
    pub(super) dir: PathBuf,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Up {
    pub(super) dir: PathBuf,
    pub(super) shape: ShapeFlags,
    pub(super) config: Option<PathBuf>,
    /// Seconds.
    pub(super) wait: Option<u64>,
    pub(super) log: String,
}

/// Each may be left out: then the cluster's own value, at first the default.
#[derive(PartialEq, Eq, Debug, Default, Clone)]
pub(super) struct ShapeFlags {
    pub(super) nodes: Option<u32>,
    pub(super) cpus: Option<u32>,
    pub(super) memory: Option<u64>,
    pub(super) gpus: Option<u32>,
    pub(super) cluster: Option<String>,
}

impl ShapeFlags {
    pub(super) fn any(&self) -> bool {
        self.nodes.is_some() || self.cpus.is_some() || self.memory.is_some() || self.gpus.is_some()
    }
}

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Demo {
    pub(super) dir: Option<PathBuf>,
}

const HELP: OptionSpec = OptionSpec::flag("help", "show this text").short('h');
const DIR: OptionSpec = OptionSpec::value("dir", "DIR", "the cluster's folder [./sluice-local]");

static PLACE: &[OptionSpec] = &[DIR, HELP];
static UP: &[OptionSpec] = &[
    DIR,
    OptionSpec::value("nodes", "N", "node daemons, 1-4096 [3]"),
    OptionSpec::value("cpus", "C", "CPUs of each node; may exceed the machine's [4]"),
    OptionSpec::value("memory", "size", "memory of each node, MiB or with K, M, G, T; may exceed the machine's [4096]"),
    OptionSpec::value("gpus", "K", "GPUs of each node, declared only [0]"),
    OptionSpec::value("cluster", "NAME", "the cluster's name, fixed at the first start [local]"),
    OptionSpec::value("config", "FILE", "use this as sluice.toml; nodes are made as above unless it declares some"),
    OptionSpec::value("wait", "SECONDS", "how long to wait until all is there [60, and more for many nodes]"),
    OptionSpec::value("log", "LEVEL", "what daemons log: error, warn, info, debug, trace, or a filter [info]"),
    HELP,
];
static DEMO: &[OptionSpec] = &[
    OptionSpec::value("dir", "DIR", "a new folder to run in, kept afterwards [a temporary one, removed at the end]"),
    HELP,
];

struct Row {
    name: &'static str,
    about: &'static str,
    options: &'static [OptionSpec],
    build: fn(&Parsed) -> Result<Command>,
}

static TABLE: &[Row] = &[
    Row { name: "up", about: "start a cluster in the background, or go on with a stopped one", options: UP, build: up },
    Row {
        name: "down",
        about: "cancel its jobs and stop its daemons; its state stays for the next `up`",
        options: PLACE,
        build: |p| Ok(Command::Down(place(p))),
    },
    Row {
        name: "status",
        about: "say what runs; exits with 1 when something does not",
        options: PLACE,
        build: |p| Ok(Command::Status(place(p))),
    },
    Row {
        name: "env",
        about: "print shell lines that put the cluster's commands first on PATH",
        options: PLACE,
        build: |p| Ok(Command::Env(place(p))),
    },
    Row {
        name: "demo",
        about: "run real jobs on a fresh cluster, show what happens, leave nothing behind",
        options: DEMO,
        build: |p| Ok(Command::Demo(Demo { dir: path(p, "dir") })),
    },
];

fn overview() -> String {
    let mut text =
        "Usage: sluice local COMMAND [OPTIONS]\n\nA whole cluster on this machine.\n\nCommands:\n".to_owned();
    for row in TABLE {
        text.push_str(&format!("  {:<8} {}\n", row.name, row.about));
    }
    text.push_str("\nOptions of a command: sluice local COMMAND --help\n");
    text
}

pub(super) fn parse(words: &[OsString]) -> Result<Command> {
    let Some((name, words)) = words.split_first() else {
        return Err(LocalError::Said(format!("no command given\n{}", overview())));
    };
    let name = name.to_string_lossy().into_owned();
    if ["help", "-h", "--help"].contains(&name.as_str()) {
        return Ok(Command::Help(overview()));
    }
    let Some(row) = TABLE.iter().find(|row| row.name == name) else {
        let meant = help::meant(&name, TABLE.iter().map(|row| row.name));
        return Err(LocalError::Said(format!("there is no command '{name}'{meant}\n{}", overview())));
    };
    let parsed = getopt::parse(row.options, words, Operands::Mixed).map_err(|e| LocalError::Said(e.to_string()))?;
    if parsed.has("help") {
        let usage = format!("sluice local {} [OPTIONS]\n\n{}", row.name, row.about);
        return Ok(Command::Help(help::help_text(&usage, row.options)));
    }
    if let Some(extra) = parsed.operands.first() {
        return Err(LocalError::Said(format!(
            "unexpected word '{}'; the folder is given with --dir",
            extra.to_string_lossy()
        )));
    }
    (row.build)(&parsed)
}

fn path(parsed: &Parsed, key: &str) -> Option<PathBuf> {
    parsed.last(key).and_then(|given| given.value.clone()).map(PathBuf::from)
}

fn dir(parsed: &Parsed) -> PathBuf {
    path(parsed, "dir").unwrap_or_else(|| PathBuf::from("sluice-local"))
}

fn place(parsed: &Parsed) -> Place {
    Place { dir: dir(parsed) }
}

fn number(parsed: &Parsed, key: &str, allowed: std::ops::RangeInclusive<u64>) -> Result<Option<u64>> {
    let Some(given) = parsed.last(key) else { return Ok(None) };
    let text = given.text();
    match text.parse().ok().filter(|n| allowed.contains(n)) {
        Some(n) => Ok(Some(n)),
        None => {
            let (least, most) = (allowed.start(), allowed.end());
            Err(LocalError::Said(format!("invalid --{key} '{text}': a number from {least} to {most}")))
        }
    }
}

fn memory(parsed: &Parsed) -> Result<Option<u64>> {
    let Some(given) = parsed.last("memory") else { return Ok(None) };
    let text = given.text();
    match sluice_model::memory::parse_memory_mb(&text).ok().filter(|mb| (1..=1 << 40).contains(mb)) {
        Some(mb) => Ok(Some(mb)),
        None => Err(LocalError::Said(format!("invalid --memory '{text}': 1 to 1048576T, as 4000 (MiB) or 4G"))),
    }
}

fn small(parsed: &Parsed, key: &str, allowed: std::ops::RangeInclusive<u32>) -> Result<Option<u32>> {
    let n = number(parsed, key, u64::from(*allowed.start())..=u64::from(*allowed.end()))?;
    // Within a range of u32.
    Ok(n.and_then(|n| u32::try_from(n).ok()))
}

fn up(parsed: &Parsed) -> Result<Command> {
    Ok(Command::Up(Up {
        dir: dir(parsed),
        shape: ShapeFlags {
            nodes: small(parsed, "nodes", 1..=4096)?,
            cpus: small(parsed, "cpus", 1..=65_536)?,
            memory: memory(parsed)?,
            gpus: small(parsed, "gpus", 0..=1024)?,
            cluster: parsed.last("cluster").map(|given| given.text()),
        },
        config: path(parsed, "config"),
        wait: number(parsed, "wait", 1..=86_400)?,
        log: parsed.last("log").map_or_else(|| "info".to_owned(), |given| given.text()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_shape_of_a_cluster_is_read() {
        let Ok(Command::Up(up)) = parse_line("up --dir d --nodes 64 --cpus=128 --memory 1000 --gpus 8 --config f")
        else {
            panic!("not understood");
        };
        let shape = ShapeFlags { nodes: Some(64), cpus: Some(128), memory: Some(1000), gpus: Some(8), cluster: None };
        assert_eq!((up.dir, up.shape, up.config), ("d".into(), shape, Some("f".into())));
    }

    #[test]
    fn errors_name_option_value_and_what_is_allowed() {
        for (line, expected) in [
            ("up --nodes 0", "invalid --nodes '0': a number from 1 to 4096"),
            ("up --cpus -4", "invalid --cpus '-4': a number from 1 to 65536"),
            ("up --memory much", "invalid --memory 'much': 1 to 1048576T, as 4000 (MiB) or 4G"),
            ("up --memory 0", "invalid --memory '0': 1 to 1048576T, as 4000 (MiB) or 4G"),
            ("up --nodez 1", "unrecognized option '--nodez'"),
            ("down here", "unexpected word 'here'; the folder is given with --dir"),
        ] {
            assert_eq!(parse_line(line).unwrap_err().to_string(), expected);
        }
        assert!(matches!(parse_line("up --memory 4G"), Ok(Command::Up(up)) if up.shape.memory == Some(4096)));
        assert!(
            parse_line("upp").unwrap_err().to_string().starts_with("there is no command 'upp'; did you mean 'up'?\n")
        );
        assert!(parse_line("sideways").unwrap_err().to_string().starts_with("there is no command 'sideways'"));
    }

    #[test]
    fn every_command_has_help() {
        for row in TABLE {
            assert!(matches!(parse_line(&format!("{} --help", row.name)), Ok(Command::Help(_))), "{}", row.name);
        }
    }
}
