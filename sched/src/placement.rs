//! Choosing nodes: what fits on one, and which to take.
//!
//! Owns the choice among free resources, given as rows of free amounts; the same code serves now, the future and empty
//! clusters. Promises that what it chooses satisfies the demand on these rows, and that equal rows give an equal choice.
//! Must not know time, jobs or order.
//!
//! The rule: required nodes, then lower weight, then `Rank`, configuration order among equals. Where tasks or GPUs must be
//! gathered from several nodes, the largest share first, so that they are few.

mod features;
mod together;

use crate::demand::{Demand, MemoryDemand, Tasks};
use crate::shape::Shape;
use crate::timeline::{CPUS, GRES, JOBS, MEMORY, WHOLE};
pub(crate) use features::Wish;
use sluice_model::node::{GresSpec, NodeSpec};
use sluice_model::request::GresRequest;
pub(crate) use together::Near;

/// Which of two nodes of equal weight that both suffice is the better one: the only place where that is said.
///
/// `Pack` is best fit, devices first: what is left free stays together, so that nodes with eight GPUs stay whole for those
/// who want eight, and jobs without GPUs go where fewest GPUs lose their CPUs. It is the gradient of the fragmentation
/// measure of Weng et al. ("Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
/// Descent", USENIX ATC 2023) for a load of which nothing is known but that it may want whole nodes.
/// `Spread` is Slurm's LLN: most free CPUs first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Rank {
    #[default]
    Pack,
    Spread,
}

impl Rank {
    /// Lower first.
    pub fn level(self, devices: u32, cpus: u32) -> (u32, u32) {
        match self {
            Rank::Pack => (devices, cpus),
            Rank::Spread => (u32::MAX - cpus, 0),
        }
    }
    /// Of nodes with equally many free devices, those with more free CPUs come first.
    pub fn descends(self) -> bool {
        self == Rank::Spread
    }
}

/// How many nodes to take of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Least,
    /// As many as the job can use.
    Most,
}

/// What one node can take.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    pub tasks: u32,
    /// For each job-wide GRES.
    pub job_gres: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub node: u32,
    weight: u32,
    /// As `Rank` has it.
    level: (u32, u32),
    /// Which parts of the job's features it has, as `Wish` numbers them.
    marks: u64,
    capacity: Capacity,
}

impl Candidate {
    pub fn new(shape: &Shape, node: u32, spec: &NodeSpec, free: &[i64], capacity: Capacity) -> Candidate {
        let own = &free[GRES..GRES + spec.gres.len()];
        let devices = own.iter().fold(0, |sum: i64, f| sum.saturating_add((*f).max(0)));
        let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
        let level = shape.rank.level(count(devices), count(free[CPUS]));
        let marks = features::marks(&shape.wishes, spec);
        Candidate { node, weight: spec.weight, level, marks, capacity }
    }
    /// Of tasks or of some job-wide GRES.
    pub fn takes_more_than(&self, other: &Candidate) -> bool {
        let (new, old) = (&self.capacity, &other.capacity);
        new.tasks > old.tasks || new.job_gres.iter().zip(&old.job_gres).any(|(n, o)| n > o)
    }
    pub fn tasks(&self) -> u32 {
        self.capacity.tasks
    }
    fn key(&self) -> (u32, (u32, u32), u32) {
        (self.weight, self.level, self.node)
    }
}

/// One node's part of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Share {
    pub node: u32,
    pub tasks: u32,
    /// Of each job-wide GRES.
    pub job_gres: Vec<u64>,
}

