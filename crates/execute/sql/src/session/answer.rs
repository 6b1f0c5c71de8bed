//! The rows of a statement, batch by batch, and figures of its joins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;

use super::SessionError;
use super::workers::Workers;

/// The interval at which the stop flag is checked while waiting for a batch.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A running statement.
pub struct Answer {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    workers: Arc<Workers>,
    stop: &'static AtomicBool,
    deadline: Option<Deadline>,
}

/// The deadline of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    limit: Duration,
    at: Instant,
}

impl Deadline {
    pub(super) fn after(limit: Duration) -> Self {
        Self { limit, at: Instant::now() + limit }
    }
}

/// Waits until a statement has to end, and says why. Looked at before waiting: a stream that always
/// has its next batch would never be stopped otherwise.
pub(super) async fn end(stop: &AtomicBool, deadline: Option<Deadline>) -> SessionError {
    loop {
        match deadline {
            _ if stop.load(Ordering::Relaxed) => return SessionError::Stopped,
            Some(Deadline { limit, at }) if Instant::now() >= at => {
                return SessionError::TooLong { limit };
            }
            _ => tokio::time::sleep(CHECK_INTERVAL).await,
        }
    }
}

/// The hash joins of a plan, and figures of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joins {
    /// Joins by Workahead.
    pub ours: usize,
    /// Joins by DataFusion.
    pub stock: usize,
    /// Those of ours that spilled.
    pub spilled: usize,
    /// Their spill files.
    pub spill_files: usize,
    /// Bytes of these files.
    pub spilled_bytes: usize,
    /// Bytes that the processes of a cluster sent each other, as the cluster's client counts them.
    pub exchanged_bytes: usize,
}

impl Answer {
    pub(super) fn new(
        plan: Arc<dyn ExecutionPlan>,
        stream: SendableRecordBatchStream,
        workers: Arc<Workers>,
        stop: &'static AtomicBool,
    ) -> Self {
        Self { schema: stream.schema(), plan, stream, workers, stop, deadline: None }
    }

    pub(super) fn with_deadline(self, deadline: Option<Deadline>) -> Self {
        Self { deadline, ..self }
    }

    /// The plan that is executed.
    #[must_use]
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The schema of its batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next batch; none at the end.
    ///
    /// # Errors
    /// When the statement fails, takes too long, or is stopped.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, SessionError> {
        let (stream, stop, deadline) = (&mut self.stream, self.stop, self.deadline);
        let next = async move {
            tokio::select! {
                biased;
                error = end(stop, deadline) => Err(error),
                batch = stream.next() => batch.transpose().map_err(SessionError::Query),
            }
        };
        self.workers.block_on(next)
    }

    /// The same with a time limit: none if it passes.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn next_within(
        &mut self,
        time: Duration,
    ) -> Option<Result<Option<RecordBatch>, SessionError>> {
        let stream = &mut self.stream;
        let next = async move { tokio::time::timeout(time, stream.next()).await };
        let next = self.workers.block_on(next).ok()?;
        Some(next.transpose().map_err(SessionError::Query))
    }

    /// The joins of the plan. Their spill figures are complete at the end.
    #[must_use]
    pub fn joins(&self) -> Joins {
        Joins::of(&self.plan)
    }
}

impl Joins {
    /// The joins of a plan, which may have come back from other processes with their metrics.
    #[must_use]
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut joins = Self::default();
        count(plan, &mut joins);
        joins
    }
}

fn count(node: &Arc<dyn ExecutionPlan>, joins: &mut Joins) {
    match node.name() {
        "WorkaheadJoinExec" => {
            joins.ours += 1;
            let metrics = node.metrics().unwrap_or_default();
            let files = metrics.spill_count().unwrap_or_default();
            joins.spilled += usize::from(files > 0);
            joins.spill_files += files;
            joins.spilled_bytes += metrics.spilled_bytes().unwrap_or_default();
        }
        "HashJoinExec" => joins.stock += 1,
        _ => {}
    }
    node.children().into_iter().for_each(|child| count(child, joins));
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};

    use super::*;
    use crate::session::{Options, Session};

    /// The queries of apache/datafusion#24883. With larger spill files one of these hangs.
    #[test]
    fn exchanges_that_run_short_of_memory_do_not_wait_for_each_other() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let threads = std::num::NonZero::new(2).unwrap();
        let options = Options { threads, memory_limit: Some(2 << 20), ..Options::default() };
        let limit = Some(Duration::from_secs(30));
        let session = Session::new(&options).unwrap().with_timeout(limit);
        let table = "set datafusion.execution.batch_size = 64; \
                     create table t as select v % 13 as g, md5(cast(v % 337 as varchar)) as trace \
                     from generate_series(1, 40000) as s(v)";
        let query = "select g, count(distinct trace) as n from t group by g";
        let statements = [&[table][..], &[query; 10]].concat().join(";");
        for statement in session.statements(&statements, &STOP).unwrap() {
            let mut answer = session.run(&statement, &STOP).unwrap();
            while answer.next_batch().unwrap().is_some() {}
        }
    }

    #[test]
    fn a_stream_that_is_always_ready_is_stopped_too() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let numbers = Arc::new(Int64Array::from_iter_values(0..100_000)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let session = Session::new(&Options::default()).unwrap();
        session.register_batches("t", batch.schema(), &[batch]).unwrap();
        let statement = session.statements("select n from t", &STOP).unwrap().remove(0);

        let mut answer = session.run(&statement, &STOP).unwrap();
        assert!(answer.next_batch().unwrap().is_some());
        answer.deadline = Some(Deadline::after(Duration::ZERO));
        assert!(matches!(answer.next_batch(), Err(SessionError::TooLong { .. })));
        let session = session.with_timeout(Some(Duration::ZERO));
        assert!(matches!(session.run(&statement, &STOP), Err(SessionError::TooLong { .. })));
        STOP.store(true, Ordering::Relaxed);
        assert!(matches!(answer.next_batch(), Err(SessionError::Stopped)));
        assert!(matches!(session.run(&statement, &STOP), Err(SessionError::Stopped)));
    }
}
