//! The factors that Fair Tree replaced, for clusters whose priority flags still ask for them.
//!
//! Classic (Slurm's documentation of the multifactor priority): F = 2^(-Ue / S / d), S the product of the parts of the
//! shares down the tree, d the dampening factor, and Ue the usage mixed with the parent's:
//! Ue = U + (Ue of the parent - U) x s, s the part of the siblings' shares; just below the root Ue = U.
//!
//! Depth-oblivious: F = 2^-R, R = R of the parent x r^k, r the part of the family's usage by the part of its shares, and
//! k = 1, or 1 / (1 + (5 ln R of the parent)^2) where r and the parent's R pull to different sides of 1.

use super::tree::{MAX_DEPTH, Tree, own_shares};
use super::{Shares, Standing};

pub(super) fn classic(tree: &Tree<'_>, out: &mut [Standing], dampening: f64) {
    let columns: Vec<(f64, f64)> = (0..out.len()).map(|at| classic_columns(tree, out, at)).collect();
    for ((standing, (shares, effective)), member) in out.iter_mut().zip(columns).zip(tree.members) {
        standing.factor = member.is_user.then(|| power(effective / dampening, shares));
        (standing.norm_shares, standing.effective_usage) = (shares, effective);
    }
}

/// (norm shares, effective usage) as sshare shows them without Fair Tree.
fn classic_columns(tree: &Tree<'_>, levels: &[Standing], at: usize) -> (f64, f64) {
    let line = ancestry(tree, at);
    let Some((first, rest)) = line.split_first() else { return (1.0, 1.0) };
    let mut columns = (levels[*first].norm_shares, levels[*first].norm_usage);
    for member in rest.iter().copied().filter(|m| tree.members[*m].shares != Shares::Parent) {
        let (part, usage) = (levels[member].norm_shares, levels[member].norm_usage);
        columns = (columns.0 * part, usage + (columns.1 - usage) * part);
    }
    columns
}

pub(super) fn depth_oblivious(tree: &Tree<'_>, out: &mut [Standing]) {
    let mut columns = Vec::with_capacity(out.len());
    for at in 0..out.len() {
        let mut ratio: Option<f64> = None;
        for member in ancestry(tree, at) {
            if own_shares(&tree.members[member]).is_none() {
                continue;
            }
            let standing = &out[member];
            let level = if standing.norm_shares > 0.0 {
                standing.effective_usage / standing.norm_shares
            } else {
                f64::INFINITY
            };
            ratio = Some(match ratio {
                None => level,
                Some(parent) => parent * level.powf(damped(parent, level)),
            });
        }
        // 0 times infinity: no shares and no usage; nothing is due.
        let ratio = ratio.map(|r| if r.is_nan() { f64::INFINITY } else { r });
        out[at].factor = tree.members[at].is_user.then(|| ratio.map_or(1.0, |r| (-r).exp2()));
        columns.push(classic_columns(tree, out, at));
    }
    for (standing, (shares, effective)) in out.iter_mut().zip(columns) {
        (standing.norm_shares, standing.effective_usage) = (shares, effective);
    }
}

fn damped(parent: f64, level: f64) -> f64 {
    let (p, l) = (parent.ln(), level.ln());
    if p * l <= 0.0 { 1.0 / (1.0 + (5.0 * p) * (5.0 * p)) } else { 1.0 }
}

/// From just below the root down to the member itself; empty for the root.
fn ancestry(tree: &Tree<'_>, at: usize) -> Vec<usize> {
    let mut line = Vec::new();
    let mut next = at;
    while let Some(parent) = tree.above[next] {
        line.push(next);
        next = parent;
        if line.len() > MAX_DEPTH {
            break;
        }
    }
    line.reverse();
    line
}

/// 2^(-usage/shares): 1 without usage, 0 without shares.
fn power(usage: f64, shares: f64) -> f64 {
    if shares <= 0.0 { 0.0 } else { (-usage / shares).exp2() }
}
