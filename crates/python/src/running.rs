//! Work in threads of its own, and what has come out of it so far.
//!
//! ```text
//! driver ── whatever work it is ──► a bounded channel ──► who wants the next batch
//! ```
//!
//! The channel holds a few batches: who reads slowly slows the work down. None of these threads is
//! attached to Python; producers in Python attach when they are called.

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

/// Threads that were told to stop are waited for so long: one may be in a producer that takes its
/// time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Does the work, giving batches to the driver.
type Run = dyn FnOnce(&Driver) -> Result<(), Error> + Send;

/// What is to be done, on a thread of its own.
pub struct Work {
    /// Batches that may wait for a reader.
    pub waiting: usize,
    /// How.
    pub run: Box<Run>,
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
    facts: Arc<Mutex<Option<String>>>,
    /// Closed when the driver has let go of everything.
    ended: Mutex<Receiver<()>>,
}

impl Running {
    /// Begins.
    pub(crate) fn start(work: Work) -> Result<Self, Error> {
        let (sender, outputs) = sync_channel(work.waiting);
        let (ending, ended) = sync_channel::<()>(1);
        let stop = Arc::new(AtomicBool::new(false));
        let facts = Arc::default();
        let driver = Driver { sender, stop: stop.clone(), facts: Arc::clone(&facts) };
        thread::Builder::new()
            .name("workahead".to_owned())
            .spawn(move || {
                driver.drive(work);
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

    /// What is known of the work so far, as JSON.
    pub(crate) fn facts(&self) -> Option<String> {
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

/// The thread that does the work, or begins and ends those that do.
pub struct Driver {
    sender: SyncSender<Result<RecordBatch, Error>>,
    stop: Arc<AtomicBool>,
    facts: Arc<Mutex<Option<String>>>,
}

impl Driver {
    fn drive(self, work: Work) {
        let done = catch_unwind(AssertUnwindSafe(|| (work.run)(&self)));
        let done = done.unwrap_or_else(|panic| Err(Error::Defect(words(panic.as_ref()))));
        match done {
            Ok(()) | Err(Error::Stopped) => {}
            // Nobody may be there to hear it.
            Err(error) => drop(self.sender.send(Err(error))),
        }
    }

    /// Whether nobody wants the rest.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Gives a batch to the reader, once there is room.
    ///
    /// # Errors
    /// When nobody wants it any more.
    pub fn send(&self, batch: RecordBatch) -> Result<(), Error> {
        self.sender.send(Ok(batch)).map_err(|_| Error::Stopped)
    }

    /// Says what is known so far: an object of JSON.
    pub fn note(&self, facts: String) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = Some(facts);
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
