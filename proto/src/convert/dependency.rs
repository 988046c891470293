//! `--dependency` expressions.

use super::error::ConvertError;
use super::{limits, scalar};
use crate::v1;
use sluice_model::dependency::{Dependency, DependencyKind, DependencyTarget, DependencyTerm};

// Wire numbers of the kinds. Only added to.
const AFTER: u32 = 1;
const AFTER_ANY: u32 = 2;
const AFTER_OK: u32 = 3;
const AFTER_NOT_OK: u32 = 4;
const AFTER_CORR: u32 = 5;
const SINGLETON: u32 = 6;

impl From<&DependencyTerm> for v1::DependencyTerm {
    fn from(term: &DependencyTerm) -> Self {
        let (kind, minutes) = match term.kind {
            DependencyKind::After { minutes } => (AFTER, minutes),
            DependencyKind::AfterAny => (AFTER_ANY, 0),
            DependencyKind::AfterOk => (AFTER_OK, 0),
            DependencyKind::AfterNotOk => (AFTER_NOT_OK, 0),
            DependencyKind::AfterCorr => (AFTER_CORR, 0),
            DependencyKind::Singleton => (SINGLETON, 0),
        };
        v1::DependencyTerm { kind, minutes, job: term.target.map(|t| t.job.0), task: term.target.and_then(|t| t.task) }
    }
}

impl TryFrom<v1::DependencyTerm> for DependencyTerm {
    type Error = ConvertError;
    fn try_from(message: v1::DependencyTerm) -> Result<Self, ConvertError> {
        let kind = match message.kind {
            AFTER => DependencyKind::After { minutes: message.minutes },
            AFTER_ANY => DependencyKind::AfterAny,
            AFTER_OK => DependencyKind::AfterOk,
            AFTER_NOT_OK => DependencyKind::AfterNotOk,
            AFTER_CORR => DependencyKind::AfterCorr,
            SINGLETON => DependencyKind::Singleton,
            other => return Err(ConvertError::new("kind", format!("is {other}, which is no kind of dependency"))),
        };
        if message.minutes != 0 && !matches!(kind, DependencyKind::After { .. }) {
            return Err(ConvertError::new("minutes", "only 'after' takes minutes"));
        }
        let target = match (kind, message.job, message.task) {
            (DependencyKind::Singleton, None, None) => None,
            (DependencyKind::Singleton, _, _) => return Err(ConvertError::new("job", "singleton names no job")),
            (_, Some(job), task) => Some(DependencyTarget { job: scalar::job_id(job, "job")?, task }),
            (_, None, _) => return Err(ConvertError::missing("job")),
        };
        Ok(DependencyTerm { kind, target })
    }
}

impl From<&Dependency> for v1::Dependency {
    fn from(dependency: &Dependency) -> Self {
        v1::Dependency { any: dependency.any, terms: dependency.terms.iter().map(Into::into).collect() }
    }
}

impl TryFrom<v1::Dependency> for Dependency {
    type Error = ConvertError;
    fn try_from(message: v1::Dependency) -> Result<Self, ConvertError> {
        if message.terms.is_empty() {
            return Err(ConvertError::missing("terms"));
        }
        let terms = scalar::list(message.terms, "terms", limits::DEPENDENCY_TERMS)?;
        Ok(Dependency { any: message.any, terms })
    }
}
