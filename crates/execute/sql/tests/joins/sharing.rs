//! Several joins of one plan in one pool.

use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array};
use datafusion::arrow::array::{RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::catalog::MemTable;
use datafusion::execution::memory_pool::{
    FairSpillPool, GreedyMemoryPool, MemoryPool, TrackConsumersPool,
};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::{partitioned, plan, rows, session, session_in};

const ROWS: i64 = 20_000;

/// Three builds of about 2 MB above one probe side.
const CHAIN: &str = "select count(*), sum(length(a.text)), min(b.text), max(c.text), sum(d.k) \
                     from a join b on a.k = b.k join c on b.k = c.k join d on c.k = d.k";

/// Four tables; of the keys of each, those of the next are missing in part.
fn register_chain(context: &SessionContext) {
    for (at, name) in (0..).zip(["a", "b", "c", "d"]) {
        let keys = at * 1000..ROWS;
        let batch = |keys: std::ops::Range<i64>| {
            let texts = keys.clone().map(|key| Some(format!("{name} {:080}", key * 7 % ROWS)));
            let columns: [(&str, ArrayRef); 2] = [
                ("k", Arc::new(keys.clone().collect::<Int64Array>())),
                ("text", Arc::new(texts.collect::<StringArray>())),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let batches: Vec<_> = keys.step_by(1000).map(|first| batch(first..first + 1000)).collect();
        let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
}

fn pools(bytes: usize) -> [Arc<dyn MemoryPool>; 3] {
    let greedy = || GreedyMemoryPool::new(bytes);
    let top = NonZeroUsize::new(5).unwrap();
    [
        Arc::new(greedy()),
        Arc::new(FairSpillPool::new(bytes)),
        Arc::new(TrackConsumersPool::new(greedy(), top)),
    ]
}

async fn in_pool(pool: &Arc<dyn MemoryPool>, config: SessionConfig) -> SessionContext {
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(pool));
    session_in(true, config.with_batch_size(1000), runtime.build_arc().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_a_pipeline_do_not_starve_each_other() {
    let unlimited = session(false, SessionConfig::new().with_target_partitions(1));
    register_chain(&unlimited);
    let expected = rows(&unlimited, plan(&unlimited, CHAIN).await).await.unwrap();
    for bytes in [6 << 20, 12 << 20] {
        for partitions in [1, 2] {
            for pool in pools(bytes) {
                let config = [
                    SessionConfig::new().with_target_partitions(partitions),
                    partitioned(partitions),
                ];
                for config in config {
                    let context = in_pool(&pool, config).await;
                    register_chain(&context);
                    let given = rows(&context, plan(&context, CHAIN).await).await;
                    assert_eq!(given.unwrap(), expected, "{bytes} {partitions} {pool:?}");
                    assert_eq!(pool.reserved(), 0);
                }
            }
        }
    }
}

/// Rows with a vector each, as a table of embeddings has them (lance-format/lance#8129).
fn vectors(name: &str, ids: std::ops::Range<i64>, width: i32) -> Arc<MemTable> {
    let batch = |ids: std::ops::Range<i64>| {
        let rows = (ids.end - ids.start) as usize;
        let numbers = rows * width as usize;
        let values = (0..numbers).map(|at| Some((at % 1000) as f32)).collect::<Float32Array>();
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(ids.clone().collect::<Int64Array>())),
            ("from", Arc::new(StringArray::from(vec![name; rows]))),
            ("vector", Arc::new(FixedSizeListArray::new(item, width, Arc::new(values), None))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches: Vec<_> = ids.step_by(500).map(|first| batch(first..first + 500)).collect();
    Arc::new(MemTable::try_new(batches[0].schema(), vec![batches]).unwrap())
}

/// The query of `merge_insert`: every row of both tables, the source's where it has one.
const UPSERT: &str = "select count(*), sum(case when s.id is null then 1 else 0 end), \
                      sum(case when t.id is null then 1 else 0 end), \
                      sum(coalesce(s.vector, t.vector)[7]), sum(t.vector[3]) \
                      from target t full join source s on t.id = s.id";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vectors_are_merged_in_a_pool_that_holds_few_of_them() {
    const TARGET: i64 = 6000;
    for (width, source) in [(16, 0..TARGET), (256, 0..TARGET), (1024, 0..TARGET)]
        .into_iter()
        .chain([(1024, TARGET - 500..TARGET + 500)])
    {
        let bytes = (TARGET as usize * width as usize * 4 / 6).max(3 << 20);
        let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(bytes));
        let unlimited = session(false, SessionConfig::new().with_target_partitions(2));
        let limited = in_pool(&pool, SessionConfig::new().with_target_partitions(2)).await;
        let mut given = Vec::new();
        for context in [&unlimited, &limited] {
            context.register_table("target", vectors("t", 0..TARGET, width)).unwrap();
            context.register_table("source", vectors("s", source.clone(), width)).unwrap();
            given.push(rows(context, plan(context, UPSERT).await).await.unwrap());
        }
        assert_eq!(given[0], given[1], "{width}");
        assert_eq!(pool.reserved(), 0);
    }
}
