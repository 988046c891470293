//! Who may say what, between real daemons over TLS.

use nix::sys::signal::Signal;
use sluice_tests::cluster::{Cluster, Said, Shape, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Some user without rights.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: needs root to act as another user");
    }
    root
}

fn value(cluster: &Cluster, key: &str) -> String {
    let text = std::fs::read_to_string(cluster.dir().join("etc/client.toml")).expect("the client configuration");
    let line = text.lines().find_map(|l| l.strip_prefix(&format!("{key} = "))).expect("the key");
    line.trim_matches('"').to_owned()
}

/// A client configuration of another host: TLS alone, with this agent.
fn remote(cluster: &Cluster, name: &str, agent: &Path) -> PathBuf {
    let text = format!(
        "cluster = \"local\"\ncontroller = \"{}\"\nca = \"{}\"\nagent = \"{}\"\n",
        value(cluster, "controller"),
        value(cluster, "ca"),
        agent.display()
    );
    cluster.file(name, &text)
}

fn login_agent(cluster: &Cluster) -> PathBuf {
    value(cluster, "agent").into()
}

fn with(cluster: &Cluster, config: &Path, words: &[&str]) -> Said {
    let out = cluster.command(words[0]).args(&words[1..]).env("SLUICE_CONF", config).output().expect("it runs");
    Said {
        code: out.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&out.stdout).into_owned(),
        err: String::from_utf8_lossy(&out.stderr).into_owned(),
    }
}

#[test]
fn a_login_host_submits_over_tls() {
    let cluster = Cluster::start();
    let config = remote(&cluster, "login.toml", &login_agent(&cluster));
    let said = with(&cluster, &config, &["sbatch", "--parsable", "--wait", "--output=out", "--wrap=id -u"]);
    assert_eq!(said.code, 0, "{said:?}");
    let me = nix::unistd::geteuid();
    assert_eq!(cluster.read("out"), Some(format!("{me}\n")));
    let said = with(&cluster, &config, &["srun", "-N2", "sh", "-c", "echo $SLURMD_NODENAME"]);
    let mut nodes: Vec<&str> = said.out.lines().collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node1", "node2"], "{said:?}");
}

