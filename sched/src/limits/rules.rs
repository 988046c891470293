//! Limits as the tally reads them: lines, and which of them concern whom.

use super::hit::LimitName;
use super::reason::reason;
use sluice_model::Reason;
use sluice_model::accounting::{CountLimit, Factor, Limits, QosFlag, TresKind, TresLimit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whom a job counts for; positions in `Rules`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Charge {
    pub association: Option<u32>,
    pub qos: Option<u32>,
    pub uid: u32,
    /// The association's fair-share factor, millionths (for UsageThreshold).
    pub fairshare: u32,
}

/// What was used up to now, decayed, with the running jobs' part: for limits in minutes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Used {
    /// Units x seconds.
    pub tres_secs: BTreeMap<TresKind, f64>,
    pub wall_secs: f64,
}

/// An association as the limits see it.
#[derive(Clone, Debug)]
pub struct AssociationRule<'a> {
    /// `account physics`, `user ada in account physics`.
    pub label: String,
    /// The account above, by position; None for root.
    pub parent: Option<u32>,
    pub is_user: bool,
    /// As set here (group limits).
    pub own: &'a Limits,
    /// With what is inherited (limits of a job and of a user).
    pub effective: Limits,
    pub used: Used,
}

/// A QOS as the limits see it.
#[derive(Clone, Debug)]
pub struct QosRule<'a> {
    pub name: &'a str,
    pub limits: &'a Limits,
    pub flags: &'a BTreeSet<QosFlag>,
    pub usage_factor: Factor,
    pub usage_threshold: Option<Factor>,
    pub limit_factor: Option<Factor>,
    pub used: Used,
}

/// What a line measures of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// It counts as one.
    Jobs,
    Tres,
    /// Resources x minutes that it may still run.
    RunMinutes,
    /// Resources x minutes used up, and with `safe` what it may still use.
    UsedMinutes,
    UsedWall,
    /// Of this job alone: at most, or at least.
    JobTres,
    JobTresLeast,
    JobMinutes,
    JobWall,
    NodeTres,
    Threshold,
}

/// Which jobs a line adds up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sum {
    /// All under it.
    All,
    User,
    Account,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: LimitName,
    pub(super) measure: Measure,
    pub(super) sum: Sum,
    pub(super) allowed: u64,
    /// Used up before anything runs (minutes).
    pub(super) start: u64,
    pub(super) owner: Arc<str>,
    pub(super) of_qos: bool,
    pub(super) reason: Reason,
}

impl Line {
    pub(super) fn kind(&self) -> Option<&TresKind> {
        match &self.name {
            LimitName::Tres(_, kind) => Some(kind),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) lines: Vec<u32>,
}

/// All limits of the cluster. Cheap to share; made anew when accounting, usage or configuration change.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub(super) lines: Vec<Line>,
    /// By association: its own lines, then those of the accounts above.
    pub(super) associations: Vec<Group>,
    /// By association: the account (itself, or the user's), by position.
    pub(super) accounts: Vec<u32>,
    pub(super) labels: Vec<String>,
    pub(super) qos: Vec<Group>,
    flags: Vec<BTreeSet<QosFlag>>,
    pub(super) usage_factors: Vec<Factor>,
    pub(super) limit_factors: Vec<Option<Factor>>,
    min_priority: Vec<Option<u32>>,
    max_wall: (Vec<Option<u32>>, Vec<Option<u32>>),
    /// A job starts only if it can end within its group's minutes (AccountingStorageEnforce=safe).
    pub(super) safe: bool,
    asks_fairshare: bool,
    /// PriorityFlags=MAX_TRES: billing goes by the largest resource.
    pub max_tres: bool,
}

impl Rules {
    pub fn new(associations: &[AssociationRule<'_>], qos: &[QosRule<'_>], safe: bool) -> Rules {
        let mut rules = Rules { safe, ..Rules::default() };
        for rule in associations {
            let lines = rules.association_lines(rule);
            rules.associations.push(Group { lines });
        }
        for (at, rule) in associations.iter().enumerate() {
            let above = rule.parent.filter(|p| (*p as usize) < associations.len());
            rules.accounts.push(if rule.is_user { above.unwrap_or(at as u32) } else { at as u32 });
            rules.labels.push(rule.label.clone());
            rules.max_wall.0.push(rule.effective.count(CountLimit::MaxWall));
        }
        rules.hand_down(associations);
        rules.asks_fairshare = qos.iter().any(|q| q.usage_threshold.is_some());
        for rule in qos {
            let lines = rules.qos_lines(rule);
            rules.qos.push(Group { lines });
            rules.flags.push(rule.flags.clone());
            rules.usage_factors.push(rule.usage_factor);
            rules.limit_factors.push(rule.limit_factor);
            rules.min_priority.push(rule.limits.count(CountLimit::MinPrioThreshold));
            rules.max_wall.1.push(rule.limits.count(CountLimit::MaxWall));
        }
        rules
    }

