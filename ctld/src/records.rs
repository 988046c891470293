//! Turns the engine's jobs, nodes and partitions into the records that commands read. No policy here: what a value
//! means is decided in the engine; this only selects and converts.

use crate::view::Remarks;
use sluice_engine::job::{ArrayRole, Outcome, Phase};
use sluice_engine::{Job, State, query};
use sluice_model::step::Usage;
use sluice_model::{JobState, NodeName, PartitionSpec, Reason, Time, hostlist};
use sluice_proto::v1;
use std::collections::BTreeMap;

/// Folds node names in allocation order into Slurm's host list form.
fn fold<'a>(names: impl Iterator<Item = &'a NodeName>) -> String {
    let names: Vec<&str> = names.map(NodeName::as_str).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        many => hostlist::fold(many),
    }
}

/// How much of a job a reader wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail {
    /// Request, allocation, outcome …
    pub full: bool,
    /// With `full`: all of it but request, allocation and steps, which are most of a record.
    pub brief: bool,
    pub steps: bool,
    pub estimates: bool,
}

pub fn outcome(o: &Outcome) -> v1::Outcome {
    v1::Outcome {
        state: o.state.long().to_owned(),
        reason: o.reason.number(),
        exit: Some((&o.exit).into()),
        derived_exit: Some((&o.derived_exit).into()),
        by_uid: o.by_uid,
        detail: o.detail.clone(),
    }
}

/// Run time so far or in all, without suspensions, in milliseconds.
fn elapsed_ms(job: &Job, now: Time) -> i64 {
    let Some(run) = job.run() else { return 0 };
    let end = job.ended().unwrap_or(now);
    let suspended = run.suspended_since.map_or(0, |since| (end.0 - since.0).max(0));
    (end.0 - run.started.0 - suspended - i64::try_from(run.suspended_ms).unwrap_or(0)).max(0)
}

/// Why it waits or how it ended.
pub fn reason(job: &Job, state: &State, remarks: &Remarks, now: Time) -> Reason {
    match &job.phase {
        Phase::Pending => query::wait_reason(job, state, now)
            .or_else(|| remarks.reasons.get(&job.id).copied())
            // The scheduler remarks only on the jobs that it looked at; the rest wait behind those.
            .unwrap_or(if remarks.at.is_some_and(|at| at > job.submitted) { Reason::Priority } else { Reason::None }),
        Phase::Running(_) => query::hold_reason(job).unwrap_or(Reason::None),
        Phase::Completing { outcome, .. } | Phase::Ended { outcome, .. } => outcome.reason,
    }
}

/// Start + limit + what it was suspended.
fn planned_end(job: &Job) -> Option<Time> {
    let run = job.run()?;
    let limit = job.time_limit.duration()?;
    Some(Time(run.started.0 + i64::try_from(limit.as_millis()).unwrap_or(i64::MAX / 2) + run.suspended_ms as i64))
}

