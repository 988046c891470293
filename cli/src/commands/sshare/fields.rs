//! The fields of `sshare`: names, headers, widths, values.
//!
//! Source: sshare(1), "SSHARE OUTPUT FIELDS"; widths as Slurm was seen to print them.

use crate::render::table::Column;
use sluice_proto::v1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Account,
    Cluster,
    EffectiveUsage,
    FairShare,
    GrpTresMins,
    GrpTresRaw,
    Id,
    LevelFs,
    NormShares,
    NormUsage,
    Partition,
    RawShares,
    RawUsage,
    TresRunMins,
    User,
}

const fn right(field: Field, header: &'static str, width: usize) -> Column<Field> {
    Column { field, header, width, right: true }
}

/// In the order of `--helpformat`.
static FIELDS: &[Column<Field>] = &[
    Column { field: Field::Account, header: "Account", width: 20, right: false },
    right(Field::Cluster, "Cluster", 10),
    right(Field::EffectiveUsage, "EffectvUsage", 13),
    right(Field::FairShare, "FairShare", 10),
    right(Field::GrpTresMins, "GrpTRESMins", 30),
    right(Field::GrpTresRaw, "GrpTRESRaw", 30),
    right(Field::Id, "ID", 6),
    right(Field::LevelFs, "LevelFS", 10),
    right(Field::NormShares, "NormShares", 11),
    right(Field::NormUsage, "NormUsage", 11),
    right(Field::Partition, "Partition", 12),
    right(Field::RawShares, "RawShares", 10),
    right(Field::RawUsage, "RawUsage", 11),
    right(Field::TresRunMins, "TRESRunMins", 30),
    right(Field::User, "User", 10),
];

/// In any case; a name that is cut short stands for the first field that begins so.
fn find(name: &str) -> Option<Column<Field>> {
    let begins = |c: &&Column<Field>| c.header.get(..name.len()).is_some_and(|h| h.eq_ignore_ascii_case(name));
    FIELDS.iter().find(|c| c.header.eq_ignore_ascii_case(name)).or_else(|| FIELDS.iter().find(begins)).copied()
}

/// Reads `name[%[-]width],…`. Err holds the message.
pub fn parse(text: &str) -> Result<Vec<Column<Field>>, String> {
    let mut columns = Vec::new();
    for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
        let (name, width) = item.split_once('%').map_or((item, None), |(name, width)| (name, Some(width)));
        let mut column = Some(name)
            .filter(|n| !n.is_empty())
            .and_then(find)
            .ok_or_else(|| format!("Invalid field requested: \"{name}\""))?;
        if let Some(width) = width {
            let (right, digits) = width.strip_prefix('-').map_or((true, width), |digits| (false, digits));
            let width = digits.parse::<u16>().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()));
            column.width = width.ok_or_else(|| format!("Invalid field width: \"{item}\""))?.into();
            column.right = right;
        }
        columns.push(column);
    }
    Ok(columns)
}

pub fn default_columns(long: bool, partition: bool) -> Vec<Column<Field>> {
    let names = match (long, partition) {
        (false, false) => "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare",
        (false, true) => "Account,User,Partition,RawShares,NormShares,RawUsage,EffectvUsage,FairShare",
        (true, false) => {
            "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,TRESRunMins"
        }
        (true, true) => {
            "Account,User,Partition,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,GrpTRESMins,\
             TRESRunMins"
        }
    };
    names.split(',').filter_map(find).collect()
}

/// `--helpformat`: four names a line.
pub fn help_text() -> String {
    let lines = FIELDS.chunks(4).map(|line| {
        let names: Vec<String> = line.iter().map(|c| format!("{:<17}", c.header)).collect();
        format!("{}\n", names.join(" "))
    });
    lines.collect()
}

impl Field {
    /// `indent`: blanks before the account.
    pub fn value(self, row: &v1::ShareRecord, indent: u32, cluster: &str) -> String {
        let is_root = row.depth == 0;
        let six = |n: f64| format!("{n:.6}");
        match self {
            Field::Account => format!("{}{}", " ".repeat(indent as usize), row.account),
            Field::Cluster => cluster.to_owned(),
            Field::EffectiveUsage => six(row.effective_usage),
            Field::FairShare => row.fairshare.map(six).unwrap_or_default(),
            Field::GrpTresMins => row.grp_tres_mins.clone(),
            Field::GrpTresRaw => amounts(&row.tres_raw),
            Field::Id => row.id.to_string(),
            Field::LevelFs => row.level_fs.map(six).unwrap_or_default(),
            Field::NormShares => six(row.norm_shares),
            Field::NormUsage if is_root => String::new(),
            Field::NormUsage => six(row.norm_usage),
            Field::Partition => row.partition.clone(),
            Field::RawShares if is_root => String::new(),
            Field::RawShares => row.raw_shares.map_or_else(|| "parent".to_owned(), |n| n.to_string()),
            // Parts of a unit are cut, as Slurm cuts them.
            Field::RawUsage => format!("{:.0}", row.raw_usage.trunc()),
            Field::TresRunMins => amounts(&row.tres_run_mins),
            Field::User => row.user.clone(),
        }
    }
}

fn amounts(list: &[v1::TresAmount]) -> String {
    list.iter().map(|a| format!("{}={:.0}", a.name, a.amount.trunc())).collect::<Vec<_>>().join(",")
}
