//! The metadata of a file, looked through before it is decoded: what its lists say they hold is
//! there and fits the memory, and its schema is no deeper than a recursion may go.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use arrow_cast::base64::{BASE64_STANDARD, Engine};
use arrow_ipc::root_as_message;
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::reader::Length;

use super::super::fields::{self, MARKER};
use super::super::plain::{self, Texts};
use super::super::records::COLUMNS_MAX;
use super::super::refusal::{BYTES_MIN, too_much};
use super::schema::{ELEMENT_BYTES, Schema};
use super::source::Source;
use super::thrift::{Malformed, Reader, kind};

/// Columns within columns; decoders and joins of more than this recurse too far.
const NESTING_MAX: usize = 128;
/// A column of a row group decoded.
const CHUNK_BYTES: usize = 512;
/// More rows are in no file; their sum must be a number.
const ROWS_MAX: i64 = 1 << 40;

/// The metadata, with the pages' places where the file has them.
pub(super) fn metadata(file: &Source, bytes_max: usize) -> anyhow::Result<ArrowReaderMetadata> {
    let tail = file.len().checked_sub(FOOTER_SIZE as u64).context("it is too short")?;
    let trailer = file.bytes(tail, FOOTER_SIZE)?;
    let footer = FooterTail::try_from(&trailer[..])?.metadata_length();
    let start = tail.checked_sub(footer as u64).context("its footer is longer than the file")?;
    fits("its metadata", footer, bytes_max)?;
    check(&file.bytes(start, footer)?, bytes_max)?;
    let mut reader = ParquetMetaDataReader::new();
    reader.try_parse(file)?;
    let metadata = reader.finish()?;
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        ensure!((0..=ROWS_MAX).contains(&rows), "a row group has {rows} rows");
    }
    check_chunks(&metadata, file.len())?;
    check_arrow_schema(&metadata, bytes_max)?;
    check_offset_indexes(&metadata, file, bytes_max)?;
    let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    reader.read_page_indexes(file)?;
    let metadata = reader.finish()?;
    check_pages(&metadata)?;
    let options = ArrowReaderOptions::new();
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), options.clone())?;
    plain::check(Texts::Keys, metadata.schema())?;
    let schema = plain::schema(Texts::Keys, metadata.schema());
    let metadata = if schema == *metadata.schema() {
        metadata
    } else {
        ArrowReaderMetadata::try_new(metadata.metadata().clone(), options.with_schema(schema))?
    };
    fields::check_row(metadata.schema(), bytes_max)?;
    Ok(metadata)
}

/// Refuses a schema that another decoder, which does not look first, recurses through too far.
#[cfg(feature = "sql")]
pub(super) fn check_nesting(file: &Source) -> anyhow::Result<()> {
    let Some(tail) = file.len().checked_sub(FOOTER_SIZE as u64) else { return Ok(()) };
    let trailer = file.bytes(tail, FOOTER_SIZE)?;
    // What is no file of Parquet's the other decoder refuses.
    let Ok(footer) = FooterTail::try_from(&trailer[..]) else { return Ok(()) };
    let Some(start) = tail.checked_sub(footer.metadata_length() as u64) else { return Ok(()) };
    check(&file.bytes(start, footer.metadata_length())?, usize::MAX)
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

fn check(footer: &[u8], bytes_max: usize) -> anyhow::Result<()> {
    let (mut schema, mut groups, mut pairs) = (Schema::default(), 0, 0);
    let walked = Reader::new(footer).fields(&FILE, |reader, field| {
        match field {
            // A decoder goes by the first.
            2 if schema.columns > 0 => return Err(Malformed::Wrong),
            2 => schema = Schema::read(reader)?,
            4 => groups += reader.clone().list()?.1,
            5 => pairs += reader.clone().list()?.1,
            _ => {}
        }
        Ok(field == 2)
    });
    let Schema { levels, columns, bytes } = schema;
    if levels > NESTING_MAX {
        bail!("its columns are nested {levels} levels deep, and {NESTING_MAX} are the most");
    }
    if columns > COLUMNS_MAX {
        bail!("it has {columns} columns, and {COLUMNS_MAX} are the most: write fewer to a file");
    }
    walked.map_err(cut_short)?;
    let chunks = groups.saturating_mul(columns).saturating_mul(CHUNK_BYTES);
    let bytes = bytes.saturating_add(chunks).saturating_add(pairs.saturating_mul(ELEMENT_BYTES));
    fits("its metadata", bytes, bytes_max)
}

/// Refuses chunks that have more bytes than the file: one may be named any number of times.
fn check_chunks(metadata: &ParquetMetaData, file_bytes: u64) -> anyhow::Result<()> {
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    let bytes = chunks.map(|chunk| chunk.compressed_size().max(0) as u64);
    let bytes = bytes.fold(0, u64::saturating_add);
    ensure!(bytes <= file_bytes, "its columns have {bytes} bytes, and it has {file_bytes}");
    Ok(())
}

/// The same of pages in a chunk.
fn check_pages(metadata: &ParquetMetaData) -> anyhow::Result<()> {
    let groups = metadata.row_groups().iter().zip(metadata.offset_index().into_iter().flatten());
    for (group, places) in groups {
        for (chunk, places) in group.columns().iter().zip(places) {
            let pages = places.page_locations().iter();
            let bytes = pages.map(|page| i64::from(page.compressed_page_size)).sum::<i64>();
            ensure!(bytes <= chunk.compressed_size(), "the pages of a column have too many bytes");
        }
    }
    Ok(())
}

/// The schema that Arrow's writers put beside Parquet's. One that is none, its decoder refuses.
fn check_arrow_schema(metadata: &ParquetMetaData, bytes_max: usize) -> anyhow::Result<()> {
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let texts = pairs.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY);
    for text in texts.filter_map(|pair| pair.value.as_ref()) {
        let Ok(bytes) = BASE64_STANDARD.decode(text) else { continue };
        let message = bytes.strip_prefix(&MARKER).and_then(|rest| rest.get(4..)).unwrap_or(&bytes);
        let message = root_as_message(message).ok();
        if let Some(schema) = message.and_then(|message| message.header_as_schema()) {
            fields::check(schema, bytes_max)?;
        }
    }
    Ok(())
}

