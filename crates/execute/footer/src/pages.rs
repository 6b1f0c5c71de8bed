//! Headers of pages: a page is made room for as large as its header says.

use std::collections::HashSet;

use crate::thrift::{Malformed, Reader, kind};

/// `PageHeader`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// Bytes of the header itself.
    pub own_bytes: usize,
    /// Whether the page is a dictionary.
    pub is_dictionary: bool,
    /// Bytes of the page once it is decompressed.
    pub page_bytes: usize,
    /// Bytes of the page behind its header.
    pub compressed_bytes: usize,
    /// Its values.
    pub values: usize,
    /// Texts are written as what differs from the one before.
    pub is_delta: bool,
}

/// `PageHeader`, and the structs in it.
const PAGE: [u8; 8] = [
    kind::I32,
    kind::I32,
    kind::I32,
    kind::I32,
    kind::STRUCT,
    kind::STRUCT,
    kind::STRUCT,
    kind::STRUCT,
];
const DATA_PAGE: [u8; 4] = [kind::I32; 4];
const DICTIONARY_PAGE: [u8; 2] = [kind::I32; 2];
const DATA_PAGE_V2: [u8; 6] = [kind::I32; 6];
/// `Encoding`: `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`.
const DELTA: [i32; 2] = [6, 7];

impl PageHeader {
    /// Reads one from the beginning of these bytes.
    ///
    /// # Errors
    /// When they end before it does, or are none.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut header = Self::default();
        let mut reader = Reader::new(bytes);
        let length = |number: i32| usize::try_from(number).map_err(|_| Malformed::Wrong);
        let (mut page_type, mut described) = (None, None);
        reader.fields(&PAGE, |reader, field| {
            match field {
                1 => page_type = Some(reader.int()?),
                2 => header.page_bytes = length(reader.int()?)?,
                3 => header.compressed_bytes = length(reader.int()?)?,
                // Of a page of data in two versions, of an index, and of a dictionary.
                5..=8 => {
                    // A decoder would take the one that its type names.
                    if described.replace(field).is_some() {
                        return Err(Malformed::Wrong);
                    }
                    let (kinds, encoding_field): (&[u8], _) = match field {
                        5 => (&DATA_PAGE, 2),
                        7 => (&DICTIONARY_PAGE, 2),
                        8 => (&DATA_PAGE_V2, 4),
                        _ => return Ok(false),
                    };
                    reader.fields(kinds, |reader, inner| {
                        match inner {
                            1 => header.values = length(reader.int()?)?,
                            of if of == encoding_field => {
                                header.is_delta = DELTA.contains(&reader.int()?);
                            }
                            _ => return Ok(false),
                        }
                        Ok(true)
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        header.is_dictionary = described == Some(7);
        header.own_bytes = reader.at;
        match (page_type, described) {
            (Some(0), Some(5)) | (Some(1), Some(6) | None) => Ok(header),
            (Some(2), Some(7)) | (Some(3), Some(8)) => Ok(header),
            _ => Err(Malformed::Wrong),
        }
    }

    /// What a decoder makes room for: the page, and a number for each value of a dictionary, or for
    /// each text's length.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        let lengths =
            if self.is_delta { self.values.saturating_mul(2 * size_of::<i32>()) } else { 0 };
        self.page_bytes.max(lengths)
    }
}

/// The most that a page takes of those that begin at `starts` in these bytes, and follow each
/// other. Other bytes end a row of them: a decoder refuses them.
///
/// # Errors
/// When a dictionary has more values than bytes.
pub fn largest_page(
    bytes: &[u8],
    starts: impl IntoIterator<Item = usize>,
) -> Result<usize, Malformed> {
    let (mut largest, mut known) = (0, HashSet::new());
    for mut at in starts {
        // Columns may lie in each other: no header is read twice.
        while at < bytes.len() && known.insert(at) {
            let Ok(header) = PageHeader::read(&bytes[at..]) else { break };
            if header.is_dictionary && header.values > header.page_bytes {
                return Err(Malformed::Wrong);
            }
            largest = header.room_bytes().max(largest);
            at = at.saturating_add(header.own_bytes).saturating_add(header.compressed_bytes);
        }
    }
    Ok(largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signed number as a varint.
    fn number(number: i64) -> Vec<u8> {
        let zigzag = ((number << 1) ^ (number >> 63)) as u64;
        let mut bytes: Vec<u8> = (0..10).map(|at| (zigzag >> (7 * at)) as u8 | 0x80).collect();
        let last = (1..10).rev().find(|at| zigzag >> (7 * at) != 0).unwrap_or(0);
        bytes.truncate(last + 1);
        bytes[last] &= 0x7f;
        bytes
    }

    /// A page of data or a dictionary, whose bytes are zeros.
    fn page(is_dictionary: bool, page_bytes: i64, values: i64, encoding: i64) -> Vec<u8> {
        let (page_type, step) = if is_dictionary { (2, 4) } else { (0, 2) };
        let fields = [page_type, page_bytes, 3].map(|field| [vec![0x15], number(field)].concat());
        let inner = [values, encoding].map(|field| [vec![0x15], number(field)].concat());
        [&fields.concat()[..], &[step << 4 | kind::STRUCT], &inner.concat(), &[0, 0, 9, 9, 9]]
            .concat()
    }

    #[test]
    fn the_largest_of_a_row_of_pages_is_found() {
        let pages = [page(true, 100, 10, 0), page(false, 5_000, 7, 0), page(false, 70, 7, 0)];
        let bytes = pages.concat();
        assert_eq!(largest_page(&bytes, [0]), Ok(5_000));
        let third = pages[0].len() + pages[1].len();
        assert_eq!(largest_page(&bytes, [third]), Ok(70));
        assert_eq!(largest_page(&bytes, [third, third, 0]), Ok(5_000));
        // Cut within a page, within a header, and of nothing.
        assert_eq!(largest_page(&bytes[..third - 2], [0]), Ok(5_000));
        assert_eq!(largest_page(&bytes[..3], [0]), Ok(0));
        assert_eq!(largest_page(&[], [0, 7]), Ok(0));
    }

    #[test]
    fn lengths_of_texts_and_values_of_dictionaries_count() {
        assert_eq!(largest_page(&page(false, 100, 1_000_000, 6), [0]), Ok(8_000_000));
        assert_eq!(largest_page(&page(true, 100, 101, 0), [0]), Err(Malformed::Wrong));
        // Of plain values most are no longer than a bit.
        assert_eq!(largest_page(&page(false, 100, 1_000_000, 0), [0]), Ok(100));
    }

    #[test]
    fn negative_lengths_are_refused() {
        assert_eq!(PageHeader::read(&page(false, -1, 7, 0)), Err(Malformed::Wrong));
        let header = PageHeader::read(&page(false, 9, 7, 0)).unwrap();
        assert_eq!((header.page_bytes, header.compressed_bytes, header.values), (9, 3, 7));
    }
}
