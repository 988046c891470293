//! Changes by `scontrol update` to nodes and partitions, as events carry them.

use super::node::{state_from_disk, state_to_disk};
use super::{ConvertError, Result, convert_optional, names_from_disk, names_to_disk};
use sluice_engine::command::{NodeChange, NodeStateChange, PartitionChange};
use sluice_proto::v1;
use v1::disk_partition_change::{DefaultTime, MaxNodes};

pub fn node_change_to_disk(change: &NodeChange) -> v1::DiskNodeChange {
    let NodeChange { state, reason, weight, features, comment } = change;
    let state = state.map(|state| match state {
        NodeStateChange::Drain => 0,
        NodeStateChange::Resume => 1,
        NodeStateChange::Down => 2,
        NodeStateChange::Undrain => 3,
        NodeStateChange::Fail => 4,
    });
    v1::DiskNodeChange {
        state,
        reason: reason.clone(),
        weight: *weight,
        features: features.as_ref().map(|list| strings(list)),
        comment: comment.clone(),
    }
}

pub fn node_change_from_disk(change: v1::DiskNodeChange) -> Result<NodeChange> {
    let state = match change.state {
        None => None,
        Some(0) => Some(NodeStateChange::Drain),
        Some(1) => Some(NodeStateChange::Resume),
        Some(2) => Some(NodeStateChange::Down),
        Some(3) => Some(NodeStateChange::Undrain),
        Some(4) => Some(NodeStateChange::Fail),
        Some(other) => {
            return Err(ConvertError::new("state", format!("is {other}, which this release does not know")));
        }
    };
    Ok(NodeChange {
        state,
        reason: change.reason,
        weight: change.weight,
        features: change.features.map(|list| list.items),
        comment: change.comment,
    })
}

pub fn partition_change_to_disk(change: &PartitionChange) -> v1::DiskPartitionChange {
    let PartitionChange {
        state,
        max_time,
        default_time,
        min_nodes,
        max_nodes,
        priority_tier,
        priority_job_factor,
        default,
        hidden,
        root_only,
        allow_groups,
        allow_accounts,
        allow_qos,
        nodes,
        grace_secs,
        preempt_mode,
    } = change;
    v1::DiskPartitionChange {
        state: state.map(state_to_disk),
        max_time: max_time.as_ref().map(Into::into),
        default_time: default_time.as_ref().map(|limit| DefaultTime { limit: limit.as_ref().map(Into::into) }),
        min_nodes: *min_nodes,
        max_nodes: max_nodes.map(|count| MaxNodes { count }),
        priority_tier: *priority_tier,
        priority_job_factor: *priority_job_factor,
        default: *default,
        hidden: *hidden,
        root_only: *root_only,
        allow_groups: allow_groups.as_ref().map(|list| strings(list)),
        allow_accounts: allow_accounts.as_ref().map(|list| strings(list)),
        allow_qos: allow_qos.as_ref().map(|list| strings(list)),
        nodes: nodes.as_ref().map(|nodes| v1::DiskStrings { items: names_to_disk(nodes) }),
        grace_secs: *grace_secs,
        preempt_mode: preempt_mode.map(|m| m.code()),
    }
}

pub fn partition_change_from_disk(change: v1::DiskPartitionChange) -> Result<PartitionChange> {
    Ok(PartitionChange {
        state: change.state.map(state_from_disk).transpose()?,
        max_time: convert_optional(change.max_time, "max_time")?,
        default_time: change.default_time.map(|d| convert_optional(d.limit, "default_time")).transpose()?,
        min_nodes: change.min_nodes,
        max_nodes: change.max_nodes.map(|max| max.count),
        priority_tier: change.priority_tier,
        priority_job_factor: change.priority_job_factor,
        default: change.default,
        hidden: change.hidden,
        root_only: change.root_only,
        allow_groups: change.allow_groups.map(|list| list.items),
        allow_accounts: change.allow_accounts.map(|list| list.items),
        allow_qos: change.allow_qos.map(|list| list.items),
        nodes: change.nodes.map(|list| names_from_disk(list.items)),
        grace_secs: change.grace_secs,
        preempt_mode: change.preempt_mode.map(super::config::mode_from_disk).transpose()?,
    })
}

fn strings(items: &[String]) -> v1::DiskStrings {
    v1::DiskStrings { items: items.to_vec() }
}
