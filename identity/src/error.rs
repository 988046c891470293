//! Errors of making and reading keys, and refusals of what others present.

use std::fmt;
use std::path::{Path, PathBuf};

/// Keys could not be made, read or kept.
#[derive(Debug)]
pub enum IdentityError {
    Io {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A file is there but does not hold what it should.
    Broken {
        path: PathBuf,
        problem: String,
    },
    /// Keys are there already; they are never overwritten.
    Exists {
        path: PathBuf,
    },
    /// A cluster or host name that can't be used.
    Name {
        name: String,
        problem: &'static str,
    },
    Crypto(String),
    /// What was handed out does not fit these keys.
    Refused(Refused),
}

impl IdentityError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        IdentityError::Io { doing, path: path.to_owned(), source }
    }
    pub(crate) fn broken(path: &Path, problem: impl Into<String>) -> Self {
        IdentityError::Broken { path: path.to_owned(), problem: problem.into() }
    }
    pub(crate) fn crypto(source: impl fmt::Display) -> Self {
        IdentityError::Crypto(source.to_string())
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
            IdentityError::Broken { path, problem } => write!(f, "{}: {problem}", path.display()),
            IdentityError::Exists { path } => write!(f, "{} holds keys already", path.display()),
            IdentityError::Name { name, problem } => write!(f, "{name:?} {problem}"),
            IdentityError::Crypto(problem) => write!(f, "cryptography failed: {problem}"),
            IdentityError::Refused(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for IdentityError {}

impl From<Refused> for IdentityError {
    fn from(why: Refused) -> Self {
        IdentityError::Refused(why)
    }
}

/// Why something presented by another is not believed. Says enough for an administrator, nothing secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It can't be decoded.
    Unreadable {
        what: &'static str,
    },
    /// Signed by another key than it should be, or changed afterwards.
    BadSignature {
        what: &'static str,
    },
    OtherCluster {
        what: &'static str,
        cluster: String,
    },
    Expired {
        what: &'static str,
    },
    NotYetValid {
        what: &'static str,
    },
    /// It lives longer than such a thing may.
    TooLongLived {
        what: &'static str,
    },
    /// Made to be shown to someone else.
    OtherAudience {
        audience: String,
    },
    /// The host's role does not let it say this.
    Role {
        host: String,
        problem: &'static str,
    },
    /// A compute host vouches for a user without a job there.
    NoSuchJob {
        host: String,
        uid: u32,
        job: u32,
    },
    /// A grant that goes beyond its job.
    BeyondJob {
        problem: String,
    },
    JoinToken {
        problem: &'static str,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Unreadable { what } => write!(f, "the {what} can't be read"),
            Refused::BadSignature { what } => write!(f, "the {what}'s signature is wrong"),
            Refused::OtherCluster { what, cluster } => write!(f, "the {what} is of another cluster, {cluster:?}"),
            Refused::Expired { what } => write!(f, "the {what} has expired"),
            Refused::NotYetValid { what } => {
                write!(f, "the {what} is from the future; do the hosts' clocks differ by more than a minute?")
            }
            Refused::TooLongLived { what } => write!(f, "the {what} is valid for longer than it may be"),
            Refused::OtherAudience { audience } => write!(f, "the token is meant for {audience:?}"),
            Refused::Role { host, problem } => write!(f, "host {host} {problem}"),
            Refused::NoSuchJob { host, uid, job } => {
                write!(f, "host {host} vouches for user {uid}, who has no job {job} there")
            }
            Refused::BeyondJob { problem } => write!(f, "the step grant goes beyond its job: {problem}"),
            Refused::JoinToken { problem } => write!(f, "the join token {problem}"),
        }
    }
}

impl std::error::Error for Refused {}
