//! Feeds a scheduler that remembers with what changed between two snapshots of the state.
//!
//! Owns the scheduler and the snapshot that it knows. Promises that a plan is the one that `scheduler_input` would give with
//! all eligible jobs, at the cost of what changed: snapshots share what did not, and that is passed over. A new
//! configuration, or new states of partitions, make it start anew; submissions, starts, ends and nodes that come and go
//! never do. Must not change the state.

use super::nodes::takes_work;
use super::scheduling::{self, Room, give_up_switches, input, running_job, switches_until};
use crate::index::{SchedKey, wants_singleton};
use crate::job::{Job, Phase};
use crate::state::State;
use imbl::ordmap::DiffItem;
use sluice_model::{JobId, NodeName, OsBytes, Time};
use sluice_sched::{Input, PendingJob, Plan, Policy, RunningJob, Scheduler};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// What is known besides the state, and put into what the scheduler is shown. The answers for a job may change only when its
/// record does, with its user's habits, or with `Feed::start_anew`.
pub trait Outlook {
    fn policy(&self, _policy: &mut Policy) {}
    /// Whether what is said of waiting jobs depends on what their users' earlier runs did.
    fn predicts(&self) -> bool {
        false
    }
    /// Limits, and QOS of partitions.
    fn limits(&self, _shown: &mut Input) {}
    /// Expected duration, priority, whom it counts for.
    fn pending(&self, _job: &Job, _shown: &mut PendingJob) {}
    /// Expected end, whom it counts for.
    fn running(&self, _job: &Job, _shown: &mut RunningJob) {}
}

/// Nothing besides the state.
pub struct AsIs;

impl Outlook for AsIs {}

type Name = (u32, OsBytes);

/// So many jobs are shown again in one pass because of their users' habits, at most: a pass must stay cheap however many
/// jobs a user has. The others follow with the next passes.
const AGAIN: usize = 256;

#[derive(Default)]
pub struct Feed {
    scheduler: Scheduler,
    known: Option<State>,
    /// Eligible jobs that belong to an array: what it has room for is shared out anew when one of them changes.
    arrays: BTreeMap<JobId, BTreeSet<JobId>>,
    /// Eligible jobs that wait for their name, likewise.
    named: BTreeMap<Name, BTreeSet<JobId>>,
    /// Jobs whose ends move away while they are suspended.
    suspended: BTreeSet<JobId>,
    /// Eligible jobs by uid, where their users' habits count.
    of_users: BTreeMap<u32, BTreeSet<JobId>>,
    /// Users whose habits have changed, and which of their jobs are still to be shown again.
    changed: BTreeMap<u32, Round>,
    last_told: u32,
    predicts: bool,
    /// Jobs that still wait for their switches.
    patient: BTreeSet<JobId>,
    /// Of the last update; None before the first.
    now: Option<Time>,
    /// Eligible jobs for which others have to go: whom they wait for changes without them.
    claimants: BTreeSet<JobId>,
    /// Jobs that lent their cores when last looked at.
    lending: BTreeSet<JobId>,
}

/// So many of a user's jobs, from `next` on and then from the first.
#[derive(Clone, Copy)]
struct Round {
    next: JobId,
    left: usize,
}

impl Round {
    fn next(&mut self, all: &BTreeSet<JobId>, most: usize) -> Vec<JobId> {
        let count = self.left.min(all.len()).min(most);
        let jobs: Vec<JobId> = all.range(self.next..).chain(all.range(..self.next)).take(count).copied().collect();
        self.left = if count < most { 0 } else { self.left - count };
        self.next = jobs.last().map_or(JobId(0), |last| JobId(last.0.saturating_add(1)));
        jobs
    }
}

/// What depends on more than one record and must be looked at again.
#[derive(Default)]
struct Again {
    arrays: BTreeSet<JobId>,
    names: BTreeSet<Name>,
}

impl Feed {
    pub fn new() -> Feed {
        Feed::default()
    }

    /// The next `update` takes over everything.
    pub fn start_anew(&mut self) {
        self.known = None;
    }

    /// Jobs that could start.
    pub fn pending(&self) -> usize {
        self.scheduler.pending()
    }

