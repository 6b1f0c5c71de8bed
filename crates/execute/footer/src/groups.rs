//! The row groups in a footer, and the page indexes that their columns point to.
//!
//! A decoder reads a field as what its number means. One of another kind would lead it to bytes
//! that were passed over here as a text, so that all it reads has its kinds in these tables.

use crate::pages::{Codec, PageRange};
use crate::thrift::{Malformed, Reader, kind};

/// `RowGroup`, and what is in it.
const ROW_GROUP: [u8; 7] =
    [kind::LIST, kind::I64, kind::I64, kind::LIST, kind::I64, kind::I64, kind::I16];
const SORTING_COLUMN: [u8; 3] = [kind::I32, kind::TRUE, kind::TRUE];
const COLUMN_CHUNK: [u8; 9] = [
    kind::BINARY,
    kind::I64,
    kind::STRUCT,
    kind::I64,
    kind::I32,
    kind::I64,
    kind::I32,
    kind::STRUCT,
    kind::BINARY,
];
/// `ColumnMetaData`, and what is in it.
const COLUMN: [u8; 17] = [
    kind::I32,
    kind::LIST,
    kind::LIST,
    kind::I32,
    kind::I64,
    kind::I64,
    kind::I64,
    kind::LIST,
    kind::I64,
    kind::I64,
    kind::I64,
    kind::STRUCT,
    kind::LIST,
    kind::I64,
    kind::I32,
    kind::STRUCT,
    kind::STRUCT,
];
const STATISTICS: [u8; 8] = [
    kind::BINARY,
    kind::BINARY,
    kind::I64,
    kind::I64,
    kind::BINARY,
    kind::BINARY,
    kind::TRUE,
    kind::TRUE,
];
const PAGE_ENCODING_STATS: [u8; 3] = [kind::I32; 3];
const SIZE_STATISTICS: [u8; 3] = [kind::I64, kind::LIST, kind::LIST];
const GEOSPATIAL_STATISTICS: [u8; 2] = [kind::STRUCT, kind::LIST];
const BOUNDING_BOX: [u8; 8] = [kind::DOUBLE; 8];
const OFFSET_INDEX: [u8; 2] = [kind::LIST; 2];
const PAGE_LOCATION: [u8; 3] = [kind::I64, kind::I32, kind::I64];
const COLUMN_INDEX: [u8; 7] =
    [kind::LIST, kind::LIST, kind::LIST, kind::I32, kind::LIST, kind::LIST, kind::LIST];

/// A place of a page decoded, and a text while it is, with the value that is made of it.
const PLACE_BYTES: usize = 24;
const BOUND_BYTES: usize = 32;

/// Where a page index of a column is.
pub(crate) struct PageIndex {
    pub(crate) start: u64,
    pub(crate) length: u64,
    of: IndexContent,
}

/// What a page index has of each page.
enum IndexContent {
    /// Its place in this column.
    Places(PageRange),
    /// The least and the greatest value.
    Bounds,
}

impl PageIndex {
    /// About how many bytes it takes once it is decoded. Its places are visited.
    pub(crate) fn check(
        &self,
        reader: &mut Reader<'_>,
        visit: &mut dyn FnMut(PageRange) -> Result<(), Malformed>,
    ) -> Result<usize, Malformed> {
        match self.of {
            IndexContent::Places(column) => offset_index(reader, column, visit),
            IndexContent::Bounds => column_index(reader),
        }
    }
}

/// What a column of a row group points to.
pub(crate) enum Part {
    Pages(PageRange),
    Index(PageIndex),
}

/// Called with each part.
pub(crate) type Visit<'a> = dyn FnMut(Part) -> Result<(), Malformed> + 'a;

/// Passes over a list of `RowGroup`.
pub(crate) fn row_groups(reader: &mut Reader<'_>, visit: &mut Visit<'_>) -> Result<(), Malformed> {
    reader.structs(|reader| {
        reader.fields(&ROW_GROUP, |reader, field| {
            match field {
                1 => reader.structs(|reader| column_chunk(reader, visit))?,
                4 => reader.structs(|reader| reader.known(&SORTING_COLUMN))?,
                _ => {}
            }
            Ok(matches!(field, 1 | 4))
        })
    })
}

