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

use crate::concrete::Concrete;
use crate::feasibility::{Limits, check_time};
use crate::input::{Input, PendingJob};
use crate::order::{self, Entry};
use crate::placement::{self, Candidate, Extent, Share};
use crate::plan::{Plan, PlannedReservation, Start};
use crate::reasons::Reasons;
use crate::shape::{Shape, Verdict};
use crate::timeline::{FOREVER, NEVER, Timeline};
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

/// A planned start, as it stands in the time line.
struct Planned {
    start: i64,
    end: i64,
    placed: Placed,
    licenses: Option<Vec<i64>>,
    partition: u32,
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
    /// By partition: some job of it waits for resources.
    blocked: Vec<bool>,
    /// By partition: planned starts given to it.
    planned_in: Vec<u32>,
    /// Planned starts of jobs that wait for licences.
    planned_for_licenses: u32,
    /// Without backfill: nodes that nobody else may take in this pass.
    closed: Vec<bool>,
    planned: BTreeMap<u32, Planned>,
    planned_order: Vec<u32>,
    /// By position: wholly started.
    started: Vec<bool>,
    /// By position: tasks of arrays started so far.
    tasks_started: BTreeMap<u32, usize>,
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
            blocked: vec![false; input.partitions.len()],
            planned_in: vec![0; input.partitions.len()],
            planned_for_licenses: 0,
            closed: vec![false; input.nodes.len()],
            planned: BTreeMap::new(),
            planned_order: Vec::new(),
            started: vec![false; count],
            tasks_started: BTreeMap::new(),
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
        for (at, entry) in queue.iter().enumerate() {
            if self.started[entry.job as usize] {
                continue;
            }
            if tried >= input.policy.queue_depth || self.plan.work >= input.policy.work_budget {
                // Nobody looks at the rest: they wait for their turn.
                queue[at..].iter().for_each(|e| self.reasons.add(e.job, Reason::Priority));
                queue[at..].iter().filter(|e| self.is_guest(e.job)).for_each(|e| guests.push(*e));
                break;
            }
            let before = self.plan.work;
            if let Err(reason) = self.consider(entry) {
                self.reasons.add(entry.job, reason);
            }
            tried += u32::from(self.plan.work > before);
        }
        for entry in &guests {
            if !self.started[entry.job as usize] && self.consider(entry).is_ok() {
                break;
            }
        }
        self.finish()
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
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
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
        let mut shape = Shape::new(self.input.cluster(), &spec.request, &spec.licenses, job.exclusive, partition);
        shape.bind(&self.timeline, &spec.licenses);
        alike.push(self.known.len());
        self.known.push(Known { shape, example: job, failed: None, sticky: None });
        self.known.len() - 1
    }

    fn until(&self, limit: TimeLimit) -> i64 {
        match limit {
            TimeLimit::Minutes(m) => self.timeline.now.saturating_add(i64::from(m) * 60_000),
            TimeLimit::Unlimited => FOREVER,
        }
    }

    /// One job or one task of an array.
    fn attempt(&mut self, entry: &Entry, known: usize, limits: Limits, index: Option<u32>) -> Result<(), Reason> {
        let cause = match self.fit(known, limits) {
            Ok((placed, limit)) => match self.start(entry, known, placed, limit, index) {
                Ok(()) => return Ok(()),
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        let p = entry.partition as usize;
        let first = !self.blocked[p];
        if cause == Reason::Resources {
            self.blocked[p] = true;
        }
        if self.input.policy.backfill {
            self.plan_start(entry, known, limits, cause);
        } else if cause == Reason::Resources {
            for node in &self.input.partitions[p].nodes {
                if let Some(closed) = self.closed.get_mut(*node as usize) {
                    *closed = true;
                }
            }
        }
        Err(if cause == Reason::Resources && !first { Reason::Priority } else { cause })
    }

    /// A place from now on, with the longest limit that fits.
    fn fit(&mut self, known: usize, limits: Limits) -> Result<(Placed, TimeLimit), Reason> {
        let reason = match self.place(known, self.until(limits.want)) {
            Ok(placed) => return Ok((placed, limits.want)),
            Err(reason) => reason,
        };
        if limits.least == limits.want || !self.input.policy.backfill {
            return Err(reason);
        }
        // `--time-min`: shorter, so that it ends before the planned starts that are in its way.
        let now = self.timeline.now;
        let mut best = (self.place(known, self.until(limits.least))?, limits.least);
        let starts = self.timeline.starts_between(self.until(limits.least), self.until(limits.want));
        let (mut low, mut high) = (0, starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let minutes = u32::try_from((starts[middle] - now) / 60_000).unwrap_or(u32::MAX);
            let limit = TimeLimit::Minutes(minutes);
            match self.place(known, self.until(limit)) {
                Ok(placed) => {
                    best = (placed, limit);
                    low = middle + 1;
                }
                Err(_) => high = middle,
            }
        }
        if best.1 < limits.least { Err(reason) } else { Ok(best) }
    }

    /// A place from now until `until`.
    fn place(&mut self, known: usize, until: i64) -> Result<Placed, Reason> {
        if let Some((failed, reason)) = self.known[known].failed
            && until >= failed
        {
            return Err(reason);
        }
        self.plan.work += 1;
        let result = self.search(known, until);
        let known = &mut self.known[known];
        match &result {
            Ok(placed) => known.sticky = if placed.shares.len() == 1 { Some(placed.shares[0].node) } else { None },
            Err(reason) => known.failed = Some((until, *reason)),
        }
        result
    }

    fn search(&self, known: usize, until: i64) -> Result<Placed, Reason> {
        let Known { shape, sticky, .. } = &self.known[known];
        let mut free = vec![0; self.timeline.layout.stride];
        if let Some(licenses) = &shape.licenses {
            self.timeline.window(self.timeline.layout.nodes, until, &mut free);
            if licenses.iter().zip(&free).any(|(need, have)| need > have) {
                return Err(Reason::Licenses);
            }
        }
        let mut scratch = Vec::new();
        let mut candidate = |node: u32, free: &mut [i64]| {
            if self.closed[node as usize] || !self.timeline.window(node as usize, until, free) {
                return None;
            }
            let spec = &self.input.nodes[node as usize].spec;
            let capacity = placement::capacity(shape, spec, free, &mut scratch)?;
            Some(Candidate::new(shape, node, spec, free, capacity))
        };
        if let Some(node) = sticky
            && shape.one_node()
            && let Some(only) = candidate(*node, &mut free)
            && let Some(shares) = placement::select(shape, vec![only], Extent::Most)
            && let Some(placed) = self.rows(shape, shares, |node, free| self.timeline.window(node, until, free))
        {
            return Ok(placed);
        }
        let pool: Vec<Candidate> = shape.nodes.iter().filter_map(|n| candidate(*n, &mut free)).collect();
        placement::select(shape, pool, Extent::Most)
            .and_then(|shares| self.rows(shape, shares, |node, free| self.timeline.window(node, until, free)))
            .ok_or(Reason::Resources)
    }

    /// What the shares take; None when they don't fit after all (memory by GPU, say).
    fn rows(&self, shape: &Shape, shares: Vec<Share>, window: impl Fn(usize, &mut [i64]) -> bool) -> Option<Placed> {
        let mut free = vec![0; self.timeline.layout.stride];
        let mut rows = Vec::with_capacity(shares.len());
        for share in &shares {
            let mut row = Vec::new();
            window(share.node as usize, &mut free);
            let spec = &self.input.nodes[share.node as usize].spec;
            if !placement::take(shape, spec, &free, share.tasks, &share.job_gres, &mut row) {
                return None;
            }
            rows.push(row);
        }
        Some(Placed { shares, rows })
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
        let passes = self.blocked[entry.partition as usize]
            || placed.shares.iter().any(|s| self.timeline.is_reserved(s.node as usize));
        self.drop_planned(entry.job);
        let end = self.until(limit);
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

    /// A blocked job in several partitions may have a planned start in one and begin now in another.
    fn drop_planned(&mut self, job: u32) {
        let Some(planned) = self.planned.remove(&job) else { return };
        let Planned { start, end, placed, licenses, .. } = planned;
        for (share, row) in placed.shares.iter().zip(&placed.rows) {
            self.timeline.unreserve(share.node as usize, start, end, row);
        }
        if let Some(row) = licenses {
            self.timeline.unreserve(self.timeline.layout.nodes, start, end, &row);
        }
    }

    /// Gives the job a planned start if it is among the first of its partition that wait.
    fn plan_start(&mut self, entry: &Entry, known: usize, limits: Limits, cause: Reason) {
        let quota = self.input.policy.reservations;
        let p = entry.partition as usize;
        let for_licenses = cause == Reason::Licenses;
        let within = if for_licenses { self.planned_for_licenses < quota } else { self.planned_in[p] < quota };
        if self.planned.contains_key(&entry.job) || !(within || self.is_guest(entry.job)) {
            return;
        }
        let Some((start, end, placed)) = self.earliest(entry.job, known, limits.want) else { return };
        if self.jobs[entry.job as usize].deadline.is_some_and(|d| end > d.0) {
            return;
        }
        if for_licenses {
            self.planned_for_licenses += 1;
        } else {
            self.planned_in[p] += 1;
        }
        for (share, row) in placed.shares.iter().zip(&placed.rows) {
            self.timeline.reserve(share.node as usize, start, end, row);
        }
        let licenses = self.known[known].shape.licenses.clone();
        if let Some(row) = &licenses {
            self.timeline.reserve(self.timeline.layout.nodes, start, end, row);
        }
        self.planned.insert(entry.job, Planned { start, end, placed, licenses, partition: entry.partition });
        self.planned_order.push(entry.job);
    }

    /// The first moment after now at which it fits for its whole limit, by what is known of ends.
    fn earliest(&mut self, job: u32, known: usize, limit: TimeLimit) -> Option<(i64, i64, Placed)> {
        let duration = match limit {
            TimeLimit::Minutes(m) => i64::from(m) * 60_000,
            TimeLimit::Unlimited => FOREVER,
        };
        let (mut budget, mut work) = (self.input.policy.work_budget, self.plan.work);
        if self.is_guest(job) {
            budget = u64::MAX;
        }
        let now = self.timeline.now;
        let license_node = self.timeline.layout.nodes;
        let stride = self.timeline.layout.stride;
        self.timeline.prepare();
        let mut sweep = self.timeline.sweep(duration);
        let shape = &self.known[known].shape;
        let mut future = Future::new(self.input, shape, license_node, stride);
        for node in &shape.nodes {
            future.look(*node, now, &sweep);
        }
        future.look(license_node as u32, now, &sweep);
        let mut touched = Vec::new();
        let mut found = None;
        while let Some(time) = sweep.next(&mut touched) {
            for node in &touched {
                future.look(*node, time, &sweep);
            }
            if time <= now || !future.may_fit() {
                continue;
            }
            work += 1;
            if work + sweep.seen / 256 > budget {
                break;
            }
            let shares = placement::select(shape, future.pool(), Extent::Least);
            if let Some(shares) = shares {
                found = Some((time, shares));
                break;
            }
        }
        work += sweep.seen / 256;
        let result = found.and_then(|(time, shares)| {
            let mut free = vec![0; stride];
            let mut rows = Vec::with_capacity(shares.len());
            for share in &shares {
                let mut row = Vec::new();
                sweep.window(share.node as usize, time, &mut free);
                let spec = &self.input.nodes[share.node as usize].spec;
                if !placement::take(shape, spec, &free, share.tasks, &share.job_gres, &mut row) {
                    return None;
                }
                rows.push(row);
            }
            Some((time, time.saturating_add(duration), Placed { shares, rows }))
        });
        self.plan.work = work;
        result
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

/// What one shape could have of each node as the sweep goes on.
struct Future<'a> {
    input: &'a Input,
    shape: &'a Shape,
    license_node: usize,
    /// By position in `shape.nodes`.
    candidates: Vec<Option<Candidate>>,
    /// Position in `shape.nodes` by node; u32::MAX for none.
    place: Vec<u32>,
    fitting: usize,
    tasks: u64,
    licensed: bool,
    free: Vec<i64>,
    scratch: Vec<i64>,
}

impl<'a> Future<'a> {
    fn new(input: &'a Input, shape: &'a Shape, license_node: usize, stride: usize) -> Self {
        let mut place = vec![u32::MAX; license_node + 1];
        for (at, node) in shape.nodes.iter().enumerate() {
            place[*node as usize] = at as u32;
        }
        Future {
            input,
            shape,
            license_node,
            candidates: shape.nodes.iter().map(|_| None).collect(),
            place,
            fitting: 0,
            tasks: 0,
            licensed: shape.licenses.is_none(),
            free: vec![0; stride],
            scratch: Vec::new(),
        }
    }

    /// Judges a node anew for a start at `time`.
    fn look(&mut self, node: u32, time: i64, sweep: &crate::timeline::Sweep<'_>) {
        if node as usize == self.license_node {
            if let Some(need) = &self.shape.licenses {
                sweep.window(node as usize, time, &mut self.free);
                self.licensed = need.iter().zip(&self.free).all(|(need, have)| need <= have);
            }
            return;
        }
        let at = self.place[node as usize];
        if at == u32::MAX {
            return;
        }
        let fresh = if sweep.window(node as usize, time, &mut self.free) {
            let spec = &self.input.nodes[node as usize].spec;
            placement::capacity(self.shape, spec, &self.free, &mut self.scratch)
                .map(|c| Candidate::new(self.shape, node, spec, &self.free, c))
        } else {
            None
        };
        let slot = &mut self.candidates[at as usize];
        if let Some(old) = slot.take() {
            self.fitting -= 1;
            self.tasks -= u64::from(old.tasks());
        }
        if let Some(new) = &fresh {
            self.fitting += 1;
            self.tasks += u64::from(new.tasks());
        }
        *slot = fresh;
    }

    /// Cheap to ask; true does not promise that it fits.
    fn may_fit(&self) -> bool {
        let enough_tasks = match self.shape.demand.tasks {
            crate::demand::Tasks::Total { count, .. } => self.tasks >= u64::from(count),
            crate::demand::Tasks::PerNode(_) => true,
        };
        self.licensed
            && enough_tasks
            && self.fitting >= self.shape.demand.min_nodes as usize
            && self.shape.required.iter().all(|r| {
                let at = self.place[*r as usize];
                at != u32::MAX && self.candidates[at as usize].is_some()
            })
    }

    fn pool(&self) -> Vec<Candidate> {
        self.candidates.iter().flatten().cloned().collect()
    }
}

/// FNV-1a: the same on every machine and run, so that nothing depends on a random seed.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
