//! A table of jobs, tab- or comma-separated, whose first line names the columns.
//!
//! Owns the columns' names. A column is known under several (`COLUMNS`); case, spaces and a unit at the end (`_s`, `_sec`,
//! `_seconds`) don't matter. `submit` and `duration` must be there. Lines that begin with `#` are comments. Times are
//! seconds (fractions are cut off), `[D-]HH:MM:SS`, or for submit times also `YYYY-MM-DD HH:MM:SS`, taken as UTC,
//! or `@` and Unix seconds.
//! Without dates the origin is second 0; with dates it is the first submission.

use super::skipped::Cause;
use super::{LONGEST, Names, Trace, TraceJob};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Column {
    Job,
    Submit,
    Duration,
    Requested,
    Nodes,
    Cpus,
    Gpus,
    GpuType,
    Memory,
    Partition,
    User,
    Group,
}

/// What a column means, its name, and what else it may be called.
const COLUMNS: [(Column, &str, &[&str]); 12] = [
    (Column::Job, "job", &["id", "job_id", "jobid", "job_number", "number"]),
    (Column::Submit, "submit", &["submit_time", "submitted", "submission", "arrival", "arrival_time", "arrived"]),
    (Column::Duration, "duration", &["run", "run_time", "runtime", "elapsed", "elapsed_time", "service_time"]),
    (
        Column::Requested,
        "requested",
        &["requested_time", "req_time", "time_limit", "timelimit", "limit", "walltime", "wall_time", "wallclock_limit"],
    ),
    (Column::Nodes, "nodes", &["node", "node_num", "num_nodes", "nnodes", "node_count"]),
    (Column::Cpus, "cpus", &["cpu", "cpu_num", "num_cpus", "ncpus", "cpu_count", "cores", "procs", "processors"]),
    (Column::Gpus, "gpus", &["gpu", "gpu_num", "num_gpus", "ngpus", "gpu_count", "gpu_req"]),
    (Column::GpuType, "gpu_type", &["gputype", "gpu_model", "gpu_kind", "gpu_spec"]),
    (Column::Memory, "memory", &["mem", "memory_mb", "mem_mb", "requested_memory_mb"]),
    (Column::Partition, "partition", &["queue", "partition_name"]),
    (Column::User, "user", &["user_id", "userid", "uid", "user_name", "username"]),
    (Column::Group, "group", &["group_id", "gid", "account", "vc", "virtual_cluster", "project"]),
];

