//! What is in use on every node, now and at each future moment.
//!
//! Owns the counts: CPUs, MiB, jobs, whole-node holders, devices of each GRES entry, CPUs by limited partition, and
//! licences. Promises exact arithmetic over windows of time: a demand that stays within `window` fits for all of it.
//! Must not know which core is which (`concrete`) or which job comes first.
//!
//! Use falls at the ends of running jobs and rises only where a planned start lies ("peaks"). So a window from now on
//! is judged by the use now and by the peaks inside it, however many running jobs there are; and a planned start is
//! found by releasing running jobs in the order of their ends (the shadow time of EASY backfill: Lifka, "The ANL/IBM SP
//! scheduling system", 1995). With as many planned starts as jobs this is conservative backfill (Mu'alem and Feitelson,
//! 2001).
//!
//! Licences are the slots of one more "node", behind the real ones.

use crate::input::Input;
use sluice_model::{NodeSpec, Time};
use std::collections::BTreeMap;

/// Slots of a node's row.
pub(crate) const CPUS: usize = 0;
pub(crate) const MEMORY: usize = 1;
/// Jobs on the node; free is 0 when it is empty and negative otherwise.
pub(crate) const JOBS: usize = 2;
/// Jobs that have the node to themselves; likewise.
pub(crate) const WHOLE: usize = 3;
pub(crate) const GRES: usize = 4;

/// The end of a running job without a limit. Planned starts that wait for it are kept internally, to hold off others
/// that would also never end, but are told to nobody.
pub(crate) const NEVER: i64 = i64::MAX - 1;
/// The end of the window of a job without a limit that has not started: later than `NEVER`, so that it can't start on
/// what a job that waits for `NEVER` needs.
pub(crate) const FOREVER: i64 = i64::MAX;
/// A job past its limit, or completing, will be gone soon, but not yet. Milliseconds.
const SOON: i64 = 1000;

/// Where each quantity lies in a row.
pub(crate) struct Layout {
    pub stride: usize,
    /// Real nodes; also the row of licences.
    pub nodes: usize,
    /// Slot of the CPUs used by a partition with MaxCPUsPerNode, by partition.
    pub limited: Vec<Option<usize>>,
    pub licenses: BTreeMap<String, usize>,
}

impl Layout {
    fn new(input: &Input) -> Layout {
        let gres = input.nodes.iter().map(|n| n.spec.gres.len()).max().unwrap_or(0);
        let mut stride = GRES + gres;
        let limited = input
            .partitions
            .iter()
            .map(|p| {
                p.max_cpus_per_node.map(|_| {
                    stride += 1;
                    stride - 1
                })
            })
            .collect();
        let licenses: BTreeMap<String, usize> = input.licenses.keys().cloned().zip(0..).collect();
        Layout { stride: stride.max(licenses.len()), nodes: input.nodes.len(), limited, licenses }
    }
}

/// Use of one node by one job: a row of `stride` numbers at `at` in `Timeline::rows`.
#[derive(Clone, Copy)]
struct Use {
    node: u32,
    at: u32,
}

struct Release {
    end: i64,
    held: Use,
}

struct Reserved {
    start: i64,
    end: i64,
    at: u32,
}

/// Use of a node at the moment a planned start begins there, everything included.
struct Peak {
    start: i64,
    used: Vec<i64>,
}

pub(crate) struct Timeline {
    pub layout: Layout,
    pub now: i64,
    used: Vec<i64>,
    capacity: Vec<i64>,
    rows: Vec<i64>,
    releases: Vec<Release>,
    /// Positions in `releases` by node.
    on_node: Vec<Vec<u32>>,
    /// Positions in `releases` by end, as of the last `prepare`.
    by_end: Vec<u32>,
    reserved: Vec<Vec<Reserved>>,
    peaks: Vec<Vec<Peak>>,
    /// For each node, (position in `Input::running`, position in its allocation).
    pub holders: Vec<Vec<(u32, u32)>>,
}

