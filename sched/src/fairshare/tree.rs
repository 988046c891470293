//! The tree of members, its levels, and the Fair Tree ranking.
//!
//! Owns who is whose sibling once `Fairshare=parent` is applied. Promises to end for any list of members.

use super::{Member, Shares, Standing};
use std::cmp::Ordering;

/// Levels of accounts at most; what lies deeper hangs below the root.
pub const MAX_DEPTH: usize = 64;

pub(super) struct Tree<'a> {
    pub(super) members: &'a [Member],
    root: Option<usize>,
    /// Whose child each counts as; None for the root.
    pub(super) above: Vec<Option<usize>>,
    /// Children of each member.
    below: Vec<Vec<usize>>,
    /// Shares of all children that have their own.
    family: Vec<u64>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(members: &'a [Member]) -> Self {
        let root = members.iter().position(|m| m.parent.is_none());
        let above: Vec<Option<usize>> = (0..members.len()).map(|at| above(members, root, at)).collect();
        let mut below = vec![Vec::new(); members.len()];
        let mut family = vec![0_u64; members.len()];
        for (at, parent) in above.iter().enumerate() {
            let Some(parent) = parent else { continue };
            // An account that gives its children away stands in no family.
            if members[at].is_user || own_shares(&members[at]).is_some() {
                below[*parent].push(at);
            }
            family[*parent] += u64::from(own_shares(&members[at]).unwrap_or(0));
        }
        Tree { members, root, above, below, family }
    }

    /// Usage that a child's is compared with: what is charged to the parent, or to all children when that is more.
    fn usage_of_family(&self, parent: usize) -> f64 {
        let children: f64 = self.below[parent].iter().map(|c| used(&self.members[*c])).sum();
        used(&self.members[parent]).max(children)
    }

    /// Shares, usage and level fair-share of each; no factors yet.
    pub(super) fn levels(&self) -> Vec<Standing> {
        let families: Vec<f64> = (0..self.members.len()).map(|at| self.usage_of_family(at)).collect();
        let all = self.root.map_or(0.0, |root| families[root]);
        let mut out: Vec<Standing> = (0..self.members.len())
            .map(|at| {
                let member = &self.members[at];
                let Some(parent) = self.above[at] else {
                    return Standing {
                        norm_shares: 0.0,
                        norm_usage: if all > 0.0 { 1.0 } else { 0.0 },
                        effective_usage: 1.0,
                        level_fs: f64::INFINITY,
                        factor: None,
                    };
                };
                let shares = f64::from(own_shares(member).unwrap_or(0));
                let family = self.family[parent] as f64;
                let norm_shares = if family > 0.0 { shares / family } else { 0.0 };
                let effective_usage = part(used(member), families[parent]);
                Standing {
                    norm_shares,
                    norm_usage: part(used(member), all),
                    effective_usage,
                    level_fs: level(norm_shares, effective_usage),
                    factor: None,
                }
            })
            .collect();
        // Who uses the account's shares shows those, and stands first in it, beside all others who do.
        for (at, member) in self.members.iter().enumerate().filter(|(_, m)| m.is_user) {
            if let (Shares::Parent, Some(parent)) = (member.shares, self.above[at]) {
                (out[at].norm_shares, out[at].level_fs) = (out[parent].norm_shares, f64::INFINITY);
            }
        }
        out
    }

    /// Fair Tree: places from the end, ties shared.
    pub(super) fn rank(&self, out: &mut [Standing]) {
        let users = self.members.iter().enumerate().filter(|(at, m)| m.is_user && self.above[*at].is_some()).count();
        let mut walk = Walk { left: users, place: users, users: users.max(1) as f64 };
        if let Some(root) = self.root {
            let family = self.below[root].clone();
            self.visit(family, out, &mut walk, None);
        }
    }

    /// Visits one family. `shared`: the place that its first users share with a tied user above.
    fn visit(&self, mut family: Vec<usize>, out: &mut [Standing], walk: &mut Walk, shared: Option<usize>) {
        // The order among equals does not matter: they share a place.
        family.sort_by(|a, b| order(out, *a, *b));
        let mut shared = shared;
        let mut from = 0;
        while from < family.len() {
            let tied = family[from..].iter().take_while(|m| order(out, family[from], **m) == Ordering::Equal).count();
            let (users, accounts): (Vec<usize>, Vec<usize>) =
                family[from..from + tied].iter().partition(|m| self.members[**m].is_user);
            from += tied;
            let below: Vec<usize> = accounts.iter().flat_map(|a| &self.below[*a]).copied().collect();
            if !users.is_empty() {
                let place = shared.unwrap_or(walk.left);
                for user in &users {
                    out[*user].factor = Some(place as f64 / walk.users);
                    walk.left -= 1;
                }
                walk.place = place;
            }
            // An account beside a tied user: its first users share that place.
            let first = if users.is_empty() { shared } else { Some(walk.place) };
            let before = walk.left;
            self.visit(below, out, walk, first);
            if !users.is_empty() || walk.left < before {
                shared = None;
            }
        }
    }
}

struct Walk {
    /// Users not yet visited: the place of the next one.
    left: usize,
    /// The place given last.
    place: usize,
    users: f64,
}

/// Higher level fair-share first.
fn order(out: &[Standing], a: usize, b: usize) -> Ordering {
    out[b].level_fs.total_cmp(&out[a].level_fs)
}

/// LF = S / U.
fn level(shares: f64, usage: f64) -> f64 {
    if shares <= 0.0 {
        0.0
    } else if usage <= 0.0 {
        f64::INFINITY
    } else {
        shares / usage
    }
}

fn part(of: f64, all: f64) -> f64 {
    if all > 0.0 { of / all } else { 0.0 }
}

fn used(m: &Member) -> f64 {
    if m.usage.is_finite() { m.usage.max(0.0) } else { 0.0 }
}

pub(super) fn own_shares(m: &Member) -> Option<u32> {
    match m.shares {
        Shares::Raw(n) => Some(n),
        Shares::Parent => None,
    }
}

/// The first account above that has shares of its own, or the root.
fn above(members: &[Member], root: Option<usize>, at: usize) -> Option<usize> {
    let root = root?;
    if at == root {
        return None;
    }
    let mut next = members[at].parent;
    for _ in 0..MAX_DEPTH {
        let Some(account) = next.map(|n| n as usize) else { return Some(root) };
        let Some(member) = members.get(account).filter(|m| !m.is_user && account != at) else { return Some(root) };
        if account == root {
            return Some(root);
        }
        if member.shares != Shares::Parent {
            // It must lead to the root itself.
            return Some(if leads_to_root(members, root, account) { account } else { root });
        }
        next = member.parent;
    }
    Some(root)
}

fn leads_to_root(members: &[Member], root: usize, from: usize) -> bool {
    let mut at = from;
    for _ in 0..MAX_DEPTH {
        if at == root {
            return true;
        }
        match members[at].parent.map(|p| p as usize).filter(|p| *p < members.len() && !members[*p].is_user) {
            Some(parent) => at = parent,
            None => return false,
        }
    }
    false
}
