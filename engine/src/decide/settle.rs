//! The consequences for jobs that wait: dependencies met or lost, begin times reached. Runs at the end of every
//! decision over the jobs that moved, until nothing moves any more.

use super::Cx;
use crate::dependency;
use crate::effect::Effect;
use crate::event::Event;
use crate::index::NameClass;
use crate::job::{Hold, Job, Outcome, Phase};
use sluice_model::dependency::{DependencyKind, DependencyTerm};
use sluice_model::job::mail;
use sluice_model::{JobId, JobState, Reason};
use std::collections::BTreeSet;

pub(super) fn settle(cx: &mut Cx) {
    while let Some(moved) = cx.moved.pop() {
        let job = cx.job_now(moved);
        let array = job.as_ref().and_then(|j| j.array_id()).filter(|a| *a != moved);
        let mut waiting: BTreeSet<JobId> = BTreeSet::new();
        for target in [Some(moved), array].into_iter().flatten() {
            waiting.extend(cx.dependents_of(target));
        }
        // Of those that wait for their name only the first can have its turn (or lose it).
        waiting.extend(job.as_ref().and_then(|j| cx.first_named(j, NameClass::Singleton)));
        for id in waiting {
            reconsider(cx, id);
        }
    }
}

/// Judges a pending job's dependency again.
pub(super) fn reconsider(cx: &mut Cx, id: JobId) {
    split_corresponding(cx, id);
    let Some(job) = cx.job_now(id).filter(|j| matches!(j.phase, Phase::Pending) && !j.dependency_failed) else {
        return;
    };
    let (waiting_on, failed) = dependency::evaluate(cx, &job, cx.now);
    if waiting_on.as_ref() != job.waiting_on.as_deref() || failed {
        cx.emit(Event::DependencyChanged { job: id, waiting_on, failed });
    }
    if failed {
        dependency_lost(cx, &job);
    }
    refresh_eligible(cx, id);
}

/// A term can never be met: the job ends if that was asked for, else it stays for its owner to decide.
pub(super) fn dependency_lost(cx: &mut Cx, job: &Job) {
    if job.spec.mail_type & mail::INVALID_DEPEND != 0 {
        cx.perform(Effect::Mail { job: job.id, what: mail::INVALID_DEPEND });
    }
    let default = cx.config.as_ref().is_some_and(|c| c.scheduling.kill_on_invalid_dependency);
    if job.spec.kill_on_invalid_dep.unwrap_or(default) {
        cx.end_pending(job.id, Outcome::of(JobState::Cancelled, Reason::DependencyNeverSatisfied));
    }
}

/// `aftercorr` releases tasks as their counterparts end: those that may begin, and those that never may, leave the record
/// in which the others go on waiting.
fn split_corresponding(cx: &mut Cx, id: JobId) {
    let Some(job) = cx.job_now(id).filter(|j| matches!(j.phase, Phase::Pending) && j.array.together().is_some()) else {
        return;
    };
    let terms = job.waiting_on.iter().flat_map(|d| &d.terms);
    let corresponding = |t: &&DependencyTerm| t.kind == DependencyKind::AfterCorr;
    let targets: Vec<JobId> =
        terms.filter(corresponding).filter_map(|t| t.target.filter(|t| t.task.is_none())).map(|t| t.job).collect();
    for target in targets {
        let rest = |cx: &Cx| cx.jobs.get(&id).and_then(|j| j.array.together().cloned());
        let Some(found) = rest(cx).and_then(|rest| dependency::corresponding(cx, target, &rest)) else { continue };
        for part in [found.ready, found.lost] {
            if part.is_empty() || rest(cx).is_none_or(|rest| rest == part) {
                continue;
            }
            let split = cx.split_part(id, &part);
            reconsider(cx, split);
        }
    }
}

/// Notes that a pending job may start, or may not any more.
pub(super) fn refresh_eligible(cx: &mut Cx, id: JobId) {
    let Some(job) = cx.job_now(id).filter(|j| matches!(j.phase, Phase::Pending)) else { return };
    let may = may_start(&job, cx.now);
    if may != job.eligible.is_some() {
        cx.emit(Event::JobEligible { job: id, at: may.then_some(cx.now) });
    }
}

/// Nothing but resources is in its way.
pub(super) fn may_start(job: &Job, now: sluice_model::Time) -> bool {
    job.hold == Hold::No
        && job.waiting_on.is_none()
        && !job.dependency_failed
        && job.not_before.is_none_or(|t| t <= now)
}