/// `OffsetIndex` of every column: lists of places.
fn check_offset_indexes(
    metadata: &ParquetMetaData,
    file: &Source,
    bytes_max: usize,
) -> anyhow::Result<()> {
    let (mut first, mut last, mut sum) = (u64::MAX, 0, 0_usize);
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (Some(offset), Some(length)) =
            (column.offset_index_offset(), column.offset_index_length())
        else {
            continue;
        };
        let (offset, length) = (u64::try_from(offset)?, usize::try_from(length)?);
        // Columns may name the same one, which is decoded for each.
        sum = sum.saturating_add(length);
        fits("its page index", sum, bytes_max)?;
        let bytes = file.bytes(offset, length)?;
        Reader::new(&bytes).skip(kind::STRUCT, 8).map_err(cut_short)?;
        (first, last) = (offset.min(first), (offset + length as u64).max(last));
    }
    // They are read as one piece.
    ensure!(last.saturating_sub(first) <= bytes_max as u64, "its page index is scattered");
    Ok(())
}

fn fits(what: &str, bytes: usize, bytes_max: usize) -> anyhow::Result<()> {
    let most = bytes_max.max(BYTES_MIN);
    if bytes <= most { Ok(()) } else { Err(too_much(what, bytes, most, "").into()) }
}

fn cut_short(_: Malformed) -> anyhow::Error {
    anyhow::anyhow!("its metadata is cut short, or no metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 64 << 20;

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
        check(&footer(&[2, 1, 0, 1, 1, 0]), MOST).unwrap();
        let schema = Schema::read(&mut Reader::new(&footer(&[2, 1, 0, 1, 1, 0])[1..])).unwrap();
        assert_eq!((schema.levels, schema.columns), (3, 2));
        check(&footer(&[[1; 128].as_slice(), &[0]].concat()), MOST).unwrap();
        let says = check(&footer(&[1; 8000]), MOST).unwrap_err().to_string();
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
                check(&bytes, 0)
            };
            lists(16_000).unwrap();
            let says = lists(17_000).unwrap_err().to_string();
            assert!(says.starts_with("its metadata takes 17 MiB, more than the 16 MiB"), "{says}");
        }
    }

    #[test]
    fn a_field_has_its_kind() {
        let whole = footer(&[2, 0, 0]);
        check(&whole, MOST).unwrap();
        // The schema as a set, and a number of children of 64 bits.
        for (at, byte) in [(0, 0x2a), (3, 0x56)] {
            let mut other = whole.clone();
            other[at] = byte;
            assert!(check(&other, MOST).is_err(), "{at}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        let whole = footer(&[2, 0, 0]);
        for end in 0..whole.len() {
            assert!(check(&whole[..end], MOST).is_err(), "{end}");
        }
        assert!(check(&footer(&[60, 0, 0]), MOST).is_err(), "more children than elements");
        // A list of 2^28 elements, and a text of 2^28 bytes, of which nothing is there.
        for beginning in [[0x29, 0xfc].as_slice(), &[0x28]] {
            let lie = [beginning, &[0x80, 0x80, 0x80, 0x80, 0x01, 0]].concat();
            assert!(check(&lie, MOST).is_err());
        }
    }
}
