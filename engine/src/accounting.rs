//! Accounts, users, associations and QOS as the cluster keeps them, and what follows from the tree: which association a
//! job belongs to, which limits and QOS it has there.
//!
//! Invariants (the audit checks them): root account, its association and the QOS `normal` are always there; every account
//! but root has a parent and exactly one association without a user; a user's associations are in accounts that exist.
//! Limits and QOS are kept where they were set and inherited when asked for, as sacctmgr's manual page says.

use imbl::OrdMap;
use sluice_model::accounting::{
    Account, AdminLevel, AssocId, AssocName, Association, Limits, NORMAL_QOS, Qos, ROOT, User,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// account, user (None: the account itself), partition (None: any)
type Key = (String, Option<String>, Option<String>);

/// Cloning is O(1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Accounting {
    pub accounts: OrdMap<String, Arc<Account>>,
    pub users: OrdMap<String, Arc<User>>,
    pub associations: OrdMap<AssocId, Arc<Association>>,
    pub qos: OrdMap<String, Arc<Qos>>,
    /// The highest numbers ever given.
    pub last_association: u32,
    pub last_qos: u32,
    /// Follows from `associations`.
    by_key: OrdMap<Key, AssocId>,
}

/// What a new cluster has, as in Slurm: the account root with the user root in it, and the QOS normal.
impl Default for Accounting {
    fn default() -> Self {
        let mut new = Accounting::empty();
        let description = "default root account".to_owned();
        new.put_account(Account {
            name: ROOT.to_owned(),
            description,
            organization: ROOT.to_owned(),
            parent: None,
            coordinators: BTreeSet::new(),
        });
        new.put_user(User {
            name: ROOT.to_owned(),
            admin_level: AdminLevel::Administrator,
            default_account: Some(ROOT.to_owned()),
            default_wckey: None,
            wckeys: BTreeSet::new(),
        });
        new.put_association(Association::root());
        new.put_association(Association::new(AssocId(2), ROOT, Some(ROOT)));
        new.put_qos(Qos::normal());
        new
    }
}

impl Accounting {
    /// Not even root: for loaders, which then put in all that was kept.
    pub fn empty() -> Accounting {
        Accounting {
            accounts: OrdMap::new(),
            users: OrdMap::new(),
            associations: OrdMap::new(),
            qos: OrdMap::new(),
            last_association: 0,
            last_qos: 0,
            by_key: OrdMap::new(),
        }
    }

    pub fn put_account(&mut self, account: Account) {
        self.accounts.insert(account.name.clone(), Arc::new(account));
    }
    pub fn put_user(&mut self, user: User) {
        self.users.insert(user.name.clone(), Arc::new(user));
    }
    pub fn put_qos(&mut self, qos: Qos) {
        self.last_qos = self.last_qos.max(qos.id);
        self.qos.insert(qos.name.clone(), Arc::new(qos));
    }
    pub fn put_association(&mut self, a: Association) {
        self.last_association = self.last_association.max(a.id.0);
        self.remove_association(a.id);
        self.by_key.insert(key(&a), a.id);
        self.associations.insert(a.id, Arc::new(a));
    }
    pub fn remove_association(&mut self, id: AssocId) {
        if let Some(old) = self.associations.remove(&id) {
            self.by_key.remove(&key(&old));
        }
    }

    /// Whether nothing changed between the two (of one cluster).
    pub fn same(&self, other: &Accounting) -> bool {
        self.accounts.ptr_eq(&other.accounts)
            && self.associations.ptr_eq(&other.associations)
            && self.qos.ptr_eq(&other.qos)
    }

    pub fn association(&self, id: AssocId) -> Option<&Arc<Association>> {
        self.associations.get(&id)
    }

    /// Exactly this one.
    pub fn find(&self, account: &str, user: Option<&str>, partition: Option<&str>) -> Option<&Arc<Association>> {
        let key = (account.to_owned(), user.map(str::to_owned), partition.map(str::to_owned));
        self.association(*self.by_key.get(&key)?)
    }

    pub fn of_account(&self, account: &str) -> Option<&Arc<Association>> {
        self.find(account, None, None)
    }

    /// The one that jobs of the user in this account and partition belong to: the partition's own, else the general one.
    pub fn for_job(&self, account: &str, user: &str, partition: &str) -> Option<&Arc<Association>> {
        self.find(account, Some(user), Some(partition)).or_else(|| self.find(account, Some(user), None))
    }

