//! What is derived from a job's record: display ids, state words, reasons, names.
//!
//! Sources: squeue(1), scontrol(1); recorded outputs of Slurm 26.05.

use sluice_model::index_set::IndexSet;
use sluice_model::job_target::JobTarget;
use sluice_model::state::JobState;
use sluice_model::{Reason, StepId};
use sluice_proto::v1;
use std::borrow::Cow;
use std::io::Write as _;

/// `SLURM_BITSTR_LEN` when unset: how many characters an array expression may take.
pub const BITSTR_LEN: usize = 64;

/// `SLURM_BITSTR_LEN`; 0 means no limit.
pub fn bitstr_len(value: Option<&str>) -> usize {
    value.and_then(|v| v.parse().ok()).unwrap_or(BITSTR_LEN)
}

/// The base state; a state of a newer release reads as pending and prints as it came.
pub fn state(job: &v1::JobRecord) -> JobState {
    JobState::parse(&job.state).unwrap_or(JobState::Pending)
}

/// In the queue, held or not.
pub fn is_waiting(job: &v1::JobRecord) -> bool {
    state(job).is_waiting()
}

/// `PD`; a state without a short form prints in full.
pub fn state_short(job: &v1::JobRecord) -> &str {
    JobState::parse(&job.state).map_or(job.state.as_str(), |state| state.short())
}

pub fn reason(job: &v1::JobRecord) -> &'static str {
    Reason::from_number(job.reason).as_str()
}

/// Names are bytes and print as they are; only control characters, which would break tables, are replaced.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    let text = crate::text::hold(bytes);
    if text.chars().any(char::is_control) {
        Cow::Owned(text.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
    } else {
        text
    }
}

/// The wire's index set. Malformed ranges are left out.
pub fn index_set(set: &v1::IndexSet) -> IndexSet {
    let ranges = set.ranges.iter().map(|r| (r.first, r.last, r.step.max(1)));
    IndexSet::from_ranges(ranges).unwrap_or_default()
}

/// Number of indices, without building the set.
pub fn index_count(set: &v1::IndexSet) -> u64 {
    let one = |r: &v1::IndexRange| u64::from(r.last.saturating_sub(r.first) / r.step.max(1)) + 1;
    set.ranges.iter().map(one).sum()
}

/// `2-5%2` for what still waits of an array, `4` for a task; None for other jobs. Long expressions end in `...`.
pub fn array_task(job: &v1::JobRecord, bitstr_len: usize) -> Option<String> {
    if let Some(pending) = &job.array_pending {
        let mut expression = index_set(pending).to_string();
        if bitstr_len > 0 && expression.len() > bitstr_len {
            let cut = expression[..bitstr_len.saturating_sub(3).max(1)].rfind(',').map_or(bitstr_len, |at| at + 1);
            expression.truncate(cut);
            expression.push_str("...");
        }
        if let Some(throttle) = job.array_throttle.filter(|t| *t > 0) {
            expression.push_str(&format!("%{throttle}"));
        }
        return Some(expression);
    }
    job.array_index.map(|index| index.to_string())
}

/// `7`, `3_1`, `3_[2-5%2]`
pub fn write_id(job: &v1::JobRecord, bitstr_len: usize, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = match (job.array_job, job.array_index, &job.array_pending) {
        (Some(base), _, Some(_)) => {
            write!(out, "{base}_[{}]", array_task(job, bitstr_len).unwrap_or_default())
        }
        (Some(base), Some(index), None) => write!(out, "{base}_{index}"),
        _ => write!(out, "{}", job.id),
    };
}

pub fn id(job: &v1::JobRecord, bitstr_len: usize) -> String {
    let mut out = Vec::new();
    write_id(job, bitstr_len, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Jobs in the order of their numbers, array tasks in the order of their indices after the array's number.
pub fn order(job: &v1::JobRecord) -> (u32, u32) {
    let first_pending = || job.array_pending.as_ref().and_then(|s| s.ranges.first()).map(|r| r.first);
    (job.array_job.unwrap_or(job.id), job.array_index.or_else(first_pending).unwrap_or(0))
}

/// Does the reason, rather than the nodes, stand in `NODELIST(REASON)`?
pub fn shows_reason(state: JobState) -> bool {
    matches!(
        state,
        JobState::Pending
            | JobState::SpecialExit
            | JobState::Failed
            | JobState::Timeout
            | JobState::NodeFail
            | JobState::BootFail
            | JobState::Deadline
            | JobState::OutOfMemory
    )
}

/// The state that the job will have or has, `COMPLETING` resolved.
pub fn final_state(job: &v1::JobRecord) -> &str {
    if job.state == JobState::Completing.long() && !job.completing_state.is_empty() {
        &job.completing_state
    } else {
        &job.state
    }
}

/// `code:signal`
pub fn exit(status: Option<&v1::ExitStatus>) -> String {
    let status = status.copied().unwrap_or_default();
    format!("{}:{}", status.code, status.signal)
}

/// Milliseconds left of the limit; None when there is no limit.
pub fn time_left(job: &v1::JobRecord) -> Option<i64> {
    let limit = super::clock::limit(job.time_limit.as_ref())?.duration()?;
    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX);
    Some(limit.saturating_sub(job.elapsed_ms).max(0))
}

/// Ended, or the expected end of one that runs; for one that waits, its estimated start and its limit.
pub fn end(job: &v1::JobRecord) -> Option<i64> {
    if job.end.is_some() || !is_waiting(job) {
        return job.end;
    }
    let limit = super::clock::limit(job.time_limit.as_ref())?.duration()?;
    Some(job.start?.saturating_add(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)))
}

