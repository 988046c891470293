//! Who goes first and who must wait: fair-share factors, priorities and limits of one moment.
//!
//! Owns what is computed anew every PriorityCalcPeriod, or when configuration, accounting or hardware change. Between
//! two such moments a job's priority does not change, so that the queue keeps its order and passes stay cheap. Priorities
//! are a function of the board, the job and the state; nothing of it is stored.

mod smallest_first;

use super::feed::Outlook;
use super::scheduling::requested;
use super::usage::{billing_at, qos_of, run_tres, usage_at};
use crate::job::{ArrayRole, Hold, Job, Phase};
use crate::state::State;
use crate::usage::{Spent, UsageOwner};
use sluice_model::accounting::{AssocId, Limits, NORMAL_QOS, Shares};
use sluice_model::config::{ClusterConfig, PriorityConfig, PriorityFlags, PriorityKind};
use sluice_model::tres::Tres;
use sluice_model::{JobId, Time, TimeLimit};
use sluice_sched::fairshare::{self, Algorithm, Member, Standing};
use sluice_sched::limits::{AssociationRule, Charge, QosRule, Rules, Used};
use sluice_sched::overtaking::Ledger;
use sluice_sched::priority::{self, Factors, Facts, Scales};
use sluice_sched::{Input, PendingJob, RunningJob};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A member of the tree of shares, for sshare.
#[derive(Clone, Debug)]
pub struct Share {
    pub association: AssocId,
    pub standing: Standing,
    pub spent: Spent,
}

/// The parts of a job's priority in one partition, for sprio.
#[derive(Clone, Debug)]
pub struct PriorityParts {
    pub partition: String,
    pub factors: Factors,
    pub weighted: Factors,
    pub total: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Board {
    /// When it was made.
    pub at: Option<Time>,
    made_from: Option<Source>,
    config: PriorityConfig,
    scales: Scales,
    /// By position of the partition: what it has.
    partition_tres: Vec<Tres>,
    /// Associations in the order of their numbers.
    pub shares: Vec<Share>,
    positions: BTreeMap<AssocId, u32>,
    qos: BTreeMap<String, u32>,
    /// Users without association who have used something: their factor.
    users: BTreeMap<String, f64>,
    /// Part of all usage by part of all shares: of each association, by position, and of users without one.
    used_ratios: Vec<f64>,
    users_ratios: BTreeMap<String, f64>,
    /// How long waiting jobs have been overtaken, where the smallest go first.
    pub overtaken: Ledger,
    /// None: nothing is enforced.
    pub rules: Option<Arc<Rules>>,
    /// With INCR_ONLY: what they had already.
    least: BTreeMap<JobId, u32>,
}

/// What a board was made from: as long as these are the same ones it holds for its period.
#[derive(Clone, Debug)]
struct Source {
    config: Arc<ClusterConfig>,
    hardware: Arc<crate::Hardware>,
    accounting: crate::accounting::Accounting,
}

impl Board {
    /// Whether it is time for a new one.
    pub fn is_stale(&self, state: &State, now: Time) -> bool {
        let (Some(at), Some(from)) = (self.at, &self.made_from) else { return true };
        let period = i64::from(self.config.calc_period_secs) * 1000;
        let same = state.config.as_ref().is_some_and(|c| Arc::ptr_eq(c, &from.config))
            && Arc::ptr_eq(&state.index.hardware, &from.hardware)
            && state.accounting.same(&from.accounting);
        let ages = self.computes() || self.rules.is_some();
        !same || now < at || (ages && now.0.saturating_sub(at.0) >= period)
    }

    /// Everything anew. `before`: the board that it replaces.
    pub fn new(state: &State, now: Time, before: Option<&Board>) -> Board {
        Board::made(state, now, before, false)
    }

    /// With the tree of shares and all that was used, also where nothing depends on it.
    pub fn with_shares(state: &State, now: Time) -> Board {
        Board::made(state, now, None, true)
    }

    fn made(state: &State, now: Time, before: Option<&Board>, whole: bool) -> Board {
        let Some(config) = &state.config else { return Board::default() };
        let made_from = Source {
            config: Arc::clone(config),
            hardware: Arc::clone(&state.index.hardware),
            accounting: state.accounting.clone(),
        };
        let mut board =
            Board { at: Some(now), made_from: Some(made_from), config: config.priority.clone(), ..Board::default() };
        let limits = config.accounting.enforce.limits;
        if board.computes() || limits || whole {
            board.fill(state, now, before, limits || whole);
        }
        board
    }

