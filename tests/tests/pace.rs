//! The pace of submissions.

use sluice_tests::cluster::{Cluster, Shape};
use std::collections::BTreeSet;

/// `nobody`, who is no operator.
const NOBODY: u32 = 65_534;

#[test]
fn submissions_that_come_too_fast_wait_their_turn_and_none_is_lost() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: needs root, to submit as another user: an operator is not held back");
        return;
    }
    let mut shape = Shape::default();
    shape.config.push_str("[limits]\nsubmit_rate = 1\nsubmit_burst = 2\n");
    let cluster = Cluster::with(shape);
    let words = ["sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true"];
    // Together: two at once, three that wait in their calls, and one that is told to come again.
    let said: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(|| cluster.run_as(NOBODY, NOBODY, &words))).collect();
        all.into_iter().map(|one| one.join().expect("a submission")).collect()
    });
    assert!(said.iter().all(|s| s.code == 0), "{said:?}");
    let jobs: BTreeSet<&str> = said.iter().map(|s| s.out.trim()).collect();
    assert_eq!(jobs.len(), 6, "{said:?}");
    let told: Vec<&str> = said.iter().map(|s| s.err.as_str()).filter(|err| !err.is_empty()).collect();
    assert_eq!(
        told,
        ["sbatch: error: Too many submissions in a short time: this cluster takes 1 a second from each user \
          (limits.submit_rate); waiting for its turn\n"]
    );
    // Others are not held back by it.
    cluster.submit(&["-o", "/dev/null", "--wrap", "true"]);
}
