//! The calls behind `sacct`, and what their answers become.

use super::settings::Settings;
use super::values::Context;
use super::{json, select};
use crate::client::{Client, Controller, Retry};
use crate::error::{CallError, print_call_error, refusal};
use crate::render::json::Style;
use crate::render::table::{self, Column, Form};
use crate::text::wire;
use crate::view::clock::Clock;
use crate::view::job as facts;
use crate::viewing;
use sluice_proto::v1;
use std::ffi::OsString;
use std::process::ExitCode;

fn failed(error: &CallError) -> ExitCode {
    print_call_error("sacct", "", error);
    ExitCode::from(1)
}

/// The jobs asked for, in order, with the steps asked for; and the controller's time. `brief`: without what few columns
/// show, which is most of a record.
async fn load(client: &mut Client, settings: &Settings, brief: bool) -> Result<(Vec<v1::JobRecord>, i64), ExitCode> {
    let (start, end) = settings.window.request(sluice_identity::now_ms());
    let target = |t: &sluice_model::job_target::JobTarget| v1::JobTarget {
        job: t.job.0,
        tasks: t.tasks.as_ref().map(v1::IndexSet::from),
    };
    let request = v1::HistoryRequest {
        jobs: settings.jobs.iter().map(target).collect(),
        users: settings.users.clone(),
        accounts: settings.accounts.clone(),
        states: super::window::request_states(&settings.states),
        partitions: settings.partitions.clone(),
        names: settings.names.iter().map(|n| wire(n)).collect(),
        nodes: settings.nodes.clone(),
        qos: settings.qos.clone(),
        start,
        end,
        duplicates: settings.duplicates,
        brief,
    };
    let answer = client.list_history(request).await.map_err(|e| failed(&e))?;
    Ok((select::select(settings, answer.now, answer.jobs), answer.now))
}

fn context<'a>(settings: &Settings, clock: &'a Clock, cluster: &'a str) -> Context<'a> {
    Context {
        clock,
        cluster,
        bitstr_len: settings.bitstr_len,
        units: settings.units,
        truncate: settings.truncate.then(|| settings.window.bounds(clock.now.0)),
        expand_patterns: settings.expand_patterns,
        local_uid: settings.local_uid,
    }
}

pub async fn table(client: &mut Client, settings: &Settings) -> Result<Vec<u8>, ExitCode> {
    let (jobs, now) = load(client, settings, settings.is_brief()).await?;
    let clock = Clock::from_environment(now);
    Ok(rows(settings, &context(settings, &clock, &client.config.cluster), &jobs))
}

/// Header and rows.
pub fn rows(settings: &Settings, context: &Context<'_>, jobs: &[v1::JobRecord]) -> Vec<u8> {
    let columns = &settings.columns;
    let mut out = Vec::with_capacity(256 * (jobs.len() + 2));
    if settings.header {
        table::write_header(&settings.form, columns, &mut out);
    }
    let shown = |column: &Column<_>, text| shown(&settings.form, columns.len(), column, text);
    for job in jobs {
        select::for_each_line(settings, job, |job| {
            if select::shows_job(settings, job) {
                table::write_row(&settings.form, columns, |c| shown(c, context.job(c.field, job)), &mut out);
            }
            for step in &job.steps {
                table::write_row(&settings.form, columns, |c| shown(c, context.step(c.field, job, step)), &mut out);
            }
        });
    }
    out
}

/// A delimiter within a value would move all values after it into the wrong columns.
fn shown<F>(form: &Form, columns: usize, column: &Column<F>, text: String) -> String {
    match form {
        Form::Fixed if column.width == 0 => String::new(),
        Form::Delimited { delimiter, .. } if columns > 1 && !delimiter.is_empty() && text.contains(delimiter) => {
            text.replace(delimiter, "?")
        }
        _ => text,
    }
}

pub async fn json(
    client: &mut Client,
    settings: &Settings,
    words: &[OsString],
    style: Style,
) -> Result<Vec<u8>, ExitCode> {
    let (jobs, now) = load(client, settings, false).await?;
    let clock = Clock::from_environment(now);
    let context = context(settings, &clock, &client.config.cluster);
    let mut lines: Vec<serde_json::Value> = Vec::new();
    for job in &jobs {
        select::for_each_line(settings, job, |job| lines.push(json::job(job, &context)));
    }
    Ok(viewing::json_answer("sacct", words, client, style, vec![("jobs", lines.into())]))
}

/// `--batch-script`: the script of each job, `NONE` where there is none (any more).
pub async fn scripts(client: &mut Client, settings: &Settings) -> Result<Vec<u8>, ExitCode> {
    let (jobs, _) = load(client, settings, false).await?;
    let mut out = Vec::new();
    for job in &jobs {
        let request = v1::JobIdRequest { job: job.id, array_index: None };
        let answer = client.call(Retry::Read, async |mut c: Controller| c.get_script(request).await).await;
        let script = match answer {
            Ok(reply) => reply.script.to_vec(),
            Err(error) if error.refusal_code() == Some(refusal::ACCESS_DENIED) => return Err(failed(&error)),
            Err(CallError::Refused(_) | CallError::Failed { .. }) => b"NONE\n".to_vec(),
            Err(error) => return Err(failed(&error)),
        };
        let id = facts::id(job, settings.bitstr_len);
        out.extend_from_slice(format!("Batch Script for {id}\n{}\n", "-".repeat(80)).as_bytes());
        out.extend_from_slice(&script);
        out.push(b'\n');
    }
    Ok(out)
}
