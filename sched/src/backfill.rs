//! One pass over the queue: EASY backfill.
//!
//! Owns the walk: each job in queue order is started if it fits now without delaying a planned start; the first jobs of
//! each partition that don't fit get a planned start (`policy.reservations` of them). Promises that a planned start is
//! never later than it would be had nothing been started out of order: what starts later in the pass fits around it
//! (Lifka 1995; `reservations` at the number of jobs gives conservative backfill, Mu'alem and Feitelson 2001). Without
//! `policy.backfill`, nobody passes a blocked job on the nodes of its partition.
//!
//! The queue is walked class by class, each at the place of its first job that has not been looked at. Free resources only
//! shrink during a pass. So a class of which nothing fits now is done with once its partition has its planned starts, and
//! in one that fails for a window only shorter jobs are looked at. Classes known to be full from earlier passes are seen
//! only as far as planned starts go to them.
//!
//! `attempt` starts a job or plans it, `fit` looks for a place from now on, `reserve` for the first moment later, `outcome`
//! tells what became of all.

mod attempt;
mod field;
mod fit;
pub(crate) mod limits;
mod outcome;
mod preempt;
mod reserve;

use crate::classes::{Classes, SizeKey, Standing};
use crate::cluster::Cluster;
use crate::input::BackfillOrder;
use crate::jobs::Jobs;
use crate::order::Key;
use crate::placement::Share;
use crate::plan::Plan;
use crate::preemption::Claim;
use crate::scheduler::Scheduler;
use crate::timeline::Timeline;
use reserve::Planned;
use sluice_model::{JobId, Reason};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// Shares of a job and what they take: one row a node.
struct Placed {
    shares: Vec<Share>,
    rows: Vec<Vec<i64>>,
}

/// What is due at a place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// The next job of a class.
    Class(u32),
    /// The next full class of a partition.
    Full(u32),
    /// One job of a class, which must be looked at whatever is known of its class.
    Job(u32),
}

pub(crate) struct Pass<'a> {
    cluster: &'a Cluster,
    timeline: &'a mut Timeline,
    classes: &'a mut Classes,
    jobs: &'a Jobs,
    apart: &'a BTreeSet<JobId>,
    /// Their runs in the time line.
    running: &'a BTreeMap<JobId, u32>,
    claims: &'a BTreeMap<JobId, Arc<Claim>>,
    victims: preempt::Victims,
    /// Full classes that are lined up for what they could take from others.
    hunting: BTreeSet<u32>,
    /// A job that gets a planned start whatever the policy's number and budget.
    guest: Option<JobId>,
    due: BinaryHeap<Reverse<(Key, Due)>>,
    /// The same by size, for jobs that may pass.
    due_by_size: BinaryHeap<Reverse<(SizeKey, u32)>>,
    /// Classes whose jobs are taken by size.
    deferred: Vec<u32>,
    by_size: bool,
    /// By partition: the first job of it that waits for resources.
    blocked: Vec<Option<JobId>>,
    /// By partition: planned starts given to it.
    planned_in: Vec<u32>,
    /// Planned starts of jobs that wait for licences.
    planned_for_licenses: u32,
    planned: BTreeMap<JobId, Planned>,
    /// In the order in which they were first planned, and the same as a set.
    planned_order: Vec<JobId>,
    ordered: BTreeSet<JobId>,
    /// Wholly.
    started: BTreeSet<JobId>,
    /// Tasks of arrays started so far.
    tasks_started: BTreeMap<JobId, usize>,
    /// Why it waits: of jobs that were looked at, by their place in the queue.
    seen: BTreeMap<(JobId, u32), Reason>,
    /// Starts of this pass in the time line.
    runs: Vec<u32>,
    /// Classes that were found to be full.
    filled: Vec<u32>,
    /// Classes in which jobs wait for licences.
    unlicensed: BTreeSet<u32>,
    /// Classes all of whose jobs are held back by a limit.
    held: BTreeSet<u32>,
    /// None when no association and no QOS is limited.
    limited: Option<limits::Limited>,
    tried: u32,
    plan: Plan,
}

/// What a pass leaves behind.
pub(crate) struct Done {
    pub plan: Plan,
    /// CPUs planned for the guest.
    pub guest_cpus: u32,
}

