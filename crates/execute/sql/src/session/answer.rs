//! The rows of a statement, batch by batch, and figures of its joins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use futures::StreamExt;
use tokio::runtime::Runtime;

use super::SessionError;

/// How often a stop is looked for while waiting for a batch.
const LOOK: Duration = Duration::from_millis(20);

/// A statement that runs.
pub struct Answer {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    stream: SendableRecordBatchStream,
    runtime: Arc<Runtime>,
    stop: &'static AtomicBool,
    deadline: Option<Deadline>,
    given_up: Arc<AtomicBool>,
}

/// The deadline of a statement.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    limit: Duration,
    at: Instant,
}

/// The hash joins of a plan, and figures of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joins {
    /// Done by Workahead.
    pub ours: usize,
    /// Left to DataFusion.
    pub stock: usize,
    /// Of ours, those that spilled.
    pub spilled: usize,
    /// Files that they spilled to.
    pub spill_files: usize,
    /// Bytes of these files.
    pub spilled_bytes: usize,
}

impl Answer {
    pub(super) fn new(
        plan: Arc<dyn ExecutionPlan>,
        stream: SendableRecordBatchStream,
        runtime: Arc<Runtime>,
        stop: &'static AtomicBool,
    ) -> Self {
        Self {
            schema: stream.schema(),
            plan,
            stream,
            runtime,
            stop,
            deadline: None,
            given_up: Arc::default(),
        }
    }

    pub(super) fn with_timeout(self, timeout: Option<Duration>) -> Self {
        let deadline = timeout.map(|limit| Deadline { limit, at: Instant::now() + limit });
        Self { deadline, ..self }
    }

    /// A flag that ends this answer when it is set, for a caller that learns elsewhere that its
    /// rows will not come.
    #[must_use]
    pub fn given_up(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.given_up)
    }

    /// What is executed.
    #[must_use]
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// Of every batch.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// When the statement fails, takes too long, or is stopped.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, SessionError> {
        let (stream, stop, deadline) = (&mut self.stream, self.stop, self.deadline);
        let given_up = &self.given_up;
        let next = async move {
            let stopped = async {
                // Looked at before waiting: the first tick of a timer is not immediate, and a
                // stream that always has its next batch would never be stopped.
                loop {
                    match deadline {
                        _ if stop.load(Ordering::Relaxed) => return SessionError::Stopped,
                        _ if given_up.load(Ordering::Relaxed) => return SessionError::GivenUp,
                        Some(Deadline { limit, at }) if Instant::now() >= at => {
                            return SessionError::TooLong { limit };
                        }
                        _ => tokio::time::sleep(LOOK).await,
                    }
                }
            };
            tokio::select! {
                biased;
                error = stopped => Err(error),
                batch = stream.next() => batch.transpose().map_err(SessionError::Query),
            }
        };
        self.runtime.block_on(next)
    }

    /// The same, waiting at most this long: none after that, otherwise the outcome.
    ///
    /// # Errors
    /// When the statement fails.
    pub fn next_within(
        &mut self,
        time: Duration,
    ) -> Option<Result<Option<RecordBatch>, SessionError>> {
        let stream = &mut self.stream;
        let next = async move { tokio::time::timeout(time, stream.next()).await };
        let next = self.runtime.block_on(next).ok()?;
        Some(next.transpose().map_err(SessionError::Query))
    }

    /// The joins of the plan. What they spilled is known at the end.
    #[must_use]
    pub fn joins(&self) -> Joins {
        let mut joins = Joins::default();
        count(&self.plan, &mut joins);
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

    #[test]
    fn a_stream_that_is_always_ready_is_stopped_too() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let numbers = Arc::new(Int64Array::from_iter_values(0..100_000)) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let session = Session::new(&Options::default()).unwrap();
        session.register_batches("t", batch.schema(), &[batch]).unwrap();
        let statement = session.statements("select n from t").unwrap().remove(0);

        let mut answer = session.run(&statement, &STOP).unwrap();
        assert!(answer.next_batch().unwrap().is_some());
        answer.given_up().store(true, Ordering::Relaxed);
        assert!(matches!(answer.next_batch(), Err(SessionError::GivenUp)));

        let session = session.with_timeout(Some(Duration::ZERO));
        let mut answer = session.run(&statement, &STOP).unwrap();
        assert!(matches!(answer.next_batch(), Err(SessionError::TooLong { .. })));
        STOP.store(true, Ordering::Relaxed);
        assert!(matches!(answer.next_batch(), Err(SessionError::Stopped)));
    }
}
