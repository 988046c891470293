//! One copy in memory of what many jobs have in common.
//!
//! Jobs of one user ask for the same resources, come with the same ten limits, from the same folder and host. Owns a
//! table of the values seen, and makes equal parts of new records point to them. Promises that no value changes by it,
//! and that what no job holds any more is let go in time: the tables grow with the live jobs, not with all jobs ever.
//! Must not be needed for anything but memory.

use sluice_engine::{Event, Job};
use sluice_model::job::{JobIo, PropagatedLimit};
use sluice_model::{JobSpec, OsBytes, ResourceRequest, Shared};
use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// Below this no table is swept.
const SMALL: usize = 1024;

/// Something held by pointer, of which a table knows one copy of each value.
trait Held: Eq + Hash + Clone {
    /// Nobody but the table has it.
    fn forgotten(&self) -> bool;
}

impl<T: Eq + Hash> Held for Shared<T> {
    fn forgotten(&self) -> bool {
        Arc::strong_count(Shared::arc(self)) == 1
    }
}

impl Held for OsBytes {
    fn forgotten(&self) -> bool {
        self.holders() == 1
    }
}

struct Table<H> {
    known: HashSet<H>,
    /// Swept when it has grown to so many.
    sweep_at: usize,
}

impl<H> Default for Table<H> {
    fn default() -> Self {
        Table { known: HashSet::new(), sweep_at: SMALL }
    }
}

impl<H: Held> Table<H> {
    fn share(&mut self, value: &mut H) {
        if let Some(known) = self.known.get(value) {
            value.clone_from(known);
            return;
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| !known.forgotten());
            self.sweep_at = SMALL.max(2 * self.known.len());
        }
        self.known.insert(value.clone());
    }

    fn share_option(&mut self, value: &mut Option<H>) {
        if let Some(value) = value {
            self.share(value);
        }
    }
}

/// The values seen so far.
#[derive(Default)]
pub struct Pool {
    requests: Table<Shared<ResourceRequest>>,
    limits: Table<Shared<Vec<PropagatedLimit>>>,
    io: Table<Shared<JobIo>>,
    texts: Table<Shared<String>>,
    lists: Table<Shared<Vec<String>>>,
    licenses: Table<Shared<BTreeMap<String, u32>>>,
    stored: Table<Shared<BTreeMap<String, String>>>,
    bytes: Table<OsBytes>,
}

impl Pool {
    /// Lets what an event brings into the state share with what is there. Before it is folded.
    pub fn event(&mut self, event: &mut Event) {
        match event {
            Event::JobSubmitted { job } => self.job(job),
            Event::JobUpdated { spec, partitions, .. } => {
                if let Some(spec) = Arc::get_mut(spec) {
                    self.spec(spec);
                }
                self.lists.share(partitions);
            }
            _ => {}
        }
    }

    /// The same for a whole record.
    pub fn job(&mut self, job: &mut Job) {
        if let Some(spec) = Arc::get_mut(&mut job.spec) {
            self.spec(spec);
        }
        self.lists.share(&mut job.partitions);
        self.bytes.share_option(&mut job.comment);
    }

    /// Names and command lines are left alone: they differ from job to job.
    pub fn spec(&mut self, spec: &mut JobSpec) {
        self.requests.share(&mut spec.request);
        self.limits.share(&mut spec.limits);
        self.io.share(&mut spec.io);
        self.texts.share(&mut spec.user);
        self.texts.share(&mut spec.group);
        self.texts.share(&mut spec.submit_host);
        self.lists.share(&mut spec.partitions);
        self.licenses.share(&mut spec.licenses);
        self.stored.share(&mut spec.stored);
        self.bytes.share(&mut spec.work_dir);
        self.bytes.share_option(&mut spec.command);
        self.bytes.share_option(&mut spec.comment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_model::job::JobKind;

    fn spec(folder: &str) -> JobSpec {
        let mut spec = JobSpec::new("job", JobKind::Allocation, (1000, "ada"), (100, "users"));
        spec.request.ntasks = Some(4);
        spec.work_dir = folder.into();
        spec
    }

    #[test]
    fn equal_parts_become_one_and_no_value_changes() {
        let mut pool = Pool::default();
        let (mut first, mut second) = (spec("/home/ada"), spec("/home/ada"));
        pool.spec(&mut first);
        pool.spec(&mut second);
        assert!(Arc::ptr_eq(Shared::arc(&first.request), Shared::arc(&second.request)));
        assert!(Arc::ptr_eq(Shared::arc(&first.user), Shared::arc(&second.user)));
        assert_eq!(first.work_dir.holders(), 3, "both specifications and the table");
        assert_eq!((&first, &second), (&spec("/home/ada"), &spec("/home/ada")));
        second.request.ntasks = Some(8);
        assert_eq!(first.request.ntasks, Some(4));
    }

    #[test]
    fn what_no_job_holds_any_more_is_let_go() {
        let mut pool = Pool::default();
        let mut kept = spec("/kept");
        pool.spec(&mut kept);
        for n in 0..5 * SMALL {
            pool.spec(&mut spec(&format!("/gone/{n}")));
        }
        assert!(pool.bytes.known.len() <= SMALL, "{}", pool.bytes.known.len());
        assert!(pool.bytes.known.contains(&kept.work_dir));
    }
}
