//! A trace as Standard Workload Format, for other simulators and for looking at what the generator makes.

use super::Trace;
use std::io::{self, Write};

pub fn write_swf(trace: &Trace, procs: u32, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "; Version: 2.2\n; Computer: {}\n; MaxJobs: {}", trace.name, trace.jobs.len())?;
    writeln!(out, "; UnixStartTime: {}\n; MaxNodes: {procs}\n; MaxProcs: {procs}\n;", trace.unix_start.unwrap_or(0))?;
    for job in &trace.jobs {
        let (user, group) = (job.user + 1, job.group + 1);
        let (number, submit, run, cpus) = (job.number, job.submit, job.run, job.cpus);
        let requested = job.requested;
        writeln!(out, "{number} {submit} -1 {run} {cpus} -1 -1 {cpus} {requested} -1 1 {user} {group} -1 -1 -1 -1 -1")?;
    }
    Ok(())
}
