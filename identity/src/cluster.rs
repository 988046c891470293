//! The cluster's authority, held by the controller alone.

use crate::error::IdentityError;
use crate::host::{self, Cluster, HostDraft, HostKeys, HostOrder, HostPapers, Roles};
use crate::sign::{self, Kind, Signer};
use crate::{CONTROLLER, authority, files, server};
use prost::Message;
use sluice_proto::{convert, v1};
use std::path::Path;

/// How long a host's credential is good: ten years. A host that must go sooner is taken out of the configuration.
const HOST_VALID_MS: i64 = 10 * 365 * 86_400_000;

/// The keys that make a cluster one: who holds them is the cluster.
pub struct ClusterKeys {
    signer: Signer,
    authority: rcgen::KeyPair,
    cluster: Cluster,
}

impl std::fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterKeys").field("cluster", &self.cluster.name).finish_non_exhaustive()
    }
}

impl ClusterKeys {
    /// Makes new keys in `dir` (0700, files 0600), whole or not at all. Refuses a directory that holds anything.
    pub fn create(dir: &Path, name: &str) -> Result<ClusterKeys, IdentityError> {
        let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > 63 || !name.bytes().all(fine) {
            let problem = "is no cluster name: 1 to 63 letters, digits, '.', '_' or '-'";
            return Err(IdentityError::Name { name: name.to_owned(), problem });
        }
        let signer = Signer::generate()?;
        let authority_key = Signer::generate()?;
        let authority = sign::key_pair(authority_key.pem()).map_err(IdentityError::Crypto)?;
        let ca_pem = authority::self_signed(name, &authority)?;
        let cluster = Cluster { name: name.to_owned(), key: signer.public_key(), ca_pem };
        files::create_dir_with(
            dir,
            &[
                ("cluster.key", signer.pem().as_bytes()),
                ("ca.key", authority_key.pem().as_bytes()),
                ("ca.pem", cluster.ca_pem.as_bytes()),
                ("cluster.pub", &cluster.key),
                ("cluster", cluster.name.as_bytes()),
            ],
        )?;
        Ok(ClusterKeys { signer, authority, cluster })
    }

    pub fn load(dir: &Path) -> Result<ClusterKeys, IdentityError> {
        let path = dir.join("cluster.key");
        let signer = Signer::from_pem(&files::read_secret(&path)?).map_err(|e| IdentityError::broken(&path, e))?;
        let ca_path = dir.join("ca.key");
        let authority =
            sign::key_pair(&files::read_secret(&ca_path)?).map_err(|e| IdentityError::broken(&ca_path, e))?;
        let cluster = host::load_cluster(dir)?;
        if cluster.key != signer.public_key() {
            return Err(IdentityError::broken(&path, "does not belong to cluster.pub"));
        }
        Ok(ClusterKeys { signer, authority, cluster })
    }

    /// What everybody may know.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub fn verifier(&self) -> server::Verifier {
        server::Verifier::new(&self.cluster, CONTROLLER)
    }

    /// Papers for a host that sent its public keys. Who may have them is the caller's to decide.
    pub fn issue(&self, order: &HostOrder) -> Result<HostPapers, IdentityError> {
        if convert::node_name(&order.host, "host").is_err() {
            return Err(IdentityError::Name { name: order.host.clone(), problem: "is no host name" });
        }
        if order.host == CONTROLLER && order.roles != Roles::default() {
            let problem = "is the controller's own name; give the node or login host another";
            return Err(IdentityError::Name { name: order.host.clone(), problem });
        }
        let now = crate::now_ms();
        let body = v1::HostCredentialBody {
            cluster: self.cluster.name.clone(),
            host: order.host.clone(),
            login: order.roles.login,
            compute: order.roles.compute,
            public_key: order.public_key.to_vec().into(),
            issued_at: now,
            expires_at: now + HOST_VALID_MS,
            serial: u64::from_be_bytes(sign::random()?),
        }
        .encode_to_vec();
        let signature = self.sign(Kind::HostCredential, &body).into();
        Ok(HostPapers {
            credential: v1::HostCredential { body: body.into(), signature },
            tls_cert_pem: authority::issue(&self.cluster.name, &self.authority, &order.host, order.tls_public_key)?,
            cluster: self.cluster.clone(),
        })
    }

    /// Keys and papers in one, made here: for the controller itself and for hosts provisioned from it.
    pub fn issue_host(&self, host: &str, roles: Roles) -> Result<HostKeys, IdentityError> {
        let draft = HostDraft::generate()?;
        let papers = self.issue(&draft.order(host, roles))?;
        draft.accept(papers)
    }

    /// The controller's own TLS keys.
    pub fn issue_controller(&self) -> Result<HostKeys, IdentityError> {
        self.issue_host(CONTROLLER, Roles::default())
    }

    /// The TLS authority's raw public key, for join tokens.
    pub(crate) fn authority_key(&self) -> Result<[u8; 32], IdentityError> {
        self.authority.public_key_raw().try_into().map_err(|_| IdentityError::Crypto("no Ed25519 key".to_owned()))
    }

    pub(crate) fn sign(&self, kind: Kind, body: &[u8]) -> Vec<u8> {
        self.signer.sign(kind, body)
    }
}
