//! TRES texts as Slurm prints them: `cpu=2,mem=128M,node=2,billing=2,gres/gpu=1`.

use crate::alloc::Allocation;
use crate::error::{ParseError, digits};
use crate::memory::{format_memory_mb, parse_memory_mb};
use crate::node::{GresSpec, NodeSpec};
use std::collections::BTreeMap;

/// Countable resources. Zero counts are not printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Tres {
    pub cpus: u64,
    pub memory_mb: u64,
    pub nodes: u64,
    pub billing: u64,
    /// (name, kind) → count. A counted kind is also counted under `(name, None)`, as Slurm does.
    pub gres: BTreeMap<(String, Option<String>), u64>,
    /// name → count
    pub licenses: BTreeMap<String, u64>,
}

impl Tres {
    /// Adds devices, under their name and, when they have one, also under their kind.
    pub fn add_gres(&mut self, name: &str, kind: Option<&str>, count: u64) {
        let mut add = |kind: Option<&str>| {
            let total = self.gres.entry((name.to_owned(), kind.map(str::to_owned))).or_default();
            *total = total.saturating_add(count);
        };
        add(None);
        if kind.is_some() {
            add(kind);
        }
    }

    /// What a job holds; one CPU bills one.
    pub fn of_allocation(a: &Allocation) -> Tres {
        let cpus = u64::from(a.cpus());
        let mut t =
            Tres { cpus, memory_mb: a.memory_mb(), nodes: a.nodes.len() as u64, billing: cpus, ..Tres::default() };
        for g in a.nodes.iter().flat_map(|n| &n.gres) {
            t.add_gres(&g.name, g.kind.as_deref(), g.indices.len());
        }
        t
    }

    /// A node's whole equipment (CfgTRES: without a node count).
    pub fn of_node(n: &NodeSpec) -> Tres {
        let cpus = u64::from(n.cpus);
        let mut t = Tres { cpus, memory_mb: n.memory_mb, billing: cpus, ..Tres::default() };
        t.add_specs(&n.gres);
        t
    }

    pub fn add_specs(&mut self, gres: &[GresSpec]) {
        gres.iter().for_each(|g| self.add_gres(&g.name, g.kind.as_deref(), g.count));
    }

    /// Sums, saturating.
    pub fn merge(&mut self, o: &Tres) {
        self.cpus = self.cpus.saturating_add(o.cpus);
        self.memory_mb = self.memory_mb.saturating_add(o.memory_mb);
        self.nodes = self.nodes.saturating_add(o.nodes);
        self.billing = self.billing.saturating_add(o.billing);
        for (k, n) in &o.gres {
            let total = self.gres.entry(k.clone()).or_default();
            *total = total.saturating_add(*n);
        }
        for (k, n) in &o.licenses {
            let total = self.licenses.entry(k.clone()).or_default();
            *total = total.saturating_add(*n);
        }
    }
}

/// scontrol's form: `cpu=2,mem=128M,node=2,billing=2,gres/gpu=1`; empty when nothing is counted.
pub fn format_tres(t: &Tres) -> String {
    let counts = [("node", t.nodes), ("billing", t.billing)];
    join(t, &format_memory_mb(t.memory_mb), &counts)
}

/// sacct's form, which puts billing first: `billing=2,cpu=2,gres/gpu=1,mem=128M,node=2` (names sorted).
pub fn format_tres_sorted(t: &Tres) -> String {
    let text = format_tres(t);
    let mut parts: Vec<&str> = text.split(',').collect();
    parts.sort_unstable();
    parts.join(",")
}

fn join(t: &Tres, memory: &str, counts: &[(&str, u64)]) -> String {
    let mut parts = Vec::new();
    if t.cpus > 0 {
        parts.push(format!("cpu={}", t.cpus));
    }
    if t.memory_mb > 0 {
        parts.push(format!("mem={memory}"));
    }
    parts.extend(counts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}")));
    for ((name, kind), n) in t.gres.iter().filter(|(_, n)| **n > 0) {
        parts.push(match kind {
            Some(kind) => format!("gres/{name}:{kind}={n}"),
            None => format!("gres/{name}={n}"),
        });
    }
    parts.extend(t.licenses.iter().filter(|(_, n)| **n > 0).map(|(name, n)| format!("license/{name}={n}")));
    parts.join(",")
}

/// Reads what `format_tres` prints.
pub fn parse_tres(text: &str) -> Result<Tres, ParseError> {
    let fail = || ParseError::new("TRES", text, "name=count with commas, such as cpu=2,mem=4G,gres/gpu=1");
    let mut t = Tres::default();
    for item in text.split(',').filter(|i| !i.is_empty()) {
        let (name, value) = item.split_once('=').ok_or_else(fail)?;
        if name == "mem" {
            t.memory_mb = parse_memory_mb(value).map_err(|_| fail())?;
            continue;
        }
        let n = digits(value, 1 << 53).ok_or_else(fail)?;
        match (name, name.split_once('/')) {
            ("cpu", _) => t.cpus = n,
            ("node", _) => t.nodes = n,
            ("billing", _) => t.billing = n,
            (_, Some(("gres", g))) if !g.is_empty() => {
                let (g, kind) = g.split_once(':').map_or((g, None), |(g, k)| (g, Some(k.to_owned())));
                t.gres.insert((g.to_owned(), kind), n);
            }
            (_, Some(("license", l))) if !l.is_empty() => {
                t.licenses.insert(l.to_owned(), n);
            }
            _ => return Err(fail()),
        }
    }
    Ok(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_scontrol_and_of_sacct() {
        let mut t = Tres { cpus: 2, memory_mb: 128, nodes: 2, billing: 2, ..Tres::default() };
        assert_eq!(format_tres(&t), "cpu=2,mem=128M,node=2,billing=2");
        t.add_gres("gpu", Some("a100"), 1);
        t.add_gres("gpu", None, 2);
        assert_eq!(format_tres(&t), "cpu=2,mem=128M,node=2,billing=2,gres/gpu=3,gres/gpu:a100=1");
        assert_eq!(format_tres_sorted(&t), "billing=2,cpu=2,gres/gpu:a100=1,gres/gpu=3,mem=128M,node=2");
        assert_eq!(parse_tres(&format_tres(&t)).unwrap(), t);
        assert_eq!(format_tres(&Tres::default()), "");
    }

    #[test]
    fn sums_add_every_part() {
        let mut a = parse_tres("cpu=1,mem=1G,gres/gpu=1").unwrap();
        a.merge(&parse_tres("cpu=2,node=1,license/matlab=3,gres/gpu=4").unwrap());
        assert_eq!(format_tres(&a), "cpu=3,mem=1G,node=1,gres/gpu=5,license/matlab=3");
        for bad in ["cpu", "cpu=", "cpu=-1", "foo=1", "gres/=1", "mem=x"] {
            assert!(parse_tres(bad).is_err(), "{bad}");
        }
    }
}
