//! Workahead's joins and the description of the machine, for Python.
//!
//! ```text
//! python/workahead/*.py   names, defaults, docstrings    ──►  this module, `workahead._workahead`
//! pyarrow, Polars, pandas, DuckDB, DataFusion ──Arrow C streams──► columns ──► Arrow C streams
//! ```
//!
//! Both sides are streamed, no value is converted, and the interpreter is free while threads join.
//! Inputs, results, resources and errors are public for the second wheel
//! (`crates/execute/python-sql`).
//! Deliberately absent: any knowledge of those libraries; they are recognised by
//! `__arrow_c_stream__` alone.

#![forbid(unsafe_code)]

mod batches;
pub mod driver;
pub mod errors;
mod facts;
mod index;
pub mod input;
mod machine;
mod options;
mod output_naming;
mod plan;
mod probe_feed;
pub mod resources;
pub mod result_stream;

use pyo3::prelude::*;
use workahead_join::Side;

use crate::options::Options;
use crate::result_stream::ResultStream;

/// Plans a join of two inputs.
#[pyfunction]
fn join(
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
    options: Options,
) -> PyResult<ResultStream> {
    let left = options::reader(left, Side::Left)?;
    let right = options::reader(right, Side::Right)?;
    let plan = options.plan(left, right)?;
    Ok(ResultStream::new(plan.naming.schema().clone(), plan.work()))
}

/// The bytes of a size such as `300MB`.
#[pyfunction]
fn memory_bytes(text: &str) -> PyResult<usize> {
    Ok(options::bytes(text)?)
}

/// The native module of `import workahead`.
#[pymodule]
fn _workahead(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<ResultStream>()?;
    module.add_class::<result_stream::Batch>()?;
    module.add_class::<index::Index>()?;
    module.add_function(wrap_pyfunction!(join, module)?)?;
    module.add_function(wrap_pyfunction!(memory_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(machine::machine, module)?)?;
    module.add_function(wrap_pyfunction!(machine::kept_limits, module)?)?;
    module.add_function(wrap_pyfunction!(machine::measured_limits, module)?)
}
