//! Nodes and partitions, declared and live.

use super::{
    ConvertError, Result, convert, convert_list, convert_optional, names_from_disk, names_to_disk, required,
    time_to_disk,
};
use sluice_engine::node::{Node, NodeReason};
use sluice_model::node::{NodeFlags, NodeSpec};
use sluice_model::partition::{PartitionSpec, PartitionState};
use sluice_model::tres_weights::TresWeights;
use sluice_model::{JobId, NodeName, Time};
use sluice_proto::convert::job_id;
use sluice_proto::v1;
use std::sync::Arc;

pub fn node_to_disk(node: &Node) -> v1::DiskNode {
    let Node { spec, flags, reason, report, jobs, stale, silent_since, last_busy, registered, comment } = node;
    let NodeFlags { down, drain, fail, unknown, not_responding } = *flags;
    v1::DiskNode {
        spec: Some(spec_to_disk(spec)),
        flags: Some(v1::DiskNodeFlags { down, drain, fail, unknown, not_responding }),
        reason: reason.as_ref().map(reason_to_disk),
        report: report.as_ref().map(|r| (&**r).into()),
        jobs: jobs.iter().map(|job| job.0).collect(),
        stale: attempts_to_disk(stale),
        silent_since: time_to_disk(*silent_since),
        last_busy: time_to_disk(*last_busy),
        registered: time_to_disk(*registered),
        comment: comment.clone(),
    }
}

pub fn node_from_disk(node: v1::DiskNode) -> Result<Node> {
    let v1::DiskNodeFlags { down, drain, fail, unknown, not_responding } = required(node.flags, "flags")?;
    Ok(Node {
        spec: Arc::new(spec_from_disk(required(node.spec, "spec")?)?),
        flags: NodeFlags { down, drain, fail, unknown, not_responding },
        reason: node.reason.map(reason_from_disk),
        report: convert_optional(node.report, "report")?.map(Arc::new),
        jobs: super::job::ids_from_disk(node.jobs, "jobs")?.into_iter().collect(),
        stale: attempts_from_disk(node.stale)?.into_iter().collect(),
        silent_since: node.silent_since.map(Time),
        last_busy: node.last_busy.map(Time),
        registered: node.registered.map(Time),
        comment: node.comment,
    })
}

pub(super) fn attempts_to_disk<'a>(attempts: impl IntoIterator<Item = &'a (JobId, u32)>) -> Vec<v1::DiskAttempt> {
    attempts.into_iter().map(|(job, attempt)| v1::DiskAttempt { job: job.0, attempt: *attempt }).collect()
}

pub(super) fn attempts_from_disk(attempts: Vec<v1::DiskAttempt>) -> Result<Vec<(JobId, u32)>> {
    attempts.into_iter().map(|a| Ok((job_id(a.job, "stale.job")?, a.attempt))).collect()
}

pub(super) fn reason_to_disk(reason: &NodeReason) -> v1::DiskNodeReason {
    let NodeReason { text, uid, at } = reason;
    v1::DiskNodeReason { text: text.clone(), uid: *uid, at: at.0 }
}

pub(super) fn reason_from_disk(reason: v1::DiskNodeReason) -> NodeReason {
    NodeReason { text: reason.text, uid: reason.uid, at: Time(reason.at) }
}

pub(super) fn spec_to_disk(spec: &NodeSpec) -> v1::DiskNodeSpec {
    let NodeSpec {
        name,
        address,
        sockets,
        cores_per_socket,
        threads_per_core,
        cpus,
        memory_mb,
        tmp_disk_mb,
        gres,
        features,
        weight,
    } = spec;
    v1::DiskNodeSpec {
        name: name.as_str().to_owned(),
        address: address.clone(),
        sockets: *sockets,
        cores_per_socket: *cores_per_socket,
        threads_per_core: *threads_per_core,
        cpus: *cpus,
        memory_mb: *memory_mb,
        tmp_disk_mb: *tmp_disk_mb,
        gres: gres.iter().map(Into::into).collect(),
        features: features.clone(),
        weight: *weight,
    }
}

