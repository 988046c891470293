//! Limits of associations and QOS: which there are, under which names, and the sparse set of those that are set.

use super::counts::{TresChange, TresCounts};
use std::collections::BTreeMap;

/// Limits that are one number. Jobs are counted, an array's tasks one by one; walls are minutes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CountLimit {
    /// Running, of the association and all below it (of the QOS).
    GrpJobs,
    /// Pending and gathering age.
    GrpJobsAccrue,
    /// Pending or running.
    GrpSubmit,
    /// Minutes, decayed as usage is.
    GrpWall,
    /// Associations: running, of one association; inherited.
    MaxJobs,
    MaxJobsAccrue,
    MaxSubmit,
    /// Minutes of one job.
    MaxWall,
    /// Jobs of a lower priority gather no reservation (Slurm: MinPrioThreshold).
    MinPrioThreshold,
    MaxJobsPerUser,
    MaxJobsPerAccount,
    MaxSubmitPerUser,
    MaxSubmitPerAccount,
    MaxJobsAccruePerUser,
    MaxJobsAccruePerAccount,
}

/// Limits in trackable resources.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TresLimit {
    /// Held by running jobs of the association and all below it (of the QOS).
    Grp,
    /// TRES-minutes used, decayed.
    GrpMins,
    /// TRES-minutes that running jobs may still use.
    GrpRunMins,
    MaxPerJob,
    MaxPerNode,
    /// TRES-minutes of one job.
    MaxMinsPerJob,
    /// Associations: of each one's running jobs.
    MaxRunMins,
    MaxPerUser,
    MaxPerAccount,
    MaxRunMinsPerUser,
    MaxRunMinsPerAccount,
    MinPerJob,
}

/// Whose limits can carry a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Both,
    Association,
    Qos,
}

impl CountLimit {
    /// In the order of the codes.
    pub const ALL: [CountLimit; 15] = [
        CountLimit::GrpJobs,
        CountLimit::GrpJobsAccrue,
        CountLimit::GrpSubmit,
        CountLimit::GrpWall,
        CountLimit::MaxJobs,
        CountLimit::MaxJobsAccrue,
        CountLimit::MaxSubmit,
        CountLimit::MaxWall,
        CountLimit::MinPrioThreshold,
        CountLimit::MaxJobsPerUser,
        CountLimit::MaxJobsPerAccount,
        CountLimit::MaxSubmitPerUser,
        CountLimit::MaxSubmitPerAccount,
        CountLimit::MaxJobsAccruePerUser,
        CountLimit::MaxJobsAccruePerAccount,
    ];

    /// Stable on the wire and on disk.
    pub fn code(self) -> u32 {
        self as u32 + 1
    }
    pub fn from_code(code: u32) -> Option<CountLimit> {
        CountLimit::ALL.into_iter().find(|l| l.code() == code)
    }

    fn on(self) -> On {
        use CountLimit::*;
        match self {
            GrpJobs | GrpJobsAccrue | GrpSubmit | GrpWall | MaxWall | MinPrioThreshold => On::Both,
            MaxJobs | MaxJobsAccrue | MaxSubmit => On::Association,
            _ => On::Qos,
        }
    }
    pub fn is_of_associations(self) -> bool {
        self.on() != On::Qos
    }
    pub fn is_of_qos(self) -> bool {
        self.on() != On::Association
    }
    /// Minutes, given and printed as a time.
    pub fn is_wall(self) -> bool {
        matches!(self, CountLimit::GrpWall | CountLimit::MaxWall)
    }
    /// Whether a child without a value of its own has its parent's. Group limits hold for the group that has them.
    pub fn is_inherited(self) -> bool {
        !matches!(self, CountLimit::GrpJobs | CountLimit::GrpJobsAccrue | CountLimit::GrpSubmit | CountLimit::GrpWall)
    }
}

impl TresLimit {
    /// In the order of the codes.
    pub const ALL: [TresLimit; 12] = [
        TresLimit::Grp,
        TresLimit::GrpMins,
        TresLimit::GrpRunMins,
        TresLimit::MaxPerJob,
        TresLimit::MaxPerNode,
        TresLimit::MaxMinsPerJob,
        TresLimit::MaxRunMins,
        TresLimit::MaxPerUser,
        TresLimit::MaxPerAccount,
        TresLimit::MaxRunMinsPerUser,
        TresLimit::MaxRunMinsPerAccount,
        TresLimit::MinPerJob,
    ];

