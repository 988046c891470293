//! `salloc`: gets an allocation, runs a command here with it, and gives it back.
//!
//! Owns the order of things and the command's process. Its exit code is the command's.

mod command;

use crate::allocation::{self, Granted};
use crate::client::{Client, block_on};
use crate::commands::sbatch::{debug_level, exit_error, now};
use crate::error::print_call_error;
use crate::getopt::{self, Operands, OptionSpec, Parsed};
use crate::options::{Submitter, env};
use crate::settings::value::no_heterogeneous_parts;
use crate::settings::{BadValue, Settings};
use crate::signals::Signals;
use crate::submit::{self, Here};
use crate::watch::{JobWatch, is_finished, state};
use crate::{environ, errln, help, out};
use command::Attended;
use sluice_model::{JobState, OsBytes, env_block, hostlist, layout};
use sluice_proto::v1;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

const NAME: &str = "salloc";

pub fn options() -> &'static [OptionSpec] {
    Submitter::Salloc.options()
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let parsed = match getopt::parse(options(), &words, Operands::EndOptions) {
        Ok(parsed) => parsed,
        Err(e) => return exit_error(help::bad_usage(NAME, &e)),
    };
    let usage = "salloc [OPTIONS] [command [args...]]";
    if let Some(code) = help::answer(NAME, usage, "[command [args...]]", options(), &parsed) {
        return code;
    }
    match prepare(&words, &parsed) {
        Ok((settings, here)) => block_on(run(settings, &here, parsed.operands)),
        Err(bad) => exit_error(bad.print(NAME)),
    }
}

fn prepare(words: &[OsString], parsed: &Parsed) -> Result<(Settings, Here), BadValue> {
    let mut settings = Settings::new(Submitter::Salloc, now(), None);
    settings.client.verbose = debug_level("SALLOC_DEBUG");
    for (_, given) in env::options(Submitter::Salloc, &|name| std::env::var_os(name)) {
        settings.set(&given)?;
    }
    settings.apply(&parsed.options)?;
    settings.finish()?;
    if settings.client.no_shell && !parsed.operands.is_empty() {
        return Err(BadValue::line(1, "A command is not run with --no-shell".to_owned()));
    }
    no_heterogeneous_parts(&parsed.operands)?;
    let here = Here::look()?;
    submit::complete(&mut settings, &here, words);
    if settings.job.name.is_empty() {
        settings.job.name = default_name(&parsed.operands, settings.client.no_shell);
    }
    Ok((settings, here))
}

/// The command's name without its folder (salloc's manual page, `--job-name`).
fn default_name(operands: &[OsString], no_shell: bool) -> OsBytes {
    match operands.first() {
        Some(command) => {
            let path = std::path::Path::new(command);
            OsBytes::from(path.file_name().unwrap_or(command))
        }
        None if no_shell => OsBytes::from("no-shell"),
        None => OsBytes::from("interactive"),
    }
}

async fn run(settings: Settings, here: &Here, operands: Vec<OsString>) -> ExitCode {
    if settings.client.verbose > 0 {
        settings.table().iter().for_each(|line| errln!("{NAME}: {line}"));
    }
    let (mut client, mut signals) = match (Client::new(), Signals::new()) {
        (Ok(client), Ok(signals)) => (client, signals),
        (Err(e), _) => {
            print_call_error(NAME, settings.command.failure(), &e);
            return exit_error(ExitCode::from(1));
        }
        (_, Err(e)) => {
            errln!("{NAME}: error: cannot handle signals: {e}");
            return exit_error(ExitCode::from(1));
        }
    };
    let request = v1::SubmitRequest { spec: Some(v1::JobSpec::from(&settings.job)), ..Default::default() };
    let Granted { job, record, mut watch } =
        match allocation::obtain(&mut client, &settings, request, &mut signals).await {
            Ok(granted) => granted,
            Err(refused) => return exit_error(ExitCode::from(refused.exit)),
        };
    let say = |text: String| {
        if !settings.client.quiet {
            errln!("{NAME}: {text}");
        }
    };
    if settings.client.bell {
        out::talk_bytes(b"\x07");
    }
    say(format!("Granted job allocation {job}"));
    if settings.client.no_shell {
        return ExitCode::SUCCESS;
    }
    let environment = environment(&settings, here, &client.config, &record);
    let ended = match command::spawn(&operands, environment, settings.job.work_dir.as_os_str()) {
        Ok(child) => attend(child, job, &settings, &mut client, &mut watch, &mut signals).await,
        Err(bad) => {
            bad.print(NAME);
            Ended { code: 1, exit: v1::ExitStatus { code: 1, signal: 0 }, revoked: false }
        }
    };
    if !ended.revoked {
        say(format!("Relinquishing job allocation {job}"));
        if let Err(e) = allocation::complete(&mut client, job, ended.exit).await {
            print_call_error(NAME, &format!("Unable to clean up job allocation {job}"), &e);
        }
    }
    ExitCode::from(ended.code)
}

struct Ended {
    code: u8,
    exit: v1::ExitStatus,
    revoked: bool,
}

