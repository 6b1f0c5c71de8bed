//! Why a paper could not be reproduced.

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// No paper has this name.
    #[error("unknown paper `{given}`: {remedy}")]
    UnknownPaper {
        /// The name as written.
        given: String,
        /// The remedy.
        remedy: String,
    },
}