    /// Nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Some group may use only so many minutes.
    pub(super) fn limits_minutes(&self) -> bool {
        self.lines.iter().any(|l| matches!(l.measure, Measure::UsedMinutes | Measure::UsedWall))
    }

    /// Some QOS has a UsageThreshold.
    pub fn asks_fairshare(&self) -> bool {
        self.asks_fairshare
    }

    pub fn has(&self, qos: Option<u32>, flag: QosFlag) -> bool {
        qos.and_then(|q| self.flags.get(q as usize)).is_some_and(|f| f.contains(&flag))
    }

    /// A job that must not hold a planned start against others: NoReserve, or below its QOS's MinPrioThreshold.
    pub fn reserves_nothing(&self, charge: &Charge, priority: u32) -> bool {
        let threshold = charge.qos.and_then(|q| self.min_priority.get(q as usize).copied().flatten());
        self.has(charge.qos, QosFlag::NoReserve) || threshold.is_some_and(|t| priority < t)
    }

    /// The longest a job may run, minutes: a job that says nothing gets no more.
    pub fn longest(&self, charge: &Charge, partition_qos: Option<u32>) -> Option<u32> {
        let of_qos = |q: Option<u32>| q.and_then(|q| self.max_wall.1.get(q as usize).copied().flatten());
        let [first, second] = self.qos_order(charge.qos, partition_qos);
        let of_association = || charge.association.and_then(|a| self.max_wall.0.get(a as usize).copied().flatten());
        of_qos(first).or_else(|| of_qos(second)).or_else(of_association)
    }

    /// The one whose limits hold first.
    pub(super) fn qos_order(&self, job: Option<u32>, partition: Option<u32>) -> [Option<u32>; 2] {
        match partition {
            Some(p) if Some(p) != job && !self.has(job, QosFlag::OverPartQos) => [Some(p), job],
            Some(p) if Some(p) != job => [job, Some(p)],
            _ => [job, None],
        }
    }

