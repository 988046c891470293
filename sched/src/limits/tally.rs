//! What is in use, by limit, while a pass starts jobs.

use super::hit::{LimitHit, LimitName};
use super::rules::{Charge, Line, Measure, Rules, Sum};
use sluice_model::accounting::{CountLimit, Factor, QosFlag, TresLimit};
use sluice_model::tres::Tres;
use sluice_model::{TimeLimit, accounting::TresKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a job takes, or would take.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// With billing.
    pub tres: Tres,
    /// Of each node, where that is known already.
    pub nodes: Vec<Tres>,
    /// Minutes that it may still run; None: for ever.
    pub minutes: Option<u64>,
}

impl Ask {
    pub fn minutes_of(limit: TimeLimit) -> Option<u64> {
        match limit {
            TimeLimit::Minutes(m) => Some(u64::from(m)),
            TimeLimit::Unlimited => None,
        }
    }
}

/// Lines that a job counts for, and whether it is held to them.
type List = Arc<[(u32, bool)]>;
type Whom = (Option<u32>, Option<u32>, Option<u32>);

/// The sums of one moment. Starts empty; `add` each job that runs.
#[derive(Clone, Debug)]
pub struct Tally {
    rules: Arc<Rules>,
    used: Vec<u64>,
    /// Of lines that add up by user or account: (line, uid or account) → sum.
    by: BTreeMap<(u32, u32), u64>,
    lists: BTreeMap<Whom, List>,
}

