//! A planned start for a job that can't start now.
//!
//! Owns planned starts: finds the first moment at which the job fits for its whole limit, by what is known of ends and of
//! other planned starts, and enters it in the time line.

use super::{Pass, Placed};
use crate::cluster::Cluster;
use crate::demand::Tasks;
use crate::feasibility::Limits;
use crate::jobs::Pending;
use crate::order::Key;
use crate::placement::{self, Candidate, Extent};
use crate::shape::Shape;
use crate::timeline::{Blocked, FOREVER, Sweep};
use crate::vacancy::Need;
use sluice_model::{JobId, Reason, TimeLimit};
use std::collections::BTreeMap;

/// A planned start, as it stands in the time line.
pub(super) struct Planned {
    pub start: i64,
    pub end: i64,
    pub placed: Placed,
    pub licenses: Option<Vec<i64>>,
    pub partition: u32,
    /// It waits for licences, not for nodes.
    pub for_licenses: bool,
    /// Taken from others: it does not count among those that the policy gives.
    pub claimed: bool,
}

impl Pass<'_> {
    /// Takes the job's planned start out of the time line.
    pub(super) fn unplan(&mut self, job: JobId) -> Option<Planned> {
        let planned = self.planned.remove(&job)?;
        if !planned.claimed {
            *self.places(planned.partition, planned.for_licenses) -= 1;
        }
        let (start, end) = (planned.start, planned.end);
        for (share, row) in planned.placed.shares.iter().zip(&planned.placed.rows) {
            self.timeline.unreserve(share.node as usize, start, end, row);
        }
        if let Some(row) = &planned.licenses {
            self.timeline.unreserve(self.timeline.license_node(), start, end, row);
        }
        Some(planned)
    }

    pub(super) fn enter(&mut self, job: JobId, planned: Planned) {
        if !planned.claimed {
            *self.places(planned.partition, planned.for_licenses) += 1;
        }
        let (start, end) = (planned.start, planned.end);
        for (share, row) in planned.placed.shares.iter().zip(&planned.placed.rows) {
            self.timeline.reserve(share.node as usize, start, end, row);
        }
        if let Some(row) = &planned.licenses {
            self.timeline.reserve(self.timeline.license_node(), start, end, row);
        }
        self.planned.insert(job, planned);
        if self.ordered.insert(job) {
            self.planned_order.push(job);
        }
    }

    /// How many planned starts count against the policy's number here.
    fn places(&mut self, partition: u32, for_licenses: bool) -> &mut u32 {
        if for_licenses { &mut self.planned_for_licenses } else { &mut self.planned_in[partition as usize] }
    }

    /// Gives the job a planned start if it is among the first of its partition that wait; if it has one elsewhere
    /// (`own`, taken out of the time line), it keeps the earlier of the two.
    pub(super) fn plan_start(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        limits: Limits,
        cause: Reason,
        own: Option<Planned>,
    ) {
        let quota = self.cluster.policy.reservations;
        let for_licenses = cause == Reason::Licenses;
        let partition = self.classes.get(class).shape.partition;
        let within = *self.places(partition, for_licenses) < quota || self.guest == Some(key.job());
        let deadline = job.deadline().map_or(i64::MAX, |d| d.0);
        let found = if within { self.earliest(class, key.job(), job.duration(limits.want), i64::MAX) } else { None };
        let longest = longest(limits.want);
        let in_time = |start: i64| deadline == i64::MAX || start.saturating_add(longest) <= deadline;
        let found = found.filter(|(start, ..)| in_time(*start)).map(|(start, end, placed)| Planned {
            start,
            end,
            placed,
            licenses: self.classes.get(class).shape.licenses.clone(),
            partition,
            for_licenses,
            claimed: false,
        });
        let best = match (own, found) {
            (Some(own), Some(found)) => Some(if found.start < own.start { found } else { own }),
            (own, found) => own.or(found),
        };
        if let Some(best) = best {
            self.enter(key.job(), best);
        }
    }

    /// The first moment after now, and not after `latest`, at which it fits for its whole duration, by what is known of ends.
    pub(super) fn earliest(
        &mut self,
        class: u32,
        job: JobId,
        duration: i64,
        latest: i64,
    ) -> Option<(i64, i64, Placed)> {
        let (mut budget, mut work) = (self.cluster.policy.work_budget, self.plan.work);
        if self.guest == Some(job) {
            budget = u64::MAX;
        }
        let now = self.timeline.now;
        let license_node = self.timeline.license_node() as u32;
        let shape = &self.classes.get(class).shape;
        let mut sweep = self.timeline.sweep(self.cluster, &shape.kinds, duration);
        let mut future = Future::new(self.cluster, shape, license_node, self.timeline.layout.stride);
        let mut from = 0;
        for end in &shape.weights {
            let mut levels =
                self.timeline.vacancy.levels(self.cluster, &shape.kinds[from..*end], shape.need, shape.rank);
            let mut level = Vec::new();
            while levels.next(&mut level) {
                level.iter().flat_map(|b| &b.nodes).for_each(|node| future.look(*node, now, &sweep));
            }
            from = *end;
        }
        future.look(license_node, now, &sweep);
        let mut touched = Vec::new();
        let mut found = None;
        while let Some(time) = sweep.next(&mut touched) {
            if time > latest {
                break;
            }
            for node in &touched {
                future.look(*node, time, &sweep);
            }
            if time <= now || !future.better || !future.may_fit() {
                continue;
            }
            future.better = false;
            work += 1;
            if work + sweep.seen / 256 > budget {
                break;
            }
            let Some(shares) = placement::select(shape, future.pool(), Extent::Least) else { continue };
            let free = |node: usize, free: &mut [i64]| _ = sweep.window(node, time, shape.need, free);
            if let Some(placed) = self.rows(shape, shares, free) {
                found = Some((time, time.saturating_add(duration), placed));
                break;
            }
            // It fits by capacities, not in detail: that may change without a capacity changing.
            future.better = true;
        }
        work += sweep.seen / 256;
        self.plan.work = work;
        found
    }
}