pub(super) fn spec_from_disk(spec: v1::DiskNodeSpec) -> Result<NodeSpec> {
    Ok(NodeSpec {
        name: NodeName::new(spec.name),
        address: spec.address,
        sockets: spec.sockets,
        cores_per_socket: spec.cores_per_socket,
        threads_per_core: spec.threads_per_core,
        cpus: spec.cpus,
        memory_mb: spec.memory_mb,
        tmp_disk_mb: spec.tmp_disk_mb,
        gres: convert_list(spec.gres, "gres")?,
        features: spec.features,
        weight: spec.weight,
    })
}

pub fn partition_to_disk(partition: &PartitionSpec) -> v1::DiskPartition {
    let PartitionSpec {
        name,
        nodes,
        default,
        max_time,
        default_time,
        min_nodes,
        max_nodes,
        priority_tier,
        priority_job_factor,
        state,
        allow_users,
        allow_groups,
        allow_accounts,
        allow_qos,
        root_only,
        hidden,
        exclusive,
        default_memory_per_cpu_mb,
        default_memory_per_node_mb,
        max_memory_per_node_mb,
        max_cpus_per_node,
        grace_secs,
        preempt_mode,
        billing_weights,
        qos,
        least_loaded,
    } = partition;
    v1::DiskPartition {
        name: name.clone(),
        nodes: names_to_disk(nodes),
        default: *default,
        max_time: Some(max_time.into()),
        default_time: default_time.as_ref().map(Into::into),
        min_nodes: *min_nodes,
        max_nodes: *max_nodes,
        priority_tier: *priority_tier,
        priority_job_factor: *priority_job_factor,
        state: state_to_disk(*state),
        allow_users: allow_users.clone(),
        allow_groups: allow_groups.clone(),
        allow_accounts: allow_accounts.clone(),
        allow_qos: allow_qos.clone(),
        root_only: *root_only,
        hidden: *hidden,
        exclusive: *exclusive,
        default_memory_per_cpu_mb: *default_memory_per_cpu_mb,
        default_memory_per_node_mb: *default_memory_per_node_mb,
        max_memory_per_node_mb: *max_memory_per_node_mb,
        max_cpus_per_node: *max_cpus_per_node,
        grace_secs: *grace_secs,
        preempt_mode: preempt_mode.map(|m| m.code()),
        billing_weights: billing_weights.to_string(),
        qos: qos.clone(),
        least_loaded: *least_loaded,
    }
}

pub fn partition_from_disk(partition: v1::DiskPartition) -> Result<PartitionSpec> {
    Ok(PartitionSpec {
        name: partition.name,
        nodes: names_from_disk(partition.nodes),
        default: partition.default,
        max_time: convert(partition.max_time, "max_time")?,
        default_time: convert_optional(partition.default_time, "default_time")?,
        min_nodes: partition.min_nodes,
        max_nodes: partition.max_nodes,
        priority_tier: partition.priority_tier,
        priority_job_factor: partition.priority_job_factor,
        state: state_from_disk(partition.state)?,
        allow_users: partition.allow_users,
        allow_groups: partition.allow_groups,
        allow_accounts: partition.allow_accounts,
        allow_qos: partition.allow_qos,
        root_only: partition.root_only,
        hidden: partition.hidden,
        exclusive: partition.exclusive,
        default_memory_per_cpu_mb: partition.default_memory_per_cpu_mb,
        default_memory_per_node_mb: partition.default_memory_per_node_mb,
        max_memory_per_node_mb: partition.max_memory_per_node_mb,
        max_cpus_per_node: partition.max_cpus_per_node,
        grace_secs: partition.grace_secs,
        preempt_mode: partition.preempt_mode.map(super::config::mode_from_disk).transpose()?,
        billing_weights: TresWeights::parse(&partition.billing_weights)
            .map_err(|e| ConvertError::new("billing_weights", e.to_string()))?,
        qos: partition.qos,
        least_loaded: partition.least_loaded,
    })
}

pub(super) fn state_to_disk(state: PartitionState) -> u32 {
    match state {
        PartitionState::Up => 0,
        PartitionState::Down => 1,
        PartitionState::Drain => 2,
        PartitionState::Inactive => 3,
    }
}

pub(super) fn state_from_disk(state: u32) -> Result<PartitionState> {
    match state {
        0 => Ok(PartitionState::Up),
        1 => Ok(PartitionState::Down),
        2 => Ok(PartitionState::Drain),
        3 => Ok(PartitionState::Inactive),
        other => Err(ConvertError::new("state", format!("is {other}, which this release does not know"))),
    }
}
