//! sprio and sshare: the parts of waiting jobs' priorities, and the tree of shares. From the published state alone.

use super::accounting::tres;
use crate::context::Context;
use crate::owner::wall_clock;
use sluice_engine::State;
use sluice_engine::job::Phase;
use sluice_engine::query::{self, Board, Share};
use sluice_model::accounting::{Association, NORMAL_QOS, ROOT, Shares, TresKind, TresLimit, format_counts};
use sluice_model::config::{PriorityConfig, PriorityFlags};
use sluice_model::{Time, accounting::AssocId};
use sluice_proto::v1;
use sluice_sched::priority::Factors;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::{Request, Response, Status};

pub fn list_priorities(context: &Context, request: Request<v1::Empty>) -> Result<Response<v1::PriorityList>, Status> {
    context.caller(&request)?;
    let state = context.published.state();
    let now = wall_clock();
    let board = context.published.board(&state, now);
    let config = state.config.as_ref().map(|c| c.priority.clone()).unwrap_or_default();
    let jobs = if board.computes() { priorities(&state, &board) } else { Vec::new() };
    Ok(Response::new(v1::PriorityList {
        jobs,
        weights: Some(weights(&config)),
        kind: config.kind.as_str().to_owned(),
        plugin: config.kind.plugin().to_owned(),
        weight_tres: config.weight_tres.to_string(),
        now: now.0,
    }))
}

fn priorities(state: &State, board: &Board) -> Vec<v1::PriorityRecord> {
    let mut out = Vec::new();
    for job in state.jobs.values().filter(|job| query::is_ranked(job)) {
        let record = |partition: &str, priority, factors, weighted| v1::PriorityRecord {
            job: job.id.0,
            partition: partition.to_owned(),
            user: job.spec.user.to_string(),
            uid: job.spec.uid,
            account: job.spec.account.clone().unwrap_or_default(),
            qos: job.spec.qos.clone().unwrap_or_else(|| NORMAL_QOS.to_owned()),
            priority,
            factors,
            weighted,
        };
        if job.priority_given {
            let partition = job.partitions.first().map(String::as_str).unwrap_or_default();
            out.push(record(partition, job.priority, None, None));
            continue;
        }
        for part in board.parts(state, job) {
            let (factors, weighted) = (Some(factors(&part.factors)), Some(factors(&part.weighted)));
            out.push(record(&part.partition, part.total, factors, weighted));
        }
    }
    out
}

fn factors(f: &Factors) -> v1::PriorityFactors {
    v1::PriorityFactors {
        age: f.age,
        association: f.association,
        fairshare: f.fairshare,
        job_size: f.job_size,
        partition: f.partition,
        qos: f.qos,
        tres: f.tres.iter().map(|(kind, n)| v1::TresAmount { name: kind.to_string(), amount: *n }).collect(),
        site: f.site,
        nice: f.nice,
    }
}

fn weights(c: &PriorityConfig) -> v1::PriorityFactors {
    let tres = c.weight_tres.0.iter();
    v1::PriorityFactors {
        age: f64::from(c.weight_age),
        association: f64::from(c.weight_assoc),
        fairshare: f64::from(c.weight_fairshare),
        job_size: f64::from(c.weight_job_size),
        partition: f64::from(c.weight_partition),
        qos: f64::from(c.weight_qos),
        tres: tres.map(|(kind, n)| v1::TresAmount { name: kind.to_string(), amount: n.number() }).collect(),
        site: 0,
        nice: 0,
    }
}

pub fn list_shares(context: &Context, request: Request<v1::Empty>) -> Result<Response<v1::ShareList>, Status> {
    context.caller(&request)?;
    let state = context.published.state();
    let now = wall_clock();
    let board = Board::with_shares(&state, now);
    let flags = state.config.as_ref().map(|c| c.priority.flags).unwrap_or_default();
    let fair_tree = !flags.has(PriorityFlags::NO_FAIR_TREE) && !flags.has(PriorityFlags::DEPTH_OBLIVIOUS);
    let mut tree = Tree {
        state: &state,
        shares: board.shares.iter().map(|s| (s.association, s)).collect(),
        run_mins: running_minutes(&state, now),
        tres: tres(&state),
        fair_tree,
        out: Vec::new(),
    };
    tree.account(ROOT, 0);
    Ok(Response::new(v1::ShareList { shares: tree.out, fair_tree, now: now.0 }))
}

