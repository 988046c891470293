//! Finding and signalling all processes of a step, daemonised or not.
//!
//! A supervisor is a child subreaper: whatever its tasks fork, however often it forks again or opens sessions of its
//! own, stays a descendant of the supervisor. One scan of /proc by parent therefore finds everything.

use std::collections::BTreeMap;
use std::fs;

/// Parent and state letter from /proc/PID/stat. The command's name may hold blanks and brackets, so that fields are
/// counted from its last closing bracket (proc(5)).
fn parent_and_state(pid: i32) -> Option<(i32, u8)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let after = stat.iter().rposition(|b| *b == b')')? + 2;
    let mut fields = stat.get(after..)?.split(|b| *b == b' ');
    let state = *fields.next()?.first()?;
    let parent = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    Some((parent, state))
}

/// All living descendants of `root` (zombies left out), at one moment; a process forked during the scan may be missing,
/// which is why killing repeats it.
pub fn descendants(root: i32) -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<(i32, u8)>> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else { continue };
        if let Some((parent, state)) = parent_and_state(pid) {
            children.entry(parent).or_default().push((pid, state));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (pid, state) in children.remove(&parent).unwrap_or_default() {
            // A zombie's children have been given away already; still follow it, threads may keep some.
            open.push(pid);
            if state != b'Z' && state != b'X' {
                found.push(pid);
            }
        }
    }
    found
}

/// Sends `signal` to each descendant of `root`; says how many there were.
pub fn signal_descendants(root: i32, signal: i32) -> usize {
    let pids = descendants(root);
    for pid in &pids {
        // SAFETY: kill(2) with a pid and a signal number touches no memory. A process that ended meanwhile is no error.
        unsafe { libc::kill(*pid, signal) };
    }
    pids.len()
}

/// What a live process used so far, from /proc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub user_us: u64,
    pub system_us: u64,
    pub rss_bytes: u64,
    pub peak_rss_bytes: u64,
    pub peak_vm_bytes: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

/// Reads /proc/PID/{stat,status,io}; what can't be read stays 0.
pub fn sample(pid: i32) -> Sample {
    let mut sample = Sample::default();
    // SAFETY: sysconf(3) has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    if let Ok(stat) = fs::read(format!("/proc/{pid}/stat"))
        && let Some(end) = stat.iter().rposition(|b| *b == b')')
    {
        let fields: Vec<u64> = String::from_utf8_lossy(&stat[end + 1..])
            .split_ascii_whitespace()
            .skip(1)
            .map(|f| f.parse().unwrap_or(0))
            .collect();
        // proc(5) counts from 1 with the state as field 3: majflt 12, utime 14, stime 15.
        let field = |n: usize| fields.get(n - 4).copied().unwrap_or(0);
        sample.major_faults = field(12);
        sample.user_us = field(14) * 1_000_000 / ticks;
        sample.system_us = field(15) * 1_000_000 / ticks;
    }
    if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
        let kb = |key: &str| {
            status
                .lines()
                .find_map(|l| l.strip_prefix(key))
                .and_then(|v| v.split_ascii_whitespace().next()?.parse::<u64>().ok())
                .unwrap_or(0)
                * 1024
        };
        sample.rss_bytes = kb("VmRSS:");
        sample.peak_rss_bytes = kb("VmHWM:");
        sample.peak_vm_bytes = kb("VmPeak:");
    }
    let (read, written) = io(pid);
    sample.read_bytes = read;
    sample.written_bytes = written;
    sample
}

/// Bytes read and written (rchar, wchar would count the page cache; Slurm's AveDiskRead counts them so too) of a
/// process and of the children that it waited for. Readable until a zombie is reaped.
pub fn io(pid: i32) -> (u64, u64) {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/io")) else { return (0, 0) };
    let value = |key: &str| {
        text.lines().find_map(|l| l.strip_prefix(key)).and_then(|v| v.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    (value("rchar:"), value("wchar:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_among_the_descendants_and_a_stranger_is_not() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let me = std::process::id() as i32;
        assert!(descendants(me).contains(&(child.id() as i32)));
        assert!(!descendants(me).contains(&1));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!descendants(me).contains(&(child.id() as i32)));
    }

    #[test]
    fn a_sample_of_this_process_has_memory() {
        let sample = sample(std::process::id() as i32);
        assert!(sample.peak_vm_bytes >= sample.rss_bytes && sample.rss_bytes > 0);
    }
}
