//! Accounts, users, associations, QOS and their limits.

use super::error::{ConvertError, Within};
use super::limits;
use super::scalar::{check_len, name, optional, required, text, word};
use crate::v1;
use sluice_model::accounting::{
    Account, AdminLevel, AssocId, Association, CountLimit, Factor, Limits, PreemptMode, Qos, QosAccess, QosFlag,
    Shares, TresCounts, TresKind, TresLimit, User,
};
use std::collections::BTreeSet;

type Result<T> = std::result::Result<T, ConvertError>;

/// Names of one list.
const NAMES: usize = 100_000;

pub(super) fn names<C: FromIterator<String>>(values: Vec<String>, field: &str) -> Result<C> {
    check_len(values.len(), field, NAMES, "names")?;
    values.into_iter().map(|n| name(n, field)).collect()
}

fn list(values: &BTreeSet<String>) -> Vec<String> {
    values.iter().cloned().collect()
}

pub(super) fn tres_kind(value: &str, field: &str) -> Result<TresKind> {
    TresKind::parse(value).ok_or_else(|| {
        let shown: String = value.chars().take(60).collect();
        ConvertError::new(field, format!("{shown:?} is no trackable resource"))
    })
}

pub(super) fn unknown(field: &str, number: u32) -> ConvertError {
    ConvertError::new(field, format!("is {number}, which this release does not know"))
}

impl From<&Limits> for v1::Limits {
    fn from(l: &Limits) -> Self {
        let Limits { counts, tres } = l;
        let count = |(limit, value): (&CountLimit, &u32)| v1::CountLimit { limit: limit.code(), value: *value };
        let one = |(kind, count): (&TresKind, &u64)| v1::TresCount { tres: kind.to_string(), count: *count };
        let of = |(limit, counts): (&TresLimit, &TresCounts)| v1::TresLimit {
            limit: limit.code(),
            counts: counts.iter().map(one).collect(),
        };
        v1::Limits { counts: counts.iter().map(count).collect(), tres: tres.iter().map(of).collect() }
    }
}

impl TryFrom<v1::Limits> for Limits {
    type Error = ConvertError;
    fn try_from(m: v1::Limits) -> Result<Self> {
        let mut l = Limits::default();
        for c in m.counts {
            let limit = CountLimit::from_code(c.limit).ok_or_else(|| unknown("counts.limit", c.limit))?;
            l.counts.insert(limit, c.value);
        }
        for t in m.tres {
            let limit = TresLimit::from_code(t.limit).ok_or_else(|| unknown("tres.limit", t.limit))?;
            check_len(t.counts.len(), "tres.counts", limits::LIST, "items")?;
            let counts: TresCounts = t
                .counts
                .into_iter()
                .map(|c| Ok((tres_kind(&c.tres, "tres.counts.tres")?, c.count)))
                .collect::<Result<_>>()?;
            if !counts.is_empty() {
                l.tres.insert(limit, counts);
            }
        }
        Ok(l)
    }
}

impl From<&Account> for v1::Account {
    fn from(a: &Account) -> Self {
        let Account { name, description, organization, parent, coordinators } = a;
        v1::Account {
            name: name.clone(),
            description: description.clone(),
            organization: organization.clone(),
            parent: parent.clone(),
            coordinators: list(coordinators),
        }
    }
}

impl TryFrom<v1::Account> for Account {
    type Error = ConvertError;
    fn try_from(m: v1::Account) -> Result<Self> {
        Ok(Account {
            name: name(m.name, "name")?,
            description: text(m.description, "description", limits::TEXT)?,
            organization: text(m.organization, "organization", limits::TEXT)?,
            parent: m.parent.map(|p| name(p, "parent")).transpose()?,
            coordinators: names(m.coordinators, "coordinators")?,
        })
    }
}

impl From<&User> for v1::AccountingUser {
    fn from(u: &User) -> Self {
        let User { name, admin_level, default_account, default_wckey, wckeys } = u;
        v1::AccountingUser {
            name: name.clone(),
            admin_level: admin_level.code(),
            default_account: default_account.clone(),
            default_wckey: default_wckey.clone(),
            wckeys: list(wckeys),
        }
    }
}

impl TryFrom<v1::AccountingUser> for User {
    type Error = ConvertError;
    fn try_from(m: v1::AccountingUser) -> Result<Self> {
        Ok(User {
            name: name(m.name, "name")?,
            admin_level: AdminLevel::from_code(m.admin_level).ok_or_else(|| unknown("admin_level", m.admin_level))?,
            default_account: m.default_account.map(|a| name(a, "default_account")).transpose()?,
            default_wckey: m.default_wckey.map(|k| name(k, "default_wckey")).transpose()?,
            wckeys: names(m.wckeys, "wckeys")?,
        })
    }
}

impl From<&Shares> for v1::Shares {
    fn from(s: &Shares) -> Self {
        use v1::shares::Kind;
        let kind = match *s {
            Shares::Number(n) => Kind::Number(n),
            Shares::Parent => Kind::Parent(true),
        };
        v1::Shares { kind: Some(kind) }
    }
}

