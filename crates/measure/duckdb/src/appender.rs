//! Many rows at once.

use std::marker::PhantomData;
use std::ptr::{null, null_mut};

use crate::cell::Cell;
use crate::error::Error;
use crate::ffi::{Library, Raw, State, c_text, call, said};

/// Rows on their way into a table. Dropping it without [`finish`](Appender::finish) may leave some
/// of them there: use a transaction.
pub struct Appender<'c> {
    library: Library,
    raw: Raw,
    rows: u64,
    _connection: PhantomData<&'c mut ()>,
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // `finish` has reported the errors of the remaining rows.
        call!(self.library, appender_destroy(&mut self.raw));
    }
}

impl Appender<'_> {
    pub(crate) fn new(library: Library, connection: Raw, table: &str) -> Result<Self, Error> {
        let table = c_text(table)?;
        let mut raw = null_mut();
        let state = call!(library, appender_create(connection, null(), table.as_ptr(), &mut raw));
        let appender = Self { library, raw, rows: 0, _connection: PhantomData };
        appender.done(state).map(|()| appender)
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When it has another number of values than the table, or one of another type.
    pub fn row<'v>(&mut self, cells: impl IntoIterator<Item = Cell<'v>>) -> Result<(), Error> {
        for cell in cells {
            self.done(self.cell(&cell))?;
        }
        self.rows += 1;
        self.done(call!(self.library, appender_end_row(self.raw)))
    }

    /// Writes what is left; how many rows there were.
    ///
    /// # Errors
    /// DuckDB's refusal of the rows.
    pub fn finish(self) -> Result<u64, Error> {
        self.done(call!(self.library, appender_flush(self.raw)))?;
        Ok(self.rows)
    }

    fn cell(&self, cell: &Cell<'_>) -> State {
        let (library, raw) = (self.library, self.raw);
        match *cell {
            Cell::Null => call!(library, append_null(raw)),
            Cell::Int(int) => call!(library, append_int64(raw, int)),
            Cell::Real(real) => call!(library, append_double(raw, real)),
            Cell::Days(days) => call!(library, append_date(raw, days)),
            Cell::Micros(micros) => call!(library, append_timestamp(raw, micros)),
            Cell::Text(text) => self.text(text),
            // There is no call for decimals: their digits are read.
            Cell::Decimal { .. } => self.text(&cell.to_string()),
        }
    }

    fn text(&self, text: &str) -> State {
        let (start, length) = (text.as_ptr().cast(), text.len() as u64);
        call!(self.library, append_varchar_length(self.raw, start, length))
    }

    fn done(&self, state: State) -> Result<(), Error> {
        match state {
            0 => Ok(()),
            _ => Err(Error::refused(&said(call!(self.library, appender_error(self.raw))))),
        }
    }
}
