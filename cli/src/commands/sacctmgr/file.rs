//! `sacctmgr dump` and `load`: the tree of accounts as a file, in the form of Slurm's own dumps.
//!
//! Source: sacctmgr(1), "FLAT FILE DUMP AND LOAD". Lines `Cluster|Parent|Account|User - 'name':Key=value:…`, `#` for
//! remarks, a parent before its children. QOS are not in it, as in Slurm. A load is one change, all or none: what is
//! there already is only changed where the file says otherwise, and nothing is removed.

use super::announce;
use super::book::Book;
use super::change::{Kind, Words, send};
use super::confirm;
use super::fields::Entity;
use super::session::{Done, Named, Session};
use super::settings::Changes;
use super::words;
use sluice_model::accounting::{
    AccountingRequest, AdminLevel, AssocChange, AssocFilter, Association, CountLimit, QosAccess, ROOT, Shares,
    TresLimit, User, UserChange, format_counts,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

pub async fn dump(session: &mut Session, words: &[String]) -> Done {
    let Some(book) = session.book().await else { return false };
    let mut path = format!("{}.cfg", book.cluster);
    for text in words {
        let word = words::parse(text);
        match (word.key.to_ascii_lowercase().as_str(), word.value) {
            ("file" | "filename", Some(value)) => path = value,
            ("cluster" | "name" | "names", Some(name)) if name == book.cluster => {}
            (name, None) if name == book.cluster.to_lowercase() => {}
            _ => {
                return session.fail(&format!(
                    " Unknown option: {text}\n dump [{}] [file=FILE] is all there is to say",
                    book.cluster
                ));
            }
        }
    }
    match std::fs::write(&path, render(&book)) {
        Ok(()) => true,
        Err(e) => session.fail(&format!("sacctmgr: error: can't write {path}: {e}")),
    }
}

pub async fn load(session: &mut Session, words: &[String]) -> Done {
    let mut path = None;
    for text in words {
        let word = words::parse(text);
        match (word.key.to_ascii_lowercase().as_str(), word.value) {
            ("file" | "filename", Some(value)) => path = Some(value),
            // The file's own name for the cluster does not matter: there is one.
            ("cluster" | "clusters", Some(_)) => {}
            ("clean", None) => {
                return session
                    .fail("sacctmgr: error: load clean is not supported: remove what is to go with `delete`");
            }
            (_, None) if path.is_none() => path = Some(text.clone()),
            _ => return session.fail(&format!(" Unknown option: {text}")),
        }
    }
    if session.readonly {
        return session.fail("Can't run this command in readonly mode.");
    }
    let Some(path) = path else { return session.fail(" Need a file to load: load file=FILE") };
    let content = match std::fs::read_to_string(&path) {
        Ok(content) => content,
        Err(e) => return session.fail(&format!(" Unable to read \"{path}\": {e}")),
    };
    let Some(book) = session.book().await else { return false };
    let requests = match plan(&content, &book) {
        Ok(requests) => requests,
        Err(problem) => return session.fail(&format!("sacctmgr: error: {path}: {problem}")),
    };
    session.talk(&format!("For cluster {}\n", book.cluster));
    if requests.is_empty() {
        session.talk(" Nothing new added.\n");
        return true;
    }
    let request = AccountingRequest::All { requests };
    let Some(report) = send(session, &request, true).await else { return false };
    session.talk(&announce::text(&request, &Changes::default(), &report, &book.cluster));
    if !session.immediate && !confirm::ask("Would you like to commit changes?") {
        session.talk(" Changes Discarded\n");
        return true;
    }
    send(session, &request, false).await.is_some()
}

/// A file that `plan` reads back to no change at all.
fn render(book: &Book) -> String {
    let mut out = String::from("# Accounts, users and their associations. Reading it back: sacctmgr load FILE\n");
    let mut parents: Vec<&str> = vec![ROOT];
    let root = book.of_account(ROOT);
    let settings = root.map(association).unwrap_or_default();
    line(&mut out, "Cluster", &book.cluster, &[], &settings);
    let mut next = 0;
    while let Some(parent) = parents.get(next).copied() {
        next += 1;
        let inside: Vec<&Association> =
            book.associations.values().filter(|a| a.account == parent && a.user.is_some()).collect();
        let below: Vec<&str> =
            book.accounts.values().filter(|a| a.parent.as_deref() == Some(parent)).map(|a| a.name.as_str()).collect();
        if inside.is_empty() && below.is_empty() {
            continue;
        }
        line(&mut out, "Parent", parent, &[], &[]);
        for a in inside {
            let Some(user) = a.user.as_ref().and_then(|u| book.users.get(u)) else { continue };
            line(&mut out, "User", &user.name, &user_settings(book, user, a), &association(a));
        }
        for name in &below {
            let account = &book.accounts[*name];
            let own = [
                ("Description".to_owned(), quoted(&account.description)),
                ("Organization".to_owned(), quoted(&account.organization)),
            ];
            let settings = book.of_account(name).map(association).unwrap_or_default();
            line(&mut out, "Account", name, &own, &settings);
        }
        parents.extend(below);
    }
    out
}

type Setting = (String, String);

fn line(out: &mut String, what: &str, name: &str, own: &[Setting], settings: &[Setting]) {
    let _ = write!(out, "{what} - {}", quoted(name));
    for (key, value) in own.iter().chain(settings) {
        let _ = write!(out, ":{key}={value}");
    }
    out.push('\n');
}

/// Slurm writes single quotes inside as back quotes; line ends can't be in a line.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "`").replace(['\n', '\r'], " "))
}

