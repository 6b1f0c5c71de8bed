//! Parts of a file that threads take in turn: row groups or pieces of them; for a file without row
//! groups, batches.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use indicatif::ProgressBar;

use super::input::{BatchSize, Batches, Input, Part, Permit, Piece, guarded};
use crate::interrupt::Interrupted;

/// Rows of a part, at least: each part opens the file and decodes its dictionaries anew.
const UNIT_ROWS_MIN: usize = 1 << 17;
/// Parts wanted for each thread, so that the last ones finish together.
const UNITS_PER_THREAD: usize = 4;

/// Some rows of a row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) row_group: usize,
    pub(crate) rows: Range<usize>,
}

/// The parts of a file, handed out one by one.
pub(crate) struct Units<'a> {
    input: &'a Input,
    units: Vec<Unit>,
    next: AtomicUsize,
    /// The batches of a file without row groups, until its end.
    stream: Option<Mutex<Option<Batches>>>,
    threads: usize,
    size: BatchSize,
    watch: Watch<'a>,
}

/// The progress bar, and the flag that stops the join.
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
        size: BatchSize,
        messages: usize,
        watch: Watch<'a>,
    ) -> anyhow::Result<Self> {
        let stream = input.read_all(size, messages)?.map(|batches| Mutex::new(Some(batches)));
        let row_groups = input.row_groups().unwrap_or_default();
        let units = cut(row_groups.into_iter(), threads * UNITS_PER_THREAD);
        let next = AtomicUsize::new(0);
        Ok(Self { input, units, next, stream, threads, size, watch })
    }

    /// The number of threads that have work.
    pub(crate) fn threads(&self) -> usize {
        if self.stream.is_some() { self.threads } else { self.threads.min(self.units.len()).max(1) }
    }

    /// Stops handing out parts.
    pub(crate) fn stop(&self) {
        self.next.store(self.units.len(), Ordering::Relaxed);
        if let Some(stream) = &self.stream {
            *stream.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// A cursor for one thread.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor { units: self, reading: None, permit: None }
    }

    /// The next batch of a file without row groups.
    fn next_of(&self, stream: &Mutex<Option<Batches>>) -> anyhow::Result<Option<Piece>> {
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = guarded(|| Ok(stream.as_mut().and_then(Iterator::next).transpose()?));
        if !matches!(batch, Ok(Some(_))) {
            *stream = None;
        }
        batch.map_err(|error| self.input.damaged(error))
    }
}

/// One thread's position in the file.
pub(crate) struct Cursor<'a> {
    units: &'a Units<'a>,
    reading: Option<Part>,
    /// For the message of the batch that it gave last.
    permit: Option<Arc<Permit>>,
}

impl Cursor<'_> {
    /// The next batch.
    pub(crate) fn next_batch(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let batch = self.read()?;
        if let Some(batch) = &batch {
            self.units.watch.bar.inc(batch.num_rows() as u64);
        }
        Ok(batch)
    }

    fn read(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let Units { input, units, next, stream, size, watch, .. } = self.units;
        loop {
            watch.check()?;
            if let Some(stream) = stream {
                self.permit = None;
                let Some((batch, permit)) = self.units.next_of(stream)? else { return Ok(None) };
                self.permit = permit;
                return Ok(Some(batch));
            }
            if let Some(reader) = &mut self.reading {
                let batch = guarded(|| Ok(reader.next().transpose()?));
                match batch.map_err(|error| input.damaged(error))? {
                    None => self.reading = None,
                    batch => return Ok(batch),
                }
            }
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(at) else { return Ok(None) };
            self.reading = input.read(unit.clone(), *size)?;
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
        // Equal parts: 130 thousand rows are not cut into 128 thousand and a remainder.
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
