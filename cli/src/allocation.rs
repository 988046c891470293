//! An allocation of one's own, for salloc and srun.
//!
//! Owns asking for it, waiting until it is granted, and giving it back. Promises that an allocation is never left
//! behind: whoever waits and is told to stop cancels it first.

use crate::client::{Client, Controller, Retry};
use crate::errln;
use crate::error::{CallError, print_call_error};
use crate::options::Submitter;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::watch::{JobWatch, is_finished, is_running};
use sluice_model::{JobState, Reason};
use sluice_proto::v1;
use std::time::Duration;
use tokio::time::Instant;

/// A job that starts within this time never had to wait, as far as its user is told.
const AT_ONCE: Duration = Duration::from_millis(400);
/// The end of an allocation must get through, even if the controller is away for longer.
const COMPLETE_PATIENCE: Duration = Duration::from_secs(300);

/// A granted allocation and the stream that tells what becomes of it.
pub struct Granted {
    pub job: u32,
    pub record: v1::JobRecord,
    pub watch: JobWatch,
}

/// What the user was already told; the rest of the message is printed by the caller.
#[derive(Debug)]
pub struct NotGranted {
    pub exit: u8,
}

/// Submits and waits for the start.
pub async fn obtain(
    client: &mut Client,
    settings: &Settings,
    request: v1::SubmitRequest,
    signals: &mut Signals,
) -> Result<Granted, NotGranted> {
    let name = settings.command.name();
    let told = |e: CallError| {
        print_call_error(name, settings.command.failure(), &e);
        NotGranted { exit: 1 }
    };
    let job = crate::commands::sbatch::submit(name, client, request).await.map_err(told)?;
    let talk = Talk { settings, job };
    let mut watch = JobWatch::new(job, false);
    let submitted = Instant::now();
    let tell_at = submitted + AT_ONCE;
    let give_up = settings.job.immediate_secs.map(|secs| submitted + Duration::from_secs(u64::from(secs) + 2));
    let mut last: Option<v1::JobRecord> = None;
    let mut waiting = false;
    loop {
        let next_tick = match (waiting, give_up) {
            (false, Some(at)) => Some(at.min(tell_at)),
            (false, None) => Some(tell_at),
            (true, at) => at,
        };
        tokio::select! {
            record = watch.next(client) => {
                let record = record.map_err(told)?;
                match record {
                    Some(record) if is_running(&record) => {
                        if waiting {
                            talk.say(format!("job {job} has been allocated resources"));
                        }
                        return Ok(Granted { job, record, watch });
                    }
                    Some(record) if !is_finished(&record) && !over(&record) => last = Some(record),
                    Some(record) => return Err(talk.never_started(Some(&record))),
                    None => return Err(talk.never_started(last.as_ref())),
                }
            }
            signal = signals.next_stop() => {
                cancel(client, job).await;
                talk.revoked(signal);
                return Err(NotGranted { exit: 1 });
            }
            () = sleep_until(next_tick) => {
                if give_up.is_some_and(|at| Instant::now() >= at) {
                    cancel(client, job).await;
                    return Err(talk.busy());
                }
                if !waiting {
                    waiting = true;
                    talk.queued(last.as_ref());
                }
            }
        }
    }
}

/// Completing before it ever was seen running: it ended at once.
fn over(record: &v1::JobRecord) -> bool {
    crate::watch::state(record) == Some(JobState::Completing)
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What is said while waiting, in Slurm's words.
struct Talk<'a> {
    settings: &'a Settings,
    job: u32,
}

