//! Estimates the memory for building a table beside its rows, before any of it is taken.
//!
//! ```text
//! keys are read        keys, full keys                                 W + K
//! keys are stored      keys, full keys, store                          W + 2 K
//! table is built       keys, store, table, repeats, duplicate lists    W + K + T + 4 R + 4 R
//! columns are joined   store, table, duplicate lists, a column twice   K + T + 4 R + widest
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_data::MAX_INLINE_VIEW_LEN;
use arrow_schema::DataType;
use workahead_walks::bucket::{Load, Table};

/// Bytes of a row number.
const ROW_BYTES: usize = 4;
/// Bytes of a normalized key, and of a component of a full one.
pub(crate) const KEY_BYTES: usize = 8;
/// Scratch bytes per row while keys are read: a few integers of 64 bits.
const SCRATCH_BYTES: usize = 6 * KEY_BYTES;

/// Bytes of hits and selection vectors, whatever the batch length.
pub(crate) const PROBER_BYTES: usize = 64 << 10;
/// Bytes of a probe row's keys, in all forms, and of its match bit.
const PROBE_ROW_BYTES: usize = 48;
/// Bytes of a match, from lookup to output.
const MATCH_BYTES: usize = 24;

/// Bytes of the rows of one side.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowSize {
    pub(crate) average: usize,
    /// Of the widest row; zero if it is not known.
    pub(crate) widest: usize,
}

/// Size of an output batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputSize {
    pub(crate) rows: usize,
    /// Most bytes, unless a single row has more.
    pub(crate) bytes_max: usize,
}

/// Size of a probe batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProbeBatchSize {
    pub(crate) rows: usize,
    pub(crate) row: RowSize,
}

impl ProbeBatchSize {
    /// Memory of a prober of such batches, given the size of an output batch and of a build row.
    pub(crate) fn bytes(self, output: OutputSize, build: RowSize) -> usize {
        let OutputSize { rows, bytes_max } = output;
        let average = build.average.saturating_add(self.row.average);
        let widest = build.widest.saturating_add(self.row.widest);
        let output_bytes = rows.saturating_mul(average).min(bytes_max.max(average)).max(widest);
        let scratch = PROBER_BYTES + self.rows * PROBE_ROW_BYTES + rows * MATCH_BYTES;
        // An output, and the one it is coalesced into.
        output_bytes.saturating_mul(2).saturating_add(scratch)
    }
}

/// The sizes that determine the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryEstimate {
    /// Rows with a key, and all rows.
    pub(crate) keyed: usize,
    pub(crate) rows: usize,
    /// Estimated distinct keys.
    pub(crate) distinct: usize,
    /// Bytes of full keys; zero unless keys are hashed.
    pub(crate) key_bytes: usize,
    /// Bytes of the widest column.
    pub(crate) widest_bytes: usize,
    /// Rows of the longest batch.
    pub(crate) batch_rows: usize,
    /// Bytes of the table, unless it has buckets.
    pub(crate) table_bytes: Option<usize>,
    /// Whether only the presence of a key counts: nothing is kept of repeated ones.
    pub(crate) existence_only: bool,
    /// How full buckets may get.
    pub(crate) load: Load,
    /// Whether there is a match bitmap for build rows.
    pub(crate) match_bitmap: bool,
}

impl MemoryEstimate {
    /// Entries that the table has room for: the estimate plus its error, at most the number of
    /// rows.
    pub(crate) fn entries(&self) -> usize {
        Self::entries_of(self.keyed, self.distinct)
    }

    /// The same for a number of rows with a key and an estimate of the distinct ones.
    pub(crate) fn entries_of(keyed: usize, distinct: usize) -> usize {
        keyed.min(distinct.saturating_add(distinct / 10))
    }

    /// The peak; of a number of rows, too, that only a file states.
    pub(crate) fn bytes(&self) -> usize {
        let full_keys = self.key_bytes;
        let keys = if full_keys > 0 { self.keyed.saturating_mul(KEY_BYTES) } else { 0 };
        let table = Table::bytes_for(self.entries(), self.load).unwrap_or(usize::MAX / 2);
        let table = match self.table_bytes {
            Some(bytes) if self.existence_only => bytes,
            other => table.max(other.unwrap_or(0)),
        };
        let rows = if self.existence_only { 0 } else { self.keyed.saturating_mul(ROW_BYTES) };
        // A bit for each row, one for each duplicate list, and both again for the unmatched build
        // scan.
        let match_bitmap = if self.match_bitmap { self.rows.div_ceil(8) * 3 } else { 0 };
        let sum = |parts: &[usize]| parts.iter().copied().fold(0, usize::saturating_add);
        let storing = sum(&[keys, full_keys, full_keys]);
        let building = sum(&[keys, full_keys, table, rows, rows]);
        let joining = sum(&[full_keys, table, rows, self.widest_bytes]);
        let most = storing.max(building).max(joining);
        sum(&[most, match_bitmap, self.batch_rows.saturating_mul(SCRATCH_BYTES)])
    }
}

/// Bytes of the widest column of all batches together.
pub(crate) fn widest<'b>(batches: impl Iterator<Item = &'b RecordBatch>) -> usize {
    let mut columns = Vec::new();
    for batch in batches {
        columns.resize(batch.num_columns(), 0);
        for (bytes, column) in columns.iter_mut().zip(batch.columns()) {
            *bytes += sliced_bytes_of(column);
        }
    }
    columns.into_iter().max().unwrap_or(0)
}

/// Bytes of a batch's rows; its buffers may be longer and shared.
#[must_use]
pub fn sliced_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| sliced_bytes_of(column)).sum()
}

fn sliced_bytes_of(column: &dyn Array) -> usize {
    let rows = column.len();
    let nulls = rows.div_ceil(8);
    let texts = |lengths: &mut dyn Iterator<Item = u32>| {
        let long = lengths.filter(|length| *length > MAX_INLINE_VIEW_LEN);
        nulls + rows * size_of::<u128>() + long.map(|length| length as usize).sum::<usize>()
    };
    // The low half of a view is its length.
    match column.data_type() {
        DataType::Utf8View => {
            texts(&mut column.as_string_view().views().iter().map(|view| *view as u32))
        }
        DataType::BinaryView => {
            texts(&mut column.as_binary_view().views().iter().map(|view| *view as u32))
        }
        DataType::Dictionary(key, _) => {
            let dictionary = column.as_any_dictionary();
            let (values, distinct) = (dictionary.values(), dictionary.values().len().max(1));
            let of_values = sliced_bytes_of(values) * rows.min(distinct) / distinct;
            nulls + rows * key.primitive_width().unwrap_or(size_of::<u64>()) + of_values
        }
        other if other.is_primitive() => {
            let nulls = column.nulls().map_or(0, |_| nulls);
            nulls + rows * other.primitive_width().unwrap_or(size_of::<u64>())
        }
        _ => {
            let whole = || column.get_array_memory_size();
            column.to_data().get_slice_memory_size().unwrap_or_else(|_| whole())
        }
    }
}