impl Tally {
    pub fn new(rules: &Arc<Rules>) -> Tally {
        let used = rules.lines.iter().map(|l| l.start).collect();
        Tally { rules: Arc::clone(rules), used, by: BTreeMap::new(), lists: BTreeMap::new() }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether anything limits such jobs at all: if not, there is no need to ask.
    pub fn concerns(&mut self, charge: &Charge, partition_qos: Option<u32>) -> bool {
        !self.rules.is_empty() && !self.list(charge, partition_qos).is_empty()
    }

    /// Whether a job may start in a partition with this QOS; the first limit in the way if not.
    pub fn check(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask) -> Result<(), LimitHit> {
        match self.hits(charge, partition_qos, ask, true).pop() {
            Some(hit) => Err(hit),
            None => Ok(()),
        }
    }

    /// All limits in the way of a job.
    pub fn all_hits(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask) -> Vec<LimitHit> {
        self.hits(charge, partition_qos, ask, false)
    }

    /// The minutes of a group that a running job uses though they are used up: it has to end (sacctmgr's manual page,
    /// GrpTRESMins and GrpWall). What a job does not have can't be used up by it.
    pub fn used_up(&mut self, charge: &Charge, partition_qos: Option<u32>, tres: &Tres) -> Option<LimitHit> {
        if !self.rules.limits_minutes() {
            return None;
        }
        let list = self.list(charge, partition_qos);
        let held = list.iter().filter(|(_, checked)| *checked).map(|(at, _)| &self.rules.lines[*at as usize]);
        let over = |line: &&Line| match line.measure {
            Measure::UsedMinutes => line.start >= line.allowed && line.kind().is_some_and(|kind| kind.of(tres) > 0),
            Measure::UsedWall => line.start >= line.allowed,
            _ => false,
        };
        held.filter(over)
            .map(|line| LimitHit {
                reason: line.reason,
                limit: line.name.clone(),
                owner: Arc::clone(&line.owner),
                used: line.start,
                asked: 0,
                allowed: line.allowed,
            })
            .next()
    }

    fn hits(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask, first: bool) -> Vec<LimitHit> {
        let mut found = Vec::new();
        if self.rules.is_empty() {
            return found;
        }
        let list = self.list(charge, partition_qos);
        for (at, checked) in list.iter() {
            if !checked {
                continue;
            }
            if let Some(hit) = self.judge(*at, charge, ask) {
                found.push(hit);
                if first {
                    break;
                }
            }
        }
        found
    }

    fn judge(&self, at: u32, charge: &Charge, ask: &Ask) -> Option<LimitHit> {
        let line = &self.rules.lines[at as usize];
        let used = self.in_use(at, line, charge);
        let allowed = self.allowed(line, charge);
        let (asked, fits) = match line.measure {
            Measure::UsedMinutes | Measure::UsedWall if !self.rules.safe => (0, used < allowed),
            Measure::JobTresLeast => {
                let asked = amount(line, ask, self.factor(charge));
                (asked, asked >= allowed)
            }
            Measure::Threshold => (u64::from(charge.fairshare), u64::from(charge.fairshare) >= allowed),
            _ => {
                let asked = amount(line, ask, self.factor(charge));
                // What a job does not ask for can't be refused to it, also when too much is in use already.
                (asked, asked == 0 || used.saturating_add(asked) <= allowed)
            }
        };
        (!fits).then(|| LimitHit {
            reason: line.reason,
            limit: line.name.clone(),
            owner: self.owner(line, charge),
            used,
            asked,
            allowed,
        })
    }

    fn owner(&self, line: &Line, charge: &Charge) -> Arc<str> {
        match line.sum {
            Sum::All => Arc::clone(&line.owner),
            Sum::User => format!("user {} in {}", charge.uid, line.owner).into(),
            Sum::Account => {
                let account = self.key(line, charge).and_then(|a| self.rules.labels.get(a as usize));
                format!("{} in {}", account.map_or("no account", String::as_str), line.owner).into()
            }
        }
    }

    fn in_use(&self, at: u32, line: &Line, charge: &Charge) -> u64 {
        match self.key(line, charge) {
            None => self.used[at as usize],
            Some(key) => self.by.get(&(at, key)).copied().unwrap_or(0),
        }
    }

    fn key(&self, line: &Line, charge: &Charge) -> Option<u32> {
        match line.sum {
            Sum::All => None,
            Sum::User => Some(charge.uid),
            Sum::Account => {
                let account = charge.association.and_then(|a| self.rules.accounts.get(a as usize));
                Some(account.copied().unwrap_or(u32::MAX))
            }
        }
    }

    /// A QOS may scale the associations' group limits (LimitFactor).
    fn allowed(&self, line: &Line, charge: &Charge) -> u64 {
        let of_association = !line.of_qos && matches!(line.name, LimitName::Tres(TresLimit::Grp, _));
        let factor = charge.qos.and_then(|q| self.rules.limit_factors.get(q as usize).copied().flatten());
        match factor {
            Some(factor) if of_association => (line.allowed as f64 * factor.as_f64()) as u64,
            _ => line.allowed,
        }
    }

    /// How fast a job uses minutes: UsageFactor, where UsageFactorSafe counts it beforehand.
    fn factor(&self, charge: &Charge) -> Factor {
        let safe = self.rules.has(charge.qos, QosFlag::UsageFactorSafe);
        let factor = charge.qos.and_then(|q| self.rules.usage_factors.get(q as usize).copied());
        factor.filter(|_| safe).unwrap_or(Factor::ONE)
    }

    /// A job runs.
    pub fn add(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask) {
        self.change(charge, partition_qos, ask, u64::saturating_add);
    }

    /// A job that was added runs no more.
    pub fn remove(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask) {
        self.change(charge, partition_qos, ask, u64::saturating_sub);
    }

    fn change(&mut self, charge: &Charge, partition_qos: Option<u32>, ask: &Ask, apply: fn(u64, u64) -> u64) {
        if self.rules.is_empty() {
            return;
        }
        let list = self.list(charge, partition_qos);
        let factor = self.factor(charge);
        for (at, _) in list.iter() {
            let line = &self.rules.lines[*at as usize];
            let takes = match line.measure {
                Measure::Jobs | Measure::Tres | Measure::RunMinutes => amount(line, ask, factor),
                // With `safe`, what running jobs may still use is spoken for.
                Measure::UsedMinutes | Measure::UsedWall if self.rules.safe => amount(line, ask, factor),
                _ => continue,
            };
            match self.key(line, charge) {
                None => self.used[*at as usize] = apply(self.used[*at as usize], takes),
                Some(key) => {
                    let sum = self.by.entry((*at, key)).or_default();
                    *sum = apply(*sum, takes);
                }
            }
        }
    }

    fn list(&mut self, charge: &Charge, partition_qos: Option<u32>) -> List {
        let whom = (charge.association, charge.qos, partition_qos);
        if let Some(list) = self.lists.get(&whom) {
            return Arc::clone(list);
        }
        let rules = &self.rules;
        let mut list: Vec<(u32, bool)> = Vec::new();
        let mut said: BTreeSet<Said> = BTreeSet::new();
        for qos in rules.qos_order(charge.qos, partition_qos).into_iter().flatten() {
            let Some(group) = rules.qos.get(qos as usize) else { continue };
            // What an earlier QOS says, this one does not; both count.
            let lines = group.lines.iter().map(|l| (*l, !said.contains(&Said::of(&rules.lines[*l as usize]))));
            list.extend(lines);
            said.extend(group.lines.iter().map(|l| Said::of(&rules.lines[*l as usize])));
        }
        if let Some(group) = charge.association.and_then(|a| rules.associations.get(a as usize)) {
            list.extend(group.lines.iter().map(|l| (*l, !said.contains(&Said::of(&rules.lines[*l as usize])))));
        }
        let list: List = list.into();
        self.lists.insert(whom, Arc::clone(&list));
        list
    }
}

/// Limits of associations and of QOS that stand in for each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Said(LimitName);

impl Said {
    fn of(line: &Line) -> Said {
        Said(match &line.name {
            LimitName::Count(CountLimit::MaxJobs) => LimitName::Count(CountLimit::MaxJobsPerUser),
            LimitName::Tres(TresLimit::MaxRunMins, kind) => LimitName::Tres(TresLimit::MaxRunMinsPerUser, kind.clone()),
            other => other.clone(),
        })
    }
}

/// What a job adds to a line, or asks of it.
fn amount(line: &Line, ask: &Ask, factor: Factor) -> u64 {
    let of = |kind: Option<&TresKind>, tres: &Tres| kind.map_or(0, |k| k.of(tres));
    let minutes = |n: u64| if n == 0 { 0 } else { ask.minutes.map_or(u64::MAX, |m| n.saturating_mul(m)) };
    let scaled = |n: u64| {
        if factor == Factor::ONE || n == u64::MAX { n } else { (n as f64 * factor.as_f64()).ceil() as u64 }
    };
    let tres = of(line.kind(), &ask.tres);
    match line.measure {
        Measure::Jobs => 1,
        Measure::Tres | Measure::JobTres | Measure::JobTresLeast => tres,
        Measure::RunMinutes | Measure::JobMinutes => minutes(tres),
        Measure::UsedMinutes => scaled(minutes(tres)),
        Measure::UsedWall => scaled(ask.minutes.unwrap_or(u64::MAX)),
        Measure::JobWall => ask.minutes.unwrap_or(u64::MAX),
        Measure::NodeTres => ask.nodes.iter().map(|n| of(line.kind(), n)).max().unwrap_or(0),
        Measure::Threshold => 0,
    }
}
