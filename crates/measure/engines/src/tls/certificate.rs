//! The two parts of a certificate that are needed without verifying it: its key, and the algorithm
//! of its signature (X.509 in DER, RFC 5280).
//!
//! ```text
//! SEQUENCE { SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject, KEY, … },
//!            ALGORITHM { object identifier, … }, signature }
//! ```

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

use crate::der::{SEQUENCE, element, next};

const OBJECT: u8 = 0x06;
const VERSION: u8 = 0xa0;

/// RSA with MD5, with SHA-1, and ECDSA with SHA-1; then those that name SHA-256, 384 and 512.
const ALGORITHMS: &[(&[u8], &Algorithm)] = &[
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", &SHA256),
    (b"\x2a\x86\x48\xce\x3d\x04\x01", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", &SHA256),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", &SHA256),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", &SHA384),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", &SHA384),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", &SHA512),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x04", &SHA512),
];

/// The hash of a certificate that a login is bound to, `tls-server-end-point` (RFC 5929, 4.1): by
/// the hash of its signature, or SHA-256 where that is weaker. `None` where none is defined, as for
/// Ed25519.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (mut whole, _) = element(certificate, SEQUENCE)?;
    (_, whole) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(whole, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT)?;
    let (_, hash) = ALGORITHMS.iter().find(|(object, _)| *object == name)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

/// The public key with its algorithm (SubjectPublicKeyInfo).
pub(super) fn key(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (mut rest, _) = element(whole, SEQUENCE)?;
    if rest.first() == Some(&VERSION) {
        (_, rest) = next(rest)?;
    }
    for _serial_algorithm_issuer_validity_subject in 0..5 {
        (_, rest) = next(rest)?;
    }
    let (_, after) = element(rest, SEQUENCE)?;
    Some(&rest[..rest.len() - after.len()])
}

/// The same without a version, which means the first one; its signature is wrong then.
#[cfg(test)]
pub(super) fn version_1(certificate: &[u8]) -> Vec<u8> {
    let sequence = |content: &[u8]| {
        // A length has as few bytes as it needs, here one or two.
        let length = match content.len().to_be_bytes() {
            [.., 0, low] => vec![0x81, low],
            [.., high, low] => vec![0x82, high, low],
        };
        [&[SEQUENCE], &length[..], content].concat()
    };
    let (whole, _) = element(certificate, SEQUENCE).unwrap();
    let (signed, rest) = element(whole, SEQUENCE).unwrap();
    let (_, signed) = element(signed, VERSION).unwrap();
    sequence(&[&sequence(signed), rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::tests::Authority;

    #[test]
    fn the_key_and_the_hash_are_found() {
        let server = Authority::new().server("db.example");
        let der = server.certificate.as_ref();
        assert_eq!(key(der).unwrap(), server.key_info);
        assert_eq!(key(&version_1(der)).unwrap(), server.key_info);
        // ECDSA with SHA-256.
        assert_eq!(end_point(der).unwrap(), digest(&SHA256, der).as_ref());
    }

    #[test]
    fn a_damaged_certificate_has_none() {
        let server = Authority::new().server("db.example");
        let der = server.certificate.as_ref();
        for end in 0..der.len() - 1 {
            assert_eq!((key(&der[..end]), end_point(&der[..end])), (None, None), "{end}");
        }
        for wrong in [&b"\x30\x80"[..], b"\x30\x84\0\0\0\x01a", b"\x30\xff", b"\x30"] {
            assert_eq!(next(wrong), None, "{wrong:?}");
        }
    }
}
