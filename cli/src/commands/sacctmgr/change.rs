//! `sacctmgr add`, `modify` and `delete`: words → request, tried first, shown, confirmed, made.
//!
//! Source: sacctmgr(1); words as Slurm was seen to say them.

use super::confirm;
use super::fields::Entity;
use super::keys::{self, Key};
use super::session::{Done, Named, Session};
use super::settings::{self, Changes};
use super::words::{self, Word, find};
use crate::client::{Controller, Retry};
use sluice_model::accounting::{AccountingReport, AccountingRequest, AdminLevel, AssocFilter, AssocName};
use sluice_proto::convert::accounting_request_to_wire;
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Add,
    Modify,
    Delete,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Add => "add",
            Kind::Modify => "modify",
            Kind::Delete => "delete",
        }
    }

    pub fn entities(self) -> &'static str {
        match self {
            Kind::Add => {
                "\"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
            }
            Kind::Modify => "\"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\"",
            Kind::Delete => {
                "\"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\""
            }
        }
    }
}

/// The words of one command, understood.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Words {
    pub names: Vec<String>,
    pub accounts: Vec<String>,
    pub users: Vec<String>,
    pub clusters: Vec<String>,
    pub partitions: Vec<String>,
    pub changes: Changes,
}

#[derive(Clone, Copy)]
enum Target {
    Names,
    Accounts,
    Users,
    Clusters,
    Partitions,
}

static TARGETS: &[(&str, Target)] = &[
    ("Names", Target::Names),
    ("Accounts", Target::Accounts),
    ("Acct", Target::Accounts),
    ("Users", Target::Users),
    ("Clusters", Target::Clusters),
    ("Partitions", Target::Partitions),
];

impl Words {
    fn target(&mut self, entity: Named, word: &Word) -> bool {
        let list = match find(TARGETS, &word.key) {
            Some(Target::Names) => &mut self.names,
            // An account's own key is its name.
            Some(Target::Accounts) if matches!(entity, Named::Entity(Entity::Account)) => &mut self.names,
            Some(Target::Accounts) => &mut self.accounts,
            Some(Target::Users) if matches!(entity, Named::Entity(Entity::User) | Named::Coordinator) => {
                &mut self.names
            }
            Some(Target::Users) => &mut self.users,
            Some(Target::Clusters) => &mut self.clusters,
            Some(Target::Partitions) => &mut self.partitions,
            None => return false,
        };
        list.extend(words::list(word.value.as_deref().unwrap_or_default()));
        true
    }

    /// The error is what to say.
    pub fn parse(kind: Kind, entity: Named, texts: &[String]) -> Result<Words, String> {
        let mut out = Words::default();
        // What stands before `set` says which; `add` has no conditions.
        let mut setting = kind == Kind::Add;
        for text in texts {
            if kind == Kind::Modify && text.eq_ignore_ascii_case("set") {
                setting = true;
                continue;
            }
            if kind != Kind::Add && text.eq_ignore_ascii_case("where") {
                setting = false;
                continue;
            }
            let word = words::parse(text);
            if word.value.is_none() {
                if setting && kind == Kind::Modify {
                    return Err(format!(" Unknown option: {text}\n Use keyword 'where' to modify condition"));
                }
                out.names.extend(words::list(text));
                continue;
            }
            let key = key(entity, &word.key).filter(|_| setting);
            match key {
                Some(key) => {
                    let of_qos = matches!(entity, Named::Entity(Entity::Qos));
                    settings::set(&mut out.changes, key, of_qos, &word).map_err(|e| format!("sacctmgr: error: {e}"))?;
                }
                None if kind != Kind::Modify || !setting => {
                    if word.key.eq_ignore_ascii_case("rawusage") {
                        return Err(raw_usage());
                    }
                    if !out.target(entity, &word) {
                        return Err(unknown(kind, text));
                    }
                }
                None if word.key.eq_ignore_ascii_case("rawusage") => return Err(raw_usage()),
                None => return Err(format!(" Unknown option: {text}\n Use keyword 'where' to modify condition")),
            }
        }
        Ok(out)
    }
}

fn raw_usage() -> String {
    "sacctmgr: error: RawUsage is not supported: resetting usage comes with a later release".to_owned()
}

fn unknown(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Add => format!(" Unknown option: {text}"),
        Kind::Modify => format!(" Unknown condition: {text}\n Use keyword 'set' to modify value"),
        Kind::Delete => format!(" Unknown condition: {text}"),
    }
}

