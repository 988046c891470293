//! `--what-if`: changes to the machine and the policy, to be set beside things as they are.
//!
//! Owns their text. `nodes+=4` adds four nodes like those of the configuration's last `[[node]]`, `nodes.NAME+=4` like those
//! of the section that declares NAME, in the same partitions; `nodes-=4` takes the last ones away; `procs=512` and `procs+=64`
//! are for machines of plain processors. `SECTION.KEY=VALUE` sets a key of a section (`scheduling.queue_depth=100`),
//! `partition.KEY=VALUE` one of every partition, `partition.NAME.KEY=VALUE` one of that partition. What comes out is checked
//! as any configuration is.

use sluice_model::hostlist;
use std::fmt;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, Value, value};

/// More than anybody has.
const MOST: u32 = 1_000_000;

#[derive(Clone, PartialEq, Debug)]
enum Change {
    /// Like those of a section that declares this node; None: the last section.
    AddNodes {
        like: Option<String>,
        count: u32,
    },
    RemoveNodes {
        count: u32,
    },
    Processors {
        by: i64,
        absolute: bool,
    },
    /// None: all partitions.
    Partition {
        name: Option<String>,
        key: String,
        value: String,
    },
    Set {
        section: String,
        key: String,
        value: String,
    },
}

/// What is to be tried, in the order given.
#[derive(Clone, PartialEq, Debug)]
pub struct WhatIf {
    text: String,
    changes: Vec<Change>,
}

const FORMS: &str = "nodes+=N, nodes.NAME+=N, nodes-=N, procs=N, procs+=N, SECTION.KEY=VALUE, partition.KEY=VALUE, \
    partition.NAME.KEY=VALUE";

impl fmt::Display for WhatIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl WhatIf {
    pub fn parse(text: &str) -> Result<WhatIf, String> {
        let parts = split(text);
        if parts.is_empty() {
            return Err(format!("names no change; allowed are {FORMS}"));
        }
        let changes = parts.into_iter().map(change).collect::<Result<_, _>>()?;
        Ok(WhatIf { text: text.to_owned(), changes })
    }

    /// Changes a configuration; `processors` is the count of a machine that is nothing but those.
    pub fn apply(&self, document: &mut DocumentMut, processors: &mut Option<u32>) -> Result<(), String> {
        for change in &self.changes {
            let plain = processors.is_some();
            match change {
                Change::Processors { by, absolute } => {
                    let Some(have) = processors else {
                        return Err("procs: the machine has nodes; use nodes+=N".to_owned());
                    };
                    let want = if *absolute { *by } else { i64::from(*have) + by };
                    *have = u32::try_from(want).ok().filter(|n| *n > 0).ok_or("procs: none would be left")?;
                }
                Change::AddNodes { .. } | Change::RemoveNodes { .. } if plain => {
                    return Err("nodes: the machine is plain processors; use procs+=N, or give --cluster".to_owned());
                }
                Change::AddNodes { like, count } => add_nodes(document, like.as_deref(), *count)?,
                Change::RemoveNodes { count } => remove_nodes(document, *count)?,
                Change::Partition { name, key, value } => set_partition(document, name.as_deref(), key, value)?,
                Change::Set { section, key, value } => {
                    let item = document.entry(section).or_insert_with(toml_edit::table);
                    let table = item.as_table_like_mut().ok_or_else(|| format!("{section}: is no section"))?;
                    table.insert(key, literal(value));
                }
            }
        }
        Ok(())
    }
}

/// At commas outside quotes and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut quoted, mut from) = (Vec::new(), 0i32, false, 0);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth <= 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect()
}

