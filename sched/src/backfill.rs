//! One pass over the queue: EASY backfill.
//!
//! Owns the walk: each job in queue order is started if it fits now without delaying a planned start; the first jobs of
//! each partition that don't fit get a planned start (`policy.reservations` of them). Promises that a planned start is
//! never later than it would be had nothing been started out of order: what starts later in the pass fits around it
//! (Lifka 1995; `reservations` at the number of jobs gives conservative backfill, Mu'alem and Feitelson 2001). Without
//! `policy.backfill`, nobody passes a blocked job on the nodes of its partition.
//!
//! Free resources only shrink during a pass. So a request that did not fit will not fit for a later job of the same
//! shape and no shorter limit, and a hundred thousand such jobs cost a look-up each.
//!
//! `fit` looks for a place from now on, `reserve` for the first moment later.

mod fit;
pub(crate) mod limits;
mod reserve;

use crate::concrete::Concrete;
use crate::demand::Demand;
use crate::feasibility::{Limits, check_time};
use crate::input::{BackfillOrder, Input, PendingJob};
use crate::order::{self, Entry};
use crate::placement::Share;
use crate::plan::{Plan, PlannedReservation, Start};
use crate::reasons::Reasons;
use crate::shape::{Purpose, Shape, Verdict};
use crate::timeline::{NEVER, Timeline};
use reserve::Planned;
use sluice_model::partition::PartitionState;
use sluice_model::{Allocation, Reason, Time, TimeLimit};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// A shape and what this pass has learnt about it.
struct Known<'a> {
    shape: Shape,
    /// One of the jobs that have it.
    example: &'a PendingJob,
    /// It does not fit for a window that ends then or later, and why.
    failed: Option<(i64, Reason)>,
    /// Where one like it went: as long as it fits there, that is the best place (nothing becomes freer, and it is the
    /// fullest that suffices).
    sticky: Option<u32>,
}

/// Shares of a job and what they take: one row a node.
struct Placed {
    shares: Vec<Share>,
    rows: Vec<Vec<i64>>,
}

#[derive(Clone, Copy)]
enum Awaited {
    No,
    By(u32),
    BySeveral,
}

pub(crate) struct Pass<'a> {
    input: &'a Input,
    /// The pending jobs, then the guest if it is none of them.
    jobs: Vec<&'a PendingJob>,
    /// A job that gets a planned start whatever the policy's number and budget.
    guest: Option<&'a PendingJob>,
    timeline: Timeline,
    concrete: Concrete<'a>,
    known: Vec<Known<'a>>,
    by_hash: BTreeMap<u64, Vec<usize>>,
    /// By partition: the first job of it that waits for resources.
    blocked: Vec<Option<u32>>,
    /// By partition: planned starts given to it.
    planned_in: Vec<u32>,
    /// Planned starts of jobs that wait for licences.
    planned_for_licenses: u32,
    /// By node: the job that waits for resources in a partition with this node. To take it is to pass that job.
    awaited: Vec<Awaited>,
    planned: BTreeMap<u32, Planned>,
    planned_order: Vec<u32>,
    /// By position: wholly started.
    started: Vec<bool>,
    /// By position: tasks of arrays started so far.
    tasks_started: BTreeMap<u32, usize>,
    /// None when no association and no QOS is limited.
    limited: Option<limits::Limited>,
    reasons: Reasons,
    plan: Plan,
}

/// What a pass leaves behind.
pub(crate) struct Done {
    pub plan: Plan,
    /// Planned start of the guest, also when it lies beyond all limits (then none is in the plan).
    pub guest_cpus: u32,
}

