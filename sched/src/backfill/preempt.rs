//! Room for a job at the cost of others.
//!
//! Owns the decision to preempt: for a job that can't start now, the cheapest set of victims (`crate::preemption`) that lets
//! it start, all its limits and all planned starts of others respected. Promises that nobody is preempted for a job that could
//! start without, or as soon; that no victim is named twice; and that what is taken is the job's own: it has a planned start
//! there in this pass, and a claim by which it comes first in the next ones, until it starts or can't.
//!
//! Candidates are looked at node by node, the cheapest first, where the job fits on one node; otherwise on the nodes where
//! room for a share is cheapest. The number of sets tried is bounded; what is tried counts as work of the pass.

use super::attempt::before_deadline;
use super::field::Field;
use super::reserve::Planned;
use super::{Pass, Placed};
use crate::classes::Class;
use crate::feasibility::Limits;
use crate::jobs::Pending;
use crate::order::Key;
use crate::placement::Share;
use crate::preemption::cheapest::{Price, cheapest};
use crate::preemption::{Claim, ClaimShare, PlannedPreemption, Victim, weight};
use crate::shape::Verdict;
use crate::timeline::{CPUS, GRES, JOBS, MEMORY, SOON, WHOLE, entries};
use sluice_model::config::Mode;
use sluice_model::index_set::IndexSet;
use sluice_model::{Allocation, GresAlloc, JobId, NodeAlloc, NodeName, Reason, Time, TimeLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Sets tried for one job, at most.
const TRIES: u32 = 600;
/// Nodes beyond those that a job needs at least whose victims are looked at together.
const MORE_NODES: usize = 16;

/// A running job that may be preempted by some.
pub(super) struct Candidate {
    run: u32,
    job: JobId,
    victim: Victim,
    loss: u64,
}

/// All of them, the first to go among equals first.
#[derive(Default)]
pub(super) struct Victims {
    all: Vec<Candidate>,
    /// Named in this pass.
    taken: BTreeSet<u32>,
    /// By what a job preempts with: whether there is anybody at all.
    known: BTreeMap<(Option<crate::preemption::Preemptor>, u32), bool>,
    /// Ends as they were before the pass.
    ends: Vec<(u32, i64)>,
}

/// What is to be done, and for what place.
struct Found {
    victims: Vec<usize>,
    placed: Placed,
    loss: u64,
}

/// What became of it.
pub(super) enum Taken {
    /// It starts now.
    Started,
    /// It has a planned start.
    Planned,
    No,
}

impl Pass<'_> {
    /// Who could be preempted at all, by anybody.
    pub(super) fn muster(&mut self) {
        if self.cluster.preemption == crate::preemption::Preemption::Off {
            return;
        }
        let now = Time(self.timeline.now);
        let spec = |name: &NodeName| self.cluster.position(name).map(|n| self.cluster.spec(n));
        for (job, run) in self.running {
            let Some(victim) = self.timeline.job(*run).and_then(|r| r.victim.clone()) else { continue };
            let loss = victim.cost(weight(self.timeline.allocation(*run), spec), now);
            self.victims.all.push(Candidate { run: *run, job: *job, victim, loss });
        }
        self.victims.all.sort_by(|a, b| b.victim.began.cmp(&a.victim.began).then(b.job.cmp(&a.job)));
    }

    /// Jobs of this class are looked at for what they could take.
    pub(super) fn hunts(&mut self, class: u32) -> bool {
        if self.victims.all.is_empty() || self.classes.run(class).no_victims || !self.can_hunt(class) {
            return false;
        }
        let (by, tier) = self.preempts_as(class);
        let now = Time(self.timeline.now);
        let (rules, all) = (&self.cluster.preemption, &self.victims.all);
        *self
            .victims
            .known
            .entry((by, tier))
            .or_insert_with(|| all.iter().any(|v| rules.may(by, tier, u32::MAX, &v.victim, now)))
    }

    /// Whether the search below is right for such jobs: it takes for granted that what fits still fits when more is free, and
    /// counts what nodes give as the node itself does. Others wait their turn without preempting anybody.
    fn can_hunt(&self, class: u32) -> bool {
        let shape = &self.classes.get(class).shape;
        let partition = &self.cluster.partitions[shape.partition as usize];
        let spreads = partition.least_loaded || self.cluster.policy.least_loaded || shape.demand.spread;
        let by_itself = shape.demand.job_gres.is_empty() && !shape.is_intricate();
        partition.max_cpus_per_node.is_none() && !spreads && by_itself
    }

    fn preempts_as(&self, class: u32) -> (Option<crate::preemption::Preemptor>, u32) {
        let Class { shape, preemptor, .. } = self.classes.get(class);
        (*preemptor, self.cluster.partitions[shape.partition as usize].priority_tier)
    }

    /// Takes room from others for a job that has none.
    pub(super) fn preempt(&mut self, class: u32, key: Key, job: &Pending, limits: Limits, index: Option<u32>) -> Taken {
        // Planned starts of several tasks of one array are told apart by nothing yet.
        if index.is_some() || !self.hunts(class) {
            return Taken::No;
        }
        let mut allowed = self.victims_of(class, key);
        if allowed.is_empty() {
            self.classes.run(class).no_victims = true;
            return Taken::No;
        }
        // Those whose end comes sooner than their grace would are waited for.
        let now = self.timeline.now;
        allowed.retain(|at| {
            let Candidate { run, victim, .. } = &self.victims.all[*at];
            victim.mode == Mode::Suspend || self.timeline.end_of(*run) > now.saturating_add(victim.grace_ms)
        });
        // To suspend loses nothing. A set is of one kind: who is stopped makes room now, who is ended later.
        let (stops, ends): (Vec<usize>, Vec<usize>) =
            allowed.into_iter().partition(|at| self.victims.all[*at].victim.mode == Mode::Suspend);
        // A stopped job ends later: planned starts that wait for its end must not have to wait longer.
        let duration = job.duration(limits.want);
        let (stops, _): (Vec<usize>, Vec<usize>) =
            stops.into_iter().partition(|at| self.can_pause(self.victims.all[*at].run, duration));
        let found = self.find(class, key, job, limits, &stops).or_else(|| self.find(class, key, job, limits, &ends));
        let taken = match found {
            Some(found) => self.carry_out(class, key, job, limits, index, found),
            None => Taken::No,
        };
        // What is free, and who may go, only shrinks during a pass.
        self.classes.run(class).no_victims |= matches!(taken, Taken::No);
        taken
    }

    fn can_pause(&self, run: u32, duration: i64) -> bool {
        let until = self.timeline.end_of(run).max(self.timeline.now).saturating_add(duration);
        self.timeline.can_stay(run, until)
    }

    /// Whom it may preempt, by their place in the list.
    fn victims_of(&self, class: u32, key: Key) -> Vec<usize> {
        let (by, tier) = self.preempts_as(class);
        let now = Time(self.timeline.now);
        let rules = &self.cluster.preemption;
        let may =
            |v: &Candidate| !self.victims.taken.contains(&v.run) && rules.may(by, tier, key.priority(), &v.victim, now);
        (0..self.victims.all.len()).filter(|at| may(&self.victims.all[*at])).collect()
    }

    /// The cheapest set of these victims.
    fn find(&mut self, class: u32, key: Key, job: &Pending, limits: Limits, allowed: &[usize]) -> Option<Found> {
        if allowed.is_empty() {
            return None;
        }
        let grace = |at: &usize| match &self.victims.all[*at].victim {
            Victim { mode: Mode::Suspend, .. } => 0,
            victim => victim.grace_ms.max(SOON),
        };
        let grace = allowed.iter().map(grace).max().unwrap_or(0);
        let until = self.timeline.now.saturating_add(grace).saturating_add(job.duration(limits.want));
        let shape = &self.classes.get(class).shape;
        let license_node = self.timeline.license_node() as u32;
        let mut nodes: BTreeSet<u32> = BTreeSet::new();
        for at in allowed {
            nodes.extend(self.timeline.parts(self.victims.all[*at].run).map(|p| p.0).filter(|n| *n != license_node));
        }
        let usable = |n: &u32| self.may_use(shape, *n, key.job());
        nodes.retain(|n| usable(n));
        let hunted = nodes.len();
        // Nodes with room of their own: those first in order do.
        let enough = shape.demand.min_nodes as usize + MORE_NODES;
        nodes.extend(self.pool(shape, key.job(), until, Some(enough)).iter().map(|c| c.node));
        if hunted == 0 && shape.licenses.is_none() {
            return None;
        }
        let prey = allowed.iter().map(|at| (self.victims.all[*at].run, self.victims.all[*at].victim.mode));
        let field = Field::new(self.cluster, self.timeline, shape, nodes.into_iter(), prey, until);
        let losses: Vec<u64> = allowed.iter().map(|at| self.victims.all[*at].loss).collect();
        let mut tries = TRIES;
        let mut best = None;
        if shape.one_node() {
            best = on_one_node(&field, &losses, &mut tries);
        }
        if !self.classes.get(class).single {
            // Spread over several nodes it may cost less.
            let spread = on_several(&field, &losses, &mut tries);
            let first = |a: &Placing, b: &Placing| (a.0, &a.1) <= (b.0, &b.1);
            best = match (best, spread) {
                (Some(a), Some(b)) => Some(if first(&a, &b) { a } else { b }),
                (a, b) => a.or(b),
            };
        }
        self.plan.work += 1 + (field.len() as u64 + u64::from(TRIES - tries)) / 16;
        let (price, set, (shares, rows)) = best?;
        let victims = set.iter().map(|at| allowed[*at]).collect();
        Some(Found { victims, placed: Placed { shares, rows }, loss: price.loss })
    }

    fn carry_out(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        limits: Limits,
        index: Option<u32>,
        found: Found,
    ) -> Taken {
        let now = self.timeline.now;
        let of = |at: &usize| &self.victims.all[*at];
        let ending = found.victims.iter().map(of).filter(|v| v.victim.mode != Mode::Suspend);
        let start = ending.map(|v| now.saturating_add(v.victim.grace_ms.max(SOON))).max();
        let mut victims: Vec<(JobId, Mode)> = found.victims.iter().map(of).map(|v| (v.job, v.victim.mode)).collect();
        victims.sort_unstable();
        let shape = &self.classes.get(class).shape;
        let told = PlannedPreemption {
            job: key.job(),
            index,
            partition: self.cluster.partitions[shape.partition as usize].name.clone(),
            victims,
            start: Time(start.unwrap_or(now)),
            needs: self.needs(&found.placed),
            cost: found.loss,
            priority: key.priority(),
        };
        let runs: Vec<(u32, Mode, i64)> =
            found.victims.iter().map(of).map(|v| (v.run, v.victim.mode, v.victim.grace_ms)).collect();
        let Some(start) = start else {
            let lenders: Vec<u32> = runs.iter().map(|r| r.0).collect();
            return match self.start_over(class, key, job, found.placed, limits.want, index, &lenders) {
                Ok(()) => {
                    self.victims.taken.extend(lenders);
                    self.plan.preemptions.push(told);
                    Taken::Started
                }
                Err(_) => Taken::No,
            };
        };
        // If it could start as soon anyway, nobody has to go.
        if self.earliest(class, key.job(), job.duration(limits.want), start).is_some() {
            return Taken::No;
        }
        if self.limits_at(class, &self.counted(&found.placed), limits.want).is_err() {
            return Taken::No;
        }
        for (run, mode, grace) in runs {
            self.victims.taken.insert(run);
            if mode != Mode::Suspend {
                self.victims.ends.push((run, self.timeline.end_of(run)));
                self.timeline.retime(self.cluster, run, now.saturating_add(grace.max(SOON)));
            }
        }
        self.plan.preemptions.push(told);
        self.take(class, key, job, limits, start, found.placed);
        Taken::Planned
    }

    /// Its planned start, besides those that the policy gives.
    fn take(&mut self, class: u32, key: Key, job: &Pending, limits: Limits, start: i64, placed: Placed) {
        let shape = &self.classes.get(class).shape;
        let planned = Planned {
            start,
            end: start.saturating_add(job.duration(limits.want)),
            placed,
            licenses: shape.licenses.clone(),
            partition: shape.partition,
            for_licenses: false,
            claimed: true,
        };
        self.enter(key.job(), planned);
    }

    /// Starts it on cores of jobs that are suspended for it.
    #[allow(clippy::too_many_arguments, reason = "what a start takes, and whom from")]
    fn start_over(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        placed: Placed,
        limit: TimeLimit,
        index: Option<u32>,
        lenders: &[u32],
    ) -> Result<(), Reason> {
        let mut before = Vec::new();
        // One after the other: they may lie on the same node.
        let ends = self.victims.ends.len();
        for run in lenders {
            if !self.can_pause(*run, job.duration(limit)) {
                for (run, end) in self.victims.ends.drain(ends..).rev() {
                    self.timeline.retime(self.cluster, run, end);
                }
                return Err(Reason::Resources);
            }
            let end = self.timeline.end_of(*run);
            self.victims.ends.push((*run, end));
            let later = end.max(self.timeline.now).saturating_add(job.duration(limit));
            self.timeline.retime(self.cluster, *run, later);
        }
        for run in lenders {
            let held = self.without_cores(*run, |part| part.cpus.clone(), true);
            before.push((*run, self.timeline.swap(self.cluster, *run, held)));
        }
        let started = self.start(class, key, job, placed, limit, index);
        // What it borrows goes back to its owners when it ends: it counts as theirs.
        if started.is_ok()
            && let Some(run) = self.runs.last().copied()
        {
            let lent = |part: &NodeAlloc| {
                let theirs = before.iter().filter_map(|(_, (held, _))| held.on(&part.node));
                theirs.fold(IndexSet::new(), |all, held| all.union(&held.cpus))
            };
            let held = self.without_cores(run, lent, false);
            let _ = self.timeline.swap(self.cluster, run, held);
        }
        for (run, held) in before.into_iter().rev() {
            let _ = self.timeline.swap(self.cluster, run, held);
        }
        if started.is_err() {
            for (run, end) in self.victims.ends.drain(ends..).rev() {
                self.timeline.retime(self.cluster, run, end);
            }
        }
        started
    }

    /// What a run holds without these cores. `apart`: it is not on the node at all, but for what it keeps.
    fn without_cores(
        &self,
        run: u32,
        cores: impl Fn(&NodeAlloc) -> IndexSet,
        apart: bool,
    ) -> (Arc<Allocation>, Vec<Vec<i64>>) {
        let mut allocation = Allocation::clone(self.timeline.allocation(run));
        for part in &mut allocation.nodes {
            part.cpus = part.cpus.difference(&cores(part));
        }
        let left = |node: u32| {
            let here = allocation.nodes.iter().find(|p| self.cluster.position(&p.node) == Some(node));
            here.map(|p| i64::try_from(p.cpus.len()).unwrap_or(i64::MAX))
        };
        let rows = self.timeline.parts(run).map(|(node, row)| {
            let mut row = row.to_vec();
            let Some(left) = left(node) else { return row };
            for slot in self.timeline.layout.limited.iter().flatten() {
                row[*slot] = row[*slot].min(left);
            }
            row[CPUS] = left;
            if apart {
                (row[JOBS], row[WHOLE]) = (0, 0);
            }
            row
        });
        let rows = rows.collect();
        (Arc::new(allocation), rows)
    }

    /// Jobs for which others had to go come before all: they start, or wait on for the last of those.
    pub(super) fn see_claims(&mut self) {
        let (jobs, claims) = (self.jobs, self.claims);
        let mut due: Vec<(Key, u32, &Claim)> = Vec::new();
        for (id, claim) in claims {
            let entries = jobs.get(id).map_or(&[][..], |p| p.entries());
            let here = entries.iter().find(|e| self.classes.get(e.class).shape.partition == claim.partition);
            match here {
                Some(entry) => due.push((entry.key, entry.class, claim)),
                None => self.plan.lapsed.push(*id),
            }
        }
        due.sort_unstable_by_key(|d| d.0);
        for (key, class, claim) in due {
            self.classes.run(class);
            if !self.claimed(class, key, claim) {
                self.plan.lapsed.push(key.job());
                continue;
            }
            if let Some(job) = jobs.get(&key.job())
                && !self.started.contains(&key.job())
            {
                self.seen_everywhere(key, job);
            }
        }
        self.plan.lapsed.sort_unstable();
    }

    /// False when the claim is worth nothing.
    fn claimed(&mut self, class: u32, key: Key, claim: &Claim) -> bool {
        let jobs = self.jobs;
        let Some(job) = jobs.get(&key.job()) else { return false };
        let Some(entry) = job.entry(key) else { return false };
        let Ok(limits) = before_deadline(self.timeline.now, job, entry.limits) else { return false };
        if !matches!(self.classes.get(class).shape.verdict, Verdict::Possible) {
            return false;
        }
        let Ok(limits) = self.limits_before(class, entry.free, limits) else { return false };
        let index = job.indices().first().copied();
        let now = self.timeline.now;
        let nodes: Vec<u32> = claim.nodes.iter().filter_map(|n| self.cluster.position(n)).collect();
        let sites: Vec<usize> = (0..nodes.len()).collect();
        let waits: Vec<u32> = claim.victims.iter().filter_map(|v| self.running.get(v)).copied().collect();
        let until = now.saturating_add(job.duration(limits.want));
        let shape = &self.classes.get(class).shape;
        let field = Field::new(self.cluster, self.timeline, shape, nodes.iter().copied(), std::iter::empty(), until);
        let all: Vec<usize> = (0..field.len()).collect();
        if let Some((shares, rows)) = field.place(&all, &[]) {
            return self.begin_claimed(class, key, job, limits, index, Placed { shares, rows });
        }
        if waits.is_empty() {
            return false;
        }
        let ends = waits.iter().map(|run| self.timeline.end_of(*run)).max().unwrap_or(now);
        let start = ends.max(now.saturating_add(SOON));
        let until = start.saturating_add(job.duration(limits.want));
        let prey: Vec<(u32, Mode)> = waits.iter().map(|run| (*run, Mode::Cancel)).collect();
        let gone = vec![true; prey.len()];
        let field = Field::new(self.cluster, self.timeline, shape, nodes.into_iter(), prey.into_iter(), until);
        let Some((shares, rows)) = field.place(&sites[..field.len()], &gone) else { return false };
        let placed = Placed { shares, rows };
        if self.limits_at(class, &self.counted(&placed), limits.want).is_err() {
            return false;
        }
        self.take(class, key, job, limits, start, placed);
        true
    }

    fn begin_claimed(
        &mut self,
        class: u32,
        key: Key,
        job: &Pending,
        limits: Limits,
        index: Option<u32>,
        placed: Placed,
    ) -> bool {
        if self.start(class, key, job, placed, limits.want, index).is_err() {
            return false;
        }
        if let Some(index) = index {
            // Claims are made for single tasks.
            debug_assert_eq!(job.indices(), [index]);
            self.tasks_started.insert(key.job(), 1);
        }
        self.all_started(key);
        true
    }

    /// What a place takes, as an allocation whose indices only count.
    fn counted(&self, placed: &Placed) -> Vec<NodeAlloc> {
        let first = |n: i64| if n > 0 { IndexSet::range(0, (n - 1) as u32) } else { IndexSet::new() };
        let part = |(share, row): (&Share, &Vec<i64>)| {
            let spec = self.cluster.spec(share.node);
            let mut gres = Vec::new();
            for (have, count) in spec.gres.iter().zip(&row[GRES..]).filter(|(_, c)| **c > 0) {
                // By number, as devices of one name are counted through.
                let offset = entries(spec, &have.name)
                    .find(|(at, _)| spec.gres[*at].kind == have.kind)
                    .map_or(0, |(_, (first, _))| first as u32);
                let indices = IndexSet::range(offset, offset + (*count - 1) as u32);
                gres.push(GresAlloc { name: have.name.clone(), kind: have.kind.clone(), indices });
            }
            NodeAlloc {
                node: spec.name.clone(),
                cpus: first(row[CPUS]),
                memory_mb: u64::try_from(row[MEMORY]).unwrap_or(0),
                gres,
                tasks: share.tasks,
            }
        };
        placed.shares.iter().zip(&placed.rows).map(part).collect()
    }

    fn needs(&self, placed: &Placed) -> Vec<ClaimShare> {
        let amount = |n: i64| u64::try_from(n).unwrap_or(0);
        let share = |(share, row): (&Share, &Vec<i64>)| {
            let spec = self.cluster.spec(share.node);
            ClaimShare {
                node: spec.name.clone(),
                cpus: amount(row[CPUS]),
                memory_mb: amount(row[MEMORY]),
                gres: row[GRES..].iter().take(spec.gres.len()).map(|n| amount(*n)).collect(),
            }
        };
        placed.shares.iter().zip(&placed.rows).map(share).collect()
    }

    /// Ends in the time line as they were before the pass.
    pub(super) fn spare(&mut self) {
        for (run, end) in std::mem::take(&mut self.victims.ends).into_iter().rev() {
            self.timeline.retime(self.cluster, run, end);
        }
    }
}

