//! Our joins in the stages that an executor receives.
//!
//! A plan comes from the scheduler with Ballista's decisions, made while the query runs: which side
//! is built, what is broadcast, how inputs are partitioned. All of that stays; only the join nodes
//! are replaced, as the last step before a task starts.

use std::sync::Arc;

use ballista_core::JobId;
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use workahead_datafusion::WorkaheadJoins;

use crate::compact;
use crate::task::Task;

/// Ballista's engine, over plans with our joins.
#[derive(Default)]
pub struct Engine {
    stages: DefaultExecutionEngine,
    joins: WorkaheadJoins,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("joins", &self.joins).finish_non_exhaustive()
    }
}

impl ExecutionEngine for Engine {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        directory: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        let plan = compact::stage(self.joins.optimize(plan, config.options())?)?;
        let stages = &self.stages;
        let stage = stages
            .create_query_stage_exec(job, stage, task, partitions, plan, directory, config)?;
        Ok(Arc::new(Task::new(stage)))
    }
}
