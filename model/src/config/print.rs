//! A configuration as TOML that `parse` reads back to an equal one.

use super::ClusterConfig;
use super::fields::{self, Field, quote};
use crate::hostlist;
use std::fmt::Write;

/// Every setting, defaults included; neighbouring nodes that differ in nothing but their names share a section.
pub fn to_toml(c: &ClusterConfig) -> String {
    let mut out = format!("cluster_name = {}\n", quote(&c.cluster_name));
    let described: Vec<_> = c.nodes.iter().map(|n| (n.name.as_str(), fields::node(n))).collect();
    // Equal addresses can't be shared: a section's address names one host for each node.
    for group in described.chunk_by(|a, b| a.1 == b.1 && !has_address(&a.1)) {
        let names: Vec<&str> = group.iter().map(|(name, _)| *name).collect();
        section(&mut out, "[[node]]", Some(&hostlist::fold(&names)), &group[0].1);
    }
    for p in &c.partitions {
        section(&mut out, "[[partition]]", Some(&p.name), &fields::partition(p));
    }
    for (name, fields) in fields::sections(c) {
        section(&mut out, &format!("[{name}]"), None, &fields);
    }
    if !c.licenses.is_empty() {
        out.push_str("\n[licenses]\n");
        for (name, count) in &c.licenses {
            line(&mut out, &quote(name), &count.to_string());
        }
    }
    out
}

fn has_address(fields: &[Field]) -> bool {
    fields.iter().any(|(key, value)| *key == "address" && value.is_some())
}

fn section(out: &mut String, header: &str, name: Option<&str>, fields: &[Field]) {
    out.push('\n');
    out.push_str(header);
    out.push('\n');
    if let Some(name) = name {
        line(out, "name", &quote(name));
    }
    for (key, value) in fields {
        if let Some(value) = value {
            line(out, key, value);
        }
    }
}

fn line(out: &mut String, key: &str, value: &str) {
    // Writing to a String can't fail.
    let _ = writeln!(out, "{key} = {value}");
}
