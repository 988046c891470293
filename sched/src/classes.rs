//! Pending jobs of equal shape: what is true of one is true of all, so it is worked out once.
//!
//! Owns the classes (equal request, licences, exclusiveness, partition, and whose limits they count for), the queue of each, and what is known of them
//! from pass to pass: that nothing of a class can start with what is free now. Promises that this is never wrong: it is
//! kept until the nodes that became freer since could suffice. Must not know planned starts: they hold for one pass.

use crate::cluster::Cluster;
use crate::demand::Tasks;
use crate::hash::Mix;
use crate::input::{BackfillOrder, PendingJob};
use crate::limits::Charge;
use crate::order::{Key, Queue};
use crate::placement;
use crate::preemption::Preemptor;
use crate::shape::{Shape, Verdict};
use crate::timeline::{CPUS, Timeline};
use crate::vacancy::Need;
use sluice_model::{JobSpec, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Order by what `Policy::backfill_order` goes by, after the tier.
pub(crate) type SizeKey = (u32, i64, Key);

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub shape: Shape,
    /// What it takes on a node that it has alone.
    pub alone: Need,
    /// It can't be spread: one node or none.
    pub single: bool,
    /// CPUs of a job, for comparing.
    cpus: i64,
    /// One of those whose shape it is.
    pub example: Arc<JobSpec>,
    exclusive: bool,
    /// Whose limits its jobs count for.
    pub charge: Charge,
    /// What its jobs may preempt, where QOS say so.
    pub preemptor: Option<Preemptor>,
    hash: u64,
    pub queue: Queue<Key>,
    /// Kept only when the policy tries the smallest first.
    pub by_size: Queue<SizeKey>,
    pub standing: Standing,
    pub run: RunState,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// A job of it may fit.
    Open,
    /// None fits with what is free now, planned starts left out.
    Full(Lack),
    /// Its shape is not to be had, whatever is free.
    Barred(Reason),
    /// Without jobs, to be used again.
    Vacant,
}

/// How far it is from fitting, at least; zeros where that can't be said in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lack {
    pub nodes: u64,
    pub tasks: u64,
}

/// What the present pass has learnt.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunState {
    pub pass: u64,
    /// It does not fit for a window that ends then or later, and why.
    pub failed: Option<(i64, Reason)>,
    /// Where one like it went: as long as it fits there, that is the best place (nothing becomes freer, and it is the
    /// fullest that suffices).
    pub sticky: Option<u32>,
    /// It was found to be full in this pass.
    pub full: Option<Lack>,
    /// The limit that holds back all of them.
    pub limited: Option<Reason>,
    /// Where it stood when its jobs began to be taken by size.
    pub deferred: Option<Key>,
    /// No set of victims would let a job of it start.
    pub no_victims: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Classes {
    pub all: Vec<Class>,
    spare: Vec<u32>,
    by_hash: BTreeMap<u64, Vec<u32>>,
    pub open: BTreeSet<u32>,
    /// By partition: first job of each class that is full.
    pub full: Vec<BTreeSet<(Key, u32)>>,
    pub barred: BTreeSet<u32>,
    /// By class, side by side for speed: least CPUs and devices on a node; u32::MAX when it is not full.
    quick: Vec<(u32, u32)>,
    order: BackfillOrder,
    pass: u64,
}

impl Class {
    pub fn is_full(&self) -> bool {
        matches!(self.standing, Standing::Full(_)) || self.run.full.is_some()
    }
    /// What the policy compares jobs by.
    fn size(&self, order: BackfillOrder, duration: i64) -> i64 {
        match order {
            BackfillOrder::Queue => 0,
            BackfillOrder::Shortest => duration,
            BackfillOrder::SmallestArea => duration.saturating_mul(self.cpus),
        }
    }
}

impl Classes {
    pub fn new(cluster: &Cluster) -> Classes {
        Classes {
            full: vec![BTreeSet::new(); cluster.partitions.len()],
            order: cluster.policy.backfill_order,
            ..Classes::default()
        }
    }

