//! The plan of a join, and its threads from the build side to the last row.
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
use crate::driver::{Driver, Work};
use crate::errors::Error;
use crate::facts::join_facts;
use crate::output_naming::OutputNaming;
use crate::probe_feed::{self, ReaderProbe};

/// Batches per thread that are queued for the reader.
const QUEUED: usize = 2;
/// Rows of a probe batch: enough to hand it out cheaply, few enough that threads end together.
const PROBE_ROWS: usize = 1 << 16;
/// Rows of a build batch without a memory limit.
const BUILD_ROWS: usize = 1 << 20;
/// This fraction of a limit (1/4) is for queued batches and the allocator's overhead.
const OVERHEAD_SHARE: usize = 4;

/// The rows of an input.
pub(crate) type Batches = Box<dyn RecordBatchReader + Send>;

/// Where a join's table comes from.
pub(crate) enum TableSource {
    /// It is built, of these rows.
    Build(Box<HashJoin>, Batches),
    /// It is an index's.
    Index(Arc<JoinTable>),
}

/// Everything a join needs to start.
pub(crate) struct Plan {
    pub(crate) table: TableSource,
    pub(crate) build_side: Side,
    pub(crate) naming: OutputNaming,
    pub(crate) probe: Batches,
    pub(crate) pool: Arc<Pool>,
    pub(crate) threads: usize,
    pub(crate) ordered: bool,
}

impl Plan {
    /// The join as work for a driver.
    pub(crate) fn work(self) -> Work {
        let queued = self.threads * QUEUED;
        Work { queued, run: Box::new(move |driver| join(driver, self)) }
    }
}

fn join(driver: &Driver, plan: Plan) -> Result<(), Error> {
    let Plan { table, build_side, naming, probe, pool, threads, ordered } = plan;
    let mut overhead = Reservation::new(pool.clone());
    let limit = pool.limit();
    overhead.grow(limit.map_or(0, |limit| limit / OVERHEAD_SHARE)).map_err(limit_error)?;
    let rows = |unlimited| limit.map_or(unlimited, limited_batch_rows);
    let table = match table {
        TableSource::Index(table) => table,
        TableSource::Build(join, build) => {
            let batches = InputBatches::new(build_side, build, rows(BUILD_ROWS));
            Arc::new(build_table(driver, &join, &batches)?)
        }
    };
    if ordered && table.spills() {
        return Err(Error::WrongUse(
            "the order can't be kept because the build side does not fit into memory: leave out \
             maintain_order, or raise memory_limit"
                .to_owned(),
        ));
    }
    driver.facts().set(join_facts(&table, ProbeMetrics::default()));
    let batches = InputBatches::new(build_side.other(), probe, rows(PROBE_ROWS));
    if threads == 1 {
        let (feed, receiver) = probe_feed::channel(limit);
        let (outputs, facts) = (Outputs::new(&table), driver.facts().clone());
        let mut probe = ReaderProbe { table, outputs, receiver, naming, facts, overhead };
        driver.hand_over(Box::new(move |at_most| probe.advance(at_most)))?;
        return feed.send_all(driver, &batches);
    }
    let batches = &batches;
    let worker = |_| ProbeWorker { driver, batches, naming: &naming };
    let workers = (0..threads).map(worker).collect();
    let (_, metrics) = workahead_join::run(&table, workers)?;
    driver.facts().set(join_facts(&table, metrics));
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

/// The next batch; an error if the reader was closed.
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
struct ProbeWorker<'a> {
    driver: &'a Driver,
    batches: &'a InputBatches,
    naming: &'a OutputNaming,
}

impl Worker for ProbeWorker<'_> {
    type Error = Error;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        next_of(self.driver, self.batches)
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), Error> {
        let batch = self.naming.batch(&output)?;
        self.driver.send(batch)
    }
}
