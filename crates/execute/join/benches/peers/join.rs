//! The join as a user would write it: build from batches, probe on the requested number of threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use workahead_join::{Caches, HashJoin, JoinError, JoinTable, JoinType, Side, Worker};
use workahead_machine::Machine;
use workahead_machine::pages::Pool;

use crate::data::{Sides, column_sum};

/// The use of the joined rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Count, and sums of the two payloads.
    Sums,
    /// All columns delivered as batches, counted and dropped.
    Columns,
    /// As `Columns`, and every column summed.
    Checked,
}

/// The result, and where the time went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) count: u64,
    /// By column name.
    pub(crate) sums: Vec<(String, i64)>,
    /// Time by phase, summed over threads.
    pub(crate) phases: Vec<(&'static str, Duration)>,
    /// The table's layout, and the reason for it.
    pub(crate) choice: String,
}

/// Builds, probes, and consumes what comes out.
pub(crate) fn run(sides: &Sides, threads: usize, form: Form) -> Outcome {
    let start = Instant::now();
    let mut build = described(sides, form).with_probers(threads).build();
    for batch in &sides.build {
        build.push(batch.clone()).expect("a batch of the announced columns");
    }
    let pushed = start.elapsed();
    let table = Arc::new(build.finish().expect("memory for the table"));
    let finished = start.elapsed();

    let next = AtomicUsize::new(0);
    let columns = summed(&table, form);
    let consumer = || Consumer {
        batches: &sides.probe,
        next: &next,
        columns: &columns,
        rows: 0,
        sums: vec![0; columns.len()],
        consuming: Duration::ZERO,
    };
    let workers = (0..threads).map(|_| consumer()).collect();
    let (workers, metrics) = workahead_join::run(&table, workers).expect("a join");
    let ended = start.elapsed();

    let sum_of =
        |place: usize| workers.iter().fold(0_i64, |sum, w| sum.wrapping_add(w.sums[place]));
    let schema = table.spec().schema();
    let name_of = |column: usize| schema.field(column).name().clone();
    let sums = columns.iter().enumerate().map(|(place, column)| (name_of(*column), sum_of(place)));
    let sums = sums.collect();
    let choice = format!("{}: {}", table.layout_choice().layout, table.layout_choice().why);
    drop(table);
    Outcome {
        count: workers.iter().map(|worker| worker.rows).sum(),
        sums,
        phases: vec![
            ("push", pushed),
            ("finish", finished - pushed),
            ("lookup", metrics.lookup_time),
            ("gather", metrics.gather_time),
            ("consume", workers.iter().map(|worker| worker.consuming).sum()),
            ("free", start.elapsed() - ended),
        ],
        choice,
    }
}

/// As SQL's `USING`: keys once, `bv`, `pv`; for the sums only these two.
fn described(sides: &Sides, form: Form) -> HashJoin {
    let (build, probe) = (sides.build_schema(), sides.probe_schema());
    let keys = sides.keys();
    let pairs: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), key.as_str())).collect();
    let of_build = keys.len()..build.fields().len();
    let of_probe = (0..probe.fields().len()).map(|column| build.fields().len() + column);
    let skipped = if form == Form::Sums { keys.len() } else { 0 };
    let columns = of_build.chain(of_probe.skip(skipped)).collect();
    HashJoin::by_names(build, probe, &pairs, JoinType::Inner)
        .and_then(|join| join.with_projection(columns))
        .expect("keys that can be joined")
        .with_build_side(Side::Left)
        // The build side's keys are not among the columns, so no name is duplicated.
        .with_suffix("")
        .with_caches(*CACHES)
        .with_page_pool(POOL.clone())
}

/// Which columns of the output are added up.
fn summed(table: &JoinTable, form: Form) -> Vec<usize> {
    let schema = table.spec().schema();
    let columns = if form == Form::Columns { 0 } else { schema.fields().len() };
    (0..columns).collect()
}

/// Tables and columns stay with the process from one join to the next, as in the peers' allocators.
static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::keeping(4 << 30));

/// Read once, as a command does.
static CACHES: LazyLock<Caches> =
    LazyLock::new(|| Caches::reported(&Machine::here()).unwrap_or(Caches::ASSUMED));

/// One thread: takes the next batch, and counts and sums up its output.
struct Consumer<'a> {
    batches: &'a [RecordBatch],
    next: &'a AtomicUsize,
    columns: &'a [usize],
    rows: u64,
    sums: Vec<i64>,
    consuming: Duration,
}

impl Worker for Consumer<'_> {
    type Error = JoinError;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let batch = self.batches.get(self.next.fetch_add(1, Ordering::Relaxed));
        Ok(batch.cloned())
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), JoinError> {
        let start = Instant::now();
        self.rows += output.num_rows() as u64;
        for (sum, column) in self.sums.iter_mut().zip(self.columns) {
            *sum = sum.wrapping_add(column_sum(output.column(*column)));
        }
        drop(output);
        self.consuming += start.elapsed();
        Ok(())
    }
}
