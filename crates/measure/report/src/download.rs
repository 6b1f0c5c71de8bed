//! Tables inside of the page, to be saved by a click: `data:` addresses (RFC 2397), so that the one
//! file holds everything and fetches nothing.

use std::io::{self, ErrorKind, Write};

use serde::Serialize;
use workahead_study::results::Results;

use crate::{csv, number};

/// A longer table is left out: browsers refuse very long addresses, and the page would be heavy.
const BYTES_MAX: usize = 1_500_000;
const TOO_LONG: &str = "more than 1.5 MB";

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
        of_csv(&format!("{name}-samples.csv"), "every sample with its settings", |to| {
            csv::samples(results, to)
        }),
        of_csv(&format!("{name}-cells.csv"), "every cell with its figures", |to| {
            csv::csv(results, to)
        }),
    ]
}

/// A table as comma-separated values, by a function that writes it.
pub(crate) fn of_csv(
    file: &str,
    what: &'static str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Download {
    let text = within(BYTES_MAX, write);
    let size = text.as_ref().map(|text| number::bytes(text.len() as u64));
    let address = |text: Vec<u8>| format!("data:text/csv;charset=utf-8;base64,{}", base64(&text));
    Download {
        file: file.to_owned(),
        what,
        size: size.unwrap_or_else(|| TOO_LONG.to_owned()),
        address: text.map(address),
    }
}

/// What a function writes, unless it is more than `bytes_max`: then the function is stopped.
fn within(
    bytes_max: usize,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Option<Vec<u8>> {
    let mut text = BoundedText { bytes: Vec::new(), bytes_max };
    write(&mut text).ok()?;
    Some(text.bytes)
}

/// Text that takes no more than a number of bytes.
struct BoundedText {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl Write for BoundedText {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if more.len() > self.bytes_max - self.bytes.len() {
            return Err(ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Base 64 (RFC 4648, section 4), with padding.
fn base64(text: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::with_capacity(text.len().div_ceil(3) * 4);
    for three in text.chunks(3) {
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
    use super::*;

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
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_table_without_end_is_stopped() {
        let mut rows = 0;
        let text = within(100, |to| {
            loop {
                to.write_all(b"a,b,c,d,\r\n")?;
                rows += 1;
            }
        });
        assert_eq!((text, rows), (None, 10));
        let table = of_csv("a.csv", "all", |to| to.write_all("a".repeat(BYTES_MAX + 1).as_bytes()));
        assert_eq!((table.size.as_str(), table.address), (TOO_LONG, None));
        assert_eq!(within(3, |to| to.write_all(b"abc")), Some(b"abc".to_vec()));
    }
}
