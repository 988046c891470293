//! `sbatch --wait`: exits when the job has ended, as it did.

use super::NAME;
use crate::client::Client;
use crate::error::{CallError, print_call_error, refusal};
use crate::watch::{JobWatch, is_finished};
use sluice_proto::v1;
use std::process::ExitCode;
use std::time::Duration;

/// A controller may be away for so long while we wait.
const PATIENCE: Duration = Duration::from_secs(600);

/// The job's exit code, the highest one of an array's tasks; 1 for a job that was ended by a signal or never ran.
pub async fn wait(client: &mut Client, job: u32) -> ExitCode {
    client.set_patience(PATIENCE);
    let mut watch = JobWatch::new(job, true);
    let mut worst = 0;
    loop {
        match watch.next(client).await {
            Ok(Some(record)) if is_finished(&record) => worst = worst.max(code(&record)),
            Ok(Some(_)) => {}
            Ok(None) => return ExitCode::from(worst),
            // It ended so long ago that only the history knows it.
            Err(e) if e.refusal_code() == Some(refusal::INVALID_JOB_ID) => {
                return match from_history(client, job).await {
                    Ok(found) => ExitCode::from(worst.max(found)),
                    Err(e) => complain(&e),
                };
            }
            Err(e) => return complain(&e),
        }
    }
}

fn complain(error: &CallError) -> ExitCode {
    print_call_error(NAME, "waiting for the job", error);
    ExitCode::from(1)
}

async fn from_history(client: &mut Client, job: u32) -> Result<u8, CallError> {
    let request = v1::HistoryRequest { jobs: vec![v1::JobTarget { job, tasks: None }], ..Default::default() };
    let list = client.list_history(request).await?;
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
