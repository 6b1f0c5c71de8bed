//! The probe side: batches in, joined batches out, resumable anywhere.
//!
//! ```text
//! probe(batch) ─► MatchGenerator ─► pairs of rows ─► gathered arrays ─► next_output
//!                  pauses in the middle         small ones are
//!                  of one key's rows            put together
//! ```
//!
//! An output batch is as long as was asked for however many rows a key has; batches with few
//! matches are collected until there are enough or the input ends.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_select::coalesce::BatchCoalescer;

use crate::batch::pieces;
use crate::gather;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::match_generation::MatchGenerator;
use crate::memory_estimate::{PROBER_BYTES, ProbeBatchSize};
use crate::spill::ProbeFiles;
use crate::{FinalPhase, JoinError, JoinTable, ProbeMetrics, Reservation};

/// Outputs of less than this part of a batch are put together.
const FEW: usize = 4;

/// Joins probe batches with a table. One a thread.
pub struct Prober {
    table: Arc<JoinTable>,
    /// The part of the table in memory, until this prober ends.
    in_memory: Option<Arc<InMemoryBuildSide>>,
    pairing: MatchGenerator,
    /// Of the batch being probed, what is still to come: the last piece first.
    pieces: Vec<RecordBatch>,
    outputs: BatchCoalescer,
    /// Rows of partitions that were spilled.
    files: Option<ProbeFiles>,
    memory: Reservation,
}

impl Prober {
    /// Starts probing. If there are several, the table
    /// [expects](JoinTable::expect_probers) them.
    ///
    /// # Panics
    /// If all expected probers of a table that [spills](JoinTable::spills) have ended.
    #[must_use]
    pub fn new(table: Arc<JoinTable>) -> Self {
        let spec = table.spec();
        let outputs = BatchCoalescer::new(spec.schema(), spec.batch_rows)
            .with_biggest_coalesce_batch_size(Some(spec.batch_rows / FEW));
        let in_memory = table.in_memory();
        assert!(in_memory.is_some(), "a table that spills is gone when its probers have ended");
        let files = table.spilled.as_ref().and_then(|spilled| spilled.probe_files(&table));
        let memory = table.context.reservation();
        let (pairing, pieces) = (MatchGenerator::new(), Vec::new());
        Self { table, in_memory, pairing, pieces, outputs, files, memory }
    }

    /// Starts a batch. The one before must have been taken to its end by
    /// [`next_output`](Self::next_output).
    ///
    /// # Errors
    /// When the batch is not of the announced schema, memory is short, or spilling fails.
    ///
    /// # Panics
    /// If the batch before is not finished, or this one has 2³² rows or more.
    pub fn probe(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let pieces = self.accept(&batch, usize::MAX)?;
        self.start(pieces)
    }

    /// Checks a batch and cuts it into pieces of at most so many rows, or of as many as memory
    /// allows: the last piece first, as [`start`](Self::start) takes them.
    pub(crate) fn accept(
        &mut self,
        batch: &RecordBatch,
        rows_max: usize,
    ) -> Result<Vec<RecordBatch>, JoinError> {
        let in_memory = self.in_memory.as_ref().expect("a prober that has ended takes no batch");
        let (spec, side) = (&in_memory.spec, in_memory.build_side().other());
        spec.check(side, batch.schema_ref())?;
        if spec.null_aware {
            let nulls = spec.keys(side).nulls(batch).is_some();
            in_memory.null_aware_state.probe(batch.num_rows(), nulls);
        }
        self.pairing.metrics.probe_rows += batch.num_rows() as u64;
        // Matches are noted by their places in the batch.
        let whole = in_memory.output_rules.probe == SideOutput::Tracked;
        let rows = if whole { rows_max } else { rows_max.min(self.table.piece_rows(batch)) };
        let mut pieces: Vec<_> = pieces(batch, rows).collect();
        pieces.reverse();
        Ok(pieces)
    }

    /// Starts pieces of a batch that was [accepted](Self::accept), the last one first.
    pub(crate) fn start(&mut self, pieces: Vec<RecordBatch>) -> Result<(), JoinError> {
        assert!(self.is_idle(), "the batch before has output left");
        self.pieces = pieces;
        self.start_piece().map(drop)
    }

    fn is_idle(&self) -> bool {
        self.pairing.batch.is_none() && self.pieces.is_empty()
    }

