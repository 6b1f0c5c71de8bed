//! Why a paper could not be reproduced.

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No paper has this name.
    #[error("unknown paper `{given}`: {remedy}")]
    UnknownPaper {
        /// What was given.
        given: String,
        /// What to write instead.
        remedy: String,
    },
}
