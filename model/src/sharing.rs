//! `--exclusive`, `--distribution` and `--propagate`: short words with few values.

use crate::error::{ParseError, digits};
use crate::request::{Distribution, Exclusive};
use std::fmt;

/// The value of `--exclusive[=user]`; None for the bare option. `mcs` and `topo` are refused by name.
pub fn parse_exclusive(value: Option<&str>) -> Result<Exclusive, ParseError> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("") => Ok(Exclusive::Node),
        Some("user") => Ok(Exclusive::User),
        Some("mcs" | "topo") => {
            Err(ParseError::new("exclusive", value.unwrap_or_default(), "'mcs' and 'topo' are not supported"))
        }
        Some(_) => Err(ParseError::new("exclusive", value.unwrap_or_default(), "nothing or user")),
    }
}

/// `block`, `cyclic`, `plane=4`, `arbitrary`, and levels after `:` (sockets, cores) or `,` (Pack, NoPack), which are
/// checked and given back as written. `*` stands for the default.
pub fn parse_distribution(text: &str) -> Result<(Option<Distribution>, Option<String>), ParseError> {
    let fail = || {
        let allowed = "block, cyclic or plane=SIZE, then :{block|cyclic|fcyclic|*}[:…] and ,{pack|nopack}";
        ParseError::new("distribution", text, allowed)
    };
    let lower = text.get(..text.len().min(64)).filter(|t| t.len() == text.len()).ok_or_else(fail)?;
    let lower = lower.to_ascii_lowercase();
    let cut = lower.find([':', ',']).unwrap_or(lower.len());
    let (first, rest) = lower.split_at(cut);
    let first = match first {
        "*" => None,
        "block" => Some(Distribution::Block),
        "cyclic" => Some(Distribution::Cyclic),
        "arbitrary" => Some(Distribution::Arbitrary),
        _ => {
            let size = first.strip_prefix("plane=").and_then(|n| digits(n, 1 << 20)).filter(|n| *n > 0);
            Some(Distribution::Plane(size.ok_or_else(fail)? as u32))
        }
    };
    let (levels, pack) = rest.split_once(',').map_or((rest, None), |(l, p)| (l, Some(p)));
    let level_ok = |l: &str| matches!(l, "block" | "cyclic" | "fcyclic" | "*");
    if levels.split(':').skip(1).any(|l| !level_ok(l)) || levels.matches(':').count() > 2 {
        return Err(fail());
    }
    if pack.is_some_and(|p| p != "pack" && p != "nopack") {
        return Err(fail());
    }
    Ok((first, (!rest.is_empty()).then(|| text[cut..].to_owned())))
}

/// `block`, `plane=4`: the option's words.
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Block => f.pad("block"),
            Distribution::Cyclic => f.pad("cyclic"),
            Distribution::Plane(n) => write!(f, "plane={n}"),
            Distribution::Arbitrary => f.pad("arbitrary"),
        }
    }
}

/// Limits that can be propagated, in Slurm's words and order.
pub const LIMIT_NAMES: [&str; 10] =
    ["AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"];

/// `--propagate[=ALL|NONE|name,…]` → the names of `LIMIT_NAMES`. `RLIMIT_` may stand before a name.
pub fn parse_propagate(value: Option<&str>) -> Result<Vec<&'static str>, ParseError> {
    let text = value.unwrap_or("ALL");
    let mut out: Vec<&'static str> = Vec::new();
    for word in text.split(',') {
        let upper = word.to_ascii_uppercase();
        match upper.as_str() {
            "ALL" => out = LIMIT_NAMES.to_vec(),
            "NONE" => out.clear(),
            name => {
                let name = name.strip_prefix("RLIMIT_").unwrap_or(name);
                let known = LIMIT_NAMES.into_iter().find(|n| *n == name).ok_or_else(|| {
                    ParseError::new("limits to propagate", text, format!("ALL, NONE or {}", LIMIT_NAMES.join(", ")))
                })?;
                if !out.contains(&known) {
                    out.push(known);
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_give_their_first_level_and_keep_the_rest_as_text() {
        use Distribution::*;
        for (text, first, rest) in [
            ("block", Some(Block), None),
            ("cyclic", Some(Cyclic), None),
            ("plane=4", Some(Plane(4)), None),
            ("arbitrary", Some(Arbitrary), None),
            ("block:cyclic", Some(Block), Some(":cyclic")),
            ("*:block:fcyclic,NoPack", None, Some(":block:fcyclic,NoPack")),
            ("Cyclic,Pack", Some(Cyclic), Some(",Pack")),
        ] {
            assert_eq!(parse_distribution(text).unwrap(), (first, rest.map(str::to_owned)), "{text}");
        }
        for bad in [
            "",
            "foo",
            "plane",
            "plane=0",
            "plane=-1",
            "block:foo",
            "block:",
            "block:block:block:block",
            "block,x",
            &"é".repeat(99),
        ] {
            assert!(parse_distribution(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn exclusive_takes_user_and_refuses_the_rest_by_name() {
        assert_eq!(parse_exclusive(None).unwrap(), Exclusive::Node);
        assert_eq!(parse_exclusive(Some("user")).unwrap(), Exclusive::User);
        assert!(parse_exclusive(Some("mcs")).unwrap_err().allowed.contains("not supported"));
        assert!(parse_exclusive(Some("foo")).is_err());
    }

    #[test]
    fn limits_to_propagate_are_all_none_or_named() {
        assert_eq!(parse_propagate(None).unwrap(), LIMIT_NAMES);
        assert_eq!(parse_propagate(Some("stack,RLIMIT_CORE,STACK")).unwrap(), ["STACK", "CORE"]);
        assert!(parse_propagate(Some("NONE")).unwrap().is_empty());
        assert!(parse_propagate(Some("STUCK")).is_err());
    }
}
