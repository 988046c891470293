//! The `[topology]` section: how nodes are joined.
//!
//! Owns two forms, of which a cluster has one: a tree of switches (`[[topology.switch]]`, with Slurm's words of
//! topology.conf: a leaf switch has `nodes`, one above has `switches`), or blocks of nodes with a fast network of their own
//! (`[[topology.block]]` and `block_sizes`). Promises that what it gives is a forest of which every leaf has nodes, or blocks
//! that share none. Without the section all nodes are equally far from each other.

use super::fields::Field;
use super::parse::each_table;
use super::reader::{Problems, Section};
use super::sections::name_list;
use crate::hostlist;
use crate::ids::NodeName;
use crate::node::NodeSpec;
use std::collections::{BTreeMap, BTreeSet};
use toml_edit::Item;

/// A leaf switch has nodes, the others have switches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SwitchSpec {
    pub name: String,
    pub nodes: Vec<NodeName>,
    /// By name.
    pub switches: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BlockSpec {
    pub name: String,
    pub nodes: Vec<NodeName>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TopologyConfig {
    pub switches: Vec<SwitchSpec>,
    pub blocks: Vec<BlockSpec>,
    /// Nodes that a job may count on in one block, then in two, four … neighbouring blocks together. Empty: all nodes of
    /// the smallest block.
    pub block_sizes: Vec<u32>,
}

type Declared<'a> = (&'a [NodeSpec], bool);

pub(super) fn read(item: Option<&Item>, declared: Declared<'_>, problems: &mut Problems<'_>) -> TopologyConfig {
    let Some(item) = item else { return TopologyConfig::default() };
    let Some(table) = item.as_table_like() else {
        problems.add(item.span(), "topology", "expected a section: [topology]");
        return TopologyConfig::default();
    };
    let mut s = Section::new(table, item.span(), "topology", problems);
    let (switches, blocks) = (s.item("switch"), s.item("block"));
    let sizes = s.item("block_sizes");
    let number = |v: &toml_edit::Value| v.as_integer().and_then(|n| u32::try_from(n).ok());
    let numbers = |item: &Item| item.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>();
    let block_sizes = match sizes {
        None => Vec::new(),
        Some(item) => match numbers(item).filter(|list| list.iter().all(|n| (1..=1_000_000).contains(n))) {
            Some(list) => list,
            None => {
                s.problem("block_sizes", "expected a list of numbers of nodes, such as [16, 32]");
                Vec::new()
            }
        },
    };
    if block_sizes.windows(2).any(|w| w[1] % w[0] != 0 || !(w[1] / w[0]).is_power_of_two() || w[1] <= w[0]) {
        s.problem("block_sizes", "expected each size to be 2, 4, 8 … times the one before");
    }
    if blocks.is_none() && sizes.is_some() {
        s.problem("block_sizes", "has a meaning only with [[topology.block]]");
    }
    if blocks.is_some() && switches.is_some() {
        s.problem("block", "a topology is a tree of switches or a set of blocks, not both");
    }
    s.finish();
    let switches = each_table(switches, "topology.switch", problems);
    let switches: Vec<SwitchSpec> = switches
        .into_iter()
        .map(|(table, span)| {
            let mut s = Section::new(table, span, "topology.switch", problems);
            s.missing("name", "the switch's name");
            let name = s.text("name").unwrap_or_default();
            let nodes = if s.has("nodes") { members(&mut s, declared) } else { Vec::new() };
            let below = switch_names(&mut s);
            if nodes.is_empty() == below.is_empty() {
                s.problem("nodes", format!("switch {name}: give either nodes or switches"));
            }
            s.finish();
            SwitchSpec { name, nodes, switches: below }
        })
        .collect();
    let blocks = each_table(blocks, "topology.block", problems);
    let blocks: Vec<BlockSpec> = blocks
        .into_iter()
        .map(|(table, span)| {
            let mut s = Section::new(table, span, "topology.block", problems);
            s.missing("name", "the block's name");
            s.missing("nodes", "a host list");
            let name = s.text("name").unwrap_or_default();
            let nodes = members(&mut s, declared);
            s.finish();
            BlockSpec { name, nodes }
        })
        .collect();
    let config = TopologyConfig { switches, blocks, block_sizes };
    if let Err(problem) = check(&config) {
        problems.add(item.span(), "topology", problem);
    }
    config
}

