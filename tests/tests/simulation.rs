//! Whole clusters in virtual time, from random seeds. `SLUICE_SEED=N` runs that one again, with its trace.

use sluice_tests::sim::{self, Report, Rng};
use std::time::{SystemTime, UNIX_EPOCH};

/// As many as a debug build runs in a good half of a minute.
const SEEDS: u64 = 24;

fn describe(report: &Report) -> String {
    let tail = report.trace.len().saturating_sub(60);
    format!(
        "seed {}: {}\nto see it again: SLUICE_SEED={} cargo test -p sluice-tests --test simulation\nthe last steps:\n{}",
        report.seed,
        report.violations.join("\n"),
        report.seed,
        report.trace[tail..].join("\n")
    )
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_runs_twice_whatever_fails() {
    let chosen = std::env::var("SLUICE_SEED").ok().map(|s| s.parse::<u64>().expect("SLUICE_SEED is a number"));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    let mut rng = Rng::new(since.as_nanos() as u64);
    let seeds: Vec<u64> = match chosen {
        Some(seed) => vec![seed],
        None => (0..SEEDS).map(|_| rng.below(1 << 48)).collect(),
    };
    println!("seeds: {seeds:?}");
    let reports: Vec<Report> = seeds.iter().map(|seed| sim::run(*seed)).collect();
    for report in &reports {
        assert!(report.violations.is_empty(), "{}", describe(report));
    }
    let sum = |f: fn(&Report) -> u64| reports.iter().map(f).sum::<u64>();
    println!(
        "{} simulations: {} commands, {} submissions, {} scripts, {} controller crashes, {} reboots, {} broken links",
        reports.len(),
        sum(|r| r.commands),
        sum(|r| r.submitted as u64),
        sum(|r| r.scripts as u64),
        sum(|r| u64::from(r.crashes)),
        sum(|r| u64::from(r.reboots)),
        sum(|r| u64::from(r.broken_links)),
    );
    if chosen.is_none() {
        // A simulation in which nothing happens proves nothing.
        assert!(sum(|r| r.scripts as u64) > 5 * SEEDS && sum(|r| u64::from(r.crashes)) > SEEDS, "too little happened");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let (one, other) = (sim::run(7), sim::run(7));
    assert_eq!((one.commands, one.scripts, one.trace), (other.commands, other.scripts, other.trace));
}
