//! Environment variables that stand for options (manual pages, "INPUT ENVIRONMENT VARIABLES").
//!
//! They beat `#SBATCH` lines and lose to the command line.

use super::Submitter;
use crate::getopt::{Arg, Given};
use std::ffi::{OsStr, OsString};

/// `_SUFFIX` → long option, for variables named after their command: SBATCH_SUFFIX, SALLOC_SUFFIX, SLURM_SUFFIX.
const BY_SUFFIX: &[(&str, &str)] = &[
    ("ACCOUNT", "account"),
    ("ACCTG_FREQ", "acctg-freq"),
    ("BELL", "bell"),
    ("BURST_BUFFER", "bb"),
    ("CLUSTERS", "clusters"),
    ("CONSTRAINT", "constraint"),
    ("CORE_SPEC", "core-spec"),
    ("CPUS_PER_GPU", "cpus-per-gpu"),
    ("DELAY_BOOT", "delay-boot"),
    ("DISTRIBUTION", "distribution"),
    ("EXCLUSIVE", "exclusive"),
    ("GPU_BIND", "gpu-bind"),
    ("GPU_FREQ", "gpu-freq"),
    ("GPUS", "gpus"),
    ("GPUS_PER_NODE", "gpus-per-node"),
    ("GPUS_PER_TASK", "gpus-per-task"),
    ("GRES", "gres"),
    ("GRES_FLAGS", "gres-flags"),
    ("HINT", "hint"),
    ("MEM_BIND", "mem-bind"),
    ("MEM_PER_CPU", "mem-per-cpu"),
    ("MEM_PER_GPU", "mem-per-gpu"),
    ("MEM_PER_NODE", "mem"),
    ("NETWORK", "network"),
    ("NO_KILL", "no-kill"),
    ("OVERCOMMIT", "overcommit"),
    ("PARTITION", "partition"),
    ("PROFILE", "profile"),
    ("QOS", "qos"),
    ("REQ_SWITCH", "switches"),
    ("RESERVATION", "reservation"),
    ("SEGMENT_SIZE", "segment"),
    ("SIGNAL", "signal"),
    ("SPREAD_JOB", "spread-job"),
    ("THREAD_SPEC", "thread-spec"),
    ("THREADS_PER_CORE", "threads-per-core"),
    ("TIMELIMIT", "time"),
    ("TRES_BIND", "tres-bind"),
    ("TRES_PER_TASK", "tres-per-task"),
    ("USE_MIN_NODES", "use-min-nodes"),
    ("WCKEY", "wckey"),
];

/// What only sbatch has.
const SBATCH: &[(&str, &str)] = &[
    ("SLURM_CLUSTERS", "clusters"),
    ("SLURM_HINT", "hint"),
    ("SBATCH_ARRAY_INX", "array"),
    ("SBATCH_BATCH", "batch"),
    ("SBATCH_CONTAINER", "container"),
    ("SBATCH_CONTAINER_ID", "container-id"),
    ("SBATCH_CONTAINER_TYPE", "container-type"),
    ("SBATCH_ERROR", "error"),
    ("SBATCH_EXPORT", "export"),
    ("SBATCH_GET_USER_ENV", "get-user-env"),
    ("SBATCH_IGNORE_PBS", "ignore-pbs"),
    ("SBATCH_INPUT", "input"),
    ("SBATCH_JOB_NAME", "job-name"),
    ("SBATCH_NO_REQUEUE", "no-requeue"),
    ("SBATCH_OPEN_MODE", "open-mode"),
    ("SBATCH_OUTPUT", "output"),
    ("SBATCH_REQUEUE", "requeue"),
    ("SBATCH_WAIT", "wait"),
    ("SBATCH_WAIT_ALL_NODES", "wait-all-nodes"),
];

const SALLOC: &[(&str, &str)] = &[
    ("SLURM_CLUSTERS", "clusters"),
    ("SLURM_HINT", "hint"),
    ("SALLOC_CONTAINER", "container"),
    ("SALLOC_CONTAINER_ID", "container-id"),
    ("SALLOC_CONTAINER_TYPE", "container-type"),
    ("SALLOC_IMMEDIATE", "immediate"),
    ("SALLOC_KILL_CMD", "kill-command"),
    ("SALLOC_NO_BELL", "no-bell"),
    ("SALLOC_WAIT_ALL_NODES", "wait-all-nodes"),
];

