//! `--dependency` expressions: types, parser, printers. The forms are those of sbatch's manual page.

use crate::error::{ParseError, digits};
use crate::ids::JobId;
use std::collections::BTreeSet;
use std::fmt;

/// What one term waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DependencyKind {
    /// Started (or cancelled), plus minutes.
    After {
        minutes: u32,
    },
    AfterAny,
    AfterOk,
    AfterNotOk,
    /// Each array task waits for the task of the same index.
    AfterCorr,
    /// No other job of this name and user.
    Singleton,
}

/// Which job, or which task of an array (`12_3`), or all tasks of it (`12_*`, `12`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DependencyTarget {
    pub job: JobId,
    pub task: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DependencyTerm {
    pub kind: DependencyKind,
    /// None only for `Singleton`.
    pub target: Option<DependencyTarget>,
}

/// Terms joined by `,` (all) or by `?` (any). Never empty.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dependency {
    pub any: bool,
    pub terms: Vec<DependencyTerm>,
}

/// More terms than this can't be meant, and every one costs the controller a look at each end of a job.
const MAX_TERMS: usize = 10_000;
const ALLOWED: &str = "afterok, afternotok, afterany, aftercorr or after with :job[:job…] (after:job+minutes), or \
                       singleton, joined by , (all) or by ? (any)";

/// `afterok:12:13,afterany:14_3`, `after:1+5?singleton`. A bare job id counts as `afterany` (the default type).
/// What is said twice counts once.
pub fn parse(text: &str) -> Result<Dependency, ParseError> {
    let fail = |allowed: &str| ParseError::new("dependency", text, allowed);
    let any = text.contains('?');
    if any && text.contains(',') {
        return Err(fail("either , or ? may join the parts, not both"));
    }
    let mut terms = Vec::new();
    let mut seen = BTreeSet::new();
    for part in text.split(if any { '?' } else { ',' }) {
        parse_part(part, &mut seen, &mut terms).map_err(|allowed| fail(&allowed))?;
        if terms.len() > MAX_TERMS {
            return Err(fail(&format!("at most {MAX_TERMS} jobs may be named")));
        }
    }
    Ok(Dependency { any, terms })
}

fn parse_part(part: &str, seen: &mut BTreeSet<DependencyTerm>, terms: &mut Vec<DependencyTerm>) -> Result<(), String> {
    if part == "singleton" {
        let term = DependencyTerm { kind: DependencyKind::Singleton, target: None };
        if seen.insert(term) {
            terms.push(term);
        }
        return Ok(());
    }
    let (word, jobs) = match part.split_once(':') {
        Some(split) => split,
        None if part.starts_with(|c: char| c.is_ascii_digit()) => ("afterany", part),
        None => return Err(ALLOWED.into()),
    };
    let kind = match word {
        "after" => DependencyKind::After { minutes: 0 },
        "afterany" => DependencyKind::AfterAny,
        "afterok" => DependencyKind::AfterOk,
        "afternotok" => DependencyKind::AfterNotOk,
        "aftercorr" => DependencyKind::AfterCorr,
        "afterburstbuffer" | "expand" => return Err(format!("'{word}' is not supported")),
        _ => return Err(ALLOWED.into()),
    };
    for job in jobs.split(':') {
        let bad = || format!("'{}' is no job id", job.chars().take(40).collect::<String>());
        let (id, kind) = match (job.split_once('+'), kind) {
            (Some((id, m)), DependencyKind::After { .. }) => {
                let minutes = digits(m, u64::from(u32::MAX / 60)).ok_or_else(bad)? as u32;
                (id, DependencyKind::After { minutes })
            }
            (Some(_), _) => return Err("+minutes goes with 'after' only".into()),
            (None, kind) => (job, kind),
        };
        let term = DependencyTerm { kind, target: Some(parse_target(id).ok_or_else(bad)?) };
        if seen.insert(term) {
            terms.push(term);
        }
    }
    Ok(())
}