fn key(entity: Named, written: &str) -> Option<Key> {
    match entity {
        Named::Entity(Entity::Account) => keys::of_accounts(written),
        Named::Entity(Entity::User) => keys::of_users(written),
        Named::Entity(Entity::Qos) => keys::of_qos(written),
        Named::Entity(Entity::Cluster) => keys::of_associations(written),
        _ => None,
    }
}

/// What the controller is asked for. The error is what to say.
pub fn request(kind: Kind, entity: Named, w: Words) -> Result<AccountingRequest, String> {
    use AccountingRequest as R;
    let Changes { assoc, user, account, qos } = w.changes.clone();
    let need = |what: &str| format!(" Need name of {what} to add.");
    let nothing = || " You didn't give me anything to set".to_owned();
    let filter = AssocFilter { users: w.names.clone(), accounts: w.accounts.clone(), partitions: w.partitions.clone() };
    if kind == Kind::Modify && w.changes.is_empty() {
        return Err(nothing());
    }
    Ok(match (kind, entity) {
        (Kind::Add, Named::Entity(Entity::Account)) if w.names.is_empty() => return Err(need("account")),
        (Kind::Add, Named::Entity(Entity::Account)) => R::AddAccounts { names: w.names, account, assoc },
        (Kind::Add, Named::Entity(Entity::User)) if w.names.is_empty() => return Err(need("user")),
        (Kind::Add, Named::Entity(Entity::User)) => {
            R::AddUsers { names: w.names, accounts: w.accounts, partitions: w.partitions, user, assoc }
        }
        (Kind::Add, Named::Entity(Entity::Qos)) if w.names.is_empty() => return Err(need("qos")),
        (Kind::Add, Named::Entity(Entity::Qos)) => R::AddQos { names: w.names, qos },
        (Kind::Add, Named::Coordinator) if w.names.is_empty() || w.accounts.is_empty() => {
            return Err(" You need to specify a user list and an account list here.".to_owned());
        }
        (Kind::Add, Named::Coordinator) => R::AddCoordinators { accounts: w.accounts, users: w.names },
        (Kind::Modify, Named::Entity(Entity::Account)) => R::ModifyAccounts { names: w.names, account, assoc },
        (Kind::Modify, Named::Entity(Entity::User)) => R::ModifyUsers { filter, user, assoc },
        (Kind::Modify, Named::Entity(Entity::Qos)) => R::ModifyQos { names: w.names, qos },
        (Kind::Modify, Named::Entity(Entity::Cluster)) => R::ModifyCluster { assoc },
        (Kind::Delete, Named::Entity(Entity::Account)) => R::RemoveAccounts { names: w.names },
        (Kind::Delete, Named::Entity(Entity::User)) => R::RemoveUsers { filter },
        (Kind::Delete, Named::Entity(Entity::Qos)) => R::RemoveQos { names: w.names },
        (Kind::Delete, Named::Coordinator) => R::RemoveCoordinators { accounts: w.accounts, users: w.names },
        _ => {
            return Err(format!(
                "No valid entity in {} command\nInput line must include {}",
                kind.word(),
                kind.entities()
            ));
        }
    })
}

pub async fn perform(session: &mut Session, kind: Kind, entity: Named, texts: &[String]) -> Done {
    let words = match Words::parse(kind, entity, texts) {
        Ok(words) => words,
        Err(text) => return session.fail(&text),
    };
    let cluster = match session.client() {
        Some(client) => client.config.cluster.clone(),
        None => return false,
    };
    if matches!(entity, Named::Entity(Entity::Cluster)) && kind != Kind::Modify {
        return clusters(session, kind, &words, &cluster);
    }
    let mut asked = words.clusters.clone();
    if matches!(entity, Named::Entity(Entity::Cluster)) {
        asked.extend(words.names.iter().cloned());
    }
    if let Some(other) = asked.iter().find(|c| **c != cluster) {
        return session.fail(&format!(" Unknown cluster '{other}': this controller keeps those of {cluster} alone"));
    }
    let request = match request(kind, entity, words.clone()) {
        Ok(request) => request,
        Err(text) => return session.fail(&text),
    };
    if let AccountingRequest::AddUsers { names, .. } = &request
        && !session.immediate
        && !known_to_the_system(names)
    {
        session.talk(" Changes Discarded\n");
        return true;
    }
    let Some(report) = send(session, &request, true).await else { return false };
    if report.is_empty() {
        return session.fail(match kind {
            Kind::Add => " Nothing new added.",
            Kind::Modify => " Nothing modified",
            Kind::Delete if matches!(entity, Named::Coordinator) => " Nothing removed",
            Kind::Delete => " Nothing deleted",
        });
    }
    session.talk(&text(&request, &words.changes, &report, &cluster));
    if !session.immediate && !confirm::ask("Would you like to commit changes?") {
        session.talk(" Changes Discarded\n");
        return true;
    }
    send(session, &request, false).await.is_some()
}

