//! Why others go first where the smaller job does: how large this one counts, and how long it has been overtaken.

use super::Why;
use crate::job::Job;
use crate::query::board::Board;
use crate::state::State;
use sluice_model::time::format_elapsed;
use std::time::Duration;

pub(super) fn explain(state: &State, board: &Board, job: &Job, answer: &mut Why) {
    if board.overtaken.is_promoted(job.id) {
        let text =
            "Others have overtaken it for long enough: it now stands before all jobs that were not overtaken so long.";
        answer.because.push(text.to_owned().into());
        return;
    }
    let Some((size, limit)) = board.counted_sizes(state, job).into_iter().next() else { return };
    let length = match limit.duration().map(|d| d.as_secs_f64()) {
        None if size.duration_secs.is_infinite() => "without a time limit".to_owned(),
        Some(secs) if size.duration_secs >= secs.floor() => format!("its time limit of {}", time(secs)),
        known => format!(
            "{}, which its user's last runs make probable{}",
            time(size.duration_secs),
            known.map(|secs| format!(" (limit {})", time(secs))).unwrap_or_default()
        ),
    };
    answer.because.push(
        format!(
            "Smaller jobs go first: it counts as {length} on {:.2} % of the partition, and its account has used {:.2} \
             times its fair share.",
            size.share * 100.0,
            size.used_ratio
        )
        .into(),
    );
    if let Some((credit, enough)) = board.overtaken.credit(job.id).filter(|(_, enough)| *enough > 0.0) {
        let text = format!(
            "Others have overtaken it for {} so far; at {} it goes to the front.",
            time(credit.max(0.0) / 1000.0),
            time(enough / 1000.0)
        );
        answer.because.push(text.into());
    }
}

fn time(secs: f64) -> String {
    format_elapsed(Duration::from_secs_f64(secs.clamp(0.0, 1e10).round()))
}