fn column_chunk(reader: &mut Reader<'_>, visit: &mut Visit<'_>) -> Result<(), Malformed> {
    // As none are there.
    let (mut offsets, mut columns) = ((-1, -1), (-1, -1));
    let mut pages = None;
    reader.fields(&COLUMN_CHUNK, |reader, field| {
        match field {
            // A decoder would make one of both.
            3 if pages.is_some() => return Err(Malformed::Wrong),
            3 => pages = Some(column(reader)?),
            4 => offsets.0 = reader.number()?,
            5 => offsets.1 = reader.int()?,
            6 => columns.0 = reader.number()?,
            7 => columns.1 = reader.int()?,
            _ => {}
        }
        Ok(matches!(field, 3..=7))
    })?;
    if let Some(pages) = pages {
        visit(Part::Pages(pages))?;
    }
    let contents = [IndexContent::Places(pages.unwrap_or_default()), IndexContent::Bounds];
    for ((start, length), of) in [offsets, columns].into_iter().zip(contents) {
        // Decoders do without those that are below zero.
        if let (Ok(start), Ok(length)) = (start.try_into(), length.try_into()) {
            visit(Part::Index(PageIndex { start, length, of }))?;
        }
    }
    Ok(())
}

/// Passes over one; its pages. Those below zero, decoders refuse.
fn column(reader: &mut Reader<'_>) -> Result<PageRange, Malformed> {
    let (mut data, mut dictionary, mut length) = (0, None, 0);
    let mut codec = Codec::default();
    reader.fields(&COLUMN, |reader, field| {
        match field {
            4 => codec = Codec::new(reader.int()?),
            7 => length = reader.number()?,
            9 => data = reader.number()?,
            11 => dictionary = Some(reader.number()?),
            12 => reader.known(&STATISTICS)?,
            13 => reader.structs(|reader| reader.known(&PAGE_ENCODING_STATS))?,
            16 => reader.known(&SIZE_STATISTICS)?,
            17 => reader.fields(&GEOSPATIAL_STATISTICS, |reader, field| {
                if field == 1 {
                    reader.known(&BOUNDING_BOX)?;
                }
                Ok(field == 1)
            })?,
            _ => {}
        }
        Ok(matches!(field, 4 | 7 | 9 | 11 | 12 | 13 | 16 | 17))
    })?;
    let start = u64::try_from(dictionary.unwrap_or(data)).unwrap_or(u64::MAX);
    let end = start.saturating_add(u64::try_from(length).unwrap_or(0));
    Ok(PageRange { start, end, codec, is_page: false })
}

/// The places in a column, each of which is visited.
fn offset_index(
    reader: &mut Reader<'_>,
    column: PageRange,
    visit: &mut dyn FnMut(PageRange) -> Result<(), Malformed>,
) -> Result<usize, Malformed> {
    let mut places = 0_usize;
    reader.fields(&OFFSET_INDEX, |reader, field| {
        if field == 1 {
            let mut is_first = true;
            reader.structs(|reader| {
                let (start, end) = page_location(reader)?;
                // To a decoder, what is in front of the first is the dictionary.
                if is_first && column.start < start {
                    visit(PageRange { end: start, is_page: true, ..column })?;
                }
                is_first = false;
                places += 1;
                visit(PageRange { start, end, is_page: true, ..column })
            })?;
        }
        Ok(field == 1)
    })?;
    Ok(places.saturating_mul(PLACE_BYTES).saturating_add(reader.number_bytes()))
}

/// Where a page begins and ends. One that is below zero, decoders don't find.
fn page_location(reader: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    let (mut start, mut length) = (0, 0);
    reader.fields(&PAGE_LOCATION, |reader, field| {
        match field {
            1 => start = reader.number()?,
            2 => length = reader.int()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let start = u64::try_from(start).unwrap_or(u64::MAX);
    Ok((start, start.saturating_add(u64::try_from(length).unwrap_or(0))))
}

fn column_index(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    let mut bounds = 0_usize;
    reader.fields(&COLUMN_INDEX, |reader, field| {
        // The least and the greatest values.
        if matches!(field, 2 | 3) {
            bounds += reader.clone().list()?.1;
        }
        if field == 1 {
            // Whether each page is of nulls: the one list of truth values in Parquet's metadata,
            // of which all decoders read a byte each.
            let (kind, pages) = reader.list()?;
            if pages > 0 && !matches!(kind, kind::TRUE | kind::FALSE) {
                return Err(Malformed::Wrong);
            }
            reader.pass(pages)?;
        }
        Ok(field == 1)
    })?;
    Ok(bounds.saturating_mul(BOUND_BYTES).saturating_add(reader.number_bytes()))
}
