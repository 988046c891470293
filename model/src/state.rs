//! Job states as Slurm spells them (squeue's manual page, "JOB STATE CODES").

/// The base state of a job or step.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum JobState {
    Pending,
    /// Waiting, and held after an exit code for which the cluster asks somebody to look (RequeueExitHold).
    SpecialExit,
    Running,
    Suspended,
    /// Ended, but a node has not yet confirmed that everything of it is gone.
    Completing,
    Completed,
    Cancelled,
    Failed,
    Timeout,
    NodeFail,
    Preempted,
    BootFail,
    Deadline,
    OutOfMemory,
    /// How a run of a job ended that went back to the queue (accounting only).
    Requeued,
}

impl JobState {
    pub const ALL: [JobState; 15] = [
        JobState::Pending,
        JobState::SpecialExit,
        JobState::Running,
        JobState::Suspended,
        JobState::Completing,
        JobState::Completed,
        JobState::Cancelled,
        JobState::Failed,
        JobState::Timeout,
        JobState::NodeFail,
        JobState::Preempted,
        JobState::BootFail,
        JobState::Deadline,
        JobState::OutOfMemory,
        JobState::Requeued,
    ];

    /// `RUNNING`
    pub fn long(self) -> &'static str {
        match self {
            JobState::Pending => "PENDING",
            JobState::SpecialExit => "SPECIAL_EXIT",
            JobState::Running => "RUNNING",
            JobState::Suspended => "SUSPENDED",
            JobState::Completing => "COMPLETING",
            JobState::Completed => "COMPLETED",
            JobState::Cancelled => "CANCELLED",
            JobState::Failed => "FAILED",
            JobState::Timeout => "TIMEOUT",
            JobState::NodeFail => "NODE_FAIL",
            JobState::Preempted => "PREEMPTED",
            JobState::BootFail => "BOOT_FAIL",
            JobState::Deadline => "DEADLINE",
            JobState::OutOfMemory => "OUT_OF_MEMORY",
            JobState::Requeued => "REQUEUED",
        }
    }

    /// `R`
    pub fn short(self) -> &'static str {
        match self {
            JobState::Pending => "PD",
            JobState::SpecialExit => "SE",
            JobState::Running => "R",
            JobState::Suspended => "S",
            JobState::Completing => "CG",
            JobState::Completed => "CD",
            JobState::Cancelled => "CA",
            JobState::Failed => "F",
            JobState::Timeout => "TO",
            JobState::NodeFail => "NF",
            JobState::Preempted => "PR",
            JobState::BootFail => "BF",
            JobState::Deadline => "DL",
            JobState::OutOfMemory => "OOM",
            JobState::Requeued => "RQ",
        }
    }

    /// Accepts both forms in any case.
    pub fn parse(text: &str) -> Option<JobState> {
        JobState::ALL.into_iter().find(|s| s.long().eq_ignore_ascii_case(text) || s.short().eq_ignore_ascii_case(text))
    }

    /// In the queue, held or not.
    pub fn is_waiting(self) -> bool {
        matches!(self, JobState::Pending | JobState::SpecialExit)
    }

    /// Nothing more will happen to it.
    pub fn is_finished(self) -> bool {
        !self.is_waiting() && !matches!(self, JobState::Running | JobState::Suspended | JobState::Completing)
    }
}

/// How a process ended, as `code:signal` in ExitCode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ExitStatus {
    /// 0–255.
    pub code: u8,
    /// 0 when it was not killed by a signal.
    pub signal: u8,
}

impl ExitStatus {
    pub const SUCCESS: ExitStatus = ExitStatus { code: 0, signal: 0 };
    pub fn is_success(self) -> bool {
        self == ExitStatus::SUCCESS
    }
    /// From wait(2)'s status word.
    pub fn from_wait(status: i32) -> Self {
        ExitStatus { code: ((status >> 8) & 0xff) as u8, signal: (status & 0x7f) as u8 }
    }
    /// What a shell would give as `$?`: 128 + signal for a killed process.
    pub fn shell_code(self) -> u8 {
        if self.signal != 0 { 128u8.saturating_add(self.signal) } else { self.code }
    }
    /// For "the worst task": signals over codes, then the larger number.
    pub fn worse(self, other: Self) -> Self {
        std::cmp::max_by_key(self, other, |e| (e.signal, e.code))
    }
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}:{}", self.code, self.signal))
    }
}
