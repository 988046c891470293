//! Submission: is it allowed, can it ever run, and what does its record say at first.

use super::admission::{self, Admission, Asked};
use super::{Cx, settle};
use crate::command::{Caller, Reply, Role};
use crate::dependency;
use crate::effect::Effect;
use crate::event::Event;
use crate::index::latest_start;
use crate::job::{ArrayRole, Hold, Job, Phase};
use crate::query;
use crate::reject::Reject;
use crate::state::State;
use sluice_model::accounting::AssocId;
use sluice_model::config::ClusterConfig;
use sluice_model::job::JobKind;
use sluice_model::partition::PartitionState;
use sluice_model::{JobId, JobSpec, PartitionSpec, SubmissionKey, Time, TimeLimit};
use sluice_sched::Infeasible;
use std::borrow::Cow;
use std::sync::Arc;

/// The first job's priority under priority/basic; each later one gets one less (slurm.conf, PriorityType).
const FIRST_PRIORITY: u32 = 4_294_901_759;

pub(super) fn submit(
    cx: &mut Cx,
    caller: &Caller,
    spec: &JobSpec,
    key: Option<SubmissionKey>,
) -> Result<Reply, Reject> {
    // Sent again because its answer was lost.
    if let Some(job) = key.and_then(|key| query::known_submission(cx, caller.uid, key)) {
        return Ok(Reply::Submitted { job });
    }
    let mut job = new_job(cx, cx.now, caller, spec)?;
    job.key = key;
    if let Some(hit) = query::denied(cx, &job) {
        return Err(Reject::AccountingPolicy { detail: hit.to_string() });
    }
    let id = job.id;
    let wants = job.spec.dependency.is_some();
    let last = Event::JobSubmitted { job: Box::new(job) };
    if wants {
        cx.emit(last);
        settle::reconsider(cx, id);
        if let Some(job) = cx.job_now(id).filter(|j| j.dependency_failed && matches!(j.phase, Phase::Pending)) {
            settle::dependency_lost(cx, &job);
        }
    } else {
        cx.emit_last(last);
    }
    cx.perform(Effect::Notify { job: id });
    Ok(Reply::Submitted { job: id })
}

/// The record that a submission would make; refuses what can't be accepted.
pub(crate) fn new_job(state: &State, now: Time, caller: &Caller, spec: &JobSpec) -> Result<Job, Reject> {
    let config = state.config.clone().ok_or_else(|| Reject::Internal { detail: "no configuration yet".to_owned() })?;
    check_limits(state, &config, spec)?;
    check_privileges(caller, spec)?;
    if let Some(name) = &spec.reservation {
        let allowed = "the name of a reservation; there are none on this cluster".to_owned();
        return Err(Reject::InvalidValue { key: "--reservation".to_owned(), value: name.clone(), allowed });
    }
    let partitions = partitions_for(state, spec)?;
    let names: Vec<String> = partitions.iter().map(|p| p.name.clone()).collect();
    let (spec, association) = admitted(state, spec, &names)?;
    let spec = &*spec;
    for p in &partitions {
        admits(p, caller, spec)?;
    }
    check_times(&config, &partitions, spec, now)?;
    can_ever_run(state, spec, &names)?;

    let id = JobId(state.last_job_id.checked_add(1).ok_or(Reject::TooManyJobs { limit: u32::MAX })?);
    let hold = if spec.hold || spec.priority == Some(0) { Hold::User } else { Hold::No };
    let base_priority = spec.priority.filter(|p| *p > 0).unwrap_or_else(|| initial_priority(&config, id, spec.nice));
    let time_limit = spec.time_limit.unwrap_or_else(|| default_limit(&partitions[0]));
    let array = match &spec.array {
        Some(a) => ArrayRole::Pending { indices: a.indices.clone(), throttle: a.throttle },
        None => ArrayRole::None,
    };
    let mut job = Job {
        id,
        spec: Arc::new(spec.clone()),
        association,
        array,
        key: None,
        submitted: now,
        eligible: None,
        priority: if hold == Hold::No { base_priority } else { 0 },
        base_priority,
        priority_given: spec.priority.is_some_and(|p| p > 0),
        hold,
        attempt: 0,
        partitions: names.into(),
        partition: None,
        time_limit,
        requeue: matches!(spec.kind, JobKind::Batch { .. }) && spec.requeue.unwrap_or(config.scheduling.requeue),
        not_before: spec.begin,
        waiting_on: None,
        dependency_failed: false,
        comment: spec.comment.clone(),
        admin_comment: None,
        system_comment: None,
        phase: Phase::Pending,
        steps: imbl::OrdMap::new(),
        claim: None,
        past_runs: Vec::new(),
    };
    if spec.dependency.is_some() {
        job.waiting_on.clone_from(&spec.dependency);
        let (waiting_on, failed) = dependency::evaluate(state, &job, now);
        job.waiting_on = waiting_on.map(Box::new);
        job.dependency_failed = failed;
    }
    job.eligible = settle::may_start(&job, now).then_some(now);
    Ok(job)
}

