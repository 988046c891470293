//! Job arrays as their users see them, on a real cluster.

use nix::sys::signal::Signal;
use sluice_tests::cluster::Cluster;

#[test]
fn sbatch_wait_names_each_task_whose_script_could_not_be_started() {
    let cluster = Cluster::start();
    std::fs::create_dir(cluster.work().join("out0")).expect("a folder for the first task");
    let said = cluster.run(&["sbatch", "--parsable", "--wait", "--array=0-9", "-o", "out%a/log", "--wrap", "true"]);
    assert_eq!(said.code, 1, "{said:?}");
    let job = said.out.trim();
    let mut lines: Vec<&str> = said.err.lines().collect();
    lines.sort_unstable();
    // Ten of them: several end in the same moment, and none may be missed.
    let expected = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|task| {
        format!(
            "sbatch: error: Job {job}_{task} could not be started: output file out{task}/log: No such file or directory"
        )
    });
    assert_eq!(lines, expected);
    // And without one, the highest exit code.
    let script = "exit $SLURM_ARRAY_TASK_ID";
    let said = cluster.run(&["sbatch", "--wait", "--array=0-3", "-o", "/dev/null", "--wrap", script]);
    assert_eq!((said.code, said.err.as_str()), (3, ""), "{said:?}");
}

#[test]
fn part_of_an_array_is_cancelled_and_shown_as_one_record_also_after_a_restart() {
    let cluster = Cluster::start();
    let job = cluster.submit(&["-H", "--array=0-9", "-o", "/dev/null", "--wrap", "true"]);
    cluster.ok(&["scancel", &format!("{job}_[2-4,6]")]);
    cluster.ok(&["scancel", &format!("{job}_9")]);
    let squeue = |words: &[&str]| {
        let out = cluster.ok(&[&["squeue", "-h", "-t", "all", "-o", "%i %T"], words].concat());
        out.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let shown =
        [format!("{job}_[0-1,5,7-8] PENDING"), format!("{job}_[2-4,6] CANCELLED"), format!("{job}_9 CANCELLED")];
    assert_eq!(squeue(&[]), shown);
    cluster.kill("ctld", Signal::SIGKILL);
    cluster.up();
    assert_eq!(squeue(&[]), shown);
    assert_eq!(squeue(&["-r"]).len(), 10);
    assert_eq!(squeue(&["-j", &format!("{job}_3")]), [format!("{job}_3 CANCELLED")]);
    let sacct = |words: &[&str]| {
        let all = ["sacct", "-n", "-X", "-P", "--format=JobID,JobIDRaw,State"];
        let out = cluster.ok(&[&all, words].concat());
        let cancelled = out.lines().filter_map(|line| line.split_once("|CANCELLED by "));
        cancelled.map(|(ids, _)| ids.to_owned()).collect::<Vec<_>>()
    };
    let (block, task) = (job + 1, job + 2);
    assert_eq!(sacct(&[]), [format!("{job}_[2-4,6]|{block}"), format!("{job}_9|{task}")]);
    let each = [2, 3, 4, 6].map(|index| format!("{job}_{index}|{block}"));
    assert_eq!(sacct(&["--array"])[..4], each);
    // What is left can still be released in part, and runs.
    cluster.ok(&["scontrol", "release", &format!("{job}_[7-8]")]);
    for task in [7, 8] {
        let id = format!("{job}_{task}");
        sluice_tests::cluster::wait_for("the released task", || {
            match cluster.ok(&["sacct", "-n", "-X", "-P", "--array", "--format=State", "-j", &id]) {
                state if state == "COMPLETED" => Ok(()),
                state => Err(state),
            }
        });
    }
    assert_eq!(squeue(&["--states=PENDING"]), [format!("{job}_[0-1,5] PENDING")]);
}
