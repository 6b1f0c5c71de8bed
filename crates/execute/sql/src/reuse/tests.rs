//! Queries with equal subplans, against the same without reuse.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::sync::Notify;

use super::subplan::Subplan;

const ROWS: i64 = 40_000;

/// TPC-H's q15 in small: the groups whose sum is the highest.
const TWICE: &str = "with sums as (select k % 20000 as g, sum(v) as total from t group by g) \
                     select g, total from sums where total = (select max(total) from sums) \
                     order by g";

/// The same kind of query without a sort, which asks for more memory than the pool has.
const TWICE_UNSORTED: &str = "with sums as \
                              (select k % 20000 as g, sum(v) as total from t group by g) \
                              select count(*), sum(g) from sums \
                              where total > (select avg(total) from sums)";

/// Tables `t` and `u`, alike but for their rows.
fn session(threads: usize, environment: RuntimeEnvBuilder) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(threads);
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment.build_arc().unwrap())
        .with_default_features();
    let context = SessionContext::new_with_state(crate::install(builder).build());
    for (name, factor) in [("t", 7), ("u", 11)] {
        let column = |value: fn(i64, i64) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| value(row, factor))))
        };
        let columns = [("k", column(|row, _| row)), ("v", column(|row, by| row * by % 10_007))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

async fn plan(context: &SessionContext, query: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(query).await.unwrap().create_physical_plan().await.unwrap()
}

fn reused(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(reused).sum();
    below + usize::from(plan.name() == "ReusedSubplanExec")
}

async fn rows(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> String {
    let batches = collect(plan, context.task_ctx()).await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

/// How often subplans are reused in a query, whose rows are what they are without.
async fn reused_in(context: &SessionContext, query: &str) -> usize {
    let with = plan(context, query).await;
    let found = reused(&with);
    let with = rows(context, with).await;
    context.sql("set workahead.reuse_subplans = false").await.unwrap();
    let without = plan(context, query).await;
    assert_eq!(reused(&without), 0);
    assert_eq!(with, rows(context, without).await, "{query}");
    context.sql("set workahead.reuse_subplans = true").await.unwrap();
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_named_twice_runs_once() {
    for threads in [1, 3] {
        let context = session(threads, RuntimeEnvBuilder::new());
        assert_eq!(reused_in(&context, TWICE).await, 2);
        let thrice = "with s as (select k % 3 as g, sum(v) as x from t group by g) \
                      select a.x, b.x, c.x from s a join s b on a.g = b.g join s c on b.g = c.g \
                      order by 1";
        // One is below a node that collects partitions in the two others.
        let collected = usize::from(threads > 1) * 2;
        assert_eq!(reused_in(&context, thrice).await, 3 + collected);
        // The other copy put nothing out.
        let plan = plan(&context, TWICE).await;
        rows(&context, Arc::clone(&plan)).await;
        assert_eq!(groups(&plan), 20_000 + 1);
    }
}

/// The rows that whole aggregates put out.
fn groups(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(groups).sum();
    let whole = super::is_whole_aggregate(plan.as_ref());
    below + plan.metrics().filter(|_| whole).and_then(|all| all.output_rows()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_is_not_reused() {
    let context = session(2, RuntimeEnvBuilder::new());
    let pair = |one: &str, other: &str| {
        let of = |from: &str| format!("(select g, sum(v) as x from ({from}) group by g)");
        let (one, other) = (of(one), of(other));
        format!("select a.x, b.x from {one} a join {other} b on a.g = b.g order by 1, 2")
    };
    let t = "select k % 5 as g, v from t";
    assert_eq!(reused_in(&context, &pair(t, t)).await, 2);
    for other in [
        // Another table of the same size and columns, a filter, a projection, an expression.
        "select k % 5 as g, v from u",
        "select k % 5 as g, v from t where k > 7",
        "select k % 5 as g, k as v from t",
        "select k % 5 as g, v + 1 as v from t",
        "select k % 5 as g, v from t limit 100",
    ] {
        assert_eq!(reused_in(&context, &pair(t, other)).await, 0, "{other}");
    }
    // Each copy has random numbers of its own.
    let random = "select k % 5 as g, cast(random() * 0 as bigint) as v from t";
    assert_eq!(reused_in(&context, &pair(random, random)).await, 0);
}

/// Differences that DataFusion's bytes of two plans do not show though their rows differ.
#[tokio::test(flavor = "multi_thread")]
async fn what_bytes_do_not_say_is_not_reused() {
    // With one thread all copies stand below the same nodes.
    let context = session(1, RuntimeEnvBuilder::new());
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("v.csv");
    std::fs::write(&csv, "1;2;3;4\n5;6\n").unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let location = |name: &str| folder.path().join(name).display().to_string();
    let (csv, empty) = (location("v.csv"), location("empty/"));
    let options = "'format.has_header' 'false', 'format.delimiter' '|'";
    for table in [
        "m (x bigint) as values (1), (2), (3)".to_owned(),
        format!("e (x bigint) stored as parquet location '{empty}'"),
        format!("n (x varchar) stored as csv location '{csv}' options ({options})"),
        format!(
            "s (x varchar) stored as csv location '{csv}' \
             options ({options}, 'format.terminator' ';')"
        ),
    ] {
        let external = if table.contains(" stored ") { "external " } else { "" };
        context.sql(&format!("create {external}table {table}")).await.unwrap();
    }
    let t5 = "(select k % 5 as g, sum(v) as x from t group by k % 5)";
    let twice_each = |one: &str, other: &str| {
        let of = |from: &str| format!("(select g, max(x) as x from ({from}) group by g)");
        let (one, other) = (of(one), of(other));
        format!(
            "select a.x, b.x, c.x, d.x from {one} a join {one} b on a.g = b.g \
             full join {other} c on a.g = c.g full join {other} d on c.g = d.g order by 1, 2, 3, 4"
        )
    };
    for [one, other] in [
        // Rows in memory are taken out, and the other table has none.
        [
            "select 1 as g, x from m union all select 2, x from e",
            "select 1 as g, x from e union all select 2, x from m",
        ],
        // Numbers of 32 bits.
        ["select 1 as g, x from m offset 1", "select 1 as g, x from m offset 4294967297"],
        // Rows that windows leave out.
        [
            "select g, sum(x) filter (where x > (select min(v) from t)) over () as x from t5",
            "select g, sum(x) filter (where x > (select 1e9 + max(v) from u)) over () as x from t5",
        ],
        // Ends of lines.
        ["select x as g, x from n", "select x as g, x from s"],
    ] {
        let query = twice_each(one, other).replace("from t5", &format!("from {t5}"));
        reused_in(&context, &query).await;
    }
    assert_eq!(
        reused_in(&context, &twice_each("select x as g, x from n", "select x as g, x from n"))
            .await,
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_asks_a_subquery_is_not_reused() {
    let context = session(2, RuntimeEnvBuilder::new());
    let of = |table: &str| {
        let least = format!("(select min(v) from {table} where k > 5)");
        format!("(select k % 5 as g, count(*) as n from t where v > {least} group by g)")
    };
    let (one, other) = (of("t"), of("u"));
    let query = format!("select a.n, b.n from {one} a join {other} b on a.g = b.g order by 1, 2");
    let _ = reused_in(&context, &query).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_beyond_a_part_of_the_pool_are_spilled() {
    for threads in [1, 2] {
        let pool = Arc::new(GreedyMemoryPool::new(4 << 20));
        let environment = RuntimeEnvBuilder::new().with_memory_pool(pool);
        let context = session(threads, environment);
        assert_eq!(reused_in(&context, TWICE_UNSORTED).await, 2);
        let plan = plan(&context, TWICE_UNSORTED).await;
        rows(&context, Arc::clone(&plan)).await;
        assert!(spilled(&plan) > 0);
        drop(plan);
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
    }
}

fn spilled(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let below: usize = plan.children().into_iter().map(spilled).sum();
    let reused = plan.name() == "ReusedSubplanExec";
    below + plan.metrics().filter(|_| reused).and_then(|all| all.spilled_rows()).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_disk_each_copy_runs() {
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let context = session(2, RuntimeEnvBuilder::new().with_disk_manager_builder(disk));
    assert_eq!(reused_in(&context, TWICE).await, 2);
    let plan = plan(&context, TWICE).await;
    rows(&context, Arc::clone(&plan)).await;
    assert_eq!(groups(&plan), 2 * 20_000 + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_does_not_keep_others_from_reading() {
    let context = session(2, RuntimeEnvBuilder::new());
    let limited = "with sums as (select k % 20000 as g, sum(v) as total from t group by g) \
                   (select total from sums limit 1) union all select max(total) from sums";
    let plan = plan(&context, limited).await;
    assert_eq!(reused(&plan), 2);
    let rows = collect(plan, context.task_ctx()).await.unwrap();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
}

/// A partition without rows that ends a while after it began, or when another has.
#[derive(Debug)]
struct Ending {
    schema: SchemaRef,
    is_first: bool,
    ended: Arc<Notify>,
}

impl PartitionStream for Ending {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, ended) = (Arc::clone(&self.schema), Arc::clone(&self.ended));
        let is_first = self.is_first;
        let none = async move {
            match is_first {
                true => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    ended.notify_one();
                }
                false => ended.notified().await,
            }
            Ok(RecordBatch::new_empty(schema))
        };
        let schema = Arc::clone(&self.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(none)))
    }
}

#[tokio::test]
async fn a_partition_that_its_reader_left_goes_on() {
    let (schema, ended) = (Arc::new(Schema::empty()), Arc::new(Notify::new()));
    let ending = |is_first| -> Arc<dyn PartitionStream> {
        let (schema, ended) = (Arc::clone(&schema) as SchemaRef, Arc::clone(&ended));
        Arc::new(Ending { schema, is_first, ended })
    };
    let partitions = vec![ending(true), ending(false)];
    let plan = StreamingTableExec::try_new(Arc::clone(&schema), partitions, None, [], false, None);
    let (plan, context) = (Arc::new(plan.unwrap()) as _, Arc::default());
    let (subplan, metrics) = (Subplan::default(), ExecutionPlanMetricsSet::new());
    let read = |partition| {
        let metrics = SpillMetrics::new(&metrics, partition);
        subplan.read(&plan, partition, &context, metrics).unwrap()
    };
    let mut left = read(0);
    assert!(left.next().now_or_never().is_none(), "it takes a while");
    drop(left);
    let rows = read(1).try_collect::<Vec<_>>();
    assert!(tokio::time::timeout(Duration::from_secs(20), rows).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn each_round_of_a_recursion_reads_anew() {
    let context = session(2, RuntimeEnvBuilder::new());
    let query = "with recursive s as (select k % 3 as g, count(*) as n from t group by g), \
                 r as (select 0 as i, 0 as n union all select r.i + 1, a.n from r \
                 join s a on a.g = r.i join s b on b.g = a.g where r.i < 3) \
                 select * from r order by i, n";
    let _ = reused_in(&context, query).await;
}
