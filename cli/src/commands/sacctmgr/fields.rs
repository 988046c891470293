//! Columns of `sacctmgr list`: names, headers, widths, and what each entity shows when nothing is asked for.
//!
//! Sources: sacctmgr(1), "LIST/SHOW … FORMAT OPTIONS"; headers and widths as Slurm was seen to print them.

use super::words::find;
use crate::render::table::Column;
use sluice_model::accounting::{CountLimit as C, TresLimit as T};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Cluster,
    Account,
    User,
    Partition,
    Share,
    Priority,
    Count(C),
    Tres(T),
    /// One resource of a limit.
    One(T, &'static str),
    Qos,
    QosRaw,
    DefQos,
    Id,
    ParentId,
    ParentName,
    Left,
    Right,
    Lineage,
    Comment,
    Description,
    Organization,
    Coordinators,
    DefAccount,
    DefWckey,
    Admin,
    Wckey,
    ControlHost,
    ControlPort,
    Rpc,
    ClusterTres,
    Classification,
    ClusterFlags,
    Name,
    Flags,
    GraceTime,
    Preempt,
    PreemptExempt,
    PreemptMode,
    UsageThreshold,
    UsageFactor,
    LimitFactor,
    TresType,
    TresName,
    Problem,
}

type Row = (&'static str, (Field, &'static str, usize));

const fn row(name: &'static str, field: Field, header: &'static str, width: usize) -> Row {
    (name, (field, header, width))
}

/// Of associations; also what accounts, users and the cluster show of theirs.
static ASSOCIATION: &[Row] = &[
    row("Cluster", Field::Cluster, "Cluster", 10),
    row("Account", Field::Account, "Account", 10),
    row("User", Field::User, "User", 10),
    row("Partition", Field::Partition, "Partition", 10),
    row("Share", Field::Share, "Share", 9),
    row("Fairshare", Field::Share, "Share", 9),
    row("Priority", Field::Priority, "Priority", 10),
    row("GrpJobs", Field::Count(C::GrpJobs), "GrpJobs", 7),
    row("GrpJobsAccrue", Field::Count(C::GrpJobsAccrue), "GrpJobsAccrue", 13),
    row("GrpTRES", Field::Tres(T::Grp), "GrpTRES", 13),
    row("GrpTRESMins", Field::Tres(T::GrpMins), "GrpTRESMins", 13),
    row("GrpTRESRunMins", Field::Tres(T::GrpRunMins), "GrpTRESRunMins", 13),
    row("GrpSubmitJobs", Field::Count(C::GrpSubmit), "GrpSubmit", 9),
    row("GrpWall", Field::Count(C::GrpWall), "GrpWall", 11),
    row("GrpCPUs", Field::One(T::Grp, "cpu"), "GrpCPUs", 8),
    row("GrpCPUMins", Field::One(T::GrpMins, "cpu"), "GrpCPUMins", 11),
    row("GrpCPURunMins", Field::One(T::GrpRunMins, "cpu"), "GrpCPURunMins", 13),
    row("GrpMemory", Field::One(T::Grp, "mem"), "GrpMem", 7),
    row("GrpNodes", Field::One(T::Grp, "node"), "GrpNodes", 8),
    row("MaxJobs", Field::Count(C::MaxJobs), "MaxJobs", 7),
    row("MaxJobsAccrue", Field::Count(C::MaxJobsAccrue), "MaxJobsAccrue", 13),
    row("MaxTRES", Field::Tres(T::MaxPerJob), "MaxTRES", 13),
    row("MaxTRESPerJob", Field::Tres(T::MaxPerJob), "MaxTRES", 13),
    row("MaxTRESPerNode", Field::Tres(T::MaxPerNode), "MaxTRESPerNode", 14),
    row("MaxTRESMins", Field::Tres(T::MaxMinsPerJob), "MaxTRESMins", 13),
    row("MaxTRESMinsPerJob", Field::Tres(T::MaxMinsPerJob), "MaxTRESMins", 13),
    row("MaxTRESRunMins", Field::Tres(T::MaxRunMins), "MaxTRESRunMins", 15),
    row("MaxSubmitJobs", Field::Count(C::MaxSubmit), "MaxSubmit", 9),
    row("MaxWallDurationPerJob", Field::Count(C::MaxWall), "MaxWall", 11),
    row("MaxCPUs", Field::One(T::MaxPerJob, "cpu"), "MaxCPUs", 8),
    row("MaxCPUMins", Field::One(T::MaxMinsPerJob, "cpu"), "MaxCPUMins", 11),
    row("MaxNodes", Field::One(T::MaxPerJob, "node"), "MaxNodes", 8),
    row("MinPrioThreshold", Field::Count(C::MinPrioThreshold), "MinPrioThres", 12),
    row("QOS", Field::Qos, "QOS", 20),
    row("QosLevel", Field::Qos, "QOS", 20),
    row("QosRaw", Field::QosRaw, "QOS_RAW", 10),
    row("DefaultQOS", Field::DefQos, "Def QOS", 9),
    row("DefQOS", Field::DefQos, "Def QOS", 9),
    row("ID", Field::Id, "ID", 6),
    row("ParentID", Field::ParentId, "ParentID", 8),
    row("ParentName", Field::ParentName, "ParentName", 10),
    row("LFT", Field::Left, "LFT", 6),
    row("RGT", Field::Right, "RGT", 6),
    row("Lineage", Field::Lineage, "Lineage", 40),
    row("Comment", Field::Comment, "Comment", 20),
];

