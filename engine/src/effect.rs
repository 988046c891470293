//! What the daemon has to do once the events are durable. Each is keyed and harmless to repeat; which ones are still
//! owed after a restart follows from the state: when a node registers, its launches and ends are decided again.

use sluice_model::{JobId, NodeName, StepId};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Tell every node of the allocation about the attempt; the first one starts the batch script if there is one.
    Launch { job: JobId, attempt: u32 },
    /// Send a signal to a job's processes on the node.
    Signal { node: NodeName, job: JobId, attempt: u32, step: Option<StepId>, signal: u8, batch: bool, steps: bool },
    /// Stop or continue all its processes there.
    Suspend { node: NodeName, job: JobId, attempt: u32, resume: bool },
    /// Kill whatever is left of the attempt, then report `AttemptGone`.
    EndAttempt { node: NodeName, job: JobId, attempt: u32 },
    /// Tell people and programs who wait (salloc, srun, sbatch --wait) that the job's state changed.
    Notify { job: JobId },
    /// A mail of this type (bits of `sluice_model::job::mail`).
    Mail { job: JobId, what: u32 },
    /// Write these finished jobs to the history, then command `Archived`.
    Archive { jobs: Vec<JobId> },
    /// Push the configuration to all nodes.
    PushConfig,
}
