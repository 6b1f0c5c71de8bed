//! Errors as Python's exceptions, with the same one-line messages as the command's.
//!
//! The classes are defined in Python (`workahead/_errors.py`), because each has two bases: one of
//! ours, and the built-in that a caller would expect (`ValueError`, `MemoryError`, `OSError`).

use arrow_schema::ArrowError;
use pyo3::prelude::*;
use workahead_join::JoinError;

/// A call has failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument is invalid.
    #[error("{0}")]
    WrongUse(String),
    /// An error of the join.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The producer of an input's batches failed.
    #[error("the {name} can't be read: {source}")]
    Input {
        /// The input.
        name: String,
        /// The producer's error.
        source: ArrowError,
    },
    /// A result column can't be assembled.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A result can be read only once.
    #[error("this result was read already: join again, or keep it with .to_pyarrow()")]
    AlreadyRead,
    /// The reader was closed before the end.
    #[error("the join was stopped")]
    Stopped,
    /// The system can't start a thread.
    #[error("can't start a thread: {0}")]
    Thread(std::io::Error),
    /// The memory limit was reached.
    #[error("{0}")]
    Memory(String),
    /// Any other error of a query.
    #[error("{0}")]
    Query(String),
    /// A defect of Workahead.
    #[error("workahead has a defect, please report it: {0}")]
    Defect(String),
    /// The machine's limits can't be measured.
    #[error(transparent)]
    Machine(#[from] workahead_machine::Error),
    /// Facts that can't be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Error {
    /// The class in `workahead._errors`.
    fn class(&self) -> &'static str {
        match self {
            Self::Join(JoinError::Limit(_) | JoinError::LimitTooSmall { .. }) | Self::Memory(_) => {
                "MemoryLimitError"
            }
            Self::Join(JoinError::Spill(_)) => "SpillError",
            Self::Join(
                JoinError::UnknownColumn { .. }
                | JoinError::NoKeys
                | JoinError::KeyType { .. }
                | JoinError::KeyKinds { .. }
                | JoinError::NullAware { .. }
                | JoinError::OtherTable { .. },
            )
            | Self::WrongUse(_) => "WrongUseError",
            Self::Input { .. } => "InputError",
            _ => "WorkaheadError",
        }
    }

    /// The causes joined by `: `, without repetitions, on one line.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        let mut cause: Option<&dyn std::error::Error> = Some(self);
        while let Some(error) = cause {
            let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
            if !line.ends_with(&text) {
                line.push_str(if line.is_empty() { "" } else { ": " });
                line.push_str(&text);
            }
            cause = error.source();
        }
        line
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        Python::attach(|py| {
            let exception = py
                .import("workahead._errors")
                .and_then(|errors| errors.getattr(error.class()))
                .and_then(|class| class.call1((error.line(),)));
            exception.map_or_else(|failed| failed, PyErr::from_value)
        })
    }
}
