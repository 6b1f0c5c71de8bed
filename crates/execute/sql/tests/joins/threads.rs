//! Partitions that probe one table run on threads of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use datafusion::arrow::array::BooleanArray;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionImplementation, ScalarUDF, Volatility, create_udf,
};
use datafusion::prelude::SessionConfig;

use super::{count, register_sides, rows, session};

/// Far longer than a thread needs to take a task, and the test's time if none does.
const PATIENCE: Duration = Duration::from_secs(10);

fn predicate(name: &str, of_rows: ScalarFunctionImplementation) -> ScalarUDF {
    create_udf(name, vec![DataType::Int64], DataType::Boolean, Volatility::Volatile, of_rows)
}

/// A stream that had waited for another one's build stayed with the thread that had built, which
/// went on with a partition of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_waited_for_the_build_does_not_wait_for_the_builder() {
    let context = session(true, SessionConfig::new().with_target_partitions(2));
    register_sides(&context);
    let all = |rows: &[ColumnarValue]| match &rows[0] {
        ColumnarValue::Array(rows) => {
            ColumnarValue::Array(Arc::new(BooleanArray::from(vec![true; rows.len()])))
        }
        ColumnarValue::Scalar(_) => panic!("a column was passed"),
    };
    // The build lasts until both partitions wait for it.
    let slow = predicate(
        "slow",
        Arc::new(move |rows| {
            std::thread::sleep(Duration::from_millis(50));
            Ok(all(rows))
        }),
    );
    let inside = Arc::new(AtomicUsize::new(0));
    let met = Arc::new(AtomicUsize::new(0));
    let (entered, found) = (Arc::clone(&inside), Arc::clone(&met));
    let meet = predicate(
        "meet",
        Arc::new(move |rows| {
            entered.fetch_add(1, Ordering::SeqCst);
            let start = Instant::now();
            while entered.load(Ordering::SeqCst) < 2 && start.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            found.fetch_add(usize::from(start.elapsed() < PATIENCE), Ordering::SeqCst);
            Ok(all(rows))
        }),
    );
    context.register_udf(slow);
    context.register_udf(meet);
    let query = "select count(*) from (select * from l where slow(a)) l \
                 join (select * from r where meet(b)) r on l.a = r.b";
    let plan = context.sql(query).await.unwrap().create_physical_plan().await.unwrap();
    assert_eq!(count(&plan, "WorkaheadJoinExec"), 1);
    rows(&context, plan).await.unwrap();
    let (inside, met) = (inside.load(Ordering::SeqCst), met.load(Ordering::SeqCst));
    assert!(inside >= 2 && met == inside, "{met} of {inside} batches were probed at once");
}