impl<'a> Pass<'a> {
    pub fn new(scheduler: &'a mut Scheduler, generation: u64, guest: Option<JobId>) -> Self {
        let (cluster, timeline) = (&scheduler.cluster, &scheduler.timeline);
        let partitions = cluster.partitions.len();
        let rules = cluster.limits.as_ref();
        let limited = limits::Limited::new(rules, &cluster.partitions, timeline.running(), timeline.now);
        Pass {
            cluster: &scheduler.cluster,
            timeline: &mut scheduler.timeline,
            classes: &mut scheduler.classes,
            jobs: &scheduler.jobs,
            apart: &scheduler.apart,
            running: &scheduler.running,
            claims: &scheduler.claims,
            victims: preempt::Victims::default(),
            hunting: BTreeSet::new(),
            guest,
            due: BinaryHeap::new(),
            due_by_size: BinaryHeap::new(),
            deferred: Vec::new(),
            by_size: false,
            blocked: vec![None; partitions],
            planned_in: vec![0; partitions],
            planned_for_licenses: 0,
            planned: BTreeMap::new(),
            planned_order: Vec::new(),
            ordered: BTreeSet::new(),
            started: BTreeSet::new(),
            tasks_started: BTreeMap::new(),
            seen: BTreeMap::new(),
            runs: Vec::new(),
            filled: Vec::new(),
            unlicensed: BTreeSet::new(),
            held: BTreeSet::new(),
            limited,
            tried: 0,
            plan: Plan { generation, ..Plan::default() },
        }
    }

    pub fn run(mut self) -> Done {
        self.muster();
        self.see_claims();
        self.line_up();
        let within = self.walk();
        if within {
            self.walk_by_size();
        }
        self.see_guest();
        self.finish()
    }

    fn line_up(&mut self) {
        let classes = &*self.classes;
        let first = |c: &u32| classes.get(*c).queue.first().map(|key| Reverse((key, Due::Class(*c))));
        let mut due: Vec<_> = classes.open.iter().filter_map(first).collect();
        for (p, full) in classes.full.iter().enumerate() {
            due.extend(full.first().map(|(key, _)| Reverse((*key, Due::Full(p as u32)))));
        }
        self.due = BinaryHeap::from(due);
        // Full is no reason for those who may take from others.
        let full: Vec<(Key, u32)> = self.classes.full.iter().flatten().copied().collect();
        for (key, class) in full {
            if self.hunts(class) {
                self.hunting.insert(class);
                self.due.push(Reverse((key, Due::Class(class))));
            }
        }
    }

    /// False when the pass has done as much as it may.
    fn walk(&mut self) -> bool {
        while let Some(Reverse((key, due))) = self.due.pop() {
            let within = match due {
                Due::Class(class) => self.visit(class, key),
                Due::Full(p) => self.visit_full(p, key),
                Due::Job(class) => self.visit_job(class, key),
            };
            if !within {
                return false;
            }
        }
        true
    }

    /// No more may be done.
    fn is_spent(&self) -> bool {
        let policy = &self.cluster.policy;
        self.tried >= policy.queue_depth || self.plan.work >= policy.work_budget
    }

    /// Looks at one job, unless that has been done. False when no more may be done.
    fn visit_job(&mut self, class: u32, key: Key) -> bool {
        if self.started.contains(&key.job()) || self.seen.contains_key(&(key.job(), key.slot())) {
            return true;
        }
        let within = !self.is_spent();
        if within {
            self.look(class, key);
        }
        within
    }

    fn visit_full(&mut self, partition: u32, key: Key) -> bool {
        if self.settled(partition) {
            return true;
        }
        let full = &self.classes.full[partition as usize];
        let mut from = full.range((key, 0)..);
        let class = from.next().map(|f| f.1);
        if let Some((next, _)) = from.next() {
            self.due.push(Reverse((*next, Due::Full(partition))));
        }
        // Those that hunt are lined up by themselves.
        class.is_none_or(|class| self.hunting.contains(&class) || self.visit(class, key))
    }

    /// Looks at the job of a class at this place, and lines up the one after it.
    fn visit(&mut self, class: u32, key: Key) -> bool {
        self.classes.run(class);
        let hunts = self.hunts(class);
        let of = self.classes.get(class);
        let partition = of.shape.partition;
        if self.settled(partition) && !hunts {
            // Those that want licences may have another reason to wait, which is told.
            if of.shape.licenses.is_none() && (of.is_full() || !self.cluster.policy.backfill) {
                return true;
            }
            if self.cluster.policy.backfill && self.cluster.policy.backfill_order != BackfillOrder::Queue {
                self.classes.run(class).deferred = Some(key);
                self.deferred.push(class);
                return true;
            }
        }
        if !self.visit_job(class, key) {
            return false;
        }
        if let Some(bound) = self.bound(class)
            && let Some(next) = self.classes.get(class).queue.next(key, false, bound)
        {
            self.due.push(Reverse((next, Due::Class(class))));
        }
        true
    }

