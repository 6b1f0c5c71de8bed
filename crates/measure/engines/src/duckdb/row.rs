//! Values to and from DuckDB.

use workahead_duckdb::{Cell, Chunk};
use workahead_workloads::session::{Columns, Date, Decimal, SessionError, Timestamp, Value};

/// A value as DuckDB takes it.
pub(super) fn cell<'a>(value: &Value<'a>) -> Cell<'a> {
    match *value {
        Value::Null => Cell::Null,
        Value::Int(int) => Cell::Int(int),
        Value::Real(real) => Cell::Real(real),
        Value::Decimal(Decimal { units, scale }) => Cell::Decimal { units, scale },
        Value::Text(text) => Cell::Text(text),
        Value::Date(Date(days)) => Cell::Days(days),
        Value::Timestamp(Timestamp(micros)) => Cell::Micros(micros),
    }
}

/// A row of a chunk.
pub(super) struct ChunkRow<'c> {
    pub(super) chunk: &'c Chunk,
    pub(super) row: usize,
}

impl Columns for ChunkRow<'_> {
    fn count(&self) -> usize {
        self.chunk.columns()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        let cell = self.chunk.cell(index, self.row);
        Ok(match cell.map_err(|error| SessionError::Failed(error.to_string()))? {
            Cell::Null => Value::Null,
            Cell::Int(int) => Value::Int(int),
            Cell::Real(real) => Value::Real(real),
            Cell::Decimal { units, scale } => Value::Decimal(Decimal { units, scale }),
            Cell::Text(text) => Value::Text(text),
            Cell::Days(days) => Value::Date(Date(days)),
            Cell::Micros(micros) => Value::Timestamp(Timestamp(micros)),
        })
    }
}
