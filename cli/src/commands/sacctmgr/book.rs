//! All accounts, users, associations and QOS as the controller listed them, and the tree that they make.

use sluice_model::accounting::{Account, AssocId, Association, Limits, Qos, QosAccess, ROOT, User};
use sluice_proto::convert::ConvertError;
use sluice_proto::v1;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Book {
    pub cluster: String,
    pub accounts: BTreeMap<String, Account>,
    pub users: BTreeMap<String, User>,
    pub associations: BTreeMap<AssocId, Association>,
    pub qos: BTreeMap<String, Qos>,
    pub tres: Vec<String>,
}

/// An association at its place in the tree.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Node<'b> {
    pub association: &'b Association,
    pub depth: usize,
    /// Slurm's numbering: all below lie between the two.
    pub left: u32,
    pub right: u32,
}

impl TryFrom<v1::AccountingList> for Book {
    type Error = ConvertError;
    fn try_from(m: v1::AccountingList) -> Result<Self, ConvertError> {
        let mut book = Book { cluster: m.cluster, tres: m.tres, ..Book::default() };
        for a in m.accounts {
            let a = Account::try_from(a)?;
            book.accounts.insert(a.name.clone(), a);
        }
        for u in m.users {
            let u = User::try_from(u)?;
            book.users.insert(u.name.clone(), u);
        }
        for a in m.associations {
            let a = Association::try_from(a)?;
            book.associations.insert(a.id, a);
        }
        for q in m.qos {
            let q = Qos::try_from(q)?;
            book.qos.insert(q.name.clone(), q);
        }
        Ok(book)
    }
}

impl Book {
    pub fn of_account(&self, account: &str) -> Option<&Association> {
        self.associations.values().find(|a| a.user.is_none() && a.account == account)
    }

    pub fn parent_account(&self, account: &str) -> Option<&str> {
        self.accounts.get(account)?.parent.as_deref()
    }

    /// From the association itself up to root's.
    pub fn chain(&self, a: &Association) -> Vec<&Association> {
        let mut chain: Vec<&Association> = self.associations.get(&a.id).into_iter().collect();
        let mut account = match a.user {
            Some(_) => Some(a.account.as_str()),
            None => self.parent_account(&a.account),
        };
        while let Some(name) = account.filter(|_| chain.len() <= self.associations.len()) {
            chain.extend(self.of_account(name));
            account = self.parent_account(name);
        }
        chain
    }

    /// With what is inherited, or only what is set at this place.
    pub fn limits(&self, a: &Association, inherited: bool) -> Limits {
        let mut limits = a.limits.clone();
        if inherited {
            self.chain(a).into_iter().skip(1).for_each(|above| limits.inherit(&above.limits));
        }
        limits
    }

    pub fn allowed_qos(&self, a: &Association) -> BTreeSet<String> {
        self.chain(a).into_iter().rev().fold(BTreeSet::new(), |above, x| x.qos.resolve(&above))
    }

    /// As set here: names alone, or with `+` and `-`.
    pub fn raw_qos(a: &Association) -> String {
        match &a.qos {
            QosAccess::Only(names) => names.iter().cloned().collect::<Vec<_>>().join(","),
            QosAccess::Inherited { added, removed } => {
                let signed = added.iter().map(|n| format!("+{n}")).chain(removed.iter().map(|n| format!("-{n}")));
                signed.collect::<Vec<_>>().join(",")
            }
        }
    }

    pub fn default_qos(&self, a: &Association, inherited: bool) -> Option<String> {
        let chain = self.chain(a);
        let most = if inherited { chain.len() } else { 1 };
        chain.into_iter().take(most).find_map(|x| x.default_qos.clone())
    }

    /// All associations: an account, its users, then the accounts below it, by name.
    pub fn tree(&self) -> Vec<Node<'_>> {
        let mut children: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for a in self.accounts.values() {
            if let Some(parent) = &a.parent {
                children.entry(parent).or_default().push(&a.name);
            }
        }
        let mut inside: BTreeMap<&str, Vec<&Association>> = BTreeMap::new();
        for a in self.associations.values() {
            inside.entry(&a.account).or_default().push(a);
        }
        for list in inside.values_mut() {
            list.sort_by_key(|a| (a.user.clone(), a.partition.clone()));
        }
        let mut out = Vec::new();
        let mut number = 0;
        walk(ROOT, 0, &children, &inside, &mut number, &mut out);
        out
    }
}

