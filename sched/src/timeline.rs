//! What is in use on every node, now and at each future moment.
//!
//! Owns the counts: CPUs, MiB, jobs, whole-node holders, devices of each GRES entry, CPUs by limited partition, and
//! licences. Promises exact arithmetic over windows of time: a demand that stays within `window` fits for all of it; and
//! that after `remove_run` all is as before `put_run`. Must not know which job comes first.
//!
//! Use falls at the ends of running jobs and rises only where a planned start lies ("peaks", see `plans`). So a window
//! from now on is judged by the use now and by the peaks inside it, however many running jobs there are; and a planned
//! start is found by releasing running jobs in the order of their ends (`sweep`: the shadow time of EASY backfill: Lifka,
//! "The ANL/IBM SP scheduling system", 1995). With as many planned starts as jobs this is conservative backfill
//! (Mu'alem and Feitelson, 2001).
//!
//! Licences are the slots of one more "node", behind the real ones.

mod plans;
mod rows;
mod sweep;

pub(crate) use rows::{CPUS, GRES, JOBS, Layout, MEMORY, WHOLE, entries};
pub(crate) use sweep::{Blocked, Sweep};

use crate::cluster::Cluster;
use crate::concrete::Free;
use crate::demand::Demand;
use crate::input::{Overrun, RunningJob};
use crate::vacancy::Vacancy;
use plans::Plans;
use rows::Rows;
use sluice_model::{Allocation, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The end of a running job without a limit. Planned starts that wait for it are kept internally, to hold off others
/// that would also never end, but are told to nobody.
pub(crate) const NEVER: i64 = i64::MAX - 1;
/// The end of the window of a job without a limit that has not started: later than `NEVER`, so that it can't start on
/// what a job that waits for `NEVER` needs.
pub(crate) const FOREVER: i64 = i64::MAX;
/// A job past its limit, or completing, will be gone soon, but not yet. Milliseconds.
pub(crate) const SOON: i64 = 1000;

/// Something that holds resources.
#[derive(Clone, Debug)]
struct Run {
    /// Its key in `by_end`.
    end: i64,
    /// What `end` follows from; None for starts of the present pass.
    job: Option<Arc<RunningJob>>,
    allocation: Arc<Allocation>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    node: u32,
    /// In `rows`.
    row: u32,
    /// Position in the allocation.
    held: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    pub layout: Layout,
    pub now: i64,
    used: Vec<i64>,
    capacity: Vec<i64>,
    rows: Rows,
    runs: Vec<Run>,
    spare_runs: Vec<u32>,
    by_end: BTreeSet<(i64, u32)>,
    /// By node: (run, part).
    on_node: Vec<Vec<(u32, u32)>>,
    /// By node, for those that were asked for.
    free: Vec<Option<Free>>,
    pub vacancy: Vacancy,
    plans: Plans,
    /// Nodes on which something became free, possibly repeated.
    pub grown: Vec<u32>,
}

impl Timeline {
    pub fn new(cluster: &Cluster) -> Timeline {
        let layout = Layout::new(cluster);
        let nodes = layout.nodes;
        let capacity = layout.capacity(cluster);
        let mut timeline = Timeline {
            now: 0,
            used: vec![0; capacity.len()],
            capacity,
            rows: Rows::new(layout.stride),
            runs: Vec::new(),
            spare_runs: Vec::new(),
            by_end: BTreeSet::new(),
            on_node: vec![Vec::new(); nodes + 1],
            free: vec![None; nodes],
            vacancy: Vacancy::new(cluster),
            plans: Plans::new(nodes + 1),
            grown: Vec::new(),
            layout,
        };
        for node in 0..nodes as u32 {
            timeline.reindex(cluster, node);
        }
        timeline
    }

    /// What a running job holds, as of its allocation.
    pub fn put_running(&mut self, cluster: &Cluster, job: RunningJob) -> u32 {
        let end = planned_key(&job);
        let mut parts = Vec::with_capacity(job.allocation.nodes.len());
        let mut row = vec![0; self.layout.stride];
        for (at, held) in job.allocation.nodes.iter().enumerate() {
            // A node that left the configuration holds nothing any more.
            let Some(node) = cluster.position(&held.node) else { continue };
            self.layout.held(cluster.spec(node), held, job.exclusive, job.partition, &mut row);
            parts.push(Part { node, row: self.rows.store(&row), held: at as u32 });
        }
        if !job.licenses.is_empty() {
            let row = self.layout.license_row(&job.licenses);
            parts.push(Part { node: self.layout.nodes as u32, row: self.rows.store(&row), held: u32::MAX });
        }
        let allocation = Arc::clone(&job.allocation);
        self.enter(cluster, end, Run { end, job: Some(Arc::new(job)), allocation, parts })
    }

    /// A start of the present pass: rows by node, as `allocation` has them; licences under the last number.
    pub fn put_start<'r>(
        &mut self,
        cluster: &Cluster,
        end: i64,
        allocation: Arc<Allocation>,
        rows: impl Iterator<Item = (u32, &'r [i64])>,
    ) -> u32 {
        let mut parts = Vec::with_capacity(allocation.nodes.len());
        for (at, (node, row)) in rows.enumerate() {
            parts.push(Part { node, row: self.rows.store(row), held: at as u32 });
        }
        self.enter(cluster, end, Run { end: end.min(NEVER), job: None, allocation, parts })
    }

    fn enter(&mut self, cluster: &Cluster, until: i64, run: Run) -> u32 {
        let id = match self.spare_runs.pop() {
            Some(id) => id,
            None => {
                self.runs.push(Run { end: 0, job: None, allocation: Arc::clone(&run.allocation), parts: Vec::new() });
                (self.runs.len() - 1) as u32
            }
        };
        self.runs[id as usize] = run;
        self.attach(cluster, id, until);
        id
    }

    /// Counts what a run holds, from now until `until`.
    fn attach(&mut self, cluster: &Cluster, id: u32, until: i64) {
        let run = &self.runs[id as usize];
        let (parts, allocation) = (run.parts.clone(), Arc::clone(&run.allocation));
        self.by_end.insert((run.end, id));
        let stride = self.layout.stride;
        for (at, part) in parts.iter().enumerate() {
            let node = part.node as usize;
            let row = self.rows.get(part.row);
            self.used[node * stride..][..stride].iter_mut().zip(row).for_each(|(u, r)| *u += r);
            self.plans.hold(node, until, row);
            self.on_node[node].push((id, at as u32));
            if node < self.layout.nodes {
                if let (Some(free), Some(held)) = (&mut self.free[node], allocation.nodes.get(part.held as usize)) {
                    free.take(cluster.spec(part.node), held);
                }
                self.reindex(cluster, part.node);
            }
        }
    }

    /// Counts it no more; the run keeps its parts.
    fn detach(&mut self, cluster: &Cluster, id: u32) {
        let run = &self.runs[id as usize];
        let (parts, allocation) = (run.parts.clone(), Arc::clone(&run.allocation));
        let until = run.end.max(self.now.saturating_add(SOON));
        self.by_end.remove(&(run.end, id));
        let stride = self.layout.stride;
        for (at, part) in parts.iter().enumerate() {
            let node = part.node as usize;
            let row = self.rows.get(part.row);
            let held_cpus = self.used[node * stride + CPUS];
            self.used[node * stride..][..stride].iter_mut().zip(row).for_each(|(u, r)| *u -= r);
            self.plans.release(node, until, row);
            let here = &mut self.on_node[node];
            if let Some(found) = here.iter().position(|h| *h == (id, at as u32)) {
                here.swap_remove(found);
            }
            if node < self.layout.nodes {
                let spec = cluster.spec(part.node);
                let kept = match (&mut self.free[node], allocation.nodes.get(part.held as usize)) {
                    (Some(free), Some(held)) => free.give_back(spec, held, held_cpus),
                    _ => true,
                };
                if !kept {
                    self.free[node] = None;
                }
                self.reindex(cluster, part.node);
            }
        }
    }

    /// It ends then, by all that is known from now on.
    pub fn retime(&mut self, cluster: &Cluster, id: u32, end: i64) {
        self.detach(cluster, id);
        self.runs[id as usize].end = end.min(NEVER);
        self.attach(cluster, id, end);
    }

    /// What it holds would be free until then, had it ended as planned: it can stay on.
    pub fn can_stay(&self, id: u32, until: i64) -> bool {
        let run = &self.runs[id as usize];
        let end = run.end.max(self.now.saturating_add(SOON));
        run.parts.iter().all(|part| {
            let (node, row) = (part.node as usize, self.rows.get(part.row));
            let later = self.plans.peaks(node).iter().filter(|p| end <= p.start && p.start < until);
            later.into_iter().all(|peak| {
                let left = self.capacity(node).iter().zip(&peak.used);
                left.zip(row).all(|((c, u), r)| {
                    // Jobs, and whole nodes, are counted below zero.
                    *r == 0 || c - u >= *r || *c == 0 && *u == 0
                })
            })
        })
    }

    /// It holds this instead, one row for each of its parts; gives what it held.
    pub fn swap(
        &mut self,
        cluster: &Cluster,
        id: u32,
        held: (Arc<Allocation>, Vec<Vec<i64>>),
    ) -> (Arc<Allocation>, Vec<Vec<i64>>) {
        self.detach(cluster, id);
        let run = &mut self.runs[id as usize];
        let mut old = Vec::with_capacity(run.parts.len());
        for (part, row) in run.parts.iter().zip(&held.1) {
            let place = self.rows.get_mut(part.row);
            old.push(place.to_vec());
            place.copy_from_slice(row);
        }
        let allocation = std::mem::replace(&mut run.allocation, held.0);
        let end = run.end;
        self.attach(cluster, id, end);
        (allocation, old)
    }

    /// What a run holds, by node: licences under the last number.
    pub fn parts(&self, id: u32) -> impl Iterator<Item = (u32, &[i64])> {
        self.runs[id as usize].parts.iter().map(|part| (part.node, self.rows.get(part.row)))
    }
    pub fn allocation(&self, id: u32) -> &Arc<Allocation> {
        &self.runs[id as usize].allocation
    }
    pub fn job(&self, id: u32) -> Option<&RunningJob> {
        self.runs[id as usize].job.as_deref()
    }
    pub fn end_of(&self, id: u32) -> i64 {
        self.runs[id as usize].end
    }

    /// Free on a node now, planned starts left out, and at each planned start before `until`.
    pub fn levels(&self, node: usize, until: i64) -> Vec<(i64, Vec<i64>)> {
        let mut now = vec![0; self.layout.stride];
        self.free_now(node, &mut now);
        let mut levels = vec![(i64::MIN, now)];
        for peak in self.plans.peaks(node).iter().take_while(|p| p.start < until) {
            levels.push((peak.start, self.capacity(node).iter().zip(&peak.used).map(|(c, u)| c - u).collect()));
        }
        levels
    }

    /// Nothing of it is held any more.
    pub fn remove_run(&mut self, cluster: &Cluster, id: u32) {
        self.detach(cluster, id);
        let run = &mut self.runs[id as usize];
        let parts = std::mem::take(&mut run.parts);
        run.job = None;
        self.spare_runs.push(id);
        for part in parts {
            self.rows.release(part.row);
            if (part.node as usize) < self.layout.nodes {
                self.grown.push(part.node);
            }
        }
    }

    /// Availability or use of a node changed.
    pub fn reindex(&mut self, cluster: &Cluster, node: u32) {
        let at = node as usize;
        let stride = self.layout.stride;
        let (used, capacity) = (&self.used[at * stride..][..stride], &self.capacity[at * stride..][..stride]);
        let free = |slot: usize| capacity[slot] - used[slot];
        let vacant = cluster.nodes[at].available && free(WHOLE) == 0 && free(CPUS) > 0;
        let vacant = vacant.then(|| {
            let devices: i64 = (GRES..GRES + cluster.spec(node).gres.len()).map(|s| free(s).max(0)).sum();
            (u32::try_from(free(CPUS)).unwrap_or(u32::MAX), u32::try_from(devices).unwrap_or(u32::MAX), free(MEMORY))
        });
        self.vacancy.set(node, cluster.kinds.of[at], vacant);
    }

    /// The time has come to `now`: expected ends that have passed are corrected.
    pub fn advance(&mut self, now: i64, overrun: Overrun) {
        let back = now < self.now;
        self.now = now;
        if overrun == Overrun::Soon && !back {
            return;
        }
        let due = if back { self.by_end.iter().copied().collect() } else { self.due(now) };
        for (end, id) in due {
            let Some(job) = &self.runs[id as usize].job else { continue };
            let corrected = match job.planned_end(Time(now), overrun) {
                // Those that will be gone soon keep their key.
                Some(t) if t.0 <= now => planned_key(job).min(now),
                planned => planned.map_or(NEVER, |t| t.0.min(NEVER)),
            };
            if corrected != end {
                self.by_end.remove(&(end, id));
                self.by_end.insert((corrected, id));
                self.runs[id as usize].end = corrected;
            }
        }
    }

    /// All that runs, without the starts of the present pass.
    pub fn running(&self) -> impl Iterator<Item = &RunningJob> {
        self.runs.iter().filter_map(|r| r.job.as_deref())
    }

    fn due(&self, now: i64) -> Vec<(i64, u32)> {
        self.by_end.range(..=(now, u32::MAX)).copied().collect()
    }

    /// Free at every moment from now until `until`: the least of each quantity. False when nothing of use is free.
    pub fn window(&self, cluster: &Cluster, node: usize, until: i64, free: &mut [i64]) -> bool {
        self.free_now(node, free);
        self.plans.lower_until(node, until, self.capacity(node), free);
        free[CPUS] > 0 && self.takes_jobs(cluster, node)
    }

    /// As `window` without planned starts.
    pub fn free_now(&self, node: usize, free: &mut [i64]) {
        for ((f, c), u) in free.iter_mut().zip(self.capacity(node)).zip(self.row(node)) {
            *f = c - u;
        }
    }

    fn takes_jobs(&self, cluster: &Cluster, node: usize) -> bool {
        cluster.nodes.get(node).is_none_or(|n| n.available)
    }

    /// The very indices for what a row counts; nothing is taken yet.
    pub fn pick(
        &mut self,
        cluster: &Cluster,
        node: u32,
        demand: &Demand,
        tasks: u32,
        row: &[i64],
    ) -> Option<sluice_model::NodeAlloc> {
        if self.free[node as usize].is_none() {
            self.free[node as usize] = Some(self.free_indices(cluster, node));
        }
        self.free[node as usize].as_ref()?.pick(cluster.spec(node), demand, tasks, row)
    }

    /// Whether `pick` would find any.
    pub fn would_pick(&self, cluster: &Cluster, node: u32, demand: &Demand, tasks: u32, row: &[i64]) -> bool {
        let spec = cluster.spec(node);
        match &self.free[node as usize] {
            Some(free) => free.pick(spec, demand, tasks, row).is_some(),
            None => self.free_indices(cluster, node).pick(spec, demand, tasks, row).is_some(),
        }
    }

    fn free_indices(&self, cluster: &Cluster, node: u32) -> Free {
        let spec = cluster.spec(node);
        let mut free = Free::all(spec);
        for (run, part) in &self.on_node[node as usize] {
            let run = &self.runs[*run as usize];
            if let Some(held) = run.allocation.nodes.get(run.parts[*part as usize].held as usize) {
                free.take(spec, held);
            }
        }
        free
    }

    pub fn license_node(&self) -> usize {
        self.layout.nodes
    }
    pub fn capacity(&self, node: usize) -> &[i64] {
        &self.capacity[node * self.layout.stride..][..self.layout.stride]
    }
    fn row(&self, node: usize) -> &[i64] {
        &self.used[node * self.layout.stride..][..self.layout.stride]
    }
}

/// The end by which a running job is kept in order until its expected end has passed.
fn planned_key(job: &RunningJob) -> i64 {
    match (job.expected_end, job.ends) {
        (Some(a), Some(b)) => a.min(b).0,
        (a, b) => a.or(b).map_or(NEVER, |t| t.0),
    }
    .min(NEVER)
}
