//! A join takes the memory it is charged with, and a limited one no more than its limit: the
//! process grows by at most a tenth more than the charge, plus slack for the allocator.
//!
//! The allocator is [configured](workahead_machine::allocator) to return memory, as recommended
//! with memory limits: else it keeps what the join freed.

#[path = "../../walks/tests/resident/mod.rs"]
mod resident_memory;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use resident_memory::weighed;
use workahead_join::{HashJoin, JoinError, JoinType, Pool, Prober, SpillDirectory, SpillMetrics};

/// Memory kept by the allocator, and partly used pages.
const SLACK_BYTES: usize = 16 << 20;

const BATCH_ROWS: i64 = 8192;
const BUILD_BATCHES: i64 = 150;
const PROBE_BATCHES: i64 = 100;

/// The keys of a run.
#[derive(Debug, Clone, Copy)]
enum Keys {
    Numbers,
    Texts,
    /// One key in every second row.
    Hot,
}

impl Keys {
    /// Made on demand: batches not handed over take no memory.
    fn batch(self, batch: i64, step: i64) -> RecordBatch {
        let rows = batch * BATCH_ROWS..(batch + 1) * BATCH_ROWS;
        let key = |row: i64| row * step % (BUILD_BATCHES * BATCH_ROWS);
        let hot = |row: i64| if row % 2 == 0 { -1 } else { key(row) };
        let keys: ArrayRef = match self {
            Self::Numbers => Arc::new(Int64Array::from_iter_values(rows.clone().map(key))),
            Self::Hot if step == 1 => Arc::new(Int64Array::from_iter_values(rows.clone().map(hot))),
            Self::Hot => Arc::new(Int64Array::from_iter_values(rows.clone().map(key))),
            Self::Texts => {
                let text = |row| format!("a key of some length, number {}", key(row));
                Arc::new(StringArray::from_iter_values(rows.clone().map(text)))
            }
        };
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
        RecordBatch::try_from_iter([("key", keys), ("number", numbers)]).unwrap()
    }

    fn schema(self) -> SchemaRef {
        self.batch(0, 1).schema()
    }
}

/// Output rows, peak charge, and what was spilled.
fn joined(keys: Keys, pool: Arc<Pool>) -> Result<(usize, usize, SpillMetrics), JoinError> {
    let directory = SpillDirectory::new(std::env::temp_dir(), None)?;
    let join = HashJoin::by_names(keys.schema(), keys.schema(), &[("key", "key")], JoinType::Full)?
        .with_memory(pool.clone())
        .with_spill(directory);
    let mut build = join.build();
    for batch in 0..BUILD_BATCHES {
        build.push(keys.batch(batch, 1))?;
    }
    let table = Arc::new(build.finish()?);
    let mut prober = Prober::new(table.clone());
    let mut rows = 0;
    for batch in 0..PROBE_BATCHES {
        prober.probe(keys.batch(batch, 7))?;
        while let Some(output) = prober.next_output()? {
            rows += output.num_rows();
        }
    }
    let mut final_phase = prober.end()?.expect("a full join shows rows without a match");
    while let Some(output) = prober.next_output()? {
        rows += output.num_rows();
    }
    drop(prober);
    while let Some(output) = final_phase.next_output()? {
        rows += output.num_rows();
    }
    Ok((rows, table.peak_memory_bytes(), table.spill_metrics()))
}

/// One test, so that its joins run one after the other in a process of their own.
#[test]
fn joins_take_what_they_are_charged_with() {
    workahead_machine::allocator::give_back_what_is_freed();
    let mut wrong = Vec::new();
    for keys in [Keys::Numbers, Keys::Texts, Keys::Hot] {
        let mut expected = None;
        for limit in [Some(10 << 20), Some(24 << 20), Some(96 << 20), None] {
            let pool = limit.map_or(Pool::unlimited(), Pool::of);
            let (result, growth) = weighed(|| joined(keys, pool));
            let (rows, charged, spilled) = result.unwrap();
            assert_eq!(rows, *expected.get_or_insert(rows), "{keys:?} {limit:?}");
            assert!(charged <= limit.unwrap_or(usize::MAX), "{keys:?} {limit:?}: {charged}");
            let small = limit.is_some_and(|limit| limit < 64 << 20);
            assert!(if small { spilled.files > 0 } else { limit.is_some() || spilled.files == 0 });
            let bound = charged / 10 * 11 + SLACK_BYTES;
            println!("{keys:?} {limit:?}: {rows} rows, {charged} charged, {growth:?}, {spilled:?}");
            let peak_bytes = growth.peak_bytes.unwrap_or(growth.stays_bytes);
            if peak_bytes > bound {
                wrong.push(format!("{keys:?} {limit:?}: {growth:?} of {bound}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
