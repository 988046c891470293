//! A new configuration, whole or not at all; and scontrol update partition.

use super::{Cx, operators_only};
use crate::command::{Caller, PartitionChange, Reply};
use crate::effect::Effect;
use crate::event::Event;
use crate::job::Phase;
use crate::query;
use crate::reject::Reject;
use sluice_model::config::{ClusterConfig, UsageReset};
use sluice_model::{JobId, NodeSpec, TimeLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Nodes and partitions that jobs use can't be taken away under them.
pub(super) fn configure(cx: &mut Cx, config: &Arc<ClusterConfig>) -> Result<Reply, Reject> {
    if cx.config.as_ref() == Some(config) {
        return Ok(Reply::ConfigApplied { changes: Vec::new() });
    }
    check_removals(cx, config)?;
    let changes = match &cx.config {
        None => vec![format!("{} nodes, {} partitions", config.nodes.len(), config.partitions.len())],
        Some(old) => differences(old, config),
    };
    keep_usage(cx, config);
    cx.emit(Event::Configured { config: Arc::clone(config) });
    cx.perform(Effect::PushConfig);
    Ok(Reply::ConfigApplied { changes })
}

/// What has faded by the old half-life has done so; PriorityUsageResetPeriod=NOW forgets all.
fn keep_usage(cx: &mut Cx, config: &ClusterConfig) {
    let old = cx.config.as_ref().map(|c| c.priority.decay_half_life_secs);
    if old.is_some_and(|old| old != config.priority.decay_half_life_secs) && !cx.usage.spent.is_empty() {
        let (half_life_ms, constant) = (query::half_life(cx), query::constant_owners(cx));
        cx.emit(Event::UsageRebased { at: cx.now, half_life_ms, constant });
    }
    if config.priority.usage_reset == UsageReset::Now && !cx.usage.spent.is_empty() {
        cx.emit(Event::UsageCleared { owners: None, at: cx.now });
    }
}

fn check_removals(cx: &Cx, config: &ClusterConfig) -> Result<(), Reject> {
    let nodes: BTreeSet<_> = config.nodes.iter().map(|n| &n.name).collect();
    for (name, node) in cx.nodes.iter().filter(|(name, _)| !nodes.contains(name)) {
        if !node.jobs.is_empty() {
            return Err(Reject::InvalidValue {
                key: "node".to_owned(),
                value: format!("{name} is missing"),
                allowed: format!("a configuration that keeps it: it has {}", jobs_in_words(node.jobs.iter())),
            });
        }
    }
    for spec in &config.nodes {
        check_shrinking(cx, spec)?;
    }
    let partitions: BTreeSet<_> = config.partitions.iter().map(|p| p.name.as_str()).collect();
    let gone: Vec<&String> = cx.partitions.keys().filter(|p| !partitions.contains(p.as_str())).collect();
    if gone.is_empty() {
        return Ok(());
    }
    for name in gone {
        let uses = cx.jobs.values().filter(|j| match &j.phase {
            Phase::Pending => j.partitions.contains(name),
            Phase::Running(_) | Phase::Completing { .. } => j.partition.as_ref() == Some(name),
            Phase::Ended { .. } => false,
        });
        let ids: Vec<JobId> = uses.map(|j| j.id).collect();
        if !ids.is_empty() {
            return Err(Reject::InvalidValue {
                key: "partition".to_owned(),
                value: format!("{name} is missing"),
                allowed: format!("a configuration that keeps it: it has {}", jobs_in_words(ids.iter())),
            });
        }
    }
    Ok(())
}

/// Hardware that jobs hold can't be declared away.
fn check_shrinking(cx: &Cx, spec: &NodeSpec) -> Result<(), Reject> {
    let Some(node) = cx.nodes.get(&spec.name).filter(|n| !n.jobs.is_empty() && *n.spec != *spec) else { return Ok(()) };
    let held = || node.jobs.iter().filter_map(|id| cx.jobs.get(id)?.run()?.allocation.on(&spec.name));
    let cpus = held().filter_map(|part| part.cpus.last()).max();
    let memory: u64 = held().map(|part| part.memory_mb).sum();
    let gres = held().flat_map(|part| &part.gres).find(|g| {
        let total: u64 = spec.gres.iter().filter(|s| s.name == g.name).map(|s| s.count).sum();
        g.indices.last().is_some_and(|i| u64::from(i) >= total)
    });
    let (what, value) = if cpus.is_some_and(|c| c >= spec.cpus) {
        ("cpus", spec.cpus.to_string())
    } else if memory > spec.memory_mb {
        ("memory_mb", spec.memory_mb.to_string())
    } else if let Some(g) = gres {
        ("gres", format!("less {}", g.name))
    } else {
        return Ok(());
    };
    Err(Reject::InvalidValue {
        key: format!("node {}: {what}", spec.name),
        value,
        allowed: format!("no less than is in use there by {}", jobs_in_words(node.jobs.iter())),
    })
}

fn jobs_in_words<'a>(ids: impl ExactSizeIterator<Item = &'a JobId>) -> String {
    let total = ids.len();
    let first: Vec<String> = ids.take(5).map(ToString::to_string).collect();
    let more = if total > first.len() { format!(" and {} more", total - first.len()) } else { String::new() };
    format!("job{} {}{more}", if total == 1 { "" } else { "s" }, first.join(", "))
}