fn members(s: &mut Section<'_, '_, '_>, (nodes, complete): Declared<'_>) -> Vec<NodeName> {
    let names = name_list(s, "nodes");
    let known: BTreeSet<&NodeName> = nodes.iter().map(|n| &n.name).collect();
    let unknown: Vec<&str> = names.iter().filter(|n| !known.contains(n)).map(NodeName::as_str).collect();
    if complete && !unknown.is_empty() {
        let shown: String = hostlist::fold(&unknown).chars().take(200).collect();
        s.problem("nodes", format!("no [[node]] declares {shown}"));
    }
    names
}

fn switch_names(s: &mut Section<'_, '_, '_>) -> Vec<String> {
    let Some(text) = s.text("switches") else { return Vec::new() };
    let names = hostlist::expand(&text);
    s.parsed("switches", names).unwrap_or_default()
}

/// Each node in one place, each switch below one other at most, no circle.
fn check(config: &TopologyConfig) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let groups = config.switches.iter().map(|s| (&s.name, &s.nodes));
    for (name, nodes) in groups.chain(config.blocks.iter().map(|b| (&b.name, &b.nodes))) {
        if let Some(twice) = nodes.iter().find(|n| !seen.insert(*n)) {
            return Err(format!("node {twice} of {name} is named twice"));
        }
    }
    let mut names = BTreeSet::new();
    let all = config.switches.iter().map(|s| &s.name).chain(config.blocks.iter().map(|b| &b.name));
    for name in all {
        if name.is_empty() || name.len() > 64 || !names.insert(name) {
            return Err(format!("the name '{name}' is empty, too long or given twice"));
        }
    }
    let mut above: BTreeMap<&String, &String> = BTreeMap::new();
    for switch in &config.switches {
        for below in &switch.switches {
            if !names.contains(below) {
                return Err(format!("switch {}: there is no switch {below}", switch.name));
            }
            if above.insert(below, &switch.name).is_some() {
                return Err(format!("switch {below} is below two others"));
            }
        }
    }
    for switch in &config.switches {
        let (mut at, mut steps) = (&switch.name, 0);
        while let Some(next) = above.get(at) {
            steps += 1;
            if steps > config.switches.len() {
                return Err(format!("switch {} is below itself", switch.name));
            }
            at = next;
        }
    }
    if let (Some(size), Some(small)) = (
        config.block_sizes.first(),
        config.blocks.iter().find(|b| (b.nodes.len() as u32) < config.block_sizes.first().copied().unwrap_or(0)),
    ) {
        return Err(format!("block {} has fewer nodes than the first of block_sizes, {size}", small.name));
    }
    Ok(())
}

pub(super) fn fields(config: &TopologyConfig) -> Vec<Field> {
    let quote = super::fields::quote;
    let nodes = |nodes: &[NodeName]| hostlist::fold(&nodes.iter().map(NodeName::as_str).collect::<Vec<_>>());
    let table = |pairs: Vec<(&str, String)>| {
        let pairs: Vec<String> = pairs.into_iter().map(|(k, v)| format!("{k} = {}", quote(&v))).collect();
        format!("{{ {} }}", pairs.join(", "))
    };
    let list = |tables: Vec<String>| (!tables.is_empty()).then(|| format!("[{}]", tables.join(", ")));
    let switch = |s: &SwitchSpec| match s.switches.is_empty() {
        true => table(vec![("name", s.name.clone()), ("nodes", nodes(&s.nodes))]),
        false => table(vec![("name", s.name.clone()), ("switches", hostlist::fold(&s.switches))]),
    };
    let block = |b: &BlockSpec| table(vec![("name", b.name.clone()), ("nodes", nodes(&b.nodes))]);
    let sizes: Vec<String> = config.block_sizes.iter().map(ToString::to_string).collect();
    vec![
        ("switch", list(config.switches.iter().map(switch).collect())),
        ("block", list(config.blocks.iter().map(block).collect())),
        ("block_sizes", (!sizes.is_empty()).then(|| format!("[{}]", sizes.join(", ")))),
    ]
}