/// The record of a job at `now`.
pub fn job(job: &Job, state: &State, remarks: &Remarks, now: Time, detail: Detail) -> v1::JobRecord {
    let spec = &job.spec;
    let mut record = v1::JobRecord {
        id: job.id.0,
        name: bytes::Bytes::copy_from_slice(spec.name.as_bytes()),
        uid: spec.uid,
        gid: spec.gid,
        user: spec.user.to_string(),
        partition: match &job.partition {
            Some(name) => name.clone(),
            None => job.partitions.join(","),
        },
        state: job.state().long().to_owned(),
        reason: reason(job, state, remarks, now).number(),
        submit: job.submitted.0,
        eligible: job.eligible.map(|t| t.0),
        time_limit: Some(v1::TimeLimit::from(&job.time_limit)),
        priority: remarks.board.priority(state, job),
        account: spec.account.clone().unwrap_or_default(),
        qos: spec.qos.clone().unwrap_or_else(|| "normal".to_owned()),
        association: job.association.map_or(0, |a| a.0),
        elapsed_ms: elapsed_ms(job, now),
        attempt: job.attempt,
        ..v1::JobRecord::default()
    };
    match &job.array {
        ArrayRole::None => {}
        ArrayRole::Pending { indices, throttle } => {
            record.array_job = Some(job.id.0);
            record.array_pending = Some(indices.into());
            record.array_throttle = *throttle;
        }
        ArrayRole::Block { array, indices } => {
            record.array_job = Some(array.0);
            record.array_pending = Some(indices.into());
        }
        ArrayRole::Task { array, index } => {
            record.array_job = Some(array.0);
            record.array_index = Some(*index);
            record.array_throttle = spec.array.as_ref().and_then(|a| a.throttle);
        }
    }
    match job.run() {
        Some(run) => {
            let allocation = &run.allocation;
            record.start = Some(run.started.0);
            record.end = job.ended().or_else(|| planned_end(job)).map(|t| t.0);
            record.num_nodes = allocation.nodes.len() as u32;
            record.num_cpus = allocation.cpus();
            record.num_tasks = spec.request.ntasks.unwrap_or_else(|| allocation.tasks());
            record.node_list = fold(allocation.names());
            record.suspended_ms = i64::try_from(run.suspended_ms).unwrap_or(i64::MAX);
            record.suspended_since = run.suspended_since.map(|t| t.0);
            record.preempted_at = run.preempted.as_ref().map(|p| p.at.0);
            if let Some(ends) = run.preempted.as_ref().and_then(|p| p.ends).filter(|_| job.ended().is_none()) {
                record.end = Some(record.end.map_or(ends.0, |end| end.min(ends.0)));
            }
        }
        None => {
            record.end = job.ended().map(|t| t.0);
            let totals = query::requested(job, state);
            record.num_nodes = totals.nodes;
            record.num_cpus = totals.cpus;
            record.num_tasks = totals.tasks;
            record.requested_memory_mb = totals.memory_mb;
        }
    }
    if matches!(job.phase, Phase::Pending) {
        if let Some(planned) = remarks.planned.get(&job.id) {
            record.start = Some(planned.start.0.max(now.0));
            if detail.estimates || detail.full {
                record.sched_nodes = fold(planned.nodes.iter());
            }
        } else if let Some(t) = job.not_before.filter(|t| *t > now) {
            record.start = Some(t.0);
        }
    }
    if let Phase::Completing { outcome, .. } = &job.phase {
        record.completing_state = outcome.state.long().to_owned();
    }
    if (detail.steps || detail.full) && !detail.brief {
        record.steps = job.steps.values().map(|s| v1::StepRecord::from(s.as_ref())).collect();
    }
    if detail.full {
        add_detail(&mut record, job, state, remarks, detail.brief);
    }
    record
}

fn add_detail(record: &mut v1::JobRecord, job: &Job, state: &State, remarks: &Remarks, brief: bool) {
    if !brief {
        record.spec = Some(Box::new(v1::JobSpec::from(job.spec.as_ref())));
    }
    if let Some(run) = job.run() {
        record.allocation = (!brief).then(|| Box::new(v1::Allocation::from(run.allocation.as_ref())));
        record.batch_host = run.allocation.nodes.first().map(|n| n.node.to_string()).unwrap_or_default();
        record.backfilled = run.backfilled;
        record.preempt_eligible = query::preempt_eligible_at(state, job).map(|t| t.0);
        record.requested_memory_mb = query::requested(job, state).memory_mb;
    }
    record.outcome = job.outcome().map(|o| Box::new(outcome(o)));
    record.waiting_on = job.waiting_on.as_deref().map(|d| Box::new(d.into()));
    record.dependency_failed = job.dependency_failed;
    record.comment = job.comment.as_ref().map(|c| bytes::Bytes::copy_from_slice(c.as_bytes()));
    record.admin_comment = job.admin_comment.clone();
    // What ended it (a directory, file or interpreter by name), where a user looks for it.
    let why = || job.outcome().and_then(|o| o.detail.clone());
    record.system_comment = job.system_comment.clone().or_else(why);
    record.requeue = job.requeue;
    record.not_before = job.not_before.map(|t| t.0);
    record.last_sched_eval = remarks.at.map(|t| t.0);
    let usage = job
        .steps
        .values()
        .filter(|s| s.key.attempt == job.attempt)
        .fold(Usage::default(), |sum, step| sum.merge(step.usage));
    record.usage = Some(Box::new(v1::Usage::from(&usage)));
}

