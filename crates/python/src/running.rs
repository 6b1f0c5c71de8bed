//! A join at work: its threads, and what has come out so far.
//!
//! ```text
//! driver ── build side ──► table ──┬─ worker ──┐
//!                                  └─ worker ──┴─► a bounded channel ──► who wants the next batch
//! ```
//!
//! The channel holds a few batches: who reads slowly slows the join down, and neither the probe
//! side nor the result is ever in memory as a whole. None of these threads is attached to Python;
//! producers in Python attach when they are called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use pyo3::prelude::*;
use workahead_columns::{
    HashJoin, JoinTable, MemoryPool, Pool, ProbeMetrics, Reservation, Side, Worker,
};

use crate::errors::Error;
use crate::facts::Facts;
use crate::morsels::Morsels;
use crate::presented::Presented;

/// Batches that wait for a reader, for each thread.
const WAITING: usize = 2;
/// Rows of a probe morsel: enough that taking one costs nothing, few enough that threads end
/// together.
const PROBE_ROWS: usize = 1 << 16;
/// Rows of a build morsel where memory has no limit.
const BUILD_ROWS: usize = 1 << 20;
/// Where it has: a row for so many bytes of the limit, within bounds.
const LIMITED_ROW_BYTES: usize = 4 << 10;
const LIMITED_ROWS: (usize, usize) = (1 << 10, 1 << 14);
/// Of a limit, the share for batches that wait and for what the allocator holds beside what is
/// asked of it.
const BESIDE_SHARE: usize = 4;
/// Threads that were told to stop are waited for so long: one may be in a producer that takes its
/// time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Everything a join needs to begin.
pub(crate) struct Plan {
    pub(crate) join: HashJoin,
    pub(crate) build_side: Side,
    pub(crate) presented: Presented,
    pub(crate) build: Box<dyn RecordBatchReader + Send>,
    pub(crate) probe: Box<dyn RecordBatchReader + Send>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) threads: usize,
    pub(crate) ordered: bool,
}

/// Rows of batches that are short enough for a limit of so many bytes.
pub(crate) fn limited_rows(limit: usize) -> usize {
    let (least, most) = LIMITED_ROWS;
    (limit / LIMITED_ROW_BYTES).clamp(least, most)
}

/// What waiting came to.
pub(crate) enum Waited {
    Batch(RecordBatch),
    /// Nothing yet.
    Longer,
    End,
}

/// The threads, and their output.
pub(crate) struct Running {
    outputs: Option<Receiver<Result<RecordBatch, Error>>>,
    stop: Arc<AtomicBool>,
    facts: Arc<Mutex<Option<Facts>>>,
    /// Closed when the driver has let go of everything.
    ended: Mutex<Receiver<()>>,
}

impl Running {
    /// Begins.
    pub(crate) fn start(plan: Plan) -> Result<Self, Error> {
        let (sender, outputs) = sync_channel(plan.threads * WAITING);
        let (ending, ended) = sync_channel::<()>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let facts = Arc::default();
        let driver = Driver { sender, stop: stop.clone(), facts: Arc::clone(&facts) };
        thread::Builder::new()
            .name("workahead".to_owned())
            .spawn(move || {
                driver.drive(plan);
                drop(ending);
            })
            .map_err(Error::Thread)?;
        Ok(Self { outputs: Some(outputs), stop, facts, ended: Mutex::new(ended) })
    }

    /// Waits for the next batch, not longer than so. To be called detached from Python.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Result<Waited, Error> {
        let Some(outputs) = &self.outputs else { return Err(Error::Stopped) };
        match outputs.recv_timeout(at_most) {
            Ok(output) => output.map(Waited::Batch),
            Err(RecvTimeoutError::Timeout) => Ok(Waited::Longer),
            Err(RecvTimeoutError::Disconnected) => Ok(Waited::End),
        }
    }

    /// What is known of the join so far.
    pub(crate) fn facts(&self) -> Option<Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the threads at their next batch, and waits for that. To be called detached.
    pub(crate) fn stop(&mut self) {
        self.tell();
        wait_for_the_end(&self.ended);
    }

    fn tell(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that waits for room in the channel is told by this.
        self.outputs = None;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tell();
        // Whoever drops this may be attached to Python, and a producer waits for just that. No
        // interpreter, no waiting: it is being taken down.
        let ended = &self.ended;
        Python::try_attach(|py| py.detach(|| wait_for_the_end(ended)));
    }
}

/// A driver that is done closes its side: to be told nothing is the answer.
fn wait_for_the_end(ended: &Mutex<Receiver<()>>) {
    let _ = ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE);
}

/// The thread that begins and ends the others.
struct Driver {
    sender: SyncSender<Result<RecordBatch, Error>>,
    stop: Arc<AtomicBool>,
    facts: Arc<Mutex<Option<Facts>>>,
}

impl Driver {
    fn drive(self, plan: Plan) {
        let done = catch_unwind(AssertUnwindSafe(|| self.join(plan)));
        let done = done.unwrap_or_else(|panic| Err(Error::Defect(words(panic.as_ref()))));
        match done {
            Ok(()) | Err(Error::Stopped) => {}
            // Nobody may be there to hear it.
            Err(error) => drop(self.sender.send(Err(error))),
        }
    }

    fn join(&self, plan: Plan) -> Result<(), Error> {
        let Plan { join, build_side, presented, build, probe, pool, threads, ordered } = plan;
        let mut beside = Reservation::new(pool.clone());
        let limit = pool.limit();
        beside.grow(limit.map_or(0, |limit| limit / BESIDE_SHARE)).map_err(limit_error)?;
        let rows = |unlimited| limit.map_or(unlimited, limited_rows);
        let build_morsels = Morsels::new(build_side, build, rows(BUILD_ROWS));
        let table = Arc::new(self.build(&join, &build_morsels)?);
        if ordered && table.spills() {
            return Err(Error::WrongUse(
                "an order can't be kept where memory is too small for the build side: leave \
                 maintain_order out, or raise memory_limit"
                    .to_owned(),
            ));
        }
        self.note(&table, ProbeMetrics::default());
        let probe_rows = rows(PROBE_ROWS);
        let morsels = &Morsels::new(build_side.other(), probe, probe_rows);
        let worker = |_| Probing { driver: self, morsels, presented: &presented };
        let workers = (0..threads).map(worker).collect();
        let (_, metrics) = workahead_columns::run(&table, workers)?;
        self.note(&table, metrics);
        Ok(())
    }

    fn build(&self, join: &HashJoin, morsels: &Morsels) -> Result<JoinTable, Error> {
        let mut build = join.build();
        while let Some(batch) = self.next_of(morsels)? {
            build.push(batch)?;
        }
        Ok(build.finish()?)
    }

    fn next_of(&self, morsels: &Morsels) -> Result<Option<RecordBatch>, Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        morsels.next()
    }

    fn note(&self, table: &JoinTable, metrics: ProbeMetrics) {
        let facts = Some(Facts::new(table, metrics));
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = facts;
    }
}

fn limit_error(error: workahead_columns::MemoryError) -> Error {
    Error::Join(error.into())
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// One probing thread.
struct Probing<'a> {
    driver: &'a Driver,
    morsels: &'a Morsels,
    presented: &'a Presented,
}

impl Worker for Probing<'_> {
    type Error = Error;

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        self.driver.next_of(self.morsels)
    }

    fn take(&mut self, output: RecordBatch) -> Result<(), Error> {
        let batch = self.presented.batch(&output)?;
        self.driver.sender.send(Ok(batch)).map_err(|_| Error::Stopped)
    }
}
