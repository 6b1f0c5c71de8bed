//! The join as a node of a physical plan.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Statistics, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::coop::make_cooperative;
use datafusion_physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion_physical_plan::expressions::DynamicFilterPhysicalExpr;
use datafusion_physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PhysicalExpr, PlanProperties,
};
use futures::FutureExt;
use tokio::sync::oneshot;
use workahead_join::{HashJoin, MemoryPool, Order, limited_batch_rows};

use crate::announcement::{Announcement, Reporter};
use crate::build::{Build, Inputs, OneTable, SharedTable};
use crate::keys::ListLimits;
use crate::measured::Race;
use crate::memory::{Memory, Tables, page_pool, spill_directory};
use crate::metrics::JoinMetrics;
use crate::options::{BuildFrom, Choices, Settings};
use crate::sideways_filter::SidewaysFilterExec;
use crate::stream::{JoinStream, Probe};
use crate::translation::Translation;

/// What `EXPLAIN` says of DataFusion's own node, and of ours instead.
const NAMES: (&str, &str) = ("HashJoinExec", "WorkaheadJoinExec");

/// A hash join done by Workahead.
///
/// It describes itself by the [`HashJoinExec`] it replaces, which also knows the dynamic filter
/// that was pushed down for it; that node is never executed.
#[derive(Debug)]
pub struct WorkaheadJoinExec {
    plan: Arc<HashJoinExec>,
    translation: Arc<Translation>,
    settings: Settings,
    choices: Choices,
    table: Arc<OneTable>,
    announcement: OnceLock<Arc<Announcement>>,
    tables: Tables,
    metrics: ExecutionPlanMetricsSet,
}

