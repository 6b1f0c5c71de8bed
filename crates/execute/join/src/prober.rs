//! The probe side: batches in, joined batches out, resumable anywhere.
//!
//! ```text
//! probe(batch) ─► MatchGenerator ─► matches ─► gathered arrays ─► next_output
//!                  pauses in the middle         small ones are
//!                  of one key's rows            coalesced
//! ```
//!
//! Output batches have the requested length however many rows a key has; small outputs are
//! coalesced until there are enough rows or the input ends.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;

use crate::batch::pieces_within;
use crate::coalescer::Coalescer;
use crate::gather;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::match_generation::{MatchGenerator, Step};
use crate::memory_estimate::{PROBER_BYTES, ProbeBatchSize, RowSize};
use crate::spill::{ProbeFiles, Runs};
use crate::{FinalPhase, JoinError, JoinTable, ProbeMetrics, Progress, Reservation};

/// Joins probe batches with a table. One for each thread.
pub struct Prober {
    table: Arc<JoinTable>,
    /// The in-memory part of the build side, until this prober ends.
    in_memory: Option<Arc<InMemoryBuildSide>>,
    generator: MatchGenerator,
    /// The remaining pieces of the current batch, the last one first.
    pieces: Vec<RecordBatch>,
    outputs: Coalescer,
    /// Writes probe rows of spilled partitions.
    files: Option<ProbeFiles>,
    /// Puts the output back into the order of the probe side.
    runs: Option<Runs>,
    memory: Reservation,
}

impl Prober {
    /// Starts probing. Several probers must be [expected](JoinTable::expect_probers) by the table.
    ///
    /// # Panics
    /// If all expected probers of a table that [spills](JoinTable::spills) have ended.
    #[must_use]
    pub fn new(table: Arc<JoinTable>) -> Self {
        let spec = table.spec();
        let outputs = Coalescer::new(spec);
        let in_memory = table.in_memory();
        assert!(in_memory.is_some(), "a table that spills is freed when its probers have ended");
        let context = table.prober_context();
        let spilled = table.spilled.as_ref();
        let files = spilled.and_then(|spilled| spilled.probe_files(&table, &context));
        let memory = context.reservation();
        let (generator, pieces) = (MatchGenerator::new(), Vec::new());
        let runs = table.ordered.clone().and_then(|schema| Runs::new(context, spec, schema));
        Self { table, in_memory, generator, pieces, outputs, files, runs, memory }
    }

    /// Starts a batch. [`next_output`](Self::next_output) must have returned `None` for the
    /// previous one.
    ///
    /// # Errors
    /// If the batch doesn't have the declared schema, memory is short, or spilling fails.
    ///
    /// # Panics
    /// If the previous batch is not finished, or this one has 2³² rows or more.
    pub fn probe(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let pieces = self.accept(&batch, usize::MAX)?;
        self.start(pieces)
    }

    /// Checks a batch and cuts it into pieces of at most `rows_max` rows, fewer if memory is short:
    /// the last piece first, as [`start`](Self::start) takes them.
    pub(crate) fn accept(
        &mut self,
        batch: &RecordBatch,
        rows_max: usize,
    ) -> Result<Vec<RecordBatch>, JoinError> {
        let in_memory = self.in_memory.as_ref().expect("a prober that has ended takes no batch");
        let numbered = self.runs.as_mut().map(|runs| runs.number(batch)).transpose()?;
        let batch = numbered.as_ref().unwrap_or(batch);
        let (spec, side) = (&in_memory.spec, in_memory.build_side().other());
        spec.check(side, batch.schema_ref())?;
        if spec.null_aware {
            let nulls = spec.keys(side).nulls(batch).is_some();
            in_memory.null_aware_state.add_probe(batch.num_rows(), nulls);
        }
        self.generator.metrics.probe_rows += batch.num_rows() as u64;
        // Matched rows are tracked by their position in the batch.
        let whole = in_memory.output_rules.probe == SideOutput::Tracked;
        let rows = if whole { rows_max } else { rows_max.min(self.table.piece_rows(batch)) };
        let bytes = match whole {
            true => usize::MAX,
            false => self.table.context.piece_bytes(spec.probers),
        };
        let mut pieces: Vec<_> = pieces_within(batch, rows, bytes).collect();
        pieces.reverse();
        Ok(pieces)
    }

