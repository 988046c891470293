//! One job: started, or planned, or told why it waits.

use super::preempt::Taken;
use super::{Due, Pass, Placed};
use crate::feasibility::Limits;
use crate::jobs::Pending;
use crate::limits::LimitHit;
use crate::order::Key;
use crate::plan::Start;
use crate::shape::Verdict;
use sluice_model::request::Constraint;
use sluice_model::{Allocation, NodeAlloc, Reason, TimeLimit};
use std::cmp::Reverse;
use std::sync::Arc;

impl Pass<'_> {
    /// Starts what can be started of this job here. The error is why (the rest of) it waits.
    pub(super) fn consider(&mut self, class: u32, key: Key) -> Result<(), Reason> {
        let jobs = self.jobs;
        let Some(job) = jobs.get(&key.job()) else { return Ok(()) };
        let Some(entry) = job.entry(key) else { return Ok(()) };
        let limits = before_deadline(self.timeline.now, job, entry.limits)?;
        match &self.classes.get(class).shape.verdict {
            Verdict::Possible => {}
            Verdict::NodesMissing(reason) => return Err(*reason),
            Verdict::Never(never) => return Err(never.reason()),
        }
        let limits = self.limits_before(class, entry.free, limits).or_else(|hit| self.limited_by(class, hit))?;
        if job.indices().is_empty() {
            return self.attempt(class, key, job, limits, None).inspect(|()| self.all_started(key));
        }
        // The engine lists the next few tasks; one that is planned is always the next.
        let done = self.tasks_started.get(&key.job()).copied().unwrap_or(0);
        for (at, index) in job.indices().iter().enumerate().skip(done) {
            let limits = self.limits_before(class, entry.free, limits).map_err(|hit| hit.reason)?;
            self.attempt(class, key, job, limits, Some(*index))?;
            self.tasks_started.insert(key.job(), at + 1);
        }
        self.all_started(key);
        Ok(())
    }

    /// A limit is in the way. That is told where something would be free.
    fn limited_by(&mut self, class: u32, hit: LimitHit) -> Result<Limits, Reason> {
        let partition = self.classes.get(class).shape.partition;
        if self.settled(partition) && self.is_full_now(class) {
            return Err(Reason::Priority);
        }
        if !hit.limit.depends_on_time() {
            self.classes.run(class).limited = Some(hit.reason);
            self.held.insert(class);
        }
        Err(hit.reason)
    }

    pub(super) fn all_started(&mut self, key: Key) {
        let job = key.job();
        self.started.insert(job);
        // It was blocked in one partition and started in another.
        if self.blocked.contains(&Some(job)) {
            for blocker in &mut self.blocked {
                *blocker = blocker.filter(|b| *b != job);
            }
            self.look_again(key);
        }
    }

    /// One job or one task of an array.
    fn attempt(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        limits: Limits,
        index: Option<u32>,
    ) -> Result<(), Reason> {
        let id = key.job();
        // Its own planned start, in another partition or as the array's next task, must not be in its way.
        let own = self.unplan(id);
        if own.is_some() || self.blocked.contains(&Some(id)) {
            self.classes.run(class).failed = None;
        }
        let cause = match self.fit(class, key, job, limits) {
            Ok((placed, limit)) => match self.start(class, key, job, placed, limit, index) {
                Ok(()) => {
                    if own.is_some() {
                        self.look_again(key);
                    }
                    return Ok(());
                }
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        if matches!(cause, Reason::Resources | Reason::Licenses) && !self.fits_elsewhere(class, key, job) {
            match self.preempt(class, key, job, limits, index) {
                Taken::Started => {
                    if own.is_some() {
                        self.look_again(key);
                    }
                    return Ok(());
                }
                Taken::Planned => {
                    self.seen_everywhere(key, job);
                    return Err(Reason::Resources);
                }
                Taken::No => {}
            }
        }
        let late = self.by_size && own.is_none() && self.guest != Some(id);
        if late && cause == Reason::Resources && self.classes.get(class).is_full() {
            // Its partition had all its planned starts when its turn came, and one has gone elsewhere since. Classes that
            // are known to be full from earlier passes were passed over then, too.
            return Err(Reason::Priority);
        }
        let p = self.classes.get(class).shape.partition as usize;
        let first = self.blocked[p].is_none_or(|other| other == id);
        if cause == Reason::Resources && self.blocked[p].is_none() {
            self.blocked[p] = Some(id);
        }
        if cause == Reason::Licenses {
            self.unlicensed.insert(class);
        }
        let charge = &self.classes.get(class).charge;
        if self.cluster.policy.backfill && !self.plans_nothing(charge, key, cause) {
            self.plan_start(class, key, job, limits, cause, own);
            if self.planned.contains_key(&id) {
                self.see_elsewhere(key, job);
            }
        }
        Err(if cause == Reason::Resources && !first { Reason::Priority } else { cause })
    }

    /// It starts in another of its partitions, where it comes later in the queue: nobody has to go for it.
    fn fits_elsewhere(&mut self, class: u32, key: Key, job: &Pending) -> bool {
        if job.entries().len() < 2 || !self.hunts(class) {
            return false;
        }
        let now = self.timeline.now;
        let later = job.entries().iter().filter(|e| e.key > key);
        let fits = later.filter(|entry| {
            self.classes.run(entry.class);
            let possible = matches!(self.classes.get(entry.class).shape.verdict, Verdict::Possible);
            possible
                && before_deadline(now, job, entry.limits)
                    .is_ok_and(|limits| self.fit(entry.class, entry.key, job, limits).is_ok())
        });
        let fits: Vec<_> = fits.collect();
        for entry in &fits {
            self.due.push(Reverse((entry.key, Due::Job(entry.class))));
        }
        !fits.is_empty()
    }

    /// What can be said of it is said: it need not be looked at in its other partitions.
    pub(super) fn seen_everywhere(&mut self, key: Key, job: &Pending) {
        for entry in job.entries() {
            self.seen.insert((key.job(), entry.key.slot()), Reason::Resources);
        }
    }

    /// A job with a planned start is looked at in its other partitions too, where it may start now or earlier.
    fn see_elsewhere(&mut self, key: Key, job: &Pending) {
        for other in job.entries().iter().filter(|e| e.key > key) {
            self.due.push(Reverse((other.key, Due::Job(other.class))));
        }
    }

    pub(super) fn start(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        placed: Placed,
        limit: TimeLimit,
        index: Option<u32>,
    ) -> Result<(), Reason> {
        let mut nodes = Vec::with_capacity(placed.shares.len());
        for (share, row) in placed.shares.iter().zip(&placed.rows) {
            let demand = &self.classes.get(class).shape.demand;
            let part = self.timeline.pick(self.cluster, share.node, demand, share.tasks, row);
            nodes.push(part.ok_or(Reason::Resources)?);
        }
        self.limits_at(class, &nodes, limit)?;
        let passes = placed.shares.iter().any(|s| self.is_awaited(s.node, key.job()));
        let end = self.until(job, limit);
        let allocation = Arc::new(Allocation { nodes });
        let shape = &self.classes.get(class).shape;
        let licenses = shape.licenses.iter().map(|row| (self.timeline.license_node() as u32, &row[..]));
        let rows = placed.shares.iter().zip(&placed.rows).map(|(share, row)| (share.node, &row[..])).chain(licenses);
        let rows: Vec<(u32, &[i64])> = rows.collect();
        self.runs.push(self.timeline.put_start(self.cluster, end, Arc::clone(&allocation), rows.into_iter()));
        let mut allocation = Allocation::clone(&allocation);
        if let Some(batch) = &self.classes.get(class).example.request.batch {
            self.put_batch_host_first(batch, &mut allocation);
        }
        self.plan.starts.push(Start {
            job: key.job(),
            index,
            partition: self.cluster.partitions[shape.partition as usize].name.clone(),
            allocation,
            backfilled: passes,
            time_limit: limit,
            priority: key.priority(),
        });
        Ok(())
    }
}

impl Pass<'_> {
    /// `--batch`: the script runs on the first node that has these features, if any has.
    fn put_batch_host_first(&self, batch: &Constraint, allocation: &mut Allocation) {
        let has = |held: &NodeAlloc| {
            let node = self.cluster.position(&held.node);
            node.is_some_and(|n| batch.matches(&self.cluster.spec(n).features))
        };
        if let Some(at) = allocation.nodes.iter().position(has) {
            allocation.nodes[..=at].rotate_right(1);
        }
    }
}

/// A job that can't end before its deadline is not started.
pub(super) fn before_deadline(now: i64, job: &Pending, limits: Limits) -> Result<Limits, Reason> {
    let Some(deadline) = job.deadline() else { return Ok(limits) };
    let minutes = u32::try_from((deadline.0 - now).div_euclid(60_000)).unwrap_or(0);
    let left = TimeLimit::Minutes(minutes);
    if limits.least > left {
        return Err(Reason::DeadLine);
    }
    Ok(Limits { want: limits.want.min(left), least: limits.least })
}
