//! Tables inside of the page, to be saved by a click: `data:` addresses (RFC 2397), so that the one
//! file holds everything and fetches nothing.

use serde::Serialize;
use workahead_study::results::Results;

use crate::{csv, number};

/// A longer table is left out: browsers refuse very long addresses, and the page would be heavy.
const BYTES_MAX: usize = 1_500_000;

/// A table in the page.
#[derive(Debug, Serialize)]
pub(crate) struct Download {
    /// The name it is saved under.
    pub(crate) file: String,
    /// Its contents.
    pub(crate) what: &'static str,
    /// Its size, for people.
    pub(crate) size: String,
    /// The address that holds it; `None` if it is too long.
    pub(crate) address: Option<String>,
}

/// The samples and the cells of a result.
pub(crate) fn tables(results: &Results) -> Vec<Download> {
    let name = results.record.study.replace('/', "-");
    vec![
        of_csv(
            &format!("{name}-samples.csv"),
            "every sample with its settings",
            &csv::samples(results),
        ),
        of_csv(&format!("{name}-cells.csv"), "every cell with its figures", &csv::csv(results)),
    ]
}

/// A table as comma-separated values.
pub(crate) fn of_csv(file: &str, what: &'static str, text: &str) -> Download {
    let fits = text.len() <= BYTES_MAX;
    Download {
        file: file.to_owned(),
        what,
        size: number::bytes(text.len() as u64),
        address: fits.then(|| format!("data:text/csv;charset=utf-8;base64,{}", base64(text))),
    }
}

/// Base 64 (RFC 4648, section 4), with padding.
fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(text.len().div_ceil(3) * 4);
    for three in text.as_bytes().chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let at = (bits >> (18 - 6 * digit)) & 63;
            encoded.push(if digit <= three.len() { char::from(DIGITS[at as usize]) } else { '=' });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The vectors of RFC 4648, section 10.
    #[test]
    fn published_vectors() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, encoded) in vectors {
            assert_eq!(base64(text), encoded);
        }
    }
}
