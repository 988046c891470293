//! Events about the configuration: what it declares wins where it changed; what administrators set since stays where
//! it did not.

use crate::command::PartitionChange;
use crate::node::Node;
use crate::state::State;
use sluice_model::PartitionSpec;
use sluice_model::config::ClusterConfig;
use sluice_model::node::NodeFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) fn configured(state: &mut State, config: &Arc<ClusterConfig>) {
    let old = state.config.replace(Arc::clone(config));
    let first = old.is_none();
    let old_nodes: BTreeMap<_, _> = old.iter().flat_map(|c| &c.nodes).map(|n| (&n.name, n)).collect();
    for spec in &config.nodes {
        match state.nodes.get(&spec.name).cloned() {
            None => {
                let node = Node {
                    spec: Arc::new(spec.clone()),
                    flags: NodeFlags { unknown: true, ..NodeFlags::default() },
                    reason: None,
                    report: None,
                    jobs: BTreeSet::new(),
                    stale: BTreeSet::new(),
                    silent_since: None,
                    last_busy: None,
                    registered: None,
                    comment: None,
                };
                state.nodes.insert(spec.name.clone(), Arc::new(node));
            }
            Some(_) if old_nodes.get(&spec.name) == Some(&spec) => {}
            Some(_) => state.edit_node(&spec.name, |n| n.spec = Arc::new(spec.clone())),
        }
    }
    let declared: BTreeSet<_> = config.nodes.iter().map(|n| &n.name).collect();
    let gone: Vec<_> = state.nodes.keys().filter(|n| !declared.contains(n)).cloned().collect();
    for name in gone {
        state.nodes.remove(&name);
        state.index.silent.remove(&name);
    }
    let old_parts: BTreeMap<_, _> = old.iter().flat_map(|c| &c.partitions).map(|p| (&p.name, p)).collect();
    let mut partitions = imbl::OrdMap::new();
    for spec in &config.partitions {
        let kept = state.partitions.get(&spec.name).filter(|_| old_parts.get(&spec.name) == Some(&spec));
        partitions.insert(spec.name.clone(), kept.cloned().unwrap_or_else(|| Arc::new(spec.clone())));
    }
    state.partitions = partitions;
    if first {
        state.last_job_id = state.last_job_id.max(config.limits.first_job_id.saturating_sub(1));
    }
    // Tiers, over-time limits and so on are in the indexes' keys.
    state.rebuild_indexes();
}

pub(super) fn partition_updated(state: &mut State, name: &str, change: &PartitionChange) {
    let Some(old) = state.partitions.get(name).cloned() else { return };
    let mut p = PartitionSpec::clone(&old);
    let c = change.clone();
    p.state = c.state.unwrap_or(p.state);
    p.max_time = c.max_time.unwrap_or(p.max_time);
    p.default_time = c.default_time.unwrap_or(p.default_time);
    p.min_nodes = c.min_nodes.unwrap_or(p.min_nodes);
    p.max_nodes = c.max_nodes.unwrap_or(p.max_nodes);
    p.priority_tier = c.priority_tier.unwrap_or(p.priority_tier);
    p.priority_job_factor = c.priority_job_factor.unwrap_or(p.priority_job_factor);
    p.hidden = c.hidden.unwrap_or(p.hidden);
    p.root_only = c.root_only.unwrap_or(p.root_only);
    p.allow_groups = c.allow_groups.unwrap_or(p.allow_groups);
    p.allow_accounts = c.allow_accounts.unwrap_or(p.allow_accounts);
    p.allow_qos = c.allow_qos.unwrap_or(p.allow_qos);
    p.nodes = c.nodes.unwrap_or(p.nodes);
    p.preempt_mode = c.preempt_mode.or(p.preempt_mode);
    p.grace_secs = c.grace_secs.unwrap_or(p.grace_secs);
    p.default = c.default.unwrap_or(p.default);
    let retier = p.priority_tier != old.priority_tier;
    if p.default && !old.default {
        // There is one default partition.
        let others: Vec<String> =
            state.partitions.iter().filter(|(n, q)| q.default && n.as_str() != name).map(|(n, _)| n.clone()).collect();
        for other in others {
            if let Some(q) = state.partitions.get_mut(&other) {
                Arc::make_mut(q).default = false;
            }
        }
    }
    state.partitions.insert(name.to_owned(), Arc::new(p));
    if retier {
        state.rebuild_indexes();
    } else {
        state.refresh_hardware();
    }
}