    /// `whole`: all that was used is looked at, not only what fair shares go by.
    fn fill(&mut self, state: &State, now: Time, before: Option<&Board>, whole: bool) {
        let board = self;
        let usage = if whole { usage_at(state, now) } else { BTreeMap::new() };
        board.rank(state, &billing_at(state, now), &usage);
        board.scales = scales(state);
        board.partition_tres = partition_tres(state);
        if state.config.as_ref().is_some_and(|c| c.accounting.enforce.limits) {
            board.rules = Some(Arc::new(board.limits(state, &usage)));
        }
        if board.config.kind == PriorityKind::SmallestFirst {
            board.overtaken = before.map(|b| b.overtaken.clone()).unwrap_or_default();
            board.count_overtaking(state, now);
        }
        if let Some(before) = before.filter(|_| board.config.flags.has(PriorityFlags::INCR_ONLY)) {
            board.least = state
                .index
                .eligible
                .iter()
                .filter_map(|key| state.jobs.get(&key.job))
                .map(|job| (job.id, before.priority(state, job)))
                .collect();
        }
    }

    /// What the scheduler is shown of this state.
    pub fn over<'a>(&'a self, state: &'a State) -> Over<'a> {
        Over { board: self, state }
    }

    /// Priorities are computed, not taken from the record.
    pub fn computes(&self) -> bool {
        self.config.kind != PriorityKind::Fifo
    }

    fn rank(&mut self, state: &State, billing: &BTreeMap<UsageOwner, f64>, usage: &BTreeMap<UsageOwner, Spent>) {
        let a = &state.accounting;
        self.positions = a.associations.keys().enumerate().map(|(at, id)| (*id, at as u32)).collect();
        let billed = |owner: &UsageOwner| billing.get(owner).copied().unwrap_or(0.0);
        let mut members: Vec<Member> = (a.associations.values())
            .map(|assoc| Member {
                parent: a.parent(assoc).and_then(|p| self.positions.get(&p.id).copied()),
                shares: match assoc.shares {
                    Shares::Number(n) => fairshare::Shares::Raw(n),
                    Shares::Parent => fairshare::Shares::Parent,
                },
                usage: billed(&UsageOwner::Association(assoc.id)),
                is_user: assoc.user.is_some(),
            })
            .collect();
        // Who has no association stands beside the accounts, as if with one share of root.
        let root = members.iter().position(|m| m.parent.is_none() && !m.is_user);
        let loose: Vec<(&String, f64)> = (billing.iter())
            .filter_map(|(o, used)| match o {
                UsageOwner::User(name) => Some((name, *used)),
                _ => None,
            })
            .collect();
        if let Some(root) = root {
            members[root].usage += loose.iter().map(|(_, used)| used).sum::<f64>();
            members.extend(loose.iter().map(|(_, used)| Member {
                parent: Some(root as u32),
                shares: fairshare::Shares::Raw(1),
                usage: *used,
                is_user: true,
            }));
        }
        let flags = self.config.flags;
        let algorithm = if flags.has(PriorityFlags::DEPTH_OBLIVIOUS) {
            Algorithm::DepthOblivious
        } else if flags.has(PriorityFlags::NO_FAIR_TREE) {
            Algorithm::Classic
        } else {
            Algorithm::FairTree
        };
        let standings = fairshare::standings(&members, algorithm, self.config.dampening_factor);
        let count = a.associations.len();
        self.users = (loose.iter().zip(standings.iter().skip(count)))
            .map(|((name, _), s)| ((*name).clone(), s.factor.unwrap_or(0.0)))
            .collect();
        let ratios = smallest_first::used_ratios(&members, &standings, algorithm);
        self.users_ratios =
            (loose.iter().zip(ratios.iter().skip(count))).map(|((name, _), r)| ((*name).clone(), *r)).collect();
        self.used_ratios = ratios.into_iter().take(count).collect();
        let spent = |id: &AssocId| usage.get(&UsageOwner::Association(*id)).cloned().unwrap_or_default();
        self.shares = (a.associations.keys().zip(standings))
            .map(|(id, standing)| Share { association: *id, standing, spent: spent(id) })
            .collect();
    }

