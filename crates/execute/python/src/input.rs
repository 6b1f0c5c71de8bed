//! Inputs from Python: anything with the Arrow PyCapsule interface.

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::Error;

/// Batches of an input. `name` is for errors: `left input`, `table "orders"`.
///
/// # Errors
/// When it is not Arrow data, or its producer fails.
pub fn reader(input: &Bound<'_, PyAny>, name: &str) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let supports = |method| input.hasattr(method);
    if !supports("__arrow_c_stream__")? && !supports("__arrow_c_array__")? {
        let kind = input.get_type().fully_qualified_name()?;
        let text = format!(
            "the {name} is a {kind}, which is not Arrow data: give a table, a data frame or a \
             reader of pyarrow, Polars, pandas, DuckDB or DataFusion"
        );
        return Err(Error::WrongUse(text).into());
    }
    let failed = |error: PyErr| {
        let source = ArrowError::from_external_error(Box::new(error));
        PyErr::from(Error::Input { name: name.to_owned(), source })
    };
    let batches: AnyRecordBatch = input.extract().map_err(failed)?;
    Ok(Box::new(CheckedReader(batches.into_reader().map_err(failed)?)))
}

/// Batches whose offsets, keys and texts agree with each other: the C interface passes them on
/// unseen, and pyarrow reads them from files as they are. How long a buffer is, the interface does
/// not say: that its last offset lies within is the producer's promise.
struct CheckedReader(Box<dyn RecordBatchReader + Send>);

impl Iterator for CheckedReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.0.next()?;
        Some(batch.and_then(|batch| {
            batch.columns().iter().try_for_each(|column| column.to_data().validate_full())?;
            Ok(batch)
        }))
    }
}

impl RecordBatchReader for CheckedReader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}
