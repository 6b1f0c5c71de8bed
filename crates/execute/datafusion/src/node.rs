//! The join as a node of a physical plan.

mod execution_plan;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use datafusion_common::error::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, internal_err, not_impl_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::expressions::DynamicFilterPhysicalExpr;
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::FutureExt;
use tokio::sync::oneshot;
use workahead_join::{HashJoin, MemoryPool, limited_batch_rows};

use crate::build::{Build, BuildInput, CollectedTable, SharedTable};
use crate::dynamic_filter::{BuildContribution, DynamicFilterAccumulator};
use crate::keys::ListLimits;
use crate::memory::{Memory, Share, Tables, memory_limit, page_pool, spill_directory};
use crate::metrics::JoinMetrics;
use crate::options::{BuildSideSelection, JoinOptions};
use crate::plan::as_hash_join;
use crate::runtime_build_side::RuntimeBuildSide;
use crate::sideways_filter::{SidewaysFilterExec, probe_side};
use crate::stream::{JoinStream, ProbeSide};
use crate::translation::Translation;
use crate::{Caches, WorkaheadOptions};

/// The rule ran before `join_selection`.
const UNDECIDED: &str = "it is not decided yet how its inputs are partitioned";

/// A hash join done by Workahead, or left to DataFusion for a reason that it names.
///
/// It describes itself by the [`HashJoinExec`] it replaces, which also knows the dynamic filter
/// that was pushed down for it; that node is executed only if the join is left alone.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// # use datafusion_common::error::Result;
/// # use datafusion_physical_plan::ExecutionPlan;
/// # use datafusion_physical_plan::expressions::col;
/// # use datafusion_physical_plan::test::TestMemoryExec;
/// # fn table(name: &str, keys: Vec<i64>) -> Result<Arc<dyn ExecutionPlan>> {
/// #     let keys: ArrayRef = Arc::new(Int64Array::from(keys));
/// #     let batch = RecordBatch::try_from_iter([(name, keys)])?;
/// #     Ok(TestMemoryExec::try_new_exec(&[vec![batch.clone()]], batch.schema(), None)?)
/// # }
/// # use datafusion_common::JoinType;
/// # use datafusion_execution::TaskContext;
/// # use datafusion_physical_plan::joins::{HashJoinExecBuilder, PartitionMode};
/// # use datafusion_physical_plan::common::collect;
/// use workahead_datafusion::WorkaheadJoinExec;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let (orders, lines) = (table("id", vec![1, 2])?, table("order", vec![2, 2, 3])?);
/// let on = vec![(col("id", &orders.schema())?, col("order", &lines.schema())?)];
/// let planned = HashJoinExecBuilder::new(orders, lines, on, JoinType::Inner)
///     .with_partition_mode(PartitionMode::CollectLeft)
///     .build()?;
/// let join = WorkaheadJoinExec::try_new(Arc::new(planned))?;
/// assert_eq!(join.left_alone(), None);
/// let joined = collect(join.execute(0, Arc::new(TaskContext::default()))?).await?;
/// assert_eq!(joined.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
/// # Ok(())
/// # })
/// # .map_err(|error: datafusion_common::DataFusionError| error)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WorkaheadJoinExec {
    plan: Arc<HashJoinExec>,
    /// Our join, or why there is none.
    translation: Result<Arc<Translation>, Arc<str>>,
    caches: Caches,
    options: JoinOptions,
    table: Arc<CollectedTable>,
    dynamic_filter: OnceLock<Arc<DynamicFilterAccumulator>>,
    tables: Tables,
    metrics: ExecutionPlanMetricsSet,
}

impl WorkaheadJoinExec {
    /// In place of a planned hash join.
    ///
    /// # Errors
    /// When the join is not supported, with the reason: leave it to DataFusion.
    pub fn try_new(plan: Arc<HashJoinExec>) -> Result<Self> {
        let join = Self::of(plan);
        match join.left_alone() {
            Some(why) => not_impl_err!("{why}"),
            None => Ok(join),
        }
    }

