//! The scheduler with a memory: fed with what changes, it plans as `plan` does.
//!
//! Owns what it was told of the cluster, and what follows from that: the time line, an index of free nodes, the classes of
//! jobs. Promises that `plan` gives exactly what `crate::plan` gives for an `Input` with the same content, whatever changes
//! led there; a change costs little more than its own size, a pass no more than what could start and what is planned. Must
//! not look at a clock: the time comes with each question.

use crate::backfill::{Done, Pass};
use crate::classes::Classes;
use crate::cluster::Cluster;
use crate::feasibility::check_time;
use crate::input::{Input, PendingJob, RunningJob};
use crate::jobs::{Entry, Jobs, Pending, Place, Special, is_special};
use crate::limits::Rules;
use crate::order::{Key, starts_jobs};
use crate::plan::Plan;
use crate::preemption::Claim;
use crate::reasons::rank;
use crate::timeline::Timeline;
use sluice_model::partition::PartitionState;
use sluice_model::{JobId, Reason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Starts empty: `rebuild` tells it of a cluster, the other methods of changes.
#[derive(Clone, Debug, Default)]
pub struct Scheduler {
    pub(crate) cluster: Cluster,
    pub(crate) timeline: Timeline,
    pub(crate) classes: Classes,
    pub(crate) jobs: Jobs,
    /// Job → its place in the time line.
    pub(crate) running: BTreeMap<JobId, u32>,
    /// What was taken from others for jobs that wait.
    pub(crate) claims: BTreeMap<JobId, Arc<Claim>>,
    /// Jobs that some partition refuses, or that have a deadline: what is said of them does not follow from their class.
    pub(crate) apart: BTreeSet<JobId>,
    /// Nodes came or went since the last pass.
    stale: bool,
}

impl Scheduler {
    /// Forgets all and takes over the input.
    pub fn rebuild(&mut self, input: &Input) {
        let cluster = Cluster::new(input);
        *self = Scheduler {
            timeline: Timeline::new(&cluster),
            classes: Classes::new(&cluster),
            cluster,
            ..Scheduler::default()
        };
        input.running.iter().for_each(|job| self.put_running(job.clone()));
        input.pending.iter().for_each(|job| self.put_pending(job.clone()));
        self.timeline.grown.clear();
    }

    /// The limits of associations and QOS, with what was used; None: nothing is enforced. Whom jobs count for must be
    /// known before (`rebuild`) where limits come up for the first time.
    pub fn set_limits(&mut self, limits: Option<Arc<Rules>>) {
        self.cluster.limits = limits;
    }

    /// A node (by position) takes new jobs, or no longer does.
    pub fn set_available(&mut self, node: u32, available: bool) {
        let Some(view) = self.cluster.nodes.get_mut(node as usize) else { return };
        if view.available != available {
            view.available = available;
            self.timeline.reindex(&self.cluster, node);
            self.stale = true;
            if available {
                self.timeline.grown.push(node);
            }
        }
    }

    /// A job holds resources, or holds others than before, or until another time.
    pub fn put_running(&mut self, job: RunningJob) {
        self.remove_running(job.job);
        let id = job.job;
        let run = self.timeline.put_running(&self.cluster, job);
        self.running.insert(id, run);
    }

    /// It holds nothing any more. Unknown ones are passed over.
    pub fn remove_running(&mut self, job: JobId) {
        if let Some(run) = self.running.remove(&job) {
            self.timeline.remove_run(&self.cluster, run);
        }
    }

    /// An eligible job, new or changed. It may hold resources at the same time only as tasks of an array do, under ids of
    /// their own.
    pub fn put_pending(&mut self, job: PendingJob) {
        self.remove_pending(job.job);
        let mut entries = Vec::new();
        let mut refused: Option<Reason> = None;
        let mut refuse = |reason: Reason| {
            refused = Some(refused.map_or(reason, |have| if rank(have) <= rank(reason) { have } else { reason }));
        };
        for (slot, p) in job.partitions.iter().enumerate() {
            let Some(view) = self.cluster.partitions.get(*p as usize) else { continue };
            match view.state {
                PartitionState::Down => refuse(Reason::PartitionDown),
                PartitionState::Inactive => refuse(Reason::PartitionInactive),
                _ => {}
            }
            if !starts_jobs(view.state) {
                continue;
            }
            match check_time(job.time_limit, job.time_min, view) {
                Ok(limits) => {
                    let key = Key::new(view, &job, slot);
                    let class = self.classes.of(&self.cluster, &self.timeline, &job, *p);
                    entries.push(Entry { class, key, limits, free: job.time_limit.is_none() });
                }
                Err(never) => refuse(never.reason()),
            }
        }
        let special = is_special(&job);
        let (id, expected_ms) = (job.job, job.expected_ms);
        if let Some(claim) = &job.claim {
            self.claims.insert(id, Arc::clone(claim));
        }
        if refused.is_some() || job.deadline.is_some() {
            self.apart.insert(id);
        }
        let place = match entries[..] {
            [] => Place::Nowhere(refused),
            [only] if !special => Place::Plain(only),
            _ => Place::Special(Box::new(Special { entries, indices: job.indices, deadline: job.deadline, refused })),
        };
        let pending = Pending { expected_ms, place };
        for entry in pending.entries() {
            let duration = pending.duration(entry.limits.want);
            self.classes.insert(entry.class, entry.key, duration, pending.least(entry));
        }
        self.jobs.insert(id, pending);
    }

    /// It is not eligible any more. Unknown ones are passed over.
    pub fn remove_pending(&mut self, job: JobId) {
        let Some(pending) = self.jobs.remove(&job) else { return };
        self.apart.remove(&job);
        self.claims.remove(&job);
        for entry in pending.entries() {
            self.classes.remove(entry.class, entry.key, pending.duration(entry.limits.want));
        }
    }

    /// Jobs that wait.
    pub fn pending(&self) -> usize {
        self.jobs.len()
    }

    /// One scheduling pass. Changes nothing that a later pass could see: what it starts counts when it is told so.
    pub fn plan(&mut self, generation: u64, now: Time) -> Plan {
        self.pass(generation, now, None).plan
    }

    /// `guest`: gets a planned start whatever the policy's number and budget.
    pub(crate) fn pass(&mut self, generation: u64, now: Time, guest: Option<JobId>) -> Done {
        self.timeline.advance(now.0, self.cluster.policy.overrun);
        if std::mem::take(&mut self.stale) {
            self.classes.refresh(&self.cluster);
        }
        let mut grown = std::mem::take(&mut self.timeline.grown);
        grown.sort_unstable();
        grown.dedup();
        self.classes.revive(&self.cluster, &self.timeline, &grown);
        self.classes.begin();
        Pass::new(self, generation, guest).run()
    }
}
