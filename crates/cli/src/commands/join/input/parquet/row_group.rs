//! One row group, whose pages are checked before their values are decoded.

use std::iter;
use std::sync::Arc;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};
use workahead_messages::RATIO_USUAL;

use super::source::Source;
use super::{delta, value_bytes};

/// One row group of a file.
pub(super) struct RowGroup {
    pub(super) file: Arc<Source>,
    pub(super) metadata: Arc<ParquetMetaData>,
    pub(super) index: usize,
}

impl RowGroup {
    fn metadata_of_group(&self) -> &RowGroupMetaData {
        self.metadata.row_group(self.index)
    }
}

impl RowGroups for RowGroup {
    fn num_rows(&self) -> usize {
        self.metadata_of_group().num_rows() as usize
    }

    fn column_chunks(&self, leaf: usize) -> Result<Box<dyn PageIterator>> {
        let chunk = self.metadata_of_group().column(leaf);
        let index = self.metadata.offset_index();
        let places = index.map(|index| index[self.index][leaf].page_locations().clone());
        Ok(Box::new(Chunk(Some(Pages::of(&self.file, chunk, self.num_rows(), places)?))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(iter::once(self.metadata_of_group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of the only chunk.
struct Chunk(Option<Pages>);

impl Iterator for Chunk {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let pages: Box<dyn PageReader> = Box::new(self.0.take()?);
        Some(Ok(pages))
    }
}

impl PageIterator for Chunk {}

/// The pages of a chunk.
pub(super) struct Pages {
    file: Arc<Source>,
    pages: SerializedPageReader<Source>,
    column: ColumnDescPtr,
    compressed_bytes: usize,
    /// Decompressed so far.
    bytes: usize,
}

impl Pages {
    /// Of a chunk of `rows` rows, or of none if it is read from end to end; with the places of its
    /// pages if they are known.
    pub(super) fn of(
        file: &Arc<Source>,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        places: Option<Vec<PageLocation>>,
    ) -> Result<Self> {
        let pages = SerializedPageReader::new(file.clone(), chunk, rows, places)?;
        let compressed_bytes = chunk.byte_range().1 as usize;
        let (file, column) = (file.clone(), chunk.column_descr_ptr());
        Ok(Self { file, pages, column, compressed_bytes, bytes: 0 })
    }

    /// Refuses a file that decompresses to much that no value has.
    fn check_used(&mut self, page: &Page) -> Result<()> {
        let bytes = page.buffer().len();
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes / RATIO_USUAL <= self.compressed_bytes {
            return Ok(());
        }
        let unused = bytes.saturating_sub(value_bytes::bytes(page, &self.column));
        match self.file.add_unused(unused) {
            false => Ok(()),
            true => {
                let says = "its pages have more that no value has than values: write it again";
                Err(ParquetError::General(says.to_owned()))
            }
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.pages.get_next_page()? else { return Ok(None) };
        self.check_used(&page)?;
        if !is_sound(&page, levels(&self.column)) {
            return Err(ParquetError::General("a page has more texts than it says".to_owned()));
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// The highest repetition and definition levels of a column.
pub(super) fn levels(column: &ColumnDescriptor) -> [i16; 2] {
    [column.max_rep_level(), column.max_def_level()]
}

/// Texts written as differences say how many they are once more.
fn is_sound(page: &Page, levels: [i16; 2]) -> bool {
    let runs = match page.encoding() {
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        Encoding::DELTA_BYTE_ARRAY => 2,
        _ => return true,
    };
    let values = page.num_values() as usize;
    texts(page, levels).is_some_and(|mut bytes| {
        (0..runs).all(|_| match delta::run_bytes(bytes, values) {
            Some(run) => {
                bytes = bytes.get(run..).unwrap_or_default();
                true
            }
            None => false,
        })
    })
}

/// The part of a page after its levels.
fn texts(page: &Page, levels: [i16; 2]) -> Option<&[u8]> {
    parts(page, levels).map(|(_, texts)| texts)
}

/// The repetition and definition levels of a page, and its values.
pub(super) fn parts(page: &Page, levels: [i16; 2]) -> Option<([&[u8]; 2], &[u8])> {
    let mut of_levels = [&[][..]; 2];
    match page {
        Page::DataPage { buf, rep_level_encoding, def_level_encoding, num_values, .. } => {
            let encodings = [rep_level_encoding, def_level_encoding];
            let mut rest: &[u8] = buf;
            for (at, (encoding, highest)) in encodings.into_iter().zip(levels).enumerate() {
                let bits = i16::BITS - highest.leading_zeros();
                let (before, bytes): (usize, usize) = match encoding {
                    _ if highest == 0 => (0, 0),
                    Encoding::RLE => (4, u32::from_le_bytes(*rest.first_chunk::<4>()?) as usize),
                    // One level after the other.
                    _ => (0, (*num_values as usize * bits as usize).div_ceil(8)),
                };
                of_levels[at] = rest.get(before..before.checked_add(bytes)?)?;
                rest = &rest[before + bytes..];
            }
            Some((of_levels, rest))
        }
        Page::DataPageV2 { buf, rep_levels_byte_len, def_levels_byte_len, .. } => {
            let (repetition, rest) = buf.split_at_checked(*rep_levels_byte_len as usize)?;
            let (definition, rest) = rest.split_at_checked(*def_levels_byte_len as usize)?;
            Some(([repetition, definition], rest))
        }
        Page::DictionaryPage { buf, .. } => Some((of_levels, buf)),
    }
}
