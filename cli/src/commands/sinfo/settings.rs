//! What one invocation of `sinfo` was asked for: options over environment over defaults.
//!
//! Sources: sinfo(1), options, default formats and "ENVIRONMENT VARIABLES".

use super::fields::{self, Info};
use super::group::{self, Key};
use super::states::{self, Filter};
use crate::getopt::Parsed;
use crate::view::columns::Layout;
use crate::viewing::{self, env};
use sluice_proto::v1;
use std::process::ExitCode;
use std::time::Duration;

/// `#` stands for the width of the widest partition name or node list.
const DEFAULT: &str = "%#P %.5a %.10l %.6D %.6t %N";
const SUMMARY: &str = "%#P %.5a %.10l %.16F %N";
const LONG: &str = "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N";
const NODE: &str = "%#N %.6D %.#P %6t";
const LONG_NODE: &str = "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E";
const REASONS: &str = "%20E %9u %19H %N";
const LONG_REASONS: &str = "%20E %12U %19H %6t %N";

pub struct Settings {
    pub layout: Layout<&'static Info>,
    /// The heading line with the time.
    pub timed: bool,
    pub header: bool,
    pub exact: bool,
    pub per_node: bool,
    pub list_reasons: bool,
    pub sort: Vec<Key>,
    pub iterate: Option<Duration>,
    pub clusters: Option<String>,
    pub reservations: bool,
    pub verbose: bool,
    filter: Filter,
    nodes: Vec<String>,
    partitions: Vec<String>,
    show_hidden: bool,
    dead: bool,
    responding: bool,
}

fn fail(message: &str) -> ExitCode {
    crate::errln!("sinfo: error: {message}");
    ExitCode::from(1)
}

/// The layout with its widths still open (`#`).
pub struct Shape {
    text: String,
    names: bool,
}

impl Shape {
    /// Fills in the width of partition names and node names. Slurm makes both as wide as their headers at least, and
    /// the node column as wide as the partition's.
    pub fn layout(&self, partitions: &[v1::PartitionRecord], nodes: &[v1::NodeRecord]) -> Layout<&'static Info> {
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0).max("PARTITION".len());
        let p = widest(&mut partitions.iter().map(|p| p.name.chars().count() + usize::from(p.default)));
        let n = widest(&mut nodes.iter().map(|n| n.name.chars().count()));
        let text = self.text.replace("#P", &format!("{p}P")).replace("#N", &format!("{n}N"));
        self.read(&text, |_| ())
    }

    fn read(&self, text: &str, complain: impl Fn(&str)) -> Layout<&'static Info> {
        if self.names {
            let (layout, unknown) = Layout::parse_names(text, fields::by_name);
            unknown.iter().for_each(|name| complain(name));
            layout
        } else {
            let (layout, unknown) = Layout::parse_letters(text, fields::by_letter);
            unknown.iter().for_each(|letter| complain(&letter.to_string()));
            layout
        }
    }
}

/// Settings, and the shape whose widths depend on what is listed.
pub fn read(parsed: &Parsed) -> Result<(Settings, Shape), ExitCode> {
    let value = |key: &str, variable: &str| parsed.last(key).map(|g| g.text()).or_else(|| env(variable));
    let long = parsed.has("long");
    let list_reasons = parsed.has("list-reasons");
    let summary = parsed.has("summarize");
    let shape = shape(parsed, long, list_reasons, summary);
    // Complaints about unknown fields are made once, here.
    let layout = shape.read(&shape.text.replace('#', ""), |bad| {
        if shape.names {
            crate::errln!("sinfo: error: Invalid job format specification: {bad}");
        } else {
            crate::errln!("Invalid node format specification: {bad}");
        }
    });
    let per_node = parsed.has("Node");
    let filter = match parsed.last("states") {
        Some(given) => Filter::parse(&given.text()).map_err(|bad| {
            crate::errln!("sinfo: error: Bad state string: \"{bad}\"");
            fail(&format!("valid states: {}", states::valid()))
        })?,
        None => Filter::default(),
    };
    let sort = value("sort", "SINFO_SORT").unwrap_or_else(|| if per_node { "N" } else { "#P,-t" }.to_owned());
    let settings = Settings {
        layout,
        timed: long || parsed.has("iterate"),
        header: !parsed.has("noheader"),
        exact: parsed.has("exact"),
        per_node,
        list_reasons,
        sort: group::parse_sort(&sort).map_err(|c| fail(&format!("Invalid sort specification: {c}")))?,
        iterate: parsed.last("iterate").map(|g| viewing::seconds("sinfo", "iterate", &g.text())).transpose()?,
        clusters: value("clusters", "SLURM_CLUSTERS"),
        reservations: parsed.has("reservation"),
        verbose: parsed.has("verbose"),
        filter,
        nodes: match parsed.last("nodes") {
            Some(given) => {
                let text = given.text();
                sluice_model::hostlist::expand(&text)
                    .map_err(|e| fail(&format!("Invalid node name {text}: {}", e.allowed)))?
            }
            None => Vec::new(),
        },
        partitions: value("partition", "SINFO_PARTITION").map(|v| viewing::list(&v)).unwrap_or_default(),
        show_hidden: (parsed.has("all") || std::env::var_os("SINFO_ALL").is_some()) && !parsed.has("hide"),
        dead: parsed.has("dead"),
        responding: parsed.has("responding"),
    };
    Ok((settings, shape))
}

fn shape(parsed: &Parsed, long: bool, list_reasons: bool, summary: bool) -> Shape {
    let given = parsed.options.iter().rev().find(|o| matches!(o.key(), "format" | "Format"));
    if let Some(option) = given {
        let text = option.text();
        if text.eq_ignore_ascii_case("%all") || (option.key() == "Format" && text.eq_ignore_ascii_case("all")) {
            return Shape { text: fields::all_letters(), names: false };
        }
        return Shape { text, names: option.key() == "Format" };
    }
    let text = match (summary, list_reasons, parsed.has("Node"), long) {
        (true, ..) => SUMMARY,
        (_, true, _, true) => LONG_REASONS,
        (_, true, ..) => REASONS,
        (_, _, true, true) => LONG_NODE,
        (_, _, true, _) => NODE,
        (_, _, _, true) => LONG,
        _ => return Shape { text: env("SINFO_FORMAT").unwrap_or_else(|| DEFAULT.to_owned()), names: false },
    };
    Shape { text: text.to_owned(), names: false }
}

impl Settings {
    pub fn shows_partition(&self, partition: &v1::PartitionRecord) -> bool {
        if self.partitions.is_empty() {
            self.show_hidden || !partition.hidden
        } else {
            self.partitions.contains(&partition.name)
        }
    }

    pub fn shows_node(&self, node: &v1::NodeRecord) -> bool {
        self.filter.holds(node)
            && (self.nodes.is_empty() || self.nodes.contains(&node.name))
            && (!self.list_reasons || states::has_problem(node))
            && (!self.dead || node.not_responding)
            && (!self.responding || !node.not_responding)
    }
}

#[cfg(test)]
pub mod test {
    use super::*;

    /// Settings of a command line, without environment.
    pub fn of(words: &[&str]) -> (Settings, Shape) {
        let words: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let specs = super::super::OPTIONS;
        let parsed = crate::getopt::parse(specs, &words, crate::getopt::Operands::Mixed).expect("the words parse");
        read(&parsed).expect("the settings are good")
    }
}