fn walk<'b>(
    account: &str,
    depth: usize,
    children: &BTreeMap<&str, Vec<&str>>,
    inside: &BTreeMap<&str, Vec<&'b Association>>,
    number: &mut u32,
    out: &mut Vec<Node<'b>>,
) {
    let mut next = || {
        *number += 1;
        *number
    };
    let list = inside.get(account).map(Vec::as_slice).unwrap_or_default();
    let at = out.len();
    for a in list.iter().filter(|a| a.user.is_none()) {
        out.push(Node { association: a, depth, left: next(), right: 0 });
    }
    for a in list.iter().filter(|a| a.user.is_some()) {
        out.push(Node { association: a, depth: depth + 1, left: next(), right: next() });
    }
    for child in children.get(account).map(Vec::as_slice).unwrap_or_default() {
        walk(child, depth + 1, children, inside, number, out);
    }
    *number += 1;
    if let Some(node) = out.get_mut(at).filter(|n| n.association.user.is_none()) {
        node.right = *number;
    }
}

#[cfg(test)]
pub mod fixture {
    use super::*;
    use sluice_model::accounting::{CountLimit, Shares, TresLimit, parse_change};

    fn account(name: &str, parent: Option<&str>) -> Account {
        Account {
            name: name.to_owned(),
            description: format!("the {name}"),
            organization: "uni".to_owned(),
            parent: parent.map(str::to_owned),
            coordinators: BTreeSet::new(),
        }
    }

    /// root > (chem > adam, bob), (science > phys); users root, adam, bob.
    pub fn book() -> Book {
        let mut book = Book { cluster: "tiny".to_owned(), ..Book::default() };
        for (name, parent) in
            [("root", None), ("chem", Some("root")), ("science", Some("root")), ("phys", Some("science"))]
        {
            book.accounts.insert(name.to_owned(), account(name, parent));
        }
        let at = |id, account: &str, user| Association::new(AssocId(id), account, user);
        let mut all = vec![
            Association::root(),
            at(2, "root", Some("root")),
            at(3, "chem", None),
            at(4, "chem", Some("bob")),
            at(5, "chem", Some("adam")),
            at(6, "science", None),
            at(7, "phys", None),
        ];
        all[2].limits.set_count(CountLimit::GrpWall, Some(100));
        all[2].limits.change_tres(TresLimit::MaxPerJob, &parse_change("node=4,cpu=7").unwrap());
        all[4].shares = Shares::Number(10);
        all[4].qos.add(&["gold".to_owned()].into());
        all[6].shares = Shares::Parent;
        book.associations = all.into_iter().map(|a| (a.id, a)).collect();
        for name in ["root", "adam", "bob"] {
            let user = User {
                name: name.to_owned(),
                admin_level: Default::default(),
                default_account: Some(if name == "root" { "root" } else { "chem" }.to_owned()),
                default_wckey: None,
                wckeys: BTreeSet::new(),
            };
            book.users.insert(name.to_owned(), user);
        }
        for q in [Qos::normal(), Qos { priority: 10, grace_secs: 60, ..Qos::new(2, "gold") }] {
            book.qos.insert(q.name.clone(), q);
        }
        book.tres = ["cpu", "mem", "fs/disk", "gres/gpu"].map(str::to_owned).to_vec();
        book
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::book;
    use super::*;
    use sluice_model::accounting::{CountLimit, TresLimit};

    #[test]
    fn the_tree_lists_an_account_its_users_and_what_is_below() {
        let book = book();
        let lines: Vec<String> = book
            .tree()
            .iter()
            .map(|n| {
                let user = n.association.user.clone().unwrap_or_default();
                format!("{} {} {user} {}-{}", n.depth, n.association.account, n.left, n.right)
            })
            .collect();
        assert_eq!(
            lines,
            [
                "0 root  1-14",
                "1 root root 2-3",
                "1 chem  4-9",
                "2 chem adam 5-6",
                "2 chem bob 7-8",
                "1 science  10-13",
                "2 phys  11-12"
            ]
        );
    }

    #[test]
    fn limits_and_qos_are_shown_as_inherited() {
        let book = book();
        let adam = &book.associations[&AssocId(5)];
        assert!(book.limits(adam, true).tres(TresLimit::MaxPerJob).is_some());
        assert!(book.limits(adam, false).is_empty());
        assert_eq!(book.limits(adam, true).count(CountLimit::GrpWall), None);
        assert_eq!(book.allowed_qos(adam).into_iter().collect::<Vec<_>>(), ["gold", "normal"]);
        assert_eq!(Book::raw_qos(adam), "+gold");
    }
}