/// The specification with account, QOS and wckey as the job gets them, and what it is charged to.
fn admitted<'a>(
    state: &State,
    spec: &'a JobSpec,
    partitions: &[String],
) -> Result<(Cow<'a, JobSpec>, Option<AssocId>), Reject> {
    let asked = Asked {
        user: &spec.user,
        account: spec.account.as_deref(),
        qos: spec.qos.as_deref(),
        wckey: spec.wckey.as_deref(),
        partitions,
    };
    let admission = admission::admit(state, &asked)?;
    let jobs = spec.array.as_ref().map_or(1, |a| a.indices.len());
    admission::check_submit(state, &admission, &spec.user, jobs)?;
    let Admission { association, account, qos, wckey } = admission;
    let mut spec = Cow::Borrowed(spec);
    if (&spec.account, &spec.qos, &spec.wckey) != (&account, &qos, &wckey) {
        let spec = spec.to_mut();
        (spec.account, spec.qos, spec.wckey) = (account, qos, wckey);
    }
    Ok((spec, association))
}

/// What a job without `--time` is given.
pub(super) fn default_limit(p: &PartitionSpec) -> TimeLimit {
    p.default_time.map_or(p.max_time, |d| d.min(p.max_time))
}

/// One less for each job before it, shifted by `--nice`; 0 means held and is never reached this way.
pub(super) fn initial_priority(config: &ClusterConfig, id: JobId, nice: i32) -> u32 {
    let before = id.0.saturating_sub(config.limits.first_job_id);
    niced(FIRST_PRIORITY.saturating_sub(before), nice)
}

pub(super) fn niced(priority: u32, nice: i32) -> u32 {
    let value = i64::from(priority) - i64::from(nice);
    value.clamp(1, i64::from(u32::MAX - 1)) as u32
}

fn check_limits(state: &State, config: &ClusterConfig, spec: &JobSpec) -> Result<(), Reject> {
    if state.jobs.len() >= config.limits.max_jobs as usize {
        return Err(Reject::TooManyJobs { limit: config.limits.max_jobs });
    }
    if let Some(array) = &spec.array {
        let given = || array.indices.to_string();
        let limit = config.limits.max_array_size;
        match array.indices.last() {
            None => {
                return Err(Reject::InvalidArraySpec { value: given(), detail: "it has no task".to_owned() });
            }
            Some(last) if last >= limit => {
                let detail = format!("the largest index allowed is {}", limit.saturating_sub(1));
                return Err(Reject::InvalidArraySpec { value: given(), detail });
            }
            Some(_) => {}
        }
        if !matches!(spec.kind, JobKind::Batch { .. }) {
            return Err(Reject::InvalidArraySpec {
                value: given(),
                detail: "only batch jobs can be arrays".to_owned(),
            });
        }
    }
    Ok(())
}

fn check_privileges(caller: &Caller, spec: &JobSpec) -> Result<(), Reject> {
    if caller.role >= Role::Operator {
        return Ok(());
    }
    if spec.priority.is_some_and(|p| p > 0) {
        return Err(Reject::AccessDenied { what: "--priority is for operators and administrators".to_owned() });
    }
    if spec.site_factor != 0 {
        return Err(Reject::AccessDenied { what: "the site factor is for operators and administrators".to_owned() });
    }
    if spec.nice < 0 {
        return Err(Reject::AccessDenied {
            what: format!("--nice={}: a negative value is for operators and administrators", spec.nice),
        });
    }
    Ok(())
}

fn partitions_for(state: &State, spec: &JobSpec) -> Result<Vec<Arc<PartitionSpec>>, Reject> {
    if spec.partitions.is_empty() {
        let default = state.partitions.values().find(|p| p.default).cloned();
        return Ok(vec![default.ok_or(Reject::NoDefaultPartition)?]);
    }
    let find = |name: &String| {
        state.partitions.get(name).cloned().ok_or_else(|| Reject::InvalidPartition { name: name.clone() })
    };
    spec.partitions.iter().map(find).collect()
}

