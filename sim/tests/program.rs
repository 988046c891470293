//! The program as its users meet it: what it says on good and on bad input, and with which exit status.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// One processor-hour each: submit, run, allocated, requested processors, requested time.
fn swf(jobs: &[(i64, i64, i64, i64)]) -> String {
    let mut text = String::from("; MaxProcs: 4\n; UnixStartTime: 1000000000\n");
    for (at, (submit, run, cpus, requested)) in jobs.iter().enumerate() {
        let n = at + 1;
        writeln!(text, "{n} {submit} -1 {run} {cpus} -1 -1 {cpus} {requested} -1 1 {} 1 -1 -1 -1 -1 -1", n % 2)
            .unwrap();
    }
    text
}

fn sim(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sluice-sim")).args(words).current_dir(dir).env_clear().output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap();
}

#[track_caller]
fn refused(dir: &Path, words: &[&str], code: i32, parts: &[&str]) {
    let output = sim(dir, words);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

const FOUR: &[(i64, i64, i64, i64)] = &[(0, 100, 3, 100), (10, 100, 4, 200), (20, 80, 1, 80), (30, 50, 1, 300)];

#[test]
fn starts_are_written_in_the_files_order() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    // Job 2 waits for the whole machine until 100; job 3 ends by then and passes; job 4 does not.
    for (policy, starts) in [("easy", "1\t0\n2\t100\n3\t20\n4\t200\n"), ("fcfs", "1\t0\n2\t100\n3\t200\n4\t200\n")] {
        let output = sim(dir.path(), &["--trace", "t.swf", "--policy", policy, "--starts", "starts.tsv"]);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(dir.path().join("starts.tsv")).unwrap(), starts, "{policy}");
    }
}