    /// A scheduling pass over this state.
    pub fn plan(&mut self, state: &State, now: Time, outlook: &impl Outlook) -> Plan {
        self.update(state, now, outlook);
        self.scheduler.plan(state.generation, now)
    }

    /// Tells the scheduler what is new.
    pub fn update(&mut self, state: &State, now: Time, outlook: &impl Outlook) {
        self.now = Some(now);
        match self.known.replace(state.clone()) {
            Some(known) if Arc::ptr_eq(&known.index.hardware, &state.index.hardware) => {
                self.nodes(&known, state);
                let mut again = Again::default();
                self.jobs(&known, state, now, outlook, &mut again);
                self.habits(&known, state, outlook, &mut again);
                self.impatient(state, outlook, &mut again);
                self.dependent(state, outlook, &again);
            }
            _ => self.rebuild(state, now, outlook),
        }
        // Who has the cores of a suspended job is seen in both records.
        let lending: BTreeSet<JobId> = self.lending.iter().chain(&state.index.lending).copied().collect();
        self.lending = state.index.lending.iter().copied().collect();
        let of_lender = |id: &JobId| state.jobs.get(id).and_then(|j| j.run()).map(|r| r.allocation.names());
        let nodes: BTreeSet<&NodeName> = lending.iter().filter_map(of_lender).flatten().collect();
        let around: BTreeSet<JobId> =
            nodes.iter().filter_map(|n| state.nodes.get(*n)).flat_map(|n| &n.jobs).copied().collect();
        for job in around.iter().filter_map(|id| state.jobs.get(id)).filter(|j| holds(j)) {
            show_running(&mut self.scheduler, state, job, now, outlook);
        }
        for id in &self.suspended {
            if let Some(job) = state.jobs.get(id) {
                show_running(&mut self.scheduler, state, job, now, outlook);
            }
        }
    }

    fn rebuild(&mut self, state: &State, now: Time, outlook: &impl Outlook) {
        self.arrays.clear();
        self.named.clear();
        self.suspended.clear();
        self.of_users.clear();
        self.changed.clear();
        self.patient.clear();
        self.predicts = outlook.predicts();
        self.claimants.clear();
        self.lending.clear();
        let mut all = input(state, now, usize::MAX);
        scheduling::show(state, outlook, &mut all);
        self.scheduler.rebuild(&all);
        for job in state.index.eligible.iter().filter_map(|key| state.jobs.get(&key.job)) {
            self.enlist(job);
            if switches_until(state, job).is_some_and(|until| until > now) {
                self.patient.insert(job.id);
            }
        }
        for job in state.index.active.iter().filter_map(|id| state.jobs.get(id)).filter(|j| is_suspended(j)) {
            self.suspended.insert(job.id);
        }
    }

    /// Jobs that have waited for their switches as long as they may.
    fn impatient(&mut self, state: &State, outlook: &impl Outlook, again: &mut Again) {
        let Some(now) = self.now else { return };
        let due = |id: &JobId| {
            let until = state.jobs.get(id).and_then(|job| switches_until(state, job));
            until.is_none_or(|until| until <= now)
        };
        let due: Vec<JobId> = self.patient.extract_if(.., due).collect();
        for id in due {
            let Some(job) = state.jobs.get(&id).filter(|job| state.sched_key(job).is_some()) else { continue };
            match job.array_id() {
                Some(array) => _ = again.arrays.insert(array),
                None => self.show(state, id, &mut Room::default(), outlook),
            }
        }
    }

    fn nodes(&mut self, known: &State, state: &State) {
        for item in known.nodes.diff(&state.nodes) {
            let (name, available) = match item {
                DiffItem::Add(name, node) | DiffItem::Update { new: (name, node), .. } => (name, takes_work(node)),
                DiffItem::Remove(name, _) => (name, false),
            };
            if let Some(position) = state.index.hardware.node_position.get(name) {
                self.scheduler.set_available(*position, available);
            }
        }
    }

