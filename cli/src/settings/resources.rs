//! Options that say which resources, how many, and where.

use super::value::{memory, number};
use super::{BadValue, Settings};
use crate::options::Submitter;
use sluice_model::request::{Distribution, Exclusive, GresScope, MemoryRequest, SwitchRequest};
use sluice_model::{NodeName, gres, hostlist, node_count};

/// Slurm's words for a GRES that can't be read.
const BAD_GRES: &str = "Invalid generic resource (gres) specification";

impl Settings {
    /// False when the option is none of these.
    pub(super) fn set_resource(&mut self, key: &'static str, text: &str, has_value: bool) -> Result<bool, BadValue> {
        match key {
            "nodes" => self.job.request.nodes = Some(self.nodes(text)?),
            "ntasks" => self.job.request.ntasks = Some(number(key, text, 1)?),
            "ntasks-per-node" => self.job.request.ntasks_per_node = nonzero(number(key, text, 0)?),
            "cpus-per-task" => self.job.request.cpus_per_task = Some(number(key, text, 1)?),
            "mincpus" => self.job.request.min_cpus_per_node = Some(number(key, text, 1)?),
            "mem" => self.job.request.memory = Some(MemoryRequest::PerNode(memory(key, text)?)),
            "mem-per-cpu" => self.job.request.memory = Some(MemoryRequest::PerCpu(memory(key, text)?)),
            "mem-per-gpu" => self.job.request.memory = Some(MemoryRequest::PerGpu(memory(key, text)?)),
            "tmp" => self.job.request.tmp_disk_mb = memory(key, text)?,
            "gres" => self.set_gres(key, text, GresScope::Node)?,
            "gpus" => self.set_gres(key, text, GresScope::Job)?,
            "gpus-per-node" => self.set_gres(key, text, GresScope::Node)?,
            "gpus-per-socket" => self.set_gres(key, text, GresScope::Socket)?,
            "gpus-per-task" => self.set_gres(key, text, GresScope::Task)?,
            "constraint" => self.set_constraint(text)?,
            "prefer" => {
                let parsed = sluice_model::constraint::parse(text).map_err(|e| {
                    self.refused("Invalid preferred feature specification", Some(e.named("--prefer").to_string()))
                })?;
                self.job.request.prefer = Some(parsed);
            }
            "batch" => {
                let parsed = sluice_model::constraint::parse_plain(text).map_err(|e| {
                    let reason = "Job --batch option is invalid or not a subset of --constraints";
                    self.refused(reason, Some(e.named("--batch").to_string()))
                })?;
                self.job.request.batch = Some(parsed);
            }
            "nodelist" => self.job.request.node_list = self.hosts(key, text)?,
            "exclude" => self.job.request.exclude = self.hosts(key, text)?,
            "nodefile" => self.job.request.node_list = self.node_file(text)?,
            "exclusive" => self.set_exclusive(text, has_value)?,
            "oversubscribe" => self.job.request.oversubscribe = true,
            "overcommit" => self.job.request.overcommit = true,
            "contiguous" => self.job.request.contiguous = true,
            "distribution" => (self.job.request.distribution, self.job.request.pack) = distribution(text)?,
            "spread-job" => self.job.request.spread = true,
            "use-min-nodes" => self.job.request.fewest_nodes = true,
            "gpu-mem" => self.job.request.gpu_memory_mb = memory(key, text)?,
            "switches" => self.job.request.switches = switches(text)?,
            "segment" => self.job.request.segment = nonzero(number(key, text, 0)?),
            "extra-node-info" => self.extra_node_info(text)?,
            "sockets-per-node" => self.job.request.sockets_per_node = nonzero(number(key, text, 0)?),
            "cores-per-socket" => self.job.request.cores_per_socket = nonzero(number(key, text, 0)?),
            "threads-per-core" => self.job.request.threads_per_core = nonzero(number(key, text, 0)?),
            "ntasks-per-socket" => self.job.request.ntasks_per_socket = nonzero(number(key, text, 0)?),
            "ntasks-per-core" => self.job.request.ntasks_per_core = nonzero(number(key, text, 0)?),
            "gres-flags" => self.gres_flags(text)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn nodes(&self, text: &str) -> Result<sluice_model::request::NodeCount, BadValue> {
        if let Some((min, max)) = text.split_once('-')
            && let (Ok(min), Ok(max)) = (min.parse::<u32>(), max.parse::<u32>())
            && max < min
        {
            let line = format!("Maximum node count {max} is less than minimum node count {min}");
            return Err(BadValue::line(255, line));
        }
        if text.parse::<u32>() == Ok(0) {
            return Err(self.refused("Node count specification invalid", Some("--nodes=0: at least 1".to_owned())));
        }
        node_count::parse(text).map_err(|e| {
            let shown: String = text.chars().take(120).collect();
            let line = format!("\"{shown}\" is not a valid node count");
            BadValue { lines: vec![e.named("--nodes").to_string(), line], code: 255 }
        })
    }

    fn set_gres(&mut self, key: &'static str, text: &str, scope: GresScope) -> Result<(), BadValue> {
        let parse = if key == "gres" { gres::parse_gres } else { gres::parse_gpus };
        let list = parse(text, scope).map_err(|e| BadValue {
            lines: vec![e.named(format!("--{key}")).to_string(), BAD_GRES.to_owned()],
            code: 1,
        })?;
        self.gres.insert(key, list);
        Ok(())
    }

    fn set_constraint(&mut self, text: &str) -> Result<(), BadValue> {
        let constraint = sluice_model::constraint::parse(text)
            .map_err(|e| self.refused("Invalid feature specification", Some(e.named("--constraint").to_string())))?;
        self.job.request.constraint = Some(constraint);
        self.job.request.constraint_text = Some(text.to_owned());
        Ok(())
    }

    fn hosts(&self, key: &str, text: &str) -> Result<Vec<NodeName>, BadValue> {
        // A value with a slash names a file (sbatch's manual page, --nodelist).
        if text.contains('/') {
            return self.node_file(text);
        }
        let names = hostlist::expand(text)
            .map_err(|e| self.refused("Invalid node name specified", Some(e.named(format!("--{key}")).to_string())))?;
        Ok(names.iter().map(NodeName::new).collect())
    }

    fn node_file(&self, path: &str) -> Result<Vec<NodeName>, BadValue> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| BadValue::line(1, format!("Could not open the file of nodes {path}: {e}")))?;
        let names = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""))
            .flat_map(str::split_whitespace)
            .collect::<Vec<_>>()
            .join(",");
        let names = hostlist::expand(&names)
            .map_err(|e| self.refused("Invalid node name specified", Some(format!("{path}: {e}"))))?;
        Ok(names.iter().map(NodeName::new).collect())
    }

    /// `sockets[:cores[:threads]]`; `*` for any.
    fn extra_node_info(&mut self, text: &str) -> Result<(), BadValue> {
        let bad = |part: &str| BadValue::line(1, format!("Invalid numeric value \"{part}\" for first arg of -B."));
        let mut parts = [None; 3];
        let words: Vec<&str> = text.split(':').collect();
        if words.len() > parts.len() {
            return Err(bad(text));
        }
        for (part, word) in parts.iter_mut().zip(words) {
            *part = match word {
                "*" => None,
                n => Some(n.parse::<u32>().ok().filter(|n| (1..=65_536).contains(n)).ok_or_else(|| bad(word))?),
            };
        }
        let request = &mut self.job.request;
        [request.sockets_per_node, request.cores_per_socket, request.threads_per_core] = parts;
        Ok(())
    }

    /// Those about tasks that share devices concern steps and are kept for them.
    fn gres_flags(&mut self, text: &str) -> Result<(), BadValue> {
        const FLAGS: &[&str] = &[
            "allow-task-sharing",
            "disable-binding",
            "enforce-binding",
            "multiple-tasks-per-sharing",
            "one-task-per-sharing",
        ];
        let lower = text.to_ascii_lowercase();
        if lower.split(',').any(|f| !FLAGS.contains(&f)) {
            return Err(BadValue::not_allowed("gres-flags", text, &FLAGS.join(", ")));
        }
        let has = |flag: &str| lower.split(',').any(|f| f == flag);
        if has("enforce-binding") && has("disable-binding") {
            let allowed = "one of enforce-binding and disable-binding";
            return Err(BadValue::not_allowed("gres-flags", text, allowed));
        }
        self.job.request.enforce_binding = has("enforce-binding");
        self.job.request.disable_binding = has("disable-binding");
        if lower.split(',').any(|f| !f.ends_with("-binding")) {
            self.job.stored.insert("gres-flags".to_owned(), text.to_owned());
        }
        Ok(())
    }

    fn set_exclusive(&mut self, text: &str, has_value: bool) -> Result<(), BadValue> {
        // For a step in a job, srun's --exclusive is about the job's own CPUs.
        if self.command == Submitter::Srun {
            self.client.step.exclusive = true;
        }
        self.job.request.exclusive = match (has_value, text.to_ascii_lowercase().as_str()) {
            (false, _) | (true, "exclusive" | "node") => Exclusive::Node,
            (true, "user") => Exclusive::User,
            (true, "oversubscribe") => {
                self.job.request.oversubscribe = true;
                Exclusive::No
            }
            _ => return Err(BadValue::not_allowed("exclusive", text, "no value, or user")),
        };
        Ok(())
    }
}

