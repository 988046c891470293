//! Weights of trackable resources: `CPU=1.0,Mem=0.25G,GRES/gpu=2.0` (slurm.conf, TRESBillingWeights and
//! PriorityWeightTRES).
//!
//! Owns the one parser and printer of weights. A weight is a decimal number, and
//! for a resource counted in MiB it may carry a unit: `0.25G` is a quarter for each GiB.

use crate::accounting::TresKind;
use crate::alloc::Allocation;
use crate::error::ParseError;
use crate::tres::Tres;
use std::fmt;

/// A decimal number with at most six places, for each so many units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Weight {
    millionths: i64,
    /// None, or one of K M G T P: for each so many MiB-based units.
    unit: Option<char>,
}

/// Weights are at most so large, either way.
const MOST: i64 = 1_000_000_000_000;

impl Weight {
    /// `1`, `-2.5`, `.25G`.
    pub fn parse(text: &str) -> Result<Weight, ParseError> {
        let fail = || {
            let allowed = "a number with at most six decimal places, perhaps with K, M, G, T or P";
            ParseError::new("TRES weight", text.chars().take(60).collect::<String>(), allowed)
        };
        let unit = text.chars().last().map(|c| c.to_ascii_uppercase()).filter(|c| "KMGTP".contains(*c));
        let number = if unit.is_some() { &text[..text.len() - 1] } else { text };
        let (negative, number) = number.strip_prefix('-').map_or((false, number), |n| (true, n));
        let (whole, places) = number.split_once('.').unwrap_or((number, ""));
        let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(places) || whole.len() > 12 || places.len() > 6 || whole.len() + places.len() == 0
        {
            return Err(fail());
        }
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| fail())? };
        let part: i64 = format!("{places:0<6}").parse().map_err(|_| fail())?;
        if whole > MOST {
            return Err(fail());
        }
        let millionths = whole * 1_000_000 + part;
        Ok(Weight { millionths: if negative { -millionths } else { millionths }, unit })
    }

    /// As written, without its unit.
    pub fn number(self) -> f64 {
        self.millionths as f64 / 1e6
    }

    /// For each counted unit (memory: MiB).
    pub fn each(self) -> f64 {
        let units: f64 = match self.unit {
            Some('K') => 1.0 / 1024.0,
            Some('G') => 1024.0,
            Some('T') => 1024.0 * 1024.0,
            Some('P') => 1024.0 * 1024.0 * 1024.0,
            _ => 1.0,
        };
        self.number() / units
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.millionths < 0 { "-" } else { "" };
        let n = self.millionths.unsigned_abs();
        let places = format!("{:06}", n % 1_000_000);
        let places = places.trim_end_matches('0');
        let dot = if places.is_empty() { "" } else { "." };
        let unit = self.unit.map(String::from).unwrap_or_default();
        f.pad(&format!("{sign}{}{dot}{places}{unit}", n / 1_000_000))
    }
}

/// Weights by resource, in the order given; each resource once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TresWeights(pub Vec<(TresKind, Weight)>);

impl TresWeights {
    /// `CPU=1.0,Mem=0.25G,GRES/gpu=2.0`; empty for none.
    pub fn parse(text: &str) -> Result<TresWeights, ParseError> {
        let mut out: Vec<(TresKind, Weight)> = Vec::new();
        for item in text.split(',').map(str::trim).filter(|i| !i.is_empty()) {
            let (name, weight) =
                item.split_once('=').ok_or_else(|| ParseError::new("TRES weights", item, "NAME=WEIGHT with commas"))?;
            let allowed = "cpu, mem, energy, node, billing, gres/NAME, gres/NAME:TYPE or license/NAME";
            let name = TresKind::parse(name.trim()).ok_or_else(|| ParseError::new("TRES", name, allowed))?;
            if out.iter().any(|(n, _)| *n == name) {
                return Err(ParseError::new("TRES weights", item, "each TRES once"));
            }
            out.push((name, Weight::parse(weight.trim())?));
        }
        Ok(TresWeights(out))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What these resources are billed as: the weighted sum; with `max` the largest of the weighted resources of a node
    /// plus the sum of those that belong to no node (licences). Without weights one for each CPU. Never negative.
    pub fn billing(&self, tres: &Tres, max: bool) -> f64 {
        if self.is_empty() {
            return tres.cpus as f64;
        }
        let weighted = |(name, weight): &(TresKind, Weight)| name.of(tres) as f64 * weight.each();
        let global = |name: &TresKind| matches!(name, TresKind::License(_));
        let sum = if max {
            let local = self.0.iter().filter(|(n, _)| !global(n)).map(weighted).fold(0.0, f64::max);
            local + self.0.iter().filter(|(n, _)| global(n)).map(weighted).sum::<f64>()
        } else {
            self.0.iter().map(weighted).sum()
        };
        if sum.is_finite() { sum.max(0.0) } else { 0.0 }
    }

    /// Like `billing`, of an allocation: with `max`, node by node.
    pub fn billing_of(&self, allocation: &Allocation, licenses: &Tres, max: bool) -> f64 {
        if !max || self.is_empty() {
            let mut all = Tres::of_allocation(allocation);
            all.licenses.clone_from(&licenses.licenses);
            return self.billing(&all, false);
        }
        let nodes = allocation.nodes.iter().map(|node| {
            let one = Allocation { nodes: vec![node.clone()] };
            self.billing(&Tres::of_allocation(&one), true)
        });
        let global = Tres { licenses: licenses.licenses.clone(), ..Tres::default() };
        nodes.sum::<f64>() + self.billing(&global, true)
    }
}

impl fmt::Display for TresWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
        f.pad(&items.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tres::parse_tres;

    #[test]
    fn the_manual_pages_example_bills_three_or_with_max_tres_two() {
        let weights = TresWeights::parse("CPU=1.0,Mem=0.25G,GRES/gpu=2.0").unwrap();
        let job = parse_tres("cpu=1,mem=8G").unwrap();
        assert_eq!(weights.billing(&job, false), 3.0);
        assert_eq!(weights.billing(&job, true), 2.0);
        assert_eq!(TresWeights::default().billing(&parse_tres("cpu=4,mem=8G").unwrap(), true), 4.0);
        let gpus = parse_tres("cpu=1,mem=8G,gres/gpu=2").unwrap();
        assert_eq!(weights.billing(&gpus, false), 7.0);
    }

    #[test]
    fn weights_print_as_they_are_read() {
        for text in ["cpu=1,mem=0.25G,gres/gpu=2", "gres/gpu:a100=-1.5,license/matlab=0.000001", "", "node=1000000"] {
            let weights = TresWeights::parse(text).unwrap();
            assert_eq!(weights.to_string(), text);
            assert_eq!(TresWeights::parse(&weights.to_string()).unwrap(), weights);
        }
        assert_eq!(Weight::parse(".25g").unwrap().to_string(), "0.25G");
        assert_eq!(Weight::parse("1K").unwrap().each(), 1024.0);
    }

    #[test]
    fn what_is_no_weight_is_refused_with_what_is_allowed() {
        for bad in
            ["cpu", "cpu=", "cpu=x", "cpu=1e3", "cpu=1.2345678", "foo=1", "gres/=1", "cpu=1,CPU=2", "cpu=--1", "cpu=G"]
        {
            assert!(TresWeights::parse(bad).is_err(), "{bad}");
        }
    }
}
