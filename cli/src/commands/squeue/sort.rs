//! The order of rows: `--sort=P,t,-p`, `SQUEUE_SORT` and the defaults.
//!
//! Source: squeue(1), `--sort`. Rows that compare equal are in the order of their job numbers.

use super::fields::{self, Field};
use crate::view::{asked, job as facts};
use sluice_model::JobState;
use sluice_proto::v1;
use std::collections::BTreeMap;

/// "increasing partition name then within a given partition by increasing job state and then decreasing priority"
pub const DEFAULT: &str = "P,t,-p";
/// With `--start`.
pub const DEFAULT_START: &str = "S";

/// One key of a sort list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    pub field: Field,
    pub descending: bool,
}

/// Reads a list of letters with `+` or `-` before them; commas are optional. The word `cluster` sorts by cluster, of
/// which there is one. An unknown letter is returned as the error.
pub fn parse(text: &str) -> Result<Vec<Key>, char> {
    let mut keys = Vec::new();
    for item in text.split(',').map(str::trim) {
        if item.trim_start_matches(['+', '-']).eq_ignore_ascii_case("cluster") {
            continue;
        }
        let mut descending = false;
        for letter in item.chars() {
            match letter {
                '+' => descending = false,
                '-' => descending = true,
                ' ' | '%' => {}
                letter => {
                    let field = fields::by_letter(letter).ok_or(letter)?.field;
                    keys.push(Key { field, descending });
                    descending = false;
                }
            }
        }
    }
    Ok(keys)
}

/// What a row is compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rank {
    Number(i64),
    /// By the text that the column shows.
    Text,
}

/// Absent times come last when ascending, as "not yet known".
fn time(ms: Option<i64>) -> Rank {
    Rank::Number(ms.unwrap_or(i64::MAX))
}

fn state_rank(job: &v1::JobRecord) -> i64 {
    let place = JobState::ALL.iter().position(|s| s.long() == job.state).unwrap_or(JobState::ALL.len());
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// Two numbers as one, the first weighing more.
fn pair(first: u32, second: u32) -> Rank {
    Rank::Number((i64::from(first) << 32) | i64::from(second))
}

/// `tiers` holds the priority tier of each partition when `--priority` asks for it to be considered.
pub fn rank(field: Field, job: &v1::JobRecord, tiers: Option<&BTreeMap<String, u32>>) -> Rank {
    let number = |n: u64| Rank::Number(i64::try_from(n).unwrap_or(i64::MAX));
    let (base, index) = facts::order(job);
    match field {
        Field::State | Field::StateShort => Rank::Number(state_rank(job)),
        Field::Priority | Field::PriorityFraction => {
            // Tiers fit in 31 bits: the configuration allows 65533 at most.
            pair(tiers.and_then(|t| t.get(&job.partition)).copied().unwrap_or(0) & 0x7fff_ffff, job.priority)
        }
        Field::JobArrayId => Rank::Number(i64::from(base).saturating_mul(1 << 31) + i64::from(index & 0x7fff_ffff)),
        Field::JobId => number(job.id.into()),
        Field::ArrayJobId => number(base.into()),
        Field::ArrayTaskId => number(index.into()),
        Field::UserId => number(job.uid.into()),
        Field::GroupId => number(job.gid.into()),
        Field::TimeUsed => Rank::Number(job.elapsed_ms),
        Field::TimeLimit => number(limit_seconds(job)),
        Field::TimeLeft => time(facts::time_left(job)),
        Field::StartTime => time(job.start),
        Field::EndTime => time(facts::end(job)),
        Field::SubmitTime => Rank::Number(job.submit),
        Field::NumNodes => number(job.num_nodes.into()),
        Field::NumCpus => number(job.num_cpus.into()),
        Field::Nice => Rank::Number(job.spec.as_ref().map_or(0, |s| s.nice.into())),
        Field::MinCpus => number(asked::min_cpus_per_node(job).into()),
        Field::MinMemory => number(job.requested_memory_mb),
        Field::MinTmpDisk => number(job.spec.as_ref().and_then(|s| s.request.as_ref()).map_or(0, |r| r.tmp_disk_mb)),
        _ => Rank::Text,
    }
}

fn limit_seconds(job: &v1::JobRecord) -> u64 {
    crate::view::clock::limit(job.time_limit.as_ref()).and_then(|l| l.duration()).map_or(u64::MAX, |d| d.as_secs())
}

/// Does sorting need the detailed record?
pub fn needs_detail(keys: &[Key]) -> bool {
    keys.iter().any(|k| fields::FIELDS.iter().any(|f| f.field == k.field && f.detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_and_missing_commas_are_understood() {
        let key = |field, descending| Key { field, descending };
        let expected = [key(Field::State, false), key(Field::PriorityFraction, true)];
        for list in ["T,-p", "T-p", "+T,-p", "cluster,T,-p", " T , -p "] {
            assert_eq!(parse(list).unwrap(), expected, "{list}");
        }
        assert_eq!(parse("i,!"), Err('!'));
    }

    #[test]
    fn only_columns_of_detail_need_detail() {
        assert!(!needs_detail(&parse(DEFAULT).unwrap()));
        assert!(needs_detail(&parse("y").unwrap()));
    }
}
