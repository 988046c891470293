//! One module per command, and the table of all of them.
//!
//! Owns dispatch by name. A command that Slurm has and Sluice does not yet have is listed here with the reason, so that
//! calling it says so instead of "command not found".

pub mod config;
pub mod sacct;
pub mod sacctmgr;
pub mod salloc;
pub mod sbatch;
pub mod scancel;
pub mod scontrol;
pub mod sim;
pub mod sinfo;
pub mod sprio;
pub mod squeue;
pub mod srun;
pub mod sshare;
pub mod why;

use crate::getopt::OptionSpec;
use std::ffi::OsString;
use std::process::ExitCode;

/// A command under its name. `main` gets the words after the name.
pub struct Command {
    pub name: &'static str,
    pub about: &'static str,
    pub main: fn(Vec<OsString>) -> ExitCode,
    /// For help, documentation and completion.
    pub options: fn() -> &'static [OptionSpec],
}

/// Commands that answer to their own name as well as to `sluice NAME`.
pub static COMMANDS: &[Command] = &[
    Command { name: "sbatch", about: "submit a batch script", main: sbatch::main, options: sbatch::options },
    Command {
        name: "srun",
        about: "run tasks, in a job or in one of its own",
        main: srun::main,
        options: srun::options,
    },
    Command {
        name: "salloc",
        about: "get an allocation and run a command in it",
        main: salloc::main,
        options: salloc::options,
    },
    Command {
        name: "scancel",
        about: "signal or cancel jobs and steps",
        main: scancel::main,
        options: scancel::options,
    },
    Command { name: "squeue", about: "list jobs in the queue", main: squeue::main, options: squeue::options },
    Command { name: "sinfo", about: "list nodes and partitions", main: sinfo::main, options: sinfo::options },
    Command {
        name: "scontrol",
        about: "show and change jobs, nodes, partitions, configuration",
        main: scontrol::main,
        options: scontrol::options,
    },
    Command {
        name: "sacct",
        about: "list jobs and steps that ran, with what they used",
        main: sacct::main,
        options: sacct::options,
    },
    Command {
        name: "sacctmgr",
        about: "show and change accounts, users, associations and QOS",
        main: sacctmgr::main,
        options: sacctmgr::options,
    },
    Command { name: "sprio", about: "show the parts of jobs' priorities", main: sprio::main, options: sprio::options },
    Command {
        name: "sshare",
        about: "show shares and usage of accounts and users",
        main: sshare::main,
        options: sshare::options,
    },
];

/// Slurm's commands that come with later releases: name, what is lacking.
pub static LATER: &[(&str, &str)] = &[
    ("sattach", "attaching to a running step comes with a later release"),
    ("sbcast", "copying files to a job's nodes comes with a later release"),
    ("sreport", "reports come with a later release"),
    ("sstat", "live usage of steps comes with a later release"),
    ("sdiag", "scheduler statistics come with a later release"),
    ("scrontab", "periodic jobs come with a later release"),
    ("strigger", "triggers come with a later release"),
    ("swait", "waiting for the children of a step comes with a later release"),
];

/// The command that this process is: for lines said where no command is known.
pub fn called() -> String {
    let words = std::env::args_os().take(2);
    let mut names = words.filter_map(|w| Some(std::path::Path::new(&w).file_name()?.to_string_lossy().into_owned()));
    names.find(|name| find(name).is_some()).unwrap_or_else(|| "sluice".to_owned())
}

pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|c| c.name == name)
}

/// Says by name that a command of Slurm's is not there yet.
pub fn later(name: &str) -> Option<ExitCode> {
    let (name, reason) = LATER.iter().find(|(n, _)| *n == name)?;
    crate::errln!("{name}: error: {name} is not available: {reason}");
    Some(ExitCode::from(1))
}