/// Waits for the command, and tells it when the allocation is gone.
async fn attend(
    mut child: command::Child,
    job: u32,
    settings: &Settings,
    client: &mut Client,
    watch: &mut JobWatch,
    signals: &mut Signals,
) -> Ended {
    let mut revoked = false;
    client.set_patience(std::time::Duration::from_secs(24 * 3600));
    loop {
        tokio::select! {
            status = child.wait() => {
                let (code, exit) = command::exit_code(status);
                return Ended { code, exit, revoked };
            }
            signal = signals.next() => if child.attend_to(signal) == Attended::Leave {
                // Nobody is there to see how the command ends; its allocation is given back now.
                return Ended { code: 1, exit: v1::ExitStatus::default(), revoked };
            },
            over = is_over(watch, client), if !revoked => {
                revoked = over;
                if revoked {
                    errln!("{NAME}: Job allocation {job} has been revoked.");
                    child.revoke(settings.client.kill_command);
                }
            }
        }
    }
}

/// Completes with true when the allocation has ended.
async fn is_over(watch: &mut JobWatch, client: &mut Client) -> bool {
    match watch.next(client).await {
        Ok(Some(record)) => is_finished(&record) || state(&record) == Some(JobState::Completing),
        Ok(None) => true,
        // It is not known any more.
        Err(e) => e.refusal_code() == Some(crate::error::refusal::INVALID_JOB_ID) || std::future::pending().await,
    }
}

/// What the command sees of its allocation (salloc's manual page, "OUTPUT ENVIRONMENT VARIABLES").
fn environment(
    settings: &Settings,
    here: &Here,
    config: &crate::client_config::ClientConfig,
    record: &v1::JobRecord,
) -> Vec<(OsString, OsString)> {
    let mut block = environ::own();
    environ::drop_outer_job(&mut block);
    if !settings.job.name.is_empty() {
        env_block::set(&mut block, b"SLURM_JOB_NAME", settings.job.name.as_bytes());
    }
    let mut set = |name: &str, value: String| {
        if !value.is_empty() {
            env_block::set(&mut block, name.as_bytes(), value.as_bytes());
        }
    };
    for name in ["SLURM_JOB_ID", "SLURM_JOBID"] {
        set(name, record.id.to_string());
    }
    set("SLURM_CLUSTER_NAME", config.cluster.clone());
    set("SLURM_JOB_ACCOUNT", record.account.clone());
    set("SLURM_JOB_PARTITION", record.partition.clone());
    set("SLURM_JOB_QOS", record.qos.clone());
    set("SLURM_JOB_START_TIME", record.start.map(|t| (t / 1000).to_string()).unwrap_or_default());
    // Without a limit Slurm counts a year, its "infinite".
    let end = record.end.or(record.start.map(|start| start + 365 * 86_400_000));
    set("SLURM_JOB_END_TIME", end.map(|t| (t / 1000).to_string()).unwrap_or_default());
    let nodes = record.allocation.as_ref().map_or(&[][..], |a| &a.nodes);
    let names: Vec<&str> = nodes.iter().map(|n| n.node.as_str()).collect();
    let folded = if names.is_empty() { record.node_list.clone() } else { hostlist::fold(&names) };
    set("SLURM_JOB_NODELIST", folded.clone());
    set("SLURM_NODELIST", folded);
    set("SLURM_JOB_NUM_NODES", record.num_nodes.to_string());
    set("SLURM_NNODES", record.num_nodes.to_string());
    let cpus: Vec<u32> = nodes.iter().map(cpus).collect();
    set("SLURM_JOB_CPUS_PER_NODE", layout::compress(&cpus));
    let tasks: Vec<u32> = nodes.iter().map(|n| n.tasks.max(1)).collect();
    set("SLURM_TASKS_PER_NODE", layout::compress(&tasks));
    if let Some(tasks) = settings.job.request.ntasks {
        set("SLURM_NTASKS", tasks.to_string());
        set("SLURM_NPROCS", tasks.to_string());
    }
    set("SLURM_CONF", std::env::var("SLURM_CONF").unwrap_or_default());
    set("SLUICE_CONF", config.path.display().to_string());
    for (name, value) in environ::output_variables(settings) {
        set(name, value);
    }
    env_block::set(&mut block, b"SLURM_SUBMIT_DIR", here.cwd.as_bytes());
    env_block::set(&mut block, b"SLURM_SUBMIT_HOST", here.host.as_bytes());
    env_block::vars(&block).map(|(n, v)| (OsString::from_vec(n.to_vec()), OsString::from_vec(v.to_vec()))).collect()
}

fn cpus(node: &v1::NodeAlloc) -> u32 {
    let ranges = node.cpus.as_ref().map_or(&[][..], |c| &c.ranges);
    ranges.iter().map(|r| r.last.saturating_sub(r.first) / r.step.max(1) + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_named_after_its_command() {
        let name = |words: &[&str], no_shell| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            default_name(&words, no_shell).to_string_lossy()
        };
        assert_eq!(name(&["true"], false), "true");
        assert_eq!(name(&["/usr/bin/env", "FOO=/bar"], false), "env");
        assert_eq!(name(&["/"], false), "/");
        assert_eq!(name(&[], true), "no-shell");
        assert_eq!(name(&[], false), "interactive");
    }
}
