//! Memory of the pages of a column chunk once they are decoded, by their headers.
//!
//! A page is made room for as large as its header says, and a value of a dictionary may be repeated
//! in every row: a small file can take any memory. Headers are read before the pages, and the bytes
//! that come out of a page are counted where they might be more than its header says.

use std::io::Read;
use std::sync::Arc;

use anyhow::ensure;
use parquet::basic::{Compression, Type};
use parquet::column::page::{Page, PageReader};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::{ChunkReader, Length};
use workahead_footer::pages::{Codec, PageError, PageHeader};
use workahead_footer::thrift::Malformed;

use super::super::refusal::too_much;
use super::TEXT_BYTES_MAX;
use super::row_group::Pages;
use super::rows;
use super::source::Source;

/// Headers are some dozens of bytes, more if they hold statistics of texts.
const HEADER_BYTES: usize = 512;
const HEADER_BYTES_MAX: usize = 16 << 20;
/// A dictionary is looked at unless a batch of this length, all of it in each row, is small enough.
const BATCH_ROWS: usize = 1 << 16;
/// A level of a nested value: definition and repetition.
const LEVEL_BYTES: usize = 4;

/// Memory that reading a chunk takes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// The dictionary and the largest page, decompressed.
    pub(super) page_bytes: usize,
    /// A row, where rows take most.
    pub(super) row_bytes: usize,
    /// A row on average.
    pub(super) usual_bytes: usize,
}

/// Looks through the pages of a chunk; more than `bytes_max` for one of them is refused.
pub(super) fn room(
    file: &Arc<Source>,
    metadata: &ParquetMetaData,
    (group, leaf): (usize, usize),
    bytes_max: usize,
) -> anyhow::Result<Room> {
    let chunk = metadata.row_group(group).column(leaf);
    let (start, length) = chunk.byte_range();
    let end = start.checked_add(length).filter(|end| *end <= file.len());
    ensure!(end.is_some(), "a column is beyond its end");
    let places = metadata.offset_index().map(|index| index[group][leaf].page_locations());
    let places = places.filter(|places| !places.is_empty()).map(Vec::as_slice);
    let mut seen = ChunkMaxima::new(chunk, places, bytes_max);
    match places {
        None => seen.pages(file, start, start + length)?,
        Some(places) => {
            let first = u64::try_from(places[0].offset)?;
            // All that is in front of them is the dictionary to a decoder.
            if start < first {
                seen.page_at(file, start, first)?;
            }
            for place in places {
                let from = u64::try_from(place.offset)?;
                let to = from.saturating_add(u64::try_from(place.compressed_page_size)?);
                ensure!(start <= from && to <= start + length, "a page is outside of its column");
                seen.page_at(file, from, to)?;
            }
        }
    }
    seen.room(file, metadata.row_group(group))
}

/// How the pages of a column are compressed.
fn codec(compression: Compression) -> Codec {
    match compression {
        Compression::GZIP(_) => Codec::Gzip,
        Compression::LZ4 => Codec::Lz4,
        Compression::BROTLI(_) => Codec::Brotli,
        _ => Codec::Bounded,
    }
}

/// The largest of what was seen of a chunk.
struct ChunkMaxima<'a> {
    chunk: &'a ColumnChunkMetaData,
    /// Its pages, if they are known: a reader reads these, and nothing between them.
    places: Option<&'a [PageLocation]>,
    bytes_max: usize,
    dictionary: usize,
    largest: usize,
    /// A value of the page whose values take most.
    dense: usize,
    values: usize,
    delta: bool,
    pages: usize,
    /// Values of the dictionary.
    dictionary_values: usize,
    /// Bytes and values of all pages.
    all_bytes: usize,
    all_values: usize,
}

impl<'a> ChunkMaxima<'a> {
    fn new(
        chunk: &'a ColumnChunkMetaData,
        places: Option<&'a [PageLocation]>,
        bytes_max: usize,
    ) -> Self {
        Self {
            chunk,
            places,
            bytes_max,
            dictionary: 0,
            largest: 0,
            dense: 0,
            values: 0,
            delta: false,
            pages: 0,
            dictionary_values: 0,
            all_bytes: 0,
            all_values: 0,
        }
    }

    /// Pages that follow each other.
    fn pages(&mut self, file: &Source, mut at: u64, end: u64) -> anyhow::Result<()> {
        while at < end {
            at = self.page(file, at, end)?;
        }
        Ok(())
    }

    /// A page whose decoder is given all from here to there, whatever its header says.
    fn page_at(&mut self, file: &Source, at: u64, end: u64) -> anyhow::Result<()> {
        ensure!(self.page(file, at, end)? == end, PageError::Length);
        Ok(())
    }

    /// The page at a place, which is decoded if more might come out of it than it says. Where it
    /// ends.
    fn page(&mut self, file: &Source, at: u64, end: u64) -> anyhow::Result<u64> {
        let header = header(file, at, end)?;
        self.add(&header)?;
        let body = at + header.own_bytes as u64;
        let codec = codec(self.chunk.compression());
        if codec != Codec::Bounded {
            let bytes = file.get_read(body)?.take(header.compressed_bytes as u64);
            header.check_body(codec, bytes)?;
        }
        Ok(body + header.compressed_bytes as u64)
    }

