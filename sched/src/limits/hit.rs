//! A limit that holds a job back, told with its numbers.

use sluice_model::accounting::{CountLimit, TresKind, TresLimit};
use sluice_model::memory::format_memory_mb;
use sluice_model::time::{TimeLimit, format_time_limit};
use sluice_model::{Reason, accounting};
use std::fmt;
use std::sync::Arc;

/// Which limit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum LimitName {
    Count(accounting::CountLimit),
    Tres(accounting::TresLimit, TresKind),
    /// UsageThreshold, in millionths.
    UsageThreshold,
}

/// Why a job may not start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitHit {
    pub reason: Reason,
    pub limit: LimitName,
    /// Whose: `account physics`, `user ada in account physics`, `QOS high`, `user 1000 in QOS high`.
    pub owner: Arc<str>,
    /// In use already by jobs that count (minutes: used up).
    pub used: u64,
    /// What the job needs besides.
    pub asked: u64,
    pub allowed: u64,
}

impl LimitName {
    /// A job with another time limit may pass where this one does not.
    pub(crate) fn depends_on_time(&self) -> bool {
        match self {
            LimitName::Count(count) => matches!(count, CountLimit::MaxWall | CountLimit::GrpWall),
            LimitName::Tres(tres, _) => !matches!(tres, TresLimit::Grp | TresLimit::MaxPerJob | TresLimit::MaxPerNode),
            LimitName::UsageThreshold => false,
        }
    }

    /// As sacctmgr names it.
    pub fn as_str(&self) -> &'static str {
        match self {
            LimitName::UsageThreshold => "UsageThreshold",
            LimitName::Count(count) => match count {
                CountLimit::GrpJobs => "GrpJobs",
                CountLimit::GrpJobsAccrue => "GrpJobsAccrue",
                CountLimit::GrpSubmit => "GrpSubmit",
                CountLimit::GrpWall => "GrpWall",
                CountLimit::MaxJobs => "MaxJobs",
                CountLimit::MaxJobsAccrue => "MaxJobsAccrue",
                CountLimit::MaxSubmit => "MaxSubmit",
                CountLimit::MaxWall => "MaxWall",
                CountLimit::MinPrioThreshold => "MinPrioThreshold",
                CountLimit::MaxJobsPerUser => "MaxJobsPU",
                CountLimit::MaxJobsPerAccount => "MaxJobsPA",
                CountLimit::MaxSubmitPerUser => "MaxSubmitPU",
                CountLimit::MaxSubmitPerAccount => "MaxSubmitPA",
                CountLimit::MaxJobsAccruePerUser => "MaxJobsAccruePU",
                CountLimit::MaxJobsAccruePerAccount => "MaxJobsAccruePA",
            },
            LimitName::Tres(tres, _) => match tres {
                TresLimit::Grp => "GrpTRES",
                TresLimit::GrpMins => "GrpTRESMins",
                TresLimit::GrpRunMins => "GrpTRESRunMins",
                TresLimit::MaxPerJob => "MaxTRES",
                TresLimit::MaxPerNode => "MaxTRESPerNode",
                TresLimit::MaxMinsPerJob => "MaxTRESMins",
                TresLimit::MaxRunMins => "MaxTRESRunMins",
                TresLimit::MaxPerUser => "MaxTRESPU",
                TresLimit::MaxPerAccount => "MaxTRESPA",
                TresLimit::MaxRunMinsPerUser => "MaxTRESRunMinsPU",
                TresLimit::MaxRunMinsPerAccount => "MaxTRESRunMinsPA",
                TresLimit::MinPerJob => "MinTRES",
            },
        }
    }

    fn amount(&self, n: u64) -> String {
        let wall = |m: u64| match u32::try_from(m) {
            Ok(m) => format_time_limit(TimeLimit::Minutes(m)),
            Err(_) => "UNLIMITED".to_owned(),
        };
        match self {
            LimitName::Count(CountLimit::GrpWall | CountLimit::MaxWall) => wall(n),
            LimitName::UsageThreshold => format!("{}.{:06}", n / 1_000_000, n % 1_000_000),
            LimitName::Tres(_, TresKind::Mem) if n < u64::MAX => format_memory_mb(n),
            _ if n == u64::MAX => "an unlimited amount".to_owned(),
            _ => n.to_string(),
        }
    }
}

/// `GrpTRES of account physics is cpu=10: 8 in use, 4 asked`
impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.limit.as_str();
        let kind = match &self.limit {
            LimitName::Tres(_, kind) => format!("{kind}="),
            _ => String::new(),
        };
        let [allowed, used, asked] = [self.allowed, self.used, self.asked].map(|n| self.limit.amount(n));
        write!(f, "{name} of {} is {kind}{allowed}: {used} in use", self.owner)?;
        // Minutes that are used up hold back whatever is asked.
        if self.asked == 0 { Ok(()) } else { write!(f, ", {asked} asked") }
    }
}
