//! A partition's rows: in memory, and in a file once the partition is spilled.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;

use super::SpillCounters;
use super::file::{SpillFile, SpillWriter};
use super::sizes::{COLUMN_BYTES, Sizes};
use crate::batch::pieces_within;
use crate::chunks::holds_dictionary;
use crate::context::Context;
use crate::memory::ChargedBatches;
use crate::memory_estimate::sliced_bytes;
use crate::{JoinError, MemoryError, SpillDirectory, StopCheck};

/// Where partition buffers are written.
#[derive(Debug)]
pub(crate) struct SpillTarget {
    directory: Arc<SpillDirectory>,
    counts: Arc<SpillCounters>,
    stop: StopCheck,
    schema: SchemaRef,
    pub(crate) sizes: Sizes,
    /// Whether batches may be concatenated: those with different dictionaries may not.
    joins: bool,
}

impl SpillTarget {
    pub(crate) fn new(
        directory: &Arc<SpillDirectory>,
        context: &Context,
        schema: &Schema,
        sizes: Sizes,
    ) -> Self {
        // Declared non-nullability is not checked.
        let fields = schema.fields().iter();
        let fields: Fields = fields.map(|field| Field::clone(field).with_nullable(true)).collect();
        let joins = !schema.fields().iter().any(|field| holds_dictionary(field.data_type()));
        Self {
            directory: directory.clone(),
            counts: context.counts.clone(),
            stop: context.stop.clone(),
            schema: Arc::new(Schema::new(fields)),
            sizes,
            joins,
        }
    }
}

/// The rows of one partition.
#[derive(Default)]
pub(crate) struct PartitionBuffer {
    batches: Vec<RecordBatch>,
    /// Memory charged for the batches.
    bytes: usize,
    /// All rows, and those written to the file.
    rows: usize,
    written: usize,
    writer: Option<SpillWriter>,
}

impl PartitionBuffer {
    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn is_spilled(&self) -> bool {
        self.writer.is_some()
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    pub(crate) fn take_batches(&mut self) -> Vec<RecordBatch> {
        self.bytes = 0;
        std::mem::take(&mut self.batches)
    }

    fn open(&mut self, target: &SpillTarget) -> Result<(), JoinError> {
        if self.writer.is_none() {
            let (directory, schema) = (&target.directory, target.schema.clone());
            self.writer = Some(SpillWriter::new(directory, schema, target.sizes.block_bytes)?);
        }
        Ok(())
    }

    /// Writes rows at once that are too wide to be buffered in the memory that is left. They are
    /// charged with the batch that they are of.
    pub(crate) fn write_through(
        &mut self,
        piece: &RecordBatch,
        target: &SpillTarget,
    ) -> Result<(), JoinError> {
        target.stop.check()?;
        self.open(target)?;
        let writer = self.writer.as_mut().expect("the writer exists");
        for piece in pieces_within(piece, usize::MAX, target.sizes.batch_bytes) {
            writer.write(&piece)?;
        }
        self.rows += piece.num_rows();
        self.written += piece.num_rows();
        Ok(())
    }

    /// Writes the rows in memory to the partition's file and frees the memory.
    pub(crate) fn spill(
        &mut self,
        target: &SpillTarget,
        memory: &mut ChargedBatches,
    ) -> Result<(), JoinError> {
        self.open(target)?;
        let writer = self.writer.as_mut().expect("the writer exists");
        let most = target.sizes.batch_bytes;
        let mut run = Vec::new();
        let mut run_bytes = 0;
        let mut write = |run: &mut Vec<RecordBatch>| -> Result<(), JoinError> {
            target.stop.check()?;
            match &run[..] {
                [] => {}
                [batch] => writer.write(batch)?,
                batches => writer.write(&concat_batches(&batches[0].schema(), batches)?)?,
            }
            run.clear();
            Ok(())
        };
        for batch in std::mem::take(&mut self.batches) {
            let bytes = sliced_bytes(&batch).max(1);
            memory.release(&batch);
            memory.memory.shrink(batch.num_columns() * COLUMN_BYTES);
            if bytes > most || !target.joins {
                write(&mut run)?;
                let rows = (batch.num_rows() * most / bytes).max(1);
                for start in (0..batch.num_rows()).step_by(rows) {
                    let rows = rows.min(batch.num_rows() - start);
                    write(&mut vec![batch.slice(start, rows)])?;
                }
                continue;
            }
            if run_bytes + bytes > most {
                write(&mut run)?;
                run_bytes = 0;
            }
            run_bytes += bytes;
            run.push(batch);
        }
        write(&mut run)?;
        self.bytes = 0;
        self.written = self.rows;
        Ok(())
    }

    /// The file of a partition whose rows are all spilled.
    pub(crate) fn finish(mut self, target: &SpillTarget) -> Result<Option<SpillFile>, JoinError> {
        assert_eq!(self.rows, self.written, "all rows must be written before the file is finished");
        let Some(writer) = self.writer.take() else { return Ok(None) };
        let file = writer.finish()?;
        target.counts.file(&file);
        Ok(Some(file))
    }
}

/// Adds rows to a partition's buffer, spilling the largest buffer while memory is short. If no
/// buffer has rows in memory, nothing is added, and what is short is returned.
pub(crate) fn add(
    buffers: &mut [PartitionBuffer],
    partition: usize,
    piece: RecordBatch,
    target: &SpillTarget,
    charge: &mut ChargedBatches,
) -> Result<Option<MemoryError>, JoinError> {
    let heads = piece.num_columns() * COLUMN_BYTES;
    let bytes = charge.buffers.add(&piece) + heads;
    while let Err(short) = charge.memory.grow(bytes) {
        if !make_room(buffers, target, charge)? {
            charge.buffers.remove(&piece);
            return Ok(Some(short));
        }
    }
    let buffer = &mut buffers[partition];
    buffer.rows += piece.num_rows();
    buffer.bytes += bytes;
    buffer.batches.push(piece);
    if buffer.is_spilled() && buffer.bytes >= target.sizes.batch_bytes {
        buffer.spill(target, charge)?;
    }
    Ok(None)
}

/// Spills the largest buffer. False if none has rows in memory.
pub(crate) fn make_room(
    buffers: &mut [PartitionBuffer],
    target: &SpillTarget,
    charge: &mut ChargedBatches,
) -> Result<bool, JoinError> {
    let Some(largest) = buffers.iter_mut().max_by_key(|buffer| buffer.bytes) else {
        return Ok(false);
    };
    if largest.bytes == 0 {
        return Ok(false);
    }
    largest.spill(target, charge)?;
    Ok(true)
}
