//! Block nested loops: the last resort if partitioning doesn't make a partition smaller, as with
//! one hot key.
//!
//! ```text
//! for each chunk of build rows that fits:     build a table
//!     for each probe batch:                   output matches; track which rows have one
//!     unmatched build scan of the chunk       it has seen the whole probe side
//! for each probe batch:                       output its unmatched rows
//! ```

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;

use super::file::{SpillFile, SpillReader};
use super::partition_join::Batches;
use crate::builder::{Builder, ROWS_MAX};
use crate::context::Context;
use crate::gather;
use crate::join_type::SideOutput;
use crate::match_bitmap::MatchBitmap;
use crate::memory_estimate::{OutputSize, RowSize, sliced_bytes};
use crate::output_columns::ColumnSource;
use crate::row_bytes::{WidestValues, null_bytes};
use crate::{
    FinalPhase, JoinError, JoinSpec, JoinTable, MemoryError, ProbeMetrics, Prober, Progress,
    Reservation,
};

/// Most bytes that one more row adds to the memory for a table, beside twice the row itself:
/// half-full buckets, repeats, duplicate lists and keys.
const TABLE_ROW_BYTES: usize = 120;

/// A partition pair being joined in chunks.
pub(crate) struct BlockNestedLoopJoin {
    spec: Arc<JoinSpec>,
    context: Context,
    build: SpillReader,
    probe: Vec<SpillFile>,
    /// The batch that didn't fit in the previous chunk.
    charge: Option<RecordBatch>,
    /// Probe rows with a match, and the memory for the bitmap.
    matched: MatchBitmap,
    _bitmap_memory: Reservation,
    /// The widest build values so far.
    widest: WidestValues,
    state: State,
    metrics: ProbeMetrics,
}

enum State {
    Building { builder: Box<Builder>, table: Reservation },
    Probing { prober: Box<Prober>, batches: Batches, first_row: usize, rows: usize },
    Flushing { prober: Box<Prober>, final_phase: Option<FinalPhase> },
    FinalPhase(FinalPhase),
    Unmatched { batches: Batches, batch: Option<RecordBatch>, first_row: usize },
    Done,
}

impl BlockNestedLoopJoin {
    pub(crate) fn new(
        spec: &Arc<JoinSpec>,
        context: &Context,
        build: SpillFile,
        probe: Vec<SpillFile>,
    ) -> Result<Self, JoinError> {
        let rows: usize = probe.iter().map(SpillFile::rows).sum();
        let mut bitmap_memory = context.reservation();
        bitmap_memory.grow(rows.div_ceil(8)).map_err(|short| context.short(short))?;
        let mut matched = MatchBitmap::default();
        matched.reset(rows);
        Ok(Self {
            spec: spec.clone(),
            context: context.clone(),
            build: build.read()?,
            probe,
            charge: None,
            matched,
            _bitmap_memory: bitmap_memory,
            widest: WidestValues::default(),
            state: Self::building(spec, context),
            metrics: ProbeMetrics::default(),
        })
    }

    fn building(spec: &Arc<JoinSpec>, context: &Context) -> State {
        let builder = Box::new(Builder::new(spec.clone(), context.reservation()));
        State::Building { builder, table: context.reservation() }
    }

    fn batches(&self) -> Batches {
        Batches::new(self.probe.clone())
    }

