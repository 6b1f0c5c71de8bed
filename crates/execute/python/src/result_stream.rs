//! A result in Python: a stream of batches, computed while it is read.
//!
//! ```text
//! ResultStream ─┬─ __next__ ─► Batch ─► __arrow_c_array__     waits detached, checks signals
//!               └─ __arrow_c_stream__ ─► Export ─► consumer   the same, on the consumer's thread
//! ```
//!
//! Nothing is read and no thread is started before the first batch is requested. There may be
//! several exports (some consumers take one only for the schema); the first that requests a batch
//! gets them all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, Field, FieldRef, SchemaRef};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3_arrow::ffi::{ArrayReader, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use crate::driver::{WaitOutcome, Work, WorkHandle};
use crate::errors::Error;

/// The interval at which a pending Ctrl-C is checked.
const TICK: Duration = Duration::from_millis(20);

/// The state of the work; with its facts at the end.
enum State {
    Planned(Work),
    Running(Box<WorkHandle>),
    Ended(Option<String>),
}

/// A reader: `__next__`, or one of the exports.
type Reader = u64;
const ITERATION: Reader = 0;

/// Work and its readers.
struct SharedWork {
    state: Mutex<State>,
    /// The reader of the first batch.
    first: Mutex<Option<Reader>>,
    exports: AtomicU64,
}

impl SharedWork {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a second reader: half a result would look like all of it.
    fn claim(&self, reader: Reader) -> Result<(), Error> {
        let mut owner = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        match *owner.get_or_insert(reader) {
            first if first == reader => Ok(()),
            _ => Err(Error::AlreadyRead),
        }
    }

    /// Waits for a batch. Call it detached from Python.
    fn wait(&self) -> Result<WaitOutcome, Error> {
        let mut state = self.state();
        if let State::Planned(_) = &*state {
            let State::Planned(work) = std::mem::replace(&mut *state, State::Ended(None)) else {
                return Ok(WaitOutcome::End);
            };
            *state = State::Running(Box::new(WorkHandle::start(work)?));
        }
        let State::Running(running) = &mut *state else { return Ok(WaitOutcome::End) };
        let waited = running.wait(TICK);
        if matches!(waited, Ok(WaitOutcome::End) | Err(_)) {
            *state = State::Ended(running.facts());
        }
        waited
    }

    /// Ends the work. Call it detached from Python.
    fn stop(&self) {
        let mut state = self.state();
        let facts = match &mut *state {
            State::Running(running) => {
                running.stop();
                running.facts()
            }
            State::Planned(_) => None,
            State::Ended(facts) => facts.take(),
        };
        *state = State::Ended(facts);
    }

    /// The next batch, waiting detached; a signal's exception ends the work.
    fn next(&self, py: Python<'_>, reader: Reader) -> PyResult<Option<RecordBatch>> {
        self.claim(reader)?;
        loop {
            let waited = py.detach(|| self.wait())?;
            py.check_signals().inspect_err(|_| py.detach(|| self.stop()))?;
            match waited {
                WaitOutcome::Batch(batch) => return Ok(Some(batch)),
                WaitOutcome::End => return Ok(None),
                WaitOutcome::Pending => {}
            }
        }
    }
}

/// A result that can be read once.
#[pyclass(module = "workahead._workahead", frozen, weakref)]
pub struct ResultStream {
    schema: SchemaRef,
    shared: Arc<SharedWork>,
}

impl ResultStream {
    /// The result of work that returns batches with this schema.
    #[must_use]
    pub fn new(schema: SchemaRef, work: Work) -> Self {
        let state = Mutex::new(State::Planned(work));
        let (first, exports) = (Mutex::new(None), AtomicU64::new(ITERATION));
        Self { schema, shared: Arc::new(SharedWork { state, first, exports }) }
    }
}

#[pymethods]
impl ResultStream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(self.shared.next(py, ITERATION)?.map(Batch))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let reader = self.shared.exports.fetch_add(1, Ordering::Relaxed) + 1;
        let export =
            Export { field: struct_field(&self.schema), shared: self.shared.clone(), reader };
        Ok(to_stream_pycapsule(py, Box::new(export), requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.schema.as_ref())?)
    }

    fn column_names(&self) -> Vec<String> {
        names(&self.schema)
    }

    /// Facts as JSON, if there are any yet.
    fn facts(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| match &*self.shared.state() {
            State::Planned(_) => None,
            State::Running(running) => running.facts(),
            State::Ended(facts) => facts.clone(),
        })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.shared.stop());
    }
}

/// Rows as Arrow: any Arrow library takes them without a copy.
#[pyclass(module = "workahead", name = "Batch", frozen)]
pub struct Batch(RecordBatch);

#[pymethods]
impl Batch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (field, array) = (struct_field(&self.0.schema()), StructArray::from(self.0.clone()));
        Ok(to_array_pycapsules(py, field, &array, requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.0.schema().as_ref())?)
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        names(&self.0.schema())
    }

    fn __repr__(&self) -> String {
        format!("<workahead.Batch: {} rows, {}>", self.0.num_rows(), self.column_names().join(", "))
    }
}

impl From<RecordBatch> for Batch {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The field of Arrow's C interfaces: a struct of the columns.
fn struct_field(schema: &SchemaRef) -> FieldRef {
    let field = Field::new_struct("", schema.fields().clone(), false);
    Arc::new(field.with_metadata(schema.metadata().clone()))
}

/// The stream behind `__arrow_c_stream__`, read on any thread, attached to Python or not.
struct Export {
    field: FieldRef,
    shared: Arc<SharedWork>,
    reader: Reader,
}

impl Iterator for Export {
    type Item = Result<ArrayRef, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Python::try_attach(|py| {
            self.shared.next(py, self.reader).map_err(|error| error_text(py, &error))
        });
        // No interpreter: it is shutting down, and the consumer will not read on.
        match next? {
            Ok(batch) => batch.map(|batch| Ok(Arc::new(StructArray::from(batch)) as ArrayRef)),
            Err(text) => Some(Err(ArrowError::ExternalError(text.into()))),
        }
    }
}

impl ArrayReader for Export {
    fn field(&self) -> FieldRef {
        self.field.clone()
    }
}

/// The text of an exception, for the consumer's own error. Ctrl-C is raised again for the
/// consumer's caller; as the last step, since the next Python code to run would receive it.
fn error_text(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        // If this fails, the consumer's error is all that is left of it.
        let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        return "interrupted".to_owned();
    }
    text
}
