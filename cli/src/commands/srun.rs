//! `srun`: runs tasks, in a job that is there or in one of its own.
//!
//! Owns the order of things: words, settings, allocation, step, launch, the running step, the end of the allocation.
//! Its exit code is that of its worst task.

mod exits;
mod interrupt;
mod launch;
mod lines;
mod multi_prog;
mod node;
mod session;
mod stdin;
mod step;
mod terminal;
mod writer;

use crate::allocation::{self, Granted};
use crate::client::{Client, block_on};
use crate::commands::sbatch::{debug_level, exit_error, now, test_only};
use crate::error::{CallError, print_call_error, refusal};
use crate::getopt::{self, Operands, OptionSpec, Parsed};
use crate::options::{Submitter, env};
use crate::settings::value::no_heterogeneous_parts;
use crate::settings::{BadValue, Export, Settings};
use crate::signals::{Signals, ignore_terminal_stops};
use crate::submit::{self, Here};
use crate::watch::is_finished;
use crate::{environ, errln, help, out};
use interrupt::Interrupts;
use launch::{Names, Streams};
use session::Session;
use sluice_model::{OsBytes, env_block};
use sluice_proto::v1;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const NAME: &str = "srun";

pub fn options() -> &'static [OptionSpec] {
    Submitter::Srun.options()
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let parsed = match getopt::parse(options(), &words, Operands::EndOptions) {
        Ok(parsed) => parsed,
        Err(e) => return exit_error(help::bad_usage(NAME, &e)),
    };
    let usage = "srun [OPTIONS] executable [args...]";
    if let Some(code) = help::answer(NAME, usage, "executable [args...]", options(), &parsed) {
        return code;
    }
    if parsed.last("mpi").is_some_and(|g| g.text() == "list") {
        return out::print_or_complain(NAME, b"MPI plugin types are...\n\tnone\n", ExitCode::SUCCESS);
    }
    match prepare(&words, &parsed) {
        Ok(plan) => block_on(run(plan)),
        Err(bad) => exit_error(bad.print(NAME)),
    }
}

/// What is to be run, and where.
struct Plan {
    settings: Settings,
    /// The job to run in; None: one of our own.
    job: Option<u32>,
    here: Here,
    argv: Vec<Vec<u8>>,
    /// `--multi-prog`: the file's name and text.
    programs: Option<(String, String)>,
    /// Options of the command line, by key.
    from_line: Vec<&'static str>,
}

fn prepare(words: &[OsString], parsed: &Parsed) -> Result<Plan, BadValue> {
    let mut settings = Settings::new(Submitter::Srun, now(), None);
    settings.client.verbose = debug_level("SLURM_DEBUG");
    let in_job = parsed.has("jobid") || job_of_environment().is_some();
    for (name, given) in env::options(Submitter::Srun, &|name| std::env::var_os(name)) {
        if !in_job || speaks_of_steps(&name, given.key()) {
            settings.set(&given)?;
        }
    }
    let from_environment = settings.job.request.clone();
    settings.apply(&parsed.options)?;
    if settings.client.step.preserve_env {
        settings.job.request.nodes = from_environment.nodes.or(settings.job.request.nodes);
        settings.job.request.ntasks = from_environment.ntasks.or(settings.job.request.ntasks);
    }
    settings.finish()?;
    if parsed.operands.is_empty() {
        errln!("srun: fatal: No command given to execute.");
        return Err(BadValue { lines: Vec::new(), code: 1 });
    }
    no_heterogeneous_parts(&parsed.operands)?;
    let here = Here::look()?;
    submit::complete(&mut settings, &here, words);
    if settings.job.name.is_empty() {
        let program = Path::new(&parsed.operands[0]);
        settings.job.name = OsBytes::from(program.file_name().unwrap_or(program.as_os_str()));
    }
    let programs = match settings.client.step.multi_prog {
        true => Some(read_programs(&parsed.operands[0])?),
        false => None,
    };
    let argv = parsed.operands.iter().map(|w| w.as_bytes().to_vec()).collect();
    let job = settings.client.step.jobid.or_else(job_of_environment);
    let from_line = parsed.options.iter().map(|o| o.key()).collect();
    Ok(Plan { settings, job, here, argv, programs, from_line })
}

fn read_programs(file: &OsString) -> Result<(String, String), BadValue> {
    let name = file.to_string_lossy().into_owned();
    let text = std::fs::read_to_string(file)
        .map_err(|_| BadValue::line(1, format!("Could not open multi_prog config file {name}")))?;
    Ok((name, text))
}

