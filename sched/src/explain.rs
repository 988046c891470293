//! What stands between a waiting job and a start now, node by node, with the numbers.
//!
//! Owns the arithmetic of an explanation: for a job in a partition, which nodes could take a share of it, and what each
//! of the others lacks. Promises to count from the input alone, apart from the planner's own books, so that what it says
//! can also be held against a plan. Must not decide anything: who starts is the pass's business; what it leaves out
//! (planned starts of others, `MaxCPUsPerNode`) is asked of the plan.

mod features;
mod near;
mod usage;

use crate::demand::{Demand, Tasks};
use crate::input::{Input, PendingJob};
pub use features::FeatureNeed;
pub use near::NearNeed;
use sluice_model::request::GresScope;
use sluice_model::{JobId, NodeSpec};
pub use usage::NodeUse;

/// What is short on a node. Amounts: MiB for memory and disk.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    Cpus,
    Memory,
    TmpDisk,
    /// Of each GPU.
    GpuMemory,
    Sockets,
    CoresPerSocket,
    ThreadsPerCore,
    /// Devices of this name, and of this kind when one was asked for.
    Gres {
        name: String,
        kind: Option<String>,
    },
}

/// Why a node takes no share of a job now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    NotInPartition,
    /// `--exclude`.
    Excluded,
    /// Features asked for that it lacks, as the user wrote them.
    Features {
        wanted: String,
    },
    /// More than the whole node has.
    TooSmall {
        what: What,
        needs: u64,
        has: u64,
    },
    /// Down, drained, or not responding.
    Unavailable,
    /// A job has it to itself.
    HeldWhole {
        by: JobId,
    },
    /// The job wants whole nodes and this one is in use.
    InUse {
        jobs: usize,
    },
    /// Less is free than one share needs.
    Busy {
        what: What,
        needs: u64,
        free: u64,
    },
}

impl Obstacle {
    /// It will pass when running jobs end.
    pub fn passes(&self) -> bool {
        matches!(self, Obstacle::HeldWhole { .. } | Obstacle::InUse { .. } | Obstacle::Busy { .. })
    }
}

/// A job in one of its partitions, against what is free now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// Least number of nodes it needs.
    pub nodes_needed: u32,
    /// Tasks it needs in all; None when it has so many on each node.
    pub tasks_needed: Option<u32>,
    /// What its least share of a node takes: CPUs, MiB, (GRES name, kind, count).
    pub share: Share,
    /// Nodes that could take a share now, and the tasks that they could take together.
    pub free_nodes: Vec<u32>,
    pub free_tasks: u64,
    /// The others of the partition, with what is in the way on each.
    pub obstacles: Vec<(u32, Obstacle)>,
    /// What its features ask of the nodes together.
    pub features: Vec<FeatureNeed>,
    /// What it asks of the topology.
    pub near: Option<NearNeed>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Share {
    pub cpus: u32,
    pub memory_mb: u64,
    pub gres: Vec<(String, Option<String>, u64)>,
}

impl Survey {
    /// Nodes that could take it when they are free of other jobs and in service.
    pub fn could_ever(&self) -> usize {
        let later = |o: &Obstacle| o.passes() || matches!(o, Obstacle::Unavailable);
        self.free_nodes.len() + self.obstacles.iter().filter(|(_, o)| later(o)).count()
    }
}

/// `partition`: a position in `Input::partitions`; None when there is no such one.
pub fn survey(input: &Input, job: &PendingJob, partition: u32) -> Option<Survey> {
    let view = input.partitions.get(partition as usize)?;
    let demand = Demand::new(job.resources(), view, &input.policy, job.exclusive);
    let used = NodeUse::of_all(input);
    let mut survey = Survey {
        nodes_needed: demand.min_nodes,
        tasks_needed: match demand.tasks {
            Tasks::Total { count, .. } => Some(count),
            Tasks::PerNode(_) => None,
        },
        share: Share::default(),
        free_nodes: Vec::new(),
        free_tasks: 0,
        obstacles: Vec::new(),
        features: Vec::new(),
        near: None,
    };
    let mut members = view.nodes.clone();
    members.sort_unstable();
    members.dedup();
    for node in members {
        let Some(seen) = input.nodes.get(node as usize) else { continue };
        let need = Need { demand: &demand, spec: &seen.spec };
        if survey.share == Share::default() {
            survey.share = need.share(need.least_tasks());
        }
        match obstacle(input, job, &demand, node, &used[node as usize]) {
            None => {
                survey.free_nodes.push(node);
                survey.free_tasks += u64::from(need.most_tasks(&used[node as usize]));
            }
            Some(obstacle) => survey.obstacles.push((node, obstacle)),
        }
    }
    survey.near = near::need(input, job.resources(), &demand, &survey);
    survey.features = features::needs(input, job.resources(), &survey);
    Some(survey)
}

/// What keeps this node from taking a share of the job in that partition now; None: nothing does.
pub fn node_obstacle(input: &Input, job: &PendingJob, partition: u32, node: u32) -> Option<Obstacle> {
    let view = input.partitions.get(partition as usize)?;
    if !view.nodes.contains(&node) {
        return Some(Obstacle::NotInPartition);
    }
    let demand = Demand::new(job.resources(), view, &input.policy, job.exclusive);
    obstacle(input, job, &demand, node, &NodeUse::of(input, node))
}

