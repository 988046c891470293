//! What `sacctmgr` says before it asks: what a change will add, modify or delete.
//!
//! Owns the words and their layout, made from the request and from what the controller found when it tried it.
//!
//! Source: words as Slurm was seen to say them.

use super::settings::{self, Changes};
use sluice_model::accounting::{AccountingReport, AccountingRequest, AdminLevel, AssocName};
use std::fmt::Write;

/// What is about to happen, as Slurm says it.
pub fn text(request: &AccountingRequest, changes: &Changes, report: &AccountingReport, cluster: &str) -> String {
    use AccountingRequest as R;
    let mut out = String::new();
    let names = |out: &mut String, head: &str, names: &[String]| {
        if !names.is_empty() {
            put(out, head);
            names.iter().for_each(|n| put(out, &format!("  {n}")));
        }
    };
    let modified = |out: &mut String, head: &str| {
        if !report.associations.is_empty() {
            put(out, head);
            report.associations.iter().for_each(|a| put(out, &modified_line(a, cluster)));
        }
    };
    match request {
        R::AddAccounts { account, .. } => {
            names(&mut out, " Adding Account(s)", &report.accounts);
            put(&mut out, " Settings");
            let description = account.description.as_deref().unwrap_or("Account Name");
            let organization = account.organization.as_deref().unwrap_or("Parent/Account Name");
            put(&mut out, &format!("  {:<15} = {description}", "Description"));
            put(&mut out, &format!("  {:<15} = {organization}", "Organization"));
            put(&mut out, " Associations");
            report
                .associations
                .iter()
                .for_each(|a| put(&mut out, &format!("  A = {:<10} C = {cluster:<10}", a.account)));
            put(&mut out, " Settings");
            lines(&mut out, &settings::assoc_lines(&changes.assoc), 13);
            put(&mut out, &format!("  {:<13} = {}", "Parent", account.parent.as_deref().unwrap_or("root")));
        }
        R::AddUsers { .. } => {
            names(&mut out, " Adding User(s)", &report.users);
            added_user_settings(&mut out, changes, report);
            if !report.associations.is_empty() {
                put(&mut out, " Associations =");
                for a in &report.associations {
                    let user = a.user.as_deref().unwrap_or_default();
                    let partition = a.partition.as_ref().map(|p| format!(" P = {p}")).unwrap_or_default();
                    put(&mut out, &format!("  U = {user:<9} A = {:<10} C = {cluster:<10}{partition}", a.account));
                }
                put(&mut out, " Non Default Settings");
                lines(&mut out, &settings::assoc_lines(&changes.assoc), 13);
            }
        }
        R::AddQos { qos, .. } => {
            names(&mut out, " Adding QOS(s)", &report.qos);
            put(&mut out, " Settings");
            let last = report.qos.last().map(String::as_str).unwrap_or_default();
            lines(&mut out, &settings::qos_lines(last, qos), 24);
        }
        R::AddCoordinators { accounts, users } => {
            names(&mut out, " Adding Coordinator User(s)", users);
            names(&mut out, " To Account(s) and all sub-accounts", accounts);
        }
        R::ModifyAccounts { .. } => {
            names(&mut out, " Modified accounts...", &report.accounts);
            modified(&mut out, " Modified account associations...");
        }
        R::ModifyUsers { .. } => {
            names(&mut out, " Modified users...", &report.users);
            modified(&mut out, " Modified user associations...");
        }
        R::ModifyQos { .. } => names(&mut out, " Modified qos...", &report.qos),
        R::ModifyCluster { assoc } => {
            put(&mut out, " Setting\n  Default Limits:");
            lines(&mut out, &settings::assoc_lines(assoc), 13);
            modified(&mut out, " Modified cluster defaults for associations...");
        }
        R::RemoveAccounts { .. } => names(&mut out, " Deleting accounts...", &report.accounts),
        R::RemoveUsers { .. } if !report.users.is_empty() => names(&mut out, " Deleting users...", &report.users),
        R::RemoveUsers { .. } => {
            put(&mut out, " Deleting user associations...");
            for a in &report.associations {
                let user = a.user.as_deref().unwrap_or_default();
                let partition = a.partition.as_ref().map(|p| format!(" P = {p}")).unwrap_or_default();
                put(&mut out, &format!("  C = {cluster:<10} A = {:<10} U = {user:<9}{partition}", a.account));
            }
        }
        R::RemoveQos { .. } => names(&mut out, " Deleting QOS(s)...", &report.qos),
        R::All { .. } => {
            names(&mut out, " Accounts", &report.accounts);
            names(&mut out, " Users", &report.users);
            if !report.associations.is_empty() {
                put(&mut out, " Associations");
                report.associations.iter().for_each(|a| put(&mut out, &modified_line(a, cluster)));
            }
            if !report.coordinators.is_empty() {
                put(&mut out, " Coordinators");
                report.coordinators.iter().for_each(|(u, a)| put(&mut out, &format!("  U = {u:<9} A = {a:<10}")));
            }
        }
        R::RemoveCoordinators { accounts, users } => {
            names(&mut out, " Removing Coordinators with user name", users);
            names(&mut out, " From Account(s)", accounts);
            put(&mut out, " Removed Coordinators (sub accounts not listed)...");
            report.coordinators.iter().for_each(|(u, a)| put(&mut out, &format!("  U = {u:<9} A = {a:<10}")));
        }
    }
    out
}

