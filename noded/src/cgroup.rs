//! The cgroup v2 folders of steps: found by the real mount, made, filled, killed, removed.
//!
//! Owns paths under the node daemon's own cgroup. Promises that a folder it hands out is in a version 2 hierarchy and
//! was writable. A hybrid host mounts version 2 at /sys/fs/cgroup/unified without controllers: good for killing alone,
//! which is why controllers are asked for, not the mount (kernel: Documentation/admin-guide/cgroup-v2.rst).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Mount points of cgroup2 in the text of /proc/self/mountinfo (proc(5): field 5, and the type after the lone dash).
fn mounts(mountinfo: &str) -> Vec<PathBuf> {
    mountinfo
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            (after.split(' ').next()? == "cgroup2").then(|| before.split(' ').nth(4).map(unescape)).flatten()
        })
        .collect()
}

/// Mount points are written with octal escapes for blanks and backslashes.
fn unescape(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes.get(i + 1..i + 4).filter(|d| bytes[i] == b'\\' && d.iter().all(|c| (b'0'..b'8').contains(c)));
        if let Some(d) = octal {
            out.push(((d[0] - b'0') << 6) | ((d[1] - b'0') << 3) | (d[2] - b'0'));
            i += 4;
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// The process's path in the version 2 hierarchy, from the text of /proc/self/cgroup.
fn own_path(cgroup: &str) -> Option<&str> {
    cgroup.lines().find_map(|l| l.strip_prefix("0::"))
}

/// A writable tree for this daemon's steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// `MOUNT/OWN/sluice-NAME`
    pub root: PathBuf,
    /// Controllers that folders below can use.
    pub controllers: Vec<String>,
}

/// The controllers that steps are given, where the kernel has them.
const CONTROLLERS: [&str; 5] = ["cpuset", "cpu", "io", "memory", "pids"];

/// Finds version 2's mount and makes `sluice-NAME` under `parent` (a path in the hierarchy, made for this by systemd or
/// an administrator), else under the daemon's own group. `None` when there is no writable one.
pub fn find(name: &str, parent: Option<&Path>) -> Option<Tree> {
    let above = folder(parent)?;
    let root = above.join(format!("sluice-{name}"));
    make(&root).ok()?;
    // The daemon's own group holds the daemon: the kernel would refuse, and it may not be ours to change.
    if parent.is_some() {
        enable(&above);
    }
    enable(&root);
    let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    Some(Tree { root, controllers: controllers.split_ascii_whitespace().map(str::to_owned).collect() })
}

/// The folder of a group, or of the calling process's own one.
fn folder(group: Option<&Path>) -> Option<PathBuf> {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let cgroup = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = match group {
        Some(group) => group.strip_prefix("/").unwrap_or(group),
        None => Path::new(own_path(&cgroup)?.trim_start_matches('/')),
    };
    mounts(&mountinfo).into_iter().map(|m| m.join(path)).find(|p| p.join("cgroup.procs").exists())
}

/// Hands on to groups below a group what controllers it has. One by one: what one kernel lacks must not cost the others.
pub fn enable(group: &Path) {
    for controller in CONTROLLERS {
        let _ = fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// Keeps the calling process's group, which systemd has delegated, for the jobs of node daemons: moves into a group
/// below it, so that groups beside that may have controllers (a group with processes of its own may not hand any on).
/// The node daemon's own unit can't be that group: systemd could not start the daemon again in it while jobs run there.
pub fn hold() -> io::Result<()> {
    let absent = || io::Error::new(io::ErrorKind::NotFound, "there is no cgroup v2 mount");
    let own = folder(None).ok_or_else(absent)?;
    let holder = own.join("holder");
    make(&holder)?;
    enter(&holder)?;
    enable(&own);
    Ok(())
}

/// Makes a folder; one that exists is fine.
pub fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Moves the calling process into the group.
pub fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), "0")
}

/// Kills everything in the group and below at once. An error means that the kernel can't (before 5.14): signal instead.
pub fn kill(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.kill"), "1")
}

/// Stops or thaws everything in the group.
pub fn freeze(path: &Path, frozen: bool) -> io::Result<()> {
    fs::write(path.join("cgroup.freeze"), if frozen { "1" } else { "0" })
}

/// The largest memory use of the group in bytes, where the memory controller is on.
pub fn memory_peak(path: &Path) -> Option<u64> {
    fs::read_to_string(path.join("memory.peak")).ok()?.trim().parse().ok()
}

/// Whether a process is in the group or below.
pub fn populated(path: &Path) -> bool {
    fs::read_to_string(path.join("cgroup.events")).is_ok_and(|t| t.lines().any(|l| l == "populated 1"))
}

/// Removes the group with all groups that its processes made below. One still in use stays.
pub fn remove(path: &Path) {
    if let Ok(entries) = fs::read_dir(path) {
        for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

/// Writes into the daemon's state which group it has made, for whoever tidies up after one that was killed, and removes
/// the former one if it is another. What can't be written only stays empty groups.
pub fn note(state: &Path, tree: Option<&Tree>) {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let file = state.join("cgroup");
    let root = tree.map(|t| t.root.as_path());
    let former = fs::read(&file).ok().map(|bytes| PathBuf::from(std::ffi::OsString::from_vec(bytes)));
    if let Some(former) = former.filter(|f| Some(f.as_path()) != root && f.join("cgroup.procs").exists()) {
        remove(&former);
    }
    if let Err(error) = fs::write(&file, root.map_or(&b""[..], |r| r.as_os_str().as_bytes())) {
        tracing::warn!(file = %file.display(), %error, "the daemon's cgroup is not written down");
    }
}

/// What full isolation needs and the tree lacks, in words for the node's report.
pub fn missing(tree: Option<&Tree>) -> Vec<String> {
    let Some(tree) = tree else { return vec!["a writable cgroup v2 tree".to_owned()] };
    ["cpuset", "memory", "pids"]
        .iter()
        .filter(|c| !tree.controllers.iter().any(|have| have == *c))
        .map(|c| format!("the cgroup v2 controller {c}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_written_down_and_a_former_one_that_is_no_cgroup_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let group = |name: &str| {
            let root = dir.path().join(name);
            fs::create_dir_all(root.join("job_1.0/step_0")).unwrap();
            Tree { root, controllers: Vec::new() }
        };
        let (old, new) = (group("sluice-old"), group("sluice-new"));
        note(dir.path(), Some(&old));
        note(dir.path(), Some(&new));
        assert!(old.root.join("job_1.0/step_0").exists());
        assert_eq!(fs::read(dir.path().join("cgroup")).unwrap(), new.root.to_str().unwrap().as_bytes());
    }

    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let text = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                    36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n\
                    41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:1 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounts(text), [PathBuf::from("/sys/fs/cgroup/uni fied")]);
        assert_eq!(mounts("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"), [] as [PathBuf; 0]);
        assert_eq!(own_path("3:cpu:/x\n0::/system.slice/a\n"), Some("/system.slice/a"));
    }

    #[test]
    fn a_tree_without_controllers_says_which_are_missing() {
        let bare = Tree { root: "/x".into(), controllers: vec!["memory".into()] };
        assert_eq!(missing(Some(&bare)).len(), 2);
        assert_eq!(missing(None), ["a writable cgroup v2 tree"]);
    }
}
