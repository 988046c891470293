//! What sacctmgr asks for and is answered.

use super::accounting::{assoc_id, names, optional_name, optional_word, tres_kind, unknown};
use super::error::{ConvertError, Within};
use super::limits;
use super::scalar::{check_len, name, optional, text};
use crate::v1;
use sluice_model::accounting::{
    AccountChange, AccountingReport, AccountingRequest, AdminLevel, AssocChange, AssocFilter, AssocName, CountLimit,
    Factor, LimitsChange, ListEdit, PreemptMode, QosChange, Shares, TresKind, TresLimit, UserChange,
};

type Result<T> = std::result::Result<T, ConvertError>;

impl From<&ListEdit> for v1::ListEdit {
    fn from(e: &ListEdit) -> Self {
        let how = match e {
            ListEdit::Set(_) => 0,
            ListEdit::Add(_) => 1,
            ListEdit::Remove(_) => 2,
        };
        v1::ListEdit { how, names: e.names().iter().cloned().collect() }
    }
}

impl TryFrom<v1::ListEdit> for ListEdit {
    type Error = ConvertError;
    fn try_from(m: v1::ListEdit) -> Result<Self> {
        let list = names(m.names, "names")?;
        Ok(match m.how {
            0 => ListEdit::Set(list),
            1 => ListEdit::Add(list),
            2 => ListEdit::Remove(list),
            n => return Err(unknown("how", n)),
        })
    }
}

fn edits(values: Vec<v1::ListEdit>, field: &str) -> Result<Vec<ListEdit>> {
    super::scalar::list(values, field, limits::LIST)
}

impl From<&LimitsChange> for v1::LimitsChange {
    fn from(c: &LimitsChange) -> Self {
        let LimitsChange { counts, tres } = c;
        let count =
            |(limit, value): (&CountLimit, &Option<u32>)| v1::CountChange { limit: limit.code(), value: *value };
        let one =
            |(kind, count): (&TresKind, &Option<u64>)| v1::TresCountChange { tres: kind.to_string(), count: *count };
        v1::LimitsChange {
            counts: counts.iter().map(count).collect(),
            tres: tres
                .iter()
                .map(|(limit, counts)| v1::TresChange { limit: limit.code(), counts: counts.iter().map(one).collect() })
                .collect(),
        }
    }
}

impl TryFrom<v1::LimitsChange> for LimitsChange {
    type Error = ConvertError;
    fn try_from(m: v1::LimitsChange) -> Result<Self> {
        let mut change = LimitsChange::default();
        for c in m.counts {
            let limit = CountLimit::from_code(c.limit).ok_or_else(|| unknown("counts.limit", c.limit))?;
            change.counts.insert(limit, c.value);
        }
        for t in m.tres {
            let limit = TresLimit::from_code(t.limit).ok_or_else(|| unknown("tres.limit", t.limit))?;
            check_len(t.counts.len(), "tres.counts", limits::LIST, "items")?;
            for c in t.counts {
                let count = c.count.map(|n| super::scalar::quantity(n, "tres.counts.count")).transpose()?;
                change.tres.entry(limit).or_default().insert(tres_kind(&c.tres, "tres.counts.tres")?, count);
            }
        }
        Ok(change)
    }
}

fn number(value: Option<u32>) -> v1::OptionalNumber {
    v1::OptionalNumber { value: value.map(u64::from) }
}

fn small(value: v1::OptionalNumber, field: &str) -> Result<Option<u32>> {
    let fits = |n: u64| u32::try_from(n).map_err(|_| ConvertError::new(field, format!("is {n}, which is too large")));
    value.value.map(fits).transpose()
}

impl From<&AssocChange> for v1::AssocChange {
    fn from(c: &AssocChange) -> Self {
        let AssocChange { shares, priority, limits, qos, default_qos, comment } = c;
        v1::AssocChange {
            shares: shares.map(|s| v1::SharesChange { shares: s.as_ref().map(Into::into) }),
            priority: priority.map(number),
            limits: Some(limits.into()),
            qos: qos.iter().map(Into::into).collect(),
            default_qos: default_qos.clone().map(|value| v1::OptionalText { value }),
            comment: comment.clone(),
        }
    }
}

