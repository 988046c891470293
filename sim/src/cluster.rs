//! The machine that a trace is replayed on, as a cluster configuration like any other.
//!
//! Owns the joining of a cluster's file and a policy's sections into one checked configuration. A machine known by its
//! processors alone is one node with so many CPUs: then a job fits when enough processors are free, wherever they are.

use crate::policy::Policy;
use crate::whatif::WhatIf;
use sluice_model::config::{self, ClusterConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use toml_edit::DocumentMut;

/// The name of the cluster that is nothing but a number of processors.
pub const PLAIN: &str = "plain-processors";

/// Where the configuration comes from.
#[derive(Clone, Debug)]
pub struct Machine {
    /// For messages.
    file: PathBuf,
    document: DocumentMut,
    /// Processors of the one node, when the machine is nothing but those.
    processors: Option<u32>,
}

#[derive(Debug)]
pub enum MachineError {
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    /// One line for each problem.
    Form(Vec<String>),
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Io { path, source } => write!(f, "{}: {source}", path.display()),
            MachineError::Form(lines) => write!(f, "{}", lines.join("\n")),
        }
    }
}

impl std::error::Error for MachineError {}

impl Machine {
    /// A cluster's own configuration file.
    pub fn from_file(path: &Path) -> Result<Machine, MachineError> {
        let text =
            std::fs::read_to_string(path).map_err(|source| MachineError::Io { path: path.to_owned(), source })?;
        Machine::from_text(&text, path)
    }

    fn from_text(text: &str, path: &Path) -> Result<Machine, MachineError> {
        // All problems of the file as such, with their lines, before anything is joined to it.
        config::parse(text, &path.display().to_string()).map_err(problems)?;
        let document = text
            .parse::<DocumentMut>()
            .map_err(|e| MachineError::Form(vec![format!("{}: {}", path.display(), e.message())]))?;
        Ok(Machine { file: path.to_owned(), document, processors: None })
    }

    /// One node with so many CPUs, and memory for a job on each.
    pub fn of_processors(procs: u32) -> Result<Machine, MachineError> {
        let text = "cluster_name = \"plain-processors\"\n[[node]]\nname = \"machine\"\ncpus = 1\nmemory_mb = 1\n\
             [[partition]]\nname = \"all\"\nnodes = \"ALL\"\ndefault = true\n";
        let machine = Machine::from_text(text, Path::new("(processors)"))?;
        Ok(Machine { processors: Some(procs), ..machine })
    }

    /// The cluster under a policy: the policy's sections replace the file's, and then come the changes to be tried.
    pub fn under(&self, policy: &Policy, what_if: Option<&WhatIf>) -> Result<ClusterConfig, MachineError> {
        let mut document = self.document.clone();
        let mut processors = self.processors;
        for (key, item) in policy.sections().iter() {
            document.insert(key, item.clone());
        }
        let name = match policy.file() {
            Some(file) => format!("{} with {}", self.file.display(), file.display()),
            None => format!("{} with policy {}", self.file.display(), policy.name()),
        };
        if let Some(what_if) = what_if {
            what_if
                .apply(&mut document, &mut processors)
                .map_err(|what| MachineError::Form(vec![format!("--what-if {what_if}: {what}")]))?;
        }
        let mut config = config::parse(&document.to_string(), &name).map_err(problems)?;
        if let (Some(procs), [node]) = (processors, &mut config.nodes[..]) {
            // More than a real node may have.
            (node.cpus, node.cores_per_socket, node.memory_mb) = (procs, procs, u64::from(procs));
        }
        policy.configure(&mut config);
        Ok(config)
    }
}

fn problems(list: Vec<config::ConfigProblem>) -> MachineError {
    MachineError::Form(list.iter().map(ToString::to_string).collect())
}