/// A node and what is used on it.
pub fn node(
    node: &sluice_engine::node::Node,
    state: &State,
    remarks: &Remarks,
    health: Option<Health>,
) -> v1::NodeRecord {
    let spec = &node.spec;
    let mut cpus = 0;
    let mut memory = 0;
    let mut gres: BTreeMap<(String, Option<String>), sluice_model::index_set::IndexSet> = BTreeMap::new();
    let mut completing = false;
    for id in &node.jobs {
        let Some(job) = state.jobs.get(id) else { continue };
        completing |= job.state() == JobState::Completing;
        let Some(alloc) = job.run().and_then(|run| run.allocation.on(&spec.name)) else { continue };
        cpus += alloc.cpus.len() as u32;
        memory += alloc.memory_mb;
        for g in &alloc.gres {
            let key = (g.name.clone(), g.kind.clone());
            let sum = gres.entry(key).or_default();
            *sum = sum.union(&g.indices);
        }
    }
    v1::NodeRecord {
        name: spec.name.to_string(),
        sockets: spec.sockets,
        cores_per_socket: spec.cores_per_socket,
        threads_per_core: spec.threads_per_core,
        cpus: spec.cpus,
        memory_mb: spec.memory_mb,
        tmp_disk_mb: spec.tmp_disk_mb,
        gres: spec.gres.iter().map(v1::GresSpec::from).collect(),
        features: spec.features.clone(),
        weight: spec.weight,
        down: node.flags.down,
        drain: node.flags.drain,
        fail: node.flags.fail,
        unknown: node.flags.unknown,
        not_responding: node.flags.not_responding,
        reason: node.reason.as_ref().map(|r| r.text.clone()),
        reason_uid: node.reason.as_ref().map(|r| r.uid),
        reason_user: node.reason.as_ref().map(|r| sluice_identity::users::name_of(r.uid)),
        reason_time: node.reason.as_ref().map(|r| r.at.0),
        report: node.report.as_ref().map(|r| v1::NodeReport::from(r.as_ref())),
        alloc_cpus: cpus,
        alloc_memory_mb: memory,
        alloc_gres: gres
            .into_iter()
            .map(|((name, kind), indices)| v1::GresAlloc { name, kind, indices: Some((&indices).into()) })
            .collect(),
        completing,
        jobs: node.jobs.iter().map(|j| j.0).collect(),
        partitions: state
            .partitions
            .values()
            .filter(|p| p.nodes.contains(&spec.name))
            .map(|p| p.name.clone())
            .collect(),
        last_busy: node.last_busy.map(|t| t.0),
        comment: node.comment.clone(),
        cpu_load_hundredths: health.map(|h| h.cpu_load_hundredths),
        free_memory_mb: health.map(|h| h.free_memory_mb),
        planned: remarks.planned.values().any(|p| p.nodes.contains(&spec.name)) && node.jobs.is_empty(),
    }
}

/// A node's last heartbeat.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    pub cpu_load_hundredths: u32,
    pub free_memory_mb: u64,
}

/// Its own, or the cluster's where partitions say who may preempt; OFF where nobody may.
fn preempt_mode(spec: &PartitionSpec, state: &State) -> sluice_model::config::Mode {
    let config = state.config.as_ref().map(|c| c.preemption.clone()).unwrap_or_default();
    spec.preempt_mode.unwrap_or(config.mode)
}

pub fn partition(spec: &PartitionSpec, state: &State) -> v1::PartitionRecord {
    let nodes = || spec.nodes.iter().filter_map(|n| state.nodes.get(n));
    let mut gres: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for g in nodes().flat_map(|n| &n.spec.gres) {
        *gres.entry((g.name.clone(), g.kind.clone())).or_default() += g.count;
    }
    v1::PartitionRecord {
        name: spec.name.clone(),
        nodes: spec.nodes.iter().map(ToString::to_string).collect(),
        default: spec.default,
        max_time: Some((&spec.max_time).into()),
        default_time: spec.default_time.as_ref().map(v1::TimeLimit::from),
        min_nodes: spec.min_nodes,
        max_nodes: spec.max_nodes,
        priority_tier: spec.priority_tier,
        priority_job_factor: spec.priority_job_factor,
        state: spec.state.as_str().to_owned(),
        allow_users: spec.allow_users.clone(),
        allow_groups: spec.allow_groups.clone(),
        allow_accounts: spec.allow_accounts.clone(),
        allow_qos: spec.allow_qos.clone(),
        root_only: spec.root_only,
        hidden: spec.hidden,
        exclusive: spec.exclusive,
        default_memory_per_cpu_mb: spec.default_memory_per_cpu_mb,
        default_memory_per_node_mb: spec.default_memory_per_node_mb,
        max_memory_per_node_mb: spec.max_memory_per_node_mb,
        max_cpus_per_node: spec.max_cpus_per_node,
        least_loaded: spec.least_loaded,
        grace_secs: spec.grace_secs,
        preempt_mode: preempt_mode(spec, state).shown().to_owned(),
        billing_weights: spec.billing_weights.to_string(),
        qos: spec.qos.clone(),
        total_cpus: nodes().map(|n| n.spec.cpus).sum(),
        total_memory_mb: nodes().map(|n| n.spec.memory_mb).sum(),
        total_gres: gres
            .into_iter()
            .map(|((name, kind), count)| v1::GresSpec { name, kind, count, ..Default::default() })
            .collect(),
    }
}
