//! A session over the tables, and how the queries went in it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::exec_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use tokio::runtime::Runtime;
use workahead_sql::session;

use crate::answer::{Answer, Order};
use crate::data::{Data, QUERIES, TABLES, without_limit};
use crate::tight_pool::TightPool;
use crate::{order, rewrites};

/// Some of the plans are deep.
const STACK_BYTES: usize = 16 << 20;

/// The memory that queries may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pool {
    Unlimited,
    /// In bytes, for all operators together.
    All(usize),
    /// In bytes, for each of our joins; others have no limit.
    Joins(usize),
}

/// In a pool of few megabytes, so that the batches that wait in a plan don't fill it.
const SMALL_BATCH_ROWS: usize = 256;
const SMALL_POOL_BYTES: usize = 8 << 20;

/// Memory that each sort keeps for its merge, by default 10 MB: at most this share of the pool.
const SORT_SHARE: usize = 16;

/// After this a query counts as one that does not end, which takes seconds at any scale of ours.
/// DataFusion 55.2 may hang on two partitions that spill.
const PATIENCE: Duration = Duration::from_secs(120);

/// One way of running them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arm {
    pub(crate) ours: bool,
    pub(crate) partitions: usize,
    pub(crate) pool: Pool,
    /// With the queries' LIMITs, or without.
    pub(crate) limits: bool,
}

/// How they went.
#[derive(Debug)]
pub(crate) struct Outcomes {
    arm: Arm,
    /// Queries with another answer, and how it differs.
    pub(crate) wrong: BTreeMap<usize, String>,
    /// Queries with none, and the first line of the error.
    pub(crate) refused: BTreeMap<usize, String>,
    our_joins: usize,
    stock_joins: usize,
    pub(crate) spilled: usize,
}

/// Those of `WORKAHEAD_TPCDS_QUERIES`, while one works on some; else all.
fn numbers() -> Vec<usize> {
    let wanted = std::env::var("WORKAHEAD_TPCDS_QUERIES").ok();
    let number = |text: &str| text.parse().expect("WORKAHEAD_TPCDS_QUERIES lists numbers: 4,11");
    wanted.map_or((1..=QUERIES).collect(), |list| list.split(',').map(number).collect())
}

impl Arm {
    /// Runs all queries, whatever becomes of any.
    pub(crate) fn run(self, data: &Data) -> Outcomes {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.partitions)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .expect("threads");
        let context = runtime.block_on(self.session(data));
        let mut outcomes = Outcomes::of(self);
        for number in numbers() {
            outcomes.add(&runtime, &context, (data, number));
        }
        // Shown where a test fails.
        eprint!("{}", outcomes.table());
        outcomes
    }

    async fn session(self, data: &Data) -> SessionContext {
        // As in DuckDB, so that both mean the same order.
        let nulls = "datafusion.sql_parser.default_null_ordering";
        let config = session::config().with_target_partitions(self.partitions);
        let mut config = config.set_str(nulls, "nulls_last");
        let mut environment = RuntimeEnvBuilder::new();
        match self.pool {
            Pool::Unlimited => {}
            Pool::All(bytes) => {
                environment = environment.with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)));
                let kept = config.options().execution.sort_spill_reservation_bytes;
                config = config.with_sort_spill_reservation_bytes(kept.min(bytes / SORT_SHARE));
            }
            Pool::Joins(bytes) => {
                environment = environment.with_memory_pool(Arc::new(TightPool::of(bytes)));
            }
        }
        if matches!(self.pool, Pool::Joins(_) | Pool::All(..SMALL_POOL_BYTES)) {
            config = config.with_batch_size(SMALL_BATCH_ROWS);
        }
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(environment.build_arc().expect("a runtime"))
            .with_default_features();
        let builder = if self.ours { workahead_sql::install(builder) } else { builder };
        let context = SessionContext::new_with_state(builder.build());
        for table in TABLES {
            let path = data.table(table);
            let path = path.to_str().expect("a plain name");
            let done = context.register_parquet(table, path, ParquetReadOptions::default()).await;
            done.expect("DuckDB wrote it");
        }
        context
    }
}

