//! `sluice sim --from-history [--since WHEN] [--until WHEN] …`: the cluster's own jobs as a trace.
//!
//! Owns the trace's columns for jobs that ran (docs/simulator.md), and the options that choose them. Jobs are those that the
//! controller shows to this user, as `sacct --allusers` would.

use super::NAME;
use crate::client::{Client, Controller, Retry, block_on};
use crate::commands::sacct;
use crate::errln;
use crate::error::{CallError, print_call_error};
use crate::view::clock::{Clock, limit};
use nix::sys::memfd::{MFdFlags, memfd_create};
use sluice_model::TimeLimit;
use sluice_proto::v1;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::process::ExitCode;

/// What a job without a limit is taken to have asked for, in seconds.
const UNLIMITED: u64 = 365 * 86_400;

/// `--from-history` and what belongs to it, taken out of the words.
#[derive(Default)]
struct Asked {
    history: bool,
    since: Option<String>,
    until: Option<String>,
    rest: Vec<OsString>,
}

/// The words for the simulator: unchanged without `--from-history`, else with the trace and, unless one is given, the
/// cluster's configuration.
pub(super) fn asked_for(words: Vec<OsString>) -> Result<Vec<OsString>, ExitCode> {
    let asked = sort_out(words).map_err(|message| complain(&message))?;
    if !asked.history {
        return Ok(asked.rest);
    }
    let clock = Clock::from_environment(sluice_identity::now_ms());
    let when = |option: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => sluice_model::time::parse_when_past(text, clock.now, &clock.zone)
            .map(|t| Some(t.0))
            .map_err(|error| complain(&format!("{option}: {error}"))),
    };
    let (start, end) = (when("--since", &asked.since)?, when("--until", &asked.until)?);
    let has = |name: &str| {
        asked.rest.iter().any(|w| w.to_str().is_some_and(|w| w == name || w.starts_with(&format!("{name}="))))
    };
    let failed = |error: CallError| {
        print_call_error(NAME, "", &error);
        ExitCode::FAILURE
    };
    let (jobs, config, cluster) = block_on(async {
        let mut client = Client::new()?;
        let request = v1::HistoryRequest { start, end, ..v1::HistoryRequest::default() };
        let jobs = client.list_history(request).await?.jobs;
        let config = client.call(Retry::Read, async |mut c: Controller| c.get_config(v1::Empty {}).await).await?;
        Ok((jobs, config.toml, client.config.cluster))
    })
    .map_err(failed)?;
    let mut words = asked.rest.clone();
    let file = |name, text: &str| in_memory(name, text).map_err(|e| complain(&format!("a file in memory: {e}")));
    let (trace, count) = trace(&jobs, start, end);
    if count == 0 {
        return Err(complain("no job of that time has run"));
    }
    words.extend([
        "--trace".into(),
        file("history", &trace)?,
        "--title".into(),
        format!("history of {cluster}").into(),
    ]);
    if !has("--cluster") && !has("--procs") {
        words.extend(["--cluster".into(), file("cluster", &config)?]);
    }
    Ok(words)
}

fn complain(message: &str) -> ExitCode {
    errln!("{NAME}: error: {message}");
    ExitCode::FAILURE
}

fn sort_out(words: Vec<OsString>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let mut value = |name: &str| -> Option<Result<String, String>> {
            if text == name {
                let next = words.next().and_then(|v| v.into_string().ok());
                return Some(next.ok_or_else(|| format!("{name} needs a time")));
            }
            text.strip_prefix(name)?.strip_prefix('=').map(|v| Ok(v.to_owned()))
        };
        if text == "--from-history" {
            asked.history = true;
        } else if let Some(since) = value("--since") {
            asked.since = Some(since?);
        } else if let Some(until) = value("--until") {
            asked.until = Some(until?);
        } else {
            asked.rest.push(word);
        }
    }
    if !asked.history && (asked.since.is_some() || asked.until.is_some()) {
        return Err("--since and --until belong to --from-history; a trace is cut with --from and --to".to_owned());
    }
    Ok(asked)
}

