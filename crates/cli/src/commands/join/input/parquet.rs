//! A Parquet file: any thread reads any part of a row group.
//!
//! ```text
//! footer ─► walked ─► metadata ─► page headers, once a row group ─► pages ─► batches
//! ```
//!
//! Lengths that decoders make room for are checked before each step; what values take that repeat
//! (dictionaries) bounds the rows of a batch.

mod delta;
mod footer;
mod pages;
mod row_group;
mod rows;
mod runs;
mod source;
mod value_bytes;

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use workahead_messages::{BYTES_MIN, row_bytes};

use self::pages::Room;
use self::row_group::RowGroup;
use self::source::Source;

use super::BatchSize;
use super::refusal::too_much;
use crate::commands::join::units::Unit;

/// The size of a column's page in most files.
const PAGE_BYTES: usize = 1 << 20;
/// Pages of sixteen columns, compressed and not.
const USUAL_BYTES: usize = 32 * PAGE_BYTES;

/// Texts of a batch: their places have 31 bits.
const TEXT_BYTES_MAX: usize = 1 << 30;

/// The batches of a part.
pub(crate) type Part = ParquetRecordBatchReader;

/// The metadata, and the columns to read.
pub(super) struct ParquetInput {
    source: Arc<Source>,
    metadata: ArrowReaderMetadata,
    /// Columns to read; all if none are named.
    columns: Option<Vec<usize>>,
    /// Most bytes of a batch.
    bytes_max: usize,
    /// Most bytes of a page of each column, together.
    page_max: OnceLock<usize>,
    /// The memory of each row group, once its pages were looked through.
    rooms: Vec<OnceLock<Room>>,
}

