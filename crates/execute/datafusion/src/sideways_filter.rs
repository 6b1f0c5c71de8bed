//! A filter by the keys of a join further up, while it drops enough rows.
//!
//! It may let any row pass, because the join drops those that match nothing. So it need not wait
//! until the join is built, and stops testing while most rows pass, or while the join right above
//! it drops more of them by itself, for less than a copy of the rest costs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use arrow::array::{AsArray, BooleanArray, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use datafusion_common::ScalarValue;
use datafusion_common::error::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Statistics, internal_err};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_expr::{ColumnarValue, Operator};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion_physical_plan::expressions::{BinaryExpr, DynamicFilterPhysicalExpr};
use datafusion_physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion_physical_plan::statistics::StatisticsArgs;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::{Stream, StreamExt};
use workahead_join::ProbeMetrics;

use crate::key_bitmap::InBitmapExpr;
use crate::like_its_input;

/// The most rows of a hundred that may pass for a batch to be filtered: filtering copies them.
const PASSED_PERCENT_MAX: usize = 35;
/// The same where the join right above keeps fewer rows by itself: to copy them costs next to
/// nothing, and to look keys up in a large table more than to test them.
const CHEAP_PERCENT_MAX: usize = 10;
/// Batches that pass untested after one that exceeded it, and at most after several in a row: twice
/// as many after each.
const UNTESTED_BATCHES: usize = 16;
const UNTESTED_BATCHES_MAX: usize = 256;

/// Rows that a join needs to have seen before its part of hits counts.
const SEEN_ROWS_MIN: u64 = 4096;

/// Rows that a stream of a join has seen so far, and those of them that match.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    seen: AtomicU64,
    matched: AtomicU64,
}

impl Matches {
    /// Of a join that drops rows without a match.
    pub(crate) fn set(&self, metrics: ProbeMetrics) {
        self.matched.store(metrics.matched_rows, Ordering::Relaxed);
        self.seen.store(metrics.probe_rows, Ordering::Relaxed);
    }

    /// Whether the join keeps a smaller part of its rows than `passed` of `rows`.
    fn are_fewer_than(&self, passed: usize, rows: usize) -> bool {
        let [seen, matched] = [&self.seen, &self.matched].map(|of| of.load(Ordering::Relaxed));
        seen >= SEEN_ROWS_MIN
            && u128::from(matched) * (rows as u128) < u128::from(seen) * (passed as u128)
    }
}

/// A stream of a join's probe side, whose filters know what the join drops.
pub(crate) fn probe_side(
    plan: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
    matches: &Arc<Matches>,
) -> Result<SendableRecordBatchStream> {
    let Some(filter) = plan.downcast_ref::<SidewaysFilterExec>() else {
        return plan.execute(partition, Arc::clone(context));
    };
    let input = probe_side(&filter.input, partition, context, matches)?;
    let mut filtered = filter.filtered(input, partition, context);
    filtered.matches = Some(Arc::clone(matches));
    Ok(Box::pin(filtered))
}

/// Drops rows that a join further up would drop, as long as it drops enough of them.
#[derive(Debug)]
pub(crate) struct SidewaysFilterExec {
    input: Arc<dyn ExecutionPlan>,
    filter: Arc<dyn PhysicalExpr>,
    metrics: ExecutionPlanMetricsSet,
}

impl SidewaysFilterExec {
    /// Of a filter that is filled while the plan runs.
    #[must_use]
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, filter: Arc<dyn PhysicalExpr>) -> Self {
        Self { input, filter, metrics: ExecutionPlanMetricsSet::new() }
    }

    fn filtered(
        &self,
        input: SendableRecordBatchStream,
        partition: usize,
        context: &TaskContext,
    ) -> FilteredStream {
        let batch_rows = context.session_config().batch_size();
        let metrics = FilterMetrics::new(&self.metrics, partition);
        FilteredStream::new(input, Arc::clone(&self.filter), batch_rows, metrics)
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, Arc::clone(&self.filter))
    }
}

impl DisplayAs for SidewaysFilterExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "{}", self.filter),
            _ => write!(f, "SidewaysFilterExec: {}", self.filter),
        }
    }
}

impl ExecutionPlan for SidewaysFilterExec {
    fn name(&self) -> &str {
        "SidewaysFilterExec"
    }

    like_its_input!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.filter)
    }

    /// Without the filter: the join makes a new one when it runs again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.input))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        Ok(Box::pin(self.filtered(input, partition, &context)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

