//! No start of the plan breaks a limit of its association or QOS: what runs and what was started before it is added up.

use super::{Facts, Rule, Violation};
use crate::limits::{Ask, Tally};
use crate::plan::Plan;
use sluice_model::Allocation;
use sluice_model::tres::Tres;
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>, plan: &Plan, found: &mut Vec<Violation>) {
    let Some(rules) = &facts.input.limits else { return };
    let mut tally = Tally::new(rules);
    let now = facts.now();
    let tres_of = |allocation: &Allocation, licenses: &BTreeMap<String, u32>, partition: Option<u32>| {
        let licenses = licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
        let mut tres = Tres { licenses, ..Tres::of_allocation(allocation) };
        if let Some(p) = partition.and_then(|p| facts.input.partitions.get(p as usize)) {
            tres.billing = p.billing_weights.billing_of(allocation, &tres, rules.max_tres) as u64;
        }
        tres
    };
    let qos = |p: Option<u32>| p.and_then(|p| facts.input.partitions.get(p as usize)?.qos);
    for job in &facts.input.running {
        let minutes = job.ends.map(|end| u64::try_from(end.0.saturating_sub(now)).unwrap_or(0).div_ceil(60_000));
        let tres = tres_of(&job.allocation, &job.licenses, job.partition);
        tally.add(&job.charge, qos(job.partition), &Ask { tres, nodes: Vec::new(), minutes });
    }
    for start in &plan.starts {
        let Some(job) = facts.pending.get(&start.job) else { continue };
        let at = facts.partition(&start.partition).map(|(at, _)| at);
        let one = |n: &sluice_model::NodeAlloc| Tres::of_allocation(&Allocation { nodes: vec![n.clone()] });
        let ask = Ask {
            tres: tres_of(&start.allocation, &job.request.licenses, at),
            nodes: start.allocation.nodes.iter().map(one).collect(),
            minutes: Ask::minutes_of(start.time_limit),
        };
        if let Err(hit) = tally.check(&job.charge, qos(at), &ask) {
            found.push(Violation { job: start.job, rule: Rule::Limits, detail: hit.to_string() });
        }
        tally.add(&job.charge, qos(at), &ask);
    }
}