    /// In place of a planned hash join, which it executes itself if ours does not support it.
    pub(crate) fn of(plan: Arc<HashJoinExec>) -> Self {
        let translation = match *plan.partition_mode() {
            PartitionMode::Auto => Err(UNDECIDED.into()),
            _ => Translation::of(&plan).map(Arc::new).map_err(|error| reason(&error).into()),
        };
        Self {
            plan,
            translation,
            caches: Caches::ASSUMED,
            options: JoinOptions::default(),
            table: Arc::default(),
            dynamic_filter: OnceLock::new(),
            tables: Tables::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// Why DataFusion's own join is executed, if it is.
    #[must_use]
    pub fn left_alone(&self) -> Option<&str> {
        self.translation.as_ref().err().map(AsRef::as_ref)
    }

    /// The same with a session's options.
    ///
    /// # Errors
    /// When one of them is unknown.
    pub fn with_options(self, options: &WorkaheadOptions) -> Result<Self> {
        Ok(self.with_join_options(options.join_options()?))
    }

    pub(crate) fn with_join_options(self, options: JoinOptions) -> Self {
        Self { options, ..self }
    }

    /// The same with the caches of the machine that will execute it.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Self {
        Self { caches, ..self }
    }

    #[cfg(feature = "proto")]
    pub(crate) fn options(&self) -> JoinOptions {
        self.options
    }

    /// Whether the build side is chosen at run time: never where one table is probed by several
    /// streams, or an order of the right side is promised, or `NOT IN` of a null has to see one
    /// whole side before the other.
    #[must_use]
    pub fn chooses_build_side(&self) -> bool {
        self.options.build_side == BuildSideSelection::Runtime
            && self.translation.is_ok()
            && matches!(self.mode(), PartitionMode::CollectLeft | PartitionMode::Partitioned)
            && self.probers() == 1
            && !self.plan.null_aware
            && self.plan.right().output_ordering().is_none()
    }

    /// DataFusion's description of the join.
    #[must_use]
    pub fn planned(&self) -> &Arc<HashJoinExec> {
        &self.plan
    }

    /// Our node for a plan that DataFusion has derived from our description.
    fn rewrap(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(join) = as_hash_join(Arc::clone(&plan)) else { return Ok(plan) };
        let mut node = self.like(join);
        node.metrics = self.metrics.clone();
        Ok(Arc::new(node))
    }

    /// Another join with the same options.
    fn like(&self, plan: Arc<HashJoinExec>) -> Self {
        Self::of(plan).with_caches(self.caches).with_join_options(self.options)
    }

    fn planned_dyn(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.plan) as _
    }

    fn mode(&self) -> PartitionMode {
        *self.plan.partition_mode()
    }

    fn check_partitions(&self) -> Result<()> {
        let left = self.plan.left().output_partitioning().partition_count();
        let right = self.plan.right().output_partitioning().partition_count();
        match self.mode() {
            PartitionMode::Partitioned if left != right => internal_err!(
                "WorkaheadJoinExec needs equal partition counts on both sides, not {left} and {right}"
            ),
            PartitionMode::CollectLeft if left != 1 => {
                internal_err!("WorkaheadJoinExec collects one partition on the left, not {left}")
            }
            PartitionMode::Auto => {
                internal_err!("WorkaheadJoinExec can't run before its partitioning is decided")
            }
            PartitionMode::Partitioned | PartitionMode::CollectLeft => Ok(()),
        }
    }

    /// Number of tables that are built in all.
    fn builds(&self) -> usize {
        match self.mode() {
            PartitionMode::CollectLeft => 1,
            _ => self.plan.left().output_partitioning().partition_count(),
        }
    }

