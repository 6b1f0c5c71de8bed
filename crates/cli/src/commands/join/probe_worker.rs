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

/// A row of lists of keys may become as large as this many row groups (4), within these bounds: a
/// writer of Parquet makes all of its texts at once.
const ROW_GROUPS: usize = 4;
const ROW_BYTES_MIN: usize = 1 << 20;
const ROW_BYTES_MAX: usize = 1 << 30;

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

    /// Writes a piece of an output; if it is a row, one of which `made` bytes are not in memory.
    fn write(&mut self, piece: &RecordBatch, made: usize) -> anyhow::Result<()> {
        self.watch.check()?;
        let start = Instant::now();
        let encoders = match self.output.context("rows are only counted")? {
            Output::RowGroups { encoders, .. } => {
                check_row(made, self.group_bytes)?;
                encoders
            }
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
        decoded_pieces(&output, bytes).try_for_each(|(piece, made)| self.write(&piece, made))
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.flush()
    }

    fn counts_only(&self) -> bool {
        self.output.is_none()
    }
}

/// Refuses a row that its dictionaries make too large.
fn check_row(made: usize, group_bytes: usize) -> anyhow::Result<()> {
    let most = group_bytes.saturating_mul(ROW_GROUPS).clamp(ROW_BYTES_MIN, ROW_BYTES_MAX);
    anyhow::ensure!(
        made <= most,
        "the lists of a row take {} MiB with what their dictionaries repeat, more than the {} MiB \
         that may be used for it: raise --memory-limit, leave them out with --select, or write an \
         Arrow stream",
        made.div_ceil(1 << 20),
        most >> 20
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_may_be_some_row_groups() {
        for (made, group_bytes) in [(0, 0), (1 << 20, 0), (8 << 20, 2 << 20), (1 << 30, 1 << 30)] {
            check_row(made, group_bytes).unwrap();
            let says = check_row(made.max(1 << 20) + 1, group_bytes).unwrap_err().to_string();
            assert!(says.starts_with("the lists of a row take "), "{says}");
            assert!(says.contains("raise --memory-limit"), "{says}");
        }
    }
}
