//! The figures.
//!
//! Owns their definitions. wait = end − submit − run (that is start − submit for a job that was never broken off); bounded
//! slowdown = max(1, (wait + run) / max(10 s, run)) (Feitelson et al. 1997); per processor: max(1, (wait + run) /
//! (size × max(10 s, run))); plain means over all jobs that ran, no warm-up cut; utilisation = work / (size of the machine ×
//! (last end − first submission)). Percentile p of n values is the one at floor(p (n − 1)) in ascending order. Work and
//! sizes are in GPUs where the trace asks for GPUs, else in processors.

use crate::replay::{Cost, Replay};
use crate::trace::Trace;
use sluice_model::config::ClusterConfig;
use std::collections::BTreeMap;

/// tau of the bounded slowdown, in seconds.
const TAU: f64 = 10.0;

#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub jobs: u64,
    /// Processors, or GPUs.
    pub machine: u64,
    /// Means, seconds.
    pub wait: f64,
    pub flow: f64,
    pub bounded_slowdown: f64,
    pub per_processor_slowdown: f64,
    pub longest_wait: i64,
    pub wait_p50: i64,
    pub wait_p90: i64,
    pub wait_p99: i64,
    pub slowdown_p50: f64,
    pub slowdown_p90: f64,
    pub slowdown_p99: f64,
    pub utilisation: f64,
    pub makespan: i64,
    pub backfilled: u64,
    pub longest_queue: u64,
    pub restarts: u64,
    pub fairness: Fairness,
    pub cost: Cost,
}

/// How alike users fare, by their mean bounded slowdowns.
#[derive(Clone, Debug, Default)]
pub struct Fairness {
    /// Users, or groups when the trace names no users.
    pub of: &'static str,
    pub count: u64,
    /// Jain's index: (Σx)² / (n Σx²); 1 when all fare the same, 1/n when one has all the delay.
    pub jain: f64,
    /// Mean over users of their mean, each user counting once.
    pub mean: f64,
    /// Standard deviation of the users' means.
    pub deviation: f64,
    pub best: f64,
    pub p90: f64,
    pub worst: f64,
    /// Who has the worst.
    pub worst_name: String,
}

/// What is counted: each job's share of the machine.
fn size(trace: &Trace, on_gpus: bool, at: usize) -> f64 {
    let job = &trace.jobs[at];
    f64::from(if on_gpus { job.gpus } else { job.cpus })
}

fn bounded_slowdown(wait: f64, run: f64) -> f64 {
    ((wait + run) / run.max(TAU)).max(1.0)
}

/// Processors of the machine, or its GPUs.
pub fn machine_size(trace: &Trace, config: &ClusterConfig) -> u64 {
    let gpus = |n: &sluice_model::NodeSpec| n.gres.iter().filter(|g| g.name == "gpu").map(|g| g.count).sum::<u64>();
    if trace.on_gpus() {
        config.nodes.iter().map(gpus).sum()
    } else {
        config.nodes.iter().map(|n| u64::from(n.cpus)).sum()
    }
}

