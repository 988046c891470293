//! Accounts, users, and the associations between them: a tree whose inner nodes are accounts and whose leaves are users
//! in accounts, possibly for one partition alone.

use super::limits::Limits;
use super::{NORMAL_QOS, ROOT};
use std::collections::BTreeSet;
use std::fmt;

/// An association's number; never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssocId(pub u32);

impl fmt::Display for AssocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A bank account. Its place in the tree and its limits are its association's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    pub name: String,
    pub description: String,
    pub organization: String,
    /// The account above; None for root alone.
    pub parent: Option<String>,
    /// Users who manage this account and all below it.
    pub coordinators: BTreeSet<String>,
}

/// What a user may administer beyond what the configuration says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum AdminLevel {
    #[default]
    None,
    Operator,
    Administrator,
}

impl AdminLevel {
    /// `None`, `Operator`, `Admin`, `Administrator`, in any case; beginnings will do, as in Slurm.
    pub fn parse(text: &str) -> Option<AdminLevel> {
        let lower = text.to_ascii_lowercase();
        let is = |word: &str| !lower.is_empty() && word.starts_with(&lower);
        if is("none") {
            Some(AdminLevel::None)
        } else if is("operator") {
            Some(AdminLevel::Operator)
        } else if is("administrator") || is("superuser") {
            Some(AdminLevel::Administrator)
        } else {
            None
        }
    }
    pub fn as_str(self) -> &'static str {
        match self {
            AdminLevel::None => "None",
            AdminLevel::Operator => "Operator",
            AdminLevel::Administrator => "Administrator",
        }
    }
    /// Stable on the wire and on disk.
    pub fn code(self) -> u32 {
        self as u32
    }
    pub fn from_code(code: u32) -> Option<AdminLevel> {
        [AdminLevel::None, AdminLevel::Operator, AdminLevel::Administrator].into_iter().find(|l| l.code() == code)
    }
}

/// A person as the operating system calls them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub name: String,
    pub admin_level: AdminLevel,
    /// For jobs that name no account: one that the user has an association in.
    pub default_account: Option<String>,
    pub default_wckey: Option<String>,
    pub wckeys: BTreeSet<String>,
}

/// Part of the parent's share of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shares {
    /// Weight among its siblings.
    Number(u32),
    /// `parent`: no share of its own; for fair-share it counts as its parent.
    Parent,
}

impl Default for Shares {
    fn default() -> Self {
        Shares::Number(1)
    }
}

impl Shares {
    /// A number below 2,147,483,647, or `parent`, for which Slurm's dumps write that number.
    pub fn parse(text: &str) -> Option<Shares> {
        if text.eq_ignore_ascii_case("parent") || text == "2147483647" {
            return Some(Shares::Parent);
        }
        crate::error::digits(text, u64::from(u32::MAX / 2)).map(|n| Shares::Number(n as u32))
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shares::Number(n) => f.pad(&n.to_string()),
            Shares::Parent => f.pad("parent"),
        }
    }
}

/// Which QOS jobs of an association may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum QosAccess {
    /// Exactly these (`qos=a,b`); handed down.
    Only(BTreeSet<String>),
    /// What the parent may use, with (`qos+=`) and without (`qos-=`) these.
    Inherited { added: BTreeSet<String>, removed: BTreeSet<String> },
}

impl Default for QosAccess {
    fn default() -> Self {
        QosAccess::Inherited { added: BTreeSet::new(), removed: BTreeSet::new() }
    }
}

impl QosAccess {
    /// What it comes to below a parent that may use `parent`.
    pub fn resolve(&self, parent: &BTreeSet<String>) -> BTreeSet<String> {
        match self {
            QosAccess::Only(list) => list.clone(),
            QosAccess::Inherited { added, removed } => {
                parent.iter().chain(added).filter(|q| !removed.contains(*q)).cloned().collect()
            }
        }
    }

    pub fn add(&mut self, names: &BTreeSet<String>) {
        match self {
            QosAccess::Only(list) => list.extend(names.iter().cloned()),
            QosAccess::Inherited { added, removed } => {
                removed.retain(|q| !names.contains(q));
                added.extend(names.iter().cloned());
            }
        }
    }

    pub fn remove(&mut self, names: &BTreeSet<String>) {
        match self {
            QosAccess::Only(list) => list.retain(|q| !names.contains(q)),
            QosAccess::Inherited { added, removed } => {
                added.retain(|q| !names.contains(q));
                removed.extend(names.iter().cloned());
            }
        }
    }

    /// A QOS that no longer exists.
    pub fn forget(&mut self, name: &str) -> bool {
        match self {
            QosAccess::Only(list) => list.remove(name),
            QosAccess::Inherited { added, removed } => added.remove(name) | removed.remove(name),
        }
    }
}

/// An account (no user) or a user in an account, with what holds for its jobs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Association {
    pub id: AssocId,
    pub account: String,
    pub user: Option<String>,
    /// Only for jobs in this partition.
    pub partition: Option<String>,
    pub shares: Shares,
    /// Added to a job's priority (with its weight).
    pub priority: Option<u32>,
    /// As set here; what holds is these and the inherited ones.
    pub limits: Limits,
    pub qos: QosAccess,
    pub default_qos: Option<String>,
    pub comment: String,
}

impl Association {
    /// With Slurm's defaults: one share, nothing limited, the parent's QOS.
    pub fn new(id: AssocId, account: &str, user: Option<&str>) -> Association {
        Association {
            id,
            account: account.to_owned(),
            user: user.map(str::to_owned),
            partition: None,
            shares: Shares::default(),
            priority: None,
            limits: Limits::default(),
            qos: QosAccess::default(),
            default_qos: None,
            comment: String::new(),
        }
    }

    /// The top of the tree as it is on a new cluster.
    pub fn root() -> Association {
        let qos = QosAccess::Only([NORMAL_QOS.to_owned()].into());
        Association { qos, ..Association::new(AssocId(1), ROOT, None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn added_and_removed_qos_follow_the_parents() {
        let mut access = QosAccess::default();
        access.add(&set(&["high"]));
        access.remove(&set(&["normal"]));
        assert_eq!(access.resolve(&set(&["normal", "low"])), set(&["high", "low"]));
        access.add(&set(&["normal"]));
        assert_eq!(access.resolve(&set(&["normal"])), set(&["high", "normal"]));
        let mut only = QosAccess::Only(set(&["a"]));
        only.add(&set(&["b"]));
        only.remove(&set(&["a"]));
        assert_eq!(only.resolve(&set(&["normal"])), set(&["b"]));
        assert!(only.forget("b"));
    }

    #[test]
    fn shares_and_levels_are_read_as_sacctmgr_reads_them() {
        assert_eq!(Shares::parse("PARENT"), Some(Shares::Parent));
        assert_eq!(Shares::parse("2147483647"), Some(Shares::Parent));
        assert_eq!(Shares::parse("50"), Some(Shares::Number(50)));
        assert_eq!(Shares::parse("-5"), None);
        assert_eq!(AdminLevel::parse("admin"), Some(AdminLevel::Administrator));
        assert_eq!(AdminLevel::parse("oper"), Some(AdminLevel::Operator));
        assert_eq!(AdminLevel::parse("king"), None);
    }
}
