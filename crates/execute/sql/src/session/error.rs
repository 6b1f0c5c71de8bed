//! Errors of a session, each in one line.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::error::DataFusionError;

/// A session or a statement has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The system can't start the threads.
    #[error("can't start {threads} threads: {source}; use fewer")]
    Threads {
        /// Requested threads.
        threads: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The spill directory can't be written to.
    #[error("can't write to the spill directory {}: {source}", path.display())]
    SpillDirectory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table's file can't be opened.
    #[error("can't read the table {name:?} from {}: {source}", path.display())]
    Open {
        /// The table.
        name: String,
        /// Its file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table's file has an unknown extension.
    #[error(
        "unknown file type {}: use .parquet, .csv, .json, .ndjson, .arrow or .ipc",
        path.display()
    )]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// The contents of a table's file do not match its extension.
    #[error("can't read the table {name:?} from {}: {}", path.display(), message(source))]
    Table {
        /// The table.
        name: String,
        /// Its file.
        path: PathBuf,
        /// DataFusion's error.
        source: DataFusionError,
    },
    /// A statement could not be planned or executed.
    #[error("{}", message(.0))]
    Query(DataFusionError),
    /// A statement exceeded its time limit.
    #[error("the statement took longer than {limit:?}: raise --timeout")]
    TooLong {
        /// The limit.
        limit: Duration,
    },
    /// The statement was stopped.
    #[error("interrupted")]
    Stopped,
}

impl SessionError {
    /// Whether the memory limit was reached.
    #[must_use]
    pub fn is_of_memory(&self) -> bool {
        let Self::Query(error) = self else { return false };
        matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
    }

    /// Whether the statement itself is wrong: invalid SQL, or unknown names and types.
    #[must_use]
    pub fn is_of_the_query(&self) -> bool {
        let Self::Query(error) = self else { return false };
        matches!(
            error.find_root(),
            DataFusionError::SQL(..)
                | DataFusionError::Plan(_)
                | DataFusionError::SchemaError(..)
                | DataFusionError::NotImplemented(_)
                | DataFusionError::Configuration(_)
        )
    }
}

/// DataFusion's message without a backtrace and without wrappers that add nothing.
fn message(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Shared(inner) => message(inner),
        DataFusionError::Diagnostic(_, inner) => message(inner),
        DataFusionError::Context(_, inner) => message(inner),
        DataFusionError::External(inner) => inner.to_string(),
        other => other.strip_backtrace(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn wrappers_are_left_out() {
        let inner = DataFusionError::ResourcesExhausted("too small".into());
        let shared = DataFusionError::Shared(Arc::new(inner));
        assert_eq!(SessionError::Query(shared).to_string(), "Resources exhausted: too small");
    }
}