impl ParquetInput {
    pub(super) fn open(
        file: File,
        bytes_max: usize,
        interrupted: &'static AtomicBool,
    ) -> anyhow::Result<Self> {
        // With the page index, a part of a row group is found without decoding the pages before it.
        let source = Source::new(file, interrupted)?;
        let metadata = footer::metadata(&source, bytes_max)?;
        let rooms = metadata.metadata().row_groups().iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            source: Arc::new(source),
            metadata,
            columns: None,
            bytes_max,
            page_max: OnceLock::new(),
            rooms,
        })
    }

    pub(super) fn keep_only(&mut self, columns: Vec<usize>) {
        self.columns = Some(columns);
    }

    pub(super) fn schema(&self) -> SchemaRef {
        let schema = self.metadata.schema();
        match &self.columns {
            None => schema.clone(),
            Some(columns) => {
                let fields: Vec<_> =
                    columns.iter().map(|column| schema.fields()[*column].clone()).collect();
                Arc::new(Schema::new(fields))
            }
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// Rows of each row group.
    pub(super) fn row_groups(&self) -> Vec<usize> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| group.num_rows().max(0) as usize).collect()
    }

    /// The chunks of the columns to read, with their columns.
    fn chunks(&self) -> impl Iterator<Item = (usize, &ColumnChunkMetaData)> {
        let groups = self.metadata.metadata().row_groups().iter();
        let chunks = groups.flat_map(|group| group.columns().iter().enumerate());
        chunks.filter(|(leaf, _)| self.reads(*leaf))
    }

    /// The highest value of an integer column minus the lowest, by the row groups' statistics.
    pub(super) fn span(&self, column: &str) -> Option<u64> {
        let (root, field) = self.metadata.schema().column_with_name(column)?;
        let parquet = self.metadata.parquet_schema();
        let leaf = (0..parquet.num_columns()).find(|l| parquet.get_column_root_idx(*l) == root)?;
        let (mut lowest, mut highest) = (i128::MAX, i128::MIN);
        for group in self.metadata.metadata().row_groups() {
            let statistics = group.column(leaf).statistics()?;
            if statistics.null_count_opt() == Some(group.num_rows().max(0) as u64) {
                continue;
            }
            let (least, most) = bounds(statistics, field.data_type())?;
            (lowest, highest) = (lowest.min(least), highest.max(most));
        }
        u64::try_from(highest.checked_sub(lowest)?).ok()
    }

    /// Bytes of all rows, encoded but not compressed.
    pub(super) fn row_bytes(&self) -> u64 {
        let bytes = self.chunks().map(|(_, chunk)| chunk.uncompressed_size().max(0) as u64);
        bytes.fold(0, u64::saturating_add)
    }

    /// A compressed and an uncompressed page of each column.
    pub(super) fn reading_bytes(&self) -> usize {
        let mut largest = HashMap::<usize, usize>::new();
        for (leaf, chunk) in self.chunks() {
            let bytes = (chunk.uncompressed_size().max(0) as usize).min(PAGE_BYTES);
            let most = largest.entry(leaf).or_default();
            *most = bytes.max(*most);
        }
        largest.values().map(|bytes| 2 * bytes).sum()
    }

    pub(super) fn read(&self, unit: Unit, size: BatchSize) -> anyhow::Result<Part> {
        let room = self.room(unit.row_group)?;
        // Fewer rows if they are wide, and as few as those that are widest.
        let usual = (size.bytes / room.usual_bytes.max(1)).clamp(1, size.rows);
        let rows_max = self.bytes_max.min(TEXT_BYTES_MAX).checked_div(room.row_bytes);
        let batch_rows = rows_max.map_or(usual, |most| usual.min(most.max(1)));
        let parquet = self.metadata.parquet_schema();
        let projection = match &self.columns {
            None => ProjectionMask::all(),
            Some(columns) => ProjectionMask::roots(parquet, columns.iter().copied()),
        };
        let hint = Some(self.metadata.schema().fields());
        let levels = parquet_to_arrow_field_levels(parquet, projection, hint)?;
        let metadata = self.metadata.metadata().clone();
        let group = RowGroup { file: self.source.clone(), metadata, index: unit.row_group };
        let rows = RowSelection::from(vec![
            RowSelector::skip(unit.rows.start),
            RowSelector::select(unit.rows.len()),
        ]);
        Ok(Part::try_new_with_row_groups(&levels, &group, batch_rows, Some(rows))?)
    }

    /// The memory that the columns to read take of a row group.
    fn room(&self, group: usize) -> anyhow::Result<Room> {
        if let Some(room) = self.rooms[group].get() {
            return Ok(*room);
        }
        // Of all row groups, so not looked for in each of them.
        let page_max = *self.page_max.get_or_init(|| {
            // Under a small limit, as much as pages of usual files take.
            let usual = self.reading_bytes().min(USUAL_BYTES);
            self.bytes_max.max(usual).max(BYTES_MIN)
        });
        let mut sum = Room::default();
        for leaf in (0..self.metadata.parquet_schema().num_columns()).filter(|l| self.reads(*l)) {
            let room =
                pages::room(&self.source, self.metadata.metadata(), (group, leaf), page_max)?;
            sum.page_bytes = sum.page_bytes.saturating_add(room.page_bytes);
            sum.row_bytes = sum.row_bytes.saturating_add(room.row_bytes);
            sum.usual_bytes = sum.usual_bytes.saturating_add(room.usual_bytes);
        }
        // A null is as wide as its type, where that has a size.
        let widths = row_bytes(self.schema().fields().iter());
        sum.row_bytes = sum.row_bytes.max(widths);
        sum.usual_bytes = sum.usual_bytes.max(widths);
        if sum.page_bytes > page_max {
            return Err(pages::too_large("a page of each column", sum.page_bytes, page_max));
        }
        // A batch has a row at least.
        if sum.row_bytes > page_max {
            return Err(too_much("a row of all columns", sum.row_bytes, page_max, "").into());
        }
        Ok(*self.rooms[group].get_or_init(|| sum))
    }

    /// Whether a leaf of the schema belongs to a column to read.
    fn reads(&self, leaf: usize) -> bool {
        let root = self.metadata.parquet_schema().get_column_root_idx(leaf);
        self.columns.as_ref().is_none_or(|columns| columns.contains(&root))
    }
}

/// Lowest and highest of a chunk's values, if they are integers.
fn bounds(statistics: &Statistics, data_type: &DataType) -> Option<(i128, i128)> {
    let unsigned = data_type.is_unsigned_integer();
    let (least, most) = match statistics {
        // Unsigned values are stored as signed ones with the same bits.
        Statistics::Int32(of) if unsigned => {
            let [least, most] = [of.min_opt()?, of.max_opt()?].map(|bound| *bound as u32);
            (i128::from(least), i128::from(most))
        }
        Statistics::Int64(of) if unsigned => {
            let [least, most] = [of.min_opt()?, of.max_opt()?].map(|bound| *bound as u64);
            (i128::from(least), i128::from(most))
        }
        Statistics::Int32(of) => (i128::from(*of.min_opt()?), i128::from(*of.max_opt()?)),
        Statistics::Int64(of) => (i128::from(*of.min_opt()?), i128::from(*of.max_opt()?)),
        _ => return None,
    };
    Some((least, most))
}
