//! The probe side: batches in, joined batches out, resumable anywhere.
//!
//! ```text
//! probe(batch) ─► Pairing ─► pairs of rows ─► gathered arrays ─► next_output
//!                  pauses in the middle         small ones are
//!                  of one key's rows            put together
//! ```
//!
//! An output batch is as long as was asked for however many rows a key has; batches with few
//! matches are collected until there are enough or the input ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_select::coalesce::BatchCoalescer;

use crate::gather;
use crate::join_type::Alone;
use crate::pairing::Pairing;
use crate::{JoinError, JoinTable, Remaining};

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
    /// Pairing rows, filtering pairs and gathering output columns.
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
pub struct Prober {
    table: Arc<JoinTable>,
    pairing: Pairing,
    outputs: BatchCoalescer,
    ended: bool,
}

impl Prober {
    /// Starts probing. If there are several, the table
    /// [expects](JoinTable::expect_probers) them.
    #[must_use]
    pub fn new(table: Arc<JoinTable>) -> Self {
        let join = table.join();
        let outputs = BatchCoalescer::new(join.schema(), join.batch_rows)
            .with_biggest_coalesce_batch_size(Some(join.batch_rows / FEW));
        Self { table, pairing: Pairing::new(), outputs, ended: false }
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
        assert!(!self.ended, "a prober that has ended takes no batch");
        self.pairing.start(&self.table, batch)
    }

    /// The next output batch, `None` when the probe batch is finished. Batches with few rows are
    /// held back and put together until there are enough of them or [`end`](Self::end) is called.
    ///
    /// # Errors
    /// When an output array can't be made, or a filter fails.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        loop {
            if let Some(output) = self.outputs.next_completed_batch() {
                return Ok(Some(output));
            }
            if self.pairing.batch.is_none() || !self.pairing.fill(&self.table)? {
                return Ok(None);
            }
            let start = Instant::now();
            let output = gather::output(&self.table, &mut self.pairing)?;
            if output.num_rows() > self.table.join.batch_rows / FEW {
                // Not to be copied just to be merged with a few rows before it.
                self.outputs.finish_buffered_batch()?;
            }
            self.outputs.push_batch(output)?;
            self.pairing.metrics.gather_time += start.elapsed();
        }
    }

    /// Says that no probe batch follows: [`next_output`](Self::next_output) gives what was held
    /// back. The last of the probers gets the build rows that come out alone, if the join has any:
    /// they follow.
    ///
    /// # Errors
    /// When an output array can't be made.
    ///
    /// # Panics
    /// If a batch is not finished, or more probers end than the table
    /// [expects](JoinTable::expect_probers).
    pub fn end(&mut self) -> Result<Option<Remaining>, JoinError> {
        assert!(self.pairing.batch.is_none(), "the batch before has output left");
        assert!(!self.ended, "a prober ends once");
        self.ended = true;
        self.outputs.finish_buffered_batch()?;
        let last = self.table.end_prober();
        let comes_out = last && self.table.emits.build != Alone::Never;
        Ok(comes_out.then(|| Remaining::new(self.table.clone())))
    }

    /// Joins a batch for the number of its rows only: nothing is gathered.
    ///
    /// # Errors
    /// As [`probe`](Self::probe), and when a filter fails.
    ///
    /// # Panics
    /// As [`probe`](Self::probe).
    pub fn count(&mut self, batch: &RecordBatch) -> Result<u64, JoinError> {
        self.probe(batch.clone())?;
        self.pairing.count(&self.table)
    }

    /// What was done so far.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.pairing.metrics
    }
}
