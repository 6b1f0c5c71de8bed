//! Block nested loops: the last resort where partitions do not get smaller, as with one hot key.
//!
//! ```text
//! for each chunk of build rows that fits:     a table of it
//!     for each probe batch:                   pairs come out; which rows have a match is noted
//!     build rows alone of the chunk           they have seen the whole probe side
//! for each probe batch:                       its rows alone, by what was noted
//! ```

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;

use super::file::{SpillFile, SpillReader};
use super::pair::Batches;
use crate::build::{Builder, ROWS_MAX};
use crate::context::Context;
use crate::flags::OwnFlags;
use crate::gather;
use crate::join_type::Alone;
use crate::needs::sliced_bytes;
use crate::{
    JoinError, JoinSpec, JoinTable, MemoryError, ProbeMetrics, Prober, Progress, Remaining,
    Reservation,
};

/// Bytes that a table of one more row takes at most, beside twice the row itself: half-full
/// buckets, marks, groups, words, and parts of keys.
const TABLE_ROW_BYTES: usize = 120;

/// A pair of files being joined in chunks.
pub(crate) struct Chunked {
    spec: Arc<JoinSpec>,
    context: Context,
    build: SpillReader,
    probe: Vec<SpillFile>,
    /// The batch that did not fit into the chunk before.
    held: Option<RecordBatch>,
    /// By row of the probe side, and what that takes.
    matched: OwnFlags,
    _noting: Reservation,
    state: State,
    metrics: ProbeMetrics,
}

enum State {
    Filling { builder: Box<Builder>, table: Reservation },
    Probing { prober: Box<Prober>, batches: Batches, first_row: usize, rows: usize },
    Ended { prober: Box<Prober>, remaining: Option<Remaining> },
    Remaining(Remaining),
    Alone { batches: Batches, batch: Option<RecordBatch>, first_row: usize },
    Done,
}

impl Chunked {
    pub(crate) fn new(
        spec: &Arc<JoinSpec>,
        context: &Context,
        build: SpillFile,
        probe: Vec<SpillFile>,
    ) -> Result<Self, JoinError> {
        let rows: usize = probe.iter().map(SpillFile::rows).sum();
        let mut noting = context.reservation();
        noting.grow(rows.div_ceil(8)).map_err(|short| context.short(short))?;
        let mut matched = OwnFlags::default();
        matched.reset(rows);
        Ok(Self {
            spec: spec.clone(),
            context: context.clone(),
            build: build.read()?,
            probe,
            held: None,
            matched,
            _noting: noting,
            state: Self::filling(spec, context),
            metrics: ProbeMetrics::default(),
        })
    }

    fn filling(spec: &Arc<JoinSpec>, context: &Context) -> State {
        let builder = Box::new(Builder::new(spec.clone(), context.reservation()));
        State::Filling { builder, table: context.reservation() }
    }

    fn batches(&self) -> Batches {
        Batches::new(self.probe.clone())
    }

    /// Does a bounded piece of the work.
    pub(crate) fn advance(&mut self) -> Result<Progress, JoinError> {
        match std::mem::replace(&mut self.state, State::Done) {
            State::Filling { builder, table } => self.fill(builder, table)?,
            State::Probing { mut prober, batches, first_row, rows } => {
                if rows > 0 {
                    if let Some(output) = prober.next_output()? {
                        self.state = State::Probing { prober, batches, first_row, rows };
                        return Ok(Progress::Output(output));
                    }
                    let matched = (0..rows).filter(|row| prober.matched(*row));
                    matched.for_each(|row| self.matched.set(first_row + row));
                }
                self.probe(prober, batches, first_row + rows)?;
            }
            State::Ended { mut prober, remaining } => {
                if let Some(output) = prober.next_output()? {
                    self.state = State::Ended { prober, remaining };
                    return Ok(Progress::Output(output));
                }
                // Rows with a match in several chunks are counted when all is noted.
                let metrics = ProbeMetrics { matched_rows: 0, ..prober.metrics() };
                self.metrics = self.metrics.plus(metrics);
                self.state = match remaining {
                    Some(remaining) => State::Remaining(remaining),
                    None => Self::filling(&self.spec, &self.context),
                };
            }
            State::Remaining(mut remaining) => match remaining.next_output()? {
                Some(output) => {
                    self.state = State::Remaining(remaining);
                    return Ok(Progress::Output(output));
                }
                None => self.state = Self::filling(&self.spec, &self.context),
            },
            State::Alone { mut batches, batch: None, first_row } => {
                let batch = batches.next(&mut self.metrics.spill_time)?;
                if batch.is_some() {
                    self.state = State::Alone { batches, batch, first_row };
                }
            }
            State::Alone { batches, batch: Some(batch), first_row } => {
                let rows = batch.num_rows().min(self.spec.batch_rows);
                let rest = batch.num_rows() - rows;
                let left = (rest > 0).then(|| batch.slice(rows, rest));
                self.state = State::Alone { batches, batch: left, first_row: first_row + rows };
                if let Some(output) = self.alone(&batch.slice(0, rows), first_row)? {
                    return Ok(Progress::Output(output));
                }
            }
            State::Done => return Ok(Progress::Done),
        }
        Ok(Progress::Working)
    }

