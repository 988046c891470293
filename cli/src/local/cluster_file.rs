//! The configuration of a local cluster: written from a few numbers, or taken from the user's file.

use super::arguments::ShapeFlags;
use super::layout::Layout;
use super::{LocalError, Result, at};
use serde::{Deserialize, Serialize};
use sluice_model::config::{self, ClusterConfig};
use std::collections::BTreeMap;
use std::path::Path;

/// What `sluice local` remembers of a cluster between its commands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) cluster: String,
    pub(super) nodes: u32,
    pub(super) cpus: u32,
    pub(super) memory_mb: u64,
    pub(super) gpus: u32,
    /// The text of sluice.toml as it was last written here: when the file differs, its owner edited it.
    #[serde(default)]
    pub(super) written: String,
    /// TCP ports by daemon, kept over restarts: running jobs know their nodes by them.
    #[serde(default)]
    pub(super) ports: BTreeMap<String, u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cluster: "local".to_owned(),
            nodes: 3,
            cpus: 4,
            memory_mb: 4096,
            gpus: 0,
            written: String::new(),
            ports: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// None when the cluster was never started.
    pub(super) fn load(layout: &Layout) -> Result<Option<Settings>> {
        let path = layout.settings();
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                toml::from_str(&text).map(Some).map_err(|e| LocalError::Said(format!("{}: {e}", path.display())))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(at(&path)(e)),
        }
    }

    pub(super) fn save(&self, layout: &Layout) -> Result<()> {
        let text = toml::to_string(self).map_err(|e| LocalError::Said(e.to_string()))?;
        write_atomic(&layout.settings(), &text)
    }

    fn apply(&mut self, flags: &ShapeFlags) {
        self.nodes = flags.nodes.unwrap_or(self.nodes);
        self.cpus = flags.cpus.unwrap_or(self.cpus);
        self.memory_mb = flags.memory.unwrap_or(self.memory_mb);
        self.gpus = flags.gpus.unwrap_or(self.gpus);
    }
}

pub(super) fn write_atomic(path: &Path, text: &str) -> Result<()> {
    let staged = path.with_extension("new");
    std::fs::write(&staged, text).map_err(at(&staged))?;
    std::fs::rename(&staged, path).map_err(at(path))
}

const HEADER: &str = "# The configuration of this local cluster. After a change: scontrol reconfigure\n";

/// Nodes and a partition of all of them.
fn nodes_text(s: &Settings) -> String {
    let name = if s.nodes == 1 { "node1".to_owned() } else { format!("node[1-{}]", s.nodes) };
    let gres = if s.gpus > 0 { format!("gres = [\"gpu:{}\"]\n", s.gpus) } else { String::new() };
    format!("\n[[node]]\nname = \"{name}\"\ncpus = {}\nmemory_mb = {}\n{gres}", s.cpus, s.memory_mb)
}

/// Slurm's default would give each job all memory of its nodes, and one job a node is a dull cluster.
fn memory_text(s: &Settings) -> String {
    let per_cpu = (s.memory_mb / u64::from(s.cpus)).max(1);
    format!("\n[scheduling]\ndefault_memory_per_cpu_mb = {per_cpu}\n")
}

const PARTITION: &str = "\n[[partition]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

fn generated(s: &Settings) -> String {
    format!(
        "{HEADER}cluster_name = \"{}\"\n{}\n[timing]\nheartbeat_secs = 5\n\n\
         [security]\n# Jobs start even where isolation can't be applied; `sluice local up` says what is missing.\n\
         best_effort = true\n{}{PARTITION}",
        s.cluster,
        memory_text(s),
        nodes_text(s)
    )
}

