//! The future, one moment after the other.
//!
//! Owns the walk through ends and planned starts. Costs what it looks at: a node's use is copied when it first changes.

use super::rows::lower;
use super::{CPUS, MEMORY, NEVER, SOON, Timeline};
use crate::cluster::Cluster;
use crate::vacancy::Need;
use std::collections::btree_set;
use std::iter::Peekable;

/// A planned start begins, ends, or comes within reach of a job that starts now.
struct Mark<'a> {
    time: i64,
    node: u32,
    /// What is used more from now on, and with which sign.
    change: Option<(i64, &'a [i64])>,
}

/// Each step says which nodes may have changed for a job of the given duration that starts at that moment.
pub(crate) struct Sweep<'a> {
    timeline: &'a Timeline,
    cluster: &'a Cluster,
    /// By kind of node: worth a look.
    wanted: Vec<bool>,
    releases: Peekable<btree_set::Iter<'a, (i64, u32)>>,
    /// Use at the present moment: rows of nodes that changed.
    changed: Vec<i64>,
    /// By node: its row in `changed`, plus one.
    place: Vec<u32>,
    marks: Vec<Mark<'a>>,
    mark: usize,
    duration: i64,
    /// Events looked at.
    pub seen: u64,
}

impl Timeline {
    /// Walks through the future of nodes of these kinds.
    pub fn sweep<'a>(&'a self, cluster: &'a Cluster, kinds: &[u32], duration: i64) -> Sweep<'a> {
        let mut wanted = vec![false; cluster.kinds.all.len()];
        kinds.iter().for_each(|k| wanted[*k as usize] = true);
        let mut marks = Vec::new();
        for (node, reserved) in self.plans.all() {
            for r in reserved {
                // From this moment on the window of a job of `duration` reaches into the planned one.
                let reach = r.start.saturating_sub(duration).saturating_add(1).max(self.now);
                marks.push(Mark { time: reach, node, change: None });
                marks.push(Mark { time: r.start, node, change: Some((1, &r.row[..])) });
                if r.end <= NEVER {
                    marks.push(Mark { time: r.end, node, change: Some((-1, &r.row[..])) });
                }
            }
        }
        marks.sort_unstable_by_key(|m| m.time);
        Sweep {
            timeline: self,
            cluster,
            wanted,
            releases: self.by_end.iter().peekable(),
            changed: Vec::new(),
            place: vec![0; self.layout.nodes + 1],
            marks,
            mark: 0,
            duration,
            seen: 0,
        }
    }
}

impl Sweep<'_> {
    /// The row of a node's use, to be changed.
    fn base(&mut self, node: u32) -> &mut [i64] {
        let stride = self.timeline.layout.stride;
        let place = &mut self.place[node as usize];
        if *place == 0 {
            self.changed.extend_from_slice(self.timeline.row(node as usize));
            *place = (self.changed.len() / stride) as u32;
        }
        &mut self.changed[(*place as usize - 1) * stride..][..stride]
    }

    fn is_wanted(&self, node: u32) -> bool {
        self.cluster.kinds.of.get(node as usize).is_none_or(|k| self.wanted[*k as usize])
    }

    /// The next moment at which anything changes; fills `touched` with nodes, possibly repeated.
    pub fn next(&mut self, touched: &mut Vec<u32>) -> Option<i64> {
        touched.clear();
        let soon = self.timeline.now.saturating_add(SOON);
        let release = self.releases.peek().map(|r| r.0.max(soon));
        let mark = self.marks.get(self.mark).map(|m| m.time);
        let time = match (release, mark) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let timeline = self.timeline;
        while let Some((_, run)) = self.releases.next_if(|r| r.0.max(soon) <= time) {
            self.seen += 1;
            for part in &timeline.runs[*run as usize].parts {
                if self.is_wanted(part.node) {
                    let row = timeline.rows.get(part.row);
                    self.base(part.node).iter_mut().zip(row).for_each(|(u, r)| *u -= r);
                    touched.push(part.node);
                }
            }
        }
        while let Some(Mark { node, change, .. }) = self.marks.get(self.mark).filter(|m| m.time <= time) {
            let (node, change) = (*node, *change);
            if self.is_wanted(node) {
                if let Some((sign, row)) = change {
                    self.base(node).iter_mut().zip(row).for_each(|(u, r)| *u += sign * r);
                }
                touched.push(node);
            }
            self.mark += 1;
            self.seen += 1;
        }
        Some(time)
    }

    /// Free from `time` (where the sweep stands) for the duration. False when it can't be enough for `need`.
    pub fn window(&self, node: usize, time: i64, need: Need, free: &mut [i64]) -> Result<(), Blocked> {
        let (timeline, stride) = (self.timeline, self.timeline.layout.stride);
        let capacity = timeline.capacity(node);
        let base = match self.place[node] {
            0 => timeline.row(node),
            at => &self.changed[(at as usize - 1) * stride..][..stride],
        };
        for ((f, c), u) in free.iter_mut().zip(capacity).zip(base) {
            *f = c - u;
        }
        let cpus = i64::from(need.cpus.max(1));
        let is_node = node < timeline.layout.nodes;
        if is_node && (free[CPUS] < cpus || free[MEMORY] < need.memory || !timeline.takes_jobs(self.cluster, node)) {
            return Err(Blocked::Now);
        }
        let until = time.saturating_add(self.duration);
        let peaks = timeline.plans.peaks(node);
        let within = &peaks[peaks.partition_point(|p| p.start <= time)..];
        let within = &within[..within.partition_point(|p| p.start < until)];
        for peak in within.iter().rev() {
            lower(free, capacity, &peak.used);
            if is_node && (free[CPUS] < cpus || free[MEMORY] < need.memory) {
                // Whatever starts before this one would reach into it.
                return Err(Blocked::Until(peak.start));
            }
        }
        Ok(())
    }
}

/// Why a node is not enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocked {
    Now,
    /// And will not be before this moment.
    Until(i64),
}
