//! The probe side: batches in, joined batches out, resumable anywhere.
//!
//! ```text
//! probe(batch) ─► keys ─► Lookup ─► hits ─► pairs of rows ─► gathered arrays ─► next_output
//!                          pauses when        pauses in the middle     small ones are
//!                          hits are full      of one key's rows        put together
//! ```
//!
//! An output batch is as long as was asked for however many rows a key has; batches with few
//! matches are collected until there are enough or the input ends.

use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_select::coalesce::BatchCoalescer;
use arrow_select::take::take;
use workahead_operators::memory::{Memory, Prefetching, ToL1};
use workahead_operators::place::{Intent, Place};
use workahead_operators::schedule::Pause;
use workahead_operators::walk::Row;

use crate::keys::Keys;
use crate::lookup::{Hits, Lookup};
use crate::{JoinError, JoinTable};

/// Hits looked up at a time: 16 KiB of them, which stay in L1 until they are expanded.
const HITS: usize = 1024;
/// How many hits ahead a group's rows are announced.
const GROUPS_AHEAD: usize = 8;

/// Outputs of less than this part of a batch are put together.
const FEW: usize = 4;

/// What a prober has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeMetrics {
    /// Rows of the probe side.
    pub probe_rows: u64,
    /// Of them, those with a match.
    pub matched_rows: u64,
    /// Rows of the result.
    pub output_rows: u64,
    /// Reading keys and looking them up.
    pub lookup_time: Duration,
    /// Pairing rows and gathering output columns.
    pub gather_time: Duration,
}

impl ProbeMetrics {
    /// The sum of two probers' metrics.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            probe_rows: self.probe_rows + other.probe_rows,
            matched_rows: self.matched_rows + other.matched_rows,
            output_rows: self.output_rows + other.output_rows,
            lookup_time: self.lookup_time + other.lookup_time,
            gather_time: self.gather_time + other.gather_time,
        }
    }
}

/// Joins probe batches with a table. One a thread.
pub struct Prober<'t> {
    table: &'t JoinTable,
    keys: Keys,
    hits: Hits,
    /// The batch being probed.
    batch: Option<(RecordBatch, Lookup)>,
    /// The next hit to expand, and how many of its rows are done.
    next_hit: usize,
    rows_done: u32,
    probe_rows: Vec<Row>,
    build_rows: Vec<Row>,
    outputs: BatchCoalescer,
    metrics: ProbeMetrics,
}

impl<'t> Prober<'t> {
    pub(crate) fn new(table: &'t JoinTable) -> Self {
        let join = table.join();
        Self {
            table,
            keys: Keys::default(),
            hits: Hits::up_to(HITS),
            batch: None,
            next_hit: 0,
            rows_done: 0,
            probe_rows: Vec::new(),
            build_rows: Vec::new(),
            outputs: BatchCoalescer::new(join.schema(), join.batch_rows)
                .with_biggest_coalesce_batch_size(Some(join.batch_rows / FEW)),
            metrics: ProbeMetrics::default(),
        }
    }

    /// Starts a batch. The one before must have been taken to its end by
    /// [`next_output`](Self::next_output).
    ///
    /// # Errors
    /// When the batch is not of the announced schema.
    ///
    /// # Panics
    /// If the batch before is not finished, or this one has 2³² rows or more.
    pub fn probe(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        assert!(self.batch.is_none(), "the batch before has output left");
        let words = self.read_keys(&batch)?;
        self.batch = Some((batch, Lookup::new(self.table.choice.strategy, words)));
        Ok(())
    }

