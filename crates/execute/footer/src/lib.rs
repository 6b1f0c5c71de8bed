//! The metadata of Parquet files, looked through before a decoder believes it: what its lists say
//! they hold is there, and its schema is no deeper than a recursion may go. Of a file, the page
//! indexes that its footer points to are looked through as well.
//!
//! ```
//! use workahead_footer::{FooterError, check};
//!
//! // A list of 2^28 columns, none of which is there.
//! let footer = [0x29, 0xfc, 0x80, 0x80, 0x80, 0x80, 0x01, 0];
//! assert!(matches!(check(&footer), Err(FooterError::Malformed)));
//! ```

#![forbid(unsafe_code)]

mod codec;
mod groups;
pub mod pages;
mod schema;
pub mod thrift;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use groups::{PageIndex, Part, Visit};
use pages::PageRange;
use schema::{ELEMENT_BYTES, Schema};
use thrift::{Malformed, Reader, kind};

/// Columns within columns; decoders and joins of more than this recurse too far.
const NESTING_MAX: usize = 128;
/// Most columns of a file: each takes memory of its own before the first row is read.
pub const COLUMNS_MAX: usize = 1 << 16;
/// Most bytes of a footer, or of one page index: as many are read to look through it. The bytes
/// of a text, taken for such a length, are more, so that no table of text is taken for Parquet.
const METADATA_BYTES_MAX: u64 = 128 << 20;
/// Most places of pages that are kept: 96 MiB of them, those of some terabytes.
const PAGES_MAX: usize = 1 << 22;
/// A column of a row group decoded.
const CHUNK_BYTES: usize = 512;

/// The key of Arrow's schema.
const ARROW_SCHEMA: &[u8] = b"ARROW:schema";
/// The end of a file, after the length of its footer.
const MAGIC: &[u8; 4] = b"PAR1";
/// The length of the footer and the magic.
const TAIL_BYTES: u64 = 8;

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
    /// It would be read at once.
    #[error(
        "it has {0} bytes of Parquet's metadata at once, and {METADATA_BYTES_MAX} are the most"
    )]
    Long(u64),
    /// A decoder would make room for it, and for what is between the indexes of two columns.
    #[error("its page index is not in the file, longer than it, or scattered over it")]
    Place,
    /// Where each begins is kept.
    #[error("it has more than {PAGES_MAX} pages: write fewer to a file")]
    Pages,
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

/// `KeyValue` and `ColumnOrder`.
const KEY_VALUE: [u8; 2] = [kind::BINARY; 2];
const COLUMN_ORDER: [u8; 2] = [kind::STRUCT; 2];

/// About how many bytes a footer takes once it is decoded.
///
/// # Errors
/// When a decoder would recurse too deep, or make room for what is not there.
pub fn check(footer: &[u8]) -> Result<usize, FooterError> {
    walk(footer, &mut |_| Ok(()), &mut Vec::new())
}

