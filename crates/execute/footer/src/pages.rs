//! Headers of pages: a page is made room for as large as its header says.

use std::collections::HashMap;
use std::io::{self, Read};

pub use crate::codec::Codec;
use crate::thrift::{Malformed, Reader, kind};

/// Why a page should not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// A decoder would make room for them.
    #[error("a dictionary has more values than bytes")]
    Values,
    /// What a decoder takes for one may be followed by any page.
    #[error("a page has no header")]
    Header,
    /// A decoder would be given other bytes than those that were looked at.
    #[error("a page is not as long as its page index says")]
    Length,
    /// Looking at all of them would take forever.
    #[error("pages lie in each other")]
    Overlap,
    /// A decoder would make all of it.
    #[error("a page holds more than it says")]
    Excess,
    /// A decoder would make room for it before anything comes out.
    #[error("a page is compressed by Brotli with a window of more than 16 MiB")]
    Window,
    /// Its decoder is not there.
    #[error("a page is compressed by Brotli, which this build does not read")]
    Brotli,
}

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
    /// Levels in front of what is compressed, in version 2.
    level_bytes: usize,
    /// Whether nothing is compressed, whatever the column says: version 2 may say that.
    is_uncompressed: bool,
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
const DATA_PAGE_V2: [u8; 7] =
    [kind::I32, kind::I32, kind::I32, kind::I32, kind::I32, kind::I32, kind::TRUE];
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
        let (mut page_type, mut described, mut levels) = (None, None, [0_usize; 2]);
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
                            5 if field == 8 => levels[0] = length(reader.int()?)?,
                            6 if field == 8 => levels[1] = length(reader.int()?)?,
                            7 if field == 8 => {
                                header.is_uncompressed = reader.kind == kind::FALSE;
                                return Ok(false);
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
        header.level_bytes = levels[0].saturating_add(levels[1]);
        header.own_bytes = reader.at;
        match (page_type, described) {
            (Some(0), Some(5)) | (Some(2), Some(7)) | (Some(3), Some(8)) => Ok(header),
            // No writer makes pages of an index. A decoder that looks ahead takes what is in one
            // for the next page.
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

    /// Refuses a page of which its decoder makes more than this says. `body` is what is behind the
    /// header.
    ///
    /// # Errors
    /// When it does, or when there is no such decoder.
    pub fn check_body(&self, codec: Codec, mut body: impl Read) -> Result<(), PageError> {
        let compressed = self.page_bytes.saturating_sub(self.level_bytes);
        // Of nothing, decoders make nothing.
        if codec == Codec::Bounded || self.is_uncompressed || compressed == 0 {
            return Ok(());
        }
        let levels = &mut body.by_ref().take(self.level_bytes as u64);
        match io::copy(levels, &mut io::sink()) {
            Ok(_) => codec.check(body, compressed),
            // A decoder reads no further either.
            Err(_) => Ok(()),
        }
    }
}

/// Where pages are in a file, as its footer or a page index says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// Where the first of them begins.
    pub start: u64,
    /// Where the last one ends.
    pub end: u64,
    /// How they are compressed.
    pub codec: Codec,
    /// Whether it is one page, to whose decoder all of it is given, or those of a column.
    pub is_page: bool,
}

/// The most that a page takes of those in these bytes, which lie in a file from `start` on.
/// `ranges` are all that the file has, by where they begin, columns before pages; other bytes are
/// not looked at.
///
/// # Errors
/// When something else than a page begins where one should, pages lie in each other, or a
/// dictionary has more values than bytes.
pub fn largest_page(bytes: &[u8], start: u64, ranges: &[PageRange]) -> Result<usize, PageError> {
    let mut largest = 0;
    each(bytes, start, within(bytes, start, ranges), |header, _, _| {
        if header.is_dictionary && header.values > header.page_bytes {
            return Err(PageError::Values);
        }
        largest = header.room_bytes().max(largest);
        Ok(())
    })?;
    Ok(largest)
}

