//! Tokens: a host says who calls, for a minute, to one listener.

use crate::error::{IdentityError, Refused};
use crate::host::{self, HostKeys};
use crate::server::{Claim, Peer, Verifier};
use crate::sign::{self, Kind};
use prost::Message;
use prost::bytes::Bytes;
use sluice_proto::v1;

/// How long a token is good.
pub const LIFETIME_MS: i64 = 60_000;
/// How much two hosts' clocks may differ.
pub const SKEW_MS: i64 = 60_000;

/// Who calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statement {
    /// A user, and the job that admits them on a compute host.
    User { uid: u32, gid: u32, job: Option<u32> },
    /// The host's own daemon.
    Node,
}

/// An encoded token and when it ends.
#[derive(Clone)]
pub struct SignedToken {
    pub token: Bytes,
    /// ms since the epoch.
    pub expires_at: i64,
}

/// `audience` is the host that the token will be shown to, `CONTROLLER` for the controller.
pub fn sign(keys: &HostKeys, statement: Statement, audience: &str, now: i64) -> Result<SignedToken, IdentityError> {
    let (uid, gid, job, node) = match statement {
        Statement::User { uid, gid, job } => (uid, gid, job.unwrap_or(0), false),
        Statement::Node => (0, 0, 0, true),
    };
    let expires_at = now + LIFETIME_MS;
    let body = v1::TokenBody {
        uid,
        gid,
        node,
        issued_at: now,
        expires_at,
        job,
        nonce: sign::random::<16>()?.to_vec().into(),
        cluster: keys.cluster().name.clone(),
        audience: audience.to_owned(),
    }
    .encode_to_vec();
    let signature = keys.sign(Kind::Token, &body).into();
    let token = v1::Token { host: Some(keys.credential().clone()), body: body.into(), signature };
    Ok(SignedToken { token: token.encode_to_vec().into(), expires_at })
}

/// Whom the token proves.
pub fn verify(token: &[u8], verifier: &Verifier, now: i64) -> Result<Peer, Refused> {
    let what = Kind::Token.what();
    let unreadable = |_| Refused::Unreadable { what };
    let token = v1::Token::decode(token).map_err(unreadable)?;
    let credential = token.host.as_ref().ok_or(Refused::Unreadable { what })?;
    let host = host::verify_credential(credential, verifier.cluster(), verifier.key(), now)?;
    let key = host.public_key.as_ref().try_into().map_err(|_| Refused::Unreadable { what: "host credential" })?;
    sign::verify(&key, Kind::Token, &token.body, &token.signature)?;
    let body = v1::TokenBody::decode(token.body).map_err(unreadable)?;
    if body.cluster != verifier.cluster() {
        return Err(Refused::OtherCluster { what, cluster: body.cluster });
    }
    if body.audience != verifier.audience() {
        return Err(Refused::OtherAudience { audience: body.audience });
    }
    check_time(what, body.issued_at, body.expires_at, now)?;
    if body.expires_at.saturating_sub(body.issued_at) > LIFETIME_MS {
        return Err(Refused::TooLongLived { what });
    }
    let refuse = |problem| Err(Refused::Role { host: host.host.clone(), problem });
    if body.node {
        if !host.compute {
            return refuse("is no compute host and can't speak for a node");
        }
        return Ok(Peer::Node { host: host.host });
    }
    let job = (body.job != 0).then_some(body.job);
    if !host.login {
        if !host.compute {
            return refuse("may not vouch for users");
        }
        if body.uid == 0 {
            return refuse("is a compute host and can't vouch for root");
        }
        let Some(job) = job else {
            return refuse("is a compute host and names no job that admits the user");
        };
        let claim = Claim { host: &host.host, uid: body.uid, gid: body.gid, job };
        if !verifier.admits(&claim) {
            return Err(Refused::NoSuchJob { host: host.host, uid: body.uid, job });
        }
    }
    Ok(Peer::User { uid: body.uid, gid: body.gid, host: host.host, job })
}

/// Issued at or before now, not over, with the skew allowed to both sides.
pub(crate) fn check_time(what: &'static str, issued_at: i64, expires_at: i64, now: i64) -> Result<(), Refused> {
    if issued_at > now.saturating_add(SKEW_MS) {
        return Err(Refused::NotYetValid { what });
    }
    if expires_at < now.saturating_sub(SKEW_MS) {
        return Err(Refused::Expired { what });
    }
    Ok(())
}
