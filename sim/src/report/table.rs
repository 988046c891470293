//! A row for each figure, a column for each policy.

use super::Entry;
use crate::metrics::Metrics;
use crate::replay::Estimates;
use crate::trace::Trace;
use std::fmt::Write;

type Figure = (&'static str, fn(&Metrics) -> String);

const FIGURES: [Figure; 30] = [
    ("jobs", |m| m.jobs.to_string()),
    ("mean wait, s", |m| format!("{:.3}", m.wait)),
    ("mean response, s", |m| format!("{:.3}", m.flow)),
    ("mean bounded slowdown", |m| format!("{:.6}", m.bounded_slowdown)),
    ("  per processor", |m| format!("{:.6}", m.per_processor_slowdown)),
    ("longest wait, s", |m| m.longest_wait.to_string()),
    ("wait p50, s", |m| m.wait_p50.to_string()),
    ("wait p90, s", |m| m.wait_p90.to_string()),
    ("wait p99, s", |m| m.wait_p99.to_string()),
    ("slowdown p50", |m| format!("{:.3}", m.slowdown_p50)),
    ("slowdown p90", |m| format!("{:.3}", m.slowdown_p90)),
    ("slowdown p99", |m| format!("{:.3}", m.slowdown_p99)),
    ("utilisation", |m| format!("{:.6}", m.utilisation)),
    ("makespan, s", |m| m.makespan.to_string()),
    ("backfilled jobs", |m| m.backfilled.to_string()),
    ("backfilled share", |m| format!("{:.3}", m.backfilled as f64 / (m.jobs.max(1)) as f64)),
    ("longest queue", |m| m.longest_queue.to_string()),
    ("runs begun again", |m| m.restarts.to_string()),
    ("fairness: parties", |m| format!("{} {}", m.fairness.count, m.fairness.of)),
    ("  Jain's index", |m| format!("{:.4}", m.fairness.jain)),
    ("  mean of slowdowns", |m| format!("{:.3}", m.fairness.mean)),
    ("  their deviation", |m| format!("{:.3}", m.fairness.deviation)),
    ("  best", |m| format!("{:.3}", m.fairness.best)),
    ("  p90", |m| format!("{:.3}", m.fairness.p90)),
    ("  worst", |m| format!("{:.3}", m.fairness.worst)),
    ("planning: passes", |m| m.cost.passes.to_string()),
    ("  mean, µs", |m| format!("{:.1}", m.cost.planning.as_secs_f64() * 1e6 / (m.cost.passes.max(1)) as f64)),
    ("  slowest, ms", |m| format!("{:.2}", m.cost.slowest_pass.as_secs_f64() * 1e3)),
    ("  in all, s", |m| format!("{:.2}", m.cost.planning.as_secs_f64())),
    ("replay, s", |m| format!("{:.2}", m.cost.wall.as_secs_f64())),
];

pub fn table(trace: &Trace, estimates: Estimates, entries: &[Entry]) -> String {
    let unit = if trace.on_gpus() { "GPUs" } else { "processors" };
    let machine = entries.first().map_or(0, |e| e.metrics.machine);
    let mut text = format!("{}: {} jobs on {machine} {unit}", trace.name, trace.jobs.len());
    if trace.skipped.total() > 0 {
        // Writing to a String can't fail.
        let _ = write!(text, ", {} skipped", trace.skipped.total());
    }
    let _ = writeln!(text, "; estimates: {}", estimates.name());
    let columns: Vec<Vec<String>> = entries
        .iter()
        .map(|e| {
            let figures = FIGURES.iter().map(|(_, figure)| figure(&e.metrics));
            std::iter::once(e.policy.clone()).chain(figures).collect()
        })
        .collect();
    let titles = std::iter::once("").chain(FIGURES.iter().map(|(title, _)| *title));
    for (row, title) in titles.enumerate() {
        let _ = write!(text, "{title:24}");
        for column in &columns {
            let width = column.iter().map(|c| c.chars().count()).max().unwrap_or(0);
            let _ = write!(text, "  {:>width$}", column[row]);
        }
        text.push('\n');
    }
    text
}
