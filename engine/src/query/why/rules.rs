//! Holds, dependencies, begin times, partitions' rules, and how a job runs or ended.

use super::{Number, Sentence, Why};
use crate::dependency::{Target, resolve};
use crate::index::{NameClass, wants_singleton};
use crate::job::{ArrayRole, Hold, Job, Outcome};
use crate::state::State;
use sluice_model::dependency::{DependencyKind, DependencyTerm};
use sluice_model::time::format_time_limit;
use sluice_model::{JobId, JobState, Reason, Time};
use sluice_sched::limits::LimitHit;

pub(super) fn explain(state: &State, now: Time, job: &Job, reason: Reason, answer: &mut Why) {
    match reason {
        Reason::Dependency | Reason::DependencyNeverSatisfied => dependencies(state, job, answer),
        Reason::BeginTime => answer.because.push(begin(job, now)),
        Reason::JobArrayTaskLimit => throttle(state, job, answer),
        Reason::PartitionDown | Reason::PartitionInactive => {
            let partitions = job.partitions.join(",");
            answer.because.push(format!("Its partition {partitions} is closed: it starts no jobs now.").into());
        }
        Reason::PartitionTimeLimit => time_limits(state, job, answer),
        _ => held(job, reason, answer),
    }
}

fn held(job: &Job, reason: Reason, answer: &mut Why) {
    let id = job.id;
    let text = match (job.hold, reason) {
        (Hold::User, _) => format!("It is held by its user: \"scontrol release {id}\" lets it go."),
        (Hold::Admin, _) => {
            format!("It is held by an administrator: only an operator's \"scontrol release {id}\" lets it go.")
        }
        (Hold::Requeued(why), _) => format!(
            "It was put back into the queue and is held ({why}): \"scontrol release {id}\" lets it go once the cause is \
             removed."
        ),
        (Hold::SpecialExit, _) => format!(
            "It ended with an exit code after which this cluster holds a job (requeue.hold_exit_codes): \"scontrol release \
             {id}\" lets it go once the cause is removed."
        ),
        (Hold::No, _) => format!("It waits ({reason})."),
    };
    answer.because.push(text.into());
    let comment = job.system_comment.clone().or_else(|| job.past_runs.last().and_then(|r| r.outcome.detail.clone()));
    answer.because.extend(comment.map(|c| format!("Of its last run: {c}.").into()));
}

fn begin(job: &Job, now: Time) -> Sentence {
    match job.not_before.filter(|t| *t > now) {
        Some(time) if job.attempt > 0 => {
            Sentence { text: "It was requeued and starts not before {time}.".to_owned(), time: Some(time) }
        }
        Some(time) => {
            Sentence { text: "It starts not before {time}, as asked (--begin).".to_owned(), time: Some(time) }
        }
        None => "Its begin time has come: it is looked at in a moment.".to_owned().into(),
    }
}

fn dependencies(state: &State, job: &Job, answer: &mut Why) {
    let terms = job.waiting_on.as_ref().map(|d| (d.any, &d.terms[..])).unwrap_or_default();
    if job.dependency_failed {
        let text = "Its dependency can never be satisfied any more: it has to be cancelled or changed \
                    (\"scontrol update job=ID dependency=\").";
        answer.because.push(text.replace("ID", &job.id.to_string()).into());
    } else if terms.0 && terms.1.len() > 1 {
        answer.because.push("It waits for any one of these:".to_owned().into());
    }
    for term in terms.1 {
        answer.because.push(term_stands(state, term).into());
    }
    if wants_singleton(job) {
        let first = state.other_named(job, NameClass::Active).or(state.first_named(job, NameClass::Live));
        if let Some(first) = first.filter(|first| *first != job.id) {
            let name = String::from_utf8_lossy(job.spec.name.as_bytes());
            let text = format!("singleton: job {first} of the same user and name ({name}) comes first.");
            answer.because.push(text.into());
        }
    }
}

fn term_stands(state: &State, term: &DependencyTerm) -> String {
    let Some(target) = term.target else { return "singleton: another job of its name comes first.".to_owned() };
    let wanted = match term.kind {
        DependencyKind::After { minutes: 0 } => "has to start".to_owned(),
        DependencyKind::After { minutes } => format!("has to have started {minutes} minute(s) ago"),
        DependencyKind::AfterAny => "has to end".to_owned(),
        DependencyKind::AfterOk => "has to end well".to_owned(),
        DependencyKind::AfterNotOk => "has to fail".to_owned(),
        DependencyKind::AfterCorr => "has to have its task of the same index end well".to_owned(),
        DependencyKind::Singleton => "has to end".to_owned(),
    };
    let stands = match resolve(state, target) {
        Target::Gone => "is not known any more".to_owned(),
        Target::Waiting => "is PENDING".to_owned(),
        Target::Record(job) => format!("is {}", job.state().long()),
        Target::Array(_, entry) => format!("has {} record(s) open and {} failed", entry.open, entry.failed),
    };
    let name = match target.task {
        Some(task) => format!("{}_{task}", target.job),
        None => target.job.to_string(),
    };
    format!("{}: job {name} {wanted}; it {stands}.", term.kind.as_str())
}

