//! Planned starts: what is reserved for whom, from when to when.
//!
//! Owns the reservations of one pass, by node, and for each moment at which one begins the use of its node then,
//! everything included ("peak").

use super::Timeline;
use super::rows::lower;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct Reserved {
    pub start: i64,
    pub end: i64,
    pub row: Vec<i64>,
}

/// Use of a node at the moment a planned start begins there, everything included.
#[derive(Clone, Debug)]
pub(super) struct Peak {
    pub start: i64,
    pub used: Vec<i64>,
}

#[derive(Clone, Debug, Default)]
struct OnNode {
    reserved: Vec<Reserved>,
    /// Ascending by start.
    peaks: Vec<Peak>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Plans {
    /// By node; None where nothing was ever planned in this pass.
    place: Vec<Option<u32>>,
    on: Vec<(u32, OnNode)>,
    /// Starts of all, with how many nodes have a peak there.
    starts: BTreeMap<i64, u32>,
}

impl Plans {
    pub fn new(nodes: usize) -> Plans {
        Plans { place: vec![None; nodes], on: Vec::new(), starts: BTreeMap::new() }
    }
    fn at(&self, node: usize) -> Option<&OnNode> {
        self.place[node].map(|at| &self.on[at as usize].1)
    }
    pub fn reserved(&self, node: usize) -> &[Reserved] {
        self.at(node).map_or(&[], |on| &on.reserved)
    }
    pub fn peaks(&self, node: usize) -> &[Peak] {
        self.at(node).map_or(&[], |on| &on.peaks)
    }
    /// (node, what is reserved there)
    pub fn all(&self) -> impl Iterator<Item = (u32, &[Reserved])> {
        self.on.iter().map(|(node, on)| (*node, &on.reserved[..]))
    }

    /// More is in use from now until `until`.
    pub fn hold(&mut self, node: usize, until: i64, row: &[i64]) {
        if let Some(at) = self.place[node] {
            for peak in self.on[at as usize].1.peaks.iter_mut().take_while(|p| p.start < until) {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u += m);
            }
        }
    }

    /// What was counted until `until` is not.
    pub fn release(&mut self, node: usize, until: i64, row: &[i64]) {
        if let Some(at) = self.place[node] {
            for peak in self.on[at as usize].1.peaks.iter_mut().take_while(|p| p.start < until) {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u -= m);
            }
        }
    }

    /// `free` is lowered to what every peak before `until` leaves.
    pub fn lower_until(&self, node: usize, until: i64, capacity: &[i64], free: &mut [i64]) {
        if let Some(at) = self.place[node] {
            for peak in self.on[at as usize].1.peaks.iter().take_while(|p| p.start < until) {
                lower(free, capacity, &peak.used);
            }
        }
    }
}

impl Timeline {
    /// Planned from `start` (later than now) until `end`.
    pub fn reserve(&mut self, node: usize, start: i64, end: i64, row: &[i64]) {
        let used = self.plans.peaks(node).iter().all(|p| p.start != start).then(|| self.used_at(node, start));
        let plans = &mut self.plans;
        let at = *plans.place[node].get_or_insert_with(|| {
            plans.on.push((node as u32, OnNode::default()));
            (plans.on.len() - 1) as u32
        });
        let on = &mut plans.on[at as usize].1;
        if let Some(used) = used {
            let place = on.peaks.partition_point(|p| p.start < start);
            on.peaks.insert(place, Peak { start, used });
            *plans.starts.entry(start).or_default() += 1;
        }
        let first = on.peaks.partition_point(|p| p.start < start);
        for peak in on.peaks[first..].iter_mut().take_while(|p| p.start < end) {
            peak.used.iter_mut().zip(row).for_each(|(u, m)| *u += m);
        }
        on.reserved.push(Reserved { start, end, row: row.to_vec() });
    }

    /// Takes a planned start back: what was reserved from `start` to `end` with this row.
    pub fn unreserve(&mut self, node: usize, start: i64, end: i64, row: &[i64]) {
        let Some(at) = self.plans.place[node] else { return };
        let on = &mut self.plans.on[at as usize].1;
        let same = |r: &Reserved| r.start == start && r.end == end && r.row == row;
        let Some(found) = on.reserved.iter().position(same) else { return };
        on.reserved.swap_remove(found);
        for peak in &mut on.peaks {
            if start <= peak.start && peak.start < end {
                peak.used.iter_mut().zip(row).for_each(|(u, m)| *u -= m);
            }
        }
        if on.reserved.iter().all(|r| r.start != start) {
            on.peaks.retain(|p| p.start != start);
            let left = self.plans.starts.entry(start).or_default();
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.plans.starts.remove(&start);
            }
        }
    }

    /// Something is planned on this node.
    pub fn is_planned(&self, node: usize) -> bool {
        self.plans.place[node].is_some()
    }

    /// Forgets all planned starts.
    pub fn clear_plans(&mut self) {
        for (node, _) in self.plans.on.drain(..) {
            self.plans.place[node as usize] = None;
        }
        self.plans.starts.clear();
    }

    /// The last planned start before `until`: windows that end after it, and not after a later one, are equal.
    pub fn last_start_before(&self, until: i64) -> Option<i64> {
        self.plans.starts.range(..until).next_back().map(|s| *s.0)
    }

    /// Planned starts inside a window: where a shorter job might still fit before. Ascending.
    pub fn starts_between(&self, from: i64, until: i64) -> Vec<i64> {
        if from >= until { Vec::new() } else { self.plans.starts.range(from..until).map(|s| *s.0).collect() }
    }

    fn used_at(&self, node: usize, at: i64) -> Vec<i64> {
        let mut used = self.row(node).to_vec();
        let soon = self.now.saturating_add(super::SOON);
        for (run, part) in &self.on_node[node] {
            let run = &self.runs[*run as usize];
            if run.end.max(soon) <= at {
                let row = self.rows.get(run.parts[*part as usize].row);
                used.iter_mut().zip(row).for_each(|(u, r)| *u -= r);
            }
        }
        for reserved in self.plans.reserved(node).iter().filter(|r| r.start <= at && at < r.end) {
            used.iter_mut().zip(&reserved.row).for_each(|(u, r)| *u += r);
        }
        used
    }
}
