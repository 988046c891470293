//! GRES texts: `gpu`, `gpu:2`, `gpu:a100:2`, for requests (`--gres`, `--gpus…`) and for what a node has.

use crate::error::{ParseError, digits};
use crate::index_set::IndexSet;
use crate::node::GresSpec;
use crate::request::{GresRequest, GresScope};
use std::fmt;

const ALLOWED: &str = "name[[:type]:count], several with commas, or none";
/// More devices or units of one GRES than this can't be meant (units of 'count only' GRES go up to bytes).
const MAX_COUNT: u64 = 1 << 48;

/// `--gres=gpu:a100:2,shard:4`. `none` and zero counts give nothing. A leading `gres:` or `gres/` is allowed and `=`
/// may stand for the last colon, as in TRES texts. What is named twice adds up.
pub fn parse_gres(text: &str, scope: GresScope) -> Result<Vec<GresRequest>, ParseError> {
    let fail = |allowed: &str| ParseError::new("GRES", text, allowed);
    let mut out: Vec<GresRequest> = Vec::new();
    if text.eq_ignore_ascii_case("none") {
        return Ok(out);
    }
    for item in text.split(',') {
        if item.eq_ignore_ascii_case("none") {
            continue;
        }
        let item = item.strip_prefix("gres:").or_else(|| item.strip_prefix("gres/")).unwrap_or(item);
        let (name, kind, count) = parse_item(item).ok_or_else(|| fail(ALLOWED))?;
        add(&mut out, GresRequest { name, kind, count, scope }).ok_or_else(|| fail("the count is too large"))?;
    }
    Ok(out)
}

/// `--gpus=2`, `--gpus-per-node=a100:2,v100:1`: GPUs, whose name is left out.
pub fn parse_gpus(text: &str, scope: GresScope) -> Result<Vec<GresRequest>, ParseError> {
    let fail = || ParseError::new("GPU count", text, "[type:]count, several with commas");
    let mut out = Vec::new();
    for item in text.split(',') {
        let item = item.strip_prefix("gpu:").unwrap_or(item);
        let (kind, number) = match item.rsplit_once(':') {
            Some((kind, n)) => (Some(kind_word(kind).ok_or_else(fail)?), n),
            None if count(item).is_some() => (None, item),
            None => (Some(lone_kind(item).ok_or_else(fail)?), "1"),
        };
        let count = count(number).ok_or_else(fail)?;
        add(&mut out, GresRequest { name: "gpu".into(), kind, count, scope }).ok_or_else(fail)?;
    }
    Ok(out)
}

/// What a node has: `gpu:2`, `gpu:a100:4`, with what is known of each device in parentheses:
/// `gpu:a100:4(mem=80G;cores=0-15/16-31;links=0,4,0,0/4,0,0,0/0,0,0,4/0,0,4,0)`. `cores`: the CPUs near the first half of
/// the devices, then near the second (as many parts as there are groups of devices). `links`: a row for each device, with
/// the number of links to each of them (as Slurm's gres.conf has Links; -1 stands for itself). One GRES only.
pub fn parse_gres_spec(text: &str) -> Result<GresSpec, ParseError> {
    let fail = |allowed: &str| ParseError::new("GRES", text, allowed);
    let (head, details) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some((head, details)) => (head, Some(details)),
        None => (text, None),
    };
    let (name, kind, count) = parse_item(head).ok_or_else(|| {
        fail("name[[:type]:count], such as gpu:a100:4, then (mem=SIZE;cores=LIST/LIST;links=ROW/ROW)")
    })?;
    let mut spec = GresSpec::new(name, kind, count);
    for item in details.into_iter().flat_map(|d| d.split(';')) {
        match item.split_once('=') {
            Some(("mem", size)) => {
                let mb = crate::memory::parse_memory_mb(size).ok().filter(|mb| *mb > 0);
                spec.memory_mb = mb.ok_or_else(|| fail("mem= the memory of each device, such as 80G"))?;
            }
            Some(("cores", groups)) => spec.cores = cores(groups, count).map_err(fail)?,
            Some(("links", rows)) => spec.links = links(rows, count).map_err(fail)?,
            _ => return Err(fail("mem=, cores= and links= in parentheses, with ; between them")),
        }
    }
    Ok(spec)
}

