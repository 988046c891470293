//! scontrol update job: who may change what, and when. All of a change is checked before any of it happens.

use super::admission::{self, Admission, Asked};
use super::submit::{admits, default_limit, niced};
use super::target::find_records;
use super::{Cx, settle};
use crate::command::{Caller, JobChange, JobTarget, Reply, Role};
use crate::dependency;
use crate::effect::Effect;
use crate::event::Event;
use crate::job::{ArrayRole, Hold, Job, Phase};
use crate::reject::Reject;
use sluice_model::accounting::AssocId;
use sluice_model::dependency::Dependency;
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobSpec, TimeLimit};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn update_job(
    cx: &mut Cx,
    caller: &Caller,
    target: &JobTarget,
    change: &JobChange,
) -> Result<Reply, Reject> {
    let records = find_records(cx, caller, target)?;
    let live: Vec<Arc<Job>> = records.into_iter().filter(|j| !matches!(j.phase, Phase::Ended { .. })).collect();
    if live.is_empty() {
        return Err(Reject::JobFinished);
    }
    // Of an array only the tasks that can still take the change get it.
    let can = |j: &Arc<Job>| matches!(j.phase, Phase::Pending) || pending_only(change).is_none();
    let live: Vec<Arc<Job>> = if live.iter().any(can) { live.into_iter().filter(can).collect() } else { live };
    // First all checks: a refusal must leave no trace (events of a refused decision are never seen).
    let mut plans = Vec::new();
    for job in &live {
        plans.push(changed(cx, caller, job, change)?);
    }
    let mut jobs = Vec::new();
    for (job, event) in live.iter().zip(plans) {
        cx.emit(event);
        change_priority(cx, caller, job, change);
        if let Some(dependency) = &change.dependency {
            set_dependency(cx, job.id, dependency.clone());
        }
        settle::refresh_eligible(cx, job.id);
        cx.perform(Effect::Notify { job: job.id });
        jobs.push(job.id);
    }
    Ok(Reply::Affected { jobs })
}

/// Whether anything but what a running job can take is asked for; names the first such key.
fn pending_only(c: &JobChange) -> Option<&'static str> {
    let keys: [(&'static str, bool); 19] = [
        ("Account", c.account.is_some()),
        ("Partition", c.partitions.is_some()),
        ("TimeMin", c.time_min.is_some()),
        ("StartTime", c.begin.is_some()),
        ("Deadline", c.deadline.is_some()),
        ("Dependency", c.dependency.is_some()),
        ("Features", c.constraint.is_some()),
        ("NumNodes", c.nodes.is_some()),
        ("NumTasks", c.ntasks.is_some()),
        ("CPUsPerTask", c.cpus_per_task.is_some()),
        ("MinMemory", c.memory.is_some()),
        ("Gres", c.gres.is_some()),
        ("ReqNodeList", c.node_list.is_some()),
        ("ExcNodeList", c.exclude.is_some()),
        ("OverSubscribe", c.exclusive.is_some()),
        ("WorkDir", c.work_dir.is_some()),
        ("StdOut", c.stdout.is_some() || c.stderr.is_some() || c.stdin.is_some()),
        ("ReservationName", c.reservation.is_some()),
        ("Licenses", c.licenses.is_some()),
    ];
    keys.into_iter().find(|(_, asked)| *asked).map(|(key, _)| key)
}

fn check_allowed(caller: &Caller, job: &Job, c: &JobChange) -> Result<(), Reject> {
    let operator = caller.role >= Role::Operator;
    if !matches!(job.phase, Phase::Pending) && pending_only(c).is_some() {
        return Err(Reject::JobNotPending);
    }
    if matches!(job.phase, Phase::Completing { .. }) {
        return Err(Reject::JobFinished);
    }
    if operator {
        return Ok(());
    }
    let denied = |what: &str| Err(Reject::AccessDenied { what: format!("{what} is for operators and administrators") });
    if c.priority.is_some_and(|p| p > job.priority && p != job.base_priority) {
        return denied("raising a job's priority");
    }
    if c.priority.is_some_and(|p| p > 0) && job.hold == Hold::Admin {
        return denied("releasing an administrator's hold");
    }
    if c.nice.is_some_and(|n| n < job.spec.nice) {
        return denied("lowering a job's nice value");
    }
    if c.admin_comment.is_some() {
        return denied("AdminComment");
    }
    if c.site_factor.is_some() {
        return denied("SiteFactor");
    }
    // A limit may be chosen freely before the start, within the partition's; afterwards only lowered.
    if let Some(limit) = c.time_limit
        && !matches!(job.phase, Phase::Pending)
        && limit > job.time_limit
    {
        return denied("raising the time limit of a running job");
    }
    Ok(())
}

