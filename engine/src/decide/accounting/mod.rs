//! `sacctmgr add`, `modify` and `delete`: is it allowed, what exactly does it touch, which records come of it.
//!
//! Operators and administrators may change everything, but only administrators make administrators. The coordinator of
//! an account may add users and accounts below it and change and remove what is there. Everybody may choose their own
//! default account and wckey. A request that would change nothing is no error: its report is empty.

mod add;
mod modify;
mod remove;

use super::Cx;
use crate::accounting::Accounting;
use crate::command::{Caller, Reply, Role};
use crate::reject::Reject;
use sluice_model::accounting::{
    AccountingReport, AccountingRequest, AdminLevel, AssocChange, ListEdit, QosFlag, UserChange, is_name,
};

/// Entities named or touched by one request, at most.
const MOST: usize = 100_000;

pub(super) fn request(cx: &mut Cx, caller: &Caller, request: &AccountingRequest) -> Result<Reply, Reject> {
    let mut report = AccountingReport::default();
    match request {
        AccountingRequest::All { requests } if requests.len() > MOST => {
            return problem(format!("{} changes at once; {MOST} at most", requests.len()));
        }
        AccountingRequest::All { requests } => {
            for request in requests {
                let mut part = AccountingReport::default();
                one(cx, caller, request, &mut part)?;
                report.merge(part);
            }
        }
        single => one(cx, caller, single, &mut report)?,
    }
    check_defaults(cx)?;
    Ok(Reply::Accounting { report: Box::new(report) })
}

fn one(cx: &mut Cx, caller: &Caller, request: &AccountingRequest, report: &mut AccountingReport) -> Result<(), Reject> {
    use AccountingRequest as R;
    match request {
        R::AddAccounts { names, account, assoc } => add::accounts(cx, caller, names, account, assoc, report),
        R::AddUsers { names, accounts, partitions, user, assoc } => {
            let wanted = add::Users { names, accounts, partitions };
            add::users(cx, caller, &wanted, user, assoc, report)
        }
        R::AddQos { names, qos } => add::qos(cx, caller, names, qos, report),
        R::AddCoordinators { accounts, users } => add::coordinators(cx, caller, accounts, users, report),
        R::ModifyAccounts { names, account, assoc } => modify::accounts(cx, caller, names, account, assoc, report),
        R::ModifyUsers { filter, user, assoc } => modify::users(cx, caller, filter, user, assoc, report),
        R::ModifyQos { names, qos } => modify::qos(cx, caller, names, qos, report),
        R::ModifyCluster { assoc } => modify::cluster(cx, caller, assoc, report),
        R::RemoveAccounts { names } => remove::accounts(cx, caller, names, report),
        R::RemoveUsers { filter } => remove::users(cx, caller, filter, report),
        R::RemoveQos { names } => remove::qos(cx, caller, names, report),
        R::RemoveCoordinators { accounts, users } => remove::coordinators(cx, caller, accounts, users, report),
        R::All { .. } => problem("changes of several parts have no parts of several parts"),
    }
}

fn problem<T>(detail: impl Into<String>) -> Result<T, Reject> {
    Err(Reject::Accounting { detail: detail.into() })
}

/// Operators, and the coordinator of the account or of one above it.
fn may_manage(a: &Accounting, caller: &Caller, account: &str) -> Result<(), Reject> {
    if caller.role >= Role::Operator || a.coordinates(&caller.user, account) {
        return Ok(());
    }
    let what = format!("{} neither administers nor coordinates the account {account}", caller.user);
    Err(Reject::AccessDenied { what })
}

fn check_names(what: &str, names: &[String]) -> Result<(), Reject> {
    if names.len() > MOST {
        return problem(format!("{} {what}s are named; {MOST} at most", names.len()));
    }
    match names.iter().find(|n| !is_name(n)) {
        Some(bad) => problem(format!("'{bad}' can't be the name of a {what}")),
        None => Ok(()),
    }
}

fn lower(names: &[String]) -> Vec<String> {
    names.iter().map(|n| n.to_lowercase()).collect()
}

/// Levels that the caller may give.
fn check_level(caller: &Caller, level: Option<AdminLevel>) -> Result<(), Reject> {
    let allowed = match level {
        None => true,
        Some(AdminLevel::Administrator) => caller.role >= Role::Administrator,
        Some(AdminLevel::Operator | AdminLevel::None) => caller.role >= Role::Operator,
    };
    if allowed {
        return Ok(());
    }
    Err(Reject::AccessDenied { what: format!("{} may not give this admin level", caller.user) })
}

/// Every QOS that is named exists, and limits are of the kind that associations have.
fn check_assoc(a: &Accounting, c: &AssocChange) -> Result<(), Reject> {
    let named = c.qos.iter().flat_map(ListEdit::names).chain(c.default_qos.iter().flatten());
    known_qos(a, named)?;
    let count = c.limits.counts.keys().find(|l| !l.is_of_associations()).map(|l| format!("{l:?}"));
    let tres = c.limits.tres.keys().find(|l| !l.is_of_associations()).map(|l| format!("{l:?}"));
    match count.or(tres) {
        Some(limit) => problem(format!("{limit} is a limit of QOS, not of associations")),
        None => Ok(()),
    }
}

fn known_qos<'a>(a: &Accounting, names: impl Iterator<Item = &'a String>) -> Result<(), Reject> {
    for name in names {
        if !a.qos.contains_key(name) {
            let valid: Vec<&str> = a.qos.keys().map(String::as_str).collect();
            return problem(format!("You gave a bad qos '{name}'. Valid QOS's are {}", valid.join(",")));
        }
    }
    Ok(())
}

fn check_qos(a: &Accounting, c: &sluice_model::accounting::QosChange) -> Result<(), Reject> {
    known_qos(a, c.preempt.iter().flat_map(ListEdit::names))?;
    if let Some(bad) = c.flags.iter().flat_map(ListEdit::names).find(|f| QosFlag::parse(f).is_none()) {
        let all: Vec<&str> = QosFlag::ALL.iter().map(|f| f.as_str()).collect();
        return problem(format!("'{bad}' is no QOS flag; allowed are {}", all.join(",")));
    }
    let count = c.limits.counts.keys().find(|l| !l.is_of_qos()).map(|l| format!("{l:?}"));
    let tres = c.limits.tres.keys().find(|l| !l.is_of_qos()).map(|l| format!("{l:?}"));
    match count.or(tres) {
        Some(limit) => problem(format!("{limit} is a limit of associations, not of QOS")),
        None => Ok(()),
    }
}

fn check_user(caller: &Caller, c: &UserChange) -> Result<(), Reject> {
    check_level(caller, c.admin_level)?;
    let keys: Vec<String> =
        c.wckeys.iter().flat_map(ListEdit::names).chain(c.default_wckey.iter()).map(Clone::clone).collect();
    check_names("wckey", &keys)
}

/// Associations that could not use their default QOS any more.
fn check_defaults(cx: &Cx) -> Result<(), Reject> {
    let a = &cx.accounting;
    let mut lines = Vec::new();
    for assoc in a.associations.values() {
        let Some(default) = &assoc.default_qos else { continue };
        if !a.allowed_qos(assoc.id).contains(default) {
            let user = assoc.user.as_ref().map(|u| format!(" U = {u}")).unwrap_or_default();
            lines.push(format!("  DefQOS = {default:<10} A = {:<10}{user}", assoc.account));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    let head = " These associations don't have access to their default qos.\n \
                Please give them access before they the default can be set to this.";
    problem(format!("{head}\n{}", lines.join("\n")))
}
