//! Sideways filters: their place in the plan, and that they do not change the result.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::common::collect as collect_stream;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::{count, partitioned, plan, rows, session, sorted};

const NAME: &str = "SidewaysFilterExec";

/// Columns `k` (0 to 999, repeated, some null), `g` (0 to 99), `v` (the row).
fn register(context: &SessionContext, name: &str, rows: i64) {
    let columns: [(&str, ArrayRef, bool); 3] = [
        (
            "k",
            Arc::new((0..rows).map(|i| (i % 7 != 3).then_some(i % 1000)).collect::<Int64Array>()),
            true,
        ),
        ("g", Arc::new((0..rows).map(|i| i % 100).collect::<Int64Array>()), false),
        ("v", Arc::new((0..rows).collect::<Int64Array>()), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let batches = (0..rows).step_by(1000).map(|at| batch.slice(at as usize, 1000));
    let table = MemTable::try_new(batch.schema(), vec![batches.collect()]).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

fn tables(ours: bool, config: SessionConfig) -> SessionContext {
    let context = session(ours, config);
    for (name, rows) in [("big", 40_000), ("middle", 10_000), ("small", 2_000)] {
        register(&context, name, rows);
    }
    context
}

/// Rows that were dropped in the whole plan.
fn dropped(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let mut all = 0;
    plan.apply(|node| {
        let own = node.metrics().and_then(|metrics| metrics.sum_by_name("dropped_rows"));
        all += own.map_or(0, |value| value.as_usize());
        Ok(TreeNodeRecursion::Continue)
    })
    .unwrap();
    all
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

/// A join of two big tables, by a few keys of a third.
const JOINED: &str = "select s.v, m.v, b.v from small s join \
                      (select m.k, m.v, b.v from middle m join big b on m.v = b.v) \
                      as j(k, mv, bv) on s.k = j.k join middle m on m.v = j.mv \
                      join big b on b.v = j.bv where s.v < 30";
/// Groups of a big table, by a few keys.
const GROUPED: &str = "select s.v, j.total from small s join \
                       (select k, sum(v) as total from big group by k) j on s.k = j.k \
                       where s.v between 500 and 520";

#[tokio::test]
async fn rows_are_dropped_below_joins_and_aggregates() {
    for config in [SessionConfig::new().with_target_partitions(1), partitioned(2)] {
        for sql in [JOINED, GROUPED] {
            let (stock, ours) = (tables(false, config.clone()), tables(true, config.clone()));
            let expected = rows(&stock, plan(&stock, sql).await).await.unwrap();
            let done = plan(&ours, sql).await;
            assert!(count(&done, NAME) > 0, "{}", shown(&done));
            assert_eq!(rows(&ours, Arc::clone(&done)).await.unwrap(), expected);
            assert!(dropped(&done) > 5_000, "{} in\n{}", dropped(&done), shown(&done));
        }
    }
}

/// Three of ten rows pass the filter of the join above, and next to none the join right above it.
const SELECTIVE: &str = "select s.v, j.v from small s join \
                         (select b.k, b.v from middle m join big b on m.v = b.v \
                         where m.g + m.v < 20) j \
                         on s.k = j.k where s.v < 300";

#[tokio::test]
async fn a_join_that_drops_more_makes_up_for_the_filter() {
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(1000);
    let (stock, ours) =
        (tables(false, as_written(config.clone())), tables(true, as_written(config)));
    let expected = rows(&stock, plan(&stock, SELECTIVE).await).await.unwrap();
    let done = plan(&ours, SELECTIVE).await;
    assert!(count(&done, NAME) > 0, "{}", shown(&done));
    assert_eq!(rows(&ours, Arc::clone(&done)).await.unwrap(), expected);
    // Without it, 28,000 of 40,000.
    assert!((1_000..20_000).contains(&dropped(&done)), "{} in\n{}", dropped(&done), shown(&done));
}

/// A table is built for rows of a few keys, which a join of the other side knows.
const REVERSED: &str = "select j.v from middle m right anti join \
                        (select b.v, s.k from small s join big b on s.k = b.k where s.g < 2) j \
                        on m.k = j.k and m.v > j.v - 5";

/// The left side of a join is built.
fn as_written(mut config: SessionConfig) -> SessionConfig {
    config.options_mut().optimizer.join_reordering = false;
    config
}

#[tokio::test]
async fn rows_are_dropped_before_they_are_built() {
    for config in [SessionConfig::new().with_target_partitions(1), partitioned(2)] {
        let config = as_written(config);
        let (stock, ours) = (tables(false, config.clone()), tables(true, config));
        let expected = rows(&stock, plan(&stock, REVERSED).await).await.unwrap();
        let done = plan(&ours, REVERSED).await;
        assert_eq!(count(&done, "KeyFilterExec"), 1, "{}", shown(&done));
        assert_eq!(rows(&ours, Arc::clone(&done)).await.unwrap(), expected);
        assert!(dropped(&done) > 9_000, "{} in\n{}", dropped(&done), shown(&done));
        let again = reset_plan_states(done).unwrap();
        assert_eq!(count(&again, "KeyFilterExec"), 0, "it knew the keys of the first run");
        assert_eq!(rows(&ours, again).await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_that_are_read_in_turn_do_not_wait_for_each_other() {
    let config = as_written(partitioned(4));
    let (stock, ours) = (tables(false, config.clone()), tables(true, config));
    let expected = rows(&stock, plan(&stock, REVERSED).await).await.unwrap();
    let done = plan(&ours, REVERSED).await;
    assert_eq!(count(&done, "KeyFilterExec"), 1, "{}", shown(&done));
    let (start, mut batches) = (std::time::Instant::now(), Vec::new());
    for partition in 0..done.properties().output_partitioning().partition_count() {
        let stream = done.execute(partition, ours.task_ctx()).unwrap();
        batches.extend(collect_stream(stream).await.unwrap());
    }
    assert_eq!(sorted(&batches), expected);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[tokio::test]
async fn options_turn_them_off() {
    let context = tables(true, SessionConfig::new());
    context.sql("set workahead.sideways_filters = false").await.unwrap();
    assert_eq!(count(&plan(&context, GROUPED).await, NAME), 0);
    context.sql("set workahead.sideways_filters = true").await.unwrap();
    context.sql("set workahead.enabled = false").await.unwrap();
    assert_eq!(count(&plan(&context, GROUPED).await, NAME), 0);
}

#[tokio::test]
async fn none_where_a_filter_would_change_the_result() {
    let context = tables(true, SessionConfig::new().with_target_partitions(1));
    let stock = tables(false, SessionConfig::new().with_target_partitions(1));
    for (sql, why) in [
        (
            "select s.v, j.v from small s join \
             (select k, v from big order by v desc limit 5000) j on s.k = j.k where s.v < 30",
            "which rows a limit leaves",
        ),
        (
            "select s.v, j.n from small s join \
             (select g, count(*) as n from big group by g) j on s.k = j.n where s.v < 30",
            "the key is a result of the groups",
        ),
        (
            "select s.v, j.v from small s right join \
             (select b.k, b.v from big b join middle m on b.v = m.v) j on s.k = j.k \
             and s.v < 30",
            "every row of the right side comes out",
        ),
    ] {
        let done = plan(&context, sql).await;
        assert_eq!(count(&done, NAME), 0, "{why}: {}", shown(&done));
        let expected = rows(&stock, plan(&stock, sql).await).await.unwrap();
        assert_eq!(rows(&context, done).await.unwrap(), expected, "{why}");
    }
}

/// Joins of SQL, and the sides whose columns are in the output.
const JOINS: [(&str, &[usize]); 8] = [
    ("join", &[0, 1]),
    ("left join", &[0, 1]),
    ("right join", &[0, 1]),
    ("full join", &[0, 1]),
    ("left semi join", &[0]),
    ("left anti join", &[0]),
    ("right semi join", &[1]),
    ("right anti join", &[1]),
];

#[tokio::test]
async fn they_do_not_change_the_result() {
    let sessions = [SessionConfig::new().with_target_partitions(1), partitioned(2)];
    for config in sessions {
        let (stock, ours) = (tables(false, config.clone()), tables(true, config));
        let mut placed = 0;
        for (inner, sides) in JOINS {
            for side in sides.iter().map(|side| ["m", "b"][*side]) {
                for (outer, sides) in JOINS {
                    for equal in ["=", "is not distinct from"] {
                        let out = sides.iter().map(|side| ["s.v", "j.v"][*side]);
                        let sql = format!(
                            "select {} from (select k, v from small where v between 490 and 510) s \
                             {outer} (select {side}.k, {side}.v from middle m {inner} big b \
                             on m.v = b.v + 500) j on s.k {equal} j.k",
                            out.collect::<Vec<_>>().join(", ")
                        );
                        let expected = rows(&stock, plan(&stock, &sql).await).await.unwrap();
                        let done = plan(&ours, &sql).await;
                        placed += count(&done, NAME);
                        assert_eq!(rows(&ours, done).await.unwrap(), expected, "{sql}");
                    }
                }
            }
        }
        assert!(placed > 20, "{placed}");
    }
}

#[tokio::test]
async fn columns_of_the_same_name_are_not_confused() {
    let stock = tables(false, SessionConfig::new().with_target_partitions(1));
    for config in [SessionConfig::new().with_target_partitions(1), partitioned(2)] {
        let ours = tables(true, config);
        for sql in [
            "select s.v, j.n from (select * from small where v < 30) s join \
             (select m.k as mk, b.k as bk, count(*) as n from middle m join big b \
             on m.v = b.v + 500 group by m.k, b.k) j on s.k = j.bk",
            "select s.v, j.mk, j.bk from (select * from small where v < 30) s join \
             (select m.k as mk, b.k as bk from middle m join big b on m.v = b.v + 500) j \
             on s.k = j.bk",
            "select s.v, m.v from (select * from small where v < 30) s join middle m on s.k = m.k \
             where exists (select 1 from big b where b.v = m.k and b.k >= m.g)",
            "select s.v, j.n from (select * from small where v < 30) s join \
             (select k from (select k + 1 as k from big) group by k) j(n) on s.k = j.n",
        ] {
            let expected = rows(&stock, plan(&stock, sql).await).await.unwrap();
            assert!(expected.len() > 10, "{sql}");
            assert_eq!(rows(&ours, plan(&ours, sql).await).await.unwrap(), expected, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_reset_plan_has_none() {
    let context = tables(true, SessionConfig::new());
    let sql = "with recursive steps(v) as (select 0 union all \
               select s.v + 1 from steps s join \
               (select k, count(*) from big group by k) b on s.v = b.k where s.v < 6) \
               select count(*) from steps";
    let expected = {
        let stock = tables(false, SessionConfig::new());
        rows(&stock, plan(&stock, sql).await).await.unwrap()
    };
    assert_eq!(rows(&context, plan(&context, sql).await).await.unwrap(), expected);
}

#[tokio::test]
async fn no_row_is_dropped_where_most_rows_match() {
    let context = tables(true, SessionConfig::new().with_target_partitions(1));
    let sql = "select s.v, j.total from small s join \
               (select g, sum(v) as total from big group by g) j on s.g = j.g where s.v < 90";
    let done = plan(&context, sql).await;
    assert_eq!(count(&done, NAME), 1);
    rows(&context, Arc::clone(&done)).await.unwrap();
    assert_eq!(dropped(&done), 0, "nine in ten match");
}
