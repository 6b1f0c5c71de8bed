//! What can be wrong with a join.

use arrow_schema::{ArrowError, DataType};
use workahead_machine::pages::AllocationError;
use workahead_operators::bucket::TableError;

/// A join cannot be done. The text names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A key that is not a column.
    #[error("there is no column {name:?}: choose from {known}")]
    UnknownColumn {
        /// What was asked for.
        name: String,
        /// The columns there are.
        known: String,
    },
    /// A key of a type this join does not take.
    #[error("the key {name:?} is {found}: join on an integer column, or on two of type Date32")]
    KeyType {
        /// The column.
        name: String,
        /// Its type.
        found: DataType,
    },
    /// Keys that can't be compared.
    #[error("the keys are {left} and {right}, which can't be equal: join columns of one kind")]
    KeyKinds {
        /// Type of the left key.
        left: DataType,
        /// Type of the right key.
        right: DataType,
    },
    /// More build rows than row ids.
    #[error("the build side has {rows} rows, more than {most}: build on the other side")]
    TooManyRows {
        /// Rows given.
        rows: usize,
        /// Rows possible.
        most: usize,
    },
    /// A batch of other columns than were announced.
    #[error("a batch has the columns {found} where {expected} were announced")]
    Schema {
        /// Columns of the batch.
        found: String,
        /// Columns of the join's input.
        expected: String,
    },
    /// The system starts no more threads.
    #[error("can't start {threads} threads: use fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The table could not be made.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The rows of the groups could not be stored.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// Arrow could not make an output array.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
