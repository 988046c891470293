//! A host's keys and papers: what it signs with, what it may say, and its TLS certificate.

use crate::error::{IdentityError, Refused};
use crate::sign::{self, Kind, PublicKey, Signer};
use crate::{files, server};
use prost::Message;
use sluice_proto::v1;
use std::path::Path;

/// What a host may say, beyond serving TLS under its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// Vouch for any user who calls there.
    pub login: bool,
    /// Speak for the node of this name, and vouch for users with a job there.
    pub compute: bool,
}

/// What everybody in the cluster knows: no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cluster {
    pub name: String,
    /// Ed25519, raw.
    pub key: [u8; 32],
    /// The TLS authority's certificate.
    pub ca_pem: String,
}

/// What a host asks the cluster for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostOrder {
    pub host: String,
    pub roles: Roles,
    /// Ed25519, raw: the key that will sign tokens.
    pub public_key: [u8; 32],
    /// Ed25519, raw: the key of the TLS certificate.
    pub tls_public_key: [u8; 32],
}

/// What the cluster gives a host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostPapers {
    pub credential: v1::HostCredential,
    pub tls_cert_pem: String,
    pub cluster: Cluster,
}

/// Fresh keys, without papers yet.
pub struct HostDraft {
    signer: Signer,
    tls: Signer,
}

impl HostDraft {
    pub fn generate() -> Result<HostDraft, IdentityError> {
        Ok(HostDraft { signer: Signer::generate()?, tls: Signer::generate()? })
    }

    pub fn order(&self, host: &str, roles: Roles) -> HostOrder {
        HostOrder {
            host: host.to_owned(),
            roles,
            public_key: self.signer.public_key(),
            tls_public_key: self.tls.public_key(),
        }
    }

    /// Checks that the papers are the cluster's and for these keys.
    pub fn accept(self, papers: HostPapers) -> Result<HostKeys, IdentityError> {
        let body = verify_credential(&papers.credential, &papers.cluster.name, &papers.cluster.key, crate::now_ms())?;
        if body.public_key.as_ref() != self.signer.public_key() {
            return Err(Refused::BadSignature { what: "host credential" }.into());
        }
        Ok(HostKeys {
            host: body.host,
            roles: Roles { login: body.login, compute: body.compute },
            signer: self.signer,
            tls: self.tls,
            papers,
        })
    }
}

/// All that a host holds to prove itself.
pub struct HostKeys {
    host: String,
    roles: Roles,
    signer: Signer,
    tls: Signer,
    papers: HostPapers,
}

impl std::fmt::Debug for HostKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostKeys").field("host", &self.host).field("roles", &self.roles).finish_non_exhaustive()
    }
}

impl HostKeys {
    /// Writes a new directory, mode 0700, files 0600, whole or not at all.
    pub fn save(&self, dir: &Path) -> Result<(), IdentityError> {
        let cluster = &self.papers.cluster;
        files::create_dir_with(
            dir,
            &[
                ("host.key", self.signer.pem().as_bytes()),
                ("tls.key", self.tls.pem().as_bytes()),
                ("tls.pem", self.papers.tls_cert_pem.as_bytes()),
                ("credential", &self.papers.credential.encode_to_vec()),
                ("ca.pem", cluster.ca_pem.as_bytes()),
                ("cluster.pub", &cluster.key),
                ("cluster", cluster.name.as_bytes()),
            ],
        )
    }

    pub fn load(dir: &Path) -> Result<HostKeys, IdentityError> {
        let signer = |name: &str| {
            let path = dir.join(name);
            Signer::from_pem(&files::read_secret(&path)?).map_err(|e| IdentityError::broken(&path, e))
        };
        let path = dir.join("credential");
        let credential = v1::HostCredential::decode(files::read(&path)?.as_slice())
            .map_err(|e| IdentityError::broken(&path, e.to_string()))?;
        let cluster = load_cluster(dir)?;
        let tls_cert_pem = files::read_text(&dir.join("tls.pem"))?;
        let draft = HostDraft { signer: signer("host.key")?, tls: signer("tls.key")? };
        draft
            .accept(HostPapers { credential, tls_cert_pem, cluster })
            .map_err(|e| IdentityError::broken(&path, e.to_string()))
    }

    pub fn host(&self) -> &str {
        &self.host
    }
    pub fn roles(&self) -> Roles {
        self.roles
    }
    pub fn cluster(&self) -> &Cluster {
        &self.papers.cluster
    }
    pub fn credential(&self) -> &v1::HostCredential {
        &self.papers.credential
    }

    /// For serving TLS under this host's name.
    pub fn tls_identity(&self) -> tonic::transport::Identity {
        tonic::transport::Identity::from_pem(&self.papers.tls_cert_pem, self.tls.pem())
    }

    /// Believes what this cluster's hosts say to this host. Compute hosts vouch for nobody until `Verifier::admitting`.
    pub fn verifier(&self) -> server::Verifier {
        server::Verifier::new(&self.papers.cluster, &self.host)
    }

    pub(crate) fn sign(&self, kind: Kind, body: &[u8]) -> Vec<u8> {
        self.signer.sign(kind, body)
    }
}

pub(crate) fn load_cluster(dir: &Path) -> Result<Cluster, IdentityError> {
    let path = dir.join("cluster.pub");
    let key: PublicKey =
        files::read(&path)?.try_into().map_err(|_| IdentityError::broken(&path, "is no public key"))?;
    let name = files::read_text(&dir.join("cluster"))?;
    Ok(Cluster { name, key, ca_pem: files::read_text(&dir.join("ca.pem"))? })
}

/// Checks a host credential: signed by the cluster, for the cluster, in its time.
pub(crate) fn verify_credential(
    credential: &v1::HostCredential,
    cluster: &str,
    key: &PublicKey,
    now: i64,
) -> Result<v1::HostCredentialBody, Refused> {
    let what = Kind::HostCredential.what();
    sign::verify(key, Kind::HostCredential, &credential.body, &credential.signature)?;
    let body = v1::HostCredentialBody::decode(credential.body.clone()).map_err(|_| Refused::Unreadable { what })?;
    if body.cluster != cluster {
        return Err(Refused::OtherCluster { what, cluster: body.cluster });
    }
    crate::token::check_time(what, body.issued_at, body.expires_at, now)?;
    Ok(body)
}
