//! Jobs, their runs and outcomes.

use super::{
    ConvertError, Result, convert, convert_list, convert_optional, index_set_from_disk, names_from_disk, names_to_disk,
    required, time_to_disk,
};
use sluice_engine::job::{AfterEnd, ArrayRole, Claim, Hold, Job, Outcome, PastRun, Phase, Preempted, Run};
use sluice_model::step::StepRecord;
use sluice_model::{JobId, JobSpec, OsBytes, Reason, StepId, Time};
use sluice_proto::convert::{assoc_id, job_id, job_state, submit_key, to_bytes};
use sluice_proto::v1;
use std::sync::Arc;
use v1::disk_job::{Array as DiskArray, Phase as DiskPhase};

/// `spec` is the number under which the specification is kept in a snapshot; 0 where it stands beside the job.
pub fn job_to_disk(job: &Job, spec: u32) -> v1::DiskJob {
    let Job {
        id,
        spec: _,
        association,
        array,
        key,
        submitted,
        eligible,
        priority,
        base_priority,
        priority_given,
        hold,
        attempt,
        partitions,
        partition,
        time_limit,
        requeue,
        not_before,
        waiting_on,
        dependency_failed,
        comment,
        admin_comment,
        system_comment,
        phase,
        steps,
        claim,
        past_runs,
    } = job;
    v1::DiskJob {
        id: id.0,
        spec,
        array: array_to_disk(array),
        submit_key: key.map(|k| prost::bytes::Bytes::copy_from_slice(&k.0)),
        submitted: submitted.0,
        eligible: time_to_disk(*eligible),
        priority: *priority,
        base_priority: *base_priority,
        priority_given: *priority_given,
        hold: hold_to_disk(*hold),
        attempt: *attempt,
        partitions: partitions.to_vec(),
        partition: partition.clone(),
        time_limit: Some(time_limit.into()),
        requeue: *requeue,
        not_before: time_to_disk(*not_before),
        waiting_on: waiting_on.as_deref().map(Into::into),
        dependency_failed: *dependency_failed,
        comment: comment.as_ref().map(to_bytes),
        admin_comment: admin_comment.clone(),
        system_comment: system_comment.clone(),
        phase: Some(phase_to_disk(phase)),
        steps: steps_to_disk(steps),
        past_runs: past_runs.iter().map(|run| past_run_to_disk(run)).collect(),
        association: association.map(|a| a.0),
        claim: claim.as_deref().map(claim_to_disk),
    }
}

pub(super) fn claim_to_disk(claim: &Claim) -> v1::DiskClaim {
    let Claim { partition, nodes, victims, at } = claim;
    v1::DiskClaim {
        partition: partition.clone(),
        nodes: names_to_disk(nodes),
        victims: victims.iter().map(|v| v.0).collect(),
        at: at.0,
    }
}

pub(super) fn claim_from_disk(claim: v1::DiskClaim) -> Result<Claim> {
    Ok(Claim {
        partition: claim.partition,
        nodes: names_from_disk(claim.nodes),
        victims: ids_from_disk(claim.victims, "claim.victims")?,
        at: Time(claim.at),
    })
}

fn preempted_to_disk(p: &Preempted) -> v1::DiskPreempted {
    let Preempted { by, mode, within, at, ends } = p;
    v1::DiskPreempted { by: by.0, mode: mode.code(), within: *within, at: at.0, ends: time_to_disk(*ends) }
}

fn preempted_from_disk(p: v1::DiskPreempted) -> Result<Preempted> {
    Ok(Preempted {
        by: job_id(p.by, "preempted.by")?,
        mode: super::config::mode_from_disk(p.mode)?,
        within: p.within,
        at: Time(p.at),
        ends: p.ends.map(Time),
    })
}

/// The way back, with the specification that belongs to it.
pub fn job_from_disk(job: v1::DiskJob, spec: Arc<JobSpec>) -> Result<Job> {
    Ok(Job {
        id: job_id(job.id, "id")?,
        spec,
        association: job.association.map(assoc_id).transpose()?,
        array: array_from_disk(job.array)?,
        key: job.submit_key.map(|k| submit_key(&k, "submit_key")).transpose()?,
        submitted: Time(job.submitted),
        eligible: job.eligible.map(Time),
        priority: job.priority,
        base_priority: job.base_priority,
        priority_given: job.priority_given,
        hold: hold_from_disk(job.hold)?,
        attempt: job.attempt,
        partitions: job.partitions.into(),
        partition: job.partition,
        time_limit: convert(job.time_limit, "time_limit")?,
        requeue: job.requeue,
        not_before: job.not_before.map(Time),
        waiting_on: convert_optional(job.waiting_on, "waiting_on")?.map(Box::new),
        dependency_failed: job.dependency_failed,
        comment: job.comment.map(OsBytes::new),
        admin_comment: job.admin_comment,
        system_comment: job.system_comment,
        phase: phase_from_disk(job.phase)?,
        steps: steps_from_disk(job.steps)?,
        claim: job.claim.map(claim_from_disk).transpose()?.map(Arc::new),
        past_runs: job.past_runs.into_iter().map(past_run_from_disk).collect::<Result<_>>()?,
    })
}

