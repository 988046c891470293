//! The recorded cluster's jobs through settings, selection and printing, against the recorded outputs.

use super::{OPTIONS, fetch, select, settings, values::Context};
use crate::getopt::{self, Operands};
use crate::view::fixture::{self, NOW};
use crate::view::recorded;
use sluice_proto::v1;
use std::ffi::OsString;

fn read(words: &str) -> settings::Settings {
    let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
    let parsed = getopt::parse(OPTIONS, &words, Operands::Mixed).expect("the options are known");
    settings::read(&parsed, &fixture::clock()).unwrap_or_else(|_| panic!("{words:?} is refused"))
}

/// What `sacct WORDS` prints of these jobs.
fn printed_of(jobs: Vec<v1::JobRecord>, words: &str) -> String {
    let settings = read(words);
    let clock = fixture::clock();
    let jobs = select::select(&settings, NOW, jobs);
    let context = Context {
        clock: &clock,
        cluster: "test_cluster",
        bitstr_len: 64,
        units: settings.units,
        truncate: settings.truncate.then(|| settings.window.bounds(NOW)),
        expand_patterns: settings.expand_patterns,
        local_uid: settings.local_uid,
    };
    String::from_utf8(fetch::rows(&settings, &context, &jobs)).expect("text")
}

/// What the controller would select by id is selected here.
fn printed(words: &str) -> String {
    let settings = read(words);
    let mut jobs = fixture::jobs();
    let named = |j: &v1::JobRecord| settings.jobs.iter().any(|t| t.job.0 == j.id || Some(t.job.0) == j.array_job);
    jobs.retain(|j| settings.jobs.is_empty() || named(j));
    printed_of(jobs, words)
}

#[track_caller]
fn same_as_recorded(words: &str, recorded: &str) {
    let recorded: Vec<&str> = recorded.lines().skip(usize::from(recorded.starts_with('$'))).collect();
    recorded::assert_same(printed(words).lines(), recorded);
}

#[test]
fn the_usual_views_look_as_recorded() {
    same_as_recorded("", include_str!("../../../tests/data/sacct.txt"));
    same_as_recorded("-b", include_str!("../../../tests/data/sacct-b.txt"));
    same_as_recorded("-X -P", include_str!("../../../tests/data/sacct-X-P.txt"));
    same_as_recorded("-l -P -j 1", include_str!("../../../tests/data/sacct-l.txt"));
}

#[test]
fn an_unknown_id_gives_the_header_alone() {
    assert_eq!(printed("-j 99999").lines().count(), 2);
    assert_eq!(printed("-j 99999 -n"), "");
}

#[test]
fn every_field_in_one_call_gives_lines_of_equally_many_delimiters() {
    let names = super::fields::help_text().split_whitespace().collect::<Vec<_>>().join(",");
    for (options, after) in [("-P", 0), ("-p", 1), ("-P --delimiter=^|^", 0)] {
        let delimiter = if options.contains("^|^") { "^|^" } else { "|" };
        let text = printed(&format!("{options} --jobs=1,2,3,4,5,6,7 --format={names}"));
        let counts: Vec<usize> = text.lines().map(|l| l.matches(delimiter).count()).collect();
        assert_eq!(counts.len(), 1 + 9 + 7, "header, jobs, steps");
        let expected = super::fields::FIELDS.len() - 1 + after;
        assert!(counts.iter().all(|n| *n == expected), "{options}: {counts:?} instead of {expected}");
    }
}

#[test]
fn a_delimiter_within_a_value_moves_no_column() {
    let mut job = fixture::job(2);
    job.name = b"a|b".to_vec().into();
    assert_eq!(printed_of(vec![job.clone()], "-XnP -j 2 -o jobname,state"), "a?b|RUNNING\n");
    assert_eq!(printed_of(vec![job], "-XnP -j 2 -o jobname"), "a|b\n");
}

#[test]
fn arrays_show_what_waits_behind_what_started() {
    assert_eq!(printed("-XnP -j 3 -o jobid,jobidraw,state"), "3_0|8|RUNNING\n3_1|9|RUNNING\n3_[2-5%2]|3|PENDING\n");
    assert_eq!(
        printed("-XnP -j 3_[1-3] --array -o jobid,start,end,nodelist"),
        "3_1|2026-11-30T09:59:44|Unknown|node1\n3_2|Unknown|Unknown|None assigned\n3_3|Unknown|Unknown|None assigned\n"
    );
}

