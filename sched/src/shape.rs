//! Which nodes could ever run a request, and whether they could together.
//!
//! Owns the static judgement of a request in a partition: features, exclusions, hardware, and whether the whole would
//! fit on empty nodes. Made once for each distinct request of a pass, however many jobs share it. Must not look at what
//! is in use.

use crate::demand::{Demand, MemoryDemand, Tasks};
use crate::feasibility::Infeasible;
use crate::input::{ClusterView, PartitionView};
use crate::placement::{self, Extent, Share};
use crate::timeline::{self, CPUS, GRES, MEMORY};
use sluice_model::node::NodeSpec;
use sluice_model::{Reason, ResourceRequest};
use std::collections::BTreeMap;

/// A request as one partition sees it.
pub(crate) struct Shape {
    pub demand: Demand,
    pub partition: u32,
    /// Slot of the partition's CPUs when it has MaxCPUsPerNode.
    pub limited_slot: Option<usize>,
    /// Nodes that satisfy it when empty and that take jobs now: ascending positions.
    pub nodes: Vec<u32>,
    /// Those of `--nodelist`, ascending.
    pub required: Vec<u32>,
    /// A row of the licence node, if licences are asked for.
    pub licenses: Option<Vec<i64>>,
    /// More than one weight among its nodes.
    pub weighted: bool,
    pub verdict: Verdict,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Possible,
    /// It could run if nodes that are down or drained came back.
    NodesMissing(Reason),
    Never(Infeasible),
}

impl Shape {
    /// Where to look and what to ask. `limited_slot` and `licenses` come from the timeline's layout.
    pub fn new(
        cluster: ClusterView<'_>,
        request: &ResourceRequest,
        licenses: &BTreeMap<String, u32>,
        exclusive: bool,
        partition: u32,
    ) -> Shape {
        let view = &cluster.partitions[partition as usize];
        let demand = Demand::new(request, view, cluster.policy, exclusive);
        let mut shape = Shape {
            demand,
            partition,
            limited_slot: None,
            nodes: Vec::new(),
            required: Vec::new(),
            licenses: None,
            weighted: false,
            verdict: Verdict::Possible,
        };
        if let Err(never) = shape.fill(cluster, view, request, licenses) {
            shape.verdict = Verdict::Never(never);
        }
        shape
    }

    fn fill(
        &mut self,
        cluster: ClusterView<'_>,
        view: &PartitionView,
        request: &ResourceRequest,
        licenses: &BTreeMap<String, u32>,
    ) -> Result<(), Infeasible> {
        if !request.node_list.is_empty() {
            let known: BTreeMap<&str, u32> = cluster.nodes.iter().map(|n| n.spec.name.as_str()).zip(0..).collect();
            for name in &request.node_list {
                let at = known.get(name.as_str());
                let unknown = || Infeasible::UnknownNode { name: name.as_str().to_owned() };
                self.required.push(*at.ok_or_else(unknown)?);
            }
            self.required.sort_unstable();
            self.required.dedup();
        }
        for (name, count) in licenses {
            let total = *cluster.licenses.get(name).unwrap_or(&0);
            if total < *count {
                return Err(Infeasible::Licenses { name: name.clone(), asked: *count, total });
            }
        }
        let limit = view.max_nodes.unwrap_or(u32::MAX).min(u32::try_from(view.nodes.len()).unwrap_or(u32::MAX));
        let demand = &self.demand;
        if demand.min_nodes > limit {
            return Err(Infeasible::NodeLimit { asked: demand.min_nodes, limit });
        }
        if let Some(max) = demand.max_nodes
            && max < demand.min_nodes
        {
            let detail = format!("at most {max} nodes are asked for, but {} are needed", demand.min_nodes);
            return Err(Infeasible::Configuration { detail });
        }
        let fewest = match demand.tasks {
            Tasks::Total { count, .. } => count,
            Tasks::PerNode(_) => u32::MAX,
        };
        let fewest = fewest.min(demand.max_nodes.unwrap_or(u32::MAX));
        if fewest < view.min_nodes {
            // The partition gives at least so many nodes: more than the job may have, or has tasks for.
            return Err(Infeasible::NodeLimit { asked: fewest, limit: view.min_nodes });
        }

        let mut all: Vec<u32> = view.nodes.iter().copied().filter(|n| (*n as usize) < cluster.nodes.len()).collect();
        all.sort_unstable();
        all.dedup();
        let exclude: Vec<&str> = request.exclude.iter().map(|n| n.as_str()).collect();
        all.retain(|n| {
            let spec = &cluster.nodes[*n as usize].spec;
            !exclude.contains(&spec.name.as_str())
                && request.constraint.as_ref().is_none_or(|c| c.matches(&spec.features))
                && spec.tmp_disk_mb >= self.demand.tmp_disk_mb
                && self.fits_empty(spec)
        });
        let weight = |n: &u32| cluster.nodes[*n as usize].spec.weight;
        self.weighted = all.iter().any(|n| weight(n) != weight(&all[0]));
        // Judged on empty nodes: all of them, then those that take jobs now.
        if self.place_empty(cluster, &all).is_none() {
            return Err(self.why_not(cluster, view, request, &all));
        }
        let (nodes, missing): (Vec<u32>, Vec<u32>) =
            all.into_iter().partition(|n| cluster.nodes[*n as usize].available);
        if !missing.is_empty() && self.place_empty(cluster, &nodes).is_none() {
            let asked = self.required.iter().any(|n| missing.contains(n));
            self.verdict = Verdict::NodesMissing(if asked { Reason::ReqNodeNotAvail } else { Reason::NodeDown });
        }
        self.nodes = nodes;
        Ok(())
    }

