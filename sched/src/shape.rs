//! Which nodes could ever run a request, and whether they could together.
//!
//! Owns the static judgement of a request in a partition: features, exclusions, hardware, and whether the whole would
//! fit on empty nodes. Made once for each distinct request of a pass, however many jobs share it. Must not look at what
//! is in use.

use crate::cluster::Cluster;
use crate::demand::{Demand, MemoryDemand, Tasks};
use crate::feasibility::Infeasible;
use crate::input::{ClusterView, PartitionView, Policy};
use crate::placement::{self, Candidate, Capacity, Extent, Near, Rank, Share, Wish};
use crate::timeline::{self, CPUS, GRES, MEMORY};
use crate::vacancy::Need;
use sluice_model::node::NodeSpec;
use sluice_model::request::Constraint;
use sluice_model::{Reason, ResourceRequest};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request as one partition sees it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub demand: Demand,
    pub partition: u32,
    /// Slot of the partition's CPUs when it has MaxCPUsPerNode.
    pub limited_slot: Option<usize>,
    /// Kinds of nodes that satisfy it when empty: by weight, then ascending.
    pub kinds: Vec<u32>,
    /// Where the kinds of each weight end in `kinds`.
    pub weights: Vec<usize>,
    /// Nodes of `--exclude`, ascending.
    excluded: Vec<u32>,
    /// Those of `--nodelist`, ascending.
    pub required: Vec<u32>,
    /// A row of the licence node, if licences are asked for.
    pub licenses: Option<Vec<i64>>,
    /// More than one weight among its nodes.
    pub weighted: bool,
    /// Which node is the better one.
    pub rank: Rank,
    /// What features say of the nodes together.
    pub wishes: Vec<Wish>,
    /// Where nodes are joined and it wants several: how near they must be.
    pub near: Option<Near>,
    pub verdict: Verdict,
    /// Least share on one node.
    pub need: Need,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Possible,
    /// It could run if nodes that are down or drained came back.
    NodesMissing(Reason),
    Never(Infeasible),
}

/// Whether this could ever run in the partition.
pub(crate) fn judge(
    cluster: ClusterView<'_>,
    request: &ResourceRequest,
    licenses: &BTreeMap<String, u32>,
    partition: u32,
) -> Result<(), Infeasible> {
    let mut shape = Shape::blank(cluster, request, false, partition);
    shape.check(cluster, request, licenses)?;
    let view = &cluster.partitions[partition as usize];
    let mut empty = Empty::default();
    let mut capacity = |n: u32| {
        let spec = &cluster.nodes.get(n as usize)?.spec;
        if shape.passes(request, spec) && !is_excluded(request, spec) { empty.capacity(&shape, spec) } else { None }
    };
    if shape.can_be_alone() && view.nodes.iter().any(|n| capacity(*n).is_some_and(|c| shape.satisfied_by(&c))) {
        // Most requests end here, after a look at one node.
        return Ok(());
    }
    // A few nodes more than are asked for are mostly enough to say yes.
    let some = (shape.demand.min_nodes as usize).saturating_mul(2).saturating_add(16);
    let mut some: Vec<u32> = view.nodes.iter().copied().filter(|n| capacity(*n).is_some()).take(some).collect();
    some.sort_unstable();
    some.dedup();
    if shape.place_empty(cluster, &some).is_some() {
        return Ok(());
    }
    let mut all: Vec<u32> = view.nodes.iter().copied().filter(|n| capacity(*n).is_some()).collect();
    all.sort_unstable();
    all.dedup();
    let weight = |n: &u32| cluster.nodes[*n as usize].spec.weight;
    shape.weighted = all.iter().any(|n| weight(n) != weight(&all[0]));
    match shape.place_empty(cluster, &all) {
        Some(_) => Ok(()),
        None => Err(shape.why_not(cluster, view, request, &all)),
    }
}

fn is_excluded(request: &ResourceRequest, spec: &NodeSpec) -> bool {
    request.exclude.iter().any(|n| n.as_str() == spec.name.as_str())
}

