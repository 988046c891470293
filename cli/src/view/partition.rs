//! What is derived from a partition's record.
//!
//! Sources: sinfo(1), "OUTPUT FIELD DESCRIPTIONS"; scontrol(1).

use super::clock;
use super::tres::Tres;
use sluice_model::TimeLimit;
use sluice_proto::v1;

/// `up`, `down`, `drain`, `inact`
pub fn available(partition: &v1::PartitionRecord) -> &'static str {
    match partition.state.as_str() {
        "DOWN" => "down",
        "DRAIN" => "drain",
        "INACTIVE" => "inact",
        _ => "up",
    }
}

/// `primary*` for the default partition.
pub fn marked_name(partition: &v1::PartitionRecord) -> String {
    format!("{}{}", partition.name, if partition.default { "*" } else { "" })
}

/// sinfo's `infinite` or `1-00:00:00`.
pub fn time(limit: Option<&v1::TimeLimit>) -> String {
    match clock::limit(limit) {
        None => "n/a".to_owned(),
        Some(TimeLimit::Unlimited) => "infinite".to_owned(),
        Some(limit) => sluice_model::time::format_time_limit(limit),
    }
}

/// `1-infinite`, `2-4`, `3`
pub fn size(partition: &v1::PartitionRecord) -> String {
    let min = partition.min_nodes.max(1);
    match partition.max_nodes {
        None => format!("{min}-infinite"),
        Some(max) if max == min => min.to_string(),
        Some(max) => format!("{min}-{max}"),
    }
}

/// `all` or the names.
pub fn groups(partition: &v1::PartitionRecord) -> String {
    if partition.allow_groups.is_empty() { "all".to_owned() } else { partition.allow_groups.join(",") }
}

pub fn oversubscribe(partition: &v1::PartitionRecord) -> &'static str {
    if partition.exclusive { "EXCLUSIVE" } else { "NO" }
}

/// As the controller tells it; older ones say nothing.
pub fn preempt_mode(partition: &v1::PartitionRecord) -> &str {
    if partition.preempt_mode.is_empty() { "OFF" } else { &partition.preempt_mode }
}

pub fn tres(partition: &v1::PartitionRecord) -> Tres {
    let mut tres = Tres {
        cpus: partition.total_cpus.into(),
        memory_mb: partition.total_memory_mb,
        nodes: Some(partition.nodes.len() as u64),
        billing: Some(partition.total_cpus.into()),
        gres: Vec::new(),
    };
    tres.add_specs(&partition.total_gres);
    tres
}

/// A list, or `ALL` when it is empty.
pub fn all_or(list: &[String]) -> String {
    if list.is_empty() { "ALL".to_owned() } else { list.join(",") }
}
