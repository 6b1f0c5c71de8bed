//! Keys of the build side become the table: row by row while it stays in cache, else part by part
//! and by several threads.
//!
//! ```text
//! batches ─┬─ thread 0: words ─► counted ─► scattered ─┐     ┌─ parts of the table
//!          └─ thread 1: words ─► counted ─► scattered ─┴──►──┴─ filled by whoever is free
//! ```

mod dense;

use std::thread;

use arrow_array::RecordBatch;
use workahead_machine::pages::Supply;
use workahead_operators::bucket::parts::Scattered;
use workahead_operators::bucket::{Load, Parts, Table, TableError};
use workahead_operators::walk::{Row, Sink};

pub(crate) use dense::Span;

use crate::JoinError;
use crate::entries::Entries;
use crate::groups::Repeats;
use crate::inline::Inline;
use crate::keys::store::Parts as KeyParts;
use crate::keys::{Keys, Mapping, Reader};

/// How often a crowded table is tried again with its keys mixed differently. One is enough unless
/// somebody chose the keys after reading this.
const ATTEMPTS: u64 = 4;

/// Of the rows, the part that must have keys of their own, as far as the estimate can tell, for
/// values to be put in entries before it is known that all have.
const UNIQUE: f64 = 0.9;

/// The rows of the build side that have a key.
pub(crate) struct Source<'a> {
    pub(crate) batches: &'a [RecordBatch],
    pub(crate) reader: &'a Reader,
    /// The words of the batches, if they are not read again.
    pub(crate) kept: Option<Vec<Vec<u64>>>,
    pub(crate) rows: usize,
}

/// How a table is filled.
pub(crate) struct Filling<'a> {
    /// Different keys, about.
    pub(crate) entries: usize,
    pub(crate) threads: usize,
    pub(crate) pages: &'a Supply,
    /// Bytes of a part, if rows are scattered first.
    pub(crate) part_bytes: Option<usize>,
    /// The column whose values entries may hold in the place of rows.
    pub(crate) inline: Option<usize>,
}

/// A filled table.
pub(crate) enum Filled {
    /// Of groups of rows, not yet laid out.
    Grouped(Entries, Repeats),
    /// Of the values of a column: no key repeats.
    Inline(Entries, Inline),
}

/// What is scattered with the keys.
#[derive(Clone, Copy)]
enum Values {
    Rows,
    Column(usize),
}

