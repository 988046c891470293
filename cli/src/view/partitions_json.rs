//! A partition as `scontrol show partition --json` and `sinfo --json` print it.
//!
//! Keys and order as recorded from Slurm 26.05 (`show-partition-json.txt`); a test compares them.

use super::{clock, partition as facts};
use crate::render::json::{infinite, large_number, limit, number, number_or_unset, unset};
use serde_json::{Value, json};
use sluice_proto::v1;

pub fn partition(partition: &v1::PartitionRecord) -> Value {
    let default_time = match clock::limit(partition.default_time.as_ref()) {
        None => unset(),
        given => limit(given),
    };
    let memory = |per_cpu: Option<u64>, per_node: Option<u64>| match (per_cpu, per_node) {
        (Some(mb), _) => (mb, large_number(mb), unset()),
        (None, per_node) => (0, unset(), large_number(per_node.unwrap_or(0))),
    };
    let (default_memory, default_per_cpu, default_per_node) =
        memory(partition.default_memory_per_cpu_mb, partition.default_memory_per_node_mb);
    let (max_memory, max_per_cpu, max_per_node) = memory(None, partition.max_memory_per_node_mb);
    let flags: Vec<&str> =
        [(partition.default, "DEFAULT"), (partition.hidden, "HIDDEN"), (partition.root_only, "ROOT_ONLY")]
            .iter()
            .filter(|(on, _)| *on)
            .map(|(_, word)| *word)
            .collect();
    json!({
        "nodes": {
            "allowed_allocation": "",
            "configured": sluice_model::hostlist::fold(&partition.nodes),
            "total": partition.nodes.len(),
        },
        "accounts": {"allowed": partition.allow_accounts.join(","), "deny": ""},
        "groups": {"allowed": partition.allow_groups.join(",")},
        "qos": {"allowed": partition.allow_qos.join(","), "deny": "", "assigned": ""},
        "alternate": "",
        "tres": {"billing_weights": partition.billing_weights, "configured": facts::tres(partition).by_number()},
        "cluster": "",
        "select_type": ["NONE"],
        "cpus": {"task_binding": [], "total": partition.total_cpus},
        "defaults": {
            "memory_per_cpu": default_memory,
            "partition_memory_per_cpu": default_per_cpu,
            "partition_memory_per_node": default_per_node,
            "time": default_time,
            "job": "",
        },
        "flags": flags,
        "partition": {
            "exclusive": if partition.exclusive { "NODE" } else { "NO" },
            "oversubscribe": "NO",
            "state": [partition.state],
        },
        "grace_time": partition.grace_secs,
        "maximums": {
            "cpus_per_node": partition.max_cpus_per_node.map_or_else(infinite, number),
            "cpus_per_socket": infinite(),
            "memory_per_cpu": max_memory,
            "partition_memory_per_cpu": max_per_cpu,
            "partition_memory_per_node": max_per_node,
            "nodes": partition.max_nodes.map_or_else(infinite, number),
            "shares": 0,
            "oversubscribe": {"jobs": 0, "flags": []},
            "time": limit(clock::limit(partition.max_time.as_ref())),
            "over_time_limit": number_or_unset(None::<u32>),
        },
        "minimums": {"nodes": partition.min_nodes},
        "name": partition.name,
        "node_sets": "",
        "preempt_mode": ["CLUSTER_GLOBAL"],
        "priority": {"job_factor": partition.priority_job_factor, "tier": partition.priority_tier},
        "timeouts": {"resume": unset(), "suspend": unset()},
        "topology": "",
        "suspend_time": unset(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{fixture, recorded};

    #[test]
    fn partitions_print_as_recorded() {
        let ours: Vec<Value> = fixture::partitions().iter().map(partition).collect();
        let mut all = recorded::json(include_str!("../../tests/data/show-partition.json"));
        // Slurm names the declared node set, of which there is no notion here.
        all["partitions"][0]["node_sets"] = "".into();
        recorded::assert_same_json(&Value::from(ours), &all["partitions"]);
    }
}
