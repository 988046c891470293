//! A step as `sacct --json` prints it within its job.

use super::fields::Figure;
use super::json::{cpu, tres_list};
use super::steps;
use super::usage::{self, Way};
use super::values::{Context, Span};
use crate::render::json::{exit, infinite, number, number_or_unset, seconds, unset};
use crate::view::{job as facts, tres};
use serde_json::{Value, json};
use sluice_model::{StepId, hostlist};
use sluice_proto::v1;

pub fn step(job: &v1::JobRecord, step: &v1::StepRecord, context: &Context<'_>) -> Value {
    let Span { start, end, elapsed_ms } = context.step_span(step);
    let used = step.usage.unwrap_or_default();
    // As recorded: the script's step has frequencies of 0 where the others have none.
    let script = steps::id(step) == StepId::Batch;
    let frequency = || if script { number(0) } else { unset() };
    json!({
        "time": {
            "elapsed": elapsed_ms / 1000,
            "end": number_or_unset(end.map(|e| seconds(Some(e)))),
            "start": number_or_unset(start.map(|s| seconds(Some(s)))),
            "suspended": 0,
            "system": cpu(used.system_cpu_us),
            "limit": infinite(),
            "total": cpu(used.user_cpu_us.saturating_add(used.system_cpu_us)),
            "user": cpu(used.user_cpu_us),
        },
        "exit_code": exit(step.exit.as_ref()),
        "nodes": {
            "count": step.nodes.len(),
            "range": hostlist::fold(&step.nodes),
            "list": step.nodes,
        },
        "tasks": {"count": step.tasks},
        "CPU": {
            "requested_frequency": {"min": frequency(), "max": frequency()},
            "governor": if script { "0" } else { "Unknown" },
        },
        "kill_request_user": "",
        "state": [step.state],
        "statistics": {
            "CPU": {"actual_frequency": 0},
            "energy": {"consumed": number(0)},
        },
        "step": {
            "id": facts::step_id(job, step),
            "name": facts::text(&step.name),
            "stderr": "",
            "stdin": "",
            "stdout": "",
            "stderr_expanded": "",
            "stdin_expanded": "",
            "stdout_expanded": "",
        },
        "submit_line": facts::text(&step.submit_line),
        "task": {"distribution": steps::layout(step)},
        "tres": {
            "requested": figures(step, Way::In),
            "consumed": figures(step, Way::Out),
            "allocated": tres_list(&tres::step(step)),
        },
    })
}

fn figures(step: &v1::StepRecord, way: Way) -> Value {
    json!({
        "max": extremes(step, way, Figure::Maximum),
        "min": extremes(step, way, Figure::Minimum),
        "average": amounts(step, way, Figure::Average),
        "total": amounts(step, way, Figure::Total),
    })
}

/// Slurm's number, type and name of what `usage` calls by one name.
fn entry(name: &str, amount: u64) -> (u32, &str, &str, u64) {
    match name {
        "cpu" => (1, "cpu", "", amount / 1000),
        "mem" => (2, "mem", "", amount),
        "energy" => (3, "energy", "", amount),
        "fs/disk" => (6, "fs", "disk", amount),
        "vmem" => (7, "vmem", "", amount),
        _ => (8, "pages", "", amount),
    }
}

fn sorted(step: &v1::StepRecord, way: Way, figure: Figure) -> Vec<(u32, &'static str, &'static str, u64)> {
    let mut entries: Vec<_> = usage::amounts(step, way, figure).into_iter().map(|(n, a)| entry(n, a)).collect();
    entries.sort_unstable();
    entries
}

fn amounts(step: &v1::StepRecord, way: Way, figure: Figure) -> Vec<Value> {
    let one = |(id, kind, name, count)| json!({"type": kind, "name": name, "id": id, "count": count});
    sorted(step, way, figure).into_iter().map(one).collect()
}

/// With the node and the task of each; task -1 where that is not known.
fn extremes(step: &v1::StepRecord, way: Way, figure: Figure) -> Vec<Value> {
    let (node_of, task_of) = match figure {
        Figure::Minimum => (Figure::MinNode, Figure::MinTask),
        _ => (Figure::MaxNode, Figure::MaxTask),
    };
    let mut entries: Vec<_> = usage::amounts(step, way, figure)
        .into_iter()
        .map(|(name, amount)| {
            let node = usage::place_of(step, way, name, node_of).unwrap_or_default();
            let task = usage::place_of(step, way, name, task_of).and_then(|t| t.parse::<i64>().ok());
            // Energy is nobody's.
            let task = task.unwrap_or(if name == "energy" && step.tasks <= 1 { 0 } else { -1 });
            (entry(name, amount), task, node)
        })
        .collect();
    entries.sort_unstable();
    let one = |((id, kind, name, count), task, node)| json!({"type": kind, "name": name, "id": id, "count": count, "task": task, "node": node});
    entries.into_iter().map(one).collect()
}