fn array_to_disk(array: &ArrayRole) -> Option<DiskArray> {
    match array {
        ArrayRole::None => None,
        ArrayRole::Pending { indices, throttle } => {
            Some(DiskArray::PendingTasks(v1::disk_job::Pending { indices: Some(indices.into()), throttle: *throttle }))
        }
        ArrayRole::Block { array, indices } => {
            Some(DiskArray::Block(v1::disk_job::Block { array: array.0, indices: Some(indices.into()) }))
        }
        ArrayRole::Task { array, index } => Some(DiskArray::Task(v1::DiskArrayTask { array: array.0, index: *index })),
    }
}

fn array_from_disk(array: Option<DiskArray>) -> Result<ArrayRole> {
    Ok(match array {
        None => ArrayRole::None,
        Some(DiskArray::PendingTasks(tasks)) => ArrayRole::Pending {
            indices: index_set_from_disk(tasks.indices, "array.indices")?,
            throttle: tasks.throttle,
        },
        Some(DiskArray::Block(block)) => ArrayRole::Block {
            array: job_id(block.array, "array.array")?,
            indices: index_set_from_disk(block.indices, "array.indices")?,
        },
        Some(DiskArray::Task(task)) => ArrayRole::Task { array: job_id(task.array, "array.array")?, index: task.index },
    })
}

fn phase_to_disk(phase: &Phase) -> DiskPhase {
    match phase {
        Phase::Pending => DiskPhase::Pending(v1::disk_job::PhasePending {}),
        Phase::Running(run) => DiskPhase::Running(run_to_disk(run)),
        Phase::Completing { run, outcome, ended, waiting_for, then } => {
            DiskPhase::Completing(v1::disk_job::PhaseCompleting {
                run: Some(run_to_disk(run)),
                outcome: Some(outcome_to_disk(outcome)),
                ended: ended.0,
                waiting_for: names_to_disk(waiting_for),
                then: Some(after_to_disk(*then)),
            })
        }
        Phase::Ended { run, outcome, ended } => DiskPhase::Ended(v1::disk_job::PhaseEnded {
            run: run.as_deref().map(run_to_disk),
            outcome: Some(outcome_to_disk(outcome)),
            ended: ended.0,
        }),
    }
}

fn phase_from_disk(phase: Option<DiskPhase>) -> Result<Phase> {
    Ok(match required(phase, "phase")? {
        DiskPhase::Pending(v1::disk_job::PhasePending {}) => Phase::Pending,
        DiskPhase::Running(run) => Phase::Running(Box::new(run_from_disk(run)?)),
        DiskPhase::Completing(c) => Phase::Completing {
            run: Box::new(run_from_disk(required(c.run, "completing.run")?)?),
            outcome: outcome_from_disk(c.outcome)?,
            ended: Time(c.ended),
            waiting_for: names_from_disk(c.waiting_for),
            then: after_from_disk(c.then),
        },
        DiskPhase::Ended(e) => Phase::Ended {
            run: e.run.map(run_from_disk).transpose()?.map(Box::new),
            outcome: outcome_from_disk(e.outcome)?,
            ended: Time(e.ended),
        },
    })
}

fn run_to_disk(run: &Run) -> v1::DiskRun {
    let Run {
        attempt,
        allocation,
        started,
        confirmed,
        confirmed_on,
        suspended_since,
        suspended_ms,
        warned,
        kill_at,
        ending,
        then,
        backfilled,
        mailed,
        preempted,
        lends,
    } = run;
    v1::DiskRun {
        attempt: *attempt,
        allocation: Some((&**allocation).into()),
        started: started.0,
        confirmed: *confirmed,
        confirmed_on: names_to_disk(confirmed_on),
        suspended_since: time_to_disk(*suspended_since),
        suspended_ms: *suspended_ms,
        warned: *warned,
        kill_at: time_to_disk(*kill_at),
        ending: ending.as_ref().map(outcome_to_disk),
        then: Some(after_to_disk(*then)),
        backfilled: *backfilled,
        mailed: *mailed,
        preempted: preempted.as_deref().map(preempted_to_disk),
        lends: *lends,
    }
}

