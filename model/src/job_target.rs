//! Which job, array task or step a user names: `12`, `12_3`, `12_[1-4,7]`, `12.0`, `12_3.batch`.

use crate::error::{ParseError, digits};
use crate::ids::{JobId, StepId};
use crate::index_set::IndexSet;
use std::fmt;

/// A job, some tasks of an array, or one step of a job or task.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JobTarget {
    pub job: JobId,
    /// None: the whole job. Never an empty set.
    pub tasks: Option<IndexSet>,
    pub step: Option<StepId>,
}

impl JobTarget {
    pub fn job(id: JobId) -> Self {
        JobTarget { job: id, tasks: None, step: None }
    }
    /// The task when exactly one is named.
    pub fn task(&self) -> Option<u32> {
        self.tasks.as_ref().filter(|t| t.len() == 1).and_then(IndexSet::first)
    }
}

/// `12_*` means all tasks, as `12` does. A `%limit` inside the brackets, as squeue prints it, is ignored.
pub fn parse(text: &str) -> Result<JobTarget, ParseError> {
    let fail = || ParseError::new("job id", text, "12, 12_3, 12_[1-4,7], or with a step: 12.0, 12_3.batch");
    let (job, step) = match text.split_once('.') {
        Some((job, step)) => (job, Some(parse_step(step).ok_or_else(fail)?)),
        None => (text, None),
    };
    let (job, tasks) = match job.split_once('_') {
        Some((job, "*" | "[*]")) => (job, None),
        Some((job, list)) => {
            let (list, many) = match list.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                Some(inner) => (inner.split_once('%').map_or(inner, |(l, _)| l), true),
                None => (list, false),
            };
            let set = IndexSet::parse(list, u32::MAX - 1).map_err(|_| fail())?.0;
            // Without brackets Slurm takes one index; several would be cut apart at the comma of the id list.
            if !many && set.len() != 1 {
                return Err(fail());
            }
            (job, Some(set))
        }
        None => (job, None),
    };
    let job = digits(job, u64::from(u32::MAX)).filter(|j| *j > 0).ok_or_else(fail)? as u32;
    Ok(JobTarget { job: JobId(job), tasks, step })
}

/// Targets with commas between, as `squeue -j` and `sacct -j` take them: `12,13_[1,2],14.0`. Empty parts are dropped.
pub fn parse_list(text: &str) -> Result<Vec<JobTarget>, ParseError> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0);
    for (i, b) in text.bytes().chain([b',']).enumerate() {
        match b {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b',' if depth == 0 || i == text.len() => {
                let part = text[start..i].trim();
                if !part.is_empty() {
                    out.push(parse(part)?);
                }
                start = i + 1;
            }
            _ => {}
        }
    }
    Ok(out)
}

/// `0`, `batch`, `extern`, `interactive`.
pub fn parse_step(text: &str) -> Option<StepId> {
    match text.to_ascii_lowercase().as_str() {
        "batch" => Some(StepId::Batch),
        "extern" => Some(StepId::Extern),
        "interactive" => Some(StepId::Interactive),
        // Larger numbers are the reserved ones.
        n => digits(n, 0xffff_fff0).map(|n| StepId::Numbered(n as u32)),
    }
}

impl fmt::Display for JobTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.job)?;
        match (&self.tasks, self.task()) {
            (_, Some(one)) => write!(f, "_{one}")?,
            (Some(set), None) => write!(f, "_[{set}]")?,
            (None, None) => {}
        }
        self.step.map_or(Ok(()), |s| write!(f, ".{s}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_tasks_and_steps_are_read_and_printed() {
        for (text, same) in [
            ("12", "12"),
            ("12_3", "12_3"),
            ("12_[1-4,7]", "12_[1-4,7]"),
            ("12_[2-5%2]", "12_[2-5]"),
            ("12_*", "12"),
            ("12.0", "12.0"),
            ("12.batch", "12.batch"),
            ("12_3.0", "12_3.0"),
            ("12.Extern", "12.extern"),
        ] {
            let t = parse(text).unwrap();
            assert_eq!(t.to_string(), same);
            assert_eq!(parse(same).unwrap(), t);
        }
        assert_eq!(parse("12_3").unwrap().task(), Some(3));
        assert_eq!(parse("12_[1-2]").unwrap().task(), None);
    }

    #[test]
    fn lists_keep_brackets_together_and_drop_empty_parts() {
        let list = parse_list("7,7,,12_[1,2].0, 9 ").unwrap();
        assert_eq!(list.iter().map(ToString::to_string).collect::<Vec<_>>(), ["7", "7", "12_[1-2].0", "9"]);
        assert!(parse_list("7,x").is_err());
        assert!(parse_list("7,12_[1,2").is_err());
        assert!(parse_list("]7,8[").is_err());
        assert!(parse_list("").unwrap().is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [
            "",
            "0",
            "abc",
            "-1",
            "12_",
            "12_1,2",
            "12_[]",
            "12.",
            "12.x",
            "12.4294967295",
            "12_3_4",
            "99999999999",
            "1e3",
            "12_[0-99999999999]",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