/// The path of a file that lives as long as the program that this one becomes.
fn in_memory(name: &str, text: &str) -> std::io::Result<OsString> {
    let fd = memfd_create(name, MFdFlags::empty())?;
    let mut file = std::fs::File::from(fd);
    file.write_all(text.as_bytes())?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Left open on purpose: the simulator reads it.
    let _ = file.into_raw_fd();
    Ok(path.into())
}

/// The table, and how many jobs are in it: those that started, submitted within the time.
fn trace(jobs: &[v1::JobRecord], start: Option<i64>, end: Option<i64>) -> (String, usize) {
    let mut text =
        String::from("job\tsubmit\tduration\trequested\tnodes\tcpus\tgpus\tgpu_type\tmemory\tpartition\tuser\tgroup\n");
    let mut count = 0;
    for job in jobs {
        let within = start.is_none_or(|t| job.submit >= t) && end.is_none_or(|t| job.submit <= t);
        if !within || sacct::started(job).is_none() || sacct::ended(job).is_none() {
            continue;
        }
        count += 1;
        let seconds = job.elapsed_ms.saturating_add(999) / 1000;
        let requested = match limit(job.time_limit.as_ref()) {
            Some(TimeLimit::Minutes(minutes)) => u64::from(minutes) * 60,
            _ => UNLIMITED,
        };
        let gres = || job.allocation.iter().flat_map(|a| &a.nodes).flat_map(|n| &n.gres).filter(|g| g.name == "gpu");
        let gpus: u64 = gres().filter_map(|g| g.indices.as_ref()).map(indices).sum();
        let asked = job.spec.as_ref().and_then(|s| s.request.as_ref());
        let kind = asked.and_then(|r| r.gres.iter().find(|g| g.name == "gpu")).and_then(|g| g.kind.as_deref());
        // One that was ended by its limit ran a little over it.
        let run = u64::try_from(seconds).unwrap_or(0).clamp(1, requested.max(1));
        let partition = job.partition.split(',').next().unwrap_or_default();
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{}\t@{}\t{run}\t{requested}\t{}\t{}\t{gpus}\t{}\t{}\t{}\t{}\t{}",
            job.id,
            job.submit.div_euclid(1000),
            job.num_nodes,
            job.num_cpus,
            kind.unwrap_or_default(),
            job.requested_memory_mb,
            plain(partition),
            plain(&job.user),
            plain(&job.account)
        );
    }
    (text, count)
}

fn indices(set: &v1::IndexSet) -> u64 {
    sluice_model::index_set::IndexSet::try_from(set.clone()).map_or(0, |set| set.len())
}

/// Names hold neither tabs nor line ends; if one did, it would move what follows.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn words_of_the_history_are_taken_out_and_all_others_go_on() {
        let asked = sort_out(words("--policy easy --from-history --since=now-7days --json --until now")).unwrap();
        assert!(asked.history);
        assert_eq!((asked.since.as_deref(), asked.until.as_deref()), (Some("now-7days"), Some("now")));
        assert_eq!(asked.rest, words("--policy easy --json"));
        assert_eq!(sort_out(words("--trace t --from 3")).unwrap().rest, words("--trace t --from 3"));
        assert!(sort_out(words("--trace t --since now")).is_err());
        assert!(sort_out(words("--from-history --since")).is_err());
    }

    #[test]
    fn jobs_that_ran_become_rows_and_others_do_not() {
        let ran = v1::JobRecord {
            id: 7,
            state: "COMPLETED".into(),
            submit: 1_000_500,
            start: Some(1_002_000),
            end: Some(1_012_000),
            elapsed_ms: 9_500,
            time_limit: Some((&TimeLimit::Minutes(5)).into()),
            num_nodes: 1,
            num_cpus: 4,
            partition: "main".into(),
            user: "ann".into(),
            ..v1::JobRecord::default()
        };
        let waits = v1::JobRecord { id: 8, state: "PENDING".into(), start: None, end: None, ..ran.clone() };
        let (text, count) = trace(&[ran, waits], None, None);
        assert_eq!(count, 1);
        assert_eq!(text.lines().nth(1), Some("7\t@1000\t10\t300\t1\t4\t0\t\t0\tmain\tann\t"));
    }
}
