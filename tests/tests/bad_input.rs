//! Input that is wrong, huge or strange: a clear error that names what is wrong, or the exact bytes kept. Never a hang,
//! a panic, or a job that nobody asked for.

use sluice_tests::cluster::{Cluster, Said, wait_for};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

fn said(command: &mut std::process::Command) -> Said {
    let output = command.output().expect("a command of the cluster runs");
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn absurd_values_are_refused_by_name_and_leave_no_job() {
    let cluster = Cluster::start();
    // The option, and what its error must name.
    let refused: &[(&[&str], &[&str])] = &[
        (&["--array=0-99999999999"], &["array"]),
        (&["--array=5-1"], &["array"]),
        (&["--array=1-4%0x"], &["array"]),
        (&["--time=-5"], &["--time"]),
        (&["--time=xx"], &["--time"]),
        (&["--mem=-1"], &["--mem"]),
        (&["--mem=99999999999999999999G"], &["--mem"]),
        (&["--mem=abc"], &["--mem"]),
        (&["-n", "-1"], &["ntasks"]),
        (&["-n", "99999999999"], &["ntasks"]),
        (&["-N", "0"], &["nodes"]),
        (&["-N", "4-2"], &["node count"]),
        (&["-c", "99999999999"], &["cpus-per-task"]),
        (&["--nice=99999999999999"], &["nice"]),
        (&["--nodelist=node[1-"], &["node"]),
        (&["--nodelist=nosuchnode"], &["node"]),
        (&["--partition=nope"], &["partition", "nope"]),
        (&["--gres=gpu:x:y:z"], &["gres"]),
        (&["--dependency=afterok:xx"], &["dependency"]),
        (&["--begin=yesterdayish"], &["begin"]),
        (&["--signal=NOSUCH@5"], &["signal"]),
        (&["--mail-type=SOMETIMES"], &["mail-type"]),
        (&["--open-mode=sideways"], &["open-mode"]),
        (&["--exclusive=perhaps"], &["exclusive"]),
        (&["--no-such-option"], &["--no-such-option"]),
    ];
    for (options, names) in refused {
        let mut words = vec!["sbatch"];
        words.extend(*options);
        words.extend(["--wrap", "true"]);
        let said = cluster.run(&words);
        assert_ne!(said.code, 0, "{options:?} was accepted: {said:?}");
        let error = said.err.to_lowercase();
        assert!(names.iter().all(|n| error.contains(n)), "{options:?} must name {names:?}: {said:?}");
        assert!(!error.contains("panicked"), "{options:?}: {said:?}");
    }
    assert_eq!(cluster.ok(&["sacct", "-n", "-P", "-X", "--format=JobID"]), "", "a refused submission left a job");
}

#[test]
fn scripts_with_dos_line_ends_nul_bytes_or_no_interpreter_are_refused() {
    let cluster = Cluster::start();
    let cases: [(&str, &[u8], &str); 4] = [
        ("dos.sh", b"#!/bin/sh\r\necho hi\r\n", "DOS line breaks"),
        ("nul.sh", b"#!/bin/sh\necho \0hi\n", "NUL"),
        ("plain.txt", b"just words\n", "does not look like a batch script"),
        ("empty.sh", b"", "empty"),
    ];
    for (name, bytes, wanted) in cases {
        let path = cluster.work().join(name);
        std::fs::write(&path, bytes).expect("a file of the test");
        let said = cluster.run(&["sbatch", &path.display().to_string()]);
        assert_ne!(said.code, 0, "{name}: {said:?}");
        assert!(said.err.to_lowercase().contains(&wanted.to_lowercase()), "{name} must say {wanted:?}: {said:?}");
    }
    let said = cluster.run(&["sbatch", "/nonexistent/script"]);
    assert_eq!((said.code, said.err.trim()), (1, "sbatch: error: Unable to open file /nonexistent/script"));
}

#[test]
fn a_ten_megabyte_script_runs_and_a_larger_one_than_the_limit_is_refused_with_both_sizes() {
    let cluster = Cluster::start();
    let script = |bytes: usize| {
        format!("#!/bin/sh\n{}\necho the end\n", "# padding padding padding padding\n".repeat(bytes / 34))
    };
    let large = cluster.file("large.sh", &script(10 << 20));
    let id = cluster.submit(&["-o", "large.out", &large.display().to_string()]);
    assert_eq!(cluster.wait_end(id), "COMPLETED");
    assert_eq!(cluster.read("large.out").as_deref(), Some("the end\n"));
    let too_large = cluster.file("too-large.sh", &script(20 << 20));
    let said = cluster.run(&["sbatch", &too_large.display().to_string()]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("16777216") || said.err.contains("16 MiB"), "the limit must be named: {said:?}");
}

#[test]
fn long_arguments_and_bytes_that_are_no_utf8_arrive_as_they_were() {
    let cluster = Cluster::start();
    let folder = OsString::from_vec(b"folder-\xff\xfe".to_vec());
    std::fs::create_dir(cluster.work().join(&folder)).expect("a folder with a strange name");
    let long = "x".repeat(100_000);
    let script = cluster.file(
        "show.sh",
        "#!/bin/sh\nprintf '%s' \"$STRANGE\" > value\nprintf '%s' \"$1\" | wc -c > length\npwd > where\n",
    );
    let mut command = cluster.command("sbatch");
    command.arg("--parsable").arg("-o").arg("/dev/null");
    let mut chdir = OsString::from("--chdir=");
    chdir.push(cluster.work().join(&folder));
    command.arg(chdir).arg(&script).arg(&long);
    command.env("STRANGE", OsString::from_vec(b"a\xffb\xc3".to_vec()));
    let said = said(&mut command);
    assert_eq!(said.code, 0, "{said:?}");
    let id = said.out.trim().parse().expect("an id");
    assert_eq!(cluster.wait_end(id), "COMPLETED");
    let inside = cluster.work().join(&folder);
    assert_eq!(std::fs::read(inside.join("value")).expect("the value"), b"a\xffb\xc3");
    assert_eq!(std::fs::read_to_string(inside.join("length")).expect("the length").trim(), "100000");
    let pwd = std::fs::read(inside.join("where")).expect("the folder");
    assert!(pwd.strip_suffix(b"\n").is_some_and(|p| p.ends_with(folder.as_bytes())), "{pwd:?}");
}

#[test]
fn a_failed_launch_says_which_directory_file_or_interpreter() {
    let cluster = Cluster::start();
    let cases: [(&[&str], &str, &str); 3] = [
        (&["--chdir=/nonexistent/place"], "#!/bin/sh\ntrue\n", "/nonexistent/place"),
        (&["-o", "/nonexistent/out"], "#!/bin/sh\ntrue\n", "/nonexistent/out"),
        (&[], "#!/nonexistent/interpreter\ntrue\n", "/nonexistent/interpreter"),
    ];
    for (number, (options, script, names)) in cases.into_iter().enumerate() {
        let file = cluster.file(&format!("fail{number}.sh"), script);
        let mut words: Vec<String> = options.iter().map(ToString::to_string).collect();
        words.push(file.display().to_string());
        let id = cluster.submit(&words);
        assert_eq!(cluster.wait_end(id), "FAILED", "{options:?}");
        let shown = wait_for("the job's record", || {
            let said = cluster.run(&["scontrol", "show", "job", &id.to_string()]);
            if said.code == 0 { Ok(said.out) } else { Err(said) }
        });
        assert!(shown.contains(names), "the record must name {names}: {shown}");
    }
}
