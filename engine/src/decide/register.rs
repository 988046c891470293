//! A node daemon comes (back): settles what both sides believe to be running there.

use super::Cx;
use super::node::NOT_RESPONDING;
use crate::command::Reply;
use crate::effect::Effect;
use crate::event::Event;
use crate::job::Phase;
use crate::node::Node;
use crate::query;
use crate::reject::Reject;
use sluice_model::node::NodeReport;
use sluice_model::{JobId, NodeName};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn register(
    cx: &mut Cx,
    name: &NodeName,
    report: &NodeReport,
    holds: &[(JobId, u32)],
) -> Result<Reply, Reject> {
    let node = cx.node(name).cloned().ok_or_else(|| Reject::InvalidNodeName { name: name.to_string() })?;
    let held: BTreeSet<(JobId, u32)> = holds.iter().copied().collect();
    let rebooted = node.report.as_ref().is_some_and(|r| r.boot_id != report.boot_id);
    let expected: BTreeSet<(JobId, u32)> = query::expected_attempts(cx, name).into_iter().collect();
    // What it holds though it should not: ended here while the node was away. Its cores may be in use until it is gone.
    let stale: Vec<(JobId, u32)> = held.difference(&expected).copied().collect();
    for (job, attempt) in &stale {
        cx.perform(Effect::EndAttempt { node: name.clone(), job: *job, attempt: *attempt });
    }
    let same_report = node.report.as_deref() == Some(report) && node.stale.iter().eq(stale.iter());
    if !same_report || node.flags.unknown || node.registered.is_none() {
        let report = Arc::new(report.clone());
        cx.emit(Event::NodeRegistered { node: name.clone(), report, stale, at: cx.now });
    }
    return_to_service(cx, name, &node);
    check_hardware(cx, name, &node, report);
    for (id, attempt) in expected {
        reconcile(cx, name, id, attempt, held.contains(&(id, attempt)), rebooted);
    }
    Ok(Reply::Done)
}

/// A node that was down only for its silence is up again.
fn return_to_service(cx: &mut Cx, name: &NodeName, node: &Node) {
    let silent_only = node.flags.down && node.reason.as_ref().is_some_and(|r| r.text == NOT_RESPONDING);
    if !node.flags.not_responding && !silent_only {
        return;
    }
    let down = node.flags.down && !silent_only;
    let reason = node.reason.clone().filter(|_| !silent_only);
    cx.emit(Event::NodeHealth { node: name.clone(), not_responding: false, down, reason, at: cx.now });
}

/// Less hardware than declared takes the node out of service (slurm.conf: a node that registers with less is drained).
fn check_hardware(cx: &mut Cx, name: &NodeName, node: &Node, report: &NodeReport) {
    if node.flags.drain {
        return;
    }
    let spec = &node.spec;
    let low_gres = spec.gres.iter().find(|g| {
        let found: u64 = report
            .gres
            .iter()
            .filter(|r| r.name == g.name && (g.kind.is_none() || r.kind == g.kind))
            .map(|r| r.count)
            .sum();
        found < g.count
    });
    let why = if report.cpus < spec.cpus {
        "Low socket*core*thread count".to_owned()
    } else if report.memory_mb < spec.memory_mb {
        "Low RealMemory".to_owned()
    } else if let Some(g) = low_gres {
        format!("gres/{} count reported lower than configured", g.name)
    } else {
        return;
    };
    cx.drain_node(name, why);
}

/// One attempt that should be there.
fn reconcile(cx: &mut Cx, name: &NodeName, id: JobId, attempt: u32, held: bool, rebooted: bool) {
    let Some(job) = cx.job_now(id) else { return };
    match &job.phase {
        Phase::Running(run) => {
            let confirmed = run.confirmed_on.contains(name);
            if !held && (confirmed || rebooted) {
                // It was there, or may have been before the reboot: it is lost, and is not started twice.
                cx.lose_job_on(id, name);
            } else if !confirmed || !held {
                cx.perform(Effect::Launch { job: id, attempt });
            } else if run.suspended_since.is_some() {
                cx.perform(Effect::Suspend { node: name.clone(), job: id, attempt, resume: false });
            }
        }
        Phase::Completing { .. } => {
            cx.perform(Effect::EndAttempt { node: name.clone(), job: id, attempt });
        }
        Phase::Pending | Phase::Ended { .. } => {}
    }
}