impl WorkaheadJoinExec {
    /// In place of a planned hash join.
    ///
    /// # Errors
    /// When the join is one that Workahead can't do, with the reason: leave it as it is.
    pub fn try_new(plan: Arc<HashJoinExec>, settings: Settings) -> Result<Self> {
        let translation = Arc::new(Translation::of(&plan)?);
        Ok(Self {
            plan,
            translation,
            settings,
            choices: Choices::default(),
            table: Arc::default(),
            announcement: OnceLock::new(),
            tables: Tables::default(),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same, told how to go about it.
    #[must_use]
    pub fn with_choices(self, choices: Choices) -> Self {
        Self { choices, ..self }
    }

    /// What it was told.
    #[must_use]
    pub fn choices(&self) -> Choices {
        self.choices
    }

    /// Whether the side that is built is only known when both are read: never where one table is
    /// probed by several streams, or an order of the right side is promised, or `NOT IN` of a null
    /// has to see one side whole before the other.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.choices.build_from == BuildFrom::Measured
            && matches!(self.mode(), PartitionMode::CollectLeft | PartitionMode::Partitioned)
            && self.probers() == 1
            && !self.plan.null_aware
            && self.plan.right().output_ordering().is_none()
    }

    /// The join in DataFusion's words.
    #[must_use]
    pub fn planned(&self) -> &Arc<HashJoinExec> {
        &self.plan
    }

    /// A plan that DataFusion made of ours, ours again.
    fn again(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(join) = hash_join(Arc::clone(&plan)) else { return Ok(plan) };
        let mut again = Self::try_new(join, self.settings)?.with_choices(self.choices);
        again.metrics = self.metrics.clone();
        Ok(Arc::new(again))
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
                "WorkaheadJoinExec needs as many partitions on both sides, not {left} and {right}"
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

    /// How many tables are built in all.
    fn builds(&self) -> usize {
        match self.mode() {
            PartitionMode::CollectLeft => 1,
            _ => self.plan.left().output_partitioning().partition_count(),
        }
    }

    /// How many streams probe one table.
    fn probers(&self) -> usize {
        match self.mode() {
            PartitionMode::CollectLeft => self.plan.right().output_partitioning().partition_count(),
            _ => 1,
        }
    }

    /// Where the keys are announced, if anybody below the probe side listens.
    fn announcement(&self, context: &TaskContext) -> Result<Option<Arc<Announcement>>> {
        let Some(filter) = self.plan.dynamic_expressions_produced().pop() else { return Ok(None) };
        let Some(id) = filter.expression_id() else { return Ok(None) };
        let limits = ListLimits::of(context.session_config().options());
        let limits = match listener(self.plan.right(), id)? {
            Listener::Nobody => return Ok(None),
            Listener::Scan => limits,
            Listener::Sideways => limits.for_rows(),
        };
        let filter = filter as Arc<dyn Any + Send + Sync>;
        let Ok(filter) = filter.downcast::<DynamicFilterPhysicalExpr>() else { return Ok(None) };
        let new = || Arc::new(Announcement::new(&self.plan, filter, self.builds(), limits));
        Ok(Some(Arc::clone(self.announcement.get_or_init(new))))
    }

    /// The join as this session wants it.
    fn join(&self, name: String, context: &TaskContext) -> Result<HashJoin> {
        let config = context.session_config().options();
        // The promise of an order is worth something only where there is one.
        let ordered = self.plan.right().output_ordering().is_some();
        let directory = if ordered { None } else { spill_directory(context)? };
        let memory = Memory::of(context, name, directory.is_some());
        // What can't spill would only fail earlier.
        let memory: Arc<dyn MemoryPool> =
            if directory.is_some() { self.tables.share(memory) } else { memory };
        let rows = usize::from(config.execution.batch_size).min(1 << 31);
        let rows = match (&directory, memory.limit()) {
            (Some(_), Some(limit)) => rows.min(limited_batch_rows(limit)),
            _ => rows,
        };
        let join = self.translation.join.clone();
        let join = join
            .with_batch_rows(rows)
            .with_strategy(self.choices.strategy)
            .with_design(self.choices.design)
            .with_caches(self.settings.caches)
            .with_probe_order(if ordered { Order::Kept } else { Order::Any })
            .with_probers(self.probers())
            .with_memory(memory);
        let join = match page_pool(context) {
            Some(pool) => join.with_page_pool(pool),
            None => join,
        };
        Ok(match directory {
            Some(directory) => join.with_spill(directory),
            None => join,
        })
    }

    /// The table of a partition, or the one of all.
    fn start(&self, of: &Partition<'_>, inputs: Inputs) -> Result<SharedTable> {
        let name = match self.mode() {
            PartitionMode::CollectLeft => "WorkaheadJoin".to_owned(),
            _ => format!("WorkaheadJoin[{}]", of.build),
        };
        let reporter =
            of.announcement.map(|announcement| Reporter::new(Arc::clone(announcement), of.build));
        let build = Build {
            inputs,
            translation: Arc::clone(&self.translation),
            join: self.join(name, of.context)?,
            probers: self.probers(),
            reporter,
            metrics: of.metrics.clone(),
        };
        Ok(build.start())
    }

    /// A table of one of both sides, and the stream of the other.
    fn measured(&self, of: &Partition<'_>) -> Result<(SharedTable, SendableRecordBatchStream)> {
        let side = |side: &Arc<dyn ExecutionPlan>| side.execute(of.build, Arc::clone(of.context));
        let (left, right) = (side(self.plan.left())?, side(self.plan.right())?);
        let schema = right.schema();
        let (told, other) = oneshot::channel::<SendableRecordBatchStream>();
        let race = Box::new(Race::new(left, right, of.context));
        // Asked when the table is there, and then it is told.
        let other = other.map(|other| other.unwrap_or_else(|_| unreachable!("told before")));
        let other = RecordBatchStreamAdapter::new(schema, other.flatten_stream());
        Ok((self.start(of, Inputs::Measured(race, told))?, Box::pin(other)))
    }
}

/// What is done for a table in one partition.
struct Partition<'a> {
    /// The table's number.
    build: usize,
    context: &'a Arc<TaskContext>,
    announcement: Option<&'a Arc<Announcement>>,
    metrics: &'a JoinMetrics,
}

/// The plan as a hash join, if it is one.
pub(crate) fn hash_join(plan: Arc<dyn ExecutionPlan>) -> Option<Arc<HashJoinExec>> {
    (plan as Arc<dyn Any + Send + Sync>).downcast().ok()
}

/// A plan of the same node over other inputs.
pub(crate) fn over(
    plan: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Who reads a dynamic filter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Listener {
    Nobody,
    /// To skip files and row groups.
    Scan,
    /// To drop rows.
    Sideways,
}

/// Who reads an expression in a plan.
fn listener(plan: &Arc<dyn ExecutionPlan>, id: u64) -> Result<Listener> {
    let mut listener = Listener::Nobody;
    plan.apply(|node| {
        let reader =
            if node.is::<SidewaysFilterExec>() { Listener::Sideways } else { Listener::Scan };
        node.apply_expressions(&mut |root| {
            root.apply(|expression| {
                if expression.expression_id() != Some(id) {
                    return Ok(TreeNodeRecursion::Continue);
                }
                listener = listener.max(reader);
                Ok(TreeNodeRecursion::Stop)
            })
        })?;
        Ok(match listener {
            Listener::Sideways => TreeNodeRecursion::Stop,
            Listener::Nobody | Listener::Scan => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(listener)
}

/// What DataFusion's node says of itself, with a name changed.
struct Renamed<'a>(&'a HashJoinExec, DisplayFormatType);

impl fmt::Display for Renamed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(self.1, f)
    }
}

impl DisplayAs for WorkaheadJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Renamed(&self.plan, format).to_string();
        match text.strip_prefix(NAMES.0) {
            Some(rest) => write!(f, "{}{rest}", NAMES.1)?,
            None => f.write_str(&text)?,
        }
        let tree = matches!(format, DisplayFormatType::TreeRender);
        let build_from = if self.measures() { BuildFrom::Measured } else { BuildFrom::Planned };
        let mut forced = Choices { build_from, ..self.choices }.forced().into_iter();
        forced.try_for_each(|told| if tree { writeln!(f, "{told}") } else { write!(f, ", {told}") })
    }
}

impl ExecutionPlan for WorkaheadJoinExec {
    fn name(&self) -> &str {
        NAMES.1
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.plan.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        if self.measures() {
            return vec![false; 2];
        }
        ExecutionPlan::maintains_input_order(self.plan.as_ref())
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.plan.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.plan.apply_expressions(f)
    }

    fn dynamic_expressions_produced(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        self.plan.dynamic_expressions_produced()
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.again(self.planned_dyn().replace_children(children, options)?)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        over(self, children)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = Arc::new(self.plan.builder().reset_state().build()?);
        Ok(Arc::new(Self::try_new(plan, self.settings)?.with_choices(self.choices)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.check_partitions()?;
        let metrics = JoinMetrics::new(partition, &self.metrics);
        let announcement = self.announcement(&context)?;
        let (collects, measures) = (self.mode() == PartitionMode::CollectLeft, self.measures());
        let shared = collects && !measures;
        let of = Partition {
            build: if collects { 0 } else { partition },
            context: &context,
            announcement: announcement.as_ref(),
            metrics: &metrics,
        };
        let (table, input) = if measures {
            self.measured(&of)?
        } else {
            let left = || self.plan.left().execute(of.build, Arc::clone(&context));
            let start = || self.start(&of, Inputs::Planned(left()?));
            let table = if shared { self.table.get(start)? } else { start()? };
            (table, self.plan.right().execute(partition, Arc::clone(&context))?)
        };
        let joined = JoinStream::new(Probe {
            input,
            table: Some(table),
            translation: Arc::clone(&self.translation),
            join_type: *self.plan.join_type(),
            // One table for all is announced before it is handed out; and what is being read
            // already does not wait.
            announcement: announcement.filter(|_| !shared && !measures),
            shared: shared.then(|| (Arc::clone(&self.table), self.probers())),
            fetch: self.plan.fetch(),
            schema: self.schema(),
            metrics,
        });
        // A probe batch of many matches gives many batches without waiting for anything, and
        // whoever wants the thread, or the query to end, would wait for all of them.
        Ok(make_cooperative(Box::pin(joined)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.plan.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.plan.statistics_from_inputs(inputs, args)
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.plan.cardinality_effect()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let swapped = self.plan.try_swapping_with_projection(projection)?;
        swapped.map(|plan| self.again(plan)).transpose()
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parents: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.plan.gather_filters_for_pushdown(phase, parents, config)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let mut told = self.plan.handle_child_pushdown_result(phase, result, config)?;
        told.updated_node = told.updated_node.map(|plan| self.again(plan)).transpose()?;
        Ok(told)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.plan.supports_limit_pushdown()
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.fetch()
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        self.again(self.plan.with_fetch(limit)?).ok()
    }
}
