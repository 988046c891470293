//! The future, one moment after the other.
//!
//! Owns the walk through ends and planned starts. Costs what it looks at: a node's use is copied when it first changes.

use super::rows::lower;
use super::{CPUS, NEVER, SOON, Timeline};
use crate::cluster::Cluster;
use std::collections::btree_set;
use std::iter::Peekable;

/// Each step says which nodes may have changed for a job of the given duration that starts at that moment.
pub(crate) struct Sweep<'a> {
    timeline: &'a Timeline,
    cluster: &'a Cluster,
    /// By kind of node: worth a look.
    wanted: Vec<bool>,
    releases: Peekable<btree_set::Iter<'a, (i64, u32)>>,
    /// Use with all ends up to the present moment taken off, planned starts left out: rows of nodes that changed.
    changed: Vec<i64>,
    /// By node: its row in `changed`, plus one.
    place: Vec<u32>,
    marks: Vec<(i64, u32)>,
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
                marks.extend([(reach, node), (r.start, node)]);
                if r.end <= NEVER {
                    marks.push((r.end, node));
                }
            }
        }
        marks.sort_unstable();
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
    fn is_wanted(&self, node: u32) -> bool {
        self.cluster.kinds.of.get(node as usize).is_none_or(|k| self.wanted[*k as usize])
    }

    /// The next moment at which anything changes; fills `touched` with nodes, possibly repeated.
    pub fn next(&mut self, touched: &mut Vec<u32>) -> Option<i64> {
        touched.clear();
        let soon = self.timeline.now.saturating_add(SOON);
        let release = self.releases.peek().map(|r| r.0.max(soon));
        let mark = self.marks.get(self.mark).map(|m| m.0);
        let time = match (release, mark) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let stride = self.timeline.layout.stride;
        while let Some((_, run)) = self.releases.next_if(|r| r.0.max(soon) <= time) {
            self.seen += 1;
            for part in &self.timeline.runs[*run as usize].parts {
                if !self.is_wanted(part.node) {
                    continue;
                }
                let place = &mut self.place[part.node as usize];
                if *place == 0 {
                    self.changed.extend_from_slice(self.timeline.row(part.node as usize));
                    *place = (self.changed.len() / stride) as u32;
                }
                let base = &mut self.changed[(*place as usize - 1) * stride..][..stride];
                base.iter_mut().zip(self.timeline.rows.get(part.row)).for_each(|(u, r)| *u -= r);
                touched.push(part.node);
            }
        }
        while let Some(m) = self.marks.get(self.mark).filter(|m| m.0 <= time) {
            if self.is_wanted(m.1) {
                touched.push(m.1);
            }
            self.mark += 1;
            self.seen += 1;
        }
        Some(time)
    }

    /// Free from `time` (where the sweep stands) for the duration.
    pub fn window(&self, node: usize, time: i64, free: &mut [i64]) -> bool {
        let (timeline, stride) = (self.timeline, self.timeline.layout.stride);
        let capacity = timeline.capacity(node);
        let base = match self.place[node] {
            0 => timeline.row(node),
            at => &self.changed[(at as usize - 1) * stride..][..stride],
        };
        for ((f, c), u) in free.iter_mut().zip(capacity).zip(base) {
            *f = c - u;
        }
        for r in timeline.plans.reserved(node).iter().filter(|r| r.start <= time && time < r.end) {
            free.iter_mut().zip(&r.row).for_each(|(f, r)| *f -= r);
        }
        let until = time.saturating_add(self.duration);
        for peak in timeline.plans.peaks(node).iter().take_while(|p| p.start < until).filter(|p| time < p.start) {
            lower(free, capacity, &peak.used);
        }
        free[CPUS] > 0 && timeline.takes_jobs(self.cluster, node)
    }
}
