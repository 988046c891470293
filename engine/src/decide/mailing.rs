//! Mails by `--mail-type`. An array is mailed about as a whole unless ARRAY_TASKS was asked for (sbatch's manual page).

use super::Cx;
use crate::effect::Effect;
use crate::job::{ArrayRole, Job, Outcome};
use sluice_model::JobState;
use sluice_model::job::mail;

impl Cx<'_> {
    fn mail(&mut self, job: &Job, what: u32) {
        if job.spec.mail_type & what != 0 {
            self.perform(Effect::Mail { job: job.id, what });
        }
    }

    pub(super) fn mail_begin(&mut self, job: &Job) {
        let first = match job.array_id().and_then(|a| self.index.arrays.get(&a)) {
            Some(entry) if job.spec.mail_type & mail::ARRAY_TASKS == 0 => entry.tasks.len() == 1,
            _ => true,
        };
        if first && job.attempt == 0 {
            self.mail(job, mail::BEGIN);
        }
    }

    pub(super) fn mail_end(&mut self, job: &Job, outcome: &Outcome) {
        if job.spec.mail_type & (mail::END | mail::FAIL) == 0 {
            return;
        }
        let whole = job.spec.mail_type & mail::ARRAY_TASKS == 0 && !matches!(job.array, ArrayRole::None);
        let entry = job.array_id().and_then(|a| self.index.arrays.get(&a)).filter(|_| whole);
        let (last, failed) = match entry {
            Some(entry) => (entry.open == 0, entry.failed > 0),
            None => (true, outcome.state != JobState::Completed),
        };
        if !last {
            return;
        }
        // FAIL is the more telling of the two; one mail is enough.
        if failed && job.spec.mail_type & mail::FAIL != 0 {
            self.mail(job, mail::FAIL);
        } else {
            self.mail(job, mail::END);
        }
    }

    pub(super) fn mail_requeue(&mut self, job: &Job) {
        self.mail(job, mail::REQUEUE);
    }

    pub(super) fn mail_time_limit(&mut self, job: &Job) {
        self.mail(job, mail::TIME_LIMIT);
    }
}