/// Whether the partition takes this user's job at all (slurm.conf: State, RootOnly, Allow…).
pub(super) fn admits(p: &PartitionSpec, caller: &Caller, spec: &JobSpec) -> Result<(), Reject> {
    if matches!(p.state, PartitionState::Drain | PartitionState::Inactive) {
        return Err(Reject::PartitionUnavailable { name: p.name.clone(), state: p.state.as_str() });
    }
    let denied = |why: String| Err(Reject::AccessDenied { what: format!("partition {}: {why}", p.name) });
    let root = caller.uid == 0;
    if p.root_only && !root && caller.role < Role::Administrator {
        return denied("jobs of root only".to_owned());
    }
    if !p.allow_users.is_empty() && !root && !p.allow_users.contains(&spec.user) {
        return denied(format!("user {} is not allowed", spec.user));
    }
    if !p.allow_groups.is_empty() && !root && !caller.groups.iter().any(|g| p.allow_groups.contains(g)) {
        return denied(format!("none of the groups of {} is allowed", spec.user));
    }
    if !p.allow_accounts.is_empty() {
        let account = spec.account.clone().unwrap_or_default();
        if !p.allow_accounts.contains(&account) {
            return Err(Reject::InvalidAccount { name: account });
        }
    }
    let qos = spec.qos.as_deref().unwrap_or("normal");
    if !p.allow_qos.is_empty() && !p.allow_qos.iter().any(|q| q == qos) {
        return Err(Reject::InvalidQos { name: qos.to_owned() });
    }
    Ok(())
}

fn check_times(
    config: &ClusterConfig,
    partitions: &[Arc<PartitionSpec>],
    spec: &JobSpec,
    now: Time,
) -> Result<(), Reject> {
    if spec.time_limit == Some(TimeLimit::Minutes(0)) {
        return Err(Reject::InvalidTimeLimit { value: "0".to_owned() });
    }
    if let (Some(min), Some(limit)) = (spec.time_min, spec.time_limit)
        && min > limit
    {
        let value = sluice_model::time::format_time_limit(min);
        return Err(Reject::InvalidValue {
            key: "--time-min".to_owned(),
            value,
            allowed: format!("at most --time={}", sluice_model::time::format_time_limit(limit)),
        });
    }
    if config.scheduling.enforce_partition_limits
        && let Some(need) = spec.time_min.or(spec.time_limit)
    {
        let longest = partitions.iter().map(|p| p.max_time).max().unwrap_or(TimeLimit::Unlimited);
        if need > longest {
            return Err(Reject::TimeLimitTooLong {
                asked: sluice_model::time::format_time_limit(need),
                limit: sluice_model::time::format_time_limit(longest),
            });
        }
    }
    if let Some(deadline) = spec.deadline {
        let begin = spec.begin.unwrap_or(now).max(now);
        let probe = latest_start(spec).unwrap_or(deadline);
        if deadline <= now || probe < begin {
            return Err(Reject::DeadlinePassed);
        }
    }
    Ok(())
}

/// Refuses what no partition of the job could ever run.
pub(super) fn can_ever_run(state: &State, spec: &JobSpec, partitions: &[String]) -> Result<(), Reject> {
    let problem =
        match sluice_sched::feasible(state.index.hardware.cluster(), spec, &state.index.hardware.positions(partitions))
        {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
    let enforce = state.config.as_ref().is_some_and(|c| c.scheduling.enforce_partition_limits);
    if problem.pends() && !enforce {
        return Ok(());
    }
    let time = sluice_model::time::format_time_limit;
    Err(match problem {
        Infeasible::UnknownNode { name } => Reject::InvalidNodeName { name },
        Infeasible::UnknownFeature { name } => Reject::InvalidFeature { name },
        Infeasible::UnknownPreference { name } => Reject::InvalidPreference { name },
        Infeasible::ForeignBatchFeature { name } => Reject::InvalidBatchFeature { name },
        Infeasible::UnknownGres { name } => Reject::InvalidGres { name },
        Infeasible::NodeLimit { asked, limit } => Reject::NodeCountOutOfRange { asked, limit },
        Infeasible::TimeLimit { asked, limit } => Reject::TimeLimitTooLong { asked: time(asked), limit: time(limit) },
        Infeasible::Memory { asked_mb, limit_mb } => Reject::MemoryTooLarge { asked_mb, limit_mb },
        Infeasible::MoreProcessors { .. } => Reject::MoreProcessorsThanPermitted,
        Infeasible::Licenses { .. } | Infeasible::Configuration { .. } => {
            Reject::NodeConfigUnavailable { detail: problem.to_string() }
        }
    })
}
