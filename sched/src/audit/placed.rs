//! Where a started job was put: topology, sockets and cores, memory of GPUs.

use super::{Facts, Rule};
use crate::input::PendingJob;
use crate::plan::Start;
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>, job: &PendingJob, start: &Start, bad: &mut impl FnMut(Rule, String)) {
    let request = job.resources();
    let nodes: Vec<u32> =
        start.allocation.nodes.iter().filter_map(|h| facts.nodes.get(&h.node)).map(|(at, _)| *at).collect();
    if let Some(topology) = &facts.input.policy.topology {
        let mut by_leaf: BTreeMap<&str, u32> = BTreeMap::new();
        for node in &nodes {
            let leaf = topology.groups.iter().find(|g| g.level == 0 && g.nodes.contains(node));
            *by_leaf.entry(leaf.map_or("", |g| &g.name)).or_default() += 1;
        }
        if let Some(asked) = request.switches.filter(|_| !topology.blocks)
            && by_leaf.len() as u32 > asked.count
            && nodes.len() > 1
        {
            bad(Rule::Place, format!("{} leaf switches, at most {} asked for", by_leaf.len(), asked.count));
        }
        if let Some(segment) = request.segment.filter(|s| topology.blocks && *s > 0)
            && nodes.len() > 1
            && by_leaf.values().any(|n| !n.is_multiple_of(segment))
        {
            bad(Rule::Place, format!("no whole segments of {segment} nodes: {by_leaf:?}"));
        }
    }
    for held in &start.allocation.nodes {
        let Some((_, view)) = facts.nodes.get(&held.node) else { continue };
        let spec = &*view.spec;
        let has = [spec.sockets, spec.cores_per_socket, spec.threads_per_core];
        let asked = [request.sockets_per_node, request.cores_per_socket, request.threads_per_core];
        if asked.iter().zip(has).any(|(asked, has)| asked.is_some_and(|n| n > has)) {
            bad(Rule::Place, format!("{} has {has:?} sockets, cores, threads; {asked:?} asked for", spec.name));
        }
        let cores = u64::from(spec.sockets) * u64::from(spec.cores_per_socket);
        let bounds = [(request.ntasks_per_socket, u64::from(spec.sockets)), (request.ntasks_per_core, cores)];
        if bounds.iter().any(|(most, of)| most.is_some_and(|most| u64::from(held.tasks) > u64::from(most) * of)) {
            bad(Rule::Place, format!("{} tasks on {}: too many for its sockets or cores", held.tasks, spec.name));
        }
        let whole = held.cpus.len() == u64::from(spec.cpus);
        for gres in &held.gres {
            let Some(have) = spec.gres.iter().find(|h| h.name == gres.name && h.kind == gres.kind) else { continue };
            if gres.name == "gpu" && !whole && have.memory_mb < request.gpu_memory_mb {
                bad(Rule::Gres, format!("GPUs of {} MiB on {}", have.memory_mb, spec.name));
            }
            // Of the first entry of its name the numbers begin at 0; others are left to the tests of the choice.
            let first = spec.gres.iter().find(|h| h.name == gres.name).is_some_and(|h| std::ptr::eq(h, have));
            let near = |cpu: u32| {
                gres.indices.iter().filter_map(|d| have.cores_of(u64::from(d))).any(|cores| cores.contains(cpu))
            };
            if request.enforce_binding && first && !have.cores.is_empty() && !held.cpus.iter().all(near) {
                bad(Rule::Place, format!("cores {} of {} are far from its devices", held.cpus, spec.name));
            }
        }
    }
}
