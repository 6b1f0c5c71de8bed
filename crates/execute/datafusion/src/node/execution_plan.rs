//! The node towards DataFusion's optimizer and `EXPLAIN`: it answers as the hash join that it
//! replaces, and stays one of ours when that is changed.

use std::fmt;
use std::sync::Arc;

use datafusion_common::Statistics;
use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion_physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::metrics::MetricsSet;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements,
    PhysicalExpr, PlanProperties,
};

use super::WorkaheadJoinExec;
use crate::metrics::NameMetric;
use crate::options::{BuildSideSelection, JoinOptions};
use crate::plan::with_inputs;

/// The name of DataFusion's own node in `EXPLAIN`, and ours in its place.
const STOCK_NAME: &str = "HashJoinExec";
const NAME: &str = "WorkaheadJoinExec";

/// The display of DataFusion's node as a string.
struct Description<'a>(&'a HashJoinExec, DisplayFormatType);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(self.1, f)
    }
}

impl DisplayAs for WorkaheadJoinExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Description(&self.plan, format).to_string();
        match text.strip_prefix(STOCK_NAME) {
            Some(rest) => write!(f, "{}{rest}", self.name())?,
            None => f.write_str(&text)?,
        }
        if let Some(why) = self.left_alone() {
            return match format {
                DisplayFormatType::Verbose => write!(f, ", left_alone=[{why}]"),
                DisplayFormatType::Default | DisplayFormatType::TreeRender => Ok(()),
            };
        }
        let tree = matches!(format, DisplayFormatType::TreeRender);
        let build_side = if self.chooses_build_side() {
            BuildSideSelection::Runtime
        } else {
            BuildSideSelection::Planned
        };
        let mut options = JoinOptions { build_side, ..self.options }.non_default().into_iter();
        options.try_for_each(|option| match tree {
            true => writeln!(f, "{option}"),
            false => write!(f, ", {option}"),
        })
    }
}

impl ExecutionPlan for WorkaheadJoinExec {
    fn name(&self) -> &str {
        if self.translation.is_ok() { NAME } else { STOCK_NAME }
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
        if self.chooses_build_side() {
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
        self.rewrap(self.planned_dyn().replace_children(children, options)?)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        with_inputs(self, children)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = Arc::new(self.plan.builder().reset_state().build()?);
        Ok(Arc::new(self.like(plan)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        match &self.translation {
            Ok(translation) => self.joined(translation, partition, &context),
            Err(_) => self.plan.execute(partition, context),
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let Some(why) = self.left_alone() else { return Some(self.metrics.clone_inner()) };
        let mut metrics = self.plan.metrics()?;
        metrics.push(NameMetric::left_alone(why));
        Some(metrics)
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
        swapped.map(|plan| self.rewrap(plan)).transpose()
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
        let mut result = self.plan.handle_child_pushdown_result(phase, result, config)?;
        result.updated_node = result.updated_node.map(|plan| self.rewrap(plan)).transpose()?;
        Ok(result)
    }

    fn supports_limit_pushdown(&self) -> bool {
        self.plan.supports_limit_pushdown()
    }

    fn fetch(&self) -> Option<usize> {
        self.plan.fetch()
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        self.rewrap(self.plan.with_fetch(limit)?).ok()
    }
}