#[test]
fn named_steps_are_shown_without_their_job() {
    assert_eq!(printed("-nP -j 1.0,2.batch -o jobid"), "1.0\n2.batch\n");
    assert_eq!(printed("-nP -j 1,1.0 -o jobid"), "1\n1.batch\n1.0\n1.1\n");
}

#[test]
fn every_run_of_a_requeued_job_can_be_shown() {
    let mut first = fixture::job(2);
    first.requeued_run = true;
    first.state = "REQUEUED".into();
    first.end = Some(NOW - 5000);
    let mut second = fixture::job(2);
    second.attempt = 1;
    second.steps.iter_mut().for_each(|s| s.key.as_mut().unwrap().attempt = 1);
    second.steps.push(first.steps[0].clone());
    let text = printed_of(vec![second, first], "-nPD -j 2 -o jobid,state,restarts");
    let expected = ["2|REQUEUED|0", "2.batch|RUNNING|", "2.0|RUNNING|"];
    recorded::assert_same(
        text.lines(),
        expected.into_iter().chain(["2|RUNNING|1", "2.batch|RUNNING|", "2.0|RUNNING|"]),
    );
}

#[test]
fn filters_leave_only_what_matches() {
    let ids = |words: &str| printed(&format!("-XnP -o jobid {words}")).lines().collect::<Vec<_>>().join(" ");
    assert_eq!(ids("-i 2"), "2");
    assert_eq!(ids("-I 1-1"), "3_0 3_1");
    assert_eq!(ids("-k 5 -K 10"), "1 2 3_0 3_1");
    assert_eq!(ids("-k 1-0"), "7");
    assert_eq!(ids("-K 5"), "1 2 7 3_0 3_1");
    assert_eq!(ids("-s F -S 09:00 -E now"), "1");
    assert_eq!(ids("-s pd"), "7");
    assert_eq!(ids("-s RV"), "");
    assert_eq!(ids("-g 1501"), "");
    assert_eq!(ids("-g 1500 -F schedbackfill"), "1 2 3_0 3_1");
    assert_eq!(ids("-R PartitionNodeLimit"), "7");
    assert_eq!(ids("-C f1"), "");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let refused = |words: &str| {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        let parsed = getopt::parse(OPTIONS, &words, Operands::Mixed).expect("the options are known");
        settings::read(&parsed, &fixture::clock()).is_err()
    };
    for words in [
        "-j abc",
        "-s XX",
        "-S xx",
        "-S now -E now-1hour",
        "-o nosuch",
        "--units=X",
        "-i x",
        "-i 5-2",
        "-I 1-",
        "-k xx",
        "-N a[",
        "-u no-such-user",
        "-g no-such-group",
        "-F X",
        "-B",
        "operand",
    ] {
        assert!(refused(words), "{words}");
    }
}

#[test]
fn a_list_that_is_asked_for_in_brief_shows_the_same() {
    let words = "-X -P --format=JobID,JobIDRaw,JobName,Partition,Account,AllocCPUS,AllocNodes,State,ExitCode,\
                 DerivedExitCode,Elapsed,ElapsedRaw,CPUTime,CPUTimeRAW,Start,End,Submit,Eligible,User,UID,GID,QOS,\
                 NodeList,NNodes,Priority,Reason,Restarts,Flags,Suspended,Timelimit,TimelimitRaw,Planned,DBIndex";
    assert!(read(words).is_brief());
    let brief = |job: v1::JobRecord| v1::JobRecord { spec: None, allocation: None, steps: Vec::new(), ..job };
    assert_eq!(printed_of(fixture::jobs().into_iter().map(brief).collect(), words), printed(words));
    for words in ["-P", "-X -P -W key", "-X -P -C fast", "-X -P --format=JobID,WorkDir", "-X -P --format=ReqTRES"] {
        assert!(!read(words).is_brief(), "{words}");
    }
}
