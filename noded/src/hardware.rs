//! What this machine has, from /proc and /sys.
//!
//! Owns reading; says nothing about what the configuration expects. The roots are arguments, so that tests can show
//! other machines.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hardware {
    pub hostname: String,
    pub sockets: u32,
    pub cores: u32,
    /// Logical CPUs that are online.
    pub cpus: u32,
    pub memory_mb: u64,
    /// Seconds since the epoch.
    pub boot_time: i64,
    pub arch: String,
    pub os: String,
}

/// This machine.
pub fn find() -> Hardware {
    let mut found = read(Path::new("/proc"), Path::new("/sys"));
    if let Ok(name) = nix::unistd::gethostname() {
        found.hostname = name.to_string_lossy().into_owned();
    }
    if let Ok(name) = nix::sys::utsname::uname() {
        found.arch = name.machine().to_string_lossy().into_owned();
        found.os = format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy());
    }
    found
}

fn read(proc: &Path, sys: &Path) -> Hardware {
    let mut found = Hardware::default();
    let cpus = sys.join("devices/system/cpu");
    let online = fs::read_to_string(cpus.join("online")).unwrap_or_default();
    let online = sluice_model::IndexSet::parse(online.trim(), u32::MAX).map(|(set, _)| set).unwrap_or_default();
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    for cpu in online.iter() {
        let topology = cpus.join(format!("cpu{cpu}/topology"));
        let id = |name: &str| {
            fs::read_to_string(topology.join(name)).ok().and_then(|t| t.trim().parse::<i64>().ok()).unwrap_or(0)
        };
        sockets.insert(id("physical_package_id"));
        cores.insert((id("physical_package_id"), id("core_id")));
    }
    found.cpus = u32::try_from(online.len()).unwrap_or(u32::MAX).max(1);
    found.sockets = (sockets.len() as u32).max(1);
    found.cores = (cores.len() as u32).max(1);
    found.memory_mb = meminfo(proc, "MemTotal:") / 1024;
    let stat = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    found.boot_time =
        stat.lines().find_map(|l| l.strip_prefix("btime ")).and_then(|t| t.trim().parse().ok()).unwrap_or(0);
    found
}

/// A value of /proc/meminfo, KiB.
fn meminfo(proc: &Path, key: &str) -> u64 {
    let text = fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix(key))
        .and_then(|v| v.split_ascii_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// The load of the last minute in hundredths, and free memory in MiB (as `free`: what programs could still take).
pub fn health() -> (u32, u64) {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
    ((load * 100.0) as u32, meminfo(Path::new("/proc"), "MemAvailable:") / 1024)
}

/// For people, as `slurmd -C`: one line with which the node can be configured, and since when it is up.
pub fn describe(found: &Hardware) -> String {
    format!(
        "[[node]]\nname = \"{}\"\ncpus = {}\nsockets = {}\ncores_per_socket = {}\nthreads_per_core = {}\nmemory_mb = {}\n",
        found.hostname,
        found.cpus,
        found.sockets,
        (found.cores / found.sockets).max(1),
        (found.cpus / found.cores).max(1),
        found.memory_mb,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sockets_of_two_cores_with_two_threads() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (root.path().join("proc"), root.path().join("sys"));
        let cpus = sys.join("devices/system/cpu");
        for cpu in 0..8 {
            let topology = cpus.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), format!("{}\n", cpu / 4)).unwrap();
            fs::write(topology.join("core_id"), format!("{}\n", cpu / 2 % 2)).unwrap();
        }
        fs::write(cpus.join("online"), "0-7\n").unwrap();
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("meminfo"), "MemTotal:        2048000 kB\nMemFree: 1 kB\n").unwrap();
        fs::write(proc.join("stat"), "cpu 1\nbtime 1700000000\n").unwrap();
        let found = read(&proc, &sys);
        assert_eq!((found.sockets, found.cores, found.cpus, found.memory_mb), (2, 4, 8, 2000));
        assert_eq!(found.boot_time, 1_700_000_000);
        assert!(describe(&found).contains("cores_per_socket = 2\nthreads_per_core = 2"));
    }

    #[test]
    fn this_machine_has_something() {
        let found = find();
        assert!(found.cpus > 0 && found.memory_mb > 0 && !found.hostname.is_empty());
    }
}
