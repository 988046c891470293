//! What runs of a cluster.

use super::arguments::Place;
use super::layout::Layout;
use super::{Result, daemon, link, say};
use sluice_model::config;
use std::collections::BTreeMap;
use std::process::ExitCode;

pub(super) fn main(place: &Place) -> Result<ExitCode> {
    let layout = Layout::existing(&place.dir)?;
    let running = daemon::daemons(&layout);
    let supervisors = daemon::all(&layout).iter().filter(|r| r.role == daemon::Role::Supervisor).count();
    let text = std::fs::read_to_string(layout.cluster_file()).unwrap_or_default();
    let configured = config::parse(&text, "sluice.toml");
    let mut names = vec!["ctld".to_owned()];
    match &configured {
        Ok(config) => names.extend(config.nodes.iter().map(|n| n.name.to_string())),
        // Then those that run will do.
        Err(_) => names.extend(running.keys().filter(|n| *n != "ctld").cloned()),
    }
    say(&format!("Cluster in {}", layout.dir().display()))?;
    let answer = crate::client::block_on(async {
        let mut controller = link::connect(&layout).await?;
        let nodes = link::nodes(&mut controller).await?;
        Ok::<_, super::LocalError>((nodes, link::live_jobs(&mut controller).await?))
    });
    let mut whole = true;
    for name in &names {
        let process = match running.get(name) {
            Some(pid) => format!("pid {pid}"),
            None => "not running".to_owned(),
        };
        let said = match (&answer, name.as_str()) {
            (Ok(_), "ctld") => "accepts jobs".to_owned(),
            (Err(e), "ctld") => e.to_string(),
            (Ok((nodes, _)), name) => {
                nodes.iter().find(|n| n.name == name).map_or("not configured", node_word).to_owned()
            }
            (Err(_), _) => String::new(),
        };
        whole &= running.contains_key(name) && answer.is_ok();
        say(format!("  {name:<10} {process:<14} {said}").trim_end())?;
    }
    if let Ok((_, jobs)) = &answer {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for job in jobs {
            *counts.entry(job.state.as_str()).or_default() += 1;
        }
        let counts: Vec<String> = counts.iter().map(|(state, n)| format!("{n} {}", state.to_lowercase())).collect();
        let counts = if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
        say(&format!("  jobs: {counts}; {supervisors} steps on this machine"))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn node_word(node: &sluice_proto::v1::NodeRecord) -> &'static str {
    if node.unknown {
        "not registered yet"
    } else if node.not_responding {
        "does not respond"
    } else if node.down {
        "down"
    } else if node.drain {
        "drained"
    } else {
        "up"
    }
}
