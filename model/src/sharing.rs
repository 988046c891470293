//! `--exclusive`, `--distribution` and `--propagate`: short words with few values.

use crate::error::{ParseError, digits};
use crate::request::{Distribution, Exclusive};
use std::fmt;

/// The value of `--exclusive[=user|mcs]`; None for the bare option. `mcs` is refused by name. `exact` is srun's own
/// word for a step's CPUs and is not read here.
pub fn parse_exclusive(value: Option<&str>) -> Result<Exclusive, ParseError> {
    match value.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "yes" | "true" | "node") => Ok(Exclusive::Node),
        Some("no" | "false") => Ok(Exclusive::No),
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
        let allowed = "block, cyclic, plane=SIZE or arbitrary, then :{block|cyclic|fcyclic|*}[:…] and ,{pack|nopack}";
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
