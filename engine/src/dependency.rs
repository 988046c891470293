//! What `--dependency` terms mean against the live state (sbatch's manual page). Reads only.
//!
//! A job that is not known any more ended so long ago that it was forgotten, or never was: it keeps nobody waiting.
//! Satisfied terms are dropped from a job's `waiting_on` for good; one that can never be met stays, for display.

use crate::index::{ArrayEntry, NameClass, wants_singleton};
use crate::job::{ArrayRole, Job, Phase};
use crate::state::State;
use sluice_model::dependency::{Dependency, DependencyKind, DependencyTarget, DependencyTerm};
use sluice_model::index_set::IndexSet;
use sluice_model::{JobId, JobState, Time};
use std::sync::Arc;

/// What a target stands for now.
pub(crate) enum Target<'a> {
    /// Unknown or forgotten.
    Gone,
    /// An array task that has no record of its own yet.
    Waiting,
    Record(&'a Arc<Job>),
    Array(JobId, &'a ArrayEntry),
}

pub(crate) fn resolve(state: &State, target: DependencyTarget) -> Target<'_> {
    let entry = state.index.arrays.get(&target.job);
    match (entry, target.task) {
        (None, _) => state.jobs.get(&target.job).map_or(Target::Gone, Target::Record),
        (Some(entry), None) => Target::Array(target.job, entry),
        (Some(entry), Some(index)) => match entry.tasks.get(&index) {
            Some(id) => state.jobs.get(id).map_or(Target::Gone, Target::Record),
            None => match together(state, target.job, entry).find(|(_, indices)| indices.contains(index)) {
                Some((record, _)) if matches!(record.phase, Phase::Ended { .. }) => Target::Record(record),
                Some(_) => Target::Waiting,
                None => Target::Gone,
            },
        },
    }
}

/// The records that stand for several tasks of an array, with those tasks.
fn together<'a>(
    state: &'a State,
    array: JobId,
    entry: &'a ArrayEntry,
) -> impl Iterator<Item = (&'a Arc<Job>, &'a IndexSet)> {
    let records = std::iter::once(array).chain(entry.blocks.iter().copied());
    records.filter_map(|id| state.jobs.get(&id)).filter_map(|job| Some((job, job.array.together()?)))
}

/// Which of the tasks `indices` may begin, and which never may, by what became of the tasks of the same indices of
/// `array`. None when that is no array with live records: it is judged as a whole.
pub(crate) fn corresponding(state: &State, array: JobId, indices: &IndexSet) -> Option<Corresponding> {
    let entry = state.index.arrays.get(&array)?;
    let (mut well, mut failed, mut open) = (IndexSet::new(), IndexSet::new(), IndexSet::new());
    for (job, some) in together(state, array, entry) {
        let class = match ended_well(job) {
            None => &mut open,
            Some(true) => &mut well,
            Some(false) => &mut failed,
        };
        *class = class.union(some);
    }
    let ended = |wanted: bool| {
        let of = |(index, id): (&u32, &JobId)| Some((*index, ended_well(state.jobs.get(id)?)?));
        entry.tasks.iter().filter_map(of).filter(move |(_, well)| *well == wanted).map(|(index, _)| index)
    };
    well = well.union(&ended(true).collect());
    failed = failed.union(&ended(false).collect());
    let known = entry.tasks.keys().copied().collect::<IndexSet>().union(&well).union(&failed).union(&open);
    // Tasks forgotten one by one went well: a failed one is kept until its array is over. Indices that the array never
    // had have to wait for all of it.
    let had = entry.parts().chain([array]).find_map(|id| state.jobs.get(&id)?.spec.array.as_deref());
    let gone = match had {
        _ if entry.open == 0 => indices.difference(&known),
        Some(had) => had.indices.difference(&known),
        None => IndexSet::new(),
    };
    well = well.union(&gone);
    Some(Corresponding { ready: indices.intersection(&well), lost: indices.intersection(&failed) })
}

/// How the tasks of an array stand that wait for those of another.
pub(crate) struct Corresponding {
    pub ready: IndexSet,
    /// Their counterparts did not end well.
    pub lost: IndexSet,
}

/// For `after`: since when its target counts as started.
pub(crate) enum Started {
    No,
    At(Time),
    /// Forgotten: long ago.
    Gone,
}

impl Started {
    pub(crate) fn since(&self) -> Option<Time> {
        match self {
            Started::At(t) => Some(*t),
            Started::No | Started::Gone => None,
        }
    }
}

fn record_started(job: &Job) -> Started {
    match job.run().map(|r| r.started).or(job.ended()) {
        Some(t) => Started::At(t),
        None => Started::No,
    }
}