    /// The next output batch, `None` when the probe batch is finished. Batches with few rows are
    /// held back and put together until there are enough of them or [`end`](Self::end) is called.
    ///
    /// # Errors
    /// When an output array can't be made.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        loop {
            if let Some(output) = self.outputs.next_completed_batch() {
                return Ok(Some(output));
            }
            if !self.fill_pairs() {
                return Ok(None);
            }
            let start = Instant::now();
            let output = self.gather()?;
            if output.num_rows() > self.few_rows() {
                // Not to be copied just to be merged with a few rows before it.
                self.outputs.finish_buffered_batch()?;
            }
            self.outputs.push_batch(output)?;
            self.metrics.gather_time += start.elapsed();
        }
    }

    /// Says that no probe batch follows: [`next_output`](Self::next_output) gives what was held
    /// back.
    ///
    /// # Errors
    /// When an output array can't be made.
    ///
    /// # Panics
    /// If a batch is not finished.
    pub fn end(&mut self) -> Result<(), JoinError> {
        assert!(self.batch.is_none(), "the batch before has output left");
        Ok(self.outputs.finish_buffered_batch()?)
    }

    /// Joins a batch for the number of its rows only: nothing is gathered.
    ///
    /// # Errors
    /// As [`probe`](Self::probe).
    ///
    /// # Panics
    /// As [`probe`](Self::probe).
    pub fn count(&mut self, batch: &RecordBatch) -> Result<u64, JoinError> {
        assert!(self.batch.is_none(), "the batch before has output left");
        let words = self.read_keys(batch)?;
        let start = Instant::now();
        let mut lookup = Lookup::new(self.table.choice.strategy, words);
        let mut rows = 0;
        loop {
            self.hits.found.clear();
            let pause = lookup.drive(&self.table.table, self.keys.words(), &mut self.hits);
            let found = &self.hits.found;
            rows += found.iter().map(|hit| u64::from(group(hit.value).0)).sum::<u64>();
            self.metrics.matched_rows += found.len() as u64;
            if pause == Pause::Drained {
                break;
            }
        }
        self.hits.found.clear();
        self.metrics.output_rows += rows;
        self.metrics.lookup_time += start.elapsed();
        Ok(rows)
    }

    /// What was done so far.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }

    fn few_rows(&self) -> usize {
        self.table.join.batch_rows / FEW
    }

    fn read_keys(&mut self, batch: &RecordBatch) -> Result<usize, JoinError> {
        let start = Instant::now();
        let input = self.table.join.input(self.table.build_side().other());
        input.check(batch.schema_ref())?;
        assert!(u32::try_from(batch.num_rows()).is_ok(), "a batch has at most 2³² rows");
        self.table.probe_keys.read(batch.column(input.key), &mut self.keys);
        self.metrics.probe_rows += batch.num_rows() as u64;
        self.metrics.lookup_time += start.elapsed();
        Ok(self.keys.words().len())
    }

    /// Pairs rows up to a whole output batch. False when the probe batch is finished and there are
    /// none.
    fn fill_pairs(&mut self) -> bool {
        self.probe_rows.clear();
        self.build_rows.clear();
        while self.build_rows.len() < self.table.join.batch_rows {
            if self.next_hit < self.hits.found.len() {
                let start = Instant::now();
                self.expand();
                self.metrics.gather_time += start.elapsed();
                continue;
            }
            self.hits.found.clear();
            self.next_hit = 0;
            let Some((_, lookup)) = &mut self.batch else { break };
            let start = Instant::now();
            let pause = lookup.drive(&self.table.table, self.keys.words(), &mut self.hits);
            self.metrics.matched_rows += self.hits.found.len() as u64;
            self.metrics.lookup_time += start.elapsed();
            if pause == Pause::Drained && self.hits.found.is_empty() {
                break;
            }
        }
        if self.build_rows.is_empty() {
            self.batch = None;
        }
        !self.build_rows.is_empty()
    }

    /// Pairs the rows of hits until there are none left or the output is full.
    fn expand(&mut self) {
        let room = self.table.join.batch_rows;
        let groups = &self.table.groups;
        let mut memory = Prefetching::<ToL1>::default();
        while let Some(hit) = self.hits.found.get(self.next_hit) {
            let left = room - self.build_rows.len();
            if left == 0 {
                return;
            }
            if let Some(ahead) = self.hits.found.get(self.next_hit + GROUPS_AHEAD)
                && let (_, Some(start)) = group(ahead.value)
            {
                memory.fetch(Place::of(&groups[start]), Intent::Read);
            }
            let probe_row = self.keys.row(hit.word);
            let (rows, start) = group(hit.value);
            let Some(start) = start else {
                self.probe_rows.push(probe_row);
                self.build_rows.push(hit.value as Row);
                self.next_hit += 1;
                continue;
            };
            let more = (rows - self.rows_done).min(left as u32);
            let start = start + self.rows_done as usize;
            self.build_rows.extend_from_slice(&groups[start..start + more as usize]);
            self.probe_rows.resize(self.build_rows.len(), probe_row);
            self.rows_done += more;
            if self.rows_done == rows {
                self.rows_done = 0;
                self.next_hit += 1;
            }
        }
    }

    fn gather(&mut self) -> Result<RecordBatch, JoinError> {
        let rows = self.build_rows.len();
        let join = self.table.join();
        let (batch, _) = self.batch.as_ref().expect("pairs are of a batch");
        let probe_rows = ProbeRows::of(std::mem::take(&mut self.probe_rows));
        let build_rows = self.table.chunks.rows(std::mem::take(&mut self.build_rows));
        let arrays = join.sources.iter().map(|source| {
            Ok::<ArrayRef, JoinError>(if source.side == join.build_side {
                self.table.chunks.gather(source.column, &build_rows)?
            } else {
                probe_rows.gather(batch.column(source.column))?
            })
        });
        let arrays = arrays.collect::<Result<_, _>>()?;
        self.metrics.output_rows += rows as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(join.schema(), arrays, &options)?)
    }
}

/// The rows of an entry's key, and where they lie unless the entry itself is the one.
#[inline(always)]
fn group(value: u64) -> (u32, Option<usize>) {
    match (value >> 32) as u32 {
        0 => (1, None),
        rows => (rows, Some(value as u32 as usize)),
    }
}

/// Rows of the probe batch to gather.
enum ProbeRows {
    /// Each of a run once, as where every row has one match: no copy.
    Run {
        start: usize,
        rows: usize,
    },
    Picked(UInt32Array),
}

impl ProbeRows {
    fn of(rows: Vec<Row>) -> Self {
        let start = rows[0];
        if rows.iter().zip(start..).all(|(row, next)| *row == next) {
            return Self::Run { start: start as usize, rows: rows.len() };
        }
        Self::Picked(UInt32Array::from(rows))
    }

    fn gather(&self, array: &ArrayRef) -> Result<ArrayRef, JoinError> {
        match self {
            Self::Run { start, rows } => Ok(array.slice(*start, *rows)),
            Self::Picked(rows) => Ok(take(array, rows, None)?),
        }
    }
}
