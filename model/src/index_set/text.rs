//! Reading and printing index sets.

use super::{IndexSet, Run};
use crate::error::{ParseError, digits};
use std::fmt;

/// Members of runs with steps that one text may name, all together: bounds the cost of interleaved runs.
const MAX_STRIDED: u64 = 8_000_000;

impl IndexSet {
    /// `0-3,7,10-20:5`. Every index must be below `max`. Gives the set and the step written (the first one given; 1
    /// when none). Indices given twice count once; empty parts (`1,,2`) are dropped.
    pub fn parse(text: &str, max: u32) -> Result<(IndexSet, u32), ParseError> {
        let fail = |allowed: String| ParseError::new("index list", text, allowed);
        let mut step_given = None;
        let mut strided = 0u64;
        let mut sets = Vec::new();
        for part in text.split(',').filter(|p| !p.is_empty()) {
            let shown = || part.chars().take(40).collect::<String>();
            let (first, last, step) = parse_part(part)
                .ok_or_else(|| fail(format!("'{}' is no index, range or range with a step (1-9:2)", shown())))?;
            if first > last {
                return Err(fail(format!("the range '{}' runs backwards", shown())));
            }
            if last >= u64::from(max) {
                return Err(fail(format!("indices must be below {max}")));
            }
            let set = IndexSet::range_step(first as u32, last as u32, step.unwrap_or(1));
            step_given = step_given.or(step);
            if step.is_some_and(|s| s > 1) {
                strided += set.len();
            }
            if strided > MAX_STRIDED {
                return Err(fail(format!("ranges with steps may name {MAX_STRIDED} indices at most, all together")));
            }
            sets.push(set);
        }
        if sets.is_empty() {
            return Err(fail("no index is named".into()));
        }
        // Pairwise, so that many parts cost n log n.
        while sets.len() > 1 {
            sets = sets.chunks(2).map(|c| if let [a, b] = c { a.union(b) } else { c[0].clone() }).collect();
        }
        Ok((sets.pop().unwrap_or_default(), step_given.unwrap_or(1)))
    }

    /// squeue's form of an array's indices: a step only where the whole set has one and 7 members or more (`0-12:2`),
    /// else none at all (`0,4,8`, `0-3,8,12`).
    pub fn array_text(&self) -> String {
        match self.runs[..] {
            [run] if run.len() >= 7 => self.to_string(),
            _ => self.plain().to_string(),
        }
    }

    /// For CPU and device lists, where Slurm never prints steps: `0,2,4`.
    pub fn plain(&self) -> Plain<'_> {
        Plain(self)
    }
}

fn parse_part(part: &str) -> Option<(u64, u64, Option<u32>)> {
    let number = |t: &str| digits(t, u64::MAX >> 1);
    match part.split_once('-') {
        None => number(part).map(|n| (n, n, None)),
        Some((low, high)) => {
            let (high, step) = match high.split_once(':') {
                // A zero step names nothing that could be meant.
                Some((h, s)) => (h, Some(digits(s, u64::from(u32::MAX)).filter(|s| *s > 0)? as u32)),
                None => (high, None),
            };
            Some((number(low)?, number(high)?, step))
        }
    }
}

impl fmt::Display for IndexSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Run { first, last, step }) in self.runs.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match (first == last, *step) {
                (true, _) => write!(f, "{comma}{first}")?,
                (false, 1) => write!(f, "{comma}{first}-{last}")?,
                (false, s) => write!(f, "{comma}{first}-{last}:{s}")?,
            }
        }
        Ok(())
    }
}

/// Prints without steps.
pub struct Plain<'a>(&'a IndexSet);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut open: Option<(u32, u32)> = None;
        let mut put = |f: &mut fmt::Formatter<'_>, (a, b): (u32, u32)| {
            let r = if a == b { write!(f, "{comma}{a}") } else { write!(f, "{comma}{a}-{b}") };
            comma = ",";
            r
        };
        for r in &self.0.runs {
            let parts = if r.step == 1 { 1 } else { r.len() };
            for i in 0..parts {
                let a = r.first + i as u32 * r.step;
                let b = if r.step == 1 { r.last } else { a };
                open = Some(match open {
                    Some((s, e)) if e + 1 == a => (s, b),
                    Some(done) => {
                        put(f, done)?;
                        (a, b)
                    }
                    None => (a, b),
                });
            }
        }
        open.map_or(Ok(()), |last| put(f, last))
    }
}
