//! Indexes over the live jobs, so that no command looks at all of them: who may start, in which order; who waits for
//! whom; what is due next. Each entry follows from the jobs, nodes and partitions alone; `State::put` keeps them in
//! step, `rebuild_indexes` makes them anew, and the audit compares the two.

use crate::hardware::Hardware;
use crate::job::{ArrayRole, Hold, Job, Phase, Run};
use crate::node::Node;
use crate::state::State;
use crate::submitted::SubmitKey;
use imbl::{OrdMap, OrdSet};
use sluice_model::dependency::DependencyKind;
use sluice_model::job::mail;
use sluice_model::{JobId, JobSpec, JobState, NodeName, OsBytes, SubmissionKey, Time, TimeLimit};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The order in which the scheduler is shown jobs: partition tier, then priority, then age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SchedKey {
    pub tier: Reverse<u32>,
    pub priority: Reverse<u32>,
    pub job: JobId,
}

/// Which of a user's jobs of one name: for `--dependency=singleton`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NameClass {
    /// Not ended.
    Live,
    /// Holds resources.
    Active,
    /// Pending with a `singleton` dependency.
    Singleton,
}

/// An array some of whose records are live.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArrayEntry {
    /// Index → job of each task that has a record of its own.
    pub tasks: OrdMap<u32, JobId>,
    /// Records that stand for some of the tasks together, apart from the array's own.
    pub blocks: OrdSet<JobId>,
    /// Records not ended, the one that stands for the rest included.
    pub open: u32,
    /// Tasks that hold resources: what the throttle counts.
    pub active: u32,
    /// Records that ended otherwise than COMPLETED.
    pub failed: u32,
}