/// One line for each thing that changed.
fn differences(old: &ClusterConfig, new: &ClusterConfig) -> Vec<String> {
    let mut changes = Vec::new();
    compare(
        "node",
        &mut changes,
        old.nodes.iter().map(|n| (n.name.to_string(), n)),
        new.nodes.iter().map(|n| (n.name.to_string(), n)),
    );
    compare(
        "partition",
        &mut changes,
        old.partitions.iter().map(|p| (p.name.clone(), p)),
        new.partitions.iter().map(|p| (p.name.clone(), p)),
    );
    let sections: [(&str, bool); 8] = [
        ("cluster_name", old.cluster_name == new.cluster_name),
        ("scheduling", old.scheduling == new.scheduling),
        ("limits", old.limits == new.limits),
        ("timing", old.timing == new.timing),
        ("security", old.security == new.security),
        ("mail", old.mail == new.mail),
        ("accounting", old.accounting == new.accounting),
        ("licenses", old.licenses == new.licenses),
    ];
    changes.extend(sections.into_iter().filter(|(_, same)| !same).map(|(name, _)| format!("{name} changed")));
    changes
}

fn compare<'a, T: PartialEq + 'a>(
    what: &str,
    changes: &mut Vec<String>,
    old: impl Iterator<Item = (String, &'a T)>,
    new: impl Iterator<Item = (String, &'a T)>,
) {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (old.collect(), new.collect());
    changes.extend(old.keys().filter(|k| !new.contains_key(*k)).map(|k| format!("{what} {k} removed")));
    for (key, value) in &new {
        match old.get(key) {
            None => changes.push(format!("{what} {key} added")),
            Some(before) if before != value => changes.push(format!("{what} {key} changed")),
            Some(_) => {}
        }
    }
}

/// scontrol update partition.
pub(super) fn update_partition(
    cx: &mut Cx,
    caller: &Caller,
    name: &str,
    change: &PartitionChange,
) -> Result<Reply, Reject> {
    operators_only(caller, "changing partitions")?;
    let partition =
        cx.partitions.get(name).cloned().ok_or_else(|| Reject::InvalidPartition { name: name.to_owned() })?;
    for node in change.nodes.iter().flatten() {
        if cx.node(node).is_none() {
            return Err(Reject::InvalidNodeName { name: node.to_string() });
        }
    }
    let max = change.max_time.unwrap_or(partition.max_time);
    if let Some(Some(default)) = change.default_time
        && default > max
    {
        return Err(Reject::TimeLimitTooLong {
            asked: sluice_model::time::format_time_limit(default),
            limit: sluice_model::time::format_time_limit(max),
        });
    }
    if max == TimeLimit::Minutes(0) {
        return Err(Reject::InvalidTimeLimit { value: "0".to_owned() });
    }
    let min_nodes = change.min_nodes.unwrap_or(partition.min_nodes);
    if let Some(limit) = change.max_nodes.unwrap_or(partition.max_nodes)
        && min_nodes > limit
    {
        return Err(Reject::NodeCountOutOfRange { asked: min_nodes, limit });
    }
    cx.emit(Event::PartitionUpdated { name: name.to_owned(), change: Box::new(change.clone()) });
    Ok(Reply::Done)
}
