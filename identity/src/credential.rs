//! What jobs and steps hold: the controller's word on a job, and the step manager's word on a step of it. Nodes believe
//! both without asking anyone.

use crate::cluster::ClusterKeys;
use crate::error::Refused;
use crate::host::{self, Cluster, HostKeys};
use crate::sign::{self, Kind};
use prost::Message;
use sluice_model::{Allocation, IndexSet, NodeAlloc, StepKey};
use sluice_proto::v1;
use std::collections::BTreeSet;

/// The body must name this cluster.
pub fn sign_job(keys: &ClusterKeys, body: &v1::JobCredentialBody) -> v1::JobCredential {
    let body = body.encode_to_vec();
    let signature = keys.sign(Kind::JobCredential, &body).into();
    v1::JobCredential { body: body.into(), signature }
}

/// A job as the controller vouched for it.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifiedJob {
    pub body: v1::JobCredentialBody,
    pub allocation: Allocation,
}

/// Whether this attempt still runs is for the node to know; the credential says what it may use.
pub fn verify_job(credential: &v1::JobCredential, cluster: &Cluster, now: i64) -> Result<VerifiedJob, Refused> {
    let what = Kind::JobCredential.what();
    sign::verify(&cluster.key, Kind::JobCredential, &credential.body, &credential.signature)?;
    let body = v1::JobCredentialBody::decode(credential.body.clone()).map_err(|_| Refused::Unreadable { what })?;
    if body.cluster != cluster.name {
        return Err(Refused::OtherCluster { what, cluster: body.cluster });
    }
    let expires_at = if body.expires_at == 0 { i64::MAX } else { body.expires_at };
    crate::token::check_time(what, body.issued_at, expires_at, now)?;
    let allocation = body.allocation.clone().ok_or(Refused::Unreadable { what })?;
    let allocation = Allocation::try_from(allocation).map_err(|_| Refused::Unreadable { what })?;
    Ok(VerifiedJob { body, allocation })
}

/// Signed by the step manager: the host of the allocation's first node.
pub fn sign_grant(keys: &HostKeys, body: &v1::StepGrantBody, job: v1::JobCredential) -> v1::StepGrant {
    let body = body.encode_to_vec();
    v1::StepGrant {
        signature: keys.sign(Kind::StepGrant, &body).into(),
        body: body.into(),
        host: Some(keys.credential().clone()),
        credential: Some(job),
    }
}

/// A step that its job's step manager granted, within what the job holds.
#[derive(Clone, PartialEq, Debug)]
pub struct VerifiedGrant {
    pub key: StepKey,
    pub body: v1::StepGrantBody,
    pub job: VerifiedJob,
}

pub fn verify_grant(grant: &v1::StepGrant, cluster: &Cluster, now: i64) -> Result<VerifiedGrant, Refused> {
    let what = Kind::StepGrant.what();
    let unreadable = Refused::Unreadable { what };
    let job = verify_job(grant.credential.as_ref().ok_or(unreadable.clone())?, cluster, now)?;
    let credential = grant.host.as_ref().ok_or(unreadable.clone())?;
    let host = host::verify_credential(credential, &cluster.name, &cluster.key, now)?;
    let key = host.public_key.as_ref().try_into().map_err(|_| Refused::Unreadable { what: "host credential" })?;
    sign::verify(&key, Kind::StepGrant, &grant.body, &grant.signature)?;
    let body = v1::StepGrantBody::decode(grant.body.clone()).map_err(|_| unreadable.clone())?;
    let key: StepKey = body.key.ok_or(unreadable.clone())?.try_into().map_err(|_| unreadable)?;
    let manager = job.allocation.nodes.first().map(|n| n.node.as_str());
    if !host.compute || manager != Some(host.host.as_str()) {
        return Err(Refused::Role { host: host.host, problem: "is not the step manager of this job" });
    }
    within(&body, key, &job)?;
    Ok(VerifiedGrant { key, body, job })
}

/// The step uses nothing that its job does not hold.
fn within(body: &v1::StepGrantBody, key: StepKey, job: &VerifiedJob) -> Result<(), Refused> {
    let beyond = |problem: String| Err(Refused::BeyondJob { problem });
    if key.job.0 != job.body.job || key.attempt != job.body.attempt {
        return beyond(format!("step {key} is of another job or attempt"));
    }
    let mut seen = BTreeSet::new();
    for step in &body.nodes {
        let Some(held) = job.allocation.nodes.iter().find(|n| n.node.as_str() == step.node) else {
            return beyond(format!("node {} is not the job's", step.node));
        };
        if !seen.insert(step.node.as_str()) {
            return beyond(format!("node {} appears twice", step.node));
        }
        if let Err(problem) = node_within(step, held) {
            return beyond(format!("{problem} on node {}", step.node));
        }
    }
    Ok(())
}

fn node_within(step: &v1::StepNode, held: &NodeAlloc) -> Result<(), String> {
    let set = |message: &Option<v1::IndexSet>| {
        IndexSet::try_from(message.clone().unwrap_or_default()).map_err(|e| e.to_string())
    };
    let cpus = set(&step.cpus)?;
    if !cpus.is_subset(&held.cpus) {
        return Err(format!("cores {cpus} are not all among {}", held.cpus));
    }
    // 0: the job holds all of the node's memory.
    if held.memory_mb != 0 && step.memory_mb > held.memory_mb {
        return Err(format!("{} MiB are more than {}", step.memory_mb, held.memory_mb));
    }
    for gres in &step.gres {
        let indices = set(&gres.indices)?;
        let mut of_kind = held.gres.iter().filter(|g| g.name == gres.name && g.kind == gres.kind);
        if !of_kind.any(|g| indices.is_subset(&g.indices)) {
            return Err(format!("{} {indices} are not the job's", gres.name));
        }
    }
    Ok(())
}
