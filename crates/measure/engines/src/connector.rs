//! How a database is entered, whatever it is: doors that clients come in by, and what a connection
//! can do beside what workloads ask of it.

use std::sync::Arc;

use workahead_study::plans::PlanText;
use workahead_workloads::client::{RowSink, Table};
use workahead_workloads::session::{Session, SessionError};

use crate::server::Explain;

/// Gives all rows of a table to a sink.
pub type Pour<'a> = &'a mut dyn FnMut(RowSink<'_>) -> Result<(), SessionError>;

/// A connection: a session, and what is done around the measured part.
pub trait Connection: Session {
    /// The database's version, as it says it.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn version(&mut self) -> Result<String, SessionError>;

    /// The plan of a statement without values.
    ///
    /// # Errors
    /// What the database says about the statement.
    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError>;

    /// Fills a table that was made just now, in the fastest way there is; how many rows came.
    ///
    /// # Errors
    /// What the database says about a row, or what the pouring itself says.
    fn fill_table(&mut self, table: &Table, pour: Pour<'_>) -> Result<u64, SessionError>;

    /// Gathers the planner's statistics of a table.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn analyse_table(&mut self, table: &str) -> Result<(), SessionError>;

    /// What ends the statement that this connection runs, from another thread.
    fn cancel(&self) -> Cancel;
}

impl dyn Connection + '_ {
    /// As workloads see it.
    pub fn session(&mut self) -> &mut dyn Session {
        self
    }
}

/// Ends a connection's statement, whichever that is by then.
pub type Cancel = Arc<dyn Fn() + Send + Sync>;

/// Where clients come in.
pub trait Connector: Send + Sync {
    /// Opens one connection.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn open(&self) -> Result<Box<dyn Connection>, SessionError>;
}