    fn jobs(&mut self, known: &State, state: &State, now: Time, outlook: &impl Outlook, again: &mut Again) {
        for item in known.jobs.diff(&state.jobs) {
            let (old, new) = match item {
                DiffItem::Add(_, new) => (None, Some(&**new)),
                DiffItem::Update { old, new } => (Some(&**old.1), Some(&**new.1)),
                DiffItem::Remove(_, old) => (Some(&**old), None),
            };
            self.job(old, new, state, now, outlook, again);
        }
    }

    /// Jobs of users whose habits have changed, as many as a pass may take.
    fn habits(&mut self, known: &State, state: &State, outlook: &impl Outlook, again: &mut Again) {
        if !self.predicts {
            return;
        }
        for item in known.habits.users.diff(&state.habits.users) {
            let (DiffItem::Add(uid, _) | DiffItem::Update { new: (uid, _), .. } | DiffItem::Remove(uid, _)) = item;
            if let Some(jobs) = self.of_users.get(uid) {
                self.changed.entry(*uid).or_insert(Round { next: JobId(0), left: 0 }).left = jobs.len();
            }
        }
        let mut left = AGAIN;
        let turn = |u: &u32| (Bound::Excluded(*u), Bound::Unbounded);
        while left > 0 {
            // Round and round, so that a user of very many jobs keeps nobody waiting.
            let next = self.changed.range(turn(&self.last_told)).next().or_else(|| self.changed.iter().next());
            let Some((uid, mut round)) = next.map(|(uid, round)| (*uid, *round)) else { break };
            self.last_told = uid;
            let jobs = self.of_users.get(&uid).map(|all| round.next(all, left)).unwrap_or_default();
            left -= jobs.len();
            if round.left > 0 {
                self.changed.insert(uid, round);
            } else {
                self.changed.remove(&uid);
            }
            for id in jobs {
                match state.jobs.get(&id).and_then(|job| job.array_id()) {
                    Some(array) => _ = again.arrays.insert(array),
                    None => self.show(state, id, &mut Room::default(), outlook),
                }
            }
        }
    }

    fn dependent(&mut self, state: &State, outlook: &impl Outlook, again: &Again) {
        let mut arrays = again.arrays.clone();
        for id in self.claimants.clone() {
            match state.jobs.get(&id).and_then(|j| j.array_id()) {
                Some(array) => _ = arrays.insert(array),
                None => self.show(state, id, &mut Room::default(), outlook),
            }
        }
        for name in &again.names {
            for id in self.named.get(name).cloned().unwrap_or_default() {
                let array = state.jobs.get(&id).and_then(|j| j.array_id());
                match array {
                    Some(array) => _ = arrays.insert(array),
                    None => self.show(state, id, &mut Room::default(), outlook),
                }
            }
        }
        for array in &arrays {
            let members = self.arrays.get(array).into_iter().flatten();
            let mut keys: Vec<SchedKey> =
                members.filter_map(|id| state.jobs.get(id)).filter_map(|job| state.sched_key(job)).collect();
            keys.sort_unstable();
            let mut room = Room::default();
            for key in keys {
                self.show(state, key.job, &mut room, outlook);
            }
        }
    }

    fn job(
        &mut self,
        old: Option<&Job>,
        new: Option<&Job>,
        state: &State,
        now: Time,
        outlook: &impl Outlook,
        again: &mut Again,
    ) {
        for job in old.into_iter().chain(new) {
            again.arrays.extend(job.array_id().filter(|a| self.arrays.contains_key(a)));
            if !self.named.is_empty() {
                let name = (job.spec.uid, job.spec.name.clone());
                if self.named.contains_key(&name) {
                    again.names.insert(name);
                }
            }
        }
        if let Some(old) = old {
            self.strike(old);
        }
        let Some(id) = new.or(old).map(|j| j.id) else { return };
        match new {
            Some(job) if holds(job) => {
                if !old.is_some_and(|old| holds_alike(old, job)) {
                    show_running(&mut self.scheduler, state, job, now, outlook);
                }
                if is_suspended(job) {
                    self.suspended.insert(id)
                } else {
                    self.suspended.remove(&id)
                };
            }
            _ => {
                if old.is_some_and(holds) {
                    self.scheduler.remove_running(id);
                    self.suspended.remove(&id);
                }
            }
        }
        match new.filter(|job| state.sched_key(job).is_some()) {
            Some(job) => {
                self.enlist(job);
                match job.array_id() {
                    Some(array) => _ = again.arrays.insert(array),
                    None => self.show(state, id, &mut Room::default(), outlook),
                }
            }
            None => self.scheduler.remove_pending(id),
        }
    }