    /// The class of this job in this partition.
    pub fn of(&mut self, cluster: &Cluster, timeline: &Timeline, job: &PendingJob, partition: u32) -> u32 {
        // Where nothing is limited, jobs of all users are alike.
        let limited = cluster.limits.as_ref().is_some_and(|rules| !rules.is_empty());
        let charge = if limited { job.charge } else { Charge::default() };
        let tier = cluster.partitions[partition as usize].priority_tier;
        // Where nothing can be preempted, it does not matter who asks.
        let preemptor = job.preemptor.filter(|by| cluster.preemption.may_any(Some(*by), tier));
        let mut hasher = Mix::default();
        (&job.request.request, &job.request.licenses, job.exclusive, partition, charge, preemptor).hash(&mut hasher);
        let hash = hasher.finish();
        let same = |at: &&u32| {
            let class = &self.all[**at as usize];
            class.shape.partition == partition
                && class.exclusive == job.exclusive
                && class.charge == charge
                && class.preemptor == preemptor
                && (Arc::ptr_eq(&class.example, &job.request)
                    || (class.example.request == job.request.request && class.example.licenses == job.request.licenses))
        };
        if let Some(found) = self.by_hash.get(&hash).and_then(|alike| alike.iter().find(same)) {
            return *found;
        }
        let spec = &*job.request;
        let shape = Shape::new(cluster, &timeline.layout, &spec.request, &spec.licenses, job.exclusive, partition);
        let tasks = shape.tasks_alone();
        let class = Class {
            alone: shape.demand.need(tasks),
            single: shape.one_node()
                && (shape.demand.max_nodes == Some(1)
                    || tasks == 1
                    || matches!(shape.demand.tasks, Tasks::PerNode(_))
                    || shape.has_one_node(cluster)),
            cpus: shape.demand.expected_cpus(&cluster.partitions[partition as usize], &cluster.nodes),
            shape,
            example: Arc::clone(&job.request),
            exclusive: job.exclusive,
            charge,
            preemptor,
            hash,
            queue: Queue::default(),
            by_size: Queue::default(),
            standing: Standing::Vacant,
            run: RunState::default(),
        };
        let at = match self.spare.pop() {
            Some(at) => {
                self.all[at as usize] = class;
                at
            }
            None => {
                self.all.push(class);
                self.quick.push((u32::MAX, u32::MAX));
                (self.all.len() - 1) as u32
            }
        };
        self.by_hash.entry(hash).or_default().push(at);
        at
    }

    /// `duration`: with the limit it wants; `least`: the shortest for which it could be started. Milliseconds.
    pub fn insert(&mut self, at: u32, key: Key, duration: i64, least: i64) {
        let class = &mut self.all[at as usize];
        let before = class.queue.first();
        class.queue.insert(key, least);
        if self.order != BackfillOrder::Queue {
            let size = class.size(self.order, duration);
            class.by_size.insert((key.tier(), size, key), least);
        }
        if class.standing == Standing::Vacant {
            let standing = bar(&class.shape).map_or(Standing::Open, Standing::Barred);
            self.set(at, standing);
        } else {
            self.first_moved(at, before);
        }
    }

    pub fn remove(&mut self, at: u32, key: Key, duration: i64) {
        let class = &mut self.all[at as usize];
        let before = class.queue.first();
        class.queue.remove(&key);
        if self.order != BackfillOrder::Queue {
            let size = class.size(self.order, duration);
            class.by_size.remove(&(key.tier(), size, key));
        }
        self.first_moved(at, before);
        let class = &self.all[at as usize];
        if class.queue.is_empty() {
            let hash = class.hash;
            self.set(at, Standing::Vacant);
            if let Some(alike) = self.by_hash.get_mut(&hash) {
                alike.retain(|c| *c != at);
                if alike.is_empty() {
                    self.by_hash.remove(&hash);
                }
            }
            self.spare.push(at);
        }
    }

    fn first_moved(&mut self, at: u32, before: Option<Key>) {
        let class = &self.all[at as usize];
        let after = class.queue.first();
        if matches!(class.standing, Standing::Full(_)) && before != after {
            let full = &mut self.full[class.shape.partition as usize];
            if let Some(key) = before {
                full.remove(&(key, at));
            }
            if let Some(key) = after {
                full.insert((key, at));
            }
        }
    }