fn run_from_disk(run: v1::DiskRun) -> Result<Run> {
    Ok(Run {
        attempt: run.attempt,
        allocation: Arc::new(convert(run.allocation, "run.allocation")?),
        started: Time(run.started),
        confirmed: run.confirmed,
        confirmed_on: names_from_disk(run.confirmed_on),
        suspended_since: run.suspended_since.map(Time),
        suspended_ms: run.suspended_ms,
        warned: run.warned,
        kill_at: run.kill_at.map(Time),
        ending: run.ending.map(|outcome| outcome_from_disk(Some(outcome))).transpose()?,
        then: after_from_disk(run.then),
        backfilled: run.backfilled,
        mailed: run.mailed,
        preempted: run.preempted.map(preempted_from_disk).transpose()?.map(Box::new),
        lends: run.lends,
    })
}

fn past_run_to_disk(past: &PastRun) -> v1::DiskPastRun {
    let PastRun { run, outcome, ended, steps } = past;
    v1::DiskPastRun {
        run: run.as_deref().map(run_to_disk),
        outcome: Some(outcome_to_disk(outcome)),
        ended: ended.0,
        steps: steps_to_disk(steps),
    }
}

fn past_run_from_disk(past: v1::DiskPastRun) -> Result<Arc<PastRun>> {
    Ok(Arc::new(PastRun {
        run: past.run.map(run_from_disk).transpose()?.map(Box::new),
        outcome: outcome_from_disk(past.outcome)?,
        ended: Time(past.ended),
        steps: steps_from_disk(past.steps)?,
    }))
}

type Steps = imbl::OrdMap<StepId, Arc<StepRecord>>;

fn steps_to_disk(steps: &Steps) -> Vec<v1::StepRecord> {
    steps.values().map(|step| (&**step).into()).collect()
}

fn steps_from_disk(steps: Vec<v1::StepRecord>) -> Result<Steps> {
    let steps: Vec<StepRecord> = convert_list(steps, "steps")?;
    Ok(steps.into_iter().map(|step| (step.key.step, Arc::new(step))).collect())
}

pub(super) fn outcome_to_disk(outcome: &Outcome) -> v1::Outcome {
    let Outcome { state, reason, exit, derived_exit, by_uid, detail } = outcome;
    v1::Outcome {
        state: state.long().to_owned(),
        reason: reason.number(),
        exit: Some(exit.into()),
        derived_exit: Some(derived_exit.into()),
        by_uid: *by_uid,
        detail: detail.clone(),
    }
}

pub(super) fn outcome_from_disk(outcome: Option<v1::Outcome>) -> Result<Outcome> {
    let outcome = required(outcome, "outcome")?;
    Ok(Outcome {
        state: job_state(&outcome.state, "outcome.state")?,
        reason: Reason::from_number(outcome.reason),
        exit: convert(outcome.exit, "outcome.exit")?,
        derived_exit: convert(outcome.derived_exit, "outcome.derived_exit")?,
        by_uid: outcome.by_uid,
        detail: outcome.detail,
    })
}

pub(super) fn after_to_disk(then: AfterEnd) -> v1::DiskAfterEnd {
    match then {
        AfterEnd::Finish => v1::DiskAfterEnd { requeue: false, hold: false },
        AfterEnd::Requeue { hold } => v1::DiskAfterEnd { requeue: true, hold },
    }
}

pub(super) fn after_from_disk(then: Option<v1::DiskAfterEnd>) -> AfterEnd {
    match then {
        Some(v1::DiskAfterEnd { requeue: true, hold }) => AfterEnd::Requeue { hold },
        _ => AfterEnd::Finish,
    }
}

pub(super) fn hold_to_disk(hold: Hold) -> Option<v1::DiskHold> {
    let (kind, reason) = match hold {
        Hold::No => return None,
        Hold::User => (1, Reason::None),
        Hold::Admin => (2, Reason::None),
        Hold::Requeued(reason) => (3, reason),
        Hold::SpecialExit => (4, Reason::None),
    };
    Some(v1::DiskHold { kind, reason: reason.number() })
}

pub(super) fn hold_from_disk(hold: Option<v1::DiskHold>) -> Result<Hold> {
    let Some(hold) = hold else { return Ok(Hold::No) };
    match hold.kind {
        0 => Ok(Hold::No),
        1 => Ok(Hold::User),
        2 => Ok(Hold::Admin),
        3 => Ok(Hold::Requeued(Reason::from_number(hold.reason))),
        4 => Ok(Hold::SpecialExit),
        other => Err(ConvertError::new("hold.kind", format!("is {other}, which this release does not know"))),
    }
}

pub(super) fn ids_from_disk(ids: Vec<u32>, field: &str) -> Result<Vec<JobId>> {
    ids.into_iter().map(|id| job_id(id, field)).collect()
}
