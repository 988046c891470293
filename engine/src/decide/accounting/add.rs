//! Additions. What exists already is passed over.

use super::{check_assoc, check_names, check_qos, check_user, known_qos, lower, may_manage, problem};
use crate::command::Caller;
use crate::decide::{Cx, operators_only};
use crate::event::Event;
use crate::reject::Reject;
use sluice_model::accounting::{
    Account, AccountChange, AccountingReport, AdminLevel, AssocChange, AssocId, Association, Qos, QosChange, ROOT,
    User, UserChange,
};
use std::collections::BTreeSet;

type Done = Result<(), Reject>;

pub(super) fn accounts(
    cx: &mut Cx,
    caller: &Caller,
    names: &[String],
    account: &AccountChange,
    assoc: &AssocChange,
    report: &mut AccountingReport,
) -> Done {
    check_names("account", names)?;
    check_assoc(&cx.accounting, assoc)?;
    let parent = account.parent.as_deref().unwrap_or(ROOT).to_lowercase();
    if !cx.accounting.accounts.contains_key(&parent) {
        return problem(format!(
            " Parent account '{parent}' doesn't exist.\n        Contact your admin to add this account."
        ));
    }
    may_manage(&cx.accounting, caller, &parent)?;
    for name in lower(names) {
        if cx.accounting.accounts.contains_key(&name) {
            continue;
        }
        let new = Account {
            name: name.clone(),
            description: account.description.clone().unwrap_or_else(|| name.clone()),
            // Slurm: the parent's name, or its own below root.
            organization: account
                .organization
                .clone()
                .unwrap_or_else(|| if parent == ROOT { name.clone() } else { parent.clone() }),
            parent: Some(parent.clone()),
            coordinators: BTreeSet::new(),
        };
        cx.emit(Event::AccountSet { account: Box::new(new) });
        add_association(cx, &name, None, None, assoc, report);
        report.accounts.push(name);
    }
    Ok(())
}

fn add_association(
    cx: &mut Cx,
    account: &str,
    user: Option<&str>,
    partition: Option<&str>,
    change: &AssocChange,
    report: &mut AccountingReport,
) {
    let id = AssocId(cx.accounting.last_association.saturating_add(1));
    let mut new = Association { partition: partition.map(str::to_owned), ..Association::new(id, account, user) };
    change.apply(&mut new);
    cx.emit(Event::AssociationSet { association: Box::new(new.clone()) });
    report.associations.push(cx.accounting.name(&new));
}

/// Whom, and where.
pub(super) struct Users<'a> {
    pub names: &'a [String],
    pub accounts: &'a [String],
    pub partitions: &'a [String],
}

pub(super) fn users(
    cx: &mut Cx,
    caller: &Caller,
    wanted: &Users<'_>,
    user: &UserChange,
    assoc: &AssocChange,
    report: &mut AccountingReport,
) -> Done {
    check_names("user", wanted.names)?;
    check_assoc(&cx.accounting, assoc)?;
    check_user(caller, user)?;
    let mut accounts = lower(wanted.accounts);
    let default = user.default_account.as_ref().map(|a| a.to_lowercase());
    // Slurm: the default account is one of those that the user is added to.
    accounts.extend(default.iter().filter(|d| !accounts.contains(d)).cloned().collect::<Vec<_>>());
    if accounts.is_empty() && user.wckeys.is_empty() && user.default_wckey.is_none() {
        return problem(" Need name of account to add user to.");
    }
    if accounts.is_empty() {
        operators_only(caller, "adding wckeys")?;
    }
    for account in &accounts {
        if !cx.accounting.accounts.contains_key(account) {
            return problem(format!(
                " This account '{account}' doesn't exist.\n        Contact your admin to add this account."
            ));
        }
        may_manage(&cx.accounting, caller, account)?;
    }
    for partition in wanted.partitions {
        if !cx.partitions.contains_key(partition) {
            return Err(Reject::InvalidPartition { name: partition.clone() });
        }
    }
    let first = default.clone().or_else(|| accounts.first().cloned());
    let each = wanted.names.len().saturating_mul(accounts.len()).saturating_mul(wanted.partitions.len().max(1));
    if each > super::MOST {
        return problem(format!("{each} associations at once; {} at most", super::MOST));
    }
    for name in wanted.names {
        let old = cx.accounting.users.get(name).cloned();
        let mut record = old.as_deref().cloned().unwrap_or_else(|| User {
            name: name.clone(),
            admin_level: AdminLevel::None,
            default_account: None,
            default_wckey: None,
            wckeys: BTreeSet::new(),
        });
        // Of a user who is there already only wckeys and, when they have none, the default account are added.
        let change = match &old {
            None => user.clone(),
            Some(_) => UserChange { admin_level: None, default_account: None, ..user.clone() },
        };
        change.apply(&mut record);
        record.default_account = record.default_account.map(|a| a.to_lowercase()).or_else(|| first.clone());
        let changed = old.as_deref() != Some(&record);
        if changed {
            cx.emit(Event::UserSet { user: Box::new(record) });
        }
        if old.is_none() || (changed && accounts.is_empty()) {
            report.users.push(name.clone());
        }
        for account in &accounts {
            let partitions: Vec<Option<&str>> = match wanted.partitions {
                [] => vec![None],
                list => list.iter().map(|p| Some(p.as_str())).collect(),
            };
            for partition in partitions {
                if cx.accounting.find(account, Some(name), partition).is_none() {
                    add_association(cx, account, Some(name), partition, assoc, report);
                }
            }
        }
    }
    Ok(())
}

pub(super) fn qos(
    cx: &mut Cx,
    caller: &Caller,
    names: &[String],
    change: &QosChange,
    report: &mut AccountingReport,
) -> Done {
    operators_only(caller, "adding QOS")?;
    check_names("qos", names)?;
    check_qos(&cx.accounting, change)?;
    for name in lower(names) {
        if cx.accounting.qos.contains_key(&name) {
            continue;
        }
        let mut new = Qos::new(cx.accounting.last_qos.saturating_add(1), &name);
        change.apply(&mut new);
        cx.emit(Event::QosSet { qos: Box::new(new) });
        report.qos.push(name);
    }
    known_qos(&cx.accounting, report.qos.iter())
}

/// A coordinator may appoint others.
pub(super) fn coordinators(
    cx: &mut Cx,
    caller: &Caller,
    accounts: &[String],
    users: &[String],
    report: &mut AccountingReport,
) -> Done {
    for name in users {
        if !cx.accounting.users.contains_key(name) {
            return problem(format!(" The user '{name}' doesn't exist."));
        }
    }
    for account in lower(accounts) {
        let Some(old) = cx.accounting.accounts.get(&account).cloned() else {
            return problem(format!(" The account '{account}' doesn't exist."));
        };
        may_manage(&cx.accounting, caller, &account)?;
        let mut new = Account::clone(&old);
        for user in users.iter().filter(|u| !old.coordinators.contains(*u)) {
            new.coordinators.insert(user.clone());
            report.coordinators.push((user.clone(), account.clone()));
        }
        if new != *old {
            cx.emit(Event::AccountSet { account: Box::new(new) });
        }
    }
    Ok(())
}
