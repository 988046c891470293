//! Removals. What live jobs are charged to or run under stays until they are over.

use super::{lower, may_manage, problem};
use crate::command::Caller;
use crate::decide::{Cx, operators_only};
use crate::event::Event;
use crate::job::Phase;
use crate::reject::Reject;
use sluice_model::JobId;
use sluice_model::accounting::{
    Account, AccountingReport, AssocFilter, AssocId, Association, NORMAL_QOS, Qos, ROOT, User,
};
use std::collections::BTreeSet;

type Done = Result<(), Reject>;

/// Refuses while jobs that are not over fulfil `uses`.
fn unused(cx: &Cx, uses: impl Fn(&crate::Job) -> bool) -> Done {
    let over = |j: &crate::Job| matches!(j.phase, Phase::Ended { .. });
    let jobs: Vec<JobId> = cx.jobs.values().filter(|j| !over(j) && uses(j)).map(|j| j.id).take(11).collect();
    if jobs.is_empty() {
        return Ok(());
    }
    let more = if jobs.len() > 10 { " …" } else { "" };
    let list: Vec<String> = jobs.iter().take(10).map(ToString::to_string).collect();
    problem(format!(
        " Error with request: Job(s) active, cancel job(s) before remove\n  JobID = {}{more}",
        list.join(" ")
    ))
}

fn remove_associations(cx: &mut Cx, doomed: &BTreeSet<AssocId>) -> Done {
    unused(cx, |j| j.association.is_some_and(|a| doomed.contains(&a)))?;
    for id in doomed {
        cx.emit(Event::AssociationRemoved { id: *id });
    }
    Ok(())
}

/// Users whose default account is gone have another one, or none when they are in no account any more.
fn repair_defaults(cx: &mut Cx, users: &BTreeSet<String>) {
    for name in users {
        let Some(old) = cx.accounting.users.get(name).cloned() else { continue };
        let Some(default) = &old.default_account else { continue };
        if cx.accounting.of_user(name).any(|a| a.account == *default) {
            continue;
        }
        let new = User {
            default_account: cx.accounting.of_user(name).next().map(|a| a.account.clone()),
            ..User::clone(&old)
        };
        cx.emit(Event::UserSet { user: Box::new(new) });
    }
}

pub(super) fn accounts(cx: &mut Cx, caller: &Caller, names: &[String], report: &mut AccountingReport) -> Done {
    let names = lower(names);
    if names.is_empty() {
        return problem(" No conditions given to remove, not executing.");
    }
    if names.iter().any(|n| n == ROOT) {
        return problem(" You are not allowed to remove the root account.\n Use remove cluster instead.");
    }
    let mut doomed: Vec<String> = Vec::new();
    for name in &names {
        for account in cx.accounting.subtree(name) {
            may_manage(&cx.accounting, caller, &account)?;
            if !doomed.contains(&account) {
                doomed.push(account);
            }
        }
    }
    let associations: Vec<Association> =
        doomed.iter().flat_map(|a| cx.accounting.in_account(a)).map(|a| Association::clone(a)).collect();
    let users: BTreeSet<String> = associations.iter().filter_map(|a| a.user.clone()).collect();
    report.associations = associations.iter().map(|a| cx.accounting.name(a)).collect();
    remove_associations(cx, &associations.iter().map(|a| a.id).collect())?;
    for name in doomed {
        cx.emit(Event::AccountRemoved { name: name.clone() });
        report.accounts.push(name);
    }
    repair_defaults(cx, &users);
    Ok(())
}

pub(super) fn users(cx: &mut Cx, caller: &Caller, filter: &AssocFilter, report: &mut AccountingReport) -> Done {
    let filter = AssocFilter { accounts: lower(&filter.accounts), ..filter.clone() };
    if filter == AssocFilter::default() {
        return problem(" No conditions given to remove, not executing.");
    }
    let associations: Vec<Association> = cx
        .accounting
        .associations
        .values()
        .filter(|a| a.user.is_some() && filter.fits(a))
        .map(|a| Association::clone(a))
        .collect();
    let whole = filter.accounts.is_empty() && filter.partitions.is_empty();
    if whole {
        operators_only(caller, "removing users")?;
    }
    for a in &associations {
        may_manage(&cx.accounting, caller, &a.account)?;
    }
    let users: BTreeSet<String> = associations.iter().filter_map(|a| a.user.clone()).collect();
    report.associations = associations.iter().map(|a| cx.accounting.name(a)).collect();
    remove_associations(cx, &associations.iter().map(|a| a.id).collect())?;
    if whole {
        for name in &filter.users {
            if cx.accounting.users.contains_key(name) && !report.users.contains(name) {
                cx.emit(Event::UserRemoved { name: name.clone() });
                report.users.push(name.clone());
                forget_coordinator(cx, name);
            }
        }
    } else {
        repair_defaults(cx, &users);
    }
    Ok(())
}

