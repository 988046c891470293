//! Which jobs and steps are shown, and in which order.
//!
//! The controller selects by id, user, account, partition, name, node and QOS; the rest is judged here.

use super::settings::{Range, Settings};
use super::{steps, values, window};
use crate::view::{asked, clock, job as facts};
use sluice_model::TimeLimit;
use sluice_model::job_target::JobTarget;
use sluice_proto::v1;
use std::collections::BTreeMap;

/// Drops what is not asked for; `now` is the controller's time in milliseconds.
pub fn select(settings: &Settings, now: i64, jobs: Vec<v1::JobRecord>) -> Vec<v1::JobRecord> {
    let bounds = settings.window.bounds(now);
    let by_id = !settings.jobs.is_empty();
    let states = &settings.states;
    let in_window =
        |job: &v1::JobRecord| !(settings.by_state && states.is_empty()) && window::admits(job, bounds, states, by_id);
    let mut jobs: Vec<_> = jobs.into_iter().filter(|j| in_window(j) && keep(settings, j)).collect();
    for job in &mut jobs {
        keep_steps(settings, job);
    }
    sort(&mut jobs);
    jobs
}

/// Shows `each` the records of which there are lines: with `--array` one for each task that is asked for, also where a
/// record stands for many.
pub fn for_each_line(settings: &Settings, job: &v1::JobRecord, mut each: impl FnMut(&v1::JobRecord)) {
    if !settings.split_arrays {
        return each(job);
    }
    facts::for_each_task(job, |task| {
        if settings.jobs.is_empty() || settings.jobs.iter().any(|t| covers(t, task)) {
            each(task);
        }
    });
}

fn keep(settings: &Settings, job: &v1::JobRecord) -> bool {
    let within = |range: Option<Range>, n: u32| range.is_none_or(|(min, max)| (min..=max).contains(&n));
    let named = |list: &[String], value: &str| list.is_empty() || list.iter().any(|v| v == value);
    let limit = match clock::limit(job.time_limit.as_ref()) {
        Some(TimeLimit::Minutes(minutes)) => minutes,
        Some(TimeLimit::Unlimited) | None => u32::MAX,
    };
    let nodes = if values::ran(job) { job.num_nodes } else { 0 };
    let flags = values::flags(job);
    (settings.groups.is_empty() || settings.groups.contains(&job.gid))
        && named(&settings.wckeys, asked::wckey(job))
        && (settings.reasons.is_empty() || settings.reasons.iter().any(|r| r.eq_ignore_ascii_case(values::reason(job))))
        && settings.flags.iter().all(|f| flags.iter().any(|has| has.eq_ignore_ascii_case(f)))
        && settings.constraints.iter().all(|c| constrained(job, c))
        && within(settings.nnodes, nodes)
        && within(settings.ncpus, values::allocated_cpus(job))
        && within(settings.limit, limit)
}

/// Did the job ask for this feature?
fn constrained(job: &v1::JobRecord, feature: &str) -> bool {
    let text = job.spec.as_ref().and_then(|s| s.request.as_ref()).and_then(|r| r.constraint_text.as_deref());
    text.is_some_and(|t| t.split(|c: char| "&|,()[]".contains(c)).any(|word| word.split('*').next() == Some(feature)))
}

fn covers(target: &JobTarget, job: &v1::JobRecord) -> bool {
    (job.id == target.job.0 || job.array_job == Some(target.job.0))
        && target.tasks.as_ref().is_none_or(|tasks| job.array_index.is_some_and(|i| tasks.contains(i)))
}

/// The steps of this run that are asked for, in the order of accounting.
fn keep_steps(settings: &Settings, job: &mut v1::JobRecord) {
    if settings.allocations_only {
        job.steps.clear();
        return;
    }
    let attempt = job.attempt;
    let whole = shows_job(settings, job);
    let named: Vec<_> = settings.jobs.iter().filter(|t| covers(t, job)).filter_map(|t| t.step).collect();
    job.steps.retain(|s| s.key.is_none_or(|k| k.attempt == attempt) && (whole || named.contains(&steps::id(s))));
    job.steps.sort_by_key(facts::accounting_order);
}

/// Is there a row for the job itself? Not when only steps of it are named.
pub fn shows_job(settings: &Settings, job: &v1::JobRecord) -> bool {
    let mut targets = settings.jobs.iter().filter(|t| covers_any(t, job)).peekable();
    targets.peek().is_none() || targets.any(|t| t.step.is_none())
}

/// Like `covers`, and true for the record of waiting tasks when one of them is named.
fn covers_any(target: &JobTarget, job: &v1::JobRecord) -> bool {
    covers(target, job) || (job.array_pending.is_some() && job.array_job == Some(target.job.0))
}

/// By submission, then by number. What carries an array's own number (its waiting tasks, or the one that started last)
/// follows the tasks that started before.
fn sort(jobs: &mut [v1::JobRecord]) {
    let mut last = BTreeMap::new();
    for job in jobs.iter() {
        if let Some(array) = job.array_job {
            let id: &mut u32 = last.entry(array).or_default();
            *id = job.id.max(*id);
        }
    }
    jobs.sort_by_key(|job| {
        let place = if job.array_job == Some(job.id) { last.get(&job.id).copied() } else { None };
        let (_, index) = facts::order(job);
        (job.submit.div_euclid(1000), place.unwrap_or(job.id), place.is_some(), job.attempt, index)
    });
}
