//! Making the canonical runs of a set from ascending members or runs, and the sweep behind all set operations.

use super::{IndexSet, Run};

/// What the members seen last may still become.
#[derive(Clone, Copy, Default)]
enum Tail {
    #[default]
    Empty,
    One(u32),
    /// Two members more than 1 apart: a run if a third follows at the same distance.
    Pair(u32, u32),
    /// A run: step 1 with two members or more, other steps with three or more.
    Open(Run),
}

/// Takes members in strictly ascending order.
#[derive(Default)]
pub(super) struct Builder {
    done: Vec<Run>,
    tail: Tail,
}

impl Builder {
    /// Goes on after an existing set's members.
    pub(super) fn resume(mut done: Vec<Run>) -> Builder {
        let is_one = |r: &Run| r.first == r.last;
        let tail = match done.pop() {
            None => Tail::Empty,
            Some(r) if !is_one(&r) => Tail::Open(r),
            Some(r) => match done.pop() {
                Some(p) if is_one(&p) => Tail::Pair(p.first, r.first),
                other => {
                    done.extend(other);
                    Tail::One(r.first)
                }
            },
        };
        Builder { done, tail }
    }

    pub(super) fn push(&mut self, n: u32) {
        self.tail = match self.tail {
            Tail::Empty => Tail::One(n),
            Tail::One(a) => Self::after_one(a, n),
            Tail::Pair(a, b) if n - b == b - a => Tail::Open(Run { first: a, last: n, step: b - a }),
            Tail::Pair(a, b) => {
                self.done.push(Run::single(a));
                Self::after_one(b, n)
            }
            Tail::Open(r) if n - r.last == r.step => Tail::Open(Run { last: n, ..r }),
            Tail::Open(r) => {
                self.done.push(r);
                Tail::One(n)
            }
        };
    }

    fn after_one(a: u32, n: u32) -> Tail {
        if n - a == 1 { Tail::Open(Run { first: a, last: n, step: 1 }) } else { Tail::Pair(a, n) }
    }

    /// Pushes members one by one until the tail has fallen into the run's step, then the rest at once.
    pub(super) fn push_run(&mut self, run: Run) {
        let mut n = run.first;
        loop {
            self.push(n);
            if let Tail::Open(r) = &mut self.tail
                && r.step == run.step
            {
                r.last = run.last;
                return;
            }
            if n == run.last {
                return;
            }
            n += run.step;
        }
    }

    pub(super) fn finish(mut self) -> IndexSet {
        match self.tail {
            Tail::Empty => {}
            Tail::One(a) => self.done.push(Run::single(a)),
            Tail::Pair(a, b) => self.done.extend([Run::single(a), Run::single(b)]),
            Tail::Open(r) => self.done.push(r),
        }
        IndexSet { runs: self.done }
    }
}

/// Walks two run lists together and keeps the members for which `keep(in a, in b)` holds.
pub(super) fn combine(a: &[Run], b: &[Run], keep: impl Fn(bool, bool) -> bool) -> IndexSet {
    let mut out = Builder::default();
    let (mut a, mut b) = (a.iter().copied(), b.iter().copied());
    let (mut x, mut y) = (a.next(), b.next());
    let (only_a, only_b, both) = (keep(true, false), keep(false, true), keep(true, true));
    loop {
        match (x, y) {
            (None, None) => return out.finish(),
            (Some(r), None) => {
                if !only_a {
                    return out.finish();
                }
                out.push_run(r);
                x = a.next();
            }
            (None, Some(r)) => {
                if !only_b {
                    return out.finish();
                }
                out.push_run(r);
                y = b.next();
            }
            (Some(r), Some(s)) if r.first < s.first => {
                let (low, rest) = r.split(s.first);
                if only_a {
                    out.push_run(low);
                }
                x = rest.or_else(|| a.next());
            }
            (Some(r), Some(s)) if s.first < r.first => {
                let (low, rest) = s.split(r.first);
                if only_b {
                    out.push_run(low);
                }
                y = rest.or_else(|| b.next());
            }
            // Equal steps: the common stretch in one go.
            (Some(r), Some(s)) if r.step == s.step => {
                let last = r.last.min(s.last);
                if both {
                    out.push_run(Run { last, ..r }.tidy());
                }
                x = after(r, last).or_else(|| a.next());
                y = after(s, last).or_else(|| b.next());
            }
            (Some(r), Some(s)) => {
                if both {
                    out.push(r.first);
                }
                x = r.rest().or_else(|| a.next());
                y = s.rest().or_else(|| b.next());
            }
        }
    }
}

/// The members of `run` above its member `last`.
fn after(run: Run, last: u32) -> Option<Run> {
    (last < run.last).then(|| Run { first: last + run.step, ..run }.tidy())
}
