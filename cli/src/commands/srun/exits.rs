//! How tasks ended: Slurm's messages and srun's exit code.
//!
//! Pure. Collects ends, groups those of one node and kind, and keeps the worst.

use sluice_model::IndexSet;
use sluice_model::state::ExitStatus;
use std::collections::BTreeMap;

/// Ends of tasks, told and untold.
#[derive(Default)]
pub struct Exits {
    /// By node's place, status, and whether memory was dumped: tasks not told of yet.
    untold: BTreeMap<(usize, ExitStatus, bool), IndexSet>,
    worst: ExitStatus,
    /// Tasks that ended, and those that ended badly.
    pub ended: IndexSet,
    pub failed: IndexSet,
    by_signal: bool,
}

impl Exits {
    pub fn add(&mut self, node: usize, task: u32, exit: ExitStatus, core: bool) {
        self.ended.insert(task);
        self.note(exit);
        if !exit.is_success() {
            self.failed.insert(task);
            self.untold.entry((node, exit, core)).or_default().insert(task);
        }
        self.by_signal |= exit.signal != 0 && !dumps_core(exit.signal);
    }

    /// A part ended in a way that no task tells of.
    pub fn add_part(&mut self, exit: ExitStatus) {
        self.note(exit);
    }

    fn note(&mut self, exit: ExitStatus) {
        if exit.shell_code() > self.worst.shell_code() {
            self.worst = exit;
        }
    }

    pub fn worst(&self) -> ExitStatus {
        self.worst
    }

    pub fn has_untold(&self) -> bool {
        !self.untold.is_empty()
    }

    /// One line for each node and kind of end, without the program's name.
    pub fn tell(&mut self, nodes: &[String]) -> Vec<String> {
        std::mem::take(&mut self.untold)
            .into_iter()
            .map(|((node, exit, core), tasks)| {
                let plural = if tasks.len() == 1 { "task" } else { "tasks" };
                let name = nodes.get(node).map_or("?", String::as_str);
                let dumped = if core { " (core dumped)" } else { "" };
                format!("error: {name}: {plural} {}: {}{dumped}", tasks.plain(), describe(exit))
            })
            .collect()
    }

    /// What srun exits with: the worst of its tasks.
    pub fn code(&self) -> u8 {
        self.worst.shell_code()
    }

    /// A task was killed from outside.
    pub fn killed(&self) -> bool {
        self.by_signal
    }
}

fn dumps_core(signal: u8) -> bool {
    use nix::libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT, SIGSEGV, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};
    [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS].contains(&i32::from(signal))
}

/// `Exited with exit code 4`, `Killed`.
pub fn describe(exit: ExitStatus) -> String {
    match exit.signal {
        0 => format!("Exited with exit code {}", exit.code),
        signal => signal_text(signal),
    }
}

/// strsignal(3).
fn signal_text(signal: u8) -> String {
    // SAFETY: strsignal takes any number and returns a C string that is valid until the next call; it is copied here,
    // and this program has one thread that calls it.
    let text = unsafe { nix::libc::strsignal(i32::from(signal)) };
    if text.is_null() {
        return format!("Signal {signal}");
    }
    // SAFETY: not null, see above.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(code: u8, signal: u8) -> ExitStatus {
        ExitStatus { code, signal }
    }

    #[test]
    fn tasks_of_a_node_that_ended_alike_share_a_line() {
        let nodes = ["node0".to_owned(), "node1".to_owned()];
        let mut exits = Exits::default();
        for task in [0, 2, 3] {
            exits.add(0, task, exit(0, 9), false);
        }
        exits.add(0, 1, exit(0, 0), false);
        exits.add(1, 4, exit(4, 0), false);
        assert_eq!(
            exits.tell(&nodes),
            ["error: node0: tasks 0,2-3: Killed", "error: node1: task 4: Exited with exit code 4"]
        );
        assert!(exits.tell(&nodes).is_empty(), "each end is told once");
        assert_eq!(exits.code(), 137);
        assert!(exits.killed());
    }

    #[test]
    fn the_exit_code_is_the_worst_tasks() {
        let mut exits = Exits::default();
        exits.add(0, 0, exit(1, 0), false);
        exits.add(0, 1, exit(2, 0), false);
        exits.add(0, 2, exit(0, 0), false);
        assert_eq!(exits.code(), 2);
        assert!(!exits.killed());
    }

    #[test]
    fn a_crash_is_no_forced_end() {
        let mut exits = Exits::default();
        exits.add(0, 0, exit(0, 11), false);
        exits.add(0, 1, exit(0, 11), true);
        assert_eq!(exits.code(), 139);
        assert!(!exits.killed());
        assert_eq!(
            exits.tell(&["n".to_owned()]),
            ["error: n: task 0: Segmentation fault", "error: n: task 1: Segmentation fault (core dumped)"]
        );
    }
}
