//! Chooses where a query runs, and plans it for that.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, PlanType, StringifiedPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use workahead_datafusion::WorkaheadJoins;

use datafusion_distributed::{
    DistributedExec, DistributedExt, NetworkBoundary, NetworkCoalesceExec, Stage,
    display_plan_ascii,
};
use uuid::Uuid;

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
    /// Partitions of a stage, unless they are set.
    pub(crate) partitions: usize,
    /// Threads of this process, and partitions of what runs here.
    pub(crate) threads: usize,
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
    /// Where a query runs; `bytes` are those of its files.
    fn choose(&self, run: Run, bytes: u64, threads: usize) -> Choice {
        let workers = self.workers.alive();
        let count = workers.len();
        let there: usize = workers.iter().map(|worker| worker.threads).sum();
        let beside = workers.iter().all(|worker| worker.address.ip().is_loopback());
        let on_workers = match count {
            1 => format!("on 1 worker, its threads: {there}"),
            _ => format!("on {count} workers of {there} threads"),
        };
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

    /// The plan of a query, with its filters.
    fn query(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        choice: Choice,
        state: &SessionState,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = match settings::filter_wait(state.config()) {
            Some(wait) if !choice.here => filters::insert(plan, wait)?,
            _ => Arc::clone(plan),
        };
        Ok(Arc::new(ClusterQueryExec::new(plan, choice, Arc::clone(&self.workers))))
    }

    /// The partitions that are set, or else as many as there are threads.
    fn partitions_of(&self, state: &SessionState, threads: usize) -> usize {
        match state.config().target_partitions() {
            usual if usual == self.partitions => threads,
            set => set,
        }
    }

    /// The stages of a query; none if it has nothing to divide.
    async fn stages(
        &self,
        logical: &LogicalPlan,
        state: &SessionState,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let is_analyzed = matches!(logical, LogicalPlan::Analyze(_));
        let query = match logical {
            LogicalPlan::Analyze(analyze) => analyze.input.as_ref(),
            query => query,
        };
        let whole = match self.workers.alive()[..] {
            [only] => only_stage(query, state, self.partitions_of(state, only.threads)).await?,
            _ => None,
        };
        let stages = match whole {
            Some(whole) if !is_analyzed => whole,
            whole => {
                // As many tasks of a scan as there are workers.
                let builder = SessionStateBuilder::new_from_existing(state.clone());
                let state =
                    builder.with_distributed_file_scan_config_bytes_per_partition(1)?.build();
                let divided = self.distributed.create_physical_plan(logical, &state).await?;
                match whole {
                    // The engine's own node above it measures.
                    Some(whole) => replaced(divided, &whole)?,
                    None => divided,
                }
            }
        };
        if !stages.exists(|node| Ok(node.is::<DistributedExec>()))? {
            return Ok(None);
        }
        // After the stages were cut, by a planner that knows DataFusion's joins only.
        let stages = WorkaheadJoins::default().optimize(stages, state.config_options())?;
        let stages = sorts::complete(stages)?;
        broadcasts::compact(stages, state.config().batch_size()).map(Some)
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
        let threads = self.partitions_of(state, self.threads);
        let plan_here = async || {
            let builder = SessionStateBuilder::new_from_existing(state.clone());
            let state = of_partitions(workahead_sql::install(builder).build(), threads);
            DefaultPhysicalPlanner::default().create_physical_plan(logical, &state).await
        };
        if matches!(logical, LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Ddl(_)) {
            return plan_here().await;
        }
        if let LogicalPlan::Explain(explain) = logical {
            let here = plan_here().await?;
            let Some(here) = here.downcast_ref() else { return Ok(here) };
            let plan = self.create_physical_plan(&explain.plan, session).await?;
            return Ok(Arc::new(explained(here, plan.as_ref())));
        }
        let run = Run::of(state.config());
        // A plan takes some milliseconds.
        let here = if run == Run::Workers { None } else { Some(plan_here().await?) };
        let choice = self.choose(run, here.as_ref().map_or(0, bytes_to_read), threads);
        if !choice.here
            && let Some(stages) = self.stages(logical, state).await?
        {
            return self.query(&stages, choice, state);
        }
        let why = match choice.here {
            true => choice.why,
            false => "here: it has nothing to divide".to_owned(),
        };
        let here = match here {
            Some(here) => here,
            None => plan_here().await?,
        };
        self.query(&here, Choice { here: true, why }, state)
    }
}

/// All of a query as one stage, for the only worker; none if it reads anything but files. The
/// engine would run it in the client, since its one task exchanges nothing.
async fn only_stage(
    logical: &LogicalPlan,
    state: &SessionState,
    partitions: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let state = of_partitions(state.clone(), partitions);
    let plan = DefaultPhysicalPlanner::default().create_physical_plan(logical, &state).await?;
    if !reads_only_files(&plan) {
        return Ok(None);
    }
    let exchange = NetworkCoalesceExec::try_new(plan, 1, 1)?;
    let Stage::Local(stage) = exchange.input_stage() else {
        return internal_err!("a stage that was just made is here");
    };
    let mut stage = stage.clone();
    (stage.query_id, stage.num) = (Uuid::new_v4(), 1);
    let exchange = exchange.with_input_stage(Stage::Local(stage))?;
    let rows = Arc::new(CoalescePartitionsExec::new(exchange));
    Ok(Some(Arc::new(DistributedExec::new(rows).with_metrics_collection(true))))
}

fn of_partitions(mut state: SessionState, partitions: usize) -> SessionState {
    state.config_mut().options_mut().execution.target_partitions = partitions;
    state
}

/// Whether every leaf is a scan of files.
fn reads_only_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let children = plan.children();
    match children.is_empty() {
        true => files(plan).is_some(),
        false => children.into_iter().all(reads_only_files),
    }
}

/// A plan with another one in place of what the engine divided.
fn replaced(
    plan: Arc<dyn ExecutionPlan>,
    by: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = plan.transform_down(|node| match node.is::<DistributedExec>() {
        true => Ok(Transformed::new(Arc::clone(by), true, TreeNodeRecursion::Stop)),
        false => Ok(Transformed::no(node)),
    });
    replaced.map(|replaced| replaced.data)
}

/// The node that explains a statement, with the plan that was chosen in place of the one for here.
fn explained(here: &ExplainExec, plan: &dyn ExecutionPlan) -> ExplainExec {
    let is_kept = |text: &&StringifiedPlan| text.plan_type != PlanType::FinalPhysicalPlan;
    let mut texts: Vec<_> = here.stringified_plans().iter().filter(is_kept).cloned().collect();
    texts.push(StringifiedPlan::new(PlanType::FinalPhysicalPlan, display_plan_ascii(plan, false)));
    ExplainExec::new(here.schema(), texts, here.verbose())
}

/// The files that a leaf scans.
fn files(leaf: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    leaf.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref()
}

/// Bytes of the files that a plan reads.
fn bytes_to_read(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let groups = files(plan).into_iter().flat_map(|files| &files.file_groups);
    let own = groups.flat_map(|group| group.files()).map(|file| file.effective_size()).sum::<u64>();
    own + plan.children().into_iter().map(bytes_to_read).sum::<u64>()
}