fn added_user_settings(out: &mut String, changes: &Changes, report: &AccountingReport) {
    let mut set: Vec<(&str, String)> = Vec::new();
    let user = &changes.user;
    if !report.users.is_empty() {
        set.extend(user.default_account.clone().map(|a| ("Default Account", a)));
        set.extend(user.default_wckey.clone().map(|k| ("Default WCKey", k)));
        let level = user.admin_level.filter(|l| *l != AdminLevel::None);
        set.extend(level.map(|l| ("Admin Level", l.as_str().to_owned())));
        for edit in &user.wckeys {
            set.push(("WCKeys", edit.names().iter().cloned().collect::<Vec<_>>().join(",")));
        }
    }
    if !set.is_empty() {
        put(out, " Settings =");
        lines(out, &set, 15);
    }
}

fn modified_line(a: &AssocName, cluster: &str) -> String {
    match (&a.user, &a.parent) {
        (Some(user), _) => {
            let partition = a.partition.as_ref().map(|p| format!(" P = {p}")).unwrap_or_default();
            format!("  C = {cluster:<10} A = {:<20} U = {user:<9}{partition}", a.account)
        }
        (None, Some(parent)) => format!("  C = {cluster:<10} A = {} of {parent}", a.account),
        (None, None) => format!("  C = {cluster:<10} A = {}", a.account),
    }
}

fn lines(out: &mut String, lines: &[(&str, String)], width: usize) {
    for (key, value) in lines {
        // Slurm sets the first line of a QOS narrower than the others.
        let width = if *key == "Description" { 14 } else { width };
        put(out, &format!("  {key:<width$} = {value}"));
    }
}

fn put(out: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{line}");
}

#[cfg(test)]
mod tests {
    use super::super::change::{Kind, Words, request};
    use super::super::fields::Entity;
    use super::super::session::Named;
    use super::*;
    use sluice_model::accounting::AssocId;

    fn words(kind: Kind, entity: Entity, text: &str) -> Result<Words, String> {
        let texts: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Words::parse(kind, Named::Entity(entity), &texts)
    }
    fn assoc(account: &str, user: Option<&str>) -> AssocName {
        let parent = if user.is_none() { Some("root".to_owned()) } else { None };
        AssocName {
            id: AssocId(5),
            account: account.to_owned(),
            parent,
            user: user.map(str::to_owned),
            partition: None,
        }
    }

    #[test]
    fn an_added_account_is_announced_as_slurm_does() {
        let text_of = |line: &str, report| {
            let w = words(Kind::Add, Entity::Account, line).unwrap();
            text(
                &request(Kind::Add, Named::Entity(Entity::Account), w.clone()).unwrap(),
                &w.changes,
                &report,
                "reftest",
            )
        };
        let report = AccountingReport {
            accounts: vec!["science".to_owned()],
            associations: vec![assoc("science", None)],
            ..AccountingReport::default()
        };
        let expected = " Adding Account(s)\n  science\n Settings\n  Description     = dept\n  Organization    = uni\n \
                        Associations\n  A = science    C = reftest   \n Settings\n  Fairshare     = 50\n  \
                        Parent        = root\n";
        assert_eq!(text_of("science description=dept organization=uni fairshare=50", report), expected);
    }

    #[test]
    fn added_users_and_changed_associations_are_announced_as_slurm_does() {
        let w = words(Kind::Add, Entity::User, "eve account=chem adminlevel=operator fairshare=10").unwrap();
        let r = request(Kind::Add, Named::Entity(Entity::User), w.clone()).unwrap();
        let report = AccountingReport {
            users: vec!["eve".to_owned()],
            associations: vec![assoc("chem", Some("eve"))],
            ..AccountingReport::default()
        };
        let expected = " Adding User(s)\n  eve\n Settings =\n  Admin Level     = Operator\n Associations =\n  \
                        U = eve       A = chem       C = reftest   \n Non Default Settings\n  Fairshare     = 10\n";
        assert_eq!(text(&r, &w.changes, &report, "reftest"), expected);
        let w = words(Kind::Modify, Entity::User, "eve set maxjobs=1").unwrap();
        let r = request(Kind::Modify, Named::Entity(Entity::User), w.clone()).unwrap();
        let report = AccountingReport { associations: report.associations, ..AccountingReport::default() };
        let expected = " Modified user associations...\n  C = reftest    A = chem                 U = eve      \n";
        assert_eq!(text(&r, &w.changes, &report, "reftest"), expected);
    }
}
