//! The keys that can be set, by entity.
//!
//! Source: sacctmgr(1), "GENERAL SPECIFICATIONS FOR ASSOCIATION BASED ENTITIES" and "SPECIFICATIONS FOR …". The first
//! entry that begins as written is meant, so the order is the order of preference.

use super::words::find;
use sluice_model::accounting::{CountLimit, TresLimit};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Key {
    Shares,
    Priority,
    Count(CountLimit),
    Tres(TresLimit),
    /// One resource under a name of its own, from before there were TRES.
    One(TresLimit, &'static str),
    Qos,
    DefaultQos,
    Comment,
    AdminLevel,
    DefaultAccount,
    DefaultWckey,
    Wckeys,
    Description,
    Organization,
    Parent,
    Flags,
    GraceTime,
    Preempt,
    PreemptMode,
    PreemptExemptTime,
    UsageFactor,
    UsageThreshold,
    LimitFactor,
}

impl Key {
    pub fn takes_signs(self) -> bool {
        matches!(self, Key::Qos | Key::Wckeys | Key::Flags | Key::Preempt)
    }
}

use CountLimit as C;
use TresLimit as T;

static ASSOCIATION: &[(&str, Key)] = &[
    ("Fairshare", Key::Shares),
    ("Shares", Key::Shares),
    ("Priority", Key::Priority),
    ("GrpJobs", Key::Count(C::GrpJobs)),
    ("GrpJobsAccrue", Key::Count(C::GrpJobsAccrue)),
    ("GrpSubmitJobs", Key::Count(C::GrpSubmit)),
    ("GrpWall", Key::Count(C::GrpWall)),
    ("GrpTRES", Key::Tres(T::Grp)),
    ("GrpTRESMins", Key::Tres(T::GrpMins)),
    ("GrpTRESRunMins", Key::Tres(T::GrpRunMins)),
    ("GrpCPUs", Key::One(T::Grp, "cpu")),
    ("GrpCPUMins", Key::One(T::GrpMins, "cpu")),
    ("GrpCPURunMins", Key::One(T::GrpRunMins, "cpu")),
    ("GrpMemory", Key::One(T::Grp, "mem")),
    ("GrpNodes", Key::One(T::Grp, "node")),
    ("MaxJobs", Key::Count(C::MaxJobs)),
    ("MaxJobsAccrue", Key::Count(C::MaxJobsAccrue)),
    ("MaxSubmitJobs", Key::Count(C::MaxSubmit)),
    ("MaxWallDurationPerJob", Key::Count(C::MaxWall)),
    ("MaxTRESPerJob", Key::Tres(T::MaxPerJob)),
    ("MaxTRES", Key::Tres(T::MaxPerJob)),
    ("MaxTRESPerNode", Key::Tres(T::MaxPerNode)),
    ("MaxTRESMinsPerJob", Key::Tres(T::MaxMinsPerJob)),
    ("MaxTRESMins", Key::Tres(T::MaxMinsPerJob)),
    ("MaxTRESRunMins", Key::Tres(T::MaxRunMins)),
    ("MaxCPUsPerJob", Key::One(T::MaxPerJob, "cpu")),
    ("MaxCPUMinsPerJob", Key::One(T::MaxMinsPerJob, "cpu")),
    ("MaxNodesPerJob", Key::One(T::MaxPerJob, "node")),
    ("MinPrioThreshold", Key::Count(C::MinPrioThreshold)),
    ("QosLevel", Key::Qos),
    ("DefaultQOS", Key::DefaultQos),
    ("DefQOS", Key::DefaultQos),
    ("Comment", Key::Comment),
];

static USER: &[(&str, Key)] = &[
    ("AdminLevel", Key::AdminLevel),
    ("DefaultAccount", Key::DefaultAccount),
    ("DefaultWCKey", Key::DefaultWckey),
    ("WCKeys", Key::Wckeys),
];

static ACCOUNT: &[(&str, Key)] =
    &[("Description", Key::Description), ("Organization", Key::Organization), ("Parent", Key::Parent)];

static QOS: &[(&str, Key)] = &[
    ("Description", Key::Description),
    ("Priority", Key::Priority),
    ("Flags", Key::Flags),
    ("GraceTime", Key::GraceTime),
    ("Preempt", Key::Preempt),
    ("PreemptMode", Key::PreemptMode),
    ("PreemptExemptTime", Key::PreemptExemptTime),
    ("UsageFactor", Key::UsageFactor),
    ("UsageThreshold", Key::UsageThreshold),
    ("LimitFactor", Key::LimitFactor),
    ("GrpJobs", Key::Count(C::GrpJobs)),
    ("GrpJobsAccrue", Key::Count(C::GrpJobsAccrue)),
    ("GrpSubmitJobs", Key::Count(C::GrpSubmit)),
    ("GrpWall", Key::Count(C::GrpWall)),
    ("GrpTRES", Key::Tres(T::Grp)),
    ("GrpTRESMins", Key::Tres(T::GrpMins)),
    ("GrpTRESRunMins", Key::Tres(T::GrpRunMins)),
    ("GrpCPUs", Key::One(T::Grp, "cpu")),
    ("GrpCPUMins", Key::One(T::GrpMins, "cpu")),
    ("GrpCPURunMins", Key::One(T::GrpRunMins, "cpu")),
    ("GrpMemory", Key::One(T::Grp, "mem")),
    ("GrpNodes", Key::One(T::Grp, "node")),
    ("MaxJobsPerUser", Key::Count(C::MaxJobsPerUser)),
    ("MaxJobsPU", Key::Count(C::MaxJobsPerUser)),
    ("MaxJobs", Key::Count(C::MaxJobsPerUser)),
    ("MaxJobsPerAccount", Key::Count(C::MaxJobsPerAccount)),
    ("MaxJobsPA", Key::Count(C::MaxJobsPerAccount)),
    ("MaxJobsAccruePerUser", Key::Count(C::MaxJobsAccruePerUser)),
    ("MaxJobsAccruePU", Key::Count(C::MaxJobsAccruePerUser)),
    ("MaxJobsAccruePerAccount", Key::Count(C::MaxJobsAccruePerAccount)),
    ("MaxJobsAccruePA", Key::Count(C::MaxJobsAccruePerAccount)),
    ("MaxSubmitJobsPerUser", Key::Count(C::MaxSubmitPerUser)),
    ("MaxSubmitPerUser", Key::Count(C::MaxSubmitPerUser)),
    ("MaxSubmitPU", Key::Count(C::MaxSubmitPerUser)),
    ("MaxSubmitJobs", Key::Count(C::MaxSubmitPerUser)),
    ("MaxSubmitJobsPerAccount", Key::Count(C::MaxSubmitPerAccount)),
    ("MaxSubmitPerAccount", Key::Count(C::MaxSubmitPerAccount)),
    ("MaxSubmitPA", Key::Count(C::MaxSubmitPerAccount)),
    ("MaxWallDurationPerJob", Key::Count(C::MaxWall)),
    ("MaxTRESPerJob", Key::Tres(T::MaxPerJob)),
    ("MaxTRES", Key::Tres(T::MaxPerJob)),
    ("MaxTRESPerNode", Key::Tres(T::MaxPerNode)),
    ("MaxTRESMinsPerJob", Key::Tres(T::MaxMinsPerJob)),
    ("MaxTRESMins", Key::Tres(T::MaxMinsPerJob)),
    ("MaxTRESPerUser", Key::Tres(T::MaxPerUser)),
    ("MaxTRESPU", Key::Tres(T::MaxPerUser)),
    ("MaxTRESPerAccount", Key::Tres(T::MaxPerAccount)),
    ("MaxTRESPA", Key::Tres(T::MaxPerAccount)),
    ("MaxTRESRunMinsPerUser", Key::Tres(T::MaxRunMinsPerUser)),
    ("MaxTRESRunMinsPU", Key::Tres(T::MaxRunMinsPerUser)),
    ("MaxTRESRunMinsPerAccount", Key::Tres(T::MaxRunMinsPerAccount)),
    ("MaxTRESRunMinsPA", Key::Tres(T::MaxRunMinsPerAccount)),
    ("MaxCPUsPerJob", Key::One(T::MaxPerJob, "cpu")),
    ("MaxCPUsPerUser", Key::One(T::MaxPerUser, "cpu")),
    ("MaxCPUMinsPerJob", Key::One(T::MaxMinsPerJob, "cpu")),
    ("MaxNodesPerJob", Key::One(T::MaxPerJob, "node")),
    ("MaxNodesPerUser", Key::One(T::MaxPerUser, "node")),
    ("MinTRESPerJob", Key::Tres(T::MinPerJob)),
    ("MinTRES", Key::Tres(T::MinPerJob)),
    ("MinCPUs", Key::One(T::MinPerJob, "cpu")),
    ("MinNodes", Key::One(T::MinPerJob, "node")),
    ("MinPrioThreshold", Key::Count(C::MinPrioThreshold)),
];

pub fn of_associations(written: &str) -> Option<Key> {
    find(ASSOCIATION, written).copied()
}
pub fn of_users(written: &str) -> Option<Key> {
    find(USER, written).or_else(|| find(ASSOCIATION, written)).copied()
}
pub fn of_accounts(written: &str) -> Option<Key> {
    find(ACCOUNT, written).or_else(|| find(ASSOCIATION, written)).copied()
}
pub fn of_qos(written: &str) -> Option<Key> {
    find(QOS, written).copied()
}
