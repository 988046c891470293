//! Events about nodes.

use crate::command::{NodeChange, NodeStateChange};
use crate::node::NodeReason;
use crate::state::State;
use sluice_model::node::NodeReport;
use sluice_model::{JobId, NodeName, NodeSpec, Time};
use std::sync::Arc;

pub(super) fn registered(
    state: &mut State,
    name: &NodeName,
    report: &Arc<NodeReport>,
    stale: &[(JobId, u32)],
    at: Time,
) {
    state.edit_node(name, |n| {
        n.report = Some(Arc::clone(report));
        n.stale = stale.iter().copied().collect();
        n.flags.unknown = false;
        n.registered = Some(at);
    });
}

pub(super) fn health(
    state: &mut State,
    name: &NodeName,
    not_responding: bool,
    down: bool,
    reason: Option<&NodeReason>,
    at: Time,
) {
    state.edit_node(name, |n| {
        n.flags.not_responding = not_responding;
        n.flags.down = down;
        n.silent_since = if not_responding { n.silent_since.or(Some(at)) } else { None };
        n.reason = reason.cloned();
    });
}

pub(super) fn updated(state: &mut State, name: &NodeName, change: &NodeChange, reason: Option<&NodeReason>) {
    state.edit_node(name, |n| {
        match change.state {
            Some(NodeStateChange::Drain) => n.flags.drain = true,
            Some(NodeStateChange::Undrain) => n.flags.drain = false,
            Some(NodeStateChange::Down) => n.flags.down = true,
            Some(NodeStateChange::Fail) => n.flags.fail = true,
            Some(NodeStateChange::Resume) => {
                n.flags.drain = false;
                n.flags.down = false;
                n.flags.fail = false;
            }
            None => {}
        }
        n.reason = reason.cloned();
        if change.weight.is_some() || change.features.is_some() {
            let mut spec = NodeSpec::clone(&n.spec);
            spec.weight = change.weight.unwrap_or(spec.weight);
            if let Some(features) = &change.features {
                spec.features.clone_from(features);
            }
            n.spec = Arc::new(spec);
        }
        if let Some(comment) = &change.comment {
            n.comment = Some(comment.clone()).filter(|c| !c.is_empty());
        }
    });
    if change.weight.is_some() || change.features.is_some() {
        state.refresh_hardware();
    }
}
