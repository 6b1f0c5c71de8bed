//! What it is run on.

#![forbid(unsafe_code)]

use workahead_study::engine::{Engine, EngineError};

/// Names of the engines of this build.
pub const NAMES: &[&str] = &[];

/// Opens an engine by the name that studies use.
///
/// # Errors
/// When this build has no engine of that name.
pub fn open(name: &str) -> Result<Box<dyn Engine>, EngineError> {
    Err(EngineError::unknown("engine", name, NAMES.iter().copied()))
}
