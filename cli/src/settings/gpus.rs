//! GPU options that are given together.
//!
//! `--gres=gpu:…`, `--gpus`, `--gpus-per-node` and `--gpus-per-task` describe the same devices from several sides; they
//! do not add up. Of those that say the same, the most particular one is kept, and what follows from them about nodes and
//! tasks is filled in (sbatch's manual page, --gpus-per-task: the number of tasks may come from --gpus).

use super::{BadValue, Settings};
use sluice_model::request::{GresRequest, NodeCount};

const BAD_GRES: &str = "Invalid generic resource (gres) specification";

impl Settings {
    /// The GRES of all options, each device named once.
    pub(super) fn joined_gres(&mut self) -> Result<Vec<GresRequest>, BadValue> {
        let total = |list: Option<&Vec<GresRequest>>| list.map(|l| l.iter().map(|g| g.count).sum::<u64>());
        let job = total(self.gres.get("gpus")).filter(|n| *n > 0);
        let per_node = total(self.gres.get("gpus-per-node")).filter(|n| *n > 0);
        let per_task = total(self.gres.get("gpus-per-task")).filter(|n| *n > 0);
        let named =
            ["gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task"].iter().any(|k| self.gres.contains_key(k));
        if let Some(list) = self.gres.get_mut("gres").filter(|_| named) {
            list.retain(|g| g.name != "gpu");
        }
        if let (Some(job), Some(per_node)) = (job, per_node) {
            let nodes = quotient("--gpus", job, "--gpus-per-node", per_node)?;
            match self.job.request.nodes {
                None => self.job.request.nodes = Some(NodeCount { min: nodes, max: Some(nodes) }),
                Some(asked) if asked.min <= nodes && asked.max.is_none_or(|max| nodes <= max) => {}
                Some(_) => {
                    return Err(contradiction(format!(
                        "--gpus={job} and --gpus-per-node={per_node} need {nodes} nodes"
                    )));
                }
            }
            self.gres.remove("gpus");
        }
        if let (Some(job), Some(per_task)) = (job, per_task) {
            let tasks = quotient("--gpus", job, "--gpus-per-task", per_task)?;
            if *self.job.request.ntasks.get_or_insert(tasks) != tasks {
                return Err(contradiction(format!("--gpus={job} and --gpus-per-task={per_task} mean {tasks} tasks")));
            }
            self.gres.remove("gpus");
        }
        if let (Some(per_node), Some(per_task)) = (per_node, per_task) {
            let tasks = quotient("--gpus-per-node", per_node, "--gpus-per-task", per_task)?;
            self.job.request.ntasks_per_node.get_or_insert(tasks);
            self.gres.remove("gpus-per-node");
        }
        Ok(self.gres.values().flatten().cloned().collect())
    }
}

fn quotient(of: &str, total: u64, by: &str, each: u64) -> Result<u32, BadValue> {
    match u32::try_from(total / each) {
        Ok(n) if total.is_multiple_of(each) => Ok(n),
        _ => Err(contradiction(format!("{of}={total} is no multiple of {by}={each}"))),
    }
}

fn contradiction(detail: String) -> BadValue {
    BadValue { lines: vec![detail, BAD_GRES.to_owned()], code: 1 }
}

#[cfg(test)]
mod tests {
    use crate::getopt::{self, Operands};
    use crate::options::Submitter;
    use crate::settings::{BadValue, Settings};
    use sluice_model::Time;
    use std::ffi::OsString;

    fn settle(words: &str) -> Result<Settings, BadValue> {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let parsed = getopt::parse(Submitter::Sbatch.options(), &words, Operands::EndOptions).expect("parses");
        let mut settings = Settings::new(Submitter::Sbatch, Time(0), Some(jiff::tz::TimeZone::UTC));
        settings.apply(&parsed.options)?;
        settings.finish()?;
        Ok(settings)
    }

    fn gres(words: &str) -> Vec<(String, u64)> {
        let settings = settle(words).expect("is fine");
        settings.job.request.gres.iter().map(|g| (format!("{:?}", g.scope), g.count)).collect()
    }

    #[test]
    fn the_same_devices_are_counted_once() {
        assert_eq!(gres("--gres=gpu:1 --gpus-per-node=1"), [("Node".to_owned(), 1)]);
        assert_eq!(gres("--gpus=4 --gpus-per-node=2"), [("Node".to_owned(), 2)]);
        assert_eq!(gres("--gpus=4 --gpus-per-task=2"), [("Task".to_owned(), 2)]);
        assert_eq!(gres("--gres=gpu:2,shard:1 --gpus=2").len(), 2);
        assert_eq!(gres("--gres=gpu:2"), [("Node".to_owned(), 2)]);
    }

    #[test]
    fn nodes_and_tasks_follow_from_the_numbers() {
        let settings = settle("--gpus=4 --gpus-per-node=2").unwrap();
        assert_eq!(settings.job.request.nodes.map(|n| (n.min, n.max)), Some((2, Some(2))));
        assert_eq!(settle("--gpus=4 --gpus-per-task=2").unwrap().job.request.ntasks, Some(2));
        assert_eq!(settle("--gpus-per-node=4 --gpus-per-task=2").unwrap().job.request.ntasks_per_node, Some(2));
    }

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        for words in ["--gpus=3 --gpus-per-node=2", "--gpus=4 --gpus-per-node=2 -N3", "--gpus=4 --gpus-per-task=2 -n5"]
        {
            let bad = settle(words).expect_err(words);
            assert_eq!(bad.lines.last().map(String::as_str), Some("Invalid generic resource (gres) specification"));
        }
    }
}
