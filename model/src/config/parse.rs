//! From a file's text to a checked `ClusterConfig`: every problem at once, nothing by halves.

use super::problem::ConfigProblem;
use super::reader::{Problems, Section};
use super::{
    AccountingConfig, ClusterConfig, LimitsConfig, MailConfig, SchedulingConfig, SecurityConfig, TimingConfig,
};
use super::{preemption, priority, requeue, sections, topology};
use crate::accounting::Enforce;
use crate::licenses::is_license_name;
use std::collections::BTreeMap;
use std::ops::Range;
use toml_edit::{Document, Item, Table, TableLike};

/// Longer files can't be meant; the largest cluster needs far less.
const MAX_TEXT: usize = 16 << 20;

/// The sections, in the order in which `read` takes them apart.
const SECTIONS: [&str; 10] = [
    "scheduling",
    "priority",
    "limits",
    "timing",
    "requeue",
    "security",
    "mail",
    "licenses",
    "accounting",
    "preemption",
];

/// Reads a whole configuration file. `file` is its name, for the problems only. Problems come in the file's order; a
/// text that is no TOML gives the one problem where reading stopped.
pub fn parse(text: &str, file: &str) -> Result<ClusterConfig, Vec<ConfigProblem>> {
    let mut problems = Problems { file, text, list: Vec::new() };
    if text.len() > MAX_TEXT {
        problems.add(None, "", format!("the file is longer than {MAX_TEXT} bytes"));
        return Err(problems.list);
    }
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(e) => {
            problems.add(e.span(), "", format!("is no valid TOML: {}", e.message().replace('\n', ", ")));
            return Err(problems.list);
        }
    };
    let config = read(document.as_table(), &mut problems);
    if problems.list.is_empty() {
        return Ok(config);
    }
    problems.list.sort_by_key(|p| p.line);
    Err(problems.list)
}

fn read(root: &Table, problems: &mut Problems<'_>) -> ClusterConfig {
    let mut top = Section::new(root, Some(0..0), "", problems);
    top.missing("cluster_name", "give the cluster a name");
    let cluster_name = top.text("cluster_name").unwrap_or_default();
    let name_ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if top.has("cluster_name") && (cluster_name.len() > 40 || !cluster_name.chars().all(name_ok)) {
        top.problem("cluster_name", "expected at most 40 letters, digits, - and _");
    }
    let tables = ["node", "partition"].map(|key| top.item(key));
    let sections = SECTIONS.map(|key| (key, top.item(key)));
    if tables[0].is_none() {
        top.problem("node", "is missing: a cluster needs at least one [[node]]");
    }
    if tables[1].is_none() {
        top.problem("partition", "is missing: a cluster needs at least one [[partition]]");
    }
    let map = top.item("topology");
    top.finish();
    let (nodes, complete) = sections::nodes(&each_table(tables[0], "node", problems), problems);
    let declared = (&nodes[..], complete && !nodes.is_empty());
    let partitions = sections::partitions(&each_table(tables[1], "partition", problems), declared, problems);
    let [a, p, b, c, r, d, e, f, g, h] = sections.map(|(key, item)| {
        let item = item?;
        if item.as_table_like().is_none() {
            problems.add(item.span(), key, format!("expected a section: [{key}]"));
        }
        item.as_table_like().map(|t| (t, item.span()))
    });
    let topology = topology::read(map, declared, problems);
    ClusterConfig {
        cluster_name,
        nodes,
        partitions,
        scheduling: a.map(|s| scheduling(open(s, "scheduling", problems))).unwrap_or_default(),
        priority: p.map(|s| priority::read(open(s, "priority", problems))).unwrap_or_default(),
        limits: b.map(|s| limits(open(s, "limits", problems))).unwrap_or_default(),
        timing: c.map(|s| timing(open(s, "timing", problems))).unwrap_or_default(),
        requeue: r.map(|s| requeue::read(open(s, "requeue", problems))).unwrap_or_default(),
        security: d.map(|s| security(open(s, "security", problems))).unwrap_or_default(),
        mail: e.map(|s| mail(open(s, "mail", problems))).unwrap_or_default(),
        accounting: g.map(|s| accounting(open(s, "accounting", problems))).unwrap_or_default(),
        topology,
        preemption: h.map(|s| preemption::read(open(s, "preemption", problems))).unwrap_or_default(),
        licenses: f.map(|(t, _)| licenses(t, problems)).unwrap_or_default(),
    }
}

pub(super) type Found<'t> = (&'t dyn TableLike, Option<Range<usize>>);

fn open<'t, 'p, 'a>(found: Found<'t>, path: &str, problems: &'p mut Problems<'a>) -> Section<'t, 'p, 'a> {
    Section::new(found.0, found.1, path, problems)
}

/// The tables of `[[key]]`, also when written as an array of inline tables.
pub(super) fn each_table<'t>(item: Option<&'t Item>, key: &str, problems: &mut Problems<'_>) -> Vec<Found<'t>> {
    match item {
        None => Vec::new(),
        Some(Item::ArrayOfTables(list)) => list.iter().map(|t| (t as &dyn TableLike, t.span())).collect(),
        Some(item) => {
            let list: Option<Vec<Found<'t>>> = item.as_array().and_then(|list| {
                list.iter().map(|v| v.as_inline_table().map(|t| (t as &dyn TableLike, v.span()))).collect()
            });
            if list.is_none() {
                problems.add(item.span(), key, format!("expected sections with double brackets: [[{key}]]"));
            }
            list.unwrap_or_default()
        }
    }
}

