//! An index: the table of a join, built once, for joins with one batch after another.
//!
//! ```text
//! Index(data, on) ─► table ─┬─ lookup(batch, …) ─► ResultStream
//!                           └─ lookup(other, …) ─► ResultStream   of another type or schema
//! ```

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use workahead_join::{HashJoin, JoinTable, JoinType, Pool, Side};

use crate::errors::Error;
use crate::input;
use crate::options::{self, Options};
use crate::result_stream::ResultStream;

/// Rows that are looked up by their keys. Any number of threads may do so.
#[pyclass(frozen, module = "workahead._workahead")]
pub(crate) struct Index {
    pub(crate) table: Arc<JoinTable>,
    on: Vec<String>,
}

#[pymethods]
impl Index {
    /// Reads all rows; Ctrl-C ends it between two batches.
    #[new]
    fn new(
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        on: Vec<String>,
        memory_limit: Option<usize>,
    ) -> PyResult<Self> {
        let mut reader = input::reader(data, "index's data")?;
        let schema = reader.schema();
        for name in &on {
            options::require_column(name, &schema, "index's data")?;
        }
        // Its own rows are what is certain to be comparable with it.
        let join =
            base(&schema, &on)?.with_memory(memory_limit.map_or_else(Pool::unlimited, Pool::of));
        let mut build = join.build();
        loop {
            py.check_signals()?;
            let taken = py.detach(|| -> Result<bool, Error> {
                let Some(batch) = reader.next() else { return Ok(false) };
                let name = "index's data".to_owned();
                build.push(batch.map_err(|source| Error::Input { name, source })?)?;
                Ok(true)
            })?;
            if !taken {
                break;
            }
        }
        let table = py.detach(|| build.finish()).map_err(Error::Join)?;
        Ok(Self { table: Arc::new(table), on })
    }

    /// Plans the join of other rows with these.
    fn lookup(&self, data: &Bound<'_, PyAny>, options: Options) -> PyResult<ResultStream> {
        let probe = input::reader(data, "left input")?;
        let plan = options.plan_with_index(probe, &self.table)?;
        Ok(ResultStream::new(plan.naming.schema().clone(), plan.work()))
    }

    fn on(&self) -> Vec<String> {
        self.on.clone()
    }

    fn column_names(&self) -> Vec<String> {
        let schema = self.table.spec().schema_of(Side::Right);
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn num_rows(&self) -> usize {
        self.table.input_rows()
    }

    fn nbytes(&self) -> usize {
        self.table.memory_bytes()
    }
}

fn base(schema: &SchemaRef, on: &[String]) -> Result<HashJoin, Error> {
    let on: Vec<_> = on.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let join = HashJoin::by_names(schema.clone(), schema.clone(), &on, JoinType::Left)?;
    Ok(join.with_build_side(Side::Right).with_caches(options::caches()))
}
