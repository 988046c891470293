//! A place for a job from now on.
//!
//! Owns the search among what is free now and stays free around planned starts, and the memory of what did not fit.

use super::{Known, Pass, Placed};
use crate::feasibility::Limits;
use crate::placement::{self, Candidate, Extent, Share};
use crate::shape::Shape;
use crate::timeline::FOREVER;
use sluice_model::{Reason, TimeLimit};

impl Pass<'_> {
    /// The end of the window that the job needs from now on when it gets this limit.
    pub(super) fn until(&self, job: u32, limit: TimeLimit) -> i64 {
        self.jobs[job as usize].planned_ms(limit).map_or(FOREVER, |ms| self.timeline.now.saturating_add(ms))
    }

    /// A place from now on, with the longest limit that fits.
    pub(super) fn fit(&mut self, job: u32, known: usize, limits: Limits) -> Result<(Placed, TimeLimit), Reason> {
        let reason = match self.place(job, known, self.until(job, limits.want)) {
            Ok(placed) => return Ok((placed, limits.want)),
            Err(reason) => reason,
        };
        if limits.least == limits.want || !self.input.policy.backfill {
            return Err(reason);
        }
        // `--time-min`: shorter, so that it ends before the planned starts that are in its way.
        let now = self.timeline.now;
        let mut best = (self.place(job, known, self.until(job, limits.least))?, limits.least);
        let starts = self.timeline.starts_between(self.until(job, limits.least), self.until(job, limits.want));
        let (mut low, mut high) = (0, starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let minutes = u32::try_from((starts[middle] - now) / 60_000).unwrap_or(u32::MAX);
            let limit = TimeLimit::Minutes(minutes);
            match self.place(job, known, self.until(job, limit)) {
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
    fn place(&mut self, job: u32, known: usize, until: i64) -> Result<Placed, Reason> {
        if let Some((failed, reason)) = self.known[known].failed
            && until >= failed
        {
            return Err(reason);
        }
        self.plan.work += 1;
        let result = self.search(job, known, until);
        let known = &mut self.known[known];
        match &result {
            Ok(placed) => known.sticky = if placed.shares.len() == 1 { Some(placed.shares[0].node) } else { None },
            Err(reason) => known.failed = Some((until, *reason)),
        }
        result
    }

    fn search(&self, job: u32, known: usize, until: i64) -> Result<Placed, Reason> {
        let Known { shape, sticky, .. } = &self.known[known];
        let mut free = vec![0; self.timeline.layout.stride];
        if let Some(licenses) = &shape.licenses {
            self.timeline.window(self.timeline.layout.nodes, until, &mut free);
            if licenses.iter().zip(&free).any(|(need, have)| need > have) {
                return Err(Reason::Licenses);
            }
        }
        let mut scratch = Vec::new();
        let backfill = self.input.policy.backfill;
        let mut candidate = |node: u32, free: &mut [i64]| {
            if (!backfill && self.is_awaited(node, job)) || !self.timeline.window(node as usize, until, free) {
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
            && let Some(placed) = self.rows(shape, shares, |node, free| _ = self.timeline.window(node, until, free))
        {
            return Ok(placed);
        }
        let pool: Vec<Candidate> = shape.nodes.iter().filter_map(|n| candidate(*n, &mut free)).collect();
        placement::select(shape, pool, Extent::Most)
            .and_then(|shares| self.rows(shape, shares, |node, free| _ = self.timeline.window(node, until, free)))
            .ok_or(Reason::Resources)
    }

    /// What the shares take; None when they don't fit after all (memory by GPU, say).
    pub(super) fn rows(&self, shape: &Shape, shares: Vec<Share>, window: impl Fn(usize, &mut [i64])) -> Option<Placed> {
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
}
