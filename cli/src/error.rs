//! What can go wrong between a command and the daemons, worded as Slurm words it.
//!
//! Owns the closed set of such errors and their exit codes. Printed once, at the command's edge.

use sluice_proto::v1;
use std::path::PathBuf;

/// Slurm's text for a controller that cannot be reached.
pub const CONNECT_FAILURE: &str = "Unable to contact slurm controller (connect failure)";

#[derive(Clone, PartialEq, Debug)]
pub enum CallError {
    /// No client configuration: the places looked at.
    NoConfig { looked_at: Vec<PathBuf> },
    /// The client configuration can't be used.
    BadConfig { path: PathBuf, problem: String },
    /// Nobody answers.
    Unreachable { problem: String },
    /// The local agent gave no token.
    NoToken { problem: String },
    /// The request was sent, but no answer came: it may or may not have been carried out.
    NoAnswer { problem: String },
    /// The daemon answered no.
    Refused(v1::Refusal),
    /// The daemon failed or does not understand.
    Failed { problem: String },
}

impl CallError {
    /// From a gRPC status: a refusal when it carries one.
    pub fn from_status(status: &tonic::Status) -> CallError {
        use prost::Message as _;
        use tonic::Code;
        if !status.details().is_empty()
            && let Ok(refusal) = v1::Refusal::decode(status.details())
            && !refusal.message.is_empty()
        {
            return CallError::Refused(refusal);
        }
        let problem = status.message().to_owned();
        match status.code() {
            Code::Unauthenticated => CallError::NoToken { problem },
            Code::PermissionDenied => CallError::Refused(v1::Refusal {
                code: 19,
                message: "Access/permission denied".to_owned(),
                detail: Some(problem),
                retry_after_ms: None,
            }),
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled | Code::Unknown => {
                CallError::NoAnswer { problem }
            }
            _ => CallError::Failed { problem },
        }
    }

    /// The one line that scripts match: the reason alone, without the program's name.
    pub fn reason(&self) -> String {
        match self {
            CallError::NoConfig { .. } => "Could not establish a configuration source".to_owned(),
            CallError::BadConfig { path, problem } => format!("{}: {problem}", path.display()),
            CallError::Unreachable { .. } => CONNECT_FAILURE.to_owned(),
            CallError::NoToken { .. } => "Invalid authentication credential".to_owned(),
            CallError::NoAnswer { .. } => "Socket timed out on send/recv operation".to_owned(),
            CallError::Refused(refusal) => refusal.message.clone(),
            CallError::Failed { problem } if problem.is_empty() => "Unspecified error".to_owned(),
            CallError::Failed { problem } => problem.clone(),
        }
    }

    /// What to say besides: option, value, what is allowed, the system's error.
    pub fn detail(&self) -> Option<String> {
        match self {
            CallError::NoConfig { looked_at } => {
                let places: Vec<String> = looked_at.iter().map(|p| p.display().to_string()).collect();
                Some(format!("no client configuration; looked at {}", places.join(", ")))
            }
            CallError::Unreachable { problem } | CallError::NoToken { problem } | CallError::NoAnswer { problem } => {
                (!problem.is_empty()).then(|| problem.clone())
            }
            CallError::Refused(refusal) => refusal.detail.clone(),
            CallError::BadConfig { .. } | CallError::Failed { .. } => None,
        }
    }

    /// How long to wait before asking the same again.
    pub fn retry_after(&self) -> Option<std::time::Duration> {
        match self {
            CallError::Refused(refusal) => refusal.retry_after_ms.map(|ms| std::time::Duration::from_millis(ms.into())),
            _ => None,
        }
    }

    pub fn refusal_code(&self) -> Option<u32> {
        match self {
            CallError::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason())
    }
}

/// `PROGRAM: error: DETAIL` (when there is one) and `PROGRAM: error: CONTEXT: REASON`, as Slurm's commands print it.
pub fn print_call_error(program: &str, context: &str, error: &CallError) {
    if let Some(detail) = error.detail() {
        crate::errln!("{program}: error: {detail}");
    }
    if context.is_empty() {
        crate::errln!("{program}: error: {}", error.reason());
    } else {
        crate::errln!("{program}: error: {context}: {}", error.reason());
    }
}

/// Refusal codes (`sluice_engine::Reject::code`) that commands treat specially.
pub mod refusal {
    pub const INVALID_JOB_ID: u32 = 1;
    pub const ACCESS_DENIED: u32 = 19;
    pub const JOB_FINISHED: u32 = 20;
    pub const TOO_MANY_JOBS: u32 = 27;
    /// The detail is the whole answer.
    pub const ACCOUNTING: u32 = 40;
}
