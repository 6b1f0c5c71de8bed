//! Chooses where a query runs, and plans it for that.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use workahead_datafusion::WorkaheadJoins;

use datafusion_distributed::{DistributedExec, DistributedExt, display_plan_ascii};

use crate::broadcasts;
use crate::filters;
use crate::node::ClusterQueryExec;
use crate::settings::{self, Run};
use crate::sorts;
use crate::workers::Workers;

/// Below this, what workers gain is less than what reaching them costs.
const SMALL_BYTES: u64 = 32 << 20;
/// Workers need this many times the threads of this process: they exchange what it shares.
const THREADS_TIMES: f64 = 1.3;

/// Plans for the workers by the engine's planner, and for here by DataFusion's.
pub(crate) struct ChoosingPlanner {
    pub(crate) workers: Arc<Workers>,
    pub(crate) distributed: Arc<dyn QueryPlanner + Send + Sync>,
}

impl fmt::Debug for ChoosingPlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChoosingPlanner")
    }
}

/// Where a query runs, and why.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub(crate) here: bool,
    pub(crate) why: String,
}

impl ChoosingPlanner {
    /// Where a query runs that would be planned so for here.
    fn choose(&self, run: Run, plan: &Arc<dyn ExecutionPlan>, threads: usize) -> Choice {
        let workers = self.workers.alive();
        let count = workers.len();
        let there: usize = workers.iter().map(|worker| worker.threads).sum();
        let beside = workers.iter().all(|worker| worker.address.ip().is_loopback());
        let bytes = bytes_to_read(plan);
        let on_workers = format!("on {count} workers of {there} threads");
        let (here, why) = match run {
            Run::Here => (true, "here, as set".to_owned()),
            Run::Workers => (false, format!("{on_workers}, as set")),
            Run::Auto if beside => {
                (true, "here: the workers are on this machine, and threads share memory".to_owned())
            }
            Run::Auto if bytes < SMALL_BYTES => {
                (true, format!("here: {bytes} bytes of files are little"))
            }
            Run::Auto if (there as f64) < THREADS_TIMES * threads as f64 => {
                (true, format!("here: {threads} threads, on the workers {there}"))
            }
            Run::Auto => {
                (false, format!("{on_workers}: {bytes} bytes of files, here {threads} threads"))
            }
        };
        Choice { here, why }
    }
}

impl ChoosingPlanner {
    /// The plan of a query, with its filters.
    fn query(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        choice: Choice,
        state: &SessionState,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = match settings::filter_wait(state.config()) {
            Some(wait) if choice.here => filters::insert_here(plan, wait)?,
            Some(wait) => filters::insert(plan, wait)?,
            None => Arc::clone(plan),
        };
        Ok(Arc::new(ClusterQueryExec::new(plan, choice, Arc::clone(&self.workers))))
    }
}

#[async_trait]
impl QueryPlanner for ChoosingPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return internal_err!("a cluster's session has a state");
        };
        let with_ours =
            workahead_sql::install(SessionStateBuilder::new_from_existing(state.clone()));
        let planner = DefaultPhysicalPlanner::default();
        let here = planner.create_physical_plan(logical, &with_ours.build()).await?;
        let writes =
            matches!(logical, LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Ddl(_));
        if writes {
            return Ok(here);
        }
        if let (LogicalPlan::Explain(explain), Some(here)) = (logical, here.downcast_ref()) {
            let plan = self.create_physical_plan(&explain.plan, session).await?;
            return Ok(Arc::new(explained(here, plan.as_ref())));
        }
        let choice =
            self.choose(Run::of(state.config()), &here, state.config().target_partitions());
        if choice.here {
            return self.query(&here, choice, state);
        }
        // As many tasks of a scan as there are workers.
        let builder = SessionStateBuilder::new_from_existing(state.clone());
        let state = builder.with_distributed_file_scan_config_bytes_per_partition(1)?.build();
        let there = self.distributed.create_physical_plan(logical, &state).await?;
        if !there.exists(|node| Ok(node.is::<DistributedExec>()))? {
            let why = "here: it has nothing to divide".to_owned();
            return self.query(&here, Choice { here: true, why }, &state);
        }
        // After the stages were cut, by a planner that knows DataFusion's joins only.
        let there = WorkaheadJoins::default().optimize(there, state.config_options())?;
        let there = sorts::complete(there)?;
        let there = broadcasts::compact(there, state.config().batch_size())?;
        self.query(&there, choice, &state)
    }
}

/// What explains a statement, with the plan that was chosen in place of the one for here.
fn explained(here: &ExplainExec, plan: &dyn ExecutionPlan) -> ExplainExec {
    let is_kept = |text: &&StringifiedPlan| text.plan_type != PlanType::FinalPhysicalPlan;
    let mut texts: Vec<_> = here.stringified_plans().iter().filter(is_kept).cloned().collect();
    texts.push(StringifiedPlan::new(PlanType::FinalPhysicalPlan, display_plan_ascii(plan, false)));
    ExplainExec::new(here.schema(), texts, here.verbose())
}

/// Bytes of the files that a plan reads.
fn bytes_to_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut bytes = 0;
    let walked = plan.apply(|node| {
        let source = node.downcast_ref::<DataSourceExec>();
        let files = source.and_then(|source| source.data_source().downcast_ref::<FileScanConfig>());
        let groups = files.iter().flat_map(|files| &files.file_groups);
        bytes +=
            groups.flat_map(|group| group.files()).map(|file| file.effective_size()).sum::<u64>();
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| bytes)
}