impl Talk<'_> {
    fn name(&self) -> &'static str {
        self.settings.command.name()
    }

    fn say(&self, text: String) {
        if !self.settings.client.quiet {
            errln!("{}: {text}", self.name());
        }
    }

    /// Whoever wants it at once or not at all is told only that it was not to be had.
    fn queued(&self, record: Option<&v1::JobRecord>) {
        if self.settings.job.immediate_secs.is_some() {
            return;
        }
        match record.map(|r| Reason::from_number(r.reason)) {
            Some(Reason::JobHeldUser | Reason::JobHeldAdmin) => {
                self.say("Job is in held state, pending scheduler release".to_owned());
            }
            Some(Reason::PartitionNodeLimit | Reason::PartitionTimeLimit | Reason::PartitionDown) => {
                self.say("Requested partition configuration not available now".to_owned());
            }
            _ => {}
        }
        if self.settings.command == Submitter::Salloc {
            self.say(format!("Pending job allocation {}", self.job));
        }
        self.say(format!("job {} queued and waiting for resources", self.job));
    }

    fn busy(&self) -> NotGranted {
        errln!("{}: error: Unable to allocate resources: Requested nodes are busy", self.name());
        self.revoked_line();
        NotGranted { exit: exit_immediate() }
    }

    fn never_started(&self, record: Option<&v1::JobRecord>) -> NotGranted {
        let reason = record
            .and_then(|r| r.outcome.as_ref().map(|o| o.reason).or(Some(r.reason)))
            .map_or(Reason::None, Reason::from_number);
        if reason == Reason::Immediate {
            return self.busy();
        }
        self.revoked_line();
        self.say("Job has been cancelled".to_owned());
        let text = "Job/step already completing or completed";
        errln!("{}: error: {}: {text}", self.name(), self.settings.command.failure());
        NotGranted { exit: 1 }
    }

    fn revoked_line(&self) {
        let dot = if self.settings.command == Submitter::Salloc { "." } else { "" };
        self.say(format!("Job allocation {} has been revoked{dot}", self.job));
    }

    fn revoked(&self, signal: i32) {
        self.revoked_line();
        match self.settings.command {
            Submitter::Srun => self.say(format!("Force Terminated JobId={}", self.job)),
            _ if signal == nix::libc::SIGINT => self.say("Job aborted due to signal".to_owned()),
            _ => {}
        }
    }
}

/// SLURM_EXIT_IMMEDIATE replaces the exit code of `--immediate`.
pub fn exit_immediate() -> u8 {
    std::env::var("SLURM_EXIT_IMMEDIATE").ok().and_then(|v| v.parse().ok()).unwrap_or(1)
}

/// Cancels a job of ours; errors are of no use to anyone here.
pub async fn cancel(client: &mut Client, job: u32) {
    let target = v1::JobTarget { job, tasks: None };
    let action = v1::control_request::Action::Cancel(v1::CancelAction { target: Some(target) });
    let request = v1::ControlRequest { action: Some(action) };
    let sent = client.call(Retry::Harmless, async |mut c: Controller| c.control(request.clone()).await).await;
    if let Err(e @ (CallError::Unreachable { .. } | CallError::NoAnswer { .. })) = sent {
        errln!("error: job {job} may still be queued: {e}");
    }
}

/// Gives the allocation back. Returns when the controller has it on disk.
pub async fn complete(client: &mut Client, job: u32, exit: v1::ExitStatus) -> Result<(), CallError> {
    client.set_patience(COMPLETE_PATIENCE);
    let request = v1::CompleteAllocationRequest { job, exit: Some(exit) };
    let sent = client.call(Retry::Harmless, async |mut c: Controller| c.complete_allocation(request).await).await;
    match sent {
        // It ended by itself meanwhile.
        Err(CallError::Refused(_)) | Ok(_) => Ok(()),
        Err(e) => Err(e),
    }
}

/// The credential with which steps of a running job are made.
pub async fn credential(client: &mut Client, job: u32) -> Result<v1::JobCredential, CallError> {
    let request = v1::JobIdRequest { job, array_index: None };
    let reply = client.call(Retry::Read, async |mut c: Controller| c.get_job_credential(request).await).await?;
    reply.credential.ok_or_else(|| CallError::Failed { problem: "the controller sent no credential".to_owned() })
}

/// What the credential says.
pub fn read_credential(credential: &v1::JobCredential) -> Result<v1::JobCredentialBody, CallError> {
    use prost::Message as _;
    v1::JobCredentialBody::decode(credential.body.as_ref())
        .map_err(|e| CallError::Failed { problem: format!("the job's credential can't be read: {e}") })
}
