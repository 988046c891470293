//! The cheapest set that suffices.
//!
//! Owns the search alone: a branch and bound over sets, given the price of each element and a test whether a set suffices.
//! Promises the cheapest of all sets that suffice (by loss, then number, then the order of the elements) as long as the
//! budget of tests lasts and more elements never suffice less; beyond the budget the best found, which is minimal in that
//! none of its elements could be left out when it was found. Must not know jobs.
//!
//! The dearest elements are decided first, and left out first: the first way down the tree is the greedy reverse-delete
//! solution, which bounds all that follows.

/// What a set costs; smaller is cheaper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Price {
    pub loss: u64,
    pub count: u32,
}

impl Price {
    fn with(self, loss: u64) -> Price {
        Price { loss: self.loss.saturating_add(loss), count: self.count + 1 }
    }
}

/// `losses`: by element, in the order of preference among equals. `suffices` is asked of sets of elements. `bound`: only
/// cheaper sets are wanted. Gives the price and the set, ascending.
pub(crate) fn cheapest(
    losses: &[u64],
    bound: Option<Price>,
    budget: &mut u32,
    mut suffices: impl FnMut(&[bool]) -> bool,
) -> Option<(Price, Vec<usize>)> {
    let mut set = vec![true; losses.len()];
    if !suffices(&set) {
        return None;
    }
    let mut order: Vec<usize> = (0..losses.len()).collect();
    order.sort_by(|a, b| losses[*b].cmp(&losses[*a]).then(b.cmp(a)));
    let mut search = Search { losses, order, best: None, bound, budget, suffices };
    search.descend(0, Price::default(), &mut set);
    search.best
}

struct Search<'a, F> {
    losses: &'a [u64],
    order: Vec<usize>,
    best: Option<(Price, Vec<usize>)>,
    bound: Option<Price>,
    budget: &'a mut u32,
    suffices: F,
}

impl<F: FnMut(&[bool]) -> bool> Search<'_, F> {
    /// Elements before `depth` are decided, `kept` is the price of those that stay; all others are in the set, which
    /// suffices.
    fn descend(&mut self, depth: usize, kept: Price, set: &mut [bool]) {
        if self.bound.is_some_and(|b| kept >= b) || self.best.as_ref().is_some_and(|(best, _)| kept > *best) {
            return;
        }
        let Some(at) = self.order.get(depth).copied() else {
            let chosen: Vec<usize> = (0..set.len()).filter(|i| set[*i]).collect();
            let better = self.best.as_ref().is_none_or(|(price, best)| (kept, &chosen) < (*price, best));
            if better {
                self.best = Some((kept, chosen));
            }
            return;
        };
        if *self.budget == 0 && self.best.is_some() {
            return;
        }
        *self.budget = self.budget.saturating_sub(1);
        set[at] = false;
        if (self.suffices)(set) {
            self.descend(depth + 1, kept, set);
        }
        set[at] = true;
        self.descend(depth + 1, kept.with(self.losses[at]), set);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn by_force(losses: &[u64], suffices: impl Fn(&[bool]) -> bool) -> Option<(Price, Vec<usize>)> {
        let sets = 0u32..1 << losses.len();
        let member = |bits: u32| move |i: &usize| bits & (1 << i) != 0;
        let fitting = sets.filter(|bits| {
            let set: Vec<bool> = (0..losses.len()).map(|i| member(*bits)(&i)).collect();
            suffices(&set)
        });
        fitting
            .map(|bits| {
                let chosen: Vec<usize> = (0..losses.len()).filter(member(bits)).collect();
                (chosen.iter().fold(Price::default(), |p, i| p.with(losses[*i])), chosen)
            })
            .min()
    }

    proptest! {
        #[test]
        fn no_set_that_suffices_is_cheaper(
            elements in prop::collection::vec((0u64..6, 0u32..4, 0u32..4), 0..9), need in (0u32..9, 0u32..9)
        ) {
            let losses: Vec<u64> = elements.iter().map(|e| e.0).collect();
            let suffices = |set: &[bool]| {
                let of = |f: fn(&(u64, u32, u32)) -> u32| {
                    elements.iter().zip(set).filter(|(_, s)| **s).map(|(e, _)| f(e)).sum::<u32>()
                };
                of(|e| e.1) >= need.0 && of(|e| e.2) >= need.1
            };
            let found = cheapest(&losses, None, &mut 100_000, suffices);
            prop_assert_eq!(found, by_force(&losses, suffices));
        }

        #[test]
        fn with_a_small_budget_nothing_in_the_set_could_be_left_out(
            elements in prop::collection::vec((0u64..6, 0u32..4), 0..30), need in 0u32..30, budget in 0u32..20
        ) {
            let losses: Vec<u64> = elements.iter().map(|e| e.0).collect();
            let sum = |set: &[bool]| elements.iter().zip(set).filter(|(_, s)| **s).map(|(e, _)| e.1).sum::<u32>();
            let found = cheapest(&losses, None, &mut { budget }, |set| sum(set) >= need);
            if let Some((_, chosen)) = found {
                let set: Vec<bool> = (0..elements.len()).map(|i| chosen.contains(&i)).collect();
                prop_assert!(sum(&set) >= need);
                for left_out in chosen {
                    let mut less = set.clone();
                    less[left_out] = false;
                    prop_assert!(sum(&less) < need);
                }
            } else {
                prop_assert!(sum(&vec![true; elements.len()]) < need);
            }
        }
    }

    #[test]
    fn only_cheaper_sets_than_the_bound_are_found() {
        let bound = Some(Price { loss: 3, count: 1 });
        assert_eq!(cheapest(&[3], bound, &mut 10, |set| set[0]), None);
        assert_eq!(cheapest(&[2], bound, &mut 10, |set| set[0]), Some((Price { loss: 2, count: 1 }, vec![0])));
    }
}