    fn limits(&mut self, state: &State, usage: &BTreeMap<UsageOwner, Spent>) -> Rules {
        let a = &state.accounting;
        let used = |owner: UsageOwner| {
            usage.get(&owner).map_or_else(Used::default, |s| Used {
                tres_secs: s.tres_secs.iter().map(|(k, n)| (k.clone(), n.0)).collect(),
                wall_secs: s.wall_secs.0,
            })
        };
        let nothing = Limits::default();
        let associations: Vec<AssociationRule<'_>> = (a.associations.values())
            .map(|assoc| AssociationRule {
                label: match &assoc.user {
                    Some(user) => format!("user {user} in account {}", assoc.account),
                    None => format!("account {}", assoc.account),
                },
                parent: a.parent(assoc).and_then(|p| self.positions.get(&p.id).copied()),
                is_user: assoc.user.is_some(),
                own: &assoc.limits,
                effective: a.limits(assoc.id),
                used: used(UsageOwner::Association(assoc.id)),
            })
            .collect();
        let qos: Vec<QosRule<'_>> = (a.qos.values())
            .map(|q| QosRule {
                name: &q.name,
                limits: if q.limits.is_empty() { &nothing } else { &q.limits },
                flags: &q.flags,
                usage_factor: q.usage_factor,
                usage_threshold: q.usage_threshold,
                limit_factor: q.limit_factor,
                used: used(UsageOwner::Qos(q.id)),
            })
            .collect();
        self.qos = a.qos.keys().enumerate().map(|(at, name)| (name.clone(), at as u32)).collect();
        let safe = state.config.as_ref().is_some_and(|c| c.accounting.enforce.safe);
        let mut rules = Rules::new(&associations, &qos, safe);
        rules.max_tres = self.config.flags.has(PriorityFlags::MAX_TRES);
        rules
    }

    /// The position of a QOS in the rules.
    pub fn qos_position(&self, name: &str) -> Option<u32> {
        self.qos.get(name).copied()
    }

    /// Whose limits the job counts for.
    pub fn charge(&self, job: &Job) -> Charge {
        let Some(rules) = &self.rules else { return Charge::default() };
        let qos = self.qos_position(job.spec.qos.as_deref().unwrap_or(NORMAL_QOS));
        // Jobs that count for different ones are decided apart: they are told apart only where it matters.
        Charge {
            association: job.association.and_then(|id| self.positions.get(&id).copied()),
            qos,
            uid: job.spec.uid,
            fairshare: if rules.asks_fairshare() { (self.fairshare(job) * 1e6) as u32 } else { 0 },
        }
    }

    /// 0 to 1. Who has used nothing and is in no tree stands first.
    pub fn fairshare(&self, job: &Job) -> f64 {
        let share = job.association.and_then(|id| self.positions.get(&id)).and_then(|at| self.shares.get(*at as usize));
        match share {
            Some(share) => share.standing.factor.unwrap_or(0.0),
            None => self.users.get(job.spec.user.as_str()).copied().unwrap_or(1.0),
        }
    }

    /// The priority that the queue goes by: the highest of the job's partitions; 0 while it is held.
    pub fn priority(&self, state: &State, job: &Job) -> u32 {
        let follows = match &job.phase {
            Phase::Pending => job.priority > 0 && job.hold == Hold::No,
            // A job that runs keeps the priority it started with.
            _ => is_running(job) && self.config.flags.has(PriorityFlags::CALCULATE_RUNNING),
        };
        if !self.computes() || !follows || job.priority_given {
            return job.priority;
        }
        let computed = if self.config.kind == PriorityKind::SmallestFirst && !is_running(job) {
            self.waiting_by_size(state, job)
        } else {
            self.parts(state, job).into_iter().map(|p| p.total).max()
        };
        let computed = computed.unwrap_or(job.priority);
        let old = self.least.get(&job.id).copied();
        priority::refreshed(old, computed, self.config.flags)
    }