/// Started or cancelled; an array when all of its tasks are.
pub(crate) fn started(state: &State, target: DependencyTarget) -> Started {
    match resolve(state, target) {
        Target::Gone => Started::Gone,
        Target::Waiting => Started::No,
        Target::Record(job) => record_started(job),
        Target::Array(id, entry) => {
            let record = state.jobs.get(&id).filter(|j| matches!(j.array, ArrayRole::Pending { .. }));
            let tasks = entry.parts().filter_map(|t| state.jobs.get(&t));
            let mut latest = Started::Gone;
            for job in record.into_iter().chain(tasks) {
                match (record_started(job), &latest) {
                    (Started::No, _) => return Started::No,
                    (Started::At(t), Started::At(u)) if t <= *u => {}
                    (other, _) => latest = other,
                }
            }
            latest
        }
    }
}

/// How a term stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Met {
    Yes,
    NotYet,
    Never,
}

fn ended_well(job: &Job) -> Option<bool> {
    match &job.phase {
        Phase::Ended { outcome, .. } => Some(outcome.state == JobState::Completed),
        _ => None,
    }
}

/// Some(all well) once the target is over; Some(false) for an array as soon as one task has failed, if `early`.
fn over(state: &State, target: DependencyTarget, early: bool) -> Option<Option<bool>> {
    match resolve(state, target) {
        Target::Gone => Some(None),
        Target::Waiting => None,
        Target::Record(job) => ended_well(job).map(Some),
        Target::Array(_, entry) if entry.open == 0 || (early && entry.failed > 0) => Some(Some(entry.failed == 0)),
        Target::Array(..) => None,
    }
}

/// Judges one term of `job`.
pub(crate) fn judge(state: &State, job: &Job, term: &DependencyTerm, now: Time) -> Met {
    let Some(target) = term.target else {
        return if singleton_blocked(state, job) { Met::NotYet } else { Met::Yes };
    };
    match term.kind {
        DependencyKind::Singleton => Met::Yes,
        DependencyKind::After { minutes } => match started(state, target) {
            Started::No => Met::NotYet,
            Started::Gone => Met::Yes,
            Started::At(t) if State::later(t, i64::from(minutes) * 60_000) <= now => Met::Yes,
            Started::At(_) => Met::NotYet,
        },
        DependencyKind::AfterAny => over(state, target, false).map_or(Met::NotYet, |_| Met::Yes),
        DependencyKind::AfterOk => wants(over(state, target, true), true),
        DependencyKind::AfterNotOk => wants(over(state, target, false), false),
        DependencyKind::AfterCorr => {
            let task = match &job.array {
                ArrayRole::Task { index, .. } => target.task.or(Some(*index)),
                _ => target.task,
            };
            // What stands for many tasks is judged when it is the same for all of them; until then those that are ready
            // leave it.
            match (job.array.together(), task) {
                (Some(indices), None) if let Some(c) = corresponding(state, target.job, indices) => match c {
                    c if c.ready == *indices => Met::Yes,
                    c if c.lost == *indices => Met::Never,
                    _ => Met::NotYet,
                },
                _ => wants(over(state, DependencyTarget { task, ..target }, true), true),
            }
        }
    }
}

fn wants(over: Option<Option<bool>>, well: bool) -> Met {
    match over {
        None => Met::NotYet,
        // Forgotten: taken as satisfied.
        Some(None) => Met::Yes,
        Some(Some(it)) if it == well => Met::Yes,
        Some(Some(_)) => Met::Never,
    }
}

/// Another job of this user and name holds resources or was there first.
pub(crate) fn singleton_blocked(state: &State, job: &Job) -> bool {
    state.other_named(job, NameClass::Active).is_some()
        || state.first_named(job, NameClass::Live).is_some_and(|first| first < job.id)
}

/// What of its dependency is unmet now, and whether it can never be met.
pub(crate) fn evaluate(state: &State, job: &Job, now: Time) -> (Option<Dependency>, bool) {
    let any = job.waiting_on.as_ref().or(job.spec.dependency.as_ref()).is_some_and(|d| d.any);
    let mut terms = job.waiting_on.as_ref().map(|d| d.terms.clone()).unwrap_or_default();
    let has_singleton = terms.iter().any(|t| t.kind == DependencyKind::Singleton);
    let alone = job.spec.dependency.as_ref().is_some_and(|d| d.terms.len() == 1);
    // A singleton's turn can be taken from it again; every other term, once met, is met.
    if wants_singleton(job) && !has_singleton && (!any || alone) {
        terms.push(DependencyTerm { kind: DependencyKind::Singleton, target: None });
    }
    let mut rest = Vec::new();
    let mut never = 0;
    let total = terms.len();
    for term in terms {
        match judge(state, job, &term, now) {
            Met::Yes if any => return (None, false),
            Met::Yes => {}
            Met::NotYet => rest.push(term),
            Met::Never => {
                never += 1;
                rest.push(term);
            }
        }
    }
    if rest.is_empty() {
        return (None, false);
    }
    let failed = if any { never == total } else { never > 0 };
    (Some(Dependency { any, terms: rest }), failed)
}
