//! Events and journal records.

use super::change::{node_change_from_disk, node_change_to_disk, partition_change_from_disk, partition_change_to_disk};
use super::config::{config_from_disk, config_to_disk};
use super::job::{
    after_from_disk, after_to_disk, claim_from_disk, claim_to_disk, hold_from_disk, hold_to_disk, ids_from_disk,
    job_from_disk, job_to_disk, outcome_from_disk, outcome_to_disk,
};
use super::node::{attempts_from_disk, attempts_to_disk, reason_from_disk, reason_to_disk};
use super::usage;
use super::{
    ConvertError, Result, convert, convert_optional, index_set_from_disk, names_from_disk, names_to_disk, required,
    time_to_disk,
};
use prost::Message;
use prost::bytes::Bytes;
use sluice_engine::Event;
use sluice_model::{NodeName, OsBytes, Time};
use sluice_proto::convert::{assoc_id, job_id, to_bytes};
use sluice_proto::v1;
use std::sync::Arc;
use v1::disk_event as d;
use v1::disk_event::Kind;

/// Appends the bytes of a journal record to `out`.
pub fn encode_record(events: &[Event], out: &mut Vec<u8>) {
    let record = v1::JournalRecord { events: events.iter().map(event_to_disk).collect() };
    // A Vec has room for all it is asked to hold.
    out.reserve(record.encoded_len());
    record.encode_raw(out);
}

/// The events of a journal record.
pub fn decode_record(bytes: &[u8]) -> std::result::Result<Vec<Event>, String> {
    // From one copy, of which byte fields are parts: cheaper than a copy for each field.
    let record =
        v1::JournalRecord::decode(Bytes::copy_from_slice(bytes)).map_err(|e| format!("not a journal record: {e}"))?;
    let events = record.events.into_iter().map(event_from_disk).collect::<Result<_>>();
    events.map_err(|e| e.to_string())
}

