//! One thread of the probe: reads parts of the file, and counts or encodes the joined rows.

use std::time::{Duration, Instant};

use anyhow::Context;
use arrow_array::RecordBatch;
use workahead_join::{Worker, decoded_pieces};
use workahead_workloads::row_groups::RowGroupEncoder;

use super::output::{self, Output};
use super::units::{Cursor, Watch};

/// Rows of an output row group: as in the files that `workahead data` makes.
const ROW_GROUP_ROWS: u64 = 1 << 19;

/// Bytes, with a dictionary's values repeated, that are written between two looks whether the user
/// has interrupted: some tenths of a second.
const PIECE_BYTES: usize = 32 << 20;

/// One thread's input and output.
pub(crate) struct ProbeWorker<'a> {
    cursor: Cursor<'a>,
    output: Option<&'a Output>,
    /// Bytes at which a row group is complete, if it does not reach the usual rows first.
    group_bytes: usize,
    watch: Watch<'a>,
    group: Option<RowGroupEncoder>,
    pub(crate) read_time: Duration,
    pub(crate) write_time: Duration,
}

impl<'a> ProbeWorker<'a> {
    pub(crate) fn new(
        cursor: Cursor<'a>,
        output: Option<&'a Output>,
        group_bytes: usize,
        watch: Watch<'a>,
    ) -> Self {
        let (read_time, write_time) = (Duration::ZERO, Duration::ZERO);
        Self { cursor, output, group_bytes, watch, group: None, read_time, write_time }
    }

    fn write(&mut self, piece: &RecordBatch) -> anyhow::Result<()> {
        self.watch.check()?;
        let start = Instant::now();
        let encoders = match self.output.context("rows are only counted")? {
            Output::RowGroups { encoders, .. } => encoders,
            Output::Streamed(file) => {
                output::lock(file).write(piece)?;
                self.write_time += start.elapsed();
                return Ok(());
            }
        };
        let group = match &mut self.group {
            Some(group) => group,
            none => none.insert(encoders.start()?),
        };
        group.write(piece)?;
        let full = group.rows() >= ROW_GROUP_ROWS || group.bytes() >= self.group_bytes;
        self.write_time += start.elapsed();
        if full { self.flush() } else { Ok(()) }
    }

    /// Appends the encoded row group to the file.
    fn flush(&mut self) -> anyhow::Result<()> {
        let (Some(Output::RowGroups { file, .. }), Some(group)) = (self.output, self.group.take())
        else {
            return Ok(());
        };
        let start = Instant::now();
        let group = group.finish()?;
        output::lock(file).append(group)?;
        self.write_time += start.elapsed();
        Ok(())
    }
}

impl Worker for ProbeWorker<'_> {
    type Error = anyhow::Error;

    fn next_batch(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let start = Instant::now();
        let batch = self.cursor.next_batch()?;
        self.read_time += start.elapsed();
        Ok(batch)
    }

    fn take(&mut self, output: RecordBatch) -> anyhow::Result<()> {
        let bytes = self.group_bytes.min(PIECE_BYTES);
        decoded_pieces(&output, bytes).try_for_each(|piece| self.write(&piece))
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.flush()
    }

    fn counts_only(&self) -> bool {
        self.output.is_none()
    }
}
