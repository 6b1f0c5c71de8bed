//! The findings as JSON beside the observations: for programs without statistics of their own, such
//! as the Python package.

use std::path::Path;

use serde::Serialize;

use crate::error::StudyError;
use crate::file;
use crate::results::{Finding, Results};

/// Name of the file in the result directory.
pub const FILE: &str = "findings.json";

#[derive(Serialize)]
struct Findings {
    /// Whether every cell has all its samples, or the reason why not.
    complete: bool,
    findings: Vec<Finding>,
}

/// Writes the file atomically.
///
/// # Errors
/// When it can't be written.
pub fn write(dir: &Path, results: &Results) -> Result<(), StudyError> {
    let findings = Findings { complete: results.is_complete(), findings: results.findings() };
    let mut text = serde_json::to_string_pretty(&findings).expect("findings have only text keys");
    text.push('\n');
    file::write_in(dir, FILE, text.as_bytes())
}
