//! The build side's columns, kept for gathering by row.
//!
//! Batches are joined to few long chunks, column by column, so that an output array is one `take`
//! from one array. A chunk ends before 32-bit offsets of strings could overflow, and batches with
//! dictionaries stay as they are, as a joined dictionary may have more values than keys; rows are
//! then found chunk by chunk and gathered by `interleave`.

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use workahead_operators::walk::Row;

/// Most bytes of one column in a chunk, half of what 32-bit offsets can count.
const COLUMN_BYTES_MAX: usize = 1 << 30;

/// Columns in chunks of rows.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// By column, then by chunk.
    columns: Vec<Vec<ArrayRef>>,
    /// First row of each chunk.
    starts: Vec<usize>,
}

/// Rows to gather.
pub(crate) enum Rows {
    One(UInt32Array),
    Several(Vec<(usize, usize)>),
}

impl Chunks {
    pub(crate) fn new(batches: Vec<RecordBatch>) -> Result<Self, ArrowError> {
        let columns = batches.first().map_or(0, RecordBatch::num_columns);
        let mut starts = Vec::new();
        let mut by_column = vec![Vec::new(); columns];
        let mut start = 0;
        for run in runs(batches) {
            let rows = run.iter().map(RecordBatch::num_rows).sum::<usize>();
            starts.push(start);
            start += rows;
            join_columns(run, &mut by_column)?;
        }
        Ok(Self { columns: by_column, starts })
    }

    /// Rows by number, prepared for [`gather`](Self::gather).
    pub(crate) fn rows(&self, rows: Vec<Row>) -> Rows {
        if self.starts.len() <= 1 {
            return Rows::One(UInt32Array::from(rows));
        }
        let located = rows.into_iter().map(|row| {
            let row = row as usize;
            let chunk = self.starts.partition_point(|start| *start <= row) - 1;
            (chunk, row - self.starts[chunk])
        });
        Rows::Several(located.collect())
    }

    pub(crate) fn gather(&self, column: usize, rows: &Rows) -> Result<ArrayRef, ArrowError> {
        let chunks = &self.columns[column];
        match rows {
            Rows::One(rows) => take(&chunks[0], rows, None),
            Rows::Several(rows) => {
                let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
                interleave(&chunks, rows)
            }
        }
    }

    /// Bytes of the arrays.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().flatten().map(|array| array.get_array_memory_size()).sum()
    }
}

/// Cuts the batches into runs whose columns can be joined.
fn runs(batches: Vec<RecordBatch>) -> Vec<Vec<RecordBatch>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut bytes = 0;
    for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        let sizes = batch.columns().iter().map(|column| column.get_array_memory_size());
        let largest = sizes.max().unwrap_or(0);
        let alone = batch.columns().iter().any(|column| holds_dictionary(column.data_type()));
        if (alone || bytes + largest > COLUMN_BYTES_MAX) && !run.is_empty() {
            runs.push(std::mem::take(&mut run));
            bytes = 0;
        }
        bytes += largest;
        run.push(batch);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

/// Joins a run to one chunk, one column after the other, each freed as soon as it is copied.
fn join_columns(run: Vec<RecordBatch>, to: &mut [Vec<ArrayRef>]) -> Result<(), ArrowError> {
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(run.len()); to.len()];
    for batch in run {
        for (column, pieces) in batch.columns().iter().zip(&mut pieces) {
            pieces.push(column.clone());
        }
    }
    for (pieces, chunks) in pieces.into_iter().zip(to) {
        let arrays: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        chunks.push(concat(&arrays)?);
    }
    Ok(())
}

fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => holds_dictionary(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_dictionary(field.data_type())),
        DataType::Union(fields, _) => {
            fields.iter().any(|(_, field)| holds_dictionary(field.data_type()))
        }
        _ => false,
    }
}