impl Metrics {
    pub fn of(trace: &Trace, config: &ClusterConfig, replay: &Replay) -> Metrics {
        let on_gpus = trace.on_gpus();
        let mut m = Metrics {
            machine: machine_size(trace, config),
            longest_queue: replay.longest_queue as u64,
            restarts: replay.restarts,
            cost: replay.cost,
            ..Metrics::default()
        };
        let by_user = trace.users.len() > 1 || trace.groups.len() <= 1;
        let mut parties: BTreeMap<u32, (f64, u64)> = BTreeMap::new();
        let (mut waits, mut slowdowns) = (Vec::new(), Vec::new());
        let (mut work, mut first, mut last) = (0.0, i64::MAX, i64::MIN);
        for (at, job) in trace.jobs.iter().enumerate() {
            if replay.starts[at].is_none() {
                continue;
            }
            let end = replay.ends[at];
            let wait = end - job.submit - job.run;
            let (run, waited, size) = (job.run as f64, wait as f64, size(trace, on_gpus, at));
            let slowdown = bounded_slowdown(waited, run);
            m.jobs += 1;
            m.wait += waited;
            m.flow += waited + run;
            m.bounded_slowdown += slowdown;
            m.per_processor_slowdown += ((waited + run) / (size.max(1.0) * run.max(TAU))).max(1.0);
            m.backfilled += u64::from(replay.backfilled[at]);
            work += run * size;
            first = first.min(job.submit);
            last = last.max(end);
            waits.push(wait);
            slowdowns.push(slowdown);
            let party = parties.entry(if by_user { job.user } else { job.group }).or_default();
            *party = (party.0 + slowdown, party.1 + 1);
        }
        if m.jobs == 0 {
            return m;
        }
        let n = m.jobs as f64;
        for sum in [&mut m.wait, &mut m.flow, &mut m.bounded_slowdown, &mut m.per_processor_slowdown] {
            *sum /= n;
        }
        waits.sort_unstable();
        slowdowns.sort_unstable_by(f64::total_cmp);
        m.longest_wait = percentile(&waits, 1.0);
        [m.wait_p50, m.wait_p90, m.wait_p99] = [0.5, 0.9, 0.99].map(|p| percentile(&waits, p));
        [m.slowdown_p50, m.slowdown_p90, m.slowdown_p99] = [0.5, 0.9, 0.99].map(|p| percentile(&slowdowns, p));
        m.makespan = last - first;
        m.utilisation = work / (m.machine as f64 * (m.makespan.max(1)) as f64);
        let names = if by_user { &trace.users } else { &trace.groups };
        m.fairness = Fairness::of(if by_user { "users" } else { "groups" }, &parties, names);
        m
    }
}

/// `sorted` has at least one.
fn percentile<T: Copy>(sorted: &[T], p: f64) -> T {
    sorted[(p * (sorted.len() - 1) as f64).floor() as usize]
}

impl Fairness {
    /// From sums and counts of bounded slowdowns.
    fn of(of: &'static str, parties: &BTreeMap<u32, (f64, u64)>, names: &[String]) -> Fairness {
        let mut means: Vec<(f64, u32)> =
            parties.iter().map(|(who, (sum, count))| (sum / *count as f64, *who)).collect();
        means.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let n = means.len() as f64;
        let sum: f64 = means.iter().map(|m| m.0).sum();
        let squares: f64 = means.iter().map(|m| m.0 * m.0).sum();
        let mean = sum / n;
        let worst = means[means.len() - 1];
        Fairness {
            of,
            count: means.len() as u64,
            jain: sum * sum / (n * squares),
            mean,
            deviation: (squares / n - mean * mean).max(0.0).sqrt(),
            best: means[0].0,
            p90: percentile(&means, 0.9).0,
            worst: worst.0,
            worst_name: names.get(worst.1 as usize).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdown_is_bounded_for_short_jobs_and_never_below_one() {
        assert_eq!(bounded_slowdown(0.0, 1.0), 1.0);
        assert_eq!(bounded_slowdown(99.0, 1.0), 10.0);
        assert_eq!(bounded_slowdown(100.0, 100.0), 2.0);
    }

    #[test]
    fn equal_treatment_has_index_one_and_a_single_loser_shows() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let equal = Fairness::of("users", &(0..4).map(|u| (u, (6.0, 2))).collect(), &names);
        assert!((equal.jain - 1.0).abs() < 1e-12 && equal.deviation == 0.0);
        let unequal =
            Fairness::of("users", &(0..4).map(|u| (u, (if u == 2 { 1e9 } else { 1.0 }, 1))).collect(), &names);
        assert!((unequal.jain - 0.25).abs() < 1e-6, "{unequal:?}");
        assert_eq!(unequal.worst_name, "c");
    }
}