/// What only srun has. A variable later in the list wins over an earlier one of the same option.
const SRUN: &[(&str, &str)] = &[
    ("SLURM_BCAST", "bcast"),
    ("SLURM_COMPRESS", "compress"),
    ("SLURM_CPU_BIND", "cpu-bind"),
    ("SLURM_CPU_FREQ_REQ", "cpu-freq"),
    ("SLURM_CPUS_PER_TASK", "cpus-per-task"),
    ("SRUN_CPUS_PER_TASK", "cpus-per-task"),
    ("SLURM_DEPENDENCY", "dependency"),
    ("SLURM_DISABLE_STATUS", "disable-status"),
    ("SLURM_EPILOG", "epilog"),
    ("SLURM_EXACT", "exact"),
    ("SLURM_EXPORT_ENV", "export"),
    ("SRUN_EXPORT_ENV", "export"),
    ("SLURM_IMMEDIATE", "immediate"),
    ("SLURM_JOB_NAME", "job-name"),
    ("SLURM_KILL_BAD_EXIT", "kill-on-bad-exit"),
    ("SLURM_LABELIO", "label"),
    ("SLURM_MPI_TYPE", "mpi"),
    ("SLURM_NNODES", "nodes"),
    ("SLURM_JOB_NUM_NODES", "nodes"),
    ("SLURM_NPROCS", "ntasks"),
    ("SLURM_NTASKS", "ntasks"),
    ("SLURM_NTASKS_PER_CORE", "ntasks-per-core"),
    ("SLURM_NTASKS_PER_GPU", "ntasks-per-gpu"),
    ("SLURM_NTASKS_PER_NODE", "ntasks-per-node"),
    ("SLURM_NTASKS_PER_SOCKET", "ntasks-per-socket"),
    ("SLURM_OPEN_MODE", "open-mode"),
    ("SLURM_OVERLAP", "overlap"),
    ("SLURM_PROLOG", "prolog"),
    ("SLURM_RESV_PORTS", "resv-ports"),
    ("SLURM_SEND_LIBS", "send-libs"),
    ("SLURM_STEP_GRES", "gres"),
    ("SLURM_TASK_EPILOG", "task-epilog"),
    ("SLURM_TASK_PROLOG", "task-prolog"),
    ("SLURM_THREADS", "threads"),
    ("SLURM_UNBUFFEREDIO", "unbuffered"),
    ("SLURM_WAIT", "wait"),
    ("SLURM_WORKING_DIR", "chdir"),
    ("SLURM_REMOTE_CWD", "chdir"),
    ("SLURMD_DEBUG", "slurmd-debug"),
    ("SRUN_CONTAINER", "container"),
    ("SRUN_ERROR", "error"),
    ("SRUN_INPUT", "input"),
    ("SRUN_OUTPUT", "output"),
    ("SRUN_SEGMENT_SIZE", "segment"),
];

/// Every variable that is set, as the option for which it stands, weakest first.
pub fn options(command: Submitter, lookup: &dyn Fn(&str) -> Option<OsString>) -> Vec<(String, Given)> {
    let (prefix, own) = match command {
        Submitter::Sbatch => ("SBATCH", SBATCH),
        Submitter::Salloc => ("SALLOC", SALLOC),
        Submitter::Srun => ("SLURM", SRUN),
    };
    let by_suffix = BY_SUFFIX.iter().map(|(suffix, key)| (format!("{prefix}_{suffix}"), *key));
    let own = own.iter().map(|(name, key)| ((*name).to_owned(), *key));
    by_suffix
        .chain(own)
        .filter_map(|(name, key)| {
            let spec = command.option(key)?;
            let value = lookup(&name)?;
            let value = match spec.arg {
                Arg::None if !is_yes(&value) => return None,
                Arg::None => None,
                Arg::Optional(_) if value.is_empty() => None,
                Arg::Optional(_) | Arg::Required(_) => Some(value),
            };
            Some((name, Given { spec, value }))
        })
        .collect()
}

/// Empty, `yes`, or a number other than 0 switches a flag on (sbatch's manual page).
fn is_yes(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    text.is_empty() || text.eq_ignore_ascii_case("yes") || text.parse::<i64>().is_ok_and(|n| n != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(command: Submitter, vars: &[(&str, &str)]) -> Vec<(&'static str, Option<String>)> {
        let vars: Vec<(String, OsString)> = vars.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let lookup = move |name: &str| vars.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        options(command, &lookup)
            .into_iter()
            .map(|(_, g)| (g.key(), g.value.map(|v| v.to_string_lossy().into_owned())))
            .collect()
    }

    #[test]
    fn flags_are_on_when_empty_yes_or_not_zero() {
        for (value, on) in [("", true), ("yes", true), ("1", true), ("0", false), ("no", false), ("maybe", false)] {
            assert_eq!(given(Submitter::Sbatch, &[("SBATCH_WAIT", value)]).len(), usize::from(on), "{value:?}");
        }
    }

    #[test]
    fn the_newer_spelling_wins_by_coming_later() {
        let got = given(Submitter::Srun, &[("SLURM_NTASKS", "4"), ("SLURM_NPROCS", "2")]);
        assert_eq!(got, [("ntasks", Some("2".into())), ("ntasks", Some("4".into()))]);
    }

    #[test]
    fn every_name_stands_for_an_option_of_its_command() {
        for (command, table) in [(Submitter::Sbatch, SBATCH), (Submitter::Salloc, SALLOC), (Submitter::Srun, SRUN)] {
            for (name, key) in table {
                assert!(command.option(key).is_some(), "{name} stands for --{key}");
            }
        }
        for (suffix, key) in BY_SUFFIX {
            assert!(Submitter::Salloc.option(key).is_some(), "{suffix} stands for --{key}");
        }
    }
}
