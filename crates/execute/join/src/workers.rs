//! Probes on several threads: each takes batches from its worker until there are none.
//!
//! A worker reads batches and consumes outputs: row groups of a file, a channel, slices of memory.
//! Workers share their source (an atomic counter is enough), so that a slow thread takes fewer
//! batches and none waits (morsels: Leis, Boncz, Kemper, Neumann, SIGMOD 2014).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::thread;

use arrow_array::RecordBatch;

use crate::outputs::{OutputMode, ProbePhase};
use crate::{FinalPhase, JoinError, JoinTable, ProbeMetrics, Progress};

/// The input and output of one thread.
pub trait Worker: Send {
    /// Errors of the input, the output and the join.
    type Error: From<JoinError> + Send;

    /// The next probe batch, or `None` at the end.
    ///
    /// # Errors
    /// If it can't be read.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Self::Error>;

    /// Consumes a batch of joined rows.
    ///
    /// # Errors
    /// If it can't be stored.
    fn take(&mut self, output: RecordBatch) -> Result<(), Self::Error>;

    /// Called once, after the last output, on the worker's thread.
    ///
    /// # Errors
    /// If the output can't be completed.
    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether only the number of rows is wanted: then [`take`](Self::take) is never called.
    fn counts_only(&self) -> bool {
        false
    }
}

/// Runs each worker on a thread of its own and returns the workers and the metrics.
///
/// # Errors
/// The first error of a worker; the others stop at their next batch.
///
/// # Panics
/// If a worker panics.
pub fn run<W: Worker>(
    table: &Arc<JoinTable>,
    workers: Vec<W>,
) -> Result<(Vec<W>, ProbeMetrics), W::Error> {
    let count = workers.len();
    let group = &WorkerGroup::of(count);
    table.expect_probers(count.max(1));
    let results = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(count);
        for mut worker in workers {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                let mut guard = StopOnFailure { group, finished: false };
                let metrics = run_worker(table, &mut worker, group);
                guard.finished = metrics.is_ok();
                // One that was stopped ends here: others may wait for what it has.
                metrics.map(|metrics| (!group.stops()).then_some((worker, metrics)))
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    group.stop.store(true, Ordering::Relaxed);
                    return vec![Err(JoinError::Threads { threads: count, source }.into())];
                }
            }
        }
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect::<Vec<_>>()
    });
    let mut finished = Vec::with_capacity(count);
    let mut total = ProbeMetrics::default();
    for result in results {
        let Some((worker, metrics)) = result? else { continue };
        total = total.plus(metrics);
        finished.push(worker);
    }
    Ok((finished, total))
}

/// State shared by the workers.
struct WorkerGroup {
    count: usize,
    stop: AtomicBool,
    /// Shares of a spilling join's final phase, split by the last worker to end its probes.
    shares: Mutex<Option<Vec<FinalPhase>>>,
    ready: Condvar,
}

impl WorkerGroup {
    fn of(count: usize) -> Self {
        let (stop, ready) = (AtomicBool::new(false), Condvar::new());
        Self { count, stop, shares: Mutex::new(None), ready }
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn share_out(&self, final_phase: FinalPhase) {
        let shares = Some(final_phase.split(self.count));
        *self.shares.lock().unwrap_or_else(PoisonError::into_inner) = shares;
        self.ready.notify_all();
    }

    /// One worker's share. `None` if another failed.
    fn share(&self) -> Option<FinalPhase> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.stops() {
            if let Some(shares) = &mut *shares {
                return shares.pop();
            }
            shares = self.ready.wait(shares).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

/// Stops the others if a worker fails or panics.
struct StopOnFailure<'a> {
    group: &'a WorkerGroup,
    finished: bool,
}

impl Drop for StopOnFailure<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // Under the lock, so that no worker is between its check and its wait.
            let _shares = self.group.shares.lock();
            self.group.stop.store(true, Ordering::Relaxed);
            self.group.ready.notify_all();
        }
    }
}

fn run_worker<W: Worker>(
    table: &Arc<JoinTable>,
    worker: &mut W,
    group: &WorkerGroup,
) -> Result<ProbeMetrics, W::Error> {
    let mode = if worker.counts_only() { OutputMode::Count } else { OutputMode::Rows };
    let mut phase = ProbePhase::new(table, mode);
    // A key with very many rows makes very many outputs of one batch: stop between them too.
    while !group.stops() {
        match phase.advance(|| worker.next_batch().map(Poll::Ready))? {
            Progress::Output(output) => worker.take(output)?,
            Progress::Working => {}
            Progress::Done => break,
        }
    }
    let mut metrics = phase.metrics();
    if group.stops() {
        return Ok(metrics);
    }
    let final_phase = phase.into_final_phase().map(|final_phase| *final_phase);
    let shared = table.spills() && table.ordered.is_none();
    let final_phase = if shared { own_share(final_phase, worker, group)? } else { final_phase };
    if let Some(final_phase) = final_phase {
        metrics = metrics.plus(run_final_phase(final_phase, worker, group)?);
    }
    if !group.stops() {
        worker.finish()?;
    }
    Ok(metrics)
}

/// A worker's share of the final phase; the last to end its probes splits it.
fn own_share<W: Worker>(
    final_phase: Option<FinalPhase>,
    worker: &mut W,
    group: &WorkerGroup,
) -> Result<Option<FinalPhase>, W::Error> {
    if let Some(mut final_phase) = final_phase {
        // Frees the in-memory table first: the shares are of the free memory.
        while !worker.counts_only() && !group.stops() {
            let Some(output) = final_phase.next_unmatched()? else { break };
            worker.take(output)?;
        }
        group.share_out(final_phase);
    }
    Ok(group.share())
}

fn run_final_phase<W: Worker>(
    mut final_phase: FinalPhase,
    worker: &mut W,
    group: &WorkerGroup,
) -> Result<ProbeMetrics, W::Error> {
    if worker.counts_only() {
        final_phase.count_only()?;
    }
    while !group.stops() {
        match final_phase.advance()? {
            Progress::Output(output) if !worker.counts_only() => worker.take(output)?,
            Progress::Output(_) | Progress::Working => {}
            Progress::Done => break,
        }
    }
    Ok(final_phase.metrics())
}