/// The job around us, by either spelling.
fn job_of_environment() -> Option<u32> {
    ["SLURM_JOB_ID", "SLURM_JOBID"].iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Inside a job, variables that describe the job itself are no request for the step: the step gets what the job has.
fn speaks_of_steps(variable: &str, key: &str) -> bool {
    const OF_THE_JOB: &[&str] = &[
        "account",
        "acctg-freq",
        "begin",
        "comment",
        "constraint",
        "core-spec",
        "dependency",
        "exclude",
        "exclusive",
        "gpus",
        "gpus-per-node",
        "gpus-per-socket",
        "gpus-per-task",
        "gres",
        "hold",
        "job-name",
        "licenses",
        "mem",
        "mem-per-cpu",
        "mem-per-gpu",
        "mincpus",
        "nodelist",
        "partition",
        "priority",
        "profile",
        "qos",
        "requeue",
        "reservation",
        "signal",
        "switches",
        "time",
        "tmp",
        "wckey",
        "ntasks-per-node",
    ];
    variable == "SLURM_STEP_GRES" || !OF_THE_JOB.contains(&key)
}

async fn run(plan: Plan) -> ExitCode {
    if plan.settings.client.verbose > 0 {
        plan.settings.table().iter().for_each(|line| errln!("{NAME}: {line}"));
    }
    let failure = plan.settings.command.failure();
    let mut client = match Client::new() {
        Ok(client) => client,
        Err(e) => return fail(failure, &e),
    };
    if plan.settings.client.test_only {
        let request = v1::SubmitRequest { spec: Some(v1::JobSpec::from(&plan.settings.job)), ..Default::default() };
        return test_only(NAME, &mut client, request).await;
    }
    ignore_terminal_stops();
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(e) => {
            errln!("{NAME}: error: cannot handle signals: {e}");
            return ExitCode::from(1);
        }
    };
    match plan.job {
        Some(job) => in_job(&mut client, &plan, job, &mut signals).await,
        None => alone(&mut client, &plan, &mut signals).await,
    }
}

fn fail(context: &str, error: &CallError) -> ExitCode {
    print_call_error(NAME, context, error);
    exit_error(ExitCode::from(1))
}

/// In an allocation that is there.
async fn in_job(client: &mut Client, plan: &Plan, job: u32, signals: &mut Signals) -> ExitCode {
    let quiet = plan.settings.client.quiet;
    let from_line = |key: &str| plan.from_line.contains(&key);
    let request = step::request(&plan.settings, job, None, &from_line);
    let created = tokio::select! {
        created = step::create_in_job(client, request, quiet) => created,
        // Dropping the request withdraws it.
        signal = signals.next_stop() => {
            errln!("srun: Cancelled pending job step with signal {signal}");
            errln!("srun: error: Unable to create step for job {job}: Job/step already completing or completed");
            return exit_error(ExitCode::from(1));
        }
    };
    let step = match created {
        Ok(step) => step,
        Err(e) if matches!(e.refusal_code(), Some(refusal::INVALID_JOB_ID | refusal::JOB_FINISHED)) => {
            errln!("srun: error: Unable to confirm allocation for job {job}: {e}");
            errln!("srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job}");
            return exit_error(ExitCode::from(1));
        }
        // Slurm's client says this one by itself.
        Err(CallError::Failed { problem }) if problem.starts_with("Only allocated ") => {
            errln!("srun: error: {problem}");
            return exit_error(ExitCode::from(1));
        }
        Err(e) => return fail(&format!("Unable to create step for job {job}"), &e),
    };
    match conduct(client, plan, &step, None, signals, std::future::pending()).await {
        Ok(ended) => ExitCode::from(ended.code),
        Err(bad) => exit_error(bad.print(NAME)),
    }
}

/// In an allocation made for this, and given back afterwards.
async fn alone(client: &mut Client, plan: &Plan, signals: &mut Signals) -> ExitCode {
    let request = v1::SubmitRequest { spec: Some(v1::JobSpec::from(&plan.settings.job)), ..Default::default() };
    let Granted { job, mut watch, .. } = match allocation::obtain(client, &plan.settings, request, signals).await {
        Ok(granted) => granted,
        Err(refused) => return exit_error(ExitCode::from(refused.exit)),
    };
    let (code, worst) = match own_step(client, plan, job, &mut watch, signals).await {
        Ok(ended) => (ExitCode::from(ended.code), ended.worst),
        Err(code) => (code, sluice_model::state::ExitStatus { code: 1, signal: 0 }),
    };
    let exit = v1::ExitStatus { code: u32::from(worst.code), signal: u32::from(worst.signal) };
    if let Err(e) = allocation::complete(client, job, exit).await {
        print_call_error(NAME, &format!("the end of job {job} could not be reported"), &e);
    }
    code
}

