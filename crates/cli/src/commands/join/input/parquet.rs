//! A Parquet file: any thread reads any part of a row group.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
use parquet::file::statistics::Statistics;
use workahead_join::sliced_bytes;

use super::BatchSize;
use crate::commands::join::units::Unit;

/// The size of a column's page in most files.
const PAGE_BYTES: usize = 1 << 20;

/// Rows that are read to know their width: few, as each may be wide.
const MEASURED_ROWS: usize = 16;

/// The batches of a part.
pub(crate) type Part = ParquetRecordBatchReader;

/// The metadata, and the columns to read.
pub(super) struct ParquetInput {
    metadata: ArrowReaderMetadata,
    /// Columns to read; all if none are named.
    columns: Option<Vec<usize>>,
    /// Bytes of a row, where they had to be measured.
    measured: OnceLock<usize>,
}

impl ParquetInput {
    pub(super) fn open(file: &File) -> anyhow::Result<Self> {
        // With the page index, a part of a row group is found without decoding the pages before it.
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        Ok(Self {
            metadata: ArrowReaderMetadata::load(file, options)?,
            columns: None,
            measured: OnceLock::new(),
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

    /// Whether a leaf column is read.
    fn reads(&self, leaf: usize) -> bool {
        let root = || self.metadata.parquet_schema().get_column_root_idx(leaf);
        self.columns.as_ref().is_none_or(|columns| columns.contains(&root()))
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
        self.chunks().map(|(_, chunk)| chunk.uncompressed_size().max(0) as u64).sum()
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

    /// Rows of a batch: fewer than wanted if they are wide.
    fn batch_rows(&self, file: &File, row_group: usize, size: BatchSize) -> usize {
        let row_bytes = match self.decoded_row_bytes(row_group) {
            Some(bytes) => bytes,
            // What can't be read will be an error when the batches are read.
            None => self.measured_row_bytes(file).unwrap_or(0),
        };
        (size.bytes / row_bytes.max(1)).clamp(1, size.rows)
    }

    /// Bytes of a row group's average row in memory. `None` if the metadata do not have them: a
    /// dictionary of few wide values is small whatever the number of rows.
    fn decoded_row_bytes(&self, row_group: usize) -> Option<usize> {
        let group = self.metadata.metadata().row_group(row_group);
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows > 0)?;
        let mut bytes = 0_usize;
        for (_, chunk) in group.columns().iter().enumerate().filter(|(leaf, _)| self.reads(*leaf)) {
            bytes = bytes.saturating_add(decoded_bytes(chunk)?);
        }
        Some(bytes.div_ceil(rows))
    }

    /// Bytes of the first rows, on average.
    fn measured_row_bytes(&self, file: &File) -> Result<usize, ParquetError> {
        if let Some(bytes) = self.measured.get() {
            return Ok(*bytes);
        }
        let groups = self.row_groups();
        let first = groups.iter().position(|rows| *rows > 0).unwrap_or(0);
        let rows = 0..groups.get(first).map_or(0, |rows| MEASURED_ROWS.min(*rows));
        let (all, unit) = (rows.len(), Unit { row_group: first, rows });
        let part = self.part(file.try_clone()?, unit, MEASURED_ROWS)?;
        let batches = part.collect::<Result<Vec<_>, _>>()?;
        let bytes: usize = batches.iter().map(sliced_bytes).sum();
        Ok(*self.measured.get_or_init(|| bytes.div_ceil(all.max(1))))
    }

    pub(super) fn read(
        &self,
        file: File,
        unit: Unit,
        size: BatchSize,
    ) -> Result<Part, ParquetError> {
        let batch_rows = self.batch_rows(&file, unit.row_group, size);
        self.part(file, unit, batch_rows)
    }

    fn part(&self, file: File, unit: Unit, batch_rows: usize) -> Result<Part, ParquetError> {
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let projection = match &self.columns {
            None => ProjectionMask::all(),
            Some(columns) => {
                ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied())
            }
        };
        builder
            .with_projection(projection)
            .with_row_groups(vec![unit.row_group])
            .with_offset(unit.rows.start)
            .with_limit(unit.rows.len())
            .with_batch_size(batch_rows)
            .build()
    }
}

/// Bytes of a chunk in memory, if they are known.
fn decoded_bytes(chunk: &ColumnChunkMetaData) -> Option<usize> {
    let values = usize::try_from(chunk.num_values()).ok()?;
    let width = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => {
            usize::try_from(chunk.column_descr().type_length()).unwrap_or(0)
        }
        Type::BYTE_ARRAY => {
            let bytes = usize::try_from(chunk.unencoded_byte_array_data_bytes()?).ok()?;
            return Some(bytes.saturating_add(values.saturating_mul(size_of::<i32>())));
        }
    };
    Some(values.saturating_mul(width))
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
