//! One-time join tokens: how a new host gets its papers.
//!
//! An administrator makes a token at the controller and carries it to the host. It holds a secret that admits one host
//! once, and the public key of the cluster's TLS authority, so that the host knows the true controller before it has any
//! certificate. The controller keeps only the secret's digest. A token is used up before papers are made: whatever
//! happens then, it is never good for a second host.

use crate::client;
use crate::cluster::ClusterKeys;
use crate::error::{IdentityError, Refused};
use crate::host::{Cluster, HostDraft, HostKeys, HostOrder, HostPapers, Roles};
use crate::sign::PublicKey;
use crate::{files, sign};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sluice_proto::v1;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tonic::Status;

const PREFIX: &str = "sluice-join-1.";
const ID: usize = 8;
const SECRET: usize = 16;

/// A token as the joining host reads it. Its `Debug` form hides the secret.
pub struct JoinToken {
    id: [u8; ID],
    secret: [u8; SECRET],
    pub(crate) authority_key: PublicKey,
    pub(crate) cluster: String,
}

impl std::fmt::Debug for JoinToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinToken").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl JoinToken {
    pub fn parse(text: &str) -> Result<JoinToken, Refused> {
        let bad = |problem| Refused::JoinToken { problem };
        let payload = text.trim().strip_prefix(PREFIX).ok_or(bad("does not begin with 'sluice-join-1.'"))?;
        let damaged = bad("is damaged or cut short");
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(payload).map_err(|_| damaged.clone())?;
        let (id, rest) = bytes.split_first_chunk().ok_or(damaged.clone())?;
        let (secret, rest) = rest.split_first_chunk().ok_or(damaged.clone())?;
        let (authority_key, name) = rest.split_first_chunk().ok_or(damaged.clone())?;
        let cluster = String::from_utf8(name.to_vec()).map_err(|_| damaged.clone())?;
        if cluster.is_empty() || cluster.len() > 63 {
            return Err(damaged);
        }
        Ok(JoinToken { id: *id, secret: *secret, authority_key: *authority_key, cluster })
    }

    fn text(&self) -> String {
        let bytes = [&self.id[..], &self.secret, &self.authority_key, self.cluster.as_bytes()].concat();
        format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// The controller's open tokens: one small file each.
pub struct JoinTokens {
    dir: PathBuf,
}

impl JoinTokens {
    /// `dir` (0700) is made when it isn't there.
    pub fn open(dir: &Path) -> Result<JoinTokens, IdentityError> {
        use std::os::unix::fs::DirBuilderExt;
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(dir);
        made.map_err(|e| IdentityError::io("making", dir, e))?;
        Ok(JoinTokens { dir: dir.to_owned() })
    }

    /// A token for one host: the named one, or any.
    pub fn make(
        &self,
        keys: &ClusterKeys,
        roles: Roles,
        host: Option<&str>,
        valid: Duration,
    ) -> Result<String, IdentityError> {
        if let Some(host) = host
            && sluice_proto::convert::node_name(host, "host").is_err()
        {
            return Err(IdentityError::Name { name: host.to_owned(), problem: "is no host name" });
        }
        self.purge()?;
        let token = JoinToken {
            id: sign::random()?,
            secret: sign::random()?,
            authority_key: keys.authority_key()?,
            cluster: keys.cluster().name.clone(),
        };
        let valid = i64::try_from(valid.as_millis()).unwrap_or(i64::MAX);
        let open = OpenToken {
            digest: digest(&token.secret),
            expires_at: crate::now_ms().saturating_add(valid),
            roles,
            host: host.map(str::to_owned),
        };
        files::write_atomic(&self.path(&token.id), open.text().as_bytes())?;
        Ok(token.text())
    }

    /// Uses the token up for this host and says which roles it gives.
    pub fn redeem(&self, text: &str, cluster: &str, host: &str, now: i64) -> Result<Roles, IdentityError> {
        let refuse = |problem| Err(Refused::JoinToken { problem }.into());
        let token = JoinToken::parse(text)?;
        if token.cluster != cluster {
            return Err(Refused::OtherCluster { what: "join token", cluster: token.cluster }.into());
        }
        let path = self.path(&token.id);
        let unknown = "is unknown here, has expired or was used before";
        let open = match fs::read_to_string(&path) {
            Ok(text) => OpenToken::parse(&text).ok_or_else(|| IdentityError::broken(&path, "is no join token"))?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return refuse(unknown),
            Err(e) => return Err(IdentityError::io("reading", &path, e)),
        };
        if open.digest != digest(&token.secret) || open.expires_at < now {
            return refuse(unknown);
        }
        if open.host.as_deref().is_some_and(|bound| bound != host) {
            return refuse("is for another host");
        }
        // Of two that come at once, one removes the file.
        match fs::remove_file(&path) {
            Ok(()) => files::sync_dir(&self.dir)?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return refuse(unknown),
            Err(e) => return Err(IdentityError::io("removing", &path, e)),
        }
        Ok(open.roles)
    }

    fn path(&self, id: &[u8; ID]) -> PathBuf {
        self.dir.join(hex(id))
    }

    /// Forgets tokens that have expired.
    fn purge(&self) -> Result<(), IdentityError> {
        let now = crate::now_ms();
        let entries = fs::read_dir(&self.dir).map_err(|e| IdentityError::io("reading", &self.dir, e))?;
        for path in entries.flatten().map(|e| e.path()) {
            let open = fs::read_to_string(&path).ok().and_then(|text| OpenToken::parse(&text));
            if open.is_some_and(|open| open.expires_at < now) {
                fs::remove_file(&path).map_err(|e| IdentityError::io("removing", &path, e))?;
            }
        }
        Ok(())
    }
}

/// What the controller remembers of a token, as lines of `key=value`.
struct OpenToken {
    /// SHA-256 of the secret, hex.
    digest: String,
    expires_at: i64,
    roles: Roles,
    host: Option<String>,
}

impl OpenToken {
    fn text(&self) -> String {
        let mut text = format!(
            "digest={}\nexpires_at={}\nlogin={}\ncompute={}\n",
            self.digest, self.expires_at, self.roles.login, self.roles.compute
        );
        if let Some(host) = &self.host {
            text.push_str(&format!("host={host}\n"));
        }
        text
    }

    fn parse(text: &str) -> Option<OpenToken> {
        let get = |key: &str| text.lines().find_map(|l| l.split_once('=').filter(|(k, _)| *k == key)).map(|(_, v)| v);
        Some(OpenToken {
            digest: get("digest")?.to_owned(),
            expires_at: get("expires_at")?.parse().ok()?,
            roles: Roles { login: get("login")?.parse().ok()?, compute: get("compute")?.parse().ok()? },
            host: get("host").map(str::to_owned),
        })
    }
}

fn digest(secret: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, secret).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The controller's answer to `Join`. The caller needs no other proof than the token.
pub fn admit(keys: &ClusterKeys, tokens: &JoinTokens, request: &v1::JoinRequest) -> Result<v1::JoinReply, Status> {
    let public = |bytes: &[u8], field: &str| -> Result<PublicKey, Status> {
        bytes.try_into().map_err(|_| Status::invalid_argument(format!("{field} is no Ed25519 public key")))
    };
    let public_key = public(&request.public_key, "public_key")?;
    let tls_public_key = public(&request.tls_public_key, "tls_public_key")?;
    // Before the token is used up.
    if request.host == crate::CONTROLLER || sluice_proto::convert::node_name(&request.host, "host").is_err() {
        return Err(Status::invalid_argument(format!("{:?} can't be a host's name", request.host)));
    }
    let refused = |error: IdentityError| match error {
        IdentityError::Refused(why) => {
            tracing::warn!(target: "audit", host = request.host, %why, "a host was not admitted");
            Status::permission_denied(why.to_string())
        }
        error => {
            tracing::error!(host = request.host, %error, "a host could not be admitted");
            Status::internal("the controller can't admit hosts now; its log says why")
        }
    };
    let roles = tokens.redeem(&request.token, &keys.cluster().name, &request.host, crate::now_ms()).map_err(refused)?;
    let order = HostOrder { host: request.host.clone(), roles, public_key, tls_public_key };
    let papers = keys.issue(&order).map_err(refused)?;
    tracing::info!(target: "audit", host = request.host, ?roles, "a host joined");
    Ok(v1::JoinReply {
        credential: Some(papers.credential),
        cluster_public_key: papers.cluster.key.to_vec().into(),
        ca_pem: papers.cluster.ca_pem.into(),
        tls_cert_pem: papers.tls_cert_pem.into(),
        cluster: papers.cluster.name,
    })
}

/// The joining host's side: makes keys, asks the controller at `addr` (`host:port`) for papers.
pub async fn join(addr: &str, token: &str, host: &str) -> Result<HostKeys, client::ConnectError> {
    let parsed = JoinToken::parse(token)?;
    let draft = HostDraft::generate()?;
    // The roles are the token's.
    let order = draft.order(host, Roles::default());
    let channel = client::connect_to_join(addr, &parsed).await?;
    let request = v1::JoinRequest {
        token: token.trim().to_owned(),
        public_key: order.public_key.to_vec().into(),
        host: order.host,
        tls_public_key: order.tls_public_key.to_vec().into(),
    };
    let mut controller = v1::controller_client::ControllerClient::new(channel);
    let reply = controller.join(request).await?.into_inner();
    let damaged = || Refused::Unreadable { what: "answer to the join request" };
    let text = |bytes: prost::bytes::Bytes| String::from_utf8(bytes.to_vec()).map_err(|_| damaged());
    let papers = HostPapers {
        credential: reply.credential.ok_or_else(damaged)?,
        tls_cert_pem: text(reply.tls_cert_pem)?,
        cluster: Cluster {
            name: reply.cluster,
            key: reply.cluster_public_key.as_ref().try_into().map_err(|_| damaged())?,
            ca_pem: text(reply.ca_pem)?,
        },
    };
    Ok(draft.accept(papers)?)
}
