//! What one invocation of `sacct` was asked for: options over environment over defaults.
//!
//! Source: sacct(1), options and "ENVIRONMENT VARIABLES"; messages as Slurm was seen to word them.

use super::fields::{self, Field};
use super::units::Units;
use super::window::{self, Edge, Window};
use crate::getopt::Parsed;
use crate::render::table::{Column, Form};
use crate::view::clock::Clock;
use crate::view::job as facts;
use crate::viewing::{self, env};
use sluice_model::JobState;
use sluice_model::job_target::{self, JobTarget};
use sluice_model::time;
use std::process::ExitCode;

/// From, to; both included.
pub type Range = (u32, u32);

pub struct Settings {
    pub columns: Vec<Column<Field>>,
    pub form: Form,
    pub header: bool,
    pub units: Units,
    pub bitstr_len: usize,
    pub allocations_only: bool,
    pub split_arrays: bool,
    pub expand_patterns: bool,
    pub local_uid: bool,
    pub truncate: bool,
    pub duplicates: bool,
    pub batch_script: bool,
    pub window: Window,
    pub states: Vec<JobState>,
    /// States were asked for, even if no job here is ever in one of them.
    pub by_state: bool,
    pub jobs: Vec<JobTarget>,
    /// Empty: of all.
    pub users: Vec<String>,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
    pub names: Vec<String>,
    pub nodes: Vec<String>,
    pub qos: Vec<String>,
    pub groups: Vec<u32>,
    pub wckeys: Vec<String>,
    pub constraints: Vec<String>,
    pub reasons: Vec<String>,
    pub flags: Vec<&'static str>,
    pub nnodes: Option<Range>,
    pub ncpus: Option<Range>,
    /// Minutes.
    pub limit: Option<Range>,
    pub clusters: Option<String>,
}

impl Settings {
    /// Nothing that is shown or asked for needs more than a brief record.
    pub fn is_brief(&self) -> bool {
        self.allocations_only
            && self.wckeys.is_empty()
            && self.constraints.is_empty()
            && self.columns.iter().all(|column| column.field.is_brief())
    }
}

fn fail(message: &str) -> ExitCode {
    crate::errln!("sacct: error: {message}");
    ExitCode::from(1)
}

fn fatal(message: &str) -> ExitCode {
    crate::errln!("sacct: fatal: {message}");
    ExitCode::from(1)
}

pub fn read(parsed: &Parsed, clock: &Clock) -> Result<Settings, ExitCode> {
    if !parsed.operands.is_empty() {
        crate::errln!("sacct: error: Unknown arguments:");
        for operand in &parsed.operands {
            crate::errln!("sacct: error:  {}", operand.to_string_lossy());
        }
        return Err(ExitCode::from(1));
    }
    let list = |key: &str| parsed.all(key).flat_map(|g| viewing::list(&g.text())).collect::<Vec<_>>();
    let jobs = targets(parsed)?;
    let batch_script = parsed.has("batch-script");
    if batch_script && jobs.is_empty() {
        return Err(fatal("When requesting job scripts you must also request specific jobs with the '-j' option."));
    }
    let by_state = parsed.has("state");
    let states = states(&list("state"))?;
    let edge = |key: &str| parsed.last(key).map(|g| when(&g.text(), clock)).transpose();
    let window = window::defaults(edge("starttime")?, edge("endtime")?, !jobs.is_empty(), by_state, midnight(clock));
    window.check(clock).map_err(|message| fail(&message))?;
    Ok(Settings {
        columns: columns(parsed)?,
        form: form(parsed),
        header: !parsed.has("noheader"),
        units: units(parsed)?,
        bitstr_len: facts::bitstr_len(env("SLURM_BITSTR_LEN").as_deref()),
        allocations_only: parsed.has("allocations"),
        split_arrays: parsed.has("array"),
        expand_patterns: parsed.has("expand-patterns"),
        local_uid: parsed.has("use-local-uid"),
        truncate: parsed.has("truncate"),
        duplicates: parsed.has("duplicates"),
        batch_script,
        window,
        states,
        by_state,
        users: users(parsed, &list("user"), !jobs.is_empty())?,
        jobs,
        accounts: list("accounts"),
        partitions: list("partition"),
        names: list("name"),
        nodes: nodes(parsed)?,
        qos: list("qos"),
        groups: groups(&list("group"))?,
        wckeys: list("wckeys"),
        constraints: list("constraints"),
        reasons: list("reason"),
        flags: flags(&list("flags"))?,
        nnodes: range(parsed, "nnodes", "node")?,
        ncpus: range(parsed, "ncpus", "cpu")?,
        limit: limits(parsed)?,
        clusters: parsed.last("clusters").map(|g| g.text()),
    })
}

/// `-o`, `-b` and `-l` add up in the order given; without any, `SACCT_FORMAT` and then the default.
fn columns(parsed: &Parsed) -> Result<Vec<Column<Field>>, ExitCode> {
    let asked = parsed.options.iter().filter_map(|option| match option.key() {
        "format" => Some(option.text()),
        "brief" => Some(fields::BRIEF.to_owned()),
        "long" => Some(fields::LONG.to_owned()),
        _ => None,
    });
    let mut text = asked.collect::<Vec<_>>().join(",");
    if text.is_empty() {
        text = env("SACCT_FORMAT").unwrap_or_else(|| fields::DEFAULT.to_owned());
    }
    fields::parse(&text).map_err(|message| fail(&message))
}

fn form(parsed: &Parsed) -> Form {
    let last = parsed.options.iter().rev().find(|o| matches!(o.key(), "parsable" | "parsable2"));
    let delimiter = parsed.last("delimiter").map_or_else(|| "|".to_owned(), |g| g.text());
    match last {
        None => Form::Fixed,
        Some(option) => Form::Delimited { delimiter, trailing: option.key() == "parsable" },
    }
}

