//! `sluice local`: what every other end-to-end test stands on.

use nix::sys::signal::Signal;
use sluice_tests::cluster::{Cluster, Shape, programs, wait_for};
use std::process::Command;

#[test]
fn a_cluster_runs_a_job_keeps_it_over_a_stop_and_leaves_nothing_running() {
    let cluster = Cluster::start();
    let job = cluster.submit(&["--output=out", "--wrap=echo hello from $SLURM_JOB_ID"]);
    assert_eq!(cluster.wait_end(job), "COMPLETED");
    assert_eq!(cluster.read("out"), Some(format!("hello from {job}\n")));
    assert_eq!(cluster.local::<&str>("status", &[]).code, 0);

    assert_eq!(cluster.local::<&str>("down", &[]).code, 0);
    assert_eq!(cluster.processes(), []);
    assert_eq!(cluster.local::<&str>("status", &[]).code, 1);

    cluster.up();
    assert_eq!(cluster.state(job).as_deref(), Some("COMPLETED"));
    assert!(cluster.submit(&["--wrap=true"]) > job);
}

#[test]
fn down_ends_running_jobs_and_what_they_left_in_the_background() {
    let cluster = Cluster::start();
    let script = "setsid sleep 1000 & trap '' TERM; echo $! > started; sleep 1000";
    let job = cluster.submit(&["--output=/dev/null", &format!("--wrap={script}")]);
    let pid =
        wait_for("the job's background process", || cluster.read("started").filter(|t| t.ends_with('\n')).ok_or(()));
    assert_eq!(cluster.local::<&str>("down", &[]).code, 0);
    let alive = std::path::Path::new(&format!("/proc/{}", pid.trim())).exists();
    assert!(!alive, "process {} outlived its cluster", pid.trim());
    assert_eq!(cluster.processes(), []);
    cluster.up();
    assert_eq!(cluster.state(job).as_deref(), Some("CANCELLED"));
}

#[test]
fn down_works_when_the_controller_is_dead_and_the_pid_file_is_stale() {
    let cluster = Cluster::start();
    cluster.submit(&["--output=/dev/null", "--wrap=touch started; sleep 1000"]);
    wait_for("the job", || cluster.read("started").ok_or(()));
    let group = std::fs::read_to_string(cluster.dir().join("node1/cgroup")).unwrap_or_default();
    cluster.kill("ctld", Signal::SIGKILL);
    cluster.kill("node1", Signal::SIGKILL);
    // Somebody else's process has the number now.
    let other = Command::new("sleep").arg("1000").spawn().expect("sleep");
    std::fs::write(cluster.dir().join("run/ctld.pid"), format!("{}\n", other.id())).expect("the pid file");
    let mut other = scopeguard(other);
    assert_eq!(cluster.local::<&str>("down", &[]).code, 0);
    assert_eq!(cluster.processes(), []);
    let left: Vec<_> = std::fs::read_dir(cluster.dir().join("run")).expect("run").flatten().collect();
    assert!(left.is_empty(), "left in run/: {left:?}");
    assert!(group.is_empty() || !std::path::Path::new(&group).exists(), "cgroup {group} is left");
    assert!(other.0.try_wait().expect("its state").is_none(), "a foreign process was killed");
}

struct Guard(std::process::Child);
impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
fn scopeguard(child: std::process::Child) -> Guard {
    Guard(child)
}

#[test]
fn up_on_a_running_cluster_changes_nothing_and_brings_back_what_died() {
    let cluster = Cluster::start();
    let before = (cluster.pid("ctld"), cluster.pid("node1"));
    let port = |text: String| text.lines().find(|l| l.starts_with("controller")).map(str::to_owned);
    let client = || std::fs::read_to_string(cluster.dir().join("etc/client.toml")).expect("client.toml");
    let address = port(client());
    cluster.up();
    assert_eq!((cluster.pid("ctld"), cluster.pid("node1")), before);
    cluster.kill("ctld", Signal::SIGKILL);
    cluster.kill("node2", Signal::SIGKILL);
    cluster.up();
    assert_eq!(cluster.pid("node1"), before.1);
    assert_eq!(port(client()), address, "running jobs know the old address");
    let job = cluster.submit(&["-N2", "--output=/dev/null", "--wrap=srun true"]);
    assert_eq!(cluster.wait_end(job), "COMPLETED");
}

#[test]
fn a_daemon_that_can_not_start_is_quoted_and_nothing_is_left_running() {
    use std::os::unix::fs::PermissionsExt;
    let cluster = Cluster::start();
    assert_eq!(cluster.local::<&str>("down", &[]).code, 0);
    let key = cluster.dir().join("ctld/keys/cluster.key");
    let mode = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("the key's mode");
    mode(0o644);
    let said = cluster.local::<&str>("up", &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("has mode 0644; a secret must be 0600"), "{said:?}");
    assert!(said.err.contains("log/ctld.log ends with:"), "{said:?}");
    assert_eq!(cluster.processes(), []);
    mode(0o600);
    cluster.up();
}

#[test]
fn two_clusters_run_side_by_side_and_their_commands_do_not_mix() {
    let small = |name: &str| Shape { nodes: 1, config: format!("cluster_name = \"{name}\"\n"), ..Shape::default() };
    let (a, b) = (Cluster::with(small("alpha")), Cluster::with(small("beta")));
    for (cluster, name) in [(&a, "alpha"), (&b, "beta")] {
        let config = cluster.ok(&["scontrol", "show", "config"]);
        let line = config.lines().find(|l| l.starts_with("ClusterName")).expect("ClusterName");
        assert!(line.ends_with(name), "{line}");
    }
    let job = a.submit(&["--wrap=true"]);
    a.wait_end(job);
    assert_eq!(b.state(job), None);
}