/// `batch`, `0`
pub fn step_name(step: &v1::StepRecord) -> String {
    StepId::from_wire(step.key.map_or(0, |k| k.step)).to_string()
}

/// `3_0.batch`
pub fn step_id(job: &v1::JobRecord, step: &v1::StepRecord) -> String {
    format!("{}.{}", id(job, 0), step_name(step))
}

/// The batch step, the allocation's own step, then the numbered ones: the order of accounting.
pub fn accounting_order(step: &v1::StepRecord) -> (u8, u32) {
    match StepId::from_wire(step.key.map_or(0, |k| k.step)) {
        StepId::Batch => (0, 0),
        StepId::Interactive => (1, 0),
        StepId::Extern => (2, 0),
        StepId::Numbered(n) => (3, n),
    }
}

/// What waits of an array, cut to the tasks that were named: `3_4` shows task 4 alone. Other records as they are.
pub fn narrow(job: &v1::JobRecord, targets: &[JobTarget]) -> Option<v1::JobRecord> {
    let pending = index_set(job.array_pending.as_ref()?);
    let ours = |t: &&JobTarget| t.job.0 == job.id || Some(t.job.0) == job.array_job;
    let named: Vec<&IndexSet> = targets.iter().filter(ours).map(|t| t.tasks.as_ref()).collect::<Option<_>>()?;
    let wanted = named.into_iter().fold(IndexSet::new(), |sum, tasks| sum.union(&tasks.intersection(&pending)));
    if wanted.is_empty() {
        return None;
    }
    let (index, rest) = if wanted.len() == 1 { (wanted.first(), None) } else { (None, Some((&wanted).into())) };
    Some(v1::JobRecord { array_index: index, array_pending: rest, ..job.clone() })
}

/// Shows `each` a record for each task for which this one stands; other records as they are. One record serves for all
/// of them: there may be a million.
pub fn for_each_task(job: &v1::JobRecord, mut each: impl FnMut(&v1::JobRecord)) {
    let Some(together) = &job.array_pending else { return each(job) };
    let mut one = v1::JobRecord { array_pending: None, ..job.clone() };
    for index in index_set(together).iter() {
        one.array_index = Some(index);
        each(&one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(ranges: &[(u32, u32, u32)], throttle: Option<u32>) -> v1::JobRecord {
        let ranges = ranges.iter().map(|&(first, last, step)| v1::IndexRange { first, last, step }).collect();
        v1::JobRecord {
            id: 3,
            array_job: Some(3),
            array_pending: Some(v1::IndexSet { ranges }),
            array_throttle: throttle,
            state: "PENDING".into(),
            ..Default::default()
        }
    }

    #[test]
    fn ids_name_jobs_tasks_and_what_waits_of_an_array() {
        let plain = v1::JobRecord { id: 7, ..Default::default() };
        assert_eq!(id(&plain, 64), "7");
        let task = v1::JobRecord { id: 9, array_job: Some(3), array_index: Some(1), ..Default::default() };
        assert_eq!(id(&task, 64), "3_1");
        assert_eq!(id(&array(&[(2, 5, 1)], Some(2)), 64), "3_[2-5%2]");
        assert_eq!(id(&array(&[(1, 4, 1), (6, 6, 1)], None), 64), "3_[1-4,6]");
    }

    #[test]
    fn long_array_expressions_are_cut_at_a_comma() {
        let ranges: Vec<_> =
            [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17].iter().map(|n| n * 7 + n % 3).map(|n| (n, n, 1)).collect();
        let job = array(&ranges, Some(3));
        let cut = id(&job, 20);
        assert!(cut.ends_with(",...%3]"), "{cut}");
        assert!(cut.len() <= 20 + "3_[%3]".len(), "{cut}");
        assert!(!id(&job, 0).contains("..."));
    }

    #[test]
    fn waiting_tasks_split_into_one_record_each() {
        let mut ids = Vec::new();
        for_each_task(&array(&[(2, 5, 1)], Some(2)), |j| ids.push(id(j, 64)));
        assert_eq!(ids, ["3_2", "3_3", "3_4", "3_5"]);
    }

    #[test]
    fn named_tasks_are_shown_alone() {
        let job = array(&[(2, 5, 1)], Some(2));
        let of = |text| narrow(&job, &sluice_model::job_target::parse_list(text).unwrap()).map(|j| id(&j, 64));
        assert_eq!(of("3_4").as_deref(), Some("3_4"));
        assert_eq!(of("3_[1-3]").as_deref(), Some("3_[2-3%2]"));
        assert_eq!(of("3_2,3_5").as_deref(), Some("3_[2,5%2]"));
        assert_eq!((of("3"), of("3_4,3"), of("3_9"), of("7")), (None, None, None, None));
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(text(b"a\x1b[2Jb\n"), "a?[2Jb?");
        assert_eq!(&*crate::text::release(text(b"\xff\n").as_bytes()), b"\xff?");
    }
}