fn units(parsed: &Parsed) -> Result<Units, ExitCode> {
    match parsed.last("units") {
        Some(given) => Units::parse(&given.text()).ok_or_else(|| {
            crate::errln!("sacct: error: Invalid unit type '{}'. Possible options are 'KMGTP'", given.text());
            fatal("Invalid unit type")
        }),
        None if parsed.has("noconvert") => Ok(Units::Stored),
        None => Ok(Units::Auto),
    }
}

fn when(text: &str, clock: &Clock) -> Result<Edge, ExitCode> {
    if text.trim().eq_ignore_ascii_case("now") {
        return Ok(Edge::Now);
    }
    time::parse_when_past(text, clock.now, &clock.zone).map(|t| Edge::At(t.secs())).map_err(|_| {
        crate::errln!("Invalid time specification (pos=0): {text}");
        ExitCode::from(1)
    })
}

fn midnight(clock: &Clock) -> i64 {
    time::parse_when_past("today", clock.now, &clock.zone).map_or(0, |t| t.secs())
}

fn targets(parsed: &Parsed) -> Result<Vec<JobTarget>, ExitCode> {
    let mut targets = Vec::new();
    for given in parsed.all("jobs") {
        let more = job_target::parse_list(&given.text());
        targets.extend(more.map_err(|error| fatal(&format!("Bad job/step specified: {}", error.value)))?);
    }
    Ok(targets)
}

/// States that Slurm knows and no job here is ever recorded in.
const NEVER: &[&str] = &["RESIZING", "RS", "REVOKED", "RV", "CONFIGURING", "CF", "LAUNCH_FAILED", "LF"];

fn states(words: &[String]) -> Result<Vec<JobState>, ExitCode> {
    let mut states = Vec::new();
    for word in words {
        match JobState::parse(word) {
            Some(state) => states.push(state),
            None if NEVER.iter().any(|n| n.eq_ignore_ascii_case(word)) => {}
            None => return Err(fatal(&format!("unrecognized job state value '{word}'"))),
        }
    }
    Ok(states)
}

/// The caller's own jobs, unless users, all users or certain jobs are asked for, or the caller is root.
fn users(parsed: &Parsed, asked: &[String], by_id: bool) -> Result<Vec<String>, ExitCode> {
    if parsed.has("allusers") {
        return Ok(Vec::new());
    }
    if asked.is_empty() {
        let me = viewing::me();
        return Ok(if by_id || me.uid == 0 { Vec::new() } else { vec![me.uid.to_string()] });
    }
    let (known, unknown) = viewing::users(asked);
    match unknown.first() {
        Some(user) => Err(fail(&format!("Invalid user id: {user}"))),
        None => Ok(known),
    }
}

fn groups(asked: &[String]) -> Result<Vec<u32>, ExitCode> {
    asked
        .iter()
        .map(|name| {
            let by_name = || nix::unistd::Group::from_name(name).ok().flatten().map(|g| g.gid.as_raw());
            name.parse().ok().or_else(by_name).ok_or_else(|| fail(&format!("Invalid group id: {name}")))
        })
        .collect()
}

fn nodes(parsed: &Parsed) -> Result<Vec<String>, ExitCode> {
    let mut names = Vec::new();
    for given in parsed.all("nodelist") {
        let text = given.text();
        names.extend(sluice_model::hostlist::expand(&text).map_err(|_| fail(&format!("Invalid node name {text}")))?);
    }
    Ok(names)
}

/// The flags that are shown for a job (`Flags`).
const FLAGS: &[&str] = &["SchedSubmit", "SchedMain", "SchedBackfill", "StartReceived"];

fn flags(asked: &[String]) -> Result<Vec<&'static str>, ExitCode> {
    asked
        .iter()
        .map(|word| {
            let known = FLAGS.iter().find(|f| f.eq_ignore_ascii_case(word));
            known.copied().ok_or_else(|| fail(&format!("Invalid job flag {word}")))
        })
        .collect()
}

fn range(parsed: &Parsed, key: &str, what: &str) -> Result<Option<Range>, ExitCode> {
    let Some(given) = parsed.last(key) else { return Ok(None) };
    let text = given.text();
    let number = |part: &str| {
        let digits = part.bytes().all(|b| b.is_ascii_digit());
        let number = part.parse::<u32>().ok().filter(|_| digits);
        number.ok_or_else(|| fail(&format!("Invalid numeric value \"{part}\" for requested {what} range.")))
    };
    let (min, max) = match text.split_once('-') {
        Some((min, max)) => (number(min)?, number(max)?),
        None => (number(&text)?, number(&text)?),
    };
    if min > max {
        return Err(fail(&format!("--{key}={text}: the range ends before it begins")));
    }
    Ok(Some((min, max)))
}

/// `-k` alone: exactly that limit; with `-K`: a range; `-K` alone: nothing.
fn limits(parsed: &Parsed) -> Result<Option<Range>, ExitCode> {
    let minutes = |key: &str| -> Result<Option<u32>, ExitCode> {
        let Some(given) = parsed.last(key) else { return Ok(None) };
        match time::parse_time_limit(&given.text()) {
            Ok(time::TimeLimit::Minutes(minutes)) => Ok(Some(minutes)),
            Ok(time::TimeLimit::Unlimited) => Ok(Some(u32::MAX)),
            Err(_) => Err(fatal("Invalid time limit specification")),
        }
    };
    let (min, max) = (minutes("timelimit-min")?, minutes("timelimit-max")?);
    Ok(min.map(|min| (min, max.unwrap_or(min))))
}
