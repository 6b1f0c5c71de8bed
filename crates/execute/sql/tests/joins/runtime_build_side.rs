//! The side with fewer rows is built, and the result is the same.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::MemTable;
use datafusion::common::{JoinType, NullEquality};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::expressions::col;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::prelude::{SessionConfig, SessionContext};
use workahead_datafusion::{WorkaheadJoinExec, WorkaheadOptions};

use crate::types::TYPES;
use crate::{plan, rows, session, session_in};

/// Rows of a side above the size at which the right one is started, and of a smaller side.
const MANY: i64 = 90_000;
const FEW: i64 = 1_000;

/// Keys that repeat, some of them null.
fn register(context: &SessionContext, name: &str, rows: i64) {
    let key = |row: i64| (row % 10 != 7).then_some(row * 3 % 1_700);
    let columns: [(&str, ArrayRef, bool); 2] = [
        ("k", Arc::new((0..rows).map(key).collect::<Int64Array>()), true),
        ("at", Arc::new((0..rows).collect::<Int64Array>()), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let batches = (0..rows).step_by(500).map(|at| batch.slice(at as usize, 500));
    let table = MemTable::try_new(batch.schema(), vec![batches.collect()]).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

async fn planned(
    context: &SessionContext,
    left: &str,
    right: &str,
    join_type: JoinType,
    mode: PartitionMode,
) -> HashJoinExec {
    let side = async |name: &str| {
        let rows = plan(context, &format!("select k, at from {name} where at % 7 <> 3")).await;
        let key = col("k", &rows.schema()).unwrap();
        let one: Arc<dyn ExecutionPlan> = Arc::new(CoalescePartitionsExec::new(rows));
        match mode {
            PartitionMode::Partitioned => {
                let by = Partitioning::Hash(vec![Arc::clone(&key)], 3);
                (Arc::new(RepartitionExec::try_new(one, by).unwrap()) as _, key)
            }
            _ => (one, key),
        }
    };
    let ((left, left_key), (right, right_key)) = (side(left).await, side(right).await);
    HashJoinExecBuilder::new(left, right, vec![(left_key, right_key)], join_type)
        .with_partition_mode(mode)
        .with_null_equality(NullEquality::NullEqualsNothing)
        .build()
        .unwrap()
}

fn at_run_time() -> WorkaheadOptions {
    WorkaheadOptions { build_side: "runtime".to_owned(), ..WorkaheadOptions::default() }
}

fn with_runtime_build_side(planned: HashJoinExec) -> Arc<dyn ExecutionPlan> {
    let ours = WorkaheadJoinExec::try_new(Arc::new(planned)).unwrap();
    let ours = ours.with_options(&at_run_time()).unwrap();
    assert!(ours.chooses_build_side());
    assert_eq!(ours.maintains_input_order(), [false; 2]);
    Arc::new(ours)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_join_type_returns_the_same_rows_from_either_build_side() {
    let context = session(true, SessionConfig::new());
    register(&context, "many", MANY);
    register(&context, "few", FEW);
    for join_type in TYPES {
        for mode in [PartitionMode::CollectLeft, PartitionMode::Partitioned] {
            for (left, right, built) in [("many", "few", "right"), ("few", "many", "left")] {
                let stock = planned(&context, left, right, join_type, mode).await;
                let ours =
                    with_runtime_build_side(planned(&context, left, right, join_type, mode).await);
                let expected = rows(&context, Arc::new(stock)).await.unwrap();
                let found = rows(&context, Arc::clone(&ours)).await.unwrap();
                assert!(found == expected, "{join_type} {mode:?} {left} {right}");
                let metrics = ours.metrics().unwrap().aggregate_by_name().to_string();
                let build_side = format!("build_side={built}");
                assert!(metrics.contains(&build_side), "{join_type} {mode:?}: {metrics}");
            }
        }
    }
}

#[tokio::test]
async fn buffered_batches_are_charged_and_released() {
    for limit_bytes in [3 << 20, 256 << 20] {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit_bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc();
        let context = session_in(true, SessionConfig::new(), runtime.unwrap());
        register(&context, "many", MANY);
        register(&context, "few", FEW);
        let mode = PartitionMode::CollectLeft;
        let join = planned(&context, "many", "few", JoinType::Inner, mode).await;
        let expected = rows(&session(false, SessionConfig::new()), Arc::new(join)).await.unwrap();
        let join = planned(&context, "many", "few", JoinType::Inner, mode).await;
        let ours = with_runtime_build_side(join);
        let found = rows(&context, Arc::clone(&ours)).await.unwrap();
        assert!(found == expected, "in {limit_bytes} bytes");
        assert_eq!(pool.reserved(), 0);
        // A sixteenth of the small limit is less than the smaller side takes in the end.
        let built = if limit_bytes == 3 << 20 { "left" } else { "right" };
        let metrics = ours.metrics().unwrap().aggregate_by_name().to_string();
        assert!(metrics.contains(&format!("build_side={built}")), "{metrics}");
    }
}

#[tokio::test]
async fn several_probers_of_one_table_need_the_planned_build_side() {
    let context = session(true, SessionConfig::new().with_target_partitions(3));
    context.sql("set workahead.build_side = 'runtime'").await.unwrap();
    register(&context, "few", FEW);
    let left = Arc::new(CoalescePartitionsExec::new(plan(&context, "select k from few").await));
    let right = plan(&context, "select k from few").await;
    let right =
        Arc::new(RepartitionExec::try_new(right, Partitioning::RoundRobinBatch(3)).unwrap());
    assert_eq!(right.partitioning().partition_count(), 3);
    let key = |schema| col("k", schema).unwrap();
    let on = vec![(key(&left.schema()), key(&right.schema()))];
    let join = HashJoinExecBuilder::new(left, right, on, JoinType::Inner);
    let join = join.with_partition_mode(PartitionMode::CollectLeft).build().unwrap();
    let ours = WorkaheadJoinExec::try_new(Arc::new(join)).unwrap();
    assert!(!ours.with_options(&at_run_time()).unwrap().chooses_build_side());
}
