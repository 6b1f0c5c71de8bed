//! Runs the join: reads and builds, probes, writes, and keeps what each took.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use workahead_columns::{HashJoin, JoinError, JoinTable, JoinType, Strategy};
use workahead_workloads::row_groups::RowGroupFile;

use super::input::Input;
use super::limit::Bounds;
use super::probing::{Output, Probing};
use super::report::{Facts, Phases};
use super::sides::Sides;
use super::units::{Units, Watch};
use crate::progress;

/// Rows read at a time into the table: few batches to join up later.
const BUILD_BATCH_ROWS: usize = 1 << 16;
/// Rows probed at a time: their keys and hits stay in L2.
const PROBE_BATCH_ROWS: usize = 8192;

/// What is fixed before the join runs.
pub(crate) struct Outcome<'a> {
    pub(crate) threads: NonZero<usize>,
    pub(crate) out: Option<PathBuf>,
    pub(crate) join_type: JoinType,
    pub(crate) asked: Strategy,
    pub(crate) sides: Sides,
    pub(crate) start: Instant,
    pub(crate) bounds: &'a Bounds,
}

impl Outcome<'_> {
    /// Joins, and says what came of it.
    pub(crate) fn joined(
        self,
        join: &HashJoin,
        build: &Input,
        probe: &Input,
        interrupted: &'static AtomicBool,
    ) -> anyhow::Result<Facts> {
        // First of all: a name that can't be written is known before any work is done.
        let out = self.out.as_deref();
        let file = out.map(|path| RowGroupFile::create(path, join.schema())).transpose()?;
        let output = file.map(Output::new);
        let bar = progress::bar(build.rows() + probe.rows(), "rows");
        let watch = Watch { bar: &bar, interrupted };
        let mut phases = Phases::default();

        bar.set_message("build");
        let reading = Instant::now();
        let batches = self.read(build, watch)?;
        phases.read += reading.elapsed();
        let table = Arc::new(build_table(join, batches, watch)?);
        phases.build = table.build_time();

        bar.set_message("probe");
        let units = Units::new(probe, self.threads.get(), PROBE_BATCH_ROWS, watch);
        let workers = self.threads.get().min(units.len()).max(1);
        let crew = (0..workers).map(|_| Probing::new(units.cursor(), output.as_ref(), watch));
        let (crew, metrics) = workahead_columns::run(&table, crew.collect())?;
        let shared = |time: Duration| time / workers as u32;
        for worker in crew {
            phases.read += shared(worker.read_time);
            phases.write += shared(worker.write_time);
        }
        phases.probe = shared(metrics.lookup_time);
        phases.gather = shared(metrics.gather_time);
        watch.check()?;
        let publishing = Instant::now();
        let out_bytes = output.map(|output| output.into_file().publish()).transpose()?;
        phases.write += publishing.elapsed();
        bar.finish_and_clear();
        let bounds = self.bounds;
        let facts = Facts::new(self, build, (&table, metrics), phases, out_bytes);
        // Its memory makes room for that of the limit's sample.
        drop(table);
        Ok(facts.probed(probe, workers, bounds))
    }

    /// Reads a whole file by all threads, its batches in the file's order.
    fn read(&self, input: &Input, watch: Watch<'_>) -> anyhow::Result<Vec<RecordBatch>> {
        let units = Units::new(input, self.threads.get(), BUILD_BATCH_ROWS, watch);
        let batches = Mutex::new(Vec::new());
        let read = || {
            let mut cursor = units.cursor();
            let mut read = Vec::new();
            while let Some(batch) = cursor.next_batch().inspect_err(|_| units.stop())? {
                read.push(batch);
            }
            batches.lock().unwrap_or_else(PoisonError::into_inner).append(&mut read);
            anyhow::Ok(())
        };
        let threads = self.threads.get().min(units.len());
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|_| thread::Builder::new().spawn_scoped(scope, read))
                .collect::<Result<_, _>>()
                .map_err(|source| JoinError::Threads { threads, source })?;
            let mut result = read();
            for other in others {
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                result = result.and(other);
            }
            result
        })?;
        let mut batches = batches.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Stable: the batches of a part were read in order.
        batches.sort_by_key(|(unit, _)| *unit);
        Ok(batches.into_iter().map(|(_, batch)| batch).collect())
    }
}

fn build_table(
    join: &HashJoin,
    batches: Vec<RecordBatch>,
    watch: Watch<'_>,
) -> anyhow::Result<JoinTable> {
    let mut build = join.build();
    for batch in batches {
        watch.check()?;
        build.push(batch)?;
    }
    Ok(build.finish()?)
}