/// `12`, `12_3`, `12_*`.
fn parse_target(text: &str) -> Option<DependencyTarget> {
    let (job, task) = match text.split_once('_') {
        Some((job, "*")) => (job, None),
        Some((job, task)) => (job, Some(digits(task, u64::from(u32::MAX) - 2)? as u32)),
        None => (text, None),
    };
    let job = digits(job, u64::from(u32::MAX)).filter(|j| *j > 0)? as u32;
    Some(DependencyTarget { job: JobId(job), task })
}

impl DependencyKind {
    /// `afterok`; without the minutes of `after`.
    pub fn as_str(self) -> &'static str {
        match self {
            DependencyKind::After { .. } => "after",
            DependencyKind::AfterAny => "afterany",
            DependencyKind::AfterOk => "afterok",
            DependencyKind::AfterNotOk => "afternotok",
            DependencyKind::AfterCorr => "aftercorr",
            DependencyKind::Singleton => "singleton",
        }
    }
}

impl fmt::Display for DependencyTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}_{task}", self.job),
            None => write!(f, "{}", self.job),
        }
    }
}

impl fmt::Display for DependencyTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        if let Some(target) = self.target {
            write!(f, ":{target}")?;
        }
        match self.kind {
            DependencyKind::After { minutes } if minutes > 0 => write!(f, "+{minutes}"),
            _ => Ok(()),
        }
    }
}

/// The form that `parse` reads: `afterok:12,afterok:13`.
impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |_| "")
    }
}

impl Dependency {
    /// Slurm's form with each term's state, `afterok:12(unfulfilled),singleton(unfulfilled)`; `state` gives the word
    /// (`unfulfilled`, `failed`), an empty one is left out.
    pub fn with_states(&self, state: impl Fn(&DependencyTerm) -> &'static str) -> String {
        struct With<'a, F>(&'a Dependency, F);
        impl<F: Fn(&DependencyTerm) -> &'static str> fmt::Display for With<'_, F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f, &self.1)
            }
        }
        With(self, state).to_string()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, state: impl Fn(&DependencyTerm) -> &'static str) -> fmt::Result {
        for (i, term) in self.terms.iter().enumerate() {
            if i > 0 {
                f.write_str(if self.any { "?" } else { "," })?;
            }
            write!(f, "{term}")?;
            match state(term) {
                "" => {}
                word => write!(f, "({word})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_printed() {
        for (text, same) in [
            ("afterok:20:21,afterany:23", "afterok:20,afterok:21,afterany:23"),
            ("afterok:20:21?afterany:23", "afterok:20?afterok:21?afterany:23"),
            ("after:1+5", "after:1+5"),
            ("after:1+5:2", "after:1+5,after:2"),
            ("afternotok:7_3", "afternotok:7_3"),
            ("aftercorr:7_*", "aftercorr:7"),
            ("singleton", "singleton"),
            ("20", "afterany:20"),
            ("afterok:1:1,afterok:1", "afterok:1"),
            ("singleton,afterok:2", "singleton,afterok:2"),
        ] {
            let d = parse(text).unwrap();
            assert_eq!(d.to_string(), same);
            assert_eq!(parse(same).unwrap(), d);
        }
    }

    #[test]
    fn states_follow_each_term_as_in_scontrol_show_job() {
        let d = parse("afterok:12:13,singleton").unwrap();
        let text = d.with_states(|t| if t.target.is_some_and(|t| t.job.0 == 13) { "failed" } else { "unfulfilled" });
        assert_eq!(text, "afterok:12(unfulfilled),afterok:13(failed),singleton(unfulfilled)");
    }

    #[test]
    fn what_can_not_be_meant_is_refused() {
        let many = format!("afterok{}", (1..20_000).map(|n| format!(":{n}")).collect::<String>());
        for bad in [
            "",
            "afterok",
            "afterok:",
            "afterok:0",
            "afterok:x",
            "afterok:1,",
            "afterok:1?singleton,after:2",
            "foo:1",
            "afterok:1+5",
            "after:1+",
            "afterok:99999999999",
            "afterok:-1",
            "afterok:1_x",
            "afterburstbuffer:1",
            "expand:1",
            "singleton:1",
            &many,
        ] {
            assert!(parse(bad).is_err(), "{bad:.40}");
        }
        assert!(parse("expand:1").unwrap_err().to_string().contains("'expand' is not supported"));
    }
}