    /// Number of streams that probe one table.
    fn probers(&self) -> usize {
        match self.mode() {
            PartitionMode::CollectLeft => self.plan.right().output_partitioning().partition_count(),
            _ => 1,
        }
    }

    /// The rows of a partition, joined by ours.
    fn joined(
        &self,
        translation: &Arc<Translation>,
        partition: usize,
        context: &Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.check_partitions()?;
        let metrics = JoinMetrics::new(partition, &self.metrics);
        let dynamic_filter = self.dynamic_filter(context)?;
        let collects = self.mode() == PartitionMode::CollectLeft;
        let at_run_time = self.chooses_build_side();
        let shared = collects && !at_run_time;
        let of = Partition {
            translation,
            build: if collects { 0 } else { partition },
            context,
            dynamic_filter: dynamic_filter.as_ref(),
            metrics: &metrics,
        };
        let matches = Arc::default();
        let (table, input) = if at_run_time {
            self.build_smaller(&of)?
        } else {
            let left = || self.plan.left().execute(of.build, Arc::clone(context));
            let start = || self.start(&of, BuildInput::Left(left()?));
            let table = if shared { self.table.get(start)? } else { start()? };
            (table, probe_side(self.plan.right(), partition, context, &matches)?)
        };
        let joined = JoinStream::new(ProbeSide {
            input,
            table: Some(table),
            translation: Arc::clone(translation),
            join_type: *self.plan.join_type(),
            // One table for all partitions completes the filter before it is handed out, and an
            // input that is being read already does not wait.
            dynamic_filter: dynamic_filter.filter(|_| !shared && !at_run_time),
            collected: shared.then(|| CollectedTable::prober(&self.table, self.probers())),
            fetch: self.plan.fetch(),
            matches,
            schema: self.schema(),
            metrics,
        });
        // A probe batch of many matches gives many batches without waiting for anything; other
        // tasks of the thread, and cancellation, would wait for all of them.
        Ok(make_cooperative(Box::pin(joined)))
    }

    /// The accumulator of the dynamic filter, if a node of the probe side reads it.
    fn dynamic_filter(
        &self,
        context: &TaskContext,
    ) -> Result<Option<Arc<DynamicFilterAccumulator>>> {
        let Some(filter) = self.plan.dynamic_expressions_produced().pop() else { return Ok(None) };
        let Some(id) = filter.expression_id() else { return Ok(None) };
        let limits = ListLimits::of(context.session_config().options());
        let limits = match filter_reader(self.plan.right(), id)? {
            FilterReader::None => return Ok(None),
            FilterReader::Scan => limits,
            FilterReader::SidewaysFilter => limits.for_rows(memory_limit(context)),
        };
        let filter = filter as Arc<dyn Any + Send + Sync>;
        let Ok(filter) = filter.downcast::<DynamicFilterPhysicalExpr>() else { return Ok(None) };
        let builds = self.builds();
        let new = || DynamicFilterAccumulator::new(&self.plan, filter, builds, limits);
        Ok(Some(Arc::clone(self.dynamic_filter.get_or_init(|| Arc::new(new())))))
    }

    /// The join with this session's memory, batch length and options.
    fn join(
        &self,
        translation: &Translation,
        name: String,
        context: &TaskContext,
    ) -> Result<(HashJoin, Option<Arc<Share>>)> {
        let config = context.session_config().options();
        let directory = spill_directory(context)?;
        let memory = Memory::of(context, name, directory.is_some());
        // With a share, a join that can't spill would only fail earlier.
        let share = directory.as_ref().map(|_| self.tables.share(Arc::clone(&memory)));
        let memory: Arc<dyn MemoryPool> = match &share {
            Some(share) => Arc::clone(share) as _,
            None => memory,
        };
        let rows = usize::from(config.execution.batch_size).min(1 << 31);
        let rows = match (&directory, memory.share()) {
            (Some(_), Some(share)) => rows.min(limited_batch_rows(share)),
            _ => rows,
        };
        let join = translation.join.clone();
        let join = join
            .with_batch_rows(rows)
            .with_table_layout(self.options.layout)
            .with_caches(self.caches)
            .with_probers(self.probers())
            .with_memory(memory);
        let join = match page_pool(context) {
            Some(pool) => join.with_page_pool(pool),
            None => join,
        };
        let join = match directory {
            Some(directory) => join.with_spill(directory),
            None => join,
        };
        let join = match self.plan.right().output_ordering() {
            Some(_) => join.with_kept_order(),
            None => join,
        };
        Ok((join, share))
    }

