//! Who had to go for whom.

use super::{Sentence, Why, list_jobs};
use crate::job::{Job, Outcome, Phase, Run};
use crate::query::preemption::lost;
use crate::state::State;
use sluice_model::config::Mode;
use sluice_model::{JobId, JobState};
use sluice_sched::Plan;

/// A waiting job for which others have to go.
pub(super) fn waiting(state: &State, job: &Job, plan: &Plan, answer: &mut Why) {
    if let Some(claim) = &job.claim {
        let there = |id: &&JobId| state.index.active.contains(*id);
        let left: Vec<JobId> = claim.victims.iter().filter(there).copied().collect();
        let nodes: Vec<&str> = claim.nodes.iter().map(|n| n.as_str()).collect();
        let nodes = sluice_model::hostlist::fold(&nodes);
        let text = match left.len() {
            0 => format!("Room was made for it on {nodes}: it starts with the next scheduling pass."),
            _ => format!(
                "It waits for {} to be gone, preempted for it at {{time}}: it starts on {nodes} then, before all others.",
                jobs(&left)
            ),
        };
        answer.because.push(Sentence { text, time: Some(claim.at) });
    } else if let Some(planned) = plan.preemptions.iter().find(|p| p.job == job.id) {
        let victims: Vec<JobId> = planned.victims.iter().map(|v| v.0).collect();
        let cost = planned.cost / 1000;
        let text = format!(
            "The next scheduling pass makes room for it: {} will be preempted, the cheapest that suffices ({cost} \
             CPU-seconds of work lost).",
            jobs(&victims)
        );
        answer.because.push(text.into());
    }
}

/// `job 5`, `jobs 5 and 6`
fn jobs(ids: &[JobId]) -> String {
    format!("job{} {}", if ids.len() == 1 { "" } else { "s" }, list_jobs(ids))
}

/// A running job that has to make room, and what earlier runs lost.
pub(super) fn now(state: &State, job: &Job, answer: &mut Why) {
    if let Phase::Running(run) = &job.phase {
        running(state, job, run, answer);
    }
    before(job, answer);
}

fn running(state: &State, job: &Job, run: &Run, answer: &mut Why) {
    let Some(preempted) = &run.preempted else { return };
    let by = preempted.by;
    let who = state.jobs.get(&by).map_or_else(String::new, |other| format!(" of {}", other.spec.user));
    match preempted.ends {
        None if run.lends => {
            let text = format!(
                "It stands still so that job {by}{who} can have its cores, and goes on when nobody uses them. Its time limit \
                 waits meanwhile."
            );
            answer.because.push(text.into());
        }
        None => {}
        Some(ends) => {
            let then = if preempted.mode == Mode::Requeue { "goes back to the queue" } else { "is ended" };
            let text = if run.ending.is_some() {
                format!("Job {by}{who} takes its room: it {then}.")
            } else {
                format!("Job {by}{who} takes its room: it was told, and {then} at {{time}}, unless it ends before.")
            };
            answer.because.push(Sentence { text, time: Some(ends) });
        }
    }
    let _ = job;
}

/// What it lost to others so far.
pub(super) fn before(job: &Job, answer: &mut Why) {
    let past = job.past_runs.iter().filter_map(|p| Some((p.run.as_deref()?, &p.outcome, p.ended)));
    let this = job.run().zip(job.outcome()).zip(job.ended()).map(|((run, outcome), ended)| (run, outcome, ended));
    let preempted = |o: &Outcome| o.state == JobState::Preempted;
    let runs: Vec<_> = past.chain(this).filter(|(_, outcome, _)| preempted(outcome)).collect();
    let Some((last, _, ended)) = runs.last() else { return };
    let (cpu_secs, gpu_secs) = runs.iter().fold((0, 0), |sum, (run, _, ended)| {
        let lost = lost(run, *ended);
        (sum.0 + lost.0, sum.1 + lost.1)
    });
    let count = match runs.len() {
        1 => "once".to_owned(),
        n => format!("{n} times, the last time"),
    };
    let by = last.preempted.as_ref().map_or_else(String::new, |p| format!(", by job {}", p.by));
    let gpus = if gpu_secs > 0 { format!(" and {gpu_secs} GPU-seconds") } else { String::new() };
    let text = format!("It was preempted {count}{by} at {{time}}; {cpu_secs} CPU-seconds{gpus} of work were lost.");
    answer.because.push(Sentence { text, time: Some(*ended) });
}
