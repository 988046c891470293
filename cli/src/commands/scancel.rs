//! `scancel`: ends or signals jobs, array tasks and steps.
//!
//! Owns the choice of jobs by id and by filter, asking before each (`-i`), and what is said. Which of them may be ended
//! is the controller's to judge.

mod select;
mod settings;

use crate::client::{Client, Controller, Retry, block_on};
use crate::error::{CallError, print_call_error, refusal};
use crate::getopt::{self, Operands, OptionSpec};
use crate::watch::is_running;
use crate::{errln, help, out};
use select::Chosen;
use settings::Settings;
use sluice_model::StepId;
use sluice_proto::v1::{self, control_request::Action};
use std::ffi::OsString;
use std::io::BufRead;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const NAME: &str = "scancel";

/// A step that is not known after so long is none.
const NEW_STEP: Duration = Duration::from_secs(2);

pub fn options() -> &'static [OptionSpec] {
    settings::OPTIONS
}

pub fn main(words: Vec<OsString>) -> ExitCode {
    let parsed = match getopt::parse(options(), &words, Operands::Mixed) {
        Ok(parsed) => parsed,
        Err(e) => return help::bad_usage(NAME, &e),
    };
    let operands = "[job_id[_array_id][.step_id]]";
    if let Some(code) = help::answer(NAME, &format!("scancel [OPTIONS] {operands}"), operands, options(), &parsed) {
        return code;
    }
    match Settings::resolve(&parsed, &|name| std::env::var_os(name)) {
        Ok(settings) => block_on(run(settings)),
        Err(lines) => {
            lines.iter().for_each(|line| errln!("{line}"));
            ExitCode::from(1)
        }
    }
}

async fn run(settings: Settings) -> ExitCode {
    let mut client = match Client::new() {
        Ok(client) => client,
        Err(e) => {
            print_call_error(NAME, "", &e);
            return ExitCode::from(1);
        }
    };
    let chosen = if settings.needs_list() {
        match client.list_jobs(select::request(&settings)).await {
            Ok(list) => select::choose(&settings, &list),
            Err(e) if e.refusal_code() == Some(refusal::INVALID_JOB_ID) => Vec::new(),
            Err(e) => {
                print_call_error(NAME, "", &e);
                return ExitCode::from(1);
            }
        }
    } else {
        settings.targets.iter().map(Chosen::by_id).collect()
    };
    if chosen.is_empty() {
        return nothing_chosen(&settings);
    }
    let mut failed = false;
    let mut input = std::io::stdin().lock();
    for one in &chosen {
        if settings.interactive && one.record.is_some() && !confirm(one, &mut input) {
            continue;
        }
        failed |= act(&mut client, &settings, one).await.is_err();
    }
    ExitCode::from(u8::from(failed))
}

/// Filters that match no job are no failure; ids that were asked about interactively are.
fn nothing_chosen(settings: &Settings) -> ExitCode {
    if settings.interactive && !settings.targets.is_empty() && !settings.has_filters() {
        for target in &settings.targets {
            errln!("{NAME}: error: Kill job error on job id {target}: Invalid job id specified");
        }
        return ExitCode::from(1);
    }
    if settings.verbose > 0 {
        let filters = settings.filter_text();
        errln!("{NAME}: error: No active jobs match ALL specified filters, including: {filters}");
    }
    ExitCode::SUCCESS
}

/// `Cancel job_id=69 name=aa partition=debug [y/n]? `; the end of the input is a no.
fn confirm(one: &Chosen, input: &mut impl BufRead) -> bool {
    let record = one.record.clone().unwrap_or_default();
    let name = crate::view::job::text(&record.name);
    let what = if one.target.step.is_some() { "step_id" } else { "job_id" };
    loop {
        let question = format!("Cancel {what}={} name={name} partition={} [y/n]? ", one.target, record.partition);
        if out::print(question.as_bytes()).is_err() {
            return false;
        }
        let mut answer = String::new();
        if input.read_line(&mut answer).unwrap_or(0) == 0 {
            return false;
        }
        match answer.trim().chars().next().map(|c| c.to_ascii_lowercase()) {
            Some('y') => return true,
            Some('n') => return false,
            _ => {}
        }
    }
}