    /// The account's own association and all of users in it.
    pub fn in_account<'a>(&'a self, account: &str) -> impl Iterator<Item = &'a Arc<Association>> + use<'a> {
        let account = account.to_owned();
        let first: Key = (account.clone(), None, None);
        let ids = self.by_key.range(first..).take_while(move |((a, ..), _)| *a == account).map(|(_, id)| *id);
        ids.filter_map(|id| self.association(id))
    }

    /// All associations of a user.
    pub fn of_user<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a Arc<Association>> {
        self.associations.values().filter(move |a| a.user.as_deref() == Some(user))
    }

    /// The association above; None for root's.
    pub fn parent(&self, a: &Association) -> Option<&Arc<Association>> {
        match &a.user {
            Some(_) => self.of_account(&a.account),
            None => self.of_account(self.accounts.get(&a.account)?.parent.as_deref()?),
        }
    }

    /// From the association itself up to root's.
    pub fn chain(&self, id: AssocId) -> Vec<&Arc<Association>> {
        let mut chain: Vec<&Arc<Association>> = Vec::new();
        let mut next = self.association(id);
        while let Some(a) = next {
            chain.push(a);
            next = self.parent(a);
        }
        chain
    }

    /// The account and all below it, itself first, then by name on each level.
    pub fn subtree(&self, account: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        if self.accounts.contains_key(account) {
            found.push(account.to_owned());
        }
        let mut next = 0;
        while let Some(parent) = found.get(next).cloned() {
            found.extend(self.accounts.values().filter(|a| a.parent.as_ref() == Some(&parent)).map(|a| a.name.clone()));
            next += 1;
        }
        found
    }

    /// What holds for jobs of the association beside the group limits of those above: its own limits, and inherited
    /// ones where it has none.
    pub fn limits(&self, id: AssocId) -> Limits {
        let mut chain = self.chain(id).into_iter();
        let mut limits = chain.next().map(|a| a.limits.clone()).unwrap_or_default();
        for above in chain {
            limits.inherit(&above.limits);
        }
        limits
    }

    /// The QOS that jobs of the association may use.
    pub fn allowed_qos(&self, id: AssocId) -> BTreeSet<String> {
        let mut allowed = BTreeSet::new();
        for a in self.chain(id).into_iter().rev() {
            allowed = a.qos.resolve(&allowed);
        }
        allowed
    }

    /// Its default QOS, or the nearest one above.
    pub fn default_qos(&self, id: AssocId) -> Option<String> {
        self.chain(id).into_iter().find_map(|a| a.default_qos.clone())
    }

    /// Whether the user coordinates the account or one above it.
    pub fn coordinates(&self, user: &str, account: &str) -> bool {
        let mut next = self.accounts.get(account);
        while let Some(a) = next {
            if a.coordinators.contains(user) {
                return true;
            }
            next = a.parent.as_ref().and_then(|p| self.accounts.get(p));
        }
        false
    }

    pub fn name(&self, a: &Association) -> AssocName {
        let parent = match &a.user {
            Some(_) => None,
            None => self.accounts.get(&a.account).and_then(|account| account.parent.clone()),
        };
        AssocName { id: a.id, account: a.account.clone(), parent, user: a.user.clone(), partition: a.partition.clone() }
    }

    /// The QOS that a job of the association gets which names none: the default; else the only one allowed; else normal.
    pub fn qos_for_job(&self, association: Option<AssocId>) -> String {
        let Some(id) = association else { return NORMAL_QOS.to_owned() };
        if let Some(default) = self.default_qos(id) {
            return default;
        }
        let allowed = self.allowed_qos(id);
        match allowed.first() {
            Some(only) if allowed.len() == 1 => only.clone(),
            _ => NORMAL_QOS.to_owned(),
        }
    }

    /// One sentence for each violation of what the module promises.
    pub(crate) fn audit(&self, problems: &mut Vec<String>) {
        if !self.qos.contains_key(NORMAL_QOS) || self.of_account(ROOT).is_none() {
            problems.push("the account root or the QOS normal is gone".to_owned());
        }
        for account in self.accounts.values() {
            let name = &account.name;
            let parent = account.parent.as_ref().is_some_and(|p| self.accounts.contains_key(p));
            if parent == (name == ROOT) {
                problems.push(format!("account {name} hangs in the air"));
            }
            match self.of_account(name).map(|a| self.chain(a.id)) {
                Some(chain) if chain.last().is_some_and(|top| top.account == ROOT) => {}
                _ => problems.push(format!("account {name} has no way up to root")),
            }
        }
        for a in self.associations.values() {
            if !self.accounts.contains_key(&a.account) {
                problems.push(format!("association {} is in account {}, which does not exist", a.id, a.account));
            }
            if a.user.as_ref().is_some_and(|u| !self.users.contains_key(u)) {
                problems.push(format!("association {} is of a user who does not exist", a.id));
            }
            if a.id.0 > self.last_association || self.by_key.get(&key(a)) != Some(&a.id) {
                problems.push(format!("association {} is not found by its name", a.id));
            }
        }
        if self.by_key.len() != self.associations.len() {
            problems.push("an association is found that does not exist".to_owned());
        }
        for user in self.users.values() {
            if let Some(account) = &user.default_account
                && !self.of_user(&user.name).any(|a| a.account == *account)
            {
                problems.push(format!("user {} has the default account {account} without being in it", user.name));
            }
        }
    }
}

fn key(a: &Association) -> Key {
    (a.account.clone(), a.user.clone(), a.partition.clone())
}
