//! Why a report could not be made.

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A template does not fit the page: a fault of this program, which a test would have found.
    #[error("the report's template is broken: {0}; please report it with the result's run.json")]
    Template(#[from] minijinja::Error),
    /// The report could not be written.
    #[error(transparent)]
    Study(#[from] workahead_study::error::StudyError),
}