    /// Which jobs of a class are worth a look: None for none, else those shorter than the bound, if any.
    #[allow(clippy::option_option)]
    fn bound(&mut self, class: u32) -> Option<Option<i64>> {
        let now = self.timeline.now;
        let quota = self.cluster.policy.reservations;
        let failed = self.classes.run(class).failed;
        let of = self.classes.get(class);
        if of.run.limited.is_some() {
            return None;
        }
        if self.hunts(class) {
            return Some(None);
        }
        let of = self.classes.get(class);
        let all_planned = match failed {
            Some((_, Reason::Licenses)) => !self.cluster.policy.backfill || self.planned_for_licenses >= quota,
            _ => self.settled(of.shape.partition),
        };
        // What waits for nodes now may wait for licences a moment later, and is then planned for them.
        let may_change = of.shape.licenses.is_some() && !matches!(failed, Some((_, Reason::Licenses)));
        match failed {
            _ if !all_planned || may_change => Some(None),
            Some((bound, _)) if bound <= now => None,
            Some((bound, _)) => Some(Some(bound.saturating_sub(now))),
            None if of.is_full() => None,
            None => Some(None),
        }
    }

    /// The same for jobs that may pass, the smallest first.
    fn walk_by_size(&mut self) {
        for class in std::mem::take(&mut self.deferred) {
            self.line_up_by_size(class, None);
        }
        self.by_size = true;
        while let Some(Reverse((size, class))) = self.due_by_size.pop() {
            let key = size.2;
            let from = self.classes.run(class).deferred.unwrap_or_default();
            if key >= from && !self.visit_job(class, key) {
                return;
            }
            self.line_up_by_size(class, Some(size));
            // What became due by a planned start in another partition.
            if !self.walk() {
                return;
            }
        }
    }

    fn line_up_by_size(&mut self, class: u32, after: Option<SizeKey>) {
        let Some(bound) = self.bound(class) else { return };
        let queue = &self.classes.get(class).by_size;
        let from = after.unwrap_or_default();
        if let Some(next) = queue.next(from, after.is_none(), bound) {
            self.due_by_size.push(Reverse((next, class)));
        }
    }

    /// The guest, wherever the pass stopped.
    fn see_guest(&mut self) {
        let Some(guest) = self.guest else { return };
        let jobs = self.jobs;
        for entry in jobs.get(&guest).map_or(&[][..], |p| p.entries()) {
            let seen = self.seen.contains_key(&(guest, entry.key.slot()));
            if !seen && !self.started.contains(&guest) {
                self.look(entry.class, entry.key);
            }
        }
    }

    /// Considers one job.
    fn look(&mut self, class: u32, key: Key) {
        let job = key.job();
        let before = self.plan.work;
        self.classes.run(class);
        if let Err(reason) = self.consider(class, key) {
            let special = self.jobs.get(&job).is_some_and(|j| j.special().is_some());
            // A planned start without backfill is for nobody: all others wait for their turn.
            if special || reason != Reason::Priority || self.guest == Some(job) {
                self.seen.insert((job, key.slot()), reason);
            }
        }
        self.tried += u32::from(self.plan.work > before);
    }

    /// Its jobs that wait have all the planned starts that they get.
    fn settled(&self, partition: u32) -> bool {
        let p = partition as usize;
        let policy = &self.cluster.policy;
        self.blocked[p].is_some() && (!policy.backfill || self.planned_in[p] >= policy.reservations)
    }

    /// Some other job waits for resources in a partition with this node. To take it is to pass that job.
    fn is_awaited(&self, node: u32, job: JobId) -> bool {
        let blocked = |p: &u32| self.blocked[*p as usize].is_some_and(|other| other != job);
        self.cluster.partitions_of(node).iter().any(blocked)
    }

    /// Something that was in the way is gone: what did not fit because of it may fit now, and who was passed over as one of
    /// many may be the first.
    fn look_again(&mut self, after: Key) {
        self.due.retain(|due| matches!(due.0.1, Due::Job(_)));
        for class in 0..self.classes.all.len() as u32 {
            if !matches!(self.classes.get(class).standing, Standing::Open | Standing::Full(_)) {
                continue;
            }
            let run = self.classes.run(class);
            run.failed = None;
            if self.by_size {
                continue;
            }
            run.deferred = None;
            if let Some(next) = self.classes.get(class).queue.next(after, false, None) {
                self.due.push(Reverse((next, Due::Class(class))));
            }
        }
        if !self.by_size {
            self.deferred.clear();
        }
    }
}
