//! What can be wrong with a join.

use arrow_schema::{ArrowError, DataType};
use workahead_machine::pages::AllocationError;
use workahead_walks::bucket::TableError;

use crate::{MemoryError, SpillError};

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
    /// A column position outside the input.
    #[error("the {side} input has no column {column}: choose from its {columns}, counted from 0")]
    UnknownPosition {
        /// `left` or `right`.
        side: &'static str,
        /// What was asked for.
        column: usize,
        /// How many there are.
        columns: usize,
    },
    /// No key at all.
    #[error("a hash join needs a pair of key columns: name one, or use a nested-loop join")]
    NoKeys,
    /// A key of a type this join does not take.
    #[error("the key {name:?} is {found}, which can't be compared: cast it to another type")]
    KeyType {
        /// The column.
        name: String,
        /// Its type.
        found: DataType,
    },
    /// Keys that can't be compared.
    #[error(
        "the keys {left_name:?} ({left}) and {right_name:?} ({right}) can't be equal: \
         cast one to the type of the other"
    )]
    KeyKinds {
        /// The left key.
        left_name: String,
        /// Its type.
        left: DataType,
        /// The right key.
        right_name: String,
        /// Its type.
        right: DataType,
    },
    /// A null-aware join that has no meaning.
    #[error("{why}: leave null-awareness out, or plan the query in another way")]
    NullAware {
        /// What is wrong.
        why: &'static str,
    },
    /// A filter whose columns and fields differ in number.
    #[error("the filter's schema has {fields} fields for {columns} columns: give one for each")]
    FilterSchema {
        /// Fields of the schema.
        fields: usize,
        /// Columns it reads.
        columns: usize,
    },
    /// A filter that reads a column as another type.
    #[error(
        "the filter takes {name:?} as {announced}, but the input has {found}: cast one of them"
    )]
    FilterColumn {
        /// The filter's field.
        name: String,
        /// Its type.
        announced: DataType,
        /// The input's type.
        found: DataType,
    },
    /// A filter whose result has another length than its input.
    #[error("the filter returned {results} results for {rows} rows: it must return one for each")]
    FilterLength {
        /// Results returned.
        results: usize,
        /// Rows given.
        rows: usize,
    },
    /// A projection outside the output.
    #[error("the projection {columns} does not fit: the output has {most} columns, counted from 0")]
    Projection {
        /// What was asked for.
        columns: String,
        /// How many there are.
        most: usize,
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
    /// The table of a range of integers could not be made.
    #[error(transparent)]
    Dense(#[from] workahead_walks::direct::TableError),
    /// The rows of the groups could not be stored.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// The memory limit is reached.
    #[error(transparent)]
    Limit(#[from] MemoryError),
    /// The memory limit is reached though everything is spilled that can be.
    #[error(
        "the memory limit of {limit} bytes is too small even with spilling: {used} bytes are in \
         use and the next step needs {wanted} more; raise the limit"
    )]
    LimitTooSmall {
        /// Bytes asked for.
        wanted: usize,
        /// Bytes in use by all.
        used: usize,
        /// Bytes that may be in use.
        limit: usize,
    },
    /// What does not fit into memory could not be written or read back.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// Arrow could not make an array.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