/// Every column with its other names, for the documentation and for messages.
pub fn known_columns() -> String {
    COLUMNS.iter().map(|(_, name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn normalised(title: &str) -> String {
    let title = title.trim().trim_matches('"').trim();
    let mut name: String =
        title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    for unit in ["_seconds", "_secs", "_sec", "_s"] {
        if let Some(short) = name.strip_suffix(unit)
            && !short.is_empty()
        {
            name = short.to_owned();
            break;
        }
    }
    name
}

fn column(title: &str) -> Option<Column> {
    let name = normalised(title);
    COLUMNS.iter().find(|(_, own, others)| *own == name || others.contains(&name.as_str())).map(|(column, ..)| *column)
}

/// The error is a line and what is wrong with it: the table as a whole can't be used.
pub(super) fn parse(text: &str, ignored: &[String]) -> Result<Trace, (u32, String)> {
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(at, line)| (at as u32 + 1, line.trim_end_matches('\r')))
        .filter(|(_, l)| !l.trim().is_empty() && !l.trim_start().starts_with('#'));
    let Some((first, header)) = lines.next() else { return Err((1, "the file is empty".to_owned())) };
    let separator = if header.contains('\t') { '\t' } else { ',' };
    let columns = columns(header, separator, ignored).map_err(|what| (first, what))?;
    let has = |wanted: Column| columns.contains(&Some(wanted));
    let mut trace = Trace { no_requests: !has(Column::Requested), ..Trace::default() };
    let (mut users, mut groups, mut types, mut partitions) =
        (Names::default(), Names::default(), Names::default(), Names::default());
    let mut dated = false;
    for (number, line) in lines {
        match row(line, separator, &columns, number) {
            Ok(row) => {
                dated |= row.dated;
                let user = users.number(row.user);
                let group = groups.number(row.group);
                let gpu_type = row.gpu_type.map(|t| types.number(t));
                let partition = row.partition.map(|p| partitions.number(p));
                trace.jobs.push(TraceJob { user, group, gpu_type, partition, ..row.job });
            }
            Err(cause) => trace.skipped.add(cause, number),
        }
    }
    if dated && let Some(first) = trace.jobs.iter().map(|j| j.submit).min() {
        trace.jobs.iter_mut().for_each(|j| j.submit -= first);
        trace.unix_start = Some(first);
    }
    trace.users = users.into_list();
    trace.groups = groups.into_list();
    trace.gpu_types = types.into_list();
    trace.partitions = partitions.into_list();
    Ok(trace)
}

fn columns(header: &str, separator: char, ignored: &[String]) -> Result<Vec<Option<Column>>, String> {
    let mut columns: Vec<Option<Column>> = Vec::new();
    for title in split(header, separator) {
        if ignored.iter().any(|name| normalised(name) == normalised(title)) {
            columns.push(None);
            continue;
        }
        let Some(column) = column(title) else {
            return Err(format!(
                "unknown column '{title}'; known are {} (leave it out with --ignore-columns)",
                known_columns()
            ));
        };
        if columns.contains(&Some(column)) {
            return Err(format!("column '{title}' says again what another column says"));
        }
        columns.push(Some(column));
    }
    for (needed, name, _) in &COLUMNS[1..3] {
        if !columns.contains(&Some(*needed)) {
            return Err(format!("no column '{name}'; known columns are {}", known_columns()));
        }
    }
    Ok(columns)
}

/// Fields, quotes taken off. A quoted field must not hold the separator.
fn split(line: &str, separator: char) -> impl Iterator<Item = &str> {
    line.split(separator).map(|f| {
        let f = f.trim();
        f.strip_prefix('"').and_then(|f| f.strip_suffix('"')).unwrap_or(f)
    })
}

struct Row<'a> {
    job: TraceJob,
    user: &'a str,
    group: &'a str,
    gpu_type: Option<&'a str>,
    partition: Option<&'a str>,
    dated: bool,
}

fn row<'a>(line: &'a str, separator: char, columns: &[Option<Column>], number: u32) -> Result<Row<'a>, Cause> {
    let mut row = Row {
        job: TraceJob {
            line: number,
            number: u64::from(number),
            submit: 0,
            run: 0,
            requested: 0,
            cpus: 0,
            widest: 0,
            nodes: 0,
            gpus: 0,
            memory_mb: 0,
            partition: None,
            gpu_type: None,
            user: 0,
            group: 0,
        },
        user: "",
        group: "",
        gpu_type: None,
        partition: None,
        dated: false,
    };
    let job = &mut row.job;
    let mut requested = None;
    let mut count = 0;
    for (column, field) in columns.iter().zip(split(line, separator)) {
        count += 1;
        let Some(column) = column else { continue };
        let name = COLUMNS.iter().find(|(c, ..)| c == column).map_or("", |(_, name, _)| name);
        let bad = || {
            if field.is_empty() {
                Cause::NoValue { field: name.into() }
            } else {
                Cause::NoNumber { field: name.into() }
            }
        };
        let amount = || match field {
            "" => Ok(0.0),
            text => text.parse::<f64>().ok().filter(|n| n.is_finite() && *n <= f64::from(u32::MAX)).ok_or_else(bad),
        };
        let count = |n: f64| if n <= 0.0 { 0 } else { n.ceil() as u32 };
        let amount = || amount().map(count);
        match column {
            // A job's name that is no number leaves the line's number.
            Column::Job => job.number = field.parse().unwrap_or(job.number),
            Column::Submit => {
                let (time, date) =
                    seconds(field).map(|t| (t, false)).or_else(|| Some((date(field)?, true))).ok_or_else(bad)?;
                if time < 0 {
                    return Err(Cause::NegativeSubmit);
                }
                (job.submit, row.dated) = (time, date);
            }
            Column::Duration => job.run = seconds(field).ok_or_else(bad)?,
            Column::Requested => requested = Some(seconds(field).ok_or_else(bad)?),
            Column::Nodes => job.nodes = amount()?,
            Column::Cpus => job.cpus = amount()?,
            Column::Gpus => job.gpus = amount()?,
            Column::GpuType => row.gpu_type = (!field.is_empty()).then_some(field),
            Column::Memory => job.memory_mb = u64::from(amount()?),
            Column::Partition => row.partition = (!field.is_empty()).then_some(field),
            Column::User => row.user = field,
            Column::Group => row.group = field,
        }
    }
    if count < columns.len() {
        return Err(Cause::MissingFields { expected: columns.len() });
    }
    if job.run <= 0 {
        return Err(Cause::NoRunTime);
    }
    job.requested = requested.unwrap_or(job.run);
    if job.requested <= 0 {
        return Err(Cause::NoRequestedTime);
    }
    job.run = job.run.min(job.requested);
    for (value, field) in [(job.submit, "submit"), (job.run, "duration"), (job.requested, "requested")] {
        if value > LONGEST {
            return Err(Cause::OutOfRange { field: field.to_owned() });
        }
    }
    let asks_cpus = columns.contains(&Some(Column::Cpus));
    if job.cpus == 0 && job.gpus == 0 && job.nodes == 0 && (asks_cpus || columns.contains(&Some(Column::Gpus))) {
        return Err(Cause::NoProcessors);
    }
    job.cpus = job.cpus.max(job.nodes).max(1);
    job.widest = job.cpus;
    Ok(row)
}

