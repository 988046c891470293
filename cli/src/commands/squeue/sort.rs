//! The order of rows: `--sort=P,t,-p`, `SQUEUE_SORT` and the defaults.
//!
//! Source: squeue(1), `--sort`. Rows that compare equal are in the order of their job numbers.

use super::fields::{self, Field};
use crate::view::{asked, job as facts};
use sluice_model::JobState;
use sluice_proto::v1;
use std::cmp::Ordering;
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

/// Sorts jobs. `tiers` holds the priority tier of each partition when `--priority` asks for it to be considered.
pub fn sort(jobs: &mut [v1::JobRecord], keys: &[Key], tiers: Option<&BTreeMap<String, u32>>) {
    jobs.sort_by(|a, b| {
        for key in keys {
            let order = compare(key.field, a, b, tiers);
            let order = if key.descending { order.reverse() } else { order };
            if order != Ordering::Equal {
                return order;
            }
        }
        facts::order(a).cmp(&facts::order(b))
    });
}

/// Absent times come last when ascending, as "not yet known".
fn time(ms: Option<i64>) -> i64 {
    ms.unwrap_or(i64::MAX)
}

fn state_rank(job: &v1::JobRecord) -> usize {
    JobState::ALL.iter().position(|s| s.long() == job.state).unwrap_or(JobState::ALL.len())
}

fn compare(field: Field, a: &v1::JobRecord, b: &v1::JobRecord, tiers: Option<&BTreeMap<String, u32>>) -> Ordering {
    let spec = |j: &v1::JobRecord| j.spec.clone().unwrap_or_default();
    let request = |j: &v1::JobRecord| spec(j).request.unwrap_or_default();
    match field {
        Field::Partition => a.partition.cmp(&b.partition),
        Field::State | Field::StateShort => state_rank(a).cmp(&state_rank(b)),
        Field::Priority | Field::PriorityFraction => {
            let tier = |j: &v1::JobRecord| tiers.and_then(|t| t.get(&j.partition)).copied().unwrap_or(0);
            tier(a).cmp(&tier(b)).then(a.priority.cmp(&b.priority))
        }
        Field::JobArrayId => facts::order(a).cmp(&facts::order(b)),
        Field::JobId => a.id.cmp(&b.id),
        Field::ArrayJobId => a.array_job.unwrap_or(a.id).cmp(&b.array_job.unwrap_or(b.id)),
        Field::ArrayTaskId => facts::order(a).1.cmp(&facts::order(b).1),
        Field::Name => a.name.cmp(&b.name),
        Field::UserName => a.user.cmp(&b.user),
        Field::UserId => a.uid.cmp(&b.uid),
        Field::GroupId => a.gid.cmp(&b.gid),
        Field::GroupName => spec(a).group.cmp(&spec(b).group),
        Field::Account => a.account.cmp(&b.account),
        Field::Qos => a.qos.cmp(&b.qos),
        Field::Reason | Field::ReasonList => facts::reason(a).cmp(facts::reason(b)),
        Field::TimeUsed => a.elapsed_ms.cmp(&b.elapsed_ms),
        Field::TimeLimit => limit(a).cmp(&limit(b)),
        Field::TimeLeft => time(facts::time_left(a)).cmp(&time(facts::time_left(b))),
        Field::StartTime => time(a.start).cmp(&time(b.start)),
        Field::EndTime => time(facts::end(a)).cmp(&time(facts::end(b))),
        Field::SubmitTime => a.submit.cmp(&b.submit),
        Field::NumNodes => a.num_nodes.cmp(&b.num_nodes),
        Field::NumCpus => a.num_cpus.cmp(&b.num_cpus),
        Field::NodeList => a.node_list.cmp(&b.node_list),
        Field::SchedNodes => a.sched_nodes.cmp(&b.sched_nodes),
        Field::BatchHost => a.batch_host.cmp(&b.batch_host),
        Field::Nice => spec(a).nice.cmp(&spec(b).nice),
        Field::Comment => a.comment.cmp(&b.comment),
        Field::Command => spec(a).command.cmp(&spec(b).command),
        Field::WorkDir => spec(a).work_dir.cmp(&spec(b).work_dir),
        Field::Dependency => asked::dependency(a).cmp(&asked::dependency(b)),
        Field::Features => request(a).constraint_text.cmp(&request(b).constraint_text),
        Field::Licenses => asked::licenses(a).cmp(&asked::licenses(b)),
        Field::MinCpus => asked::min_cpus_per_node(a).cmp(&asked::min_cpus_per_node(b)),
        Field::MinMemory => a.requested_memory_mb.cmp(&b.requested_memory_mb),
        Field::MinTmpDisk => request(a).tmp_disk_mb.cmp(&request(b).tmp_disk_mb),
        Field::OverSubscribe => asked::oversubscribe(a).cmp(asked::oversubscribe(b)),
        Field::Contiguous => request(a).contiguous.cmp(&request(b).contiguous),
        Field::ReqNodes => request(a).node_list.cmp(&request(b).node_list),
        Field::ExcNodes => request(a).exclude.cmp(&request(b).exclude),
        Field::Reservation => spec(a).reservation.cmp(&spec(b).reservation),
        Field::WcKey => asked::wckey(a).cmp(asked::wckey(b)),
        // Fields without a letter can't be named in a sort list; those of equal text for all jobs order nothing.
        _ => Ordering::Equal,
    }
}

fn limit(job: &v1::JobRecord) -> u64 {
    crate::view::clock::limit(job.time_limit.as_ref()).and_then(|l| l.duration()).map_or(u64::MAX, |d| d.as_secs())
}

/// Does sorting need the detailed record?
pub fn needs_detail(keys: &[Key]) -> bool {
    keys.iter().any(|k| fields::FIELDS.iter().any(|f| f.field == k.field && f.detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn sorted(list: &str) -> Vec<String> {
        let mut jobs = fixture::jobs();
        sort(&mut jobs, &parse(list).unwrap(), None);
        jobs.iter().map(|j| facts::id(j, 64)).collect()
    }

    #[test]
    fn the_default_is_state_then_falling_priority() {
        assert_eq!(sorted(DEFAULT), ["7", "3_[2-5%2]", "5", "6", "4", "2", "3_0", "3_1", "1"]);
    }

    #[test]
    fn start_times_rise_and_unknown_ones_come_last() {
        let order = sorted(DEFAULT_START);
        assert_eq!(order[4], "5");
        assert_eq!(order[5..], ["3_[2-5%2]", "4", "6", "7"]);
    }

    #[test]
    fn signs_and_missing_commas_are_understood() {
        assert_eq!(sorted("-i")[0], "7");
        assert_eq!(sorted("+i"), sorted("i"));
        assert_eq!(sorted("t-p"), sorted("t,-p"));
        assert_eq!(sorted("cluster,-i"), sorted("-i"));
        assert_eq!(parse("i,!"), Err('!'));
    }

    #[test]
    fn partition_tiers_come_before_priority_when_asked_for() {
        let mut jobs = vec![fixture::job(5), fixture::job(4)];
        jobs[1].partition = "second".into();
        let tiers = BTreeMap::from([("primary".to_owned(), 1), ("second".to_owned(), 5)]);
        sort(&mut jobs, &parse("-p").unwrap(), Some(&tiers));
        assert_eq!(jobs[0].id, 4);
    }
}