/// The same, with a look at where pages and their indexes are, and at Arrow's schemas.
fn walk<'a>(
    footer: &'a [u8],
    visit: &mut Visit<'_>,
    arrow_schemas: &mut Vec<&'a [u8]>,
) -> Result<usize, FooterError> {
    let (mut schema, mut groups, mut pairs) = (None, 0, 0);
    let mut reader = Reader::new(footer);
    let walked = reader.fields(&FILE, |reader, field| {
        match field {
            // A decoder goes by the first.
            2 if schema.is_some() => return Err(Malformed::Wrong),
            2 => schema = Some(Schema::read(reader)?),
            4 => {
                groups += reader.clone().list()?.1;
                groups::row_groups(reader, visit)?;
            }
            5 => {
                pairs += reader.clone().list()?.1;
                reader.structs(|reader| key_value(reader, arrow_schemas))?;
            }
            7 => reader.structs(|reader| reader.known(&COLUMN_ORDER))?,
            _ => {}
        }
        Ok(matches!(field, 2 | 4 | 5 | 7))
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
    Ok([chunks, pairs, reader.number_bytes()].into_iter().fold(bytes, usize::saturating_add))
}

/// Passes over a pair; the value of one that is Arrow's schema is kept.
fn key_value<'a>(
    reader: &mut Reader<'a>,
    arrow_schemas: &mut Vec<&'a [u8]>,
) -> Result<(), Malformed> {
    let (mut key, mut value) = (None, None);
    reader.fields(&KEY_VALUE, |reader, field| {
        match field {
            1 => key = Some(reader.binary()?),
            2 => value = Some(reader.binary()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if key == Some(ARROW_SCHEMA) {
        arrow_schemas.extend(value);
    }
    Ok(())
}

/// A file's metadata, as a decoder takes them.
#[derive(Debug, Default)]
pub struct Metadata {
    /// About how many bytes its footer and the page indexes that it points to take.
    pub bytes: usize,
    /// The schema that Arrow's writers put beside Parquet's, a message in Base64, as often as it is
    /// there.
    pub arrow_schemas: Vec<Vec<u8>>,
    /// Where the pages of each column are, and each page that is in an index: by where they begin,
    /// columns first.
    pub pages: Vec<PageRange>,
}

/// The metadata of a file. Of what does not end as Parquet's files do, or is encrypted, nothing is
/// looked at, and a decoder refuses it. Decoders don't look at a file's beginning.
///
/// # Errors
/// As [`check`], or when it can't be read, or not at once.
pub fn check_file(file: &File) -> Result<Metadata, FooterError> {
    let size = file.metadata()?.len();
    let Some(tail) = size.checked_sub(TAIL_BYTES) else { return Ok(Metadata::default()) };
    let mut bytes = Vec::new();
    read(file, tail, TAIL_BYTES, &mut bytes)?;
    let Some(length) = bytes.strip_suffix(MAGIC).and_then(<[u8]>::first_chunk) else {
        return Ok(Metadata::default());
    };
    let length = u32::from_le_bytes(*length).into();
    // A decoder refuses one that is longer than the file.
    let Some(start) = tail.checked_sub(length) else { return Ok(Metadata::default()) };
    read(file, start, length, &mut bytes)?;
    let mut indexes = PageIndexes {
        file,
        size,
        bytes: Vec::new(),
        span: (size, 0),
        sum: 0,
        decoded: 0,
        pages: Vec::new(),
    };
    let (mut refusal, mut arrow_schemas) = (None, Vec::new());
    let mut check = |part| {
        let checked = match part {
            Part::Index(index) => indexes.check(&index),
            Part::Pages(range) => add(&mut indexes.pages, range),
        };
        checked.map_err(|why| {
            refusal = Some(why);
            Malformed::Wrong
        })
    };
    let walked = walk(&bytes, &mut check, &mut arrow_schemas);
    let decoded = refusal.map_or(walked, Err)?.saturating_add(indexes.decoded);
    // Decoders read them as one piece, with what is between them.
    let (first, last) = indexes.span;
    let gaps = last.saturating_sub(first).saturating_sub(indexes.sum);
    if gaps > METADATA_BYTES_MAX {
        return Err(FooterError::Place);
    }
    let arrow_schemas = arrow_schemas.into_iter().map(<[u8]>::to_vec).collect();
    let mut pages = indexes.pages;
    pages.sort_unstable_by_key(|range| (range.start, range.is_page));
    Ok(Metadata { bytes: decoded, arrow_schemas, pages })
}

/// Keeps a place of pages.
fn add(pages: &mut Vec<PageRange>, range: PageRange) -> Result<(), FooterError> {
    if pages.len() == PAGES_MAX {
        return Err(FooterError::Pages);
    }
    pages.push(range);
    Ok(())
}

/// The page indexes of a file.
struct PageIndexes<'a> {
    file: &'a File,
    size: u64,
    /// Of the last one.
    bytes: Vec<u8>,
    /// From the beginning of the first to the end of the last.
    span: (u64, u64),
    /// Their lengths.
    sum: u64,
    /// What they take once they are decoded.
    decoded: usize,
    /// The places in them, and in the footer.
    pages: Vec<PageRange>,
}

impl PageIndexes<'_> {
    fn check(&mut self, index: &PageIndex) -> Result<(), FooterError> {
        let &PageIndex { start, length, .. } = index;
        let end = start.saturating_add(length);
        self.span = (start.min(self.span.0), end.max(self.span.1));
        // Columns may name the same one, which is decoded for each.
        self.sum = self.sum.saturating_add(length);
        if end > self.size || self.sum > self.size {
            return Err(FooterError::Place);
        }
        // An empty one is not a struct, which decoders find out for themselves.
        if length > 0 {
            read(self.file, start, length, &mut self.bytes)?;
            let mut refusal = None;
            let mut keep = |range| {
                add(&mut self.pages, range).map_err(|why| {
                    refusal = Some(why);
                    Malformed::Wrong
                })
            };
            let decoded = index.check(&mut Reader::new(&self.bytes), &mut keep);
            let decoded = refusal.map_or(decoded.map_err(FooterError::from), Err)?;
            self.decoded = self.decoded.saturating_add(decoded).saturating_add(self.bytes.len());
        }
        Ok(())
    }
}

/// Reads a piece of a file that may be as long as the file says.
fn read(file: &File, start: u64, length: u64, bytes: &mut Vec<u8>) -> Result<(), FooterError> {
    if length > METADATA_BYTES_MAX {
        return Err(FooterError::Long(length));
    }
    bytes.clear();
    bytes.try_reserve_exact(length as usize).map_err(io::Error::from)?;
    bytes.resize(length as usize, 0);
    Ok(file.read_exact_at(bytes, start)?)
}

#[cfg(test)]
mod tests;
