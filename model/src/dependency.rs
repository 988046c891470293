//! `--dependency` expressions.

use crate::ids::JobId;

/// What one term waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DependencyKind {
    /// Started (or cancelled), plus minutes.
    After { minutes: u32 },
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