/// The user's file, with what it leaves out added: the cluster's name, nodes and what jobs get of their memory, a
/// partition, best effort.
fn completed(text: &str, s: &Settings, path: &Path) -> Result<String> {
    let table: toml::Table = text.parse().map_err(|e| LocalError::Said(format!("{}: {e}", path.display())))?;
    let mut out = HEADER.to_owned();
    if !table.contains_key("cluster_name") {
        out.push_str(&format!("cluster_name = \"{}\"\n", s.cluster));
    }
    out.push_str(text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
    if !table.contains_key("node") {
        out.push_str(&nodes_text(s));
        if !table.contains_key("scheduling") {
            out.push_str(&memory_text(s));
        }
    }
    if !table.contains_key("partition") {
        out.push_str(PARTITION);
    }
    if !table.contains_key("security") {
        out.push_str("\n[security]\nbest_effort = true\n");
    }
    Ok(out)
}

/// What the flags make of the cluster: its settings, and whether its configuration file was rewritten.
pub(super) fn prepare(
    layout: &Layout,
    flags: &ShapeFlags,
    config: Option<&Path>,
) -> Result<(Settings, ClusterConfig, bool)> {
    let path = layout.cluster_file();
    let known = Settings::load(layout)?;
    let first = known.is_none();
    let mut settings = known.unwrap_or_default();
    if let Some(name) = &flags.cluster {
        if !first && *name != settings.cluster {
            let text = format!(
                "this cluster is called {:?} since its first start; --cluster can't change that",
                settings.cluster
            );
            return Err(LocalError::Said(text));
        }
        settings.cluster = name.clone();
    }
    settings.apply(flags);
    let text = if let Some(file) = config {
        Some(completed(&std::fs::read_to_string(file).map_err(at(file))?, &settings, file)?)
    } else if first || flags.any() {
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if !first && found != settings.written {
            return Err(LocalError::Said(format!(
                "{} was edited; change the nodes there too, then start with no options about them",
                path.display()
            )));
        }
        Some(generated(&settings))
    } else {
        None
    };
    let rewritten = text.is_some();
    let text = match text {
        Some(text) => text,
        None => std::fs::read_to_string(&path).map_err(at(&path))?,
    };
    let shown = config.unwrap_or(&path).display().to_string();
    let parsed = config::parse(&text, &shown).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        LocalError::Said(format!("the configuration can't be used:\n{}", lines.join("\n")))
    })?;
    if !first && parsed.cluster_name != settings.cluster {
        let (new, old) = (&parsed.cluster_name, &settings.cluster);
        return Err(LocalError::Said(format!(
            "{shown}: cluster_name is {new:?}; this cluster is called {old:?} since its first start"
        )));
    }
    settings.cluster = parsed.cluster_name.clone();
    if rewritten {
        write_atomic(&path, &text)?;
        settings.written = text;
    }
    Ok((settings, parsed, rewritten))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(nodes: u32) -> ShapeFlags {
        ShapeFlags { nodes: Some(nodes), ..Default::default() }
    }

    fn layout() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::create(dir.path()).unwrap();
        (dir, layout)
    }

    #[test]
    fn a_few_numbers_make_a_configuration() {
        let (_dir, layout) = layout();
        let flags = ShapeFlags {
            nodes: Some(64),
            cpus: Some(128),
            memory: Some(1_000_000),
            gpus: Some(8),
            cluster: Some("big".into()),
        };
        let (settings, config, rewritten) = prepare(&layout, &flags, None).unwrap();
        assert!(rewritten);
        assert_eq!((settings.cluster.as_str(), config.cluster_name.as_str()), ("big", "big"));
        assert_eq!(config.nodes.len(), 64);
        let node = &config.nodes[63];
        assert_eq!((node.name.as_str(), node.cpus, node.memory_mb, node.gres[0].count), ("node64", 128, 1_000_000, 8));
        assert!(config.security.best_effort);
        assert_eq!(config.partitions[0].name, "main");
    }

    #[test]
    fn what_a_users_file_leaves_out_is_added() {
        let (dir, layout) = layout();
        let file = dir.path().join("mine.toml");
        std::fs::write(&file, "[timing]\nkill_wait_secs = 1").unwrap();
        let (_, config, _) = prepare(&layout, &flags(2), Some(&file)).unwrap();
        assert_eq!((config.timing.kill_wait_secs, config.nodes.len(), config.partitions.len()), (1, 2, 1));
        assert_eq!(config.scheduling.default_memory_per_cpu_mb, Some(1024));
        assert!(config.security.best_effort);
    }

    #[test]
    fn a_file_that_declares_everything_is_taken_as_it_is() {
        let (dir, layout) = layout();
        let file = dir.path().join("mine.toml");
        let text = "cluster_name = \"mine\"\n[[node]]\nname = \"a\"\ncpus = 2\nmemory_mb = 10\n\
                    [[partition]]\nname = \"p\"\nnodes = \"a\"\ndefault = true\n[security]\nbest_effort = true\n";
        std::fs::write(&file, text).unwrap();
        let (settings, config, _) = prepare(&layout, &ShapeFlags::default(), Some(&file)).unwrap();
        assert_eq!((settings.cluster.as_str(), config.nodes[0].name.as_str()), ("mine", "a"));
    }

    #[test]
    fn problems_of_a_users_file_are_told_with_their_lines() {
        let (dir, layout) = layout();
        let file = dir.path().join("mine.toml");
        std::fs::write(&file, "cluster_name = \"x\"\n[timing]\nkill_wayt_secs = 1\n").unwrap();
        let error = prepare(&layout, &flags(1), Some(&file)).unwrap_err().to_string();
        assert!(error.contains("kill_wayt_secs"), "{error}");
    }

    #[test]
    fn an_edited_file_is_used_and_not_overwritten() {
        let (_dir, layout) = layout();
        let (settings, _, _) = prepare(&layout, &flags(2), None).unwrap();
        settings.save(&layout).unwrap();
        let edited = std::fs::read_to_string(layout.cluster_file()).unwrap().replace("cpus = 4", "cpus = 6");
        std::fs::write(layout.cluster_file(), &edited).unwrap();
        let (_, config, rewritten) = prepare(&layout, &ShapeFlags::default(), None).unwrap();
        assert_eq!((config.nodes[0].cpus, rewritten), (6, false));
        let error = prepare(&layout, &flags(3), None).unwrap_err().to_string();
        assert!(error.contains("was edited"), "{error}");
    }

    #[test]
    fn a_cluster_keeps_its_name_and_takes_a_new_shape() {
        let (_dir, layout) = layout();
        let (settings, _, _) = prepare(&layout, &flags(2), None).unwrap();
        settings.save(&layout).unwrap();
        assert_eq!(Settings::load(&layout).unwrap(), Some(settings));
        let (_, config, _) = prepare(&layout, &flags(5), None).unwrap();
        assert_eq!(config.nodes.len(), 5);
        let renamed = ShapeFlags { cluster: Some("other".into()), ..Default::default() };
        assert!(prepare(&layout, &renamed, None).is_err());
    }
}
