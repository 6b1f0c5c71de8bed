//! Connections to databases: how clients open them, and what they offer beyond the sessions of
//! workloads.

#[cfg(test)]
pub(crate) mod fake;

use std::sync::Arc;

use workahead_study::plans::PlanText;
use workahead_workloads::client::{RowSink, Table};
use workahead_workloads::session::{Session, SessionError};

use crate::server::Explain;

/// Gives all rows of a table to a sink.
pub type RowSource<'a> = &'a mut dyn FnMut(RowSink<'_>) -> Result<(), SessionError>;

/// A connection: a session, and the operations around the measured part.
pub trait Connection: Session {
    /// The database's version, in its own words.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn version(&mut self) -> Result<String, SessionError>;

    /// The plan of a statement without values.
    ///
    /// # Errors
    /// The database's error for the statement.
    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError>;

    /// Fills a new table in the fastest way the database has. Returns the number of rows.
    ///
    /// # Errors
    /// The database's error for a row, or the error of the rows' source.
    fn fill_table(&mut self, table: &Table, row_source: RowSource<'_>)
    -> Result<u64, SessionError>;

    /// Gathers the planner's statistics of a table.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn analyse_table(&mut self, table: &str) -> Result<(), SessionError>;

    /// Cancels this connection's statement from another thread.
    fn cancel(&self) -> Cancel;

    /// Waits for the answers that follow no longer than for those of a login, all together.
    /// Databases without a connection that can be silent have no such limit.
    fn limit_answers(&mut self) {}
}

impl dyn Connection + '_ {
    /// As a session of workloads.
    pub fn session(&mut self) -> &mut dyn Session {
        self
    }
}

/// Cancels the statement that a connection runs at that moment.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

/// Opens connections to a database.
pub trait Connector: Send + Sync {
    /// Opens one connection.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn open(&self) -> Result<Box<dyn Connection>, SessionError>;
}
