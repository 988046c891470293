//! `--states`: `idle`, `drain,down`, `idle&drain`, `down&~drain`.
//!
//! Source: sinfo(1), `--states`. Commas mean any, `&` means all of them, `~` before a state means not in it.

use crate::view::node::{self, Base};
use sluice_proto::v1;

/// States that a filter may name. The last have no node in them here, ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    All,
    Allocated,
    Completing,
    Down,
    Drain,
    Drained,
    Draining,
    Fail,
    Idle,
    Mixed,
    NoRespond,
    Planned,
    Unknown,
    Never,
}

const NAMES: &[(&str, State)] = &[
    ("all", State::All),
    ("alloc", State::Allocated),
    ("allocated", State::Allocated),
    ("comp", State::Completing),
    ("completing", State::Completing),
    ("down", State::Down),
    ("drain", State::Drain),
    ("drained", State::Drained),
    ("draining", State::Draining),
    ("drng", State::Draining),
    ("fail", State::Fail),
    ("failing", State::Fail),
    ("idle", State::Idle),
    ("mix", State::Mixed),
    ("mixed", State::Mixed),
    ("no_respond", State::NoRespond),
    ("not_responding", State::NoRespond),
    ("planned", State::Planned),
    ("plnd", State::Planned),
    ("unk", State::Unknown),
    ("unknown", State::Unknown),
    ("blocked", State::Never),
    ("cloud", State::Never),
    ("future", State::Never),
    ("futr", State::Never),
    ("inval", State::Never),
    ("maint", State::Never),
    ("npc", State::Never),
    ("perfctrs", State::Never),
    ("power_down", State::Never),
    ("powering_down", State::Never),
    ("powered_down", State::Never),
    ("power_up", State::Never),
    ("powering_up", State::Never),
    ("reboot", State::Never),
    ("reboot^", State::Never),
    ("reboot_issued", State::Never),
    ("reboot_requested", State::Never),
    ("resv", State::Never),
    ("reserved", State::Never),
];

/// Any of the terms; a term holds when all its parts do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    terms: Vec<Vec<(State, bool)>>,
}

impl Filter {
    /// Err: the word that is no state.
    pub fn parse(text: &str) -> Result<Filter, String> {
        let part = |word: &str| {
            let (name, wanted) = match word.trim().strip_prefix('~') {
                Some(name) => (name.trim(), false),
                None => (word.trim(), true),
            };
            let found = NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(name));
            found.map(|(_, state)| (*state, wanted)).ok_or_else(|| name.to_owned())
        };
        let term = |term: &str| term.split('&').map(part).collect::<Result<Vec<_>, _>>();
        let terms = text.split(',').filter(|t| !t.trim().is_empty()).map(term).collect::<Result<Vec<_>, _>>()?;
        Ok(Filter { terms })
    }

    pub fn holds(&self, node: &v1::NodeRecord) -> bool {
        let part = |(state, wanted): &(State, bool)| is_in(node, *state) == *wanted;
        self.terms.is_empty() || self.terms.iter().any(|term| term.iter().all(part))
    }
}

/// What `--list-reasons` shows.
pub fn has_problem(node: &v1::NodeRecord) -> bool {
    node.down || node.drain || node.fail
}

/// The states that may be named, for the error.
pub fn valid() -> String {
    NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

fn is_in(node: &v1::NodeRecord, state: State) -> bool {
    match state {
        State::All => true,
        State::Allocated => node::base(node) == Base::Allocated,
        State::Completing => node.completing,
        State::Down => node.down,
        State::Drain => node.drain,
        State::Drained => node.drain && !node::is_busy(node),
        State::Draining => node.drain && node::is_busy(node),
        State::Fail => node.fail,
        State::Idle => node::base(node) == Base::Idle,
        State::Mixed => node::base(node) == Base::Mixed,
        State::NoRespond => node.not_responding,
        State::Planned => node.planned,
        State::Unknown => node.unknown,
        State::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn holds(filter: &str, change: impl FnOnce(&mut v1::NodeRecord)) -> bool {
        let mut node = fixture::node(5);
        change(&mut node);
        Filter::parse(filter).unwrap().holds(&node)
    }

    #[test]
    fn drained_nodes_are_idle_as_well() {
        assert!(holds("idle", |n| n.drain = true));
        assert!(holds("idle&drain", |n| n.drain = true));
        assert!(!holds("idle&drain", |_| ()));
        assert!(holds("DRAINED", |n| n.drain = true));
        assert!(!holds("draining", |n| n.drain = true));
    }

    #[test]
    fn tilde_excludes_and_commas_mean_any() {
        assert!(holds("down&~drain", |n| n.down = true));
        assert!(!holds("down&~drain", |n| (n.down, n.drain) = (true, true)));
        assert!(holds("alloc,idle", |_| ()));
        assert!(!holds("alloc,mix", |_| ()));
        assert!(!holds("maint", |_| ()));
    }

    #[test]
    fn a_word_that_is_no_state_is_named() {
        assert_eq!(Filter::parse("idle,foo"), Err("foo".to_owned()));
        assert!(Filter::parse("").unwrap().terms.is_empty());
    }
}
