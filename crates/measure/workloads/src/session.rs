//! One client's connection to a database, as workloads see it.
//!
//! ```text
//! prepare(text) ─► StatementId ─► query(values) ─► a row at a time to a closure
//!                              └► execute(values) ─► rows changed
//! begin ─► … ─► commit | rollback
//! ```
//!
//! Blocking, one thread a client: the wait of a client is its latency. A workload knows
//! no server: it has texts per [`Dialect`] and code over this trait; engines implement it. Its
//! errors are what a client does next: try again with the same input, stop because the server is
//! gone, or stop because the work is wrong.
//!
//! ```
//! use workahead_workloads::session::{Session, SessionError, Value};
//! fn balance_cents(session: &mut dyn Session, customer: i64) -> Result<i64, SessionError> {
//!     let text = session.dialect().placeholders("select balance from customer where id = ?");
//!     let statement = session.prepare(&text)?;
//!     let mut cents = 0;
//!     session.query(statement, &[Value::Int(customer)], &mut |row| {
//!         cents = row.decimal(0, 2)?;
//!         Ok(())
//!     })?;
//!     Ok(cents)
//! }
//! ```

mod answer_limit;
mod dialect;
#[cfg(test)]
pub(crate) mod recorder;
mod row;
mod value;

use std::time::Duration;

pub use answer_limit::{AnswerLimit, rows_within};
pub use dialect::Dialect;
pub use row::{Columns, Row};
pub use value::{Date, Decimal, Timestamp, Value};

/// A statement prepared on one session; it means nothing on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatementId(pub u32);

/// Takes one row of an answer; an error ends the query and is handed on.
pub type OnRow<'a> = &'a mut dyn FnMut(Row<'_>) -> Result<(), SessionError>;

/// The counts of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows that it answered with.
    pub rows: u64,
    /// Rows that it changed. On MariaDB rows that were found count, whether or not their values
    /// differ (the client flag FOUND_ROWS).
    pub changed: u64,
}

/// A connection of one client.
pub trait Session: Send {
    /// The dialect its texts are to be in.
    fn dialect(&self) -> Dialect;

    /// Runs one statement without values, and forgets its rows: definitions, settings.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn run(&mut self, text: &str) -> Result<(), SessionError>;

    /// Prepares one statement, whose values are marked as the dialect marks them.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError>;

    /// Runs a prepared statement. All rows of its answer have arrived when it returns, also after
    /// an error of `row`.
    ///
    /// # Errors
    /// See [`SessionError`]; and whatever `row` returned.
    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError>;

    /// Runs a prepared statement that answers with rows; how many there were.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<u64, SessionError> {
        self.exchange(statement, values, row).map(|counts| counts.rows)
    }

    /// Runs a prepared statement that changes rows; how many there were.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.exchange(statement, values, &mut |_| Ok(())).map(|counts| counts.changed)
    }

    /// Begins a transaction at the session's isolation level.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn begin(&mut self) -> Result<(), SessionError>;

    /// Commits. Success means that the server acknowledged it.
    ///
    /// # Errors
    /// See [`SessionError`]; after [`SessionError::Gone`] nobody knows whether it was committed.
    fn commit(&mut self) -> Result<(), SessionError>;

    /// Rolls back; also right after a failed statement.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn rollback(&mut self) -> Result<(), SessionError>;

    /// Time spent so far around statements that is none of theirs: the transactions that keep a
    /// session from writing.
    fn overhead(&self) -> Duration {
        Duration::ZERO
    }
}

/// Why a session failed. The texts are the server's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server gave the transaction up in favour of another: serialization, deadlock, lock
    /// wait. The same input may be tried again after a rollback.
    #[error("given up in favour of another transaction: {0}")]
    Retry(String),
    /// A row with the same unique key is there already. It takes a race to meet it where a
    /// transaction deletes a row and enters it again.
    #[error("a row of that key is there already: {0}")]
    Duplicate(String),
    /// The connection or the server is gone.
    #[error("the server is gone: {0}")]
    Gone(String),
    /// Trying again would fail again.
    #[error("{0}")]
    Failed(String),
}

/// Runs `work` in a transaction: committed when it succeeds, rolled back when it fails.
///
/// # Errors
/// The result of `work` or of the commit; no roll-back is sent to a server that is gone, and a
/// rollback that fails is reported instead of what led to it only when the server is gone.
pub fn transaction<T>(
    session: &mut dyn Session,
    work: impl FnOnce(&mut dyn Session) -> Result<T, SessionError>,
) -> Result<T, SessionError> {
    session.begin()?;
    let done = work(session).and_then(|value| session.commit().map(|()| value));
    done.map_err(|error| undone(session, error))
}

/// Rolls back because of an error, unless there is nobody to ask.
pub(crate) fn undone(session: &mut dyn Session, error: SessionError) -> SessionError {
    if matches!(error, SessionError::Gone(_)) {
        return error;
    }
    match session.rollback() {
        Err(gone @ SessionError::Gone(_)) => gone,
        _ => error,
    }
}

/// The first row of a query, by what `take` makes of it; none when there was no row.
///
/// # Errors
/// See [`SessionError`].
pub fn first<T>(
    session: &mut dyn Session,
    statement: StatementId,
    values: &[Value<'_>],
    mut take: impl FnMut(Row<'_>) -> Result<T, SessionError>,
) -> Result<Option<T>, SessionError> {
    let mut taken = None;
    session.query(statement, values, &mut |row| {
        if taken.is_none() {
            taken = Some(take(row)?);
        }
        Ok(())
    })?;
    Ok(taken)
}