fn cores(groups: &str, count: u64) -> Result<Vec<IndexSet>, &'static str> {
    let groups =
        groups.split('/').map(|g| IndexSet::parse(g, 65_535).ok().map(|(set, _)| set).filter(|g| !g.is_empty()));
    let groups: Vec<IndexSet> = groups.collect::<Option<_>>().ok_or("cores= lists of CPUs such as 0-15/16-31")?;
    match count > 0 && count.is_multiple_of(groups.len() as u64) {
        true => Ok(groups),
        false => Err("as many lists of cores as make equal groups of devices"),
    }
}

fn links(rows: &str, count: u64) -> Result<Vec<Vec<u32>>, &'static str> {
    let cell = |(at, cell): (usize, &str), row: usize| match cell {
        "-1" | "x" if at == row => Some(0),
        n => n.parse::<u32>().ok().filter(|n| *n <= 1_000 && (at != row || *n == 0)),
    };
    let row =
        |(row, text): (usize, &str)| text.split(',').enumerate().map(|c| cell(c, row)).collect::<Option<Vec<u32>>>();
    let rows: Vec<Vec<u32>> = rows
        .split('/')
        .enumerate()
        .map(row)
        .collect::<Option<_>>()
        .ok_or("links= rows of numbers such as 0,4/4,0, -1 or 0 for a device and itself")?;
    if rows.len() as u64 != count || rows.iter().any(|r| r.len() != rows.len()) {
        return Err("a row of links for each device, with a number for each device");
    }
    let symmetric = (0..rows.len()).all(|a| (0..a).all(|b| rows[a][b] == rows[b][a]));
    if symmetric { Ok(rows) } else { Err("as many links from one device to another as back") }
}

/// With all that is known, as `parse_gres_spec` reads it.
pub fn format_gres_spec(spec: &GresSpec) -> String {
    let mut details = Vec::new();
    if spec.memory_mb > 0 {
        details.push(format!("mem={}", spec.memory_mb));
    }
    if !spec.cores.is_empty() {
        let groups: Vec<String> = spec.cores.iter().map(ToString::to_string).collect();
        details.push(format!("cores={}", groups.join("/")));
    }
    if !spec.links.is_empty() {
        let row = |row: &Vec<u32>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        details.push(format!("links={}", spec.links.iter().map(row).collect::<Vec<_>>().join("/")));
    }
    if details.is_empty() { spec.to_string() } else { format!("{spec}({})", details.join(";")) }
}

fn add(out: &mut Vec<GresRequest>, new: GresRequest) -> Option<()> {
    if new.count == 0 {
        return Some(());
    }
    match out.iter_mut().find(|g| g.name == new.name && g.kind == new.kind && g.scope == new.scope) {
        Some(old) => old.count = old.count.checked_add(new.count).filter(|c| *c <= MAX_COUNT)?,
        None => out.push(new),
    }
    Some(())
}

/// `name`, `name:count`, `name:type`, `name:type:count`; `=` may stand before the count.
fn parse_item(item: &str) -> Option<(String, Option<String>, u64)> {
    let (item, explicit) = match item.split_once('=') {
        Some((head, n)) => (head, Some(count(n)?)),
        None => (item, None),
    };
    let parts: Vec<&str> = item.split(':').collect();
    match (explicit, &parts[..]) {
        (_, [name]) => Some((word(name)?, None, explicit.unwrap_or(1))),
        (None, [name, n]) if count(n).is_some() => Some((word(name)?, None, count(n)?)),
        (None, [name, kind]) => Some((word(name)?, Some(lone_kind(kind)?), 1)),
        (Some(n), [name, kind]) => Some((word(name)?, Some(kind_word(kind)?), n)),
        (None, [name, kind, n]) => Some((word(name)?, Some(kind_word(kind)?), count(n)?)),
        _ => None,
    }
}

/// A name: a letter or `_`, then letters, digits and `_ - .`.
fn word(text: &str) -> Option<String> {
    kind_word(text).filter(|t| !t.starts_with(|c: char| !c.is_ascii_alphabetic() && c != '_'))
}

/// A type without a count after it: where it begins with a digit, only a dot (`1g.5gb`) tells it from a broken count.
fn lone_kind(text: &str) -> Option<String> {
    kind_word(text).filter(|t| !t.starts_with(|c: char| c.is_ascii_digit()) || t.contains('.'))
}

