//! Ed25519 signatures that say what they sign: each covers the kind of message, so that the bytes of a token can't be
//! passed off as a credential.

use crate::error::{IdentityError, Refused};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// What a signature is for. Persisted in signatures: never change a text.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    HostCredential,
    Token,
    JobCredential,
    StepGrant,
}

impl Kind {
    fn context(self) -> &'static [u8] {
        match self {
            Kind::HostCredential => b"sluice.v1.HostCredential\0",
            Kind::Token => b"sluice.v1.Token\0",
            Kind::JobCredential => b"sluice.v1.JobCredential\0",
            Kind::StepGrant => b"sluice.v1.StepGrant\0",
        }
    }
    pub(crate) fn what(self) -> &'static str {
        match self {
            Kind::HostCredential => "host credential",
            Kind::Token => "token",
            Kind::JobCredential => "job credential",
            Kind::StepGrant => "step grant",
        }
    }
}

/// Raw Ed25519 public key.
pub(crate) type PublicKey = [u8; 32];

/// A private key. It has no printable form.
pub(crate) struct Signer {
    pair: Ed25519KeyPair,
    pem: String,
}

impl Signer {
    pub(crate) fn generate() -> Result<Signer, IdentityError> {
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(IdentityError::crypto)?;
        Signer::from_pem(&pair.serialize_pem()).map_err(IdentityError::Crypto)
    }

    pub(crate) fn from_pem(pem: &str) -> Result<Signer, String> {
        let pair = key_pair(pem)?;
        let pair = Ed25519KeyPair::from_pkcs8(pair.serialized_der()).map_err(|e| e.to_string())?;
        Ok(Signer { pair, pem: pem.to_owned() })
    }

    /// PKCS#8. A secret.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn public_key(&self) -> PublicKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.pair.public_key().as_ref());
        key
    }

    pub(crate) fn sign(&self, kind: Kind, body: &[u8]) -> Vec<u8> {
        self.pair.sign(&[kind.context(), body].concat()).as_ref().to_vec()
    }
}

/// For rcgen, which signs certificates.
pub(crate) fn key_pair(pem: &str) -> Result<rcgen::KeyPair, String> {
    rcgen::KeyPair::from_pkcs8_pem_and_sign_algo(pem, &rcgen::PKCS_ED25519).map_err(|e| e.to_string())
}

pub(crate) fn verify(key: &PublicKey, kind: Kind, body: &[u8], signature: &[u8]) -> Result<(), Refused> {
    UnparsedPublicKey::new(&ED25519, key)
        .verify(&[kind.context(), body].concat(), signature)
        .map_err(|_| Refused::BadSignature { what: kind.what() })
}

/// From the system's source of random numbers.
pub fn random<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).map_err(|_| IdentityError::Crypto("no random numbers".to_owned()))?;
    Ok(bytes)
}
