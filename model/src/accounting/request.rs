//! What `sacctmgr` asks for: additions, changes and removals of accounts, users, QOS and their associations, and the
//! answer that says what they come to. Parsed and printed by the command, judged and carried out by the engine.

use super::association::{AdminLevel, AssocId, Association, QosAccess, Shares, User};
use super::counts::TresChange;
use super::limits::{CountLimit, Limits, TresLimit};
use super::qos::{Factor, PreemptMode, Qos, QosFlag};
use std::collections::{BTreeMap, BTreeSet};

/// `=`, `+=` or `-=` on a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListEdit {
    Set(BTreeSet<String>),
    Add(BTreeSet<String>),
    Remove(BTreeSet<String>),
}

impl ListEdit {
    pub fn names(&self) -> &BTreeSet<String> {
        match self {
            ListEdit::Set(names) | ListEdit::Add(names) | ListEdit::Remove(names) => names,
        }
    }

    pub fn apply(&self, list: &mut BTreeSet<String>) {
        match self {
            ListEdit::Set(names) => list.clone_from(names),
            ListEdit::Add(names) => list.extend(names.iter().cloned()),
            ListEdit::Remove(names) => list.retain(|n| !names.contains(n)),
        }
    }
}

/// Limits to set; None (and, for resources, a count of None) takes one away.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LimitsChange {
    pub counts: BTreeMap<CountLimit, Option<u32>>,
    pub tres: BTreeMap<TresLimit, TresChange>,
}

impl LimitsChange {
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.tres.is_empty()
    }

    pub fn apply(&self, limits: &mut Limits) {
        for (limit, value) in &self.counts {
            limits.set_count(*limit, *value);
        }
        for (limit, change) in &self.tres {
            limits.change_tres(*limit, change);
        }
    }
}

/// Changes of an association; what is None stays. An inner None goes back to the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AssocChange {
    pub shares: Option<Option<Shares>>,
    pub priority: Option<Option<u32>>,
    pub limits: LimitsChange,
    /// One after the other. `Set` to nothing: what the parent may use.
    pub qos: Vec<ListEdit>,
    pub default_qos: Option<Option<String>>,
    pub comment: Option<String>,
}

impl AssocChange {
    pub fn is_empty(&self) -> bool {
        *self == AssocChange::default()
    }

    pub fn apply(&self, a: &mut Association) {
        if let Some(shares) = self.shares {
            a.shares = shares.unwrap_or_default();
        }
        if let Some(priority) = self.priority {
            a.priority = priority;
        }
        self.limits.apply(&mut a.limits);
        for edit in &self.qos {
            match edit {
                ListEdit::Set(names) if names.is_empty() => a.qos = QosAccess::default(),
                ListEdit::Set(names) => a.qos = QosAccess::Only(names.clone()),
                ListEdit::Add(names) => a.qos.add(names),
                ListEdit::Remove(names) => a.qos.remove(names),
            }
        }
        if let Some(default) = &self.default_qos {
            a.default_qos.clone_from(default);
        }
        if let Some(comment) = &self.comment {
            a.comment.clone_from(comment);
        }
    }
}

/// Changes of a user; what is None stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UserChange {
    pub admin_level: Option<AdminLevel>,
    pub default_account: Option<String>,
    pub default_wckey: Option<String>,
    pub wckeys: Vec<ListEdit>,
}

impl UserChange {
    pub fn is_empty(&self) -> bool {
        *self == UserChange::default()
    }

    /// A default wckey is one of the user's.
    pub fn apply(&self, u: &mut User) {
        if let Some(level) = self.admin_level {
            u.admin_level = level;
        }
        if let Some(account) = &self.default_account {
            u.default_account = Some(account.clone());
        }
        for edit in &self.wckeys {
            edit.apply(&mut u.wckeys);
        }
        if let Some(key) = &self.default_wckey {
            u.wckeys.insert(key.clone());
            u.default_wckey = Some(key.clone());
        }
        if u.default_wckey.as_ref().is_some_and(|k| !u.wckeys.contains(k)) {
            u.default_wckey = None;
        }
    }
}

