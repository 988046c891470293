//! The program: reads what it is told to, replays, and prints. Figures go to stdout, talk to stderr.

use crate::arguments::Arguments;
use crate::cluster::Machine;
use crate::generate::generate;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::replay::{Replay, replay};
use crate::report::{self, Entry};
use crate::trace::{self, Trace};
use clap::Parser;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Exit status 2 for a mistake in the arguments (clap's), 1 for everything else that went wrong.
pub fn main(words: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            for line in message.lines() {
                eprintln!("sluice-sim: error: {line}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    // Mistakes in the policies come before hours of work.
    let policies: Vec<Policy> =
        arguments.policies().into_iter().map(Policy::load).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    let mut trace = workload(arguments)?;
    let machine = machine(arguments, &mut trace)?;
    let mut cases = Vec::new();
    for policy in &policies {
        let under = |what_if| machine.under(policy, what_if).map_err(|e| e.to_string());
        cases.push((policy, policy.name().to_owned(), under(None)?));
        if let Some(what_if) = &arguments.what_if {
            cases.push((policy, format!("{} with {what_if}", policy.name()), under(Some(what_if))?));
        }
    }
    for line in trace.skipped.lines() {
        eprintln!("sluice-sim: {}: {line}", trace.name);
    }
    if trace.jobs.is_empty() {
        return Err(format!("{}: no job is left to replay", trace.name));
    }
    if trace.no_requests {
        eprintln!(
            "sluice-sim: {}: no column 'requested': requested times are the run times (see --round-limits)",
            trace.name
        );
    }
    let mut done: Vec<Entry> = Vec::new();
    for (policy, name, config) in cases {
        let mut config = config;
        if !arguments.estimates.configure(&mut config) {
            eprintln!("sluice-sim: policy {name}: its order does not go by run times: predictions change nothing");
        }
        let replay =
            replay(&trace, config.clone(), policy, arguments.estimates).map_err(|e| format!("policy {name}: {e}"))?;
        for line in replay.refused.lines() {
            eprintln!("sluice-sim: {}: policy {name}: {line}", trace.name);
        }
        let metrics = Metrics::of(&trace, &config, &replay);
        if metrics.jobs == 0 {
            return Err(format!("policy {name}: none of the jobs can ever run here"));
        }
        done.push(Entry { policy: name, metrics, replay });
    }
    if let (Some(path), [entry]) = (&arguments.starts, &done[..]) {
        write_file(path, |out| starts(&trace, &entry.replay, out))?;
    }
    if let Some(path) = &arguments.svg {
        write_file(path, |out| out.write_all(report::svg(&trace, &done).as_bytes()))?;
    }
    let text = if arguments.json {
        report::json(&trace, arguments.estimates, &done)
    } else {
        report::table(&trace, arguments.estimates, &done)
    };
    match io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("stdout: {e}")),
        _ => Ok(()),
    }
}

fn workload(arguments: &Arguments) -> Result<Trace, String> {
    let mut trace = match (&arguments.trace, &arguments.generate) {
        (Some(path), _) => trace::read(path, &arguments.ignore_columns).map_err(|e| e.to_string())?,
        (None, Some(recipe)) => generate(recipe),
        (None, None) => return Err("give a trace or --generate".to_owned()),
    };
    if let Some(title) = &arguments.title {
        trace.name.clone_from(title);
    }
    arguments.window().cut(&mut trace);
    if let Some(steps) = &arguments.round_limits {
        let beyond = steps.apply(&mut trace);
        if beyond > 0 {
            eprintln!(
                "sluice-sim: {}: {beyond} jobs run longer than all of --round-limits: their run times are their requested times",
                trace.name
            );
        }
    }
    if let Some(path) = &arguments.write_trace {
        if trace.on_gpus() {
            return Err("--write-trace: Standard Workload Format knows no GPUs".to_owned());
        }
        let procs = arguments.procs.or(trace.max_procs).unwrap_or_else(|| widest(&trace));
        write_file(path, |out| trace::write_swf(&trace, procs, out))?;
    }
    Ok(trace)
}

fn widest(trace: &Trace) -> u32 {
    trace.jobs.iter().map(|j| j.widest).max().unwrap_or(1)
}

fn machine(arguments: &Arguments, trace: &mut Trace) -> Result<Machine, String> {
    if let Some(path) = &arguments.cluster {
        return Machine::from_file(path).map_err(|e| e.to_string());
    }
    if trace.on_gpus() {
        return Err(format!("{}: jobs ask for GPUs: give the machine with --cluster", trace.name));
    }
    let procs = arguments.procs.or(trace.max_procs).ok_or_else(|| {
        format!("{}: the trace does not say how large the machine is (MaxProcs): give --procs or --cluster", trace.name)
    })?;
    trace.fit_processors(procs);
    Machine::of_processors(procs).map_err(|e| e.to_string())
}

/// In the order of the file, whatever the order of submission.
fn starts(trace: &Trace, replay: &Replay, out: &mut dyn Write) -> io::Result<()> {
    let mut order: Vec<usize> = (0..trace.jobs.len()).collect();
    order.sort_by_key(|at| trace.jobs[*at].line);
    for at in order {
        if let Some(start) = replay.starts[at] {
            writeln!(out, "{}\t{start}", trace.jobs[at].number)?;
        }
    }
    Ok(())
}

fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let written = || -> io::Result<()> {
        let mut out = BufWriter::new(std::fs::File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    written().map_err(|e| format!("{}: {e}", path.display()))
}
