//! Coalesces small outputs until there are enough rows, or bytes, for a batch.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;
use arrow_select::take::take_record_batch;

use crate::JoinSpec;
use crate::batch::rows_bytes;

/// Outputs of less than this part of a batch are coalesced.
const FEW: usize = 4;

/// An output of a run of rows is a slice of the input's batch, all of which it keeps in memory. It
/// is copied if that is more than this many times its own bytes, and not little.
const KEPT_TIMES: usize = 2;
const KEPT_MIN: usize = 64 << 10;

/// Outputs held back.
pub(crate) struct Coalescer {
    outputs: BatchCoalescer,
    rows_few: usize,
    /// Bytes of the outputs held back.
    bytes: usize,
}

impl Coalescer {
    pub(crate) fn new(spec: &JoinSpec) -> Self {
        let rows_few = spec.batch_rows / FEW;
        let outputs = BatchCoalescer::new(spec.schema(), spec.batch_rows)
            .with_biggest_coalesce_batch_size(Some(rows_few));
        Self { outputs, rows_few, bytes: 0 }
    }

    /// Adds an output. Batches of about `bytes_max` are complete, however few rows they have.
    pub(crate) fn push(&mut self, output: RecordBatch, bytes_max: usize) -> Result<(), ArrowError> {
        let many = output.num_rows() > self.rows_few;
        // Bytes of an output that is not coalesced are not looked at.
        let bytes = if many { 0 } else { rows_bytes(&output) };
        let wide = bytes > bytes_max / FEW;
        if many || wide {
            // Large outputs aren't copied just to coalesce them with a few rows before.
            self.finish()?;
        }
        let is_held = !many && !wide;
        let output = match is_held && output.get_array_memory_size() > KEPT_TIMES * bytes + KEPT_MIN
        {
            true => {
                let rows = UInt32Array::from_iter_values(0..output.num_rows() as u32);
                take_record_batch(&output, &rows)?
            }
            false => output,
        };
        self.outputs.push_batch(output)?;
        self.bytes += bytes;
        if wide || self.bytes > bytes_max {
            self.finish()?;
        } else if self.outputs.has_completed_batch() {
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Completes the batch of what is held back.
    pub(crate) fn finish(&mut self) -> Result<(), ArrowError> {
        self.bytes = 0;
        self.outputs.finish_buffered_batch()
    }

    /// The next complete batch.
    pub(crate) fn next(&mut self) -> Option<RecordBatch> {
        self.outputs.next_completed_batch()
    }
}
