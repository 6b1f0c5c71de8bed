//! Merges runs of numbered rows into one.
//!
//! ```text
//! run 0   1 4 4 9 │ …        the smallest first number; rows while it is smaller
//! run 1   2 3 7 8 │ …   ──►  than the next run's, the lower run first of equal ones
//! run 2   5 6 … │
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::interleave::interleave_record_batch;

use super::file::{SpillFile, SpillReader};
use crate::context::Context;
use crate::memory_estimate::OutputSize;
use crate::row_bytes::WidestValues;
use crate::{JoinError, MemoryPool, Reservation};

/// The numbers of a batch: its last column.
pub(super) fn numbers(batch: &RecordBatch) -> &UInt64Array {
    batch.column(batch.num_columns() - 1).as_primitive::<UInt64Type>()
}

/// Rows of several runs, in the order of their numbers.
pub(super) struct Merge {
    runs: Vec<Run>,
    /// The next number of each run that has rows left, and the run.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    output: OutputSize,
    _memory: Reservation,
}

/// A run being read.
struct Run {
    reader: SpillReader,
    batch: RecordBatch,
    row: usize,
    /// Bytes of the batch's widest row.
    widest: usize,
}

impl Run {
    /// Reads the next batch that has rows. False at the end.
    fn read(&mut self) -> Result<bool, JoinError> {
        self.row = 0;
        while let Some(batch) = self.reader.next_batch()? {
            if batch.num_rows() > 0 {
                let mut widest = WidestValues::default();
                widest.add(&batch);
                (self.batch, self.widest) = (batch, widest.row_bytes());
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn number(&self) -> u64 {
        numbers(&self.batch).value(self.row)
    }
}

/// Number of the first files that can be read beside an output.
pub(super) fn fan_in<'f>(
    files: impl Iterator<Item = &'f SpillFile>,
    output: OutputSize,
    context: &Context,
) -> usize {
    let mut free = context.free().saturating_sub(2 * output.bytes_max);
    let fits = |file: &&SpillFile| {
        let left = free.checked_sub(file.reading_bytes());
        free = left.unwrap_or(0);
        left.is_some()
    };
    files.take_while(fits).count()
}

impl Merge {
    /// Starts reading all of the files.
    pub(super) fn new(
        files: &[SpillFile],
        output: OutputSize,
        context: &Context,
    ) -> Result<Self, JoinError> {
        let mut memory = context.reservation();
        let reading: usize = files.iter().map(SpillFile::reading_bytes).sum();
        let writing = if context.pool.limit().is_some() { 2 * output.bytes_max } else { 0 };
        memory.grow(reading + writing).map_err(|short| context.short(short))?;
        let (mut runs, mut next) = (Vec::new(), BinaryHeap::new());
        for file in files {
            let batch = RecordBatch::new_empty(file.schema().clone());
            let mut run = Run { reader: file.read()?, batch, row: 0, widest: 0 };
            if run.read()? {
                next.push(Reverse((run.number(), runs.len())));
                runs.push(run);
            }
        }
        Ok(Self { runs, next, output, _memory: memory })
    }

    /// The next rows.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let mut batches: Vec<RecordBatch> = self.runs.iter().map(|run| run.batch.clone()).collect();
        let mut place: Vec<usize> = (0..self.runs.len()).collect();
        let (mut picked, mut bytes) = (Vec::new(), 0);
        while let Some(Reverse((_, at))) = self.next.pop() {
            let run = &mut self.runs[at];
            let rows = numbers(&run.batch).values();
            let end = match self.next.peek() {
                Some(Reverse(other)) => rows[run.row..]
                    .iter()
                    .position(|number| (*number, at) > *other)
                    .map_or(rows.len(), |before| run.row + before),
                None => rows.len(),
            };
            let by_bytes = self.output.bytes_max.saturating_sub(bytes) / run.widest.max(1);
            let most = by_bytes.max(usize::from(picked.is_empty()));
            let end = end.min(run.row + most.min(self.output.rows - picked.len()));
            picked.extend((run.row..end).map(|row| (place[at], row)));
            bytes += (end - run.row) * run.widest;
            let full = end == run.row || picked.len() == self.output.rows;
            run.row = end;
            if run.row == run.batch.num_rows() {
                if !run.read()? {
                    if full {
                        break;
                    }
                    continue;
                }
                place[at] = batches.len();
                batches.push(run.batch.clone());
            }
            self.next.push(Reverse((run.number(), at)));
            if full {
                break;
            }
        }
        if picked.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        Ok(Some(interleave_record_batch(&batches, &picked)?))
    }
}
