//! Nodes that are near each other: the lowest switch, or the fewest blocks, that has room for the job.
//!
//! Owns the choice of a part of the topology. A job goes into the lowest group of nodes that suffices, of those into the
//! one with the fewest nodes that fit (best fit: larger ones stay whole); inside, into few leaves: the smallest leaf that
//! completes it, else the largest. Where no group suffices, nodes are taken wherever they are, unless `--switches` forbids
//! it. With blocks, each block gives whole segments (`--segment`, else as many nodes as lie in one block).
//!
//! Promises that a limit on switches and the rule of segments hold for what it gives. A choice of leaves that would do may
//! escape it where both tasks and nodes are scarce: it takes the largest leaves first, by nodes and then by tasks.

use super::{Candidate, Extent, Share, gather_best};
use crate::shape::Shape;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// What leaves are compared by.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Nodes,
    Tasks,
}

/// What a job asks of the topology.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    pub topology: std::sync::Arc<Topology>,
    /// Leaf switches, at most.
    pub switches: Option<u32>,
    /// Nodes of a segment, with blocks.
    pub segment: Option<u32>,
}

pub(super) fn select(
    shape: &Shape,
    near: &Near,
    pool: &[Candidate],
    extent: Extent,
    counts: &[(u64, u32)],
) -> Option<Vec<Share>> {
    let enough = |set: &Vec<&Candidate>| {
        let tasks = set.iter().map(|c| u64::from(c.tasks())).sum::<u64>();
        set.len() >= shape.demand.min_nodes as usize && tasks >= u64::from(shape.demand.least_tasks())
    };
    for group_of in &near.topology.at_level {
        let mut sets: BTreeMap<u32, Vec<&Candidate>> = BTreeMap::new();
        for candidate in pool {
            if let Some(group) = group_of.get(candidate.node as usize).copied().flatten() {
                sets.entry(group).or_default().push(candidate);
            }
        }
        let mut sets: Vec<Vec<&Candidate>> = sets.into_values().filter(enough).collect();
        sets.sort_by_key(Vec::len);
        if let Some(found) = sets.iter().find_map(|set| inside(shape, near, set, extent, counts)) {
            return Some(found);
        }
    }
    inside(shape, near, &pool.iter().collect::<Vec<_>>(), extent, counts)
}

/// Chooses among nodes of one group: few leaves.
fn inside(shape: &Shape, near: &Near, set: &[&Candidate], extent: Extent, counts: &[(u64, u32)]) -> Option<Vec<Share>> {
    let mut leaves: Vec<Vec<&Candidate>> = Vec::new();
    let mut sorted = set.to_vec();
    let leaf = |c: &Candidate| near.topology.leaf(c.node);
    sorted.sort_by_key(|c| (leaf(c).is_none(), leaf(c), c.node));
    // A node on no leaf is one of its own.
    for part in sorted.chunk_by(|a, b| leaf(a).is_some() && leaf(a) == leaf(b)) {
        leaves.push(part.to_vec());
    }
    if near.segment.is_some() {
        return segments(shape, near, &leaves, counts);
    }
    let most = near.switches.map_or(usize::MAX, |n| n as usize);
    let whole = |leaves: &[&Vec<&Candidate>]| -> Vec<Candidate> {
        leaves.iter().flat_map(|l| l.iter()).map(|c| (*c).clone()).collect()
    };
    let attempt = |by: By| {
        let size = |leaf: &&Vec<&Candidate>| match by {
            By::Nodes => leaf.len() as u64,
            By::Tasks => leaf.iter().map(|c| u64::from(c.tasks())).sum(),
        };
        // Those with nodes that must be used come first.
        let must = |leaf: &Vec<&Candidate>| leaf.iter().any(|c| shape.required.binary_search(&c.node).is_ok());
        let (mut chosen, mut rest): (Vec<_>, Vec<_>) = leaves.iter().partition(|l| must(l));
        rest.sort_by_key(|l| std::cmp::Reverse(size(l)));
        loop {
            if chosen.len() > most {
                return None;
            }
            // The smallest that completes it.
            if chosen.len() < most {
                for last in rest.iter().rev() {
                    let enough = chosen.iter().map(&size).sum::<u64>() + size(last) >= least(shape, by);
                    if !enough {
                        continue;
                    }
                    let mut all = chosen.clone();
                    all.push(last);
                    if let Some(found) = gather_best(shape, whole(&all), extent, counts) {
                        return Some(found);
                    }
                }
            }
            if !chosen.is_empty()
                && let Some(found) = gather_best(shape, whole(&chosen), extent, counts)
            {
                return Some(found);
            }
            if rest.is_empty() {
                return None;
            }
            chosen.push(rest.remove(0));
        }
    };
    let by_tasks = matches!(shape.demand.tasks, crate::demand::Tasks::Total { .. });
    attempt(By::Nodes).or_else(|| if by_tasks { attempt(By::Tasks) } else { None })
}

fn least(shape: &Shape, by: By) -> u64 {
    match by {
        By::Nodes => u64::from(shape.demand.min_nodes),
        By::Tasks => u64::from(shape.demand.least_tasks()),
    }
}

/// As many whole segments of each block as the job needs in all.
fn segments(shape: &Shape, near: &Near, blocks: &[Vec<&Candidate>], counts: &[(u64, u32)]) -> Option<Vec<Share>> {
    let nodes = shape.demand.min_nodes as usize;
    let segment = (near.segment.unwrap_or(1).max(1) as usize).min(nodes);
    let mut order: Vec<&Vec<&Candidate>> = blocks.iter().collect();
    order.sort_by_key(|b| std::cmp::Reverse(b.len() / segment));
    let mut left = nodes / segment;
    let mut chosen: Vec<(&Vec<&Candidate>, usize)> = Vec::new();
    while left > 0 {
        // The smallest block that completes it, else the largest.
        let open = || order.iter().filter(|b| !chosen.iter().any(|(c, _)| std::ptr::eq(*c, **b)));
        let next = open().rev().find(|b| b.len() / segment >= left).or_else(|| open().next())?;
        let take = (next.len() / segment).min(left);
        if take == 0 {
            return None;
        }
        chosen.push((next, take * segment));
        left -= take;
    }
    let must = |c: &Candidate| shape.required.binary_search(&c.node).is_err();
    let picked = |largest: bool| {
        let mut pool: Vec<Candidate> = Vec::new();
        for (block, take) in &chosen {
            let mut best: Vec<&Candidate> = block.to_vec();
            best.sort_by_key(|c| (must(c), if largest { u32::MAX - c.tasks() } else { 0 }, c.key()));
            pool.extend(best.into_iter().take(*take).cloned());
        }
        gather_best(shape, pool, Extent::Least, counts)
    };
    picked(false).or_else(|| picked(true))
}
