//! The metadata of a file, looked through before it is decoded: what its lists say they hold is
//! there, and its schema is no deeper than a recursion may go.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::reader::Length;

use super::source::Source;
use super::thrift::{Malformed, Reader, kind};

/// Columns within columns; decoders and joins of more than this recurse too far.
const NESTING_MAX: usize = 128;
/// More rows are in no file; their sum must be a number.
const ROWS_MAX: i64 = 1 << 40;

/// The metadata, with the pages' places where the file has them.
pub(super) fn metadata(file: &Source, bytes_max: usize) -> anyhow::Result<ArrowReaderMetadata> {
    let tail = file.len().checked_sub(FOOTER_SIZE as u64).context("it is too short")?;
    let trailer = file.bytes(tail, FOOTER_SIZE)?;
    let footer = FooterTail::try_from(&trailer[..])?.metadata_length();
    let start = tail.checked_sub(footer as u64).context("its footer is longer than the file")?;
    check(&read(file, start, footer, bytes_max)?)?;
    let mut reader = ParquetMetaDataReader::new();
    reader.try_parse(file)?;
    let metadata = reader.finish()?;
    for group in metadata.row_groups() {
        let rows = group.num_rows();
        ensure!((0..=ROWS_MAX).contains(&rows), "a row group has {rows} rows");
    }
    check_offset_indexes(&metadata, file, bytes_max)?;
    let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    reader.read_page_indexes(file)?;
    let options = ArrowReaderOptions::new();
    Ok(ArrowReaderMetadata::try_new(Arc::new(reader.finish()?), options)?)
}

/// `FileMetaData`, whose second field is the schema.
fn check(footer: &[u8]) -> anyhow::Result<()> {
    let mut depth = 0;
    let walked = Reader::new(footer).fields(|reader, field, kind| {
        let is_schema = (field, kind) == (2, kind::LIST);
        if is_schema {
            depth = schema_depth(reader)?.max(depth);
        }
        Ok(is_schema)
    });
    if depth > NESTING_MAX {
        bail!("its columns are nested {depth} levels deep, and {NESTING_MAX} are the most");
    }
    walked.map_err(cut_short)
}

/// Levels of the schema: each element is followed by its children.
fn schema_depth(reader: &mut Reader<'_>) -> Result<usize, Malformed> {
    let (kind, elements) = reader.list()?;
    if kind != kind::STRUCT {
        return Err(Malformed::Wrong);
    }
    // Children that are still to come, of each level.
    let mut open: Vec<i64> = Vec::new();
    let mut deepest = 0;
    for _ in 0..elements {
        while open.pop_if(|missing| *missing == 0).is_some() {}
        if let Some(missing) = open.last_mut() {
            *missing -= 1;
        }
        let mut children = 0;
        reader.fields(|reader, field, kind| {
            let counts = (field, kind) == (5, kind::I32);
            if counts {
                children = reader.number()?;
            }
            Ok(counts)
        })?;
        // Decoders make room for as many.
        if children < 0 || children > elements as i64 {
            return Err(Malformed::Wrong);
        }
        if children > 0 {
            open.push(children);
            deepest = open.len().max(deepest);
        }
    }
    Ok(deepest)
}

/// `OffsetIndex` of every column: lists of places.
fn check_offset_indexes(
    metadata: &ParquetMetaData,
    file: &Source,
    bytes_max: usize,
) -> anyhow::Result<()> {
    let (mut first, mut last) = (u64::MAX, 0);
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (Some(offset), Some(length)) =
            (column.offset_index_offset(), column.offset_index_length())
        else {
            continue;
        };
        let (offset, length) = (u64::try_from(offset)?, usize::try_from(length)?);
        let bytes = read(file, offset, length, bytes_max)?;
        Reader::new(&bytes).skip(kind::STRUCT, 8).map_err(cut_short)?;
        (first, last) = (offset.min(first), (offset + length as u64).max(last));
    }
    // They are read as one piece.
    ensure!(last.saturating_sub(first) <= bytes_max as u64, "its page index is scattered");
    Ok(())
}

/// Some bytes of metadata.
fn read(file: &Source, start: u64, length: usize, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    ensure!(length <= bytes_max, "its metadata takes {length} bytes: raise --memory-limit");
    Ok(file.bytes(start, length)?)
}

fn cut_short(_: Malformed) -> anyhow::Error {
    anyhow::anyhow!("its metadata is cut short, or no metadata")
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
        assert_eq!(schema_depth(&mut Reader::new(&footer(&[2, 1, 0, 1, 1, 0])[1..])), Ok(3));
        check(&footer(&[[1; 128].as_slice(), &[0]].concat())).unwrap();
        let says = check(&footer(&[1; 8000])).unwrap_err().to_string();
        assert_eq!(says, "its columns are nested 8000 levels deep, and 128 are the most");
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
