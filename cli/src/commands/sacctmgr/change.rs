//! `sacctmgr add`, `modify` and `delete`: words → request, tried first, shown, confirmed, made.
//!
//! Source: sacctmgr(1); words as Slurm was seen to say them.

use super::announce;
use super::confirm;
use super::fields::Entity;
use super::keys::{self, Key};
use super::session::{Done, Named, Session};
use super::settings::{self, Changes};
use super::words::{self, Word, find};
use crate::client::{Controller, Retry};
use sluice_model::accounting::{AccountingReport, AccountingRequest, AssocFilter};
use sluice_proto::convert::accounting_request_to_wire;

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
    session.talk(&announce::text(&request, &words.changes, &report, &cluster));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(kind: Kind, entity: Entity, text: &str) -> Result<Words, String> {
        let texts: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Words::parse(kind, Named::Entity(entity), &texts)
    }
    fn asked(kind: Kind, entity: Entity, text: &str) -> Result<AccountingRequest, String> {
        request(kind, Named::Entity(entity), words(kind, entity, text)?)
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
}