impl Source<'_> {
    /// A table of all keys; mixed differently if it is crowded.
    pub(crate) fn fill(
        &self,
        how: &Filling<'_>,
        mapping: &mut Mapping,
    ) -> Result<Filled, JoinError> {
        loop {
            let entries = if mapping.whiten.is_none() { how.entries } else { self.rows };
            let filled = match how.part_bytes {
                Some(bytes) => self.by_parts(Parts::of(entries, Load::HALF, bytes)?, how, mapping),
                None => self.by_rows(entries, how.pages, mapping),
            };
            match filled {
                Err(JoinError::Table(TableError::Crowded { .. }))
                    if mapping.whiten.is_none_or(|tried| tried < ATTEMPTS) =>
                {
                    mapping.whiten = Some(mapping.whiten.map_or(1, |tried| tried + 1));
                }
                filled => return filled,
            }
        }
    }

    fn by_rows(
        &self,
        entries: usize,
        pages: &Supply,
        mapping: &Mapping,
    ) -> Result<Filled, JoinError> {
        let mut table = Table::for_entries(entries, Load::HALF, pages.clone())?;
        let mut repeats = Repeats::of(self.rows);
        let (mut base, mut keys) = (0, Keys::default());
        for batch in 0..self.sizes().count() {
            let (grouped, rows) = self.with_words(batch, mapping, &mut keys, |words| {
                (table.grouped(words, base, &mut repeats), words.len())
            })?;
            table = grouped?;
            base += rows as Row;
        }
        Ok(Filled::Grouped(Entries::Buckets(table), repeats))
    }

    fn by_parts(
        &self,
        parts: Parts,
        how: &Filling<'_>,
        mapping: &Mapping,
    ) -> Result<Filled, JoinError> {
        if let Some(column) = self.inline_column(how) {
            let rows = self.scatter(parts, Values::Column(column), how, mapping)?;
            if let Some(table) = parts.unique(&rows, how.threads, how.pages)? {
                let inline = Inline::of(self.batches[0].column(column).data_type());
                return Ok(Filled::Inline(Entries::Buckets(table), inline));
            }
        }
        let rows = self.scatter(parts, Values::Rows, how, mapping)?;
        let (table, pairs) = parts.group(&rows, how.threads, how.pages)?;
        let mut repeats = Repeats::of(self.rows);
        pairs.into_iter().for_each(|(row, first)| repeats.emit(row, first));
        Ok(Filled::Grouped(Entries::Buckets(table), repeats))
    }

    /// All rows, scattered; a run of batches by each thread.
    fn scatter(
        &self,
        parts: Parts,
        values: Values,
        how: &Filling<'_>,
        mapping: &Mapping,
    ) -> Result<Vec<Scattered>, JoinError> {
        let share = self.rows.div_ceil(how.threads).max(1);
        let (mut runs, mut start, mut rows, mut base) = (Vec::new(), 0, 0, 0);
        for (batch, batch_rows) in self.sizes().enumerate() {
            rows += batch_rows;
            if rows >= share * (runs.len() + 1) {
                runs.push((start..batch + 1, base as Row));
                (start, base) = (batch + 1, rows);
            }
        }
        if base < rows {
            runs.push((start..self.sizes().count(), base as Row));
        }
        let run = |(batches, base): (std::ops::Range<usize>, Row)| {
            self.scatter_run(parts, values, (batches, base), how.pages, mapping)
        };
        let run = &run;
        thread::scope(|scope| {
            let own = runs.pop();
            let others: Vec<_> = runs
                .into_iter()
                .map(|batches| {
                    let spawned = thread::Builder::new().spawn_scoped(scope, move || run(batches));
                    spawned.map_err(|source| JoinError::Threads { threads: how.threads, source })
                })
                .collect();
            let own = own.map(run);
            let others = others.into_iter().map(|thread| match thread?.join() {
                Ok(scattered) => scattered,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            others.chain(own).collect()
        })
    }

    fn scatter_run(
        &self,
        parts: Parts,
        values: Values,
        (batches, mut base): (std::ops::Range<usize>, Row),
        pages: &Supply,
        mapping: &Mapping,
    ) -> Result<Scattered, JoinError> {
        let mut counts = parts.counts();
        let mut keys = Keys::default();
        for batch in batches.clone() {
            self.with_words(batch, mapping, &mut keys, |words| counts.add(words))?;
        }
        let mut scattered = counts.scatter(pages)?;
        // Read again: that costs less than memory for all of them.
        for batch in batches {
            self.with_words(batch, mapping, &mut keys, |words| {
                match values {
                    Values::Rows => scattered.add(words, |at| u64::from(base + at as Row)),
                    Values::Column(column) => {
                        Inline::scatter(self.batches[batch].column(column), words, &mut scattered);
                    }
                }
                base += words.len() as Row;
            })?;
        }
        Ok(scattered)
    }

    /// How many rows there are in each batch. Those of which no row has a key are missing from
    /// `batches`, but not from `kept`.
    fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        let kept = self.kept.iter().flatten().map(Vec::len);
        let read = self.batches.iter().filter(|_| self.kept.is_none());
        kept.chain(read.map(RecordBatch::num_rows))
    }

    /// Does something with the words of a batch.
    fn with_words<T>(
        &self,
        batch: usize,
        mapping: &Mapping,
        keys: &mut Keys,
        action: impl FnOnce(&[u64]) -> T,
    ) -> Result<T, JoinError> {
        match &self.kept {
            Some(kept) => Ok(action(mapping.whitened(&kept[batch], &mut Vec::new()))),
            None => {
                self.reader.read(mapping, &self.batches[batch], keys)?;
                Ok(action(keys.words()))
            }
        }
    }

    /// Reads the words of all batches, and what they are of.
    pub(crate) fn read_all(
        &self,
        mapping: &Mapping,
    ) -> Result<Vec<(Vec<u64>, KeyParts)>, JoinError> {
        let read = |batch| {
            let mut keys = Keys::default();
            self.reader.read(mapping, batch, &mut keys)?;
            Ok(keys.take())
        };
        self.batches.iter().map(read).collect()
    }
}