/// What so many tasks and job-wide devices take on this node. False when that is more than is free. `out` becomes a row
/// as long as `free`.
pub(crate) fn take(
    shape: &Shape,
    spec: &NodeSpec,
    free: &[i64],
    tasks: u32,
    job_share: &[u64],
    out: &mut Vec<i64>,
) -> bool {
    let demand = &shape.demand;
    if free[WHOLE] != 0 || (demand.whole && free[JOBS] != 0) || tasks > demand.most_tasks(spec) {
        return false;
    }
    let cpus = demand.given_cpus(spec, tasks);
    if i64::from(cpus) > free[CPUS] || shape.limited_slot.is_some_and(|s| i64::from(cpus) > free[s]) {
        return false;
    }
    if demand.max_cpus_per_node.is_some_and(|max| cpus > max) {
        return false;
    }
    out.clear();
    out.resize(free.len(), 0);
    let mut gpus = 0u64;
    if !(demand.gres.is_empty() && demand.job_gres.is_empty()) {
        // Requests for a kind first: what is left serves those that take any.
        for typed in [true, false] {
            let own = demand.gres.iter().map(|g| (g, demand.gres_count(g, spec, tasks)));
            let shared = demand.job_gres.iter().zip(job_share.iter().copied());
            for (request, count) in own.chain(shared).filter(|(g, _)| g.kind.is_some() == typed) {
                if !take_gres(demand, request, count, spec, free, out) {
                    return false;
                }
                if request.name == "gpu" {
                    gpus = gpus.saturating_add(count);
                }
            }
        }
    }
    let memory = i64::try_from(demand.memory_mb(spec, cpus, gpus)).unwrap_or(i64::MAX);
    let limit = demand.max_memory_per_node_mb.map_or(i64::MAX, |mb| i64::try_from(mb).unwrap_or(i64::MAX));
    if memory > free[MEMORY] || memory > limit {
        return false;
    }
    if demand.whole {
        for (slot, gres) in out[GRES..].iter_mut().zip(&spec.gres) {
            *slot = i64::try_from(gres.count).unwrap_or(i64::MAX);
        }
        out[WHOLE] = 1;
    }
    out[CPUS] = i64::from(cpus);
    out[MEMORY] = memory;
    out[JOBS] = 1;
    if let Some(slot) = shape.limited_slot {
        out[slot] = i64::from(cpus);
    }
    true
}

/// Devices with less memory go first: the others may be asked for.
fn take_gres(
    demand: &Demand,
    request: &GresRequest,
    count: u64,
    spec: &NodeSpec,
    free: &[i64],
    out: &mut [i64],
) -> bool {
    let mut left = i64::try_from(count).unwrap_or(i64::MAX);
    let mut next = 0;
    while left > 0 {
        // Entries are few, mostly one: the smallest memory from `next` on.
        let memory = |have: &&GresSpec| demand.admits(request, have) && have.memory_mb >= next;
        let Some(least) = spec.gres.iter().filter(memory).map(|g| g.memory_mb).min() else { return false };
        for ((have, free), taken) in spec.gres.iter().zip(&free[GRES..]).zip(&mut out[GRES..]) {
            if left > 0 && have.memory_mb == least && demand.admits(request, have) {
                let some = left.min((free - *taken).max(0));
                *taken += some;
                left -= some;
            }
        }
        next = least.saturating_add(1);
    }
    left == 0
}

/// The most that this node can take; None when not even the least share fits.
pub(crate) fn capacity(shape: &Shape, spec: &NodeSpec, free: &[i64], scratch: &mut Vec<i64>) -> Option<Capacity> {
    let demand = &shape.demand;
    if free[CPUS] <= 0 || free[WHOLE] != 0 || (demand.whole && free[JOBS] != 0) {
        return None;
    }
    let ones = vec![1; demand.job_gres.len()];
    let mut fits = |tasks: u32| take(shape, spec, free, tasks, &ones, scratch);
    let tasks = match demand.tasks {
        Tasks::PerNode(n) => fits(n).then_some(n)?,
        Tasks::Total { count, at_most } => {
            let cpus = u32::try_from(free[CPUS]).unwrap_or(u32::MAX);
            let by_cpus = if demand.overcommit { u32::MAX } else { (cpus / demand.cpus_per_task).max(1) };
            let most = count.min(at_most.unwrap_or(u32::MAX)).min(by_cpus).min(demand.most_tasks(spec));
            if !fits(1) {
                return None;
            }
            // More tasks never need less, so that halving finds the most.
            let (mut good, mut bad) = (1, most.saturating_add(1));
            let mut next = most;
            while bad - good > 1 {
                let middle = next.clamp(good + 1, bad - 1);
                if fits(middle) {
                    good = middle;
                } else {
                    bad = middle;
                }
                next = good + (bad - good) / 2;
            }
            good
        }
    };
    if demand.job_gres.is_empty() {
        return Some(Capacity { tasks, job_gres: Vec::new() });
    }
    // What remains of each job-wide GRES beside one task's own needs.
    let least = match demand.tasks {
        Tasks::PerNode(n) => n,
        Tasks::Total { .. } => 1,
    };
    let none = vec![0; demand.job_gres.len()];
    if !take(shape, spec, free, least, &none, scratch) {
        return None;
    }
    if demand.whole {
        // A whole node takes all devices in any case; its jobs' own needs are within.
        scratch[GRES..].fill(0);
    }
    let by_memory = match demand.memory {
        MemoryDemand::Gpu(mb) => u64::try_from(free[MEMORY]).unwrap_or(0) / mb.max(1),
        _ => u64::MAX,
    };
    let job_gres = demand
        .job_gres
        .iter()
        .map(|request| {
            let left = spec.gres.iter().zip(free[GRES..].iter().zip(&scratch[GRES..]));
            let left =
                left.filter(|(have, _)| demand.admits(request, have)).map(|(_, (f, t))| (f - t).max(0)).sum::<i64>();
            u64::try_from(left).unwrap_or(0).min(request.count).min(by_memory)
        })
        .collect();
    Some(Capacity { tasks, job_gres })
}

