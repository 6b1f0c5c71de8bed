//! `wa.sql(query, orders=…)`: SQL over Python's tables, by DataFusion with Workahead's joins.
//!
//! ```text
//! tables, data frames ──Arrow C streams──► batches in memory ─┐
//! readers ──────────────Arrow C streams──► read once ─────────┼─► session ─► the last statement's
//! paths ──────────────────────────────────► files ────────────┘              rows, made while read
//! ```
//!
//! A wheel of its own, because DataFusion is fifty times the size of everything else. Inputs,
//! results and errors are those of `workahead-python`.

#![forbid(unsafe_code)]

mod query;
mod tables;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use _workahead::errors::Error;
use _workahead::result_stream::{Batch, ResultStream};
use pyo3::prelude::*;

use crate::query::{Query, TICK};
use crate::tables::Table;

/// The arguments as `workahead_sql` passes them on: names and numbers, not yet checked.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    threads: Option<usize>,
    memory_limit: Option<usize>,
    spill_dir: Option<PathBuf>,
    stock: bool,
}

/// Plans the statements of a text. Each table has a name, and whether it can be read repeatedly.
#[pyfunction]
fn sql(
    py: Python<'_>,
    query: String,
    tables: Vec<(String, Bound<'_, PyAny>, bool)>,
    options: Options,
) -> PyResult<ResultStream> {
    let tables =
        tables.into_iter().map(|(name, table, repeatable)| Table::new(name, &table, repeatable));
    let tables = tables.collect::<PyResult<Vec<_>>>()?;
    let planned = py.detach(|| planned(&query, tables, options))?;
    Ok(ResultStream::new(planned.schema(), planned.work()))
}

/// Plans on a thread of its own, and looks for Python's signals meanwhile: statements before the
/// last one may take long.
fn planned(query: &str, tables: Vec<Table>, options: Options) -> PyResult<Query> {
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, planned) = mpsc::channel();
        let planning = scope.spawn(move || {
            let planned = Query::plan(query, tables, options, stop);
            // The one that waited may have been interrupted.
            let _ = done.send(planned);
        });
        loop {
            match planned.recv_timeout(TICK) {
                Ok(planned) => return Ok(planned?),
                Err(RecvTimeoutError::Timeout) => {
                    let interrupted = Python::attach(|py| py.check_signals());
                    stop.store(interrupted.is_err(), Ordering::Relaxed);
                    interrupted?;
                }
                Err(RecvTimeoutError::Disconnected) => match planning.join() {
                    Err(panic) => std::panic::resume_unwind(panic),
                    Ok(()) => unreachable!("it sent what it planned"),
                },
            }
        }
    })
}

/// The native module of `import workahead_sql`.
#[pymodule]
fn _workahead_sql(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<ResultStream>()?;
    module.add_class::<Batch>()?;
    module.add_function(wrap_pyfunction!(sql, module)?)
}

/// A session's error as Python's exception of the right kind.
fn exception(error: workahead_sql::session::SessionError) -> Error {
    let text = error.to_string();
    if error.is_of_memory() {
        Error::Memory(text)
    } else if error.is_of_the_query() {
        Error::WrongUse(text)
    } else {
        Error::Query(text)
    }
}
