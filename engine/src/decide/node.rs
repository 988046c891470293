//! Nodes: silent, DOWN, and changed by an administrator.

use super::{Cx, operators_only};
use crate::command::{Caller, NodeChange, NodeStateChange, Reply};
use crate::event::Event;
use crate::job::{AfterEnd, Outcome, Phase};
use crate::node::NodeReason;
use crate::reject::Reject;
use sluice_model::job::JobKind;
use sluice_model::{JobId, JobState, NodeName, Reason};

/// The reason that lifts itself when the node is back (ReturnToService=1).
pub(super) const NOT_RESPONDING: &str = "Not responding";

/// Its link broke. It gets no new work; after `node_timeout` Tick declares it DOWN.
pub(super) fn silent(cx: &mut Cx, name: &NodeName) -> Result<Reply, Reject> {
    let node = cx.node(name).cloned().ok_or_else(|| Reject::InvalidNodeName { name: name.to_string() })?;
    if !node.flags.not_responding {
        let (down, reason) = (node.flags.down, node.reason.clone());
        cx.emit(Event::NodeHealth { node: name.clone(), not_responding: true, down, reason, at: cx.now });
    }
    Ok(Reply::Done)
}

impl Cx<'_> {
    /// Everything that had resources on the node is lost there.
    pub(super) fn lose_node(&mut self, name: &NodeName) {
        let Some(node) = self.node(name).cloned() else { return };
        for id in &node.jobs {
            self.lose_job_on(*id, name);
        }
    }

    /// The job's part on the node is lost: a running job fails or goes back to the queue, a completing one waits for
    /// this node no longer.
    pub(super) fn lose_job_on(&mut self, id: JobId, name: &NodeName) {
        let Some(job) = self.job_now(id) else { return };
        match &job.phase {
            Phase::Running(run) => {
                let again = job.requeue && matches!(job.spec.kind, JobKind::Batch { .. });
                let (outcome, then) = match &run.ending {
                    // What it was about to end as stands.
                    Some(outcome) => (outcome.clone(), run.then),
                    None => {
                        let detail = Some(format!("node {name} failed"));
                        let then = if again { AfterEnd::Requeue { hold: false } } else { AfterEnd::Finish };
                        (Outcome { detail, ..Outcome::of(JobState::NodeFail, Reason::NodeFail) }, then)
                    }
                };
                self.complete(id, outcome, std::slice::from_ref(name), then);
            }
            Phase::Completing { .. } => self.release_node(id, name),
            Phase::Pending | Phase::Ended { .. } => {}
        }
    }

    pub(super) fn drain_node(&mut self, name: &NodeName, why: String) {
        let change = NodeChange { state: Some(NodeStateChange::Drain), ..NodeChange::default() };
        let reason = Some(NodeReason { text: why, uid: 0, at: self.now });
        self.emit(Event::NodeUpdated { node: name.clone(), change, reason });
    }
}

/// scontrol update node.
pub(super) fn update_node(
    cx: &mut Cx,
    caller: &Caller,
    nodes: &[NodeName],
    change: &NodeChange,
) -> Result<Reply, Reject> {
    operators_only(caller, "changing nodes")?;
    for name in nodes {
        if cx.node(name).is_none() {
            return Err(Reject::InvalidNodeName { name: name.to_string() });
        }
    }
    let stops = matches!(change.state, Some(NodeStateChange::Drain | NodeStateChange::Down | NodeStateChange::Fail));
    for name in nodes {
        let Some(node) = cx.node(name).cloned() else { continue };
        // scontrol's manual page: DRAIN and DOWN need a reason, unless there is one.
        if stops && change.reason.is_none() && node.reason.is_none() {
            return Err(Reject::InvalidValue {
                key: "Reason".to_owned(),
                value: String::new(),
                allowed: "a reason, required for State=DRAIN, DOWN and FAIL".to_owned(),
            });
        }
        let said = change.reason.clone().map(|text| NodeReason { text, uid: caller.uid, at: cx.now });
        let fine = match change.state {
            Some(NodeStateChange::Resume) => true,
            Some(NodeStateChange::Undrain) => !node.flags.down && !node.flags.fail,
            _ => false,
        };
        // Whatever is right again needs no reason; a node that is only silent keeps being so.
        let reason = if fine { said.filter(|r| !r.text.is_empty()) } else { said.or_else(|| node.reason.clone()) };
        cx.emit(Event::NodeUpdated { node: name.clone(), change: change.clone(), reason });
        if change.state == Some(NodeStateChange::Down) {
            // scontrol's manual page: jobs on a node that is set DOWN are ended or requeued.
            let Some(node) = cx.node(name).cloned() else { continue };
            for id in &node.jobs {
                fail_on_live_node(cx, *id, name, node.flags.not_responding);
            }
        }
    }
    Ok(Reply::Done)
}

/// The node still answers, so its part must be confirmed gone like any other before its resources are free.
fn fail_on_live_node(cx: &mut Cx, id: JobId, name: &NodeName, silent: bool) {
    if silent {
        cx.lose_job_on(id, name);
        return;
    }
    let Some(job) = cx.job_now(id) else { return };
    let Phase::Running(run) = &job.phase else { return };
    let again = job.requeue && matches!(job.spec.kind, JobKind::Batch { .. });
    let then = if again { AfterEnd::Requeue { hold: false } } else { AfterEnd::Finish };
    let detail = Some(format!("node {name} was set down"));
    let outcome = run.ending.clone().unwrap_or(Outcome { detail, ..Outcome::of(JobState::NodeFail, Reason::NodeFail) });
    let then = if run.ending.is_some() { run.then } else { then };
    cx.complete(id, outcome, &[], then);
}
