//! Which jobs scancel acts upon. Pure.

use super::settings::Settings;
use crate::text::wire;
use sluice_model::job_target::JobTarget;
use sluice_model::{IndexSet, JobId};
use sluice_proto::v1;

/// A job, some of its tasks, or a step; with its record when it was looked up.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub target: JobTarget,
    pub record: Option<v1::JobRecord>,
}

impl Chosen {
    pub fn by_id(target: &JobTarget) -> Chosen {
        Chosen { target: target.clone(), record: None }
    }

    pub fn wire_target(&self) -> v1::JobTarget {
        v1::JobTarget { job: self.target.job.0, tasks: self.target.tasks.as_ref().map(v1::IndexSet::from) }
    }
}

/// The controller is asked for what it can select; the rest is done in `choose`.
pub fn request(settings: &Settings) -> v1::ListJobsRequest {
    let one = |value: &Option<String>| value.iter().cloned().collect::<Vec<String>>();
    v1::ListJobsRequest {
        jobs: settings.targets.iter().map(|t| Chosen::by_id(t).wire_target()).collect(),
        users: one(&settings.user),
        states: settings.states.iter().map(|s| s.long().to_owned()).collect(),
        partitions: one(&settings.partition),
        accounts: one(&settings.account),
        names: settings.name.iter().map(|n| wire(n)).collect(),
        nodes: settings.nodes.clone(),
        qos: one(&settings.qos),
        detail: settings.wckey.is_some() || settings.reservation.is_some(),
        ..Default::default()
    }
}

/// The jobs of the list that pass the remaining filters, cut down to the ids asked for.
pub fn choose(settings: &Settings, list: &v1::JobList) -> Vec<Chosen> {
    let mut chosen = Vec::new();
    for record in list.jobs.iter().filter(|r| passes(settings, r)) {
        if settings.targets.is_empty() {
            chosen.push(Chosen { target: whole(record), record: Some(record.clone()) });
        }
        for asked in &settings.targets {
            if let Some(target) = common(asked, record) {
                chosen.push(Chosen { target, record: Some(record.clone()) });
            }
        }
    }
    chosen
}

fn passes(settings: &Settings, record: &v1::JobRecord) -> bool {
    let finished = crate::watch::is_finished(record) || record.state == sluice_model::JobState::Completing.long();
    let spec = record.spec.as_ref();
    let same = |asked: &Option<String>, has: Option<&String>| asked.is_none() || asked.as_ref() == has;
    !finished
        && same(&settings.wckey, spec.and_then(|s| s.wckey.as_ref()))
        && same(&settings.reservation, spec.and_then(|s| s.reservation.as_ref()))
}

/// How the record's job, task, or pending rest of an array is named.
fn whole(record: &v1::JobRecord) -> JobTarget {
    let array = JobId(record.array_job.unwrap_or(record.id));
    let tasks = match (record.array_index, &record.array_pending) {
        (Some(index), _) => Some(IndexSet::single(index)),
        (None, Some(pending)) => IndexSet::try_from(pending.clone()).ok().filter(|p| !p.is_empty()),
        (None, None) => None,
    };
    match tasks {
        Some(tasks) => JobTarget { job: array, tasks: Some(tasks), step: None },
        None => JobTarget::job(JobId(record.id)),
    }
}

/// What of the record was asked for.
fn common(asked: &JobTarget, record: &v1::JobRecord) -> Option<JobTarget> {
    let own = whole(record);
    if asked.job.0 != record.id && asked.job != own.job {
        return None;
    }
    // A task's own number names just this task.
    if asked.job.0 == record.id && asked.job != own.job {
        return Some(JobTarget { step: asked.step, ..own });
    }
    let tasks = match (&asked.tasks, own.tasks) {
        (None, tasks) => tasks,
        (Some(_), None) => return None,
        (Some(asked), Some(own)) => Some(asked.intersection(&own)).filter(|t| !t.is_empty()).map(Some)?,
    };
    Some(JobTarget { job: own.job, tasks, step: asked.step })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::{self, Operands};
    use std::ffi::OsString;

    fn settings(words: &[&str]) -> Settings {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = getopt::parse(super::super::settings::OPTIONS, &words, Operands::Mixed).unwrap();
        Settings::resolve(&parsed, &|_| None).unwrap()
    }

    fn array_list() -> v1::JobList {
        let pending: IndexSet = (3..=5).collect();
        let record = |id, array_index, array_pending: Option<&IndexSet>, state: &str| v1::JobRecord {
            id,
            array_job: Some(60),
            array_index,
            array_pending: array_pending.map(v1::IndexSet::from),
            state: state.to_owned(),
            ..Default::default()
        };
        v1::JobList {
            jobs: vec![
                record(61, Some(1), None, "RUNNING"),
                record(62, Some(2), None, "COMPLETED"),
                record(60, None, Some(&pending), "PENDING"),
                v1::JobRecord { id: 70, state: "RUNNING".into(), ..Default::default() },
            ],
            ..Default::default()
        }
    }

    fn names(words: &[&str]) -> Vec<String> {
        choose(&settings(words), &array_list()).iter().map(|c| c.target.to_string()).collect()
    }

    #[test]
    fn filters_alone_take_every_live_job() {
        assert_eq!(names(&["-p", "main"]), ["60_1", "60_[3-5]", "70"]);
    }

    #[test]
    fn ids_cut_a_list_down_to_what_they_name() {
        assert_eq!(names(&["-i", "60_[1-3]"]), ["60_1", "60_3"]);
        assert_eq!(names(&["-i", "60"]), ["60_1", "60_[3-5]"]);
        assert_eq!(names(&["-i", "61"]), ["60_1"]);
        assert_eq!(names(&["-i", "70.0"]), ["70.0"]);
        assert!(names(&["-i", "99"]).is_empty());
    }
}
