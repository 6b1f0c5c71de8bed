//! Why an engine gave no sample.

use std::fmt::Display;

use super::{Answer, Reason};
use crate::nearest;

/// Why an engine did not give a sample.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A setting or a value it does not know.
    #[error("unknown {what} `{given}`: {remedy}")]
    Unknown {
        /// What it is: "setting", or the setting's name when the value is unknown.
        what: String,
        /// What was given.
        given: String,
        /// What to write instead.
        remedy: String,
    },
    /// The machine does not have the memory.
    #[error("not enough memory: {needed_bytes} bytes needed, {available_bytes} available")]
    Memory {
        /// What the cell needs.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// Someone asked to stop; there is no sample.
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
        /// What came out.
        got: Answer,
        /// What should have.
        expected: Answer,
    },
    /// A setting of the cell has a value that can't be.
    #[error("setting `{key}`: {reason}")]
    Setting {
        /// Its name.
        key: String,
        /// What is wrong with the value, and what to write instead.
        reason: Reason,
    },
    /// The engine can't do what the study asks for; known before anything is run.
    #[error("{0}")]
    Refused(Reason),
    /// A database, tool or system call failed while the cell was prepared or run.
    #[error("{0}")]
    Failed(Reason),
}

impl EngineError {
    /// A setting whose value can't be.
    pub fn setting(key: &str, reason: impl Display) -> EngineError {
        EngineError::Setting { key: key.to_owned(), reason: Reason::new(reason) }
    }

    /// Something that the engine can't do.
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
