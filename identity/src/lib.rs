//! Who speaks, and how that is proven: keys, credentials, tokens, TLS, and the connections that carry them.
//!
//! Owns the cluster's authority (an Ed25519 key that signs what hosts and jobs may do, and an X.509 authority for TLS),
//! the keys and papers of each host, one-time join tokens, user tokens, job credentials and step grants, and the two
//! kinds of connection: a Unix socket (the kernel says who calls) and TLS with a token. Promises that a host can only
//! speak for itself and for the users its role allows, and that nothing signed in one place can be used in another:
//! each signature covers its kind, its cluster and, for tokens, whom it may be shown to. It must not decide what a
//! proven caller may do; secrets never reach a log or a `Debug` form.
//!
//! `docs/decisions/0002-identity.md` tells the reasons.

pub mod agent;
mod authority;
pub mod client;
mod cluster;
pub mod credential;
mod error;
mod files;
mod host;
pub mod join;
pub mod server;
mod sign;
pub mod token;
pub mod unix;
pub mod users;

#[cfg(test)]
mod tests;

pub use authority::server_name;
pub use cluster::ClusterKeys;
pub use error::{IdentityError, Refused};
pub use host::{Cluster, HostDraft, HostKeys, HostOrder, HostPapers, Roles};
pub use sign::random;

/// Largest message that servers and clients take, bytes (tonic's own limit is 4 MiB).
pub const MAX_MESSAGE: usize = 64 << 20;

/// The controller's name as a host: its certificate is for `ctld.sluice`, its tokens' audience is `ctld`. No node or
/// login host may bear it.
pub const CONTROLLER: &str = "ctld";

/// gRPC metadata key of the encoded `Token`.
pub const TOKEN_KEY: &str = "sluice-token-bin";

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
