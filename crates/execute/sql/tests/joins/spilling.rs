//! Joins larger than the session's memory pool spill to its directory.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use datafusion::catalog::MemTable;
use datafusion::common::JoinType;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::expressions::col;
use datafusion::physical_plan::joins::{HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, collect, collect_partitioned, displayable,
};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use workahead_datafusion::WorkaheadJoinExec;

use crate::{plan, rows, session, session_in};

const ROWS: i64 = 40_000;
const FULL: &str = "select l.k, l.text, r.k, r.text from l full join r on l.k = r.k";

/// Two tables of about 4 MiB; of the keys two thirds match.
fn register(context: &SessionContext) {
    for (name, from) in [("l", 0), ("r", ROWS / 3)] {
        let texts = (from..from + ROWS).map(|row| Some(format!("{name} {row:080}")));
        let columns: [(&str, ArrayRef); 2] = [
            ("k", Arc::new((from..from + ROWS).collect::<Int64Array>())),
            ("text", Arc::new(texts.collect::<StringArray>())),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let slice = |at: i64| batch.slice(at as usize, 1000);
        let batches = (0..ROWS).step_by(1000).map(slice);
        // Slices share buffers: each must be a batch of its own, as a scan's are.
        let own = batches.map(|batch| {
            let rows = UInt64Array::from_iter_values(0..batch.num_rows() as u64);
            datafusion::arrow::compute::take_record_batch(&batch, &rows).unwrap()
        });
        let table = MemTable::try_new(batch.schema(), vec![own.collect()]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
}

/// A session of one partition with a memory limit and a spill directory.
fn limited(bytes: usize, mode: DiskManagerMode) -> (SessionContext, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&pool))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode));
    // An output batch must fit in several times.
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(1000);
    (session_in(true, config, runtime.build_arc().unwrap()), pool)
}

fn at(directory: &Path) -> DiskManagerMode {
    DiskManagerMode::Directories(vec![directory.to_owned()])
}

/// The metrics of the first join of a plan.
fn counted(plan: &Arc<dyn ExecutionPlan>) -> MetricsSet {
    let mut node = Arc::clone(plan);
    while node.name() != "WorkaheadJoinExec" {
        node = Arc::clone(node.children()[0]);
    }
    node.metrics().unwrap()
}

#[tokio::test]
async fn a_join_that_exceeds_memory_spills_to_the_sessions_directory() {
    let unlimited = session(false, SessionConfig::new().with_target_partitions(1));
    register(&unlimited);
    let expected = rows(&unlimited, plan(&unlimited, FULL).await).await.unwrap();

    let home = tempfile::tempdir().unwrap();
    let (context, pool) = limited(2 << 20, at(home.path()));
    register(&context);
    let plan = plan(&context, FULL).await;
    assert!(rows(&context, Arc::clone(&plan)).await.unwrap() == expected);
    let metrics = counted(&plan);
    let (files, bytes) = (metrics.spill_count().unwrap(), metrics.spilled_bytes().unwrap());
    assert!(files > 1 && bytes > 1000, "{files} files of {bytes} bytes");
    assert!(metrics.spilled_rows().unwrap() > ROWS as usize / 2);
    assert_eq!(pool.reserved(), 0);
    let files = std::fs::read_dir(home.path()).unwrap().flatten();
    let inner = files.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten());
    assert_eq!(inner.count(), 0, "spill files remain");
}

/// Rows that went to files are in the filter by keys too: what it lets a scan skip matches none.
#[tokio::test]
async fn a_build_that_spills_filters_the_scan_by_all_of_its_keys() {
    let home = tempfile::tempdir().unwrap();
    let unlimited = session(false, SessionConfig::new().with_target_partitions(1));
    register(&unlimited);
    let path = home.path().join("r.parquet").to_str().unwrap().to_owned();
    let copy = unlimited.sql(&format!("copy (select * from r order by k) to '{path}'")).await;
    copy.unwrap().collect().await.unwrap();
    // Of keys, so that no predicate of the other side follows from it.
    let from = format!("l {:080}", ROWS / 2);
    let sql =
        format!("select l.k, l.text, r.text from l join r on l.k = r.k where l.text >= '{from}'");
    let expected = rows(&unlimited, plan(&unlimited, &sql).await).await.unwrap();
    let (context, pool) = limited(1400 << 10, at(home.path()));
    register(&context);
    context.deregister_table("r").unwrap();
    context.register_parquet("r", &path, ParquetReadOptions::default()).await.unwrap();
    context.sql("set datafusion.execution.parquet.pushdown_filters = true").await.unwrap();
    let plan = plan(&context, &sql).await;
    assert!(rows(&context, Arc::clone(&plan)).await.unwrap() == expected);
    assert_eq!(pool.reserved(), 0);
    let metrics = counted(&plan);
    assert!(metrics.spilled_rows().unwrap() > 0, "{metrics}");
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let bounds = format!("DynamicFilter [ k@0 >= {} AND k@0 <= {}", ROWS / 2, ROWS - 1);
    assert!(text.contains(&bounds), "{text}");
    let scanned = metrics.sum_by_name("input_rows").unwrap().as_usize();
    assert_eq!(scanned, ROWS as usize / 2, "the scan skips what the filter has not");
}

