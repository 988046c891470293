//! Which records a command's target means.

use super::{Cx, may_touch};
use crate::command::{Caller, JobTarget};
use crate::event::Event;
use crate::job::{ArrayRole, Job, Phase};
use crate::reject::Reject;
use sluice_model::JobId;
use sluice_model::index_set::IndexSet;
use std::sync::Arc;

/// What a target resolves to.
#[derive(Default)]
pub(super) struct Found {
    /// Records meant as a whole.
    pub whole: Vec<Arc<Job>>,
    /// Some of the waiting tasks for which a record stands, but not all of them.
    pub parts: Vec<(JobId, IndexSet)>,
    /// The same of records that have ended.
    pub over: Vec<(JobId, IndexSet)>,
}

/// Finds the records, and refuses unknown ids and other people's jobs.
pub(super) fn find(cx: &Cx, caller: &Caller, target: &JobTarget) -> Result<Found, Reject> {
    let mut found = Found::default();
    match target {
        JobTarget::Job(id) => match cx.index.arrays.get(id) {
            Some(entry) => {
                let record = cx.jobs.get(id).filter(|j| matches!(j.array, ArrayRole::Pending { .. }));
                let parts = entry.parts().filter_map(|t| cx.jobs.get(&t));
                found.whole.extend(record.into_iter().chain(parts).cloned());
            }
            None => found.whole.extend(cx.jobs.get(id).cloned()),
        },
        JobTarget::Tasks(id, wanted) => {
            let entry = cx.index.arrays.get(id).ok_or(Reject::InvalidJobId)?;
            let tasks = entry.tasks.iter().filter(|(i, _)| wanted.contains(**i)).filter_map(|(_, t)| cx.jobs.get(t));
            found.whole.extend(tasks.cloned());
            for record in std::iter::once(id).chain(&entry.blocks).filter_map(|r| cx.jobs.get(r)) {
                let Some(indices) = record.array.together() else { continue };
                let meant = indices.intersection(wanted);
                if meant.is_empty() {
                    continue;
                }
                may_touch(cx, caller, record)?;
                match &record.phase {
                    _ if meant == *indices => found.whole.push(Arc::clone(record)),
                    Phase::Ended { .. } => found.over.push((record.id, meant)),
                    _ => found.parts.push((record.id, meant)),
                }
            }
        }
    }
    if found.whole.is_empty() && found.parts.is_empty() && found.over.is_empty() {
        return Err(Reject::InvalidJobId);
    }
    found.whole.iter().try_for_each(|j| may_touch(cx, caller, j))?;
    found.whole.sort_by_key(|j| j.id);
    Ok(found)
}

/// Like `find`, and sets the waiting tasks that are meant apart from the others, so that they can be treated as a job.
/// Costs the same for one task and for a million.
pub(super) fn find_records(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Vec<Arc<Job>>, Reject> {
    let found = find(cx, caller, target)?;
    let mut records = found.whole;
    for (record, indices) in found.parts {
        let job = cx.split_part(record, &indices);
        records.extend(cx.job_now(job));
    }
    Ok(records)
}

impl Cx<'_> {
    /// Gives some of the tasks for which `record` stands a record of their own; its job id. All of them have one already.
    pub(super) fn split_part(&mut self, record: JobId, indices: &IndexSet) -> JobId {
        let all = self.jobs.get(&record).and_then(|j| j.array.together()).map_or(0, IndexSet::len);
        let job = JobId(self.last_job_id + 1);
        match (indices.len(), indices.first()) {
            (n, _) if n >= all => return record,
            (1, Some(index)) => self.emit(Event::ArrayTaskSplit { array: record, index, job }),
            _ => self.emit(Event::ArrayPartSplit { record, indices: indices.clone(), job }),
        }
        job
    }

    /// The number of a task that leaves `record`: a fresh one, or the record's own for its last task.
    pub(super) fn id_for_task(&self, record: JobId) -> JobId {
        match self.jobs.get(&record).and_then(|j| j.array.together()) {
            Some(indices) if indices.len() == 1 => record,
            _ => JobId(self.last_job_id + 1),
        }
    }
}