fn user_settings(book: &Book, user: &User, a: &Association) -> Vec<Setting> {
    let mut out = Vec::new();
    let mut put = |key: &str, value: &str| out.push((key.to_owned(), quoted(value)));
    if let Some(partition) = &a.partition {
        put("Partition", partition);
    }
    if let Some(account) = &user.default_account {
        put("DefaultAccount", account);
    }
    if let Some(key) = &user.default_wckey {
        put("DefaultWCKey", key);
    }
    if !user.wckeys.is_empty() {
        put("WCKeys", &user.wckeys.iter().cloned().collect::<Vec<_>>().join(","));
    }
    if user.admin_level != AdminLevel::None {
        put("AdminLevel", user.admin_level.as_str());
    }
    let of: Vec<&str> =
        book.accounts.values().filter(|x| x.coordinators.contains(&user.name)).map(|x| x.name.as_str()).collect();
    if !of.is_empty() {
        put("Coordinator", &of.join(","));
    }
    out
}

fn association(a: &Association) -> Vec<Setting> {
    let mut out: Vec<Setting> = Vec::new();
    if let Some(name) = &a.default_qos {
        out.push(("DefaultQOS".to_owned(), quoted(name)));
    }
    let shares = match a.shares {
        Shares::Parent => "parent".to_owned(),
        Shares::Number(n) => n.to_string(),
    };
    out.push(("Fairshare".to_owned(), shares));
    for (limit, counts) in &a.limits.tres {
        let name = match limit {
            TresLimit::MaxPerJob => "MaxTRESPerJob",
            TresLimit::MaxMinsPerJob => "MaxTRESMinsPerJob",
            other => super::settings::name_of_tres(*other),
        };
        let text = format_counts(counts);
        // A kind of device has a colon.
        out.push((name.to_owned(), if text.contains(':') { quoted(&text) } else { text }));
    }
    for (limit, value) in &a.limits.counts {
        let name = match limit {
            CountLimit::MaxWall => "MaxWallDurationPerJob",
            CountLimit::MinPrioThreshold => "MinPrioThreshold",
            other => super::settings::name_of(*other, false),
        };
        out.push((name.to_owned(), value.to_string()));
    }
    if let Some(priority) = a.priority {
        out.push(("Priority".to_owned(), priority.to_string()));
    }
    let names = match &a.qos {
        QosAccess::Only(names) => names.iter().cloned().collect::<Vec<_>>(),
        QosAccess::Inherited { .. } => vec![Book::raw_qos(a)],
    };
    let qos = names.join(",");
    if !qos.is_empty() {
        out.push(("QOS".to_owned(), quoted(&qos)));
    }
    if !a.comment.is_empty() {
        out.push(("Comment".to_owned(), quoted(&a.comment)));
    }
    out
}

/// Parts between colons; quotes of both kinds hold them together.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ':') => parts.push(String::new()),
            (_, c) => {
                if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    match quote {
        Some(q) => Err(format!("there is no closing {q}")),
        None => Ok(parts),
    }
}

/// Below which account the lines stand, and what they already come to.
struct Reader<'b> {
    book: &'b Book,
    parent: String,
    accounts: BTreeSet<String>,
    users: BTreeMap<String, User>,
    requests: Vec<AccountingRequest>,
    /// Defaults and coordinators: once everything else is there.
    later: Vec<AccountingRequest>,
    said: BTreeSet<String>,
}