fn scheduling(mut s: Section<'_, '_, '_>) -> SchedulingConfig {
    let d = SchedulingConfig::default();
    let out = SchedulingConfig {
        queue_depth: s.number("queue_depth", 1..=10_000_000).unwrap_or(d.queue_depth),
        backfill: s.boolean("backfill").unwrap_or(d.backfill),
        default_memory_per_cpu_mb: s.memory("default_memory_per_cpu_mb", 1),
        default_memory_per_node_mb: s.memory("default_memory_per_node_mb", 1),
        requeue: s.boolean("requeue").unwrap_or(d.requeue),
        kill_on_invalid_dependency: s.boolean("kill_on_invalid_dependency").unwrap_or(d.kill_on_invalid_dependency),
        enforce_partition_limits: s.boolean("enforce_partition_limits").unwrap_or(d.enforce_partition_limits),
        least_loaded: s.boolean("least_loaded").unwrap_or(d.least_loaded),
        pack_tasks: s.boolean("pack_tasks").unwrap_or(d.pack_tasks),
        max_switch_wait_secs: s.number("max_switch_wait_secs", 0..=31_536_000).unwrap_or(d.max_switch_wait_secs),
    };
    if out.default_memory_per_cpu_mb.is_some() && out.default_memory_per_node_mb.is_some() {
        s.problem("default_memory_per_node_mb", "excludes default_memory_per_cpu_mb: give one of them");
    }
    s.finish();
    out
}

fn limits(mut s: Section<'_, '_, '_>) -> LimitsConfig {
    let d = LimitsConfig::default();
    let out = LimitsConfig {
        max_jobs: s.number("max_jobs", 1..=100_000_000).unwrap_or(d.max_jobs),
        max_array_size: s.number("max_array_size", 1..=100_000_001).unwrap_or(d.max_array_size),
        max_script_size: s.number("max_script_size", 1024..=1 << 30).unwrap_or(d.max_script_size),
        max_environment_size: s.number("max_environment_size", 1024..=1 << 30).unwrap_or(d.max_environment_size),
        max_requeue: s.number("max_requeue", 0..=1_000_000).unwrap_or(d.max_requeue),
        submit_rate: s.number("submit_rate", 0..=1_000_000).unwrap_or(d.submit_rate),
        submit_burst: s.number("submit_burst", 1..=10_000_000).unwrap_or(d.submit_burst),
        first_job_id: s.number("first_job_id", 1..=2_000_000_000).unwrap_or(d.first_job_id),
    };
    s.finish();
    out
}

fn timing(mut s: Section<'_, '_, '_>) -> TimingConfig {
    const DAY: u32 = 86_400;
    let d = TimingConfig::default();
    let out = TimingConfig {
        kill_wait_secs: s.number("kill_wait_secs", 1..=DAY).unwrap_or(d.kill_wait_secs),
        min_job_age_secs: s.number("min_job_age_secs", 0..=365 * DAY).unwrap_or(d.min_job_age_secs),
        node_timeout_secs: s.number("node_timeout_secs", 2..=30 * DAY).unwrap_or(d.node_timeout_secs),
        heartbeat_secs: s.number("heartbeat_secs", 1..=DAY).unwrap_or(d.heartbeat_secs),
        over_time_limit_minutes: s.number("over_time_limit_minutes", 0..=65_533).unwrap_or(d.over_time_limit_minutes),
        requeue_delay_secs: s.number("requeue_delay_secs", 0..=DAY).unwrap_or(d.requeue_delay_secs),
    };
    if out.node_timeout_secs < 2 * out.heartbeat_secs {
        let key = if s.has("node_timeout_secs") { "node_timeout_secs" } else { "heartbeat_secs" };
        let (timeout, beat) = (out.node_timeout_secs, out.heartbeat_secs);
        s.problem(key, format!("node_timeout_secs ({timeout}) must be at least twice heartbeat_secs ({beat})"));
    }
    s.finish();
    out
}

fn security(mut s: Section<'_, '_, '_>) -> SecurityConfig {
    let out = SecurityConfig {
        best_effort: s.boolean("best_effort").unwrap_or(false),
        administrators: s.words("administrators"),
        operators: s.words("operators"),
    };
    for (key, names) in [("administrators", &out.administrators), ("operators", &out.operators)] {
        sections::check_names(&mut s, key, names);
    }
    s.finish();
    out
}

fn mail(mut s: Section<'_, '_, '_>) -> MailConfig {
    let out = MailConfig { program: s.text("program"), domain: s.text("domain") };
    if out.program.as_ref().is_some_and(|p| !p.starts_with('/')) {
        s.problem("program", "expected an absolute path");
    }
    s.finish();
    out
}

fn accounting(mut s: Section<'_, '_, '_>) -> AccountingConfig {
    let words = s.words("enforce");
    let enforce = Enforce::parse(words.iter().map(String::as_str));
    let out = match enforce {
        Ok(enforce) => AccountingConfig { enforce },
        Err(bad) => {
            let shown: String = bad.chars().take(60).collect();
            s.problem("enforce", format!("'{shown}' is none of {}", Enforce::ALLOWED));
            AccountingConfig::default()
        }
    };
    s.finish();
    out
}

/// Names are the administrator's own, so no key is unknown here.
fn licenses(table: &dyn TableLike, problems: &mut Problems<'_>) -> BTreeMap<String, u32> {
    let mut out = BTreeMap::new();
    for (name, item) in table.iter() {
        let count = item.as_integer().and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
        let span = table.key(name).and_then(toml_edit::Key::span);
        match count {
            _ if !is_license_name(name) => {
                problems.add(
                    span,
                    format!("licenses.{name}"),
                    "a licence's name has letters, digits and _ - . @ / only",
                );
            }
            Some(count) => {
                out.insert(name.to_owned(), count);
            }
            None => problems.add(span, format!("licenses.{name}"), "expected how many there are, at least 1"),
        }
    }
    out
}