fn change(text: &str) -> Result<Change, String> {
    let bad = || format!("'{text}' is no change; allowed are {FORMS}");
    let (left, right) = text.split_once('=').ok_or_else(bad)?;
    let (left, right) = (left.trim(), right.trim());
    let (name, sign) = match (left.strip_suffix('+'), left.strip_suffix('-')) {
        (Some(name), _) => (name.trim(), '+'),
        (_, Some(name)) => (name.trim(), '-'),
        _ => (left, '='),
    };
    let count = || right.parse::<u32>().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(bad);
    let parts: Vec<&str> = name.split('.').collect();
    match (&parts[..], sign) {
        (["nodes"], '+') => Ok(Change::AddNodes { like: None, count: count()? }),
        (["nodes", like @ ..], '+') if !like.is_empty() => {
            Ok(Change::AddNodes { like: Some(like.join(".")), count: count()? })
        }
        (["nodes"], '-') => Ok(Change::RemoveNodes { count: count()? }),
        (["procs"], '=') => Ok(Change::Processors { by: i64::from(count()?), absolute: true }),
        (["procs"], '+') => Ok(Change::Processors { by: i64::from(count()?), absolute: false }),
        (["procs"], _) => Ok(Change::Processors { by: -i64::from(count()?), absolute: false }),
        (["partition", key], '=') => {
            Ok(Change::Partition { name: None, key: (*key).to_owned(), value: right.to_owned() })
        }
        (["partition", name @ .., key], '=') => {
            Ok(Change::Partition { name: Some(name.join(".")), key: (*key).to_owned(), value: right.to_owned() })
        }
        ([section, key], '=') if !["node", "nodes", "cluster_name"].contains(section) => {
            Ok(Change::Set { section: (*section).to_owned(), key: (*key).to_owned(), value: right.to_owned() })
        }
        _ => Err(bad()),
    }
}

/// A value of TOML, or else the text itself.
fn literal(text: &str) -> Item {
    text.parse::<Value>().map_or_else(|_| value(text), Item::Value)
}

fn tables<'a>(document: &'a mut DocumentMut, key: &str) -> Result<&'a mut ArrayOfTables, String> {
    let item = document.get_mut(key).ok_or_else(|| format!("{key}: the configuration has none"))?;
    // `key = [{…}, …]` means the same.
    if let Some(list) = item.as_array() {
        let converted: ArrayOfTables =
            list.iter().filter_map(|v| v.as_inline_table().map(|t| t.clone().into_table())).collect();
        *item = Item::ArrayOfTables(converted);
    }
    item.as_array_of_tables_mut().ok_or_else(|| format!("{key}: expected [[{key}]]"))
}

/// Host lists of a key, as names.
fn names(table: &Table, key: &str) -> Vec<String> {
    let expand = |text: &str| hostlist::expand(text).unwrap_or_default();
    match table.get(key) {
        Some(item) => match (item.as_str(), item.as_array()) {
            (Some(text), _) => expand(text),
            (None, Some(list)) => list.iter().filter_map(|v| v.as_str()).flat_map(expand).collect(),
            (None, None) => Vec::new(),
        },
        None => Vec::new(),
    }
}

fn is_all(table: &Table) -> bool {
    table.get("nodes").and_then(|n| n.as_str()).is_some_and(|n| n.eq_ignore_ascii_case("all"))
}

fn set_names(table: &mut Table, key: &str, names: &[String]) {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    table.insert(key, value(hostlist::fold(&names)));
}

fn add_nodes(document: &mut DocumentMut, like: Option<&str>, count: u32) -> Result<(), String> {
    let nodes = tables(document, "node")?;
    let taken: Vec<String> = nodes.iter().flat_map(|t| names(t, "name")).collect();
    let model = match like {
        None => nodes.iter().last().cloned(),
        Some(like) => nodes.iter().find(|t| names(t, "name").iter().any(|n| n == like)).cloned(),
    };
    let mut table = model.ok_or_else(|| format!("nodes.{}: no [[node]] declares it", like.unwrap_or_default()))?;
    let model = names(&table, "name").into_iter().next().unwrap_or_default();
    let fresh = (1u32..).map(|n| format!("whatif{n}")).filter(|n| !taken.contains(n));
    let added: Vec<String> = fresh.take(count as usize).collect();
    set_names(&mut table, "name", &added);
    table.remove("address");
    // Behind all others, not beside its model.
    table.set_position(1_000_000_000);
    nodes.push(table);
    for partition in tables(document, "partition")?.iter_mut().filter(|p| !is_all(p)) {
        let mut members = names(partition, "nodes");
        if members.contains(&model) {
            members.extend(added.iter().cloned());
            set_names(partition, "nodes", &members);
        }
    }
    Ok(())
}

