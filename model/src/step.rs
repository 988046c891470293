//! Steps and what they used.

use crate::ids::{NodeName, StepKey};
use crate::state::{ExitStatus, JobState};
use crate::text::OsBytes;
use crate::time::Time;

/// Resources used, from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    pub user_cpu_us: u64,
    pub system_cpu_us: u64,
    /// Largest resident set of any one task or process, bytes.
    pub max_rss_bytes: u64,
    pub max_vmsize_bytes: u64,
    pub major_faults: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Usage {
    /// Sums times and I/O, keeps the largest memory.
    pub fn merge(self, o: Usage) -> Usage {
        Usage {
            user_cpu_us: self.user_cpu_us.saturating_add(o.user_cpu_us),
            system_cpu_us: self.system_cpu_us.saturating_add(o.system_cpu_us),
            max_rss_bytes: self.max_rss_bytes.max(o.max_rss_bytes),
            max_vmsize_bytes: self.max_vmsize_bytes.max(o.max_vmsize_bytes),
            major_faults: self.major_faults.saturating_add(o.major_faults),
            read_bytes: self.read_bytes.saturating_add(o.read_bytes),
            written_bytes: self.written_bytes.saturating_add(o.written_bytes),
        }
    }
}

/// What of a task's use is compared with that of the others. The numbers are persisted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// User and system time, microseconds.
    Cpu = 1,
    /// Largest resident set, bytes.
    Rss = 2,
    /// Largest virtual size, bytes.
    VmSize = 3,
    MajorFaults = 4,
    /// Bytes.
    Read = 5,
    /// Bytes.
    Written = 6,
}

impl Measure {
    pub const ALL: [Measure; 6] =
        [Measure::Cpu, Measure::Rss, Measure::VmSize, Measure::MajorFaults, Measure::Read, Measure::Written];

    pub fn number(self) -> u32 {
        self as u32
    }
    pub fn from_number(number: u32) -> Option<Measure> {
        Measure::ALL.into_iter().find(|m| m.number() == number)
    }
    /// How much of it was used; None when it could not be measured (no program runs in no memory).
    pub fn of(self, usage: &Usage) -> Option<u64> {
        match self {
            Measure::Cpu => Some(usage.user_cpu_us.saturating_add(usage.system_cpu_us)),
            Measure::Rss => Some(usage.max_rss_bytes).filter(|n| *n > 0),
            Measure::VmSize => Some(usage.max_vmsize_bytes).filter(|n| *n > 0),
            Measure::MajorFaults => Some(usage.major_faults),
            Measure::Read => Some(usage.read_bytes),
            Measure::Written => Some(usage.written_bytes),
        }
    }
}

/// The task that used the most or the least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extreme {
    pub amount: u64,
    pub task: u32,
    /// The place of its node in the step's list.
    pub node: u32,
}

/// How the use of one thing was spread over a step's tasks (sacct's Ave*, Max* and Min* fields).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    pub measure: Measure,
    pub total: u64,
    /// Tasks that were measured.
    pub tasks: u32,
    pub largest: Extreme,
    pub smallest: Extreme,
}

impl Spread {
    /// Of a single task.
    pub fn of_task(task: u32, usage: &Usage) -> Vec<Spread> {
        let one = |measure: Measure| {
            let amount = measure.of(usage)?;
            let it = Extreme { amount, task, node: 0 };
            Some(Spread { measure, total: amount, tasks: 1, largest: it, smallest: it })
        };
        Measure::ALL.into_iter().filter_map(one).collect()
    }

    /// Takes in what other tasks used. Of several equals the first stays.
    pub fn join(all: &mut Vec<Spread>, others: impl IntoIterator<Item = Spread>) {
        for other in others {
            match all.iter_mut().find(|s| s.measure == other.measure) {
                None => all.push(other),
                Some(s) => {
                    s.total = s.total.saturating_add(other.total);
                    s.tasks = s.tasks.saturating_add(other.tasks);
                    if other.largest.amount > s.largest.amount {
                        s.largest = other.largest;
                    }
                    if other.smallest.amount < s.smallest.amount {
                        s.smallest = other.smallest;
                    }
                }
            }
        }
    }

    /// The same as part of a step in whose list its node has this place.
    pub fn on_node(self, node: u32) -> Spread {
        let at = |extreme: Extreme| Extreme { node, ..extreme };
        Spread { largest: at(self.largest), smallest: at(self.smallest), ..self }
    }
}

/// A step as the controller knows it: from the step manager's reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    pub key: StepKey,
    pub name: OsBytes,
    pub nodes: Vec<NodeName>,
    pub tasks: u32,
    pub cpus: u32,
    pub memory_mb: u64,
    /// `gres/gpu=2` …, empty when none.
    pub gres: Vec<crate::node::GresSpec>,
    pub start: Time,
    /// None while it runs.
    pub end: Option<Time>,
    pub state: JobState,
    pub exit: ExitStatus,
    pub usage: Usage,
    /// Of the tasks, when there are several; what is not known is left out.
    pub spread: Vec<Spread>,
    pub submit_line: OsBytes,
    /// `Block`, `Cyclic` …
    pub distribution: String,
    pub srun_host: String,
    pub srun_pid: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_tells_who_used_the_most_and_the_least() {
        let usage = |cpu, rss| Usage { user_cpu_us: cpu, max_rss_bytes: rss, ..Usage::default() };
        let mut all = Vec::new();
        Spread::join(&mut all, Spread::of_task(0, &usage(30, 100)).into_iter().map(|s| s.on_node(0)));
        Spread::join(&mut all, Spread::of_task(1, &usage(10, 0)).into_iter().map(|s| s.on_node(1)));
        Spread::join(&mut all, Spread::of_task(2, &usage(30, 300)).into_iter().map(|s| s.on_node(1)));
        let of = |measure| all.iter().find(|s| s.measure == measure).copied();
        let cpu = of(Measure::Cpu).unwrap();
        assert_eq!((cpu.total, cpu.tasks), (70, 3));
        assert_eq!(cpu.largest, Extreme { amount: 30, task: 0, node: 0 });
        assert_eq!(cpu.smallest, Extreme { amount: 10, task: 1, node: 1 });
        let rss = of(Measure::Rss).unwrap();
        assert_eq!((rss.total, rss.tasks, rss.largest.task, rss.smallest.task), (400, 2, 2, 0));
        assert_eq!(of(Measure::VmSize), None, "nobody was looked at in time");
        assert!(Measure::ALL.into_iter().all(|m| Measure::from_number(m.number()) == Some(m)));
    }
}
