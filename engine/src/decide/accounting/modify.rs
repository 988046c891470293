//! Changes. Associations of users are found by user, account and partition; the general one of an account by its name.

use super::{check_assoc, check_qos, check_user, lower, may_manage, problem};
use crate::command::{Caller, Role};
use crate::decide::{Cx, operators_only};
use crate::event::Event;
use crate::reject::Reject;
use sluice_model::accounting::{
    Account, AccountChange, AccountingReport, AssocChange, AssocFilter, AssocId, Association, Qos, QosChange, ROOT,
    User, UserChange,
};

type Done = Result<(), Reject>;

/// No names: all accounts.
pub(super) fn accounts(
    cx: &mut Cx,
    caller: &Caller,
    names: &[String],
    change: &AccountChange,
    assoc: &AssocChange,
    report: &mut AccountingReport,
) -> Done {
    check_assoc(&cx.accounting, assoc)?;
    let names = match lower(names) {
        names if names.is_empty() => cx.accounting.accounts.keys().cloned().collect(),
        names => names,
    };
    let parent = change.parent.as_ref().map(|p| p.to_lowercase());
    if let Some(parent) = &parent {
        if !cx.accounting.accounts.contains_key(parent) {
            return problem(format!(" Parent account '{parent}' doesn't exist."));
        }
        may_manage(&cx.accounting, caller, parent)?;
    }
    for name in names {
        let Some(old) = cx.accounting.accounts.get(&name).cloned() else { continue };
        may_manage(&cx.accounting, caller, &name)?;
        let mut new = Account::clone(&old);
        if let Some(text) = &change.description {
            new.description.clone_from(text);
        }
        if let Some(text) = &change.organization {
            new.organization.clone_from(text);
        }
        let described = change.description.is_some() || change.organization.is_some();
        let moved = parent.as_ref().filter(|p| old.parent.as_ref() != Some(p)).cloned();
        if let Some(parent) = &moved {
            if name == ROOT {
                return problem(" The root account has no parent.");
            }
            if cx.accounting.subtree(&name).contains(parent) {
                return problem(format!(" Account '{parent}' is below '{name}' and can't be its parent."));
            }
            new.parent = Some(parent.clone());
        }
        let Some(association) = cx.accounting.of_account(&name).map(|a| a.id) else { continue };
        // As Slurm says it: where the association was.
        let before = cx.accounting.association(association).map(|a| cx.accounting.name(a));
        if new != *old {
            cx.emit(Event::AccountSet { account: Box::new(new) });
        }
        if described {
            report.accounts.push(name.clone());
        }
        if moved.is_some() || !assoc.is_empty() {
            change_association(cx, association, assoc);
            report.associations.extend(before);
        }
    }
    Ok(())
}

fn change_association(cx: &mut Cx, id: AssocId, change: &AssocChange) {
    let Some(old) = cx.accounting.association(id).cloned() else { return };
    let mut new = Association::clone(&old);
    change.apply(&mut new);
    if new != *old {
        cx.emit(Event::AssociationSet { association: Box::new(new) });
    }
}

pub(super) fn users(
    cx: &mut Cx,
    caller: &Caller,
    filter: &AssocFilter,
    change: &UserChange,
    assoc: &AssocChange,
    report: &mut AccountingReport,
) -> Done {
    check_assoc(&cx.accounting, assoc)?;
    let filter = AssocFilter { accounts: lower(&filter.accounts), ..filter.clone() };
    if !change.is_empty() {
        records(cx, caller, &filter, change, report)?;
    }
    if !assoc.is_empty() {
        let ids: Vec<AssocId> =
            cx.accounting.associations.values().filter(|a| a.user.is_some() && filter.fits(a)).map(|a| a.id).collect();
        for id in ids {
            let Some(a) = cx.accounting.association(id).cloned() else { continue };
            may_manage(&cx.accounting, caller, &a.account)?;
            change_association(cx, id, assoc);
            report.associations.push(cx.accounting.name(&a));
        }
    }
    Ok(())
}

