//! Accounts, users and QOS from sacctmgr to the job: real daemons that enforce what was set.

use nix::sys::signal::Signal;
use sluice_tests::cluster::{Cluster, Shape};

fn enforcing() -> Cluster {
    let config = format!("{}[accounting]\nenforce = [\"limits\", \"qos\"]\n", Shape::default().config);
    Cluster::with(Shape { nodes: 1, config, ..Shape::default() })
}

/// Who runs the tests, as the controller knows them.
fn me(cluster: &Cluster) -> String {
    cluster.sh("id -un").out.trim().to_owned()
}

#[test]
fn what_sacctmgr_sets_decides_about_submissions_and_outlives_the_controller() {
    let cluster = enforcing();
    let me = me(&cluster);
    let user = format!("name={me}");
    cluster.ok(&["sacctmgr", "-i", "add", "account", "science", "fairshare=50"]);
    cluster.ok(&["sacctmgr", "-i", "add", "account", "chem,phys", "parent=science"]);
    cluster.ok(&["sacctmgr", "-i", "add", "qos", "gold", "priority=10"]);
    cluster.ok(&["sacctmgr", "-i", "add", "user", &user, "account=chem"]);
    cluster.ok(&["sacctmgr", "-i", "modify", "user", &user, "account=chem", "set", "qos+=gold", "maxsubmit=1"]);
    // From the snapshot or the journal: the same afterwards.
    cluster.kill("ctld", Signal::SIGKILL);
    cluster.up();
    let shown = cluster.ok(&["sacctmgr", "-nP", "show", "assoc", "account=chem", "format=account,user,qos,maxsubmit"]);
    assert_eq!(shown, format!("chem||normal|\nchem|{me}|gold,normal|1"));

    let said = cluster.run(&["sbatch", "--account=phys", "--wrap=true"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("Invalid account or account/partition combination specified"), "{said:?}");
    let said = cluster.run(&["sbatch", "--account=chem", "--qos=nosuch", "--wrap=true"]);
    assert!(said.err.contains("Invalid qos specification"), "{said:?}");

    let job = cluster.submit(&["--account=chem", "--qos=gold", "--hold", "--output=/dev/null", "--wrap=true"]);
    assert_eq!(cluster.ok(&["squeue", "-h", "-A", "chem", "-q", "gold", "-o", "%i %a %q"]), format!("{job} chem gold"));
    assert_eq!(cluster.ok(&["squeue", "-h", "-A", "phys"]), "");
    let said = cluster.run(&["sbatch", "--account=chem", "--wrap=true"]);
    assert!(said.err.contains("Job violates accounting/QOS policy"), "{said:?}");
    let said = cluster.run(&["sacctmgr", "-i", "delete", "account", "science"]);
    assert!(said.code == 1 && said.err.contains(&format!("JobID = {job}")), "{said:?}");

    cluster.ok(&["scontrol", "release", &job.to_string()]);
    assert_eq!(cluster.wait_end(job), "COMPLETED");
    let id = job.to_string();
    let assoc = cluster.ok(&["sacctmgr", "-nP", "show", "assoc", &format!("user={me}"), "account=chem", "format=id"]);
    let kept = cluster.ok(&["sacct", "-XnP", "-j", &id, "--format=account,qos,associd"]);
    assert_eq!(kept, format!("chem|gold|{assoc}"));
    cluster.ok(&["sacctmgr", "-i", "delete", "account", "science"]);
    assert_eq!(cluster.ok(&["sacctmgr", "-nP", "show", "account"]).lines().count(), 1);
}

#[test]
fn a_change_is_asked_about_and_what_changes_nothing_is_a_failure() {
    let cluster = enforcing();
    let answered = |answer: &str| cluster.sh(&format!("echo {answer} | sacctmgr add account bio"));
    let said = answered("n");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("Would you like to commit changes?") && said.out.ends_with(" Changes Discarded\n"),
        "{said:?}"
    );
    assert_eq!(cluster.ok(&["sacctmgr", "-nP", "show", "account", "bio"]), "");
    assert_eq!(answered("y").code, 0);
    assert_eq!(cluster.ok(&["sacctmgr", "-nP", "show", "account", "bio"]), "bio|bio|bio");
    let said = answered("y");
    assert_eq!((said.code, said.err.as_str()), (1, " Nothing new added.\n"), "{said:?}");
    let said = cluster.run(&["sacctmgr", "-i", "add", "account", "x", "parent=nosuch"]);
    assert!(said.code == 1 && said.err.contains("Parent account 'nosuch' doesn't exist"), "{said:?}");
}

#[test]
fn what_was_dumped_is_loaded_again_whole() {
    let cluster = enforcing();
    cluster.ok(&["sacctmgr", "-i", "add", "account", "science", "fairshare=50", "grptres=cpu=10,gres/gpu:a100=2"]);
    cluster.ok(&["sacctmgr", "-i", "add", "user", &me(&cluster), "account=science", "maxwall=1-0"]);
    let all = ["sacctmgr", "-nP", "show", "assoc", "format=account,user,share,grptres,maxwall,qos"];
    let before = cluster.ok(&all);
    cluster.ok(&["sacctmgr", "dump", "file=tree.cfg"]);
    assert!(cluster.ok(&["sacctmgr", "-i", "load", "tree.cfg"]).contains(" Nothing new added."));
    cluster.ok(&["sacctmgr", "-i", "delete", "account", "science"]);
    cluster.ok(&["sacctmgr", "-i", "load", "tree.cfg"]);
    assert_eq!(cluster.ok(&all), before);
}

#[test]
fn only_operators_change_accounts() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: needs root to run commands as another user");
        return;
    }
    let cluster = enforcing();
    let said = cluster.run_as(65534, 65534, &["sacctmgr", "-i", "add", "account", "mine"]);
    assert!(said.code == 1 && said.err.contains("Access/permission denied"), "{said:?}");
    assert_eq!(cluster.ok(&["sacctmgr", "-nP", "show", "account", "mine"]), "");
}
