//! A place in a plan that reads a subplan which others read too.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet, SpillMetrics};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use workahead_datafusion::like_its_input;

use super::subplan::Subplan;

/// One reader of a subplan. Each has a copy of the plan below it; the first that asks runs its own.
#[derive(Debug)]
pub(super) struct ReusedSubplanExec {
    input: Arc<dyn ExecutionPlan>,
    subplan: Arc<Subplan>,
    metrics: ExecutionPlanMetricsSet,
}

impl ReusedSubplanExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, subplan: Arc<Subplan>) -> Self {
        Self { input, subplan, metrics: ExecutionPlanMetricsSet::new() }
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, Arc::clone(&self.subplan))
    }
}

impl DisplayAs for ReusedSubplanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.subplan.number.get().copied().unwrap_or_default();
        match format {
            DisplayFormatType::TreeRender => write!(f, "number={number}"),
            _ => write!(f, "ReusedSubplanExec: number={number}"),
        }
    }
}

impl ExecutionPlan for ReusedSubplanExec {
    fn name(&self) -> &str {
        "ReusedSubplanExec"
    }

    like_its_input!();

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    /// Alone: rows of the run before would be read again.
    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.input))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        // Rows that don't fit have to go somewhere.
        if !context.runtime_env().disk_manager.tmp_files_enabled() {
            return self.input.execute(partition, context);
        }
        let metrics = SpillMetrics::new(&self.metrics, partition);
        self.subplan.read(&self.input, partition, &context, metrics)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
