//! The `[[node]]` and `[[partition]]` sections, and what must hold between them.

use super::reader::{Problems, Section};
use crate::gres::parse_gres_spec;
use crate::hostlist;
use crate::ids::NodeName;
use crate::node::{GresSpec, NodeSpec};
use crate::partition::{PartitionSpec, PartitionState};
use crate::time::TimeLimit;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use toml_edit::TableLike;

type Found<'t> = (&'t dyn TableLike, Option<Range<usize>>);

/// CPUs of one node at most.
const MAX_CPUS: u32 = 65_536;

/// The nodes, and whether every section gave its names: if not, what partitions name can't be judged.
pub(super) fn nodes(tables: &[Found<'_>], problems: &mut Problems<'_>) -> (Vec<NodeSpec>, bool) {
    let mut out = Vec::new();
    let mut complete = true;
    let mut seen = BTreeSet::new();
    for (table, span) in tables {
        let label = table.get("name").and_then(|n| n.as_str()).unwrap_or("?");
        let mut s = Section::new(
            *table,
            span.clone(),
            format!("node {}", label.chars().take(60).collect::<String>()),
            problems,
        );
        let nodes = node(&mut s);
        complete &= !nodes.is_empty();
        for node in nodes {
            if !seen.insert(node.name.clone()) {
                s.problem("name", format!("node {} is declared twice", node.name));
            } else if out.len() == hostlist::MAX_HOSTS {
                s.problem("name", format!("a cluster may have {} nodes at most", hostlist::MAX_HOSTS));
                break;
            } else {
                out.push(node);
            }
        }
        s.finish();
    }
    (out, complete)
}

/// All nodes of one section.
fn node(s: &mut Section<'_, '_, '_>) -> Vec<NodeSpec> {
    s.missing("name", "one name or a pattern such as node[1-16]");
    let names = name_list(s, "name");
    let addresses = addresses(s, names.len());
    let given = ["cpus", "sockets", "cores_per_socket", "threads_per_core"].map(|key| s.number(key, 1..=MAX_CPUS));
    let (sockets, cores_per_socket, threads_per_core, cpus) = topology(s, given);
    s.missing("memory_mb", "the node's memory in MiB, or a text such as \"64G\"");
    let memory_mb = s.memory("memory_mb", 1).unwrap_or(1);
    let tmp_disk_mb = s.memory("tmp_disk_mb", 0).unwrap_or(0);
    let gres = gres(s, cpus);
    let features = s.words("features");
    let bad = features.iter().find(|f| !f.chars().all(crate::constraint::is_feature_char)).cloned();
    if let Some(bad) = bad {
        s.problem("features", format!("'{bad}' can't be a feature's name"));
    }
    let weight = s.number("weight", 0..=u32::MAX - 1).unwrap_or(1);
    let make = |(i, name): (usize, NodeName)| NodeSpec {
        name,
        address: addresses.get(i).cloned(),
        sockets,
        cores_per_socket,
        threads_per_core,
        cpus,
        memory_mb,
        tmp_disk_mb,
        gres: gres.clone(),
        features: features.clone(),
        weight,
    };
    names.into_iter().enumerate().map(make).collect()
}

/// Names of a key that holds a host list, or a list of host lists.
pub(super) fn name_list(s: &mut Section<'_, '_, '_>, key: &'static str) -> Vec<NodeName> {
    let Some(item) = s.item(key) else { return Vec::new() };
    let text = match (item.as_str(), item.as_array()) {
        (Some(text), _) => Some(text.to_owned()),
        (None, Some(list)) => list.iter().map(|v| v.as_str()).collect::<Option<Vec<&str>>>().map(|l| l.join(",")),
        (None, None) => None,
    };
    let Some(text) = text else {
        s.problem(key, "expected a host list in quotes, such as \"node[1-16]\"");
        return Vec::new();
    };
    let expanded = hostlist::expand(&text);
    let names = s.parsed(key, expanded).unwrap_or_default();
    if names.is_empty() && text.trim().is_empty() {
        s.problem(key, "names no node");
    }
    names.into_iter().map(NodeName::new).collect()
}

/// `host:port` for each node of the section: the host may be a pattern with as many hosts as nodes.
fn addresses(s: &mut Section<'_, '_, '_>, nodes: usize) -> Vec<String> {
    let Some(text) = s.text("address") else { return Vec::new() };
    let split = text.rsplit_once(':').filter(|(_, p)| p.parse::<u16>().is_ok_and(|p| p > 0));
    let Some((host, port)) = split else {
        s.problem("address", "expected host:port");
        return Vec::new();
    };
    // An IPv6 address stands in brackets, which are no host list.
    let is_ipv6 = host.starts_with('[') && host.ends_with(']') && host.contains(':');
    let hosts = if is_ipv6 { Ok(vec![host.to_owned()]) } else { hostlist::expand(host) };
    let hosts = s.parsed("address", hosts).unwrap_or_default();
    if hosts.len() != nodes && nodes > 0 && !hosts.is_empty() {
        s.problem("address", format!("names {} hosts for {nodes} nodes", hosts.len()));
        return Vec::new();
    }
    hosts.into_iter().map(|h| format!("{h}:{port}")).collect()
}

/// Fills in what is not given: `cpus` alone means one socket with one thread a core.
fn topology(s: &mut Section<'_, '_, '_>, given: [Option<u32>; 4]) -> (u32, u32, u32, u32) {
    let [cpus, sockets, cores, threads] = given;
    if !["cpus", "sockets", "cores_per_socket"].iter().any(|k| s.has(k)) {
        s.problem("cpus", "is missing: give cpus, or sockets and cores_per_socket");
    }
    let (sockets, threads) = (sockets.unwrap_or(1), threads.unwrap_or(1));
    let product = |cores: u32| u64::from(sockets) * u64::from(cores) * u64::from(threads);
    let cores = cores.unwrap_or_else(|| cpus.map_or(1, |c| (c / sockets.saturating_mul(threads).max(1)).max(1)));
    let all = product(cores);
    let cpus = cpus.unwrap_or_else(|| u32::try_from(all).unwrap_or(u32::MAX));
    if all > u64::from(MAX_CPUS) {
        s.problem("cpus", format!("sockets × cores_per_socket × threads_per_core is {all}; at most {MAX_CPUS}"));
    } else if u64::from(cpus) != all && u64::from(cpus) * u64::from(threads) != all {
        // Slurm's rule: CPUs are the threads, or the cores.
        let shape = format!("{sockets} × {cores} × {threads}");
        s.problem(
            "cpus",
            format!("{cpus} is neither the threads nor the cores of {shape} (sockets × cores × threads)"),
        );
    }
    (sockets, cores, threads, cpus)
}

fn gres(s: &mut Section<'_, '_, '_>, cpus: u32) -> Vec<GresSpec> {
    let mut out: Vec<GresSpec> = Vec::new();
    for word in s.words("gres") {
        let spec = parse_gres_spec(&word);
        let Some(spec) = s.parsed("gres", spec) else { continue };
        if !(1..=u64::from(u32::MAX)).contains(&spec.count) {
            s.problem("gres", format!("{word}: the count must be from 1 to {}", u32::MAX));
        } else if out.iter().any(|g| g.name == spec.name && g.kind == spec.kind) {
            s.problem("gres", format!("{word}: declared twice"));
        } else if spec.cores.iter().filter_map(|c| c.iter().last()).any(|last| last >= cpus) {
            s.problem("gres", format!("{word}: cores= names CPUs that the node does not have: it has {cpus}"));
        } else {
            out.push(spec);
        }
    }
    out
}

pub(super) fn partitions(
    tables: &[Found<'_>],
    (nodes, complete): (&[NodeSpec], bool),
    problems: &mut Problems<'_>,
) -> Vec<PartitionSpec> {
    let known: BTreeSet<&NodeName> = nodes.iter().map(|n| &n.name).collect();
    let mut out: Vec<PartitionSpec> = Vec::new();
    let mut defaults: BTreeMap<String, ()> = BTreeMap::new();
    for (table, span) in tables {
        let label = table.get("name").and_then(|n| n.as_str()).unwrap_or("?");
        let path = format!("partition {}", label.chars().take(60).collect::<String>());
        let mut s = Section::new(*table, span.clone(), path, problems);
        let mut p = partition(&mut s, nodes, complete.then_some(&known));
        if out.iter().any(|o| o.name == p.name) {
            s.problem("name", format!("partition {} is declared twice", p.name));
        }
        // The only partition is the default one unless it says otherwise.
        p.default |= tables.len() == 1 && !s.has("default");
        if p.default && !defaults.is_empty() {
            let first = defaults.keys().next().cloned().unwrap_or_default();
            s.problem("default", format!("partition {first} is the default already"));
        }
        if p.default {
            defaults.insert(p.name.clone(), ());
        }
        s.finish();
        out.push(p);
    }
    if defaults.is_empty() && !tables.is_empty() {
        let span = tables[0].1.clone();
        problems.add(
            span,
            "partition",
            "no partition has default = true: jobs that name none would have nowhere to go",
        );
    }
    out
}

/// `known`: the nodes that may be named; None when that can't be said.
fn partition(s: &mut Section<'_, '_, '_>, nodes: &[NodeSpec], known: Option<&BTreeSet<&NodeName>>) -> PartitionSpec {
    s.missing("name", "the partition's name");
    s.missing("nodes", "a host list, or \"ALL\"");
    let name = s.text("name").unwrap_or_default();
    if s.has("name") && !is_partition_name(&name) {
        s.problem("name", "expected 1 to 64 letters, digits and _ - .");
    }
    let state = s.text("state").map(|t| {
        PartitionState::parse(&t).unwrap_or_else(|| {
            s.problem("state", format!("expected UP, DOWN, DRAIN or INACTIVE, found \"{t}\""));
            PartitionState::Up
        })
    });
    let p = PartitionSpec {
        nodes: partition_nodes(s, nodes, known),
        name,
        default: s.boolean("default").unwrap_or(false),
        max_time: s.time_limit("max_time").unwrap_or(TimeLimit::Unlimited),
        default_time: s.time_limit("default_time"),
        min_nodes: s.number("min_nodes", 0..=1_000_000).unwrap_or(0),
        max_nodes: s.limit("max_nodes", 1..=1_000_000).flatten(),
        priority_tier: s.number("priority_tier", 0..=65_533).unwrap_or(1),
        priority_job_factor: s.number("priority_job_factor", 0..=65_533).unwrap_or(1),
        state: state.unwrap_or_default(),
        allow_users: s.words("allow_users"),
        allow_groups: s.words("allow_groups"),
        allow_accounts: s.words("allow_accounts"),
        allow_qos: s.words("allow_qos"),
        root_only: s.boolean("root_only").unwrap_or(false),
        hidden: s.boolean("hidden").unwrap_or(false),
        exclusive: s.boolean("exclusive").unwrap_or(false),
        least_loaded: s.boolean("least_loaded").unwrap_or(false),
        default_memory_per_cpu_mb: s.memory("default_memory_per_cpu_mb", 1),
        default_memory_per_node_mb: s.memory("default_memory_per_node_mb", 1),
        max_memory_per_node_mb: s.memory("max_memory_per_node_mb", 1),
        max_cpus_per_node: s.limit("max_cpus_per_node", 1..=MAX_CPUS).flatten(),
        grace_secs: s.number("grace_secs", 0..=31_536_000).unwrap_or(0),
        preempt_mode: super::preemption::mode(s, "preempt_mode"),
        billing_weights: super::priority::tres_weights(s, "billing_weights"),
        qos: s.text("qos").filter(|q| !q.is_empty()),
    };
    check_partition(s, &p);
    p
}

fn check_partition(s: &mut Section<'_, '_, '_>, p: &PartitionSpec) {
    // TimeLimit orders Unlimited above all minutes.
    if p.default_time.is_some_and(|d| d > p.max_time) {
        s.problem("default_time", "is longer than max_time");
    }
    if p.max_nodes.is_some_and(|max| max < p.min_nodes) {
        s.problem("max_nodes", "is smaller than min_nodes");
    }
    if p.default_memory_per_cpu_mb.is_some() && p.default_memory_per_node_mb.is_some() {
        s.problem("default_memory_per_node_mb", "excludes default_memory_per_cpu_mb: give one of them");
    }
    if let (Some(default), Some(max)) = (p.default_memory_per_node_mb, p.max_memory_per_node_mb)
        && default > max
    {
        s.problem("default_memory_per_node_mb", "is larger than max_memory_per_node_mb");
    }
    check_names(s, "qos", p.qos.as_slice());
    let lists = [&p.allow_users, &p.allow_groups, &p.allow_accounts, &p.allow_qos];
    for (key, names) in ["allow_users", "allow_groups", "allow_accounts", "allow_qos"].into_iter().zip(lists) {
        check_names(s, key, names);
    }
}

/// The nodes named, or all for "ALL", each once, all of them declared.
fn partition_nodes(
    s: &mut Section<'_, '_, '_>,
    nodes: &[NodeSpec],
    known: Option<&BTreeSet<&NodeName>>,
) -> Vec<NodeName> {
    let names = name_list(s, "nodes");
    let declared = |n: &NodeName| known.is_none_or(|known| known.contains(n));
    if let [all] = &names[..]
        && all.as_str().eq_ignore_ascii_case("ALL")
        && !nodes.iter().any(|n| n.name == *all)
    {
        return nodes.iter().map(|n| n.name.clone()).collect();
    }
    let unknown: Vec<&str> = names.iter().filter(|n| !declared(n)).map(NodeName::as_str).collect();
    if !unknown.is_empty() {
        let shown: String = hostlist::fold(&unknown).chars().take(200).collect();
        s.problem("nodes", format!("no [[node]] declares {shown}"));
    }
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|n| seen.insert(n.clone())).collect()
}

fn is_partition_name(name: &str) -> bool {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.len()) && name.chars().all(ok)
}

/// Names of users, groups, accounts, QOS.
pub(super) fn check_names(s: &mut Section<'_, '_, '_>, key: &'static str, names: &[String]) {
    let bad = names
        .iter()
        .find(|n| n.is_empty() || n.len() > 256 || n.chars().any(|c| c.is_whitespace() || c.is_control() || c == ','));
    if let Some(bad) = bad {
        s.problem(key, format!("'{}' is no name", bad.chars().take(60).collect::<String>()));
    }
}
