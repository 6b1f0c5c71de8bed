//! The probe side: a stream of joined batches, at most one for each poll.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion_common::JoinType;
use datafusion_common::error::{DataFusionError, Result};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use workahead_join::{FinalPhase, JoinTable, Prober, Progress, Side};

use crate::build::{CollectedProber, SharedTable, empty};
use crate::dynamic_filter::DynamicFilterAccumulator;
use crate::error::from_join;
use crate::metrics::JoinMetrics;
use crate::sideways_filter::Matches;
use crate::translation::Translation;

/// ```text
/// Building ─► AwaitingFilter ─► Fetching ◄─► Probing
///     │                            └──────► Ending ─► FinalPhase ─► Done
///     └─ no row can come out ────────────────────────────────────► Done
/// ```
enum State {
    /// The build side is read.
    Building(SharedTable),
    /// Other builds are awaited, so that the probe side's scan starts with the complete filter.
    AwaitingFilter(Arc<JoinTable>, BoxFuture<'static, ()>),
    /// The next probe batch is awaited.
    Fetching(Box<Prober>),
    /// A probe batch has output left.
    Probing(Box<Prober>),
    /// The probe side has ended; the prober has output left.
    Ending(Box<Prober>, Option<FinalPhase>),
    /// Unmatched build rows and spilled partitions, in the stream of the last prober.
    FinalPhase(FinalPhase),
    Done,
}

/// The inputs of a stream.
pub(crate) struct ProbeSide {
    pub(crate) input: SendableRecordBatchStream,
    /// Dropped after the last output, with its memory.
    pub(crate) table: Option<SharedTable>,
    pub(crate) translation: Arc<Translation>,
    pub(crate) join_type: JoinType,
    /// The filter to wait for.
    pub(crate) dynamic_filter: Option<Arc<DynamicFilterAccumulator>>,
    /// This stream's use of a table for all partitions.
    pub(crate) collected: Option<CollectedProber>,
    pub(crate) fetch: Option<usize>,
    /// For the filters of the input.
    pub(crate) matches: Arc<Matches>,
    pub(crate) schema: SchemaRef,
    pub(crate) metrics: JoinMetrics,
}

/// Joins the probe side with the table.
pub(crate) struct JoinStream {
    probe: ProbeSide,
    state: State,
    /// Rows left of `fetch`.
    rows_left: usize,
    build_side: Side,
}

impl State {
    fn start(table: Arc<JoinTable>) -> Self {
        Self::Fetching(Box::new(Prober::new(table)))
    }
}

impl JoinStream {
    pub(crate) fn new(probe: ProbeSide) -> Self {
        let state = probe.table.clone().map_or(State::Done, State::Building);
        let rows_left = probe.fetch.unwrap_or(usize::MAX);
        Self { probe, state, rows_left, build_side: Side::Left }
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        loop {
            if self.rows_left == 0 {
                self.finish();
            }
            let (next, output) = match std::mem::replace(&mut self.state, State::Done) {
                State::Building(mut table) => match table.poll_unpin(cx) {
                    Poll::Pending => return self.pause(State::Building(table)),
                    Poll::Ready(Ok(built)) => {
                        // The streams that waited for it have just been woken, and Tokio keeps the
                        // last one for this thread, which no other can run it for.
                        cx.waker().wake_by_ref();
                        let next = self.after_build(&built.table);
                        return self.pause(next);
                    }
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Some(Err(DataFusionError::Shared(error))));
                    }
                },
                State::AwaitingFilter(table, mut others) => match others.poll_unpin(cx) {
                    Poll::Pending => return self.pause(State::AwaitingFilter(table, others)),
                    Poll::Ready(()) => (State::start(table), None),
                },
                State::Fetching(prober) => match self.probe.input.poll_next_unpin(cx) {
                    Poll::Pending => return self.pause(State::Fetching(prober)),
                    Poll::Ready(Some(batch)) => (self.probe_batch(prober, batch?)?, None),
                    Poll::Ready(None) => (self.end(prober)?, None),
                },
                State::Probing(prober) => match self.next_of_batch(prober)? {
                    (prober, Progress::Output(batch)) => (State::Probing(prober), Some(batch)),
                    (prober, Progress::Working) => {
                        // A filter may reject all candidates of a key with very many rows.
                        cx.waker().wake_by_ref();
                        return self.pause(State::Probing(prober));
                    }
                    (prober, Progress::Done) => {
                        if self.join_type().empty_build_side_produces_empty_result() {
                            self.probe.matches.set(prober.metrics());
                        }
                        (State::Fetching(prober), None)
                    }
                },
                State::Ending(prober, phase) => self.next_after_end(prober, phase)?,
                State::FinalPhase(phase) => match self.next_of_final_phase(phase)? {
                    (phase, Progress::Output(batch)) => (State::FinalPhase(phase), Some(batch)),
                    (phase, Progress::Working) => {
                        // One piece of work per poll, for the sake of other tasks and cancellation.
                        cx.waker().wake_by_ref();
                        return self.pause(State::FinalPhase(phase));
                    }
                    (_, Progress::Done) => (State::Done, None),
                },
                State::Done => return Poll::Ready(None),
            };
            self.state = next;
            if let Some(batch) = output {
                return Poll::Ready(Some(self.emit(batch)));
            }
        }
    }

    fn pause<T>(&mut self, state: State) -> Poll<T> {
        self.state = state;
        Poll::Pending
    }

    /// After the build. If no row can come out, the probe side is not started.
    fn after_build(&mut self, table: &Arc<JoinTable>) -> State {
        self.build_side = table.build_side();
        let join_type = self.join_type();
        let no_rows = table.input_rows() == 0;
        let no_keys = table.keys() == 0 && !table.spills();
        if no_rows && join_type.empty_build_side_produces_empty_result()
            || no_keys && join_type.empty_map_produces_empty_result()
        {
            self.finish();
            return State::Done;
        }
        match &self.probe.dynamic_filter {
            None => State::start(Arc::clone(table)),
            Some(filter) => {
                let filter = Arc::clone(filter);
                let complete = async move { filter.wait().await }.boxed();
                State::AwaitingFilter(Arc::clone(table), complete)
            }
        }
    }

    /// The join's type with the build side first.
    fn join_type(&self) -> JoinType {
        match self.build_side {
            Side::Left => self.probe.join_type,
            Side::Right => self.probe.join_type.swap(),
        }
    }

    fn probe_batch(&mut self, mut prober: Box<Prober>, batch: RecordBatch) -> Result<State> {
        let time = self.probe.metrics.join_time.clone();
        let _timer = time.timer();
        self.probe.metrics.input_batches.add(1);
        self.probe.metrics.input_rows.add(batch.num_rows());
        let batch = self.probe.translation.of_side(self.build_side.other()).read(&batch)?;
        prober.probe(batch).map_err(from_join)?;
        Ok(State::Probing(prober))
    }

    fn next_of_batch(&mut self, mut prober: Box<Prober>) -> Result<(Box<Prober>, Progress)> {
        let time = self.probe.metrics.join_time.clone();
        let _timer = time.timer();
        let progress = prober.advance().map_err(from_join)?;
        Ok((prober, progress))
    }

    fn end(&mut self, mut prober: Box<Prober>) -> Result<State> {
        // Frees the memory of the probe side's plan.
        self.probe.input = empty(&self.probe.input);
        let time = self.probe.metrics.join_time.clone();
        let _timer = time.timer();
        let phase = prober.end().map_err(from_join)?;
        if !prober.spills() {
            // Rows in files are not joined yet.
            self.probe.metrics.add(prober.metrics(), self.join_type());
        }
        Ok(State::Ending(prober, phase))
    }

    fn next_after_end(
        &mut self,
        mut prober: Box<Prober>,
        phase: Option<FinalPhase>,
    ) -> Result<(State, Option<RecordBatch>)> {
        let time = self.probe.metrics.join_time.clone();
        let _timer = time.timer();
        if let Some(batch) = prober.next_output().map_err(from_join)? {
            return Ok((State::Ending(prober, phase), Some(batch)));
        }
        if phase.is_none() {
            self.finish();
        }
        Ok((phase.map_or(State::Done, State::FinalPhase), None))
    }

    fn next_of_final_phase(&mut self, mut phase: FinalPhase) -> Result<(FinalPhase, Progress)> {
        let time = self.probe.metrics.join_time.clone();
        let _timer = time.timer();
        let progress = phase.advance().map_err(from_join)?;
        if matches!(progress, Progress::Done) {
            self.finish();
        }
        Ok((phase, progress))
    }

    /// Gives a batch the plan's schema and cuts it to the rows left of `fetch`.
    fn emit(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = batch.slice(0, batch.num_rows().min(self.rows_left));
        self.rows_left -= batch.num_rows();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let schema = Arc::clone(&self.probe.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// Drops the table and the input.
    fn finish(&mut self) {
        (self.state, self.probe.table) = (State::Done, None);
        self.probe.input = empty(&self.probe.input);
        if let Some(prober) = self.probe.collected.take() {
            prober.end();
        }
    }
}

impl Stream for JoinStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let batch = ready!(self.poll_batch(cx));
        self.probe.metrics.baseline.record_poll(Poll::Ready(batch))
    }
}

impl RecordBatchStream for JoinStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.probe.schema)
    }
}

impl Drop for JoinStream {
    fn drop(&mut self) {
        self.finish();
        self.probe.metrics.close();
    }
}
