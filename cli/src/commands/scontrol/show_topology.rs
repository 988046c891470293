//! `scontrol show topology`: switches or blocks, one a line, in Slurm's form.

use sluice_model::NodeName;
use sluice_model::config::TopologyConfig;
use sluice_model::hostlist;
use std::collections::BTreeMap;

/// All of it, or what `unit` names: a switch, a block, or a node.
pub fn lines(topology: &TopologyConfig, unit: &str) -> Result<String, String> {
    let all = if topology.blocks.is_empty() { tree(topology) } else { blocks(topology) };
    if all.is_empty() {
        return Err("No topology information available".to_owned());
    }
    let wanted = |(name, nodes, _): &(String, Vec<NodeName>, String)| {
        unit.is_empty() || name == unit || nodes.iter().any(|n| n.as_str() == unit)
    };
    let found: String = all.iter().filter(|u| wanted(u)).map(|(_, _, line)| format!("{line}\n")).collect();
    if found.is_empty() {
        Err(format!("Topology information contains no switch, block or node named {unit}"))
    } else {
        Ok(found)
    }
}

type Unit = (String, Vec<NodeName>, String);

fn names(nodes: &[NodeName]) -> String {
    hostlist::fold(&nodes.iter().map(NodeName::as_str).collect::<Vec<_>>())
}

/// By level, leaves first.
fn tree(topology: &TopologyConfig) -> Vec<Unit> {
    let mut levels: BTreeMap<&str, (u32, Vec<NodeName>)> = BTreeMap::new();
    // As many rounds as there are levels: the configuration has no circles.
    for _ in 0..=topology.switches.len() {
        for switch in &topology.switches {
            let below: Option<Vec<_>> = switch.switches.iter().map(|s| levels.get(s.as_str()).cloned()).collect();
            if let Some(below) = below {
                let level = below.iter().map(|(level, _)| level + 1).max().unwrap_or(0);
                let nodes = switch.nodes.iter().cloned().chain(below.into_iter().flat_map(|b| b.1)).collect();
                levels.insert(&switch.name, (level, nodes));
            }
        }
        if levels.len() == topology.switches.len() {
            break;
        }
    }
    let mut units: Vec<(u32, Unit)> = topology
        .switches
        .iter()
        .filter_map(|switch| {
            let (level, nodes) = levels.get(switch.name.as_str())?.clone();
            let mut line = format!("SwitchName={} Level={level} LinkSpeed=1 Nodes={}", switch.name, names(&nodes));
            if !switch.switches.is_empty() {
                line.push_str(&format!(" Switches={}", hostlist::fold(&switch.switches)));
            }
            Some((level, (switch.name.clone(), nodes, line)))
        })
        .collect();
    units.sort_by_key(|(level, _)| *level);
    units.into_iter().map(|(_, unit)| unit).collect()
}

fn blocks(topology: &TopologyConfig) -> Vec<Unit> {
    let smallest = topology.blocks.iter().map(|b| b.nodes.len() as u32).min().unwrap_or(0);
    let size = topology.block_sizes.first().copied().unwrap_or(smallest);
    let line = |(at, block): (usize, &sluice_model::config::BlockSpec)| {
        let line = format!("BlockName={} BlockIndex={at} Nodes={} BlockSize={size}", block.name, names(&block.nodes));
        (block.name.clone(), block.nodes.clone(), line)
    };
    topology.blocks.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(topology: &str) -> TopologyConfig {
        let text = format!(
            "cluster_name = \"c\"\n[[node]]\nname = \"n[1-4]\"\ncpus = 1\nmemory_mb = 100\n[[partition]]\nname = \"p\"\n\
             nodes = \"ALL\"\n{topology}"
        );
        sluice_model::config::parse(&text, "test").expect("reads").topology
    }

    #[test]
    fn switches_are_shown_by_level_with_all_nodes_below_them() {
        let tree = config(
            "[[topology.switch]]\nname = \"top\"\nswitches = \"s[0-1]\"\n[[topology.switch]]\nname = \"s0\"\n\
             nodes = \"n[1-2]\"\n[[topology.switch]]\nname = \"s1\"\nnodes = \"n[3-4]\"\n",
        );
        assert_eq!(
            lines(&tree, "").unwrap(),
            "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[3-4]\n\
             SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[0-1]\n"
        );
        assert_eq!(lines(&tree, "n3").unwrap().lines().count(), 2);
        assert!(lines(&tree, "nope").is_err());
        assert_eq!(lines(&TopologyConfig::default(), ""), Err("No topology information available".to_owned()));
    }

    #[test]
    fn blocks_are_shown_with_their_size() {
        let blocks = config(
            "[topology]\nblock_sizes = [2]\n[[topology.block]]\nname = \"b0\"\nnodes = \"n[1-2]\"\n\
             [[topology.block]]\nname = \"b1\"\nnodes = \"n[3-4]\"\n",
        );
        assert_eq!(lines(&blocks, "b1").unwrap(), "BlockName=b1 BlockIndex=1 Nodes=n[3-4] BlockSize=2\n");
    }
}