fn amount(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Timeline {
    pub fn new(input: &Input) -> Timeline {
        let layout = Layout::new(input);
        let (stride, nodes) = (layout.stride, layout.nodes);
        let mut capacity = vec![0; (nodes + 1) * stride];
        for (node, row) in input.nodes.iter().zip(capacity.chunks_exact_mut(stride.max(1))) {
            row[CPUS] = i64::from(node.spec.cpus);
            row[MEMORY] = amount(node.spec.memory_mb);
            for (slot, gres) in row[GRES..].iter_mut().zip(&node.spec.gres) {
                *slot = amount(gres.count);
            }
            for (partition, slot) in input.partitions.iter().zip(&layout.limited) {
                if let (Some(slot), Some(max)) = (slot, partition.max_cpus_per_node) {
                    row[*slot] = i64::from(max);
                }
            }
        }
        for (name, slot) in &layout.licenses {
            capacity[nodes * stride + slot] = i64::from(input.licenses.get(name).copied().unwrap_or(0));
        }
        let mut timeline = Timeline {
            now: input.now.map_or(0, |t| t.0),
            used: vec![0; capacity.len()],
            capacity,
            rows: Vec::new(),
            releases: Vec::new(),
            on_node: vec![Vec::new(); nodes + 1],
            by_end: Vec::new(),
            reserved: (0..=nodes).map(|_| Vec::new()).collect(),
            peaks: (0..=nodes).map(|_| Vec::new()).collect(),
            holders: vec![Vec::new(); nodes],
            layout,
        };
        timeline.take_running(input);
        timeline
    }

    fn take_running(&mut self, input: &Input) {
        let mut by_name: Vec<(&str, u32)> = input.nodes.iter().map(|n| n.spec.name.as_str()).zip(0..).collect();
        by_name.sort_unstable();
        let mut row = vec![0; self.layout.stride];
        for (r, job) in input.running.iter().enumerate() {
            let end = job.planned_end(Time(self.now), input.policy.overrun);
            let end = end.map_or(NEVER, |t| t.0.max(self.now.saturating_add(SOON)));
            for (a, held) in job.allocation.nodes.iter().enumerate() {
                // A node that left the configuration holds nothing any more.
                let Ok(at) = by_name.binary_search_by_key(&held.node.as_str(), |n| n.0) else { continue };
                let node = by_name[at].1;
                self.holders[node as usize].push((r as u32, a as u32));
                row.fill(0);
                row[CPUS] = amount(held.cpus.len());
                row[MEMORY] = amount(held.memory_mb);
                row[JOBS] = 1;
                row[WHOLE] = i64::from(job.exclusive);
                for gres in &held.gres {
                    for (slot, (first, last)) in entries(&input.nodes[node as usize].spec, &gres.name) {
                        row[GRES + slot] += amount(members_between(&gres.indices, first, last));
                    }
                }
                if let Some(slot) = job.partition.and_then(|p| *self.layout.limited.get(p as usize)?) {
                    row[slot] = row[CPUS];
                }
                self.hold(node as usize, end, &row);
            }
            if !job.licenses.is_empty() {
                let row = self.license_row(&job.licenses);
                self.hold(self.layout.nodes, end, &row);
            }
        }
    }

    /// A row for the licence node.
    pub fn license_row(&self, licenses: &BTreeMap<String, u32>) -> Vec<i64> {
        let mut row = vec![0; self.layout.stride];
        for (name, count) in licenses {
            if let Some(slot) = self.layout.licenses.get(name) {
                row[*slot] = i64::from(*count);
            }
        }
        row
    }

    /// In use from now until `end`.
    pub fn hold(&mut self, node: usize, end: i64, row: &[i64]) {
        let at = self.store(row);
        for (used, more) in self.row_mut(node).iter_mut().zip(row) {
            *used += more;
        }
        for peak in &mut self.peaks[node] {
            if peak.start < end {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u += m);
            }
        }
        self.on_node[node].push(self.releases.len() as u32);
        self.releases.push(Release { end: end.min(NEVER), held: Use { node: node as u32, at } });
    }

    /// Planned from `start` (later than now) until `end`.
    pub fn reserve(&mut self, node: usize, start: i64, end: i64, row: &[i64]) {
        let at = self.store(row);
        for peak in &mut self.peaks[node] {
            if start <= peak.start && peak.start < end {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u += m);
            }
        }
        self.reserved[node].push(Reserved { start, end, at });
        if self.peaks[node].iter().all(|p| p.start != start) {
            let used = self.used_at(node, start);
            self.peaks[node].push(Peak { start, used });
        }
    }

    /// Takes a planned start back: what was reserved from `start` to `end` with this row.
    pub fn unreserve(&mut self, node: usize, start: i64, end: i64, row: &[i64]) {
        let same = |r: &Reserved| r.start == start && r.end == end && self.stored(r.at) == row;
        let found = self.reserved[node].iter().position(same);
        let Some(found) = found else { return };
        self.reserved[node].remove(found);
        for peak in &mut self.peaks[node] {
            if start <= peak.start && peak.start < end {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u -= m);
            }
        }
        let reserved = &self.reserved[node];
        self.peaks[node].retain(|p| reserved.iter().any(|r| r.start == p.start));
    }

    /// Free at every moment from now until `until`: the least of each quantity. False when nothing of use is free.
    pub fn window(&self, node: usize, until: i64, free: &mut [i64]) -> bool {
        let used = self.row(node);
        let capacity = self.capacity(node);
        for ((f, c), u) in free.iter_mut().zip(capacity).zip(used) {
            *f = c - u;
        }
        for peak in &self.peaks[node] {
            if peak.start < until {
                lower(free, capacity, &peak.used);
            }
        }
        free[CPUS] > 0
    }

    /// Planned starts on these nodes inside a window: where a shorter job might still fit before. Ascending, distinct.
    pub fn starts_between(&self, from: i64, until: i64) -> Vec<i64> {
        let mut all: Vec<i64> =
            self.peaks.iter().flatten().map(|p| p.start).filter(|s| (from..until).contains(s)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn used_at(&self, node: usize, at: i64) -> Vec<i64> {
        let mut used = self.row(node).to_vec();
        for release in self.on_node[node].iter().map(|r| &self.releases[*r as usize]).filter(|r| r.end <= at) {
            used.iter_mut().zip(self.stored(release.held.at)).for_each(|(u, r)| *u -= r);
        }
        for reserved in self.reserved[node].iter().filter(|r| r.start <= at && at < r.end) {
            used.iter_mut().zip(self.stored(reserved.at)).for_each(|(u, r)| *u += r);
        }
        used
    }

    /// To be called before `sweep`, after the last `hold`.
    pub fn prepare(&mut self) {
        let (sorted, all) = (self.by_end.len(), self.releases.len());
        if sorted < all {
            self.by_end.extend(sorted as u32..all as u32);
            let releases = &self.releases;
            // Long sorted runs: cheap after the first time.
            self.by_end.sort_by_key(|r| releases[*r as usize].end);
        }
    }

    /// Walks through the future in the order of events. See `Sweep`.
    pub fn sweep(&self, duration: i64) -> Sweep<'_> {
        let mut marks = Vec::new();
        for (node, reserved) in self.reserved.iter().enumerate() {
            for r in reserved {
                // From this moment on the window of a job of `duration` reaches into the planned one.
                let reach = r.start.saturating_sub(duration).saturating_add(1).max(self.now);
                marks.extend([(reach, node as u32), (r.start, node as u32)]);
                if r.end <= NEVER {
                    marks.push((r.end, node as u32));
                }
            }
        }
        marks.sort_unstable();
        Sweep { base: self.used.clone(), timeline: self, at: 0, marks, mark: 0, duration, seen: 0 }
    }

    pub fn capacity(&self, node: usize) -> &[i64] {
        &self.capacity[node * self.layout.stride..][..self.layout.stride]
    }
    fn row(&self, node: usize) -> &[i64] {
        &self.used[node * self.layout.stride..][..self.layout.stride]
    }
    fn row_mut(&mut self, node: usize) -> &mut [i64] {
        let stride = self.layout.stride;
        &mut self.used[node * stride..][..stride]
    }
    fn stored(&self, at: u32) -> &[i64] {
        &self.rows[at as usize * self.layout.stride..][..self.layout.stride]
    }
    fn store(&mut self, row: &[i64]) -> u32 {
        let at = self.rows.len() / self.layout.stride;
        self.rows.extend_from_slice(row);
        at as u32
    }
}