    /// Starts the pieces of an [accepted](Self::accept) batch, the last one first.
    pub(crate) fn start(&mut self, pieces: Vec<RecordBatch>) -> Result<(), JoinError> {
        assert!(self.is_idle(), "the previous batch still has output");
        self.pieces = pieces;
        self.start_piece().map(drop)
    }

    fn is_idle(&self) -> bool {
        self.generator.batch.is_none() && self.pieces.is_empty()
    }

    /// Starts the next piece, unless all of its rows are spilled. False if there is none.
    fn start_piece(&mut self) -> Result<bool, JoinError> {
        let Some(in_memory) = &self.in_memory else { return Ok(false) };
        let Some(batch) = self.pieces.pop() else { return Ok(false) };
        let bytes = self.bytes_for(in_memory, &batch);
        self.table.charge(&mut self.memory, bytes, self.files.as_ref())?;
        let batch = match &mut self.files {
            None => Some(batch),
            Some(files) => {
                let start = Instant::now();
                let rest = files.partition(batch)?;
                self.generator.metrics.spill_time += start.elapsed();
                rest
            }
        };
        if let Some(batch) = batch {
            self.generator.start(in_memory, batch)?;
        }
        Ok(true)
    }

    /// Bytes of a batch and its outputs, with build rows of average size.
    fn bytes_for(&self, in_memory: &InMemoryBuildSide, batch: &RecordBatch) -> usize {
        let (rows, bytes) = (batch.num_rows(), self.table.context.bytes_of(batch));
        let context = &self.table.context;
        let average = bytes.div_ceil(rows.max(1));
        let row = RowSize { average, widest: context.widest_row(batch) };
        let probed = ProbeBatchSize { rows, row };
        let partition_bytes = self.files.as_ref().map_or(0, |files| files.bytes(rows) + bytes);
        probed.bytes(context.output_size(&in_memory.spec), in_memory.row_size()) + partition_bytes
    }

