//! The metadata of Parquet files, looked through before a decoder believes it: what its lists say
//! they hold is there, and its schema is no deeper than a recursion may go.
//!
//! ```
//! use workahead_footer::{FooterError, check};
//!
//! // A list of 2^28 columns, none of which is there.
//! let footer = [0x29, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x01, 0];
//! assert!(matches!(check(&footer), Err(FooterError::Malformed)));
//! ```

#![forbid(unsafe_code)]

mod schema;
pub mod thrift;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use schema::{ELEMENT_BYTES, Schema};
use thrift::{Malformed, Reader, kind};

/// Columns within columns; decoders and joins of more than this recurse too far.
const NESTING_MAX: usize = 128;
/// Most columns of a file: each takes memory of its own before the first row is read.
pub const COLUMNS_MAX: usize = 1 << 16;
/// A column of a row group decoded.
const CHUNK_BYTES: usize = 512;

/// What a file ends with, after the length of its footer.
const MAGIC: &[u8; 4] = b"PAR1";
/// The length of the footer and the magic.
const TAIL_BYTES: usize = 8;

/// Why a decoder should not be given a footer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FooterError {
    /// A decoder would recurse through its schema.
    #[error("its columns are nested {0} levels deep, and {NESTING_MAX} are the most")]
    Nesting(usize),
    /// Each column takes memory.
    #[error("it has {0} columns, and {COLUMNS_MAX} are the most: write fewer to a file")]
    Columns(usize),
    /// A list holds less than it says, or a field is of another kind.
    #[error("its metadata is cut short, or no metadata")]
    Malformed,
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

impl From<Malformed> for FooterError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// `FileMetaData`.
const FILE: [u8; 9] = [
    kind::I32,
    kind::LIST,
    kind::I64,
    kind::LIST,
    kind::LIST,
    kind::BINARY,
    kind::LIST,
    kind::STRUCT,
    kind::BINARY,
];

/// About how many bytes a footer takes once it is decoded.
///
/// # Errors
/// When a decoder would recurse too deep, or make room for what is not there.
pub fn check(footer: &[u8]) -> Result<usize, FooterError> {
    let (mut schema, mut groups, mut pairs) = (None, 0, 0);
    let mut reader = Reader::new(footer);
    let walked = reader.fields(&FILE, |reader, field| {
        match field {
            // A decoder goes by the first.
            2 if schema.is_some() => return Err(Malformed::Wrong),
            2 => schema = Some(Schema::read(reader)?),
            4 => groups += reader.clone().list()?.1,
            5 => pairs += reader.clone().list()?.1,
            _ => {}
        }
        Ok(field == 2)
    });
    let Schema { levels, columns, bytes } = schema.unwrap_or_default();
    if levels > NESTING_MAX {
        return Err(FooterError::Nesting(levels));
    }
    if columns > COLUMNS_MAX {
        return Err(FooterError::Columns(columns));
    }
    walked?;
    let chunks = groups.saturating_mul(columns).saturating_mul(CHUNK_BYTES);
    let pairs = pairs.saturating_mul(ELEMENT_BYTES);
    let numbers = reader.numbers.saturating_mul(size_of::<i64>());
    Ok([chunks, pairs, numbers].into_iter().fold(bytes, usize::saturating_add))
}

/// The same of the footer in a file's last bytes. Whether it was all there: of what does not end as
/// Parquet's files do, or is encrypted, nothing is missing, and a decoder refuses it.
///
/// # Errors
/// As [`check`].
pub fn check_end(end: &[u8]) -> Result<bool, FooterError> {
    let Some(before) = end.strip_suffix(MAGIC) else { return Ok(true) };
    let Some((before, length)) = before.split_last_chunk() else { return Ok(true) };
    let start = before.len().checked_sub(u32::from_le_bytes(*length) as usize);
    let Some(start) = start else { return Ok(false) };
    check(&before[start..]).map(|_| true)
}

