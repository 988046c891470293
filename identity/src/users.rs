//! Users and groups by number, from the name services, remembered for half a minute.
//!
//! A look-up may ask the network (LDAP …); a failed one answers with the number.

use nix::unistd::{Gid, Group, Uid, User};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const FRESH: Duration = Duration::from_secs(30);
/// Entries kept; beyond that all are forgotten at once.
const MOST: usize = 16_384;

struct Cache<V>(Mutex<BTreeMap<u32, (Instant, V)>>);

impl<V: Clone> Cache<V> {
    const fn new() -> Self {
        Cache(Mutex::new(BTreeMap::new()))
    }

    fn get(&self, id: u32, look_up: impl FnOnce() -> V) -> V {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some((_, value)) = known.filter(|(at, _)| at.elapsed() < FRESH) {
            return value;
        }
        // Without the lock: a slow name service holds up only who asks.
        let value = look_up();
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= MOST {
            map.clear();
        }
        map.insert(id, (Instant::now(), value.clone()));
        value
    }
}

/// A user as the name services know them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    pub home: std::path::PathBuf,
    pub shell: std::path::PathBuf,
    /// All groups, the primary one included.
    pub gids: Vec<u32>,
}

static ACCOUNTS: Cache<Option<Arc<Account>>> = Cache::new();
static GROUPS: Cache<Option<Arc<str>>> = Cache::new();

/// None when no such user is known here.
pub fn account(uid: u32) -> Option<Arc<Account>> {
    ACCOUNTS.get(uid, || {
        let user = User::from_uid(Uid::from_raw(uid)).ok().flatten()?;
        let gids = CString::new(user.name.clone())
            .ok()
            .and_then(|name| nix::unistd::getgrouplist(&name, user.gid).ok())
            .unwrap_or_else(|| vec![user.gid]);
        Some(Arc::new(Account {
            name: user.name,
            uid,
            gid: user.gid.as_raw(),
            home: user.dir,
            shell: user.shell,
            gids: gids.into_iter().map(Gid::as_raw).collect(),
        }))
    })
}

/// The user's name; the number when there is none.
pub fn name_of(uid: u32) -> String {
    account(uid).map_or_else(|| uid.to_string(), |a| a.name.clone())
}

/// The primary group.
pub fn gid_of(uid: u32) -> Option<u32> {
    account(uid).map(|a| a.gid)
}

/// Not remembered: for command lines.
pub fn uid_of(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|u| u.uid.as_raw())
}

/// Names of all the user's groups.
pub fn groups_of(uid: u32) -> Vec<String> {
    account(uid).map_or_else(Vec::new, |a| a.gids.iter().map(|&gid| group_name_of(gid)).collect())
}

/// The group's name; the number when there is none.
pub fn group_name_of(gid: u32) -> String {
    let name = GROUPS.get(gid, || {
        let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
        group.map(|g| Arc::from(g.name))
    });
    name.map_or_else(|| gid.to_string(), |name| name.to_string())
}

/// Whether the user may act with this group.
pub fn is_member(uid: u32, gid: u32) -> bool {
    account(uid).is_some_and(|a| a.gids.contains(&gid))
}
