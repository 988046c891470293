//! A place for a job from now on.
//!
//! Owns the search among what is free now and stays free around planned starts, and the memory of what did not fit.

use super::{Pass, Placed};
use crate::classes::{Class, Lack};
use crate::demand::Tasks;
use crate::feasibility::Limits;
use crate::jobs::Pending;
use crate::order::Key;
use crate::placement::{self, Candidate, Extent, Rank, Share};
use crate::shape::Shape;
use crate::timeline::MEMORY;
use crate::vacancy::Need;
use sluice_model::{JobId, Reason, TimeLimit};

/// The end of the window that asks for what is free now, planned starts left out.
const NOW: i64 = i64::MIN;

impl Pass<'_> {
    /// The end of the window that the job needs from now on when it gets this limit.
    pub(super) fn until(&self, job: &Pending, limit: TimeLimit) -> i64 {
        self.timeline.now.saturating_add(job.duration(limit))
    }

    /// A place from now on, with the longest limit that fits.
    pub(super) fn fit(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        limits: Limits,
    ) -> Result<(Placed, TimeLimit), Reason> {
        let id = key.job();
        let reason = match self.place(class, id, self.until(job, limits.want)) {
            Ok(placed) => return Ok((placed, limits.want)),
            Err(reason) => reason,
        };
        if limits.least == limits.want || !self.cluster.policy.backfill || self.classes.get(class).is_full() {
            return Err(reason);
        }
        // `--time-min`: shorter, so that it ends before the planned starts that are in its way.
        let now = self.timeline.now;
        let mut best = (self.place(class, id, self.until(job, limits.least))?, limits.least);
        let starts = self.timeline.starts_between(self.until(job, limits.least), self.until(job, limits.want));
        let (mut low, mut high) = (0, starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let minutes = u32::try_from((starts[middle] - now) / 60_000).unwrap_or(u32::MAX);
            let limit = TimeLimit::Minutes(minutes);
            match self.place(class, id, self.until(job, limit)) {
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
    fn place(&mut self, class: u32, job: JobId, until: i64) -> Result<Placed, Reason> {
        if let Some((failed, reason)) = self.classes.run(class).failed
            && until >= failed
        {
            return Err(reason);
        }
        let known = self.classes.get(class);
        let mut fits_now = false;
        let reason = match self.licensed(&known.shape, until) {
            false => Reason::Licenses,
            true if known.is_full() => return Err(Reason::Resources),
            true => match self.search(known, job, until, &mut fits_now) {
                Some(placed) => {
                    self.plan.work += 1;
                    let sticky = (placed.shares.len() == 1).then(|| placed.shares[0].node);
                    self.classes.run(class).sticky = sticky;
                    return Ok(placed);
                }
                None => Reason::Resources,
            },
        };
        if reason == Reason::Resources
            && !fits_now
            && let Err(lack) = self.possible_now(known, job)
        {
            self.classes.run(class).full = Some(lack);
            self.filled.push(class);
            return Err(reason);
        }
        self.plan.work += 1;
        // It is the planned starts up to this one that are in the way: for any window that reaches beyond it.
        let bound = self.timeline.last_start_before(until).map_or(NOW, |start| start.saturating_add(1));
        self.classes.run(class).failed = Some((bound, reason));
        Err(reason)
    }

    /// Nothing of the class could start, even if nothing were planned.
    pub(super) fn is_full_now(&mut self, class: u32) -> bool {
        self.classes.run(class);
        let known = self.classes.get(class);
        if !known.is_full()
            && let Err(lack) = self.possible_now(known, JobId(0))
        {
            self.classes.run(class).full = Some(lack);
            self.filled.push(class);
        }
        self.classes.get(class).is_full()
    }

    fn licensed(&self, shape: &Shape, until: i64) -> bool {
        let Some(licenses) = &shape.licenses else { return true };
        let mut free = vec![0; self.timeline.layout.stride];
        self.timeline.window(self.cluster, self.timeline.license_node(), until, &mut free);
        licenses.iter().zip(&free).all(|(need, have)| need <= have)
    }

    /// `fits_now`: becomes true when it is seen on the way that one would fit if nothing were planned.
    fn search(&self, class: &Class, job: JobId, until: i64, fits_now: &mut bool) -> Option<Placed> {
        let shape = &class.shape;
        if shape.one_node() {
            let sticky = class.run.sticky.filter(|_| shape.rank == Rank::Pack);
            if let Some(node) = sticky.filter(|n| self.fits_alone(shape, *n, job, until).1) {
                return self.alone(shape, node, until);
            }
            let (found, spread) = self.best_alone(class, job, until, fits_now);
            match found {
                Some(node) => return self.alone(shape, node, until),
                None if !spread => return None,
                None => {}
            }
        }
        let enough = if shape.takes_the_first() { Some(first_nodes(shape)) } else { None };
        let pool = self.pool(shape, job, until, enough);
        placement::select(shape, pool, Extent::Most).and_then(|shares| {
            self.rows(shape, shares, |node, free| _ = self.timeline.window(self.cluster, node, until, free))
        })
    }

    /// Whether anything of the class could start if nothing were planned; else how far it is from that.
    fn possible_now(&self, class: &Class, job: JobId) -> Result<(), Lack> {
        let shape = &class.shape;
        // Without backfill it may be others that are in the way.
        let job = if self.cluster.policy.backfill { job } else { JobId(0) };
        if shape.one_node() {
            let (found, spread) = self.best_alone(class, job, NOW, &mut false);
            if found.is_some() {
                return Ok(());
            }
            if !spread || class.single {
                return Err(if class.single { Lack { nodes: 1, tasks: 0 } } else { Lack::default() });
            }
        }
        let enough = if shape.takes_the_first() { Some(first_nodes(shape)) } else { None };
        let pool = self.pool(shape, job, NOW, enough);
        let nodes = u64::from(shape.demand.min_nodes).saturating_sub(pool.len() as u64);
        let tasks = match shape.demand.tasks {
            Tasks::Total { count, .. } => {
                u64::from(count).saturating_sub(pool.iter().map(|c| u64::from(c.tasks())).sum())
            }
            Tasks::PerNode(_) => 0,
        };
        let fits = placement::select(shape, pool, Extent::Most).and_then(|shares| {
            self.rows(shape, shares, |node, free| _ = self.timeline.window(self.cluster, node, NOW, free))
        });
        if fits.is_some() { Ok(()) } else { Err(Lack { nodes, tasks }) }
    }

    /// The job may use this node at all. `JobId(0)`: any job.
    pub(super) fn may_use(&self, shape: &Shape, node: u32, job: JobId) -> bool {
        !shape.excludes(node) && (self.cluster.policy.backfill || job == JobId(0) || !self.is_awaited(node, job))
    }

    /// Free memory of the node in the window, and whether the whole job fits there.
    fn fits_alone(&self, shape: &Shape, node: u32, job: JobId, until: i64) -> (i64, bool) {
        let (mut free, mut row) = (vec![0; self.timeline.layout.stride], Vec::new());
        let usable =
            self.timeline.window(self.cluster, node as usize, until, &mut free) && self.may_use(shape, node, job);
        let spec = self.cluster.spec(node);
        let fits = usable && placement::take(shape, spec, &free, shape.tasks_alone(), &[], &mut row);
        (free[MEMORY], fits && self.is_bindable(shape, node, &row))
    }

    /// `--gres-flags=enforce-binding`: its cores are free near its devices.
    fn is_bindable(&self, shape: &Shape, node: u32, row: &[i64]) -> bool {
        let demand = &shape.demand;
        !demand.binds || self.timeline.would_pick(self.cluster, node, demand, shape.tasks_alone(), row)
    }

    fn alone(&self, shape: &Shape, node: u32, until: i64) -> Option<Placed> {
        let shares = vec![Share { node, tasks: shape.tasks_alone(), job_gres: Vec::new() }];
        self.rows(shape, shares, |node, free| _ = self.timeline.window(self.cluster, node, until, free))
    }

    /// The best node that has room for all of it; without one, whether it could be spread over several.
    fn best_alone(&self, class: &Class, job: JobId, until: i64, fits_now: &mut bool) -> (Option<u32>, bool) {
        let shape = &class.shape;
        let (mut free, mut row) = (vec![0; self.timeline.layout.stride], Vec::new());
        let mut from = 0;
        for end in &shape.weights {
            let kinds = &shape.kinds[from..*end];
            from = *end;
            let mut levels = self.timeline.vacancy.levels(self.cluster, kinds, class.alone, shape.rank);
            let mut level = Vec::new();
            while levels.next(&mut level) {
                let mut best = u32::MAX;
                for bucket in &level {
                    let found = bucket.first(best, |node| {
                        self.timeline.free_now(node as usize, &mut free);
                        // The bound on memory speaks of now.
                        let memory = free[MEMORY];
                        let spec = self.cluster.spec(node);
                        let mut fits =
                            |free: &[i64]| placement::take(shape, spec, free, shape.tasks_alone(), &[], &mut row);
                        if !self.may_use(shape, node, job) || !fits(&free) {
                            return (memory, false);
                        }
                        *fits_now = true;
                        let planned = until != NOW && self.timeline.is_planned(node as usize);
                        let passes = !planned
                            || (self.timeline.window(self.cluster, node as usize, until, &mut free) && fits(&free));
                        (memory, passes && self.is_bindable(shape, node, &row))
                    });
                    best = found.unwrap_or(best);
                }
                if best != u32::MAX {
                    return (Some(best), false);
                }
            }
            if !class.single && *end < shape.kinds.len() && !self.gather(shape, kinds, job, until, Some(1)).is_empty() {
                // Lighter nodes are preferred, be they several.
                return (None, true);
            }
        }
        (None, !class.single)
    }

    /// Nodes with room for a share, ascending; the first `enough` in the order of placement where that will do.
    pub(super) fn pool(&self, shape: &Shape, job: JobId, until: i64, enough: Option<usize>) -> Vec<Candidate> {
        let mut pool = Vec::new();
        let mut from = 0;
        for end in &shape.weights {
            if enough.is_some_and(|n| pool.len() >= n) {
                break;
            }
            let left = enough.map(|n| n - pool.len());
            pool.extend(self.gather(shape, &shape.kinds[from..*end], job, until, left));
            from = *end;
        }
        pool.sort_unstable_by_key(|c| c.node);
        pool
    }

    fn gather(&self, shape: &Shape, kinds: &[u32], job: JobId, until: i64, enough: Option<usize>) -> Vec<Candidate> {
        let (mut free, mut scratch) = (vec![0; self.timeline.layout.stride], Vec::new());
        let need: Need = shape.need;
        let mut pool: Vec<Candidate> = Vec::new();
        let mut levels = self.timeline.vacancy.levels(self.cluster, kinds, need, shape.rank);
        let mut level = Vec::new();
        while levels.next(&mut level) {
            let before = pool.len();
            for node in level.iter().flat_map(|b| &b.nodes) {
                if !self.may_use(shape, *node, job)
                    || !self.timeline.window(self.cluster, *node as usize, until, &mut free)
                {
                    continue;
                }
                let spec = self.cluster.spec(*node);
                if let Some(capacity) = placement::capacity(shape, spec, &free, &mut scratch) {
                    pool.push(Candidate::new(shape, *node, spec, &free, capacity));
                }
            }
            if let Some(enough) = enough
                && pool.len() >= enough
            {
                pool[before..].sort_unstable_by_key(|c| c.node);
                pool.truncate(enough);
                break;
            }
        }
        pool
    }

    /// What the shares take; None when they don't fit after all (memory by GPU, say).
    pub(super) fn rows(&self, shape: &Shape, shares: Vec<Share>, window: impl Fn(usize, &mut [i64])) -> Option<Placed> {
        let mut free = vec![0; self.timeline.layout.stride];
        let mut rows = Vec::with_capacity(shares.len());
        for share in &shares {
            let mut row = Vec::new();
            window(share.node as usize, &mut free);
            if !placement::take(shape, self.cluster.spec(share.node), &free, share.tasks, &share.job_gres, &mut row) {
                return None;
            }
            rows.push(row);
        }
        Some(Placed { shares, rows })
    }
}

/// Nodes that a job of a shape that takes the first can use at most.
fn first_nodes(shape: &Shape) -> usize {
    let demand = &shape.demand;
    demand.wide_nodes().unwrap_or(demand.min_nodes).max(demand.min_nodes) as usize
}
