//! What making a table takes besides the rows, known before any of it is taken.
//!
//! ```text
//! keys are read        words, parts                                  W + K
//! keys are stored      words, parts, store                           W + 2 K
//! table is filled      words, store, table, marks, groups            W + K + T + 4 R + 4 R
//! columns are joined   store, table, groups, a column twice          K + T + 4 R + widest
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_data::MAX_INLINE_VIEW_LEN;
use arrow_schema::DataType;
use workahead_walks::bucket::{Load, Table};

/// Bytes of a row's number.
const ROW_BYTES: usize = 4;
/// Bytes of a key's word.
pub(crate) const WORD_BYTES: usize = 8;
/// Bytes of scratch for a row whose key is being read: a few words.
const SCRATCH_BYTES: usize = 6 * WORD_BYTES;

/// Bytes of hits, schedules and answers, however long the batches are.
pub(crate) const PROBER_BYTES: usize = 64 << 10;
/// Bytes of a probe row's key, as it is read and mapped, and of its flags.
const PROBE_ROW_BYTES: usize = 48;
/// Bytes of a pair, answered, found and put out.
const MATCH_BYTES: usize = 24;

/// What batches of the probe side are like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProbeBatchSize {
    pub(crate) rows: usize,
    pub(crate) row_bytes: usize,
}

impl ProbeBatchSize {
    /// Memory of a prober of such batches, by the rows of an output batch and the bytes of a build
    /// row.
    pub(crate) fn bytes(self, batch_rows: usize, build_row_bytes: usize) -> usize {
        // An output, and what is put together of several.
        let output_row_bytes = MATCH_BYTES + 2 * (build_row_bytes + self.row_bytes);
        PROBER_BYTES + self.rows * PROBE_ROW_BYTES + batch_rows * output_row_bytes
    }
}

/// Sizes from which the bytes follow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemoryEstimate {
    /// Rows with a key, and all of them.
    pub(crate) keyed: usize,
    pub(crate) rows: usize,
    /// Different keys, about.
    pub(crate) distinct: usize,
    /// Bytes of what hashed words are of: zero if words are keys.
    pub(crate) key_bytes: usize,
    /// The widest column.
    pub(crate) widest_bytes: usize,
    /// Rows of the longest batch.
    pub(crate) batch_rows: usize,
    /// Bytes of a table of another design than buckets.
    pub(crate) table_bytes: usize,
    /// Whether build rows are flagged.
    pub(crate) match_bitmap: bool,
}

impl MemoryEstimate {
    /// How many entries the table should have room for: the estimate's error and a little, but
    /// never more than there are rows.
    pub(crate) fn entries(&self) -> usize {
        self.keyed.min(self.distinct + self.distinct / 10)
    }

    /// The most that is taken at a time.
    pub(crate) fn bytes(&self) -> usize {
        let keys = self.key_bytes;
        let words = if keys > 0 { self.keyed * WORD_BYTES } else { 0 };
        let table = Table::bytes_for(self.entries(), Load::HALF).unwrap_or(usize::MAX / 2);
        let table = table.max(self.table_bytes);
        let rows = self.keyed * ROW_BYTES;
        // One for each row, one for each group, and both again when they are read at the end.
        let match_bitmap = if self.match_bitmap { self.rows.div_ceil(8) * 3 } else { 0 };
        let storing = words + 2 * keys;
        let filling = words + keys + table + 2 * rows;
        let joining = keys + table + rows + self.widest_bytes;
        storing.max(filling).max(joining) + match_bitmap + self.batch_rows * SCRATCH_BYTES
    }
}

/// The bytes of the widest column of all batches together.
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

/// The bytes that a batch's rows occupy, of buffers that may be longer and are shared with others.
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
            let (values, shown) = (dictionary.values(), dictionary.values().len().max(1));
            let of_values = sliced_bytes_of(values) * rows.min(shown) / shown;
            nulls + rows * key.primitive_width().unwrap_or(WORD_BYTES) + of_values
        }
        _ => {
            let whole = || column.get_array_memory_size();
            column.to_data().get_slice_memory_size().unwrap_or_else(|_| whole())
        }
    }
}
