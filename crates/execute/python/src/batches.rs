//! One side of a join: the batches of a producer, sliced and handed out one at a time.
//!
//! ```text
//! pyarrow, Polars, … ──__arrow_c_stream__──► reader ──┬─ batch ─► thread 0
//!                             (one at a time)         └─ batch ─► thread 1
//! ```
//!
//! A table is often one batch of many million rows. In slices, all threads have work, and only the
//! slices in use are charged to a memory limit. A slice is a view, nothing is copied.

use std::sync::{Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use workahead_join::Side;

use crate::errors::Error;

/// A stream of batches of a side.
pub(crate) struct InputBatches {
    side: Side,
    rows: usize,
    source: Mutex<Source>,
}

/// The reader, and the rest of its last batch.
struct Source {
    /// Dropped at the end: the producer may hold memory for its batches.
    reader: Option<Box<dyn RecordBatchReader + Send>>,
    /// The rest of the last batch.
    rest: Option<RecordBatch>,
}

impl InputBatches {
    /// Batches of at most `rows` rows. Read them in threads that are not attached to Python:
    /// a producer may have to wait for the interpreter.
    pub(crate) fn new(side: Side, reader: Box<dyn RecordBatchReader + Send>, rows: usize) -> Self {
        let source = Mutex::new(Source { reader: Some(reader), rest: None });
        Self { side, rows: rows.max(1), source }
    }

    /// The next rows; `None` at the end.
    pub(crate) fn next(&self) -> Result<Option<RecordBatch>, Error> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(batch) = source.rest.take() {
                let rows = batch.num_rows();
                if rows <= self.rows {
                    return Ok(Some(batch));
                }
                source.rest = Some(batch.slice(self.rows, rows - self.rows));
                return Ok(Some(batch.slice(0, self.rows)));
            }
            let Some(reader) = &mut source.reader else { return Ok(None) };
            match reader.next() {
                Some(Ok(batch)) => source.rest = Some(batch).filter(|batch| batch.num_rows() > 0),
                None => source.reader = None,
                Some(Err(failed)) => {
                    source.reader = None;
                    return Err(Error::Input {
                        name: format!("{} input", self.side.name()),
                        source: failed,
                    });
                }
            }
        }
    }
}
