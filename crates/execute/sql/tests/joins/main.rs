//! Our joins in plans of DataFusion: replacement, plan properties, rows, memory.

mod codec;
mod filters;
mod lifecycle;
mod plans;
mod runtime_build_side;
mod sharing;
mod sideways;
mod spilling;
mod threads;
mod types;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};

/// A session with or without our rule.
pub(crate) fn session(ours: bool, config: SessionConfig) -> SessionContext {
    session_in(ours, config, Arc::default())
}

pub(crate) fn session_in(
    ours: bool,
    config: SessionConfig,
    runtime: Arc<RuntimeEnv>,
) -> SessionContext {
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    let builder = if ours { workahead_sql::install(builder) } else { builder };
    SessionContext::new_with_state(builder.build())
}

/// A session's settings where both sides of every join are partitioned by their keys.
pub(crate) fn partitioned(partitions: usize) -> SessionConfig {
    let mut config = SessionConfig::new().with_target_partitions(partitions);
    let optimizer = &mut config.options_mut().optimizer;
    optimizer.hash_join_single_partition_threshold = 0;
    optimizer.hash_join_single_partition_threshold_rows = 0;
    config
}

/// Two tables in several partitions: keys with nulls, repeats and gaps on both sides.
pub(crate) fn register_sides(context: &SessionContext) {
    let left = (0..40_i64).map(|i| (i % 9 != 8).then_some(i % 13));
    let right = (0..300_i64).map(|i| (i % 11 != 7).then_some((i * 7) % 17));
    register(context, "l", "a", left.collect());
    register(context, "r", "b", right.collect());
}

fn register(context: &SessionContext, name: &str, key: &str, keys: Vec<Option<i64>>) {
    let rows = keys.len() as i64;
    let text = (0..rows).map(|row| format!("{name}{row}"));
    let columns: [(&str, ArrayRef, bool); 3] = [
        (key, Arc::new(Int64Array::from(keys)), true),
        ("at", Arc::new((0..rows).collect::<Int64Array>()), false),
        ("text", Arc::new(text.map(Some).collect::<StringArray>()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let half = batch.num_rows() / 2;
    let parts = vec![
        vec![batch.slice(0, half / 2), batch.slice(half / 2, half - half / 2)],
        vec![batch.slice(half, batch.num_rows() - half)],
    ];
    let table = MemTable::try_new(batch.schema(), parts).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

/// The number of nodes with this name in a plan.
pub(crate) fn count(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let mut found = 0;
    plan.apply(|node| {
        found += usize::from(node.name() == name);
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    found
}

/// All rows of a plan, sorted.
pub(crate) async fn rows(
    context: &SessionContext,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Vec<String>> {
    Ok(sorted(&collect(plan, context.task_ctx()).await?))
}

pub(crate) fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let text = pretty_format_batches(batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().skip(3).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// The plan of a query.
pub(crate) async fn plan(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}
