//! `scontrol show hostnames`, `hostlist`, `hostlistsorted`: host lists taken apart and folded. No cluster is needed.
//!
//! `hostnames` without an operand reads SLURM_NODELIST, the old spelling: job scripts of clients rely on it.

use super::session::{Done, Session, is};
use crate::view::node::natural_order;
use sluice_model::hostlist;

/// None when the entity is none of them.
pub fn show(session: &Session, entity: &str, rest: &[String]) -> Option<Done> {
    // The longer names first: `hostl` is a list, `hostlists` the sorted one.
    if is(entity, "hostnames", 5) {
        return Some(names(session, rest));
    }
    if is(entity, "hostlistsorted", 9) {
        return Some(list(session, rest, true));
    }
    if is(entity, "hostlist", 5) {
        return Some(list(session, rest, false));
    }
    None
}

fn names(session: &Session, rest: &[String]) -> Done {
    let text = match rest.first() {
        Some(_) => rest.join(","),
        None => crate::viewing::env("SLURM_NODELIST").unwrap_or_default(),
    };
    if text.is_empty() {
        // Slurm says so and succeeds.
        crate::errln!("scontrol: error: host list is empty");
        return true;
    }
    match hostlist::expand(&text) {
        Ok(names) => {
            let mut out = names.join("\n");
            out.push('\n');
            session.print(out.as_bytes());
            true
        }
        Err(e) => {
            crate::errln!("scontrol: error: Invalid hostlist: {}: {}", e.value, e.allowed);
            false
        }
    }
}

fn list(session: &Session, rest: &[String], sorted: bool) -> Done {
    let mut text = rest.join(",");
    if text.is_empty() {
        crate::errln!("invalid encode argument");
        return false;
    }
    // The name of a file with host names in it.
    if text.starts_with('/') {
        match std::fs::read_to_string(&text) {
            Ok(content) => text = content.split_whitespace().collect::<Vec<_>>().join(","),
            Err(e) => {
                crate::errln!("scontrol: error: Can't open {text}: {e}");
                return false;
            }
        }
    }
    match hostlist::expand(&text) {
        Ok(mut names) => {
            if sorted {
                names.sort_by(|a, b| natural_order(a, b));
                names.dedup();
            }
            session.print(format!("{}\n", hostlist::fold(&names)).as_bytes());
            true
        }
        Err(e) => {
            crate::errln!("Invalid hostlist: {}: {}", e.value, e.allowed);
            false
        }
    }
}