#[test]
fn gzipped_and_plain_traces_give_the_same_figures() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    let file = std::fs::File::create(dir.path().join("t.swf.gz")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    gzip.write_all(swf(FOUR).as_bytes()).unwrap();
    gzip.finish().unwrap();
    let figures = |name: &str| {
        let output = sim(dir.path(), &["--trace", name, "--policy", "easy", "--json"]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["policies"][0]["wait_mean_s"].as_f64().unwrap()
    };
    assert_eq!(figures("t.swf"), figures("t.swf.gz"));
    // 0, 90, 0 and 170 seconds.
    assert_eq!(figures("t.swf"), 65.0);
}

#[test]
fn policies_are_set_side_by_side_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    let output = sim(dir.path(), &["--trace", "t.swf", "--compare", "fcfs,easy,default", "--svg", "p.svg"]);
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    let row = |title: &str| table.lines().find(|l| l.starts_with(title)).unwrap_or_else(|| panic!("{title}: {table}"));
    assert_eq!(row("jobs ").split_whitespace().collect::<Vec<_>>(), ["jobs", "4", "4", "4"]);
    assert!(row("mean wait").contains("110.000") && row("mean wait").contains("65.000"), "{table}");
    let svg = std::fs::read_to_string(dir.path().join("p.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches(">easy</text>").count(), 1);
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn what_is_skipped_is_counted_with_reasons_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = swf(FOUR);
    // Lines 7 to 12.
    text.push_str("5 40 -1 10 1\n");
    text.push_str("6 -40 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n");
    text.push_str("7 40 -1 10 5 -1 -1 5 10 -1 1 1 1 -1 -1 -1 -1 -1\n");
    text.push_str("8 40 -1 0 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n");
    text.push_str("9 forty -1 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n");
    text.push_str("10 40 -1 10 9 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n");
    write(dir.path(), "t.swf", &text);
    let output = sim(dir.path(), &["--trace", "t.swf", "--policy", "easy"]);
    assert!(output.status.success());
    let text = said(&output);
    for line in [
        "1 skipped: fewer than 18 fields (line 7)",
        "1 skipped: negative submit time (line 8)",
        "2 skipped: more processors than the machine's 4 (lines 9, 12)",
        "1 skipped: run time not above zero (line 10)",
        "1 skipped: submit time is not a number (line 11)",
    ] {
        assert!(text.contains(line), "{line:?} is not in: {text}");
    }
    assert!(String::from_utf8_lossy(&output.stdout).contains("4 jobs on 4 processors, 6 skipped"));
    // A larger machine takes them.
    let output = sim(dir.path(), &["--trace", "t.swf", "--policy", "easy", "--procs", "9"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("6 jobs on 9 processors"));
}

#[test]
fn bad_arguments_are_named_with_what_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    write(dir.path(), "t.csv", "submit,duration,colour\n1,2,3\n");
    write(dir.path(), "empty.swf", "; MaxProcs: 4\n");
    write(dir.path(), "short.tsv", "submit\tgpus\n1\t2\n");
    let run = |words: &[&str], code, parts: &[&str]| refused(dir.path(), words, code, parts);
    run(&[], 2, &["--trace"]);
    run(&["--trace", "none.swf"], 1, &["none.swf", "No such file"]);
    run(&["--trace", "t.swf", "--policy", "esay"], 1, &["'esay'", "easy, conservative"]);
    run(&["--trace", "t.swf", "--compare", "easy,foo"], 1, &["'foo'"]);
    run(&["--trace", "t.swf", "--policy", "./none.toml"], 1, &["none.toml"]);
    run(&["--trace", "t.swf", "--estimates", "best"], 2, &["best", "configured, limit, predicted, exact"]);
    run(&["--trace", "t.swf", "--round-limits", "1h,2x"], 2, &["2x", "1h,4h"]);
    run(&["--trace", "t.swf", "--procs", "0"], 2, &["--procs", "0"]);
    run(&["--generate", "jobs=10,colour=1"], 2, &["colour", "allowed"]);
    run(&["--trace", "t.csv"], 1, &["line 1", "'colour'", "submit, duration", "--ignore-columns"]);
    run(&["--trace", "short.tsv"], 1, &["no column 'duration'"]);
    run(&["--trace", "empty.swf"], 1, &["no job in it"]);
    run(&["--trace", "t.swf", "--from", "1000"], 1, &["no job is left"]);
    run(&["--trace", "t.swf", "--cluster", "t.swf"], 1, &["t.swf"]);
}

#[test]
fn a_policy_files_mistakes_have_their_lines_and_a_hopeless_policy_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    write(dir.path(), "bad.toml", "[scheduling]\nbackfil = true\n");
    refused(dir.path(), &["--trace", "t.swf", "--policy", "bad.toml"], 1, &["bad.toml", "backfil"]);
    write(dir.path(), "node.toml", "[[node]]\nname = \"a\"\n");
    refused(dir.path(), &["--trace", "t.swf", "--policy", "node.toml"], 1, &["'node' belongs to the machine"]);
    write(
        dir.path(),
        "short.toml",
        "cluster_name = \"c\"\n[[node]]\nname = \"n1\"\ncpus = 4\nmemory_mb = 100\n[[partition]]\nname = \"p\"\n\
         nodes = \"ALL\"\nmax_time = 1\n[scheduling]\nenforce_partition_limits = true\n",
    );
    refused(
        dir.path(),
        &["--trace", "t.swf", "--cluster", "short.toml"],
        1,
        &["can never run here", "none of the jobs"],
    );
}

const GPUS: &str = "cluster_name = \"gpus\"\n[[node]]\nname = \"n[1-4]\"\ncpus = 16\nmemory_mb = 1000\ngres = [\"gpu:8\"]\n\
    [[partition]]\nname = \"all\"\nnodes = \"ALL\"\n";

#[test]
fn a_gang_takes_as_few_nodes_as_hold_it_and_waits_rather_than_spreads() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "gpus.toml", GPUS);
    // Four jobs of 5 GPUs leave 3 free on each node: 12 in all, but no 8 together.
    write(
        dir.path(),
        "t.tsv",
        "submit_s\tduration_s\tgpus\tvc\n0\t100\t5\ta\n0\t100\t5\ta\n0\t100\t5\ta\n0\t50\t5\ta\n10\t10\t8\tb\n11\t10\t3\tb\n",
    );
    let words = ["--trace", "t.tsv", "--cluster", "gpus.toml", "--policy", "easy", "--starts", "s.tsv"];
    let output = sim(dir.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    // Job numbers are lines. The last one passes: it is gone before the fourth ends.
    assert_eq!(std::fs::read_to_string(dir.path().join("s.tsv")).unwrap(), "2\t0\n3\t0\n4\t0\n5\t0\n6\t50\n7\t11\n");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("6 jobs on 32 GPUs") && table.contains("2 groups"), "{table}");
    assert!(said(&output).contains("no column 'requested'"));
    refused(dir.path(), &["--trace", "t.tsv"], 1, &["GPUs", "--cluster"]);
    // Larger than the cluster.
    write(dir.path(), "big.tsv", "submit,duration,gpus\n0,10,33\n0,10,1\n");
    let output = sim(dir.path(), &["--trace", "big.tsv", "--cluster", "gpus.toml"]);
    assert!(said(&output).contains("1 skipped: can never run here") && said(&output).contains("(line 2)"));
}