/// The part of a filter that decides alone: a bitmap of keys says all that their range does, which
/// is there for scans to prune by.
fn decisive(filter: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
    let Some(dynamic) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() else {
        return Ok(Arc::clone(filter));
    };
    let current = dynamic.current()?;
    let and = |of: &Arc<dyn PhysicalExpr>| {
        let binary = of.downcast_ref::<BinaryExpr>().filter(|of| *of.op() == Operator::And)?;
        Some((Arc::clone(binary.left()), Arc::clone(binary.right())))
    };
    let Some((range, keys)) = and(&current) else { return Ok(current) };
    // Of two keys, each has a range.
    let is_of_one =
        and(&range).is_some_and(|(from, to)| and(&from).is_none() && and(&to).is_none());
    Ok(if is_of_one && keys.is::<InBitmapExpr>() { keys } else { current })
}

/// Counters of a filter.
pub(crate) struct FilterMetrics {
    baseline: BaselineMetrics,
    dropped: Count,
}

impl FilterMetrics {
    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        Self {
            baseline: BaselineMetrics::new(metrics, partition),
            dropped: MetricBuilder::new(metrics).counter("dropped_rows", partition),
        }
    }
}

/// The rows that pass.
pub(crate) struct FilteredStream {
    input: SendableRecordBatchStream,
    filter: Arc<dyn PhysicalExpr>,
    /// Of the join right above.
    matches: Option<Arc<Matches>>,
    /// Joins the few rows of many batches.
    coalescer: BatchCoalescer,
    /// Comes after what is in the coalescer.
    passed: Option<RecordBatch>,
    /// Batches to come that pass untested.
    untested: usize,
    /// And as many after the next one that exceeds the limit.
    untested_next: usize,
    ended: bool,
    metrics: FilterMetrics,
}

impl FilteredStream {
    pub(crate) fn new(
        input: SendableRecordBatchStream,
        filter: Arc<dyn PhysicalExpr>,
        batch_rows: usize,
        metrics: FilterMetrics,
    ) -> Self {
        let coalescer = BatchCoalescer::new(input.schema(), batch_rows);
        Self {
            input,
            filter,
            matches: None,
            coalescer: coalescer.with_biggest_coalesce_batch_size(Some(batch_rows / 2)),
            passed: None,
            untested: 0,
            untested_next: UNTESTED_BATCHES,
            ended: false,
            metrics,
        }
    }

    /// Filters a batch into the coalescer, or returns it to be handed on unchanged.
    fn process(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        if self.untested > 0 {
            self.untested -= 1;
            return self.pass_all(batch);
        }
        let rows = batch.num_rows();
        match decisive(&self.filter)?.evaluate(&batch)? {
            ColumnarValue::Array(found) => self.filter_rows(batch, found.as_boolean()),
            ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))) => self.pass_all(batch),
            ColumnarValue::Scalar(_) => {
                self.metrics.dropped.add(rows);
                Ok(None)
            }
        }
    }

    fn filter_rows(
        &mut self,
        batch: RecordBatch,
        found: &BooleanArray,
    ) -> Result<Option<RecordBatch>> {
        let (rows, passed) = (batch.num_rows(), found.true_count());
        let fewer_match = |matches: &Arc<Matches>| matches.are_fewer_than(passed, rows);
        let allowed = match self.matches.as_ref().is_some_and(fewer_match) {
            true => CHEAP_PERCENT_MAX,
            false => PASSED_PERCENT_MAX,
        };
        if passed * 100 > rows * allowed {
            self.untested = self.untested_next;
            self.untested_next = (2 * self.untested_next).min(UNTESTED_BATCHES_MAX);
            return self.pass_all(batch);
        }
        self.untested_next = UNTESTED_BATCHES;
        self.metrics.dropped.add(rows - passed);
        if passed > 0 {
            self.coalescer.push_batch_with_filter(batch, found)?;
        }
        Ok(None)
    }

    /// After what the coalescer has: with rows left in it, it would copy every batch to come.
    fn pass_all(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>> {
        if self.coalescer.is_empty() {
            return Ok(Some(batch));
        }
        self.coalescer.finish_buffered_batch()?;
        self.passed = Some(batch);
        Ok(None)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let time = self.metrics.baseline.elapsed_compute().clone();
        loop {
            let done = self.coalescer.next_completed_batch().or_else(|| self.passed.take());
            if done.is_some() || self.ended {
                return Poll::Ready(done.map(Ok));
            }
            let Some(batch) = ready!(self.input.poll_next_unpin(context)) else {
                self.ended = true;
                self.coalescer.finish_buffered_batch()?;
                continue;
            };
            let _timer = time.timer();
            if let Some(batch) = self.process(batch?)? {
                return Poll::Ready(Some(Ok(batch)));
            }
        }
    }
}

impl Stream for FilteredStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let poll = self.poll(context);
        self.metrics.baseline.record_poll(poll)
    }
}

impl RecordBatchStream for FilteredStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
