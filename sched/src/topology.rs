//! How nodes are joined: a tree of switches, or blocks.
//!
//! Owns the sets of nodes that belong together, from small to large, by position. Promises that sets of one level share no
//! node and that each lies whole in one of a higher level, or in none. Must not know what is free.

use sluice_model::NodeName;
use sluice_model::config::TopologyConfig;
use std::collections::BTreeMap;

/// A leaf of the tree, or a block, is of level 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    pub name: String,
    pub level: u32,
    /// Ascending.
    pub nodes: Vec<u32>,
    /// Names of what it is made of; empty for a leaf.
    pub parts: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    /// By level, then in the configuration's order.
    pub groups: Vec<Group>,
    /// By level and node: its group of that level, a position in `groups`.
    pub at_level: Vec<Vec<Option<u32>>>,
    /// Blocks, not switches.
    pub blocks: bool,
    /// Nodes of a job that lie in one block unless it says otherwise: the first of the block sizes. 0 for a tree.
    pub block_size: u32,
}

impl Topology {
    /// `position`: of a node that there is. None where nothing is said.
    pub fn new(config: &TopologyConfig, nodes: usize, position: impl Fn(&NodeName) -> Option<u32>) -> Option<Topology> {
        let place = |names: &[NodeName]| -> Vec<u32> {
            let mut all: Vec<u32> = names.iter().filter_map(&position).filter(|n| (*n as usize) < nodes).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let blocks = !config.blocks.is_empty();
        let mut groups = if blocks { joined_blocks(config, place) } else { tree(config, place) };
        groups.sort_by_key(|g| g.level);
        let levels = groups.last().map_or(0, |g| g.level as usize + 1);
        let mut at_level = vec![vec![None; nodes]; levels];
        for (at, group) in groups.iter().enumerate() {
            group.nodes.iter().for_each(|n| at_level[group.level as usize][*n as usize] = Some(at as u32));
        }
        let smallest = config.blocks.iter().map(|b| b.nodes.len()).min().unwrap_or(0) as u32;
        let block_size = if blocks { config.block_sizes.first().copied().unwrap_or(smallest) } else { 0 };
        (!groups.is_empty()).then_some(Topology { groups, at_level, blocks, block_size })
    }

    /// Its leaf switch or block.
    pub fn leaf(&self, node: u32) -> Option<u32> {
        self.at_level.first()?.get(node as usize).copied().flatten()
    }

    /// Leaf switches (or blocks) that these nodes hang on; a node on none counts as one of its own.
    pub fn leaves(&self, nodes: impl Iterator<Item = u32>) -> u32 {
        let mut leaves: Vec<u64> = nodes
            .map(|n| match self.leaf(n) {
                Some(leaf) => u64::from(leaf),
                None => u64::from(n) | 1 << 32,
            })
            .collect();
        leaves.sort_unstable();
        leaves.dedup();
        leaves.len() as u32
    }
}

/// The level of a switch is that of its highest part and one more.
fn tree(config: &TopologyConfig, place: impl Fn(&[NodeName]) -> Vec<u32>) -> Vec<Group> {
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut waiting: Vec<_> = config.switches.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|switch| {
            let parts: Option<Vec<usize>> = switch.switches.iter().map(|s| done.get(s.as_str()).copied()).collect();
            let Some(parts) = parts else { return true };
            let mut nodes = place(&switch.nodes);
            nodes.extend(parts.iter().flat_map(|p| &groups[*p].nodes).copied());
            nodes.sort_unstable();
            let level = parts.iter().map(|p| groups[*p].level + 1).max().unwrap_or(0);
            done.insert(&switch.name, groups.len());
            groups.push(Group { name: switch.name.clone(), level, nodes, parts: switch.switches.clone() });
            false
        });
        if waiting.len() == before {
            // A circle, which the configuration refuses.
            break;
        }
    }
    groups
}

/// Blocks, then as many neighbouring ones together as each further size says.
fn joined_blocks(config: &TopologyConfig, place: impl Fn(&[NodeName]) -> Vec<u32>) -> Vec<Group> {
    let blocks = &config.blocks;
    let mut groups: Vec<Group> = blocks
        .iter()
        .map(|b| Group { name: b.name.clone(), level: 0, nodes: place(&b.nodes), parts: Vec::new() })
        .collect();
    let base = config.block_sizes.first().copied().unwrap_or(1).max(1);
    let mut sizes: Vec<usize> = config.block_sizes.iter().skip(1).map(|s| (s / base) as usize).collect();
    if sizes.is_empty() || sizes.last().is_some_and(|s| *s < blocks.len()) {
        // All of them may always be had together.
        sizes.push(blocks.len().max(2));
    }
    for (level, size) in (1..).zip(sizes) {
        let level_groups: Vec<Group> = groups[..blocks.len()]
            .chunks(size)
            .filter(|together| together.len() > 1)
            .map(|together| {
                let parts: Vec<String> = together.iter().map(|g| g.name.clone()).collect();
                let mut nodes: Vec<u32> = together.iter().flat_map(|g| &g.nodes).copied().collect();
                nodes.sort_unstable();
                Group { name: sluice_model::hostlist::fold(&parts), level, nodes, parts }
            })
            .collect();
        groups.extend(level_groups);
    }
    groups
}