/// Jobs on one node are near enough; so are those that are to be spread.
fn near(request: &ResourceRequest, demand: &Demand, policy: &Policy) -> Option<Near> {
    let topology = policy.topology.as_ref()?;
    let spread = demand.spread && request.switches.is_none();
    if demand.most_nodes == 1 || spread || demand.least_tasks().max(demand.min_nodes) == 1 {
        return None;
    }
    Some(Near {
        topology: Arc::clone(topology),
        switches: request.switches.map(|s| s.count).filter(|_| !topology.blocks),
        segment: request.segment.filter(|s| topology.blocks && *s > 0 && demand.min_nodes > 1),
    })
}

impl Shape {
    fn blank(cluster: ClusterView<'_>, request: &ResourceRequest, exclusive: bool, partition: u32) -> Shape {
        let demand = Demand::new(request, &cluster.partitions[partition as usize], cluster.policy, exclusive);
        let least = match demand.tasks {
            Tasks::Total { .. } => 1,
            Tasks::PerNode(n) => n,
        };
        let need = demand.need(least);
        let view = &cluster.partitions[partition as usize];
        let spreads = view.least_loaded || cluster.policy.least_loaded || demand.spread;
        let rank = if spreads { Rank::Spread } else { Rank::Pack };
        let near = near(request, &demand, cluster.policy);
        Shape {
            demand,
            partition,
            limited_slot: None,
            kinds: Vec::new(),
            weights: Vec::new(),
            excluded: Vec::new(),
            required: Vec::new(),
            licenses: None,
            weighted: false,
            rank,
            near,
            wishes: Wish::of(request.prefer.as_ref(), request.constraint.as_ref()),
            verdict: Verdict::Possible,
            need,
        }
    }

    /// Where to look and what to ask. `exclusive`: whole nodes whatever the request says.
    pub fn new(
        cluster: &Cluster,
        layout: &timeline::Layout,
        request: &ResourceRequest,
        licenses: &BTreeMap<String, u32>,
        exclusive: bool,
        partition: u32,
    ) -> Shape {
        let view = cluster.view();
        let mut shape = Shape::blank(view, request, exclusive, partition);
        shape.limited_slot = layout.limited.get(partition as usize).copied().flatten();
        shape.licenses = (!licenses.is_empty()).then(|| layout.license_row(licenses));
        shape.verdict = match shape.fill(cluster, request, licenses) {
            Ok(verdict) => verdict,
            Err(never) => Verdict::Never(never),
        };
        shape
    }