type Place = (Vec<Share>, Vec<Vec<i64>>);
/// Price, victims, place.
type Placing = (Price, Vec<usize>, Place);

/// The cheapest set of victims for which one node has room for all of it.
fn on_one_node(field: &Field<'_>, losses: &[u64], tries: &mut u32) -> Option<Placing> {
    let mut sites: Vec<(u64, usize, Vec<usize>)> = Vec::new();
    for site in 0..field.len() {
        let here = field.on(site);
        // Somebody has to go, the cheapest at least.
        if let Some(least) = here.iter().map(|at| losses[*at]).min() {
            sites.push((least, site, here));
        }
    }
    sites.sort_by_key(|(least, site, _)| (*least, *site));
    let mut best: Option<Placing> = None;
    for (least, site, here) in sites {
        if best.as_ref().is_some_and(|(price, ..)| price.loss < least) {
            break;
        }
        let mut gone = vec![false; losses.len()];
        let own: Vec<u64> = here.iter().map(|at| losses[*at]).collect();
        let bound = best.as_ref().map(|(price, ..)| Price { loss: price.loss, count: price.count + 1 });
        let found = cheapest(&own, bound, tries, |set| {
            here.iter().zip(set).for_each(|(at, s)| gone[*at] = *s);
            field.alone(site, &gone).is_some()
        });
        let Some((price, set)) = found else { continue };
        let set: Vec<usize> = set.into_iter().map(|i| here[i]).collect();
        if best.as_ref().is_some_and(|(p, s, _)| (*p, s) <= (price, &set)) {
            continue;
        }
        let mut gone = vec![false; losses.len()];
        set.iter().for_each(|at| gone[*at] = true);
        if let Some(place) = field.alone(site, &gone) {
            best = Some((price, set, place));
        }
    }
    best
}

