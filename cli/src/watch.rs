//! Following a job until it ends.
//!
//! Owns the stream of a job's records and its renewal when the controller is restarted in between.

use crate::client::{Client, Controller, Retry};
use crate::error::CallError;
use sluice_model::JobState;
use sluice_proto::v1;

/// A job's records: the present one first, then one at each change.
pub struct JobWatch {
    job: u32,
    whole_array: bool,
    stream: Option<tonic::Streaming<v1::JobRecord>>,
}

impl JobWatch {
    pub fn new(job: u32, whole_array: bool) -> Self {
        JobWatch { job, whole_array, stream: None }
    }

    /// The next record; None when the job has ended. May be dropped and called again.
    pub async fn next(&mut self, client: &mut Client) -> Result<Option<v1::JobRecord>, CallError> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                none => {
                    let request = v1::WatchJobRequest { job: self.job, whole_array: self.whole_array };
                    none.insert(
                        client.call(Retry::Harmless, async |mut c: Controller| c.watch_job(request).await).await?,
                    )
                }
            };
            match stream.message().await {
                Ok(record) => return Ok(record),
                Err(status) => {
                    self.stream = None;
                    let error = CallError::from_status(&status);
                    if !matches!(error, CallError::NoAnswer { .. }) {
                        return Err(error);
                    }
                }
            }
        }
    }
}

/// The state by its name on the wire; unknown names count as not finished.
pub fn state(record: &v1::JobRecord) -> Option<JobState> {
    JobState::parse(&record.state)
}

/// Nothing more will happen to it.
pub fn is_finished(record: &v1::JobRecord) -> bool {
    state(record).is_some_and(JobState::is_finished)
}

/// It has an allocation now.
pub fn is_running(record: &v1::JobRecord) -> bool {
    matches!(state(record), Some(JobState::Running | JobState::Suspended))
}
