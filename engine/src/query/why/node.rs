//! Why a node, or part of it, stands idle while jobs wait.

use super::resources::name_of;
use crate::query::board::Board;
use crate::query::{available, free, scheduler_input_with};
use crate::state::State;
use sluice_model::memory::format_memory_mb;
use sluice_model::{JobId, NodeName, Time};
use sluice_sched::explain::{Obstacle, node_obstacle, survey};
use sluice_sched::{Input, PendingJob, Plan};
use std::collections::BTreeMap;

/// Jobs that wait and do not use the node for the same cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeWaiter {
    pub cause: String,
    pub count: u64,
    /// The first few, in the queue's order.
    pub jobs: Vec<JobId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeWhy {
    pub node: NodeName,
    /// The node's own condition: drained by whom, down why, free for work.
    pub condition: Vec<super::Sentence>,
    pub free_cpus: u64,
    pub cpus: u64,
    /// MiB.
    pub free_memory_mb: u64,
    pub memory_mb: u64,
    /// (name, free, all)
    pub gres: Vec<(String, u64, u64)>,
    /// The jobs on it.
    pub running: Vec<JobId>,
    pub waiting: u64,
    pub causes: Vec<NodeWaiter>,
}

/// None when there is no such node.
pub fn why_node(state: &State, now: Time, board: &Board, name: &NodeName) -> Option<NodeWhy> {
    let node = state.nodes.get(name)?;
    let left = free(state, name)?;
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for g in &node.spec.gres {
        *totals.entry(&g.name).or_default() += g.count;
    }
    let mut answer = NodeWhy {
        node: name.clone(),
        condition: condition(state, name),
        free_cpus: left.cpus.len(),
        cpus: u64::from(node.spec.cpus),
        free_memory_mb: left.memory_mb,
        memory_mb: node.spec.memory_mb,
        gres: totals
            .into_iter()
            .map(|(name, all)| (name.to_owned(), left.gres.get(name).map_or(0, |set| set.len()), all))
            .collect(),
        running: node.jobs.iter().copied().collect(),
        waiting: 0,
        causes: Vec::new(),
    };
    let input = scheduler_input_with(state, now, board);
    let Some(at) = input.nodes.iter().position(|n| n.spec.name == *name) else { return Some(answer) };
    let plan = sluice_sched::plan(&input);
    let mut order: Vec<String> = Vec::new();
    let mut causes: BTreeMap<String, NodeWaiter> = BTreeMap::new();
    for job in &input.pending {
        let cause = cause(&input, &plan, job, at as u32, name);
        answer.waiting += 1;
        let entry = causes.entry(cause.clone()).or_insert_with(|| {
            order.push(cause.clone());
            NodeWaiter { cause, count: 0, jobs: Vec::new() }
        });
        entry.count += 1;
        if entry.jobs.len() < super::SHOWN {
            entry.jobs.push(job.job);
        }
    }
    answer.causes = order.iter().filter_map(|cause| causes.remove(cause)).collect();
    answer.causes.sort_by_key(|c| std::cmp::Reverse(c.count));
    Some(answer)
}

fn condition(state: &State, name: &NodeName) -> Vec<super::Sentence> {
    let Some(node) = state.nodes.get(name) else { return Vec::new() };
    let f = node.flags;
    let mut said: Vec<super::Sentence> = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned().into());
    if f.unknown {
        say("It has never registered: its node daemon was not seen since the controller knows it.");
    }
    if f.not_responding {
        say("It does not respond.");
    }
    if f.down {
        say("It is down.");
    }
    if f.drain {
        say("It is drained: it takes no new jobs.");
    }
    if f.fail {
        say("It is marked as failing: it takes no new jobs.");
    }
    if !node.stale.is_empty() {
        say("It still holds runs that are over; it gets no work until they are gone.");
    }
    if let Some(reason) = &node.reason {
        let text = format!("Reason: {} (uid {}, {{time}}).", reason.text, reason.uid);
        said.push(super::Sentence { text, time: Some(reason.at) });
    }
    if available(state, name) {
        said.insert(0, "It is in service.".to_owned().into());
    }
    let partitions = state.partitions.values().filter(|p| p.nodes.contains(name)).count();
    if partitions == 0 {
        said.push("It is in no partition: no job can ask for it.".to_owned().into());
    }
    said
}

/// Why this job does not start here now.
fn cause(input: &Input, plan: &Plan, job: &PendingJob, node: u32, name: &NodeName) -> String {
    if let Some(start) = plan.starts.iter().find(|s| s.job == job.job) {
        let here = start.allocation.on(name).is_some();
        return if here { "start here in the next pass" } else { "start elsewhere in the next pass" }.to_owned();
    }
    if let Some(planned) = plan.reservations.iter().find(|r| r.job == job.job)
        && planned.nodes.contains(name)
    {
        return "have it planned for later, and what is free of it is kept for them".to_owned();
    }
    let mut best: Option<Obstacle> = None;
    for partition in &job.partitions {
        match node_obstacle(input, job, *partition, node) {
            None => return fits_here(input, plan, job, *partition, name),
            // What will pass says more than what never will, that more than another partition.
            Some(new) => {
                let rank = |o: &Obstacle| if o.passes() { 0 } else { 1 + u8::from(*o == Obstacle::NotInPartition) };
                if best.as_ref().is_none_or(|old| rank(&new) < rank(old)) {
                    best = Some(new);
                }
            }
        }
    }
    match best {
        None | Some(Obstacle::NotInPartition) => "want a partition that it is not in".to_owned(),
        Some(Obstacle::Excluded) => "exclude it (--exclude)".to_owned(),
        Some(Obstacle::Features { wanted }) => format!("want features that it lacks ({wanted})"),
        Some(Obstacle::TooSmall { what, needs, has }) => {
            let amount = |n| if name_of(&what) == "memory" { format_memory_mb(n) } else { n.to_string() };
            format!("need more {} than it has ({} of {})", name_of(&what), amount(needs), amount(has))
        }
        Some(Obstacle::Unavailable) => "could run here, but it takes no jobs now".to_owned(),
        Some(Obstacle::HeldWhole { by }) => format!("wait for job {by}, which has the node to itself"),
        Some(Obstacle::InUse { .. }) => "want whole nodes, and it is in use".to_owned(),
        Some(Obstacle::Busy { what, .. }) => format!("need more {} than is free here", name_of(&what)),
    }
}

/// A share of the job would fit here.
fn fits_here(input: &Input, plan: &Plan, job: &PendingJob, partition: u32, name: &NodeName) -> String {
    let planned = plan.reservations.iter().find(|r| r.job != job.job && r.nodes.contains(name));
    if let Some(found) = survey(input, job, partition)
        && (found.free_nodes.len() < found.nodes_needed as usize
            || found.tasks_needed.is_some_and(|t| found.free_tasks < u64::from(t)))
    {
        return format!("need {} nodes at once, and not enough others are free", found.nodes_needed.max(2));
    }
    if !job.resources().node_list.is_empty() && !job.resources().node_list.contains(name) {
        return "ask for other nodes by name (--nodelist)".to_owned();
    }
    match planned {
        Some(r) => format!("would delay job {}, for which it is kept", r.job),
        None => "wait for their turn, or for licences".to_owned(),
    }
}