/// There is one cluster, and it is always there.
fn clusters(session: &mut Session, kind: Kind, words: &Words, ours: &str) -> Done {
    let named: Vec<&String> = words.names.iter().chain(&words.clusters).collect();
    let text = match (kind, &named[..]) {
        (Kind::Add, []) => " Need name of cluster to add.".to_owned(),
        (Kind::Delete, []) => " No conditions given to remove, not executing.".to_owned(),
        (Kind::Add, names) if names.iter().all(|n| *n == ours) => {
            format!(" This cluster {ours} already exists.  Not adding.\n Nothing new added.")
        }
        (Kind::Add, _) => format!("sacctmgr: error: this controller keeps the cluster {ours} alone"),
        (_, names) if names.iter().any(|n| *n == ours) => {
            format!("sacctmgr: error: the controller's own cluster {ours} can't be removed")
        }
        _ => " Nothing deleted".to_owned(),
    };
    session.fail(&text)
}

/// Slurm asks about names without a uid one by one.
fn known_to_the_system(names: &[String]) -> bool {
    let known = |name: &String| nix::unistd::User::from_name(name).ok().flatten().is_some();
    names
        .iter()
        .filter(|n| !known(n))
        .all(|name| confirm::ask(&format!("There is no uid for user '{name}'\nAre you sure you want to continue?")))
}

pub async fn send(session: &mut Session, request: &AccountingRequest, dry_run: bool) -> Option<AccountingReport> {
    let message = accounting_request_to_wire(request, dry_run);
    let client = session.client()?;
    // A change that is made twice comes to the same, but the second answer would say that nothing was new.
    let retry = if dry_run { Retry::Harmless } else { Retry::Unsent };
    let answer = client.call(retry, async |mut c: Controller| c.accounting(message.clone()).await).await;
    match answer.map(AccountingReport::try_from) {
        Ok(Ok(report)) => Some(report),
        Ok(Err(e)) => {
            session.fail(&format!("sacctmgr: error: the controller's answer can't be read: {e}"));
            None
        }
        Err(e) => {
            session.complain(&e);
            None
        }
    }
}

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
    use super::*;
    use sluice_model::accounting::AssocId;

    fn words(kind: Kind, entity: Entity, text: &str) -> Result<Words, String> {
        let texts: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Words::parse(kind, Named::Entity(entity), &texts)
    }
    fn asked(kind: Kind, entity: Entity, text: &str) -> Result<AccountingRequest, String> {
        request(kind, Named::Entity(entity), words(kind, entity, text)?)
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
    fn what_stands_before_set_is_a_condition_and_after_it_a_change() {
        for text in [
            "eve account=chem set maxjobs=2",
            "where name=eve account=chem set maxjobs=2",
            "set maxjobs=2 where name=eve account=chem",
        ] {
            let AccountingRequest::ModifyUsers { filter, assoc, .. } = asked(Kind::Modify, Entity::User, text).unwrap()
            else {
                panic!("{text}")
            };
            assert_eq!((filter.users, filter.accounts), (vec!["eve".to_owned()], vec!["chem".to_owned()]), "{text}");
            assert_eq!(assoc.limits.counts.len(), 1, "{text}");
        }
    }

    #[test]
    fn mistakes_are_answered_in_slurms_words() {
        let bad = |kind, entity, text| asked(kind, entity, text).unwrap_err();
        assert_eq!(
            bad(Kind::Modify, Entity::User, "name=adam set fairshare=10 cluster=tux"),
            " Unknown option: cluster=tux\n Use keyword 'where' to modify condition"
        );
        assert_eq!(
            bad(Kind::Modify, Entity::Qos, "gold set nosuch=3"),
            " Unknown option: nosuch=3\n Use keyword 'where' to modify condition"
        );
        assert_eq!(
            bad(Kind::Modify, Entity::Qos, "gold set priority=abc"),
            "sacctmgr: error: Invalid value for Priority (abc)"
        );
        assert_eq!(bad(Kind::Modify, Entity::User, "eve"), " You didn't give me anything to set");
        assert_eq!(bad(Kind::Add, Entity::Account, ""), " Need name of account to add.");
        assert_eq!(bad(Kind::Add, Entity::Qos, "x nosuch=1"), " Unknown option: nosuch=1");
        assert_eq!(bad(Kind::Delete, Entity::User, "nosuch=1"), " Unknown condition: nosuch=1");
        assert!(bad(Kind::Modify, Entity::User, "eve set rawusage=0").contains("RawUsage"));
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