fn event_to_disk(event: &Event) -> v1::DiskEvent {
    let kind = match event {
        Event::Configured { config } => Kind::Configured(d::Configured { config: Some(config_to_disk(config)) }),
        Event::JobSubmitted { job } => {
            Kind::JobSubmitted(d::JobSubmitted { job: Some(job_to_disk(job, 0)), spec: Some((&*job.spec).into()) })
        }
        Event::JobEligible { job, at } => Kind::JobEligible(d::JobEligible { job: job.0, at: time_to_disk(*at) }),
        Event::DependencyChanged { job, waiting_on, failed } => Kind::DependencyChanged(d::DependencyChanged {
            job: job.0,
            waiting_on: waiting_on.as_ref().map(Into::into),
            failed: *failed,
        }),
        Event::ArrayTasksEnded { array, indices, outcome, at } => Kind::ArrayTasksEnded(d::ArrayTasksEnded {
            array: array.0,
            indices: Some(indices.into()),
            outcome: Some(outcome_to_disk(outcome)),
            at: at.0,
        }),
        Event::ArrayTaskSplit { array, index, job } => {
            Kind::ArrayTaskSplit(d::ArrayTaskSplit { array: array.0, index: *index, job: job.0 })
        }
        Event::ArrayPartSplit { record, indices, job } => {
            Kind::ArrayPartSplit(d::ArrayPartSplit { record: record.0, indices: Some(indices.into()), job: job.0 })
        }
        Event::JobStarted { job, array, attempt, partition, allocation, time_limit, backfilled, priority, at } => {
            Kind::JobStarted(d::JobStarted {
                job: job.0,
                array: array.map(|(array, index)| v1::DiskArrayTask { array: array.0, index }),
                attempt: *attempt,
                partition: partition.clone(),
                allocation: Some((&**allocation).into()),
                time_limit: Some(time_limit.into()),
                backfilled: *backfilled,
                at: at.0,
                priority: *priority,
            })
        }
        Event::AttemptConfirmed { job, attempt, node } => Kind::AttemptConfirmed(d::AttemptConfirmed {
            job: job.0,
            attempt: *attempt,
            node: node.as_str().to_owned(),
        }),
        Event::JobEnding { job, outcome, kill_at, then } => Kind::JobEnding(d::JobEnding {
            job: job.0,
            outcome: Some(outcome_to_disk(outcome)),
            kill_at: kill_at.0,
            then: Some(after_to_disk(*then)),
        }),
        Event::JobKilled { job } => Kind::JobKilled(d::JobKilled { job: job.0 }),
        Event::JobWarned { job } => Kind::JobWarned(d::JobWarned { job: job.0 }),
        Event::JobMailed { job, what } => Kind::JobMailed(d::JobMailed { job: job.0, what: *what }),
        Event::JobPreempted { job, by, mode, within, at, ends } => Kind::JobPreempted(d::JobPreempted {
            job: job.0,
            by: by.0,
            mode: mode.code(),
            within: *within,
            at: at.0,
            ends: time_to_disk(*ends),
        }),
        Event::JobClaimed { job, claim } => {
            Kind::JobClaimed(d::JobClaimed { job: job.0, claim: claim.as_deref().map(claim_to_disk) })
        }
        Event::JobSuspended { job, at } => Kind::JobSuspended(d::JobSuspended { job: job.0, at: at.0 }),
        Event::JobResumed { job, at } => Kind::JobResumed(d::JobResumed { job: job.0, at: at.0 }),
        Event::JobCompleting { job, outcome, at, waiting_for, then } => Kind::JobCompleting(d::JobCompleting {
            job: job.0,
            outcome: Some(outcome_to_disk(outcome)),
            at: at.0,
            waiting_for: names_to_disk(waiting_for),
            then: Some(after_to_disk(*then)),
        }),
        Event::NodeReleased { job, node } => {
            Kind::NodeReleased(d::NodeReleased { job: job.0, node: node.as_str().to_owned() })
        }
        Event::JobEnded { job, outcome, at } => {
            Kind::JobEnded(d::JobEnded { job: job.0, outcome: Some(outcome_to_disk(outcome)), at: at.0 })
        }
        Event::JobRequeued { job, attempt, not_before, hold, at } => Kind::JobRequeued(d::JobRequeued {
            job: job.0,
            attempt: *attempt,
            not_before: time_to_disk(*not_before),
            hold: hold_to_disk(*hold),
            at: at.0,
        }),
        Event::JobPriority { job, priority, base_priority, hold, given } => Kind::JobPriority(d::JobPriority {
            job: job.0,
            priority: *priority,
            base_priority: *base_priority,
            hold: hold_to_disk(*hold),
            given: *given,
        }),
        Event::UsageCharged { job, charge } => Kind::UsageCharged(usage::charge_to_disk(*job, charge)),
        Event::UsageRebased { at, half_life_ms, constant } => Kind::UsageRebased(d::UsageRebased {
            at: at.0,
            half_life_ms: *half_life_ms,
            constant: constant.iter().map(|o| usage::owner_to_disk(o, None)).collect(),
        }),
        Event::UsageCleared { owners, at } => Kind::UsageCleared(d::UsageCleared {
            all: owners.is_none(),
            owners: owners.iter().flatten().map(|o| usage::owner_to_disk(o, None)).collect(),
            at: at.0,
        }),
        Event::JobUpdated {
            job,
            spec,
            time_limit,
            partitions,
            not_before,
            requeue,
            comment,
            admin_comment,
            throttle,
            association,
        } => Kind::JobUpdated(d::JobUpdated {
            job: job.0,
            spec: Some((&**spec).into()),
            time_limit: Some(time_limit.into()),
            partitions: partitions.to_vec(),
            not_before: time_to_disk(*not_before),
            requeue: *requeue,
            comment: comment.as_ref().map(to_bytes),
            admin_comment: admin_comment.clone(),
            throttle: *throttle,
            association: association.map(|a| a.0),
        }),
        Event::StepChanged { step } => Kind::StepChanged(d::StepChanged { step: Some((&**step).into()) }),
        Event::ArchiveOrdered { at } => Kind::ArchiveOrdered(d::ArchiveOrdered { at: at.0 }),
        Event::JobsPurged { jobs } => Kind::JobsPurged(d::JobsPurged { jobs: jobs.iter().map(|j| j.0).collect() }),
        Event::NodeRegistered { node, report, stale, at } => Kind::NodeRegistered(d::NodeRegistered {
            node: node.as_str().to_owned(),
            report: Some((&**report).into()),
            stale: attempts_to_disk(stale),
            at: at.0,
        }),
        Event::StaleGone { node, job, attempt } => {
            Kind::StaleGone(d::StaleGone { node: node.as_str().to_owned(), job: job.0, attempt: *attempt })
        }
        Event::NodeUpdated { node, change, reason } => Kind::NodeUpdated(d::NodeUpdated {
            node: node.as_str().to_owned(),
            change: Some(node_change_to_disk(change)),
            reason: reason.as_ref().map(reason_to_disk),
        }),
        Event::NodeHealth { node, not_responding, down, reason, at } => Kind::NodeHealth(d::NodeHealth {
            node: node.as_str().to_owned(),
            not_responding: *not_responding,
            down: *down,
            reason: reason.as_ref().map(reason_to_disk),
            at: at.0,
        }),
        Event::PartitionUpdated { name, change } => Kind::PartitionUpdated(d::PartitionUpdated {
            name: name.clone(),
            change: Some(partition_change_to_disk(change)),
        }),
        Event::AccountSet { account } => Kind::AccountSet((&**account).into()),
        Event::AccountRemoved { name } => Kind::AccountRemoved(d::Removed { name: name.clone() }),
        Event::UserSet { user } => Kind::UserSet((&**user).into()),
        Event::UserRemoved { name } => Kind::UserRemoved(d::Removed { name: name.clone() }),
        Event::AssociationSet { association } => Kind::AssociationSet((&**association).into()),
        Event::AssociationRemoved { id } => Kind::AssociationRemoved(id.0),
        Event::QosSet { qos } => Kind::QosSet((&**qos).into()),
        Event::QosRemoved { name } => Kind::QosRemoved(d::Removed { name: name.clone() }),
    };
    v1::DiskEvent { kind: Some(kind) }
}

