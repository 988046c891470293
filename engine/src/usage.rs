//! What associations, QOS and users have used, as the cluster remembers it: resource seconds that fade by half-lives.
//!
//! Owns the amounts as of the end of the last run that was charged; what running jobs have used since they started is
//! added when asked for (`query::usage_at`). A run is charged once, when it ends, to the job's association and all above
//! it, to its QOS, and to the user where there is no association; time spent suspended is not charged.
//!
//! Source: slurm.conf, PriorityDecayHalfLife and PriorityUsageResetPeriod; sacctmgr, UsageFactor and NoDecay.

use imbl::OrdMap;
use sluice_model::Time;
use sluice_model::accounting::{AssocId, TresKind};
use sluice_sched::fairshare::decay::{Decayed, HalfLife};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Whose usage.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UsageOwner {
    Association(AssocId),
    /// By number.
    Qos(u32),
    /// A user whose job had no association.
    User(String),
}

/// A number of the state: equal when its bits are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Amount(pub f64);

impl PartialEq for Amount {
    fn eq(&self, other: &Amount) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}
impl Eq for Amount {}

/// What one of them has used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spent {
    /// Units x seconds (memory: MiB), as of `at`.
    pub tres_secs: BTreeMap<TresKind, Amount>,
    pub wall_secs: Amount,
    pub at: Option<Time>,
}

/// A run that ended, and to whom it is charged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageCharge {
    /// With the half-life that holds for them, milliseconds; None: nothing fades.
    pub owners: Vec<(UsageOwner, HalfLife)>,
    /// Millionths of a unit for each second: the QOS's factor is in it.
    pub rates: Vec<(TresKind, u64)>,
    /// Millionths of a second for each second.
    pub wall_rate: u64,
    pub from: Time,
    pub to: Time,
}

/// Cloning is O(1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UsageBook {
    pub spent: OrdMap<UsageOwner, Arc<Spent>>,
    /// When all of it was last forgotten.
    pub reset: Option<Time>,
}

impl Spent {
    /// Brought to a later time; earlier ones change nothing.
    pub fn fade(&mut self, to: Time, half_life: HalfLife) {
        let Some(at) = self.at.filter(|at| *at < to) else {
            self.at = self.at.or(Some(to));
            return;
        };
        let seen = |value: f64| Decayed { value, at }.seen_at(to, half_life);
        self.tres_secs.values_mut().for_each(|a| a.0 = seen(a.0));
        self.wall_secs.0 = seen(self.wall_secs.0);
        self.at = Some(to);
    }

    /// Adds a run. It may have ended before `at`: then it has faded since.
    pub fn add(&mut self, charge: &UsageCharge, half_life: HalfLife) {
        self.fade(charge.to, half_life);
        let at = self.at.unwrap_or(charge.to);
        let add = |value: &mut Amount, millionths: u64| {
            let held = Decayed { value: value.0, at };
            value.0 = held.with_run(millionths as f64 / 1e6, charge.from, charge.to, half_life).value;
        };
        for (kind, millionths) in &charge.rates {
            add(self.tres_secs.entry(kind.clone()).or_default(), *millionths);
        }
        add(&mut self.wall_secs, charge.wall_rate);
    }

    pub fn of(&self, kind: &TresKind) -> f64 {
        self.tres_secs.get(kind).map_or(0.0, |a| a.0)
    }
}

impl UsageBook {
    pub(crate) fn charge(&mut self, charge: &UsageCharge) {
        for (owner, half_life) in &charge.owners {
            let spent = self.spent.entry(owner.clone()).or_default();
            Arc::make_mut(spent).add(charge, *half_life);
        }
    }

    /// What has faded up to now has faded by this half-life, whatever holds from now on.
    pub(crate) fn rebase(&mut self, at: Time, half_life: HalfLife, constant: &[UsageOwner]) {
        let owners: Vec<UsageOwner> = self.spent.keys().filter(|o| !constant.contains(o)).cloned().collect();
        for owner in owners {
            if let Some(spent) = self.spent.get_mut(&owner) {
                Arc::make_mut(spent).fade(at, half_life);
            }
        }
    }

    /// Forgets what these have used; without any, what all have.
    pub(crate) fn clear(&mut self, owners: Option<&[UsageOwner]>, at: Time) {
        match owners {
            Some(owners) => owners.iter().for_each(|o| _ = self.spent.remove(o)),
            None => {
                self.spent = OrdMap::new();
                self.reset = Some(at);
            }
        }
    }

    /// What the owner has used up to `now`, running jobs left out.
    pub fn seen_at(&self, owner: &UsageOwner, now: Time, half_life: HalfLife) -> Spent {
        let mut spent = self.spent.get(owner).map(|s| Spent::clone(s)).unwrap_or_default();
        spent.fade(now, half_life);
        spent
    }
}
