//! What changes between two configurations, for reconfigure's answer and the log.

use super::ClusterConfig;
use super::fields::{self, Field, quote};
use crate::hostlist;
use std::collections::{BTreeMap, BTreeSet};

/// One line for each change, in the file's order: `timing.kill_wait_secs: 30 -> 20`, `node node[1-3]: cpus: 4 -> 8`,
/// `partition short: added`. Nodes that change alike share a line. Empty when nothing changes.
pub fn diff(old: &ClusterConfig, new: &ClusterConfig) -> Vec<String> {
    let mut out = Vec::new();
    if old.cluster_name != new.cluster_name {
        out.push(format!("cluster_name: {} -> {}", quote(&old.cluster_name), quote(&new.cluster_name)));
    }
    nodes(old, new, &mut out);
    partitions(old, new, &mut out);
    for ((name, before), (_, after)) in fields::sections(old).into_iter().zip(fields::sections(new)) {
        out.extend(changes(&before, &after).into_iter().map(|c| format!("{name}.{c}")));
    }
    let names: BTreeSet<&String> = old.licenses.keys().chain(new.licenses.keys()).collect();
    for name in names {
        match (old.licenses.get(name), new.licenses.get(name)) {
            (Some(a), Some(b)) if a != b => out.push(format!("licenses.{name}: {a} -> {b}")),
            (Some(_), None) => out.push(format!("licenses.{name}: removed")),
            (None, Some(n)) => out.push(format!("licenses.{name}: added, {n}")),
            _ => {}
        }
    }
    out
}

/// `key: old -> new` for each key whose value differs; `(none)` where it is left out.
fn changes(old: &[Field], new: &[Field]) -> Vec<String> {
    let shown = |v: &Option<String>| v.clone().unwrap_or_else(|| "(none)".into());
    let differs =
        |((key, a), (_, b)): (&Field, &Field)| (a != b).then(|| format!("{key}: {} -> {}", shown(a), shown(b)));
    old.iter().zip(new).filter_map(differs).collect()
}

fn nodes(old: &ClusterConfig, new: &ClusterConfig, out: &mut Vec<String>) {
    let before: BTreeMap<&str, _> = old.nodes.iter().map(|n| (n.name.as_str(), n)).collect();
    let after: BTreeSet<&str> = new.nodes.iter().map(|n| n.name.as_str()).collect();
    // Change → the nodes it happens to, in the order of first appearance.
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut note = |change: String, name| {
        let at = *index.entry(change.clone()).or_insert_with(|| {
            groups.push((change, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(name);
    };
    for n in &old.nodes {
        if !after.contains(n.name.as_str()) {
            note("removed".into(), n.name.as_str());
        }
    }
    for n in &new.nodes {
        match before.get(n.name.as_str()) {
            None => note("added".into(), n.name.as_str()),
            Some(o) if *o != n => {
                changes(&fields::node(o), &fields::node(n)).into_iter().for_each(|c| note(c, n.name.as_str()));
            }
            Some(_) => {}
        }
    }
    out.extend(groups.into_iter().map(|(change, names)| format!("node {}: {change}", hostlist::fold(&names))));
    let order = |c: &ClusterConfig, other: &BTreeSet<&str>| -> Vec<String> {
        c.nodes.iter().map(|n| n.name.to_string()).filter(|n| other.contains(n.as_str())).collect()
    };
    if order(old, &after) != order(new, &before.keys().copied().collect()) {
        out.push("node: the order changes".into());
    }
}

fn partitions(old: &ClusterConfig, new: &ClusterConfig, out: &mut Vec<String>) {
    for p in &old.partitions {
        if !new.partitions.iter().any(|n| n.name == p.name) {
            out.push(format!("partition {}: removed", p.name));
        }
    }
    for p in &new.partitions {
        match old.partitions.iter().find(|o| o.name == p.name) {
            None => out.push(format!("partition {}: added", p.name)),
            Some(o) => {
                let changes = changes(&fields::partition(o), &fields::partition(p));
                out.extend(changes.into_iter().map(|c| format!("partition {}: {c}", p.name)));
            }
        }
    }
    let order = |c: &ClusterConfig, other: &ClusterConfig| -> Vec<String> {
        let stays = |n: &String| other.partitions.iter().any(|p| p.name == *n);
        c.partitions.iter().map(|p| p.name.clone()).filter(stays).collect()
    };
    if order(old, new) != order(new, old) {
        out.push("partition: the order changes".into());
    }
}
