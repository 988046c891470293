//! A node as `scontrol show node --json` prints it.
//!
//! Keys and order as recorded from Slurm 26.05 (`show-node-json.txt`); a test compares them.

use super::node as facts;
use super::tres::{self, Tres};
use crate::render::json::{infinite, large_number, number, seconds, time, unset};
use serde_json::{Map, Value, json};
use sluice_proto::v1;

/// What the node offers.
pub fn configured(node: &v1::NodeRecord) -> Tres {
    let mut tres =
        Tres { cpus: node.cpus.into(), memory_mb: node.memory_mb, billing: Some(node.cpus.into()), ..Tres::default() };
    tres.add_specs(&node.gres);
    tres
}

/// What is held there; empty when nothing is.
pub fn used(node: &v1::NodeRecord) -> String {
    if node.alloc_cpus == 0 && node.alloc_memory_mb == 0 {
        return String::new();
    }
    let mut tres = Tres { cpus: node.alloc_cpus.into(), memory_mb: node.alloc_memory_mb, ..Tres::default() };
    tres.add_held(&node.alloc_gres);
    tres.by_number()
}

pub fn node(node: &v1::NodeRecord) -> Value {
    let report = node.report.clone().unwrap_or_default();
    let (address, port) = facts::address(node);
    let first = json!({
        "architecture": report.arch,
        "burstbuffer_network_address": "",
        "boards": 1,
        "boot_time": number(report.boot_time),
        "tls_cert_last_renewal": number(0),
        "cert_flags": [],
        "cluster_name": "",
        "cores": node.cores_per_socket,
        "specialized_cores": 0,
        "cpu_binding": 0,
        "cpu_load": node.cpu_load_hundredths.unwrap_or(0),
        "free_mem": node.free_memory_mb.map_or_else(unset, large_number),
        "cpus": node.cpus,
        "effective_cpus": node.cpus,
        "specialized_cpus": "",
        "energy": {
            "average_watts": 0,
            "base_consumed_energy": 0,
            "consumed_energy": 0,
            "current_watts": number(0),
            "previous_consumed_energy": 0,
            "last_collected": 0,
        },
        "extra": "",
        "features": node.features,
        "active_features": node.features,
        "gpu_spec": "",
        "gres": tres::gres_specs(&node.gres),
        "gres_drained": "N/A",
        "gres_used": facts::gres_used(node).unwrap_or_default(),
        "instance_id": "",
        "instance_type": "",
        "last_busy": time(node.last_busy),
        "mcs_label": "",
        "specialized_memory": 0,
    });
    let second = json!({
        "name": node.name,
        "next_state_after_reboot": ["INVALID"],
        "address": address,
        "hostname": facts::hostname(node),
        "state": facts::flags(node),
        "operating_system": report.os,
        "owner": "",
        "partitions": node.partitions,
        "port": port.parse::<u32>().unwrap_or(0),
        "real_memory": node.memory_mb,
        "res_cores_per_gpu": 0,
        "comment": node.comment.clone().unwrap_or_default(),
        "reason": facts::reason(node).unwrap_or_default(),
        "reason_changed_at": number(seconds(node.reason_time)),
        "reason_set_by_user": facts::reason_user(node).unwrap_or_default(),
        "resume_after": number(0),
        "reservation": "",
        "suspend_time": infinite(),
        "alloc_memory": node.alloc_memory_mb,
        "alloc_cpus": node.alloc_cpus,
        "alloc_idle_cpus": node.cpus.saturating_sub(node.alloc_cpus),
        "tres_used": used(node),
        "slurmd_start_time": number(report.daemon_start_time),
        "sockets": node.sockets,
        "threads": node.threads_per_core,
        "temporary_disk": node.tmp_disk_mb,
        "weight": node.weight,
        "topology": "",
        "tres": configured(node).by_number(),
        "version": report.version,
    });
    let mut all = Map::new();
    for part in [first, second] {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{fixture, recorded};

    #[test]
    fn a_node_prints_as_recorded() {
        let recorded = recorded::json(include_str!("../../tests/data/show-node.json"));
        recorded::assert_same_json(&node(&fixture::node(0)), &recorded["nodes"][0]);
    }
}