    /// Adds a batch to the chunk; builds its table when no more fit.
    fn fill(&mut self, mut builder: Box<Builder>, mut table: Reservation) -> Result<(), JoinError> {
        let batch = match self.held.take() {
            Some(batch) => Some(batch),
            None => self.build.next_batch()?,
        };
        let Some(batch) = batch else {
            if builder.rows().seen == 0 {
                return self.note_end();
            }
            return self.finish_chunk(builder, table);
        };
        let row_bytes = sliced_bytes(&batch).div_ceil(batch.num_rows().max(1));
        let room = SpillFile::probed(&self.probe).bytes(self.spec.batch_rows, row_bytes);
        let more = batch.num_rows() * TABLE_ROW_BYTES + 3 * sliced_bytes(&batch);
        let needs = builder.needs(&builder.decide()) + more + room;
        let fits = match table.resize(needs).and_then(|()| builder.charge(&batch)) {
            _ if builder.rows().all() + batch.num_rows() > ROWS_MAX => false,
            Ok(()) => true,
            Err(short) if builder.rows().seen == 0 => return Err(self.context.short(short)),
            Err(MemoryError { .. }) => false,
        };
        if !fits {
            self.held = Some(batch);
            return self.finish_chunk(builder, table);
        }
        builder.push(batch)?;
        builder.settle().map_err(|short| self.context.short(short))?;
        self.state = State::Filling { builder, table };
        Ok(())
    }

    fn finish_chunk(
        &mut self,
        mut builder: Box<Builder>,
        mut table: Reservation,
    ) -> Result<(), JoinError> {
        let decision = builder.decide();
        let needs = builder.needs(&decision);
        if table.bytes() < needs {
            table.resize(needs).map_err(|short| self.context.short(short))?;
        }
        builder.take_over(table.split(needs));
        let (context, rows) = (self.context.clone(), builder.rows().seen);
        let mut resident = builder.finish(decision, context.facts.clone())?;
        resident.emits.probe = Alone::Noted;
        self.context.counts.chunk();
        let table = JoinTable::new(resident, context, table, rows);
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
                let remaining = prober.end()?;
                State::Ended { prober, remaining }
            }
        };
        Ok(())
    }

    /// After the last chunk: what is noted is known.
    fn note_end(&mut self) -> Result<(), JoinError> {
        self.metrics.matched_rows += self.matched.count() as u64;
        let (_, unknown) = self.context.facts.built();
        let comes_out = match self.spec.emits().probe {
            Alone::Never | Alone::Noted => false,
            Alone::Unmatched => !(self.spec.null_aware && unknown),
            Alone::Matched | Alone::Marked => true,
        };
        if comes_out {
            self.state = State::Alone { batches: self.batches(), batch: None, first_row: 0 };
        }
        Ok(())
    }

    /// The rows of a probe batch that come out alone.
    fn alone(
        &self,
        batch: &RecordBatch,
        first_row: usize,
    ) -> Result<Option<RecordBatch>, JoinError> {
        let rows = batch.num_rows();
        let matched = BooleanBuffer::collect_bool(rows, |row| self.matched.get(first_row + row));
        let wanted = match self.spec.emits().probe {
            Alone::Never | Alone::Noted => return Ok(None),
            Alone::Matched => matched.clone(),
            Alone::Unmatched => !&matched,
            Alone::Marked => BooleanBuffer::new_set(rows),
        };
        if wanted.count_set_bits() == 0 {
            return Ok(None);
        }
        let [wanted, marks] = [wanted, matched].map(|bits| BooleanArray::new(bits, None));
        gather::probe_alone(&self.spec, batch, &wanted, &marks).map(Some)
    }

    pub(crate) fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }
}