    /// Group lines of the accounts above hold for everybody below.
    fn hand_down(&mut self, associations: &[AssociationRule<'_>]) {
        let grouped: Vec<Vec<u32>> = (self.associations.iter())
            .map(|g| g.lines.iter().copied().filter(|l| self.lines[*l as usize].is_group()).collect())
            .collect();
        for at in 0..associations.len() {
            let mut above = associations[at].parent;
            for _ in 0..crate::fairshare::MAX_DEPTH {
                let Some(account) = above.map(|p| p as usize).filter(|p| *p < associations.len() && *p != at) else {
                    break;
                };
                self.associations[at].lines.extend(&grouped[account]);
                above = associations[account].parent;
            }
        }
    }

    fn association_lines(&mut self, rule: &AssociationRule<'_>) -> Vec<u32> {
        let is_root = rule.parent.is_none();
        let owner: Arc<str> = rule.label.as_str().into();
        let mut new = Vec::new();
        let counts = [
            (CountLimit::GrpJobs, Measure::Jobs, rule.own),
            (CountLimit::GrpWall, Measure::UsedWall, rule.own),
            (CountLimit::MaxJobs, Measure::Jobs, &rule.effective),
            (CountLimit::MaxWall, Measure::JobWall, &rule.effective),
        ];
        for (limit, measure, limits) in counts {
            // Minutes of the root association are shown but hold for nobody (sacctmgr's manual page).
            let Some(n) = limits.count(limit).filter(|_| !(is_root && measure == Measure::UsedWall)) else { continue };
            new.push((LimitName::Count(limit), measure, Sum::All, u64::from(n)));
        }
        let tres = [
            (TresLimit::Grp, Measure::Tres, rule.own),
            (TresLimit::GrpMins, Measure::UsedMinutes, rule.own),
            (TresLimit::GrpRunMins, Measure::RunMinutes, rule.own),
            (TresLimit::MaxPerJob, Measure::JobTres, &rule.effective),
            (TresLimit::MaxPerNode, Measure::NodeTres, &rule.effective),
            (TresLimit::MaxMinsPerJob, Measure::JobMinutes, &rule.effective),
            (TresLimit::MaxRunMins, Measure::RunMinutes, &rule.effective),
        ];
        for (limit, measure, limits) in tres {
            let Some(counts) = limits.tres(limit).filter(|_| !(is_root && measure == Measure::UsedMinutes)) else {
                continue;
            };
            for (kind, n) in counts {
                new.push((LimitName::Tres(limit, kind.clone()), measure, Sum::All, *n));
            }
        }
        self.push(new, &owner, &rule.used, false)
    }

    fn qos_lines(&mut self, rule: &QosRule<'_>) -> Vec<u32> {
        let owner: Arc<str> = format!("QOS {}", rule.name).into();
        let mut new = Vec::new();
        let counts = [
            (CountLimit::GrpJobs, Measure::Jobs, Sum::All),
            (CountLimit::GrpWall, Measure::UsedWall, Sum::All),
            (CountLimit::MaxWall, Measure::JobWall, Sum::All),
            (CountLimit::MaxJobsPerUser, Measure::Jobs, Sum::User),
            (CountLimit::MaxJobsPerAccount, Measure::Jobs, Sum::Account),
        ];
        for (limit, measure, sum) in counts {
            if let Some(n) = rule.limits.count(limit) {
                new.push((LimitName::Count(limit), measure, sum, u64::from(n)));
            }
        }
        let tres = [
            (TresLimit::Grp, Measure::Tres, Sum::All),
            (TresLimit::GrpMins, Measure::UsedMinutes, Sum::All),
            (TresLimit::GrpRunMins, Measure::RunMinutes, Sum::All),
            (TresLimit::MaxPerJob, Measure::JobTres, Sum::All),
            (TresLimit::MaxPerNode, Measure::NodeTres, Sum::All),
            (TresLimit::MaxMinsPerJob, Measure::JobMinutes, Sum::All),
            (TresLimit::MaxPerUser, Measure::Tres, Sum::User),
            (TresLimit::MaxPerAccount, Measure::Tres, Sum::Account),
            (TresLimit::MaxRunMinsPerUser, Measure::RunMinutes, Sum::User),
            (TresLimit::MaxRunMinsPerAccount, Measure::RunMinutes, Sum::Account),
            (TresLimit::MinPerJob, Measure::JobTresLeast, Sum::All),
        ];
        for (limit, measure, sum) in tres {
            for (kind, n) in rule.limits.tres(limit).into_iter().flatten() {
                new.push((LimitName::Tres(limit, kind.clone()), measure, sum, *n));
            }
        }
        if let Some(threshold) = rule.usage_threshold {
            new.push((LimitName::UsageThreshold, Measure::Threshold, Sum::All, threshold.0));
        }
        self.push(new, &owner, &rule.used, true)
    }

    fn push(
        &mut self,
        new: Vec<(LimitName, Measure, Sum, u64)>,
        owner: &Arc<str>,
        used: &Used,
        of_qos: bool,
    ) -> Vec<u32> {
        let first = self.lines.len() as u32;
        for (name, measure, sum, allowed) in new {
            // `as` saturates.
            let start = match (&name, measure) {
                (LimitName::Tres(_, kind), Measure::UsedMinutes) => {
                    (used.tres_secs.get(kind).copied().unwrap_or(0.0) / 60.0) as u64
                }
                (_, Measure::UsedWall) => (used.wall_secs / 60.0) as u64,
                _ => 0,
            };
            let reason = reason(&name, of_qos);
            self.lines.push(Line { name, measure, sum, allowed, start, owner: Arc::clone(owner), of_qos, reason });
        }
        (first..self.lines.len() as u32).collect()
    }
}

impl Line {
    /// Holds for all below an account, not for one association or one job.
    fn is_group(&self) -> bool {
        matches!(
            self.name,
            LimitName::Count(CountLimit::GrpJobs | CountLimit::GrpWall)
                | LimitName::Tres(TresLimit::Grp | TresLimit::GrpMins | TresLimit::GrpRunMins, _)
        )
    }
}
