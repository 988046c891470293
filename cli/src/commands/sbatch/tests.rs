use super::*;

fn parse(list: &[&str]) -> Parsed {
    let words: Vec<OsString> = list.iter().map(OsString::from).collect();
    getopt::parse(options(), &words, Operands::EndOptions).expect("parses")
}

fn settle(script: &[u8], vars: &[(&str, &str)], words: &[&str]) -> Result<Settings, BadValue> {
    let mut settings = Settings::new(Submitter::Sbatch, Time::from_secs(1_796_032_797), Some(jiff::tz::TimeZone::UTC));
    let given = match directives(script) {
        Ok(given) => given,
        Err(Stop::Bad(bad)) => return Err(bad),
        Err(Stop::Usage(e)) => return Err(BadValue::line(255, e.to_string())),
    };
    settings.apply(&given)?;
    let lookup = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
    for (_, given) in env::options(Submitter::Sbatch, &lookup) {
        settings.set(&given)?;
    }
    settings.apply(&parse(words).options)?;
    settings.finish()?;
    Ok(settings)
}

fn refused(words: &[&str]) -> BadValue {
    settle(b"#!/bin/sh\n", &[], words).expect_err("is refused")
}

#[test]
fn the_command_line_beats_the_environment_which_beats_the_script() {
    let script = b"#!/bin/sh\n#SBATCH -n 2 --job-name=script -p a\n#SBATCH --account=script\n";
    let vars = [("SBATCH_JOB_NAME", "env"), ("SBATCH_PARTITION", "b")];
    let settings = settle(script, &vars, &["-J", "line"]).unwrap();
    assert_eq!(settings.job.name.as_bytes(), b"line");
    assert_eq!(*settings.job.partitions, ["b"]);
    assert_eq!(settings.job.account.as_deref(), Some("script"));
    assert_eq!(settings.job.request.ntasks, Some(2));
}

#[test]
fn the_last_one_of_a_repeated_option_counts() {
    let settings = settle(b"#!/bin/sh\n", &[], &["-n1", "--ntasks=7", "--mem=1G", "--mem-per-cpu=10"]).unwrap();
    assert_eq!(settings.job.request.ntasks, Some(7));
    assert_eq!(settings.job.request.memory, Some(sluice_model::request::MemoryRequest::PerCpu(10)));
    assert_eq!(settle(b"#!/bin/sh\n", &[], &["--requeue", "--no-requeue"]).unwrap().job.requeue, Some(false));
}

#[test]
fn directives_group_with_quotes_and_stop_at_the_first_command() {
    let script = b"#!/bin/bash\n\n# text\n#SBATCH --job-name=\"a b\" --comment='x y' # rest\n#SBATCH -D /tmp/a\\ b\nls\n#SBATCH -n9\n";
    let settings = settle(script, &[], &[]).unwrap();
    assert_eq!(settings.job.name.as_bytes(), b"a b");
    assert_eq!(settings.job.comment.as_ref().unwrap().as_bytes(), b"x y");
    assert_eq!(settings.chdir.as_deref(), Some(std::ffi::OsStr::new("/tmp/a b")));
    assert_eq!(settings.job.request.ntasks, None);
}

#[test]
fn a_word_that_is_no_option_is_named() {
    let bad = settle(b"#!/bin/sh\n#SBATCH -n 2 stray\n", &[], &[]).unwrap_err();
    assert_eq!((bad.lines[0].as_str(), bad.code), ("Invalid directive found in batch script: stray", 255));
}

