//! `--licenses=matlab:2,fluent`: licences of the cluster and how many.

use crate::error::{ParseError, digits};
use std::collections::BTreeMap;

/// Name → count (1 when none is given); `=` may stand for `:`. What is named twice adds up. Slurm's `a|b` (any of
/// them) is refused by name.
pub fn parse(text: &str) -> Result<BTreeMap<String, u32>, ParseError> {
    let fail = |allowed: &str| ParseError::new("licences", text, allowed);
    let mut out = BTreeMap::new();
    if text.contains('|') {
        return Err(fail("a choice of licences, a|b, is not supported"));
    }
    if text.eq_ignore_ascii_case("none") {
        return Ok(out);
    }
    for item in text.split(',') {
        let (name, count) = match item.split_once([':', '=']) {
            Some((name, n)) => (name, digits(n, u64::from(u32::MAX))),
            None => (item, Some(1)),
        };
        let bad_name = !is_license_name(name);
        let Some(count) = count.filter(|_| !bad_name) else { return Err(fail("name[:count], several with commas")) };
        if count > 0 {
            let total: &mut u32 = out.entry(name.to_owned()).or_default();
            *total = total.checked_add(count as u32).ok_or_else(|| fail("the count is too large"))?;
        }
    }
    Ok(out)
}

/// Letters, digits and `_ - . @ /`.
pub fn is_license_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@' | '/'))
}

/// `fluent:1,matlab:2`; empty for none.
pub fn format(licenses: &BTreeMap<String, u32>) -> String {
    licenses.iter().map(|(n, c)| format!("{n}:{c}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_counts_are_read() {
        assert_eq!(format(&parse("foo:4,bar").unwrap()), "bar:1,foo:4");
        assert_eq!(format(&parse("nastran@slurmdb:12").unwrap()), "nastran@slurmdb:12");
        assert_eq!(format(&parse("a=2,a:3").unwrap()), "a:5");
        assert!(parse("none").unwrap().is_empty());
        for bad in ["", ":3", "foo:", "foo:-1", "foo:x", "foo,", "a|b", "a b", "a:4294967295,a:1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
