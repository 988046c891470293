//! From records to lines: expands arrays and partitions, sorts, writes header and rows. No call is made here.

use super::settings::{Settings, Shown};
use super::values::Context;
use super::{fields, sort, steps};
use crate::view::columns::Layout;
use crate::view::job as facts;
use sluice_model::JobState;
use sluice_model::job_target::JobTarget;
use sluice_model::{JobId, StepId};
use sluice_proto::v1;
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Above the table: the time with `--long` and `--iterate`, the header unless it is unwanted.
pub fn head(settings: &Settings, context: &Context<'_>, headed: bool, out: &mut Vec<u8>) {
    if headed {
        out.extend_from_slice(format!("CLUSTER: {}\n", context.cluster).as_bytes());
    }
    if !settings.header {
        return;
    }
    if settings.long || settings.iterate.is_some() {
        out.extend_from_slice(format!("{}\n", context.clock.heading()).as_bytes());
    }
    match &settings.shown {
        Shown::Jobs(layout) => layout.row(out, |f, out| out.extend_from_slice(f.header.as_bytes())),
        Shown::Steps(layout) => layout.row(out, |f, out| out.extend_from_slice(f.header.as_bytes())),
    }
}

/// Keeps what the controller does not select itself.
pub fn keep(settings: &Settings, me: Option<&str>, job: &v1::JobRecord) -> bool {
    let spec = job.spec.as_ref();
    let licensed = || {
        spec.is_some_and(|s| {
            settings.licenses.iter().any(|l| s.licenses.contains_key(l.split(':').next().unwrap_or_default()))
        })
    };
    let reserved = || spec.and_then(|s| s.reservation.as_ref()).is_some_and(|r| settings.reservations.contains(r));
    let ran = u128::try_from(job.elapsed_ms).unwrap_or(0);
    let running = job.state == JobState::Running.long();
    (settings.licenses.is_empty() || licensed())
        && (settings.reservations.is_empty() || reserved())
        && settings.running_over.is_none_or(|d| running && ran > d.as_millis())
        && settings.running_under.is_none_or(|d| running && ran < d.as_millis())
        && me.is_none_or(|me| job.user != me)
}

/// A waiting job of several partitions as one record for each, as `--priority` shows it.
pub fn split_partitions(settings: &Settings, job: v1::JobRecord) -> Vec<v1::JobRecord> {
    if job.state != JobState::Pending.long() || !job.partition.contains(',') {
        return vec![job];
    }
    let wanted = |p: &&str| settings.partitions.is_empty() || settings.partitions.iter().any(|w| w == p);
    let one = |partition: &str| v1::JobRecord { partition: partition.to_owned(), ..job.clone() };
    job.partition.split(',').filter(wanted).map(one).collect()
}

/// Rows of jobs.
pub fn jobs(
    settings: &Settings,
    layout: &Layout<&'static fields::Info>,
    context: &Context<'_>,
    mut records: Vec<v1::JobRecord>,
    tiers: Option<&BTreeMap<String, u32>>,
    out: &mut Vec<u8>,
) -> Result<(), ExitCode> {
    if settings.split_arrays {
        records = records.into_iter().flat_map(facts::split_array).collect();
        // The controller selects whole records: of those that stand for many tasks only the named ones are wanted.
        records.retain(|job| wanted(&settings.jobs, job));
    }
    if settings.by_partition {
        records = records.into_iter().flat_map(|job| split_partitions(settings, job)).collect();
    }
    sort::sort(&mut records, &settings.order()?, tiers);
    for job in &records {
        layout.row(out, |info, out| context.write(info.field, job, out));
    }
    Ok(())
}

fn wanted(targets: &[JobTarget], job: &v1::JobRecord) -> bool {
    targets.is_empty() || targets.iter().any(|t| covers(t, job))
}

fn covers(target: &JobTarget, job: &v1::JobRecord) -> bool {
    let ids = [Some(job.id), job.array_job];
    ids.contains(&Some(target.job.0))
        && target.tasks.as_ref().is_none_or(|tasks| job.array_index.is_some_and(|i| tasks.contains(i)))
}

/// Rows of steps.
pub fn step_rows(
    settings: &Settings,
    layout: &Layout<steps::Shown>,
    context: &Context<'_>,
    records: &[v1::JobRecord],
    out: &mut Vec<u8>,
) -> Result<(), ExitCode> {
    let mut rows = steps::running(records);
    rows.retain(|(job, step)| {
        let number = StepId::from_wire(step.key.map_or(0, |k| k.step));
        settings.steps.is_empty()
            || settings.steps.iter().any(|t| covers(t, job) && t.step.is_none_or(|wanted| wanted == number))
    });
    if let Some(list) = &settings.sort {
        steps::sort(&mut rows, list).map_err(|letter| {
            crate::errln!("squeue: error: Invalid sort specification: {letter}");
            ExitCode::from(1)
        })?;
    }
    for row in rows {
        layout.row(out, |shown, out| steps::write(context, shown.field, row, out));
    }
    Ok(())
}

/// The target's job ids, for the request.
pub fn wire_targets(targets: &[JobTarget]) -> Vec<v1::JobTarget> {
    let one = |t: &JobTarget| {
        let JobId(job) = t.job;
        v1::JobTarget { job, tasks: t.tasks.as_ref().map(v1::IndexSet::from) }
    };
    targets.iter().map(one).collect()
}
