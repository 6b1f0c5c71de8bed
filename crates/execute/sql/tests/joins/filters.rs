//! The dynamic filter: filled when the build is complete, so that a scan skips row groups.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::{count, plan, session, sorted};

/// Keys 0, 1, 2, … in row groups of 100; null in every 1000th row.
fn write(path: &Path, rows: i64) {
    let key = |row: i64| (row % 1000 != 999).then_some(row);
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("k", Arc::new((0..rows).map(key).collect::<Int64Array>()), true),
        ("v", Arc::new((0..rows).collect::<Int64Array>()), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

async fn tables(ours: bool, config: SessionConfig, home: &Path) -> SessionContext {
    let context = session(ours, config);
    for (name, rows) in [("big", 20_000), ("small", 2_000)] {
        let path = home.join(name).with_extension("parquet");
        if !path.exists() {
            write(&path, rows);
        }
        let path = path.to_str().unwrap();
        context.register_parquet(name, path, ParquetReadOptions::default()).await.unwrap();
    }
    context
}

/// Rows that came out of the scans.
fn scanned(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().filter(|_| plan.name() == "DataSourceExec");
    let own = own.and_then(|metrics| metrics.output_rows()).unwrap_or_default();
    own + plan.children().into_iter().map(scanned).sum::<usize>()
}

/// The rows of a query, the number of scanned rows, and the plan afterwards.
async fn run(context: &SessionContext, sql: &str) -> (Vec<String>, usize, String) {
    let plan = plan(context, sql).await;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    let text = displayable(plan.as_ref()).indent(false).to_string();
    (sorted(&batches), scanned(&plan), text)
}

const NARROW: &str = "select big.v, small.v from small join big on small.k = big.k \
                      where small.v between 1200 and 1250";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_skips_row_groups_as_with_stock() {
    let home = tempfile::tempdir().unwrap();
    for partitioned in [false, true] {
        let mut runs = Vec::new();
        for ours in [false, true] {
            let mut config = SessionConfig::new().with_target_partitions(3);
            let optimizer = &mut config.options_mut().optimizer;
            if partitioned {
                optimizer.hash_join_single_partition_threshold = 0;
                optimizer.hash_join_single_partition_threshold_rows = 0;
            }
            let context = tables(ours, config, home.path()).await;
            runs.push(run(&context, NARROW).await);
        }
        let [stock, ours] = <[_; 2]>::try_from(runs).unwrap();
        assert_eq!(ours.0, stock.0);
        let mode = if partitioned { "mode=Partitioned" } else { "mode=CollectLeft" };
        assert!(ours.2.contains(mode), "{}", ours.2);
        assert!(ours.2.contains("DynamicFilter [ k@0 >= 1200 AND k@0 <= 1250"), "{}", ours.2);
        // Without the filter every row of the big table would be read. A scan in a task of its own
        // may be some row groups ahead of the filter, of ours as of stock's.
        assert!(ours.1 < 20_000, "ours read {}, stock {}", ours.1, stock.1);
    }
}

#[tokio::test]
async fn nulls_that_match_are_not_filtered_away() {
    let home = tempfile::tempdir().unwrap();
    let sql = "select big.v, small.v from small join big on small.k is not distinct from big.k \
               where small.v between 990 and 1000";
    let context = tables(true, SessionConfig::new(), home.path()).await;
    let (rows, _, text) = run(&context, sql).await;
    assert!(text.contains("WorkaheadJoinExec"), "{text}");
    // Ten keys, and the null of row 999 with the twenty of the big table.
    assert_eq!(rows.len(), 10 + 20 + 1, "with the frame's line");
    assert!(text.contains("IS NULL OR"), "{text}");
}

#[tokio::test]
async fn a_session_without_dynamic_filters_has_none() {
    let home = tempfile::tempdir().unwrap();
    let off = SessionConfig::new()
        .set_bool("datafusion.optimizer.enable_join_dynamic_filter_pushdown", false);
    let context = tables(true, off, home.path()).await;
    let (rows, _, text) = run(&context, NARROW).await;
    assert!(!text.contains("DynamicFilter"), "{text}");
    assert_eq!(rows.len(), 51 + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partition_that_is_dropped_leaves_the_filter_empty() {
    use futures::StreamExt;
    let home = tempfile::tempdir().unwrap();
    let mut config = SessionConfig::new().with_target_partitions(2);
    config.options_mut().optimizer.hash_join_single_partition_threshold = 0;
    config.options_mut().optimizer.hash_join_single_partition_threshold_rows = 0;
    let context = tables(true, config, home.path()).await;
    let plan = plan(&context, NARROW).await;
    assert_eq!(count(&plan, "WorkaheadJoinExec"), 1);
    let mut join = Arc::clone(&plan);
    while join.name() != "WorkaheadJoinExec" {
        join = Arc::clone(join.children()[0]);
    }
    let mut kept = join.execute(0, context.task_ctx()).unwrap();
    drop(join.execute(1, context.task_ctx()).unwrap());
    let mut rows = 0;
    while let Some(batch) = kept.next().await {
        rows += batch.unwrap().num_rows();
    }
    assert!(rows > 0 && rows < 51, "one partition's rows, not {rows}");
    let text = displayable(plan.as_ref()).indent(false).to_string();
    assert!(text.contains("DynamicFilter [ empty ]"), "made of one build of two: {text}");
}

#[tokio::test]
async fn a_right_build_side_leaves_the_filter_empty() {
    let home = tempfile::tempdir().unwrap();
    for (left, right, bounds) in [("big", "small", "[ empty ]"), ("small", "big", "[ k@0 >= 0")] {
        let mut config = SessionConfig::new().with_target_partitions(1);
        config.options_mut().optimizer.join_reordering = false;
        let context = tables(true, config, home.path()).await;
        context.sql("set workahead.build_side = 'runtime'").await.unwrap();
        let sql = format!("select l.v, r.v from {left} l join {right} r on l.k = r.k");
        let (rows, _, text) = run(&context, &sql).await;
        assert_eq!(rows.len(), 2_000 - 2 + 1, "keys other than null, and the frame's line");
        assert!(text.contains(&format!("DynamicFilter {bounds}")), "{text}");
    }
}

#[tokio::test]
async fn partitions_may_be_read_one_after_the_other() {
    use futures::StreamExt;
    let home = tempfile::tempdir().unwrap();
    let mut config = SessionConfig::new().with_target_partitions(3);
    config.options_mut().optimizer.hash_join_single_partition_threshold = 0;
    config.options_mut().optimizer.hash_join_single_partition_threshold_rows = 0;
    let context = tables(true, config, home.path()).await;
    let plan = plan(&context, NARROW).await;
    let mut rows = 0;
    for partition in 0..3 {
        let mut stream = plan.execute(partition, context.task_ctx()).unwrap();
        while let Some(batch) = stream.next().await {
            rows += batch.unwrap().num_rows();
        }
    }
    assert_eq!(rows, 51);
}
