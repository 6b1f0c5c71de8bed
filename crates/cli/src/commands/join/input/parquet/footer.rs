//! The metadata of a file, looked through before it is decoded: what its lists say they hold is
//! there and fits the memory, and its schema is no deeper than a recursion may go.

use std::sync::Arc;

use anyhow::{Context, ensure};
use parquet::arrow::ARROW_SCHEMA_META_KEY;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    FooterTail, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader,
};
use parquet::file::reader::Length;
use workahead_footer::FooterError;
use workahead_footer::thrift::{Reader, kind};
use workahead_messages::{BYTES_MIN, check_encoded_schema, check_row};

use super::super::plain::{self, Texts};
use super::super::refusal::{refused, too_much};
use super::source::Source;

/// More rows are in no file; their sum must be a number.
const ROWS_MAX: i64 = 1 << 40;

/// The metadata, with the pages' places where the file has them.
pub(super) fn metadata(file: &Source, bytes_max: usize) -> anyhow::Result<ArrowReaderMetadata> {
    let tail = file.len().checked_sub(FOOTER_SIZE as u64).context("it is too short")?;
    let trailer = file.bytes(tail, FOOTER_SIZE)?;
    let footer = FooterTail::try_from(&trailer[..])?.metadata_length();
    let start = tail.checked_sub(footer as u64).context("its footer is longer than the file")?;
    fits("its metadata", footer, bytes_max)?;
    fits("its metadata", workahead_footer::check(&file.bytes(start, footer)?)?, bytes_max)?;
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
    check_row(metadata.schema(), bytes_max).map_err(refused)?;
    Ok(metadata)
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
        check_encoded_schema(text.as_bytes(), bytes_max).map_err(refused)?;
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
        Reader::new(&bytes).skip(kind::STRUCT, 8).map_err(FooterError::from)?;
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