fn throttle(state: &State, job: &Job, answer: &mut Why) {
    let Some(array) = job.array_id() else { return };
    let limit = match state.jobs.get(&array).map(|j| &j.array) {
        Some(ArrayRole::Pending { throttle, .. }) => *throttle,
        _ => None,
    };
    let limit = limit.or(job.spec.array.as_ref().and_then(|a| a.throttle)).unwrap_or(0);
    let entry = state.index.arrays.get(&array);
    let running: Vec<JobId> =
        entry.into_iter().flat_map(|e| e.tasks.values().copied()).filter(|id| active(state, *id)).collect();
    answer.because.push(
        format!(
            "Its array may run {limit} task(s) at a time (%{limit}) and {} run: \"scontrol update job={array} \
             arraytaskthrottle=N\" changes that.",
            running.len()
        )
        .into(),
    );
    answer.numbers.push(Number {
        what: "running tasks of the array".to_owned(),
        needs: running.len() as u64 + 1,
        has: u64::from(limit),
        limit: Some(u64::from(limit)),
        used_by: running,
    });
}

fn active(state: &State, id: JobId) -> bool {
    state.index.active.contains(&id)
}

fn time_limits(state: &State, job: &Job, answer: &mut Why) {
    for name in &job.partitions {
        let Some(partition) = state.partitions.get(name) else { continue };
        let asked = job.spec.time_min.or(job.spec.time_limit).unwrap_or(partition.max_time);
        let text = format!(
            "It asks for {} and partition {name} gives at most {}: a shorter --time lets it start.",
            format_time_limit(asked),
            format_time_limit(partition.max_time)
        );
        answer.because.push(text.into());
    }
}

/// A limit of an association or QOS.
pub(super) fn limit(hit: &LimitHit, answer: &mut Why) {
    let name = hit.limit.as_str();
    let text = format!(
        "The limit {name} of {} is {}: {} of it in use, and this job needs {}.",
        hit.owner, hit.allowed, hit.used, hit.asked
    );
    answer.because.push(text.into());
    answer.numbers.push(Number {
        what: format!("{name} of {}", hit.owner),
        needs: hit.asked,
        has: hit.allowed.saturating_sub(hit.used),
        limit: Some(hit.allowed),
        used_by: Vec::new(),
    });
}

pub(super) fn running(job: &Job, answer: &mut Why) {
    let Some(run) = job.run() else { return };
    let nodes: Vec<&str> = run.allocation.names().map(|n| n.as_str()).collect();
    let nodes = sluice_model::hostlist::fold(&nodes);
    let text = format!("It does not wait: it runs on {nodes} since {{time}}.");
    answer.because.push(Sentence { text, time: Some(run.started) });
    if let Some(since) = run.suspended_since {
        answer.because.push(Sentence { text: "It is suspended since {time}.".to_owned(), time: Some(since) });
    }
    if let Some(outcome) = &run.ending {
        answer.because.push(format!("Its end has begun: it will be {}.", outcome.state.long()).into());
    }
}

pub(super) fn ended(job: &Job, outcome: &Outcome, answer: &mut Why) {
    answer.reason = outcome.reason;
    let ended = job.ended();
    let (code, signal) = (outcome.exit.code, outcome.exit.signal);
    let text = match outcome.state {
        JobState::Completed => "It ended well at {time}.".to_owned(),
        JobState::Cancelled => match outcome.by_uid {
            Some(uid) => format!("It was cancelled by uid {uid} at {{time}}."),
            None => "It was cancelled at {time}.".to_owned(),
        },
        JobState::Timeout => {
            let limit = format_time_limit(job.time_limit);
            format!("It reached its time limit of {limit} and was ended at {{time}}: a longer --time lets it finish.")
        }
        JobState::NodeFail => "A node of its allocation failed; it was ended at {time}.".to_owned(),
        JobState::OutOfMemory => {
            "It used more memory than it had asked for and was killed at {time}: ask for more (--mem).".to_owned()
        }
        JobState::Failed if signal != 0 => format!("It was ended by signal {signal} at {{time}}."),
        JobState::Failed => format!("It failed at {{time}} with exit code {code}."),
        other => format!("It ended as {} at {{time}}.", other.long()),
    };
    answer.because.push(Sentence { text, time: ended });
    if let Some(detail) = &outcome.detail {
        answer.because.push(format!("{detail}.").into());
    }
    let failed: Vec<String> = job
        .steps
        .values()
        .filter(|s| s.exit.code != 0 || s.exit.signal != 0)
        .map(|s| format!("{} with {}:{}", s.key.step, s.exit.code, s.exit.signal))
        .collect();
    if !failed.is_empty() {
        answer.because.push(format!("Steps that failed: {}.", failed.join(", ")).into());
    }
}