impl<'a> Pass<'a> {
    pub fn new(input: &'a Input, guest: Option<&'a PendingJob>) -> Self {
        let timeline = Timeline::new(input);
        let mut jobs: Vec<&PendingJob> = input.pending.iter().collect();
        // A guest that is in the queue is taken as it stands there.
        jobs.extend(guest.filter(|g| input.pending.iter().all(|p| p.job != g.job)));
        let count = jobs.len();
        Pass {
            input,
            jobs,
            guest,
            timeline,
            concrete: Concrete::new(input),
            known: Vec::new(),
            by_hash: BTreeMap::new(),
            blocked: vec![None; input.partitions.len()],
            planned_in: vec![0; input.partitions.len()],
            planned_for_licenses: 0,
            awaited: vec![Awaited::No; input.nodes.len()],
            planned: BTreeMap::new(),
            planned_order: Vec::new(),
            started: vec![false; count],
            tasks_started: BTreeMap::new(),
            limited: limits::Limited::new(input),
            reasons: Reasons::new(count),
            plan: Plan { generation: input.generation, ..Plan::default() },
        }
    }

    pub fn run(mut self) -> Done {
        let input = self.input;
        let queue = order::queue(input, &self.jobs);
        self.judge_closed_partitions();
        let mut tried = 0;
        let mut guests = Vec::new();
        let reorder = input.policy.backfill && input.policy.backfill_order != BackfillOrder::Queue;
        let mut candidates = Vec::new();
        for (at, entry) in queue.iter().enumerate() {
            if reorder && self.all_planned(entry.partition) {
                candidates.push(*entry);
            } else if !self.look(entry, &mut tried) {
                candidates.clear();
                self.leave(&queue[at..], &mut guests);
                break;
            }
        }
        candidates.sort_by_cached_key(|e| (e.tier(), self.size(e)));
        for (at, entry) in candidates.iter().enumerate() {
            if !self.look(entry, &mut tried) {
                self.leave(&candidates[at..], &mut guests);
                break;
            }
        }
        for entry in &guests {
            if !self.started[entry.job as usize] && self.consider(entry).is_ok() {
                break;
            }
        }
        self.finish()
    }

    /// Considers one job. False when the pass has done as much as it may.
    fn look(&mut self, entry: &Entry, tried: &mut u32) -> bool {
        if self.started[entry.job as usize] {
            return true;
        }
        let policy = &self.input.policy;
        if *tried >= policy.queue_depth || self.plan.work >= policy.work_budget {
            return false;
        }
        let before = self.plan.work;
        if let Err(reason) = self.consider(entry) {
            self.reasons.add(entry.job, reason);
        }
        *tried += u32::from(self.plan.work > before);
        true
    }

    /// Nobody looks at these: they wait for their turn.
    fn leave(&mut self, entries: &[Entry], guests: &mut Vec<Entry>) {
        entries.iter().for_each(|e| self.reasons.add(e.job, Reason::Priority));
        guests.extend(entries.iter().filter(|e| self.is_guest(e.job)));
    }

    /// Its jobs that wait have all the planned starts that they get.
    fn all_planned(&self, partition: u32) -> bool {
        let p = partition as usize;
        self.blocked[p].is_some() && self.planned_in[p] >= self.input.policy.reservations
    }

    /// What `Policy::backfill_order` goes by.
    fn size(&self, entry: &Entry) -> i64 {
        let job = self.jobs[entry.job as usize];
        let view = &self.input.partitions[entry.partition as usize];
        let limit = check_time(job.time_limit, job.time_min, view).map_or(TimeLimit::Unlimited, |l| l.want);
        let duration = job.planned_ms(limit).unwrap_or(i64::MAX);
        match self.input.policy.backfill_order {
            BackfillOrder::Queue => 0,
            BackfillOrder::Shortest => duration,
            BackfillOrder::SmallestArea => {
                let demand = Demand::new(job.resources(), view, &self.input.policy, job.exclusive);
                duration.saturating_mul(demand.expected_cpus(view, &self.input.nodes))
            }
        }
    }

    fn is_guest(&self, job: u32) -> bool {
        self.guest.is_some_and(|g| g.job == self.jobs[job as usize].job)
    }

    /// Jobs none of whose partitions starts jobs are not in the queue.
    fn judge_closed_partitions(&mut self) {
        for (at, job) in self.input.pending.iter().enumerate() {
            for p in &job.partitions {
                match self.input.partitions.get(*p as usize).map(|p| p.state) {
                    Some(PartitionState::Down) => self.reasons.add(at as u32, Reason::PartitionDown),
                    Some(PartitionState::Inactive) => self.reasons.add(at as u32, Reason::PartitionInactive),
                    _ => {}
                }
            }
        }
    }