    pub fn set(&mut self, at: u32, standing: Standing) {
        let class = &mut self.all[at as usize];
        let full = &mut self.full[class.shape.partition as usize];
        match class.standing {
            Standing::Open => _ = self.open.remove(&at),
            Standing::Full(_) => {
                if let Some(key) = class.queue.first() {
                    full.remove(&(key, at));
                }
            }
            Standing::Barred(_) => _ = self.barred.remove(&at),
            Standing::Vacant => {}
        }
        let quick = &mut self.quick[at as usize];
        *quick = (u32::MAX, u32::MAX);
        match standing {
            Standing::Open => _ = self.open.insert(at),
            Standing::Full(_) => {
                if let Some(key) = class.queue.first() {
                    full.insert((key, at));
                }
                let need = if class.single { class.alone } else { class.shape.need };
                *quick = (need.cpus, need.devices);
            }
            Standing::Barred(_) => _ = self.barred.insert(at),
            Standing::Vacant => {}
        }
        class.standing = standing;
    }

    /// Nodes came or went: what was not to be had may be, and the other way round.
    pub fn refresh(&mut self, cluster: &Cluster) {
        for at in 0..self.all.len() as u32 {
            let class = &mut self.all[at as usize];
            if class.standing == Standing::Vacant {
                continue;
            }
            class.shape.refresh(cluster);
            let standing = match (bar(&class.shape), class.standing) {
                (Some(reason), _) => Standing::Barred(reason),
                (None, Standing::Barred(_)) => Standing::Open,
                (None, standing) => standing,
            };
            self.set(at, standing);
        }
    }

    /// Looks again at what is full, now that these nodes are freer than they were.
    pub fn revive(&mut self, cluster: &Cluster, timeline: &Timeline, grown: &[u32]) {
        const MOST: usize = 1_000_000;
        let full: usize = self.full.iter().map(BTreeSet::len).sum();
        if full == 0 || grown.is_empty() {
            return;
        }
        let all = grown.len().saturating_mul(full) > MOST;
        let mut rows: Vec<(u32, u32, u32, Vec<i64>)> = Vec::new();
        for node in grown.iter().filter(|_| !all) {
            let mut free = vec![0; timeline.layout.stride];
            if timeline.window(cluster, *node as usize, i64::MIN, &mut free) {
                let devices = free[crate::timeline::GRES..].iter().map(|f| (*f).max(0)).sum::<i64>();
                let devices = u32::try_from(devices).unwrap_or(u32::MAX - 1);
                rows.push((*node, u32::try_from(free[CPUS]).unwrap_or(0).min(u32::MAX - 1), devices, free));
            }
        }
        let mut scratch = Vec::new();
        for at in 0..self.all.len() {
            let (cpus, devices) = self.quick[at];
            if all {
                if cpus != u32::MAX {
                    self.set(at as u32, Standing::Open);
                }
                continue;
            }
            let mut more = Lack::default();
            for (node, free_cpus, free_devices, free) in &rows {
                if cpus > *free_cpus || devices > *free_devices {
                    continue;
                }
                let class = &self.all[at];
                if !class.shape.admits(cluster, *node) {
                    continue;
                }
                let spec = cluster.spec(*node);
                let tasks = if class.single {
                    let tasks = class.shape.tasks_alone();
                    placement::take(&class.shape, spec, free, tasks, &[], &mut scratch).then_some(tasks)
                } else {
                    placement::capacity(&class.shape, spec, free, &mut scratch).map(|c| c.tasks)
                };
                if let Some(tasks) = tasks {
                    more.nodes += 1;
                    more.tasks += u64::from(tasks);
                }
            }
            if more.nodes > 0
                && let Standing::Full(lack) = self.all[at].standing
            {
                let left =
                    Lack { nodes: lack.nodes.saturating_sub(more.nodes), tasks: lack.tasks.saturating_sub(more.tasks) };
                let standing = if left == Lack::default() { Standing::Open } else { Standing::Full(left) };
                self.set(at as u32, standing);
            }
        }
    }

    /// A pass begins: what the last one learnt is forgotten.
    pub fn begin(&mut self) {
        self.pass += 1;
    }

    pub fn get(&self, at: u32) -> &Class {
        &self.all[at as usize]
    }

    /// What this pass knows of it.
    pub fn run(&mut self, at: u32) -> &mut RunState {
        let pass = self.pass;
        let run = &mut self.all[at as usize].run;
        if run.pass != pass {
            *run = RunState { pass, ..RunState::default() };
        }
        run
    }
}

fn bar(shape: &Shape) -> Option<Reason> {
    match &shape.verdict {
        Verdict::Possible => None,
        Verdict::NodesMissing(reason) => Some(*reason),
        Verdict::Never(never) => Some(never.reason()),
    }
}
