//! What goes wrong in a session, in one line.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::error::DataFusionError;

/// A session can't do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The system starts no more threads.
    #[error("can't start {threads} threads: {source}; use fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
        /// What the system said.
        source: io::Error,
    },
    /// No file can be made where spilled rows would go.
    #[error("can't write to the spill directory {}: {source}", path.display())]
    SpillDirectory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table's file can't be opened.
    #[error("can't read the table {name:?} from {}: {source}", path.display())]
    Open {
        /// The table.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A table's file has a name that says nothing of its kind.
    #[error(
        "{} is of no kind that is known by its name: .parquet, .csv, .json, .ndjson, .arrow or .ipc",
        path.display()
    )]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// A table's file is not what its name says.
    #[error("can't read the table {name:?} from {}: {}", path.display(), told(source))]
    Table {
        /// The table.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What DataFusion said.
        source: DataFusionError,
    },
    /// A statement could not be planned or executed.
    #[error("{}", told(.0))]
    Query(DataFusionError),
    /// A statement took more time than there was.
    #[error("it took longer than {limit:?}: give it more with --timeout")]
    TooLong {
        /// The time there was.
        limit: Duration,
    },
    /// Its rows would not have come.
    #[error("given up")]
    GivenUp,
    /// It was asked to stop.
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

    /// Whether the statement itself is at fault: no SQL, or of names and types that are not there.
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

/// DataFusion's words without a backtrace and without the wrappings that say nothing.
fn told(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Shared(inner) => told(inner),
        DataFusionError::Diagnostic(_, inner) => told(inner),
        DataFusionError::Context(_, inner) => told(inner),
        DataFusionError::External(inner) => inner.to_string(),
        other => other.strip_backtrace(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn wrappings_are_left_out() {
        let inner = DataFusionError::ResourcesExhausted("too small".into());
        let shared = DataFusionError::Shared(Arc::new(inner));
        assert_eq!(SessionError::Query(shared).to_string(), "Resources exhausted: too small");
    }
}
