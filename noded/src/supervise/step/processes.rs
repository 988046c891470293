//! The step's processes: killed to the last, reaped with what they used.

use super::Step;
use crate::{cgroup, procs};
use sluice_model::state::ExitStatus;
use sluice_model::step::{Spread, Usage};
use sluice_proto::v1;

impl Step {
    /// One round of killing; rounds repeat until wait(2) knows no child, which for a subreaper means that nothing is
    /// left.
    pub(super) fn kill_what_lives(&mut self) {
        let by_kernel = self.setup.cgroup.as_deref().is_some_and(|path| cgroup::kill(path).is_ok());
        // Also what is not in the group: a task on its way there, or a login shell's left-over.
        let round = self.killing.as_ref().map_or(0, |(_, round)| *round);
        if !by_kernel || round > 0 {
            procs::signal_descendants(std::process::id() as i32, libc::SIGKILL);
        }
        if let Some((_, round)) = &mut self.killing {
            *round = round.saturating_add(1);
        }
    }

    /// Takes the status and the usage of everything that has ended.
    pub(super) fn reap(&mut self) {
        loop {
            // SAFETY: waitid(2) fills the struct on the stack; the child stays a zombie until wait4 below.
            let (result, pid) = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
                (libc::waitid(libc::P_ALL, 0, &mut info, flags), info.si_pid())
            };
            if result != 0 {
                self.no_children = nix::errno::Errno::last() == nix::errno::Errno::ECHILD;
                return;
            }
            if pid == 0 {
                self.no_children = false;
                return;
            }
            let (read, written) = procs::io(pid);
            // SAFETY: wait4(2) fills both values on the stack.
            let (status, usage) = unsafe {
                let mut status = 0;
                let mut usage: libc::rusage = std::mem::zeroed();
                libc::wait4(pid, &mut status, 0, &mut usage);
                (status, usage)
            };
            let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
            let used = Usage {
                user_cpu_us: us(usage.ru_utime),
                system_cpu_us: us(usage.ru_stime),
                max_rss_bytes: usage.ru_maxrss as u64 * 1024,
                max_vmsize_bytes: 0,
                major_faults: usage.ru_majflt as u64,
                read_bytes: read,
                written_bytes: written,
            };
            self.usage = (&Usage::try_from(self.usage).unwrap_or_default().merge(used)).into();
            if let Some(task) = self.tasks.iter_mut().find(|t| t.pid == pid && t.exit.is_none()) {
                task.exit = Some(ExitStatus::from_wait(status));
                task.usage = task.usage.merge(used);
                task.core = libc::WIFSIGNALED(status) && libc::WCOREDUMP(status);
            }
        }
    }

    /// Peaks that the kernel does not hand over at the end.
    pub(super) fn sample(&mut self) {
        for pid in procs::descendants(std::process::id() as i32) {
            let sample = procs::sample(pid);
            self.usage.max_vmsize_bytes = self.usage.max_vmsize_bytes.max(sample.peak_vm_bytes);
            self.usage.max_rss_bytes = self.usage.max_rss_bytes.max(sample.peak_rss_bytes);
            if let Some(task) = self.tasks.iter_mut().find(|t| t.pid == pid && t.exit.is_none()) {
                task.usage.max_vmsize_bytes = task.usage.max_vmsize_bytes.max(sample.peak_vm_bytes);
                task.usage.max_rss_bytes = task.usage.max_rss_bytes.max(sample.peak_rss_bytes);
            }
        }
    }

    /// How the tasks of this node differ in what they used.
    pub(super) fn spread(&self) -> Vec<v1::UsageSpread> {
        let mut all = Vec::new();
        for task in self.tasks.iter().filter(|t| t.exit.is_some() && t.failure.is_none()) {
            Spread::join(&mut all, Spread::of_task(task.rank, &task.usage));
        }
        all.iter().map(Into::into).collect()
    }
}