/// The same over several nodes: those where a share is cheapest.
fn on_several(field: &Field<'_>, losses: &[u64], tries: &mut u32) -> Option<Placing> {
    let mut sites: Vec<(Price, u32, usize)> = Vec::new();
    for site in 0..field.len() {
        let here = field.on(site);
        let mut gone = vec![false; losses.len()];
        let own: Vec<u64> = here.iter().map(|at| losses[*at]).collect();
        let found = cheapest(&own, None, &mut 8, |set| {
            here.iter().zip(set).for_each(|(at, s)| gone[*at] = *s);
            field.shares(site, &gone)
        });
        sites.extend(found.map(|(price, _)| (price, field.node(site), site)));
    }
    sites.sort_unstable();
    let required = |node: u32| field.shape.required.binary_search(&node).is_ok();
    let most = field.shape.demand.min_nodes as usize + MORE_NODES;
    let mut chosen: Vec<usize> = sites.iter().filter(|s| required(s.1)).map(|s| s.2).collect();
    let others = sites.iter().filter(|s| !required(s.1)).map(|s| s.2);
    // Contiguous nodes can't be chosen one by one.
    let most = if field.shape.demand.contiguous { usize::MAX } else { most };
    chosen.extend(others.take(most));
    // Where they have too little room together, all of them.
    let full = vec![true; losses.len()];
    if chosen.len() < sites.len() && field.place(&chosen, &full).is_none() {
        chosen = sites.iter().map(|s| s.2).collect();
    }
    let mut here: Vec<usize> = chosen.iter().flat_map(|s| field.on(*s)).collect();
    here.sort_unstable();
    here.dedup();
    let own: Vec<u64> = here.iter().map(|at| losses[*at]).collect();
    let mut gone = vec![false; losses.len()];
    let (price, set) = cheapest(&own, None, tries, |set| {
        here.iter().zip(set).for_each(|(at, s)| gone[*at] = *s);
        field.place(&chosen, &gone).is_some()
    })?;
    let set: Vec<usize> = set.into_iter().map(|i| here[i]).collect();
    let mut gone = vec![false; losses.len()];
    set.iter().for_each(|at| gone[*at] = true);
    let place = field.place(&chosen, &gone)?;
    Some((price, set, place))
}