impl Outcomes {
    fn of(arm: Arm) -> Self {
        let (wrong, refused) = (BTreeMap::new(), BTreeMap::new());
        Self { arm, wrong, refused, our_joins: 0, stock_joins: 0, spilled: 0 }
    }

    fn add(&mut self, runtime: &Runtime, context: &SessionContext, (data, number): (&Data, usize)) {
        let text = rewrites::for_datafusion(number, &data.query(number));
        let (whole, limit) = without_limit(&text);
        let query = if self.arm.limits { text.clone() } else { whole.to_owned() };
        let limit = limit.filter(|_| self.arm.limits);
        let own = context.clone();
        // In a task, on a stack that is deep enough for planning too.
        let limited = async move { tokio::time::timeout(PATIENCE, run(&own, &query)).await };
        let ran = runtime.block_on(runtime.spawn(limited));
        let ran = ran.map(|ended| ended.unwrap_or_else(|_| exec_err!("it does not end")));
        match ran {
            Ok(Ok((plan, batches))) => {
                self.count(&plan);
                let answer = Answer::read(&data.answer(number));
                let columns = order::columns(&text, &answer.names());
                if let Err(why) = answer.check(&batches, &Order { columns, limit }) {
                    self.wrong.insert(number, why);
                }
            }
            Ok(Err(error)) => drop(self.refused.insert(number, first_line(&error.to_string()))),
            // A panic is nothing that a lack of memory excuses.
            Err(panic) => drop(self.wrong.insert(number, first_line(&panic.to_string()))),
        }
    }

    fn count(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let walked = plan.apply(|node| {
            let ours = node.name() == "WorkaheadJoinExec";
            self.our_joins += usize::from(ours);
            self.stock_joins += usize::from(node.name() == "HashJoinExec");
            let bytes = node.metrics().and_then(|metrics| metrics.spilled_bytes());
            self.spilled += usize::from(ours && bytes.is_some_and(|bytes| bytes > 0));
            Ok(TreeNodeRecursion::Continue)
        });
        walked.expect("a plan can be walked");
    }

    /// Whether all joins are the session's own kind.
    pub(crate) fn joins_are_the_arms(&self) -> bool {
        let (own, other) = match self.arm.ours {
            true => (self.our_joins, self.stock_joins),
            false => (self.stock_joins, self.our_joins),
        };
        own > QUERIES && other == 0
    }

    pub(crate) fn all_passed(&self) -> bool {
        self.wrong.is_empty() && self.refused.is_empty()
    }

    /// The queries that ran, and a line for each that failed.
    fn table(&self) -> String {
        let arm = self.arm.to_string();
        let (joins, spilled) = (self.our_joins + self.stock_joins, self.spilled);
        let mut text = format!("{arm}: {joins} joins, {spilled} of ours spilled\n");
        for (number, why) in self.wrong.iter().chain(&self.refused) {
            let _ = writeln!(text, "q{number:<3} {arm}: {why}");
        }
        text
    }
}

impl std::fmt::Display for Arm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.ours { "ours" } else { "stock" })?;
        write!(f, " on {}", self.partitions)?;
        match self.pool {
            Pool::Unlimited => {}
            Pool::All(bytes) => write!(f, " in {} kB", bytes >> 10)?,
            Pool::Joins(bytes) => write!(f, ", joins in {} kB", bytes >> 10)?,
        }
        f.write_str(if self.limits { "" } else { " without limits" })
    }
}

async fn run(
    context: &SessionContext,
    text: &str,
) -> Result<(Arc<dyn ExecutionPlan>, Vec<RecordBatch>)> {
    let frame = context.sql(text).await?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), task).await?;
    Ok((plan, batches))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(300).collect()
}