/// A type: like a name, but may begin with a digit (`3090`, `1g.5gb`).
fn kind_word(text: &str) -> Option<String> {
    let ok = (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    ok.then(|| text.to_owned())
}

/// A number with an optional K, M, G, T (powers of 1024), as gres counts may have.
fn count(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[unit_at..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return None,
    };
    digits(&text[..unit_at], MAX_COUNT)?.checked_mul(1 << shift).filter(|n| *n <= MAX_COUNT)
}

impl fmt::Display for GresRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_item(f, &self.name, self.kind.as_deref(), self.count)
    }
}

impl fmt::Display for GresSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_item(f, &self.name, self.kind.as_deref(), self.count)
    }
}

fn write_item(f: &mut fmt::Formatter<'_>, name: &str, kind: Option<&str>, count: u64) -> fmt::Result {
    match kind {
        Some(kind) => write!(f, "{name}:{kind}:{count}"),
        None => write!(f, "{name}:{count}"),
    }
}

/// `gpu:2,shard:4`; empty for none.
pub fn format_gres(items: &[impl fmt::Display]) -> String {
    items.iter().map(|i| i.to_string()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gres(text: &str) -> String {
        format_gres(&parse_gres(text, GresScope::Node).unwrap())
    }

    #[test]
    fn names_types_and_counts_are_read_in_every_form() {
        for (text, same) in [
            ("gpu", "gpu:1"),
            ("gpu:2", "gpu:2"),
            ("gpu:a100", "gpu:a100:1"),
            ("gpu:a100:2,shard:4", "gpu:a100:2,shard:4"),
            ("gres:gpu:2", "gpu:2"),
            ("gres/gpu=2", "gpu:2"),
            ("gpu:a100=2", "gpu:a100:2"),
            ("gpu:1g.5gb:2", "gpu:1g.5gb:2"),
            ("gpu:1g.5gb", "gpu:1g.5gb:1"),
            ("gpu:3090:1", "gpu:3090:1"),
            ("craynetwork:1K", "craynetwork:1024"),
            ("gpu:1,gpu:1", "gpu:2"),
            ("none", ""),
            ("gpu:0", ""),
        ] {
            assert_eq!(gres(text), same, "{text}");
        }
    }

    #[test]
    fn gpu_options_leave_the_name_out() {
        let gpus = |t| format_gres(&parse_gpus(t, GresScope::Job).unwrap());
        assert_eq!(gpus("2"), "gpu:2");
        assert_eq!(gpus("a100:2,v100:1"), "gpu:a100:2,gpu:v100:1");
        assert_eq!(gpus("a100"), "gpu:a100:1");
        assert_eq!(gpus("gpu:3"), "gpu:3");
    }

    #[test]
    fn what_is_known_of_devices_reads_back_equal() {
        let text = "gpu:a100:4(mem=81920;cores=0-15/16-31;links=0,4,0,0/4,0,0,0/0,0,0,4/0,0,4,0)";
        let spec = parse_gres_spec(text).unwrap();
        assert_eq!(format_gres_spec(&spec), text);
        assert_eq!(spec.cores_of(1), spec.cores.first());
        assert_eq!(spec.cores_of(2), spec.cores.get(1));
        assert_eq!((spec.links_between(0, 1), spec.links_between(0, 2), spec.links_between(9, 0)), (4, 0, 0));
        assert_eq!(parse_gres_spec("gpu:2(mem=80G;links=-1,3/3,-1)").unwrap().memory_mb, 81_920);
        assert_eq!(format_gres_spec(&parse_gres_spec("gpu:2").unwrap()), "gpu:2");
        for bad in [
            "gpu:2(",
            "gpu:2()",
            "gpu:2(mem=0)",
            "gpu:2(mem=x)",
            "gpu:3(cores=0-3/4-7)",
            "gpu:2(cores=)",
            "gpu:2(links=0,1)",
            "gpu:2(links=0,1/2,0)",
            "gpu:2(links=1,1/1,0)",
            "gpu:2(speed=9)",
        ] {
            assert!(parse_gres_spec(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn broken_and_absurd_counts_are_refused() {
        for bad in
            ["", "gpu:", "gpu:-1", ":2", "gpu:a:b:c", "gpu:1e9", "gpu::2", "gpu:99999999999999999999", "gpu,", "g pu:1"]
        {
            assert!(parse_gres(bad, GresScope::Node).is_err(), "{bad}");
        }
        for bad in ["", "-1", "1e9", "a100:-1", "a100:", "1,"] {
            assert!(parse_gpus(bad, GresScope::Job).is_err(), "{bad}");
        }
        assert!(parse_gres_spec("gpu:1,gpu:2").is_err());
    }
}
