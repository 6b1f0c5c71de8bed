//! A database workload: tables, rows, clients, and conditions to hold afterwards.
//!
//! ```text
//! tables ─► created by the engine ─► rows, streamed ─► indexes ─► checks after loading
//! client(number) ─► next: draws an input ─► attempt ─► AttemptResult
//!                                            └─ Retry ─► attempt again: the same input
//! all clients stopped ─► checks after a run
//! ```
//!
//! The caller owns time: it takes latencies, sleeps the pauses, decides on retries and on the end.
//! A client owns chance: what it draws depends on the seed and its number only, not on what the
//! server answered or when.

use crate::session::{Dialect, Session, SessionError, Value};

/// Takes one row of a table; an error ends the loading.
pub type RowSink<'a> = &'a mut dyn FnMut(&[Value<'_>]) -> Result<(), SessionError>;

/// A table that a workload needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns in the order of its rows.
    pub columns: Vec<String>,
    /// The statement that makes it, primary key included where loading in key order makes that
    /// cheap.
    pub create: String,
    /// Statements that make its indexes and constraints, after its rows are there.
    pub finish: Vec<String>,
}

/// A workload for a database.
pub trait Workload: Send + Sync {
    /// Its name, as studies have it.
    fn name(&self) -> &'static str;

    /// The kinds of transactions or queries that its clients run; [`Client::next`] gives positions
    /// in this list.
    fn kinds(&self) -> Vec<String>;

    /// Its tables, in an order in which they can be filled.
    ///
    /// # Errors
    /// When the dialect can't have them.
    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError>;

    /// Rows of a table, by its position in [`tables`](Self::tables), one after the other, in the
    /// order in which they are to be stored.
    ///
    /// # Errors
    /// Whatever `sink` returned.
    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError>;

    /// Statements that make what is not a table of rows, once, when all tables are finished.
    ///
    /// # Errors
    /// When the dialect can't have it.
    fn set_up(&self, dialect: Dialect) -> Result<Vec<String>, SessionError> {
        let _ = dialect;
        Ok(Vec::new())
    }

    /// Statements that bring its tables back to how they were loaded, where that is less work than
    /// a copy of them. Asking forgets what clients were acknowledged before.
    fn reset(&self, dialect: Dialect) -> Option<Vec<String>> {
        let _ = dialect;
        None
    }

    /// The client of a number from 0.
    fn client(&self, number: u32) -> Box<dyn Client>;

    /// Statements whose plans tell how an engine goes about it; none where plans are trivial.
    ///
    /// # Errors
    /// When the dialect can't have them.
    fn explained(&self, dialect: Dialect) -> Result<Vec<ExplainRequest>, SessionError> {
        let _ = dialect;
        Ok(Vec::new())
    }

    /// Whether nothing changes, so that clients who do as much as before are answered as before:
    /// the sums of [`AttemptResult::checksum`] are then equal.
    fn is_read_only(&self) -> bool {
        false
    }

    /// The answer to its clients, where all of them must be given the same, always.
    fn answer(&self) -> Option<AnswerSummary> {
        None
    }

    /// Looks whether the database is as it must be. No client may be at work. A look at what was
    /// just loaded also forgets what clients were acknowledged before.
    ///
    /// # Errors
    /// When a condition could not be looked at; one that does not hold is not an error.
    fn check(
        &self,
        session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError>;
}

/// An answer, short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerSummary {
    /// Its rows.
    pub rows: u64,
    /// A checksum over them that does not depend on their order.
    pub checksum: u64,
}

/// A statement to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainRequest {
    /// Its name.
    pub name: String,
    /// Statements to run in the session first.
    pub settings: Vec<String>,
    /// The statement, without values.
    pub text: String,
}

/// One client of a workload: a terminal, a user, a connection.
pub trait Client: Send {
    /// Prepares its statements on a session; again after a new connection.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError>;

    /// Random the next input; its kind, and the pauses around it.
    fn next(&mut self) -> Next;

    /// Runs the input that was drawn last, whole; again with the same input after
    /// [`SessionError::Retry`]. A failed attempt has been rolled back when it returns.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError>;
}

/// In which order a client runs a list of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// As they stand, and again from the first.
    AsWritten,
    /// All of them in random order, and again in another; for each client its own.
    Shuffled,
}

/// A client's next transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Next {
    /// Position in [`Workload::kinds`].
    pub kind: usize,
    /// Seconds to wait before it, as if something were typed.
    pub keying_s: f64,
    /// Seconds to wait after it, as if the answer were read.
    pub thinking_s: f64,
}

impl Next {
    /// A kind without pauses.
    #[must_use]
    pub fn at_once(kind: usize) -> Self {
        Self { kind, keying_s: 0.0, thinking_s: 0.0 }
    }
}

/// The result of an attempt that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttemptResult {
    /// Rows read and changed.
    pub rows: u64,
    /// Statements sent, the transaction's beginning and end included.
    pub statements: u32,
    /// A sum over what was answered, comparable between engines with the same data where the
    /// workload says so.
    pub checksum: u64,
    /// Whether it ended in a rollback because its input asked for that.
    pub rolled_back: bool,
}

/// When a check is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Right after loading; nothing has changed yet.
    Loaded,
    /// After clients have run and stopped.
    Drained,
}

/// Something that must hold in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its short name.
    pub name: String,
    /// Its statement.
    pub says: String,
    /// Its outcome.
    pub outcome: Outcome,
}

/// The outcome of a look at a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It holds in the part that was looked at, which is named.
    HoldsInSample(String),
    /// It does not hold: where, first of all.
    Broken(String),
    /// It was not looked at: why.
    Skipped(String),
}