impl ArrayEntry {
    /// All records but the array's own.
    pub fn parts(&self) -> impl Iterator<Item = JobId> + '_ {
        self.tasks.values().chain(&self.blocks).copied()
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Indexes {
    /// The scheduler's view of nodes and partitions, made anew when one of them changes.
    pub hardware: Arc<Hardware>,
    /// Pending jobs that nothing but resources keeps from starting.
    pub eligible: OrdSet<SchedKey>,
    /// Jobs that hold resources: running or completing.
    pub active: OrdSet<JobId>,
    /// Those of them that lend their cores to others.
    pub lending: OrdSet<JobId>,
    /// (uid, name, class, job)
    pub names: OrdSet<(u32, OsBytes, NameClass, JobId)>,
    /// (job or array waited for, job that waits)
    pub dependents: OrdSet<(JobId, JobId)>,
    /// (uid, key) → the job that this submission made.
    pub keys: OrdMap<(u32, SubmissionKey), JobId>,
    pub arrays: OrdMap<JobId, ArrayEntry>,
    /// What `Tick` has to look at, by time.
    pub timers: OrdSet<(Time, JobId)>,
    pub timer_at: OrdMap<JobId, Time>,
    /// Finished jobs that may go to the history, by their end.
    pub ended: OrdSet<(Time, JobId)>,
    /// Nodes that do not respond and that Tick will have to declare DOWN, or whose jobs it will have to declare lost.
    pub silent: OrdSet<NodeName>,
    /// Jobs in the queue or running, by what limits them at submission.
    pub submitted: OrdMap<SubmitKey, u64>,
}

/// The nodes on which the job holds resources now.
pub(crate) fn holdings(job: &Job) -> Vec<NodeName> {
    match &job.phase {
        Phase::Running(run) => run.allocation.names().cloned().collect(),
        Phase::Completing { waiting_for, .. } => waiting_for.clone(),
        Phase::Pending | Phase::Ended { .. } => Vec::new(),
    }
}

fn is_active(job: &Job) -> bool {
    matches!(job.phase, Phase::Running(_) | Phase::Completing { .. })
}
fn is_lending(job: &Job) -> bool {
    matches!(&job.phase, Phase::Running(run) | Phase::Completing { run, .. } if run.lends)
}
fn is_pending(job: &Job) -> bool {
    matches!(job.phase, Phase::Pending)
}
fn has_failed(job: &Job) -> bool {
    matches!(&job.phase, Phase::Ended { outcome, .. } if outcome.state != JobState::Completed)
}

/// Whether `singleton` is among what it must wait for.
pub(crate) fn wants_singleton(job: &Job) -> bool {
    job.spec.dependency.as_ref().is_some_and(|d| d.terms.iter().any(|t| t.kind == DependencyKind::Singleton))
}

fn targets(job: &Job) -> BTreeSet<JobId> {
    match &job.waiting_on {
        Some(d) if is_pending(job) && !job.dependency_failed => {
            d.terms.iter().filter_map(|t| t.target.map(|t| t.job)).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn name_entries(job: &Job) -> Vec<NameClass> {
    match &job.phase {
        Phase::Pending if wants_singleton(job) => vec![NameClass::Live, NameClass::Singleton],
        Phase::Pending => vec![NameClass::Live],
        Phase::Running(_) | Phase::Completing { .. } => vec![NameClass::Live, NameClass::Active],
        Phase::Ended { .. } => Vec::new(),
    }
}

/// When a run reaches its limit, suspensions left out; None without a limit or while suspended.
pub(crate) fn limit_end(job: &Job, run: &Run) -> Option<Time> {
    if run.suspended_since.is_some() {
        return None;
    }
    let limit = i64::try_from(job.time_limit.duration()?.as_millis()).unwrap_or(i64::MAX);
    Some(Time(run.started.0.saturating_add(limit).saturating_add(i64::try_from(run.suspended_ms).unwrap_or(0))))
}

/// The shares of the limit that mails can be asked for, and the bit of each.
pub(crate) const MAIL_SHARES: [(u32, i64); 3] =
    [(mail::TIME_LIMIT_50, 50), (mail::TIME_LIMIT_80, 80), (mail::TIME_LIMIT_90, 90)];

/// When `share` percent of the limit are over.
pub(crate) fn share_end(job: &Job, run: &Run, share: i64) -> Option<Time> {
    let limit = i64::try_from(job.time_limit.duration()?.as_millis()).unwrap_or(i64::MAX / 100);
    limit_end(job, run).map(|end| Time(end.0 - limit / 100 * (100 - share)))
}

/// The latest moment at which a pending job with a deadline could still start and end in time.
pub(crate) fn latest_start(spec: &JobSpec) -> Option<Time> {
    let deadline = spec.deadline?;
    let need = match spec.time_min.or(spec.time_limit) {
        Some(TimeLimit::Minutes(m)) => i64::from(m) * 60_000,
        Some(TimeLimit::Unlimited) | None => 0,
    };
    Some(Time(deadline.0.saturating_sub(need)))
}

impl State {
    /// When the engine must look at this job again though no command touches it.
    fn timer_of(&self, job: &Job) -> Option<Time> {
        match &job.phase {
            Phase::Pending => self.pending_timer(job),
            Phase::Running(run) => match &run.ending {
                Some(_) => run.kill_at,
                None => self.running_timer(job, run),
            },
            Phase::Completing { .. } | Phase::Ended { .. } => None,
        }
    }

    fn pending_timer(&self, job: &Job) -> Option<Time> {
        let free = job.hold == Hold::No && job.waiting_on.is_none() && !job.dependency_failed;
        let begin = if job.eligible.is_none() && free { job.not_before } else { None };
        let immediate = job
            .spec
            .immediate_secs
            .filter(|_| job.attempt == 0)
            .map(|s| State::later(job.submitted, i64::from(s) * 1000));
        let waiting_on = job.waiting_on.iter().filter(|_| !job.dependency_failed);
        let after = waiting_on.flat_map(|d| &d.terms).filter_map(|term| match (term.kind, term.target) {
            (DependencyKind::After { minutes }, Some(target)) if minutes > 0 => {
                crate::dependency::started(self, target).since().map(|t| State::later(t, i64::from(minutes) * 60_000))
            }
            _ => None,
        });
        // One that starts at the latest moment is still in time.
        let missed = latest_start(&job.spec).map(|t| State::later(t, 1));
        [begin, immediate, missed].into_iter().flatten().chain(after).min()
    }

    fn running_timer(&self, job: &Job, run: &Run) -> Option<Time> {
        let over = self.timing_ms(|t| t.over_time_limit_minutes.saturating_mul(60));
        let end = limit_end(job, run);
        let warn = match (end, job.spec.signal) {
            (Some(end), Some(signal)) if !run.warned => Some(State::later(end, -i64::from(signal.before_secs) * 1000)),
            _ => None,
        };
        let mails = MAIL_SHARES
            .into_iter()
            .filter(|(bit, _)| job.spec.mail_type & !run.mailed & bit != 0)
            .filter_map(|(_, share)| share_end(job, run, share));
        let preempted = run.preempted.as_ref().and_then(|p| p.ends);
        [end.map(|e| State::later(e, over)), warn, job.spec.deadline, preempted]
            .into_iter()
            .flatten()
            .chain(mails)
            .min()
    }

    pub(crate) fn sched_key(&self, job: &Job) -> Option<SchedKey> {
        let free = job.hold == Hold::No && job.waiting_on.is_none() && !job.dependency_failed;
        if !is_pending(job) || job.eligible.is_none() || !free {
            return None;
        }
        let tier = job.partitions.iter().filter_map(|p| self.partitions.get(p)).map(|p| p.priority_tier).max();
        Some(SchedKey { tier: Reverse(tier.unwrap_or(0)), priority: Reverse(job.priority), job: job.id })
    }

    /// Finished jobs go to the history one by one, but a failed task of an array stays until its whole array is over,
    /// so that what depends on the array can be judged.
    fn archive_key(&self, job: &Job) -> Option<(Time, JobId)> {
        let Phase::Ended { ended, .. } = &job.phase else { return None };
        let open = job.array_id().and_then(|a| self.index.arrays.get(&a)).is_some_and(|a| a.open > 0);
        if open && has_failed(job) { None } else { Some((*ended, job.id)) }
    }

    /// Changes one job record and leaves all indexes true. The only way in which jobs change.
    pub(crate) fn edit(&mut self, id: JobId, change: impl FnOnce(&mut Job)) {
        if let Some(old) = self.jobs.get(&id) {
            let mut job = Job::clone(old);
            change(&mut job);
            self.put(id, Some(job));
        }
    }

    /// Adds, replaces or removes (None) a job record.
    pub(crate) fn put(&mut self, id: JobId, new: Option<Job>) {
        self.put_shared(id, new.map(Arc::new));
    }

    fn put_shared(&mut self, id: JobId, new: Option<Arc<Job>>) {
        let old = self.jobs.get(&id).cloned();
        // Keys that look at the state are taken before it changes.
        let old_key = old.as_ref().and_then(|j| self.sched_key(j));
        let old_archive = old.as_ref().and_then(|j| self.archive_key(j));
        match &new {
            Some(job) => self.jobs.insert(id, Arc::clone(job)),
            None => self.jobs.remove(&id),
        };
        let new_key = new.as_ref().and_then(|j| self.sched_key(j));
        if old_key != new_key {
            swap(&mut self.index.eligible, old_key, new_key);
        }
        let (was_active, active) = (old.as_deref().is_some_and(is_active), new.as_deref().is_some_and(is_active));
        if was_active && !active {
            self.index.active.remove(&id);
        }
        if active && !was_active {
            self.index.active.insert(id);
        }
        let (lent, lends) = (old.as_deref().is_some_and(is_lending), new.as_deref().is_some_and(is_lending));
        if lent != lends {
            swap(&mut self.index.lending, lent.then_some(id), lends.then_some(id));
        }
        self.put_names(old.as_deref(), new.as_deref());
        self.put_key(old.as_deref(), new.as_deref());
        self.put_targets(old.as_deref(), new.as_deref());
        self.put_nodes(old.as_deref(), new.as_deref());
        self.put_array(old.as_deref(), new.as_deref());
        self.count_submitted(old.as_deref(), new.as_deref());
        let new_archive = new.as_ref().and_then(|j| self.archive_key(j));
        if old_archive != new_archive {
            swap(&mut self.index.ended, old_archive, new_archive);
        }
        self.refresh_timer(id);
        let started = |j: Option<&Job>| j.and_then(|j| j.run().map(|r| r.started).or(j.ended()));
        if started(old.as_deref()) != started(new.as_deref()) {
            // `after:ID+minutes` counts from here.
            let array = new.as_ref().or(old.as_ref()).and_then(|j| j.array_id()).filter(|a| *a != id);
            for target in [Some(id), array].into_iter().flatten() {
                for waiting in self.dependents_of(target) {
                    self.refresh_timer(waiting);
                }
            }
        }
    }

    pub(crate) fn refresh_timer(&mut self, id: JobId) {
        let new = self.jobs.get(&id).and_then(|j| self.timer_of(j));
        let old = self.index.timer_at.get(&id).copied();
        if old != new {
            swap(&mut self.index.timers, old.map(|t| (t, id)), new.map(|t| (t, id)));
            match new {
                Some(t) => self.index.timer_at.insert(id, t),
                None => self.index.timer_at.remove(&id),
            };
        }
    }

    /// Pending jobs with an unmet term on this job or array.
    pub(crate) fn dependents_of(&self, target: JobId) -> Vec<JobId> {
        self.index.dependents.range((target, JobId(0))..=(target, JobId(u32::MAX))).map(|(_, d)| *d).collect()
    }

    /// The lowest job id of this user, name and class.
    pub(crate) fn first_named(&self, job: &Job, class: NameClass) -> Option<JobId> {
        let key = |id| (job.spec.uid, job.spec.name.clone(), class, JobId(id));
        self.index.names.range(key(0)..=key(u32::MAX)).next().map(|(.., id)| *id)
    }

    /// A job of this user, name and class other than `job` itself.
    pub(crate) fn other_named(&self, job: &Job, class: NameClass) -> Option<JobId> {
        let key = |id| (job.spec.uid, job.spec.name.clone(), class, JobId(id));
        self.index.names.range(key(0)..=key(u32::MAX)).map(|(.., id)| *id).find(|id| *id != job.id)
    }

    fn put_names(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let entries = |j: Option<&Job>| j.map(name_entries).unwrap_or_default();
        let same_name = match (old, new) {
            (Some(a), Some(b)) => a.spec.uid == b.spec.uid && a.spec.name == b.spec.name,
            _ => false,
        };
        let (was, is) = (entries(old), entries(new));
        if same_name && was == is {
            return;
        }
        if let Some(j) = old {
            for class in was {
                self.index.names.remove(&(j.spec.uid, j.spec.name.clone(), class, j.id));
            }
        }
        if let Some(j) = new {
            for class in is {
                self.index.names.insert((j.spec.uid, j.spec.name.clone(), class, j.id));
            }
        }
    }

    fn put_key(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let entry = |j: Option<&Job>| j.and_then(|j| Some((j.spec.uid, j.key?)));
        let (was, is) = (entry(old), entry(new));
        if was == is {
            return;
        }
        if let Some(key) = was {
            self.index.keys.remove(&key);
        }
        if let (Some(key), Some(job)) = (is, new) {
            self.index.keys.insert(key, job.id);
        }
    }

    fn put_targets(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.map(targets).unwrap_or_default(), new.map(targets).unwrap_or_default());
        if was == is {
            return;
        }
        let Some(id) = new.or(old).map(|j| j.id) else { return };
        for target in was {
            self.index.dependents.remove(&(target, id));
        }
        for target in is {
            self.index.dependents.insert((target, id));
        }
    }

    fn put_nodes(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.map(holdings).unwrap_or_default(), new.map(holdings).unwrap_or_default());
        if was == is {
            return;
        }
        let Some(id) = new.or(old).map(|j| j.id) else { return };
        let (was, is): (BTreeSet<_>, BTreeSet<_>) = (was.into_iter().collect(), is.into_iter().collect());
        for gone in was.difference(&is) {
            self.edit_node(gone, |n| {
                n.jobs.remove(&id);
            });
        }
        for come in is.difference(&was) {
            self.edit_node(come, |n| {
                n.jobs.insert(id);
            });
        }
    }

    fn put_array(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let Some(array) = new.or(old).and_then(Job::array_id) else { return };
        let mut entry = self.index.arrays.get(&array).cloned().unwrap_or_default();
        let was_open = entry.open > 0;
        let count = |j: Option<&Job>, test: fn(&Job) -> bool| u32::from(j.is_some_and(test));
        let index = |j: Option<&Job>| match j.map(|j| (&j.array, j.id)) {
            Some((ArrayRole::Task { index, .. }, id)) => Some((*index, id)),
            _ => None,
        };
        if let Some((i, _)) = index(old) {
            entry.tasks.remove(&i);
        }
        if let Some((i, id)) = index(new) {
            entry.tasks.insert(i, id);
        }
        let block = |j: Option<&Job>| j.filter(|j| matches!(j.array, ArrayRole::Block { .. })).map(|j| j.id);
        swap(&mut entry.blocks, block(old), block(new));
        let is_open = |j: &Job| !matches!(j.phase, Phase::Ended { .. });
        entry.open = (entry.open + count(new, is_open)).saturating_sub(count(old, is_open));
        entry.active = (entry.active + count(new, is_active)).saturating_sub(count(old, is_active));
        entry.failed = (entry.failed + count(new, has_failed)).saturating_sub(count(old, has_failed));
        let open = entry.open > 0;
        let members: Vec<JobId> = if open != was_open { entry.parts().collect() } else { Vec::new() };
        let record = self.jobs.get(&array).is_some_and(|j| matches!(j.array, ArrayRole::Pending { .. }));
        if entry.tasks.is_empty() && entry.blocks.is_empty() && !record {
            self.index.arrays.remove(&array);
        } else {
            self.index.arrays.insert(array, entry);
        }
        // The array is over, or no longer: its failed tasks may, or may not, go to the history.
        let changed = new.or(old).map(|j| j.id);
        for id in members.into_iter().chain((open != was_open).then_some(array)).filter(|id| Some(*id) != changed) {
            if let Some(job) = self.jobs.get(&id).filter(|j| has_failed(j) && j.array_id() == Some(array))
                && let Phase::Ended { ended, .. } = &job.phase
            {
                let key = (*ended, id);
                if open {
                    self.index.ended.remove(&key);
                } else {
                    self.index.ended.insert(key);
                }
            }
        }
    }

    pub(crate) fn edit_node(&mut self, name: &NodeName, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(name) {
            let node = Arc::make_mut(node);
            change(node);
            if node.flags.not_responding && (!node.flags.down || !node.jobs.is_empty()) {
                self.index.silent.insert(name.clone());
            } else {
                self.index.silent.remove(name);
            }
        }
    }

    /// Makes `index` and the nodes' lists of jobs anew. For the loader of snapshots, and after changes of the
    /// configuration that touch keys. Costs as much as there are jobs.
    pub fn rebuild_indexes(&mut self) {
        self.index = Indexes::default();
        self.refresh_hardware();
        let names: Vec<NodeName> = self.nodes.keys().cloned().collect();
        for name in names {
            self.edit_node(&name, |n| n.jobs.clear());
        }
        let jobs = std::mem::take(&mut self.jobs);
        // The records themselves stay, so that snapshots go on sharing them.
        for (id, job) in &jobs {
            self.put_shared(*id, Some(Arc::clone(job)));
        }
        self.jobs = jobs;
        // `after` terms look at jobs that may have come later in the walk.
        let waiting: BTreeSet<JobId> = self.index.dependents.iter().map(|(_, d)| *d).collect();
        for id in waiting {
            self.refresh_timer(id);
        }
    }
}

fn swap<K: Ord + Clone>(set: &mut OrdSet<K>, old: Option<K>, new: Option<K>) {
    if let Some(key) = old {
        set.remove(&key);
    }
    if let Some(key) = new {
        set.insert(key);
    }
}