/// Resources x minutes that running jobs may still use, by association and all above it.
fn running_minutes(state: &State, now: Time) -> BTreeMap<AssocId, BTreeMap<TresKind, f64>> {
    let mut out: BTreeMap<AssocId, BTreeMap<TresKind, f64>> = BTreeMap::new();
    for job in state.jobs.values() {
        let (Phase::Running(run), Some(id)) = (&job.phase, job.association) else { continue };
        // Slurm counts a job without a limit for a year.
        let limit = job.time_limit.duration().map_or(365.0 * 1440.0, |d| d.as_secs_f64() / 60.0);
        let left = (limit - now.since(run.started).as_secs_f64() / 60.0).max(0.0);
        for (kind, count) in query::counted(&query::run_tres(state, job, run)) {
            for above in state.accounting.chain(id) {
                *out.entry(above.id).or_default().entry(kind.clone()).or_default() += count as f64 * left;
            }
        }
    }
    out
}

struct Tree<'a> {
    state: &'a State,
    shares: BTreeMap<AssocId, &'a Share>,
    run_mins: BTreeMap<AssocId, BTreeMap<TresKind, f64>>,
    /// Names of all resources, in Slurm's order.
    tres: Vec<String>,
    fair_tree: bool,
    out: Vec<v1::ShareRecord>,
}

impl Tree<'_> {
    /// The account, its users by name, then the accounts below it by name.
    fn account(&mut self, name: &str, depth: u32) {
        let accounting = &self.state.accounting;
        if let Some(own) = accounting.of_account(name) {
            self.row(own, depth);
        }
        let mut users: Vec<&Arc<Association>> = accounting.in_account(name).filter(|a| a.user.is_some()).collect();
        users.sort_by(|a, b| (&a.user, &a.partition).cmp(&(&b.user, &b.partition)));
        for user in users {
            self.row(user, depth + 1);
        }
        let below = accounting.accounts.values().filter(|a| a.parent.as_deref() == Some(name));
        for account in below {
            self.account(&account.name, depth + 1);
        }
    }

    fn row(&mut self, a: &Association, depth: u32) {
        let Some(share) = self.shares.get(&a.id) else { return };
        let s = &share.standing;
        let seconds = |kind: &TresKind| share.spent.of(kind);
        let own_level = depth > 0 && a.shares != Shares::Parent && self.fair_tree;
        let counts = a.limits.tres(TresLimit::GrpMins).map(format_counts).unwrap_or_default();
        let amounts = |value: &dyn Fn(&TresKind) -> f64| {
            let one = |name: &String| {
                let amount = TresKind::parse(name).map_or(0.0, |kind| value(&kind));
                v1::TresAmount { name: name.clone(), amount }
            };
            self.tres.iter().map(one).collect::<Vec<_>>()
        };
        let run_mins = self.run_mins.get(&a.id);
        let record = v1::ShareRecord {
            id: a.id.0,
            account: a.account.clone(),
            user: a.user.clone().unwrap_or_default(),
            partition: a.partition.clone().unwrap_or_default(),
            depth,
            raw_shares: match a.shares {
                Shares::Number(n) => Some(n),
                Shares::Parent => None,
            },
            norm_shares: s.norm_shares,
            raw_usage: seconds(&TresKind::Billing),
            norm_usage: s.norm_usage,
            effective_usage: s.effective_usage,
            fairshare: s.factor,
            level_fs: own_level.then_some(s.level_fs),
            grp_tres_mins: counts,
            tres_raw: amounts(&|kind| seconds(kind) / 60.0),
            tres_run_mins: amounts(&|kind| run_mins.and_then(|m| m.get(kind)).copied().unwrap_or(0.0)),
        };
        self.out.push(record);
    }
}