/// Chooses among candidates (ascending by node). None when they can't satisfy the demand together.
pub(crate) fn select(shape: &Shape, pool: Vec<Candidate>, extent: Extent) -> Option<Vec<Share>> {
    if shape.wishes.is_empty() {
        return choose(shape, pool, extent, &[]);
    }
    features::select(shape, &pool, extent)
}

/// `counts`: which of the candidates' marks so many nodes must have.
fn choose(shape: &Shape, pool: Vec<Candidate>, extent: Extent, counts: &[(u64, u32)]) -> Option<Vec<Share>> {
    if pool.len() < shape.demand.min_nodes as usize
        || !shape.required.iter().all(|r| pool.binary_search_by_key(r, |c| c.node).is_ok())
    {
        return None;
    }
    if shape.demand.contiguous {
        return contiguous(shape, &pool, extent, counts);
    }
    if let Some(near) = &shape.near {
        return together::select(shape, near, &pool, extent, counts);
    }
    gather_best(shape, pool, extent, counts)
}

/// The best of these nodes, wherever they are.
fn gather_best(shape: &Shape, mut pool: Vec<Candidate>, extent: Extent, counts: &[(u64, u32)]) -> Option<Vec<Share>> {
    if !shape.required.is_empty() && !shape.required.iter().all(|r| pool.iter().any(|c| c.node == *r)) {
        return None;
    }
    let with = |by_weight, largest| Way { by_weight, largest, counts };
    gather(shape, &mut pool, extent, with(true, false))
        .or_else(|| {
            // Heavier nodes may be larger: fewer of them may do where a limit on nodes rules the light ones out.
            if shape.weighted { gather(shape, &mut pool, extent, with(false, false)) } else { None }
        })
        .or_else(|| if counts.is_empty() { None } else { gather(shape, &mut pool, extent, with(false, true)) })
}

/// How to go about it.
#[derive(Clone, Copy)]
struct Way<'a> {
    by_weight: bool,
    /// Nodes that are counted by their features are the largest of those, not the best fit.
    largest: bool,
    counts: &'a [(u64, u32)],
}

/// What is still to be found.
struct Goal {
    tasks: u64,
    job_gres: Vec<u64>,
}

impl Goal {
    fn new(shape: &Shape) -> Goal {
        Goal {
            tasks: match shape.demand.tasks {
                Tasks::Total { count, .. } => u64::from(count),
                Tasks::PerNode(_) => 0,
            },
            job_gres: shape.demand.job_gres.iter().map(|g| g.count).collect(),
        }
    }
    fn subtract(&mut self, capacity: &Capacity) {
        self.tasks = self.tasks.saturating_sub(u64::from(capacity.tasks));
        self.job_gres.iter_mut().zip(&capacity.job_gres).for_each(|(g, c)| *g = g.saturating_sub(*c));
    }
    fn reached(&self) -> bool {
        self.tasks == 0 && self.job_gres.iter().all(|g| *g == 0)
    }
    /// Any nodes will do, so many of them.
    fn within(&self, nodes: u64) -> bool {
        self.tasks <= nodes && self.job_gres.iter().all(|g| *g <= nodes)
    }
    fn completed_by(&self, capacity: &Capacity) -> bool {
        self.tasks <= u64::from(capacity.tasks) && self.job_gres.iter().zip(&capacity.job_gres).all(|(g, c)| g <= c)
    }
    /// How much nearer this node brings it.
    fn gain(&self, capacity: &Capacity) -> (u64, u64) {
        let gres = self.job_gres.iter().zip(&capacity.job_gres).map(|(g, c)| (*g).min(*c)).sum();
        (gres, self.tasks.min(u64::from(capacity.tasks)))
    }
}