    /// What can be said without looking at nodes; fills `required`.
    fn check(
        &mut self,
        cluster: ClusterView<'_>,
        request: &ResourceRequest,
        licenses: &BTreeMap<String, u32>,
    ) -> Result<(), Infeasible> {
        let view = &cluster.partitions[self.partition as usize];
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
        if let Some(max) = demand.max_nodes
            && max < demand.min_nodes
        {
            let detail = format!("at most {max} nodes are asked for, but {} are needed", demand.min_nodes);
            return Err(Infeasible::Configuration { detail });
        }
        if demand.min_nodes > limit {
            return Err(Infeasible::NodeLimit { asked: demand.min_nodes, limit });
        }
        if let Some(segment) = request.segment.filter(|_| cluster.policy.topology.as_ref().is_some_and(|t| t.blocks)) {
            let size = cluster.policy.topology.as_ref().map_or(0, |t| t.block_size);
            if segment > size || !demand.min_nodes.is_multiple_of(segment.max(1)) {
                let nodes = demand.min_nodes;
                let detail =
                    format!("segments of {segment} nodes: they must divide {nodes} nodes and fit a block of {size}");
                return Err(Infeasible::Configuration { detail });
            }
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
        Ok(())
    }

    /// Features and disk.
    fn passes(&self, request: &ResourceRequest, spec: &NodeSpec) -> bool {
        let admits = |c: &Option<Constraint>| c.as_ref().is_none_or(|c| c.matches(&spec.features));
        (admits(&request.constraint) || (request.prefer.is_some() && admits(&request.prefer)))
            && spec.tmp_disk_mb >= self.demand.tmp_disk_mb
            && self.demand.suits(spec)
    }

    fn fill(
        &mut self,
        cluster: &Cluster,
        request: &ResourceRequest,
        licenses: &BTreeMap<String, u32>,
    ) -> Result<Verdict, Infeasible> {
        self.check(cluster.view(), request, licenses)?;
        self.excluded = request.exclude.iter().filter_map(|n| cluster.position(n)).collect();
        self.excluded.sort_unstable();
        let mut empty = Empty::default();
        for (at, kind) in cluster.kinds.all.iter().enumerate() {
            let spec = cluster.spec(kind.nodes[0]);
            if kind.partitions.binary_search(&self.partition).is_ok()
                && self.passes(request, spec)
                && empty.capacity(self, spec).is_some()
            {
                self.kinds.push(at as u32);
            }
        }
        let weight = |k: &u32| cluster.example(*k).weight;
        self.kinds.sort_by_key(weight);
        self.weights = self
            .kinds
            .chunk_by(|a, b| weight(a) == weight(b))
            .scan(0, |end, group| {
                *end += group.len();
                Some(*end)
            })
            .collect();
        self.weighted = self.weights.len() > 1;
        // Judged on empty nodes: all of them, then those that take jobs now.
        if !self.one_would_do(cluster, false) {
            let all = self.nodes(cluster, false);
            if self.place_empty(cluster.view(), &all).is_none() {
                let view = &cluster.partitions[self.partition as usize];
                return Err(self.why_not(cluster.view(), view, request, &all));
            }
        }
        Ok(self.as_available(cluster))
    }

    /// Judges anew when nodes came or went.
    pub fn refresh(&mut self, cluster: &Cluster) {
        if !matches!(self.verdict, Verdict::Never(_)) {
            self.verdict = self.as_available(cluster);
        }
    }

    fn as_available(&self, cluster: &Cluster) -> Verdict {
        if self.one_would_do(cluster, true) || self.place_empty(cluster.view(), &self.nodes(cluster, true)).is_some() {
            return Verdict::Possible;
        }
        let asked = self.required.iter().any(|n| !cluster.nodes[*n as usize].available);
        Verdict::NodesMissing(if asked { Reason::ReqNodeNotAvail } else { Reason::NodeDown })
    }

    /// A single empty node satisfies it.
    fn one_would_do(&self, cluster: &Cluster, available: bool) -> bool {
        if !self.can_be_alone() {
            return false;
        }
        let mut empty = Empty::default();
        self.kinds.iter().any(|k| {
            let there = |n: &u32| {
                self.excluded.binary_search(n).is_err() && (!available || cluster.nodes[*n as usize].available)
            };
            empty.capacity(self, cluster.example(*k)).is_some_and(|c| self.satisfied_by(&c))
                && cluster.kinds.all[*k as usize].nodes.iter().any(there)
        })
    }

    /// Nodes that satisfy it when empty, ascending.
    fn nodes(&self, cluster: &Cluster, available: bool) -> Vec<u32> {
        let of_kind = |k: &u32| cluster.kinds.all[*k as usize].nodes.iter().copied();
        let there =
            |n: &u32| self.excluded.binary_search(n).is_err() && (!available || cluster.nodes[*n as usize].available);
        let mut nodes: Vec<u32> = self.kinds.iter().flat_map(of_kind).filter(there).collect();
        nodes.sort_unstable();
        nodes
    }

    /// There is no second node for it.
    pub fn has_one_node(&self, cluster: &Cluster) -> bool {
        self.kinds.iter().map(|k| cluster.kinds.all[*k as usize].nodes.len()).sum::<usize>() <= 1
    }
    /// One of its nodes.
    pub fn admits(&self, cluster: &Cluster, node: u32) -> bool {
        self.kinds.contains(&cluster.kinds.of[node as usize]) && !self.excludes(node)
    }
    pub fn excludes(&self, node: u32) -> bool {
        !self.excluded.is_empty() && self.excluded.binary_search(&node).is_ok()
    }

    fn place_empty(&self, cluster: ClusterView<'_>, nodes: &[u32]) -> Option<Vec<Share>> {
        if self.near.as_ref().is_some_and(|n| n.switches.is_some()) {
            // A wish for few switches is given up in time.
            let mut patient = self.clone();
            patient.near = self.near.clone().map(|near| Near { switches: None, ..near });
            return patient.place_empty(cluster, nodes);
        }
        let mut empty = Empty::default();
        let candidates = nodes.iter().filter_map(|node| {
            let spec = &cluster.nodes[*node as usize].spec;
            let capacity = empty.capacity(self, spec)?;
            Some(Candidate::new(self, *node, spec, &empty.row, capacity))
        });
        placement::select(self, candidates.collect(), Extent::Least)
    }

    /// One node is all it needs, where that suffices.
    pub fn one_node(&self) -> bool {
        self.can_be_alone()
            && self.demand.max_nodes.is_none_or(|m| m == 1)
            && (!self.demand.spread || self.demand.most_nodes == 1 || self.tasks_alone() == 1)
    }

    /// The first nodes of the order that have room for a share are the ones it gets.
    pub fn takes_the_first(&self) -> bool {
        let few_tasks = match self.demand.tasks {
            Tasks::Total { count, .. } => count <= self.demand.min_nodes,
            Tasks::PerNode(_) => true,
        };
        few_tasks
            && (!self.demand.spread || self.demand.max_nodes.is_some())
            && self.required.is_empty()
            && self.demand.job_gres.is_empty()
            && !self.demand.contiguous
            && self.is_plain()
            && self.near.is_none()
    }

    /// Each node can be judged by itself.
    fn is_plain(&self) -> bool {
        self.wishes.is_empty()
    }

    /// Whether it fits may change without more being free: what is known of that is good for one pass.
    pub fn is_intricate(&self) -> bool {
        let limited = |n: &Near| n.switches.is_some() || n.segment.is_some();
        !self.wishes.is_empty() || self.near.as_ref().is_some_and(limited) || self.demand.binds
    }

    /// Tasks on the node when it is the only one.
    pub fn tasks_alone(&self) -> u32 {
        match self.demand.tasks {
            Tasks::Total { count, .. } => count,
            Tasks::PerNode(n) => n,
        }
    }

    fn can_be_alone(&self) -> bool {
        self.required.is_empty() && self.demand.min_nodes == 1 && self.demand.job_gres.is_empty() && self.is_plain()
    }

    fn satisfied_by(&self, capacity: &Capacity) -> bool {
        match self.demand.tasks {
            Tasks::Total { count, .. } => capacity.tasks >= count,
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

/// What an empty node has free: a row with a slot for each GRES entry.
#[derive(Default)]
struct Empty {
    row: Vec<i64>,
    scratch: Vec<i64>,
}

impl Empty {
    fn capacity(&mut self, shape: &Shape, spec: &NodeSpec) -> Option<Capacity> {
        self.row.clear();
        self.row.resize(GRES, 0);
        self.row[CPUS] = i64::from(spec.cpus.min(shape.demand.max_cpus_per_node.unwrap_or(u32::MAX)));
        self.row[MEMORY] = i64::try_from(spec.memory_mb).unwrap_or(i64::MAX);
        self.row.extend(spec.gres.iter().map(|g| i64::try_from(g.count).unwrap_or(i64::MAX)));
        if let Some(slot) = shape.limited_slot {
            // Beyond the node's own GRES nothing is looked at but this.
            let cpus = self.row[CPUS];
            self.row.resize((slot + 1).max(self.row.len()), cpus);
            self.row[slot] = cpus;
        }
        placement::capacity(shape, spec, &self.row, &mut self.scratch)
    }
}