#[tokio::test]
async fn with_enough_memory_nothing_is_spilled() {
    let home = tempfile::tempdir().unwrap();
    let (context, _) = limited(64 << 20, at(home.path()));
    register(&context);
    let plan = plan(&context, FULL).await;
    rows(&context, Arc::clone(&plan)).await.unwrap();
    let metrics = counted(&plan);
    assert_eq!((metrics.spill_count(), metrics.spilled_rows()), (Some(0), Some(0)));
}

#[tokio::test]
async fn without_spill_files_the_error_names_the_memory_limit() {
    let (context, pool) = limited(2 << 20, DiskManagerMode::Disabled);
    register(&context);
    let error = rows(&context, plan(&context, FULL).await).await.unwrap_err().to_string();
    assert!(error.contains("Resources exhausted") && error.contains("raise the limit"), "{error}");
    assert_eq!(pool.reserved(), 0);
}

#[tokio::test]
async fn an_unwritable_directory_is_named_in_the_error() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_owned();
    let (context, _) = limited(2 << 20, at(&path));
    register(&context);
    home.close().unwrap();
    let error = rows(&context, plan(&context, FULL).await).await.unwrap_err().to_string();
    assert!(error.contains(path.to_str().unwrap()), "{error}");
}

#[tokio::test]
async fn a_spilled_build_fills_the_filter_with_the_bounds_of_all_keys() {
    let home = tempfile::tempdir().unwrap();
    let unlimited = session(false, SessionConfig::new().with_target_partitions(1));
    register(&unlimited);
    let path = home.path().join("r.parquet");
    let path = path.to_str().unwrap();
    let copied = format!("copy r to '{path}'");
    unlimited.sql(&copied).await.unwrap().collect().await.unwrap();

    let (context, _) = limited(2 << 20, at(home.path()));
    register(&context);
    context.deregister_table("r").unwrap();
    context.register_parquet("r", path, ParquetReadOptions::default()).await.unwrap();
    let plan = plan(&context, "select l.text, r.text from l join r on l.k = r.k").await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    let found: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(found as i64, ROWS - ROWS / 3);
    assert!(counted(&plan).spill_count().unwrap() > 0, "{plan:?}");
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let bounds = format!("DynamicFilter [ k@0 >= 0 AND k@0 <= {} ]", ROWS - 1);
    assert!(text.contains(&bounds), "neither a part of the keys nor a list of them: {text}");
}

/// A join of three probe partitions, each in descending order of its numbers, and what it gives.
async fn of_ordered(
    context: &SessionContext,
    join_type: JoinType,
) -> (Arc<dyn ExecutionPlan>, Vec<Vec<RecordBatch>>) {
    let schema = plan(context, "select k, text from r").await.schema();
    let part = |part: i64| {
        let keys = (0..ROWS).rev().filter(move |key| key % 3 == part);
        let batch = |keys: &[i64]| {
            let texts = keys.iter().map(|key| Some(format!("{key:060}")));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(keys.to_vec())),
                Arc::new(texts.collect::<StringArray>()),
            ];
            RecordBatch::try_new(schema.clone(), columns).unwrap()
        };
        keys.collect::<Vec<_>>().chunks(1000).map(batch).collect::<Vec<_>>()
    };
    let parts = (0..3).map(part).collect();
    let order = vec![vec![datafusion::prelude::col("k").sort(false, true)]];
    let table = MemTable::try_new(schema.clone(), parts).unwrap().with_sort_order(order);
    context.deregister_table("falling").unwrap();
    context.register_table("falling", Arc::new(table)).unwrap();
    let left = Arc::new(CoalescePartitionsExec::new(plan(context, "select k, text from l").await));
    let right = plan(context, "select k, text from falling").await;
    let on = vec![(col("k", &left.schema()).unwrap(), col("k", &right.schema()).unwrap())];
    let builder = HashJoinExecBuilder::new(left, right, on, join_type);
    let planned = builder.with_partition_mode(PartitionMode::CollectLeft).build().unwrap();
    let join: Arc<dyn ExecutionPlan> =
        Arc::new(WorkaheadJoinExec::try_new(Arc::new(planned)).unwrap());
    assert!(join.output_ordering().is_some(), "{join_type}");
    let given = collect_partitioned(Arc::clone(&join), context.task_ctx()).await.unwrap();
    (join, given)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_spills_keeps_the_order_that_its_plan_promises() {
    use JoinType::{Inner, Right, RightAnti, RightMark, RightSemi};

    let home = tempfile::tempdir().unwrap();
    let (limited, pool) = limited(6 << 20, at(home.path()));
    let unlimited = session(true, SessionConfig::new());
    for context in [&limited, &unlimited] {
        register(context);
    }
    for join_type in [Inner, Right, RightSemi, RightAnti, RightMark] {
        let (join, given) = of_ordered(&limited, join_type).await;
        // Without the left side's texts there is little to spill.
        let has_texts = matches!(join_type, Inner | Right);
        assert_eq!(counted(&join).spill_count().unwrap() > 0, has_texts, "{join_type}");
        let (_, expected) = of_ordered(&unlimited, join_type).await;
        assert_eq!(given.len(), 3);
        for (given, expected) in given.iter().zip(&expected) {
            let rows = |batches: &[RecordBatch]| {
                datafusion::arrow::compute::concat_batches(&join.schema(), batches).unwrap()
            };
            assert!(rows(given) == rows(expected), "{join_type}");
        }
        drop(join);
        assert_eq!(pool.reserved(), 0);
    }
}