    /// An eligible job as it is shown now, or not.
    fn show(&mut self, state: &State, id: JobId, room: &mut Room, outlook: &impl Outlook) {
        let job = state.jobs.get(&id);
        match job.and_then(|job| Some((job, room.show(state, job)?))) {
            Some((job, mut shown)) => {
                if let (Some(until), Some(now)) = (switches_until(state, job), self.now) {
                    give_up_switches(state, job, now, &mut shown);
                    if until > now {
                        self.patient.insert(id);
                    }
                }
                outlook.pending(job, &mut shown);
                self.scheduler.put_pending(shown);
            }
            None => self.scheduler.remove_pending(id),
        }
    }

    /// Remembers an eligible job that depends on others, or on its user's habits.
    fn enlist(&mut self, job: &Job) {
        if self.predicts {
            self.of_users.entry(job.spec.uid).or_default().insert(job.id);
        }
        if job.claim.is_some() {
            self.claimants.insert(job.id);
        }
        if let Some(array) = job.array_id() {
            self.arrays.entry(array).or_default().insert(job.id);
        }
        if wants_singleton(job) {
            self.named.entry((job.spec.uid, job.spec.name.clone())).or_default().insert(job.id);
        }
    }

    fn strike(&mut self, job: &Job) {
        if self.predicts {
            strike(&mut self.of_users, &job.spec.uid, job.id);
        }
        self.claimants.remove(&job.id);
        if let Some(array) = job.array_id() {
            strike(&mut self.arrays, &array, job.id);
        }
        if !self.named.is_empty() {
            strike(&mut self.named, &(job.spec.uid, job.spec.name.clone()), job.id);
        }
    }
}

fn strike<K: Ord>(lists: &mut BTreeMap<K, BTreeSet<JobId>>, key: &K, id: JobId) {
    if let Some(list) = lists.get_mut(key)
        && list.remove(&id)
        && list.is_empty()
    {
        lists.remove(key);
    }
}

fn show_running(scheduler: &mut Scheduler, state: &State, job: &Job, now: Time, outlook: &impl Outlook) {
    if let Some(mut shown) = running_job(state, job, now) {
        outlook.running(job, &mut shown);
        scheduler.put_running(shown);
    }
}

fn holds(job: &Job) -> bool {
    matches!(job.phase, Phase::Running(_) | Phase::Completing { .. })
}

fn is_suspended(job: &Job) -> bool {
    matches!(&job.phase, Phase::Running(run) if run.suspended_since.is_some())
}

/// Nothing changed of what the scheduler is shown of a running job.
fn holds_alike(old: &Job, new: &Job) -> bool {
    match (&old.phase, &new.phase) {
        (Phase::Running(a), Phase::Running(b)) => {
            Arc::ptr_eq(&a.allocation, &b.allocation)
                && a.started == b.started
                && (a.kill_at, a.suspended_since, a.suspended_ms) == (b.kill_at, b.suspended_since, b.suspended_ms)
                && a.preempted == b.preempted
                && a.lends == b.lends
                && a.ending.is_some() == b.ending.is_some()
                && old.priority == new.priority
                && old.requeue == new.requeue
                && old.time_limit == new.time_limit
                && old.partition == new.partition
                && Arc::ptr_eq(&old.spec, &new.spec)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_users_jobs_have_their_turn_however_often_the_habits_change() {
        let all: BTreeSet<JobId> = (1..=10).map(JobId).collect();
        let mut round = Round { next: JobId(0), left: 0 };
        let mut seen = Vec::new();
        for _ in 0..5 {
            // Changed again before the round is over.
            round.left = all.len();
            seen.extend(round.next(&all, 4).into_iter().map(|id| id.0));
        }
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        round.left = all.len();
        assert_eq!((round.next(&all, 20).len(), round.left), (10, 0));
    }
}
