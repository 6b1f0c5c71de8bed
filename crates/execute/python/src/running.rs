//! Work in threads of its own, and what has come out of it so far.
//!
//! ```text
//! driver ─┬─ batches ──► a bounded channel ──► reader
//!         └─ or a closure that makes them ──► reader, which calls it
//! ```
//!
//! The channel holds a few batches: a slow reader slows the work down. With one thread the reader's
//! own does the work, and the driver only feeds it: a batch is then in the reader's cache, and it
//! reuses the memory of the one before. None of these threads is
//! attached to Python; producers in Python attach when they are called, and never on the reader's
//! thread, where Ctrl-C would be theirs.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use crate::errors::Error;

/// How long stopping waits for the threads: one may be inside a slow producer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does the work, giving batches to the driver.
type Run = dyn FnOnce(&Driver) -> Result<(), Error> + Send;

/// Work for a thread of its own.
pub struct Work {
    /// Batches that may wait for a reader.
    pub waiting: usize,
    /// The work itself.
    pub run: Box<Run>,
}

/// The outcome of waiting.
pub enum Waited {
    /// Rows of the result.
    Batch(RecordBatch),
    /// Nothing yet.
    Longer,
    /// There are no more.
    End,
}

/// Work that the reader's thread does: a bounded piece at each call, which waits at most the given
/// time, detached from Python.
pub type Rest = Box<dyn FnMut(Duration) -> Result<Waited, Error> + Send>;

/// What a driver gives.
enum Output {
    Batch(RecordBatch),
    Rest(Rest),
}

/// Where batches come from.
enum Source {
    Driver(Receiver<Result<Output, Error>>),
    Here(Rest),
}

/// The threads, and their output.
pub(crate) struct Running {
    source: Option<Source>,
    stop: Arc<AtomicBool>,
    notes: Notes,
    /// Closed when the driver has let go of everything.
    ended: Mutex<Receiver<()>>,
}

impl Running {
    /// Starts the driver's thread.
    pub(crate) fn start(work: Work) -> Result<Self, Error> {
        let (sender, outputs) = sync_channel(work.waiting);
        let (ending, ended) = sync_channel::<()>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let notes = Notes::default();
        let driver = Driver { sender, stop: stop.clone(), notes: notes.clone() };
        thread::Builder::new()
            .name("workahead".to_owned())
            .spawn(move || {
                driver.drive(work);
                drop(ending);
            })
            .map_err(Error::Thread)?;
        let source = Some(Source::Driver(outputs));
        Ok(Self { source, stop, notes, ended: Mutex::new(ended) })
    }

    /// Waits for the next batch, at most this long. To be called detached from Python.
    pub(crate) fn wait(&mut self, at_most: Duration) -> Result<Waited, Error> {
        let outputs = match &mut self.source {
            None => return Err(Error::Stopped),
            Some(Source::Driver(outputs)) => outputs,
            Some(Source::Here(rest)) => return guarded(|| rest(at_most)),
        };
        match outputs.recv_timeout(at_most) {
            Ok(Ok(Output::Batch(batch))) => Ok(Waited::Batch(batch)),
            Ok(Ok(Output::Rest(rest))) => {
                self.source = Some(Source::Here(rest));
                Ok(Waited::Longer)
            }
            Ok(Err(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => Ok(Waited::Longer),
            Err(RecvTimeoutError::Disconnected) => Ok(Waited::End),
        }
    }

    /// Facts of the work so far, as JSON.
    pub(crate) fn facts(&self) -> Option<String> {
        self.notes.get()
    }

    /// Ends the threads at their next batch, and waits for that. To be called detached.
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

impl Drop for Running {
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
    let _ = ended.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(PATIENCE);
}

/// The thread that does the work, or starts and joins those that do.
pub struct Driver {
    sender: SyncSender<Result<Output, Error>>,
    stop: Arc<AtomicBool>,
    notes: Notes,
}

impl Driver {
    fn drive(self, work: Work) {
        match guarded(|| (work.run)(&self)) {
            Ok(()) | Err(Error::Stopped) => {}
            // The reader may be gone.
            Err(error) => drop(self.sender.send(Err(error))),
        }
    }

    /// Whether the reader was closed.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Gives a batch to the reader, once there is room.
    ///
    /// # Errors
    /// When the reader was closed.
    pub fn send(&self, batch: RecordBatch) -> Result<(), Error> {
        self.give(Output::Batch(batch))
    }

    /// Leaves it to the reader to make the rest.
    ///
    /// # Errors
    /// When the reader was closed.
    pub fn hand_over(&self, rest: Rest) -> Result<(), Error> {
        self.give(Output::Rest(rest))
    }

    fn give(&self, output: Output) -> Result<(), Error> {
        self.sender.send(Ok(output)).map_err(|_| Error::Stopped)
    }

    /// Facts of the work so far.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }
}

/// Facts of the work so far, as a JSON object.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Option<String>>>);

impl Notes {
    /// Replaces the facts.
    pub fn set(&self, facts: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }

    fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A panic is an error like others: no C library can be unwound through.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|panic| Err(Error::Defect(words(panic.as_ref()))))
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