/// Changes of an account; what is None stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountChange {
    pub description: Option<String>,
    pub organization: Option<String>,
    pub parent: Option<String>,
}

/// Changes of a QOS; what is None stays. An inner None goes back to the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QosChange {
    pub description: Option<String>,
    pub priority: Option<u32>,
    /// `flags=`, `+=`, `-=`: names as `QosFlag::as_str` gives them.
    pub flags: Vec<ListEdit>,
    pub grace_secs: Option<u32>,
    pub preempt: Vec<ListEdit>,
    pub preempt_mode: Option<PreemptMode>,
    pub preempt_within: Option<bool>,
    pub preempt_exempt_secs: Option<Option<u32>>,
    pub usage_factor: Option<Factor>,
    pub usage_threshold: Option<Option<Factor>>,
    pub limit_factor: Option<Option<Factor>>,
    pub limits: LimitsChange,
}

impl QosChange {
    pub fn is_empty(&self) -> bool {
        *self == QosChange::default()
    }

    pub fn apply(&self, q: &mut Qos) {
        if let Some(text) = &self.description {
            q.description.clone_from(text);
        }
        q.priority = self.priority.unwrap_or(q.priority);
        let mut flags: BTreeSet<String> = q.flags.iter().map(|f| f.as_str().to_owned()).collect();
        self.flags.iter().for_each(|edit| edit.apply(&mut flags));
        q.flags = flags.iter().filter_map(|f| QosFlag::parse(f)).collect();
        q.grace_secs = self.grace_secs.unwrap_or(q.grace_secs);
        self.preempt.iter().for_each(|edit| edit.apply(&mut q.preempt));
        q.preempt_mode = self.preempt_mode.unwrap_or(q.preempt_mode);
        q.preempt_within = self.preempt_within.unwrap_or(q.preempt_within);
        q.preempt_exempt_secs = self.preempt_exempt_secs.unwrap_or(q.preempt_exempt_secs);
        q.usage_factor = self.usage_factor.unwrap_or(q.usage_factor);
        q.usage_threshold = self.usage_threshold.unwrap_or(q.usage_threshold);
        q.limit_factor = self.limit_factor.unwrap_or(q.limit_factor);
        self.limits.apply(&mut q.limits);
    }
}

/// Which associations are meant. An empty list is no condition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AssocFilter {
    pub users: Vec<String>,
    pub accounts: Vec<String>,
    pub partitions: Vec<String>,
}

impl AssocFilter {
    /// Whether account and partition are among those meant.
    pub fn fits(&self, a: &Association) -> bool {
        let among = |list: &[String], name: Option<&String>| {
            list.is_empty() || name.is_some_and(|n| list.iter().any(|l| l == n))
        };
        among(&self.accounts, Some(&a.account))
            && among(&self.partitions, a.partition.as_ref())
            && among(&self.users, a.user.as_ref())
    }
}

/// A change of who may use what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AccountingRequest {
    /// `account.parent` None: root.
    AddAccounts {
        names: Vec<String>,
        account: AccountChange,
        assoc: AssocChange,
    },
    /// Each user in each account (and for each partition, when some are named). No accounts: only wckeys.
    AddUsers {
        names: Vec<String>,
        accounts: Vec<String>,
        partitions: Vec<String>,
        user: UserChange,
        assoc: AssocChange,
    },
    AddQos {
        names: Vec<String>,
        qos: QosChange,
    },
    AddCoordinators {
        accounts: Vec<String>,
        users: Vec<String>,
    },
    ModifyAccounts {
        names: Vec<String>,
        account: AccountChange,
        assoc: AssocChange,
    },
    ModifyUsers {
        filter: AssocFilter,
        user: UserChange,
        assoc: AssocChange,
    },
    ModifyQos {
        names: Vec<String>,
        qos: QosChange,
    },
    /// The association at the root, whose limits all others have that set none.
    ModifyCluster {
        assoc: AssocChange,
    },
    /// With all accounts below them.
    RemoveAccounts {
        names: Vec<String>,
    },
    /// With accounts or partitions in the filter only those associations, else the users themselves.
    RemoveUsers {
        filter: AssocFilter,
    },
    RemoveQos {
        names: Vec<String>,
    },
    RemoveCoordinators {
        accounts: Vec<String>,
        users: Vec<String>,
    },
    /// One after the other, all or none; not nested.
    All {
        requests: Vec<AccountingRequest>,
    },
}