static ACCOUNT: &[Row] = &[
    row("Account", Field::Account, "Account", 10),
    row("Name", Field::Account, "Account", 10),
    row("Description", Field::Description, "Descr", 20),
    row("Organization", Field::Organization, "Org", 20),
    row("Coordinators", Field::Coordinators, "Coord Accounts", 20),
];

static USER: &[Row] = &[
    row("User", Field::User, "User", 10),
    row("Name", Field::User, "User", 10),
    row("DefaultAccount", Field::DefAccount, "Def Acct", 10),
    row("DefaultWCKey", Field::DefWckey, "Def WCKey", 10),
    row("AdminLevel", Field::Admin, "Admin", 9),
    row("Coordinators", Field::Coordinators, "Coord Accounts", 20),
];

static CLUSTER: &[Row] = &[
    row("Cluster", Field::Cluster, "Cluster", 10),
    row("Name", Field::Cluster, "Cluster", 10),
    row("ControlHost", Field::ControlHost, "ControlHost", 15),
    row("ControlPort", Field::ControlPort, "ControlPort", 12),
    row("RPC", Field::Rpc, "RPC", 5),
    row("Classification", Field::Classification, "Class", 9),
    row("Flags", Field::ClusterFlags, "Flags", 20),
    row("TRES", Field::ClusterTres, "TRES", 20),
];

