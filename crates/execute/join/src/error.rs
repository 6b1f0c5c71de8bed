//! Errors of a join.

use arrow_schema::{ArrowError, DataType};
use workahead_machine::pages::AllocationError;
use workahead_walks::bucket::TableError;

use crate::{MemoryError, SpillError};

/// A join failed. The message names the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The key column doesn't exist.
    #[error("there is no column {name:?}: choose from {known}")]
    UnknownColumn {
        /// The requested name.
        name: String,
        /// The existing columns.
        known: String,
    },
    /// The column position is outside the input.
    #[error("the {side} input has no column {column}: choose from its {columns}, counted from 0")]
    UnknownPosition {
        /// `left` or `right`.
        side: &'static str,
        /// The requested position.
        column: usize,
        /// The number of columns.
        columns: usize,
    },
    /// No key.
    #[error("a hash join needs a pair of key columns: name one, or use a nested-loop join")]
    NoKeys,
    /// The key type isn't supported.
    #[error("the key {name:?} is {found}, which can't be compared: cast it to another type")]
    KeyType {
        /// The column.
        name: String,
        /// Its type.
        found: DataType,
    },
    /// The keys can't be compared.
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
    /// A meaningless null-aware join.
    #[error("{why}: leave null-awareness out, or plan the query in another way")]
    NullAware {
        /// The reason.
        why: &'static str,
    },
    /// The filter has a different number of columns and fields.
    #[error("the filter's schema has {fields} fields for {columns} columns: give one for each")]
    FilterSchema {
        /// Fields of the schema.
        fields: usize,
        /// Columns it reads.
        columns: usize,
    },
    /// The filter reads a column as another type.
    #[error("the filter takes {name:?} as {declared}, but the input has {found}: cast one of them")]
    FilterColumn {
        /// The filter's field.
        name: String,
        /// Its type.
        declared: DataType,
        /// The input's type.
        found: DataType,
    },
    /// The filter's result has another length than its input.
    #[error("the filter returned {results} results for {rows} rows: it must return one for each")]
    FilterLength {
        /// Results returned.
        results: usize,
        /// Rows given.
        rows: usize,
    },
    /// A projected column is outside the output.
    #[error("the projection {columns} does not fit: the output has {most} columns, counted from 0")]
    Projection {
        /// The requested columns.
        columns: String,
        /// The number of columns.
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
    /// A batch has other columns than declared.
    #[error("a batch has the columns {found} where {expected} were declared")]
    Schema {
        /// Columns of the batch.
        found: String,
        /// Columns of the join's input.
        expected: String,
    },
    /// The system refused to start a thread.
    #[error("can't start {threads} threads: use fewer")]
    Threads {
        /// Threads requested.
        threads: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The hash table could not be built.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The dense table could not be built.
    #[error(transparent)]
    Dense(#[from] workahead_walks::perfect_hash::TableError),
    /// Memory for duplicate lists or keys could not be allocated.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// The memory limit is reached.
    #[error(transparent)]
    Limit(#[from] MemoryError),
    /// The memory limit is reached although everything is spilled that can be.
    #[error(
        "the memory limit of {limit} bytes is too small even with spilling: {used} bytes are in \
         use and the next step needs {wanted} more; raise the limit to {enough}"
    )]
    LimitTooSmall {
        /// Bytes requested.
        wanted: usize,
        /// Bytes in use, of a thread's share if it has one.
        used: usize,
        /// The limit.
        limit: usize,
        /// A limit that suffices unless rows to come are wider.
        enough: usize,
    },
    /// A table can't be used for another join.
    #[error("{why}")]
    OtherTable {
        /// The reason, with a remedy.
        why: &'static str,
    },
    /// The caller's [`StopCheck`](crate::StopCheck) stopped it.
    #[error("the join was stopped: run it again for its result")]
    Stopped,
    /// Spilling failed.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// Arrow failed.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