fn nonzero(n: u32) -> Option<u32> {
    (n > 0).then_some(n)
}

/// How tasks go to nodes, and whether few nodes are to be filled.
fn distribution(text: &str) -> Result<(Option<Distribution>, Option<bool>), BadValue> {
    let parsed = sluice_model::sharing::parse_distribution(text);
    let (nodes, rest) = parsed.map_err(|e| BadValue::specification("distribution", e))?;
    if nodes == Some(Distribution::Arbitrary) {
        let allowed = "block, cyclic or plane=n: a host for each task (SLURM_HOSTFILE) comes with a later release";
        return Err(BadValue::not_allowed("distribution", text, allowed));
    }
    let flag = rest.as_deref().and_then(|rest| rest.split_once(','));
    Ok((nodes, flag.map(|(_, flag)| flag.eq_ignore_ascii_case("pack"))))
}

/// `count[@max-time]`; no count, no wish.
fn switches(text: &str) -> Result<Option<SwitchRequest>, BadValue> {
    let (count, wait) = text.split_once('@').map_or((text, None), |(c, w)| (c, Some(w)));
    let count = number("switches", count, 0)?;
    let max_wait_secs = match wait {
        None => None,
        Some(wait) => {
            let limit =
                sluice_model::time::parse_time_limit(wait).map_err(|e| BadValue::specification("switches", e))?;
            limit.duration().map(|d| u32::try_from(d.as_secs()).unwrap_or(u32::MAX)).or(Some(u32::MAX))
        }
    };
    Ok((count > 0).then_some(SwitchRequest { count, max_wait_secs }))
}