/// Last lines and exit codes as Slurm's sbatch gives them (seen with 22.05 and 26.05).
#[test]
fn values_that_cannot_be_are_refused_in_slurms_words() {
    for (words, line, code) in [
        (["--mem=abc"], "Invalid --mem specification", 255),
        (["--mem=-5"], "Invalid --mem specification", 255),
        (["--mem-per-cpu=x"], "Invalid --mem-per-cpu specification", 255),
        (["--time=xx"], "Invalid --time specification", 255),
        (["--time=1:2:3:4"], "Invalid --time specification", 255),
        (["--begin=xx"], "Invalid --begin specification", 255),
        (["--nodes=abc"], "\"abc\" is not a valid node count", 255),
        (["--nodes=2-1"], "Maximum node count 1 is less than minimum node count 2", 255),
        (["--nodes=0"], "Batch job submission failed: Node count specification invalid", 1),
        (["--ntasks=abc"], "Invalid numeric value \"abc\" for --ntasks.", 1),
        (["--ntasks=-1"], "Invalid numeric value \"-1\" for --ntasks.", 1),
        (["--ntasks=99999999999"], "Invalid numeric value \"99999999999\" for --ntasks.", 1),
        (["-c0"], "Invalid numeric value \"0\" for --cpus-per-task.", 1),
        (["--array=x"], "Batch job submission failed: Invalid job array specification", 1),
        (["--dependency=foo:1"], "Batch job submission failed: Job dependency problem", 1),
        (["--gres=gpu:x:y"], "Invalid generic resource (gres) specification", 1),
        (["--constraint=a&&"], "Batch job submission failed: Invalid feature specification", 1),
        (["--nodelist=n[1-"], "Batch job submission failed: Invalid node name specified", 1),
        (["--exclusive=foo"], "Invalid --exclusive specification", 255),
        (["--partition="], "Batch job submission failed: Invalid partition name specified", 1),
        (["--signal=FOO"], "Invalid --signal specification", 255),
        (["--signal=USR1@x"], "Invalid --signal specification", 255),
        (["--nice=99999999999"], "Invalid --nice value, out of range (+/- 2147483645)", 255),
        (["--priority=-1"], "Priority must be >= 0", 255),
        (["--open-mode=x"], "Invalid --open-mode specification", 255),
        (["--mail-type=FOO"], "Invalid --mail-type specification", 255),
        (["--propagate=FOO"], "--propagate=FOO is not valid.", 1),
        (["--distribution=foo"], "Invalid --distribution specification", 255),
        (["--distribution=arbitrary"], "Invalid --distribution specification", 255),
        (["--licenses=foo:x"], "Batch job submission failed: Invalid license specification", 1),
        (["--uid=nosuch"], "Invalid --uid specification", 255),
        (["--get-user-env=x"], "Invalid --get-user-env specification", 255),
        (["--kill-on-invalid-dep=maybe"], "Invalid --kill-on-invalid-dep specification", 255),
        (["--hint=foo"], "unrecognized --hint argument \"foo\", see --hint=help", 1),
        (["--core-spec=x"], "Invalid numeric value \"x\" for --core-spec.", 1),
        (["--threads-per-core=x"], "Invalid numeric value \"x\" for --threads-per-core.", 1),
        (["--gres-flags=foo"], "Invalid --gres-flags specification", 255),
        (["--tmp=x"], "Invalid --tmp specification", 255),
    ] {
        let bad = refused(&words);
        assert_eq!((bad.lines.last().unwrap().as_str(), bad.code), (line, code), "{words:?}");
    }
}

#[test]
fn a_refused_value_is_named_with_what_is_allowed() {
    let bad = refused(&["--mem=abc"]);
    assert!(bad.lines[0].contains("--mem") && bad.lines[0].contains("abc"), "{:?}", bad.lines);
    let long = "9".repeat(100_000);
    let bad = refused(&[&format!("--ntasks={long}")]);
    assert!(bad.lines.iter().all(|l| l.len() < 400));
}

#[test]
fn options_for_later_are_kept_under_their_name() {
    let settings = settle(b"#!/bin/sh\n", &[], &["--core-spec=2", "--spread-job", "--extra=x"]).unwrap();
    let stored: Vec<(&str, &str)> = settings.job.stored.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(stored, [("core-spec", "2"), ("extra", "x")]);
}

#[test]
fn options_that_are_lacking_are_refused_by_name() {
    let words: Vec<OsString> = vec!["--bb=x".into()];
    let error = getopt::parse(options(), &words, Operands::EndOptions).unwrap_err();
    assert!(error.to_string().starts_with("--bb is not supported"), "{error}");
}

#[test]
fn what_clients_write_into_their_scripts_is_understood() {
    // The forms used by submitit, batchspawner, aiida, parsl and others.
    let script = b"#!/bin/bash\n#SBATCH --wckey=submitit\n#SBATCH --signal=USR2@90\n#SBATCH --open-mode=append\n\
        #SBATCH --get-user-env=L\n#SBATCH --nice=10\n#SBATCH --export=NAME,HOME\n#SBATCH --array=0-15%4\n\
        #SBATCH --mem=287M\n#SBATCH --time 0:120\n#SBATCH --gres gpu:2 --exclusive\n#SBATCH --no-requeue\n";
    let settings = settle(script, &[], &[]).unwrap();
    assert_eq!(settings.job.wckey.as_deref(), Some("submitit"));
    assert_eq!(settings.job.signal.map(|s| (s.signal, s.before_secs)), Some((12, 90)));
    assert_eq!(settings.job.array.as_ref().and_then(|a| a.throttle), Some(4));
    assert_eq!(settings.job.request.gres.len(), 1);
    assert_eq!(settings.job.time_limit, Some(sluice_model::TimeLimit::Minutes(2)));
}

#[test]
fn the_table_shows_values_as_they_were_understood() {
    let settings = settle(b"#!/bin/sh\n", &[], &["-n5", "-t2", "-v"]).unwrap();
    let table = settings.table();
    for line in ["ntasks              : 5", "time                : 00:02:00", "verbose             : 1"] {
        assert!(table.iter().any(|l| l == line), "{table:?} lacks {line}");
    }
}