    /// Starts the build of a partition's table, or of the one for all partitions.
    fn start(&self, of: &Partition<'_>, input: BuildInput) -> Result<SharedTable> {
        let name = match self.mode() {
            PartitionMode::CollectLeft => "WorkaheadJoin".to_owned(),
            _ => format!("WorkaheadJoin[{}]", of.build),
        };
        let filter = of.dynamic_filter;
        let contribution =
            filter.map(|filter| BuildContribution::new(Arc::clone(filter), of.build));
        let (join, share) = self.join(of.translation, name, of.context)?;
        let build = Build {
            input,
            translation: Arc::clone(of.translation),
            join,
            share,
            probers: self.probers(),
            contribution,
            metrics: of.metrics.clone(),
        };
        Ok(build.start())
    }

    /// The table of the side with fewer rows, and the stream of the other one.
    fn build_smaller(
        &self,
        of: &Partition<'_>,
    ) -> Result<(SharedTable, SendableRecordBatchStream)> {
        let side = |side: &Arc<dyn ExecutionPlan>| side.execute(of.build, Arc::clone(of.context));
        let (left, right) = (side(self.plan.left())?, side(self.plan.right())?);
        let schema = right.schema();
        let (sender, probe) = oneshot::channel::<SendableRecordBatchStream>();
        let sides = Box::new(RuntimeBuildSide::new(left, right, of.context));
        // Polled only once the table is built, and the probe side is sent before that.
        let probe = probe.map(|probe| probe.unwrap_or_else(|_| unreachable!("sent before")));
        let probe = RecordBatchStreamAdapter::new(schema, probe.flatten_stream());
        Ok((self.start(of, BuildInput::Smaller(sides, sender))?, Box::pin(probe)))
    }
}

/// The message of an error without the prefix of its kind.
fn reason(error: &DataFusionError) -> String {
    match error {
        DataFusionError::External(error) => error.to_string(),
        error => error.strip_backtrace(),
    }
}

/// One partition of an execution.
struct Partition<'a> {
    translation: &'a Arc<Translation>,
    /// The number of its table.
    build: usize,
    context: &'a Arc<TaskContext>,
    dynamic_filter: Option<&'a Arc<DynamicFilterAccumulator>>,
    metrics: &'a JoinMetrics,
}

/// The kind of node that reads a dynamic filter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FilterReader {
    None,
    /// Skips files and row groups by it.
    Scan,
    /// Drops rows by it.
    SidewaysFilter,
}

/// The reader of an expression in a plan: the most selective one, if there are several.
fn filter_reader(plan: &Arc<dyn ExecutionPlan>, id: u64) -> Result<FilterReader> {
    let mut found = FilterReader::None;
    plan.apply(|node| {
        let reader = if node.is::<SidewaysFilterExec>() {
            FilterReader::SidewaysFilter
        } else {
            FilterReader::Scan
        };
        node.apply_expressions(&mut |root| {
            root.apply(|expression| {
                if expression.expression_id() != Some(id) {
                    return Ok(TreeNodeRecursion::Continue);
                }
                found = found.max(reader);
                Ok(TreeNodeRecursion::Stop)
            })
        })?;
        Ok(match found {
            FilterReader::SidewaysFilter => TreeNodeRecursion::Stop,
            FilterReader::None | FilterReader::Scan => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
