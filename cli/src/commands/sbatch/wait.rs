//! `sbatch --wait`: exits when the job has ended, as it did.

use super::NAME;
use crate::client::Client;
use crate::error::{CallError, print_call_error, refusal};
use crate::view::job as facts;
use crate::watch::{JobWatch, is_finished};
use sluice_model::Reason;
use sluice_proto::v1;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

/// A controller may be away for so long while we wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// The job's exit code, the highest one of an array's tasks; 1 for a job that was ended by a signal or never ran.
pub async fn wait(client: &mut Client, job: u32) -> ExitCode {
    client.set_patience(PATIENCE);
    let mut watch = JobWatch::new(job, true);
    let mut end = None;
    let mut told = BTreeSet::new();
    loop {
        match watch.next(client).await {
            Ok(Some(record)) => {
                tell(&record, &mut told);
                // A task of an array is shown when its script could not be started; the array goes on.
                if record.id == job {
                    end = is_finished(&record).then(|| code(&record));
                }
            }
            Ok(None) if end.is_some() => return ExitCode::from(end.unwrap_or(1)),
            // It ended so long ago that only the history knows it.
            Ok(None) => break,
            Err(e) if e.refusal_code() == Some(refusal::INVALID_JOB_ID) => break,
            Err(e) => return complain(&e),
        }
    }
    match from_history(client, job, &mut told).await {
        Ok(found) => ExitCode::from(found),
        Err(e) => complain(&e),
    }
}

fn complain(error: &CallError) -> ExitCode {
    print_call_error(NAME, "waiting for the job", error);
    ExitCode::from(1)
}

/// Why a script could not be started: nobody looks for that in the output file, which may not even exist. Once a job.
fn tell(record: &v1::JobRecord, told: &mut BTreeSet<u32>) {
    if let Some(detail) = launch_failure(record)
        && told.insert(record.id)
    {
        crate::errln!("{NAME}: error: Job {} could not be started: {detail}", facts::id(record, 64));
    }
}

fn launch_failure(record: &v1::JobRecord) -> Option<&str> {
    let outcome = record.outcome.as_ref().filter(|_| is_finished(record))?;
    (Reason::from_number(outcome.reason) == Reason::JobLaunchFailure).then_some(outcome.detail.as_deref()?)
}

async fn from_history(client: &mut Client, job: u32, told: &mut BTreeSet<u32>) -> Result<u8, CallError> {
    let request = v1::HistoryRequest { jobs: vec![v1::JobTarget { job, tasks: None }], ..Default::default() };
    let list = client.list_history(request).await?;
    list.jobs.iter().for_each(|record| tell(record, told));
    Ok(list.jobs.iter().filter(|j| is_finished(j)).map(code).max().unwrap_or(1))
}

fn code(record: &v1::JobRecord) -> u8 {
    let exit = record.outcome.as_ref().and_then(|o| o.exit).unwrap_or_default();
    let code = u8::try_from(exit.code).unwrap_or(u8::MAX);
    match (record.state.as_str(), code, exit.signal) {
        ("COMPLETED", 0, 0) => 0,
        (_, code, 0) if code > 0 => code,
        _ => 1,
    }
}