    fn fits_empty(&self, spec: &NodeSpec) -> bool {
        let row = empty_row(spec, &self.demand);
        placement::capacity(self, spec, &row, &mut Vec::new()).is_some()
    }

    fn place_empty(&self, cluster: ClusterView<'_>, nodes: &[u32]) -> Option<Vec<Share>> {
        let mut scratch = Vec::new();
        let mut candidates = Vec::with_capacity(nodes.len().min(64));
        // For a plain request of one node the first will do.
        let enough = if self.is_plain() { 1 } else { usize::MAX };
        for node in nodes {
            let spec = &cluster.nodes[*node as usize].spec;
            let row = empty_row(spec, &self.demand);
            if let Some(capacity) = placement::capacity(self, spec, &row, &mut scratch) {
                candidates.push(placement::Candidate::new(self, *node, spec, &row, capacity));
                if candidates.len() >= enough {
                    break;
                }
            }
        }
        placement::select(self, candidates, Extent::Least)
    }

    /// One node is all it needs, where that suffices.
    pub fn one_node(&self) -> bool {
        self.required.is_empty() && self.demand.min_nodes == 1 && self.demand.max_nodes.is_none_or(|m| m == 1)
    }

    /// Any one node that can take a task is enough.
    fn is_plain(&self) -> bool {
        self.required.is_empty()
            && self.demand.job_gres.is_empty()
            && self.demand.min_nodes == 1
            && match self.demand.tasks {
                Tasks::Total { count, .. } => count == 1,
                Tasks::PerNode(_) => true,
            }
    }

    /// In the words a user can act on.
    fn why_not(
        &self,
        cluster: ClusterView<'_>,
        view: &PartitionView,
        request: &ResourceRequest,
        fitting: &[u32],
    ) -> Infeasible {
        let demand = &self.demand;
        let specs: Vec<&NodeSpec> =
            view.nodes.iter().filter_map(|n| cluster.nodes.get(*n as usize)).map(|n| &*n.spec).collect();
        if let Some(name) = request
            .constraint
            .iter()
            .flat_map(|c| c.features())
            .find(|f| cluster.nodes.iter().all(|n| n.spec.features.iter().all(|have| have != f)))
        {
            return Infeasible::UnknownFeature { name: name.to_owned() };
        }
        if let Some(unknown) = request
            .gres
            .iter()
            .find(|g| g.count > 0 && cluster.nodes.iter().all(|n| n.spec.gres.iter().all(|have| have.name != g.name)))
        {
            return Infeasible::UnknownGres { name: unknown.name.clone() };
        }
        let least = match demand.tasks {
            Tasks::Total { .. } => 1,
            Tasks::PerNode(n) => n,
        };
        let cpus_needed = demand.needed_cpus(least);
        let per_node = |s: &NodeSpec| s.cpus.min(demand.max_cpus_per_node.unwrap_or(u32::MAX));
        let most_cpus = specs.iter().map(|s| per_node(s)).max().unwrap_or(0);
        if cpus_needed > most_cpus {
            let detail = format!("{cpus_needed} CPUs on one node are asked for, the largest node gives {most_cpus}");
            return Infeasible::Configuration { detail };
        }
        let cap = |s: &NodeSpec| s.memory_mb.min(demand.max_memory_per_node_mb.unwrap_or(u64::MAX));
        let most_memory = specs.iter().map(|s| cap(s)).max().unwrap_or(0);
        let least_memory = specs.iter().map(|s| demand.memory_mb(s, demand.given_cpus(s, least), 1)).min().unwrap_or(0);
        if !matches!(demand.memory, MemoryDemand::All) && least_memory > most_memory {
            return Infeasible::Memory { asked_mb: least_memory, limit_mb: most_memory };
        }
        let total: u64 = specs.iter().map(|s| u64::from(per_node(s))).sum();
        let asked = if demand.overcommit {
            u64::from(demand.min_nodes) * u64::from(demand.cpus_per_task)
        } else {
            u64::from(demand.least_tasks()) * u64::from(demand.cpus_per_task)
        };
        if asked > total && demand.max_nodes.is_none() {
            return Infeasible::MoreProcessors { asked, total };
        }
        let nodes = demand.min_nodes;
        let detail = if let Some(n) = self.required.iter().find(|n| fitting.binary_search(n).is_err()) {
            format!("node {} of the node list can not run it", cluster.nodes[*n as usize].spec.name)
        } else if fitting.is_empty() {
            format!("no node of partition {} has what is asked for", view.name)
        } else {
            let fit = fitting.len();
            format!("{nodes} node(s) together can not run it: {fit} of partition {} have what one needs", view.name)
        };
        Infeasible::Configuration { detail }
    }
}

/// What an empty node has free, with a slot for each GRES entry and one for the partition's limit.
fn empty_row(spec: &NodeSpec, demand: &Demand) -> Vec<i64> {
    let mut row = vec![0; GRES + spec.gres.len()];
    row[CPUS] = i64::from(spec.cpus.min(demand.max_cpus_per_node.unwrap_or(u32::MAX)));
    row[MEMORY] = i64::try_from(spec.memory_mb).unwrap_or(i64::MAX);
    for (slot, gres) in row[GRES..].iter_mut().zip(&spec.gres) {
        *slot = i64::try_from(gres.count).unwrap_or(i64::MAX);
    }
    row
}

impl Shape {
    /// Ties the shape to a timeline's layout.
    pub fn bind(&mut self, timeline: &timeline::Timeline, licenses: &BTreeMap<String, u32>) {
        self.limited_slot = timeline.layout.limited.get(self.partition as usize).copied().flatten();
        self.licenses = (!licenses.is_empty()).then(|| timeline.license_row(licenses));
    }
}