/// The event for one job, all checks done.
fn changed(cx: &Cx, caller: &Caller, job: &Job, c: &JobChange) -> Result<Event, Reject> {
    check_allowed(caller, job, c)?;
    let mut spec = JobSpec::clone(&job.spec);
    apply_plain(&mut spec, c);
    let partitions = match &c.partitions {
        None => job.partitions.clone(),
        Some(names) => {
            for name in names {
                let p = cx.partitions.get(name).ok_or_else(|| Reject::InvalidPartition { name: name.clone() })?;
                admits(p, caller, &spec)?;
            }
            spec.partitions = names.clone().into();
            spec.partitions.clone()
        }
    };
    if partitions.is_empty() {
        return Err(Reject::NoDefaultPartition);
    }
    let association = readmit(cx, caller, job, c, &mut spec, &partitions)?;
    let time_limit = new_limit(cx, caller, job, c, &partitions)?;
    if c.time_limit.is_some() {
        spec.time_limit = Some(time_limit);
    }
    if let Some(deadline) = spec.deadline.filter(|_| c.deadline.is_some())
        && (deadline <= cx.now || crate::index::latest_start(&spec).is_some_and(|t| t < cx.now))
    {
        return Err(Reject::DeadlinePassed);
    }
    if let Some(Some(dependency)) = &c.dependency {
        check_cycle(cx, job, dependency)?;
    }
    if touches_resources(c) {
        super::submit::can_ever_run(cx, &spec, &partitions)?;
    }
    let throttle = match (&job.array, c.array_throttle) {
        (_, Some(throttle)) => {
            if let Some(array) = &mut spec.array {
                array.throttle = throttle;
            } else {
                return Err(Reject::InvalidValue {
                    key: "ArrayTaskThrottle".to_owned(),
                    value: format!("job {}", job.id),
                    allowed: "a job array".to_owned(),
                });
            }
            throttle
        }
        (ArrayRole::Pending { throttle, .. }, None) => *throttle,
        (_, None) => None,
    };
    let comment = c.comment.clone().map_or_else(|| job.comment.clone(), |c| Some(c).filter(|c| !c.is_empty()));
    let admin_comment =
        c.admin_comment.clone().map_or_else(|| job.admin_comment.clone(), |c| Some(c).filter(|c| !c.is_empty()));
    Ok(Event::JobUpdated {
        job: job.id,
        spec: Arc::new(spec),
        time_limit,
        partitions,
        not_before: c.begin.or(job.not_before),
        requeue: c.requeue.unwrap_or(job.requeue),
        comment,
        admin_comment,
        throttle,
        association,
    })
}

/// Account, QOS or partition changed: the job may be charged to something else, and must be admitted there.
fn readmit(
    cx: &Cx,
    caller: &Caller,
    job: &Job,
    c: &JobChange,
    spec: &mut JobSpec,
    partitions: &[String],
) -> Result<Option<AssocId>, Reject> {
    if c.account.is_none() && c.qos.is_none() && c.wckey.is_none() && c.partitions.is_none() {
        return Ok(job.association);
    }
    // What the job got by default it gets anew in another account.
    let kept = if c.account.is_some() && c.qos.is_none() { None } else { spec.qos.as_deref() };
    let asked = Asked {
        user: &spec.user,
        account: spec.account.as_deref(),
        qos: kept,
        wckey: spec.wckey.as_deref(),
        partitions,
    };
    let admission = admission::admit(cx, &asked)?;
    let moved = admission.association != job.association || admission.qos != job.spec.qos;
    if moved && caller.role < Role::Operator {
        let jobs = job.array.together().map_or(1, IndexSet::len);
        admission::check_submit(cx, &admission, &spec.user, jobs)?;
    }
    let Admission { association, account, qos, wckey } = admission;
    (spec.account, spec.qos, spec.wckey) = (account, qos, wckey);
    Ok(association)
}

/// Fields that are simply replaced.
fn apply_plain(spec: &mut JobSpec, c: &JobChange) {
    fn set<T: Clone>(to: &mut T, from: Option<&T>) {
        if let Some(value) = from {
            to.clone_from(value);
        }
    }
    fn set_option<T: Clone>(to: &mut Option<T>, from: Option<&T>) {
        if let Some(value) = from {
            *to = Some(value.clone());
        }
    }
    set(&mut spec.name, c.name.as_ref());
    set(&mut spec.nice, c.nice.as_ref());
    set(&mut spec.site_factor, c.site_factor.as_ref());
    set_option(&mut spec.time_min, c.time_min.as_ref());
    set_option(&mut spec.account, c.account.as_ref());
    set_option(&mut spec.qos, c.qos.as_ref());
    set_option(&mut spec.wckey, c.wckey.as_ref());
    set_option(&mut spec.begin, c.begin.as_ref());
    set_option(&mut spec.deadline, c.deadline.as_ref());
    set_option(&mut spec.mail_user, c.mail_user.as_ref());
    set_option(&mut spec.reservation, c.reservation.as_ref());
    set(&mut spec.mail_type, c.mail_type.as_ref());
    set(&mut spec.work_dir, c.work_dir.as_ref());
    set_option(&mut spec.io.stdout, c.stdout.as_ref());
    set_option(&mut spec.io.stderr, c.stderr.as_ref());
    set_option(&mut spec.io.stdin, c.stdin.as_ref());
    if let Some(licenses) = &c.licenses {
        spec.licenses = licenses.clone().into();
    }
    if let Some(comment) = &c.comment {
        spec.comment = Some(comment.clone()).filter(|c| !c.is_empty());
    }
    if let Some(dependency) = &c.dependency {
        spec.dependency = dependency.clone().map(Box::new);
    }
    let request = &mut spec.request;
    set_option(&mut request.nodes, c.nodes.as_ref());
    set_option(&mut request.ntasks, c.ntasks.as_ref());
    set_option(&mut request.cpus_per_task, c.cpus_per_task.as_ref());
    set_option(&mut request.memory, c.memory.as_ref());
    set(&mut request.gres, c.gres.as_ref());
    set(&mut request.node_list, c.node_list.as_ref());
    set(&mut request.exclude, c.exclude.as_ref());
    set(&mut request.exclusive, c.exclusive.as_ref());
    if let Some((constraint, text)) = &c.constraint {
        request.constraint = Some(constraint.clone());
        request.constraint_text = Some(text.clone());
    }
}

