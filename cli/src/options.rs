//! The options that sbatch, salloc and srun share, in one table.
//!
//! Owns which of the three has which option, and the environment variables that stand for options. Help, usage,
//! compatibility page and completion are made from it. Names follow Slurm 26.05's manual pages.

pub mod env;
mod table;

use crate::getopt::OptionSpec;
use std::sync::LazyLock;

/// One of the commands that ask for resources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitter {
    Sbatch,
    Salloc,
    Srun,
}

impl Submitter {
    pub const fn name(self) -> &'static str {
        match self {
            Submitter::Sbatch => "sbatch",
            Submitter::Salloc => "salloc",
            Submitter::Srun => "srun",
        }
    }

    /// What Slurm prints before the reason of a refused submission.
    pub const fn failure(self) -> &'static str {
        match self {
            Submitter::Sbatch => "Batch job submission failed",
            Submitter::Salloc => "Job submit/allocate failed",
            Submitter::Srun => "Unable to allocate resources",
        }
    }

    pub fn options(self) -> &'static [OptionSpec] {
        static SBATCH: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| select(table::B));
        static SALLOC: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| select(table::A));
        static SRUN: LazyLock<Vec<OptionSpec>> = LazyLock::new(|| select(table::R));
        match self {
            Submitter::Sbatch => &SBATCH,
            Submitter::Salloc => &SALLOC,
            Submitter::Srun => &SRUN,
        }
    }

    /// The row of an option, by its long name.
    pub fn option(self, key: &str) -> Option<&'static OptionSpec> {
        self.options().iter().find(|o| o.long == key)
    }
}

fn select(bit: u8) -> Vec<OptionSpec> {
    table::ROWS.iter().filter(|(commands, _)| commands & bit != 0).map(|(_, spec)| *spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_has_a_name_or_letter_twice() {
        for command in [Submitter::Sbatch, Submitter::Salloc, Submitter::Srun] {
            let options = command.options();
            for (i, a) in options.iter().enumerate() {
                for b in &options[i + 1..] {
                    assert_ne!(a.long, b.long, "{command:?}");
                    assert!(a.short.is_none() || a.short != b.short, "{command:?} -{:?}", a.short);
                }
            }
        }
    }

    /// Names from Slurm 26.05's manual pages: none may be missing, or scripts that use it stop at "unrecognized".
    #[test]
    fn every_option_of_slurm_is_known_by_name() {
        let sbatch = "account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment \
            consolidate-segments constraint container container-id container-type contiguous core-spec cores-per-socket \
            cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude exclusive \
            export export-file extra extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node \
            gpus-per-socket gpus-per-task gres gres-flags help hint hold ignore-pbs input job-name kill-on-invalid-dep \
            licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus network nice \
            no-kill no-requeue nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node \
            ntasks-per-socket oom-kill-step open-mode output overcommit oversubscribe parsable partition prefer \
            priority profile propagate qos quiet reboot requeue reservation resources resv-ports segment signal \
            sockets-per-node spread-job spread-segments stepmgr switches test-only thread-spec threads-per-core time \
            time-min tmp tres-bind tres-per-task uid usage use-min-nodes verbose version wait wait-all-nodes wckey wrap";
        let srun = "account acctg-freq async bb bbf bcast bcast-exclude begin chdir cluster-constraint clusters comment \
            compress consolidate-segments constraint container container-id container-type contiguous core-spec \
            cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency disable-status \
            distribution epilog error exact exclude exclusive export external-launcher extra extra-node-info gpu-bind \
            gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help het-group hint hold \
            ignore-signals immediate input job-name jobid kill-on-bad-exit label licenses mail-type mail-user mcs-label \
            mem mem-bind mem-per-cpu mem-per-gpu mem-update mincpus mpi msg-timeout multi-prog network nice no-allocate \
            no-kill nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket \
            oom-kill-step open-mode output overcommit overlap oversubscribe parsable partition prefer preserve-env \
            priority profile prolog propagate pty qos quiet quit-on-interrupt reboot relative reservation resources \
            resv-ports segment send-libs signal slurmd-debug sockets-per-node spread-job spread-segments stepmgr \
            switches task-epilog task-prolog test-only thread-spec threads threads-per-core time time-min tmp treewidth \
            tres-bind tres-per-task unbuffered usage use-min-nodes verbose version wait-for-children wait wckey x11";
        let salloc = "account acctg-freq bb bbf begin bell chdir cluster-constraint clusters comment \
            consolidate-segments constraint container container-id container-type contiguous core-spec cores-per-socket \
            cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution exclude exclusive extra \
            extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags help \
            hint hold immediate job-name kill-command licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu \
            mem-per-gpu mem-update mincpus network nice no-bell no-kill no-shell nodefile nodelist nodes ntasks \
            ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket oom-kill-step overcommit oversubscribe \
            partition prefer priority profile qos quiet reboot reservation resources resv-ports segment signal \
            sockets-per-node spread-job spread-segments stepmgr switches thread-spec threads-per-core time time-min tmp \
            tres-bind tres-per-task usage use-min-nodes verbose version wait-all-nodes wckey x11";
        for (command, names) in [(Submitter::Sbatch, sbatch), (Submitter::Srun, srun), (Submitter::Salloc, salloc)] {
            for name in names.split_whitespace() {
                assert!(command.option(name).is_some(), "{command:?} lacks --{name}");
            }
        }
    }
}
