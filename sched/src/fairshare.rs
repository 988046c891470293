//! Fair-share: who has had less than their share, as a number from 0 to 1 for each user of each account.
//!
//! Owns the ranking of the tree of accounts and users (Slurm's documentation of Fair Tree; the classic and the
//! depth-oblivious formulas when the priority flags ask for them). Promises that the order of the input does not matter,
//! that more usage never raises a factor and more shares never lower it (tests), and that a user without history is
//! treated as the tree says: the level decides, not a special case. Must not know the time: usage comes in decayed
//! (`decay`), running jobs' share included.
//!
//! Fair Tree. Among siblings, the level fair-share is LF = S / U: S the part of the siblings' shares, U the part of the
//! parent's usage; infinite without usage, 0 without shares. From the root down, siblings are visited by falling LF, a
//! user when it is met, an account by visiting its children; so all users of an account that had less than its sibling
//! stand before all users of that sibling. A user's factor is its place from the end, divided by the number of users.
//! Equal LF is a tie: users share a place, accounts are visited as if their children were one family, a user beside an
//! account shares the place of the account's first user.
//!
//! `Fairshare=parent`: a user has no level of its own and stands first in its account, beside all others that have none
//! (as seen on Slurm 22.05), so the account's level alone decides; the children of an account count as children of its
//! parent (sacctmgr's manual page).

pub mod decay;
mod formulas;
mod tree;

pub use tree::MAX_DEPTH;

/// How shares and usage become a factor (slurm.conf, PriorityFlags).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    #[default]
    FairTree,
    /// NO_FAIR_TREE: 2^(-U/S), U mixed with the parent's at each level.
    Classic,
    /// DEPTH_OBLIVIOUS: 2^(-R), R a product down the tree that forgives depth.
    DepthOblivious,
}

/// What sacctmgr's Fairshare says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shares {
    Raw(u32),
    Parent,
}

impl Default for Shares {
    fn default() -> Self {
        Shares::Raw(1)
    }
}

/// An account or a user of one, as a node of the tree.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Member {
    /// Position of the account above in the list of members; None for the root account (exactly one).
    pub parent: Option<u32>,
    pub shares: Shares,
    /// Billing seconds, decayed: of an account with all that is below.
    pub usage: f64,
    /// Users get a factor, accounts don't.
    pub is_user: bool,
}

/// Where a member stands. The names are sshare's columns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Standing {
    /// Of the siblings' shares (Fair Tree), of the cluster's (the others).
    pub norm_shares: f64,
    /// Of the cluster's usage.
    pub norm_usage: f64,
    /// Of the parent's usage (Fair Tree), mixed with the parents' (the others).
    pub effective_usage: f64,
    /// Shares by usage among siblings; infinite without usage.
    pub level_fs: f64,
    /// 0 to 1; None for accounts.
    pub factor: Option<f64>,
}

/// Every member's standing, in the list's order. A member whose parents lead nowhere (or in a circle, or deeper than
/// `MAX_DEPTH`) hangs directly below the root.
pub fn standings(members: &[Member], algorithm: Algorithm, dampening: u32) -> Vec<Standing> {
    let tree = tree::Tree::new(members);
    let mut out = tree.levels();
    match algorithm {
        Algorithm::FairTree => tree.rank(&mut out),
        Algorithm::Classic => formulas::classic(&tree, &mut out, f64::from(dampening.max(1))),
        Algorithm::DepthOblivious => formulas::depth_oblivious(&tree, &mut out),
    }
    out
}
