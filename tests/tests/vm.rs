//! Sluice in virtual machines, under a real systemd and with its power cut: runs `tests/vm/scenarios.py`.
//!
//! Only when `SLUICE_VM_TESTS` is set, since a guest takes minutes on a machine without hardware virtualisation. The
//! programs are those beside this test, or those in `SLUICE_BIN`. The script runs one scenario at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

const TOOLS: [&str; 8] =
    ["python3", "qemu-system-x86_64", "qemu-img", "mmdebstrap", "busybox", "depmod", "cpio", "mkfs.ext4"];

/// Why the tests can't run here.
fn missing() -> Option<String> {
    if std::env::var_os("SLUICE_VM_TESTS").is_none_or(|v| v.is_empty() || v == "0") {
        return Some("SLUICE_VM_TESTS is not set".to_owned());
    }
    if !nix::unistd::geteuid().is_root() {
        return Some("building a guest's image needs root".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]).collect();
    let absent: Vec<&str> = TOOLS.into_iter().filter(|tool| !folders.iter().any(|f| f.join(tool).exists())).collect();
    (!absent.is_empty()).then(|| format!("not installed: {}", absent.join(", ")))
}

fn run(scenario: &str) {
    if let Some(reason) = missing() {
        println!("{scenario}: skipped: {reason}");
        return;
    }
    let beside = std::env::current_exe().expect("this program's path");
    let programs = beside.ancestors().nth(2).map(Path::to_owned).expect("target/PROFILE/deps/NAME");
    let programs = std::env::var_os("SLUICE_BIN").map_or(programs, PathBuf::from);
    for program in ["sluice", "sluice-ctld", "sluice-noded"] {
        assert!(programs.join(program).exists(), "{} is not built", programs.join(program).display());
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/scenarios.py");
    let status = Command::new("python3").arg(script).arg(scenario).env("SLUICE_BIN", programs).status();
    assert!(status.expect("python3 starts").success(), "scenario {scenario} failed; its output says why");
}

#[test]
fn jobs_outlive_restarts_and_kills_of_both_units_under_systemd() {
    run("systemd");
}

#[test]
fn nothing_acknowledged_is_lost_when_the_controllers_power_is_cut() {
    run("powercut");
}
