//! Life cycle of a join: memory is released, streams are dropped, plans run twice.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::{Stream, StreamExt};

use crate::{plan, register_sides, rows, session, session_in};

const FULL: &str = "select l.text, r.text from l full join r on l.a = r.b";

fn limited(bytes: usize, partitions: usize) -> (SessionContext, Arc<dyn MemoryPool>) {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool)).build_arc();
    let config = SessionConfig::new().with_target_partitions(partitions).with_batch_size(16);
    let context = session_in(true, config, runtime.unwrap());
    register_sides(&context);
    (context, pool)
}

#[tokio::test]
async fn memory_is_reserved_while_the_join_runs_and_released_with_its_last_stream() {
    for partitions in [1, 3] {
        let (context, pool) = limited(64 << 20, partitions);
        let plan = plan(&context, FULL).await;
        let mut stream =
            datafusion::physical_plan::execute_stream(Arc::clone(&plan), context.task_ctx())
                .unwrap();
        stream.next().await.unwrap().unwrap();
        assert!(pool.reserved() > 0, "a table reserves memory");
        while let Some(batch) = stream.next().await {
            batch.unwrap();
        }
        assert_eq!(pool.reserved(), 0, "the plan is kept, its table is dropped");
        drop(plan);
    }
}

#[tokio::test]
async fn a_dropped_stream_releases_its_memory() {
    let (context, pool) = limited(64 << 20, 1);
    let plan = plan(&context, FULL).await;
    let mut stream =
        datafusion::physical_plan::execute_stream(Arc::clone(&plan), context.task_ctx()).unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    // Partitions run in tasks of their own, which are cancelled a little later.
    for _ in 0..1000 {
        if pool.reserved() == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        tokio::task::yield_now().await;
    }
    panic!("{} bytes are still reserved", pool.reserved());
}

#[tokio::test]
async fn too_little_memory_is_one_clear_error() {
    let (context, pool) = limited(100, 1);
    let plan = plan(&context, "select l.text from l join r on l.a = r.b").await;
    let error = rows(&context, plan).await.unwrap_err().to_string();
    assert!(error.contains("Resources exhausted"), "{error}");
    assert_eq!(pool.reserved(), 0);
}

#[tokio::test]
async fn a_poll_returns_at_most_one_batch() {
    let (context, _) = limited(64 << 20, 1);
    let plan = plan(&context, "select l.text, r.text from l join r on l.a % 2 = r.b % 2").await;
    let mut stream = datafusion::physical_plan::execute_stream(plan, context.task_ctx()).unwrap();
    let mut waker = Context::from_waker(Waker::noop());
    let mut rows = 0;
    loop {
        match std::pin::Pin::new(&mut stream).poll_next(&mut waker) {
            Poll::Ready(Some(batch)) => {
                let batch = batch.unwrap();
                assert!(batch.num_rows() <= 16, "{} rows at once", batch.num_rows());
                rows += batch.num_rows();
            }
            Poll::Ready(None) => break,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    assert!(rows > 1000, "{rows} rows of many pairs");
}

#[tokio::test]
async fn a_plan_runs_again_with_the_same_rows() {
    let context = session(true, SessionConfig::new().with_target_partitions(3));
    register_sides(&context);
    let plan = plan(&context, FULL).await;
    let first = rows(&context, Arc::clone(&plan)).await.unwrap();
    assert_eq!(rows(&context, Arc::clone(&plan)).await.unwrap(), first);
    let reset = reset_plan_states(plan).unwrap();
    assert_eq!(rows(&context, reset).await.unwrap(), first);
}

#[tokio::test]
async fn a_join_in_a_recursive_query_starts_anew_each_time() {
    let sql = "with recursive t as (
                   select 0::bigint as n
                   union all
                   select t.n + 1 from t join l on t.n = l.at where t.n < 20
               ) select n from t";
    let mut results = Vec::new();
    for ours in [false, true] {
        let context = session(ours, SessionConfig::new().with_target_partitions(2));
        register_sides(&context);
        results.push(rows(&context, plan(&context, sql).await).await.unwrap());
    }
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0].len(), 21 + 1);
}
