//! Names that other texts can't be given: of data that a study's own text made, and of long names.

use ring::digest::{SHA256, digest};

/// Bytes of the digest that are written: nobody finds two texts that have 16 of them in common.
const BYTES: usize = 16;

/// The first 32 hexadecimal digits of a text's SHA-256.
pub(super) fn digits(text: &[u8]) -> String {
    let digest = digest(&SHA256, text);
    digest.as_ref().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn digits_are_those_of_sha_256() {
        assert_eq!(digits(b"abc"), "ba7816bf8f01cfea414140de5dae2223");
    }
}
