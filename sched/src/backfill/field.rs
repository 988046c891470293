//! Whether a job would fit on some nodes if certain victims were gone.
//!
//! Owns the arithmetic: what is free on each node now and at each planned start, and what each victim gives back there. Promises
//! that a place found holds around all planned starts, by the same code that places jobs otherwise. Must not choose victims.

use crate::cluster::Cluster;
use crate::placement::{self, Candidate, Extent, Share};
use crate::shape::Shape;
use crate::timeline::{CPUS, GRES, MEMORY, Timeline};
use sluice_model::config::Mode;
use std::collections::BTreeMap;

/// Somebody who may have to go.
#[derive(Clone, Debug)]
struct Prey {
    /// When it would end otherwise.
    end: i64,
}

struct Site {
    node: u32,
    /// Free from a moment on: now (`i64::MIN`), then at each planned start.
    levels: Vec<(i64, Vec<i64>)>,
    /// Who gives back what.
    gives: Vec<(usize, Vec<i64>)>,
}

pub(super) struct Field<'a> {
    cluster: &'a Cluster,
    pub shape: &'a Shape,
    prey: Vec<Prey>,
    sites: Vec<Site>,
    /// Licences, where the job wants some.
    licenses: Option<Site>,
    stride: usize,
}

/// A stopped job keeps its memory and devices.
fn given(timeline: &Timeline, mode: Mode, is_node: bool, row: &[i64]) -> Vec<i64> {
    let mut row = row.to_vec();
    if mode == Mode::Suspend {
        if !is_node {
            row.fill(0);
            return row;
        }
        row[MEMORY] = 0;
        let end = timeline.layout.limited.iter().flatten().copied().min().unwrap_or(row.len()).min(row.len());
        row[GRES..end].fill(0);
    }
    row
}

impl<'a> Field<'a> {
    /// These nodes (those of them that the shape can use) until `until`, and these victims.
    pub fn new(
        cluster: &'a Cluster,
        timeline: &Timeline,
        shape: &'a Shape,
        nodes: impl Iterator<Item = u32>,
        prey: impl Iterator<Item = (u32, Mode)>,
        until: i64,
    ) -> Field<'a> {
        let site = |node: u32| Site { node, levels: timeline.levels(node as usize, until), gives: Vec::new() };
        let mut field = Field {
            cluster,
            shape,
            prey: Vec::new(),
            sites: nodes.filter(|n| shape.admits(cluster, *n)).map(site).collect(),
            licenses: shape.licenses.as_ref().map(|_| site(timeline.license_node() as u32)),
            stride: timeline.layout.stride,
        };
        let place: BTreeMap<u32, usize> = field.sites.iter().map(|s| s.node).zip(0..).collect();
        for (run, mode) in prey {
            let at = field.prey.len();
            field.prey.push(Prey { end: timeline.end_of(run) });
            for (node, row) in timeline.parts(run) {
                let is_node = (node as usize) < timeline.layout.nodes;
                let site = match place.get(&node) {
                    Some(site) => Some(&mut field.sites[*site]),
                    None if !is_node => field.licenses.as_mut(),
                    None => None,
                };
                if let Some(site) = site {
                    site.gives.push((at, given(timeline, mode, is_node, row)));
                }
            }
        }
        field
    }

    pub fn len(&self) -> usize {
        self.sites.len()
    }
    pub fn node(&self, site: usize) -> u32 {
        self.sites[site].node
    }
    /// The victims on a site, and those that hold licences.
    pub fn on(&self, site: usize) -> Vec<usize> {
        let mut all: Vec<usize> = self.sites[site].gives.iter().map(|g| g.0).collect();
        all.extend(self.licenses.iter().flat_map(|l| &l.gives).map(|g| g.0));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What is free all the time without these victims.
    fn free(&self, site: &Site, gone: &[bool], out: &mut Vec<i64>) {
        out.clear();
        out.resize(self.stride, i64::MAX);
        let mut level = vec![0; self.stride];
        for (start, free) in &site.levels {
            level.copy_from_slice(free);
            for (prey, row) in &site.gives {
                if gone[*prey] && self.prey[*prey].end > *start {
                    level.iter_mut().zip(row).for_each(|(l, r)| *l += r);
                }
            }
            out.iter_mut().zip(&level).for_each(|(o, l)| *o = (*o).min(*l));
        }
    }

    pub fn licensed(&self, gone: &[bool]) -> bool {
        let (Some(need), Some(site)) = (&self.shape.licenses, &self.licenses) else { return true };
        let mut free = Vec::new();
        self.free(site, gone, &mut free);
        need.iter().zip(&free).all(|(need, have)| need <= have)
    }

    /// The whole job on this one node.
    pub fn alone(&self, site: usize, gone: &[bool]) -> Option<(Vec<Share>, Vec<Vec<i64>>)> {
        let site = &self.sites[site];
        let (mut free, mut row) = (Vec::new(), Vec::new());
        self.free(site, gone, &mut free);
        let tasks = self.shape.tasks_alone();
        let fits = self.cluster.nodes[site.node as usize].available
            && placement::take(self.shape, self.cluster.spec(site.node), &free, tasks, &[], &mut row)
            && self.licensed(gone);
        fits.then(|| (vec![Share { node: site.node, tasks, job_gres: Vec::new() }], vec![row]))
    }

    /// Something of the job on this node.
    pub fn shares(&self, site: usize, gone: &[bool]) -> bool {
        self.candidate(&self.sites[site], gone).is_some()
    }

    fn candidate(&self, site: &Site, gone: &[bool]) -> Option<Candidate> {
        let (mut free, mut scratch) = (Vec::new(), Vec::new());
        self.free(site, gone, &mut free);
        if free[CPUS] <= 0 || !self.cluster.nodes[site.node as usize].available {
            return None;
        }
        let spec = self.cluster.spec(site.node);
        let capacity = placement::capacity(self.shape, spec, &free, &mut scratch)?;
        Some(Candidate::new(self.shape, site.node, spec, &free, capacity))
    }

    /// The job on any of these sites.
    pub fn place(&self, sites: &[usize], gone: &[bool]) -> Option<(Vec<Share>, Vec<Vec<i64>>)> {
        if !self.licensed(gone) {
            return None;
        }
        let mut pool: Vec<Candidate> = sites.iter().filter_map(|s| self.candidate(&self.sites[*s], gone)).collect();
        pool.sort_unstable_by_key(|c| c.node);
        let shares = placement::select(self.shape, pool, Extent::Least)?;
        let mut free = Vec::new();
        let mut rows = Vec::with_capacity(shares.len());
        for share in &shares {
            let site = sites.iter().map(|s| &self.sites[*s]).find(|s| s.node == share.node)?;
            self.free(site, gone, &mut free);
            let mut row = Vec::new();
            let spec = self.cluster.spec(share.node);
            if !placement::take(self.shape, spec, &free, share.tasks, &share.job_gres, &mut row) {
                return None;
            }
            rows.push(row);
        }
        Some((shares, rows))
    }
}
