//! Slurm's words for limits (squeue's manual page, JOB REASON CODES; Slurm's resource limits).

use super::hit::LimitName;
use sluice_model::Reason;
use sluice_model::accounting::{CountLimit, TresKind, TresLimit};

/// CPU, memory, nodes, GRES, billing, licences, energy: one reason each.
type Row = [Reason; 7];

macro_rules! row {
    ($($name:ident)*) => { [$(Reason::$name),*] };
}

const ASSOC_GRP: Row = row!(AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpGRES AssocGrpBilling AssocGrpLicense AssocGrpEnergy);
const ASSOC_GRP_MINS: Row = row!(AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes AssocGrpGRESMinutes AssocGrpBillingMinutes AssocGrpLicenseMinutes AssocGrpEnergyMinutes);
const ASSOC_GRP_RUN: Row = row!(AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes AssocGrpGRESRunMinutes AssocGrpBillingRunMinutes AssocGrpLicenseRunMinutes AssocGrpEnergyRunMinutes);
const ASSOC_MAX: Row = row!(AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxNodePerJobLimit AssocMaxGRESPerJob AssocMaxBillingPerJob AssocMaxLicensePerJob AssocMaxEnergyPerJob);
const ASSOC_NODE: Row = row!(AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxNodePerJobLimit AssocMaxGRESPerNode AssocMaxBillingPerNode AssocMaxLicensePerJob AssocMaxEnergyPerNode);
const ASSOC_MINS: Row = row!(AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob AssocMaxGRESMinutesPerJob AssocMaxBillingMinutesPerJob AssocMaxLicenseMinutesPerJob AssocMaxEnergyMinutesPerJob);
const QOS_GRP: Row =
    row!(QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpGRES QOSGrpBilling QOSGrpLicense QOSGrpEnergy);
const QOS_GRP_MINS: Row = row!(QOSGrpCPUMinutesLimit QOSGrpMemMinutes QOSGrpNodeMinutes QOSGrpGRESMinutes QOSGrpBillingMinutes QOSGrpLicenseMinutes QOSGrpEnergyMinutes);
const QOS_GRP_RUN: Row = row!(QOSGrpCPURunMinutesLimit QOSGrpMemRunMinutes QOSGrpNodeRunMinutes QOSGrpGRESRunMinutes QOSGrpBillingRunMinutes QOSGrpLicenseRunMinutes QOSGrpEnergyRunMinutes);
const QOS_MAX: Row = row!(QOSMaxCpuPerJobLimit QOSMaxMemoryPerJob QOSMaxNodePerJobLimit QOSMaxGRESPerJob QOSMaxBillingPerJob QOSMaxLicensePerJob QOSMaxEnergyPerJob);
const QOS_NODE: Row = row!(QOSMaxCpuPerNode QOSMaxMemoryPerNode QOSMaxNodePerJobLimit QOSMaxGRESPerNode QOSMaxBillingPerNode QOSMaxLicensePerJob QOSMaxEnergyPerNode);
const QOS_MINS: Row = row!(QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob QOSMaxGRESMinutesPerJob QOSMaxBillingMinutesPerJob QOSMaxLicenseMinutesPerJob QOSMaxEnergyMinutesPerJob);
const QOS_USER: Row = row!(QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxNodePerUserLimit QOSMaxGRESPerUser QOSMaxBillingPerUser QOSMaxLicensePerUser QOSMaxEnergyPerUser);
const ACCOUNT: Row = row!(MaxCpuPerAccount MaxMemoryPerAccount MaxNodePerAccount MaxGRESPerAccount MaxBillingPerAccount MaxLicensePerAccount MaxEnergyPerAccount);
const QOS_MIN: Row =
    row!(QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinGRES QOSMinBilling QOSMinLicense QOSMinEnergy);

fn column(kind: &TresKind) -> usize {
    match kind {
        TresKind::Cpu => 0,
        TresKind::Mem => 1,
        TresKind::Node => 2,
        TresKind::Gres(..) => 3,
        TresKind::Billing => 4,
        TresKind::License(_) => 5,
        TresKind::Energy => 6,
    }
}

pub(super) fn reason(limit: &LimitName, of_qos: bool) -> Reason {
    let pick = |assoc: Reason, qos: Reason| if of_qos { qos } else { assoc };
    match limit {
        LimitName::UsageThreshold => Reason::QOSUsageThreshold,
        LimitName::Count(count) => match count {
            CountLimit::GrpJobs | CountLimit::GrpJobsAccrue => pick(Reason::AssocGrpJobsLimit, Reason::QOSGrpJobsLimit),
            CountLimit::GrpSubmit => pick(Reason::AssocGrpSubmitJobsLimit, Reason::QOSGrpSubmitJobsLimit),
            CountLimit::GrpWall => pick(Reason::AssocGrpWallLimit, Reason::QOSGrpWallLimit),
            CountLimit::MaxJobs | CountLimit::MaxJobsAccrue => {
                pick(Reason::AssocMaxJobsLimit, Reason::QOSMaxJobsPerUserLimit)
            }
            CountLimit::MaxSubmit => pick(Reason::AssocMaxSubmitJobLimit, Reason::QOSMaxSubmitJobPerUserLimit),
            CountLimit::MaxWall => pick(Reason::AssocMaxWallDurationPerJobLimit, Reason::QOSMaxWallDurationPerJobLimit),
            CountLimit::MinPrioThreshold => Reason::Priority,
            CountLimit::MaxJobsPerUser | CountLimit::MaxJobsAccruePerUser => Reason::QOSMaxJobsPerUserLimit,
            CountLimit::MaxJobsPerAccount | CountLimit::MaxJobsAccruePerAccount => Reason::MaxJobsPerAccount,
            CountLimit::MaxSubmitPerUser => Reason::QOSMaxSubmitJobPerUserLimit,
            CountLimit::MaxSubmitPerAccount => Reason::MaxSubmitJobsPerAccount,
        },
        LimitName::Tres(limit, kind) => {
            let (assoc, qos) = match limit {
                TresLimit::Grp => (ASSOC_GRP, QOS_GRP),
                TresLimit::GrpMins => (ASSOC_GRP_MINS, QOS_GRP_MINS),
                TresLimit::GrpRunMins => (ASSOC_GRP_RUN, QOS_GRP_RUN),
                TresLimit::MaxPerJob => (ASSOC_MAX, QOS_MAX),
                TresLimit::MaxPerNode => (ASSOC_NODE, QOS_NODE),
                TresLimit::MaxMinsPerJob => (ASSOC_MINS, QOS_MINS),
                TresLimit::MaxRunMins => (ASSOC_GRP_RUN, QOS_GRP_RUN),
                TresLimit::MaxPerUser | TresLimit::MaxRunMinsPerUser => (QOS_USER, QOS_USER),
                TresLimit::MaxPerAccount | TresLimit::MaxRunMinsPerAccount => (ACCOUNT, ACCOUNT),
                TresLimit::MinPerJob => (QOS_MIN, QOS_MIN),
            };
            pick(assoc[column(kind)], qos[column(kind)])
        }
    }
}
