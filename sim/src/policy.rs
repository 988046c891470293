//! Who goes first, and how far others may pass: by name, or from a file.
//!
//! Owns the names. A named policy sets what its definition in the literature says and nothing by hindsight; a file has the
//! same sections as a cluster's configuration (`[scheduling]`, `[priority]` …), whose problems are reported with their
//! lines when it is loaded.

use crate::trace::TraceJob;
use sluice_model::config::{ClusterConfig, PriorityKind};
use sluice_sched::Policy as Rules;
use std::fmt;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Table};

/// What decides the place in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The configuration's own.
    Configured,
    /// Arrival.
    Arrival,
    /// Least requested time first.
    Shortest,
    /// Greatest requested time first.
    Longest,
    /// Fewest processors (GPUs) first.
    Narrowest,
    /// Most processors (GPUs) first.
    Widest,
    /// Least requested time × processors first (SAF: Carastan-Santos et al. 2019).
    SmallestArea,
}

/// How far jobs may pass those before them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backfill {
    Configured,
    None,
    /// The first that waits has a planned start (Lifka 1995).
    Easy,
    /// All that wait have one (Mu'alem and Feitelson 2001).
    Conservative,
}

#[derive(Clone, Debug)]
pub struct Policy {
    name: String,
    file: Option<PathBuf>,
    sections: DocumentMut,
    pub order: Order,
    pub backfill: Backfill,
}

struct Named {
    name: &'static str,
    about: &'static str,
    order: Order,
    backfill: Backfill,
}

const fn named(name: &'static str, about: &'static str, order: Order, backfill: Backfill) -> Named {
    Named { name, about, order, backfill }
}

const NAMED: [Named; 10] = [
    named("default", "what an empty configuration gives", Order::Configured, Backfill::Configured),
    named("fcfs", "first come, first served; nobody passes", Order::Arrival, Backfill::None),
    named("easy", "arrival, aggressive backfill: the first has a planned start", Order::Arrival, Backfill::Easy),
    named("conservative", "arrival, every job has a planned start", Order::Arrival, Backfill::Conservative),
    named("sjf", "shortest requested time first, EASY backfill", Order::Shortest, Backfill::Easy),
    named("ljf", "longest requested time first, EASY backfill", Order::Longest, Backfill::Easy),
    named("saf", "smallest area (time × size) first, EASY backfill", Order::SmallestArea, Backfill::Easy),
    named("narrow", "fewest processors first, EASY backfill", Order::Narrowest, Backfill::Easy),
    named("wide", "most processors first, EASY backfill", Order::Widest, Backfill::Easy),
    named("sjf-conservative", "shortest first, all planned", Order::Shortest, Backfill::Conservative),
];

#[derive(Debug)]
pub enum PolicyError {
    Unknown { name: String },
    Io { path: PathBuf, source: std::io::Error },
    Form { path: PathBuf, what: String },
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Unknown { name } => {
                let known: Vec<&str> = NAMED.iter().map(|n| n.name).collect();
                write!(f, "unknown policy '{name}'; known are {}, or a file", known.join(", "))
            }
            PolicyError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            PolicyError::Form { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl std::error::Error for PolicyError {}

/// Sections of a cluster's configuration that describe its machine, not its policy.
const MACHINE: [&str; 3] = ["cluster_name", "node", "partition"];

impl Policy {
    /// A name, or else the path of a file.
    pub fn load(text: &str) -> Result<Policy, PolicyError> {
        if let Some(found) = NAMED.iter().find(|n| n.name == text) {
            let (order, backfill) = (found.order, found.backfill);
            return Ok(Policy { name: text.to_owned(), file: None, sections: DocumentMut::new(), order, backfill });
        }
        let path = Path::new(text);
        if !path.exists() && !text.contains(['/', '.']) {
            return Err(PolicyError::Unknown { name: text.to_owned() });
        }
        let content =
            std::fs::read_to_string(path).map_err(|source| PolicyError::Io { path: path.to_owned(), source })?;
        Policy::from_text(&content, path)
    }

    fn from_text(content: &str, path: &Path) -> Result<Policy, PolicyError> {
        let form = |what: String| PolicyError::Form { path: path.to_owned(), what };
        let sections: DocumentMut =
            content.parse().map_err(|e: toml_edit::TomlError| form(e.message().replace('\n', ", ")))?;
        if let Some(key) = MACHINE.iter().find(|key| sections.contains_key(key)) {
            return Err(form(format!(
                "'{key}' belongs to the machine: a policy has sections such as [scheduling]; give the machine with --cluster"
            )));
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Policy {
            name,
            file: Some(path.to_owned()),
            sections,
            order: Order::Configured,
            backfill: Backfill::Configured,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }
    pub fn sections(&self) -> &Table {
        self.sections.as_table()
    }

    /// One line for each named policy.
    pub fn list() -> String {
        NAMED.iter().map(|n| format!("  {:18}{}\n", n.name, n.about)).collect()
    }

    /// Order and limits are those of the configuration; otherwise the policy has an order of its own.
    pub fn is_configured(&self) -> bool {
        self.order == Order::Configured
    }

    /// The priority with which a job is submitted, when the policy's order is not the configuration's or the arrival's.
    pub fn priority(&self, job: &TraceJob) -> Option<u32> {
        let size = u64::from(if job.gpus > 0 { job.gpus } else { job.cpus });
        let time = u64::try_from(job.requested).unwrap_or(0);
        const TOP: u32 = u32::MAX - 1;
        let least = |n: u64| TOP - u32::try_from(n).unwrap_or(TOP - 1).min(TOP - 1);
        let most = |n: u64| u32::try_from(n.max(1)).unwrap_or(TOP).min(TOP);
        match self.order {
            Order::Configured | Order::Arrival => None,
            Order::Shortest => Some(least(time)),
            Order::Longest => Some(most(time)),
            Order::Narrowest => Some(least(size)),
            Order::Widest => Some(most(size)),
            Order::SmallestArea => Some(least(time.saturating_mul(size))),
        }
    }

    /// What the policy's definition asks of the configuration.
    pub fn configure(&self, config: &mut ClusterConfig) {
        if self.order != Order::Configured {
            // Arrival, or the priority that jobs are submitted with.
            config.priority.kind = PriorityKind::Fifo;
        }
        if self.backfill != Backfill::Configured {
            config.scheduling.backfill = self.backfill != Backfill::None;
            config.scheduling.queue_depth = u32::MAX;
        }
    }

    /// What the policy's definition asks of the scheduler besides.
    pub fn adjust(&self, rules: &mut Rules) {
        rules.reservations = match self.backfill {
            Backfill::Configured => return,
            Backfill::None => 0,
            Backfill::Easy => 1,
            Backfill::Conservative => u32::MAX,
        };
        // Definitions know no bound on the work of a pass.
        rules.work_budget = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_policy_is_told_what_there_is() {
        let message = Policy::load("esay").unwrap_err().to_string();
        assert!(message.contains("'esay'") && message.contains("easy, conservative"), "{message}");
    }

    #[test]
    fn a_policy_file_says_nothing_about_the_machine() {
        let message = Policy::from_text("[[node]]\nname = \"a\"\n", Path::new("p.toml")).unwrap_err().to_string();
        assert!(message.contains("p.toml: 'node'"), "{message}");
    }
}
