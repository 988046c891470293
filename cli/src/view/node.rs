//! What is derived from a node's record: its states as words and the counts that summaries add up.
//!
//! Sources: sinfo(1), "NODE STATE CODES" and "OUTPUT FIELD DESCRIPTIONS"; recorded outputs of Slurm 26.05.

use sluice_proto::v1;

/// What a node does, flags apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Base {
    Unknown,
    Down,
    Idle,
    Allocated,
    Mixed,
}

pub fn base(node: &v1::NodeRecord) -> Base {
    if node.down {
        Base::Down
    } else if node.unknown {
        Base::Unknown
    } else if node.alloc_cpus == 0 {
        Base::Idle
    } else if node.alloc_cpus >= node.cpus {
        Base::Allocated
    } else {
        Base::Mixed
    }
}

/// Is work of a job still there?
pub fn is_busy(node: &v1::NodeRecord) -> bool {
    node.alloc_cpus > 0 || node.completing
}

/// The state of `%T`, `%t` and of grouping, before the `*` of silent nodes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Word {
    pub long: &'static str,
    pub short: &'static str,
}

pub fn word(node: &v1::NodeRecord) -> Word {
    let w = |long, short| Word { long, short };
    let busy = is_busy(node);
    match base(node) {
        _ if node.fail && busy => w("failing", "failg"),
        _ if node.fail => w("fail", "fail"),
        Base::Down if node.drain && busy => w("draining", "drng"),
        Base::Down if node.drain => w("drained", "drain"),
        Base::Down => w("down", "down"),
        Base::Unknown if node.drain => w("drained", "drain"),
        Base::Unknown => w("unknown", "unk"),
        _ if node.drain && busy => w("draining", "drng"),
        _ if node.drain => w("drained", "drain"),
        Base::Allocated => w("allocated", "alloc"),
        Base::Mixed if node.planned => w("planned", "plnd"),
        Base::Mixed => w("mixed", "mix"),
        Base::Idle if node.completing => w("completing", "comp"),
        Base::Idle if node.planned => w("planned", "plnd"),
        Base::Idle => w("idle", "idle"),
    }
}

/// `*` marks nodes that do not answer.
pub fn silent_mark(node: &v1::NodeRecord) -> &'static str {
    if node.not_responding { "*" } else { "" }
}

/// The parts of `State=MIXED+DRAIN+NOT_RESPONDING`, base state first.
pub fn flags(node: &v1::NodeRecord) -> Vec<&'static str> {
    let base = match base(node) {
        Base::Unknown => "UNKNOWN",
        Base::Down => "DOWN",
        Base::Idle => "IDLE",
        Base::Allocated => "ALLOCATED",
        Base::Mixed => "MIXED",
    };
    let mut flags = vec![base];
    let set = [
        (node.completing, "COMPLETING"),
        (node.drain, "DRAIN"),
        (node.fail, "FAIL"),
        (node.planned, "PLANNED"),
        (node.not_responding, "NOT_RESPONDING"),
    ];
    flags.extend(set.iter().filter(|(on, _)| *on).map(|(_, word)| *word));
    flags
}

/// How `A/I/O/T` counts a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    Allocated,
    Idle,
    Other,
}

pub fn bucket(node: &v1::NodeRecord) -> Bucket {
    if is_busy(node) && !node.down {
        Bucket::Allocated
    } else if usable(node) {
        Bucket::Idle
    } else {
        Bucket::Other
    }
}

fn usable(node: &v1::NodeRecord) -> bool {
    !(node.down || node.drain || node.fail || node.unknown)
}

/// CPUs as allocated, idle, other.
pub fn cpus(node: &v1::NodeRecord) -> (u64, u64, u64) {
    let allocated = u64::from(node.alloc_cpus.min(node.cpus));
    let free = u64::from(node.cpus) - allocated;
    if usable(node) { (allocated, free, 0) } else { (allocated, 0, free) }
}

/// `feat1,feat2`, None when there are none.
pub fn features(node: &v1::NodeRecord) -> Option<String> {
    (!node.features.is_empty()).then(|| node.features.join(","))
}

/// What an administrator wrote, or None.
pub fn reason(node: &v1::NodeRecord) -> Option<&str> {
    node.reason.as_deref().filter(|r| !r.is_empty())
}

/// Who set the reason; the number where there is no name.
pub fn reason_user(node: &v1::NodeRecord) -> Option<String> {
    reason(node)?;
    node.reason_user.clone().or_else(|| node.reason_uid.map(|u| u.to_string()))
}

pub fn hostname(node: &v1::NodeRecord) -> &str {
    match node.report.as_ref().map(|r| r.hostname.as_str()) {
        None | Some("") => &node.name,
        Some(host) => host,
    }
}

/// The host and the port of the node's step service.
pub fn address(node: &v1::NodeRecord) -> (&str, &str) {
    let address = node.report.as_ref().map_or("", |r| r.address.as_str());
    match address.rsplit_once(':') {
        Some((host, port)) => (host, port),
        None if address.is_empty() => (hostname(node), "0"),
        None => (address, "0"),
    }
}

