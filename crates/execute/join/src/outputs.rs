//! The output of a join on one thread, one bounded step of work at a time.
//!
//! ```text
//! batch ─► pieces ─► each probed ─► its outputs ─┐  end of the input ─► outputs held back ─► Done
//!   └─────────────◄──────────────────────────────┘
//! ```
//!
//! [`run`](crate::run) has a `ProbePhase` on each of its threads and splits the final phase among
//! them; a caller that wants the rows on its own thread uses [`Outputs`].

use std::sync::Arc;
use std::task::Poll;

use arrow_array::RecordBatch;

use crate::{FinalPhase, JoinError, JoinTable, ProbeMetrics, Prober, Progress};

/// The use of the output rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputMode {
    Rows,
    /// Only count them, in the metrics.
    Count,
}

/// State of the input.
enum Input {
    Open,
    /// The input has ended, the prober has not.
    Exhausted,
    Done(Option<Box<FinalPhase>>),
}

/// One thread's part of the probe phase.
pub(crate) struct ProbePhase {
    prober: Prober,
    mode: OutputMode,
    input: Input,
    piece_rows: usize,
    /// Pieces of the current batch that are not probed yet, the last one first.
    pieces: Vec<RecordBatch>,
}

impl ProbePhase {
    pub(crate) fn new(table: &Arc<JoinTable>, mode: OutputMode) -> Self {
        let piece_rows = table.spec().probe_batch_rows();
        let (prober, pieces) = (Prober::new(table.clone()), Vec::new());
        Self { prober, mode, input: Input::Open, piece_rows, pieces }
    }

    /// Returns an output, probes a piece, or reads a batch; at the end [`Progress::Done`].
    pub(crate) fn advance<E: From<JoinError>>(
        &mut self,
        next_batch: impl FnOnce() -> Result<Poll<Option<RecordBatch>>, E>,
    ) -> Result<Progress, E> {
        match self.mode {
            OutputMode::Rows => match self.prober.advance()? {
                Progress::Done => {}
                progress => return Ok(progress),
            },
            OutputMode::Count if self.prober.count_step()?.is_some() => {
                return Ok(Progress::Working);
            }
            OutputMode::Count => {}
        }
        if let Some(piece) = self.pieces.pop() {
            self.prober.start(vec![piece])?;
            return Ok(Progress::Working);
        }
        match self.input {
            Input::Open => match next_batch()? {
                Poll::Ready(Some(batch)) => {
                    self.pieces = self.prober.accept(&batch, self.piece_rows)?;
                }
                Poll::Ready(None) => self.input = Input::Exhausted,
                Poll::Pending => {}
            },
            Input::Exhausted => {
                self.input = Input::Done(self.prober.end()?.map(Box::new));
            }
            Input::Done(_) => return Ok(Progress::Done),
        }
        Ok(Progress::Working)
    }

    /// Metrics so far.
    pub(crate) fn metrics(&self) -> ProbeMetrics {
        self.prober.metrics()
    }

    /// The final phase, if this was the last prober to end.
    pub(crate) fn into_final_phase(self) -> Option<Box<FinalPhase>> {
        match self.input {
            Input::Done(final_phase) => final_phase,
            Input::Open | Input::Exhausted => None,
        }
    }
}

/// The output of a join, computed on the calling thread as it is requested.
///
/// One thread probes and consumes the output: an output is in its cache, and the memory of the
/// previous one is free for the next.
///
/// ```
/// # use std::sync::Arc;
/// # use std::task::Poll;
/// # use arrow_array::{Int64Array, RecordBatch};
/// # use workahead_join::{HashJoin, JoinError, JoinType, Outputs, Progress};
/// # let ids = |ids: Vec<i64>| {
/// #     RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(ids)) as _)])
/// # };
/// # let (left, right) = (ids(vec![1, 2])?, ids(vec![2, 2, 3])?);
/// # let schemas = (left.schema(), right.schema());
/// # let join = HashJoin::by_names(schemas.0, schemas.1, &[("id", "id")], JoinType::Inner)?;
/// let mut build = join.build();
/// build.push(left)?;
/// let mut outputs = Outputs::new(&Arc::new(build.finish()?));
/// let (mut batches, mut rows) = (vec![right].into_iter(), 0);
/// loop {
///     match outputs.advance(|| Ok::<_, JoinError>(Poll::Ready(batches.next())))? {
///         Progress::Output(batch) => rows += batch.num_rows(),
///         Progress::Working => {}
///         Progress::Done => break,
///     }
/// }
/// assert_eq!(rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Outputs {
    stage: Stage,
    metrics: ProbeMetrics,
}

enum Stage {
    Probing(Box<ProbePhase>),
    FinalPhase(Box<FinalPhase>),
    Done,
}

impl Outputs {
    /// Starts the output.
    ///
    /// # Panics
    /// If the table has been probed already and [spills](JoinTable::spills).
    #[must_use]
    pub fn new(table: &Arc<JoinTable>) -> Self {
        table.expect_probers(1);
        let stage = Stage::Probing(Box::new(ProbePhase::new(table, OutputMode::Rows)));
        Self { stage, metrics: ProbeMetrics::default() }
    }

    /// Returns an output or does a bounded step of work. Reads probe batches with `next_batch`
    /// until that returns `None`; while it is pending, nothing is done.
    ///
    /// # Errors
    /// If a batch can't be read, or the join fails.
    pub fn advance<E: From<JoinError>>(
        &mut self,
        next_batch: impl FnOnce() -> Result<Poll<Option<RecordBatch>>, E>,
    ) -> Result<Progress, E> {
        let progress = match &mut self.stage {
            Stage::Probing(phase) => phase.advance(next_batch)?,
            Stage::FinalPhase(final_phase) => final_phase.advance()?,
            Stage::Done => return Ok(Progress::Done),
        };
        let Progress::Done = progress else { return Ok(progress) };
        self.metrics = self.metrics();
        self.stage = match std::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Probing(phase) => {
                phase.into_final_phase().map_or(Stage::Done, Stage::FinalPhase)
            }
            Stage::FinalPhase(_) | Stage::Done => Stage::Done,
        };
        Ok(Progress::Working)
    }

    /// Metrics so far.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        let now = match &self.stage {
            Stage::Probing(phase) => phase.metrics(),
            Stage::FinalPhase(final_phase) => final_phase.metrics(),
            Stage::Done => ProbeMetrics::default(),
        };
        self.metrics.plus(now)
    }
}
