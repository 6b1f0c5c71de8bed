//! CPU time inside the operators of a query, by their kind: a clock runs in each of them.
//!
//! Their own metrics don't have it: a join's build time contains the input's, its join time leaves
//! out the hashing of probe keys, and a scan has none.

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

/// The kind of an operator, of DataFusion's, ours or DuckDB's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// DuckDB's evaluate most filters.
    Scan,
    Filter,
    Join,
    Aggregate,
    Sort,
    Other,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Scan, Self::Filter, Self::Join, Self::Aggregate, Self::Sort, Self::Other];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Filter => "filter",
            Self::Join => "join",
            Self::Aggregate => "aggregate",
            Self::Sort => "sort",
            Self::Other => "other",
        }
    }

    /// By the name of a node.
    pub(crate) fn of(node: &str) -> Self {
        let node = node.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| node.contains(word));
        match () {
            () if has(&["merge"]) && !has(&["join"]) => Self::Other,
            () if has(&["datasource", "scan", "parquet"]) => Self::Scan,
            () if has(&["filterexec"]) || node == "filter" => Self::Filter,
            () if has(&["join"]) => Self::Join,
            () if has(&["aggregate", "group_by"]) => Self::Aggregate,
            () if has(&["sort", "order_by", "top_n"]) => Self::Sort,
            () => Self::Other,
        }
    }
}

/// A plan whose operators are timed.
pub(crate) struct TimedPlan {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    /// Each operator with its inputs, and those inputs alone.
    clocks: Vec<(Kind, Clock, Vec<Clock>)>,
}

impl TimedPlan {
    /// The same plan with clocks.
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let mut clocks = Vec::new();
        let plan = plan.transform_up(|node| {
            let inputs = node.children().into_iter();
            let inputs = inputs.filter_map(|child| child.downcast_ref::<TimedExec>());
            let inputs = inputs.map(|timed| Arc::clone(&timed.clock)).collect();
            let clock = Clock::default();
            clocks.push((Kind::of(node.name()), Arc::clone(&clock), inputs));
            Ok(Transformed::yes(with_clock(node, &clock)))
        })?;
        Ok(Self { plan: plan.data, clocks })
    }

    /// CPU seconds in operators of a kind, without their inputs. Those of an operator that runs its
    /// input in a task of its own are none.
    pub(crate) fn seconds(&self, kind: Kind) -> f64 {
        let ns = |clock: &Clock| clock.load(Ordering::Relaxed);
        let of_kind = self.clocks.iter().filter(|(other, ..)| *other == kind);
        let own = of_kind
            .map(|(_, clock, inputs)| ns(clock).saturating_sub(inputs.iter().map(ns).sum()) as f64);
        own.sum::<f64>() * 1e-9
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
