//! One query, in a process of its own.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float32Type, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryPool, UnboundedMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use workahead_machine::clock::process_cpu_s;
use workahead_sql::PeakPool;
use workahead_sql::session::config;

use crate::Arm;
use crate::resident_memory::weighed;
use crate::tables::{PARTITIONS, Shape};

const POOL_BYTES: usize = 150_000_000;
/// Of tables of a fiftieth.
const SMALL_POOL_BYTES: usize = POOL_BYTES / 50;

/// Both sides' columns: a row is new, updated or kept by which of the ids is null.
const UPSERT: &str = "select t.id, t.vector, s.id, s.vector \
                      from target t full join source s on t.id = s.id";
const READ: [&str; 2] = ["select * from target", "select * from source"];

/// Runs it; the object that the parent reads.
pub(crate) fn run(arm: Arm, shape: &Shape, is_small: bool) -> Value {
    if arm.is_limited() {
        workahead_machine::allocator::give_back_what_is_freed();
    }
    let inner: Arc<dyn MemoryPool> = match (arm.is_limited(), is_small) {
        (true, false) => Arc::new(FairSpillPool::new(POOL_BYTES)),
        (true, true) => Arc::new(FairSpillPool::new(SMALL_POOL_BYTES)),
        (false, _) => Arc::new(UnboundedMemoryPool::default()),
    };
    let pool = PeakPool::of(inner);
    let context = session(arm, shape, Arc::clone(&pool) as _);
    let runtime = Builder::new_multi_thread().worker_threads(PARTITIONS).enable_all().build();
    let runtime = runtime.expect("threads");
    let texts = if arm == Arm::Read { &READ[..] } else { &[UPSERT] };
    let (start, cpu_s) = (Instant::now(), process_cpu_s());
    let (answer, growth) = weighed(|| {
        runtime.block_on(async {
            let mut answer = Answer::default();
            for text in texts {
                answer.add_query(&context, text).await?;
            }
            Ok::<_, DataFusionError>(answer)
        })
    });
    let [ms, cpu_ms] = [start.elapsed().as_secs_f64(), process_cpu_s() - cpu_s].map(|s| s * 1e3);
    match answer {
        Ok(Answer { rows, sum }) => {
            let resident_mb = growth.peak_bytes.map(|bytes| bytes as f64 / 1e6);
            let reserved_mb = pool.peak_bytes() as f64 / 1e6;
            json!({ "ms": ms, "cpu_ms": cpu_ms, "rows": rows, "sum": sum,
                    "resident_mb": resident_mb, "reserved_mb": reserved_mb })
        }
        Err(error) => json!({ "error": error.to_string().lines().next() }),
    }
}

fn session(arm: Arm, shape: &Shape, pool: Arc<dyn MemoryPool>) -> SessionContext {
    let environment = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc();
    // An operator's batches are of as many rows as the tables'.
    let config = config().with_target_partitions(PARTITIONS).with_batch_size(shape.batch_rows());
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment.expect("a runtime"))
        .with_default_features();
    let builder = if arm.is_ours() { workahead_sql::install(builder) } else { builder };
    let context = SessionContext::new_with_state(builder.build());
    for (name, table) in [("target", shape.target()), ("source", shape.source())] {
        context.register_table(name, Arc::new(table)).expect("a new name");
    }
    context
}

/// Rows in any order.
#[derive(Default)]
struct Answer {
    rows: usize,
    sum: u64,
}

impl Answer {
    async fn add_query(&mut self, context: &SessionContext, text: &str) -> Result<()> {
        let mut rows = context.sql(text).await?.execute_stream().await?;
        while let Some(batch) = rows.next().await {
            self.add(&batch?);
        }
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows();
        for row in 0..batch.num_rows() {
            let words = batch.columns().iter().map(|column| word(column, row));
            self.sum = self.sum.wrapping_add(words.fold(0, |sum, word| mixed(sum ^ word)));
        }
    }
}

/// A value as a number; all of a vector's.
fn word(column: &dyn Array, row: usize) -> u64 {
    if column.is_null(row) {
        return 1;
    }
    if let Some(ids) = column.as_primitive_opt::<Int64Type>() {
        return ids.value(row) as u64;
    }
    let vectors = column.as_fixed_size_list();
    let (width, start) = (vectors.value_length() as usize, vectors.value_offset(row) as usize);
    let numbers = &vectors.values().as_primitive::<Float32Type>().values()[start..start + width];
    let words = numbers.iter().map(|number| u64::from(number.to_bits()));
    // Sums that a compiler makes vectors of: the consumer is not what is measured.
    words.clone().sum::<u64>()
        ^ words.step_by(width.div_ceil(4)).fold(0, |sum, word| mixed(sum ^ word))
}

/// SplitMix64's step (Steele, Lea, Flood, OOPSLA 2014).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
