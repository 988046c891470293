//! Features that speak of the nodes together: counts, alternatives for all nodes alike, and what is only preferred.
//!
//! Owns the order in which these are tried: `--prefer` first, `--constraint` when that can't be had; of alternatives the
//! one with the fewest nodes, then of the least weight, then as written. Promises that no node counts for two counts, and
//! that counts are met whenever the candidates allow it: sets of nodes that can be told apart so are the independent sets
//! of a transversal matroid (Edmonds and Fulkerson, "Transversals and matroid partition", 1965), in which taking the
//! best that still fits gives the best whole.

use super::{Candidate, Extent, Share, choose};
use crate::shape::Shape;
use sluice_model::node::NodeSpec;
use sluice_model::request::Constraint;

/// One expression, and the marks that stand for its parts.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// None: any node.
    constraint: Option<Constraint>,
    /// The mark of nodes that may take part.
    member: u64,
    /// Marks of its alternatives.
    alternatives: Vec<u64>,
    /// Marks of what is counted, and how many nodes must have it.
    counts: Vec<(u64, u32)>,
}

impl Wish {
    /// What to try, in this order. Nothing where each node can be judged by itself.
    pub fn of(prefer: Option<&Constraint>, constraint: Option<&Constraint>) -> Vec<Wish> {
        let together = |c: &Constraint| {
            let wanted = c.wanted();
            !wanted.counts.is_empty() || wanted.alternatives.len() > 1
        };
        match prefer {
            None if !constraint.is_some_and(together) => Vec::new(),
            None => vec![Wish::new(constraint, 0)],
            Some(_) => vec![Wish::new(prefer, 0), Wish::new(constraint, 32)],
        }
    }

    fn new(constraint: Option<&Constraint>, first: u32) -> Wish {
        let wanted = constraint.map(Constraint::wanted).unwrap_or_default();
        let alternatives = wanted.alternatives.len() as u32;
        let mark = |i: u32| 1u64 << (first + 1 + i);
        Wish {
            constraint: constraint.cloned(),
            member: 1 << first,
            alternatives: (0..alternatives).map(mark).collect(),
            counts: wanted.counts.iter().zip(alternatives..).map(|((_, n), i)| (mark(i), *n)).collect(),
        }
    }

    fn marks(&self, spec: &NodeSpec) -> u64 {
        let Some(constraint) = &self.constraint else { return self.member };
        if !constraint.matches(&spec.features) {
            return 0;
        }
        let wanted = constraint.wanted();
        let counted = wanted.counts.iter().map(|c| c.0).zip(self.counts.iter().map(|c| c.0));
        let parts = wanted.alternatives.iter().copied().zip(self.alternatives.iter().copied()).chain(counted);
        parts.filter(|(part, _)| part.matches(&spec.features)).fold(self.member, |marks, (_, mark)| marks | mark)
    }
}

/// Of a node, for all wishes.
pub(super) fn marks(wishes: &[Wish], spec: &NodeSpec) -> u64 {
    wishes.iter().fold(0, |marks, wish| marks | wish.marks(spec))
}

pub(super) fn select(shape: &Shape, pool: &[Candidate], extent: Extent) -> Option<Vec<Share>> {
    let having = |mark: u64| -> Vec<Candidate> { pool.iter().filter(|c| c.marks & mark != 0).cloned().collect() };
    shape.wishes.iter().find_map(|wish| {
        if wish.alternatives.is_empty() {
            return choose(shape, having(wish.member), extent, &wish.counts);
        }
        let each = wish.alternatives.iter().filter_map(|mark| choose(shape, having(*mark), extent, &wish.counts));
        each.min_by_key(|shares| (shares.len(), weight(pool, shares)))
    })
}

fn weight(pool: &[Candidate], shares: &[Share]) -> u64 {
    let of = |s: &Share| pool.binary_search_by_key(&s.node, |c| c.node).map_or(0, |at| u64::from(pool[at].weight));
    shares.iter().map(of).sum()
}

/// Nodes for all counts, by position in the pool: those that are `used` anyway, then the first of `order` that help.
/// None when there are not enough.
pub(super) fn counted(pool: &[Candidate], counts: &[(u64, u32)], used: &[bool], order: &[usize]) -> Option<Vec<usize>> {
    let wanted: usize = counts.iter().map(|c| c.1 as usize).sum();
    let mut groups = Groups { pool, counts, members: vec![Vec::new(); counts.len()] };
    let mut found = 0;
    for pass in [true, false] {
        for at in order.iter().filter(|at| used[**at] == pass) {
            if found == wanted {
                break;
            }
            found += usize::from(groups.admit(*at, &mut vec![false; counts.len()]));
        }
    }
    (found == wanted).then(|| groups.members.concat())
}

/// These nodes satisfy all counts.
pub(super) fn suffice(nodes: &[Candidate], counts: &[(u64, u32)]) -> bool {
    let all: Vec<usize> = (0..nodes.len()).collect();
    counts.is_empty() || counted(nodes, counts, &vec![false; nodes.len()], &all).is_some()
}

/// Which node counts for what.
struct Groups<'a> {
    pool: &'a [Candidate],
    counts: &'a [(u64, u32)],
    members: Vec<Vec<usize>>,
}

impl Groups<'_> {
    /// Finds a count for one more node, moving others from count to count where that makes room.
    fn admit(&mut self, at: usize, tried: &mut [bool]) -> bool {
        for group in 0..self.counts.len() {
            let (mark, nodes) = self.counts[group];
            if tried[group] || self.pool[at].marks & mark == 0 {
                continue;
            }
            tried[group] = true;
            if self.members[group].len() < nodes as usize {
                self.members[group].push(at);
                return true;
            }
            for place in 0..self.members[group].len() {
                let other = self.members[group][place];
                if self.admit(other, tried) {
                    self.members[group][place] = at;
                    return true;
                }
            }
        }
        false
    }
}