    /// Does a bounded step of the work.
    pub(crate) fn advance(&mut self) -> Result<Progress, JoinError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Building { builder, table } => self.add_batch(builder, table)?,
            State::Probing { mut prober, batches, first_row, rows } => {
                if rows > 0 {
                    match prober.advance()? {
                        Progress::Done => {}
                        progress => {
                            self.state = State::Probing { prober, batches, first_row, rows };
                            return Ok(progress);
                        }
                    }
                    let matched = (0..rows).filter(|row| prober.matched(*row));
                    matched.for_each(|row| self.matched.set(first_row + row));
                }
                self.probe(prober, batches, first_row + rows)?;
            }
            State::Flushing { mut prober, final_phase } => {
                if let Some(output) = prober.next_output()? {
                    self.state = State::Flushing { prober, final_phase };
                    return Ok(Progress::Output(output));
                }
                // Rows may match in several chunks: they are counted once at the end.
                let metrics = ProbeMetrics { matched_rows: 0, ..prober.metrics() };
                self.metrics = self.metrics.plus(metrics);
                self.state = match final_phase {
                    Some(final_phase) => State::FinalPhase(final_phase),
                    None => Self::building(&self.spec, &self.context),
                };
            }
            State::FinalPhase(mut final_phase) => match final_phase.next_output()? {
                Some(output) => {
                    self.state = State::FinalPhase(final_phase);
                    return Ok(Progress::Output(output));
                }
                None => self.state = Self::building(&self.spec, &self.context),
            },
            State::Unmatched { mut batches, batch: None, first_row } => {
                let batch = batches.next(&mut self.metrics.spill_time)?;
                if batch.is_some() {
                    self.state = State::Unmatched { batches, batch, first_row };
                }
            }
            State::Unmatched { batches, batch: Some(batch), first_row } => {
                let rows = batch.num_rows().min(self.unmatched_rows());
                let rest = batch.num_rows() - rows;
                let left = (rest > 0).then(|| batch.slice(rows, rest));
                self.state = State::Unmatched { batches, batch: left, first_row: first_row + rows };
                if let Some(output) = self.unmatched(&batch.slice(0, rows), first_row)? {
                    return Ok(Progress::Output(output));
                }
            }
            State::Done => return Ok(Progress::Done),
        }
        Ok(Progress::Working)
    }

    /// Adds a batch to the chunk, or builds its table if the batch doesn't fit.
    fn add_batch(
        &mut self,
        mut builder: Box<Builder>,
        mut table: Reservation,
    ) -> Result<(), JoinError> {
        let batch = match self.charge.take() {
            Some(batch) => Some(batch),
            None => self.build.next_batch()?,
        };
        let Some(batch) = batch else {
            if builder.rows().input == 0 {
                return self.end_chunks();
            }
            return self.finish_chunk(builder, table);
        };
        let average = sliced_bytes(&batch).div_ceil(batch.num_rows().max(1));
        self.widest.add(&batch);
        let row = RowSize { average, widest: self.widest.row_bytes() };
        let output = self.context.output_size(&self.spec);
        let room = SpillFile::batch_size(&self.probe).bytes(output, row);
        let more = batch.num_rows() * TABLE_ROW_BYTES + 3 * sliced_bytes(&batch);
        let estimate = builder.estimate(&builder.decide()) + more + room;
        let fits = match table.resize(estimate).and_then(|()| builder.charge(&batch)) {
            _ if builder.rows().all() + batch.num_rows() > ROWS_MAX => false,
            Ok(()) => true,
            Err(short) if builder.rows().input == 0 => return Err(self.context.short(short)),
            Err(MemoryError { .. }) => false,
        };
        if !fits {
            self.charge = Some(batch);
            return self.finish_chunk(builder, table);
        }
        builder.push(batch)?;
        builder.charge_actual().map_err(|short| self.context.short(short))?;
        self.state = State::Building { builder, table };
        Ok(())
    }

    fn finish_chunk(
        &mut self,
        mut builder: Box<Builder>,
        mut table: Reservation,
    ) -> Result<(), JoinError> {
        let decision = builder.decide();
        let estimate = builder.estimate(&decision);
        if table.bytes() < estimate {
            table.resize(estimate).map_err(|short| self.context.short(short))?;
        }
        builder.take_over(table.split(estimate));
        let (context, rows) = (self.context.clone(), builder.rows().input);
        let built = builder.finish(decision, context.null_aware_state.clone());
        let mut in_memory = built.map_err(|error| context.named(error))?;
        in_memory.output_rules.probe = SideOutput::Tracked;
        self.context.counts.chunk();
        let table = JoinTable::new(in_memory, context, table, rows);
        let prober = Box::new(Prober::new(Arc::new(table)));
        self.probe(prober, self.batches(), 0)
    }

    /// Starts the next probe batch, if there is one.
    fn probe(
        &mut self,
        mut prober: Box<Prober>,
        mut batches: Batches,
        first_row: usize,
    ) -> Result<(), JoinError> {
        self.state = match batches.next(&mut self.metrics.spill_time)? {
            Some(batch) => {
                let rows = batch.num_rows();
                prober.probe(batch)?;
                State::Probing { prober, batches, first_row, rows }
            }
            None => {
                let final_phase = prober.end()?;
                State::Flushing { prober, final_phase }
            }
        };
        Ok(())
    }

    /// After the last chunk: all matches are known.
    fn end_chunks(&mut self) -> Result<(), JoinError> {
        self.metrics.matched_rows += self.matched.count() as u64;
        let unknown = self.context.null_aware_state.build().has_null;
        let is_output = match self.spec.output_rules().probe {
            SideOutput::Never | SideOutput::Tracked => false,
            SideOutput::Unmatched => !(self.spec.null_aware && unknown),
            SideOutput::Matched | SideOutput::Marked => true,
        };
        if is_output {
            self.state = State::Unmatched { batches: self.batches(), batch: None, first_row: 0 };
        }
        Ok(())
    }

    /// How many rows are output on their own at once: nulls of the build side may be wide.
    fn unmatched_rows(&self) -> usize {
        let spec = &self.spec;
        let nulls = spec.output_columns.sources.iter().map(|source| match *source {
            ColumnSource::Column(side, column) if side == spec.build_side => {
                null_bytes(spec.schema_of(side).field(column).data_type())
            }
            _ => 0,
        });
        let OutputSize { rows, bytes_max } = self.context.output_size(spec);
        rows.min(bytes_max / nulls.sum::<usize>().max(1)).max(1)
    }

    /// Rows of a probe batch that are output on their own.
    fn unmatched(
        &self,
        batch: &RecordBatch,
        first_row: usize,
    ) -> Result<Option<RecordBatch>, JoinError> {
        let rows = batch.num_rows();
        let matched = BooleanBuffer::collect_bool(rows, |row| self.matched.get(first_row + row));
        let selected = match self.spec.output_rules().probe {
            SideOutput::Never | SideOutput::Tracked => return Ok(None),
            SideOutput::Matched => matched.clone(),
            SideOutput::Unmatched => !&matched,
            SideOutput::Marked => BooleanBuffer::new_set(rows),
        };
        if selected.count_set_bits() == 0 {
            return Ok(None);
        }
        let [selected, marks] = [selected, matched].map(|bits| BooleanArray::new(bits, None));
        gather::unmatched_probe(&self.spec, batch, &selected, &marks).map(Some)
    }

    pub(crate) fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }
}