fn touches_resources(c: &JobChange) -> bool {
    c.nodes.is_some()
        || c.ntasks.is_some()
        || c.cpus_per_task.is_some()
        || c.memory.is_some()
        || c.gres.is_some()
        || c.node_list.is_some()
        || c.exclude.is_some()
        || c.constraint.is_some()
        || c.licenses.is_some()
        || c.partitions.is_some()
}

fn new_limit(cx: &Cx, caller: &Caller, job: &Job, c: &JobChange, partitions: &[String]) -> Result<TimeLimit, Reject> {
    let Some(limit) = c.time_limit else {
        // A default follows the partition.
        let default = || cx.partitions.get(&partitions[0]).map_or(job.time_limit, |p| default_limit(p));
        let moved = c.partitions.is_some() && job.spec.time_limit.is_none();
        return Ok(if moved { default() } else { job.time_limit });
    };
    if limit == TimeLimit::Minutes(0) {
        return Err(Reject::InvalidTimeLimit { value: "0".to_owned() });
    }
    let longest = partitions.iter().filter_map(|p| cx.partitions.get(p)).map(|p| p.max_time).max();
    if let Some(longest) = longest
        && caller.role < Role::Operator
        && limit > longest
    {
        return Err(Reject::TimeLimitTooLong {
            asked: sluice_model::time::format_time_limit(limit),
            limit: sluice_model::time::format_time_limit(longest),
        });
    }
    Ok(limit)
}

/// Priority, nice, and holds by priority 0 (scontrol's manual page).
fn change_priority(cx: &mut Cx, caller: &Caller, before: &Job, c: &JobChange) {
    if c.priority.is_none() && c.nice.is_none() {
        return;
    }
    let mut base = before.base_priority;
    if let Some(nice) = c.nice {
        // The old shift is taken back first. Saturation at the ends is forgotten, as the spec keeps the wish.
        let plain = i64::from(base) + i64::from(before.spec.nice);
        base = niced(plain.clamp(1, i64::from(u32::MAX - 1)) as u32, nice);
    }
    let (priority, hold) = match c.priority {
        Some(0) if caller.role >= Role::Operator => (0, Hold::Admin),
        // A user's hold does not lift an administrator's.
        Some(0) if before.hold == Hold::Admin => (0, Hold::Admin),
        Some(0) => (0, Hold::User),
        Some(p) => {
            base = p;
            (p, Hold::No)
        }
        None if before.hold == Hold::No => (base, Hold::No),
        None => (0, before.hold),
    };
    let given = before.priority_given || c.priority.is_some_and(|p| p > 0);
    cx.emit(Event::JobPriority { job: before.id, priority, base_priority: base, hold, given });
}

fn set_dependency(cx: &mut Cx, id: JobId, wanted: Option<Dependency>) {
    let Some(mut job) = cx.job_now(id).map(|j| Job::clone(&j)) else { return };
    job.waiting_on = wanted.map(Box::new);
    job.dependency_failed = false;
    let (waiting_on, failed) = dependency::evaluate(cx, &job, cx.now);
    cx.emit(Event::DependencyChanged { job: id, waiting_on, failed });
    if failed && let Some(job) = cx.job_now(id) {
        settle::dependency_lost(cx, &job);
    } else {
        settle::reconsider(cx, id);
    }
}

/// A job can't wait for itself, not even through others.
fn check_cycle(cx: &Cx, job: &Job, dependency: &Dependency) -> Result<(), Reject> {
    let own: BTreeSet<JobId> = [Some(job.id), job.array_id()].into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    let mut todo: Vec<JobId> = dependency.terms.iter().filter_map(|t| t.target.map(|t| t.job)).collect();
    while let Some(id) = todo.pop() {
        if own.contains(&id) {
            return Err(Reject::DependencyProblem { detail: format!("job {} would wait for itself", job.id) });
        }
        if seen.insert(id)
            && let Some(other) = cx.jobs.get(&id)
        {
            todo.extend(other.waiting_on.iter().flat_map(|d| &d.terms).filter_map(|t| t.target.map(|t| t.job)));
        }
    }
    Ok(())
}
