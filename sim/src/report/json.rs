//! The figures for programs. Fields are only added.

use super::Entry;
use crate::metrics::Metrics;
use crate::replay::Estimates;
use crate::trace::Trace;
use serde_json::{Value, json};

pub fn json(trace: &Trace, estimates: Estimates, entries: &[Entry]) -> String {
    let skipped: Vec<Value> = trace
        .skipped
        .causes()
        .map(|(cause, count, lines)| json!({"cause": cause.to_string(), "count": count, "first_lines": lines}))
        .collect();
    let value = json!({
        "trace": {
            "name": trace.name,
            "jobs": trace.jobs.len(),
            "skipped": skipped,
            "unit": if trace.on_gpus() { "gpus" } else { "processors" },
        },
        "machine": entries.first().map_or(0, |e| e.metrics.machine),
        "estimates": estimates.name(),
        "policies": entries.iter().map(policy).collect::<Vec<_>>(),
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn policy(entry: &Entry) -> Value {
    let m: &Metrics = &entry.metrics;
    let refused: Vec<Value> = entry
        .replay
        .refused
        .causes()
        .map(|(cause, count, lines)| json!({"cause": cause.to_string(), "count": count, "first_lines": lines}))
        .collect();
    json!({
        "policy": entry.policy,
        "jobs": m.jobs,
        "refused": refused,
        "wait_mean_s": m.wait,
        "response_mean_s": m.flow,
        "bounded_slowdown_mean": m.bounded_slowdown,
        "per_processor_bounded_slowdown_mean": m.per_processor_slowdown,
        "wait_longest_s": m.longest_wait,
        "wait_p50_s": m.wait_p50,
        "wait_p90_s": m.wait_p90,
        "wait_p99_s": m.wait_p99,
        "bounded_slowdown_p50": m.slowdown_p50,
        "bounded_slowdown_p90": m.slowdown_p90,
        "bounded_slowdown_p99": m.slowdown_p99,
        "utilisation": m.utilisation,
        "makespan_s": m.makespan,
        "backfilled": m.backfilled,
        "backfilled_share": m.backfilled as f64 / (m.jobs.max(1)) as f64,
        "longest_queue": m.longest_queue,
        "restarts": m.restarts,
        "fairness": {
            "of": m.fairness.of,
            "count": m.fairness.count,
            "jain": m.fairness.jain,
            "mean": m.fairness.mean,
            "deviation": m.fairness.deviation,
            "best": m.fairness.best,
            "p90": m.fairness.p90,
            "worst": m.fairness.worst,
            "worst_name": m.fairness.worst_name,
        },
        "planning": {
            "passes": m.cost.passes,
            "seconds": m.cost.planning.as_secs_f64(),
            "slowest_pass_s": m.cost.slowest_pass.as_secs_f64(),
            "attempts": m.cost.work,
            "engine_commands": m.cost.commands,
            "engine_seconds": m.cost.engine.as_secs_f64(),
            "replay_seconds": m.cost.wall.as_secs_f64(),
        },
    })
}