/// The last ones that the configuration declares.
fn remove_nodes(document: &mut DocumentMut, count: u32) -> Result<(), String> {
    let nodes = tables(document, "node")?;
    let all: Vec<String> = nodes.iter().flat_map(|t| names(t, "name")).collect();
    let kept = all.len().checked_sub(count as usize).filter(|n| *n > 0);
    let kept = kept.ok_or_else(|| format!("nodes-={count}: there are only {}", all.len()))?;
    let gone = &all[kept..];
    let keep = |list: Vec<String>| -> Vec<String> { list.into_iter().filter(|n| !gone.contains(n)).collect() };
    let mut empty = Vec::new();
    for (at, table) in nodes.iter_mut().enumerate() {
        let left = keep(names(table, "name"));
        if left.is_empty() {
            empty.push(at);
        } else {
            set_names(table, "name", &left);
        }
        table.remove("address");
    }
    empty.into_iter().rev().for_each(|at| _ = nodes.remove(at));
    for partition in tables(document, "partition")?.iter_mut().filter(|p| !is_all(p)) {
        let left = keep(names(partition, "nodes"));
        set_names(partition, "nodes", &left);
    }
    Ok(())
}

fn set_partition(document: &mut DocumentMut, name: Option<&str>, key: &str, text: &str) -> Result<(), String> {
    let mut found = false;
    for partition in tables(document, "partition")?.iter_mut() {
        if name.is_none() || partition.get("name").and_then(|n| n.as_str()) == name {
            partition.insert(key, literal(text));
            found = true;
        }
    }
    if found { Ok(()) } else { Err(format!("partition {}: there is none of that name", name.unwrap_or_default())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "cluster_name = \"c\"\n[[node]]\nname = \"a[1-2]\"\ncpus = 4\nmemory_mb = 10\n[[node]]\nname = \"g1\"\n\
        cpus = 8\nmemory_mb = 10\ngres = [\"gpu:4\"]\n[[partition]]\nname = \"p\"\nnodes = \"a[1-2]\"\ndefault = true\n\
        [[partition]]\nname = \"q\"\nnodes = \"ALL\"\n";

    fn changed(what: &str) -> Result<sluice_model::config::ClusterConfig, String> {
        let mut document: DocumentMut = TWO.parse().unwrap();
        WhatIf::parse(what)?.apply(&mut document, &mut None)?;
        sluice_model::config::parse(&document.to_string(), "t").map_err(|p| p[0].to_string())
    }

    #[test]
    fn nodes_are_added_like_others_and_in_their_partitions() {
        let config = changed("nodes+=2").unwrap();
        assert_eq!(config.nodes.len(), 5);
        assert_eq!(config.nodes[4].gres, config.nodes[2].gres);
        assert_eq!((config.partitions[0].nodes.len(), config.partitions[1].nodes.len()), (2, 5));
        let config = changed("nodes.a1+=3").unwrap();
        assert_eq!((config.nodes[5].cpus, config.partitions[0].nodes.len()), (4, 5));
        let config = changed("nodes-=2").unwrap();
        assert_eq!((config.nodes.len(), config.partitions[0].nodes.len()), (1, 1));
    }

    #[test]
    fn keys_of_sections_and_partitions_are_set() {
        let config =
            changed("scheduling.queue_depth=7, partition.p.max_time=\"1:00:00\",partition.priority_tier=3").unwrap();
        assert_eq!(config.scheduling.queue_depth, 7);
        assert_eq!(config.partitions[0].max_time, sluice_model::TimeLimit::Minutes(60));
        assert_eq!(config.partitions[1].priority_tier, 3);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (bad, part) in [
            ("", "names no change"),
            ("nodes", "allowed are"),
            ("nodes+=x", "nodes+=x"),
            ("nodes+=0", "nodes+=0"),
            ("node.cpus=3", "node.cpus=3"),
            ("nodes.zz+=1", "zz"),
            ("nodes-=3", "there are only 3"),
            ("procs+=1", "nodes+=N"),
            ("partition.z.max_time=1", "partition z"),
            ("scheduling.colour=1", "colour"),
        ] {
            let message = changed(bad).unwrap_err();
            assert!(message.contains(part), "{bad}: {message}");
        }
    }
}
