//! Every type of join, both ways of partitioning, with and without a filter, nulls equal or not:
//! the same rows as DataFusion's own node.

use std::sync::Arc;

use datafusion::common::cast::as_int64_array;
use datafusion::common::{JoinSide, JoinType, NullEquality};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::expressions::{BinaryExpr, col};
use datafusion::physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder, PartitionMode};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use workahead_datafusion::WorkaheadJoinExec;

use crate::{plan, register_sides, rows, session};

pub(crate) const TYPES: [JoinType; 10] = [
    JoinType::Inner,
    JoinType::Left,
    JoinType::Right,
    JoinType::Full,
    JoinType::LeftSemi,
    JoinType::RightSemi,
    JoinType::LeftAnti,
    JoinType::RightAnti,
    JoinType::LeftMark,
    JoinType::RightMark,
];

/// One join to test.
#[derive(Debug, Clone, Copy)]
struct Case {
    join_type: JoinType,
    mode: PartitionMode,
    nulls: NullEquality,
    filtered: bool,
    computed: bool,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for join_type in TYPES {
        for mode in [PartitionMode::CollectLeft, PartitionMode::Partitioned] {
            for nulls in [NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull] {
                for (filtered, computed) in [(false, false), (true, false), (false, true)] {
                    cases.push(Case { join_type, mode, nulls, filtered, computed });
                }
            }
        }
    }
    cases
}

async fn planned(context: &SessionContext, case: Case) -> HashJoinExec {
    let left = plan(context, "select a, at, text from l").await;
    let right = plan(context, "select b, at, text from r").await;
    let key = |side: &Arc<dyn ExecutionPlan>, name: &str| {
        let schema = side.schema();
        let key = col(name, &schema).unwrap();
        let twice = BinaryExpr::new(Arc::clone(&key), Operator::Plus, Arc::clone(&key));
        if case.computed { Arc::new(twice) as _ } else { key }
    };
    let on = vec![(key(&left, "a"), key(&right, "b"))];
    let (left, right): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>) = match case.mode {
        PartitionMode::Partitioned => {
            let split = |side, key| {
                Arc::new(RepartitionExec::try_new(side, Partitioning::Hash(vec![key], 3)).unwrap())
            };
            (split(left, Arc::clone(&on[0].0)), split(right, Arc::clone(&on[0].1)))
        }
        _ => (Arc::new(CoalescePartitionsExec::new(left)), right),
    };
    let filter = case.filtered.then(|| filter(&left, &right));
    HashJoinExecBuilder::new(left, right, on, case.join_type)
        .with_partition_mode(case.mode)
        .with_null_equality(case.nulls)
        .with_filter(filter)
        .build()
        .unwrap()
}

