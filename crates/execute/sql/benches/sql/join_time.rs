//! CPU time inside the joins of a query: a clock runs in each join, and one in its inputs.
//!
//! The joins' own metrics don't have it: their build time contains the input's, and their join time
//! leaves out the hashing of probe keys.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::Stream;
use workahead_machine::clock::thread_cpu_s;

/// CPU nanoseconds of all threads.
type Clock = Arc<AtomicU64>;

/// A plan whose joins are timed.
pub(crate) struct TimedPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    joins: Clock,
    inputs: Clock,
}

impl TimedPlan {
    /// The same plan with clocks.
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let (joins, inputs) = (Clock::default(), Clock::default());
        let plan = plan.transform_up(|node| {
            if !matches!(node.name(), "HashJoinExec" | "NestedLoopJoinExec" | "SortMergeJoinExec") {
                return Ok(Transformed::no(node));
            }
            let children = node.children().into_iter().cloned();
            let children = children.map(|child| with_clock(child, &inputs)).collect();
            let node = datafusion::physical_plan::replace_children_if_necessary(node, children)?;
            Ok(Transformed::yes(with_clock(node, &joins)))
        })?;
        Ok(Self { plan: plan.data, joins, inputs })
    }

    /// CPU seconds in joins, without their inputs.
    pub(crate) fn join_s(&self) -> f64 {
        let ns = |clock: &Clock| clock.load(Ordering::Relaxed) as f64;
        (ns(&self.joins) - ns(&self.inputs)) * 1e-9
    }
}

fn with_clock(plan: Arc<dyn ExecutionPlan>, clock: &Clock) -> Arc<dyn ExecutionPlan> {
    Arc::new(TimedExec { plan, clock: Arc::clone(clock) })
}

#[derive(Debug)]
struct TimedExec {
    plan: Arc<dyn ExecutionPlan>,
    clock: Clock,
}

impl DisplayAs for TimedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("TimedExec")
    }
}

impl ExecutionPlan for TimedExec {
    fn name(&self) -> &str {
        "TimedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(with_clock(children.remove(0), &self.clock))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(with_clock(children.remove(0), &self.clock))
    }

    fn execute(
        &self,
        partition: usize,
        task: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let inner = self.plan.execute(partition, task)?;
        Ok(Box::pin(Batches { inner, clock: Arc::clone(&self.clock) }))
    }
}

struct Batches {
    inner: SendableRecordBatchStream,
    clock: Clock,
}

impl Stream for Batches {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let start = thread_cpu_s();
        let next = self.inner.as_mut().poll_next(cx);
        let ns = (thread_cpu_s() - start) * 1e9;
        self.clock.fetch_add(ns as u64, Ordering::Relaxed);
        next
    }
}

impl RecordBatchStream for Batches {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}
