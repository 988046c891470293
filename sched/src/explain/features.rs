//! What the features of a job ask of its nodes together: how many have what, and which of them are free.

use super::{Obstacle, Survey};
use crate::input::Input;
use sluice_model::request::Constraint;
use sluice_model::{NodeSpec, ResourceRequest};

/// A count, or one of the alternatives of which all nodes must have the same one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureNeed {
    /// As the user wrote it.
    pub wanted: String,
    /// One of several: any of them will do.
    pub alternative: bool,
    pub needs: u32,
    /// Nodes that have it and could take a share now.
    pub free: u32,
    /// Nodes that have it and could take one when they are free and in service.
    pub could: u32,
}

/// This node may be one of the job's.
pub(super) fn admit(request: &ResourceRequest, spec: &NodeSpec) -> bool {
    let by = |c: &Option<Constraint>| c.as_ref().is_none_or(|c| c.matches(&spec.features));
    (request.prefer.is_some() && by(&request.prefer)) || by(&request.constraint)
}

pub(super) fn text(request: &ResourceRequest) -> String {
    let written = request.constraint_text.clone();
    written.or_else(|| request.constraint.as_ref().map(ToString::to_string)).unwrap_or_default()
}

/// Of `--constraint`: what is preferred is not needed.
pub(super) fn needs(input: &Input, request: &ResourceRequest, survey: &Survey) -> Vec<FeatureNeed> {
    let Some(constraint) = &request.constraint else { return Vec::new() };
    let wanted = constraint.wanted();
    let has = |c: &Constraint, node: &u32| c.matches(&input.nodes[*node as usize].spec.features);
    let need = |c: &Constraint, needs: u32, alternative: bool| {
        let free = survey.free_nodes.iter().filter(|n| has(c, n)).count() as u32;
        let later = |o: &Obstacle| o.passes() || matches!(o, Obstacle::Unavailable);
        let busy = survey.obstacles.iter().filter(|(n, o)| later(o) && has(c, n)).count() as u32;
        FeatureNeed { wanted: c.to_string(), alternative, needs, free, could: free + busy }
    };
    let alternatives = wanted.alternatives.iter().map(|c| need(c, survey.nodes_needed, true));
    alternatives.chain(wanted.counts.iter().map(|(c, n)| need(c, *n, false))).collect()
}