fn event_from_disk(event: v1::DiskEvent) -> Result<Event> {
    let Some(kind) = event.kind else {
        return Err(ConvertError::new("kind", "is an event of a newer release"));
    };
    Ok(match kind {
        Kind::Configured(e) => Event::Configured { config: Arc::new(config_from_disk(required(e.config, "config")?)?) },
        Kind::JobSubmitted(e) => {
            let spec = Arc::new(convert(e.spec, "spec")?);
            Event::JobSubmitted { job: Box::new(job_from_disk(required(e.job, "job")?, spec)?) }
        }
        Kind::JobEligible(e) => Event::JobEligible { job: job_id(e.job, "job")?, at: e.at.map(Time) },
        Kind::DependencyChanged(e) => Event::DependencyChanged {
            job: job_id(e.job, "job")?,
            waiting_on: convert_optional(e.waiting_on, "waiting_on")?,
            failed: e.failed,
        },
        Kind::ArrayTasksEnded(e) => Event::ArrayTasksEnded {
            array: job_id(e.array, "array")?,
            indices: index_set_from_disk(e.indices, "indices")?,
            outcome: outcome_from_disk(e.outcome)?,
            at: Time(e.at),
        },
        Kind::ArrayTaskSplit(e) => {
            Event::ArrayTaskSplit { array: job_id(e.array, "array")?, index: e.index, job: job_id(e.job, "job")? }
        }
        Kind::ArrayPartSplit(e) => Event::ArrayPartSplit {
            record: job_id(e.record, "record")?,
            indices: index_set_from_disk(e.indices, "indices")?,
            job: job_id(e.job, "job")?,
        },
        Kind::JobStarted(e) => Event::JobStarted {
            job: job_id(e.job, "job")?,
            array: e.array.map(|task| Ok((job_id(task.array, "array")?, task.index))).transpose()?,
            attempt: e.attempt,
            partition: e.partition,
            allocation: Arc::new(convert(e.allocation, "allocation")?),
            time_limit: convert(e.time_limit, "time_limit")?,
            backfilled: e.backfilled,
            priority: e.priority,
            at: Time(e.at),
        },
        Kind::AttemptConfirmed(e) => {
            Event::AttemptConfirmed { job: job_id(e.job, "job")?, attempt: e.attempt, node: NodeName::new(e.node) }
        }
        Kind::JobEnding(e) => Event::JobEnding {
            job: job_id(e.job, "job")?,
            outcome: outcome_from_disk(e.outcome)?,
            kill_at: Time(e.kill_at),
            then: after_from_disk(e.then),
        },
        Kind::JobKilled(e) => Event::JobKilled { job: job_id(e.job, "job")? },
        Kind::JobWarned(e) => Event::JobWarned { job: job_id(e.job, "job")? },
        Kind::JobMailed(e) => Event::JobMailed { job: job_id(e.job, "job")?, what: e.what },
        Kind::JobPreempted(e) => Event::JobPreempted {
            job: job_id(e.job, "job")?,
            by: job_id(e.by, "by")?,
            mode: super::config::mode_from_disk(e.mode)?,
            within: e.within,
            at: Time(e.at),
            ends: e.ends.map(Time),
        },
        Kind::JobClaimed(e) => Event::JobClaimed {
            job: job_id(e.job, "job")?,
            claim: e.claim.map(claim_from_disk).transpose()?.map(Arc::new),
        },
        Kind::JobSuspended(e) => Event::JobSuspended { job: job_id(e.job, "job")?, at: Time(e.at) },
        Kind::JobResumed(e) => Event::JobResumed { job: job_id(e.job, "job")?, at: Time(e.at) },
        Kind::JobCompleting(e) => Event::JobCompleting {
            job: job_id(e.job, "job")?,
            outcome: outcome_from_disk(e.outcome)?,
            at: Time(e.at),
            waiting_for: names_from_disk(e.waiting_for),
            then: after_from_disk(e.then),
        },
        Kind::NodeReleased(e) => Event::NodeReleased { job: job_id(e.job, "job")?, node: NodeName::new(e.node) },
        Kind::JobEnded(e) => {
            Event::JobEnded { job: job_id(e.job, "job")?, outcome: outcome_from_disk(e.outcome)?, at: Time(e.at) }
        }
        Kind::JobRequeued(e) => Event::JobRequeued {
            job: job_id(e.job, "job")?,
            attempt: e.attempt,
            not_before: e.not_before.map(Time),
            hold: hold_from_disk(e.hold)?,
            at: Time(e.at),
        },
        Kind::JobPriority(e) => Event::JobPriority {
            job: job_id(e.job, "job")?,
            priority: e.priority,
            base_priority: e.base_priority,
            hold: hold_from_disk(e.hold)?,
            given: e.given,
        },
        Kind::UsageCharged(e) => {
            let (job, charge) = usage::charge_from_disk(e)?;
            Event::UsageCharged { job, charge: Box::new(charge) }
        }
        Kind::UsageRebased(e) => Event::UsageRebased {
            at: Time(e.at),
            half_life_ms: e.half_life_ms,
            constant: usage::owners_from_disk(e.constant)?,
        },
        Kind::UsageCleared(e) => Event::UsageCleared {
            owners: if e.all { None } else { Some(usage::owners_from_disk(e.owners)?) },
            at: Time(e.at),
        },
        Kind::JobUpdated(e) => Event::JobUpdated {
            job: job_id(e.job, "job")?,
            spec: Arc::new(convert(e.spec, "spec")?),
            time_limit: convert(e.time_limit, "time_limit")?,
            partitions: e.partitions.into(),
            not_before: e.not_before.map(Time),
            requeue: e.requeue,
            comment: e.comment.map(OsBytes::new),
            admin_comment: e.admin_comment,
            throttle: e.throttle,
            association: e.association.map(assoc_id).transpose()?,
        },
        Kind::StepChanged(e) => Event::StepChanged { step: Arc::new(convert(e.step, "step")?) },
        Kind::ArchiveOrdered(e) => Event::ArchiveOrdered { at: Time(e.at) },
        Kind::JobsPurged(e) => Event::JobsPurged { jobs: ids_from_disk(e.jobs, "jobs")? },
        Kind::NodeRegistered(e) => Event::NodeRegistered {
            node: NodeName::new(e.node),
            report: Arc::new(convert(e.report, "report")?),
            stale: attempts_from_disk(e.stale)?,
            at: Time(e.at),
        },
        Kind::StaleGone(e) => {
            Event::StaleGone { node: NodeName::new(e.node), job: job_id(e.job, "job")?, attempt: e.attempt }
        }
        Kind::NodeUpdated(e) => Event::NodeUpdated {
            node: NodeName::new(e.node),
            change: node_change_from_disk(required(e.change, "change")?)?,
            reason: e.reason.map(reason_from_disk),
        },
        Kind::NodeHealth(e) => Event::NodeHealth {
            node: NodeName::new(e.node),
            not_responding: e.not_responding,
            down: e.down,
            reason: e.reason.map(reason_from_disk),
            at: Time(e.at),
        },
        Kind::PartitionUpdated(e) => Event::PartitionUpdated {
            name: e.name,
            change: Box::new(partition_change_from_disk(required(e.change, "change")?)?),
        },
        Kind::AccountSet(e) => Event::AccountSet { account: Box::new(e.try_into()?) },
        Kind::AccountRemoved(e) => Event::AccountRemoved { name: e.name },
        Kind::UserSet(e) => Event::UserSet { user: Box::new(e.try_into()?) },
        Kind::UserRemoved(e) => Event::UserRemoved { name: e.name },
        Kind::AssociationSet(e) => Event::AssociationSet { association: Box::new(e.try_into()?) },
        Kind::AssociationRemoved(id) => Event::AssociationRemoved { id: assoc_id(id)? },
        Kind::QosSet(e) => Event::QosSet { qos: Box::new(e.try_into()?) },
        Kind::QosRemoved(e) => Event::QosRemoved { name: e.name },
    })
}
