//! `sbatch`: submits a script for later execution.
//!
//! Owns the order of things: words, script, directives, settings, request, answer. Prints `Submitted batch job N` only
//! after the controller has it on disk.

mod script;
mod wait;

use crate::client::{Client, Controller, Retry, block_on};
use crate::error::{CallError, print_call_error, refusal};
use crate::getopt::{self, Operands, OptionSpec, Parsed};
use crate::options::{Submitter, env};
use crate::settings::value::no_heterogeneous_parts;
use crate::settings::{BadValue, Export, Settings};
use crate::submit::{self, Here};
use crate::{environ, errln, help, out};
use sluice_model::job::JobKind;
use sluice_model::{OsBytes, Time, env_block};
use sluice_proto::v1;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;
use std::time::Duration;

const NAME: &str = "sbatch";

pub fn options() -> &'static [OptionSpec] {
    Submitter::Sbatch.options()
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let parsed = match getopt::parse(options(), &words, Operands::EndOptions) {
        Ok(parsed) => parsed,
        Err(e) => return exit_error(help::bad_usage(NAME, &e)),
    };
    if let Some(code) = help::answer(NAME, "sbatch [OPTIONS] script [args...]", "script [args...]", options(), &parsed)
    {
        return code;
    }
    match prepare(&words, &parsed) {
        Ok(submission) => block_on(run(submission)),
        Err(Stop::Bad(bad)) => exit_error(bad.print(NAME)),
        Err(Stop::Usage(e)) => exit_error(help::bad_usage(NAME, &e)),
    }
}

/// SLURM_EXIT_ERROR replaces the exit code of our own errors.
pub fn exit_error(code: ExitCode) -> ExitCode {
    let asked = std::env::var("SLURM_EXIT_ERROR").ok().and_then(|v| v.parse::<u8>().ok());
    asked.map_or(code, ExitCode::from)
}

enum Stop {
    Bad(BadValue),
    Usage(getopt::GetoptError),
}

impl From<BadValue> for Stop {
    fn from(bad: BadValue) -> Self {
        Stop::Bad(bad)
    }
}

struct Submission {
    settings: Settings,
    request: v1::SubmitRequest,
}

/// Everything up to the request, without talking to anyone.
fn prepare(words: &[OsString], parsed: &Parsed) -> Result<Submission, Stop> {
    no_heterogeneous_parts(parsed.operands.get(..1).unwrap_or_default())?;
    let script = script::load(parsed)?;
    let directives = directives(&script.text)?;
    let mut settings = Settings::new(Submitter::Sbatch, now(), None);
    settings.client.verbose = debug_level("SBATCH_DEBUG");
    settings.apply(&directives)?;
    for (_, given) in env::options(Submitter::Sbatch, &|name| std::env::var_os(name)) {
        settings.set(&given)?;
    }
    settings.apply(&parsed.options)?;
    settings.finish()?;

    let here = Here::look()?;
    submit::complete(&mut settings, &here, words);
    if settings.job.name.is_empty() {
        settings.job.name = OsBytes::new(script.default_name.as_bytes());
    }
    settings.job.command = script.path.as_ref().map(|path| OsBytes::from(path.as_os_str()));
    if let JobKind::Batch { args, .. } = &mut settings.job.kind {
        *args = script.args.iter().map(|arg| OsBytes::from(arg.as_os_str())).collect();
    }
    let environment = environment(&mut settings, &here)?;
    let request = v1::SubmitRequest {
        spec: Some(v1::JobSpec::from(&settings.job)),
        script: script.text.into(),
        environment: environment.into(),
        ..Default::default()
    };
    Ok(Submission { settings, request })
}

/// The options of the script's `#SBATCH` lines.
fn directives(script: &[u8]) -> Result<Vec<getopt::Given>, Stop> {
    let lines = sluice_model::directive::parse_lines(script, "SBATCH").map_err(|e| BadValue::line(1, e.to_string()))?;
    let mut options = Vec::new();
    for line in lines {
        let words: Vec<OsString> = line.words.into_iter().map(OsString::from_vec).collect();
        let parsed = getopt::parse(self::options(), &words, Operands::Mixed).map_err(Stop::Usage)?;
        if let Some(stray) = parsed.operands.first() {
            if stray == "hetjob" || stray == "packjob" {
                no_heterogeneous_parts(&[":".into()])?;
            }
            let text = format!("Invalid directive found in batch script: {}", stray.to_string_lossy());
            return Err(BadValue::line(255, text).into());
        }
        options.extend(parsed.options);
    }
    Ok(options)
}

