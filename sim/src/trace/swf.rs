//! Standard Workload Format (Chapin et al. 1999; the Parallel Workloads Archive's definition, version 2): comments begin
//! with `;` and carry the header, each job is a line of 18 numbers, -1 where nothing is known.
//!
//! Kept are jobs with a run time and a requested time above zero, submitted at or after the origin, with requested or
//! else allocated processors; a run ends at its requested time at the latest.

use super::skipped::Cause;
use super::{LONGEST, Names, Trace, TraceJob};

const FIELDS: usize = 18;

// Positions of what is used (the archive counts from 1).
const NUMBER: usize = 0;
const SUBMIT: usize = 1;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const REQUESTED: usize = 7;
const REQUESTED_TIME: usize = 8;
const USER: usize = 11;
const GROUP: usize = 12;

const FIELD_NAMES: [(usize, &str); 8] = [
    (NUMBER, "job number"),
    (SUBMIT, "submit time"),
    (RUN, "run time"),
    (ALLOCATED, "allocated processors"),
    (REQUESTED, "requested processors"),
    (REQUESTED_TIME, "requested time"),
    (USER, "user"),
    (GROUP, "group"),
];

pub(super) fn parse(text: &str) -> Trace {
    let mut trace = Trace::default();
    let (mut users, mut groups) = (Names::default(), Names::default());
    let mut max_nodes = None;
    for (at, line) in text.lines().enumerate() {
        let number = at as u32 + 1;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix(';') {
            if let Some((key, value)) = comment.split_once(':') {
                let value = value.split_whitespace().next().unwrap_or_default();
                match key.trim().to_ascii_lowercase().as_str() {
                    "maxprocs" => trace.max_procs = value.parse().ok().filter(|n| *n > 0),
                    "maxnodes" => max_nodes = value.parse().ok().filter(|n| *n > 0),
                    "unixstarttime" => trace.unix_start = value.parse().ok().filter(|n| *n >= 0),
                    _ => {}
                }
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        match job(line, number) {
            Ok(parsed) => {
                let user = users.number(&parsed.user.to_string());
                let group = groups.number(&parsed.group.to_string());
                trace.jobs.push(TraceJob { user, group, ..parsed.job });
            }
            Err(cause) => trace.skipped.add(cause, number),
        }
    }
    trace.max_procs = trace.max_procs.or(max_nodes);
    trace.users = users.into_list();
    trace.groups = groups.into_list();
    trace
}

struct Parsed {
    job: TraceJob,
    user: i64,
    group: i64,
}

fn job(line: &str, number: u32) -> Result<Parsed, Cause> {
    let mut fields = [0i64; FIELDS];
    let mut count = 0;
    for (at, word) in line.split_ascii_whitespace().enumerate().take(FIELDS) {
        // Times and processor averages may be fractions; fields that are not used may be anything.
        fields[at] = match word.parse::<i64>() {
            Ok(n) => n,
            Err(_) => match word.parse::<f64>() {
                Ok(n) if n.is_finite() => n.floor() as i64,
                _ => match FIELD_NAMES.iter().find(|(field, _)| *field == at) {
                    Some((_, name)) => return Err(Cause::NoNumber { field: (*name).to_owned() }),
                    None => -1,
                },
            },
        };
        count = at + 1;
    }
    if count < FIELDS {
        return Err(Cause::MissingFields { expected: FIELDS });
    }
    if fields[SUBMIT] < 0 {
        return Err(Cause::NegativeSubmit);
    }
    let cpus = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
    let (requested, allocated) = (cpus(fields[REQUESTED]), cpus(fields[ALLOCATED]));
    if requested == 0 && allocated == 0 {
        return Err(Cause::NoProcessors);
    }
    if fields[RUN] <= 0 {
        return Err(Cause::NoRunTime);
    }
    if fields[REQUESTED_TIME] <= 0 {
        return Err(Cause::NoRequestedTime);
    }
    let long = [(SUBMIT, "submit time"), (RUN, "run time"), (REQUESTED_TIME, "requested time")];
    if let Some((_, name)) = long.iter().find(|(at, _)| fields[*at] > LONGEST) {
        return Err(Cause::OutOfRange { field: (*name).to_owned() });
    }
    let job = TraceJob {
        line: number,
        number: u64::try_from(fields[NUMBER]).unwrap_or(0),
        submit: fields[SUBMIT],
        run: fields[RUN].min(fields[REQUESTED_TIME]),
        requested: fields[REQUESTED_TIME],
        cpus: if requested > 0 { requested } else { allocated },
        widest: requested.max(allocated),
        nodes: 0,
        gpus: 0,
        memory_mb: 0,
        partition: None,
        gpu_type: None,
        user: 0,
        group: 0,
    };
    Ok(Parsed { job, user: fields[USER], group: fields[GROUP] })
}
