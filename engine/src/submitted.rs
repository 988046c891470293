//! How many jobs are in the queue or running, by association and by QOS: what submit limits are held against. Follows
//! from the jobs and the tree of accounts; `State::put` keeps it in step.

use crate::job::{Job, Phase};
use crate::state::State;
use imbl::OrdMap;
use sluice_model::accounting::{AssocId, NORMAL_QOS};

/// What is counted. Only jobs with an association are.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SubmitKey {
    /// Of the association and all below it.
    Association(AssocId),
    Qos(String),
    /// QOS, user
    QosUser(String, String),
    /// QOS, account
    QosAccount(String, String),
}

/// Jobs that the record stands for and that are not over.
fn live(job: &Job) -> u64 {
    match (&job.phase, job.array.together()) {
        (Phase::Ended { .. }, _) => 0,
        (_, Some(indices)) => indices.len(),
        (_, None) => 1,
    }
}

/// Whether the two records count alike.
fn alike(a: Option<&Job>, b: Option<&Job>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => {
            a.association == b.association
                && live(a) == live(b)
                && a.spec.qos == b.spec.qos
                && a.spec.account == b.spec.account
        }
        _ => false,
    }
}

impl State {
    /// After a record changed.
    pub(crate) fn count_submitted(&mut self, old: Option<&Job>, new: Option<&Job>) {
        if alike(old, new) {
            return;
        }
        let mut counts = std::mem::take(&mut self.index.submitted);
        for (job, sign) in [(old, false), (new, true)] {
            let Some((job, id)) = job.and_then(|j| Some((j, j.association?))) else { continue };
            let jobs = live(job);
            if jobs > 0 {
                self.keys(job, id).into_iter().for_each(|key| add(&mut counts, key, jobs, sign));
            }
        }
        self.index.submitted = counts;
    }

    fn keys(&self, job: &Job, id: AssocId) -> Vec<SubmitKey> {
        let qos = job.spec.qos.as_deref().unwrap_or(NORMAL_QOS).to_owned();
        let account = job.spec.account.clone().map(|a| a.to_string()).unwrap_or_default();
        let chain = self.accounting.chain(id).into_iter().map(|a| SubmitKey::Association(a.id));
        let of_qos = [
            SubmitKey::QosUser(qos.clone(), job.spec.user.to_string()),
            SubmitKey::QosAccount(qos.clone(), account),
            SubmitKey::Qos(qos),
        ];
        chain.chain(of_qos).collect()
    }

    /// After an account went to another place in the tree.
    pub(crate) fn recount_submitted(&mut self) {
        let mut counts = OrdMap::new();
        for job in self.jobs.values() {
            let jobs = live(job);
            let Some(id) = job.association.filter(|_| jobs > 0) else { continue };
            self.keys(job, id).into_iter().for_each(|key| add(&mut counts, key, jobs, true));
        }
        self.index.submitted = counts;
    }
}

fn add(counts: &mut OrdMap<SubmitKey, u64>, key: SubmitKey, jobs: u64, more: bool) {
    let before = counts.get(&key).copied().unwrap_or(0);
    let now = if more { before.saturating_add(jobs) } else { before.saturating_sub(jobs) };
    if now == 0 {
        counts.remove(&key);
    } else {
        counts.insert(key, now);
    }
}