/// `free` becomes the least of itself and what `used` leaves.
fn lower(free: &mut [i64], capacity: &[i64], used: &[i64]) {
    for ((f, c), u) in free.iter_mut().zip(capacity).zip(used) {
        *f = (*f).min(c - u);
    }
}

/// The future, one moment after the other. Each step says which nodes may have changed for a job of the given duration
/// that starts at that moment.
pub(crate) struct Sweep<'a> {
    timeline: &'a Timeline,
    /// Use with all ends up to the present moment taken off, planned starts left out.
    base: Vec<i64>,
    at: usize,
    marks: Vec<(i64, u32)>,
    mark: usize,
    duration: i64,
    /// Events looked at.
    pub seen: u64,
}

impl Sweep<'_> {
    /// The next moment at which anything changes; fills `touched` with nodes, possibly repeated.
    pub fn next(&mut self, touched: &mut Vec<u32>) -> Option<i64> {
        let timeline = self.timeline;
        touched.clear();
        let next_release = |at: usize| timeline.by_end.get(at).map(|r| &timeline.releases[*r as usize]);
        let release = next_release(self.at).map(|r| r.end);
        let mark = self.marks.get(self.mark).map(|m| m.0);
        let time = match (release, mark) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let stride = self.timeline.layout.stride;
        while let Some(r) = next_release(self.at).filter(|r| r.end <= time) {
            let row = self.timeline.stored(r.held.at);
            self.base[r.held.node as usize * stride..][..stride].iter_mut().zip(row).for_each(|(u, r)| *u -= r);
            touched.push(r.held.node);
            self.at += 1;
            self.seen += 1;
        }
        while let Some(m) = self.marks.get(self.mark).filter(|m| m.0 <= time) {
            touched.push(m.1);
            self.mark += 1;
            self.seen += 1;
        }
        Some(time)
    }

    /// Free from `time` (where the sweep stands) for the duration.
    pub fn window(&self, node: usize, time: i64, free: &mut [i64]) -> bool {
        let (timeline, stride) = (self.timeline, self.timeline.layout.stride);
        let capacity = timeline.capacity(node);
        let base = &self.base[node * stride..][..stride];
        for ((f, c), u) in free.iter_mut().zip(capacity).zip(base) {
            *f = c - u;
        }
        for r in timeline.reserved[node].iter().filter(|r| r.start <= time && time < r.end) {
            free.iter_mut().zip(timeline.stored(r.at)).for_each(|(f, r)| *f -= r);
        }
        let until = time.saturating_add(self.duration);
        for peak in timeline.peaks[node].iter().filter(|p| time < p.start && p.start < until) {
            lower(free, capacity, &peak.used);
        }
        free[CPUS] > 0
    }
}

/// GRES entries of one name on a node: their position and the device numbers (first, last) they stand for. Devices are
/// numbered across the entries of a name in the order of the configuration (`gpu:a100:2,gpu:v100:2`: 0-1 and 2-3).
pub(crate) fn entries<'a>(spec: &'a NodeSpec, name: &'a str) -> impl Iterator<Item = (usize, (u64, u64))> + 'a {
    let mut next = 0u64;
    spec.gres.iter().enumerate().filter(move |(_, g)| g.name == name && g.count > 0).map(move |(i, g)| {
        let first = next;
        next = next.saturating_add(g.count);
        (i, (first, next - 1))
    })
}

fn members_between(set: &sluice_model::index_set::IndexSet, first: u64, last: u64) -> u64 {
    set.ranges()
        .map(|(a, b, step)| {
            let (a, b, step) = (u64::from(a), u64::from(b), u64::from(step.max(1)));
            let a = if a >= first { a } else { a + (first - a).div_ceil(step) * step };
            let b = b.min(last);
            if a > b { 0 } else { (b - a) / step + 1 }
        })
        .sum()
}