async fn act(client: &mut Client, settings: &Settings, one: &Chosen) -> Result<(), ()> {
    let what = if one.target.step.is_some() { "step" } else { "job" };
    if settings.verbose > 0 {
        match settings.signal {
            None => errln!("{NAME}: Terminating {what} {}", one.target),
            Some(signal) => errln!("{NAME}: Signal {signal} to {what} {}", one.target),
        }
    }
    let wire = one.wire_target();
    if let Some(StepId::Numbered(_)) = one.target.step
        && let Err(e) = find_step(client, one).await
    {
        return report(settings, one, &e);
    }
    if let Some(comment) = &settings.admin_comment {
        let update = v1::UpdateJobAction {
            target: Some(wire.clone()),
            admin_comment: Some(comment.clone()),
            ..Default::default()
        };
        if let Err(e) = control(client, Action::UpdateJob(update)).await {
            errln!("{NAME}: error: --admin-comment on job id {}: {e}", one.target);
        }
    }
    let action = match (one.target.step, settings.signal) {
        (None, None) if !settings.batch => Action::Cancel(v1::CancelAction { target: Some(wire) }),
        (step, signal) => Action::Signal(v1::SignalAction {
            target: Some(wire),
            step: step.map(StepId::to_wire),
            signal: u32::from(signal.unwrap_or(9)),
            batch: settings.batch,
            full: settings.full,
        }),
    };
    match control(client, action).await {
        Ok(()) => Ok(()),
        Err(e) => report(settings, one, &e),
    }
}

/// Whether the step is there to be ended. The controller hears of one within a second of its beginning.
async fn find_step(client: &mut Client, one: &Chosen) -> Result<(), CallError> {
    let refused = |code, message: &str| {
        let message = message.to_owned();
        Err(CallError::Refused(v1::Refusal { code, message, detail: None, retry_after_ms: None }))
    };
    let asked = one.target.step.map(StepId::to_wire);
    let begin = Instant::now();
    loop {
        let (jobs, states) = (vec![one.wire_target()], vec!["ALL".to_owned()]);
        let list = client.list_jobs(v1::ListJobsRequest { jobs, states, steps: true, ..Default::default() }).await?;
        let found = list.jobs.iter().flat_map(|j| &j.steps).find(|s| s.key.map(|k| k.step) == asked);
        match found {
            Some(step) if step.end.is_none() => return Ok(()),
            Some(_) => return refused(refusal::JOB_FINISHED, "Job/step already completing or completed"),
            None if begin.elapsed() < NEW_STEP && list.jobs.iter().any(is_running) => {}
            None => return refused(refusal::INVALID_JOB_ID, "Invalid job id specified"),
        }
        tokio::time::sleep(NEW_STEP / 10).await;
    }
}

async fn control(client: &mut Client, action: Action) -> Result<(), CallError> {
    let request = v1::ControlRequest { action: Some(action) };
    client.call(Retry::Harmless, async |mut c: Controller| c.control(request.clone()).await).await.map(|_| ())
}

/// To end what has ended is no failure; to signal it is one.
fn report(settings: &Settings, one: &Chosen, error: &CallError) -> Result<(), ()> {
    let gone = matches!(error.refusal_code(), Some(refusal::INVALID_JOB_ID | refusal::JOB_FINISHED));
    let harmless = gone && settings.signal.is_none() && one.target.step.is_none() && !settings.batch;
    if harmless && settings.verbose == 0 {
        return Ok(());
    }
    if let Some(detail) = error.detail().filter(|_| !gone) {
        errln!("{NAME}: error: {detail}");
    }
    let what = if one.target.step.is_some() { "job step id" } else { "job id" };
    errln!("{NAME}: error: Kill job error on {what} {}: {error}", one.target);
    if harmless { Ok(()) } else { Err(()) }
}
