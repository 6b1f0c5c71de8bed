//! What a study runs on: the engines behind the one trait of `workahead-study`.
//!
//! This build has `native`: the seeds' operators, run in this process under every technique.

#![forbid(unsafe_code)]

pub mod native;

use workahead_study::engine::{Engine, EngineError};

/// Names of the engines of this build.
pub const NAMES: &[&str] = &["native"];

/// Opens an engine by the name that studies use.
///
/// # Errors
/// When this build has no engine of that name.
pub fn open(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    match name {
        "native" => Ok(Box::new(native::Native::new())),
        _ => Err(EngineError::unknown("engine", name, NAMES.iter().copied())),
    }
}
