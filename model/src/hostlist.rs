//! Host lists: `node[0-3,07-09],login` and back.
//!
//! The forms are those of `scontrol show hostnames` and `scontrol show hostlist` (scontrol's manual page): commas
//! between names, brackets with numbers and ranges, zero padding kept, several brackets in one name. Unlike Slurm, text
//! after a bracket is accepted (`n[1-2]-ib`).

use crate::error::{ParseError, digits};

/// No list may name more hosts than this (Slurm's own limit on a range).
pub const MAX_HOSTS: usize = 65_536;
/// Longest name of one host (a DNS name is at most 253 characters).
const MAX_NAME: usize = 255;
/// Longest text that is looked at.
const MAX_TEXT: usize = 8 * 1024 * 1024;
const WHAT: &str = "host list";

/// The names in the order written; repeated names stay. Blanks separate like commas. An empty text gives no names.
pub fn expand(text: &str) -> Result<Vec<String>, ParseError> {
    if text.len() > MAX_TEXT {
        return Err(ParseError::new(WHAT, text, "the list is too long"));
    }
    let mut names = Vec::new();
    for item in split_outside_brackets(text)? {
        expand_one(item, &mut names).map_err(|allowed| ParseError::new(WHAT, item, allowed))?;
    }
    Ok(names)
}

/// Items between commas or blanks outside brackets; empty ones are dropped.
fn split_outside_brackets(text: &str) -> Result<Vec<&str>, ParseError> {
    let (mut items, mut start, mut inside) = (Vec::new(), 0, false);
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'[' if inside => return Err(ParseError::new(WHAT, text, "brackets can't be nested")),
            b'[' => inside = true,
            b']' if !inside => return Err(ParseError::new(WHAT, text, "']' without '['")),
            b']' => inside = false,
            b',' | b' ' | b'\t' | b'\n' if !inside => {
                items.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(ParseError::new(WHAT, text, "'[' without ']'"));
    }
    items.push(&text[start..]);
    items.retain(|s| !s.is_empty());
    Ok(items)
}

/// Appends the names of one item such as `rack[1-2]n[01-16]`; the rightmost bracket counts fastest.
fn expand_one(item: &str, out: &mut Vec<String>) -> Result<(), String> {
    let room = MAX_HOSTS.saturating_sub(out.len());
    let mut names = vec![String::new()];
    let mut rest = item;
    while let Some(open) = rest.find('[') {
        let close = rest.find(']').ok_or("'[' without ']'")?;
        append_text(&mut names, &rest[..open])?;
        let numbers = expand_numbers(&rest[open + 1..close], room)?;
        if names.len().saturating_mul(numbers.len()) > room {
            return Err(format!("more than {MAX_HOSTS} hosts"));
        }
        names = names.iter().flat_map(|n| numbers.iter().map(move |x| format!("{n}{x}"))).collect();
        rest = &rest[close + 1..];
    }
    append_text(&mut names, rest)?;
    if names.iter().any(|n| n.len() > MAX_NAME) {
        return Err(format!("a host's name may have at most {MAX_NAME} characters"));
    }
    if names.len() > room {
        return Err(format!("more than {MAX_HOSTS} hosts"));
    }
    out.append(&mut names);
    Ok(())
}

fn append_text(names: &mut [String], text: &str) -> Result<(), String> {
    if let Some(bad) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("{bad:?} can't be part of a host's name"));
    }
    if text.len() > MAX_NAME {
        return Err(format!("a host's name may have at most {MAX_NAME} characters"));
    }
    names.iter_mut().for_each(|n| n.push_str(text));
    Ok(())
}

/// `1-3,07` → 1 2 3 07. The first number of a range sets the padding.
fn expand_numbers(text: &str, room: usize) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let bad = || format!("'{}' is no number or range", part.chars().take(40).collect::<String>());
        let first = digits(low, u64::MAX >> 1).ok_or_else(bad)?;
        let last = digits(high, u64::MAX >> 1).ok_or_else(bad)?;
        if last < first {
            return Err(format!("the range '{part}' runs backwards"));
        }
        if last - first >= (room - out.len().min(room)) as u64 {
            return Err(format!("more than {MAX_HOSTS} hosts"));
        }
        let width = low.len();
        out.extend((first..=last).map(|n| format!("{n:0width$}")));
    }
    Ok(out)
}

