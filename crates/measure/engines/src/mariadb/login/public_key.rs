//! The key with which a server of MySQL's takes the password where nothing else is encrypted: RSA,
//! in PEM and DER (RFC 5280, RFC 8017).
//!
//! ```text
//! SEQUENCE { ALGORITHM, BITS { 0, SEQUENCE { INTEGER modulus, INTEGER exponent } } }
//! ```
//!
//! It may come from anybody. `mysql_common` reads it too, but panics where it is damaged, and
//! computes for minutes with one of a megabit; so it gets numbers that were looked at.

use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use workahead_workloads::session::SessionError;

use crate::der::{SEQUENCE, element};

/// Enough for 16,384 bits, OpenSSL's limit.
const PEM_BYTES_MAX: usize = 4 << 10;
/// OpenSSL's limit too, for long keys: the time grows with it.
const EXPONENT_BITS_MAX: u64 = 64;
/// Bytes of the modulus that the padding takes: two hashes by SHA-1, and two bytes.
const PADDING_BYTES: usize = 2 * 20 + 2;

const BITS: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// Encrypts by the key in PEM.
pub(super) fn encrypt(clear: &[u8], pem: &[u8]) -> Result<Vec<u8>, SessionError> {
    if pem.len() > PEM_BYTES_MAX {
        return Err(refused("has more than 4 KiB"));
    }
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok();
    let key = der.and_then(|der| read(&der)).ok_or_else(|| refused("is not one of RSA in PEM"))?;
    if clear.len() + PADDING_BYTES > key.num_octets() {
        return Err(refused("is too short for it"));
    }
    Ok(key.encrypt_block(clear, Pkcs1OaepPadding::new(GetRandom)))
}

/// `None` for anything that is not such a key, or would take long.
fn read(der: &[u8]) -> Option<PublicKey> {
    let (whole, _) = element(der, SEQUENCE)?;
    let (_algorithm, rest) = element(whole, SEQUENCE)?;
    let (bits, _) = element(rest, BITS)?;
    let (numbers, _) = element(bits.strip_prefix(&[0])?, SEQUENCE)?;
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    let [modulus, exponent] = [modulus, exponent].map(BigUint::from_bytes_be);
    (exponent.bits() <= EXPONENT_BITS_MAX).then(|| PublicKey::new(modulus, exponent))
}

fn refused(what: &str) -> SessionError {
    SessionError::Failed(format!(
        "the server shows a key for the password that {what}: connect by TLS (sslmode=require), or \
         through its socket"
    ))
}

#[cfg(test)]
pub(super) mod tests {
    use mysql_common::crypto::der;

    use super::*;

    /// Of 2,048 bits, by OpenSSL.
    pub(in crate::mariadb::login) const PEM: &[u8] = b"-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxW6MI3OxGkt6mU6pqN7q
IvZusZkuWp+0tJulo1/88MQSY+Rc8EQu0RbJ/QRnpAAwIzWmGD3tlykfH84f6dql
VB4fTqXyv0q2vmWc/CcsQb/x3LdGALYswaBVXhAMctUmzx2kB3yaL5dP1fywLpS8
Z2fbyXJy71jgkU0n8+bG/xifOLleWhVedoO/cLCanEU/ehtwEY87R9XS7BLZxN6N
ObOGRxOc183I8EIo5nCInHDGyIeJaAmP+6O959xFJZo54o3Jjx1z2VoVNSZAxxAO
PJzvVST0iFLxcLDWQUbZsJq2ia+pxKHwGwSyJkObRz/rrnT682qKTONX0dmTHPjG
rwIDAQAB
-----END PUBLIC KEY-----
";
    /// Of a modulus of zero.
    const OF_NOTHING: &str = "MBowDQYJKoZIhvcNAQEBBQADCQAwBgIBAAIBAw==";
    /// Of 512 bits, and an exponent of nine bytes.
    const SLOW: &str = "MGIwDQYJKoZIhvcNAQEBBQADUQAwTgJBAMHBwcHBwcHBwcHBwcHBwcHBwcHBwcHB\
        wcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwQECCQEBAQEBAQEBAQ==";

    fn refusal(clear: &[u8], pem: &[u8]) -> String {
        encrypt(clear, pem).unwrap_err().to_string()
    }

    /// As `mysql_common` reads it where it is right.
    #[test]
    fn a_right_key_is_understood() {
        let (der, form) = der::pem_to_der(PEM);
        let (modulus, exponent) = der::parse_pub_key(&der, form);
        let key = read(&der).unwrap();
        assert_eq!((key.modulus(), key.exponent()), (&modulus, &exponent));
        let of_windows = String::from_utf8_lossy(PEM).replace('\n', "\r\n");
        for pem in [PEM, of_windows.as_bytes()] {
            assert_eq!(encrypt(b"pass\0", pem).unwrap().len(), 256);
        }
        assert!(encrypt(&[0; 214], PEM).is_ok());
        assert!(refusal(&[0; 215], PEM).contains("is too short for it"));
    }

    #[test]
    fn other_keys_are_refused() {
        let pem = |body: &str| {
            format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n").into_bytes()
        };
        for (key, says) in [
            (b"hello".to_vec(), "is not one of RSA in PEM"),
            (pem(""), "is not one of RSA in PEM"),
            (pem("MBow"), "is not one of RSA in PEM"),
            (pem("=!="), "is not one of RSA in PEM"),
            (pem(OF_NOTHING), "is too short for it"),
            (pem(SLOW), "is not one of RSA in PEM"),
            (pem(&"A".repeat(4 << 10)), "has more than 4 KiB"),
        ] {
            let error = refusal(b"", &key);
            assert!(error.contains(says) && error.lines().count() == 1, "{error}");
        }
    }

    #[test]
    fn a_damaged_key_does_not_panic() {
        let (der, _) = der::pem_to_der(PEM);
        for end in 0..der.len() {
            assert!(read(&der[..end]).is_none(), "{end}");
        }
        for at in 0..der.len() {
            for byte in [0, 1, 0x7f, 0x80, 0x81, 0x82, 0xff] {
                let mut damaged = der.clone();
                damaged[at] = byte;
                read(&damaged);
            }
        }
        for at in 0..PEM.len() {
            let mut damaged = PEM.to_vec();
            damaged[at] = b'A';
            // Some are keys as good as the one before.
            let _ = encrypt(b"pass\0", &damaged);
        }
    }
}