/// The same of a file.
///
/// # Errors
/// As [`check`], or when it can't be read.
pub fn check_file(file: &File) -> Result<(), FooterError> {
    let size = file.metadata()?.len();
    let Some(tail) = size.checked_sub(TAIL_BYTES as u64) else { return Ok(()) };
    let mut bytes = [0; TAIL_BYTES];
    file.read_exact_at(&mut bytes, tail)?;
    if check_end(&bytes)? {
        return Ok(());
    }
    let [length @ .., _, _, _, _] = bytes;
    let Some(start) = tail.checked_sub(u32::from_le_bytes(length).into()) else { return Ok(()) };
    let mut end = vec![0; (size - start) as usize];
    file.read_exact_at(&mut end, start)?;
    check_end(&end).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of elements with these numbers of children, as the footer's second field.
    fn footer(children: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xfc];
        let mut elements = children.len();
        while elements > 127 {
            bytes.push(elements as u8 | 128);
            elements >>= 7;
        }
        bytes.push(elements as u8);
        for children in children {
            bytes.extend([0x55, children << 1, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_deep_schema_is_refused() {
        check(&footer(&[2, 1, 0, 1, 1, 0])).unwrap();
        let schema = Schema::read(&mut Reader::new(&footer(&[2, 1, 0, 1, 1, 0])[1..])).unwrap();
        assert_eq!((schema.levels, schema.columns), (3, 2));
        check(&footer(&[[1; 128].as_slice(), &[0]].concat())).unwrap();
        let says = check(&footer(&[1; 8000])).unwrap_err().to_string();
        assert_eq!(says, "its columns are nested 8000 levels deep, and 128 are the most");
    }

    #[test]
    fn lists_are_counted_as_they_are_decoded() {
        // Row groups of two columns, and pairs of texts: all of them empty.
        for field in [4, 5] {
            let lists = |elements: usize| {
                let mut bytes = footer(&[2, 0, 0]);
                bytes.pop();
                let [low, middle] = [elements, elements >> 7].map(|bits| bits as u8 | 128);
                let header = [(field - 2) << 4 | kind::LIST, 0xfc, low, middle];
                bytes.extend(
                    [&header[..], &[(elements >> 14) as u8], &vec![0; elements + 1]].concat(),
                );
                check(&bytes).unwrap()
            };
            assert_eq!((lists(16_000) - lists(15_000)) / 1_000, ELEMENT_BYTES);
        }
    }

    #[test]
    fn a_file_is_checked_by_its_end() {
        let whole = |footer: &[u8]| {
            let length = (footer.len() as u32).to_le_bytes();
            [b"PAR1", footer, &length, b"PAR1"].concat()
        };
        let (right, wrong) = (whole(&footer(&[2, 0, 0])), whole(&footer(&[1; 8000])));
        assert!(check_end(&right).unwrap() && check_end(&right[..right.len() - 1]).unwrap());
        assert!(!check_end(&right[right.len() - 8..]).unwrap());
        assert!(matches!(check_end(&wrong), Err(FooterError::Nesting(8000))));
        let file = |bytes: &[u8]| {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(bytes, 0).unwrap();
            check_file(&file)
        };
        file(&right).unwrap();
        assert!(matches!(file(&wrong), Err(FooterError::Nesting(8000))));
        // A footer longer than the file, an empty file, and another one.
        for other in [b"\xff\xff\xff\xffPAR1".as_slice(), b"", b"PAR1", b"a,b\n1,2\n"] {
            file(other).unwrap();
        }
    }

    #[test]
    fn the_first_of_two_schemas_counts() {
        // A chain of groups, the last of which lacks its child: it has no column.
        let chain = footer(&[1; 8000]);
        let both = [&chain[..chain.len() - 1], &[0x09, 0x04], &footer(&[1, 0])[1..]].concat();
        assert!(check(&both).is_err());
        let says = check(&chain).unwrap_err().to_string();
        assert!(says.contains("nested 8000 levels"), "{says}");
    }

    #[test]
    fn numbers_in_lists_are_counted_as_they_are_decoded() {
        // A row group with a field of its own: a list of zeros, a byte each.
        let bytes = |zeros: u8| {
            let group = [&[0x19 + 0x60, 0xf6, zeros][..], &vec![0; zeros.into()], &[0]].concat();
            let head = &footer(&[1, 0])[..footer(&[1, 0]).len() - 1];
            check(&[head, &[0x29, 0x1c], &group, &[0]].concat()).unwrap()
        };
        assert_eq!(bytes(100) - bytes(50), 400);
    }

    #[test]
    fn a_field_has_its_kind() {
        let whole = footer(&[2, 0, 0]);
        check(&whole).unwrap();
        // The schema as a set, and a number of children of 64 bits.
        for (at, byte) in [(0, 0x2a), (3, 0x56)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(check(&other).is_err(), "{at}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        let whole = footer(&[2, 0, 0]);
        for end in 0..whole.len() {
            assert!(check(&whole[..end]).is_err(), "{end}");
        }
        assert!(check(&footer(&[60, 0, 0])).is_err(), "more children than elements");
        // A list of 2^28 elements, and a text of 2^28 bytes, of which nothing is there.
        for beginning in [[0x29, 0xfc].as_slice(), &[0x28]] {
            let lie = [beginning, &[0x80, 0x80, 0x80, 0x80, 0x01, 0]].concat();
            assert!(check(&lie).is_err());
        }
    }
}