async fn own_step(
    client: &mut Client,
    plan: &Plan,
    job: u32,
    watch: &mut crate::watch::JobWatch,
    signals: &mut Signals,
) -> Result<session::Ended, ExitCode> {
    let unable = |e: CallError| fail(&format!("Unable to create step for job {job}"), &e);
    let credential = allocation::credential(client, job).await.map_err(unable)?;
    let body = allocation::read_credential(&credential).map_err(unable)?;
    let request = step::request(&plan.settings, job, Some(&body), &|key| plan.from_line.contains(&key));
    let manager = step::Manager::Node(&credential, &body);
    let created = tokio::select! {
        created = step::create(client, &manager, request, plan.settings.client.quiet) => created,
        _ = signals.next_stop() => {
            errln!("srun: Force Terminated JobId={job}");
            return Err(exit_error(ExitCode::from(1)));
        }
    };
    let step = created.map_err(unable)?;
    // Told by the controller when the allocation ends before we do.
    let mut watching = client.sibling();
    let job_over = async {
        loop {
            match watch.next(&mut watching).await {
                // While it completes, the nodes are still ending the step in their own time.
                Ok(Some(r)) if is_finished(&r) => return,
                Ok(Some(_)) => {}
                Ok(None) => return,
                // Not to be known any more; the nodes tell what matters.
                Err(_) => std::future::pending().await,
            }
        }
    };
    let conducted = conduct(client, plan, &step, Some(&body), signals, job_over).await;
    conducted.map_err(|bad| exit_error(bad.print(NAME)))
}

/// The cluster's KillWait; its default when the step manager is older than that word.
fn kill_wait(grant: &v1::StepGrantBody) -> std::time::Duration {
    std::time::Duration::from_secs(grant.kill_wait_secs.unwrap_or(30).into())
}

/// Launches the step and stays with it until it ends.
async fn conduct(
    client: &Client,
    plan: &Plan,
    step: &step::Step,
    own: Option<&v1::JobCredentialBody>,
    signals: &mut Signals,
    job_over: impl Future<Output = ()>,
) -> Result<session::Ended, BadValue> {
    let settings = &plan.settings;
    let programs = match &plan.programs {
        Some((file, text)) => {
            multi_prog::parse(text, file, step.body.ntasks).map_err(|line| BadValue::line(1, line))?
        }
        None => Vec::new(),
    };
    let user = std::env::var("USER").unwrap_or_default();
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    let names = Names {
        user: own.map_or(user.as_str(), |o| o.user.as_str()),
        job_name: settings.job.name.as_bytes(),
        array: number("SLURM_ARRAY_JOB_ID").zip(number("SLURM_ARRAY_TASK_ID")),
    };
    let streams = Streams::open(settings, step, &names)?;
    let argv = if programs.is_empty() { plan.argv.as_slice() } else { &[] };
    let launches = launch::launches(settings, step, &streams, argv, &programs, environment(plan, own));
    let readers = launch::readers(settings, step, &streams);
    let config = Arc::new(client.config.clone());
    let parts = step
        .body
        .nodes
        .iter()
        .zip(launches)
        .enumerate()
        .map(|(index, (node, launch))| {
            if settings.client.verbose > 0 {
                let ranks: sluice_model::IndexSet = node.tasks.iter().copied().collect();
                errln!(
                    "srun: launching StepId={}.{} on host {}, {} tasks: [{}]",
                    step.key.job,
                    step.key.step,
                    node.node,
                    node.tasks.len(),
                    ranks.plain()
                );
            }
            node::Part {
                config: Arc::clone(&config),
                index,
                node: node.node.clone(),
                address: node.address.clone(),
                launch,
                key: step.key,
                connected: Some(&step.manager).filter(|(name, _)| *name == node.node).map(|(_, node)| node.clone()),
            }
        })
        .collect();
    let asked = &settings.client.step;
    let session = Session {
        parts,
        tasks: step.body.nodes.iter().map(|n| n.tasks.clone()).collect(),
        step: format!("{}.{}", step.key.job, step.key.step),
        sinks: streams.sinks,
        stdout: streams.stdout,
        stderr: streams.stderr,
        stdin: streams.stdin,
        stdin_readers: readers,
        kill_on_bad_exit: asked.kill_on_bad_exit == Some(true),
        kill_wait: kill_wait(&step.body),
        wait_secs: asked.wait_secs,
        interrupts: Interrupts::new(asked.disable_status, asked.quit_on_interrupt),
        pty: asked.pty,
        quiet: settings.client.quiet,
        verbose: settings.client.verbose,
    };
    Ok(session::run(session, signals, job_over).await)
}

use std::future::Future;

/// The environment of the tasks; the nodes add what they know.
fn environment(plan: &Plan, own: Option<&v1::JobCredentialBody>) -> Vec<u8> {
    let settings = &plan.settings;
    let mut block = environ::own();
    if let Some(export) = settings.client.export.as_ref().filter(|e| **e != Export::All) {
        block = environ::export(&block, export, Submitter::Srun);
    }
    if own.is_some() {
        environ::add_submission(&mut block, plan.here.cwd.as_bytes(), &plan.here.host);
        env_block::set(&mut block, b"SLURM_JOB_NAME", settings.job.name.as_bytes());
    } else if env_block::get(&block, b"SLURM_JOB_NAME").is_none() {
        env_block::set(&mut block, b"SLURM_JOB_NAME", settings.job.name.as_bytes());
    }
    for (name, value) in environ::output_variables(settings) {
        env_block::set(&mut block, name.as_bytes(), value.as_bytes());
    }
    env_block::set(&mut block, b"SRUN_DEBUG", b"3");
    // Of the task in which srun runs.
    env_block::remove(&mut block, b"SLURM_TASK_PID");
    block
}