    fn add(&mut self, header: &PageHeader) -> anyhow::Result<()> {
        // It is in memory as it lies in the file, too.
        let bytes = header.page_bytes.max(header.compressed_bytes);
        if bytes > self.bytes_max {
            return Err(self.too_large(bytes));
        }
        self.pages += 1;
        if header.is_dictionary {
            ensure!(self.pages == 1, "a dictionary is not the first page of its column");
            let least = self.value_bytes().max(1);
            let fits = header.values.checked_mul(least).is_some_and(|b| b <= header.page_bytes);
            ensure!(fits, PageError::Values);
            self.dictionary = bytes.max(self.dictionary);
            self.dictionary_values = header.values;
            return Ok(());
        }
        self.largest = bytes.max(self.largest);
        self.dense = header.page_bytes.div_ceil(header.values.max(1)).max(self.dense);
        self.values = header.values.max(self.values);
        self.all_bytes = self.all_bytes.saturating_add(header.page_bytes);
        self.all_values = self.all_values.saturating_add(header.values);
        self.delta |= header.is_delta;
        // Lengths of all its texts are decoded at once.
        if header.room_bytes() > self.bytes_max {
            return Err(self.too_large(header.room_bytes()));
        }
        Ok(())
    }

    fn room(self, file: &Arc<Source>, group: &RowGroupMetaData) -> anyhow::Result<Room> {
        let description = self.chunk.column_descr();
        let mut widest = match description.physical_type() {
            // A missing value takes as much as one that is there.
            Type::FIXED_LEN_BYTE_ARRAY => self.value_bytes(),
            Type::BYTE_ARRAY if self.delta => self.largest.max(self.dictionary),
            Type::BYTE_ARRAY => self.widest_of_dictionary(file)?,
            _ => 0,
        };
        widest = widest.max(self.dense);
        if description.max_rep_level() > 0 {
            widest = self.widest_list(file, widest, group)?;
        }
        if widest > self.bytes_max {
            let what = format!("a row of {}", self.chunk.column_path());
            return Err(too_much(&what, widest, self.bytes_max, "").into());
        }
        // In the pages, values of a dictionary are numbers.
        let mean = self.dictionary.div_ceil(self.dictionary_values.max(1));
        let all_bytes = self.all_values.saturating_mul(mean).saturating_add(self.all_bytes);
        let usual_bytes = all_bytes.div_ceil(usize::try_from(group.num_rows())?.max(1));
        let page_bytes = self.dictionary + self.largest;
        Ok(Room { page_bytes, row_bytes: widest, usual_bytes })
    }

    /// Bytes of the widest row of lists, which is looked for unless all rows together are a matter
    /// of little.
    fn widest_list(
        &self,
        file: &Arc<Source>,
        value: usize,
        group: &RowGroupMetaData,
    ) -> anyhow::Result<usize> {
        let least = self.value_bytes() + LEVEL_BYTES;
        let all = self.all_values.saturating_mul(least.saturating_add(value));
        if all <= self.bytes_max.min(TEXT_BYTES_MAX) / group.num_columns().max(1) {
            return Ok(0);
        }
        rows::widest(file, self.chunk, (group.num_rows(), self.places), least)
    }

    /// Bytes of a value without its contents.
    fn value_bytes(&self) -> usize {
        match self.chunk.column_descr().physical_type() {
            Type::BOOLEAN => 0,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
            Type::INT64 | Type::DOUBLE => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => self.chunk.column_descr().type_length().max(0) as usize,
        }
    }

    /// The longest text of the dictionary; its size if that does not matter.
    fn widest_of_dictionary(&self, file: &Arc<Source>) -> anyhow::Result<usize> {
        if self.dictionary.saturating_mul(BATCH_ROWS) <= self.bytes_max.min(TEXT_BYTES_MAX) {
            return Ok(self.dictionary);
        }
        let places = self.places.map(<[_]>::to_vec);
        let mut pages = Pages::of(file, self.chunk, 0, places)?;
        let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else { return Ok(0) };
        let widest = rows::lengths(&buf).max().unwrap_or(0) as usize;
        Ok(widest.min(self.dictionary))
    }

    fn too_large(&self, bytes: usize) -> anyhow::Error {
        too_large(&format!("a page of {}", self.chunk.column_path()), bytes, self.bytes_max)
    }
}

/// The refusal of pages that take more than may be used.
pub(super) fn too_large(what: &str, bytes: usize, bytes_max: usize) -> anyhow::Error {
    too_much(what, bytes, bytes_max, ", or write the file in smaller pages").into()
}

/// The header at a place; its page ends before `end`.
fn header(file: &Source, at: u64, end: u64) -> anyhow::Result<PageHeader> {
    let there = usize::try_from(end - at).unwrap_or(usize::MAX);
    let mut window = HEADER_BYTES;
    loop {
        let bytes = file.bytes(at, window.min(there))?;
        match PageHeader::read(&bytes) {
            Ok(header) => {
                let whole = header.own_bytes.saturating_add(header.compressed_bytes);
                ensure!(whole <= there, "a page is longer than its column");
                return Ok(header);
            }
            Err(Malformed::Ends) if window < there.min(HEADER_BYTES_MAX) => window *= 8,
            Err(_) => anyhow::bail!(PageError::Header),
        }
    }
}
