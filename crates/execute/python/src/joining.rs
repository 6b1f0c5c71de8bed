//! A join as work: its threads, from the build side to the last row.
//!
//! ```text
//! driver ── build side ──► table ──┬─ worker ──┐
//!                                  └─ worker ──┴─► a bounded channel ──► reader
//! with one thread:          table, probe side ─► a bounded channel ──► reader, which probes
//! ```
//!
//! Neither the probe side nor the result is ever in memory as a whole.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use workahead_join::{
    HashJoin, JoinTable, MemoryPool, Outputs, Pool, ProbeMetrics, Reservation, Side, Worker,
    limited_batch_rows,
};

use crate::batches::InputBatches;
use crate::errors::Error;
use crate::facts;
use crate::feeding::{self, Reading};
use crate::output_naming::OutputNaming;
use crate::running::{Driver, Work};

/// Batches that wait for a reader, for each thread.
const WAITING: usize = 2;
/// Rows of a probe batch: enough that taking one costs nothing, few enough that threads end
/// together.
const PROBE_ROWS: usize = 1 << 16;
/// Rows of a build batch where memory has no limit.
const BUILD_ROWS: usize = 1 << 20;
/// Of a limit, the share for batches that wait and for what the allocator holds beside what is
/// asked of it.
const BESIDE_SHARE: usize = 4;

/// Everything a join needs to start.
pub(crate) struct Plan {
    pub(crate) join: HashJoin,
    pub(crate) build_side: Side,
    pub(crate) naming: OutputNaming,
    pub(crate) build: Box<dyn RecordBatchReader + Send>,
    pub(crate) probe: Box<dyn RecordBatchReader + Send>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) threads: usize,
    pub(crate) ordered: bool,
}

impl Plan {
    /// The join as work for a driver.
    pub(crate) fn work(self) -> Work {
        let waiting = self.threads * WAITING;
        Work { waiting, run: Box::new(move |driver| join(driver, self)) }
    }
}

fn join(driver: &Driver, plan: Plan) -> Result<(), Error> {
    let Plan { join, build_side, naming, build, probe, pool, threads, ordered } = plan;
    let mut beside = Reservation::new(pool.clone());
    let limit = pool.limit();
    beside.grow(limit.map_or(0, |limit| limit / BESIDE_SHARE)).map_err(limit_error)?;
    let rows = |unlimited| limit.map_or(unlimited, limited_batch_rows);
    let build_batches = InputBatches::new(build_side, build, rows(BUILD_ROWS));
    let table = Arc::new(build_table(driver, &join, &build_batches)?);
    if ordered && table.spills() {
        return Err(Error::WrongUse(
            "an order can't be kept where memory is too small for the build side: leave \
             maintain_order out, or raise memory_limit"
                .to_owned(),
        ));
    }
    driver.notes().set(facts::of(&table, ProbeMetrics::default()));
    let batches = InputBatches::new(build_side.other(), probe, rows(PROBE_ROWS));
    if threads == 1 {
        let (feed, fed) = feeding::channel(limit);
        let (outputs, notes) = (Outputs::new(&table), driver.notes().clone());
        let mut reading = Reading { table, outputs, fed, naming, notes, beside };
        driver.hand_over(Box::new(move |at_most| reading.advance(at_most)))?;
        return feed.all(driver, &batches);
    }
    let batches = &batches;
    let worker = |_| Probing { driver, batches, naming: &naming };
    let workers = (0..threads).map(worker).collect();
    let (_, metrics) = workahead_join::run(&table, workers)?;
    driver.notes().set(facts::of(&table, metrics));
    Ok(())
}

fn build_table(
    driver: &Driver,
    join: &HashJoin,
    batches: &InputBatches,
) -> Result<JoinTable, Error> {
    let mut build = join.build();
    while let Some(batch) = next_of(driver, batches)? {
        build.push(batch)?;
    }
    Ok(build.finish()?)
}

/// The next batch, unless the reader was closed.
pub(crate) fn next_of(
    driver: &Driver,
    batches: &InputBatches,
) -> Result<Option<RecordBatch>, Error> {
    if driver.is_stopped() {
        return Err(Error::Stopped);
    }
    batches.next()
}

fn limit_error(error: workahead_join::MemoryError) -> Error {
    Error::Join(error.into())
}

/// One of several probing threads.
struct Probing<'a> {
    driver: &'a Driver,
    batches: &'a InputBatches,
    naming: &'a OutputNaming,
}

impl Worker for Probing<'_> {
    type Error = Error;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        next_of(self.driver, self.batches)
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), Error> {
        let batch = self.naming.batch(&output)?;
        self.driver.send(batch)
    }
}
