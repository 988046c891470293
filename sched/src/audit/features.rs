//! Do these nodes have the features asked for, each and together?
//!
//! By Hall's theorem: counts can be met by distinct nodes when, for every set of counts, enough nodes have one of them.

use sluice_model::request::Constraint;
use sluice_model::{NodeSpec, ResourceRequest};

/// More counts than this in one expression are not checked against each other: their sets would be too many.
const MOST_COUNTS: usize = 16;

/// As `--prefer` has it, or as `--constraint`.
pub(super) fn satisfied(request: &ResourceRequest, nodes: &[&NodeSpec]) -> bool {
    let by = |c: &Option<Constraint>| c.as_ref().is_none_or(|c| all_satisfy(c, nodes));
    (request.prefer.is_some() && by(&request.prefer)) || by(&request.constraint)
}

fn all_satisfy(constraint: &Constraint, nodes: &[&NodeSpec]) -> bool {
    let wanted = constraint.wanted();
    let has = |c: &Constraint, node: &NodeSpec| c.matches(&node.features);
    let all_have = |c: &Constraint| nodes.iter().all(|n| has(c, n));
    if !wanted.every.iter().all(|c| all_have(c)) {
        return false;
    }
    if !wanted.alternatives.is_empty() && !wanted.alternatives.iter().any(|c| all_have(c)) {
        return false;
    }
    let counts = &wanted.counts[..wanted.counts.len().min(MOST_COUNTS)];
    (0u32..1 << counts.len()).all(|set| {
        let chosen: Vec<_> = counts.iter().enumerate().filter(|(i, _)| set & (1 << i) != 0).map(|(_, c)| c).collect();
        let needed: usize = chosen.iter().map(|(_, n)| *n as usize).sum();
        nodes.iter().filter(|node| chosen.iter().any(|(c, _)| has(c, node))).count() >= needed
    })
}