#[test]
fn a_made_up_workload_can_be_written_and_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let recipe = "jobs=300,seed=5,procs=32,load=0.9";
    let first = sim(dir.path(), &["--generate", recipe, "--policy", "easy", "--json", "--write-trace", "w.swf"]);
    let second = sim(dir.path(), &["--trace", "w.swf", "--policy", "easy", "--json"]);
    let wait = |output: &Output| {
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["policies"][0]["wait_mean_s"].as_f64().unwrap()
    };
    assert_eq!(wait(&first), wait(&second));
}

#[test]
fn a_window_and_rounded_limits_change_what_is_replayed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    let words = ["--trace", "t.swf", "--policy", "easy", "--from", "10", "--to", "20", "--starts", "s.tsv"];
    let output = sim(dir.path(), &words);
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(dir.path().join("s.tsv")).unwrap(), "2\t10\n3\t110\n");
    // With an hour for all, nobody passes.
    let words = ["--trace", "t.swf", "--policy", "easy", "--round-limits", "1h", "--starts", "s.tsv"];
    assert!(sim(dir.path(), &words).status.success());
    assert_eq!(std::fs::read_to_string(dir.path().join("s.tsv")).unwrap(), "1\t0\n2\t100\n3\t200\n4\t200\n");
}

#[test]
fn changes_are_set_beside_things_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(FOUR));
    let output = sim(dir.path(), &["--trace", "t.swf", "--policy", "easy", "--what-if", "procs+=4", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let wait = |at: usize| value["policies"][at]["wait_mean_s"].as_f64().unwrap();
    assert_eq!(value["policies"][1]["policy"], "easy with procs+=4");
    // Twice as large, the machine takes all but one at once.
    assert!(wait(0) == 65.0 && wait(1) == 17.5, "{value}");
    refused(dir.path(), &["--trace", "t.swf", "--what-if", "nodes+=1"], 1, &["plain processors", "procs+=N"]);
    refused(dir.path(), &["--trace", "t.swf", "--what-if", "colour"], 2, &["colour", "allowed are"]);
}

#[test]
fn a_policy_files_priorities_decide_as_they_do_in_the_controller() {
    let dir = tempfile::tempdir().unwrap();
    // The whole machine for a while, then a wide and a narrow job that both need it free.
    write(dir.path(), "t.swf", &swf(&[(0, 100, 4, 100), (10, 50, 3, 60), (20, 50, 4, 60)]));
    let starts = |policy: &str| {
        let output = sim(dir.path(), &["--trace", "t.swf", "--policy", policy, "--starts", "s.tsv"]);
        assert!(output.status.success(), "{}", said(&output));
        std::fs::read_to_string(dir.path().join("s.tsv")).unwrap()
    };
    write(dir.path(), "fifo.toml", "[priority]\ntype = \"fifo\"\n");
    assert_eq!(starts("fifo.toml"), "1\t0\n2\t100\n3\t150\n");
    write(dir.path(), "large.toml", "[priority]\ntype = \"multifactor\"\nweight_job_size = 1000\n");
    assert_eq!(starts("large.toml"), "1\t0\n2\t150\n3\t100\n");
}

#[test]
fn without_any_configuration_the_smaller_job_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.swf", &swf(&[(0, 100, 4, 100), (10, 50, 4, 60), (20, 50, 3, 60)]));
    for words in [&[][..], &["--policy", "default"]] {
        let output = sim(dir.path(), &[&["--trace", "t.swf", "--starts", "s.tsv"], words].concat());
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(std::fs::read_to_string(dir.path().join("s.tsv")).unwrap(), "1\t0\n2\t150\n3\t100\n");
    }
}