    /// Starts the next piece that has rows for the table in memory. False when there is none.
    fn start_piece(&mut self) -> Result<bool, JoinError> {
        let Some(in_memory) = &self.in_memory else { return Ok(false) };
        while let Some(batch) = self.pieces.pop() {
            let bytes = self.bytes_for(in_memory, &batch);
            self.table.charge(&mut self.memory, bytes)?;
            let batch = match &mut self.files {
                None => Some(batch),
                Some(files) => {
                    let start = Instant::now();
                    let rest = files.route(batch)?;
                    self.pairing.metrics.spill_time += start.elapsed();
                    rest
                }
            };
            if let Some(batch) = batch {
                self.pairing.start(in_memory, batch)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a batch and its outputs take, if build rows are as long as on the average.
    fn bytes_for(&self, in_memory: &InMemoryBuildSide, batch: &RecordBatch) -> usize {
        let (rows, bytes) = (batch.num_rows(), self.table.context.bytes_of(batch));
        let probed = ProbeBatchSize { rows, row_bytes: bytes.div_ceil(rows.max(1)) };
        let routed = self.files.as_ref().map_or(0, |files| files.bytes(rows) + bytes);
        probed.bytes(in_memory.spec.batch_rows, in_memory.row_bytes()) + routed
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
            let Some(in_memory) = &self.in_memory else { return Ok(None) };
            if self.pairing.batch.is_none() || !self.pairing.fill(in_memory)? {
                if self.start_piece()? {
                    continue;
                }
                return Ok(None);
            }
            let start = Instant::now();
            let output = gather::output(in_memory, &mut self.pairing)?;
            let bytes = PROBER_BYTES + 2 * self.table.context.bytes_of(&output);
            self.table.charge(&mut self.memory, bytes)?;
            if output.num_rows() > self.table.spec().batch_rows / FEW {
                // Not to be copied just to be merged with a few rows before it.
                self.outputs.finish_buffered_batch()?;
            }
            self.outputs.push_batch(output)?;
            self.pairing.metrics.gather_time += start.elapsed();
        }
    }

    /// Says that no probe batch follows: [`next_output`](Self::next_output) gives what was held
    /// back. The last of the probers gets what remains, if anything may: build rows that come out
    /// alone, partitions that were spilled. It follows.
    ///
    /// # Errors
    /// When an output array can't be made, or spilling fails.
    ///
    /// # Panics
    /// If a batch is not finished, or more probers end than the table
    /// [expects](JoinTable::expect_probers).
    pub fn end(&mut self) -> Result<Option<FinalPhase>, JoinError> {
        assert!(self.is_idle(), "the batch before has output left");
        let in_memory = self.in_memory.take().expect("a prober ends once");
        self.outputs.finish_buffered_batch()?;
        if let (Some(files), Some(spilled)) = (self.files.take(), &self.table.spilled) {
            let start = Instant::now();
            spilled.add(files.finish()?);
            self.pairing.metrics.spill_time += start.elapsed();
        }
        let comes_out =
            !matches!(in_memory.output_rules.build, SideOutput::Never | SideOutput::Tracked);
        drop(in_memory);
        // What was held back has its room; the rest is not needed any more.
        let metrics = self.pairing.metrics;
        self.pairing = MatchGenerator::new();
        self.pairing.metrics = metrics;
        let bytes = PROBER_BYTES.max(self.memory.bytes() / 2);
        self.memory.resize(bytes.min(self.memory.bytes())).expect("it does not grow");
        let last = self.table.end_prober();
        Ok((last && (comes_out || self.table.spills())).then(|| FinalPhase::new(&self.table)))
    }

    /// Joins a batch for the number of its rows only: nothing is gathered. Rows of partitions that
    /// were spilled are counted by [`FinalPhase::count`].
    ///
    /// # Errors
    /// As [`probe`](Self::probe), and when a filter fails.
    ///
    /// # Panics
    /// As [`probe`](Self::probe).
    pub fn count(&mut self, batch: &RecordBatch) -> Result<u64, JoinError> {
        let pieces = self.accept(batch, usize::MAX)?;
        self.count_pieces(pieces)
    }

    /// The same for pieces of a batch that was [accepted](Self::accept).
    pub(crate) fn count_pieces(&mut self, pieces: Vec<RecordBatch>) -> Result<u64, JoinError> {
        self.start(pieces)?;
        let mut rows = 0;
        while let (Some(in_memory), true) = (&self.in_memory, self.pairing.batch.is_some()) {
            rows += self.pairing.count(in_memory)?;
            self.start_piece()?;
        }
        Ok(rows)
    }

    /// Which rows of the last batch have a match, if the join notes that.
    pub(crate) fn matched(&self, row: usize) -> bool {
        self.pairing.matched.get(row)
    }

    /// Whether rows are put by in files, so that the probe side's order is not kept.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.table.spills()
    }

    /// What was done so far.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.pairing.metrics
    }
}
