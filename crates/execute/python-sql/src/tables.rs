//! Tables from Python.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use _workahead::errors::Error;
use _workahead::input;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyString;
use workahead_sql::session::Session;

use crate::exception;

/// A table and its name.
pub(crate) struct Table {
    name: String,
    source: Source,
}

enum Source {
    /// A file, or a directory of Parquet files.
    Path(PathBuf),
    /// The batches of a table or a data frame.
    Batches(SchemaRef, Vec<RecordBatch>),
    /// Rows that are produced while they are read.
    Reader(Box<dyn RecordBatchReader + Send>),
}

impl Table {
    /// Keeps a reference to it; a table is not copied.
    pub(crate) fn new(name: String, table: &Bound<'_, PyAny>, repeatable: bool) -> PyResult<Self> {
        let is_path = table.is_instance_of::<PyString>() || table.hasattr("__fspath__")?;
        let source = if is_path {
            Source::Path(table.extract()?)
        } else {
            let label = format!("table {name:?}");
            let reader = input::reader(table, &label)?;
            match repeatable {
                false => Source::Reader(reader),
                true => {
                    let schema = reader.schema();
                    let failed = |source| Error::Input { name: label.clone(), source };
                    let batches = reader.map(|batch| batch.map_err(failed));
                    Source::Batches(schema, batches.collect::<Result<_, _>>()?)
                }
            }
        };
        Ok(Self { name, source })
    }

    /// Registers it in the session, unless `stop` is set before.
    pub(crate) fn register(self, session: &Session, stop: &AtomicBool) -> Result<(), Error> {
        let name = &self.name;
        let registered = match self.source {
            Source::Path(path) => session.register(name, &path, stop),
            Source::Batches(schema, batches) => session.register_batches(name, schema, &batches),
            Source::Reader(reader) => session.register_reader(name, reader),
        };
        registered.map_err(exception)
    }
}