/// Decodes those of the same pages of which more might come out than their headers say.
///
/// # Errors
/// When more does.
pub fn check_bodies(bytes: &[u8], start: u64, ranges: &[PageRange]) -> Result<(), PageError> {
    let within = within(bytes, start, ranges);
    if within.iter().all(|range| range.codec == Codec::Bounded) {
        return Ok(());
    }
    each(bytes, start, within, |header, codec, body| header.check_body(codec, body))
}

/// The ranges that begin in these bytes.
fn within<'a>(bytes: &[u8], start: u64, ranges: &'a [PageRange]) -> &'a [PageRange] {
    let end = start.saturating_add(bytes.len() as u64);
    let [first, last] = [start, end].map(|at| ranges.partition_point(|range| range.start < at));
    &ranges[first..last]
}

/// Visits the headers of pages, each with what is behind it.
fn each(
    bytes: &[u8],
    start: u64,
    mut ranges: &[PageRange],
    mut visit: impl FnMut(&PageHeader, Codec, &[u8]) -> Result<(), PageError>,
) -> Result<(), PageError> {
    let place = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX);
    let mut left = bytes.len();
    while let Some(range) = ranges.first() {
        // Those that lie in each other, as pages do in their column, end where the last one does.
        let (mut end, mut count) = (range.end, 1);
        while let Some(next) = ranges.get(count).filter(|next| next.start < end) {
            (end, count) = (next.end.max(end), count + 1);
        }
        let (overlapping, behind) = ranges.split_at(count);
        let end = place(end).min(bytes.len());
        // Where the page ends that begins at a place.
        let mut known = HashMap::new();
        for range in overlapping {
            let mut at = place(range.start);
            while at < end {
                let next = match known.get(&(at, range.codec)) {
                    Some(next) if range.is_page => *next,
                    // A column in a column.
                    Some(_) => break,
                    None => {
                        // What is none here, or is cut short, may still be one to a decoder.
                        let read = PageHeader::read(&bytes[at..]);
                        let header = read.map_err(|_| PageError::Header)?;
                        let body = &bytes[at + header.own_bytes..];
                        let body = &body[..header.compressed_bytes.min(body.len())];
                        // Bytes of one page are of no other, so that none is decoded often.
                        let whole = header.own_bytes + body.len();
                        left = left.checked_sub(whole).ok_or(PageError::Overlap)?;
                        visit(&header, range.codec, body)?;
                        let next = at.saturating_add(header.own_bytes);
                        let next = next.saturating_add(header.compressed_bytes);
                        known.insert((at, range.codec), next);
                        next
                    }
                };
                if range.is_page && next != place(range.end) {
                    return Err(PageError::Length);
                }
                at = if range.is_page { end } else { next };
            }
        }
        ranges = behind;
    }
    Ok(())
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

    /// All of these bytes, which lie behind some others, are pages of a column.
    fn column(bytes: &[u8], codec: Codec) -> [PageRange; 1] {
        [range(4, 4 + bytes.len(), codec)]
    }

    fn range(start: usize, end: usize, codec: Codec) -> PageRange {
        PageRange { start: start as u64, end: end as u64, codec, is_page: false }
    }

    fn largest(bytes: &[u8]) -> Result<usize, PageError> {
        largest_page(bytes, 4, &column(bytes, Codec::Bounded))
    }

    #[test]
    fn the_largest_of_a_row_of_pages_is_found() {
        let pages = [page(true, 100, 10, 0), page(false, 5_000, 7, 0), page(false, 70, 7, 0)];
        let bytes = pages.concat();
        assert_eq!(largest(&bytes), Ok(5_000));
        let [_, second, third, end] = [0, 1, 2, 3].map(|at| 4 + pages[..at].concat().len());
        let range = |start, end| range(start, end, Codec::Bounded);
        let page = |start, end| PageRange { is_page: true, ..range(start, end) };
        let found = |ranges: &[PageRange]| largest_page(&bytes, 4, ranges);
        assert_eq!(found(&[range(third, end)]), Ok(70));
        assert_eq!(found(&[range(4, second), page(third, end)]), Ok(100));
        assert_eq!(found(&[range(4, second), range(4, end), range(second, third)]), Ok(5_000));
        assert_eq!(found(&[range(4, end), page(second, third), page(third, end)]), Ok(5_000));
        // In front of the bytes, behind them, and of nothing.
        assert_eq!(found(&[range(0, 9), range(third, 0), range(third, third)]), Ok(0));
        assert_eq!(found(&[range(end, 999)]), Ok(0));
        // A page is cut, or a header.
        assert_eq!(largest_page(&bytes[..bytes.len() - 2], 4, &[range(4, end)]), Ok(5_000));
        assert_eq!(
            largest_page(&bytes[..third - 4 + 3], 4, &[range(4, end)]),
            Err(PageError::Header)
        );
        assert_eq!(largest(&[]), Ok(0));
    }

    #[test]
    fn lengths_of_texts_and_values_of_dictionaries_count() {
        assert_eq!(largest(&page(false, 100, 1_000_000, 6)), Ok(8_000_000));
        assert_eq!(largest(&page(true, 100, 101, 0)), Err(PageError::Values));
        // Of plain values most are no longer than a bit.
        assert_eq!(largest(&page(false, 100, 1_000_000, 0)), Ok(100));
    }

    #[test]
    fn negative_lengths_are_refused() {
        assert_eq!(PageHeader::read(&page(false, -1, 7, 0)), Err(Malformed::Wrong));
        let header = PageHeader::read(&page(false, 9, 7, 0)).unwrap();
        assert_eq!((header.page_bytes, header.compressed_bytes, header.values), (9, 3, 7));
    }

    /// A page of data of a byte, and of nothing in the file.
    const BEGIN: [u8; 6] = [0x15, 0, 0x15, 2, 0x15, 0];
    /// Seven plain values.
    const DESCRIBED: [u8; 10] = [0x2c, 0x15, 14, 0x15, 0, 0x15, 6, 0x15, 6, 0];

    /// What is found behind a header of these parts.
    fn behind(parts: &[&[u8]]) -> Result<usize, PageError> {
        largest(&[&parts.concat()[..], &page(false, 70, 7, 0)].concat())
    }

    #[test]
    fn fields_that_nobody_knows_are_passed_over() {
        assert_eq!(behind(&[&BEGIN, &DESCRIBED, &[0]]), Ok(70));
        // The number of a field in full, and numbers with more bytes than they need.
        let full = [5, 2, 0, 5, 4, 2, 5, 6, 0x80, 0x80, 0, 12, 10, 5, 2, 14, 5, 4, 0, 0, 0];
        assert_eq!(behind(&[&full]), Ok(70));
        // Fields from 9 on: true, false, a byte, numbers, eight bytes, a text, and sixteen bytes.
        let plain = [
            &[0x41, 0x12, 0x13, 9, 0x14, 0xff, 1, 0x15, 2, 0x16, 0x80, 1, 0x17][..],
            &[0; 8],
            &[0x18, 3, b'a', b'b', b'c', 0x1d],
            &[0; 16],
        ];
        // Lists, with their number in full or none at all, a set, maps, and a struct of a struct.
        let nested = [
            &[0x19, 0x25, 2, 4, 0x19, 0xf3, 1, 7, 0x19, 0, 0x19, 0x09, 0x1a, 0x18, 1, b'a'][..],
            &[0x1b, 1, 0x58, 2, 1, b'a', 0x1b, 0, 0x1c, 0x1c, 0x15, 2, 0, 0x11, 0],
        ];
        let unknown = [&plain.concat()[..], &nested.concat()].concat();
        assert_eq!(behind(&[&BEGIN, &DESCRIBED, &unknown, &[0]]), Ok(70));
        // Within what describes the page too, where field 5 are statistics.
        let [inner, end] = [&DESCRIBED[..9], &[0_u8, 0]];
        assert_eq!(behind(&[&BEGIN, inner, &[0x1c, 0x36, 2, 0], &unknown, end]), Ok(70));
    }

    #[test]
    fn what_a_decoder_takes_for_a_header_is_refused() {
        // Described twice, an encoding of 64 bits, an index that is a page of data, and one of
        // three bytes, which a decoder takes for pages.
        let twice = behind(&[&BEGIN, &DESCRIBED, &[12, 10], &DESCRIBED[1..], &[0]]);
        let long = behind(&[&BEGIN, &[0x2c, 0x15, 14, 0x16, 0, 0x15, 6, 0x15, 6, 0, 0]]);
        let data = behind(&[&[0x15, 2, 0x15, 2, 0x15, 0], &DESCRIBED, &[0]]);
        let index = behind(&[&[0x15, 2, 0x15, 2, 0x15, 6, 0x3c, 0, 0, 9, 9, 9]]);
        // A list of truth values and a map of such, of which some decoders read no byte each.
        let list = behind(&[&BEGIN, &DESCRIBED, &[0x49, 0xf1, 0xff, 0xff, 0x3f, 0]]);
        let map = behind(&[&BEGIN, &DESCRIBED, &[0x4b, 0xff, 0xff, 0x3f, 0x11, 0]]);
        for found in [twice, long, data, index, list, map] {
            assert_eq!(found, Err(PageError::Header));
        }
    }

    /// Ten bytes by gzip.
    const TEN: [u8; 23] = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x4b, 0x4c, 0x84, 1, 0, 0xf0, 0xcd, 0x11, 0x4c, 10, 0,
        0, 0,
    ];

    /// A page of data of these bytes, in version 1, and in version 2 behind two bytes of levels.
    fn versions(says: u8, body: &[u8], is_compressed: u8) -> [Vec<u8>; 2] {
        let [first, second] = [body.len(), body.len() + 2].map(|bytes| 2 * bytes as u8);
        let inner = [0x15, 14, 0x15, 0, 0x15, 14, 0x15, 0, 0x15, 2, 0x15, 2, 0x10 + is_compressed];
        [
            [&[0x15, 0, 0x15, 2 * says, 0x15, first], &DESCRIBED[..], &[0], body].concat(),
            [&[0x15, 6, 0x15, 2 * (2 + says), 0x15, second, 0x5c], &inner[..], &[0; 4], body]
                .concat(),
        ]
    }

    #[test]
    fn more_than_a_header_says_is_refused() {
        let [gzip, bounded] = [Codec::Gzip, Codec::Bounded];
        let check = |bytes: &[u8], codec| check_bodies(bytes, 4, &column(bytes, codec));
        for (exact, less) in
            versions(10, &TEN, kind::TRUE).iter().zip(versions(9, &TEN, kind::TRUE))
        {
            assert_eq!(check(exact, gzip), Ok(()));
            assert_eq!(check(&less, gzip), Err(PageError::Excess));
            assert_eq!(check(&less, bounded), Ok(()));
            // A page is behind one that holds what it says.
            assert_eq!(check(&[&exact[..], &less].concat(), gzip), Err(PageError::Excess));
        }
        let [_, plain] = versions(9, &TEN, kind::FALSE);
        assert_eq!(check(&plain, gzip), Ok(()), "which is not compressed");
    }

    #[test]
    fn pages_within_pages_are_found() {
        let inner = page(false, 5_000, 7, 0);
        let [outer, _] = versions(40, &[&[9; 10][..], &inner].concat(), kind::TRUE);
        let (end, at) = (4 + outer.len(), 4 + outer.len() - inner.len());
        let all = range(4, end, Codec::Bounded);
        let page = |start, end| PageRange { is_page: true, ..range(start, end, Codec::Bounded) };
        let found = |ranges: &[PageRange]| largest_page(&outer, 4, ranges);
        assert_eq!(found(&[all]), Ok(40));
        assert_eq!(found(&[all, page(at, end)]), Err(PageError::Overlap));
        assert_eq!(found(&[page(at, end)]), Ok(5_000));
        // A place that is longer than the page there, or shorter.
        assert_eq!(found(&[all, page(4, end)]), Ok(40));
        for end in [end - 1, end + 1] {
            assert_eq!(found(&[all, page(4, end)]), Err(PageError::Length));
            assert_eq!(found(&[page(at, end)]), Err(PageError::Length));
        }
    }
}