#[test]
fn another_clusters_agent_and_another_clusters_controller_are_not_believed() {
    let (ours, theirs) = (Cluster::start(), Cluster::start());
    let submit = |config: &Path| with(&ours, config, &["sbatch", "--parsable", "--wrap=true"]);
    let foreign_agent = submit(&remote(&ours, "agent.toml", &login_agent(&theirs)));
    assert_ne!(foreign_agent.code, 0, "{foreign_agent:?}");
    let text = format!(
        "cluster = \"local\"\ncontroller = \"{}\"\nca = \"{}\"\nagent = \"{}\"\n",
        value(&theirs, "controller"),
        value(&ours, "ca"),
        login_agent(&ours).display()
    );
    let config = ours.file("controller.toml", &text);
    let mut sbatch = ours.command("sbatch");
    let out = sbatch.arg("--wrap=true").env("SLUICE_CONF", &config).env("SLUICE_CONNECT_TIMEOUT", "1").output();
    let out = out.expect("it runs");
    assert!(!out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
    for cluster in [&ours, &theirs] {
        assert_eq!(cluster.ok(&["sacct", "-a", "-n", "-P", "-X"]), "");
    }
}

#[test]
fn a_compute_node_vouches_for_users_with_a_job_there_and_never_for_root() {
    if !is_root() {
        return;
    }
    let cluster = Cluster::with(Shape { nodes: 1, ..Shape::default() });
    let agent = cluster.dir().join("run/node1.sock");
    let config = remote(&cluster, "node.toml", &agent);
    let as_nobody = |words: &[&str]| {
        use std::os::unix::process::CommandExt;
        let mut command = cluster.command(words[0]);
        let out =
            command.args(&words[1..]).env("SLUICE_CONF", &config).uid(NOBODY).gid(NOBODY).output().expect("it runs");
        (out.status.success(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    // No job there yet.
    assert!(!as_nobody(&["sbatch", "--parsable", "--output=/dev/null", "--wrap=true"]).0);
    let held =
        cluster.run_as(NOBODY, NOBODY, &["sbatch", "--parsable", "--output=/dev/null", "--wrap=touch on; sleep 600"]);
    assert_eq!(held.code, 0, "{held:?}");
    wait_for("the user's job", || cluster.read("on").ok_or(()));
    let (ok, id) = as_nobody(&["sbatch", "--parsable", "--output=who", "--wrap=id -u"]);
    assert!(ok, "{id}");
    assert_eq!(cluster.wait_end(id.trim().parse().expect("a job id")), "COMPLETED");
    assert_eq!(cluster.read("who"), Some(format!("{NOBODY}\n")));
    // Root has a job there, too.
    cluster.submit(&["--output=/dev/null", "--wrap=touch root; sleep 600"]);
    wait_for("root's job", || cluster.read("root").ok_or(()));
    let said = with(&cluster, &config, &["sbatch", "--parsable", "--wrap=true"]);
    assert_ne!(said.code, 0, "{said:?}");
}

struct Daemon(Child);
impl Drop for Daemon {
    fn drop(&mut self) {
        // SIGTERM would do; a test's daemon has nothing to lose.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_node_joins_with_a_token_links_over_tls_and_runs_jobs() {
    let cluster = Cluster::start();
    cluster.kill("node2", Signal::SIGTERM);
    let state = cluster.dir().join("node2");
    std::fs::remove_dir_all(state.join("identity")).expect("node2's old papers");
    let ctld_state = cluster.dir().join("ctld").display().to_string();
    let token = cluster.ok(&["sluice-ctld", "join-token", "--compute", "--host", "node2", "--state", &ctld_state]);
    let controller = value(&cluster, "controller");
    let state = state.display().to_string();
    let join = |name: &str, state: &str| {
        let words =
            ["sluice-noded", "join", "--controller", &controller, "--token", &token, "--name", name, "--state", state];
        cluster.run(&words)
    };
    let elsewhere = cluster.work().join("other").display().to_string();
    let other = join("node1", &elsewhere);
    assert!(other.code != 0 && other.err.contains("is for another host"), "{other:?}");
    let joined = join("node2", &state);
    assert_eq!(joined.code, 0, "{joined:?}");
    let again = join("node2", &elsewhere);
    assert!(again.code != 0 && again.err.contains("was used before"), "{again:?}");

    let socket = cluster.dir().join("run/node2.sock");
    let log = std::fs::File::create(cluster.dir().join("log/node2-tls.log")).expect("a log");
    let mut daemon = cluster.command("sluice-noded");
    daemon.args(["run", "--name", "node2", "--state", &state, "--controller", &controller]);
    daemon.args(["--listen", "127.0.0.1:0", "--declared", "--socket"]).arg(&socket);
    let out = log.try_clone().expect("the log");
    let _daemon = Daemon(daemon.stdout(Stdio::from(out)).stderr(Stdio::from(log)).spawn().expect("noded starts"));
    wait_for("node2 idle again", || {
        let seen = cluster.ok(&["sinfo", "-h", "-N", "-n", "node2", "-o", "%t"]);
        if seen == "idle" { Ok(()) } else { Err(seen) }
    });
    let job = cluster.submit(&["-w", "node2", "--output=out", "--wrap=echo $SLURMD_NODENAME"]);
    assert_eq!(cluster.wait_end(job), "COMPLETED");
    assert_eq!(cluster.read("out").as_deref(), Some("node2\n"));
}

#[test]
fn a_node_daemon_can_not_bear_another_nodes_name() {
    let cluster = Cluster::start();
    let state = cluster.dir().join("node1").display().to_string();
    let socket = cluster.work().join("x.sock").display().to_string();
    let controller = value(&cluster, "controller");
    let words =
        ["sluice-noded", "run", "--name", "node2", "--state", &state, "--controller", &controller, "--socket", &socket];
    let said = cluster.run(&words);
    assert!(said.code != 0 && said.err.contains("is not that of compute node node2"), "{said:?}");
}
