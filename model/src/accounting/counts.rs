//! Counts of trackable resources as limits use them: unlike in `tres::Tres`, a count of zero is a limit of its own.

use crate::error::{ParseError, digits};
use crate::memory::{format_memory_mb, parse_memory_mb};
use crate::tres::Tres;
use std::collections::BTreeMap;
use std::fmt;

/// One trackable resource, in the order in which Slurm numbers them (`sacctmgr show tres`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TresKind {
    Cpu,
    /// MiB.
    Mem,
    Energy,
    Node,
    Billing,
    /// `gres/gpu`, or `gres/gpu:a100` with a kind.
    Gres(String, Option<String>),
    License(String),
}

/// Kind → count (memory in MiB). Only what is limited is in it.
pub type TresCounts = BTreeMap<TresKind, u64>;
/// Kind → new count, or None to take the limit away (`-1`).
pub type TresChange = BTreeMap<TresKind, Option<u64>>;

const ALLOWED: &str =
    "name=count with commas, such as cpu=10,mem=4G,node=2,billing=100,gres/gpu=2,license/matlab=1; -1 clears one";
/// So that sums over a cluster, in minutes, fit.
const MAX: u64 = 1 << 53;

impl TresKind {
    pub fn gres(name: &str, kind: Option<&str>) -> TresKind {
        TresKind::Gres(name.to_owned(), kind.map(str::to_owned))
    }

    /// `cpu`, `mem`, `gres/gpu:a100` …; the plain kinds in any case.
    pub fn parse(text: &str) -> Option<TresKind> {
        let plain = |t: &str| {
            Some(match t.to_ascii_lowercase().as_str() {
                "cpu" => TresKind::Cpu,
                "mem" => TresKind::Mem,
                "energy" => TresKind::Energy,
                "node" => TresKind::Node,
                "billing" => TresKind::Billing,
                _ => return None,
            })
        };
        let Some((class, name)) = text.split_once('/') else { return plain(text) };
        let is_word = |w: &str| {
            !w.is_empty()
                && w.len() <= 128
                && w.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '/'))
        };
        match class.to_ascii_lowercase().as_str() {
            "gres" => {
                let (name, kind) = name.split_once(':').map_or((name, None), |(n, k)| (n, Some(k)));
                (is_word(name) && kind.is_none_or(is_word)).then(|| TresKind::gres(name, kind))
            }
            "license" => is_word(name).then(|| TresKind::License(name.to_owned())),
            _ => None,
        }
    }

    /// How many of it `tres` holds. Energy is not counted beforehand.
    pub fn of(&self, tres: &Tres) -> u64 {
        match self {
            TresKind::Cpu => tres.cpus,
            TresKind::Mem => tres.memory_mb,
            TresKind::Energy => 0,
            TresKind::Node => tres.nodes,
            TresKind::Billing => tres.billing,
            TresKind::Gres(name, kind) => tres.gres.get(&(name.clone(), kind.clone())).copied().unwrap_or(0),
            TresKind::License(name) => tres.licenses.get(name).copied().unwrap_or(0),
        }
    }

    /// Type and name as `sacctmgr show tres` separates them.
    pub fn parts(&self) -> (&'static str, Option<String>) {
        match self {
            TresKind::Cpu => ("cpu", None),
            TresKind::Mem => ("mem", None),
            TresKind::Energy => ("energy", None),
            TresKind::Node => ("node", None),
            TresKind::Billing => ("billing", None),
            TresKind::Gres(name, None) => ("gres", Some(name.clone())),
            TresKind::Gres(name, Some(kind)) => ("gres", Some(format!("{name}:{kind}"))),
            TresKind::License(name) => ("license", Some(name.clone())),
        }
    }
}

impl fmt::Display for TresKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (class, None) => f.pad(class),
            (class, Some(name)) => f.pad(&format!("{class}/{name}")),
        }
    }
}

/// `cpu=10,mem=4G,gres/gpu=2`; empty when nothing is limited.
pub fn format_counts(counts: &TresCounts) -> String {
    let one = |(kind, n): (&TresKind, &u64)| match kind {
        TresKind::Mem => format!("mem={}", format_memory_mb(*n)),
        _ => format!("{kind}={n}"),
    };
    counts.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Reads a change of counts: what `format_counts` prints, and `-1` for what is to be limited no longer. The last of
/// several counts of one kind holds, as in Slurm.
pub fn parse_change(text: &str) -> Result<TresChange, ParseError> {
    let fail = || ParseError::new("TRES", text, ALLOWED);
    let mut out = TresChange::new();
    for item in text.split(',').filter(|i| !i.is_empty()) {
        let (name, value) = item.split_once('=').ok_or_else(fail)?;
        let kind = TresKind::parse(name).ok_or_else(fail)?;
        let count = match (value, &kind) {
            ("-1", _) => None,
            (_, TresKind::Mem) => Some(parse_memory_mb(value).map_err(|_| fail())?),
            _ => Some(digits(value, MAX).ok_or_else(fail)?),
        };
        out.insert(kind, count);
    }
    if out.is_empty() { Err(fail()) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_print_in_slurms_order_and_read_back() {
        let text = "gres/gpu:a100=1,gres/gpu=2,mem=4G,license/matlab=0,cpu=10,billing=7,node=3";
        let counts: TresCounts =
            parse_change(text).unwrap().into_iter().filter_map(|(k, n)| n.map(|n| (k, n))).collect();
        let printed = format_counts(&counts);
        assert_eq!(printed, "cpu=10,mem=4G,node=3,billing=7,gres/gpu=2,gres/gpu:a100=1,license/matlab=0");
        assert_eq!(parse_change(&printed).unwrap(), parse_change(text).unwrap());
    }

    #[test]
    fn minus_one_clears_and_the_last_count_holds() {
        let change = parse_change("CPU=-1,node=1,node=2").unwrap();
        assert_eq!(change[&TresKind::Cpu], None);
        assert_eq!(change[&TresKind::Node], Some(2));
    }

    #[test]
    fn broken_counts_are_refused() {
        for bad in ["", ",", "cpu", "cpu=", "cpu=-2", "cpu=x", "foo=1", "gres/=1", "gres/gpu:=1", "mem=x", "gres=1"] {
            assert!(parse_change(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_is_found_in_what_a_job_holds() {
        let mut t = Tres { cpus: 4, memory_mb: 100, nodes: 2, billing: 5, ..Tres::default() };
        t.add_gres("gpu", Some("a100"), 3);
        for (text, n) in [("cpu", 4), ("mem", 100), ("node", 2), ("billing", 5), ("gres/gpu", 3), ("gres/gpu:h100", 0)]
        {
            assert_eq!(TresKind::parse(text).unwrap().of(&t), n, "{text}");
        }
    }
}
