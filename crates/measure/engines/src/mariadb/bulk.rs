//! Many rows at once: inserts of many rows each, in one transaction.
//!
//! With the checks of keys left for the end, InnoDB sorts the rows of an empty table and writes its
//! pages once (MariaDB manual, "InnoDB bulk insert", 10.6); a duplicate is then found at the end.

use std::fmt::Write;

use workahead_workloads::session::{Session, SessionError, Value};

use super::connection::Connection;

/// A statement of this size costs its parsing and little more; well below the 16 MiB that a server
/// takes at once (`max_allowed_packet`).
const STATEMENT_BYTES: usize = 512 << 10;

/// Rows on their way into a table. Dropping it without [`finish`](Bulk::finish) takes them back.
pub struct Bulk<'a> {
    connection: &'a mut Connection,
    head: String,
    text: String,
    columns: usize,
    rows: u64,
    backslashes: bool,
    open: bool,
}

impl Connection {
    /// Begins to fill `columns` of a table.
    ///
    /// # Errors
    /// When the server is gone; errors about the table come with the first rows.
    pub fn fill(
        &mut self,
        table: &str,
        columns: &[impl AsRef<str>],
    ) -> Result<Bulk<'_>, SessionError> {
        let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
        self.run("SET unique_checks = 0, foreign_key_checks = 0")?;
        self.begin()?;
        let head = format!("INSERT INTO {table} ({}) VALUES ", columns.join(", "));
        let backslashes = self.has_backslash_escapes();
        let text = String::with_capacity(STATEMENT_BYTES + STATEMENT_BYTES / 8);
        let columns = columns.len();
        Ok(Bulk { connection: self, head, text, columns, rows: 0, backslashes, open: true })
    }
}

impl Bulk<'_> {
    /// Adds a row.
    ///
    /// # Errors
    /// When it has another number of values, or the server refuses what was gathered.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        if values.len() != self.columns {
            let (given, needed) = (values.len(), self.columns);
            let says = format!("a row of {given} values for {needed} columns");
            return Err(SessionError::Failed(says));
        }
        match self.text.is_empty() {
            true => self.text.push_str(&self.head),
            false => self.text.push(','),
        }
        for (index, value) in values.iter().enumerate() {
            self.text.push(if index == 0 { '(' } else { ',' });
            write(*value, self.backslashes, &mut self.text);
        }
        self.text.push(')');
        self.rows += 1;
        if self.text.len() >= STATEMENT_BYTES { self.send() } else { Ok(()) }
    }

    /// Ends it. Returns the number of rows added to the table.
    ///
    /// # Errors
    /// The server's error for any of the rows; then the table has none of them.
    pub fn finish(mut self) -> Result<u64, SessionError> {
        self.send()?;
        self.connection.commit()?;
        self.open = false;
        self.check_again()?;
        Ok(self.rows)
    }

    fn send(&mut self) -> Result<(), SessionError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let sent = self.connection.run(&self.text);
        self.text.clear();
        sent
    }

    fn check_again(&mut self) -> Result<(), SessionError> {
        self.connection.run("SET unique_checks = 1, foreign_key_checks = 1")
    }
}

impl Drop for Bulk<'_> {
    fn drop(&mut self) {
        if self.open && self.connection.rollback().is_ok() {
            // If the server is gone, the next statement reports it.
            let _ = self.check_again();
        }
    }
}

fn write(value: Value<'_>, backslashes: bool, text: &mut String) {
    let written = match value {
        Value::Null => write!(text, "NULL"),
        Value::Int(int) => write!(text, "{int}"),
        // With an exponent it is a floating-point number and no decimal of many digits.
        Value::Real(real) => write!(text, "{real:e}"),
        Value::Decimal(decimal) => write!(text, "{decimal}"),
        Value::Date(date) => write!(text, "'{date}'"),
        Value::Timestamp(moment) => write!(text, "'{moment}'"),
        Value::Text(given) => {
            text.push_str(&super::quoted(given, backslashes));
            Ok(())
        }
    };
    // Writing to a String can't fail.
    debug_assert!(written.is_ok());
}