/// `l.at * 3 < r.at`, over columns in another order than the sides.
fn filter(left: &Arc<dyn ExecutionPlan>, right: &Arc<dyn ExecutionPlan>) -> JoinFilter {
    use datafusion::arrow::datatypes::Schema;
    let fields = [right.schema().field(1).clone(), left.schema().field(1).clone()];
    let names = ["right_at", "left_at"];
    let fields = fields.into_iter().zip(names).map(|(field, name)| field.with_name(name));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let at = |side| ColumnIndex { index: 1, side };
    let columns = vec![at(JoinSide::Right), at(JoinSide::Left)];
    let (right, left) = (col("right_at", &schema).unwrap(), col("left_at", &schema).unwrap());
    let sum = Arc::new(BinaryExpr::new(Arc::clone(&left), Operator::Plus, left));
    JoinFilter::new(Arc::new(BinaryExpr::new(sum, Operator::Lt, right)), columns, schema)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_join_returns_the_rows_of_datafusions_own() {
    for batch_rows in [3, 8192] {
        let context = session(true, SessionConfig::new().with_batch_size(batch_rows));
        register_sides(&context);
        for case in cases() {
            let (stock, ours) = (planned(&context, case).await, planned(&context, case).await);
            let ours = WorkaheadJoinExec::try_new(Arc::new(ours)).unwrap();
            let stock = rows(&context, Arc::new(stock)).await.unwrap();
            let ours = rows(&context, Arc::new(ours)).await.unwrap();
            assert_eq!(ours, stock, "{case:?} in batches of {batch_rows}");
        }
    }
}

#[tokio::test]
async fn the_order_of_the_probe_side_is_kept_as_the_plan_says() {
    let context = session(true, SessionConfig::new().with_batch_size(7));
    register_sides(&context);
    for join_type in TYPES {
        let left = Arc::new(CoalescePartitionsExec::new(plan(&context, "select a from l").await));
        let right = plan(&context, "select b, at from r order by at desc").await;
        let key = |side: &dyn ExecutionPlan, name| col(name, &side.schema()).unwrap();
        let on = vec![(key(left.as_ref(), "a"), key(right.as_ref(), "b"))];
        let builder = HashJoinExecBuilder::new(left, right, on, join_type);
        let planned = builder.with_partition_mode(PartitionMode::CollectLeft).build().unwrap();
        let join = WorkaheadJoinExec::try_new(Arc::new(planned)).unwrap();
        let join: Arc<dyn ExecutionPlan> = Arc::new(join);
        let kept = [false, keeps_order(join_type)];
        assert_eq!(join.maintains_input_order(), kept, "{join_type}");
        assert_eq!(join.output_ordering().is_some(), kept[1], "{join_type}");
        if !kept[1] {
            continue;
        }
        let at = join.schema().index_of("at").unwrap();
        let mut last = i64::MAX;
        for batch in collect(join, context.task_ctx()).await.unwrap() {
            for at in as_int64_array(batch.column(at)).unwrap().values() {
                assert!(*at <= last, "{join_type}: {at} after {last}");
                last = *at;
            }
        }
        assert!(last < 10, "{join_type} returns rows to the end, not to {last}");
    }
}

fn keeps_order(join_type: JoinType) -> bool {
    use JoinType::{Inner, Right, RightAnti, RightMark, RightSemi};
    matches!(join_type, Inner | Right | RightSemi | RightAnti | RightMark)
}

/// The joins that DataFusion's own node still does.
const LEFT_TO_DATAFUSION: [&str; 1] = ["NOT IN of a correlated query"];

#[tokio::test]
async fn no_join_is_left_to_datafusion() {
    let context = session(true, SessionConfig::new());
    register_sides(&context);
    let mut left = Vec::new();
    for case in cases() {
        let join = Arc::new(planned(&context, case).await);
        if let Err(error) = WorkaheadJoinExec::try_new(join) {
            left.push(format!("{case:?}: {error}"));
        }
    }
    for key in KEYS {
        let sql = format!("select 1 from (select {key} k from l) x join (select {key} k from l) y");
        let plan = plan(&context, &format!("{sql} on x.k = y.k")).await;
        if crate::count(&plan, "WorkaheadJoinExec") != 1 {
            left.push(format!("a key of {key}"));
        }
    }
    let sql = "select 1 from l where a not in (select b from r where l.at * 3 < r.at)";
    if crate::count(&plan(&context, sql).await, "WorkaheadJoinExec") != 1 {
        left.push("NOT IN of a correlated query".to_owned());
    }
    assert_eq!(left, LEFT_TO_DATAFUSION);
}

/// Expressions of every type that can be a key.
const KEYS: [&str; 22] = [
    "at::tinyint",
    "at::smallint",
    "at::int",
    "at",
    "at::tinyint unsigned",
    "at::bigint unsigned",
    "at::float",
    "at::double",
    "at::decimal(9, 2)",
    "at::decimal(38, 2)",
    "at::decimal(60, 2)",
    "at > 3",
    "at::date",
    "arrow_cast(at, 'Date64')",
    "arrow_cast(at, 'Timestamp(Nanosecond, None)')",
    "arrow_cast(at, 'Time64(Nanosecond)')",
    "arrow_cast(at, 'Duration(Second)')",
    "text",
    "arrow_cast(text, 'LargeUtf8')",
    "arrow_cast(text, 'Utf8View')",
    "arrow_cast(text, 'Dictionary(Int32, Utf8)')",
    "arrow_cast(text, 'Binary')",
];