/// Nodes that can be used at most: none without a task and a job-wide device.
fn useful_nodes(shape: &Shape) -> usize {
    let demand = &shape.demand;
    let by_tasks = match demand.tasks {
        Tasks::Total { count, .. } => count,
        Tasks::PerNode(_) => u32::MAX,
    };
    let by_gres = demand.job_gres.iter().map(|g| u32::try_from(g.count).unwrap_or(u32::MAX)).min().unwrap_or(u32::MAX);
    demand.most_nodes.min(by_tasks).min(by_gres) as usize
}

fn gather(shape: &Shape, pool: &mut [Candidate], extent: Extent, way: Way<'_>) -> Option<Vec<Share>> {
    let demand = &shape.demand;
    let by_weight = way.by_weight;
    pool.sort_unstable_by_key(|c| if by_weight { c.key() } else { (0, c.level, c.node) });
    let (min, most) = (demand.min_nodes as usize, useful_nodes(shape));
    let mut goal = Goal::new(shape);
    let mut used = vec![false; pool.len()];
    let mut chosen: Vec<usize> = Vec::with_capacity(min);
    let choose = |at: usize, goal: &mut Goal, chosen: &mut Vec<usize>, used: &mut [bool]| {
        used[at] = true;
        goal.subtract(&pool[at].capacity);
        chosen.push(at);
    };
    if !shape.required.is_empty() {
        for (at, candidate) in pool.iter().enumerate() {
            if shape.required.binary_search(&candidate.node).is_ok() {
                choose(at, &mut goal, &mut chosen, &mut used);
            }
        }
    }
    if !way.counts.is_empty() {
        let order: Vec<usize> = if way.largest {
            let mut order: Vec<usize> = (0..pool.len()).collect();
            order.sort_by_key(|at| std::cmp::Reverse(goal.gain(&pool[*at].capacity)));
            order
        } else {
            (0..pool.len()).collect()
        };
        for at in features::counted(pool, way.counts, &used, &order)? {
            if !used[at] {
                choose(at, &mut goal, &mut chosen, &mut used);
            }
        }
    }
    // The first that is not used; those before it never come back.
    let mut front = 0;
    while chosen.len() < min || !goal.reached() {
        if chosen.len() >= most {
            return None;
        }
        while *used.get(front)? {
            front += 1;
        }
        let to_come = (min.saturating_sub(chosen.len())).max(1) as u64;
        let at = if goal.within(to_come) {
            front
        } else {
            let class = pool[front].weight;
            let end = if by_weight { pool.partition_point(|c| c.weight <= class) } else { pool.len() };
            let free = || (front..end).filter(|at| !used[*at]);
            let completes = if to_come == 1 { free().find(|at| goal.completed_by(&pool[*at].capacity)) } else { None };
            match completes {
                Some(at) => at,
                // The largest; the earliest among equals.
                None => free().rev().max_by_key(|at| goal.gain(&pool[*at].capacity))?,
            }
        };
        choose(at, &mut goal, &mut chosen, &mut used);
    }
    if chosen.len() > most {
        return None;
    }
    if extent == Extent::Most
        && let Some(max) = demand.wide_nodes()
    {
        let max = most.min(max as usize);
        for at in 0..pool.len() {
            if chosen.len() >= max {
                break;
            }
            if !used[at] {
                choose(at, &mut goal, &mut chosen, &mut used);
            }
        }
    }
    let mut nodes: Vec<&Candidate> = chosen.into_iter().map(|at| &pool[at]).collect();
    nodes.sort_unstable_by_key(|c| c.node);
    Some(distribute(shape, &nodes))
}