/// The changes that make what is there as the file says. The error names the line.
fn plan(content: &str, book: &Book) -> Result<Vec<AccountingRequest>, String> {
    let mut reader = Reader {
        book,
        parent: ROOT.to_owned(),
        accounts: book.accounts.keys().cloned().collect(),
        users: book.users.clone(),
        requests: Vec::new(),
        later: Vec::new(),
        said: BTreeSet::new(),
    };
    for (n, line) in content.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        reader.line(line).map_err(|e| format!("line {}: {e}", n + 1))?;
    }
    let mut requests = reader.requests;
    requests.extend(reader.later);
    Ok(requests)
}

impl Reader<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (title, rest) =
            line.split_once(" - ").ok_or("expected `Cluster - `, `Parent - `, `Account - ` or `User - `")?;
        let parts = split(rest)?;
        let name = parts.first().map(|n| n.trim().to_owned()).unwrap_or_default();
        let mut coordinator = Vec::new();
        let mut keys = Vec::new();
        for part in &parts[1..] {
            match part.split_once('=') {
                // Slurm writes the accounts here that it takes with a command of its own.
                Some((key, value)) if key.to_ascii_lowercase().starts_with("coord") => {
                    coordinator = words::lower_list(value)
                }
                // Slurm's own classes of clusters and features say nothing here.
                Some((key, _))
                    if ["classification", "features", "fedstate"].contains(&key.to_ascii_lowercase().as_str()) => {}
                _ => keys.push(part.clone()),
            }
        }
        let parse = |entity| Words::parse(Kind::Add, Named::Entity(entity), &keys).map_err(|e| e.trim().to_owned());
        match title.trim().to_ascii_lowercase().as_str() {
            "cluster" => {
                let w = parse(Entity::Cluster)?;
                if let Some(root) = self.book.of_account(ROOT)
                    && changes(root, &w.changes.assoc)
                {
                    self.requests.push(AccountingRequest::ModifyCluster { assoc: w.changes.assoc });
                }
            }
            "parent" => {
                self.parent = name.to_lowercase();
                if !self.accounts.contains(&self.parent) {
                    return Err(format!("the parent '{name}' is neither in the file above nor on the cluster"));
                }
            }
            "account" => self.account(&name.to_lowercase(), parse(Entity::Account)?),
            "user" => self.user(&name, parse(Entity::User)?, &coordinator),
            other => return Err(format!("'{other}' is none of Cluster, Parent, Account, User")),
        }
        Ok(())
    }

    fn account(&mut self, name: &str, w: Words) {
        let Changes { assoc, mut account, .. } = w.changes;
        account.parent = Some(self.parent.clone());
        if self.accounts.insert(name.to_owned()) {
            self.requests.push(AccountingRequest::AddAccounts { names: vec![name.to_owned()], account, assoc });
            return;
        }
        let (Some(old), Some(at)) = (self.book.accounts.get(name), self.book.of_account(name)) else { return };
        let differs = |new: &Option<String>, old: &str| {
            new.as_ref().is_some_and(|n| n.replace('`', "'") != old.replace('`', "'"))
        };
        if !differs(&account.description, &old.description) {
            account.description = None;
        }
        if !differs(&account.organization, &old.organization) {
            account.organization = None;
        }
        if account.parent == old.parent || name == ROOT {
            account.parent = None;
        }
        let same = account.description.is_none() && account.organization.is_none() && account.parent.is_none();
        if same && !changes(at, &assoc) {
            return;
        }
        let assoc = if changes(at, &assoc) { assoc } else { AssocChange::default() };
        self.requests.push(AccountingRequest::ModifyAccounts { names: vec![name.to_owned()], account, assoc });
    }

    fn user(&mut self, name: &str, w: Words, coordinator: &[String]) {
        let Changes { assoc, user, .. } = w.changes;
        let partition = w.partitions.first().cloned();
        let at = self
            .book
            .associations
            .values()
            .find(|a| a.account == self.parent && a.user.as_deref() == Some(name) && a.partition == partition);
        match at {
            None => self.requests.push(AccountingRequest::AddUsers {
                names: vec![name.to_owned()],
                accounts: vec![self.parent.clone()],
                partitions: partition.into_iter().collect(),
                user: UserChange::default(),
                assoc,
            }),
            Some(a) if changes(a, &assoc) => {
                let filter = AssocFilter {
                    users: vec![name.to_owned()],
                    accounts: vec![self.parent.clone()],
                    partitions: partition.into_iter().collect(),
                };
                self.requests.push(AccountingRequest::ModifyUsers { filter, user: UserChange::default(), assoc });
            }
            Some(_) => {}
        }
        // The user's own settings stand on each of their lines; once is enough.
        if !self.said.insert(name.to_owned()) {
            return;
        }
        let same = self.users.get(name).is_some_and(|old| {
            let mut new = old.clone();
            user.apply(&mut new);
            new == *old
        });
        if !same && !user.is_empty() {
            let filter = AssocFilter { users: vec![name.to_owned()], ..AssocFilter::default() };
            self.later.push(AccountingRequest::ModifyUsers { filter, user, assoc: AssocChange::default() });
        }
        let new: Vec<String> = coordinator
            .iter()
            .filter(|a| !self.book.accounts.get(*a).is_some_and(|x| x.coordinators.contains(name)))
            .cloned()
            .collect();
        if !new.is_empty() {
            self.later.push(AccountingRequest::AddCoordinators { accounts: new, users: vec![name.to_owned()] });
        }
    }
}