/// `1.67`; None when the node has not said.
pub fn load(node: &v1::NodeRecord) -> Option<String> {
    node.cpu_load_hundredths.map(|l| format!("{}.{:02}", l / 100, l % 100))
}

/// `gpu:a100:1(IDX:0)`, `gpu:0`: how much of each GRES is in use. None when the node has none.
pub fn gres_used(node: &v1::NodeRecord) -> Option<String> {
    let one = |spec: &v1::GresSpec| {
        let kind = spec.kind.as_ref().map(|k| format!("{k}:")).unwrap_or_default();
        let mut set = sluice_model::index_set::IndexSet::new();
        for held in node.alloc_gres.iter().filter(|g| g.name == spec.name && g.kind == spec.kind) {
            set = set.union(&held.indices.as_ref().map(super::job::index_set).unwrap_or_default());
        }
        if set.is_empty() {
            format!("{}:{kind}0", spec.name)
        } else {
            format!("{}:{kind}{}(IDX:{set})", spec.name, set.len())
        }
    };
    (!node.gres.is_empty()).then(|| node.gres.iter().map(one).collect::<Vec<_>>().join(","))
}

/// Names in the order people count: `node2` before `node10`.
pub fn natural_order(a: &str, b: &str) -> std::cmp::Ordering {
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    loop {
        let digits = |s: &[u8]| s.iter().take_while(|c| c.is_ascii_digit()).count();
        let (da, db) = (digits(a), digits(b));
        let order = if da > 0 && db > 0 {
            let significant = |s: &[u8], n: usize| {
                let zeros = s[..n].iter().take_while(|c| **c == b'0').count();
                s[zeros..n].to_vec()
            };
            let (na, nb) = (significant(a, da), significant(b, db));
            na.len().cmp(&nb.len()).then(na.cmp(&nb)).then(da.cmp(&db))
        } else {
            match (a.first(), b.first()) {
                (None, None) => return std::cmp::Ordering::Equal,
                (x, y) => x.cmp(&y),
            }
        };
        if order != std::cmp::Ordering::Equal {
            return order;
        }
        (a, b) = (&a[da.max(1)..], &b[db.max(1)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::fixture;

    fn with(change: impl FnOnce(&mut v1::NodeRecord)) -> v1::NodeRecord {
        let mut node = fixture::node(5);
        change(&mut node);
        node
    }

    #[test]
    fn words_follow_from_use_and_flags() {
        assert_eq!(word(&fixture::node(0)).short, "mix");
        assert_eq!(word(&fixture::node(5)).long, "idle");
        assert_eq!(word(&with(|n| n.alloc_cpus = 4)).short, "alloc");
        assert_eq!(word(&with(|n| n.drain = true)).short, "drain");
        assert_eq!(word(&with(|n| (n.drain, n.alloc_cpus) = (true, 1))).short, "drng");
        assert_eq!(word(&with(|n| n.down = true)).short, "down");
        assert_eq!(word(&with(|n| n.completing = true)).short, "comp");
        assert_eq!(word(&with(|n| n.planned = true)).short, "plnd");
        assert_eq!(word(&with(|n| n.unknown = true)).short, "unk");
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        use std::cmp::Ordering::*;
        assert_eq!(natural_order("node2", "node10"), Less);
        assert_eq!(natural_order("node2", "node2"), Equal);
        assert_eq!(natural_order("a", "b1"), Less);
        assert_eq!(natural_order("n01", "n1"), Greater);
        assert_eq!(natural_order("n", "n1"), Less);
    }

    #[test]
    fn devices_in_use_are_counted_and_named() {
        let set = v1::IndexSet { ranges: vec![v1::IndexRange { first: 1, last: 1, step: 1 }] };
        let held = v1::GresAlloc { name: "gpu".into(), kind: None, indices: Some(set) };
        assert_eq!(gres_used(&with(|n| n.alloc_gres = vec![held])).as_deref(), Some("gpu:1(IDX:1)"));
        assert_eq!(gres_used(&fixture::node(0)).as_deref(), Some("gpu:0"));
        assert_eq!(gres_used(&with(|n| n.gres.clear())), None);
    }

    #[test]
    fn flags_are_joined_after_the_base_state() {
        let node = with(|n| (n.drain, n.alloc_cpus, n.not_responding) = (true, 4, true));
        assert_eq!(flags(&node), ["ALLOCATED", "DRAIN", "NOT_RESPONDING"]);
    }

    #[test]
    fn cpus_of_unusable_nodes_count_as_other() {
        assert_eq!(cpus(&fixture::node(0)), (2, 2, 0));
        assert_eq!(cpus(&with(|n| (n.drain, n.alloc_cpus) = (true, 1))), (1, 0, 3));
        assert_eq!(bucket(&with(|n| n.drain = true)), Bucket::Other);
        assert_eq!(bucket(&with(|n| (n.drain, n.alloc_cpus) = (true, 1))), Bucket::Allocated);
    }
}