static QOS: &[Row] = &[
    row("Name", Field::Name, "Name", 10),
    row("Description", Field::Description, "Descr", 20),
    row("ID", Field::Id, "ID", 6),
    row("Priority", Field::Priority, "Priority", 10),
    row("GraceTime", Field::GraceTime, "GraceTime", 10),
    row("Preempt", Field::Preempt, "Preempt", 10),
    row("PreemptExemptTime", Field::PreemptExempt, "PreemptExemptTime", 19),
    row("PreemptMode", Field::PreemptMode, "PreemptMode", 11),
    row("Flags", Field::Flags, "Flags", 40),
    row("UsageThreshold", Field::UsageThreshold, "UsageThres", 10),
    row("UsageFactor", Field::UsageFactor, "UsageFactor", 11),
    row("LimitFactor", Field::LimitFactor, "LimitFactor", 11),
    row("GrpTRES", Field::Tres(T::Grp), "GrpTRES", 13),
    row("GrpTRESMins", Field::Tres(T::GrpMins), "GrpTRESMins", 13),
    row("GrpTRESRunMins", Field::Tres(T::GrpRunMins), "GrpTRESRunMins", 13),
    row("GrpJobs", Field::Count(C::GrpJobs), "GrpJobs", 7),
    row("GrpJobsAccrue", Field::Count(C::GrpJobsAccrue), "GrpJobsAccrue", 13),
    row("GrpSubmitJobs", Field::Count(C::GrpSubmit), "GrpSubmit", 9),
    row("GrpWall", Field::Count(C::GrpWall), "GrpWall", 11),
    row("MaxTRES", Field::Tres(T::MaxPerJob), "MaxTRES", 13),
    row("MaxTRESPerJob", Field::Tres(T::MaxPerJob), "MaxTRES", 13),
    row("MaxTRESPerNode", Field::Tres(T::MaxPerNode), "MaxTRESPerNode", 14),
    row("MaxTRESMins", Field::Tres(T::MaxMinsPerJob), "MaxTRESMins", 13),
    row("MaxTRESMinsPerJob", Field::Tres(T::MaxMinsPerJob), "MaxTRESMins", 13),
    row("MaxWallDurationPerJob", Field::Count(C::MaxWall), "MaxWall", 11),
    row("MaxTRESPU", Field::Tres(T::MaxPerUser), "MaxTRESPU", 13),
    row("MaxTRESPerUser", Field::Tres(T::MaxPerUser), "MaxTRESPU", 13),
    row("MaxJobsPU", Field::Count(C::MaxJobsPerUser), "MaxJobsPU", 9),
    row("MaxJobsPerUser", Field::Count(C::MaxJobsPerUser), "MaxJobsPU", 9),
    row("MaxSubmitPU", Field::Count(C::MaxSubmitPerUser), "MaxSubmitPU", 11),
    row("MaxSubmitJobsPerUser", Field::Count(C::MaxSubmitPerUser), "MaxSubmitPU", 11),
    row("MaxTRESPA", Field::Tres(T::MaxPerAccount), "MaxTRESPA", 13),
    row("MaxTRESPerAccount", Field::Tres(T::MaxPerAccount), "MaxTRESPA", 13),
    row("MaxTRESRunMinsPA", Field::Tres(T::MaxRunMinsPerAccount), "MaxTRESRunMinsPA", 16),
    row("MaxTRESRunMinsPerAccount", Field::Tres(T::MaxRunMinsPerAccount), "MaxTRESRunMinsPA", 16),
    row("MaxTRESRunMinsPU", Field::Tres(T::MaxRunMinsPerUser), "MaxTRESRunMinsPU", 16),
    row("MaxTRESRunMinsPerUser", Field::Tres(T::MaxRunMinsPerUser), "MaxTRESRunMinsPU", 16),
    row("MaxJobsPA", Field::Count(C::MaxJobsPerAccount), "MaxJobsPA", 9),
    row("MaxJobsPerAccount", Field::Count(C::MaxJobsPerAccount), "MaxJobsPA", 9),
    row("MaxSubmitPA", Field::Count(C::MaxSubmitPerAccount), "MaxSubmitPA", 11),
    row("MaxSubmitJobsPerAccount", Field::Count(C::MaxSubmitPerAccount), "MaxSubmitPA", 11),
    row("MaxJobsAccruePA", Field::Count(C::MaxJobsAccruePerAccount), "MaxJobsAccruePA", 15),
    row("MaxJobsAccruePU", Field::Count(C::MaxJobsAccruePerUser), "MaxJobsAccruePU", 15),
    row("MinPrioThreshold", Field::Count(C::MinPrioThreshold), "MinPrioThres", 12),
    row("MinTRES", Field::Tres(T::MinPerJob), "MinTRES", 13),
    row("MinTRESPerJob", Field::Tres(T::MinPerJob), "MinTRES", 13),
];

static TRES: &[Row] =
    &[row("Type", Field::TresType, "Type", 8), row("Name", Field::TresName, "Name", 15), row("ID", Field::Id, "ID", 6)];

static WCKEY: &[Row] = &[
    row("WCKey", Field::Wckey, "WCKey", 10),
    row("Cluster", Field::Cluster, "Cluster", 10),
    row("User", Field::User, "User", 10),
];

