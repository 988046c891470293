//! `sinfo --json`: one entry for each partition and state, with its nodes.
//!
//! Keys as recorded from Slurm 26.05 (`sinfo-json.txt`); a test compares them.

use super::group::Group;
use super::values::{buckets, min_max};
use crate::render::json::{infinite, large_number, number, unset};
use crate::view::{node, partitions_json, tres};
use serde_json::{Value, json};
use sluice_proto::v1;

pub fn entry(group: &Group<'_>) -> Value {
    let first = group.nodes.first().copied();
    let (allocated, idle, other) = buckets(group);
    let cpus = group.nodes.iter().map(|n| node::cpus(n)).fold((0, 0, 0), |s, c| (s.0 + c.0, s.1 + c.1, s.2 + c.2));
    let pair = |value: fn(&v1::NodeRecord) -> u64| {
        let (min, max) = min_max(group, value);
        json!({"minimum": min, "maximum": max})
    };
    let free: Vec<u64> = group.nodes.iter().filter_map(|n| n.free_memory_mb).collect();
    let free_number = |n: Option<&u64>| n.map_or_else(unset, |n| large_number(*n));
    let (memory_min, memory_max) = min_max(group, |n| n.memory_mb);
    let (cpu_min, cpu_max) = min_max(group, |n| n.cpus.into());
    let text = |f: fn(&v1::NodeRecord) -> Option<String>| first.and_then(f).unwrap_or_default();
    let part = group.partition;
    let states: Vec<&str> = first.map(node::flags).unwrap_or_default();
    let names: Vec<&str> = group.nodes.iter().map(|n| n.name.as_str()).collect();
    let port = first.and_then(|n| node::address(n).1.parse::<u32>().ok()).unwrap_or(0);
    json!({
        "port": port,
        "node": {"state": states},
        "nodes": {
            "allocated": allocated,
            "idle": idle,
            "other": other,
            "total": group.nodes.len(),
            "hostnames": [],
            "addresses": [],
            "nodes": names,
        },
        "cpus": {
            "allocated": cpus.0,
            "idle": cpus.1,
            "other": cpus.2,
            "total": cpus.0 + cpus.1 + cpus.2,
            "minimum": cpu_min,
            "maximum": cpu_max,
            "load": pair(|n| n.cpu_load_hundredths.unwrap_or(0).into()),
            "per_node": {"max": part.max_cpus_per_node.map_or_else(infinite, number)},
        },
        "sockets": pair(|n| n.sockets.into()),
        "cores": pair(|n| n.cores_per_socket.into()),
        "threads": pair(|n| n.threads_per_core.into()),
        "disk": pair(|n| n.tmp_disk_mb),
        "memory": {
            "minimum": memory_min,
            "maximum": memory_max,
            "free": {"minimum": free_number(free.iter().min()), "maximum": free_number(free.iter().max())},
            "allocated": group.nodes.iter().map(|n| n.alloc_memory_mb).max().unwrap_or(0),
        },
        "weight": pair(|n| n.weight.into()),
        "features": {"total": text(node::features), "active": text(node::features)},
        "gres": {
            "total": first.map(|n| tres::gres_specs(&n.gres)).unwrap_or_default(),
            "used": text(node::gres_used),
        },
        "cluster": "",
        "comment": text(|n| n.comment.clone()),
        "extra": "",
        "reason": {
            "description": first.and_then(node::reason).unwrap_or_default(),
            "time": crate::render::json::seconds(first.and_then(|n| n.reason_time)),
        },
        "reservation": "",
        "reason_set_by_user": text(node::reason_user),
        "resource_spec": {"cpus": "", "memory": 0},
        "partition": partitions_json::partition(part),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{fixture, recorded};

    #[test]
    fn entries_have_the_recorded_values() {
        let (partitions, mut nodes) = (fixture::partitions(), fixture::nodes());
        // The recorded free memory and ports of the first nodes of each group.
        for (node, free) in nodes.iter_mut().zip([21_710, 21_704, 21_698, 21_707, 21_700, 21_700, 21_700, 21_700]) {
            node.free_memory_mb = Some(free);
        }
        let (settings, shape) = super::super::settings::test::of(&["-p", "primary"]);
        let groups = super::super::lines::groups(
            &settings,
            &shape.layout(&partitions, &nodes),
            &fixture::clock(),
            &partitions,
            &nodes,
        );
        let ours: Vec<Value> = groups.iter().map(entry).collect();
        let mut recorded = recorded::json(include_str!("../../../tests/data/sinfo.json"))["sinfo"].take();
        // Slurm names the declared node set, of which there is no notion here.
        for entry in recorded.as_array_mut().unwrap() {
            entry["partition"]["node_sets"] = "".into();
        }
        recorded::assert_same_json(&Value::from(ours), &recorded);
    }
}