fn longest(limit: TimeLimit) -> i64 {
    limit.duration().map_or(FOREVER, |d| i64::try_from(d.as_millis()).unwrap_or(FOREVER))
}

/// What one shape could have of each node as the sweep goes on.
struct Future<'a> {
    cluster: &'a Cluster,
    shape: &'a Shape,
    license_node: u32,
    /// Of nodes that were looked at and had room.
    candidates: Vec<Option<Candidate>>,
    /// By node: its position in `candidates`, plus one.
    place: Vec<u32>,
    /// Nodes that won't do before this moment.
    blocked: BTreeMap<u32, i64>,
    fitting: usize,
    tasks: u64,
    licensed: bool,
    /// Some node can take more than when it was last tried in vain.
    better: bool,
    free: Vec<i64>,
    scratch: Vec<i64>,
}

impl<'a> Future<'a> {
    fn new(cluster: &'a Cluster, shape: &'a Shape, license_node: u32, stride: usize) -> Self {
        Future {
            cluster,
            shape,
            license_node,
            candidates: Vec::new(),
            place: vec![0; license_node as usize + 1],
            blocked: BTreeMap::new(),
            fitting: 0,
            tasks: 0,
            licensed: shape.licenses.is_none(),
            better: true,
            free: vec![0; stride],
            scratch: Vec::new(),
        }
    }

    /// Judges a node anew for a start at `time`.
    fn look(&mut self, node: u32, time: i64, sweep: &Sweep<'_>) {
        if node == self.license_node {
            if let Some(need) = &self.shape.licenses {
                let _ = sweep.window(node as usize, time, Need::default(), &mut self.free);
                let before = self.licensed;
                self.licensed = need.iter().zip(&self.free).all(|(need, have)| need <= have);
                self.better |= self.licensed && !before;
            }
            return;
        }
        if !self.shape.admits(self.cluster, node) {
            return;
        }
        if self.blocked.get(&node).is_some_and(|until| time <= *until) {
            return;
        }
        let fresh = match sweep.window(node as usize, time, self.shape.need, &mut self.free) {
            Ok(()) => {
                let spec = self.cluster.spec(node);
                placement::capacity(self.shape, spec, &self.free, &mut self.scratch)
                    .map(|c| Candidate::new(self.shape, node, spec, &self.free, c))
            }
            Err(blocked) => {
                if let Blocked::Until(until) = blocked {
                    self.blocked.insert(node, until);
                }
                None
            }
        };
        let place = &mut self.place[node as usize];
        if *place == 0 {
            if fresh.is_none() {
                return;
            }
            self.candidates.push(None);
            *place = self.candidates.len() as u32;
        }
        let slot = &mut self.candidates[*place as usize - 1];
        self.better |= fresh.as_ref().is_some_and(|new| slot.as_ref().is_none_or(|old| new.takes_more_than(old)));
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
            Tasks::Total { count, .. } => self.tasks >= u64::from(count),
            Tasks::PerNode(_) => true,
        };
        self.licensed
            && enough_tasks
            && self.fitting >= self.shape.demand.min_nodes as usize
            && self.shape.required.iter().all(|r| self.has(*r))
    }

    fn has(&self, node: u32) -> bool {
        let at = self.place[node as usize];
        at != 0 && self.candidates[at as usize - 1].is_some()
    }

    fn pool(&self) -> Vec<Candidate> {
        let mut pool: Vec<Candidate> = self.candidates.iter().flatten().cloned().collect();
        pool.sort_unstable_by_key(|c| c.node);
        pool
    }
}