/// An association in words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AssocName {
    pub id: AssocId,
    pub account: String,
    /// Of an account: the one above.
    pub parent: Option<String>,
    pub user: Option<String>,
    pub partition: Option<String>,
}

/// What was (or would be) added, changed or removed, in the order asked for. All empty: nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccountingReport {
    pub accounts: Vec<String>,
    pub users: Vec<String>,
    pub qos: Vec<String>,
    pub associations: Vec<AssocName>,
    /// (user, account)
    pub coordinators: Vec<(String, String)>,
}

impl AccountingReport {
    pub fn is_empty(&self) -> bool {
        *self == AccountingReport::default()
    }

    pub fn merge(&mut self, more: AccountingReport) {
        self.accounts.extend(more.accounts);
        self.users.extend(more.users);
        self.qos.extend(more.qos);
        self.associations.extend(more.associations);
        self.coordinators.extend(more.coordinators);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{NORMAL_QOS, parse_change};
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn an_associations_qos_list_is_set_extended_and_given_back() {
        let mut a = Association::new(AssocId(5), "chem", Some("eve"));
        let change = |qos| AssocChange { qos: vec![qos], ..AssocChange::default() };
        change(ListEdit::Add(set(&["high"]))).apply(&mut a);
        assert_eq!(a.qos.resolve(&set(&[NORMAL_QOS])), set(&["high", NORMAL_QOS]));
        change(ListEdit::Set(set(&["low"]))).apply(&mut a);
        assert_eq!(a.qos.resolve(&set(&[NORMAL_QOS])), set(&["low"]));
        change(ListEdit::Set(set(&[]))).apply(&mut a);
        assert_eq!(a.qos, QosAccess::default());
    }

    #[test]
    fn minus_one_gives_the_default_back() {
        let mut a = Association::new(AssocId(5), "chem", None);
        let mut change = AssocChange { shares: Some(Some(Shares::Number(50))), ..AssocChange::default() };
        change.limits.counts.insert(CountLimit::MaxJobs, Some(2));
        change.limits.tres.insert(TresLimit::Grp, parse_change("cpu=3").unwrap());
        change.apply(&mut a);
        assert_eq!((a.shares, a.limits.count(CountLimit::MaxJobs)), (Shares::Number(50), Some(2)));
        let mut change = AssocChange { shares: Some(None), ..AssocChange::default() };
        change.limits.counts.insert(CountLimit::MaxJobs, None);
        change.limits.tres.insert(TresLimit::Grp, parse_change("cpu=-1").unwrap());
        change.apply(&mut a);
        assert_eq!(a, Association::new(AssocId(5), "chem", None));
    }

    #[test]
    fn a_default_wckey_goes_with_its_key() {
        let mut u = User {
            name: "eve".to_owned(),
            admin_level: AdminLevel::None,
            default_account: None,
            default_wckey: None,
            wckeys: BTreeSet::new(),
        };
        UserChange { default_wckey: Some("k".to_owned()), ..UserChange::default() }.apply(&mut u);
        assert_eq!((u.default_wckey.as_deref(), u.wckeys.len()), (Some("k"), 1));
        UserChange { wckeys: vec![ListEdit::Remove(set(&["k"]))], ..UserChange::default() }.apply(&mut u);
        assert_eq!((u.default_wckey.as_deref(), u.wckeys.len()), (None, 0));
    }

    #[test]
    fn flags_of_a_qos_are_added_and_taken_away() {
        let mut q = Qos::new(2, "gold");
        QosChange { flags: vec![ListEdit::Set(set(&["DenyOnLimit", "NoDecay"]))], ..QosChange::default() }
            .apply(&mut q);
        QosChange { flags: vec![ListEdit::Remove(set(&["NoDecay"]))], ..QosChange::default() }.apply(&mut q);
        assert_eq!(q.flags, [QosFlag::DenyOnLimit].into());
    }
}