static PROBLEM: &[Row] = &[
    row("Cluster", Field::Cluster, "Cluster", 10),
    row("Account", Field::Account, "Account", 10),
    row("User", Field::User, "User", 10),
    row("Problem", Field::Problem, "Problem", 40),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entity {
    Account,
    Association,
    Cluster,
    Qos,
    Tres,
    User,
    Wckey,
    Problem,
}

impl Entity {
    /// The entity's own fields, then those of its associations.
    fn tables(self) -> [&'static [Row]; 2] {
        match self {
            Entity::Account => [ACCOUNT, ASSOCIATION],
            Entity::Association => [ASSOCIATION, &[]],
            Entity::Cluster => [CLUSTER, ASSOCIATION],
            Entity::Qos => [QOS, &[]],
            Entity::Tres => [TRES, &[]],
            Entity::User => [USER, ASSOCIATION],
            Entity::Wckey => [WCKEY, &[]],
            Entity::Problem => [PROBLEM, &[]],
        }
    }

    /// Whether the field says something about associations, so that each gets a line.
    pub fn is_of_association(self, written: &str) -> bool {
        let own = find(self.tables()[0], written).is_some();
        matches!(self, Entity::Account | Entity::User) && !own
    }
}

/// One column as `format=` names it: `name`, `name%width`, `name%-width` (to the left). Err: the unknown name.
pub fn column(entity: Entity, word: &str) -> Result<Column<Field>, String> {
    let (name, width) = word.split_once('%').map_or((word, None), |(n, w)| (n, Some(w)));
    let (field, header, own) =
        entity.tables().iter().find_map(|t| find(t, name)).copied().ok_or_else(|| format!("Unknown field '{name}'"))?;
    let mut column = Column { field, header, width: own, right: true };
    if let Some(width) = width {
        let digits = width.strip_prefix('-').unwrap_or(width);
        column.right = digits.len() == width.len();
        column.width = digits
            .parse::<usize>()
            .ok()
            .filter(|w| (1..=1000).contains(w))
            .ok_or_else(|| format!("Invalid width '{width}' of field '{name}': allowed is 1 to 1000"))?;
    }
    Ok(column)
}

/// What is shown when no format is given.
pub fn default_format(entity: Entity, with_associations: bool, with_coordinators: bool, limits: bool) -> String {
    let mut text = String::from(match (entity, with_associations) {
        (Entity::Association, _) if !limits => "Cluster,Account,User,Partition",
        (Entity::Association, _) => {
            "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmitJobs,GrpWall,GrpTRESMins,MaxJobs,\
             MaxTRES,MaxTRESPerNode,MaxSubmitJobs,MaxWall,MaxTRESMins,QOS,DefQOS,GrpTRESRunMins"
        }
        (Entity::Account, false) => "Account,Description,Organization",
        (Entity::Account, true) => {
            "Account,Description,Organization,Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMemory,\
             GrpSubmitJobs,GrpWall,GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmitJobs,MaxWall,MaxCPUMins,QOS,DefQOS"
        }
        (Entity::User, false) => "User,DefaultAccount,AdminLevel",
        (Entity::User, true) => {
            "User,DefaultAccount,AdminLevel,Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,\
             MaxSubmitJobs,MaxWall,MaxCPUMins,QOS,DefQOS"
        }
        (Entity::Cluster, _) if !limits => "Cluster,ControlHost,ControlPort,RPC",
        (Entity::Cluster, _) => {
            "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmitJobs,MaxJobs,MaxTRES,MaxSubmitJobs,\
             MaxWall,QOS,DefQOS"
        }
        (Entity::Qos, _) => {
            "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThreshold,UsageFactor,GrpTRES,\
             GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmitJobs,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,\
             MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA,MaxTRESRunMinsPU,MaxJobsPA,MaxSubmitPA,MinTRES"
        }
        (Entity::Tres, _) => "Type,Name,ID",
        (Entity::Wckey, _) => "WCKey,Cluster,User",
        (Entity::Problem, _) => "Cluster,Account,User,Problem",
    });
    if with_coordinators && matches!(entity, Entity::Account | Entity::User) {
        text.push_str(",Coordinators");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_format_can_be_read() {
        let all = [
            Entity::Account,
            Entity::Association,
            Entity::Cluster,
            Entity::Qos,
            Entity::Tres,
            Entity::User,
            Entity::Wckey,
            Entity::Problem,
        ];
        for entity in all {
            for (a, b, c) in [(false, false, true), (true, true, true), (true, false, false)] {
                for word in default_format(entity, a, b, c).split(',') {
                    assert!(column(entity, word).is_ok(), "{entity:?} {word}");
                }
            }
        }
    }

    #[test]
    fn widths_and_sides_are_read_and_unknown_fields_named() {
        let c = column(Entity::Qos, "flags%20").unwrap();
        assert_eq!((c.header, c.width, c.right), ("Flags", 20, true));
        assert!(!column(Entity::User, "user%-30").unwrap().right);
        assert_eq!(column(Entity::Qos, "prio").unwrap().header, "Priority");
        assert_eq!(column(Entity::Qos, "nosuch").unwrap_err(), "Unknown field 'nosuch'");
        assert!(column(Entity::Qos, "name%x").is_err());
        assert!(column(Entity::Qos, "name%0").is_err());
    }
}