fn obstacle(input: &Input, job: &PendingJob, demand: &Demand, node: u32, used: &NodeUse) -> Option<Obstacle> {
    let seen = &input.nodes[node as usize];
    let (spec, request) = (&*seen.spec, job.resources());
    if request.exclude.contains(&spec.name) {
        return Some(Obstacle::Excluded);
    }
    if !features::admit(request, spec) {
        return Some(Obstacle::Features { wanted: features::text(request) });
    }
    let need = Need { demand, spec };
    if let Some((what, needs, has)) = need.unsuited() {
        return Some(Obstacle::TooSmall { what, needs, has });
    }
    let least = need.least_tasks();
    if let Some((what, needs, has)) = need.short_of(least, &NodeUse::none(spec)) {
        return Some(Obstacle::TooSmall { what, needs, has });
    }
    if spec.tmp_disk_mb < demand.tmp_disk_mb {
        let (needs, has) = (demand.tmp_disk_mb, spec.tmp_disk_mb);
        return Some(Obstacle::TooSmall { what: What::TmpDisk, needs, has });
    }
    if !seen.available {
        return Some(Obstacle::Unavailable);
    }
    if let Some(by) = used.whole {
        return Some(Obstacle::HeldWhole { by });
    }
    if demand.whole && !used.jobs.is_empty() {
        return Some(Obstacle::InUse { jobs: used.jobs.len() });
    }
    let (what, needs, free) = need.short_of(least, used)?;
    Some(Obstacle::Busy { what, needs, free })
}

/// A demand on one node.
struct Need<'a> {
    demand: &'a Demand,
    spec: &'a NodeSpec,
}

impl Need<'_> {
    /// Tasks of the least share: all of them where the job can't be spread.
    fn least_tasks(&self) -> u32 {
        match self.demand.tasks {
            Tasks::PerNode(n) => n,
            Tasks::Total { count, .. } if self.demand.most_nodes == 1 => count,
            Tasks::Total { .. } => 1,
        }
    }

    /// What the hardware has too little of, whatever is free: what, asked for, has.
    fn unsuited(&self) -> Option<(What, u64, u64)> {
        let has = [self.spec.sockets, self.spec.cores_per_socket, self.spec.threads_per_core];
        let names = [What::Sockets, What::CoresPerSocket, What::ThreadsPerCore];
        for ((asked, has), what) in self.demand.hardware.into_iter().zip(has).zip(names) {
            if asked > has {
                return Some((what, u64::from(asked), u64::from(has)));
            }
        }
        let wants_gpus = self.demand.gres.iter().chain(&self.demand.job_gres).any(|g| g.name == "gpu");
        let best = self.spec.gres.iter().filter(|g| g.name == "gpu").map(|g| g.memory_mb).max()?;
        let asked = self.demand.gpu_memory_mb;
        (wants_gpus && best < asked).then_some((What::GpuMemory, asked, best))
    }

    fn share(&self, tasks: u32) -> Share {
        let cpus = self.demand.given_cpus(self.spec, tasks);
        let gres: Vec<_> = self.gres(tasks).collect();
        let gpus = gres.iter().filter(|g| g.0 == "gpu").map(|g| g.2).sum();
        Share { cpus, memory_mb: self.demand.memory_mb(self.spec, cpus, gpus), gres }
    }

    /// Every request for devices and how many so many tasks need; at least one of those for the whole job.
    fn gres(&self, tasks: u32) -> impl Iterator<Item = (String, Option<String>, u64)> {
        self.demand.gres.iter().chain(&self.demand.job_gres).map(move |g| {
            let count = match g.scope {
                GresScope::Job if self.demand.most_nodes == 1 => g.count,
                GresScope::Job => 1,
                _ => self.demand.gres_count(g, self.spec, tasks),
            };
            (g.name.clone(), g.kind.clone(), count)
        })
    }

    /// The first quantity of which so many tasks need more than is left: what, needed, left.
    fn short_of(&self, tasks: u32, used: &NodeUse) -> Option<(What, u64, u64)> {
        let share = self.share(tasks);
        let cpus = u64::from(self.spec.cpus.min(self.demand.max_cpus_per_node.unwrap_or(u32::MAX)));
        let free = cpus.min(u64::from(self.spec.cpus).saturating_sub(used.cpus));
        if u64::from(share.cpus) > free {
            return Some((What::Cpus, u64::from(share.cpus), free));
        }
        let requests = self.demand.gres.iter().chain(&self.demand.job_gres);
        for (request, (name, kind, count)) in requests.zip(share.gres) {
            let left = used.free_for(self.spec, self.demand, request);
            if count > left {
                return Some((What::Gres { name, kind }, count, left));
            }
        }
        let most = self.spec.memory_mb.min(self.demand.max_memory_per_node_mb.unwrap_or(u64::MAX));
        let free = most.min(self.spec.memory_mb.saturating_sub(used.memory_mb));
        (share.memory_mb > free).then_some((What::Memory, share.memory_mb, free))
    }

    /// More tasks never need less, so that halving finds the most that fit beside what is used.
    fn most_tasks(&self, used: &NodeUse) -> u32 {
        let least = self.least_tasks();
        let Tasks::Total { count, at_most } = self.demand.tasks else { return least };
        let (mut good, mut bad) = (least, count.min(at_most.unwrap_or(u32::MAX)).max(least).saturating_add(1));
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.short_of(middle, used).is_none() {
                good = middle;
            } else {
                bad = middle;
            }
        }
        good
    }
}