    /// Starts what can be started of this job here. The error is why (the rest of) it waits.
    fn consider(&mut self, entry: &Entry) -> Result<(), Reason> {
        let job = self.jobs[entry.job as usize];
        let view = &self.input.partitions[entry.partition as usize];
        let limits = check_time(job.time_limit, job.time_min, view).map_err(|e| e.reason())?;
        let limits = self.before_deadline(job, limits)?;
        let known = self.known_shape(job, entry.partition);
        match &self.known[known].shape.verdict {
            Verdict::Possible => {}
            Verdict::NodesMissing(reason) => return Err(*reason),
            Verdict::Never(never) => return Err(never.reason()),
        }
        if job.indices.is_empty() {
            return self.attempt(entry, known, limits, None).inspect(|()| self.all_started(entry.job));
        }
        // The engine lists the next few tasks; one that is planned is always the next.
        let done = self.tasks_started.get(&entry.job).copied().unwrap_or(0);
        for (at, index) in job.indices.iter().enumerate().skip(done) {
            self.attempt(entry, known, limits, Some(*index))?;
            self.tasks_started.insert(entry.job, at + 1);
        }
        self.all_started(entry.job);
        Ok(())
    }

    fn all_started(&mut self, job: u32) {
        self.started[job as usize] = true;
        self.reasons.clear(job);
        // It was blocked in one partition and started in another.
        if self.blocked.contains(&Some(job)) {
            for blocker in &mut self.blocked {
                *blocker = blocker.filter(|b| *b != job);
            }
            self.await_nodes();
        }
    }

    fn await_nodes(&mut self) {
        self.awaited.fill(Awaited::No);
        for (partition, job) in self.input.partitions.iter().zip(&self.blocked) {
            let Some(job) = job else { continue };
            for node in &partition.nodes {
                if let Some(awaited) = self.awaited.get_mut(*node as usize) {
                    *awaited = match awaited {
                        Awaited::No => Awaited::By(*job),
                        Awaited::By(other) if other == job => Awaited::By(*job),
                        _ => Awaited::BySeveral,
                    };
                }
            }
        }
    }

    /// Some other job waits for it.
    fn is_awaited(&self, node: u32, job: u32) -> bool {
        match self.awaited[node as usize] {
            Awaited::No => false,
            Awaited::By(other) => other != job,
            Awaited::BySeveral => true,
        }
    }

    /// A job that can't end before its deadline is not started.
    fn before_deadline(&self, job: &PendingJob, limits: Limits) -> Result<Limits, Reason> {
        let Some(deadline) = job.deadline else { return Ok(limits) };
        let minutes = u32::try_from((deadline.0 - self.timeline.now).div_euclid(60_000)).unwrap_or(0);
        let left = TimeLimit::Minutes(minutes);
        if limits.least > left {
            return Err(Reason::DeadLine);
        }
        Ok(Limits { want: limits.want.min(left), least: limits.least })
    }

