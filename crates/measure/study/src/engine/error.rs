//! Errors of engines.

use std::fmt::Display;

use super::{Answer, Reason};
use crate::nearest;

/// Why an engine has no sample.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An unknown setting or value.
    #[error("unknown {what} `{given}`: {remedy}")]
    Unknown {
        /// Its kind: "setting", or the setting's name when the value is unknown.
        what: String,
        /// The given name.
        given: String,
        /// The remedy.
        remedy: String,
    },
    /// The machine does not have the memory.
    #[error("not enough memory: {needed_bytes} bytes needed, {available_bytes} available")]
    Memory {
        /// Bytes that the cell needs.
        needed_bytes: u64,
        /// Bytes available.
        available_bytes: u64,
    },
    /// Stopped by request, without a sample.
    #[error("stopped")]
    Stopped,
    /// The answer is not the oracle's.
    #[error(
        "wrong answer: {got_rows} rows (checksum {got_checksum:016x}), \
         expected {expected_rows} (checksum {expected_checksum:016x})",
        got_rows = got.rows, got_checksum = got.checksum,
        expected_rows = expected.rows, expected_checksum = expected.checksum
    )]
    WrongAnswer {
        /// The engine's answer.
        got: Answer,
        /// The expected answer.
        expected: Answer,
    },
    /// A setting of the cell has an invalid value.
    #[error("setting `{key}`: {reason}")]
    Setting {
        /// Its name.
        key: String,
        /// The fault of the value, and the remedy.
        reason: Reason,
    },
    /// The engine does not support the study; known before anything is run.
    #[error("{0}")]
    Refused(Reason),
    /// A database, tool or system call failed while the cell was prepared or run.
    #[error("{0}")]
    Failed(Reason),
}

impl EngineError {
    /// A setting with an invalid value.
    pub fn setting(key: &str, reason: impl Display) -> EngineError {
        EngineError::Setting { key: key.to_owned(), reason: Reason::new(reason) }
    }

    /// Something that the engine does not support.
    pub fn refused(reason: impl Display) -> EngineError {
        EngineError::Refused(Reason::new(reason))
    }

    /// Something that failed.
    pub fn failed(reason: impl Display) -> EngineError {
        EngineError::Failed(Reason::new(reason))
    }

    /// An unknown name, with the nearest known one as the remedy.
    pub fn unknown<'a>(
        what: &str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> EngineError {
        let known: Vec<&str> = known.into_iter().collect();
        EngineError::Unknown {
            what: what.to_owned(),
            given: given.to_owned(),
            remedy: nearest::remedy(given, &known),
        }
    }
}