/// Whole seconds: a number, or `[D-]HH:MM:SS`.
fn seconds(text: &str) -> Option<i64> {
    if let Ok(n) = text.parse::<f64>() {
        return (n.is_finite() && n.abs() < 1e15).then_some(n.floor() as i64);
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (days.parse::<u32>().ok()?, clock),
        None => (0, text),
    };
    let parts: Vec<u32> = clock.split(':').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let [h, m, s] = parts[..] else { return None };
    Some(i64::from(days) * 86_400 + i64::from(h) * 3600 + i64::from(m) * 60 + i64::from(s))
}

/// `YYYY-MM-DD HH:MM:SS` (or with `T`), UTC, or `@` and Unix seconds; as Unix seconds.
fn date(text: &str) -> Option<i64> {
    if let Some(unix) = text.strip_prefix('@') {
        return unix.parse().ok();
    }
    let (day, clock) = text.trim_end_matches('Z').split_once([' ', 'T'])?;
    let parts: Vec<i64> = day.split('-').map(|p| p.parse().ok()).collect::<Option<_>>()?;
    let [year, month, day] = parts[..] else { return None };
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar, years counted from March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    Some(days * 86_400 + seconds(clock)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_known_under_several_names() {
        for (title, expected) in [
            ("submit_s", Column::Submit),
            ("Submit Time", Column::Submit),
            ("duration_s", Column::Duration),
            ("vc", Column::Group),
            ("GPUs", Column::Gpus),
            ("gpu type", Column::GpuType),
            ("num-cpus", Column::Cpus),
        ] {
            assert_eq!(column(title), Some(expected), "{title}");
        }
        assert_eq!(column("colour"), None);
    }

    #[test]
    fn times_are_seconds_or_clocks_or_dates() {
        assert_eq!(seconds("12.9"), Some(12));
        assert_eq!(seconds("1-02:03:04"), Some(86_400 + 7384));
        assert_eq!(seconds("x"), None);
        assert_eq!(date("1970-01-02 00:00:01"), Some(86_401));
        assert_eq!(date("2020-03-01T00:00:00Z"), Some(1_583_020_800));
        assert_eq!(date("2020-13-01 00:00:00"), None);
    }
}