    fn known_shape(&mut self, job: &'a PendingJob, partition: u32) -> usize {
        let mut hasher = Mix::default();
        (&job.request.request, &job.request.licenses, job.exclusive, partition).hash(&mut hasher);
        let same = |k: &Known<'_>| {
            k.shape.partition == partition
                && k.example.exclusive == job.exclusive
                && (std::sync::Arc::ptr_eq(&k.example.request, &job.request)
                    || (k.example.request.request == job.request.request
                        && k.example.request.licenses == job.request.licenses))
        };
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        if let Some(at) = alike.iter().find(|at| same(&self.known[**at])) {
            return *at;
        }
        let spec = &*job.request;
        let mut shape =
            Shape::new(self.input.cluster(), &spec.request, &spec.licenses, job.exclusive, partition, Purpose::Place);
        shape.bind(&self.timeline, &spec.licenses);
        alike.push(self.known.len());
        self.known.push(Known { shape, example: job, failed: None, sticky: None });
        self.known.len() - 1
    }

    /// One job or one task of an array.
    fn attempt(&mut self, entry: &Entry, known: usize, limits: Limits, index: Option<u32>) -> Result<(), Reason> {
        let job = self.jobs[entry.job as usize];
        let limits = self.limits_before(job, entry.partition, known, limits)?;
        // Its own planned start, in another partition or as the array's next task, must not be in its way.
        let own = self.unplan(entry.job);
        if own.is_some() || self.blocked.contains(&Some(entry.job)) {
            self.known[known].failed = None;
        }
        let cause = match self.fit(entry.job, known, limits) {
            Ok((placed, limit)) => match self.start(entry, known, placed, limit, index) {
                Ok(()) => {
                    if own.is_some() {
                        // What did not fit because of it may fit now.
                        self.known.iter_mut().for_each(|k| k.failed = None);
                    }
                    return Ok(());
                }
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        let p = entry.partition as usize;
        let first = self.blocked[p].is_none_or(|job| job == entry.job);
        if cause == Reason::Resources && self.blocked[p].is_none() {
            self.blocked[p] = Some(entry.job);
            self.await_nodes();
        }
        if self.input.policy.backfill && !self.plans_nothing(job, cause) {
            self.plan_start(entry, known, limits, cause, own);
        }
        Err(if cause == Reason::Resources && !first { Reason::Priority } else { cause })
    }

    fn start(
        &mut self,
        entry: &Entry,
        known: usize,
        placed: Placed,
        limit: TimeLimit,
        index: Option<u32>,
    ) -> Result<(), Reason> {
        let job = self.jobs[entry.job as usize];
        let mut nodes = Vec::with_capacity(placed.shares.len());
        for (share, row) in placed.shares.iter().zip(&placed.rows) {
            let holders = &self.timeline.holders[share.node as usize];
            nodes.push(self.concrete.pick(share.node as usize, share.tasks, row, holders).ok_or(Reason::Resources)?);
        }
        self.limits_at(job, entry.partition, &nodes, limit)?;
        let passes = placed.shares.iter().any(|s| self.is_awaited(s.node, entry.job));
        let end = self.until(entry.job, limit);
        for (share, row) in placed.shares.iter().zip(&placed.rows) {
            self.timeline.hold(share.node as usize, end, row);
        }
        if let Some(row) = self.known[known].shape.licenses.clone() {
            self.timeline.hold(self.timeline.layout.nodes, end, &row);
        }
        self.plan.starts.push(Start {
            job: job.job,
            index,
            partition: self.input.partitions[entry.partition as usize].name.clone(),
            allocation: Allocation { nodes },
            backfilled: passes,
            time_limit: limit,
        });
        Ok(())
    }

    fn finish(mut self) -> Done {
        let mut guest_cpus = 0;
        for at in &self.planned_order {
            let Some(planned) = self.planned.get(at) else { continue };
            let job = self.jobs[*at as usize];
            if self.is_guest(*at) {
                guest_cpus = planned.placed.rows.iter().map(|r| r[crate::timeline::CPUS] as u32).sum();
            }
            if planned.start < NEVER {
                let name = |s: &Share| self.input.nodes[s.node as usize].spec.name.clone();
                self.plan.reservations.push(PlannedReservation {
                    job: job.job,
                    start: Time(planned.start),
                    partition: self.input.partitions[planned.partition as usize].name.clone(),
                    nodes: planned.placed.shares.iter().map(name).collect(),
                });
            }
        }
        let pending = &self.input.pending;
        let notable = self.reasons.notable().filter_map(|(at, reason)| Some((pending.get(at)?.job, reason)));
        self.plan.reasons = notable.collect();
        self.plan.reasons.sort_unstable();
        Done { plan: self.plan, guest_cpus }
    }
}

/// A word at a time, multiplied and rotated: the same on every machine and run, so that nothing depends on a random seed.
/// What collides is compared, so it need not be strong.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }
    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }
}