/// The users themselves: level, defaults, wckeys.
fn records(
    cx: &mut Cx,
    caller: &Caller,
    filter: &AssocFilter,
    change: &UserChange,
    report: &mut AccountingReport,
) -> Done {
    check_user_change(caller, filter, change)?;
    let default = change.default_account.as_ref().map(|a| a.to_lowercase());
    let change = UserChange { default_account: default.clone(), ..change.clone() };
    let names: Vec<String> =
        if filter.users.is_empty() { cx.accounting.users.keys().cloned().collect() } else { filter.users.clone() };
    let inside = !filter.accounts.is_empty() || !filter.partitions.is_empty();
    for name in names {
        let Some(old) = cx.accounting.users.get(&name).cloned() else { continue };
        if inside && !cx.accounting.of_user(&name).any(|a| filter.fits(a)) {
            continue;
        }
        if let Some(account) = &default
            && !cx.accounting.of_user(&name).any(|a| a.account == *account)
        {
            return problem(format!(
                " Can't modify because these users aren't associated with new default account '{account}'...\n  U = {name}"
            ));
        }
        let mut new = User::clone(&old);
        change.apply(&mut new);
        if new != *old {
            cx.emit(Event::UserSet { user: Box::new(new) });
        }
        report.users.push(name);
    }
    Ok(())
}

/// Operators; and everybody their own defaults.
fn check_user_change(caller: &Caller, filter: &AssocFilter, change: &UserChange) -> Done {
    let own = filter.users.len() == 1 && filter.users[0] == caller.user;
    let defaults_only = change.admin_level.is_none() && change.wckeys.is_empty() && change.default_wckey.is_none();
    if own && defaults_only {
        return Ok(());
    }
    if caller.role < Role::Operator {
        return Err(Reject::AccessDenied { what: "changing users is for operators and administrators".to_owned() });
    }
    check_user(caller, change)
}

/// No names: all QOS.
pub(super) fn qos(
    cx: &mut Cx,
    caller: &Caller,
    names: &[String],
    change: &QosChange,
    report: &mut AccountingReport,
) -> Done {
    operators_only(caller, "changing QOS")?;
    check_qos(&cx.accounting, change)?;
    let names = match lower(names) {
        names if names.is_empty() => cx.accounting.qos.keys().cloned().collect(),
        names => names,
    };
    for name in names {
        let Some(old) = cx.accounting.qos.get(&name).cloned() else { continue };
        let mut new = Qos::clone(&old);
        change.apply(&mut new);
        if new.preempt.contains(&name) {
            return problem(format!("QOS {name} can't preempt itself"));
        }
        if preempts_in_a_circle(&cx.accounting, &new) {
            return problem("QOS Preemption loop detected");
        }
        if new != *old {
            cx.emit(Event::QosSet { qos: Box::new(new) });
        }
        report.qos.push(name);
    }
    Ok(())
}

pub(super) fn cluster(cx: &mut Cx, caller: &Caller, assoc: &AssocChange, report: &mut AccountingReport) -> Done {
    operators_only(caller, "changing the cluster's limits")?;
    check_assoc(&cx.accounting, assoc)?;
    let Some(root) = cx.accounting.of_account(ROOT).cloned() else { return Ok(()) };
    change_association(cx, root.id, assoc);
    report.associations.push(cx.accounting.name(&root));
    Ok(())
}

/// With the QOS as it would be: somebody whom it may preempt, straight or through others, may preempt it.
fn preempts_in_a_circle(a: &crate::accounting::Accounting, new: &Qos) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    let mut next: Vec<&String> = new.preempt.iter().collect();
    while let Some(name) = next.pop() {
        if *name == new.name {
            return true;
        }
        if seen.insert(name) {
            next.extend(a.qos.get(name).into_iter().flat_map(|q| &q.preempt));
        }
    }
    false
}