fn changes(a: &Association, change: &AssocChange) -> bool {
    let mut new = a.clone();
    change.apply(&mut new);
    new != *a
}

#[cfg(test)]
mod tests {
    use super::super::book::fixture::book;
    use super::*;

    #[test]
    fn what_was_dumped_changes_nothing_when_it_is_loaded() {
        let mut book = book();
        book.accounts.get_mut("chem").unwrap().description = "it's: \"chem\"".to_owned();
        book.accounts.get_mut("chem").unwrap().coordinators.insert("bob".to_owned());
        book.users.get_mut("bob").unwrap().admin_level = AdminLevel::Operator;
        book.users.get_mut("bob").unwrap().wckeys.insert("w".to_owned());
        let a = book.associations.values_mut().find(|a| a.user.as_deref() == Some("bob")).unwrap();
        a.priority = Some(7);
        a.default_qos = Some("normal".to_owned());
        a.qos.remove(&["gold".to_owned()].into());
        let more = sluice_model::accounting::parse_change("gres/gpu:a100=3,mem=4G").unwrap();
        a.limits.change_tres(TresLimit::GrpRunMins, &more);
        a.limits.set_count(CountLimit::MaxWall, Some(1440));
        let text = render(&book);
        assert!(
            text.contains("User - 'bob':DefaultAccount='chem':WCKeys='w':AdminLevel='Operator':Coordinator='chem'"),
            "{text}"
        );
        assert_eq!(plan(&text, &book), Ok(Vec::new()), "{text}");
    }

    #[test]
    fn a_dump_of_slurms_makes_its_tree() {
        let slurm = "# remark\n\
            Cluster - 'reftest':Fairshare=1:MaxJobs=77:QOS='normal'\n\
            Parent - 'root'\n\
            User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1\n\
            Account - 'bio':Description='the bio: `dept`':Organization='uni':Fairshare=50:GrpTRES=cpu=10,mem=4G:GrpWall=100:QOS='+gold'\n\
            Parent - 'bio'\n\
            User - 'ann':Partition='debug':DefaultAccount='bio':AdminLevel='Operator':Coordinator='bio':Fairshare=2147483647:MaxTRESPerJob=cpu=3,node=2\n";
        let requests = plan(slurm, &book()).unwrap();
        use AccountingRequest as R;
        assert!(matches!(&requests[0], R::ModifyCluster { assoc } if assoc.limits.counts.len() == 1), "{requests:?}");
        let adds: Vec<&R> =
            requests.iter().filter(|r| matches!(r, R::AddAccounts { .. } | R::AddUsers { .. })).collect();
        let [R::AddAccounts { account, assoc, .. }, R::AddUsers { accounts, partitions, assoc: of_ann, .. }] = adds[..]
        else {
            panic!("{requests:?}")
        };
        assert_eq!(account.description.as_deref(), Some("the bio: `dept`"));
        assert_eq!((assoc.limits.tres.len(), assoc.limits.counts.len(), assoc.qos.len()), (1, 1, 1));
        assert_eq!((accounts[0].as_str(), partitions[0].as_str()), ("bio", "debug"));
        assert_eq!(of_ann.shares, Some(Some(Shares::Parent)));
        assert!(matches!(requests.last(), Some(R::AddCoordinators { .. })), "{requests:?}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, part) in [
            ("\nParent - 'nosuch'", "line 2: the parent 'nosuch'"),
            ("Foo - 'x'", "line 1: 'foo' is none of"),
            ("Account", "line 1: expected"),
            ("Account - 'x':MaxJobs=y", "line 1: sacctmgr: error: Invalid value for MaxJobs (y)"),
            ("Account - 'x':Nosuch=1", "line 1: Unknown option: Nosuch=1"),
            ("Account - 'x", "line 1: there is no closing '"),
        ] {
            let error = plan(text, &book()).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
