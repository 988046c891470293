//! Which records a command's target means.

use super::{Cx, may_touch};
use crate::command::{Caller, JobTarget};
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
    /// Some waiting tasks of a pending array record, but not all of them.
    pub part: Option<(JobId, IndexSet)>,
}

/// Finds the records, and refuses unknown ids and other people's jobs.
pub(super) fn find(cx: &Cx, caller: &Caller, target: &JobTarget) -> Result<Found, Reject> {
    let mut found = Found::default();
    match target {
        JobTarget::Job(id) => match cx.index.arrays.get(id) {
            Some(entry) => {
                let record = cx.jobs.get(id).filter(|j| matches!(j.array, ArrayRole::Pending { .. }));
                let tasks = entry.tasks.values().filter_map(|t| cx.jobs.get(t));
                found.whole.extend(record.into_iter().chain(tasks).cloned());
            }
            None => found.whole.extend(cx.jobs.get(id).cloned()),
        },
        JobTarget::Tasks(id, wanted) => {
            let entry = cx.index.arrays.get(id).ok_or(Reject::InvalidJobId)?;
            let tasks = entry.tasks.iter().filter(|(i, _)| wanted.contains(**i)).filter_map(|(_, t)| cx.jobs.get(t));
            found.whole.extend(tasks.cloned());
            if let Some(record) = cx.jobs.get(id)
                && let ArrayRole::Pending { indices, .. } = &record.array
            {
                let meant = indices.intersection(wanted);
                if meant == *indices || (matches!(record.phase, Phase::Ended { .. }) && !meant.is_empty()) {
                    found.whole.push(Arc::clone(record));
                } else if !meant.is_empty() {
                    may_touch(cx, caller, record)?;
                    found.part = Some((*id, meant));
                }
            }
        }
    }
    if found.whole.is_empty() && found.part.is_none() {
        return Err(Reject::InvalidJobId);
    }
    found.whole.iter().try_for_each(|j| may_touch(cx, caller, j))?;
    found.whole.sort_by_key(|j| j.id);
    Ok(found)
}

/// Like `find`, and splits single waiting tasks off their array, so that each can be treated as a job.
pub(super) fn find_records(cx: &mut Cx, caller: &Caller, target: &JobTarget) -> Result<Vec<Arc<Job>>, Reject> {
    let found = find(cx, caller, target)?;
    let mut records = found.whole;
    if let Some((array, indices)) = found.part {
        for index in indices.iter() {
            let job = cx.split_task(array, index);
            records.extend(cx.job_now(job));
        }
    }
    Ok(records)
}

impl Cx<'_> {
    /// Gives a waiting task a record of its own; its job id.
    pub(super) fn split_task(&mut self, array: JobId, index: u32) -> JobId {
        let job = self.id_for_task(array);
        self.emit(crate::event::Event::ArrayTaskSplit { array, index, job });
        job
    }

    /// A fresh id, or the array's own for its last waiting task.
    pub(super) fn id_for_task(&self, array: JobId) -> JobId {
        match self.jobs.get(&array).map(|j| &j.array) {
            Some(ArrayRole::Pending { indices, .. }) if indices.len() == 1 => array,
            _ => JobId(self.last_job_id + 1),
        }
    }
}
