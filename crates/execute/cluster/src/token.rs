//! The secret that a cluster's processes and clients share.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

use http::HeaderValue;

use crate::ClusterError;

const BYTES: usize = 32;

/// Who has it may ask the workers anything that they answer. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Random bytes of the system.
pub(crate) fn random<const BYTES: usize>() -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

impl Token {
    /// A new one, at random.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> io::Result<Self> {
        Ok(Self(random::<BYTES>()?.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The header of a request.
    pub(crate) fn header(&self) -> HeaderValue {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).expect("hexadecimal");
        value.set_sensitive(true);
        value
    }

    /// Whether a header is this one's, in a time that doesn't depend on where they differ.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let own = self.header();
        let own = own.as_bytes();
        let differ = own.iter().zip(header).fold(0, |differ, (one, other)| differ | (one ^ other));
        own.len() == header.len() && std::hint::black_box(differ) == 0
    }

    /// In hexadecimal digits: for URLs and files that only their owner reads.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl FromStr for Token {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let text = text.trim();
        let is_digit = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        if text.len() != 2 * BYTES || !text.bytes().all(is_digit) {
            return Err(ClusterError::Token);
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_is_let_in() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one, other);
        assert!(one.is_in(one.header().as_bytes()));
        let header = format!("Bearer {}", one.reveal());
        let almost = [&header[..header.len() - 1], &format!("{header}0"), one.reveal(), ""];
        assert!(!one.is_in(other.header().as_bytes()));
        assert!(almost.iter().all(|header| !one.is_in(header.as_bytes())));
        assert_eq!(one.reveal().parse::<Token>().unwrap(), one);
        assert!(!format!("{one:?}").contains(one.reveal()));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["", "secret", &"g".repeat(64), &"A".repeat(64), &"0".repeat(63)] {
            assert!(text.parse::<Token>().is_err(), "{text:?}");
        }
    }
}