    /// Stable on the wire and on disk.
    pub fn code(self) -> u32 {
        self as u32 + 1
    }
    pub fn from_code(code: u32) -> Option<TresLimit> {
        TresLimit::ALL.into_iter().find(|l| l.code() == code)
    }

    fn on(self) -> On {
        use TresLimit::*;
        match self {
            Grp | GrpMins | GrpRunMins | MaxPerJob | MaxPerNode | MaxMinsPerJob => On::Both,
            MaxRunMins => On::Association,
            _ => On::Qos,
        }
    }
    pub fn is_of_associations(self) -> bool {
        self.on() != On::Qos
    }
    pub fn is_of_qos(self) -> bool {
        self.on() != On::Association
    }
    /// As `CountLimit::is_inherited`.
    pub fn is_inherited(self) -> bool {
        !matches!(self, TresLimit::Grp | TresLimit::GrpMins | TresLimit::GrpRunMins)
    }
}

/// The limits that are set. A limit that is not in here does not exist; zero is a limit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    pub counts: BTreeMap<CountLimit, u32>,
    /// No entry is empty.
    pub tres: BTreeMap<TresLimit, TresCounts>,
}

impl Limits {
    pub fn count(&self, limit: CountLimit) -> Option<u32> {
        self.counts.get(&limit).copied()
    }
    /// The counts of this limit; None when none is set.
    pub fn tres(&self, limit: TresLimit) -> Option<&TresCounts> {
        self.tres.get(&limit)
    }
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.tres.is_empty()
    }

    /// None takes the limit away.
    pub fn set_count(&mut self, limit: CountLimit, value: Option<u32>) {
        match value {
            Some(value) => self.counts.insert(limit, value),
            None => self.counts.remove(&limit),
        };
    }

    /// Counts that the change does not name stay.
    pub fn change_tres(&mut self, limit: TresLimit, change: &TresChange) {
        let mut counts = self.tres.remove(&limit).unwrap_or_default();
        for (kind, count) in change {
            match count {
                Some(n) => counts.insert(kind.clone(), *n),
                None => counts.remove(kind),
            };
        }
        if !counts.is_empty() {
            self.tres.insert(limit, counts);
        }
    }

    /// What is inherited and not set here is taken from `parent`, resource by resource, as Slurm hands limits down.
    pub fn inherit(&mut self, parent: &Limits) {
        for (limit, value) in parent.counts.iter().filter(|(l, _)| l.is_inherited()) {
            self.counts.entry(*limit).or_insert(*value);
        }
        for (limit, counts) in parent.tres.iter().filter(|(l, _)| l.is_inherited()) {
            let own = self.tres.entry(*limit).or_default();
            for (kind, n) in counts {
                own.entry(kind.clone()).or_insert(*n);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TresKind, parse_change};
    use super::*;

    #[test]
    fn codes_are_distinct_and_read_back() {
        for l in CountLimit::ALL {
            assert_eq!(CountLimit::from_code(l.code()), Some(l));
        }
        for l in TresLimit::ALL {
            assert_eq!(TresLimit::from_code(l.code()), Some(l));
        }
        assert_eq!((CountLimit::MaxWall.code(), TresLimit::MinPerJob.code()), (8, 12));
    }

    #[test]
    fn a_child_keeps_its_own_and_never_gets_a_group_limit() {
        let mut parent = Limits::default();
        parent.set_count(CountLimit::MaxJobs, Some(5));
        parent.set_count(CountLimit::GrpJobs, Some(7));
        parent.change_tres(TresLimit::MaxPerJob, &parse_change("cpu=4,node=2").unwrap());
        let mut child = Limits::default();
        child.change_tres(TresLimit::MaxPerJob, &parse_change("cpu=8").unwrap());
        child.inherit(&parent);
        assert_eq!((child.count(CountLimit::MaxJobs), child.count(CountLimit::GrpJobs)), (Some(5), None));
        let tres = child.tres(TresLimit::MaxPerJob).unwrap();
        assert_eq!((tres[&TresKind::Cpu], tres[&TresKind::Node]), (8, 2));
    }

    #[test]
    fn a_cleared_limit_leaves_nothing() {
        let mut l = Limits::default();
        l.set_count(CountLimit::MaxWall, Some(0));
        l.change_tres(TresLimit::Grp, &parse_change("cpu=0").unwrap());
        assert!(!l.is_empty());
        l.set_count(CountLimit::MaxWall, None);
        l.change_tres(TresLimit::Grp, &parse_change("cpu=-1").unwrap());
        assert!(l.is_empty());
    }
}