fn forget_coordinator(cx: &mut Cx, user: &str) {
    let of: Vec<_> = cx.accounting.accounts.values().filter(|a| a.coordinators.contains(user)).cloned().collect();
    for old in of {
        let mut new = Account::clone(&old);
        new.coordinators.remove(user);
        cx.emit(Event::AccountSet { account: Box::new(new) });
    }
}

pub(super) fn qos(cx: &mut Cx, caller: &Caller, names: &[String], report: &mut AccountingReport) -> Done {
    operators_only(caller, "removing QOS")?;
    let names = lower(names);
    if names.is_empty() {
        return problem(" No conditions given to remove, not executing.");
    }
    if names.iter().any(|n| n == NORMAL_QOS) {
        return problem(" The qos 'normal' can't be removed: jobs get it that name none.");
    }
    let defaults: Vec<String> = cx
        .accounting
        .associations
        .values()
        .filter(|a| a.default_qos.as_ref().is_some_and(|d| names.contains(d)))
        .map(|a| {
            let user = a.user.as_ref().map(|u| format!(" U = {u}")).unwrap_or_default();
            format!("  DefQOS = {:<10} A = {:<10}{user}", a.default_qos.as_deref().unwrap_or_default(), a.account)
        })
        .collect();
    if !defaults.is_empty() {
        return problem(format!(
            " Associations listed below have these as their Default QOS.\n{}\n Please either remove the qos' listed above \
             from list and resubmit,\n or change the default qos to remove the qos.",
            defaults.join("\n")
        ));
    }
    unused(cx, |j| j.spec.qos.as_ref().is_some_and(|q| names.contains(q)))?;
    for name in names {
        if !cx.accounting.qos.contains_key(&name) {
            continue;
        }
        forget_qos(cx, &name);
        cx.emit(Event::QosRemoved { name: name.clone() });
        report.qos.push(name);
    }
    Ok(())
}

/// Takes a QOS out of every list that names it.
fn forget_qos(cx: &mut Cx, name: &str) {
    let mut changed = Vec::new();
    for a in cx.accounting.associations.values() {
        let mut new = Association::clone(a);
        if new.qos.forget(name) {
            changed.push(Event::AssociationSet { association: Box::new(new) });
        }
    }
    for q in cx.accounting.qos.values().filter(|q| q.preempt.contains(name)) {
        let mut new = Qos::clone(q);
        new.preempt.remove(name);
        changed.push(Event::QosSet { qos: Box::new(new) });
    }
    changed.into_iter().for_each(|event| cx.emit(event));
}

pub(super) fn coordinators(
    cx: &mut Cx,
    caller: &Caller,
    accounts: &[String],
    users: &[String],
    report: &mut AccountingReport,
) -> Done {
    if accounts.is_empty() && users.is_empty() {
        return problem(" No conditions given to remove, not executing.");
    }
    let accounts = lower(accounts);
    let of: Vec<_> = cx
        .accounting
        .accounts
        .values()
        .filter(|a| accounts.is_empty() || accounts.contains(&a.name))
        .cloned()
        .collect();
    for old in of {
        let gone: Vec<String> =
            old.coordinators.iter().filter(|u| users.is_empty() || users.contains(u)).cloned().collect();
        if gone.is_empty() {
            continue;
        }
        may_manage(&cx.accounting, caller, &old.name)?;
        let mut new = Account::clone(&old);
        for user in gone {
            new.coordinators.remove(&user);
            report.coordinators.push((user, old.name.clone()));
        }
        cx.emit(Event::AccountSet { account: Box::new(new) });
    }
    Ok(())
}
