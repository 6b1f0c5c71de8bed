//! A statement that writes files leaves none of what failed.
//!
//! ```text
//! SinkGuardExec   ends with the error, and drops what is below: staged files go with it
//!   DataSinkExec
//!     SinkGuardExec   keeps an error of its input, and puts nothing out any more
//!       …
//! ```
//!
//! DataFusion's writers finish when no more rows come, whatever the reason, and look for an error
//! only after they have put their files in place: `COPY` would leave a part of its rows under the
//! final name, in the place of the file that was there.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    replace_children_if_necessary,
};
use futures::task::AtomicWaker;
use futures::{Stream, StreamExt};
use workahead_datafusion::like_its_input;

use crate::local_files::upload::last_failure;

/// Puts guards above and below whatever writes.
pub(super) fn guarded(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|plan| {
        let Some(sink) = plan.downcast_ref::<DataSinkExec>() else {
            return Ok(Transformed::no(plan));
        };
        let failure = Arc::new(Failure::default());
        let guard = |input, side| SinkGuardExec { input, side, failure: Arc::clone(&failure) };
        let below = guard(Arc::clone(sink.input()), Side::Below);
        let plan = replace_children_if_necessary(plan, vec![Arc::new(below)])?;
        Ok(Transformed::yes(Arc::new(guard(plan, Side::Above)) as _))
    })
    .data()
}

/// Why the input ended early.
enum Why {
    Error(DataFusionError),
    Panic(Box<dyn Any + Send>),
}

/// The report of a guard below to the one above.
#[derive(Default)]
struct Failure {
    why: Mutex<Option<Why>>,
    waker: AtomicWaker,
}

impl Failure {
    fn tell(&self, why: Why) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.waker.wake();
    }

    fn take(&self) -> Option<Why> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What DataFusion says of a file that it could not finish.
const UNFINISHED: &str = "Error encountered while finalizing writes";

/// Writers of rows as text lose why a file could not be finished, and call it a bug.
fn with_reason(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::Internal(text) if text.starts_with(UNFINISHED) => {
            let last = last_failure().unwrap_or_else(|| "a disk may be full".to_owned());
            DataFusionError::External(format!("can't write all of a file: {last}").into())
        }
        _ => error,
    }
}

/// Where a guard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

struct SinkGuardExec {
    input: Arc<dyn ExecutionPlan>,
    side: Side,
    failure: Arc<Failure>,
}

impl SinkGuardExec {
    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input, side: self.side, failure: Arc::clone(&self.failure) }
    }
}

impl fmt::Debug for SinkGuardExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkGuardExec").field("side", &self.side).finish_non_exhaustive()
    }
}

impl DisplayAs for SinkGuardExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "SinkGuardExec"),
        }
    }
}

impl ExecutionPlan for SinkGuardExec {
    fn name(&self) -> &str {
        "SinkGuardExec"
    }

    like_its_input!();

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (schema, failure) = (input.schema(), Arc::clone(&self.failure));
        Ok(Box::pin(GuardedInput { input: Some(input), side: self.side, schema, failure }))
    }
}

struct GuardedInput {
    /// Until it fails.
    input: Option<SendableRecordBatchStream>,
    side: Side,
    schema: SchemaRef,
    failure: Arc<Failure>,
}

impl GuardedInput {
    fn poll_below(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let Some(input) = &mut self.input else { return Poll::Pending };
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| input.poll_next_unpin(context)));
        let why = match polled {
            Ok(Poll::Ready(Some(Err(error)))) => Why::Error(error),
            Err(panic) => Why::Panic(panic),
            Ok(polled) => return polled,
        };
        self.input = None;
        self.failure.tell(why);
        Poll::Pending
    }

    fn poll_above(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        self.failure.waker.register(context.waker());
        let Some(input) = &mut self.input else { return Poll::Ready(None) };
        let polled = input.poll_next_unpin(context);
        let Some(why) = self.failure.take() else {
            return polled.map(|next| next.map(|batch| batch.map_err(with_reason)));
        };
        self.input = None;
        match why {
            Why::Error(error) => Poll::Ready(Some(Err(error))),
            Why::Panic(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Stream for GuardedInput {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match this.side {
            Side::Above => this.poll_above(context),
            Side::Below => this.poll_below(context),
        }
    }
}

impl RecordBatchStream for GuardedInput {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use crate::session::config;

    /// With DataFusion's default 50 million rows make a file whole, whatever comes after them.
    #[test]
    fn no_file_is_whole_before_its_statement() {
        let config = config();
        let rows = config.options().execution.soft_max_rows_per_output_file.get();
        assert_eq!(rows, usize::MAX);
    }
}
