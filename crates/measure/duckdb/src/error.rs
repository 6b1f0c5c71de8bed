//! Refusals of DuckDB, and their meaning for a client.

use std::path::PathBuf;

/// An error of DuckDB or of loading it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no library.
    #[error(
        "DuckDB's library was not found in {}: `cargo xtask setup` fetches it, or name a \
         libduckdb.so in the environment variable {variable}",
        tried.join(", ")
    )]
    Missing {
        /// Where it was looked for.
        tried: Vec<String>,
        /// The variable that names another place.
        variable: &'static str,
    },
    /// The file is not DuckDB's library, or of an unsupported version.
    #[error("{} is not a usable library of DuckDB: {says}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The loader's error.
        says: String,
    },
    /// DuckDB's own words.
    #[error("{says}")]
    Refused {
        /// Its meaning for a client.
        why: RefusalKind,
        /// The words, on one line.
        says: String,
    },
}

/// The meaning of a refusal for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Another transaction changed the same rows first.
    Conflict,
    /// A row of that key is there already.
    Duplicate,
    /// It was interrupted from another thread.
    Interrupted,
    /// The database as a whole can't go on.
    Fatal,
    /// It would reach a file that the database must not touch.
    Denied,
    /// Anything else: it would fail again.
    Other,
}

impl Error {
    /// By how DuckDB's texts begin; its kinds of errors are part of them.
    pub(crate) fn refused(says: &str) -> Self {
        let says = says.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = match says.as_str() {
            text if text.starts_with("TransactionContext Error") => RefusalKind::Conflict,
            text if text.starts_with("Transaction conflict") => RefusalKind::Conflict,
            text if text.starts_with("Constraint Error: Duplicate key") => RefusalKind::Duplicate,
            text if text.starts_with("INTERRUPT Error") => RefusalKind::Interrupted,
            text if text.starts_with("FATAL Error") => RefusalKind::Fatal,
            text if text.starts_with("Permission Error") => RefusalKind::Denied,
            _ => RefusalKind::Other,
        };
        Self::Refused { why, says }
    }

    /// A refusal of our own.
    pub(crate) fn ours(says: impl Into<String>) -> Self {
        Self::Refused { why: RefusalKind::Other, says: says.into() }
    }
}
