//! The cluster's own X.509 authority for TLS: one self-signed Ed25519 certificate, and one certificate for each host,
//! good for the name `HOST.sluice` alone. Hosts send their public key; private keys never travel.

use crate::error::IdentityError;
use crate::sign::{self, PublicKey};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls_pki_types::TrustAnchor;

/// The name in a host's certificate. Names that are no DNS labels (long, or with capitals, which DNS does not tell apart)
/// stand there as a digest.
pub fn server_name(host: &str) -> String {
    let fine = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
    };
    if host.len() <= 200 && host.split('.').all(fine) {
        return format!("{host}.sluice");
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, host.as_bytes());
    let hex: String = digest.as_ref().iter().take(20).map(|b| format!("{b:02x}")).collect();
    format!("sha256-{hex}.sluice")
}

fn common_name(cluster: &str) -> String {
    format!("Sluice cluster {cluster}")
}

fn params(cluster: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name(cluster));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2100, 1, 1);
    params
}

/// The authority's own certificate.
pub(crate) fn self_signed(cluster: &str, key: &KeyPair) -> Result<String, IdentityError> {
    let mut params = params(cluster);
    params.serial_number = Some(serial()?);
    Ok(params.self_signed(key).map_err(IdentityError::crypto)?.pem())
}

fn serial() -> Result<SerialNumber, IdentityError> {
    let mut bytes = sign::random::<16>()?;
    // Positive and without a leading zero byte, as DER wants it.
    bytes[0] = (bytes[0] & 0x3f) | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

struct RawKey(PublicKey);

impl PublicKeyData for RawKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }
    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

/// A certificate for the host's TLS key, for servers alone: clients prove themselves by tokens.
pub(crate) fn issue(cluster: &str, key: &KeyPair, host: &str, public: PublicKey) -> Result<String, IdentityError> {
    let name = server_name(host).try_into().map_err(IdentityError::crypto)?;
    let mut leaf = CertificateParams::default();
    leaf.distinguished_name = DistinguishedName::new();
    leaf.distinguished_name.push(DnType::CommonName, host);
    leaf.subject_alt_names = vec![SanType::DnsName(name)];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    leaf.not_before = rcgen::date_time_ymd(2025, 1, 1);
    leaf.not_after = rcgen::date_time_ymd(2100, 1, 1);
    leaf.serial_number = Some(serial()?);
    let issuer = Issuer::new(params(cluster), key);
    Ok(leaf.signed_by(&RawKey(public), &issuer).map_err(IdentityError::crypto)?.pem())
}

/// What a joining host, which has no certificate of the authority yet, trusts: name and key, from its join token.
pub(crate) fn trust_anchor(cluster: &str, key: &PublicKey) -> TrustAnchor<'static> {
    // RFC 5280: the contents of Name and SubjectPublicKeyInfo, without their outer SEQUENCE. All lengths are below 128:
    // cluster names have at most 63 bytes.
    let wrap = |tag: u8, content: Vec<u8>| {
        let mut der = vec![tag, content.len() as u8];
        der.extend(content);
        der
    };
    let common_name_oid = [0x06, 0x03, 0x55, 0x04, 0x03];
    let attribute = [common_name_oid.to_vec(), wrap(0x0c, common_name(cluster).into_bytes())].concat();
    let subject = wrap(0x31, wrap(0x30, attribute));
    let ed25519 = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
    let public_key = [ed25519.to_vec(), wrap(0x03, [&[0][..], key].concat())].concat();
    TrustAnchor { subject: subject.into(), subject_public_key_info: public_key.into(), name_constraints: None }
}