impl TryFrom<v1::Shares> for Shares {
    type Error = ConvertError;
    fn try_from(m: v1::Shares) -> Result<Self> {
        use v1::shares::Kind;
        match m.kind {
            Some(Kind::Number(n)) => Ok(Shares::Number(n)),
            Some(Kind::Parent(true)) => Ok(Shares::Parent),
            Some(Kind::Parent(false)) | None => Err(ConvertError::new("", "holds no shares")),
        }
    }
}

impl From<&QosAccess> for v1::QosAccess {
    fn from(q: &QosAccess) -> Self {
        match q {
            QosAccess::Only(names) => v1::QosAccess { names: list(names), ..v1::QosAccess::default() },
            QosAccess::Inherited { added, removed } => {
                v1::QosAccess { inherited: true, names: Vec::new(), added: list(added), removed: list(removed) }
            }
        }
    }
}

impl TryFrom<v1::QosAccess> for QosAccess {
    type Error = ConvertError;
    fn try_from(m: v1::QosAccess) -> Result<Self> {
        Ok(if m.inherited {
            QosAccess::Inherited { added: names(m.added, "added")?, removed: names(m.removed, "removed")? }
        } else {
            QosAccess::Only(names(m.names, "names")?)
        })
    }
}

impl From<&Association> for v1::Association {
    fn from(a: &Association) -> Self {
        let Association { id, account, user, partition, shares, priority, limits, qos, default_qos, comment } = a;
        v1::Association {
            id: id.0,
            account: account.clone(),
            user: user.clone(),
            partition: partition.clone(),
            shares: Some(shares.into()),
            priority: *priority,
            limits: Some(limits.into()),
            qos: Some(qos.into()),
            default_qos: default_qos.clone(),
            comment: comment.clone(),
        }
    }
}

impl TryFrom<v1::Association> for Association {
    type Error = ConvertError;
    fn try_from(m: v1::Association) -> Result<Self> {
        Ok(Association {
            id: assoc_id(m.id)?,
            account: name(m.account, "account")?,
            user: m.user.map(|u| name(u, "user")).transpose()?,
            partition: m.partition.map(|p| name(p, "partition")).transpose()?,
            shares: required(m.shares, "shares")?,
            priority: m.priority,
            limits: optional(m.limits, "limits")?.unwrap_or_default(),
            qos: optional(m.qos, "qos")?.unwrap_or_default(),
            default_qos: m.default_qos.map(|q| name(q, "default_qos")).transpose()?,
            comment: text(m.comment, "comment", limits::TEXT)?,
        })
    }
}

/// Never 0.
pub fn assoc_id(value: u32) -> Result<AssocId> {
    match value {
        0 => Err(ConvertError::new("id", "is 0, which is no association's")),
        n => Ok(AssocId(n)),
    }
}

impl From<&Qos> for v1::Qos {
    fn from(q: &Qos) -> Self {
        let Qos {
            id,
            name,
            description,
            priority,
            flags,
            grace_secs,
            preempt,
            preempt_mode,
            preempt_exempt_secs,
            preempt_within,
            usage_factor,
            usage_threshold,
            limit_factor,
            limits,
        } = q;
        v1::Qos {
            id: *id,
            name: name.clone(),
            description: description.clone(),
            priority: *priority,
            flags: flags.iter().map(|f| f.code()).collect(),
            grace_secs: *grace_secs,
            preempt: list(preempt),
            preempt_mode: preempt_mode.code(),
            preempt_exempt_secs: *preempt_exempt_secs,
            preempt_within: *preempt_within,
            usage_factor: usage_factor.0,
            usage_threshold: usage_threshold.map(|f| f.0),
            limit_factor: limit_factor.map(|f| f.0),
            limits: Some(limits.into()),
        }
    }
}

impl TryFrom<v1::Qos> for Qos {
    type Error = ConvertError;
    fn try_from(m: v1::Qos) -> Result<Self> {
        let flag = |code: u32| QosFlag::from_code(code).ok_or_else(|| unknown("flags", code));
        Ok(Qos {
            id: m.id,
            name: name(m.name, "name")?,
            description: text(m.description, "description", limits::TEXT)?,
            priority: m.priority,
            flags: m.flags.into_iter().map(flag).collect::<Result<_>>()?,
            grace_secs: m.grace_secs,
            preempt: names(m.preempt, "preempt")?,
            preempt_mode: PreemptMode::from_code(m.preempt_mode)
                .ok_or_else(|| unknown("preempt_mode", m.preempt_mode))?,
            preempt_exempt_secs: m.preempt_exempt_secs,
            preempt_within: m.preempt_within,
            usage_factor: Factor(m.usage_factor),
            usage_threshold: m.usage_threshold.map(Factor),
            limit_factor: m.limit_factor.map(Factor),
            limits: optional(m.limits, "limits").within("")?.unwrap_or_default(),
        })
    }
}

pub(super) fn optional_name(value: Option<String>, field: &str) -> Result<Option<String>> {
    value.map(|v| name(v, field)).transpose()
}

pub(super) fn optional_word(value: Option<String>, field: &str) -> Result<Option<String>> {
    value.map(|v| word(v, field)).transpose()
}
