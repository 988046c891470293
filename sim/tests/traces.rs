//! Real logs, where they lie beside the project (`SLUICE_TRACES` names their folder): every start time and every mean of an
//! independent reference. The data have terms of use and are no part of the project.

use sluice_sim::cluster::Machine;
use sluice_sim::metrics::Metrics;
use sluice_sim::policy::Policy;
use sluice_sim::replay::{Estimates, Replay, replay};
use sluice_sim::trace::{self, Trace};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

const KTH: &str = "KTH-SP2-1996-2.swf.gz";
const HPC2N: &str = "HPC2N-2002-2.1-cln.swf.gz";

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SLUICE_TRACES").map(PathBuf::from).filter(|f| f.join("expected.tsv").is_file());
    if folder.is_none() {
        println!("skipped: SLUICE_TRACES names no folder with the logs and expected.tsv");
    }
    folder
}

fn simulate(log: &str, policy: &str, estimates: Estimates) -> Option<(Trace, Replay, Metrics)> {
    let mut trace = trace::read(&folder()?.join(log), &[]).expect("a log");
    let procs = trace.max_procs.expect("MaxProcs");
    trace.fit_processors(procs);
    let policy = Policy::load(policy).expect("a policy");
    let config = Machine::of_processors(procs).and_then(|m| m.under(&policy, None)).expect("a machine");
    let replay = replay(&trace, config.clone(), &policy, estimates).expect("a replay");
    let metrics = Metrics::of(&trace, &config, &replay);
    Some((trace, replay, metrics))
}

/// Compares with the row of expected.tsv.
fn agrees(log: &str, policy: &str, backfill: &str, estimates: Estimates) {
    let Some((_, _, m)) = simulate(log, policy, estimates) else { return };
    let text = std::fs::read_to_string(folder().unwrap().join("expected.tsv")).unwrap();
    let mut lines = text.lines().map(|l| l.split('\t').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let estimate = if estimates == Estimates::Exact { "exact" } else { "est" };
    let row: BTreeMap<&str, &str> = lines
        .map(|l| titles.iter().copied().zip(l).collect::<BTreeMap<_, _>>())
        .find(|r| {
            r["trace_file"] == log && r["order"] == "fcfs" && r["backfill"] == backfill && r["estimate"] == estimate
        })
        .expect("a row");
    let decimal = |key: &str, have: f64| {
        let want: f64 = row[key].parse().unwrap();
        assert!((have - want).abs() < 0.0005, "{key}: {have} instead of {want}");
    };
    decimal("wait", m.wait);
    decimal("flow", m.flow);
    decimal("bsld", m.bounded_slowdown);
    decimal("pbsld", m.per_processor_slowdown);
    decimal("util", m.utilisation);
    let whole = |key: &str, have: i64| assert_eq!(have, row[key].parse::<i64>().unwrap(), "{key}");
    whole("jobs", m.jobs as i64);
    whole("P", m.machine as i64);
    whole("maxwait", m.longest_wait);
    whole("p50", m.wait_p50);
    whole("p90", m.wait_p90);
    whole("p99", m.wait_p99);
    whole("makespan", m.makespan);
    whole("backfilled", m.backfilled as i64);
    whole("maxq", m.longest_queue as i64);
}

#[test]
fn easy_gives_the_start_time_of_every_job_of_the_kth_log() {
    let Some((trace, replay, _)) = simulate(KTH, "easy", Estimates::Limit) else { return };
    let file = std::fs::File::open(folder().unwrap().join("KTH-SP2-easy-starts.tsv.gz")).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let expected: BTreeMap<u64, i64> = text
        .lines()
        .filter_map(|l| l.split_once('\t'))
        .map(|(job, start)| (job.parse().unwrap(), start.parse().unwrap()))
        .collect();
    let ours: BTreeMap<u64, i64> =
        trace.jobs.iter().zip(&replay.starts).filter_map(|(j, s)| Some((j.number, (*s)?))).collect();
    assert_eq!(ours.len(), expected.len());
    let wrong: Vec<_> = expected.iter().filter(|(job, start)| ours.get(job) != Some(start)).take(5).collect();
    assert!(wrong.is_empty(), "other start times than expected: {wrong:?}");
}

#[test]
fn the_kth_log_has_the_expected_figures_under_easy() {
    agrees(KTH, "easy", "easy", Estimates::Limit);
}

#[test]
fn the_kth_log_has_the_expected_figures_under_easy_with_exact_estimates() {
    agrees(KTH, "easy", "easy", Estimates::Exact);
}

#[test]
fn the_kth_log_has_the_expected_figures_without_backfill() {
    agrees(KTH, "fcfs", "none", Estimates::Limit);
}

#[test]
fn the_kth_log_has_the_expected_figures_under_conservative_backfill() {
    agrees(KTH, "conservative", "cons", Estimates::Limit);
}

#[test]
fn the_hpc2n_log_has_the_expected_figures_under_easy() {
    agrees(HPC2N, "easy", "easy", Estimates::Limit);
}

#[test]
fn the_hpc2n_log_has_the_expected_figures_under_easy_with_exact_estimates() {
    agrees(HPC2N, "easy", "easy", Estimates::Exact);
}

#[test]
fn the_hpc2n_log_has_the_expected_figures_without_backfill() {
    agrees(HPC2N, "fcfs", "none", Estimates::Limit);
}