/// A name split at its last digits: `node007` → (`node`, `007`). Digits too long for a number stay text.
fn split_number(name: &str) -> Option<(&str, &str, u64)> {
    let head = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[head.len()..];
    // 18 digits always fit; anything longer is folded as plain text.
    (1..=18).contains(&number.len()).then(|| number.parse().ok().map(|n| (head, number, n))).flatten()
}

/// Neighbours of equal prefix share brackets and runs become ranges; the order is kept: `n1,n2,m1` → `n[1-2],m1`.
pub fn fold(names: &[impl AsRef<str>]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < names.len() {
        if !out.is_empty() {
            out.push(',');
        }
        let Some((prefix, _, _)) = split_number(names[i].as_ref()) else {
            out.push_str(names[i].as_ref());
            i += 1;
            continue;
        };
        let group: Vec<(&str, u64)> = names[i..]
            .iter()
            .map_while(|n| split_number(n.as_ref()).filter(|(p, _, _)| *p == prefix).map(|(_, d, n)| (d, n)))
            .collect();
        i += group.len();
        out.push_str(prefix);
        if let [(digits, _)] = group[..] {
            out.push_str(digits);
        } else {
            out.push('[');
            out.push_str(&fold_numbers(&group));
            out.push(']');
        }
    }
    out
}

/// Runs of the same spelling rule become `low-high`.
fn fold_numbers(group: &[(&str, u64)]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < group.len() {
        let (low, first) = group[i];
        let mut end = i;
        // The range `low-high` prints with the width of `low`; a name belongs to it when it is spelled just so.
        while let Some((text, n)) = group.get(end + 1)
            && Some(*n) == first.checked_add((end + 1 - i) as u64)
            && *text == format!("{n:0w$}", w = low.len())
        {
            end += 1;
        }
        if !out.is_empty() {
            out.push(',');
        }
        out.push_str(low);
        if end > i {
            out.push('-');
            out.push_str(group[end].0);
        }
        i = end + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_expand_as_scontrol_show_hostnames_does() {
        for (text, names) in [
            ("node[0-3,7]", "node0 node1 node2 node3 node7"),
            ("n[08-11]", "n08 n09 n10 n11"),
            ("n[001-3]", "n001 n002 n003"),
            ("n[1-2]x[3-4]", "n1x3 n1x4 n2x3 n2x4"),
            ("node[3,1,2]", "node3 node1 node2"),
            ("a,b,a", "a b a"),
            (" a, b\tc\n", "a b c"),
            ("n[1-2]-ib", "n1-ib n2-ib"),
            ("", ""),
        ] {
            assert_eq!(expand(text).unwrap().join(" "), names, "{text:?}");
        }
    }

    #[test]
    fn lists_fold_as_scontrol_show_hostlist_does() {
        for (names, text) in [
            ("a b a", "a,b,a"),
            ("node3 node1 node2", "node[3,1-2]"),
            ("n1 n2 n3 n01 n02", "n[1-3,01-02]"),
            ("n1x3 n1x4 n2x3 n2x4", "n1x[3-4],n2x[3-4]"),
            ("10.0.0.1 10.0.0.2", "10.0.0.[1-2]"),
            ("n09 n10 n11", "n[09-11]"),
            ("n098 n99 n100", "n[098,99-100]"),
            ("n1 m1 n2", "n1,m1,n2"),
            ("n1 n1 n2", "n[1,1-2]"),
            ("n00 n01 n2", "n[00-01,2]"),
        ] {
            assert_eq!(fold(&names.split(' ').collect::<Vec<_>>()), text, "{names}");
        }
        assert_eq!(fold(&[] as &[&str]), "");
    }

    #[test]
    fn malformed_and_absurd_lists_are_refused_and_named() {
        let long = format!("n[{}]", "9".repeat(100_000));
        let many = "n[0-1],".repeat(40_000);
        let (deep, wide) = ("[".repeat(100_000), "n[0-9][0-9][0-9][0-9][0-9]");
        for bad in [
            "n[1-3",
            "n1]",
            "n[]",
            "n[3-1]",
            "n[1-5:2]",
            "n[a-b]",
            "n[-1]",
            "n[[1]]",
            "n[1,]",
            "node[0-99999999]",
            wide,
            "n[0-99999999999999999999]",
            "a b$c",
            "a/b",
            "ä",
            &long,
            &many,
            &deep,
        ] {
            let e = expand(bad).expect_err(bad);
            assert_eq!(e.what, "host list");
        }
        assert!(expand("n[0-65535]").is_ok());
        assert!(expand("n[0-65536]").is_err());
        assert!(expand("n[0-65535],m").is_err());
    }
}
