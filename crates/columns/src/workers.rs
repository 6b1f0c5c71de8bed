//! Probing by many threads: each takes batches from its worker until there are none.
//!
//! A worker is where batches come from and outputs go: row groups of a file, a channel, slices of
//! memory. Workers share their source (an atomic counter is enough), so that a slow thread takes
//! fewer morsels and none waits (Leis, Boncz, Kemper, Neumann, SIGMOD 2014).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use arrow_array::RecordBatch;

use crate::{JoinError, JoinTable, ProbeMetrics, Prober, Remaining};

/// One thread's source and destination.
pub trait Worker: Send {
    /// What can go wrong in either, and in the join.
    type Error: From<JoinError> + Send;

    /// The next probe batch, or `None` when there are no more.
    ///
    /// # Errors
    /// When it can't be read.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, Self::Error>;

    /// Takes a batch of joined rows.
    ///
    /// # Errors
    /// When it can't be stored.
    fn take(&mut self, output: RecordBatch) -> Result<(), Self::Error>;

    /// Called once, after the last output, on the worker's thread.
    ///
    /// # Errors
    /// When what was taken can't be completed.
    fn finish(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether only the number of rows is wanted: then [`take`](Self::take) is never called.
    fn counts_only(&self) -> bool {
        false
    }
}

/// Runs each worker on a thread of its own, and gives them back with what was done.
///
/// # Errors
/// The first error of a worker; the others stop at their next batch.
///
/// # Panics
/// When a worker does.
pub fn run<W: Worker>(
    table: &Arc<JoinTable>,
    workers: Vec<W>,
) -> Result<(Vec<W>, ProbeMetrics), W::Error> {
    let stop = &AtomicBool::new(false);
    let count = workers.len();
    table.expect_probers(count.max(1));
    let results = thread::scope(|scope| {
        let mut threads = Vec::with_capacity(count);
        for mut worker in workers {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || {
                let metrics = work(Prober::new(table.clone()), &mut worker, stop);
                if metrics.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                metrics.map(|metrics| (worker, metrics))
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    stop.store(true, Ordering::Relaxed);
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
        let (worker, metrics) = result?;
        total = total.plus(metrics);
        finished.push(worker);
    }
    Ok((finished, total))
}

fn work<W: Worker>(
    mut prober: Prober,
    worker: &mut W,
    stop: &AtomicBool,
) -> Result<ProbeMetrics, W::Error> {
    let counts_only = worker.counts_only();
    while !stop.load(Ordering::Relaxed) {
        let Some(batch) = worker.next_batch()? else { break };
        if counts_only {
            prober.count(&batch)?;
            continue;
        }
        prober.probe(batch)?;
        take_outputs(&mut prober, worker, stop)?;
    }
    let remaining = prober.end()?;
    let mut metrics = prober.metrics();
    if !counts_only {
        take_outputs(&mut prober, worker, stop)?;
    }
    match remaining {
        Some(remaining) if counts_only => metrics.output_rows += remaining.count(),
        Some(remaining) => metrics.output_rows += take_remaining(remaining, worker, stop)?,
        None => {}
    }
    if !stop.load(Ordering::Relaxed) {
        worker.finish()?;
    }
    Ok(metrics)
}

fn take_outputs<W: Worker>(
    prober: &mut Prober,
    worker: &mut W,
    stop: &AtomicBool,
) -> Result<(), W::Error> {
    // A key with very many rows makes very many outputs of one batch: stop between them too.
    while !stop.load(Ordering::Relaxed) {
        let Some(output) = prober.next_output()? else { break };
        worker.take(output)?;
    }
    Ok(())
}

/// Gives the number of rows.
fn take_remaining<W: Worker>(
    mut remaining: Remaining,
    worker: &mut W,
    stop: &AtomicBool,
) -> Result<u64, W::Error> {
    let mut rows = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some(output) = remaining.next_output()? else { break };
        rows += output.num_rows() as u64;
        worker.take(output)?;
    }
    Ok(rows)
}