fn environment(settings: &mut Settings, here: &Here) -> Result<Vec<u8>, BadValue> {
    let mut own = environ::own();
    environ::drop_outer_job(&mut own);
    let mut block = match &settings.client.export_file {
        Some(file) => {
            let read = environ::read_export_file(file).map_err(|_| {
                BadValue::line(1, format!("Could not open user environment file {}", file.to_string_lossy()))
            })?;
            let mut block: Vec<u8> = env_block::build(env_block::vars(&read));
            for (name, value) in env_block::vars(&own).filter(|(name, _)| name.starts_with(b"SLURM_")) {
                env_block::set(&mut block, name, value);
            }
            block
        }
        None => own,
    };
    if let Some(export) = &settings.client.export {
        // Without the caller's environment the user's login environment lies below (--export in the manual page).
        settings.job.get_user_env |= match export {
            Export::All | Export::Nil => false,
            Export::None => true,
            Export::Some { all, .. } => !all,
        };
        block = environ::export(&block, export, Submitter::Sbatch);
    }
    environ::add_submission(&mut block, here.cwd.as_bytes(), &here.host);
    for (name, value) in environ::output_variables(settings) {
        env_block::set(&mut block, name.as_bytes(), value.as_bytes());
    }
    Ok(block)
}

/// Now, in the controller's unit.
pub fn now() -> Time {
    Time(sluice_identity::now_ms())
}

/// A variable that sets how much is said, 0 when absent.
pub fn debug_level(name: &str) -> u32 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(0)
}

async fn run(submission: Submission) -> ExitCode {
    let Submission { settings, request } = submission;
    if settings.client.verbose > 0 {
        settings.table().iter().for_each(|line| errln!("{NAME}: {line}"));
    }
    let failure = settings.command.failure();
    let mut client = match Client::new() {
        Ok(client) => client,
        Err(e) => return fail(failure, &e),
    };
    if settings.client.test_only {
        return test_only(NAME, &mut client, request).await;
    }
    let job = match submit(NAME, &mut client, request).await {
        Ok(job) => job,
        Err(e) => return fail(failure, &e),
    };
    let line = match (settings.client.parsable, settings.client.quiet, settings.shown_value("clusters")) {
        (true, _, Some(_)) => format!("{job};{}\n", client.config.cluster),
        (true, _, None) => format!("{job}\n"),
        (false, true, _) => String::new(),
        (false, false, Some(_)) => format!("Submitted batch job {job} on cluster {}\n", client.config.cluster),
        (false, false, None) => format!("Submitted batch job {job}\n"),
    };
    let code = out::print_or_complain(NAME, line.as_bytes(), ExitCode::SUCCESS);
    if code != ExitCode::SUCCESS || !settings.client.wait {
        return code;
    }
    wait::wait(&mut client, job).await
}

fn fail(context: &str, error: &CallError) -> ExitCode {
    print_call_error(NAME, context, error);
    exit_error(ExitCode::from(1))
}

/// Submits; waits for its turn where a user may submit only so many jobs a second; while the controller is full, tries again a few times, as Slurm's commands do. When its answer is lost it is
/// asked again under the same key: no job is queued twice.
pub async fn submit(program: &str, client: &mut Client, mut request: v1::SubmitRequest) -> Result<u32, CallError> {
    let key: [u8; 16] = sluice_identity::random().map_err(|e| CallError::Failed { problem: e.to_string() })?;
    request.key = key.to_vec().into();
    let mut pause = Duration::from_secs(1);
    let mut told = false;
    loop {
        let sent = client.call(Retry::Keyed, async |mut c: Controller| c.submit(request.clone()).await).await;
        match sent {
            Ok(reply) => return Ok(reply.job),
            Err(e) if e.refusal_code() == Some(refusal::TOO_MANY_JOBS) && pause <= Duration::from_secs(4) => {
                errln!("{program}: error: Slurm temporarily unable to accept job, sleeping and retrying");
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            Err(e) => match e.retry_after() {
                Some(wait) => {
                    if !told {
                        let detail = e.detail().unwrap_or_default();
                        errln!("{program}: error: {}: {detail}; waiting for its turn", e.reason());
                        told = true;
                    }
                    tokio::time::sleep(wait).await;
                }
                None => return Err(e),
            },
        }
    }
}

/// `--test-only`
pub async fn test_only(program: &str, client: &mut Client, request: v1::SubmitRequest) -> ExitCode {
    let asked = client.call(Retry::Read, async |mut c: Controller| c.test_only(request.clone()).await).await;
    match asked {
        Ok(reply) => {
            let title = if program == NAME { "sbatch: Job" } else { "srun: Job" };
            let start = sluice_model::time::format_time(Time(reply.start), &jiff::tz::TimeZone::system());
            let nodes = sluice_model::hostlist::fold(&reply.nodes);
            errln!(
                "{title} {} to start at {start} using {} processors on nodes {nodes} in partition {}",
                reply.job,
                reply.cpus,
                reply.partition
            );
            ExitCode::SUCCESS
        }
        Err(e) => {
            if let Some(detail) = e.detail() {
                errln!("{program}: error: {detail}");
            }
            errln!("allocation failure: {}", e.reason());
            ExitCode::from(1)
        }
    }
}

#[cfg(test)]
mod tests;