    /// The next output batch, `None` if the probe batch is finished. Small outputs are held back
    /// until there are enough of them or [`end`](Self::end) is called.
    ///
    /// # Errors
    /// If an output array can't be made, or a filter fails.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        loop {
            match self.advance()? {
                Progress::Output(output) => return Ok(Some(output)),
                Progress::Working => {}
                Progress::Done => return Ok(None),
            }
        }
    }

    /// Does a bounded step: returns an output, or generates matches. [`Progress::Done`] if the
    /// probe batch is finished. A key with very many rows and a filter that rejects them takes very
    /// many steps without an output.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output), and if the join's caller
    /// [stops](crate::HashJoin::with_stop_check) it.
    pub fn advance(&mut self) -> Result<Progress, JoinError> {
        self.table.context.stop.check()?;
        loop {
            if let Some(output) = self.outputs.next() {
                let Some(runs) = &mut self.runs else { return Ok(Progress::Output(output)) };
                runs.add(&output)?;
                return Ok(Progress::Working);
            }
            let Some(in_memory) = &self.in_memory else { return Ok(Progress::Done) };
            let step = match self.generator.batch {
                Some(_) => self.generator.fill(in_memory)?,
                None => Step::Done,
            };
            match step {
                Step::Matches => self.gather()?,
                Step::Working => return Ok(Progress::Working),
                Step::Done if self.start_piece()? => return Ok(Progress::Working),
                Step::Done => return Ok(Progress::Done),
            }
        }
    }

    /// Gathers the generated matches.
    fn gather(&mut self) -> Result<(), JoinError> {
        let Some(in_memory) = &self.in_memory else { return Ok(()) };
        let start = Instant::now();
        let output = gather::output(in_memory, &mut self.generator)?;
        let bytes = PROBER_BYTES + 2 * self.table.context.bytes_of(&output);
        self.table.charge(&mut self.memory, bytes, self.files.as_ref())?;
        let bytes_max = in_memory.batch_bytes_max;
        self.outputs.push(output, bytes_max)?;
        self.generator.metrics.gather_time += start.elapsed();
        Ok(())
    }

    /// Ends the probe input: [`next_output`](Self::next_output) then returns the outputs held back.
    /// The last prober to end gets the final phase, if there is one: unmatched build rows and
    /// spilled partitions, which come after its outputs.
    ///
    /// # Errors
    /// If an output array can't be made, or spilling fails.
    ///
    /// # Panics
    /// If a batch is not finished, or more probers end than the table
    /// [expects](JoinTable::expect_probers).
    pub fn end(&mut self) -> Result<Option<FinalPhase>, JoinError> {
        assert!(self.is_idle(), "the previous batch still has output");
        let in_memory = self.in_memory.take().expect("a prober ends once");
        self.outputs.finish()?;
        if let Some(runs) = self.runs.take() {
            drop(in_memory);
            return self.end_in_order(runs).map(Some);
        }
        if let (Some(files), Some(spilled)) = (self.files.take(), &self.table.spilled) {
            let start = Instant::now();
            spilled.add(files.finish()?);
            self.generator.metrics.spill_time += start.elapsed();
        }
        let is_output =
            !matches!(in_memory.output_rules.build, SideOutput::Never | SideOutput::Tracked);
        drop(in_memory);
        // Outputs held back keep their memory; the rest is released.
        let metrics = self.generator.metrics;
        self.generator = MatchGenerator::new();
        self.generator.metrics = metrics;
        let bytes = PROBER_BYTES.max(self.memory.bytes() / 2);
        self.memory.resize(bytes.min(self.memory.bytes())).expect("it does not grow");
        let last = self.table.end_prober();
        let has_phase = last && (is_output || self.table.spills());
        has_phase.then(|| FinalPhase::new(&self.table)).transpose()
    }

    /// Ends with a final phase of its own.
    fn end_in_order(&mut self, mut runs: Runs) -> Result<FinalPhase, JoinError> {
        while let Some(output) = self.outputs.next() {
            runs.add(&output)?;
        }
        let files = self.files.take().map_or(Ok(Vec::new()), ProbeFiles::finish)?;
        let pairs = self.table.spilled.as_ref().map(|spilled| spilled.pairs_with(files));
        self.memory.free();
        if self.table.end_prober() {
            drop(self.table.take_in_memory());
        }
        Ok(FinalPhase::in_order(&self.table, pairs.unwrap_or_default(), runs))
    }

    /// Joins a batch only to count its output rows: nothing is gathered. Rows of spilled partitions
    /// are counted by [`FinalPhase::count`].
    ///
    /// # Errors
    /// As [`probe`](Self::probe), and if a filter fails.
    ///
    /// # Panics
    /// As [`probe`](Self::probe).
    pub fn count(&mut self, batch: &RecordBatch) -> Result<u64, JoinError> {
        let pieces = self.accept(batch, usize::MAX)?;
        self.start(pieces)?;
        let mut rows = 0;
        while let Some(counted) = self.count_step()? {
            rows += counted;
        }
        Ok(rows)
    }

    /// The same in bounded steps, for an [accepted](Self::accept) batch that was started. `None` if
    /// it is finished.
    pub(crate) fn count_step(&mut self) -> Result<Option<u64>, JoinError> {
        self.table.context.stop.check()?;
        match (&self.in_memory, &self.generator.batch) {
            (Some(in_memory), Some(_)) => self.generator.count(in_memory).map(Some),
            _ => Ok(self.start_piece()?.then_some(0)),
        }
    }

    /// Whether a row of the last batch has a match, if the join tracks that.
    pub(crate) fn matched(&self, row: usize) -> bool {
        self.generator.matched.get(row)
    }

    /// Whether rows are spilled to files: the output comes in another order, or late.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.table.spills()
    }

    /// Metrics so far.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.generator.metrics
    }
}