    /// The parts of the priority, in each of the job's partitions, in the job's order.
    pub fn parts(&self, state: &State, job: &Job) -> Vec<PriorityParts> {
        let Some(at) = self.at else { return Vec::new() };
        let running = is_running(job);
        let (tres, nodes, cpus) = match job.run() {
            Some(run) => {
                let tres = run_tres(state, job, run);
                let (nodes, cpus) = (tres.nodes as u32, tres.cpus as u32);
                (tres, nodes, cpus)
            }
            None => asked(state, job),
        };
        let qos_priority = qos_of(state, job).map_or(0, |q| q.priority);
        let chain = job.association.map(|id| state.accounting.chain(id)).unwrap_or_default();
        let association_priority = chain.into_iter().find_map(|a| a.priority).unwrap_or(0);
        let names: Vec<&String> = match &job.partition {
            Some(p) if running => vec![p],
            _ => job.partitions.iter().collect(),
        };
        let none = Tres::default();
        let part = |name: &String| {
            let spec = state.partitions.get(name)?;
            let position = state.index.hardware.partition_position.get(name);
            let facts = Facts {
                submitted: job.submitted,
                eligible: job.eligible,
                nodes,
                cpus,
                tres: &tres,
                time_limit: if job.spec.time_limit.is_some() || running { job.time_limit } else { default_limit(spec) },
                partition_factor: spec.priority_job_factor,
                partition_tres: position.and_then(|p| self.partition_tres.get(*p as usize)).unwrap_or(&none),
                qos_priority,
                association_priority,
                fairshare: self.fairshare(job),
                site: job.spec.site_factor,
                nice: job.spec.nice,
            };
            if self.config.kind == PriorityKind::SmallestFirst {
                let (parts, total) = self.smallest_first(state, job, &facts);
                return Some(PriorityParts { partition: name.clone(), factors: parts.clone(), weighted: parts, total });
            }
            let factors = priority::factors(&self.config, &self.scales, &facts, at);
            let weighted = factors.weighted(&self.config);
            let total = weighted.total();
            Some(PriorityParts { partition: name.clone(), factors, weighted, total })
        };
        names.into_iter().filter_map(part).collect()
    }
}

fn is_running(job: &Job) -> bool {
    matches!(job.phase, Phase::Running(_) | Phase::Completing { .. })
}

/// A board and the state that it is asked about.
#[derive(Clone, Copy)]
pub struct Over<'a> {
    board: &'a Board,
    state: &'a State,
}

impl Outlook for Over<'_> {
    fn predicts(&self) -> bool {
        self.board.predicts()
    }

    fn limits(&self, shown: &mut Input) {
        shown.limits.clone_from(&self.board.rules);
        if self.board.rules.is_some() {
            for view in &mut shown.partitions {
                let qos = self.state.partitions.get(&view.name).and_then(|p| p.qos.as_deref());
                view.qos = qos.and_then(|name| self.board.qos_position(name));
            }
        }
    }

    fn pending(&self, job: &Job, shown: &mut PendingJob) {
        shown.priority = self.board.priority(self.state, job);
        shown.charge = self.board.charge(job);
    }

    fn running(&self, job: &Job, shown: &mut RunningJob) {
        shown.charge = self.board.charge(job);
    }
}

/// Jobs that sprio lists: waiting, not held, with something left to start.
pub fn is_ranked(job: &Job) -> bool {
    matches!(job.phase, Phase::Pending)
        && job.priority > 0
        && !matches!(&job.array, ArrayRole::Pending { indices, .. } if indices.is_empty())
}

fn default_limit(p: &sluice_model::PartitionSpec) -> TimeLimit {
    p.default_time.map_or(p.max_time, |d| d.min(p.max_time))
}

/// (resources, nodes, CPUs) that a waiting job asks for.
pub(super) fn asked(state: &State, job: &Job) -> (Tres, u32, u32) {
    let totals = requested(job, state);
    let mut tres = Tres {
        cpus: u64::from(totals.cpus),
        memory_mb: totals.memory_mb,
        nodes: u64::from(totals.nodes),
        licenses: job.spec.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect(),
        ..Tres::default()
    };
    for (name, kind, count) in &totals.gres {
        tres.add_gres(name, kind.as_deref(), *count);
    }
    let weights = job.partitions.first().and_then(|p| state.partitions.get(p)).map(|p| p.billing_weights.clone());
    tres.billing = weights.unwrap_or_default().billing(&tres, false) as u64;
    (tres, totals.nodes, totals.cpus)
}

fn scales(state: &State) -> Scales {
    let nodes = &state.index.hardware.nodes;
    Scales {
        nodes: nodes.len() as u32,
        cpus: nodes.iter().map(|n| u64::from(n.spec.cpus)).sum(),
        partition: state.partitions.values().map(|p| p.priority_job_factor).max().unwrap_or(0),
        qos: state.accounting.qos.values().map(|q| q.priority).max().unwrap_or(0),
        association: state.accounting.associations.values().filter_map(|a| a.priority).max().unwrap_or(0),
    }
}

fn partition_tres(state: &State) -> Vec<Tres> {
    let hardware = &state.index.hardware;
    let of = |p: &sluice_sched::PartitionView| {
        let members: BTreeSet<u32> = p.nodes.iter().copied().collect();
        let mut sum = Tres { nodes: members.len() as u64, ..Tres::default() };
        for node in members.iter().filter_map(|n| hardware.nodes.get(*n as usize)) {
            sum.merge(&Tres::of_node(&node.spec));
        }
        sum.licenses = hardware.licenses.iter().map(|(name, n)| (name.clone(), u64::from(*n))).collect();
        sum.billing = p.billing_weights.billing(&sum, false) as u64;
        sum
    };
    hardware.partitions.iter().map(of).collect()
}
