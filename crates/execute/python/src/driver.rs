//! Work in threads of its own, and the channel of its output.
//!
//! ```text
//! driver ─┬─ batches ──► a bounded channel ──► reader
//!         └─ or a closure that computes them ──► reader, which calls it
//! ```
//!
//! The channel holds a few batches: a slow reader slows the work down. With one thread the reader's
//! thread does the work, and the driver only feeds it: a batch is then in the reader's cache, and
//! reuses the memory of the previous one. None of these threads is attached to Python. Producers in
//! Python attach when they are called, and never on the reader's thread, where they would receive
//! Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use pyo3::prelude::*;
use workahead_machine::guarded::panic_text;

use crate::errors::Error;

/// The most time that stopping waits for the threads: one may be inside a slow producer.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Does the work, and sends batches through the driver.
type Run = dyn FnOnce(&Driver) -> Result<(), Error> + Send;

/// Work for a thread of its own.
pub struct Work {
    /// Batches that may be queued for the reader.
    pub queued: usize,
    /// The work itself.
    pub run: Box<Run>,
}

/// The outcome of waiting.
pub enum WaitOutcome {
    /// Rows of the result.
    Batch(RecordBatch),
    /// None yet.
    Pending,
    /// The end of the result.
    End,
}

/// Work for the reader's thread: a bounded piece per call, which waits at most the given time,
/// detached from Python.
pub type ReaderWork = Box<dyn FnMut(Duration) -> Result<WaitOutcome, Error> + Send>;

/// The output of a driver.
enum Output {
    Batch(RecordBatch),
    ReaderWork(ReaderWork),
}

/// The source of batches.
enum Source {
    Driver(Receiver<Result<Output, Error>>),
    Reader(ReaderWork),
}

/// The threads of some work, and their output.
pub(crate) struct WorkHandle {
    source: Option<Source>,
    stop: Arc<AtomicBool>,
    facts: SharedFacts,
    /// Closed when the driver has dropped everything.
    ended: Mutex<Receiver<()>>,
}

impl WorkHandle {
    /// Starts the driver's thread.
    pub(crate) fn start(work: Work) -> Result<Self, Error> {
        let (sender, outputs) = sync_channel(work.queued);
        let (ending, ended) = sync_channel::<()>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let facts = SharedFacts::default();
        let driver = Driver { sender, stop: stop.clone(), facts: facts.clone() };
        thread::Builder::new()
            .name("workahead".to_owned())
            .spawn(move || {
                driver.drive(work);
                drop(ending);
            })
            .map_err(Error::Thread)?;
        let source = Some(Source::Driver(outputs));
        Ok(Self { source, stop, facts, ended: Mutex::new(ended) })
    }

    /// Waits for the next batch, at most this long. Call it detached from Python.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Result<WaitOutcome, Error> {
        let outputs = match &mut self.source {
            None => return Err(Error::Stopped),
            Some(Source::Driver(outputs)) => outputs,
            Some(Source::Reader(work)) => return catch_panic(|| work(at_most)),
        };
        match outputs.recv_timeout(at_most) {
            Ok(Ok(Output::Batch(batch))) => Ok(WaitOutcome::Batch(batch)),
            Ok(Ok(Output::ReaderWork(work))) => {
                self.source = Some(Source::Reader(work));
                Ok(WaitOutcome::Pending)
            }
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => Ok(WaitOutcome::Pending),
            Err(RecvTimeoutError::Disconnected) => Ok(WaitOutcome::End),
        }
    }

    /// Facts of the work so far, as JSON.
    pub(crate) fn facts(&self) -> Option<String> {
        self.facts.get()
    }

    /// Stops the threads at their next batch, and waits for it. Call it detached from Python.
    pub(crate) fn stop(&mut self) {
        self.signal();
        wait_for_the_end(&self.ended);
    }

    fn signal(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Closing the channel wakes a thread that waits for room in it.
        self.source = None;
    }
}

impl Drop for WorkHandle {
    fn drop(&mut self) {
        self.signal();
        // The thread that drops this may be attached to Python, and a producer may wait for the
        // interpreter. Without an interpreter there is no waiting: it is shutting down.
        let ended = &self.ended;
        Python::try_attach(|py| py.detach(|| wait_for_the_end(ended)));
    }
}

/// A driver that has ended closes its side of the channel, which ends the wait.
fn wait_for_the_end(ended: &Mutex<Receiver<()>>) {
    let _ = ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(STOP_TIMEOUT);
}

/// The thread that does the work, or starts and joins the threads that do.
pub struct Driver {
    sender: SyncSender<Result<Output, Error>>,
    stop: Arc<AtomicBool>,
    facts: SharedFacts,
}

impl Driver {
    fn drive(self, work: Work) {
        match catch_panic(|| (work.run)(&self)) {
            Ok(()) | Err(Error::Stopped) => {}
            // The reader may have been dropped.
            Err(error) => drop(self.sender.send(Err(error))),
        }
    }

    /// Whether the reader was closed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sends a batch to the reader; waits while the channel is full.
    ///
    /// # Errors
    /// When the reader was closed.
    pub fn send(&self, batch: RecordBatch) -> Result<(), Error> {
        self.send_output(Output::Batch(batch))
    }

    /// Leaves the rest of the work to the thread of the reader.
    ///
    /// # Errors
    /// When the reader was closed.
    pub fn hand_over(&self, work: ReaderWork) -> Result<(), Error> {
        self.send_output(Output::ReaderWork(work))
    }

    fn send_output(&self, output: Output) -> Result<(), Error> {
        self.sender.send(Ok(output)).map_err(|_| Error::Stopped)
    }

    /// Facts of the work so far.
    #[must_use]
    pub fn facts(&self) -> &SharedFacts {
        &self.facts
    }
}

/// Facts of the work so far, as a JSON object, shared with the reader.
#[derive(Clone, Default)]
pub struct SharedFacts(Arc<Mutex<Option<String>>>);

impl SharedFacts {
    /// Replaces the facts.
    pub fn set(&self, facts: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Turns a panic into an error, since unwinding through a C library is not allowed.
fn catch_panic<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| {
        let text = panic_text(panic.as_ref()).unwrap_or("a panic");
        Err(Error::Defect(text.to_owned()))
    })
}
