//! Parts of a file that threads take one after the other: row groups, or pieces of them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;
use indicatif::ProgressBar;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::errors::ParquetError;

use super::input::{Input, damaged};
use crate::interrupt::Interrupted;

/// Fewest rows worth a part of its own: each opens the file and decodes its dictionaries anew.
const UNIT_ROWS_MIN: usize = 1 << 17;
/// Parts wanted for each thread, so that the last ones finish together.
const UNITS_PER_THREAD: usize = 4;

/// Some rows of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) row_group: usize,
    pub(crate) rows: Range<usize>,
}

/// A file's parts, handed out.
pub(crate) struct Units<'a> {
    input: &'a Input,
    units: Vec<Unit>,
    next: AtomicUsize,
    batch_rows: usize,
    watch: Watch<'a>,
}

/// Who is told of progress, and may stop it.
#[derive(Clone, Copy)]
pub(crate) struct Watch<'a> {
    pub(crate) bar: &'a ProgressBar,
    pub(crate) interrupted: &'static AtomicBool,
}

impl Watch<'_> {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Interrupted.into()) } else { Ok(()) }
    }
}

impl<'a> Units<'a> {
    pub(crate) fn new(
        input: &'a Input,
        threads: usize,
        batch_rows: usize,
        watch: Watch<'a>,
    ) -> Self {
        let units = cut(input.row_groups(), threads * UNITS_PER_THREAD);
        Self { input, units, next: AtomicUsize::new(0), batch_rows, watch }
    }

    pub(crate) fn len(&self) -> usize {
        self.units.len()
    }

    /// Hands out no more.
    pub(crate) fn stop(&self) {
        self.next.store(self.units.len(), Ordering::Relaxed);
    }

    /// A cursor for one thread.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { units: self, reading: None }
    }
}

/// One thread's place in the file.
pub(crate) struct Cursor<'a> {
    units: &'a Units<'a>,
    reading: Option<(usize, ParquetRecordBatchReader)>,
}

impl Cursor<'_> {
    /// The next batch, and the number of the part it is of.
    pub(crate) fn next_batch(&mut self) -> anyhow::Result<Option<(usize, RecordBatch)>> {
        let Units { input, units, next, batch_rows, watch } = self.units;
        loop {
            watch.check()?;
            if self.reading.is_none() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(unit) = units.get(at) else { return Ok(None) };
                self.reading = Some((at, input.read(unit.clone(), *batch_rows)?));
            }
            let Some((at, reader)) = &mut self.reading else { continue };
            let at = *at;
            match reader.next() {
                Some(batch) => {
                    let batch =
                        batch.map_err(|error| damaged(input.path(), ParquetError::from(error)))?;
                    watch.bar.inc(batch.num_rows() as u64);
                    return Ok(Some((at, batch)));
                }
                None => self.reading = None,
            }
        }
    }
}

/// Cuts row groups so that there are about `wanted` parts, none very small.
fn cut(row_groups: impl Iterator<Item = usize>, wanted: usize) -> Vec<Unit> {
    let groups: Vec<usize> = row_groups.collect();
    let rows: usize = groups.iter().sum();
    let unit_rows = rows.div_ceil(wanted.max(1)).max(UNIT_ROWS_MIN);
    let mut units = Vec::new();
    for (row_group, rows) in groups.into_iter().enumerate() {
        // Equal parts: 130 thousand rows are not cut into 128 thousand and a rest.
        let parts = (rows as f64 / unit_rows as f64).round().max(1.0) as usize;
        let bounds = |part: usize| rows * part / parts;
        let ranges = (0..parts).map(|part| bounds(part)..bounds(part + 1));
        units.extend(ranges.filter(|rows| !rows.is_empty()).map(|rows| Unit { row_group, rows }));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(groups: &[usize], wanted: usize) -> Vec<(usize, usize)> {
        let units = cut(groups.iter().copied(), wanted);
        let mut next = vec![0; groups.len()];
        for unit in &units {
            assert_eq!(unit.rows.start, next[unit.row_group], "no gap, no overlap");
            next[unit.row_group] = unit.rows.end;
        }
        assert_eq!(next, groups);
        units.into_iter().map(|unit| (unit.row_group, unit.rows.len())).collect()
    }

    #[test]
    fn row_groups_are_cut_for_the_threads() {
        assert!(lengths(&[], 8).is_empty());
        assert_eq!(lengths(&[0, 10], 8), [(1, 10)]);
        assert_eq!(lengths(&[1 << 20], 4), [(0, 1 << 18); 4]);
        assert_eq!(lengths(&[1 << 20], 1000).len(), 8);
        assert_eq!(lengths(&[500_000, 130_000, 500_000], 2).len(), 3);
    }
}
