//! Coalesces small outputs until there are enough rows, or bytes, for a batch.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;

use crate::JoinSpec;
use crate::batch::rows_bytes;

/// Outputs of less than this part of a batch are coalesced.
const FEW: usize = 4;

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
