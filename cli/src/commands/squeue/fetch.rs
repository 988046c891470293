//! The calls behind `squeue`, and what their answers become.

use super::rows::Rows;
use super::settings::{Settings, Shown};
use super::values::Context;
use super::{lines, sort};
use crate::client::{Client, Controller, Retry};
use crate::error::CallError;
use crate::render::json::Style;
use crate::text::wire;
use crate::view::clock::Clock;
use crate::view::job as facts;
use crate::view::jobs_json::{self, Surroundings};
use crate::viewing::{self, undecoded};
use sluice_proto::v1;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;

fn failed(error: &CallError) -> ExitCode {
    if let Some(detail) = error.detail() {
        crate::errln!("squeue: error: {detail}");
    }
    crate::errln!("slurm_load_jobs error: {}", error.reason());
    ExitCode::from(1)
}

/// One look at the queue, as text.
pub async fn table(client: &mut Client, settings: &Settings, headed: bool) -> Result<Vec<u8>, ExitCode> {
    check_nodes(client, settings).await?;
    let order = settings.order()?;
    let partitions = partitions(client, settings).await?;
    let request = request(settings, &order);
    let me = settings.not_me.then(|| viewing::me().user);
    let cluster = client.config.cluster.clone();
    let bitstr_len = facts::bitstr_len(viewing::env("SLURM_BITSTR_LEN").as_deref());
    let mut out = Vec::new();
    match &settings.shown {
        Shown::Jobs(layout) => {
            let answer = undecoded::list_jobs(client, request).await.map_err(|e| failed(&e))?;
            check_ids(settings, answer.unknown_id)?;
            let clock = Clock::from_environment(answer.now);
            let context = Context { clock: &clock, cluster: &cluster, bitstr_len };
            lines::head(settings, &context, headed, &mut out);
            let tiers: BTreeMap<String, u32> = partitions.iter().map(|p| (p.name.clone(), p.priority_tier)).collect();
            let tiers = settings.by_partition.then_some(&tiers);
            let mut rows = Rows::new(settings, layout, &context, order, tiers, answer.size());
            let read = answer.for_each(|job| {
                if lines::keep(settings, me.as_deref(), job) && visible(settings, &partitions, job) {
                    rows.add(job);
                }
            });
            read.map_err(|e| failed(&CallError::Failed { problem: e.to_string() }))?;
            out.append(&mut rows.finish());
        }
        Shown::Steps(layout) => {
            let mut answer = client.list_jobs(request).await.map_err(|e| failed(&e))?;
            check_ids(settings, answer.unknown_id)?;
            answer.jobs.retain(|job| lines::keep(settings, me.as_deref(), job) && visible(settings, &partitions, job));
            let clock = Clock::from_environment(answer.now);
            let context = Context { clock: &clock, cluster: &cluster, bitstr_len };
            lines::head(settings, &context, headed, &mut out);
            lines::step_rows(settings, layout, &context, &answer.jobs, &mut out)?;
        }
    }
    Ok(out)
}

/// One look at the queue, as JSON.
pub async fn json(
    client: &mut Client,
    settings: &Settings,
    words: &[OsString],
    style: Style,
) -> Result<Vec<u8>, ExitCode> {
    check_nodes(client, settings).await?;
    let partitions = partitions(client, settings).await?;
    let mut request = request(settings, &[]);
    request.detail = true;
    if request.states.is_empty() {
        // Without --states the JSON holds every job that the controller still knows.
        request.states = vec!["ALL".to_owned()];
    }
    let mut answer = client.list_jobs(request).await.map_err(|e| failed(&e))?;
    check_ids(settings, answer.unknown_id)?;
    let me = settings.not_me.then(|| viewing::me().user);
    answer.jobs.retain(|job| lines::keep(settings, me.as_deref(), job) && visible(settings, &partitions, job));
    answer.jobs.sort_by_key(facts::order);
    let nodes = client
        .call(Retry::Read, async |mut c: Controller| c.list_nodes(v1::ListNodesRequest::default()).await)
        .await
        .map_err(|e| failed(&e))?;
    let cluster = client.config.cluster.clone();
    let around = Surroundings { cluster: &cluster, nodes: &nodes.nodes };
    let jobs: Vec<serde_json::Value> = answer.jobs.iter().map(|j| jobs_json::job(j, &around)).collect();
    let records = vec![
        ("jobs", jobs.into()),
        ("last_backfill", crate::render::json::number(0)),
        ("last_update", crate::render::json::time(Some(answer.now))),
    ];
    Ok(viewing::json_answer("squeue", words, client, style, records))
}

fn request(settings: &Settings, order: &[sort::Key]) -> v1::ListJobsRequest {
    let filtered = !settings.licenses.is_empty() || !settings.reservations.is_empty();
    let (detail, steps) = match &settings.shown {
        Shown::Jobs(layout) => (filtered || layout.fields().any(|f| f.detail) || sort::needs_detail(order), false),
        Shown::Steps(_) => (filtered, true),
    };
    let targets = if settings.jobs.is_empty() { &settings.steps } else { &settings.jobs };
    v1::ListJobsRequest {
        jobs: lines::wire_targets(targets),
        users: settings.users.clone(),
        states: settings.states.clone(),
        partitions: settings.partitions.clone(),
        accounts: settings.accounts.clone(),
        names: settings.names.iter().map(|n| wire(n)).collect(),
        nodes: settings.nodes.clone(),
        qos: settings.qos.clone(),
        detail,
        steps,
        start_estimates: settings.start,
    }
}

/// One unknown id is an error, one of several is not: scripts rely on both.
fn check_ids(settings: &Settings, unknown: bool) -> Result<(), ExitCode> {
    if unknown && settings.jobs.len() == 1 {
        crate::errln!("slurm_load_jobs error: Invalid job id specified");
        return Err(ExitCode::from(1));
    }
    Ok(())
}

/// Needed for hidden partitions and for tiers.
async fn partitions(client: &mut Client, settings: &Settings) -> Result<Vec<v1::PartitionRecord>, ExitCode> {
    if settings.show_hidden && !settings.by_partition {
        return Ok(Vec::new());
    }
    let answer = client
        .call(Retry::Read, async |mut c: Controller| c.list_partitions(v1::Empty {}).await)
        .await
        .map_err(|e| failed(&e))?;
    Ok(answer.partitions)
}

fn visible(settings: &Settings, partitions: &[v1::PartitionRecord], job: &v1::JobRecord) -> bool {
    settings.show_hidden
        || !partitions.iter().any(|p| p.hidden)
        || job.partition.split(',').any(|name| !partitions.iter().any(|p| p.hidden && p.name == name))
}

async fn check_nodes(client: &mut Client, settings: &Settings) -> Result<(), ExitCode> {
    if settings.nodes.is_empty() {
        return Ok(());
    }
    let known = client
        .call(Retry::Read, async |mut c: Controller| c.list_nodes(v1::ListNodesRequest::default()).await)
        .await
        .map_err(|e| failed(&e))?;
    for name in &settings.nodes {
        if !known.nodes.iter().any(|n| n.name == *name || crate::view::node::hostname(n) == name) {
            crate::errln!("squeue: error: Invalid node name {name}");
            return Err(ExitCode::from(1));
        }
    }
    Ok(())
}