/// The shortest run of neighbours (by configuration order) that does, the first of equals.
fn contiguous(shape: &Shape, pool: &[Candidate], extent: Extent, counts: &[(u64, u32)]) -> Option<Vec<Share>> {
    let (min, most) = (shape.demand.min_nodes as usize, useful_nodes(shape));
    let mut best: Option<(usize, usize)> = None;
    for first in 0..pool.len() {
        if shape.required.first().is_some_and(|r| *r < pool[first].node) {
            break;
        }
        let mut goal = Goal::new(shape);
        let longest = best.map_or(most, |(a, b)| most.min(b - a - 1));
        for last in first..pool.len().min(first.saturating_add(longest)) {
            if pool[last].node - pool[first].node != (last - first) as u32 {
                break;
            }
            goal.subtract(&pool[last].capacity);
            let covers = shape.required.last().is_none_or(|r| *r <= pool[last].node);
            let run = &pool[first..=last];
            if goal.reached() && covers && run.len() >= min && features::suffice(run, counts) {
                best = Some((first, last + 1));
                break;
            }
        }
    }
    let (first, mut end) = best?;
    if extent == Extent::Most
        && let Some(max) = shape.demand.wide_nodes()
    {
        while end < pool.len() && end - first < most.min(max as usize) && pool[end].node == pool[end - 1].node + 1 {
            end += 1;
        }
    }
    Some(distribute(shape, &pool[first..end].iter().collect::<Vec<_>>()))
}

/// Tasks and job-wide devices over the nodes chosen (ascending): at least one on each, then the first nodes are filled;
/// or round the nodes, so many at a time, where `Demand::round` says so.
fn distribute(shape: &Shape, nodes: &[&Candidate]) -> Vec<Share> {
    let demand = &shape.demand;
    let tasks: Vec<u64> = match demand.tasks {
        Tasks::PerNode(n) => vec![u64::from(n); nodes.len()],
        Tasks::Total { count, .. } => {
            let most: Vec<u64> = nodes.iter().map(|c| u64::from(c.capacity.tasks)).collect();
            match demand.round {
                Some(size) => go_round(u64::from(count), &most, u64::from(size)),
                None => fill(u64::from(count), &most),
            }
        }
    };
    let gres: Vec<Vec<u64>> = demand
        .job_gres
        .iter()
        .enumerate()
        .map(|(g, request)| fill(request.count, &nodes.iter().map(|c| c.capacity.job_gres[g]).collect::<Vec<_>>()))
        .collect();
    let share = |(i, c): (usize, &&Candidate)| Share {
        node: c.node,
        tasks: u32::try_from(tasks[i]).unwrap_or(u32::MAX),
        job_gres: gres.iter().map(|g| g[i]).collect(),
    };
    nodes.iter().enumerate().map(share).collect()
}

fn fill(count: u64, most: &[u64]) -> Vec<u64> {
    let mut left = count.saturating_sub(most.len() as u64);
    most.iter()
        .map(|most| {
            let more = left.min(most.saturating_sub(1));
            left -= more;
            1 + more
        })
        .collect()
}

/// `size` tasks at a time, at least one on each node.
fn go_round(count: u64, most: &[u64], size: u64) -> Vec<u64> {
    let mut given = vec![0u64; most.len()];
    let mut left = count;
    if size > 1 {
        // One for each node is set aside; a plane that begins with it is one task shorter.
        given.fill(1);
        left = left.saturating_sub(given.len() as u64);
        let mut planes = 1;
        while left > 0 && given.iter().zip(most).any(|(g, m)| g < m) {
            let level = size.saturating_mul(planes);
            for (g, m) in given.iter_mut().zip(most) {
                let more = level.min(*m).saturating_sub(*g).min(left);
                *g += more;
                left -= more;
            }
            planes += 1;
        }
        return given;
    }
    loop {
        let open = given.iter().zip(most).filter(|(g, m)| g < m).count() as u64;
        if left == 0 || open == 0 {
            return given;
        }
        let level = (left / open).max(1);
        for (g, m) in given.iter_mut().zip(most) {
            let more = level.min(m - *g).min(left);
            *g += more;
            left -= more;
        }
    }
}