#[test]
fn the_environment_puts_the_commands_first_for_shells_and_for_jobs() {
    let cluster = Cluster::start();
    let script = format!(
        "eval \"$({} local env --dir {})\"; command -v sbatch; sbatch --parsable --wait --output=path --wrap 'command -v squeue'",
        programs().join("sluice").display(),
        cluster.dir().display()
    );
    let said = cluster.sh(&script);
    assert_eq!(said.code, 0, "{said:?}");
    let bin = cluster.dir().join("bin");
    assert_eq!(said.out.lines().next(), Some(bin.join("sbatch").to_str().unwrap()));
    assert_eq!(cluster.read("path"), Some(format!("{}\n", bin.join("squeue").display())));
}

/// Some user without rights; no entry in the user database is needed.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root to act as another user");
    }
    root
}

#[test]
fn started_by_root_a_cluster_serves_every_user_as_themself() {
    if !is_root() {
        return;
    }
    let cluster = Cluster::start();
    let submit = |words: &[&str]| cluster.run_as(NOBODY, NOBODY, words);
    let said = submit(&["sbatch", "--parsable", "--output=who", "--wrap=id -u; id -g"]);
    assert_eq!(said.code, 0, "{said:?}");
    let job: u32 = said.out.trim().parse().expect("a job id");
    assert_eq!(cluster.wait_end(job), "COMPLETED");
    assert_eq!(cluster.read("who"), Some(format!("{NOBODY}\n{NOBODY}\n")));
    let mine = cluster.submit(&["--output=/dev/null", "--wrap=sleep 1000"]);
    let refused = submit(&["scancel", &mine.to_string()]);
    assert_ne!(refused.code, 0, "a user cancelled root's job: {refused:?}");
    assert!(matches!(cluster.state(mine).as_deref(), Some("PENDING" | "RUNNING")));
}

#[test]
fn an_ordinary_user_has_a_cluster_of_their_own_and_is_told_what_is_missing() {
    use std::os::unix::process::CommandExt;
    if !is_root() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    nix::unistd::chown(home.path(), Some(NOBODY.into()), Some(NOBODY.into())).unwrap();
    // The build folder may lie where others can't look.
    for name in ["sluice", "sluice-ctld", "sluice-noded"] {
        std::fs::copy(programs().join(name), home.path().join(name)).unwrap();
    }
    let dir = home.path().join("c");
    let run = |program: &std::path::Path, words: &[&str]| {
        let mut command = Command::new(program);
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path()).current_dir(home.path());
        let out = command.uid(NOBODY).gid(NOBODY).output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        (out.status.success(), text)
    };
    let sluice = home.path().join("sluice");
    let place = ["--dir", dir.to_str().unwrap()];
    let (up, text) = run(&sluice, &[&["local", "up", "--nodes=1"], &place[..]].concat());
    let job = run(&dir.join("bin/sbatch"), &["--wait", "--output=who", "--wrap=id -u"]);
    let who = std::fs::read_to_string(home.path().join("who"));
    let (down, said) = run(&sluice, &[&["local", "down"], &place[..]].concat());
    assert!(up && down, "{text}\n{said}");
    assert!(text.contains("not started by root: only you can submit, and jobs run as you"), "{text}");
    assert!(job.0, "{}", job.1);
    assert_eq!(who.unwrap(), format!("{NOBODY}\n"));
}

#[test]
fn declared_hardware_may_exceed_the_machines() {
    let cluster = Cluster::with(Shape { nodes: 3, cpus: 512, memory_mb: 2_000_000, gpus: 16, ..Shape::default() });
    assert_eq!(cluster.ok(&["sinfo", "-h", "-o", "%D %c %m %G"]), "3 512 2000000 gpu:16");
}

#[test]
fn a_configuration_with_mistakes_is_refused_with_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    std::fs::write(&file, "[timing]\nkill_wayt_secs = 2\n[limits]\nmax_jobs = \"many\"\n").unwrap();
    let out = Command::new(programs().join("sluice"))
        .args(["local", "up", "--dir"])
        .arg(dir.path().join("c"))
        .arg("--config")
        .arg(&file)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("kill_wayt_secs") && err.contains("max_jobs"), "{err}");
}

#[test]
fn the_demo_shows_its_picture_and_leaves_nothing_behind() {
    let tmp = tempfile::tempdir().unwrap();
    let out = Command::new(programs().join("sluice"))
        .args(["local", "demo"])
        .env("TMPDIR", tmp.path())
        .current_dir(tmp.path())
        .output()
        .unwrap();
    let (text, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{err}");
    assert!(text.contains("+%@#@@@@@@@@"), "no picture:\n{text}");
    assert!(text.contains("6 tasks found"), "no parallel step:\n{text}");
    assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
}

#[test]
fn a_demo_whose_reader_goes_away_leaves_nothing_behind_either() {
    let tmp = tempfile::tempdir().unwrap();
    let mut demo = Command::new(programs().join("sluice"))
        .args(["local", "demo"])
        .env("TMPDIR", tmp.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = std::io::BufReader::new(demo.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
    drop(reader);
    let status = demo.wait().unwrap();
    assert!(status.success() && line.starts_with("Starting a cluster"), "{status}: {line}");
    assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 0);
    let dir = tmp.path().display().to_string();
    let ours = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|e| std::fs::read(e.path().join("cmdline")).is_ok_and(|w| String::from_utf8_lossy(&w).contains(&dir)));
    assert_eq!(ours.count(), 0);
}