impl TryFrom<v1::AssocChange> for AssocChange {
    type Error = ConvertError;
    fn try_from(m: v1::AssocChange) -> Result<Self> {
        let shares = |s: v1::SharesChange| -> Result<Option<Shares>> { optional(s.shares, "shares") };
        Ok(AssocChange {
            shares: m.shares.map(shares).transpose()?,
            priority: m.priority.map(|p| small(p, "priority")).transpose()?,
            limits: optional(m.limits, "limits")?.unwrap_or_default(),
            qos: edits(m.qos, "qos")?,
            default_qos: m.default_qos.map(|q| optional_name(q.value, "default_qos")).transpose()?,
            comment: m.comment.map(|c| text(c, "comment", limits::TEXT)).transpose()?,
        })
    }
}

impl From<&UserChange> for v1::UserChange {
    fn from(c: &UserChange) -> Self {
        let UserChange { admin_level, default_account, default_wckey, wckeys } = c;
        v1::UserChange {
            admin_level: admin_level.map(AdminLevel::code),
            default_account: default_account.clone(),
            default_wckey: default_wckey.clone(),
            wckeys: wckeys.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<v1::UserChange> for UserChange {
    type Error = ConvertError;
    fn try_from(m: v1::UserChange) -> Result<Self> {
        let level = |code: u32| AdminLevel::from_code(code).ok_or_else(|| unknown("admin_level", code));
        Ok(UserChange {
            admin_level: m.admin_level.map(level).transpose()?,
            default_account: optional_name(m.default_account, "default_account")?,
            default_wckey: optional_name(m.default_wckey, "default_wckey")?,
            wckeys: edits(m.wckeys, "wckeys")?,
        })
    }
}

impl From<&AccountChange> for v1::AccountChange {
    fn from(c: &AccountChange) -> Self {
        let AccountChange { description, organization, parent } = c;
        v1::AccountChange {
            description: description.clone(),
            organization: organization.clone(),
            parent: parent.clone(),
        }
    }
}

impl TryFrom<v1::AccountChange> for AccountChange {
    type Error = ConvertError;
    fn try_from(m: v1::AccountChange) -> Result<Self> {
        Ok(AccountChange {
            description: m.description.map(|t| text(t, "description", limits::TEXT)).transpose()?,
            organization: m.organization.map(|t| text(t, "organization", limits::TEXT)).transpose()?,
            parent: optional_name(m.parent, "parent")?,
        })
    }
}

impl From<&QosChange> for v1::QosChange {
    fn from(c: &QosChange) -> Self {
        let QosChange {
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
        } = c;
        let factor = |f: Option<Factor>| v1::OptionalNumber { value: f.map(|f| f.0) };
        v1::QosChange {
            description: description.clone(),
            priority: *priority,
            flags: flags.iter().map(Into::into).collect(),
            grace_secs: *grace_secs,
            preempt: preempt.iter().map(Into::into).collect(),
            preempt_mode: preempt_mode.map(PreemptMode::code),
            preempt_exempt_secs: preempt_exempt_secs.map(number),
            preempt_within: *preempt_within,
            usage_factor: usage_factor.map(|f| f.0),
            usage_threshold: usage_threshold.map(factor),
            limit_factor: limit_factor.map(factor),
            limits: Some(limits.into()),
        }
    }
}

/// A million at most, as the texts allow.
fn factor(n: u64) -> Result<Factor> {
    if n > 1_000_000_000_000 {
        return Err(ConvertError::new("factor", format!("is {n} millionths, which is too large")));
    }
    Ok(Factor(n))
}

impl TryFrom<v1::QosChange> for QosChange {
    type Error = ConvertError;
    fn try_from(m: v1::QosChange) -> Result<Self> {
        let mode = |code: u32| PreemptMode::from_code(code).ok_or_else(|| unknown("preempt_mode", code));
        let optional_factor = |f: v1::OptionalNumber| f.value.map(factor).transpose();
        Ok(QosChange {
            description: m.description.map(|t| text(t, "description", limits::TEXT)).transpose()?,
            priority: m.priority,
            flags: edits(m.flags, "flags")?,
            grace_secs: m.grace_secs,
            preempt: edits(m.preempt, "preempt")?,
            preempt_mode: m.preempt_mode.map(mode).transpose()?,
            preempt_within: m.preempt_within,
            preempt_exempt_secs: m.preempt_exempt_secs.map(|s| small(s, "preempt_exempt_secs")).transpose()?,
            usage_factor: m.usage_factor.map(factor).transpose()?,
            usage_threshold: m.usage_threshold.map(optional_factor).transpose()?,
            limit_factor: m.limit_factor.map(optional_factor).transpose()?,
            limits: optional(m.limits, "limits")?.unwrap_or_default(),
        })
    }
}

impl From<&AssocFilter> for v1::AssocFilter {
    fn from(f: &AssocFilter) -> Self {
        let AssocFilter { users, accounts, partitions } = f;
        v1::AssocFilter { users: users.clone(), accounts: accounts.clone(), partitions: partitions.clone() }
    }
}

impl TryFrom<v1::AssocFilter> for AssocFilter {
    type Error = ConvertError;
    fn try_from(m: v1::AssocFilter) -> Result<Self> {
        Ok(AssocFilter {
            users: names(m.users, "users")?,
            accounts: names(m.accounts, "accounts")?,
            partitions: names(m.partitions, "partitions")?,
        })
    }
}

/// The request's message; `dry_run` asks only what it would come to.
pub fn accounting_request_to_wire(request: &AccountingRequest, dry_run: bool) -> v1::AccountingRequest {
    use AccountingRequest as R;
    use v1::accounting_request as m;
    let list = |names: &[String]| v1::NameList { names: names.to_vec() };
    let accounts = |names: &[String], account: &AccountChange, assoc: &AssocChange| m::AddAccounts {
        names: names.to_vec(),
        account: Some(account.into()),
        assoc: Some(assoc.into()),
    };
    let qos = |names: &[String], qos: &QosChange| m::NamedQos { names: names.to_vec(), qos: Some(qos.into()) };
    let coordinators =
        |accounts: &[String], users: &[String]| m::Coordinators { accounts: accounts.to_vec(), users: users.to_vec() };
    let kind = match request {
        R::AddAccounts { names, account, assoc } => m::Kind::AddAccounts(accounts(names, account, assoc)),
        R::AddUsers { names, accounts, partitions, user, assoc } => m::Kind::AddUsers(m::AddUsers {
            names: names.clone(),
            accounts: accounts.clone(),
            partitions: partitions.clone(),
            user: Some(user.into()),
            assoc: Some(assoc.into()),
        }),
        R::AddQos { names, qos: change } => m::Kind::AddQos(qos(names, change)),
        R::AddCoordinators { accounts, users } => m::Kind::AddCoordinators(coordinators(accounts, users)),
        R::ModifyAccounts { names, account, assoc } => m::Kind::ModifyAccounts(accounts(names, account, assoc)),
        R::ModifyUsers { filter, user, assoc } => m::Kind::ModifyUsers(m::ModifyUsers {
            filter: Some(filter.into()),
            user: Some(user.into()),
            assoc: Some(assoc.into()),
        }),
        R::ModifyQos { names, qos: change } => m::Kind::ModifyQos(qos(names, change)),
        R::ModifyCluster { assoc } => m::Kind::ModifyCluster(assoc.into()),
        R::RemoveAccounts { names } => m::Kind::RemoveAccounts(list(names)),
        R::RemoveUsers { filter } => m::Kind::RemoveUsers(filter.into()),
        R::RemoveQos { names } => m::Kind::RemoveQos(list(names)),
        R::RemoveCoordinators { accounts, users } => m::Kind::RemoveCoordinators(coordinators(accounts, users)),
        R::All { requests } => m::Kind::All(v1::AccountingRequests {
            requests: requests.iter().map(|r| accounting_request_to_wire(r, dry_run)).collect(),
        }),
    };
    v1::AccountingRequest { dry_run, kind: Some(kind) }
}

/// The way back, without `dry_run`.
impl TryFrom<v1::AccountingRequest> for AccountingRequest {
    type Error = ConvertError;
    fn try_from(m: v1::AccountingRequest) -> Result<Self> {
        use AccountingRequest as R;
        use v1::accounting_request::Kind;
        let Some(kind) = m.kind else { return Err(ConvertError::new("kind", "is a request of a newer release")) };
        Ok(match kind {
            Kind::AddAccounts(m) => R::AddAccounts {
                names: names(m.names, "names")?,
                account: optional(m.account, "account")?.unwrap_or_default(),
                assoc: optional(m.assoc, "assoc")?.unwrap_or_default(),
            },
            Kind::AddUsers(m) => R::AddUsers {
                names: names(m.names, "names")?,
                accounts: names(m.accounts, "accounts")?,
                partitions: names(m.partitions, "partitions")?,
                user: optional(m.user, "user")?.unwrap_or_default(),
                assoc: optional(m.assoc, "assoc")?.unwrap_or_default(),
            },
            Kind::AddQos(m) => {
                R::AddQos { names: names(m.names, "names")?, qos: optional(m.qos, "qos")?.unwrap_or_default() }
            }
            Kind::AddCoordinators(m) => {
                R::AddCoordinators { accounts: names(m.accounts, "accounts")?, users: names(m.users, "users")? }
            }
            Kind::ModifyAccounts(m) => R::ModifyAccounts {
                names: names(m.names, "names")?,
                account: optional(m.account, "account")?.unwrap_or_default(),
                assoc: optional(m.assoc, "assoc")?.unwrap_or_default(),
            },
            Kind::ModifyUsers(m) => R::ModifyUsers {
                filter: optional(m.filter, "filter")?.unwrap_or_default(),
                user: optional(m.user, "user")?.unwrap_or_default(),
                assoc: optional(m.assoc, "assoc")?.unwrap_or_default(),
            },
            Kind::ModifyQos(m) => {
                R::ModifyQos { names: names(m.names, "names")?, qos: optional(m.qos, "qos")?.unwrap_or_default() }
            }
            Kind::ModifyCluster(m) => R::ModifyCluster { assoc: AssocChange::try_from(m).within("modify_cluster")? },
            Kind::RemoveAccounts(m) => R::RemoveAccounts { names: names(m.names, "names")? },
            Kind::RemoveUsers(m) => R::RemoveUsers { filter: AssocFilter::try_from(m).within("remove_users")? },
            Kind::RemoveQos(m) => R::RemoveQos { names: names(m.names, "names")? },
            Kind::All(m) => {
                check_len(m.requests.len(), "all", limits::ARGS, "items")?;
                let part = |r: v1::AccountingRequest| match r.kind {
                    // Or a message could nest without end.
                    Some(Kind::All(_)) => Err(ConvertError::new("all", "is nested")),
                    _ => R::try_from(r),
                };
                R::All { requests: m.requests.into_iter().map(part).collect::<Result<_>>().within("all")? }
            }
            Kind::RemoveCoordinators(m) => {
                R::RemoveCoordinators { accounts: names(m.accounts, "accounts")?, users: names(m.users, "users")? }
            }
        })
    }
}

impl From<&AccountingReport> for v1::AccountingReport {
    fn from(r: &AccountingReport) -> Self {
        let AccountingReport { accounts, users, qos, associations, coordinators } = r;
        let association = |a: &AssocName| v1::AssocName {
            id: a.id.0,
            account: a.account.clone(),
            parent: a.parent.clone(),
            user: a.user.clone(),
            partition: a.partition.clone(),
        };
        let coordinator =
            |(user, account): &(String, String)| v1::Coordinator { user: user.clone(), account: account.clone() };
        v1::AccountingReport {
            accounts: accounts.clone(),
            users: users.clone(),
            qos: qos.clone(),
            associations: associations.iter().map(association).collect(),
            coordinators: coordinators.iter().map(coordinator).collect(),
        }
    }
}

impl TryFrom<v1::AccountingReport> for AccountingReport {
    type Error = ConvertError;
    fn try_from(m: v1::AccountingReport) -> Result<Self> {
        let association = |a: v1::AssocName| {
            Ok(AssocName {
                id: assoc_id(a.id)?,
                account: name(a.account, "account")?,
                parent: optional_word(a.parent, "parent")?,
                user: optional_word(a.user, "user")?,
                partition: optional_word(a.partition, "partition")?,
            })
        };
        Ok(AccountingReport {
            accounts: m.accounts,
            users: m.users,
            qos: m.qos,
            associations: m.associations.into_iter().map(association).collect::<Result<_>>()?,
            coordinators: m.coordinators.into_iter().map(|c| (c.user, c.account)).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use sluice_model::accounting::parse_change;

    fn set(names: &[&str]) -> std::collections::BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    fn samples() -> Vec<AccountingRequest> {
        use AccountingRequest as R;
        let names = vec!["a".to_owned(), "b".to_owned()];
        let mut limits = LimitsChange::default();
        for limit in CountLimit::ALL {
            limits.counts.insert(limit, Some(limit.code()));
        }
        limits.counts.insert(CountLimit::GrpWall, None);
        limits.tres.insert(TresLimit::Grp, parse_change("cpu=0,mem=-1,gres/gpu:a100=3").unwrap());
        let assoc = AssocChange {
            shares: Some(Some(Shares::Parent)),
            priority: Some(None),
            limits: limits.clone(),
            qos: vec![ListEdit::Set(set(&[])), ListEdit::Add(set(&["x"])), ListEdit::Remove(set(&["y"]))],
            default_qos: Some(None),
            comment: Some("c".to_owned()),
        };
        let cleared = AssocChange { shares: Some(None), priority: Some(Some(5)), ..AssocChange::default() };
        let user = UserChange {
            admin_level: Some(AdminLevel::Administrator),
            default_account: Some("a".to_owned()),
            default_wckey: Some("w".to_owned()),
            wckeys: vec![ListEdit::Add(set(&["w"]))],
        };
        let account = AccountChange {
            description: Some("d".to_owned()),
            organization: Some(String::new()),
            parent: Some("p".to_owned()),
        };
        let qos = QosChange {
            description: Some("d".to_owned()),
            priority: Some(1),
            flags: vec![ListEdit::Set(set(&["NoDecay"]))],
            grace_secs: Some(2),
            preempt: vec![ListEdit::Set(set(&["low"]))],
            preempt_mode: Some(PreemptMode::Cancel),
            preempt_exempt_secs: Some(None),
            preempt_within: Some(true),
            usage_factor: Some(Factor(3)),
            usage_threshold: Some(Some(Factor(4))),
            limit_factor: Some(None),
            limits,
        };
        let filter =
            AssocFilter { users: names.clone(), accounts: vec!["c".to_owned()], partitions: vec!["d".to_owned()] };
        vec![
            R::AddAccounts { names: names.clone(), account: account.clone(), assoc: assoc.clone() },
            R::AddUsers {
                names: names.clone(),
                accounts: vec!["c".to_owned()],
                partitions: vec!["d".to_owned()],
                user: user.clone(),
                assoc: cleared,
            },
            R::AddQos { names: names.clone(), qos: qos.clone() },
            R::AddCoordinators { accounts: names.clone(), users: vec!["u".to_owned()] },
            R::ModifyAccounts { names: names.clone(), account, assoc: assoc.clone() },
            R::ModifyUsers { filter: filter.clone(), user, assoc: AssocChange::default() },
            R::ModifyQos { names: names.clone(), qos },
            R::ModifyCluster { assoc },
            R::RemoveAccounts { names: names.clone() },
            R::RemoveUsers { filter },
            R::RemoveQos { names: names.clone() },
            R::RemoveCoordinators { accounts: names, users: Vec::new() },
        ]
    }

    #[test]
    fn every_request_comes_back_as_it_went() {
        for request in samples() {
            let bytes = accounting_request_to_wire(&request, true).encode_to_vec();
            let message = v1::AccountingRequest::decode(bytes.as_slice()).unwrap();
            assert!(message.dry_run);
            assert_eq!(AccountingRequest::try_from(message), Ok(request));
        }
    }

    #[test]
    fn several_requests_are_one_but_do_not_nest() {
        let all = AccountingRequest::All { requests: samples() };
        assert_eq!(AccountingRequest::try_from(accounting_request_to_wire(&all, false)), Ok(all.clone()));
        let nested = AccountingRequest::All { requests: vec![all] };
        assert!(AccountingRequest::try_from(accounting_request_to_wire(&nested, false)).is_err());
    }

    #[test]
    fn unknown_numbers_names_and_kinds_are_refused() {
        use v1::accounting_request::Kind;
        let bad = |kind| AccountingRequest::try_from(v1::AccountingRequest { dry_run: false, kind }).unwrap_err();
        assert!(bad(None).to_string().contains("newer release"));
        let limits = v1::LimitsChange { counts: vec![v1::CountChange { limit: 99, value: None }], tres: Vec::new() };
        let change = v1::AssocChange { limits: Some(limits), ..v1::AssocChange::default() };
        assert!(bad(Some(Kind::ModifyCluster(change))).to_string().contains("99"));
        let empty = v1::NameList { names: vec![String::new()] };
        bad(Some(Kind::RemoveQos(empty)));
    }
}
